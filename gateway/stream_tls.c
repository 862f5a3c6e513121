/*
 * TLS under a connection: OpenSSL on the non-blocking socket, driven by the same two events as
 * plain TCP. Output is handed over record by record; a run of small pieces is copied together
 * first, since each write is a record of its own. A write that could not be done is tried again
 * with the same bytes, as OpenSSL asks.
 *
 * A handshake costs a signature (up to a millisecond). A worker does at most HANDSHAKES_AT_ONCE
 * steps of handshakes in one turn of its loop, so that a crowd of new clients slows only itself:
 * who is left over is told again by epoll in the next turn. Worker thread.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/metrics.h"
#include "gateway/stream_int.h"
#include "gateway/tls.h"

#define RECORD             16384
#define HANDSHAKES_AT_ONCE 8
#define TLS_HANDSHAKE      0x16

static void fail_handshake(struct stream *s, const char *reason)
{
    metric_add(M_TLS_FAILED, 1);
    log_peer(LOG_INFO, "tls.handshake_failed", LF_STR("peer", s->conn.peer),
             LF_STR("reason", reason));
    conn_gone(&s->conn, "TLS handshake failed");
}

int stream_tls_begin(struct stream *s, struct worker *w)
{
    s->handshaking = true;
    s->conn.handshake_ms =
        clock_mono_ms(w->shared->clock) + tls_server_opts(w->shared->tls)->handshake_ms;
    if (SSL_set_fd(s->ssl, s->fd) == 1)
        return 0;
    ERR_clear_error();
    return E_NOMEM;
}

/* One loop's turn has one cached time. */
static bool may_shake(struct worker *w)
{
    struct timeval now;

    if (event_base_gettimeofday_cached(w->base, &now) < 0)
        return true;
    if (now.tv_sec != w->tls_turn.tv_sec || now.tv_usec != w->tls_turn.tv_usec) {
        w->tls_turn = now;
        w->tls_steps = 0;
    }
    return w->tls_steps++ < HANDSHAKES_AT_ONCE;
}

/* What speaks something else is told apart by its first byte, before OpenSSL sees it. */
static bool speaks_tls(struct stream *s)
{
    uint8_t b[4];
    ssize_t n = recv(s->fd, b, sizeof b, MSG_PEEK);

    if (n <= 0 || b[0] == TLS_HANDSHAKE)
        return true; /* nothing yet, or gone: the handshake will see */
    const char *what = "no TLS was spoken to a TLS listener";
    if (b[0] == 0)
        what = "plain Kafka was spoken to a TLS listener: the client needs security.protocol SSL "
               "or SASL_SSL";
    else if (n == 4 && (memcmp(b, "GET ", 4) == 0 || memcmp(b, "POST", 4) == 0))
        what = "HTTP was spoken to a TLS Kafka listener";
    fail_handshake(s, what);
    return false;
}

/* Who the certificate says it is. Where clients log in by SASL, that is who they are. */
static bool take_certificate(struct stream *s)
{
    const struct gw_tls_opts *opts = tls_server_opts(s->conn.w->shared->tls);
    struct conn_auth *a = &s->conn.auth;
    struct writer w;
    int64_t left_s;

    if (a->state != AUTH_OPEN)
        return true;
    wr_init(&w, 4096);
    int err = tls_principal(s->ssl, opts, &w, &left_s);
    if (err == 0)
        err = auth_conn_certificate(&s->conn, blob_span(w.b), left_s);
    wr_fini(&w);
    if (err == 0 || err == E_NOTFOUND) /* none: clients may come without */
        return true;
    fail_handshake(s, err == E_DENIED ? "the client's certificate names no task" : err_text(err));
    return false;
}

/* True: over, and the connection lives. */
static bool shake(struct stream *s)
{
    if (!may_shake(s->conn.w))
        return false;
    if (SSL_in_before(s->ssl) == 1 && !speaks_tls(s))
        return false;
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl);
    int e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, r);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        if (e == SSL_ERROR_WANT_WRITE)
            event_add(s->writable, NULL);
        else
            event_del(s->writable);
        return false;
    }
    if (e != SSL_ERROR_NONE) {
        fail_handshake(s, tls_fault());
        return false;
    }
    event_del(s->writable);
    s->handshaking = false;
    s->conn.handshake_ms = 0;
    metric_add(M_TLS_HANDSHAKES, 1);
    return take_certificate(s);
}

/* As long as there is room and TLS has something; one readable event takes a bounded amount. */
static void read_input(struct stream *s)
{
    uint8_t buf[READ_AT_ONCE];
    size_t room = stream_room(s);
    size_t n = 0;
    int r = 1;

    s->read_waits_write = false;
    room = room < sizeof buf ? room : sizeof buf;
    while (n < room && r > 0) {
        ERR_clear_error();
        r = SSL_read(s->ssl, buf + n, (int)(room - n));
        if (r > 0)
            n += (size_t)r;
    }
    int e = r > 0 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, r);
    if (n > 0 && !stream_take(s, buf, n))
        return;
    if (e == SSL_ERROR_NONE || e == SSL_ERROR_WANT_READ) {
        stream_watch(s);
    } else if (e == SSL_ERROR_WANT_WRITE) {
        s->read_waits_write = true;
        event_add(s->writable, NULL);
    } else {
        bool broken = e == SSL_ERROR_SSL &&
                      ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING;
        ERR_clear_error();
        conn_gone(&s->conn, broken ? "TLS record refused" : "closed by the client");
    }
}

static void tls_readable(struct stream *s)
{
    if (s->handshaking && !shake(s))
        return;
    if (s->write_waits_read) {
        s->write_waits_read = false;
        conn_output(&s->conn);
        if (s->conn.state == CONN_CLOSED)
            return;
    }
    if (stream_room(s) > 0)
        read_input(s);
    else
        stream_watch(s);
}

static void tls_writable(struct stream *s)
{
    if (s->handshaking) {
        if (shake(s) && stream_room(s) > 0)
            read_input(s);
        return;
    }
    conn_output(&s->conn);
    if (s->conn.state != CONN_CLOSED && s->read_waits_write && stream_room(s) > 0)
        read_input(s);
}

/* One record at most, from the front of the output. */
static int write_record(struct stream *s)
{
    struct evbuffer *out = s->conn.out;
    uint8_t together[RECORD];
    struct evbuffer_iovec run = {NULL, 0};
    size_t n = evbuffer_get_length(out);

    n = n < RECORD ? n : RECORD;
    if (s->retry_n > 0)
        n = s->retry_n;
    const void *bytes = together;
    (void)evbuffer_peek(out, -1, NULL, &run, 1);
    if (run.iov_len >= n)
        bytes = run.iov_base;
    else if (evbuffer_copyout(out, together, n) != (ev_ssize_t)n)
        return E_NOMEM;
    ERR_clear_error();
    int r = SSL_write(s->ssl, bytes, (int)n);
    if (r > 0) {
        s->retry_n = 0;
        evbuffer_drain(out, (size_t)r);
        return 0;
    }
    int e = SSL_get_error(s->ssl, r);
    if (e != SSL_ERROR_WANT_WRITE && e != SSL_ERROR_WANT_READ) {
        ERR_clear_error();
        return E_CLOSED;
    }
    s->retry_n = n;
    s->write_waits_read = e == SSL_ERROR_WANT_READ;
    return E_AGAIN;
}

static int tls_send(struct conn *c)
{
    struct stream *s = (struct stream *)c;
    size_t begin = evbuffer_get_length(c->out);
    int err = 0;

    if (s->handshaking)
        return 0; /* nothing was asked yet */
    while (err == 0 && evbuffer_get_length(c->out) > 0 &&
           begin - evbuffer_get_length(c->out) < WRITE_AT_ONCE)
        err = write_record(s);
    if (err < 0 && err != E_AGAIN)
        return err;
    if (evbuffer_get_length(c->out) > 0 && !s->write_waits_read)
        return event_add(s->writable, NULL) < 0 ? E_NOMEM : 0;
    if (!s->read_waits_write)
        event_del(s->writable);
    return 0;
}

static void tls_shut(struct conn *c)
{
    struct stream *s = (struct stream *)c;

    event_del(s->readable);
    event_del(s->writable);
    if (!s->handshaking) {
        ERR_clear_error();
        (void)SSL_shutdown(s->ssl); /* best effort: the socket closes next */
        ERR_clear_error();
    }
}

const struct stream_kind stream_tls = {
    .io = {.reading = stream_reading,
           .limit = stream_limit,
           .send = tls_send,
           .shut = tls_shut,
           .free = stream_free},
    .readable = tls_readable,
    .writable = tls_writable,
};
