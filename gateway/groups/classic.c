/*
 * The state machine of a classic group:
 *
 *   EMPTY -> PREPARING -> COMPLETING -> STABLE
 *              ^   |          |           |
 *              |   +-> EMPTY  |           |     nobody came (back)
 *              +--------------+-----------+     somebody joins, leaves, is lost; a topic's epoch
 * rose
 *
 * A join phase ends when all members and all ids that were handed out have come, or by time; then
 * the generation rises. set_state is the only writer of the state. Pure; never allocates.
 */
#include "gateway/groups/classic.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/groups/classic_int.h"

int classic_attach(struct group *g)
{
    struct classic *c = mem_zalloc(sizeof *c);

    if (c == NULL)
        return E_NOMEM;
    TAILQ_INIT(&c->members);
    TAILQ_INIT(&c->pending);
    TAILQ_INIT(&c->raised);
    c->due_ms = GROUP_NEVER;
    g->ops = &classic_ops;
    g->classic = c;
    return 0;
}

void classic_set_state(struct classic *c, enum classic_state to)
{
    static const uint8_t legal[] = {
        [CLASSIC_EMPTY] = 1 << CLASSIC_PREPARING,
        [CLASSIC_PREPARING] = 1 << CLASSIC_COMPLETING | 1 << CLASSIC_EMPTY,
        [CLASSIC_COMPLETING] = 1 << CLASSIC_PREPARING | 1 << CLASSIC_STABLE,
        [CLASSIC_STABLE] = 1 << CLASSIC_PREPARING,
    };
    ASSERT((legal[c->state] >> to & 1) != 0);
    c->state = to;
}

/* --- answers --- */

void classic_fill(const struct group *g, struct classic_member *m, struct group_wait *w)
{
    const struct classic *c = g->classic;

    w->out.classic = (struct classic_result){
        .generation = g->generation,
        .member = m,
        .leader = c->leader != NULL ? c->leader->id : "",
        .list_members = c->leader == m,
    };
}

void classic_answer_join(struct group *g, struct classic_member *m, int16_t error,
                         struct group_out *out)
{
    struct group_wait *w = m->join;

    if (w == NULL)
        return;
    m->join = NULL;
    g->classic->joining--;
    if (error == KE_NONE)
        classic_fill(g, m, w);
    group_out_done(out, w, error);
}

void classic_answer_sync(struct classic_member *m, int16_t error, struct group_out *out)
{
    struct group_wait *w = m->sync;

    if (w == NULL)
        return;
    m->sync = NULL;
    if (error == KE_NONE)
        w->out.classic = (struct classic_result){.member = m};
    group_out_done(out, w, error);
}

void classic_park_join(struct group *g, struct classic_member *m, struct group_wait *w,
                       struct group_out *out)
{
    /* The client asks again, on a new connection as a rule: only the last one is heard. */
    classic_answer_join(g, m, KE_REBALANCE_IN_PROGRESS, out);
    m->join = w;
    g->classic->joining++;
}

/* --- the join phase --- */

static int64_t longest_rebalance(const struct classic *c)
{
    const struct classic_member *m;
    int64_t ms = 0;

    TAILQ_FOREACH(m, &c->members, link)
    {
        if (m->rebalance_ms > ms)
            ms = m->rebalance_ms;
    }
    return ms;
}

void classic_rebalance(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m;

    if (c->state != CLASSIC_PREPARING) {
        int64_t longest = longest_rebalance(c);
        int64_t delay = g->limits->initial_delay_ms;
        c->initial = c->state == CLASSIC_EMPTY && delay > 0;
        c->newcomer = false;
        c->initial_limit_ms = now_ms + longest;
        c->phase_ms = now_ms + (c->initial && delay < longest ? delay : longest);
        TAILQ_FOREACH(m, &c->members, link)
        {
            if (m->sync != NULL)
                classic_member_alive(c, m, now_ms); /* it waited longer than its session, maybe */
            classic_answer_sync(m, KE_REBALANCE_IN_PROGRESS, out);
            blob_unref(m->assignment);
            m->assignment = NULL;
        }
        classic_set_state(c, CLASSIC_PREPARING);
    }
    classic_try_complete(g, now_ms, out);
}

/* The one that joined first, unless the present leader has. */
static bool elect_leader(struct classic *c)
{
    struct classic_member *m;

    if (c->leader != NULL && c->leader->join != NULL)
        return true;
    TAILQ_FOREACH(m, &c->members, link)
    {
        if (m->join != NULL) {
            c->leader = m;
            return true;
        }
    }
    return false;
}

void classic_forget_raised(struct classic *c)
{
    while (!TAILQ_EMPTY(&c->raised)) {
        struct classic_raised *r = TAILQ_FIRST(&c->raised);
        TAILQ_REMOVE(&c->raised, r, link);
        mem_free(r);
    }
    c->all_raised = false;
}

static void drop_those_who_stayed_away(struct classic *c)
{
    struct classic_member *m = TAILQ_FIRST(&c->members);

    while (m != NULL) {
        struct classic_member *next = TAILQ_NEXT(m, link);
        if (m->join == NULL && m->instance == NULL)
            classic_member_drop(c, m);
        m = next;
    }
}

static void choose_protocol(struct classic *c)
{
    const struct classic_protocol *p = classic_vote(c);

    ASSERT(p != NULL && p->name.n < c->name_cap); /* checked when each one joined */
    memcpy(c->protocol_name, p->name.p, p->name.n);
    c->protocol_name[p->name.n] = '\0';
}

static void next_generation(struct group *g)
{
    g->generation = g->generation == INT32_MAX ? 0 : g->generation + 1;
    classic_forget_raised(g->classic);
}

/* Also static members that stayed away are kept, until their session ends: they are expected back.
 */
static void complete_join(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m;

    drop_those_who_stayed_away(c);
    c->initial = false;
    if (c->members_n == 0) {
        next_generation(g);
        if (c->name_cap > 0)
            c->protocol_name[0] = '\0';
        c->leader = NULL;
        classic_set_state(c, CLASSIC_EMPTY);
        return;
    }
    if (!elect_leader(c)) { /* nobody to assign: they have another phase's time */
        c->phase_ms = now_ms + longest_rebalance(c);
        return;
    }
    next_generation(g);
    choose_protocol(c);
    classic_set_state(c, CLASSIC_COMPLETING);
    c->phase_ms = now_ms + longest_rebalance(c);
    TAILQ_FOREACH(m, &c->members, link)
    {
        m->synced = m->join == NULL; /* a static one that is away is not waited for */
        if (m->join != NULL)
            classic_member_alive(c, m, now_ms);
        classic_answer_join(g, m, KE_NONE, out);
    }
}

void classic_try_complete(struct group *g, int64_t now_ms, struct group_out *out)
{
    const struct classic *c = g->classic;

    if (c->state == CLASSIC_PREPARING && !c->initial && c->joining == c->members_n &&
        TAILQ_EMPTY(&c->pending))
        complete_join(g, now_ms, out);
}

/* --- members that go --- */

void classic_remove(struct group *g, struct classic_member *m, int64_t now_ms,
                    struct group_out *out)
{
    struct classic *c = g->classic;

    classic_answer_join(g, m, KE_UNKNOWN_MEMBER_ID, out);
    classic_answer_sync(m, KE_UNKNOWN_MEMBER_ID, out);
    classic_member_drop(c, m);
    if (c->state == CLASSIC_PREPARING)
        classic_try_complete(g, now_ms, out);
    else
        classic_rebalance(g, now_ms, out);
}

int16_t classic_on_leave(struct group *g, const struct group_speaker *who, int64_t now_ms,
                         struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m;

    if (c == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if (who->member_id.n == 0 && who->instance_id.p != NULL) {
        if ((m = classic_member_static(c, who->instance_id)) == NULL)
            return KE_UNKNOWN_MEMBER_ID;
    } else {
        struct classic_pending *p = classic_pending_find(c, who->member_id);
        if (p != NULL && who->instance_id.p == NULL) {
            classic_pending_drop(c, p);
            classic_try_complete(g, now_ms, out);
            return KE_NONE;
        }
        int16_t error = classic_member_check(c, who, &m);
        if (error != KE_NONE)
            return error;
    }
    classic_remove(g, m, now_ms, out);
    return KE_NONE;
}

/* --- time --- */

static bool session_over(const struct classic_member *m, int64_t now_ms)
{
    return m->join == NULL && m->sync == NULL && m->deadline_ms <= now_ms;
}

static void expire_members(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m = TAILQ_FIRST(&c->members);

    if (now_ms < c->due_ms)
        return; /* as after nearly every event: nobody is looked at */
    while (m != NULL) {
        struct classic_member *next = TAILQ_NEXT(m, link);
        if (session_over(m, now_ms)) {
            classic_remove(g, m, now_ms, out);
            next = TAILQ_FIRST(&c->members); /* the phase may have ended: others are gone too */
        }
        m = next;
    }
    c->due_ms = GROUP_NEVER;
    TAILQ_FOREACH(m, &c->members, link)
    {
        if (m->join == NULL && m->sync == NULL && m->deadline_ms < c->due_ms)
            c->due_ms = m->deadline_ms;
    }
}

static void expire_pending(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_pending *p = TAILQ_FIRST(&c->pending);

    while (p != NULL) {
        struct classic_pending *next = TAILQ_NEXT(p, link);
        if (p->deadline_ms <= now_ms)
            classic_pending_drop(c, p);
        p = next;
    }
    classic_try_complete(g, now_ms, out);
}

/* Those who joined and never asked for their assignment make the others wait for nothing. */
static void expire_unsynced(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    struct classic_member *m = TAILQ_FIRST(&c->members);

    while (m != NULL && c->state == CLASSIC_COMPLETING) {
        struct classic_member *next = TAILQ_NEXT(m, link);
        if (!m->synced) {
            classic_member_drop(c, m);
            if (c->members_n == 0)
                break;
        }
        m = next;
    }
    classic_rebalance(g, now_ms, out);
}

static void phase_over(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;

    if (c->state == CLASSIC_COMPLETING) {
        expire_unsynced(g, now_ms, out);
        return;
    }
    if (c->initial && c->newcomer && now_ms < c->initial_limit_ms) {
        int64_t next = now_ms + g->limits->initial_delay_ms;
        c->newcomer = false;
        c->phase_ms = next < c->initial_limit_ms ? next : c->initial_limit_ms;
        return;
    }
    if (c->initial) {
        c->initial = false;
        /* Ids are out: they get the time that any rebalance gives. */
        if (!TAILQ_EMPTY(&c->pending) && now_ms < c->initial_limit_ms) {
            c->phase_ms = c->initial_limit_ms;
            return;
        }
    }
    complete_join(g, now_ms, out);
}

static int64_t next_deadline(const struct classic *c)
{
    const struct classic_pending *p;
    int64_t next = c->due_ms;

    if ((c->state == CLASSIC_PREPARING || c->state == CLASSIC_COMPLETING) && c->phase_ms < next)
        next = c->phase_ms;
    TAILQ_FOREACH(p, &c->pending, link)
    {
        if (p->deadline_ms < next)
            next = p->deadline_ms;
    }
    return next;
}

int64_t classic_tick(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;

    if (c == NULL)
        return GROUP_NEVER;
    expire_pending(g, now_ms, out);
    expire_members(g, now_ms, out);
    if ((c->state == CLASSIC_PREPARING || c->state == CLASSIC_COMPLETING) && c->phase_ms <= now_ms)
        phase_over(g, now_ms, out);
    return next_deadline(c);
}
