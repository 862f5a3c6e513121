/* The stand-in's life: its thread, its sockets, how other threads come in, and what time does:
 * journals get their brokers, fragments come into the listing, watches look again. */
#include <arpa/inet.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

int64_t si_now_ms(void)
{
    return clock_mono_ms(clock_system());
}

int64_t si_now_s(void)
{
    return clock_wall_ns(clock_system()) / 1000000000;
}

/* --- what time does --- */

void si_clock_in(struct stand_in *si, int64_t ms)
{
    const struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    int64_t at = si_now_ms() + ms;

    if (si->clock_at_ms != 0 && si->clock_at_ms <= at)
        return;
    si->clock_at_ms = at;
    (void)evtimer_add(si->clock, &tv);
}

static void wake_watchers(struct stand_in *si)
{
    struct si_call *c, *next;

    for (c = TAILQ_FIRST(&si->watchers); c != NULL; c = next) {
        next = TAILQ_NEXT(c, queue);
        si_call_flush(c);
    }
}

void si_changed(struct stand_in *si)
{
    if (si->watch_at_ms == 0)
        si->watch_at_ms = si_now_ms() + si->o.watch_delay_ms;
    si_clock_in(si, si->o.watch_delay_ms);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Returns ms until it is due; -1: never. */
static int64_t journal_time(struct stand_in *si, struct si_journal *j, int64_t now)
{
    int64_t next = -1;

    if (j->assign_at_ms != 0 && j->assign_at_ms <= now) {
        j->assign_at_ms = 0;
        j->assigned = true;
        si->revision++;
    } else if (j->assign_at_ms != 0) {
        next = j->assign_at_ms - now;
    }
    if (j->unassign_at_ms != 0 && j->unassign_at_ms <= now) {
        j->unassign_at_ms = 0;
        j->assigned = false;
        si->revision++;
    } else if (j->unassign_at_ms != 0) {
        next = sooner(next, j->unassign_at_ms - now);
    }
    if (j->hidden_until_ms != 0 && j->hidden_until_ms <= now) {
        j->hidden_until_ms = 0;
        si_wake_readers(j);
    } else if (j->hidden_until_ms != 0 && j->hidden_until_ms - now < 3600000) {
        next = sooner(next, j->hidden_until_ms - now);
    }
    return sooner(next, si_list_due(si, j));
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
    struct stand_in *si = arg;
    int64_t now = si_now_ms(), next = -1;
    struct si_journal *j;

    (void)fd;
    (void)what;
    si->clock_at_ms = 0;
    TAILQ_FOREACH(j, &si->journals, link)
    {
        next = sooner(next, journal_time(si, j, now));
    }
    if (si->watch_at_ms != 0 && si->watch_at_ms <= now) {
        si->watch_at_ms = 0;
        wake_watchers(si);
    } else if (si->watch_at_ms != 0) {
        next = sooner(next, si->watch_at_ms - now);
    }
    if (next >= 0)
        si_clock_in(si, next + 1);
}

/* --- other threads --- */

struct sync {
    struct task task;
    struct stand_in *si;
    int (*fn)(struct stand_in *si, void *arg);
    void *arg;
    int rv;
    sem_t done;
};

static void run_sync(struct task *t)
{
    struct sync *s = (struct sync *)t;

    s->rv = s->fn(s->si, s->arg);
    (void)sem_post(&s->done);
}

int si_sync(struct stand_in *si, int (*fn)(struct stand_in *si, void *arg), void *arg)
{
    struct sync s = {.task.run = run_sync, .si = si, .fn = fn, .arg = arg};

    (void)sem_init(&s.done, 0, 0);
    mailbox_post(&si->mb, &s.task);
    while (sem_wait(&s.done) != 0) {
    }
    (void)sem_destroy(&s.done);
    return s.rv;
}

static void on_mail(evutil_socket_t fd, short what, void *arg)
{
    struct stand_in *si = arg;

    (void)fd;
    (void)what;
    (void)mailbox_drain(&si->mb);
    if (si->stopping)
        (void)event_base_loopbreak(si->evb);
}

static void *thread_main(void *arg)
{
    struct stand_in *si = arg;

    (void)event_base_dispatch(si->evb);
    return NULL;
}

/* --- life --- */

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int n,
                      void *arg)
{
    (void)l;
    (void)sa;
    (void)n;
    si_conn_accept(arg, fd);
}

static void on_control(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int n,
                       void *arg)
{
    (void)l;
    (void)sa;
    (void)n;
    si_control_accept(arg, fd);
}

static struct evconnlistener *listen_on(struct stand_in *si, evconnlistener_cb cb, uint16_t *port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    struct evconnlistener *l =
        evconnlistener_new_bind(si->evb, cb, si, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 256,
                                (struct sockaddr *)&a, (int)sizeof a);

    if (l == NULL || getsockname(evconnlistener_get_fd(l), (struct sockaddr *)&a, &n) < 0)
        return l;
    *port = ntohs(a.sin_port);
    return l;
}

static void free_all(struct stand_in *si)
{
    struct si_journal *j;

    si_conns_free(si);
    si_controls_free(si);
    si_faults_drop(si);
    while ((j = TAILQ_FIRST(&si->journals)) != NULL) {
        TAILQ_REMOVE(&si->journals, j, link);
        si_journal_free(j);
    }
    while ((j = TAILQ_FIRST(&si->deleted)) != NULL) {
        TAILQ_REMOVE(&si->deleted, j, link);
        si_journal_free(j);
    }
    for (int m = 0; m < STAND_IN_METHODS; m++)
        blob_unref(si->last[m]);
    for (size_t i = 0; i < si->keys_n; i++)
        blob_unref(si->keys[i]);
    if (si->listener != NULL)
        evconnlistener_free(si->listener);
    if (si->control != NULL)
        evconnlistener_free(si->control);
    if (si->clock != NULL)
        event_free(si->clock);
    if (si->mb_event != NULL)
        event_free(si->mb_event);
    if (si->evb != NULL)
        event_base_free(si->evb);
    mem_free(si->file_root);
    mem_free(si->zone);
    mem_free(si->id);
    mem_free(si->endpoint);
    mem_free(si);
}

static char *text(const char *s, const char *otherwise)
{
    return mem_strdup(s != NULL ? s : otherwise);
}

static int set_up(struct stand_in *si, const struct stand_in_opts *o)
{
    char url[64];
    int err;

    si->o = *o;
    si->o.file_root = si->o.auth_keys = si->o.zone = si->o.id = si->o.endpoint = NULL;
    si->o.cluster_id = o->cluster_id != 0 ? o->cluster_id : 1;
    si->o.member_id = o->member_id != 0 ? o->member_id : 2;
    si->o.raft_term = o->raft_term != 0 ? o->raft_term : 3;
    si->revision = 2;
    si->port = o->port;
    si->control_port = o->control_port;
    if ((err = si_auth_keys(si, o->auth_keys)) < 0)
        return err;
    if ((si->evb = event_base_new()) == NULL ||
        (si->clock = evtimer_new(si->evb, on_clock, si)) == NULL ||
        (si->mb_event =
             event_new(si->evb, mailbox_fd(&si->mb), EV_READ | EV_PERSIST, on_mail, si)) == NULL ||
        event_add(si->mb_event, NULL) < 0)
        return E_NOMEM;
    if ((si->listener = listen_on(si, on_accept, &si->port)) == NULL ||
        (si->control = listen_on(si, on_control, &si->control_port)) == NULL)
        return E_IO;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", si->port);
    si->zone = text(o->zone, "local");
    si->id = text(o->id, "lab0");
    si->endpoint = text(o->endpoint, url);
    if (si->zone == NULL || si->id == NULL || si->endpoint == NULL ||
        (o->file_root != NULL && (si->file_root = mem_strdup(o->file_root)) == NULL))
        return E_NOMEM;
    return pthread_create(&si->thread, NULL, thread_main, si) == 0 ? 0 : E_NOMEM;
}

int stand_in_start(const struct stand_in_opts *o, struct stand_in **out)
{
    struct stand_in *si = mem_zalloc(sizeof *si);
    int err;

    *out = NULL;
    if (si == NULL)
        return E_NOMEM;
    TAILQ_INIT(&si->journals);
    TAILQ_INIT(&si->deleted);
    TAILQ_INIT(&si->conns);
    TAILQ_INIT(&si->watchers);
    TAILQ_INIT(&si->faults);
    if ((err = mailbox_init(&si->mb)) < 0) {
        mem_free(si);
        return err;
    }
    if ((err = set_up(si, o)) < 0) {
        mailbox_fini(&si->mb);
        free_all(si);
        return err;
    }
    *out = si;
    return 0;
}

static int do_stop(struct stand_in *si, void *arg)
{
    (void)arg;
    si->stopping = true;
    return 0;
}

void stand_in_stop(struct stand_in *si)
{
    if (si == NULL)
        return;
    (void)si_sync(si, do_stop, NULL);
    (void)pthread_join(si->thread, NULL);
    mailbox_fini(&si->mb);
    free_all(si);
}

uint16_t stand_in_port(const struct stand_in *si)
{
    return si->port;
}

uint16_t stand_in_control_port(const struct stand_in *si)
{
    return si->control_port;
}
