/*
 * The snapshot of all topics: built once, never changed, counted. One arena holds it, so that its
 * end is one sweep. Any thread may drop the last reference.
 */
#include "gateway/view.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/catalog.h"
#include "gateway/strict_name.h"

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

static int task_cmp(const void *a, const void *b)
{
    const struct gw_task *x = a;
    const struct gw_task *y = b;
    return span_cmp(span_str(x->name), span_str(y->name));
}

static const char *copy_name(struct arena *a, const char *name)
{
    return arena_strndup(a, name, strlen(name));
}

const struct gw_encoder *gw_encoder_ref(const struct gw_encoder *e)
{
    if (e != NULL && e->life != NULL)
        atomic_fetch_add_explicit(&e->life->refs, 1, memory_order_relaxed);
    return e;
}

void gw_encoder_unref(const struct gw_encoder *e)
{
    if (e != NULL && e->life != NULL &&
        atomic_fetch_sub_explicit(&e->life->refs, 1, memory_order_acq_rel) == 1)
        e->life->end(e->life);
}

/* What dst holds so far is always fit for gw_view_unref. */
static int copy_topic(struct arena *a, const struct gw_topic *src, const char *task,
                      struct gw_topic *dst)
{
    *dst = *src;
    dst->parts = NULL;
    dst->parts_n = 0;
    dst->first = NULL;
    dst->encoder = gw_encoder_ref(src->encoder);
    dst->task = task;
    dst->name = copy_name(a, src->name);
    dst->collection = copy_name(a, src->collection);
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

/* Copies the task, its topics into the room at `topics`. */
static int copy_task(struct gw_view *v, const struct gw_task *src, struct gw_topic *topics,
                     struct gw_task *dst)
{
    size_t n = src->topics_n;
    int err;

    *dst = *src;
    dst->name = copy_name(&v->arena, src->name);
    const struct gw_topic **by_id = arena_array(&v->arena, n, sizeof(const struct gw_topic *));
    if (dst->name == NULL || by_id == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        v->topics_n++; /* what gw_view_unref must drop */
        if ((err = copy_topic(&v->arena, &src->topics[i], dst->name, &topics[i])) < 0)
            return err;
    }
    if (n > 0)
        qsort(topics, n, sizeof *topics, topic_cmp);
    for (size_t i = 0; i < n; i++) {
        by_id[i] = &topics[i];
        if (i > 0 && topic_cmp(&topics[i - 1], &topics[i]) == 0)
            return E_EXISTS;
    }
    if (n > 0)
        qsort(by_id, n, sizeof *by_id, id_cmp);
    dst->topics = topics;
    dst->by_id = by_id;
    return 0;
}

static int copy_tasks(struct gw_view *v, const struct gw_view_spec *spec)
{
    size_t n = spec->tasks_n;
    size_t topics_n = 0;
    int err;

    for (size_t i = 0; i < n; i++)
        topics_n += spec->tasks[i].topics_n;
    struct gw_task *tasks = arena_array(&v->arena, n, sizeof *tasks);
    struct gw_topic *topics = arena_array(&v->arena, topics_n, sizeof *topics);
    if (tasks == NULL || topics == NULL)
        return E_NOMEM;
    v->topics = topics;
    for (size_t i = 0; i < n; i++) {
        if ((err = copy_task(v, &spec->tasks[i], topics + v->topics_n, &tasks[i])) < 0)
            return err;
    }
    if (n > 0)
        qsort(tasks, n, sizeof *tasks, task_cmp);
    for (size_t i = 1; i < n; i++) {
        if (task_cmp(&tasks[i - 1], &tasks[i]) == 0)
            return E_EXISTS;
    }
    v->tasks = tasks;
    v->tasks_n = n;
    return 0;
}

int gw_view_build(const struct gw_view_spec *spec, const struct gw_view **out)
{
    *out = NULL;
    struct gw_view *v = mem_zalloc(sizeof *v);
    if (v == NULL)
        return E_NOMEM;
    atomic_init(&v->refs, 1);
    v->revision = spec->revision;
    v->none.name = "";
    if (spec->catalog != NULL)
        v->catalog = catalog_ref(spec->catalog);
    arena_init(&v->arena, VIEW_ARENA_BYTES);
    int err = copy_tasks(v, spec);
    if (err < 0) {
        gw_view_unref(v);
        return err;
    }
    v->anonymous = spec->anonymous == NULL ? NULL : gw_view_task(v, span_str(spec->anonymous));
    if (v->anonymous == NULL)
        v->anonymous = &v->none;
    *out = v;
    return 0;
}

int gw_view_new(int64_t revision, const struct gw_topic *topics, size_t n,
                const struct gw_view **out)
{
    const struct gw_task task = {.name = "", .topics = topics, .topics_n = n};
    const struct gw_view_spec spec = {
        .revision = revision, .tasks = &task, .tasks_n = 1, .anonymous = ""};

    return gw_view_build(&spec, out);
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
        gw_encoder_unref(v->topics[i].encoder);
    }
    catalog_unref(v->catalog);
    struct gw_view *dead = counted(v);
    arena_fini(&dead->arena);
    mem_free(dead);
}

const struct gw_task *gw_view_task(const struct gw_view *v, struct span name)
{
    size_t lo = 0;
    size_t hi = v->tasks_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(name, span_str(v->tasks[mid].name));
        if (c == 0)
            return &v->tasks[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct gw_task *gw_view_principal(const struct gw_view *v, const char *principal)
{
    if (principal[0] == '\0')
        return v->anonymous;
    const struct gw_task *t = gw_view_task(v, span_str(principal));
    return t == NULL ? &v->none : t;
}

static const struct gw_topic *find_topic(const struct gw_task *t, struct span name)
{
    size_t lo = 0;
    size_t hi = t->topics_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(name, span_str(t->topics[mid].name));
        if (c == 0)
            return &t->topics[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

#define STRICT_ASKED_MAX 1024 /* no name of a catalog is longer in any form */

const struct gw_topic *gw_task_topic(const struct gw_task *t, struct span name)
{
    char strict[3 * STRICT_ASKED_MAX + 1];
    const struct gw_topic *found = find_topic(t, name);

    if (found != NULL || !t->strict_names || name.n == 0 || name.n > STRICT_ASKED_MAX ||
        !gw_strict_name_of(name, strict))
        return found;
    return find_topic(t, span_str(strict));
}

const struct gw_topic *gw_task_topic_by_id(const struct gw_task *t, const struct kp_uuid *id)
{
    size_t lo = 0;
    size_t hi = t->topics_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = memcmp(id->b, t->by_id[mid]->id.b, sizeof id->b);
        if (c == 0)
            return t->by_id[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
