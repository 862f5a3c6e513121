/*
 * See groups_report.h. Lag is counted as clients do: the high watermark less the commit, in offsets
 * (bytes), and only for commits of the topic's present epoch. Groups thread.
 */
#include "gateway/groups/groups_report_int.h"

#include <inttypes.h>
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

void groups_ask_finish(struct groups_ask *ask, int status, const char *fault)
{
    ask->status = status;
    ask->fault = fault;
    ask->task.run = run_done;
    executor_post(ask->ex, &ask->task);
}

void groups_ask_quote(struct writer *w, const char *key, const char *value)
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
            groups_ask_quote(w, "topic", list->name);
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
    groups_ask_quote(w, "member", id);
    if (instance != NULL) {
        wr_str(w, ",");
        groups_ask_quote(w, "instance", instance);
    }
    wr_str(w, ",");
    groups_ask_quote(w, "client", client);
    wr_str(w, ",");
    groups_ask_quote(w, "host", host);
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
    groups_ask_quote(w, "task", g->task);
    wr_str(w, ",");
    groups_ask_quote(w, "group", g->id);
    wr_printf(w, ",\"type\":\"%s\",\"state\":\"%s\",", g->ops->type, g->ops->state(g));
    groups_ask_quote(w, "protocol_type", g->ops->protocol_type(g));
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
    groups_ask_finish(ask, list == NULL ? 503 : 200, "out of memory");
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
    groups_ask_finish(ask, 200, NULL);
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
    groups_ask_finish(ask, 200, NULL);
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
        groups_ask_finish(ask, 404, "there is no such group");
        return;
    }
    if (ask->kind == GROUPS_ASK_ONE) {
        write_group(gs, ask->g, true, &ask->out);
        wr_str(&ask->out, "\n");
        groups_ask_finish(ask, 200, NULL);
    } else if (gs->draining) {
        groups_ask_finish(ask, 503, "the server is leaving");
    } else if (!ask->g->ops->empty(ask->g)) {
        groups_ask_finish(ask, 409, "the group has members: stop them first");
    } else if (ask->kind == GROUPS_ASK_DELETE) {
        groups_ask_delete(gs, ask);
    } else if (ask->kind == GROUPS_ASK_PLAN) {
        groups_ask_plan(gs, ask);
    } else {
        groups_ask_reset(gs, ask);
    }
}

void groups_ask_init(struct groups_ask *ask, enum groups_ask_kind kind, struct executor *ex,
                     void (*done)(struct groups_ask *ask))
{
    *ask = (struct groups_ask){.kind = kind, .partition = -1, .ex = ex, .done = done};
    arena_init(&ask->arena, GROUPS_ASK_BYTES);
    wr_init(&ask->out, GROUPS_OUT_BYTES);
}

void groups_ask_fini(struct groups_ask *ask)
{
    wr_fini(&ask->out);
    arena_fini(&ask->arena);
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
