/*
 * The groups thread: its mailbox and its deadlines. A turn runs what was posted, then the groups
 * whose deadline has come (a heap), then sleeps until the next one. It never waits for the disk:
 * writes go to the store's thread and come back as messages.
 */
#include "gateway/groups/groups.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/groups_table.h"

int64_t groups_now_ms(const struct groups *gs)
{
    return clock_mono_ms(gs->opts.clock);
}

int64_t groups_wall_ms(const struct groups *gs)
{
    return clock_wall_ns(gs->opts.clock) / 1000000;
}

const struct gw_topic *groups_topic(const struct groups *gs, const char *task, struct span name)
{
    const struct gw_task *t = gw_view_task(gs->view, span_str(task));
    return t == NULL ? NULL : gw_task_topic(t, name);
}

const struct gw_topic *groups_topic_by_id(const struct groups *gs, const char *task,
                                          const struct kp_uuid *id)
{
    const struct gw_task *t = gw_view_task(gs->view, span_str(task));
    return t == NULL ? NULL : gw_task_topic_by_id(t, id);
}

struct executor *groups_executor(struct groups *gs)
{
    return &gs->mb.ex;
}

/* --- turns --- */

static void run_due(struct groups *gs)
{
    int64_t now = groups_now_ms(gs);
    struct group *g;

    while ((g = groups_first_due(gs)) != NULL && g->next_ms <= now) {
        struct group_out out;
        group_out_init(&out);
        groups_settle(gs, g, &out); /* ticks it, and moves its deadline on */
    }
    if (gs->sweep_ms <= now)
        groups_sweep(gs);
}

int64_t groups_turn(struct groups *gs)
{
    (void)mailbox_drain(&gs->mb);
    run_due(gs);
    const struct group *g = groups_first_due(gs);
    int64_t next = gs->sweep_ms;
    if (g != NULL && g->next_ms < next)
        next = g->next_ms;
    int64_t wait = next - groups_now_ms(gs);
    return wait < 0 ? 0 : wait;
}

static void *thread_main(void *arg)
{
    struct groups *gs = arg;

    while (!gs->stopping) {
        int64_t wait = groups_turn(gs);
        if (gs->stopping)
            break;
        struct pollfd p = {.fd = mailbox_fd(&gs->mb), .events = POLLIN};
        (void)poll(&p, 1, wait > GROUP_SWEEP_MS ? GROUP_SWEEP_MS : (int)wait);
    }
    return NULL;
}

/* --- messages --- */

static void drain_all(struct groups *gs)
{
    gs->draining = true;
    for (size_t at = 0;;) {
        struct group *g = keymap_next(&gs->table, &at);
        if (g == NULL)
            return;
        struct group_out out;
        group_out_init(&out);
        g->ops->drain(g, KE_COORDINATOR_NOT_AVAILABLE, &out);
        groups_answer(gs, g, &out);
    }
}

static void run_drain(struct task *t)
{
    drain_all((struct groups *)(void *)((char *)t - offsetof(struct groups, drain_task)));
}

static void run_stop(struct task *t)
{
    struct groups *gs = (struct groups *)(void *)((char *)t - offsetof(struct groups, stop_task));

    drain_all(gs);
    gs->stopping = true;
}

void groups_drain(struct groups *gs)
{
    gs->drain_task.run = run_drain;
    mailbox_post(&gs->mb, &gs->drain_task);
}

struct view_msg {
    struct task task;
    struct groups *gs;
    const struct gw_view *view;
};

static void run_view(struct task *t)
{
    struct view_msg *m = (struct view_msg *)t;

    groups_take_view(m->gs, m->view);
    mem_free(m);
}

int groups_post_view(struct groups *gs, const struct gw_view *view)
{
    struct view_msg *m = mem_zalloc(sizeof *m);

    if (m == NULL)
        return E_NOMEM;
    m->task.run = run_view;
    m->gs = gs;
    m->view = gw_view_ref(view);
    mailbox_post(&gs->mb, &m->task);
    return 0;
}

/* --- life --- */

int groups_open(const struct groups_opts *opts, struct groups **out, char *why, size_t why_bytes)
{
    struct groups *gs = mem_zalloc(sizeof *gs);
    int err = E_NOMEM;

    *out = NULL;
    if (gs == NULL)
        return E_NOMEM;
    gs->opts = *opts;
    gs->sweep_ms = clock_mono_ms(opts->clock);
    if ((err = mailbox_init(&gs->mb)) < 0) {
        mem_free(gs);
        return err;
    }
    if ((err = gw_view_new(0, NULL, 0, &gs->view)) < 0)
        goto out;
    if (opts->path != NULL &&
        ((err = group_store_open(opts->path, &gs->store, why, why_bytes)) < 0 ||
         (err = groups_load(gs)) < 0))
        goto out;
    *out = gs;
    gs = NULL;
out:
    if (gs != NULL)
        groups_free(gs);
    return err;
}

int groups_start(const struct groups_opts *opts, struct groups **out, char *why, size_t why_bytes)
{
    sigset_t all, old;
    struct groups *gs;
    int err = groups_open(opts, &gs, why, why_bytes);

    *out = NULL;
    if (err < 0)
        return err;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&gs->thread, NULL, thread_main, gs);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        groups_free(gs);
        return E_NOMEM;
    }
    pthread_setname_np(gs->thread, "groups");
    gs->started = true;
    *out = gs;
    return 0;
}

void groups_stop(struct groups *gs)
{
    gs->stop_task.run = run_stop;
    mailbox_post(&gs->mb, &gs->stop_task);
    if (gs->started)
        pthread_join(gs->thread, NULL);
    gs->started = false;
    gs->draining = true;
    /* The store answers all that it has; from here on we are the groups thread. */
    group_store_close(gs->store);
    gs->store = NULL;
    while (mailbox_drain(&gs->mb) > 0)
        ;
}

void groups_free(struct groups *gs)
{
    if (gs == NULL)
        return;
    ASSERT(!gs->started);
    group_store_close(gs->store);
    gs->store = NULL;
    mailbox_fini(&gs->mb);
    groups_table_fini(gs);
    groups_view_fini(gs);
    mem_free(gs);
}
