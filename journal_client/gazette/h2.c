/*
 * One HTTP/2 connection. nghttp2 works on memory; a bufferevent (dial.c) moves the bytes. Stream
 * windows are small, the connection's is at its maximum, so that one slow call does not stall the
 * others.
 *
 * A connection that breaks is torn down in a turn of its own (`reap`), never from inside a callback
 * of its session. One that is told to go away takes no calls; those that wait by intent (watches,
 * tails) are ended soon, since a broker does not leave before its last call.
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/h2_int.h"

#define STREAM_WINDOW (1 << 20)
#define OUTPUT_HIGH   (1u << 20)
#define QUIET_MAX     3 /* periods that a connection told to go away may be silent */
#define LEAVE_S       1

void gz_conn_break(struct gz_conn *c, int err)
{
    if (c->dead)
        return;
    c->dead = true;
    c->why = err;
    event_active(c->reap, EV_TIMEOUT, 0);
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                    size_t len, void *arg)
{
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    (void)arg;
    if (c != NULL)
        gz_call_data(c, data, len);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    (void)arg;
    if (c != NULL)
        gz_call_header(c, span_of(name, name_n), span_of(value, value_n));
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
    struct gz_conn *conn = arg;
    struct gz_call *c = nghttp2_session_get_stream_user_data(session, stream);

    if (c == NULL)
        return 0;
    int err = gz_call_outcome(c, code);
    c->end.refused = code == NGHTTP2_REFUSED_STREAM;
    c->stream = GZ_NO_STREAM;
    TAILQ_REMOVE(&conn->calls, c, link);
    conn->calls_n--;
    if (c->starting) { /* it never began: gz_conn_call says so and frees it */
        c->refused = true;
        return 0;
    }
    gz_call_tell_end(c, err);
    gz_call_free(c);
    if (conn->draining && TAILQ_EMPTY(&conn->calls))
        gz_conn_break(conn, E_AGAIN);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    static const struct timeval soon = {LEAVE_S, 0};
    struct gz_conn *conn = arg;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        conn->draining = true;
        log_event(LOG_INFO, "gazette.goaway", LF_STR("broker", conn->authority),
                  LF_UINT("code", frame->goaway.error_code));
        if (TAILQ_EMPTY(&conn->calls))
            gz_conn_break(conn, E_AGAIN);
        else if (!event_pending(conn->leave, EV_TIMEOUT, NULL))
            (void)event_add(conn->leave, &soon);
    }
    return 0;
}

/* Those with a deadline are about to end anyway, and what they are at may not be done twice. */
static void on_leave(evutil_socket_t fd, short what, void *arg)
{
    struct gz_conn *conn = arg;
    struct gz_call *c;

    (void)fd;
    (void)what;
    if (conn->dead)
        return;
    conn->inside = true; /* an owner that cancels another call must not free it under us */
    TAILQ_FOREACH(c, &conn->calls, link)
    {
        if (c->deadline != NULL)
            continue;
        gz_call_reset(c, NGHTTP2_CANCEL);
        gz_call_tell_end(c, E_AGAIN);
    }
    conn->inside = false;
    gz_conn_flush(conn);
}

/* --- the connection --- */

void gz_conn_flush(struct gz_conn *c)
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
            gz_conn_break(c, n == NGHTTP2_ERR_NOMEM ? E_NOMEM : E_IO);
            return;
        }
        if (n == 0)
            break;
        if (evbuffer_add(out, p, (size_t)n) < 0) {
            gz_conn_break(c, E_NOMEM);
            return;
        }
    }
    if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
        gz_conn_break(c, E_AGAIN);
}

void gz_conn_on_read(struct bufferevent *bev, void *arg)
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
            gz_conn_break(c, took == NGHTTP2_ERR_NOMEM ? E_NOMEM : E_AGAIN);
            return;
        }
        (void)evbuffer_drain(in, (size_t)took);
    }
    gz_conn_flush(c);
}

void gz_conn_on_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    gz_conn_flush(arg);
}

void gz_conn_up(struct gz_conn *c)
{
    c->up = true;
    gz_conn_flush(c);
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
        c->calls_n--;
        call->stream = GZ_NO_STREAM;
        gz_call_tell_end(call, err);
        gz_call_free(call);
    }
    gz_dial_fini(c);
    if (c->session != NULL)
        nghttp2_session_del(c->session);
    if (c->bev != NULL)
        bufferevent_free(c->bev);
    if (c->reap != NULL)
        event_free(c->reap);
    if (c->leave != NULL)
        event_free(c->leave);
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
        gz_conn_break(c, E_AGAIN);
    return silent && !c->draining && gz_conn_room(c);
}

bool gz_conn_usable(const struct gz_conn *c)
{
    return !c->dead && !c->draining;
}

bool gz_conn_room(const struct gz_conn *c)
{
    return c->calls_n <
           nghttp2_session_get_remote_settings(c->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
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

int gz_conn_new(const struct gz_conn_opts *o, struct gz_conn **out)
{
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
        (c->leave = evtimer_new(o->base, on_leave, c)) == NULL)
        goto out;
    if ((err = session_new(c)) < 0 || (err = gz_dial_start(c)) < 0)
        goto out;
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

static void bearer_free(char *bearer)
{
    if (bearer != NULL)
        mem_wipe(bearer, strlen(bearer));
    mem_free(bearer);
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
    c->stream = GZ_NO_STREAM;
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
    if (timeout_ms > 0 &&
        ((c->deadline = evtimer_new(conn->o.base, gz_call_on_deadline, c)) == NULL ||
         event_add(c->deadline, &limit) < 0))
        goto out;
    const nghttp2_data_provider source = {.source.ptr = c, .read_callback = gz_call_source};
    c->stream = nghttp2_submit_request(conn->session, NULL, nv, n, &source, c);
    if (c->stream < 0) { /* out of memory, or of stream numbers */
        conn->draining = true;
        err = E_AGAIN;
        goto out;
    }
    TAILQ_INSERT_TAIL(&conn->calls, c, link);
    conn->calls_n++;
    c->starting = true;
    gz_conn_flush(conn);
    c->starting = false;
    if (c->refused) {
        err = E_AGAIN;
        goto out;
    }
    bearer_free(bearer);
    *out = c;
    return 0;
out:
    bearer_free(bearer);
    gz_call_free(c);
    return err;
}
