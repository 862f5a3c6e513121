/*
 * The table of groups: by task and id, with a heap of their deadlines. Room in the heap is made
 * when a group is, so moving a deadline never fails.
 */
#include "gateway/groups/groups_table.h"

#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/groups/classic.h"

#define NOWHERE SIZE_MAX

/* Groups of one task. Stays as long as the service. */
struct groups_count {
    size_t n;
    char task[];
};

/* --- deadlines --- */

static void put(struct groups *gs, size_t i, struct group *g)
{
    gs->heap[i] = g;
    g->heap_at = i;
}

static void sift_up(struct groups *gs, size_t i, struct group *g)
{
    while (i > 0 && gs->heap[(i - 1) / 2]->next_ms > g->next_ms) {
        put(gs, i, gs->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(gs, i, g);
}

static void sift_down(struct groups *gs, size_t i, struct group *g)
{
    for (;;) {
        size_t kid = 2 * i + 1;
        if (kid + 1 < gs->heap_n && gs->heap[kid + 1]->next_ms < gs->heap[kid]->next_ms)
            kid++;
        if (kid >= gs->heap_n || gs->heap[kid]->next_ms >= g->next_ms)
            break;
        put(gs, i, gs->heap[kid]);
        i = kid;
    }
    put(gs, i, g);
}

static void heap_out(struct groups *gs, struct group *g)
{
    size_t i = g->heap_at;

    if (i == NOWHERE)
        return;
    g->heap_at = NOWHERE;
    struct group *last = gs->heap[--gs->heap_n];
    if (last == g)
        return;
    if (i > 0 && gs->heap[(i - 1) / 2]->next_ms > last->next_ms)
        sift_up(gs, i, last);
    else
        sift_down(gs, i, last);
}

void groups_set_due(struct groups *gs, struct group *g, int64_t next_ms)
{
    heap_out(gs, g);
    g->next_ms = next_ms;
    if (next_ms == GROUP_NEVER)
        return;
    ASSERT(gs->heap_n < gs->heap_cap);
    sift_up(gs, gs->heap_n++, g);
}

struct group *groups_first_due(const struct groups *gs)
{
    return gs->heap_n == 0 ? NULL : gs->heap[0];
}

static int heap_reserve(struct groups *gs)
{
    size_t cap = gs->heap_cap == 0 ? 16 : gs->heap_cap * 2;

    if (gs->table.n < gs->heap_cap)
        return 0;
    struct group **heap = mem_realloc(gs->heap, cap * sizeof *heap);
    if (heap == NULL)
        return E_NOMEM;
    gs->heap = heap;
    gs->heap_cap = cap;
    return 0;
}

/* --- the table --- */

static struct span key_of(const struct group *g)
{
    return span_of(g->task, (size_t)(g->id - g->task) + strlen(g->id));
}

struct group *groups_find(struct groups *gs, const char *task, struct span id)
{
    char stack[256];
    size_t task_n = strlen(task);
    size_t n = task_n + 1 + id.n;
    char *key = n <= sizeof stack ? stack : mem_alloc(n);

    if (key == NULL)
        return NULL;
    memcpy(key, task, task_n + 1);
    if (id.n > 0)
        memcpy(key + task_n + 1, id.p, id.n);
    struct group *g = keymap_get(&gs->table, span_of(key, n));
    if (key != stack)
        mem_free(key);
    return g;
}

static struct groups_count *count_of(struct groups *gs, const char *task)
{
    size_t n = strlen(task);
    struct groups_count *count = keymap_get(&gs->counts, span_of(task, n));

    if (count != NULL)
        return count;
    if ((count = mem_zalloc(sizeof *count + n + 1)) == NULL)
        return NULL;
    memcpy(count->task, task, n);
    if (keymap_put(&gs->counts, span_of(count->task, n), count) < 0) {
        mem_free(count);
        return NULL;
    }
    return count;
}

static struct group *new_group(const struct groups *gs, const char *task, struct span id)
{
    size_t task_n = strlen(task);
    struct group *g = mem_zalloc(sizeof *g);

    if (g == NULL)
        return NULL;
    if ((g->task = mem_zalloc(task_n + 1 + id.n + 1)) == NULL) {
        mem_free(g);
        return NULL;
    }
    memcpy(g->task, task, task_n);
    g->id = g->task + task_n + 1;
    if (id.n > 0)
        memcpy(g->id, id.p, id.n);
    g->ops = &classic_ops;
    g->limits = &gs->opts.limits;
    g->heap_at = NOWHERE;
    g->next_ms = GROUP_NEVER;
    g->empty_since_ms = groups_wall_ms(gs);
    g->empty_stored_ms = -1;
    offsets_init(&g->offsets);
    STAILQ_INIT(&g->held);
    return g;
}

static void free_group(struct group *g)
{
    ASSERT(g->writes == 0 && STAILQ_EMPTY(&g->held));
    g->ops->free(g);
    offsets_fini(&g->offsets);
    mem_free(g->task);
    mem_free(g);
}

int groups_make(struct groups *gs, const char *task, struct span id, struct group **out)
{
    struct group *g = groups_find(gs, task, id);

    *out = g;
    if (g != NULL)
        return 0;
    struct groups_count *count = count_of(gs, task);
    if (count == NULL || heap_reserve(gs) < 0)
        return E_NOMEM;
    if (count->n >= gs->opts.max_groups) {
        log_peer(LOG_WARN, "groups.full", LF_STR("task", task),
                 LF_UINT("max", gs->opts.max_groups));
        return E_LIMIT;
    }
    if ((g = new_group(gs, task, id)) == NULL)
        return E_NOMEM;
    if (keymap_put(&gs->table, key_of(g), g) < 0) {
        free_group(g);
        return E_NOMEM;
    }
    count->n++;
    *out = g;
    return 0;
}

size_t groups_of(const struct groups *gs, const char *task)
{
    const struct groups_count *count = keymap_get(&gs->counts, span_str(task));
    return count == NULL ? 0 : count->n;
}

void groups_drop(struct groups *gs, struct group *g)
{
    struct groups_count *count = keymap_get(&gs->counts, span_str(g->task));

    heap_out(gs, g);
    (void)keymap_take(&gs->table, key_of(g));
    if (count != NULL)
        count->n--;
    free_group(g);
}

void groups_table_fini(struct groups *gs)
{
    struct groups_count *count;
    struct group *g;

    for (size_t at = 0; (g = keymap_next(&gs->table, &at)) != NULL;)
        free_group(g);
    for (size_t at = 0; (count = keymap_next(&gs->counts, &at)) != NULL;)
        mem_free(count);
    keymap_fini(&gs->table);
    keymap_fini(&gs->counts);
    mem_free(gs->heap);
}

/* --- loading --- */

static int load_group(void *arg, const struct group_op *op)
{
    struct groups *gs = arg;
    struct group *g = NULL;
    char *task = mem_strndup((const char *)op->task.p, op->task.n);
    int err = task == NULL ? E_NOMEM : groups_make(gs, task, op->group, &g);

    mem_free(task);
    if (err < 0)
        return err;
    g->generation = op->generation;
    g->generation_stored = op->generation;
    g->empty_stored_ms = op->empty_since_ms;
    /* It had members when the process died: it is empty since now, nobody was heard for longer. */
    if (op->empty_since_ms > 0)
        g->empty_since_ms = op->empty_since_ms;
    return 0;
}

static int load_offset(void *arg, const struct group_op *op)
{
    struct groups *gs = arg;
    struct group *g = NULL;
    char *task = mem_strndup((const char *)op->task.p, op->task.n);
    int err = task == NULL ? E_NOMEM : groups_make(gs, task, op->group, &g);

    mem_free(task);
    if (err < 0)
        return err;
    return offsets_put(&g->offsets, op->topic, op->partition, op->epoch, op->offset, op->metadata,
                       op->commit_ms);
}

int groups_load(struct groups *gs)
{
    const struct group_visitor v = {load_group, load_offset, gs};
    size_t max = gs->opts.max_groups;

    gs->opts.max_groups = SIZE_MAX; /* what there is, is served, whatever the setting is now */
    int err = group_store_load(gs->store, &v);
    gs->opts.max_groups = max;
    return err;
}
