/*
 * One HTTP/2 connection and its calls. nghttp2 works on memory; a bufferevent (with TLS or without)
 * moves the bytes. Stream windows are small, the connection's is at its maximum, so that one slow
 * call does not stall the others.
 *
 * A call may be ended from inside any callback: what nghttp2 still holds of it is a stream without
 * an owner. A connection that breaks is torn down in a turn of its own (`reap`), never from inside
 * a callback of its session.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/blob.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/writer.h"
#include "journal_client/gazette/grpc.h"

#define STREAM_WINDOW (1 << 20)
#define OUTPUT_HIGH   (1u << 20)
#define FRAME_HEAD    5
#define USER_TIMEOUT  30000 /* ms; a peer that acknowledges nothing so long is gone */
#define NO_STREAM     (-1)
#define QUIET_MAX     3 /* periods that a connection told to go away may be silent */

struct out_msg {
    STAILQ_ENTRY(out_msg) link;
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
    STAILQ_HEAD(, out_msg) out;
    struct event *deadline;
    /* the message that is coming in */
    struct blob *in;
    uint8_t head[FRAME_HEAD];
    size_t head_n;
    struct gz_end end;
    int http_status;
    TAILQ_ENTRY(gz_call) link;
};

struct gz_conn {
    struct gz_conn_opts o;
    char *host;
    char *authority;
    struct bufferevent *bev;
    nghttp2_session *session;
    struct event *reap; /* runs in a turn of its own: ends it */
    struct event *connect_timer;
    bool up, dead, draining;
    bool silent;         /* a call's whole time passed without a byte */
    uint64_t reads;      /* times that bytes came */
    uint64_t reads_then; /* ... at the last look of gz_conn_silent */
    unsigned quiet;      /* such looks that a draining one was silent at */
    bool heard;  /* the broker said something: TLS 1.3 refuses a client only after its handshake */
    bool inside; /* of the session: it must not be entered again from its callbacks */
    int why;     /* how its calls end when it breaks */
    TAILQ_HEAD(, gz_call) calls;
};

/* --- calls --- */

static void call_free(struct gz_call *c)
{
    struct out_msg *m;

    while ((m = STAILQ_FIRST(&c->out)) != NULL) {
        STAILQ_REMOVE_HEAD(&c->out, link);
        mem_free(m);
    }
    if (c->deadline != NULL)
        event_free(c->deadline);
    blob_unref(c->in);
    mem_free(c);
}

static int err_of_status(int status)
{
    switch (status) {
    case 0:
        return 0;
    case 1:
    case 14:
        return E_AGAIN;
    case 4:
        return E_TIMEOUT;
    case 7:
    case 16:
        return E_DENIED;
    case 8:
        return E_LIMIT;
    case 12:
        return E_UNSUPPORTED;
    default:
        return E_SYNTAX;
    }
}

/* Tells the owner; the object stays until its stream is closed. */
static void call_tell_end(struct gz_call *c, int err)
{
    if (c->deadline != NULL)
        event_del(c->deadline);
    if (!c->live || c->ended)
        return;
    c->ended = true;
    c->live = false;
    c->end.err = err;
    if (err == E_DENIED)
        c->conn->o.on_denied(c->conn->o.arg);
    c->cb.on_end(c->cb.arg, &c->end);
}

static void conn_flush(struct gz_conn *c);

static void conn_break(struct gz_conn *c, int err)
{
    if (c->dead)
        return;
    c->dead = true;
    c->why = err;
    event_active(c->reap, EV_TIMEOUT, 0);
}

static void call_reset(struct gz_call *c, uint32_t code)
{
    if (c->stream == NO_STREAM || c->conn->dead)
        return;
    if (nghttp2_submit_rst_stream(c->conn->session, NGHTTP2_FLAG_NONE, c->stream, code) != 0)
        conn_break(c->conn, E_NOMEM);
}

void gz_call_cancel(struct gz_call *c)
{
    struct gz_conn *conn = c->conn;

    c->live = false;
    if (c->deadline != NULL)
        event_del(c->deadline);
    call_reset(c, NGHTTP2_CANCEL);
    conn_flush(conn);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct gz_call *c = arg;
    struct gz_conn *conn = c->conn;

    (void)fd;
    (void)what;
    bool silent = conn->up && conn->reads == c->reads_then;
    call_reset(c, NGHTTP2_CANCEL);
    call_tell_end(c, E_TIMEOUT);
    if (silent && !conn->dead) {
        log_peer(LOG_WARN, "gazette.broker_silent", LF_STR("broker", conn->authority));
        conn->silent = true;
        conn_break(conn, E_AGAIN);
    }
    conn_flush(conn);
}

/* --- messages out --- */

static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct gz_call *c = source->ptr;
    size_t n = 0;

    (void)session;
    (void)stream;
    (void)arg;
    for (;;) {
        struct out_msg *m = STAILQ_FIRST(&c->out);
        if (m == NULL && n == 0 && c->live && !c->finishing && c->cb.on_drained != NULL) {
            c->cb.on_drained(c->cb.arg);
            m = STAILQ_FIRST(&c->out);
        }
        if (m == NULL || n == length)
            break;
        size_t part = m->n - m->sent < length - n ? m->n - m->sent : length - n;
        memcpy(buf + n, m->data + m->sent, part);
        n += part;
        m->sent += part;
        if (m->sent == m->n) {
            STAILQ_REMOVE_HEAD(&c->out, link);
            mem_free(m);
        }
    }
    if (c->finishing && STAILQ_EMPTY(&c->out))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (n == 0) {
        c->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

static void call_resume(struct gz_call *c)
{
    if (!c->deferred || c->stream == NO_STREAM || c->conn->dead)
        return;
    c->deferred = false;
    (void)nghttp2_session_resume_data(c->conn->session, c->stream);
    conn_flush(c->conn);
}

int gz_call_send(struct gz_call *c, struct span head, struct span body)
{
    size_t n = head.n + body.n;
    struct out_msg *m = n > UINT32_MAX ? NULL : mem_alloc(sizeof *m + FRAME_HEAD + n);

    if (m == NULL)
        return E_NOMEM;
    m->sent = 0;
    m->n = FRAME_HEAD + n;
    m->data[0] = 0; /* not compressed */
    be_store32(m->data + 1, (uint32_t)n);
    if (head.n > 0)
        memcpy(m->data + FRAME_HEAD, head.p, head.n);
    if (body.n > 0)
        memcpy(m->data + FRAME_HEAD + head.n, body.p, body.n);
    STAILQ_INSERT_TAIL(&c->out, m, link);
    call_resume(c);
    return 0;
}

void gz_call_finish(struct gz_call *c)
{
    c->finishing = true;
    call_resume(c);
}

/* --- messages in --- */

static void call_fault(struct gz_call *c, int err)
{
    call_reset(c, NGHTTP2_PROTOCOL_ERROR);
    call_tell_end(c, err);
}

static void call_data(struct gz_call *c, const uint8_t *p, size_t n)
{
    while (n > 0 && c->live) {
        if (c->head_n < FRAME_HEAD) {
            size_t part = FRAME_HEAD - c->head_n < n ? FRAME_HEAD - c->head_n : n;
            memcpy(c->head + c->head_n, p, part);
            c->head_n += part;
            p += part;
            n -= part;
            if (c->head_n < FRAME_HEAD)
                return;
        }
        size_t want = be_load32(c->head + 1);
        if (c->head[0] != 0 || want > GZ_MESSAGE_MAX) {
            call_fault(c, c->head[0] != 0 ? E_UNSUPPORTED : E_LIMIT);
            return;
        }
        if (c->in == NULL && n >= want) { /* whole: no copy */
            c->head_n = 0;
            c->cb.on_message(c->cb.arg, span_of(p, want));
            p += want;
            n -= want;
            continue;
        }
        if (c->in == NULL && (c->in = blob_new(want)) == NULL) {
            call_fault(c, E_NOMEM);
            return;
        }
        size_t part = want - c->in->len < n ? want - c->in->len : n;
        memcpy(c->in->data + c->in->len, p, part);
        c->in->len += part;
        p += part;
        n -= part;
        if (c->in->len == want) {
            struct blob *b = c->in;
            c->in = NULL;
            c->head_n = 0;
            c->cb.on_message(c->cb.arg, blob_span(b));
            blob_unref(b);
        }
    }
    /* An empty message ends with its head. */
    if (c->live && c->head_n == FRAME_HEAD && be_load32(c->head + 1) == 0) {
        c->head_n = 0;
        c->cb.on_message(c->cb.arg, span_of(NULL, 0));
    }
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                    size_t len, void *arg)
{
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    (void)arg;
    if (c != NULL)
        call_data(c, data, len);
    return 0;
}

/* Percent-encoded, as gRPC sends it. */
static void take_message(struct gz_call *c, struct span v)
{
    size_t n = 0;

    for (size_t i = 0; i < v.n && n + 1 < sizeof c->end.message; i++) {
        uint64_t byte;
        uint8_t hex[2];
        char ch = (char)v.p[i];
        if (ch == '%' && i + 2 < v.n) {
            for (size_t k = 0; k < 2; k++) {
                hex[k] = v.p[i + 1 + k];
                if (hex[k] >= 'A' && hex[k] <= 'F')
                    hex[k] = (uint8_t)(hex[k] - 'A' + 'a');
            }
            if (num_parse_hex(span_of(hex, 2), &byte) == 0) {
                ch = (char)byte;
                i += 2;
            }
        }
        c->end.message[n++] = (unsigned char)ch < 0x20 ? ' ' : ch;
    }
    c->end.message[n] = '\0';
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct span key = span_of(name, name_n), v = span_of(value, value_n);
    int64_t n;

    (void)flags;
    (void)arg;
    if (c == NULL)
        return 0;
    if (span_eq_str(key, ":status") && num_parse_i64(v, &n) == 0)
        c->http_status = (int)n;
    else if (span_eq_str(key, "grpc-status") && num_parse_i64(v, &n) == 0 && n >= 0 && n <= 64)
        c->end.grpc_status = (int)n;
    else if (span_eq_str(key, "grpc-message"))
        take_message(c, v);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct gz_conn *conn = arg;
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, stream);
    int err;

    if (c == NULL)
        return 0;
    if (c->end.grpc_status != GZ_NO_STATUS)
        err = err_of_status(c->end.grpc_status);
    else if (code == NGHTTP2_NO_ERROR && c->http_status != 0 && c->http_status != 200)
        err = c->http_status == 401 || c->http_status == 403 ? E_DENIED : E_SYNTAX;
    else
        err = E_AGAIN; /* reset, refused, or an end without trailers */
    if (err == 0 && (c->head_n > 0 || c->in != NULL))
        err = E_AGAIN; /* inside a message */
    c->stream = NO_STREAM;
    TAILQ_REMOVE(&conn->calls, c, link);
    if (c->starting) { /* it never began: gz_conn_call says so and frees it */
        c->refused = true;
        return 0;
    }
    call_tell_end(c, err);
    call_free(c);
    if (conn->draining && TAILQ_EMPTY(&conn->calls))
        conn_break(conn, E_AGAIN);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct gz_conn *conn = arg;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        conn->draining = true;
        log_event(LOG_INFO, "gazette.goaway", LF_STR("broker", conn->authority),
                  LF_UINT("code", frame->goaway.error_code));
        if (TAILQ_EMPTY(&conn->calls))
            conn_break(conn, E_AGAIN);
    }
    return 0;
}

/* --- the connection --- */

static void conn_flush(struct gz_conn *c)
{
    const uint8_t *p;
    ssize_t n;

    if (c->dead || !c->up || c->inside)
        return;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    while (!c->dead && evbuffer_get_length(out) < OUTPUT_HIGH) {
        c->inside = true;
        n = nghttp2_session_mem_send(c->session, &p);
        c->inside = false;
        if (n < 0) {
            conn_break(c, n == NGHTTP2_ERR_NOMEM ? E_NOMEM : E_IO);
            return;
        }
        if (n == 0)
            break;
        if (evbuffer_add(out, p, (size_t)n) < 0) {
            conn_break(c, E_NOMEM);
            return;
        }
    }
    if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
        conn_break(c, E_AGAIN);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct gz_conn *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    struct evbuffer_iovec part;

    c->heard = true;
    c->reads++;
    while (!c->dead && evbuffer_peek(in, -1, NULL, &part, 1) > 0 && part.iov_len > 0) {
        c->inside = true;
        ssize_t took = nghttp2_session_mem_recv(c->session, part.iov_base, part.iov_len);
        c->inside = false;
        if (took < 0) {
            conn_break(c, took == NGHTTP2_ERR_NOMEM ? E_NOMEM : E_AGAIN);
            return;
        }
        (void)evbuffer_drain(in, (size_t)took);
    }
    conn_flush(c);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_flush(arg);
}

static void set_socket(struct bufferevent *bev)
{
    evutil_socket_t fd = bufferevent_getfd(bev);
    int on = 1, ms = USER_TIMEOUT, idle = 20, every = 10;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

/* Why no connection came about: the certificate, what TLS says, or the socket. */
static void connect_fault(const struct gz_conn *c, char *out, size_t n)
{
    int code = EVUTIL_SOCKET_ERROR();
    const char *reason = code != 0 ? evutil_socket_error_to_string(code) : "closed by the peer";

    if (c->o.tls != NULL) {
        long verify = SSL_get_verify_result(bufferevent_openssl_get_ssl(c->bev));
        unsigned long tls = bufferevent_get_openssl_error(c->bev);
        const char *text = tls != 0 ? ERR_reason_error_string(tls) : NULL;
        if (verify != X509_V_OK) {
            (void)snprintf(out, n, "its certificate is refused: %s",
                           X509_verify_cert_error_string(verify));
            return;
        }
        if (text != NULL)
            reason = text;
    }
    (void)snprintf(out, n, "%s", reason);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct gz_conn *c = arg;

    if ((what & BEV_EVENT_CONNECTED) != 0) {
        c->up = true;
        event_del(c->connect_timer);
        set_socket(bev);
        conn_flush(c);
        return;
    }
    if (!c->heard) {
        char why[256];
        connect_fault(c, why, sizeof why);
        log_peer(LOG_WARN, "gazette.connect_failed", LF_STR("broker", c->authority),
                 LF_STR("reason", why));
    }
    conn_break(c, E_AGAIN);
}

static void on_connect_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct gz_conn *c = arg;

    (void)fd;
    (void)what;
    log_peer(LOG_WARN, "gazette.connect_failed", LF_STR("broker", c->authority),
             LF_STR("reason", "timed out"));
    conn_break(c, E_AGAIN);
}

static void on_reap(evutil_socket_t fd, short what, void *arg)
{
    struct gz_conn *c = arg;

    (void)fd;
    (void)what;
    c->o.on_gone(c->o.arg, c, c->heard && !c->silent);
    gz_conn_free(c, c->why);
}

void gz_conn_free(struct gz_conn *c, int err)
{
    struct gz_call *call;

    if (c == NULL)
        return;
    c->dead = true;
    while ((call = TAILQ_FIRST(&c->calls)) != NULL) {
        TAILQ_REMOVE(&c->calls, call, link);
        call->stream = NO_STREAM;
        call_tell_end(call, err);
        call_free(call);
    }
    if (c->session != NULL)
        nghttp2_session_del(c->session);
    if (c->bev != NULL)
        bufferevent_free(c->bev);
    if (c->reap != NULL)
        event_free(c->reap);
    if (c->connect_timer != NULL)
        event_free(c->connect_timer);
    mem_free(c->host);
    mem_free(c->authority);
    mem_free(c);
}

bool gz_conn_silent(struct gz_conn *c)
{
    bool silent = c->up && !c->dead && c->reads == c->reads_then && !TAILQ_EMPTY(&c->calls);

    c->reads_then = c->reads;
    c->quiet = silent && c->draining ? c->quiet + 1 : 0;
    if (c->quiet >= QUIET_MAX) /* it takes no calls to ask by; what runs on it goes on elsewhere */
        conn_break(c, E_AGAIN);
    return silent && !c->draining;
}

bool gz_conn_usable(const struct gz_conn *c)
{
    return !c->dead && !c->draining;
}

static int session_new(struct gz_conn *c)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    nghttp2_session_callbacks *cbs;
    int rc;

    if (nghttp2_session_callbacks_new(&cbs) != 0)
        return E_NOMEM;
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_chunk);
    nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame);
    rc = nghttp2_session_client_new(&c->session, cbs, c);
    nghttp2_session_callbacks_del(cbs);
    if (rc == 0)
        rc = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
                                     sizeof settings / sizeof settings[0]);
    if (rc == 0)
        rc = nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX);
    return rc == 0 ? 0 : E_NOMEM;
}

static struct bufferevent *socket_new(struct gz_conn *c)
{
    SSL_CTX *ctx = c->o.tls;
    SSL *ssl;

    if (ctx == NULL)
        return bufferevent_socket_new(c->o.base, -1, BEV_OPT_CLOSE_ON_FREE);
    if ((ssl = SSL_new(ctx)) == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    bool ok = X509_VERIFY_PARAM_set1_ip_asc(param, c->host) == 1;
    if (!ok) /* a name, not an address */
        ok = SSL_set1_host(ssl, c->host) == 1 && SSL_set_tlsext_host_name(ssl, c->host) == 1;
    if (!ok) {
        SSL_free(ssl);
        return NULL;
    }
    return bufferevent_openssl_socket_new(c->o.base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
                                          BEV_OPT_CLOSE_ON_FREE);
}

int gz_conn_new(const struct gz_conn_opts *o, struct gz_conn **out)
{
    const struct timeval limit = {o->connect_ms / 1000, (o->connect_ms % 1000) * 1000L};
    struct gz_conn *c = mem_zalloc(sizeof *c);
    size_t authority = strlen(o->host) + 16;
    int err = E_NOMEM;

    *out = NULL;
    if (c == NULL)
        return E_NOMEM;
    c->o = *o;
    TAILQ_INIT(&c->calls);
    if ((c->host = mem_strdup(o->host)) == NULL || (c->authority = mem_alloc(authority)) == NULL)
        goto out;
    (void)snprintf(c->authority, authority, strchr(o->host, ':') != NULL ? "[%s]:%u" : "%s:%u",
                   o->host, (unsigned)o->port);
    if ((c->reap = event_new(o->base, -1, 0, on_reap, c)) == NULL ||
        (c->connect_timer = evtimer_new(o->base, on_connect_timeout, c)) == NULL ||
        (err = session_new(c)) < 0)
        goto out;
    err = E_NOMEM;
    if ((c->bev = socket_new(c)) == NULL)
        goto out;
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    if (bufferevent_enable(c->bev, EV_READ | EV_WRITE) < 0 ||
        event_add(c->connect_timer, &limit) < 0)
        goto out;
    if (bufferevent_socket_connect_hostname(c->bev, o->evdns, AF_UNSPEC, c->host, o->port) < 0) {
        err = E_AGAIN;
        goto out;
    }
    *out = c;
    return 0;
out:
    gz_conn_free(c, err);
    return err;
}

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = NGHTTP2_NV_FLAG_NONE};
}

int gz_conn_call(struct gz_conn *conn, const char *method, const char *token, int64_t timeout_ms,
                 const struct gz_call_cb *cb, struct gz_call **out)
{
    const struct timeval limit = {timeout_ms / 1000, (timeout_ms % 1000) * 1000L};
    struct gz_call *c = mem_zalloc(sizeof *c);
    char path[64], *bearer = NULL;
    nghttp2_nv nv[8];
    size_t n = 0;
    int err = E_NOMEM;

    *out = NULL;
    if (c == NULL)
        return E_NOMEM;
    if (!gz_conn_usable(conn)) {
        mem_free(c);
        return E_AGAIN;
    }
    c->conn = conn;
    c->reads_then = conn->reads;
    c->cb = *cb;
    c->live = true;
    c->stream = NO_STREAM;
    c->end.grpc_status = GZ_NO_STATUS;
    STAILQ_INIT(&c->out);
    (void)snprintf(path, sizeof path, "/protocol.Journal/%s", method);
    nv[n++] = pair(":method", "POST");
    nv[n++] = pair(":scheme", conn->o.tls != NULL ? "https" : "http");
    nv[n++] = pair(":authority", conn->authority);
    nv[n++] = pair(":path", path);
    nv[n++] = pair("te", "trailers");
    nv[n++] = pair("content-type", "application/grpc");
    nv[n++] = pair("user-agent", "sluice");
    if (token != NULL) {
        size_t bytes = strlen(token) + sizeof "Bearer ";
        if ((bearer = mem_alloc(bytes)) == NULL)
            goto out;
        (void)snprintf(bearer, bytes, "Bearer %s", token);
        nv[n] = pair("authorization", bearer);
        nv[n++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    if (timeout_ms > 0 && ((c->deadline = evtimer_new(conn->o.base, on_deadline, c)) == NULL ||
                           event_add(c->deadline, &limit) < 0))
        goto out;
    const nghttp2_data_provider source = {.source.ptr = c, .read_callback = on_source};
    c->stream = nghttp2_submit_request(conn->session, NULL, nv, n, &source, c);
    if (c->stream < 0) { /* out of memory, or of stream numbers */
        conn->draining = true;
        err = E_AGAIN;
        goto out;
    }
    TAILQ_INSERT_TAIL(&conn->calls, c, link);
    c->starting = true;
    conn_flush(conn);
    c->starting = false;
    if (c->refused) {
        err = E_AGAIN;
        goto out;
    }
    mem_free(bearer);
    *out = c;
    return 0;
out:
    mem_free(bearer);
    call_free(c);
    return err;
}
