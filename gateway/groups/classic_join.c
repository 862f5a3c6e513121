/*
 * JoinGroup of the classic protocol: who may come in, as whom, and whether that needs a rebalance.
 * Pure; memory is taken before anything changes.
 */
#include <string.h>

#include "base/utf8.h"
#include "gateway/groups/classic_int.h"

struct joining {
    struct group *g;
    const struct classic_join *ev;
    int64_t now_ms;
    struct group_wait *w;
    struct group_out *out;
};

static int16_t error_of(int err)
{
    return err == E_LIMIT ? KE_GROUP_MAX_SIZE_REACHED : KE_COORDINATOR_NOT_AVAILABLE;
}

/* The present generation is the answer: nothing changes. */
static void answer_present(const struct joining *j, struct classic_member *m)
{
    struct classic *c = j->g->classic;

    classic_member_alive(c, m, j->now_ms);
    classic_fill(j->g, m, j->w);
    if (c->state != CLASSIC_COMPLETING)
        j->w->out.classic.list_members = false; /* there is nothing to assign */
    group_out_done(j->out, j->w, KE_NONE);
}

static void park_and_rebalance(const struct joining *j, struct classic_member *m)
{
    classic_park_join(j->g, m, j->w, j->out);
    classic_rebalance(j->g, j->now_ms, j->out);
}

static void update_and_rebalance(const struct joining *j, struct classic_member *m)
{
    int err = classic_member_update(j->g, m, j->ev);

    if (err < 0)
        group_out_done(j->out, j->w, error_of(err));
    else
        park_and_rebalance(j, m);
}

static void add_and_rebalance(const struct joining *j, struct span id)
{
    struct classic *c = j->g->classic;
    struct classic_member *m;
    int err = classic_member_add(j->g, j->ev, id, &m);

    if (err < 0) {
        group_out_done(j->out, j->w, error_of(err));
        return;
    }
    struct classic_pending *p = classic_pending_find(c, id);
    if (p != NULL)
        classic_pending_drop(c, p);
    c->newcomer = c->initial;
    park_and_rebalance(j, m);
}

static bool full(const struct group *g)
{
    return g->classic->members_n + g->classic->pending_by_id.n >= g->limits->max_members;
}

/* The same instance, another process: it takes the place over, and the old one is fenced. */
static void replace_static(const struct joining *j, struct classic_member *m)
{
    struct classic *c = j->g->classic;
    bool leads = c->leader == m;
    int err = classic_member_update(j->g, m, j->ev);

    if (err == 0)
        err = classic_member_rename(c, m, span_str(j->ev->new_id));
    if (err < 0) {
        group_out_done(j->out, j->w, error_of(err));
        return;
    }
    classic_answer_join(j->g, m, KE_FENCED_INSTANCE_ID, j->out);
    classic_answer_sync(m, KE_FENCED_INSTANCE_ID, j->out);
    classic_member_alive(c, m, j->now_ms);
    const struct classic_protocol *p = classic_vote(c);
    if (c->state != CLASSIC_STABLE || p == NULL || !span_eq_str(p->name, c->protocol_name)) {
        park_and_rebalance(j, m);
        return;
    }
    /* The assignment stands: it is fetched by SyncGroup. A leader must not assign anew, which a
     * stable group would not hear: it either knows how to skip that, or is not told that it leads.
     */
    classic_fill(j->g, m, j->w);
    j->w->out.classic.list_members = leads && j->ev->skip_assignment;
    j->w->out.classic.skip_assignment = leads && j->ev->skip_assignment;
    if (leads && !j->ev->skip_assignment)
        j->w->out.classic.leader = "";
    group_out_done(j->out, j->w, KE_NONE);
}

static void join_unknown(const struct joining *j)
{
    struct classic *c = j->g->classic;

    if (j->ev->instance_id.p != NULL) {
        struct classic_member *m = classic_member_static(c, j->ev->instance_id);
        if (m != NULL) {
            replace_static(j, m);
            return;
        }
    }
    if (full(j->g)) {
        group_out_done(j->out, j->w, KE_GROUP_MAX_SIZE_REACHED);
    } else if (j->ev->known_member_id && j->ev->instance_id.p == NULL) {
        int err = classic_pending_add(c, j->ev->new_id, j->now_ms + j->ev->session_ms);
        group_out_done(j->out, j->w, err < 0 ? error_of(err) : KE_MEMBER_ID_REQUIRED);
    } else {
        add_and_rebalance(j, span_str(j->ev->new_id));
    }
}

static void join_known(const struct joining *j)
{
    struct classic *c = j->g->classic;
    const struct group_speaker who = {j->ev->member_id, j->ev->instance_id, -1};
    struct classic_member *m;

    if (j->ev->instance_id.p == NULL && classic_pending_find(c, j->ev->member_id) != NULL) {
        add_and_rebalance(j, j->ev->member_id);
        return;
    }
    int16_t error = classic_member_check(c, &who, &m);
    if (error != KE_NONE) {
        group_out_done(j->out, j->w, error);
        return;
    }
    bool same = classic_member_matches(m, j->ev);
    switch (c->state) {
    case CLASSIC_PREPARING:
        update_and_rebalance(j, m);
        return;
    case CLASSIC_COMPLETING: /* the answer may have been lost */
        if (same)
            answer_present(j, m);
        else
            update_and_rebalance(j, m);
        return;
    case CLASSIC_STABLE: /* a leader joins again because it saw a change of the topics */
        if (same && c->leader != m)
            answer_present(j, m);
        else
            update_and_rebalance(j, m);
        return;
    case CLASSIC_EMPTY: /* has no members */
        group_out_done(j->out, j->w, KE_UNKNOWN_MEMBER_ID);
        return;
    }
}

static int16_t check(const struct joining *j)
{
    const struct classic *c = j->g->classic;
    const struct classic_join *ev = j->ev;
    const struct classic_member *self = NULL;

    if (ev->session_ms < j->g->limits->min_session_ms ||
        ev->session_ms > j->g->limits->max_session_ms)
        return KE_INVALID_SESSION_TIMEOUT;
    /* Names are kept and shown as texts; an empty instance id would be one identity for all. */
    if (!utf8_is_text(ev->instance_id) || (ev->instance_id.p != NULL && ev->instance_id.n == 0))
        return KE_INVALID_REQUEST;
    if (ev->protocol_type.n == 0 || !utf8_is_text(ev->protocol_type) || ev->protocols_n == 0)
        return KE_INCONSISTENT_GROUP_PROTOCOL;
    for (size_t i = 0; i < ev->protocols_n; i++) {
        if (ev->protocols[i].name.n == 0 || !utf8_is_text(ev->protocols[i].name))
            return KE_INCONSISTENT_GROUP_PROTOCOL;
    }
    if (c->members_n == 0)
        return KE_NONE;
    if (!span_eq_str(ev->protocol_type, c->protocol_type))
        return KE_INCONSISTENT_GROUP_PROTOCOL;
    if (ev->member_id.n > 0)
        self = classic_member_find(c, ev->member_id);
    else if (ev->instance_id.p != NULL)
        self = classic_member_static(c, ev->instance_id);
    return classic_protocols_fit(c, ev, self) ? KE_NONE : KE_INCONSISTENT_GROUP_PROTOCOL;
}

void classic_on_join(struct group *g, const struct classic_join *ev, int64_t now_ms,
                     struct group_wait *w, struct group_out *out)
{
    const struct joining j = {g, ev, now_ms, w, out};
    int16_t error;

    if (g->classic == NULL && classic_attach(g) < 0) {
        group_out_done(out, w, KE_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    if ((error = check(&j)) != KE_NONE)
        group_out_done(out, w, error);
    else if (ev->member_id.n == 0)
        join_unknown(&j);
    else
        join_known(&j);
}
