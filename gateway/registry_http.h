/*
 * The schema registry's listener: who asks (HTTP Basic: task and token), then registry_answer.h.
 * All functions are for the control thread; passwords are checked, and large schemas compared, on
 * the job pool.
 */
#pragma once

#include "base/clock.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/config.h"
#include "gateway/view.h"

struct event_base;
struct gw_auth;
struct jc_store;
struct registry_http;

/* Copied; what it points to must live until registry_http_free returns. */
struct registry_host {
    const struct gw_config *config;
    const struct clock *clock;
    struct mailbox *control;
    struct jobpool *jobs;
    struct jc_store *store; /* keeps the versions of schemas */
    struct gw_auth *auth;
    void *tls; /* struct tls_server; NULL: none */
    /* The view that was given out last; borrowed for the event. NULL while there is none. */
    const struct gw_view *(*view)(void *arg);
    const char *cluster_id;
    void *arg;
};

/* Binds config->registry. why: one line when it fails. */
MUST_USE int registry_http_start(const struct registry_host *host, struct event_base *base,
                                 struct registry_http **out, char *why, size_t why_bytes);
/* A new view is out; borrowed for the call. NULL is allowed. */
void registry_http_view(struct registry_http *r, const struct gw_view *view);
/* About every second. NULL is allowed. */
void registry_http_tick(struct registry_http *r);
uint16_t registry_http_port(const struct registry_http *r);
void registry_http_drain(struct registry_http *r);
/* Requests that are not answered, and answers that are not sent. */
size_t registry_http_busy(const struct registry_http *r);
/* Waits for what is on the job pool and for versions that are being written, draining
 * host->control. NULL is allowed. */
void registry_http_free(struct registry_http *r);
