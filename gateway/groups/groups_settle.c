/*
 * What follows from an event of a group: answers, its row in the store, its next deadline, its end.
 * A generation is heard of only after it is durable, so that no two lives of this process give out
 * the same one. Memory changes when a write is done, in the order of the writes: what is read is
 * what would be found after a crash, or older.
 */
#include "base/assert.h"
#include "base/log.h"
#include "gateway/groups/groups_table.h"
#include "gateway/metrics.h"

/* --- writes --- */

static void run_written(struct task *t)
{
    struct group_write *w = (struct group_write *)t;
    w->done(w);
}

void groups_write(struct groups *gs, struct group *g, struct group_write *w,
                  void (*done)(struct group_write *w))
{
    g->writes++;
    w->task.run = run_written;
    w->ex = &gs->mb.ex;
    w->done = done;
    w->err = 0;
    if (gs->store != NULL) {
        group_store_post(gs->store, w);
        return;
    }
    if (gs->opts.path != NULL)
        w->err = E_CLOSED; /* we are stopping */
    mailbox_post(&gs->mb, &w->task);
}

void groups_written(struct groups *gs, struct group *g)
{
    (void)gs;
    ASSERT(g->writes > 0);
    g->writes--;
}

static void release_held(struct group *g, int err)
{
    struct group_call *c = STAILQ_FIRST(&g->held);

    STAILQ_INIT(&g->held);
    while (c != NULL) {
        struct group_call *next = STAILQ_NEXT(c, held);
        if (err < 0)
            *c->error = KE_COORDINATOR_NOT_AVAILABLE;
        group_call_reply(c);
        c = next;
    }
}

static void row_written(struct group_write *w)
{
    struct group *g = (struct group *)(void *)((char *)w - offsetof(struct group, row));
    struct groups *gs = g->row_gs;
    struct group_out out;

    groups_written(gs, g);
    g->row_writing = false;
    if (w->err < 0) {
        log_peer(LOG_ERROR, "groups.not_stored", LF_STR("group", g->id), LF_ERR(w->err));
        release_held(g, w->err);
        g->row_retry_ms = groups_now_ms(gs) + GROUP_ROW_RETRY_MS;
    } else {
        g->generation_stored = g->row_op.generation;
        g->empty_stored_ms = g->row_op.empty_since_ms;
        if (g->generation_stored >= g->generation)
            release_held(g, 0);
    }
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

static bool row_differs(const struct group *g)
{
    return g->generation_stored != g->generation || g->empty_stored_ms != g->empty_since_ms;
}

/* A group that nobody ever joined and that has no offsets leaves no trace. */
static bool worth_a_row(const struct group *g)
{
    return g->generation > 0 || g->offsets.n > 0;
}

static void store_row(struct groups *gs, struct group *g)
{
    if (g->row_writing || g->deleting || !worth_a_row(g) || !row_differs(g))
        return;
    if (STAILQ_EMPTY(&g->held) && groups_now_ms(gs) < g->row_retry_ms)
        return; /* it failed a moment ago, and nobody waits for it */
    g->row_writing = true;
    g->row_gs = gs;
    g->row_op = (struct group_op){.kind = GROUP_OP_PUT_GROUP,
                                  .task = span_str(g->task),
                                  .group = span_str(g->id),
                                  .generation = g->generation,
                                  .empty_since_ms = g->empty_since_ms};
    g->row.ops = &g->row_op;
    g->row.ops_n = 1;
    groups_write(gs, g, &g->row, row_written);
}

void group_call_reply_stored(struct group_call *c, struct group *g)
{
    if (g->generation_stored >= g->generation) {
        group_call_reply(c);
        return;
    }
    ASSERT(c->error != NULL);
    STAILQ_INSERT_TAIL(&g->held, c, held);
    store_row(c->gs, g);
}

/* --- after an event --- */

void groups_answer(struct groups *gs, struct group *g, struct group_out *out)
{
    (void)gs;
    while (!STAILQ_EMPTY(&out->done)) {
        struct group_wait *w = STAILQ_FIRST(&out->done);
        STAILQ_REMOVE_HEAD(&out->done, link);
        w->answer(w, g);
    }
}

static void note_empty(const struct groups *gs, struct group *g)
{
    if (!g->ops->empty(g))
        g->empty_since_ms = 0;
    else if (g->empty_since_ms == 0)
        g->empty_since_ms = groups_wall_ms(gs);
}

void groups_settle(struct groups *gs, struct group *g, struct group_out *out)
{
    groups_answer(gs, g, out);
    int64_t now = groups_now_ms(gs);
    int64_t next = g->ops->tick(g, now, out);
    groups_answer(gs, g, out);
    note_empty(gs, g);
    store_row(gs, g);
    if (g->writes == 0 && !worth_a_row(g) && g->ops->empty(g)) {
        groups_drop(gs, g);
        return;
    }
    groups_set_due(gs, g, next > now ? next : now + 1);
}
