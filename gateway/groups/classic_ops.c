/*
 * What a classic group tells and is told besides its members' calls: who may commit, which topics
 * it reads, that one of them changed, what tools want to see. Pure.
 */
#include <string.h>

#include "base/mem.h"
#include "gateway/groups/classic_int.h"

/* --- topics --- */

static bool is_consumer(const struct classic *c)
{
    return c->protocol_type != NULL && strcmp(c->protocol_type, "consumer") == 0;
}

static bool subscribed(const struct group *g, struct span topic)
{
    const struct classic *c = g->classic;
    const struct classic_member *m;

    if (c == NULL || c->members_n == 0)
        return false;
    if (!is_consumer(c))
        return true;
    TAILQ_FOREACH(m, &c->members, link)
    {
        /* All protocols of a member carry the same topics. */
        if (classic_subscription_has(m->protocols[0].metadata, topic))
            return true;
    }
    return false;
}

static void note_raised(struct classic *c, const char *topic)
{
    size_t n = strlen(topic);
    struct classic_raised *r = mem_zalloc(sizeof *r + n + 1);

    if (r == NULL) {
        c->all_raised = true; /* refuses more than it must: they rejoin and go on */
        return;
    }
    memcpy(r->topic, topic, n);
    TAILQ_INSERT_TAIL(&c->raised, r, link);
}

static int16_t check_raised(struct group *g, const struct group_speaker *who, struct span topic)
{
    const struct classic *c = g->classic;
    const struct classic_raised *r;

    (void)who; /* its generation is the present one */
    if (c == NULL)
        return KE_NONE;
    if (c->all_raised)
        return KE_ILLEGAL_GENERATION;
    TAILQ_FOREACH(r, &c->raised, link)
    {
        if (span_eq_str(topic, r->topic))
            return KE_ILLEGAL_GENERATION;
    }
    return KE_NONE;
}

/* Members that use other protocols than a consumer's read a topic if the group has committed it. */
static bool touches(const struct group *g, struct span topic)
{
    return is_consumer(g->classic) ? subscribed(g, topic)
                                   : offsets_topic(&g->offsets, topic) != NULL;
}

static void topics_changed(struct group *g, const struct group_topic_change *list, size_t n,
                           int64_t now_ms, struct group_out *out)
{
    struct classic *c = g->classic;
    bool rebalance = false;

    if (c == NULL || c->members_n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (!list[i].raised)
            continue; /* the leader sees it in its metadata, and joins again by itself */
        note_raised(c, list[i].name);
        rebalance = rebalance || touches(g, span_str(list[i].name));
    }
    if (rebalance)
        classic_rebalance(g, now_ms, out);
}

/* --- the rest of the operations --- */

static const char *state_name(const struct group *g)
{
    static const char *const names[] = {
        [CLASSIC_EMPTY] = "Empty",
        [CLASSIC_PREPARING] = "PreparingRebalance",
        [CLASSIC_COMPLETING] = "CompletingRebalance",
        [CLASSIC_STABLE] = "Stable",
    };
    return names[classic_state_of(g)];
}

static const char *protocol_type(const struct group *g)
{
    const struct classic *c = g->classic;
    return c == NULL || c->protocol_type == NULL ? "" : c->protocol_type;
}

static bool empty(const struct group *g)
{
    const struct classic *c = g->classic;
    return c == NULL ||
           (c->state == CLASSIC_EMPTY && c->members_n == 0 && TAILQ_EMPTY(&c->pending));
}

static int16_t check_commit(struct group *g, const struct group_speaker *who, int64_t now_ms)
{
    struct classic_member *m;

    if (g->classic == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if (who->generation < 0 && who->member_id.n == 0)
        return KE_UNKNOWN_MEMBER_ID; /* only members may, while there are some */
    int16_t error = classic_member_check(g->classic, who, &m);
    if (error != KE_NONE)
        return error;
    if (who->generation != g->generation)
        return KE_ILLEGAL_GENERATION;
    classic_member_alive(g->classic, m, now_ms);
    return g->classic->state == CLASSIC_COMPLETING ? KE_REBALANCE_IN_PROGRESS : KE_NONE;
}

static void drain(struct group *g, int16_t error, struct group_out *out)
{
    struct classic_member *m;

    if (g->classic == NULL)
        return;
    TAILQ_FOREACH(m, &g->classic->members, link)
    {
        classic_answer_join(g, m, error, out);
        classic_answer_sync(m, error, out);
    }
}

static void detach(struct group *g)
{
    struct classic *c = g->classic;

    if (c == NULL)
        return;
    while (!TAILQ_EMPTY(&c->members))
        classic_member_drop(c, TAILQ_FIRST(&c->members));
    while (!TAILQ_EMPTY(&c->pending))
        classic_pending_drop(c, TAILQ_FIRST(&c->pending));
    classic_forget_raised(c);
    classic_names_fini(c);
    keymap_fini(&c->by_id);
    keymap_fini(&c->by_instance);
    keymap_fini(&c->pending_by_id);
    mem_free(c->protocol_type);
    mem_free(c->protocol_name);
    mem_free(c);
    g->classic = NULL;
}

const struct group_ops classic_ops = {
    .type = "Classic",
    .state = state_name,
    .protocol_type = protocol_type,
    .empty = empty,
    .check_commit = check_commit,
    .check_raised = check_raised,
    .leave = classic_on_leave,
    .subscribed = subscribed,
    .topics_changed = topics_changed,
    .tick = classic_tick,
    .drain = drain,
    .free = detach,
};

/* --- looking --- */

enum classic_state classic_state_of(const struct group *g)
{
    return g->classic == NULL ? CLASSIC_EMPTY : g->classic->state;
}

const char *classic_protocol_name(const struct group *g)
{
    const struct classic *c = g->classic;
    return c == NULL || c->name_cap == 0 || c->protocol_name[0] == '\0' ? NULL : c->protocol_name;
}

const struct classic_member *classic_first(const struct group *g)
{
    return g->classic == NULL ? NULL : TAILQ_FIRST(&g->classic->members);
}

const struct classic_member *classic_next(const struct classic_member *m)
{
    return TAILQ_NEXT(m, link);
}

struct span classic_metadata(const struct group *g, const struct classic_member *m)
{
    const char *name = classic_protocol_name(g);

    for (size_t i = 0; name != NULL && i < m->protocols_n; i++) {
        if (span_eq_str(m->protocols[i].name, name))
            return m->protocols[i].metadata;
    }
    return span_str("");
}

size_t classic_members(const struct group *g)
{
    return g->classic == NULL ? 0 : g->classic->members_n;
}
