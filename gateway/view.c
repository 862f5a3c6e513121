/*
 * The snapshot of all topics: built once, never changed, counted. One arena holds it, so that its
 * end is one sweep. Any thread may drop the last reference.
 */
#include "gateway/view.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"

/* Far above what any listing needs; a view is built by ourselves. */
#define VIEW_ARENA_BYTES ((size_t)4 * 1024 * 1024 * 1024)

static int topic_cmp(const void *a, const void *b)
{
    const struct gw_topic *x = a;
    const struct gw_topic *y = b;
    return span_cmp(span_str(x->name), span_str(y->name));
}

static int id_cmp(const void *a, const void *b)
{
    const struct gw_topic *const *x = a;
    const struct gw_topic *const *y = b;
    return memcmp((*x)->id.b, (*y)->id.b, sizeof(*x)->id.b);
}

static int copy_topic(struct arena *a, const struct gw_topic *src, struct gw_topic *dst)
{
    *dst = *src;
    dst->parts = NULL;
    dst->parts_n = 0;
    dst->first = NULL;
    dst->name = arena_strndup(a, src->name, strlen(src->name));
    dst->collection = arena_strndup(a, src->collection, strlen(src->collection));
    struct gw_part **parts = arena_array(a, src->parts_n, sizeof *parts);
    if (dst->name == NULL || dst->collection == NULL || parts == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < src->parts_n; i++)
        parts[i] = gw_part_ref(src->parts[i]);
    dst->parts = parts;
    dst->parts_n = src->parts_n;
    if (src->first != NULL)
        dst->first = jc_journal_ref(src->first);
    return 0;
}

int gw_view_new(int64_t revision, const struct gw_topic *topics, size_t n,
                const struct gw_view **out)
{
    int err = E_NOMEM;

    *out = NULL;
    struct gw_view *v = mem_zalloc(sizeof *v);
    if (v == NULL)
        return E_NOMEM;
    atomic_init(&v->refs, 1);
    v->revision = revision;
    arena_init(&v->arena, VIEW_ARENA_BYTES);
    struct gw_topic *copy = arena_array(&v->arena, n, sizeof *copy);
    const struct gw_topic **by_id = arena_array(&v->arena, n, sizeof(const struct gw_topic *));
    if (copy == NULL || by_id == NULL)
        goto out;
    v->topics = copy;
    for (size_t i = 0; i < n; i++) {
        v->topics_n = i + 1; /* what gw_view_unref must drop */
        if ((err = copy_topic(&v->arena, &topics[i], &copy[i])) < 0)
            goto out;
    }
    qsort(copy, n, sizeof *copy, topic_cmp);
    for (size_t i = 0; i < n; i++) {
        by_id[i] = &copy[i];
        if (i > 0 && topic_cmp(&copy[i - 1], &copy[i]) == 0) {
            err = E_EXISTS;
            goto out;
        }
    }
    qsort(by_id, n, sizeof *by_id, id_cmp);
    v->by_id = by_id;
    *out = v;
    v = NULL;
    err = 0;
out:
    gw_view_unref(v);
    return err;
}

/* Counting is the only change that a view ever sees. */
static struct gw_view *counted(const struct gw_view *v)
{
    union {
        const struct gw_view *in;
        struct gw_view *out;
    } u = {.in = v};
    return u.out;
}

const struct gw_view *gw_view_ref(const struct gw_view *v)
{
    atomic_fetch_add_explicit(&counted(v)->refs, 1, memory_order_relaxed);
    return v;
}

void gw_view_unref(const struct gw_view *v)
{
    if (v == NULL || atomic_fetch_sub_explicit(&counted(v)->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < v->topics_n; i++) {
        for (size_t k = 0; k < v->topics[i].parts_n; k++)
            gw_part_unref(v->topics[i].parts[k]);
        jc_journal_unref(v->topics[i].first);
    }
    struct gw_view *dead = counted(v);
    arena_fini(&dead->arena);
    mem_free(dead);
}

const struct gw_topic *gw_view_topic(const struct gw_view *v, struct span name)
{
    size_t lo = 0;
    size_t hi = v->topics_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(name, span_str(v->topics[mid].name));
        if (c == 0)
            return &v->topics[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct gw_topic *gw_view_topic_by_id(const struct gw_view *v, const struct kp_uuid *id)
{
    size_t lo = 0;
    size_t hi = v->topics_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = memcmp(id->b, v->by_id[mid]->id.b, sizeof id->b);
        if (c == 0)
            return v->by_id[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
