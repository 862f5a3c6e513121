/*
 * The admin listener: HTTP for health, metrics, ingest and status. Runs wholly on the control
 * thread and its event_base (gateway/http_server.h); what may take long goes to the job pool or the
 * store. Owns the publisher. All functions are for the control thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/config.h"
#include "gateway/publish.h"
#include "gateway/view.h"
#include "journal_client/store.h"

struct event_base;
struct gw_shared; /* gateway/worker.h */
struct admin_http;

/* What the admin listener asks of the server around it. Copied; what it points to must live until
 * admin_http_free returns. */
struct admin_host {
    const struct gw_config *config;
    struct jc_store *store;
    const struct clock *clock;
    struct mailbox *control;        /* the control thread's: drained by the server's loop */
    struct jobpool *jobs;           /* parsing of published bodies */
    const struct gw_shared *shared; /* its workers list their connections; NULL: not known */
    /* The view that was posted last; borrowed for the event. NULL while there is none. */
    const struct gw_view *(*view)(void *arg);
    /* NULL: everything works. Else why not, for /readyz: static text, e.g. "draining". */
    const char *(*unready)(void *arg);
    /* Posts task to control once clients can see the collection as a topic with at least parts_n
     * partitions: a publish that created it is answered only then. Every task must
     * be posted at some time, also when the server ends. NULL: no waiting. */
    void (*await_topic)(void *arg, const char *collection, size_t parts_n, struct task *task);
    void *arg;
};

/* Binds config->admin and starts to serve. why: one line when it fails. */
MUST_USE int admin_http_start(const struct admin_host *host, struct event_base *base,
                              struct admin_http **out, char *why, size_t why_bytes);
struct catalog;
/* Another catalog came into force: collections that a publish may create. Borrowed until the next
 * call, or admin_http_free. */
void admin_http_set_catalog(struct admin_http *a, const struct catalog *c);
/* The bound port. */
uint16_t admin_http_port(const struct admin_http *a);
/* Stops accepting; running requests go on, streams end, answers close their connection. */
void admin_http_drain(struct admin_http *a);
/* Requests that are running, and answers that are still on their way into a socket. After a drain
 * the server may free when this is 0, or at its deadline.
 */
size_t admin_http_busy(const struct admin_http *a);
/* Requests that wait for the store's listing are answered now. Control thread. */
void admin_http_hurry(struct admin_http *a);
/* Closes everything. Waits for commits that were already handed to the store, draining
 * host->control meanwhile: call it while the store, the job pool and all that control tasks refer
 * to are alive. NULL is allowed. */
void admin_http_free(struct admin_http *a);
