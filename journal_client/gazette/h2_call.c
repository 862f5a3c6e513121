/*
 * Calls of a connection: streams of messages of gRPC. A call may be ended from inside any callback:
 * what nghttp2 still holds of it is a stream without an owner.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/writer.h"
#include "journal_client/gazette/h2_int.h"

void gz_call_free(struct gz_call *c)
{
    struct gz_out_msg *m;

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

void gz_call_tell_end(struct gz_call *c, int err)
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

void gz_call_reset(struct gz_call *c, uint32_t code)
{
    if (c->stream == GZ_NO_STREAM || c->conn->dead)
        return;
    if (nghttp2_submit_rst_stream(c->conn->session, NGHTTP2_FLAG_NONE, c->stream, code) != 0)
        gz_conn_break(c->conn, E_NOMEM);
}

void gz_call_cancel(struct gz_call *c)
{
    struct gz_conn *conn = c->conn;

    c->live = false;
    if (c->deadline != NULL)
        event_del(c->deadline);
    gz_call_reset(c, NGHTTP2_CANCEL);
    gz_conn_flush(conn);
}

void gz_call_on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct gz_call *c = arg;
    struct gz_conn *conn = c->conn;

    (void)fd;
    (void)what;
    bool silent = conn->up && conn->reads == c->reads_then;
    gz_call_reset(c, NGHTTP2_CANCEL);
    gz_call_tell_end(c, E_TIMEOUT);
    if (silent && !conn->dead) {
        log_peer(LOG_WARN, "gazette.broker_silent", LF_STR("broker", conn->authority));
        conn->silent = true;
        gz_conn_break(conn, E_AGAIN);
    }
    gz_conn_flush(conn);
}

/* --- messages out --- */

ssize_t gz_call_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct gz_call *c = source->ptr;
    size_t n = 0;

    (void)session;
    (void)stream;
    (void)arg;
    for (;;) {
        struct gz_out_msg *m = STAILQ_FIRST(&c->out);
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
    if (!c->deferred || c->stream == GZ_NO_STREAM || c->conn->dead)
        return;
    c->deferred = false;
    (void)nghttp2_session_resume_data(c->conn->session, c->stream);
    gz_conn_flush(c->conn);
}

int gz_call_send(struct gz_call *c, struct span head, struct span body)
{
    size_t n = head.n + body.n;
    struct gz_out_msg *m = n > UINT32_MAX ? NULL : mem_alloc(sizeof *m + GZ_FRAME_HEAD + n);

    if (m == NULL)
        return E_NOMEM;
    m->sent = 0;
    m->n = GZ_FRAME_HEAD + n;
    m->data[0] = 0; /* not compressed */
    be_store32(m->data + 1, (uint32_t)n);
    if (head.n > 0)
        memcpy(m->data + GZ_FRAME_HEAD, head.p, head.n);
    if (body.n > 0)
        memcpy(m->data + GZ_FRAME_HEAD + head.n, body.p, body.n);
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
    gz_call_reset(c, NGHTTP2_PROTOCOL_ERROR);
    gz_call_tell_end(c, err);
}

void gz_call_data(struct gz_call *c, const uint8_t *p, size_t n)
{
    while (n > 0 && c->live) {
        if (c->head_n < GZ_FRAME_HEAD) {
            size_t part = GZ_FRAME_HEAD - c->head_n < n ? GZ_FRAME_HEAD - c->head_n : n;
            memcpy(c->head + c->head_n, p, part);
            c->head_n += part;
            p += part;
            n -= part;
            if (c->head_n < GZ_FRAME_HEAD)
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
    if (c->live && c->head_n == GZ_FRAME_HEAD && be_load32(c->head + 1) == 0) {
        c->head_n = 0;
        c->cb.on_message(c->cb.arg, span_of(NULL, 0));
    }
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

void gz_call_header(struct gz_call *c, struct span key, struct span value)
{
    int64_t n;

    if (span_eq_str(key, ":status") && num_parse_i64(value, &n) == 0)
        c->http_status = (int)n;
    else if (span_eq_str(key, "grpc-status") && num_parse_i64(value, &n) == 0 && n >= 0 && n <= 64)
        c->end.grpc_status = (int)n;
    else if (span_eq_str(key, "grpc-message"))
        take_message(c, value);
}

int gz_call_outcome(const struct gz_call *c, uint32_t code)
{
    int err;

    if (c->end.grpc_status != GZ_NO_STATUS)
        err = err_of_status(c->end.grpc_status);
    else if (code == NGHTTP2_NO_ERROR && c->http_status != 0 && c->http_status != 200)
        err = c->http_status == 401 || c->http_status == 403 ? E_DENIED : E_SYNTAX;
    else
        err = E_AGAIN; /* reset, refused, or an end without trailers */
    if (err == 0 && (c->head_n > 0 || c->in != NULL))
        err = E_AGAIN; /* inside a message */
    return err;
}
