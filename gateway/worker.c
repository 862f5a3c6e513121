/*
 * The loop of one worker: mailbox, connections' turns, graveyard, deadlines. What happens between
 * threads happens by messages posted to the mailbox. Never blocks, takes no lock but leaves.
 */
#include "gateway/worker.h"

#include <event2/event.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/auth.h"
#include "gateway/conn.h"
#include "gateway/metrics.h"
#include "gateway/stream.h"

#define TICK_MIN_MS 20
#define TICK_MAX_MS 1000

void worker_assert(const struct worker *w)
{
#ifndef NDEBUG
    ASSERT(pthread_equal(pthread_self(), w->thread));
#else
    (void)w;
#endif
}

static bool nothing_posted(struct worker *w)
{
    pthread_mutex_lock(&w->mb.lock);
    bool empty = STAILQ_EMPTY(&w->mb.queue);
    pthread_mutex_unlock(&w->mb.lock);
    return empty;
}

void worker_drain_mailbox(struct worker *w)
{
    worker_assert(w);
    if (w->in_mailbox || nothing_posted(w))
        return; /* looked at before each request: worth sparing the system call */
    w->in_mailbox = true;
    mailbox_drain(&w->mb);
    w->in_mailbox = false;
}

void worker_turn_add(struct worker *w, struct conn *c)
{
    if (c->in_turn || c->state == CONN_CLOSED)
        return;
    c->in_turn = true;
    STAILQ_INSERT_TAIL(&w->turn, c, turn_link);
    event_active(w->turn_event, EV_TIMEOUT, 0);
}

void worker_bury(struct worker *w, struct conn *c)
{
    STAILQ_INSERT_TAIL(&w->grave, c, grave_link);
    event_active(w->turn_event, EV_TIMEOUT, 0);
}

/* The last connection of a drain is gone: says so, once. */
static void tell_drained(struct worker *w)
{
    if (!w->draining || w->conns_n > 0 || w->drained == NULL)
        return;
    struct task *t = w->drained;
    w->drained = NULL;
    executor_post(w->control, t);
}

static void empty_grave(struct worker *w)
{
    STAILQ_HEAD(, conn) grave = STAILQ_HEAD_INITIALIZER(grave);

    STAILQ_CONCAT(&grave, &w->grave);
    while (!STAILQ_EMPTY(&grave)) {
        struct conn *c = STAILQ_FIRST(&grave);
        STAILQ_REMOVE_HEAD(&grave, grave_link);
        if (c->in_turn) { /* its turn comes first: that list still points here */
            worker_bury(w, c);
            continue;
        }
        c->io->free(c);
        atomic_fetch_sub_explicit(&w->load, 1, memory_order_relaxed);
    }
    tell_drained(w);
}

void worker_turn(struct worker *w)
{
    STAILQ_HEAD(, conn) turn = STAILQ_HEAD_INITIALIZER(turn);

    worker_assert(w);
    STAILQ_CONCAT(&turn, &w->turn); /* who is added meanwhile comes in the next turn */
    while (!STAILQ_EMPTY(&turn)) {
        struct conn *c = STAILQ_FIRST(&turn);
        STAILQ_REMOVE_HEAD(&turn, turn_link);
        c->in_turn = false;
        conn_feed(c);
        if (c->state == CONN_READING)
            conn_input(c);
    }
    empty_grave(w);
}

void worker_tick(struct worker *w)
{
    int64_t now = clock_mono_ms(w->shared->clock);
    struct conn *c = LIST_FIRST(&w->conns);

    worker_assert(w);
    while (c != NULL) {
        struct conn *next = LIST_NEXT(c, link);
        conn_deadlines(c, now); /* closing takes c off the list, and no other */
        c = next;
    }
}

static void on_mailbox(evutil_socket_t fd, short what, void *arg)
{
    struct worker *w = arg;

    (void)fd;
    (void)what;
    /* Not only when there are messages: the drain also clears the wake-up. */
    w->in_mailbox = true;
    mailbox_drain(&w->mb);
    w->in_mailbox = false;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    worker_turn(arg);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    worker_tick(arg);
}

static int64_t tick_ms(const struct gw_config *config)
{
    int64_t ms = (config->idle_ms < config->stall_ms ? config->idle_ms : config->stall_ms) / 4;

    if (ms < TICK_MIN_MS)
        return TICK_MIN_MS;
    return ms > TICK_MAX_MS ? TICK_MAX_MS : ms;
}

static int start_events(struct worker *w)
{
    int64_t ms = tick_ms(w->shared->config);
    struct timeval tick = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    w->mb_event = event_new(w->base, mailbox_fd(&w->mb), EV_READ | EV_PERSIST, on_mailbox, w);
    w->turn_event = event_new(w->base, -1, 0, on_turn, w);
    w->tick_event = event_new(w->base, -1, EV_PERSIST, on_tick, w);
    if (w->mb_event == NULL || w->turn_event == NULL || w->tick_event == NULL ||
        event_add(w->mb_event, NULL) < 0 || event_add(w->tick_event, &tick) < 0)
        return E_NOMEM;
    return 0;
}

static void free_events(struct worker *w)
{
    struct event *events[] = {w->mb_event, w->turn_event, w->tick_event};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i] != NULL)
            event_free(events[i]);
    }
    w->mb_event = w->turn_event = w->tick_event = NULL;
    if (w->base != NULL)
        event_base_free(w->base);
    w->base = NULL;
}

int worker_init(struct worker *w, unsigned id, const struct gw_shared *shared)
{
    int err;

    *w = (struct worker){.id = id, .shared = shared, .thread = pthread_self()};
    LIST_INIT(&w->conns);
    STAILQ_INIT(&w->turn);
    STAILQ_INIT(&w->grave);
    atomic_init(&w->load, 0);
    if ((err = mailbox_init(&w->mb)) < 0)
        return err;
    if ((err = gw_view_new(0, NULL, 0, &w->view)) < 0)
        goto out;
    err = E_NOMEM;
    if ((w->base = event_base_new()) == NULL || (err = start_events(w)) < 0)
        goto out;
    if ((err = fetch_worker_start(w)) < 0)
        goto out;
    return 0;
out:
    free_events(w);
    gw_view_unref(w->view);
    w->view = NULL;
    mailbox_fini(&w->mb);
    return err;
}

void worker_close(struct worker *w)
{
    struct conn *c;

    worker_assert(w);
    while ((c = LIST_FIRST(&w->conns)) != NULL)
        conn_close(c, 0, "the server stops");
    worker_turn(w);
    fetch_worker_stop(w);
    w->fetch = NULL;
    w->stopped = true;
}

void worker_fini(struct worker *w)
{
    w->thread = pthread_self(); /* left-over messages find the thread that plays the worker now */
    w->stopped = true;
    mailbox_fini(&w->mb);
    gw_view_unref(w->view);
    w->view = NULL;
    free_events(w);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;

    if (event_base_loop(w->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
        log_event(LOG_ERROR, "worker.loop_failed", LF_UINT("worker", w->id));
    worker_close(w);
    return NULL;
}

int worker_start(struct worker *w)
{
    sigset_t all;
    sigset_t old;
    char name[16];

    /* Signals belong to the control thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&w->thread, NULL, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        w->thread = pthread_self();
        return E_NOMEM; /* EAGAIN: the system is out of threads */
    }
    snprintf(name, sizeof name, "worker-%u", w->id % 1000);
    pthread_setname_np(w->thread, name);
    return 0;
}

static void run_stop(struct task *t)
{
    struct worker *w = (struct worker *)((char *)t - offsetof(struct worker, stop_task));

    if (!w->stopped)
        event_base_loopbreak(w->base);
}

void worker_stop(struct worker *w)
{
    w->stop_task.run = run_stop;
    mailbox_post(&w->mb, &w->stop_task);
    pthread_join(w->thread, NULL);
}

struct socket_msg {
    struct task task;
    struct worker *w;
    int fd;
    const struct gw_listen *listen;
    socklen_t peer_bytes;
    struct sockaddr_storage peer;
};

static void run_socket(struct task *t)
{
    struct socket_msg *m = (struct socket_msg *)t;
    int err = E_CLOSED;

    if (m->w->stopped || m->w->draining)
        close(m->fd);
    else
        err = stream_open(m->w, m->fd, m->listen, (const struct sockaddr *)&m->peer);
    if (err < 0) {
        atomic_fetch_sub_explicit(&m->w->load, 1, memory_order_relaxed);
        metric_add(M_CONNECTIONS_REFUSED, 1);
    }
    mem_free(m);
}

int worker_post_socket(struct worker *w, int fd, const struct gw_listen *listen,
                       const struct sockaddr *peer, socklen_t peer_bytes)
{
    struct socket_msg *m = mem_zalloc(sizeof *m);

    if (m == NULL)
        return E_NOMEM;
    ASSERT(peer_bytes <= sizeof m->peer);
    m->task.run = run_socket;
    m->w = w;
    m->fd = fd;
    m->listen = listen;
    m->peer_bytes = peer_bytes;
    memcpy(&m->peer, peer, peer_bytes);
    atomic_fetch_add_explicit(&w->load, 1, memory_order_relaxed);
    mailbox_post(&w->mb, &m->task);
    return 0;
}

struct view_msg {
    struct task task;
    struct worker *w;
    const struct gw_view *view;
};

static void run_view(struct task *t)
{
    struct view_msg *m = (struct view_msg *)t;
    const struct gw_view *old = m->view;

    if (!m->w->stopped) {
        old = m->w->view;
        m->w->view = m->view;
        fetch_worker_view_changed(m->w, old);
        auth_view_changed(m->w);
    }
    gw_view_unref(old);
    mem_free(m);
}

int worker_post_view(struct worker *w, const struct gw_view *view)
{
    struct view_msg *m = mem_zalloc(sizeof *m);

    if (m == NULL)
        return E_NOMEM;
    m->task.run = run_view;
    m->w = w;
    m->view = gw_view_ref(view);
    mailbox_post(&w->mb, &m->task);
    return 0;
}

static void run_drain(struct task *t)
{
    struct worker *w = (struct worker *)((char *)t - offsetof(struct worker, drain_task));

    if (w->stopped)
        return;
    w->draining = true;
    fetch_worker_drain(w);
    struct conn *c = LIST_FIRST(&w->conns);
    while (c != NULL) {
        struct conn *next = LIST_NEXT(c, link);
        conn_finish(c); /* closing takes c off the list, and no other */
        c = next;
    }
    tell_drained(w);
}

void worker_post_drain(struct worker *w)
{
    w->drain_task.run = run_drain;
    mailbox_post(&w->mb, &w->drain_task);
}
