/*
 * A worker: one thread, one event loop, its connections for life, its copy of the view, its waits
 * and fetch sessions. Everything in it belongs to that thread; others reach it through its mailbox
 * only. It never blocks.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/config.h"
#include "gateway/view.h"

struct groups;
struct gw_auth;      /* gateway/auth.h */
struct tls_server;   /* gateway/tls.h */
struct gw_cache;     /* gateway/cache.h: shared by all workers */
struct fetch_worker; /* gateway/fetch_int.h: waits per partition and fetch sessions of this worker
                      */
struct conn;

/* Owner: immutable after start. What every worker may use. */
struct gw_shared {
    const struct gw_config *config;
    struct jc_store *store;
    struct gw_cache *cache;
    struct jobpool *loads;  /* block loads and encoding */
    struct gw_auth *auth;   /* NULL in tests without logins */
    struct tls_server *tls; /* NULL: there is no TLS */
    struct quotas *quotas;  /* NULL: no task is limited */
    const struct clock *clock;
    const char *cluster_id;
    const char *advertise_host; /* resolved: never NULL once listening */
    struct groups *groups;      /* gateway/groups/groups.h; NULL in tests: there are none */
    /* All workers, fixed before the first one runs and valid until the last worker_fini; others may
     * only post to their mailboxes. NULL in tests. */
    struct worker *workers;
    unsigned workers_n;
};

/* Owner: its thread, except `load` and what `shared` points to. */
struct worker {
    unsigned id;
    const struct gw_shared *shared;
    struct event_base *base;
    struct mailbox mb;
    struct event *mb_event;
    pthread_t thread;
    /* Swapped between events; never NULL (an empty view stands in before the first). Borrow within
     * one event, ref to keep longer. */
    const struct gw_view *view;
    struct fetch_worker *fetch;
    LIST_HEAD(, conn) conns;
    size_t conns_n;
    bool draining;
    /* private to worker.c, conn.c and gateway.c */
    bool in_mailbox;           /* the mailbox is being drained: not again from inside */
    bool stopped;              /* the loop is over: late messages only free what they carry */
    STAILQ_HEAD(, conn) turn;  /* connections with buffered frames that may go on */
    STAILQ_HEAD(, conn) grave; /* closed ones, freed at the end of the turn */
    size_t input_granted;      /* bytes of large frames, arriving or in flight (conn.h) */
    size_t request_bytes;      /* frames and arenas of all requests in flight (request.h) */
    struct timeval tls_turn;   /* the loop's turn in which tls_steps of handshakes were made */
    unsigned tls_steps;
    struct event *turn_event;
    struct event *tick_event; /* deadlines of connections */
    atomic_size_t load;       /* connections given to this worker and not freed yet; any thread */
    struct executor *control; /* hears of the end of a drain */
    struct task *drained; /* posted there once, after the last connection of a drain closed; NULL:
                             nobody waits */
    struct task stop_task;
    struct task drain_task;
};

/* Debug builds: aborts when the caller is not on w's thread. */
void worker_assert(const struct worker *w);
/* On w's thread: runs what others have posted so far, so that heads and views published before a
 * client's request are seen by it. Does nothing when called from inside such a message. */
void worker_drain_mailbox(struct worker *w);
/* On w's thread: frames of c wait in its input, look at them later in this turn. */
void worker_turn_add(struct worker *w, struct conn *c);
/* On w's thread, by conn.c: c is closed; it is freed at the end of this turn. */
void worker_bury(struct worker *w, struct conn *c);

/* The parts that need no thread: used by worker_start and by tests, which play the thread
 * themselves. worker_init leaves *w ready to take connections on the calling thread. */
MUST_USE int worker_init(struct worker *w, unsigned id, const struct gw_shared *shared);
/* Closes all connections, ends the fetch engine. Store and load pool may still post afterwards. */
void worker_close(struct worker *w);
/* After everybody stopped posting: runs left-over messages, frees. */
void worker_fini(struct worker *w);
/* On w's thread: deadlines, then what worker_turn_add and worker_bury left. */
void worker_tick(struct worker *w);
void worker_turn(struct worker *w);

/* Starts the thread of an initialised worker. */
MUST_USE int worker_start(struct worker *w);
/* Control thread: leaves the loop, closes everything (worker_close) and joins. */
void worker_stop(struct worker *w);

/* Messages; any thread. Each returns E_NOMEM when it could not be posted. */
/* Gives the socket, accepted by that listener, to the worker; closed if it cannot be served. Counts
 * it in `load` at once. */
MUST_USE int worker_post_socket(struct worker *w, int fd, const struct gw_listen *listen,
                                const struct sockaddr *peer, socklen_t peer_bytes);
MUST_USE int worker_post_view(struct worker *w, const struct gw_view *view); /* takes a reference */
/* At most once: finishes what is in flight, closes all connections, then posts w->drained. */
void worker_post_drain(struct worker *w);
