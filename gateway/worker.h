/*
 * A worker: one thread, one event loop, its connections for life, its copy of the view, its waits
 * and fetch sessions. Everything in it belongs to that thread; others reach it through its mailbox
 * only. It never blocks.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/config.h"
#include "gateway/view.h"

struct gw_cache;     /* gateway/cache.h: shared by all workers */
struct fetch_worker; /* gateway/fetch_int.h: waits per partition and fetch sessions of this worker
                      */
struct conn;

/* Owner: immutable after start. What every worker may use. */
struct gw_shared {
    const struct gw_config *config;
    struct jc_store *store;
    struct gw_cache *cache;
    struct jobpool *loads; /* block loads and encoding */
    const struct clock *clock;
    const char *cluster_id;
    const char *advertise_host; /* resolved: never NULL once listening */
};

struct worker {
    unsigned id;
    const struct gw_shared *shared;
    struct event_base *base;
    struct mailbox mb;
    struct event *mb_event;
    pthread_t thread;
    const struct gw_view
        *view; /* swapped between events; borrow within one event, ref to keep longer */
    struct fetch_worker *fetch;
    LIST_HEAD(, conn) conns;
    size_t conns_n;
    bool draining;
};

/* Debug builds: aborts when the caller is not on w's thread. */
void worker_assert(const struct worker *w);
