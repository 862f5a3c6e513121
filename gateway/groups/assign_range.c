/*
 * `range`: members in a fixed order (static ones by instance, then the others by id) each take the
 * next slice of every topic that they subscribe to; the first ones take one more where it does not
 * divide. See assign.h.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "gateway/groups/assign.h"

static int compare(const void *x, const void *y, void *arg)
{
    const struct assign_member *members = arg;
    const struct assign_member *a = &members[*(const uint32_t *)x];
    const struct assign_member *b = &members[*(const uint32_t *)y];

    if (a->instance.p != NULL && b->instance.p != NULL)
        return span_cmp(a->instance, b->instance);
    if (a->instance.p != NULL || b->instance.p != NULL)
        return a->instance.p != NULL ? -1 : 1;
    return span_cmp(a->id, b->id);
}

static void assign_topic(struct assign_topic *t, const uint32_t *order, size_t order_n,
                         const bool *subscribes)
{
    int32_t n = (int32_t)t->subscribers_n;
    int32_t next = 0, extra;

    if (n == 0) {
        for (int32_t p = 0; p < t->partitions; p++)
            t->owner[p] = ASSIGN_NOBODY;
        return;
    }
    extra = t->partitions % n;
    for (size_t i = 0; i < order_n; i++) {
        if (!subscribes[order[i]])
            continue;
        int32_t end = next + t->partitions / n + (extra-- > 0 ? 1 : 0);
        for (; next < end; next++)
            t->owner[next] = (int32_t)order[i];
    }
}

int assign_range(struct assign *a)
{
    uint32_t *index, *order = NULL;
    bool *subscribes = NULL;
    int err;

    if ((err = assign_index(a, &index)) < 0)
        return err;
    err = E_NOMEM;
    if ((order = mem_array(a->members_n + 1, sizeof *order)) == NULL)
        goto out;
    if ((subscribes = mem_array(a->members_n + 1, sizeof *subscribes)) == NULL)
        goto out;
    for (size_t i = 0; i < a->members_n; i++)
        order[i] = (uint32_t)i;
    union {
        const struct assign_member *in;
        void *out;
    } members = {a->members};
    qsort_r(order, a->members_n, sizeof *order, compare, members.out);
    for (size_t t = 0; t < a->topics_n; t++) {
        const struct assign_topic *topic = &a->topics[t];
        for (size_t i = 0; i < topic->subscribers_n; i++)
            subscribes[topic->subscribers[i]] = true;
        assign_topic(&a->topics[t], order, a->members_n, subscribes);
        for (size_t i = 0; i < topic->subscribers_n; i++)
            subscribes[topic->subscribers[i]] = false;
    }
    err = 0;
out:
    mem_free(subscribes);
    mem_free(order);
    mem_free(index);
    return err;
}
