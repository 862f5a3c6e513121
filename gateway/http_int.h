/*
 * Private to http_server.c (listener, connections, reading) and http_reply.c (requests, answers).
 */
#pragma once

#include <sys/queue.h>

#include "gateway/http_server.h"

enum http_state {
    HTTP_IDLE,     /* between requests, not a byte of the next one */
    HTTP_HEADING,  /* a head is arriving */
    HTTP_BODYING,  /* a body is arriving */
    HTTP_HANDLING, /* the request is its user's */
    HTTP_LINGERING /* refused: what still comes is read over until the deadline */
};

/* Owner: its server, until the client or the server ends it. */
struct http_conn {
    LIST_ENTRY(http_conn) link;
    struct http_server *s;
    struct bufferevent *bev;
    struct peer_key peer;
    enum http_state state;
    struct http_rq *rq; /* from the head on until it is answered */
    size_t scanned;     /* of the head that is arriving */
    struct http_chunks chunks;
    bool connecting;  /* the transport's handshake is not over */
    bool ended;       /* the peer sends nothing more */
    bool close;       /* once the output is sent */
    bool streaming;   /* between http_reply_start and http_reply_end */
    bool chunked;     /* the stream's framing */
    bool reading;     /* input is being looked at: not again from inside */
    bool dead;        /* freed when that look ends */
    int64_t since_ms; /* the state's begin */
    size_t unsent;    /* output at the last tick */
    void (*flushed)(void *arg);
    void *flushed_arg;
};

/* Owner: conn until it is handed to its user, then the user. */
struct http_rq {
    struct http_conn *conn; /* NULL: lost */
    struct http_server *s;
    struct peer_key peer;
    struct arena arena;
    struct http_head head;
    struct writer body;
    size_t charged;        /* of the server's body budget */
    struct writer headers; /* of the answer, as they go out */
    bool handed;           /* to its user */
    void (*lost)(void *arg);
    void *lost_arg;
};

struct http_server {
    struct http_opts opts;
    struct listener *listener;
    struct event *tick;
    LIST_HEAD(, http_conn) conns;
    size_t conns_n;
    size_t body_bytes;
    size_t rqs_n; /* requests that exist: the server's memory goes with the last one */
    bool draining;
    bool freed;
};

/* http_server.c */
int64_t http_now(const struct http_server *s);
void http_conn_enter(struct http_conn *c, enum http_state state);
void http_conn_close(struct http_conn *c);
/* The answer is in the output: closes, or goes on to the next request. */
void http_conn_answered(struct http_conn *c);
void http_server_unref(struct http_server *s);

/* http_reply.c */
struct http_rq *http_rq_new(struct http_conn *c);
void http_rq_free(struct http_rq *rq);
/* Answers with an error and closes the connection after it. */
void http_refuse(struct http_rq *rq, int status, const char *text);
/* Raw bytes of an answer that needs no request. */
void http_error_write(struct http_server *s, struct evbuffer *out, int status, const char *text,
                      struct span headers, bool head_only);
