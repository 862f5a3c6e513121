/* Shared by stream.c (sockets, plain) and stream_tls.c. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>

#include "gateway/conn.h"

#define READ_AT_ONCE  ((size_t)64 * 1024)
#define WRITE_AT_ONCE ((size_t)512 * 1024)

/* Owner: worker. */
struct stream {
    struct conn conn; /* first member */
    int fd;
    bool reading; /* as conn asked */
    size_t limit; /* of conn.in */
    struct event *readable;
    struct event *writable; /* pending only while the socket takes no more */
    /* TLS only */
    SSL *ssl;
    bool handshaking;
    bool read_waits_write; /* reading goes on once the socket can be written, and the reverse */
    bool write_waits_read;
    size_t retry_n; /* bytes of a write that must be tried again as it was; 0: none */
};

/* What differs. None may be NULL. */
struct stream_kind {
    struct conn_io io;
    void (*readable)(struct stream *s);
    void (*writable)(struct stream *s);
};

extern const struct stream_kind stream_plain;
extern const struct stream_kind stream_tls;

/* Puts what was read into the connection, which looks at it. False: the connection is closed. */
bool stream_take(struct stream *s, uint8_t *buf, size_t n);
/* How much may be read now. */
size_t stream_room(const struct stream *s);
/* Watches for input exactly while it is wanted and there is room. */
void stream_watch(struct stream *s);
void stream_free(struct conn *c);
/* reading and limit of every kind. */
void stream_reading(struct conn *c, bool on);
void stream_limit(struct conn *c, size_t bytes);
/* s->ssl and fd are there, nothing was read yet. */
MUST_USE int stream_tls_begin(struct stream *s, struct worker *w);
