/*
 * The heartbeat of a KIP-848 group, and the group as the service sees it. See consumer.h. The order
 * is Kafka's: is it legal, who is it, what changed about it, what changed about the topics, the
 * target, one step of the member towards it. Pure.
 */
#include "gateway/groups/consumer.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "gateway/groups/consumer_int.h"

int consumer_attach(struct group *g)
{
    struct consumer *c = mem_zalloc(sizeof *c);

    if (c == NULL)
        return E_NOMEM;
    TAILQ_INIT(&c->members);
    TAILQ_INIT(&c->regexes);
    TAILQ_INIT(&c->raised);
    c->next_ms = GROUP_NEVER;
    c->assignment_epoch = g->generation;
    c->all_raised = -1;
    g->ops->free(g); /* of the kind that it was */
    g->ops = &consumer_ops;
    g->consumer = c;
    return 0;
}

void consumer_bump(struct group *g)
{
    if (g->generation == g->consumer->assignment_epoch)
        g->generation++;
}

/* --- legal heartbeats --- */

static int16_t check_join(const struct consumer_heartbeat *ev, const char **why)
{
    *why = "";
    if (ev->rebalance_ms == -1)
        *why = "a member that joins must give its rebalance timeout";
    else if (!ev->has_owned || ev->owned_n > 0)
        *why = "a member that joins owns nothing: its partitions must be an empty list";
    else if (!ev->has_names && ev->regex.p == NULL)
        *why = "a member that joins must subscribe to names or to a pattern";
    return (*why)[0] == '\0' ? KE_NONE : KE_INVALID_REQUEST;
}

static int16_t check_legal(const struct consumer_heartbeat *ev, const char **why)
{
    int16_t error = KE_INVALID_REQUEST;

    *why = "";
    if (ev->instance_id.p != NULL && ev->instance_id.n == 0)
        *why = "the instance id is empty";
    else if (!utf8_is_text(ev->instance_id) || !utf8_is_text(ev->member_id))
        *why = "a member's or an instance's id holds a NUL or is no UTF-8";
    else if (ev->rack_id.p != NULL && ev->rack_id.n == 0)
        *why = "the rack id is empty";
    else if (ev->member_id.n == 0 && (ev->epoch != 0 || ev->makes_own_id))
        *why = "the member id is empty";
    else if (ev->epoch < CONSUMER_STATIC_LEAVES)
        *why = "the member epoch is not one";
    else if (ev->epoch == CONSUMER_STATIC_LEAVES && ev->instance_id.p == NULL)
        *why = "only a static member leaves for a while";
    else if (ev->epoch == 0)
        error = check_join(ev, why);
    if ((*why)[0] != '\0')
        return error;
    if (ev->assignor.p != NULL && assign_find(ev->assignor) == NULL) {
        *why = "there is no such assignor; there are: " ASSIGN_NAMES;
        return KE_UNSUPPORTED_ASSIGNOR;
    }
    return KE_NONE;
}

/* --- who is it --- */

static struct consumer_member *by_instance(const struct consumer *c, struct span instance)
{
    return instance.p == NULL ? NULL : keymap_get(&c->by_instance, instance);
}

/* A member that is there already, by the ids of its heartbeat. */
static int16_t find_member(const struct consumer *c, const struct consumer_heartbeat *ev,
                           struct consumer_member **out)
{
    struct consumer_member *m = ev->instance_id.p != NULL ? by_instance(c, ev->instance_id)
                                                          : consumer_member_find(c, ev->member_id);
    *out = NULL;
    if (m == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if (!span_eq_str(ev->member_id, m->id))
        return KE_FENCED_INSTANCE_ID;
    *out = m;
    return KE_NONE;
}

/* The answer with the risen epoch may have been lost: the one before is good as long as the member
 * reports nothing that it may not read. */
static int16_t check_epoch(const struct consumer *c, const struct consumer_member *m,
                           const struct consumer_heartbeat *ev)
{
    if (ev->epoch == m->epoch)
        return KE_NONE;
    if (ev->epoch < m->epoch && ev->epoch == m->previous_epoch && consumer_owned_fits(c, m, ev))
        return KE_NONE;
    return KE_FENCED_MEMBER_EPOCH;
}

/* The process that joins owns nothing, whatever it owned before. */
static void begin_anew(struct consumer *c, struct consumer_member *m)
{
    consumer_member_release(c, m);
    m->epoch = 0;
    m->previous_epoch = 0;
    m->state = CONSUMER_STABLE;
    m->revoke_ms = GROUP_NEVER;
}

static int16_t join(struct group *g, const struct consumer_heartbeat *ev,
                    struct consumer_member **out, bool *added)
{
    struct consumer *c = g->consumer;
    struct span id = ev->member_id.n > 0 ? ev->member_id : span_str(ev->new_id);
    struct consumer_member *m = by_instance(c, ev->instance_id);
    struct consumer_member *same_id = consumer_member_find(c, id);

    *out = NULL;
    if (m != NULL && m != same_id) {
        if (m->epoch != CONSUMER_STATIC_LEAVES || same_id != NULL)
            return KE_UNRELEASED_INSTANCE_ID;
        if (consumer_member_rename(c, m, id) < 0)
            return KE_COORDINATOR_NOT_AVAILABLE;
        m->epoch = 0; /* its partitions waited for it */
        m->previous_epoch = 0;
        *out = m;
        return KE_NONE;
    }
    if (same_id != NULL && m == NULL && ev->instance_id.p != NULL)
        return KE_UNKNOWN_MEMBER_ID; /* a member keeps its instance */
    if (same_id != NULL) {
        if (same_id->epoch == CONSUMER_STATIC_LEAVES)
            same_id->epoch = same_id->previous_epoch = 0;
        else
            begin_anew(c, same_id);
        *out = same_id;
        return KE_NONE;
    }
    if (c->members_n >= g->limits->max_members)
        return KE_GROUP_MAX_SIZE_REACHED;
    if (consumer_member_add(c, ev, id, out) < 0)
        return KE_COORDINATOR_NOT_AVAILABLE;
    *added = true;
    c->refresh = true;
    consumer_bump(g); /* also for one that reads nothing: no member is told epoch 0 */
    return KE_NONE;
}

/* --- leaving --- */

static void remove_member(struct group *g, struct consumer_member *m)
{
    consumer_member_drop(g->consumer, m);
    g->consumer->refresh = true;
    consumer_bump(g);
}

static int16_t leave(struct group *g, const struct consumer_heartbeat *ev,
                     struct consumer_answer *out)
{
    struct consumer_member *m;
    int16_t error = find_member(g->consumer, ev, &m);

    if (error != KE_NONE)
        return error;
    out->epoch = ev->epoch;
    if (ev->epoch != CONSUMER_STATIC_LEAVES) {
        remove_member(g, m);
        return KE_NONE;
    }
    /* Its session goes on: it has until then to come back. */
    consumer_release_revoked(g->consumer, m);
    m->epoch = CONSUMER_STATIC_LEAVES;
    m->state = CONSUMER_STABLE;
    m->revoke_ms = GROUP_NEVER;
    return KE_NONE;
}

/* --- the heartbeat --- */

static int16_t update(struct group *g, struct consumer_member *m,
                      const struct consumer_heartbeat *ev, const struct consumer_topics *topics,
                      struct consumer_answer *out)
{
    struct consumer *c = g->consumer;
    int changed = consumer_member_update(g, m, ev, topics, out->message, sizeof out->message);

    switch (changed) {
    case E_SYNTAX:
        return KE_INVALID_REGULAR_EXPRESSION;
    case E_LIMIT:
        snprintf(out->message, sizeof out->message,
                 "the members subscribe to too much, or by too many different patterns");
        return KE_GROUP_MAX_SIZE_REACHED;
    case E_NOMEM:
        return KE_COORDINATOR_NOT_AVAILABLE;
    default:
        break;
    }
    if (changed > 0) {
        c->refresh = true;
        consumer_bump(g);
    }
    if ((c->refresh && consumer_refresh(g, topics) < 0) ||
        (g->generation > c->assignment_epoch && consumer_target(g) < 0))
        return KE_COORDINATOR_NOT_AVAILABLE;
    return KE_NONE;
}

static bool is_full(const struct consumer_heartbeat *ev)
{
    return ev->epoch == 0 ||
           (ev->rebalance_ms != -1 && (ev->has_names || ev->regex.p != NULL) && ev->has_owned);
}

int16_t consumer_on_heartbeat(struct group *g, const struct consumer_heartbeat *ev,
                              const struct consumer_topics *topics, int64_t now_ms,
                              struct consumer_answer *out)
{
    struct consumer *c = g->consumer;
    struct consumer_member *m;
    const char *why;
    bool added = false;
    int16_t error;

    *out = (struct consumer_answer){0};
    if ((error = check_legal(ev, &why)) != KE_NONE) {
        snprintf(out->message, sizeof out->message, "%s", why);
        return error;
    }
    if (ev->epoch < 0)
        return leave(g, ev, out);
    if (ev->epoch == 0) {
        error = join(g, ev, &m, &added);
    } else {
        error = find_member(c, ev, &m);
        if (error == KE_NONE)
            error = check_epoch(c, m, ev);
    }
    if (error != KE_NONE)
        return error;
    if ((error = update(g, m, ev, topics, out)) != KE_NONE) {
        if (added)
            consumer_member_drop(c, m);
        return error;
    }
    bool moved = consumer_reconcile(c, m, ev, now_ms);
    m->deadline_ms = now_ms + consumer_session_ms(g->limits);
    if (m->deadline_ms < c->next_ms)
        c->next_ms = m->deadline_ms;
    out->member = m;
    out->epoch = m->epoch;
    out->assignment = moved || is_full(ev);
    return KE_NONE;
}

/* --- as the service sees it --- */

static const char *state_name(const struct group *g)
{
    const struct consumer *c = g->consumer;
    const struct consumer_member *m;

    if (c->members_n == 0)
        return "Empty";
    if (g->generation > c->assignment_epoch)
        return "Assigning";
    TAILQ_FOREACH(m, &c->members, link)
    {
        if (!consumer_reconciled(c, m))
            return "Reconciling";
    }
    return "Stable";
}

static const char *protocol_type(const struct group *g)
{
    (void)g;
    return "consumer";
}

static bool empty(const struct group *g)
{
    return g->consumer->members_n == 0;
}

static int16_t check_speaker(const struct group *g, const struct group_speaker *who)
{
    const struct consumer_member *m = consumer_member_find(g->consumer, who->member_id);

    if (m == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    return who->generation == m->epoch ? KE_NONE : KE_STALE_MEMBER_EPOCH;
}

static int16_t check_commit(struct group *g, const struct group_speaker *who, int64_t now_ms)
{
    (void)now_ms; /* a heartbeat alone is a sign of life */
    return check_speaker(g, who);
}

static int16_t check_fetch(struct group *g, const struct group_speaker *who, int64_t now_ms)
{
    (void)now_ms;
    return who->generation < 0 && who->member_id.n == 0 ? KE_NONE : check_speaker(g, who);
}

static int16_t check_raised(struct group *g, const struct group_speaker *who, struct span topic)
{
    const struct consumer *c = g->consumer;
    const struct consumer_raised *r;

    if (who->generation <= c->all_raised)
        return KE_STALE_MEMBER_EPOCH;
    TAILQ_FOREACH(r, &c->raised, link)
    {
        if (who->generation <= r->epoch && span_eq_str(topic, r->topic))
            return KE_STALE_MEMBER_EPOCH;
    }
    return KE_NONE;
}

/* An operator sends a member away, or a client that lost its place: by id, or by instance. */
static int16_t send_away(struct group *g, const struct group_speaker *who, int64_t now_ms,
                         struct group_out *out)
{
    struct consumer *c = g->consumer;
    struct consumer_member *m = who->instance_id.p != NULL
                                    ? by_instance(c, who->instance_id)
                                    : consumer_member_find(c, who->member_id);

    (void)now_ms;
    (void)out;
    if (m == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    if (who->member_id.n > 0 && !span_eq_str(who->member_id, m->id))
        return KE_FENCED_INSTANCE_ID;
    remove_member(g, m);
    return KE_NONE;
}

static bool subscribed(const struct group *g, struct span topic)
{
    const struct consumer_member *m;

    TAILQ_FOREACH(m, &g->consumer->members, link)
    {
        if (consumer_member_subscribes(g->consumer, m, topic))
            return true;
    }
    return false;
}

static void note_raised(struct consumer *c, const char *topic)
{
    size_t n = strlen(topic);
    struct consumer_raised *r;

    TAILQ_FOREACH(r, &c->raised, link)
    {
        if (strcmp(r->topic, topic) == 0) {
            r->epoch = c->assignment_epoch;
            return;
        }
    }
    if ((r = mem_zalloc(sizeof *r + n + 1)) == NULL) {
        c->all_raised = c->assignment_epoch;
        return;
    }
    r->epoch = c->assignment_epoch;
    memcpy(r->topic, topic, n);
    TAILQ_INSERT_TAIL(&c->raised, r, link);
}

/* Members hear of it at their next heartbeats, as from Kafka. */
static void topics_changed(struct group *g, const struct group_topic_change *list, size_t n,
                           int64_t now_ms, struct group_out *out)
{
    (void)now_ms;
    (void)out;
    for (size_t i = 0; i < n; i++) {
        struct span name = span_str(list[i].name);
        size_t at;
        /* What the patterns have not met yet, or no longer know, they may match. */
        if (!subscribed(g, name) &&
            (TAILQ_EMPTY(&g->consumer->regexes) || consumer_seen(g->consumer, name, &at)))
            continue;
        g->consumer->refresh = true;
        if (list[i].raised)
            note_raised(g->consumer, list[i].name);
    }
}

static int64_t tick(struct group *g, int64_t now_ms, struct group_out *out)
{
    struct consumer *c = g->consumer;
    struct consumer_member *m, *next;

    (void)out;
    if (now_ms < c->next_ms)
        return c->next_ms;
    c->next_ms = GROUP_NEVER;
    for (m = TAILQ_FIRST(&c->members); m != NULL; m = next) {
        int64_t due = m->deadline_ms < m->revoke_ms ? m->deadline_ms : m->revoke_ms;
        next = TAILQ_NEXT(m, link);
        if (due <= now_ms)
            remove_member(g, m);
        else if (due < c->next_ms)
            c->next_ms = due;
    }
    return c->next_ms;
}

/* Nobody waits: every heartbeat is answered at once. */
static void drain(struct group *g, int16_t error, struct group_out *out)
{
    (void)g;
    (void)error;
    (void)out;
}

static void detach(struct group *g)
{
    struct consumer *c = g->consumer;

    while (!TAILQ_EMPTY(&c->members))
        consumer_member_drop(c, TAILQ_FIRST(&c->members));
    while (!TAILQ_EMPTY(&c->raised)) {
        struct consumer_raised *r = TAILQ_FIRST(&c->raised);
        TAILQ_REMOVE(&c->raised, r, link);
        mem_free(r);
    }
    consumer_topics_free(c);
    keymap_fini(&c->by_id);
    keymap_fini(&c->by_instance);
    mem_free(c);
    g->consumer = NULL;
}

const struct group_ops consumer_ops = {
    .type = "Consumer",
    .state = state_name,
    .protocol_type = protocol_type,
    .empty = empty,
    .check_commit = check_commit,
    .check_raised = check_raised,
    .check_fetch = check_fetch,
    .leave = send_away,
    .subscribed = subscribed,
    .topics_changed = topics_changed,
    .tick = tick,
    .drain = drain,
    .free = detach,
};
