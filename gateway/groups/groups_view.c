/*
 * A new view: which topics of a task changed, and whom it concerns. The epochs that were seen are
 * remembered beyond the view, because a topic may be gone for a while before it comes back with
 * another epoch. Groups thread.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/groups/groups_table.h"

/* The last epoch of a topic. Stays as long as the service. */
struct groups_epoch {
    int32_t epoch; /* 0: just made */
    char key[];    /* task, NUL, topic */
};

static struct groups_epoch *epoch_of(struct groups *gs, const char *task, const char *topic)
{
    size_t task_n = strlen(task) + 1;
    size_t n = task_n + strlen(topic);
    struct groups_epoch *e = mem_zalloc(sizeof *e + n + 1);

    if (e == NULL)
        return NULL;
    memcpy(e->key, task, task_n);
    memcpy(e->key + task_n, topic, n - task_n);
    struct groups_epoch *known = keymap_get(&gs->epochs, span_of(e->key, n));
    if (known == NULL && keymap_put(&gs->epochs, span_of(e->key, n), e) == 0)
        return e;
    mem_free(e);
    return known;
}

void groups_view_fini(struct groups *gs)
{
    struct groups_epoch *e;

    for (size_t at = 0; (e = keymap_next(&gs->epochs, &at)) != NULL;)
        mem_free(e);
    keymap_fini(&gs->epochs);
    gw_view_unref(gs->view);
}

/* A topic whose epoch cannot be remembered counts as raised: members join again, no more. */
static bool raised(struct groups *gs, const char *task, const struct gw_topic *t)
{
    struct groups_epoch *e = epoch_of(gs, task, t->name);

    if (e == NULL)
        return true;
    bool is = e->epoch != 0 && e->epoch != t->epoch;
    e->epoch = t->epoch;
    return is;
}

/* The topics of a task that are not what they were. */
static size_t changes_of(struct groups *gs, const struct gw_task *before, const struct gw_task *now,
                         struct group_topic_change *list)
{
    size_t n = 0;

    for (size_t i = 0; i < now->topics_n; i++) {
        const struct gw_topic *t = &now->topics[i];
        const struct gw_topic *old = gw_task_topic(before, span_str(t->name));
        if (old != NULL && old->epoch == t->epoch && old->parts_n == t->parts_n)
            continue;
        list[n++] = (struct group_topic_change){.name = t->name,
                                                .epoch = t->epoch,
                                                .partitions = (int32_t)t->parts_n,
                                                .raised = raised(gs, now->name, t)};
    }
    for (size_t i = 0; i < before->topics_n; i++) {
        if (gw_task_topic(now, span_str(before->topics[i].name)) == NULL)
            list[n++] = (struct group_topic_change){.name = before->topics[i].name};
    }
    return n;
}

static void tell_groups(struct groups *gs, const char *task, const struct group_topic_change *list,
                        size_t n)
{
    struct group *g;

    for (size_t at = 0; (g = keymap_next(&gs->table, &at)) != NULL;) {
        struct group_out out;
        if (!span_eq_str(span_str(g->task), task) || g->ops->empty(g))
            continue;
        group_out_init(&out);
        g->ops->topics_changed(g, list, n, groups_now_ms(gs), &out);
        groups_settle(gs, g, &out);
    }
}

void groups_take_view(struct groups *gs, const struct gw_view *view)
{
    const struct gw_view *before = gs->view;

    gs->view = view;
    for (size_t i = 0; i < view->tasks_n; i++) {
        const struct gw_task *now = &view->tasks[i];
        const struct gw_task *old = gw_view_task(before, span_str(now->name));
        if (old == NULL)
            old = &before->none;
        struct arena a;
        arena_init(&a, SIZE_MAX);
        struct group_topic_change *list =
            arena_array(&a, now->topics_n + old->topics_n + 1, sizeof *list);
        size_t n = list == NULL ? 0 : changes_of(gs, old, now, list);
        if (list == NULL)
            log_event(LOG_ERROR, "groups.change_not_told", LF_STR("task", now->name),
                      LF_ERR(E_NOMEM));
        if (n > 0)
            tell_groups(gs, now->name, list, n);
        arena_fini(&a);
    }
    gw_view_unref(before);
}
