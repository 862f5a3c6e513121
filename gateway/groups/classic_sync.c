/*
 * SyncGroup and Heartbeat of the classic protocol: the leader hands in the assignments, each member
 * takes its own. Pure.
 */
#include "base/mem.h"
#include "gateway/groups/classic_int.h"

static int16_t check(const struct group *g, const struct classic_sync *ev,
                     struct classic_member **out)
{
    const struct classic *c = g->classic;
    int16_t error;

    *out = NULL;
    if (c == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if ((error = classic_member_check(c, &ev->who, out)) != KE_NONE)
        return error;
    if (ev->who.generation != g->generation)
        return KE_ILLEGAL_GENERATION;
    if (ev->protocol_type.p != NULL && !span_eq_str(ev->protocol_type, c->protocol_type))
        return KE_INCONSISTENT_GROUP_PROTOCOL;
    if (ev->protocol_name.p != NULL && !span_eq_str(ev->protocol_name, c->protocol_name))
        return KE_INCONSISTENT_GROUP_PROTOCOL;
    return KE_NONE;
}

/* First all memory, then the change. Members that the leader left out get nothing. */
static int take_assignments(struct classic *c, const struct classic_sync *ev)
{
    struct blob **blobs = mem_array(ev->assignments_n + 1, sizeof(struct blob *));
    int err = E_NOMEM;

    if (blobs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < ev->assignments_n; i++) {
        if ((blobs[i] = blob_copy(ev->assignments[i].assignment)) == NULL)
            goto out;
    }
    for (size_t i = 0; i < ev->assignments_n; i++) {
        struct classic_member *m = classic_member_find(c, ev->assignments[i].member_id);
        if (m == NULL)
            continue;
        blob_unref(m->assignment);
        m->assignment = blobs[i];
        blobs[i] = NULL;
    }
    err = 0;
out:
    for (size_t i = 0; i < ev->assignments_n; i++)
        blob_unref(blobs[i]);
    mem_free(blobs);
    return err;
}

static void turn_stable(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m;

    classic_set_state(c, CLASSIC_STABLE);
    TAILQ_FOREACH(m, &c->members, link)
    {
        if (m->sync != NULL)
            classic_member_alive(c, m, now_ms);
        classic_answer_sync(m, KE_NONE, out);
    }
}

static void sync_completing(struct group *g, struct classic_member *m,
                            const struct classic_sync *ev, int64_t now_ms, struct group_wait *w,
                            struct group_out *out)
{
    struct classic *c = g->classic;
    bool leads = c->leader == m;

    if (leads && take_assignments(c, ev) < 0) {
        group_out_done(out, w, KE_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    classic_answer_sync(m, KE_REBALANCE_IN_PROGRESS, out); /* it asks again: the last one counts */
    m->sync = w;
    m->synced = true;
    if (leads)
        turn_stable(g, now_ms, out);
}

void classic_on_sync(struct group *g, const struct classic_sync *ev, int64_t now_ms,
                     struct group_wait *w, struct group_out *out)
{
    struct classic_member *m;
    int16_t error = check(g, ev, &m);

    if (error != KE_NONE) {
        group_out_done(out, w, error);
        return;
    }
    classic_member_alive(g->classic, m, now_ms);
    switch (g->classic->state) {
    case CLASSIC_EMPTY:
        group_out_done(out, w, KE_UNKNOWN_MEMBER_ID);
        return;
    case CLASSIC_PREPARING:
        group_out_done(out, w, KE_REBALANCE_IN_PROGRESS);
        return;
    case CLASSIC_COMPLETING:
        sync_completing(g, m, ev, now_ms, w, out);
        return;
    case CLASSIC_STABLE:
        w->out.classic = (struct classic_result){.member = m};
        group_out_done(out, w, KE_NONE);
        return;
    }
}

int16_t classic_on_heartbeat(struct group *g, const struct group_speaker *who, int64_t now_ms)
{
    struct classic_member *m;
    int16_t error;

    if (g->classic == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if ((error = classic_member_check(g->classic, who, &m)) != KE_NONE)
        return error;
    if (who->generation != g->generation)
        return KE_ILLEGAL_GENERATION;
    classic_member_alive(g->classic, m, now_ms);
    return g->classic->state == CLASSIC_PREPARING ? KE_REBALANCE_IN_PROGRESS : KE_NONE;
}
