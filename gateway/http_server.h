/*
 * A small HTTP/1.1 server for the listeners that speak HTTP. It decides on a request's head, before
 * any byte of a body is kept: framing, length, the budget of all bodies, and what its user admits.
 * Refusals are answered and the connection is closed. One thread: that of the event base.
 *
 * Life of a request: head -> admit -> body -> handle. Its user then owns it until it is answered
 * with one of the http_reply functions or dropped; when the client leaves meanwhile, it stays valid
 * and the answer goes nowhere. Requests of a connection are handled one after the other.
 *
 * Deadlines: a head must be whole HEAD_MS after its first byte, a body by HTTP_BODY_MS plus what
 * its length takes at HTTP_BODY_BYTES_MS, an answer must move on every IDLE_MS, and a connection
 * without a request is closed after IDLE_MS (or to make room).
 */
#pragma once

#include <stdarg.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/writer.h"
#include "gateway/config.h"
#include "gateway/http_parse.h"
#include "gateway/peer_limits.h"

struct bufferevent;
struct evbuffer;
struct event_base;
struct http_server;
struct http_rq;

#define HTTP_HEAD_MS       30000
#define HTTP_IDLE_MS       60000
#define HTTP_BODY_MS       60000
#define HTTP_BODY_BYTES_MS 256 /* 256 KB/s: whoever sends slower all the time is cut */
#define HTTP_LINGER_MS     3000

/* Copied; what it points to must live until http_server_free returns. */
struct http_opts {
    struct event_base *base;
    const struct clock *clock;
    const struct gw_listen *where;
    size_t max_body_bytes; /* one body; longer is answered 413 */
    size_t
        body_budget_bytes; /* bodies of all requests, arriving or not yet answered; beyond: 503 */
    unsigned max_conns;    /* beyond: the longest idle one is closed, else the newcomer (503) */
    /* Makes a transport without a socket, which it will own and close; NULL when it cannot be had
     * now. The member NULL: plain TCP. TLS goes here (tls_server_http). */
    struct bufferevent *(*transport)(struct event_base *base, void *arg);
    void *transport_arg;
    int64_t handshake_ms; /* the transport must be connected by then; 0: as long as one may idle */
    /* Looks at a head. 0: go on. Else the status to refuse with, and *why (static text). May add
     * headers to the refusal. NULL: everything is admitted. */
    int (*admit)(void *arg, struct http_rq *rq, const char **why);
    /* The whole request is here; it is the callee's. */
    void (*handle)(void *arg, struct http_rq *rq);
    /* Body of a refusal; NULL: {"error": text}, application/json. */
    void (*error_body)(struct writer *w, int status, const char *text);
    const char *error_type; /* media type of error_body */
    void *arg;
};

/* Binds and listens; accepts from the next turn of the loop on. E_BUSY: the address is in use. why:
 * one line. */
MUST_USE int http_server_start(const struct http_opts *opts, struct http_server **out, char *why,
                               size_t why_bytes);
uint16_t http_server_port(const struct http_server *s);
/* Stops accepting, closes connections without a request; answers from now on close theirs. */
void http_server_drain(struct http_server *s);
/* Connections whose answers are not wholly in the socket. */
size_t http_server_unsent(const struct http_server *s);
size_t http_server_conns(const struct http_server *s);
/* Bytes of the body budget in use. */
size_t http_server_bodies(const struct http_server *s);
/* Closes everything. Requests that their users hold stay valid and must still be dropped or
 * answered, before or after. NULL is allowed. */
void http_server_free(struct http_server *s);

/* --- a request; all strings are borrowed for its life --- */

/* Of its connection. */
const struct peer_key *http_rq_peer(const struct http_rq *rq);
const struct http_head *http_rq_head(const struct http_rq *rq);
const char *http_header(const struct http_rq *rq, const char *name);
size_t http_body_bytes(const struct http_rq *rq);
/* The body in one piece; the caller owns the reference. NULL: out of memory. */
MUST_USE struct blob *http_take_body(struct http_rq *rq);
/* The client is gone: nobody will see an answer. */
bool http_rq_lost(const struct http_rq *rq);
/* The client sends nothing more: it left, or closed its half. */
bool http_rq_ended(const struct http_rq *rq);
/* Called once when the client is lost before the answer is complete; may end rq inside. NULL takes
 * it back. */
void http_rq_on_lost(struct http_rq *rq, void (*lost)(void *arg), void *arg);

/* Without memory the answer goes without that header. */
void http_add_header(struct http_rq *rq, const char *name, const char *value);
/* Each of these ends rq. HEAD gets the length without the body. */
void http_reply(struct http_rq *rq, int status, struct span body);
void http_drop(struct http_rq *rq); /* no answer; closes the connection */
/* An answer in pieces: start, chunk..., end. */
void http_reply_start(struct http_rq *rq, int status);
/* Takes all bytes of out. flushed is called once, later, when they are in the socket; not when rq
 * was lost or ended before. */
void http_reply_chunk(struct http_rq *rq, struct evbuffer *out, void (*flushed)(void *arg),
                      void *arg);
void http_reply_end(struct http_rq *rq);
