/*
 * A gRPC client: connections to brokers over HTTP/2 (nghttp2) on one event base, calls as streams
 * of length-prefixed messages. All of it belongs to the thread that runs the event base.
 *
 * A pool holds one connection an endpoint, opened with its first call (a broker closes connections
 * that stay silent) and dropped when it breaks or is told to go away. What is not in here: which
 * call to repeat, and what a message means.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define GZ_MESSAGE_MAX (8u << 20) /* of one received message */
#define GZ_NO_STATUS   (-1)

/* --- endpoints (settings.c) --- */
#define GZ_HOST_MAX      256
#define GZ_ENDPOINTS_MAX 16

struct gz_endpoint {
    char host[GZ_HOST_MAX]; /* a name or an address, without brackets */
    uint16_t port;
};
/* HOST:PORT or [ADDRESS]:PORT. E_SYNTAX. */
MUST_USE int gz_endpoint_parse(struct span s, struct gz_endpoint *out);
/* Several by comma, one at least. E_SYNTAX, E_LIMIT; why: one line, may be NULL. */
MUST_USE int gz_endpoints_parse(const char *list, struct gz_endpoint out[GZ_ENDPOINTS_MAX],
                                size_t *n, char *why, size_t why_bytes);

/* How a call ended. err 0: grpc-status 0. E_AGAIN: the connection or the broker went away, or could
 * not be reached; the call may have had its effect. E_DENIED: grpc-status 16 or 7. E_TIMEOUT: its
 * deadline. E_LIMIT: 8. E_SYNTAX: 3, 2 and whatever else a broker says of a malformed request. */
struct gz_end {
    int err;
    int grpc_status; /* GZ_NO_STATUS: none came */
    bool refused;    /* with E_AGAIN: it was not taken in (RFC 9113, 8.7), and had no effect */
    char message[256];
};

struct gz_call_cb {
    /* One whole message, borrowed for the call. */
    void (*on_message)(void *arg, struct span msg);
    /* All that was given to gz_call_send is on its way; NULL: nobody cares. */
    void (*on_drained)(void *arg);
    /* Once, unless cancelled; the call is gone with it. Never from inside gz_pool_call. */
    void (*on_end)(void *arg, const struct gz_end *end);
    void *arg;
};

struct gz_pool;
struct gz_call;

struct gz_pool_opts {
    const char *endpoints; /* "host:port[,host:port...]"; borrowed for the call */
    bool tls;              /* of these endpoints */
    const char *ca_file;   /* NULL: the system's authorities */
    const char *cert_file; /* client certificate (PEM) and its key; NULL: none */
    const char *key_file;
    /* The bearer token for a call, borrowed until the next one; NULL: none. */
    const char *(*token)(void *arg);
    void (*token_refused)(void *arg); /* a call ended with E_DENIED; required with token */
    void *token_arg;
    int64_t connect_ms; /* over all addresses of a name; 0 = 5 s */
    const char
        *hosts_file; /* names are looked up here alone (for tests); NULL: as the system does */
};

/* E_SYNTAX: an endpoint is not HOST:PORT. E_INVALID: TLS files. why: one line, may be NULL. */
MUST_USE int gz_pool_new(struct event_base *base, const struct gz_pool_opts *o,
                         struct gz_pool **out, char *why, size_t why_bytes);
/* Ends all calls (E_CLOSED), closes all connections; no call is made any more. */
void gz_pool_close(struct gz_pool *p);
/* Likewise, and frees it. NULL is allowed. Not from inside the event base: it is run once more, for
 * look-ups that were given up. */
void gz_pool_free(struct gz_pool *p);

/* Starts a call of /protocol.Journal/<method>. endpoint: a broker's URL as in a route, or NULL for
 * any of the configured ones. timeout_ms 0: none. */
MUST_USE int gz_pool_call(struct gz_pool *p, const char *endpoint, const char *method,
                          int64_t timeout_ms, const struct gz_call_cb *cb, struct gz_call **out);
/* One message of two parts, copied. */
MUST_USE int gz_call_send(struct gz_call *c, struct span head, struct span body);
/* No more messages: half-close. */
void gz_call_finish(struct gz_call *c);
/* No callback follows. */
void gz_call_cancel(struct gz_call *c);

/* --- HTTP/2 (h2.c, h2_call.c, dial.c); used by the pool --- */
struct gz_conn;

struct gz_conn_opts {
    struct event_base *base;
    void *evdns; /* struct evdns_base *, NULL: host is an address */
    void *tls;   /* SSL_CTX *, NULL: plain */
    const char *host;
    uint16_t port;
    int64_t connect_ms;
    /* Once, when no further call can be made on it: because it broke, or was told to go away and
     * its last call ended. The connection is freed by this module afterwards. ok: the broker had
     * spoken, and did not fall silent. */
    void (*on_gone)(void *arg, struct gz_conn *c, bool ok);
    void (*on_denied)(void *arg); /* a call ended with E_DENIED, before it is told */
    void *arg;
};

MUST_USE int gz_conn_new(const struct gz_conn_opts *o, struct gz_conn **out);
/* Ends its calls with err, then frees; on_gone is not called. */
void gz_conn_free(struct gz_conn *c, int err);
/* It has calls, and nothing was heard since the last call of this function. Once a period. */
bool gz_conn_silent(struct gz_conn *c);
/* False once it broke or was told to go away. */
bool gz_conn_usable(const struct gz_conn *c);
/* Another call begins at once: the peer's bound is not reached. */
bool gz_conn_room(const struct gz_conn *c);
MUST_USE int gz_conn_call(struct gz_conn *c, const char *method, const char *token,
                          int64_t timeout_ms, const struct gz_call_cb *cb, struct gz_call **out);
