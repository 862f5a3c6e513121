/*
 * Topics in a table and, by their first commit, in a list; a topic's commits in one sorted array:
 * most groups have a few partitions of a few topics, and one epoch of each.
 */
#include "gateway/groups/offsets.h"

#include <string.h>

#include "base/mem.h"

void offsets_init(struct group_offsets *o)
{
    *o = (struct group_offsets){0};
    TAILQ_INIT(&o->topics);
}

static void free_topic(struct group_offsets *o, struct offsets_topic *t)
{
    for (size_t i = 0; i < t->n; i++)
        mem_free(t->list[i].metadata);
    TAILQ_REMOVE(&o->topics, t, link);
    mem_free(t->list);
    mem_free(t);
}

void offsets_fini(struct group_offsets *o)
{
    while (!TAILQ_EMPTY(&o->topics))
        free_topic(o, TAILQ_FIRST(&o->topics));
    keymap_fini(&o->by_name);
    o->n = 0;
    o->bytes = 0;
}

/* Of the commit, or where it belongs. */
static size_t place(const struct offsets_topic *t, int32_t partition, int32_t epoch)
{
    size_t low = 0;
    size_t high = t->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct group_offset *at = &t->list[mid];
        if (at->partition < partition || (at->partition == partition && at->epoch < epoch))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool found(const struct offsets_topic *t, size_t i, int32_t partition, int32_t epoch)
{
    return i < t->n && t->list[i].partition == partition && t->list[i].epoch == epoch;
}

const struct offsets_topic *offsets_topic(const struct group_offsets *o, struct span topic)
{
    return keymap_get(&o->by_name, topic);
}

const struct group_offset *offsets_get(const struct group_offsets *o, struct span topic,
                                       int32_t partition, int32_t epoch)
{
    const struct offsets_topic *t = offsets_topic(o, topic);

    if (t == NULL)
        return NULL;
    size_t i = place(t, partition, epoch);
    return found(t, i, partition, epoch) ? &t->list[i] : NULL;
}

const struct group_offset *offsets_newest(const struct group_offsets *o, struct span topic,
                                          int32_t partition)
{
    const struct offsets_topic *t = offsets_topic(o, topic);

    if (t == NULL)
        return NULL;
    size_t end = place(t, partition, INT32_MAX);
    if (found(t, end, partition, INT32_MAX))
        return &t->list[end];
    return end > 0 && t->list[end - 1].partition == partition ? &t->list[end - 1] : NULL;
}

static struct offsets_topic *make_topic(struct group_offsets *o, struct span topic)
{
    struct offsets_topic *t = keymap_get(&o->by_name, topic);

    if (t != NULL)
        return t;
    if ((t = mem_zalloc(sizeof *t + topic.n + 1)) == NULL)
        return NULL;
    memcpy(t->name, topic.p, topic.n);
    if (keymap_put(&o->by_name, span_of(t->name, topic.n), t) < 0) {
        mem_free(t);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&o->topics, t, link);
    o->bytes += sizeof *t + topic.n;
    return t;
}

static void drop_if_bare(struct group_offsets *o, struct offsets_topic *t)
{
    if (t->n > 0)
        return;
    size_t bytes = strlen(t->name);
    (void)keymap_take(&o->by_name, span_of(t->name, bytes));
    o->bytes -= sizeof *t + bytes;
    free_topic(o, t);
}

static int grow(struct offsets_topic *t)
{
    size_t cap = t->cap == 0 ? 4 : t->cap * 2;

    if (t->n < t->cap)
        return 0;
    struct group_offset *list = mem_realloc(t->list, cap * sizeof *list);
    if (list == NULL)
        return E_NOMEM;
    t->list = list;
    t->cap = cap;
    return 0;
}

int offsets_put(struct group_offsets *o, struct span topic, int32_t partition, int32_t epoch,
                int64_t offset, struct span metadata, int64_t commit_ms)
{
    struct group_offset next = {partition, epoch, offset, commit_ms, NULL, metadata.n};
    struct offsets_topic *t;

    if (metadata.n > 0 &&
        (next.metadata = mem_strndup((const char *)metadata.p, metadata.n)) == NULL)
        return E_NOMEM;
    if ((t = make_topic(o, topic)) == NULL) {
        mem_free(next.metadata);
        return E_NOMEM;
    }
    size_t i = place(t, partition, epoch);
    if (found(t, i, partition, epoch)) {
        o->bytes -= t->list[i].metadata_n;
        mem_free(t->list[i].metadata);
    } else {
        if (grow(t) < 0) {
            mem_free(next.metadata);
            drop_if_bare(o, t);
            return E_NOMEM;
        }
        memmove(&t->list[i + 1], &t->list[i], (t->n - i) * sizeof *t->list);
        t->n++;
        o->n++;
        o->bytes += sizeof next;
    }
    t->list[i] = next;
    o->bytes += next.metadata_n;
    return 0;
}

bool offsets_remove(struct group_offsets *o, struct span topic, int32_t partition, int32_t epoch)
{
    struct offsets_topic *t = keymap_get(&o->by_name, topic);

    if (t == NULL)
        return false;
    size_t i = place(t, partition, epoch);
    if (!found(t, i, partition, epoch))
        return false;
    o->bytes -= sizeof t->list[i] + t->list[i].metadata_n;
    mem_free(t->list[i].metadata);
    memmove(&t->list[i], &t->list[i + 1], (t->n - i - 1) * sizeof *t->list);
    t->n--;
    o->n--;
    drop_if_bare(o, t);
    return true;
}
