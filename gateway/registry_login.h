/*
 * Who asks the registry, by HTTP Basic: user = task, password = one of its tokens. Each request is
 * a login. As on Kafka listeners (docs/security.md, "Refusals"): an unknown task, a wrong token and
 * a malformed header do the same work and are answered alike, a fixed time after they came; an
 * address that fails too often waits before it is looked at. Control thread; passwords are checked
 * on the job pool.
 */
#pragma once

#include "base/clock.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/auth.h"
#include "gateway/http_server.h"
#include "gateway/view.h"

struct event_base;
struct registry_logins;

/* Copied. */
struct registry_login_opts {
    struct event_base *base;
    const struct clock *clock;
    struct mailbox *control;
    struct jobpool *jobs;
    struct gw_auth *auth;
    int64_t failure_ms; /* a refusal is due so long after the request came */
    /* NULL while there is none; borrowed for the event. */
    const struct gw_view *(*view)(void *arg);
    /* The outcome: it is the task's (0), E_DENIED, E_LIMIT (too many of its address wait),
     * E_CLOSED, E_NOMEM. rq is the callee's; user is borrowed for the call. */
    void (*over)(void *arg, struct http_rq *rq, int err, struct span user);
    void *arg;
};

MUST_USE int registry_logins_new(const struct registry_login_opts *opts,
                                 struct registry_logins **out);
/* Takes rq over, whose header Authorization this is. */
void registry_login(struct registry_logins *l, struct http_rq *rq, const char *header);
/* Ends what waits at once: refusals that are not due yet, and what was not looked at (E_CLOSED).
 * NULL is allowed. */
void registry_logins_drain(struct registry_logins *l);
size_t registry_logins_busy(const struct registry_logins *l);
/* Drops what waits; passwords that are being checked are waited for, draining the control mailbox.
 * NULL is allowed. */
void registry_logins_free(struct registry_logins *l);

/* "Basic BASE64": user and password, split at the first colon, into buf (borrowed by both).
 * E_SYNTAX.
 */
MUST_USE int registry_basic(const char *header, struct writer *buf, struct span *user,
                            struct span *password);
