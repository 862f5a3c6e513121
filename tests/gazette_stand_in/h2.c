/*
 * The server's side of HTTP/2: connections, streams, response headers and trailers. nghttp2 works
 * on memory; a bufferevent moves the bytes. What a call says is put into its output by call.c; it
 * is taken from there as the stream's window allows.
 *
 * A connection that breaks is torn down in a turn of its own (`reap`), never from inside a callback
 * of its session.
 */
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define OUTPUT_HIGH   (256u << 10)
#define STREAM_WINDOW (1 << 20)
#define FIRST_CALL_MS 7500 /* a connection that stays silent so long is closed */
#define NV_TEXT(s)    (uint8_t *)(uintptr_t)(s)
#define NV(name, text)                                                                             \
    {                                                                                              \
        NV_TEXT(name), NV_TEXT(text), strlen(name), strlen(text), NGHTTP2_NV_FLAG_NONE             \
    }

struct si_conn {
    TAILQ_ENTRY(si_conn) link;
    struct stand_in *si;
    struct bufferevent *bev;
    nghttp2_session *session;
    struct event *reap, *first, *later;
    bool inside; /* of the session */
    bool dead, with_rst;
    struct si_calls calls;
};

static void conn_flush(struct si_conn *c);

/* Not at once: callers walk lists of calls, and a flush may end calls. */
static void conn_flush_later(struct si_conn *c)
{
    if (!c->dead && !c->inside)
        event_active(c->later, EV_TIMEOUT, 0);
}

static void conn_break(struct si_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    event_active(c->reap, EV_TIMEOUT, 0);
}

void si_conn_free(struct si_conn *c)
{
    struct si_call *call;

    TAILQ_REMOVE(&c->si->conns, c, link);
    c->dead = true;
    while ((call = TAILQ_FIRST(&c->calls)) != NULL) {
        TAILQ_REMOVE(&c->calls, call, link);
        si_call_fini(call);
    }
    if (c->session != NULL)
        nghttp2_session_del(c->session);
    if (c->bev != NULL) {
        const struct linger now = {.l_onoff = 1};
        if (c->with_rst)
            (void)setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        bufferevent_free(c->bev);
    }
    if (c->reap != NULL)
        event_free(c->reap);
    if (c->first != NULL)
        event_free(c->first);
    if (c->later != NULL)
        event_free(c->later);
    mem_free(c);
}

void si_conns_free(struct stand_in *si)
{
    struct si_conn *c;

    while ((c = TAILQ_FIRST(&si->conns)) != NULL)
        si_conn_free(c);
}

static void on_reap(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    si_conn_free(arg);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    conn_flush(arg);
}

static void on_silent(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    conn_break(arg);
}

/* --- calls out --- */

static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct si_call *c = source->ptr;
    char status[16];

    (void)arg;
    if (evbuffer_get_length(c->out) == 0 && !c->out_end)
        si_call_pull(c);
    int n = evbuffer_remove(c->out, buf, length);
    if (n < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (evbuffer_get_length(c->out) > 0)
        return n;
    if (!c->out_end)
        return n > 0 ? n : NGHTTP2_ERR_DEFERRED;
    if (c->cut && c->fault.value != 0 && n > 0)
        return n; /* the half goes out first */
    if (c->cut && c->fault.value == 1)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM */
    if (c->cut && c->fault.value == 2) {
        si_conn_reset(c->conn);
        return NGHTTP2_ERR_DEFERRED;
    }
    (void)snprintf(status, sizeof status, "%d", c->grpc_status);
    const nghttp2_nv nv[] = {NV("grpc-status", status), NV("grpc-message", c->message)};
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    c->submitted_end = true;
    if (nghttp2_submit_trailer(session, stream, nv, 2) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return n;
}

void si_call_flush(struct si_call *c)
{
    struct si_conn *conn = c->conn;
    char status[16];
    nghttp2_data_provider source = {.source.ptr = c, .read_callback = on_source};
    int rv = 0;

    if (c->dead || conn->dead)
        return;
    if (!c->headers_sent && evbuffer_get_length(c->out) == 0 && !c->out_end)
        si_call_pull(c);
    if (!c->headers_sent && evbuffer_get_length(c->out) == 0 && c->out_end) { /* trailers alone */
        (void)snprintf(status, sizeof status, "%d", c->grpc_status);
        const nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc"),
                                 NV("grpc-status", status), NV("grpc-message", c->message)};
        c->headers_sent = c->submitted_end = true;
        rv = nghttp2_submit_response(conn->session, c->stream, nv, 4, NULL);
    } else if (!c->headers_sent && evbuffer_get_length(c->out) > 0) {
        const nghttp2_nv nv[] = {NV(":status", "200"), NV("content-type", "application/grpc")};
        c->headers_sent = true;
        rv = nghttp2_submit_response(conn->session, c->stream, nv, 2, &source);
    } else if (c->headers_sent && !c->submitted_end) {
        (void)nghttp2_session_resume_data(conn->session, c->stream);
    }
    if (rv != 0)
        conn_break(conn);
    conn_flush_later(conn);
}

void si_call_reset(struct si_call *c, uint32_t code)
{
    if (c->dead || c->conn->dead)
        return;
    c->dead = true;
    if (nghttp2_submit_rst_stream(c->conn->session, NGHTTP2_FLAG_NONE, c->stream,
                                  code == 0 ? NGHTTP2_INTERNAL_ERROR : code) != 0)
        conn_break(c->conn);
    conn_flush_later(c->conn);
}

void si_conn_goaway(struct si_conn *c)
{
    if (c->dead)
        return;
    (void)nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(c->session),
                                NGHTTP2_NO_ERROR, NULL, 0);
    conn_flush_later(c);
}

void si_conn_reset(struct si_conn *c)
{
    c->with_rst = true;
    conn_break(c);
}

void si_conn_each(struct stand_in *si, void (*fn)(struct si_call *c, void *arg), void *arg)
{
    struct si_conn *conn;
    struct si_call *c, *next;

    TAILQ_FOREACH(conn, &si->conns, link)
    {
        for (c = TAILQ_FIRST(&conn->calls); c != NULL; c = next) {
            next = TAILQ_NEXT(c, link);
            if (!c->dead && !c->out_end)
                fn(c, arg);
        }
    }
}

/* --- calls in --- */

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct si_conn *conn = arg;
    struct si_call *c;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if ((c = mem_zalloc(sizeof *c)) == NULL)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    *c = (struct si_call){.si = conn->si, .conn = conn, .method = -1};
    c->stream = frame->hd.stream_id;
    c->in = evbuffer_new();
    c->out = evbuffer_new();
    c->log = evbuffer_new();
    TAILQ_INSERT_TAIL(&conn->calls, c, link);
    if (c->in == NULL || c->out == NULL || c->log == NULL)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    (void)nghttp2_session_set_stream_user_data(session, c->stream, c);
    event_del(conn->first);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct si_call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct span k = span_of(name, name_n);
    char *text;

    (void)flags;
    (void)arg;
    if (c == NULL)
        return 0;
    if ((text = mem_strndup((const char *)value, value_n)) == NULL)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (span_eq_str(k, ":path") && c->method < 0) {
        si_call_headers(c, text);
    } else if (span_eq_str(k, "authorization") && c->authorization == NULL) {
        c->authorization = text;
        text = NULL;
    } else if (span_eq_str(k, "content-type") && c->content_type == NULL) {
        c->content_type = text;
        text = NULL;
    }
    mem_free(text);
    return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                    size_t n, void *arg)
{
    struct si_call *c = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    (void)arg;
    if (c == NULL || c->dead || c->out_end)
        return 0;
    if (evbuffer_add(c->in, data, n) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    si_call_data(c);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct si_conn *conn = arg;
    struct si_call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (c == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS &&
        (c->content_type == NULL || strcmp(c->content_type, "application/grpc") != 0)) {
        conn_break(conn);
        return 0;
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && !c->in_end) {
        c->in_end = true;
        if (!c->dead && !c->out_end)
            si_call_data(c);
    }
    return 0;
}

/* An answer that comes before the request's end: the stream is not wanted any more. It must not be
 * said before the trailers are out. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct si_call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)arg;
    if (c != NULL && frame->hd.type == NGHTTP2_HEADERS && c->submitted_end && !c->in_end &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, c->stream, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct si_conn *conn = arg;
    struct si_call *c = nghttp2_session_get_stream_user_data(session, stream);

    (void)code;
    if (c == NULL)
        return 0;
    TAILQ_REMOVE(&conn->calls, c, link);
    si_call_fini(c);
    return 0;
}

/* --- the socket --- */

static void conn_flush(struct si_conn *c)
{
    const uint8_t *p;
    ssize_t n;

    if (c->dead || c->inside)
        return;
    c->inside = true;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    while (evbuffer_get_length(out) < OUTPUT_HIGH) {
        n = nghttp2_session_mem_send(c->session, &p);
        if (n > 0 && evbuffer_add(out, p, (size_t)n) == 0)
            continue;
        if (n != 0)
            conn_break(c);
        break;
    }
    c->inside = false;
    if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session) &&
        evbuffer_get_length(out) == 0)
        conn_break(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct si_conn *c = arg;
    struct evbuffer *in = bufferevent_get_input(bev);

    while (!c->dead && evbuffer_get_length(in) > 0) {
        size_t n = evbuffer_get_contiguous_space(in);
        c->inside = true;
        /* pullup-ok: what lies in one piece already */
        ssize_t used = nghttp2_session_mem_recv(c->session, evbuffer_pullup(in, (ev_ssize_t)n), n);
        c->inside = false;
        if (used < 0) {
            conn_break(c);
            return;
        }
        (void)evbuffer_drain(in, (size_t)used);
    }
    conn_flush(c);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_flush(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
        conn_break(arg);
}

static int session_new(struct si_conn *c)
{
    nghttp2_session_callbacks *cbs = NULL;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16384},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->si->o.max_streams},
    };
    size_t n = c->si->o.max_streams > 0 ? 3 : 2;

    if (nghttp2_session_callbacks_new(&cbs) != 0)
        return E_NOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cbs, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cbs, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, on_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cbs, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, on_close);
    int rv = nghttp2_session_server_new(&c->session, cbs, c);
    nghttp2_session_callbacks_del(cbs);
    if (rv != 0 || nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, n) != 0 ||
        nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX) != 0)
        return E_NOMEM;
    return 0;
}

void si_conn_accept(struct stand_in *si, evutil_socket_t fd)
{
    const struct timeval silent = {FIRST_CALL_MS / 1000, (FIRST_CALL_MS % 1000) * 1000};
    struct si_conn *c = mem_zalloc(sizeof *c);
    int one = 1;

    if (c == NULL) {
        (void)evutil_closesocket(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->si = si;
    TAILQ_INIT(&c->calls);
    TAILQ_INSERT_TAIL(&si->conns, c, link);
    c->reap = event_new(si->evb, -1, 0, on_reap, c);
    c->first = evtimer_new(si->evb, on_silent, c);
    c->later = event_new(si->evb, -1, 0, on_later, c);
    if ((c->bev = bufferevent_socket_new(si->evb, fd, BEV_OPT_CLOSE_ON_FREE)) == NULL)
        (void)evutil_closesocket(fd);
    if (c->reap == NULL || c->first == NULL || c->later == NULL || c->bev == NULL ||
        session_new(c) < 0) {
        si_conn_free(c);
        return;
    }
    (void)evtimer_add(c->first, &silent);
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    (void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    conn_flush(c);
}
