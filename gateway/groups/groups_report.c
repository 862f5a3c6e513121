/*
 * See groups_report.h. Lag is counted as clients do: the high watermark less the commit, in offsets
 * (bytes), and only for commits of the topic's present epoch. Groups thread.
 */
#include "gateway/groups/groups_report.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/consumer_int.h"
#include "gateway/groups/groups_int.h"
#include "gateway/html.h"
#include "schema/json_reader.h"

static void run_done(struct task *t)
{
    struct groups_ask *ask = (struct groups_ask *)(void *)t;
    ask->done(ask);
}

static void finish(struct groups_ask *ask, int status, const char *fault)
{
    ask->status = status;
    ask->fault = fault;
    ask->task.run = run_done;
    executor_post(ask->ex, &ask->task);
}

static void quote(struct writer *w, const char *key, const char *value)
{
    wr_printf(w, "\"%s\":", key);
    sc_json_quote(span_str(value), w);
}

/* --- lag --- */

/* -1: nothing is known of the partition. */
static int64_t lag_of(const struct gw_topic *t, const struct group_offset *at,
                      struct jc_heads *heads)
{
    if (at->offset < 0 || at->partition < 0 || (size_t)at->partition >= t->parts_n ||
        !gw_part_heads(t->parts[at->partition], heads))
        return -1;
    return heads->content_end > at->offset ? heads->content_end - at->offset : 0;
}

/* Over the present commits of one topic; -1: there are none. */
static int64_t topic_lag(const struct groups *gs, const struct group *g,
                         const struct offsets_topic *list)
{
    const struct gw_topic *t = groups_topic(gs, g->task, span_str(list->name));
    int64_t sum = -1;

    for (size_t i = 0; t != NULL && i < list->n; i++) {
        struct jc_heads heads;
        int64_t lag = list->list[i].epoch == t->epoch ? lag_of(t, &list->list[i], &heads) : -1;
        if (lag >= 0)
            sum = (sum < 0 ? 0 : sum) + lag;
    }
    return sum;
}

static int64_t group_lag(const struct groups *gs, const struct group *g)
{
    const struct offsets_topic *list;
    int64_t sum = -1;

    TAILQ_FOREACH(list, &g->offsets.topics, link)
    {
        int64_t lag = topic_lag(gs, g, list);
        if (lag >= 0)
            sum = (sum < 0 ? 0 : sum) + lag;
    }
    return sum;
}

/* --- JSON --- */

static size_t members_of(const struct group *g)
{
    return g->ops == &consumer_ops ? g->consumer->members_n : classic_members(g);
}

static void write_offsets(const struct groups *gs, const struct group *g, struct writer *w)
{
    const struct offsets_topic *list;
    const char *between = "";

    wr_str(w, ",\"offsets\":[");
    TAILQ_FOREACH(list, &g->offsets.topics, link)
    {
        const struct gw_topic *t = groups_topic(gs, g->task, span_str(list->name));
        for (size_t i = 0; i < list->n; i++) {
            const struct group_offset *at = &list->list[i];
            struct jc_heads heads = {0};
            bool present = t != NULL && at->epoch == t->epoch;
            int64_t lag = present ? lag_of(t, at, &heads) : -1;
            wr_printf(w, "%s{", between);
            between = ",";
            quote(w, "topic", list->name);
            wr_printf(w,
                      ",\"partition\":%" PRId32 ",\"epoch\":%" PRId32 ",\"present\":%s"
                      ",\"committed\":%" PRId64 ",\"commit_ms\":%" PRId64,
                      at->partition, at->epoch, present ? "true" : "false", at->offset,
                      at->commit_ms);
            if (lag >= 0)
                wr_printf(
                    w, ",\"log_start\":%" PRId64 ",\"high_watermark\":%" PRId64 ",\"lag\":%" PRId64,
                    heads.log_start, heads.content_end, lag);
            wr_str(w, "}");
        }
    }
    wr_str(w, "]");
}

static void write_member(struct writer *w, const char *between, const char *id,
                         const char *instance, const char *client, const char *host)
{
    wr_printf(w, "%s{", between);
    quote(w, "member", id);
    if (instance != NULL) {
        wr_str(w, ",");
        quote(w, "instance", instance);
    }
    wr_str(w, ",");
    quote(w, "client", client);
    wr_str(w, ",");
    quote(w, "host", host);
}

static void write_members(const struct group *g, struct writer *w)
{
    const char *between = "";

    wr_str(w, ",\"member_list\":[");
    if (g->ops == &consumer_ops) {
        const struct consumer_member *m;
        TAILQ_FOREACH(m, &g->consumer->members, link)
        {
            write_member(w, between, m->id, m->instance, m->client_id, m->client_host);
            wr_printf(w, ",\"epoch\":%" PRId32 "}", m->epoch);
            between = ",";
        }
    } else {
        for (const struct classic_member *m = classic_first(g); m != NULL; m = classic_next(m)) {
            write_member(w, between, m->id, m->instance, m->client_id, m->client_host);
            wr_str(w, "}");
            between = ",";
        }
    }
    wr_str(w, "]");
}

static void write_group(const struct groups *gs, const struct group *g, bool all, struct writer *w)
{
    int64_t lag = group_lag(gs, g);

    wr_str(w, "{");
    quote(w, "task", g->task);
    wr_str(w, ",");
    quote(w, "group", g->id);
    wr_printf(w, ",\"type\":\"%s\",\"state\":\"%s\",", g->ops->type, g->ops->state(g));
    quote(w, "protocol_type", g->ops->protocol_type(g));
    wr_printf(w, ",\"generation\":%" PRId32 ",\"members\":%zu", g->generation, members_of(g));
    if (lag >= 0)
        wr_printf(w, ",\"lag\":%" PRId64, lag);
    if (all) {
        write_members(g, w);
        write_offsets(gs, g, w);
    }
    wr_str(w, "}");
}

static int by_name(const void *a, const void *b)
{
    const struct group *g = *(const struct group *const *)a, *h = *(const struct group *const *)b;
    int order = strcmp(g->task, h->task);
    return order != 0 ? order : strcmp(g->id, h->id);
}

/* All groups of the scope, by name; *n of them. NULL: E_NOMEM. The caller frees it. */
static struct group **sorted(const struct groups *gs, const struct groups_ask *ask, size_t *n)
{
    struct group **list = mem_array(gs->table.n + 1, sizeof(void *));
    struct group *g;

    *n = 0;
    for (size_t at = 0; list != NULL && (g = keymap_next(&gs->table, &at)) != NULL;) {
        if (!g->deleting && (ask->scope.p == NULL || span_eq_str(ask->scope, g->task)))
            list[(*n)++] = g;
    }
    if (list != NULL && *n > 0)
        qsort(list, *n, sizeof(void *), by_name);
    return list;
}

static void list_groups(struct groups *gs, struct groups_ask *ask)
{
    size_t n;
    struct group **list = sorted(gs, ask, &n);

    wr_str(&ask->out, "{\"groups\":[");
    for (size_t i = 0; i < n; i++) {
        wr_str(&ask->out, i > 0 ? ",\n" : "");
        write_group(gs, list[i], false, &ask->out);
    }
    wr_str(&ask->out, "]}\n");
    mem_free(list);
    finish(ask, list == NULL ? 503 : 200, "out of memory");
}

static void write_label(struct writer *w, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\n')
            wr_str(w, "\\n");
        else if (*s == '"' || *s == '\\')
            wr_printf(w, "\\%c", *s);
        else
            wr_u8(w, (uint8_t)*s);
    }
}

/* One series a group and topic, up to a bound, by name: so which ones are left out is stable. */
static void list_lag(struct groups *gs, struct groups_ask *ask)
{
    size_t n, series = 0, left_out = 0;
    struct group **list = sorted(gs, ask, &n);
    struct writer *w = &ask->out;

    wr_str(w, "# HELP sluice_group_lag Offsets (bytes) between a group's commits and the high "
              "watermarks, over the partitions of a topic\n# TYPE sluice_group_lag gauge\n");
    for (size_t i = 0; i < n; i++) {
        const struct offsets_topic *t;
        TAILQ_FOREACH(t, &list[i]->offsets.topics, link)
        {
            int64_t lag = topic_lag(gs, list[i], t);
            if (lag < 0)
                continue;
            if (series++ >= GROUPS_LAG_SERIES) {
                left_out++;
                continue;
            }
            wr_str(w, "sluice_group_lag{");
            if (list[i]->task[0] != '\0') {
                wr_str(w, "task=\"");
                write_label(w, list[i]->task);
                wr_str(w, "\",");
            }
            wr_str(w, "group=\"");
            write_label(w, list[i]->id);
            wr_str(w, "\",topic=\"");
            write_label(w, t->name);
            wr_printf(w, "\"} %" PRId64 "\n", lag);
        }
    }
    wr_printf(w,
              "# HELP sluice_groups Consumer groups\n# TYPE sluice_groups gauge\n"
              "sluice_groups %zu\n"
              "# HELP sluice_group_lag_left_out Series of sluice_group_lag beyond the bound\n"
              "# TYPE sluice_group_lag_left_out gauge\nsluice_group_lag_left_out %zu\n",
              gs->table.n, left_out);
    mem_free(list);
    finish(ask, 200, NULL);
}

static void html_row(const struct groups *gs, const struct group *g, struct writer *w)
{
    int64_t lag = group_lag(gs, g);

    wr_str(w, "<tr><td>");
    html_text(w, g->id);
    wr_str(w, "</td><td>");
    html_text(w, g->task);
    wr_printf(w, "</td><td>%s</td><td>%s</td><td class=\"n\">%zu</td><td class=\"n\">",
              g->ops->type, g->ops->state(g), members_of(g));
    if (lag >= 0)
        wr_printf(w, "%" PRId64, lag);
    wr_str(w, "</td></tr>\n");
}

static void list_html(struct groups *gs, struct groups_ask *ask)
{
    size_t n;
    struct group **list = sorted(gs, ask, &n);

    if (n > 0)
        wr_str(&ask->out, "<h2>Consumer groups</h2>\n<table><tr><th>group</th><th>task</th>"
                          "<th>type</th><th>state</th><th class=\"n\">members</th>"
                          "<th class=\"n\">lag (bytes)</th></tr>\n");
    for (size_t i = 0; i < n && i < GROUPS_HTML_ROWS; i++)
        html_row(gs, list[i], &ask->out);
    if (n > 0)
        wr_str(&ask->out, "</table>\n");
    if (n > GROUPS_HTML_ROWS)
        wr_printf(&ask->out, "<p>and %zu more</p>\n", n - GROUPS_HTML_ROWS);
    mem_free(list);
    finish(ask, 200, NULL);
}

/* --- changes --- */

static void deleted(struct group_write *w)
{
    struct groups_ask *ask =
        (struct groups_ask *)(void *)((char *)w - offsetof(struct groups_ask, write));
    struct groups *gs = ask->gs;
    struct group *g = ask->g;
    int err = w->err;

    groups_written(gs, g);
    mem_free(w->ops);
    wr_str(&ask->out, "{\"deleted\":true}\n");
    finish(ask, err < 0 ? 503 : 200, "it could not be stored");
    groups_deleted(gs, g, err);
}

static void delete_group(struct groups *gs, struct groups_ask *ask)
{
    struct group *g = ask->g;

    if ((ask->write.ops = mem_array(1, sizeof *ask->write.ops)) == NULL) {
        finish(ask, 503, "out of memory");
        return;
    }
    ask->write.ops[0] = (struct group_op){
        .kind = GROUP_OP_DELETE_GROUP, .task = span_str(g->task), .group = span_str(g->id)};
    ask->write.ops_n = 1;
    g->deleting = true;
    groups_write(gs, g, &ask->write, deleted);
}

static void reset_done(struct group_write *w)
{
    struct groups_ask *ask =
        (struct groups_ask *)(void *)((char *)w - offsetof(struct groups_ask, write));
    struct groups *gs = ask->gs;
    struct group *g = ask->g;
    struct group_out out;
    int err = w->err;

    groups_written(gs, g);
    for (size_t i = 0; i < w->ops_n && err == 0; i++) {
        const struct group_op *op = &w->ops[i];
        err = offsets_put(&g->offsets, op->topic, op->partition, op->epoch, op->offset,
                          op->metadata, op->commit_ms);
    }
    mem_free(w->ops);
    finish(ask, err < 0 ? 503 : 200, "it could not be stored");
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

/* Both plans go through the partitions in one order, unless the topics changed meanwhile. */
static const struct groups_reset_at *each_of(struct groups_ask *ask, const char *topic,
                                             size_t partition, int32_t epoch)
{
    for (size_t i = 0; i < ask->each_n; i++) {
        size_t k = (ask->each_next + i) % ask->each_n;
        const struct groups_reset_at *at = &ask->each[k];

        if ((size_t)at->partition == partition && at->epoch == epoch &&
            strcmp(at->topic, topic) == 0) {
            ask->each_next = k + 1;
            return at;
        }
    }
    return NULL;
}

/* As Kafka's tool: never outside of what is there. */
static int64_t within(int64_t offset, const struct jc_heads *heads)
{
    if (offset < heads->log_start)
        return heads->log_start;
    return offset < heads->content_end ? offset : heads->content_end;
}

static int64_t reset_target(const struct groups_ask *ask, const struct groups_reset_at *each,
                            const struct jc_heads *heads)
{
    switch (ask->to) {
    case GROUPS_TO_EARLIEST:
        return heads->log_start;
    case GROUPS_TO_OFFSET:
        return within(ask->offset, heads);
    case GROUPS_TO_EACH:
        return within(each->offset, heads);
    case GROUPS_TO_LATEST:
    default:
        return heads->content_end;
    }
}

/* The names in an operation must live until it is stored, which a view does not. */
static int plan_topic(const struct gw_topic *t, const char *name, struct groups_ask *ask,
                      size_t *cap)
{
    struct group_write *w = &ask->write;
    const struct group *g = ask->g;

    for (size_t p = 0; p < t->parts_n; p++) {
        const struct groups_reset_at *each = NULL;
        struct jc_heads heads;
        if ((ask->partition >= 0 && (size_t)ask->partition != p) ||
            !gw_part_heads(t->parts[p], &heads))
            continue;
        if (ask->to == GROUPS_TO_EACH && (each = each_of(ask, name, p, t->epoch)) == NULL)
            continue;
        if (w->ops_n == *cap) {
            *cap = *cap == 0 ? 16 : 2 * *cap;
            void *grown = mem_realloc(w->ops, *cap * sizeof *w->ops);
            if (grown == NULL)
                return E_NOMEM;
            w->ops = grown;
        }
        const struct group_offset *now =
            offsets_get(&g->offsets, span_str(name), (int32_t)p, t->epoch);
        w->ops[w->ops_n] = (struct group_op){.kind = GROUP_OP_PUT_OFFSET,
                                             .task = span_str(g->task),
                                             .group = span_str(g->id),
                                             .topic = span_str(name),
                                             .partition = (int32_t)p,
                                             .epoch = t->epoch,
                                             .offset = reset_target(ask, each, &heads),
                                             .metadata = span_str("")};
        wr_printf(&ask->out, "%s{", w->ops_n > 0 ? "," : "");
        quote(&ask->out, "topic", name);
        wr_printf(&ask->out, ",\"partition\":%zu,\"from\":%" PRId64 ",\"to\":%" PRId64 "}", p,
                  now == NULL ? -1 : now->offset, w->ops[w->ops_n].offset);
        w->ops_n++;
    }
    return 0;
}

static int plan(struct groups *gs, struct groups_ask *ask)
{
    const struct offsets_topic *list;
    const struct gw_topic *t;
    size_t cap = 0;
    int err;

    if (ask->topic.p != NULL) {
        /* the name in the ask is NUL-terminated, and lives as long */
        t = groups_topic(gs, ask->g->task, ask->topic);
        return t == NULL ? E_NOTFOUND : plan_topic(t, (const char *)ask->topic.p, ask, &cap);
    }
    TAILQ_FOREACH(list, &ask->g->offsets.topics, link)
    {
        t = groups_topic(gs, ask->g->task, span_str(list->name));
        if (t != NULL && (err = plan_topic(t, list->name, ask, &cap)) < 0)
            return err;
    }
    return 0;
}

static int copy_plan(struct groups_ask *ask)
{
    size_t n = ask->write.ops_n;

    if ((ask->each = arena_array(ask->arena, n + 1, sizeof *ask->each)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct group_op *op = &ask->write.ops[i];
        const char *topic = arena_strndup(ask->arena, (const char *)op->topic.p, op->topic.n);
        if (topic == NULL)
            return E_NOMEM;
        ask->each[i] = (struct groups_reset_at){topic, op->partition, op->epoch, op->offset};
    }
    ask->each_n = n;
    return 0;
}

static void plan_reset(struct groups *gs, struct groups_ask *ask)
{
    int err = plan(gs, ask);

    if (err == 0)
        err = copy_plan(ask);
    mem_free(ask->write.ops);
    finish(ask,
           err == 0            ? 200
           : err == E_NOTFOUND ? 404
                               : 503,
           err == E_NOTFOUND ? "the task has no such topic" : "out of memory");
}

static void reset_group(struct groups *gs, struct groups_ask *ask)
{
    int err;

    wr_printf(&ask->out, "{\"executed\":%s,\"offsets\":[", ask->execute ? "true" : "false");
    err = plan(gs, ask);
    wr_str(&ask->out, "]}\n");
    if (err < 0 || !ask->execute || ask->write.ops_n == 0) {
        mem_free(ask->write.ops);
        finish(ask,
               err == 0            ? 200
               : err == E_NOTFOUND ? 404
                                   : 503,
               err == E_NOTFOUND ? "the task has no such topic" : "out of memory");
        return;
    }
    for (size_t i = 0; i < ask->write.ops_n; i++)
        ask->write.ops[i].commit_ms = groups_wall_ms(gs);
    groups_write(gs, ask->g, &ask->write, reset_done);
}

/* --- the question --- */

static void run_ask(struct task *t)
{
    struct groups_ask *ask = (struct groups_ask *)(void *)t;
    struct groups *gs = ask->gs;

    if (ask->kind == GROUPS_ASK_LIST) {
        list_groups(gs, ask);
        return;
    }
    if (ask->kind == GROUPS_ASK_HTML) {
        list_html(gs, ask);
        return;
    }
    if (ask->kind == GROUPS_ASK_LAG) {
        list_lag(gs, ask);
        return;
    }
    const char *scope = ask->scope.p == NULL ? "" : (const char *)ask->scope.p;
    ask->g = groups_find(gs, scope, ask->group);
    if (ask->g == NULL || ask->g->deleting) {
        finish(ask, 404, "there is no such group");
        return;
    }
    if (ask->kind == GROUPS_ASK_ONE) {
        write_group(gs, ask->g, true, &ask->out);
        wr_str(&ask->out, "\n");
        finish(ask, 200, NULL);
    } else if (gs->draining) {
        finish(ask, 503, "the server is leaving");
    } else if (!ask->g->ops->empty(ask->g)) {
        finish(ask, 409, "the group has members: stop them first");
    } else if (ask->kind == GROUPS_ASK_DELETE) {
        delete_group(gs, ask);
    } else if (ask->kind == GROUPS_ASK_PLAN) {
        plan_reset(gs, ask);
    } else {
        reset_group(gs, ask);
    }
}

void groups_ask(struct groups *gs, struct groups_ask *ask)
{
    ask->gs = gs;
    ask->g = NULL;
    ask->each_next = 0;
    ask->write = (struct group_write){.ops = NULL};
    ask->task.run = run_ask;
    executor_post(groups_executor(gs), &ask->task);
}
