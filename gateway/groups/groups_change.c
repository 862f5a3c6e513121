/*
 * What an operator changes: deletion and reset of a group without members. Planned and checked at
 * once, written, and answered when it is durable; only then the memory changes. Groups thread.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "gateway/groups/groups_int.h"
#include "gateway/groups/groups_report_int.h"

static void deleted(struct group_write *w)
{
    struct groups_ask *ask =
        (struct groups_ask *)(void *)((char *)w - offsetof(struct groups_ask, write));
    struct groups *gs = ask->gs;
    struct group *g = ask->g;
    int err = w->err;

    groups_written(gs, g);
    wr_str(&ask->out, "{\"deleted\":true}\n");
    groups_ask_finish(ask, err < 0 ? 503 : 200, "it could not be stored");
    groups_deleted(gs, g, err);
}

void groups_ask_delete(struct groups *gs, struct groups_ask *ask)
{
    struct group *g = ask->g;

    if ((ask->write.ops = arena_array(&ask->arena, 1, sizeof *ask->write.ops)) == NULL) {
        groups_ask_finish(ask, 503, "out of memory");
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
    groups_ask_finish(ask, err < 0 ? 503 : 200, "it could not be stored");
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
static void plan_topic(const struct gw_topic *t, const char *name, struct groups_ask *ask)
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
        groups_ask_quote(&ask->out, "topic", name);
        wr_printf(&ask->out, ",\"partition\":%zu,\"from\":%" PRId64 ",\"to\":%" PRId64 "}", p,
                  now == NULL ? -1 : now->offset, w->ops[w->ops_n].offset);
        w->ops_n++;
    }
}

/* Room for an operation for each partition that a plan of n more may name. */
static int plan_room(struct groups_ask *ask, size_t n)
{
    ask->write.ops_n = 0;
    ask->write.ops = arena_array(&ask->arena, n + 1, sizeof *ask->write.ops);
    return ask->write.ops == NULL ? E_NOMEM : 0;
}

/* All topics that the group has offsets of, as far as the task has them. */
static int plan_all(struct groups *gs, struct groups_ask *ask)
{
    const struct offsets_topic *list;
    const struct gw_topic *t;
    size_t n = 0;
    int err;

    TAILQ_FOREACH(list, &ask->g->offsets.topics, link)
    {
        if ((t = groups_topic(gs, ask->g->task, span_str(list->name))) != NULL)
            n += t->parts_n;
    }
    if ((err = plan_room(ask, n)) < 0)
        return err;
    TAILQ_FOREACH(list, &ask->g->offsets.topics, link)
    {
        if ((t = groups_topic(gs, ask->g->task, span_str(list->name))) == NULL)
            continue;
        const char *name = arena_strndup(&ask->arena, list->name, strlen(list->name));
        if (name == NULL)
            return E_NOMEM;
        plan_topic(t, name, ask);
    }
    return 0;
}

static int plan(struct groups *gs, struct groups_ask *ask)
{
    const struct gw_topic *t;
    int err;

    if (ask->topic.p == NULL)
        return plan_all(gs, ask);
    t = groups_topic(gs, ask->g->task, ask->topic);
    if (t == NULL || (ask->partition >= 0 && (size_t)ask->partition >= t->parts_n))
        return E_NOTFOUND;
    if ((err = plan_room(ask, t->parts_n)) < 0)
        return err;
    /* As it is served: commits are filed under that name, whichever was asked. */
    const char *name = arena_strndup(&ask->arena, t->name, strlen(t->name));
    if (name == NULL)
        return E_NOMEM;
    plan_topic(t, name, ask);
    return 0;
}

static int copy_plan(struct groups_ask *ask)
{
    size_t n = ask->write.ops_n;

    if ((ask->each = arena_array(&ask->arena, n + 1, sizeof *ask->each)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct group_op *op = &ask->write.ops[i];
        const char *topic = arena_strndup(&ask->arena, (const char *)op->topic.p, op->topic.n);
        if (topic == NULL)
            return E_NOMEM;
        ask->each[i] = (struct groups_reset_at){topic, op->partition, op->epoch, op->offset};
    }
    ask->each_n = n;
    return 0;
}

void groups_ask_plan(struct groups *gs, struct groups_ask *ask)
{
    int err = plan(gs, ask);

    if (err == 0)
        err = copy_plan(ask);
    groups_ask_finish(ask,
                      err == 0            ? 200
                      : err == E_NOTFOUND ? 404
                                          : 503,
                      err == E_NOTFOUND ? "the task has no such topic or partition"
                                        : "out of memory");
}

void groups_ask_reset(struct groups *gs, struct groups_ask *ask)
{
    int err;

    wr_printf(&ask->out, "{\"executed\":%s,\"offsets\":[", ask->execute ? "true" : "false");
    err = plan(gs, ask);
    wr_str(&ask->out, "]}\n");
    if (err < 0 || !ask->execute || ask->write.ops_n == 0) {
        groups_ask_finish(ask,
                          err == 0            ? 200
                          : err == E_NOTFOUND ? 404
                                              : 503,
                          err == E_NOTFOUND ? "the task has no such topic or partition"
                                            : "out of memory");
        return;
    }
    for (size_t i = 0; i < ask->write.ops_n; i++)
        ask->write.ops[i].commit_ms = groups_wall_ms(gs);
    groups_write(gs, ask->g, &ask->write, reset_done);
}
