/*
 * One Kafka connection: splits its input into frames, keeps the requests in flight, and puts their
 * answers out in the order in which the requests came. Knows nothing of sockets: `in` and `out` are
 * buffers of whatever carries the bytes (gateway/stream.c: a socket; tests: memory).
 *
 * Budgets: at most CONN_PIPELINE requests and max_request_bytes of frames in flight, and no further
 * frame is taken while conn_output_bytes are unsent; what requests in flight have collected for
 * their answers counts as unsent, and a request that finds no room waits for it. Behind a request
 * in flight no further one is taken while the worker's requests hold WORKER_REQUEST_BYTES. An idle
 * connection holds no buffer.
 *
 * An unfinished frame must be whole stall_ms after its first byte, however it drips. Of unsent
 * output a CONN_STALL_SHARE-th of conn_output_bytes must leave in each stall_ms, or all of it.
 *
 * Owner: worker; all functions on its thread. A connection that is closed is freed at the end of
 * the worker's turn, so callers up the stack may still look at its state.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gateway/auth.h"
#include "gateway/request.h"
#include "gateway/worker.h"

struct evbuffer;
struct evbuffer_cb_entry;
struct event;

#define CONN_PIPELINE 32 /* requests in flight */
#define CONN_TURN     32 /* frames handled before other connections get their turn */

/* A frame up to this size is taken without asking. The bytes of larger ones, from their first byte
 * until they are answered, come out of one budget per worker; a connection that gets nothing of it
 * waits, and closes at the stall limit. */
#define CONN_INPUT_FREE    ((size_t)64 * 1024)
#define WORKER_INPUT_BYTES ((size_t)64 * 1024 * 1024)

/* Frames and arenas of all requests in flight on a worker. Beyond it long polls are answered at
 * once, and connections that have a request in flight are not read. */
#define WORKER_REQUEST_BYTES ((size_t)256 * 1024 * 1024)

/* With the defaults, 256 KiB in 30 s: slower readers would hold an answer for longer than anybody
 * waits for it. */
#define CONN_STALL_SHARE 16

enum conn_state {
    CONN_READING,  /* takes frames */
    CONN_BLOCKED,  /* a budget is used up: reads nothing until answers leave */
    CONN_FLUSHING, /* takes no more frames; closes when all answers in flight were sent */
    CONN_CLOSED,   /* in the worker's graveyard */
    CONN_STATES
};

/* What carries the bytes. None of these may call back into the connection. */
struct conn_io {
    void (*reading)(struct conn *c, bool on);    /* stop or go on filling c->in */
    void (*limit)(struct conn *c, size_t bytes); /* c->in is not filled beyond this; at first it is
                                                    CONN_INPUT_FREE */
    /* Sends what c->out holds, as far as it goes now; the rest later, by calling conn_output. A
     * failure means that the connection is dead. */
    int (*send)(struct conn *c);
    void (*shut)(struct conn *c); /* once, on CONN_CLOSED: no event may come any more */
    void (*free)(struct conn *c); /* at turn end: frees c with what carries it */
};

struct conn {
    struct worker *w;
    LIST_ENTRY(conn) link;
    STAILQ_ENTRY(conn) turn_link;
    STAILQ_ENTRY(conn) grave_link;
    enum conn_state state;
    bool in_turn;
    bool muted;              /* takes no frame until mute_over fires */
    struct event *mute_over; /* NULL before the first time */
    bool in_input;           /* frames are being handled: answers are sent together afterwards */
    const struct conn_io *io;
    struct conn_auth auth;
    struct evbuffer *in; /* both belong to io */
    struct evbuffer *out;
    TAILQ_HEAD(request_queue, request) queue; /* by arrival */
    unsigned queue_n;
    size_t queue_bytes;    /* frames in flight */
    size_t held_bytes;     /* answers that wait for the answers before them */
    size_t gathered_bytes; /* what unanswered requests have collected (request_hold) */
    size_t moved_bytes;    /* that left `out` since output_ms */
    unsigned starved_n;    /* requests that wait for room (request_starve) */
    size_t granted;        /* of the worker's input budget, for the frame that is arriving */
    /* All on clock_mono_ms; 0 = not running. */
    int64_t active_ms;    /* last byte in either direction */
    int64_t frame_ms;     /* when the unfinished frame in `in` began */
    int64_t output_ms;    /* when `out` began to fill, or had last moved on far enough */
    int64_t handshake_ms; /* set by io: the transport must be ready by then */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t requests;
    char peer[INET6_ADDRSTRLEN + 8]; /* address:port, for logs */
    char software[48];               /* what ApiVersions 3+ told, "name/version", cut; "" before */
    /* What this client is told to connect to; advertise_host points to local_host or to the
     * configuration. */
    const char *advertise_host;
    uint16_t advertise_port;
    char local_host[INET6_ADDRSTRLEN];
};

/* c is zeroed memory whose io, in, out, peer and advertise_* are set. login: this listener asks for
 * one. E_NOMEM: nothing was kept. */
MUST_USE int conn_init(struct conn *c, struct worker *w, bool login);
/* By io->free, before the buffers go. */
void conn_fini(struct conn *c);
/* Bytes arrived in c->in, or the connection's turn has come again. */
void conn_input(struct conn *c);
/* The transport can take more of c->out. */
void conn_output(struct conn *c);
/* The peer closed, or the transport failed (reason: static text for the log). */
void conn_gone(struct conn *c, const char *reason);
/* Takes no further frame for so long (longer times of before count). */
void conn_mute(struct conn *c, int64_t ms);
/* Now, with all requests in flight; err names why in the log (0: no fault). */
void conn_close(struct conn *c, int err, const char *reason);
/* Takes no further request and closes once those in flight are answered and sent. */
void conn_finish(struct conn *c);
/* Checks idle and stall limits. */
void conn_deadlines(struct conn *c, int64_t now_ms);

/* --- for request.c and dispatch.c --- */

/* Appends a request to the order of answers. */
void conn_queue(struct conn *c, struct request *rq);
/* Unsent bytes that the connection may still take on before it counts as full. */
size_t conn_room(const struct conn *c);
/* Whether this request in flight may collect a batch: there is room, or nobody else could make any.
 */
bool conn_may_collect(const struct conn *c, const struct request *rq);
/* Room may have come: looks at starved requests later in this turn. */
void conn_wake_starved(struct conn *c);
/* In the connection's turn, in any state: feeds requests that waited for room. */
void conn_feed(struct conn *c);
/* A request turned done: sends what may leave. */
void conn_flush(struct conn *c);

/* Reads one frame (without its length prefix), decides, and calls the handler. Takes the reference
 * of frame. Anything that has no answer ends the connection after the answers before it. */
void dispatch_frame(struct conn *c, struct blob *frame);
