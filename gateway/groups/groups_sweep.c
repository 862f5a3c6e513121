/*
 * What a group forgets: by retention (offsets of a group without members, and of epochs that are
 * over), by an operator, and as a whole. Always first in the store, then in memory. A group with
 * members loses nothing that it could still read. Groups thread.
 */
#include "base/mem.h"
#include "gateway/groups/groups_table.h"

/* A write that nobody waits for. */
struct sweep {
    struct group_write write; /* first member */
    struct groups *gs;
    struct group *g;
    struct arena arena; /* its operations */
};

void groups_forget(struct group *g, const struct group_write *w)
{
    for (size_t i = 0; i < w->ops_n; i++) {
        const struct group_op *op = &w->ops[i];
        const struct group_offset *at =
            offsets_get(&g->offsets, op->topic, op->partition, op->epoch);
        /* What was committed again meanwhile is written after the deletion. */
        if (at != NULL && at->commit_ms == op->commit_ms)
            (void)offsets_remove(&g->offsets, op->topic, op->partition, op->epoch);
    }
}

void groups_deleted(struct groups *gs, struct group *g, int err)
{
    struct group_out out;

    g->deleting = false;
    if (err == 0) {
        /* All that is in memory now was stored before the deletion. */
        offsets_fini(&g->offsets);
        offsets_init(&g->offsets);
        if (g->writes == 0 && STAILQ_EMPTY(&g->held) && g->ops->empty(g)) {
            groups_drop(gs, g);
            return;
        }
        g->generation_stored = 0; /* somebody came meanwhile: its row is needed after all */
        g->empty_stored_ms = -1;
    }
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

static void swept(struct group_write *w)
{
    struct sweep *s = (struct sweep *)w;
    struct groups *gs = s->gs;
    struct group *g = s->g;
    bool whole = w->ops[0].kind == GROUP_OP_DELETE_GROUP;
    int err = w->err;
    struct group_out out;

    groups_written(gs, g);
    if (!whole && err == 0)
        groups_forget(g, w);
    arena_fini(&s->arena);
    mem_free(s);
    if (whole) {
        groups_deleted(gs, g, err);
        return;
    }
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

static bool too_old(const struct groups *gs, const struct group *g, const struct offsets_topic *t,
                    const struct group_offset *at, int64_t wall_ms)
{
    const struct gw_topic *topic = groups_topic(gs, g->task, span_str(t->name));
    bool over = topic != NULL && at->epoch < topic->epoch;

    if (wall_ms - at->commit_ms < gs->opts.retention_ms)
        return false;
    return over || (g->empty_since_ms > 0 && wall_ms - g->empty_since_ms >= gs->opts.retention_ms);
}

static int collect(const struct groups *gs, const struct group *g, int64_t wall_ms, struct sweep *s)
{
    const struct offsets_topic *t;
    struct group_op *ops = arena_array(&s->arena, g->offsets.n + 1, sizeof *ops);

    if (ops == NULL)
        return E_NOMEM;
    s->write.ops = ops;
    TAILQ_FOREACH(t, &g->offsets.topics, link)
    {
        size_t n = strlen(t->name);
        char *name = arena_strndup(&s->arena, t->name, n);
        if (name == NULL)
            return E_NOMEM;
        for (size_t i = 0; i < t->n; i++) {
            if (!too_old(gs, g, t, &t->list[i], wall_ms))
                continue;
            ops[s->write.ops_n++] = (struct group_op){.kind = GROUP_OP_DELETE_OFFSET,
                                                      .task = span_str(g->task),
                                                      .group = span_str(g->id),
                                                      .topic = span_of(name, n),
                                                      .partition = t->list[i].partition,
                                                      .epoch = t->list[i].epoch,
                                                      .commit_ms = t->list[i].commit_ms};
        }
    }
    return 0;
}

static int64_t bare_ms(const struct groups *gs)
{
    return gs->opts.retention_ms < GROUP_BARE_MS ? gs->opts.retention_ms : GROUP_BARE_MS;
}

void groups_sweep_group(struct groups *gs, struct group *g)
{
    int64_t wall_ms = groups_wall_ms(gs);
    struct sweep *s;

    if (g->writes > 0 || g->deleting || (s = mem_zalloc(sizeof *s)) == NULL)
        return;
    s->gs = gs;
    s->g = g;
    arena_init(&s->arena, SIZE_MAX);
    if (collect(gs, g, wall_ms, s) < 0) {
        s->write.ops_n = 0;
    } else if (g->offsets.n == s->write.ops_n && g->ops->empty(g) && g->empty_since_ms > 0 &&
               wall_ms - g->empty_since_ms >= bare_ms(gs)) {
        s->write.ops[0] = (struct group_op){
            .kind = GROUP_OP_DELETE_GROUP, .task = span_str(g->task), .group = span_str(g->id)};
        s->write.ops_n = 1;
        g->deleting = true;
    }
    if (s->write.ops_n == 0) {
        arena_fini(&s->arena);
        mem_free(s);
        return;
    }
    groups_write(gs, g, &s->write, swept);
}

void groups_sweep(struct groups *gs)
{
    int64_t every = gs->opts.retention_ms / 4;
    struct group *g;

    if (every > GROUP_SWEEP_MS)
        every = GROUP_SWEEP_MS;
    gs->sweep_ms = groups_now_ms(gs) + (every < 1 ? 1 : every);
    for (size_t at = 0; (g = keymap_next(&gs->table, &at)) != NULL;)
        groups_sweep_group(gs, g);
}
