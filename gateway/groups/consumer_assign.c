/*
 * From subscriptions to targets, and from what a member owns to its target. A member goes from one
 * epoch to the next in this order: told to give up, has given up (it does not report it any more),
 * epoch rises and it gets what is free; what is not free yet it gets in later heartbeats. Pure.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "gateway/groups/consumer_int.h"

/* --- targets --- */

const char *consumer_assignor(const struct consumer *c)
{
    const struct consumer_member *m;
    size_t uniform = 0, range = 0;

    TAILQ_FOREACH(m, &c->members, link)
    {
        if (m->assignor == NULL)
            continue;
        if (assign_find(span_str(m->assignor)) == assign_range)
            range++;
        else
            uniform++;
    }
    return range > uniform ? "range" : ASSIGN_DEFAULT;
}

struct plan {
    struct assign a;
    struct assign_topic *topics;
    struct assign_member *members;
    int32_t *owners;
    uint32_t *subscriptions;
};

static void plan_fini(struct plan *p)
{
    mem_free(p->topics);
    mem_free(p->members);
    mem_free(p->owners);
    mem_free(p->subscriptions);
}

static int plan_members(const struct consumer *c, struct plan *p)
{
    struct consumer_member *m;
    size_t total = 0, at = 0, i = 0;

    TAILQ_FOREACH(m, &c->members, link)
    total += consumer_member_reads_max(c, m);
    p->members = mem_array(c->members_n + 1, sizeof *p->members);
    p->subscriptions = mem_array(total + 1, sizeof *p->subscriptions);
    if (p->members == NULL || p->subscriptions == NULL)
        return E_NOMEM;
    TAILQ_FOREACH(m, &c->members, link)
    {
        struct assign_member *to = &p->members[i];
        m->index = (uint32_t)i++;
        to->id = span_str(m->id);
        to->instance = span_str(m->instance);
        to->topics = &p->subscriptions[at];
        to->topics_n = consumer_member_reads(c, m, &p->subscriptions[at]);
        at += to->topics_n;
    }
    return 0;
}

static int plan_topics(const struct consumer *c, struct plan *p)
{
    size_t total = 0, at = 0;

    for (size_t t = 0; t < c->live_n; t++)
        total += (size_t)c->topics[t]->partitions;
    p->topics = mem_array(c->live_n + 1, sizeof *p->topics);
    p->owners = mem_array(total + 1, sizeof *p->owners);
    if (p->topics == NULL || p->owners == NULL)
        return E_NOMEM;
    for (size_t t = 0; t < c->live_n; t++) {
        const struct consumer_topic *from = c->topics[t];
        p->topics[t].partitions = from->partitions;
        p->topics[t].owner = &p->owners[at];
        for (int32_t i = 0; i < from->partitions; i++) {
            const struct consumer_member *m = from->parts[i].target;
            p->owners[at++] = m == NULL ? ASSIGN_NOBODY : (int32_t)m->index;
        }
    }
    return 0;
}

static int adopt(struct consumer *c, const struct plan *p)
{
    struct consumer_member **by_index = mem_array(c->members_n + 1, sizeof(void *));
    struct consumer_member *m;

    if (by_index == NULL)
        return E_NOMEM;
    TAILQ_FOREACH(m, &c->members, link)
    {
        by_index[m->index] = m;
    }
    for (size_t t = 0; t < c->topics_n; t++) {
        struct consumer_topic *topic = c->topics[t];
        for (int32_t i = 0; i < topic->parts_n; i++) {
            int32_t owner =
                t < c->live_n && i < topic->partitions ? p->topics[t].owner[i] : ASSIGN_NOBODY;
            topic->parts[i].target = owner < 0 ? NULL : by_index[owner];
        }
    }
    mem_free(by_index);
    return 0;
}

/* Members that have come to a later epoch need no reminder. */
static void forget_raised(struct consumer *c)
{
    const struct consumer_member *m;
    struct consumer_raised *r, *next;
    int32_t oldest = INT32_MAX;

    TAILQ_FOREACH(m, &c->members, link)
    {
        oldest = m->epoch < oldest ? m->epoch : oldest;
    }
    for (r = TAILQ_FIRST(&c->raised); r != NULL; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->epoch >= oldest)
            continue;
        TAILQ_REMOVE(&c->raised, r, link);
        mem_free(r);
    }
}

int consumer_target(struct group *g)
{
    struct consumer *c = g->consumer;
    struct plan p = {0};
    int err;

    if ((err = plan_members(c, &p)) < 0 || (err = plan_topics(c, &p)) < 0)
        goto out;
    p.a = (struct assign){p.topics, c->live_n, p.members, c->members_n};
    if ((err = assign_find(span_str(consumer_assignor(c)))(&p.a)) < 0)
        goto out;
    if ((err = adopt(c, &p)) < 0)
        goto out;
    c->assignment_epoch = g->generation;
    forget_raised(c);
out:
    plan_fini(&p);
    return err;
}

/* --- one member --- */

bool consumer_reconciled(const struct consumer *c, const struct consumer_member *m)
{
    return m->state == CONSUMER_STABLE && m->epoch == c->assignment_epoch;
}

static const struct consumer_part *find_part(const struct consumer *c, const struct kp_uuid *id,
                                             int32_t partition)
{
    const struct consumer_topic *t = keymap_get(&c->topic_by_id, span_of(id->b, sizeof id->b));

    return t == NULL || partition < 0 || partition >= t->parts_n ? NULL : &t->parts[partition];
}

bool consumer_owned_fits(const struct consumer *c, const struct consumer_member *m,
                         const struct consumer_heartbeat *ev)
{
    if (!ev->has_owned)
        return false;
    for (size_t i = 0; i < ev->owned_n; i++) {
        for (size_t j = 0; j < ev->owned[i].n; j++) {
            const struct consumer_part *p =
                find_part(c, &ev->owned[i].id, ev->owned[i].partitions[j]);
            if (p == NULL || p->owner != m || p->revoking)
                return false;
        }
    }
    return true;
}

/* It has not said that it has given up all it must. */
static bool still_owns(const struct consumer *c, const struct consumer_member *m,
                       const struct consumer_heartbeat *ev)
{
    if (!ev->has_owned)
        return true;
    for (size_t i = 0; i < ev->owned_n; i++) {
        for (size_t j = 0; j < ev->owned[i].n; j++) {
            const struct consumer_part *p =
                find_part(c, &ev->owned[i].id, ev->owned[i].partitions[j]);
            if (p != NULL && p->owner == m && p->revoking)
                return true;
        }
    }
    return false;
}

static void set_state(struct consumer *c, struct consumer_member *m,
                      enum consumer_member_state state, int32_t epoch, int64_t now_ms)
{
    ASSERT(epoch <= c->assignment_epoch);
    if (m->epoch != epoch)
        m->previous_epoch = m->epoch;
    m->epoch = epoch;
    m->state = state;
    m->revoke_ms = state == CONSUMER_UNREVOKED ? now_ms + m->rebalance_ms : GROUP_NEVER;
    if (m->revoke_ms < c->next_ms)
        c->next_ms = m->revoke_ms;
}

void consumer_release_revoked(struct consumer *c, const struct consumer_member *m)
{
    for (size_t t = 0; t < c->topics_n; t++) {
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            struct consumer_part *p = &c->topics[t]->parts[i];
            if (p->owner == m && p->revoking) {
                p->owner = NULL;
                p->revoking = p->again = false;
            }
        }
    }
}

/* Marks what it must give up; returns how much that is. */
static size_t revoke(struct consumer *c, const struct consumer_member *m)
{
    size_t n = 0;

    for (size_t t = 0; t < c->topics_n; t++) {
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            struct consumer_part *p = &c->topics[t]->parts[i];
            if (p->owner == m && (p->target != m || p->again)) {
                p->revoking = true;
                n++;
            }
        }
    }
    return n;
}

/* Takes what is free; *waits: something is not. Returns how much it took. */
static size_t take(struct consumer *c, struct consumer_member *m, bool *waits)
{
    size_t n = 0;

    *waits = false;
    for (size_t t = 0; t < c->topics_n; t++) {
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            struct consumer_part *p = &c->topics[t]->parts[i];
            if (p->target != m || p->owner == m)
                continue;
            if (p->owner != NULL) {
                *waits = true;
                continue;
            }
            p->owner = m;
            n++;
        }
    }
    return n;
}

bool consumer_reconcile(struct consumer *c, struct consumer_member *m,
                        const struct consumer_heartbeat *ev, int64_t now_ms)
{
    int32_t epoch = m->epoch;
    bool waits;

    if (consumer_reconciled(c, m))
        return false;
    if (m->state == CONSUMER_UNREVOKED) {
        if (still_owns(c, m, ev))
            return false;
        consumer_release_revoked(c, m);
        epoch++;
    }
    size_t lost = revoke(c, m);
    if (lost > 0 && still_owns(c, m, ev)) {
        set_state(c, m, CONSUMER_UNREVOKED, epoch, now_ms);
        return true;
    }
    consumer_release_revoked(c, m); /* it never took them up */
    size_t got = take(c, m, &waits);
    set_state(c, m, waits ? CONSUMER_UNRELEASED : CONSUMER_STABLE, c->assignment_epoch, now_ms);
    return lost + got > 0;
}
