/*
 * `uniform`: as even as the subscriptions allow, moving as little as that allows. What was assigned
 * to a subscriber stays, the rest goes to the least loaded subscriber, and then partitions move
 * from more to less loaded members of their topic until no topic has two members that differ by
 * two. When all members subscribe to the same, nobody has two more than anybody else. See assign.h.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "gateway/groups/assign.h"

/* Subscriptions that overlap oddly could move partitions around in circles; Kafka stops here too.
 */
#define ROUNDS 16

struct uniform {
    struct assign *a;
    int32_t *load;   /* partitions of each member */
    int32_t *having; /* of the topic at hand; zero between topics */
    int32_t *last;   /* of the topic at hand: a member's highest partition, and from there ... */
    int32_t *prev;   /* ... the next one of the same owner; -1 ends */
    uint32_t *heap;  /* subscribers of the topic at hand, least loaded first */
    size_t heap_n;
    uint32_t *order; /* topics: those with much to give a member first */
};

/* Fewer partitions first; of equals the lower index, so that the result depends on nothing else. */
static bool lighter(const struct uniform *u, uint32_t a, uint32_t b)
{
    return u->load[a] != u->load[b] ? u->load[a] < u->load[b] : a < b;
}

static void sift_down(struct uniform *u, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < u->heap_n; child++) {
            if (lighter(u, u->heap[child], u->heap[least]))
                least = child;
        }
        if (least == i)
            return;
        uint32_t m = u->heap[i];
        u->heap[i] = u->heap[least];
        u->heap[least] = m;
        i = least;
    }
}

static void heap_fill(struct uniform *u, const struct assign_topic *t)
{
    u->heap_n = t->subscribers_n;
    for (size_t i = 0; i < t->subscribers_n; i++)
        u->heap[i] = t->subscribers[i];
    for (size_t i = u->heap_n / 2; i-- > 0;)
        sift_down(u, i);
}

static int compare_topics(const void *x, const void *y, void *arg)
{
    const struct assign *a = arg;
    uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const struct assign_topic *s = &a->topics[i], *t = &a->topics[j];
    /* partitions / subscribers, falling, as a comparison of products */
    uint64_t ps = (uint64_t)s->partitions * t->subscribers_n;
    uint64_t pt = (uint64_t)t->partitions * s->subscribers_n;

    if (ps != pt)
        return ps > pt ? -1 : 1;
    if (s->subscribers_n != t->subscribers_n)
        return s->subscribers_n < t->subscribers_n ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* Partitions of those who do not subscribe any more are nobody's. */
static void keep(struct uniform *u, struct assign_topic *t)
{
    for (size_t i = 0; i < t->subscribers_n; i++)
        u->having[t->subscribers[i]] = 1;
    for (int32_t p = 0; p < t->partitions; p++) {
        int32_t m = t->owner[p];
        if (m < 0 || (size_t)m >= u->a->members_n || u->having[m] == 0)
            t->owner[p] = ASSIGN_NOBODY;
        else
            u->load[m]++;
    }
    for (size_t i = 0; i < t->subscribers_n; i++)
        u->having[t->subscribers[i]] = 0;
}

static void give_the_rest(struct uniform *u, struct assign_topic *t)
{
    if (t->subscribers_n == 0)
        return;
    heap_fill(u, t);
    for (int32_t p = 0; p < t->partitions; p++) {
        if (t->owner[p] != ASSIGN_NOBODY)
            continue;
        t->owner[p] = (int32_t)u->heap[0];
        u->load[u->heap[0]]++;
        sift_down(u, 0);
    }
}

/* The most loaded subscriber that has a partition of the topic; SIZE_MAX: none. */
static size_t heaviest(const struct uniform *u, const struct assign_topic *t)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < t->subscribers_n; i++) {
        uint32_t m = t->subscribers[i];
        if (u->having[m] > 0 && (found == SIZE_MAX || u->load[m] > u->load[found]))
            found = m;
    }
    return found;
}

static void chain(struct uniform *u, const struct assign_topic *t)
{
    for (size_t i = 0; i < t->subscribers_n; i++)
        u->last[t->subscribers[i]] = -1;
    for (int32_t p = 0; p < t->partitions; p++) {
        int32_t m = t->owner[p];
        u->having[m]++;
        u->prev[p] = u->last[m];
        u->last[m] = p;
    }
}

/* Returns how many partitions moved. */
static size_t level(struct uniform *u, struct assign_topic *t)
{
    size_t moved = 0;

    if (t->subscribers_n < 2)
        return 0;
    chain(u, t);
    for (;; moved++) {
        heap_fill(u, t); /* two loads have changed */
        size_t from = heaviest(u, t);
        uint32_t to = u->heap[0];
        if (from == SIZE_MAX || u->load[from] - u->load[to] < 2)
            break;
        int32_t p = u->last[from];
        u->last[from] = u->prev[p];
        u->prev[p] = u->last[to];
        u->last[to] = p;
        t->owner[p] = (int32_t)to;
        u->having[from]--;
        u->having[to]++;
        u->load[from]--;
        u->load[to]++;
    }
    for (size_t i = 0; i < t->subscribers_n; i++)
        u->having[t->subscribers[i]] = 0;
    return moved;
}

static void run(struct uniform *u)
{
    struct assign *a = u->a;

    for (size_t i = 0; i < a->topics_n; i++) {
        u->order[i] = (uint32_t)i;
        keep(u, &a->topics[i]);
    }
    qsort_r(u->order, a->topics_n, sizeof *u->order, compare_topics, a);
    for (size_t i = 0; i < a->topics_n; i++)
        give_the_rest(u, &a->topics[u->order[i]]);
    for (int round = 0; round < ROUNDS; round++) {
        size_t moved = 0;
        for (size_t i = 0; i < a->topics_n; i++)
            moved += level(u, &a->topics[u->order[i]]);
        if (moved == 0)
            return;
    }
}

int assign_uniform(struct assign *a)
{
    struct uniform u = {.a = a};
    int32_t most = 0;
    uint32_t *index;
    int err;

    if ((err = assign_index(a, &index)) < 0)
        return err;
    err = E_NOMEM;
    for (size_t i = 0; i < a->topics_n; i++)
        most = a->topics[i].partitions > most ? a->topics[i].partitions : most;
    if ((u.last = mem_array(a->members_n + 1, sizeof *u.last)) == NULL)
        goto out;
    if ((u.prev = mem_array((size_t)most + 1, sizeof *u.prev)) == NULL)
        goto out;
    if ((u.load = mem_array(a->members_n + 1, sizeof *u.load)) == NULL)
        goto out;
    if ((u.having = mem_array(a->members_n + 1, sizeof *u.having)) == NULL)
        goto out;
    if ((u.heap = mem_array(a->members_n + 1, sizeof *u.heap)) == NULL)
        goto out;
    if ((u.order = mem_array(a->topics_n + 1, sizeof *u.order)) == NULL)
        goto out;
    run(&u);
    err = 0;
out:
    mem_free(u.order);
    mem_free(u.prev);
    mem_free(u.last);
    mem_free(u.heap);
    mem_free(u.having);
    mem_free(u.load);
    mem_free(index);
    return err;
}
