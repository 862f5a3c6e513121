/*
 * Inside of HTTP/2: a connection (h2.c), how it comes about (dial.c) and its calls (h2_call.c). One
 * thread, that of the event base.
 */
#pragma once

#include <event2/bufferevent.h>
#include <event2/util.h>
#include <nghttp2/nghttp2.h>
#include <sys/queue.h>

#include "base/blob.h"
#include "journal_client/gazette/grpc.h"

#define GZ_FRAME_HEAD 5
#define GZ_NO_STREAM  (-1)

struct gz_out_msg {
    STAILQ_ENTRY(gz_out_msg) link;
    size_t n, sent;
    uint8_t data[];
};

struct gz_call {
    struct gz_conn *conn;
    struct gz_call_cb cb;
    int32_t stream;
    bool live; /* has an owner that wants callbacks */
    bool ended;
    bool finishing; /* half-close behind what is queued */
    bool deferred;
    bool starting;       /* not given to its owner yet */
    bool refused;        /* its stream was closed before */
    uint64_t reads_then; /* of the connection, when it began */
    STAILQ_HEAD(, gz_out_msg) out;
    struct event *deadline;
    /* the message that is coming in */
    struct blob *in;
    uint8_t head[GZ_FRAME_HEAD];
    size_t head_n;
    struct gz_end end;
    int http_status;
    TAILQ_ENTRY(gz_call) link;
};

/* How a connection comes about: the addresses of its host, each in turn. */
struct gz_dial {
    struct gz_lookup *lookup;      /* under way; NULL: none */
    struct evutil_addrinfo *found; /* of evutil_getaddrinfo or evdns */
    const struct evutil_addrinfo *next;
    int64_t limit_ms;    /* for each of them */
    struct event *step;  /* runs in a turn of its own: the next address, or the end */
    struct event *timer; /* of the look-up, then of the address under way */
    char why[256];       /* it failed; empty: none was tried */
};

struct gz_conn {
    struct gz_conn_opts o;
    char *host;
    char *authority;
    struct gz_dial dial;
    struct bufferevent *bev; /* NULL: none yet */
    nghttp2_session *session;
    struct event *reap;  /* runs in a turn of its own: ends it */
    struct event *leave; /* since it was told to go away: ends what has no deadline */
    bool up, dead, draining;
    bool silent;         /* a call's whole time passed without a byte */
    uint64_t reads;      /* times that bytes came */
    uint64_t reads_then; /* ... at the last look of gz_conn_silent */
    unsigned quiet;      /* such looks that a draining one was silent at */
    bool heard;  /* the broker said something: TLS 1.3 refuses a client only after its handshake */
    bool inside; /* of the session: it must not be entered again from its callbacks */
    int why;     /* how its calls end when it breaks */
    size_t calls_n;
    TAILQ_HEAD(, gz_call) calls;
};

/* --- h2.c --- */
/* Ends it in a turn of its own, and its calls with err. */
void gz_conn_break(struct gz_conn *c, int err);
/* Hands over what the session has to send. */
void gz_conn_flush(struct gz_conn *c);
/* The socket stands, and TLS: bytes may go. */
void gz_conn_up(struct gz_conn *c);
/* Callbacks of its bufferevent. */
void gz_conn_on_read(struct bufferevent *bev, void *conn);
void gz_conn_on_write(struct bufferevent *bev, void *conn);

/* --- dial.c --- */
/* Ends in gz_conn_up or gz_conn_break, later. */
MUST_USE int gz_dial_start(struct gz_conn *c);
void gz_dial_fini(struct gz_conn *c);

/* --- h2_call.c --- */
void gz_call_free(struct gz_call *c);
/* Tells the owner; the object stays until its stream is closed. */
void gz_call_tell_end(struct gz_call *c, int err);
void gz_call_reset(struct gz_call *c, uint32_t code);
void gz_call_on_deadline(evutil_socket_t fd, short what, void *call);
/* nghttp2_data_source_read_callback */
ssize_t gz_call_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *arg);
/* Bytes of its answer. */
void gz_call_data(struct gz_call *c, const uint8_t *p, size_t n);
void gz_call_header(struct gz_call *c, struct span key, struct span value);
/* How a call ends whose stream was closed with code. */
int gz_call_outcome(const struct gz_call *c, uint32_t code);
