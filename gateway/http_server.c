/*
 * Listener and connections of the HTTP server: reads heads and bodies, refuses what is too much,
 * and keeps the deadlines. Answers are in http_reply.c.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/http_int.h"
#include "gateway/listener.h"

#define TICK_MS 500
/* Also what is read ahead while a request is being handled, to see that the client left. */
#define READ_ONCE ((size_t)64 * 1024)
/* A client with more than this of answers unread is not asked what else it wants. */
#define UNSENT_MAX ((size_t)64 * 1024)

static void look(struct http_conn *c);

int64_t http_now(const struct http_server *s)
{
    return clock_mono_ms(s->opts.clock);
}

void http_server_unref(struct http_server *s)
{
    if (s->freed && s->rqs_n == 0)
        mem_free(s);
}

/* --- connections --- */

static int64_t deadline_of(const struct http_conn *c)
{
    int64_t body_ms = HTTP_BODY_MS;

    if (c->connecting)
        return c->since_ms + c->s->opts.handshake_ms;
    switch (c->state) {
    case HTTP_HEADING:
        return c->since_ms + HTTP_HEAD_MS;
    case HTTP_BODYING:
        if (c->rq != NULL)
            body_ms += (int64_t)(c->rq->charged / HTTP_BODY_BYTES_MS);
        return c->since_ms + body_ms;
    case HTTP_LINGERING:
        return c->since_ms + HTTP_LINGER_MS;
    case HTTP_HANDLING:
        if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
            return INT64_MAX;
        return c->since_ms + HTTP_IDLE_MS;
    case HTTP_IDLE:
        break;
    }
    return c->since_ms + HTTP_IDLE_MS;
}

void http_conn_enter(struct http_conn *c, enum http_state state)
{
    c->state = state;
    c->since_ms = http_now(c->s);
}

static void conn_free(struct http_conn *c)
{
    bufferevent_free(c->bev);
    mem_free(c);
}

void http_conn_close(struct http_conn *c)
{
    struct http_rq *rq = c->rq;

    if (c->s == NULL)
        return; /* already */
    LIST_REMOVE(c, link);
    c->s->conns_n--;
    bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
    (void)bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    c->s = NULL;
    c->rq = NULL;
    if (rq != NULL) {
        void (*lost)(void *) = rq->lost;

        rq->conn = NULL;
        rq->lost = NULL;
        if (!rq->handed)
            http_rq_free(rq);
        else if (lost != NULL)
            lost(rq->lost_arg);
    }
    if (c->reading)
        c->dead = true; /* whoever looks at its input frees it */
    else
        conn_free(c);
}

static bool output_left(const struct http_conn *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev)) > 0;
}

/* Between requests: the next one waits in the input, then in the socket, until on_write. The
 * deadline of the idle state runs meanwhile, and only bytes that leave move it. */
static bool too_much_unsent(const struct http_conn *c)
{
    return c->state == HTTP_IDLE &&
           evbuffer_get_length(bufferevent_get_output(c->bev)) > UNSENT_MAX;
}

void http_conn_answered(struct http_conn *c)
{
    http_conn_enter(c, c->close ? HTTP_HANDLING : HTTP_IDLE);
    (void)bufferevent_enable(c->bev, EV_WRITE);
    if (c->close && !output_left(c))
        http_conn_close(c);
    else if (!c->close && !c->reading)
        look(c); /* the next request may be here already */
}

/* --- reading --- */

/* Takes n more bytes out of the budget of bodies. */
static bool charge(struct http_conn *c, uint64_t n)
{
    struct http_server *s = c->s;
    size_t budget = s->opts.body_budget_bytes;

    if (n > budget || s->body_bytes > budget - (size_t)n)
        return false;
    s->body_bytes += (size_t)n;
    c->rq->charged += (size_t)n;
    return true;
}

static void too_long(struct http_conn *c, uint64_t n)
{
    char text[128];

    (void)snprintf(text, sizeof text, "the body has %s%llu bytes, the limit is %zu",
                   c->rq->head.chunked ? "at least " : "", (unsigned long long)n,
                   c->s->opts.max_body_bytes);
    http_refuse(c->rq, 413, text);
}

static void begin_body(struct http_conn *c)
{
    struct http_rq *rq = c->rq;
    const char *why = "";
    int status = c->s->opts.admit == NULL ? 0 : c->s->opts.admit(c->s->opts.arg, rq, &why);

    if (status != 0) {
        http_refuse(rq, status, why);
        return;
    }
    if (rq->head.length > c->s->opts.max_body_bytes) {
        too_long(c, rq->head.length);
        return;
    }
    if (!charge(c, rq->head.length)) {
        http_refuse(rq, 503, "too many bytes are being published at once; try again");
        return;
    }
    if (rq->head.length > 0)
        wr_reserve(&rq->body, (size_t)rq->head.length);
    if (wr_err(&rq->body) < 0) {
        http_refuse(rq, 503, "out of memory");
        return;
    }
    memset(&c->chunks, 0, sizeof c->chunks);
    http_conn_enter(c, HTTP_BODYING);
    if (rq->head.expect_continue && (rq->head.chunked || rq->head.length > 0) &&
        evbuffer_get_length(bufferevent_get_input(c->bev)) == 0)
        (void)evbuffer_add_printf(bufferevent_get_output(c->bev), "HTTP/1.1 100 Continue\r\n\r\n");
}

/* False: more bytes are needed. */
static bool read_head(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    size_t have = evbuffer_get_length(in), n = have < HTTP_HEAD_MAX ? have : HTTP_HEAD_MAX;
    const uint8_t *p;
    const char *why = "the head of the request is too long";
    int status = 431;

    if (have == 0)
        return false;
    if (c->state == HTTP_IDLE) {
        c->scanned = 0;
        http_conn_enter(c, HTTP_HEADING);
    }
    /* pullup-ok: input, at most HTTP_HEAD_MAX */
    if ((p = evbuffer_pullup(in, (ev_ssize_t)n)) == NULL) {
        http_conn_close(c);
        return false;
    }
    size_t end = http_head_end(span_of(p, n), c->scanned);
    c->scanned = n;
    if (end == 0 && have < HTTP_HEAD_MAX)
        return false;
    if ((c->rq = http_rq_new(c)) == NULL) {
        http_conn_close(c);
        return false;
    }
    if (end > 0)
        status = http_head_parse(span_of(p, end), &c->rq->arena, &c->rq->head, &why);
    if (status != 0) {
        http_refuse(c->rq, status, why);
        return true;
    }
    (void)evbuffer_drain(in, end);
    begin_body(c);
    return true;
}

static bool read_length(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct http_rq *rq = c->rq;
    size_t left = (size_t)rq->head.length - wr_len(&rq->body);

    while (left > 0 && evbuffer_get_length(in) > 0) {
        struct evbuffer_iovec v;

        if (evbuffer_peek(in, -1, NULL, &v, 1) < 1)
            return false;
        size_t n = v.iov_len < left ? v.iov_len : left;
        wr_bytes(&rq->body, v.iov_base, n);
        (void)evbuffer_drain(in, n);
        left -= n;
    }
    return left == 0;
}

/* True: the body is whole, or was refused (the state tells). */
static bool read_chunks(struct http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct http_rq *rq = c->rq;

    while (evbuffer_get_length(in) > 0) {
        struct evbuffer_iovec v;
        struct span data;
        size_t used;

        if (evbuffer_peek(in, -1, NULL, &v, 1) < 1)
            return false;
        enum http_chunk_step step =
            http_chunk_next(&c->chunks, span_of(v.iov_base, v.iov_len), &used, &data);
        if (step == HTTP_CHUNK_DATA)
            wr_span(&rq->body, data);
        (void)evbuffer_drain(in, used);
        if (step == HTTP_CHUNK_DONE)
            return true;
        if (step == HTTP_CHUNK_FAULT) {
            http_refuse(rq, 400, "malformed chunk");
            return true;
        }
        if (step != HTTP_CHUNK_SIZE)
            continue;
        if (c->chunks.left > c->s->opts.max_body_bytes - rq->charged) {
            too_long(c, c->chunks.left + rq->charged);
            return true;
        }
        if (!charge(c, c->chunks.left)) {
            http_refuse(rq, 503, "too many bytes are being published at once; try again");
            return true;
        }
    }
    return false;
}

static bool read_body(struct http_conn *c)
{
    struct http_rq *rq = c->rq;

    ASSERT(rq != NULL);
    if (!(rq->head.chunked ? read_chunks(c) : read_length(c)))
        return false;
    if (c->state != HTTP_BODYING)
        return true;
    if (wr_err(&rq->body) < 0) {
        http_refuse(rq, 503, "out of memory");
        return true;
    }
    http_conn_enter(c, HTTP_HANDLING);
    rq->handed = true;
    c->s->opts.handle(c->s->opts.arg, rq);
    return true;
}

/* Goes on with what has arrived, as far as it goes. */
static void look(struct http_conn *c)
{
    bool more = true;

    c->reading = true;
    while (more && c->s != NULL) {
        switch (c->state) {
        case HTTP_IDLE:
        case HTTP_HEADING:
            more = !c->ended || evbuffer_get_length(bufferevent_get_input(c->bev)) > 0;
            more = more && !too_much_unsent(c) && read_head(c);
            break;
        case HTTP_BODYING:
            more = read_body(c);
            break;
        case HTTP_HANDLING:
            more = false;
            break;
        case HTTP_LINGERING:
            (void)evbuffer_drain(bufferevent_get_input(c->bev), SIZE_MAX);
            more = false;
            break;
        }
    }
    c->reading = false;
    if (c->dead && c->s == NULL) {
        conn_free(c);
        return;
    }
    /* nobody waits for the rest of a request that will not come */
    if (c->ended && (c->rq == NULL ? !output_left(c) : !c->rq->handed))
        http_conn_close(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    look(arg);
}

/* All output is in the socket. */
static void on_write(struct bufferevent *bev, void *arg)
{
    struct http_conn *c = arg;
    void (*flushed)(void *) = c->flushed;

    c->since_ms = http_now(c->s);
    if (flushed != NULL) {
        c->flushed = NULL;
        flushed(c->flushed_arg);
        return;
    }
    if (c->state == HTTP_LINGERING) {
        (void)shutdown(bufferevent_getfd(bev),
                       SHUT_WR); /* the client reads the refusal, then EOF */
        if (c->ended)
            http_conn_close(c);
    } else if (c->rq == NULL && c->close) {
        http_conn_close(c);
    } else if (c->rq == NULL && !c->reading) {
        look(c); /* a request may have waited for this; who ended and left none is closed */
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct http_conn *c = arg;

    (void)bev;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        c->connecting = false;
        return;
    }
    c->ended = true;
    /* Who closed its half may still read the answer of a whole request. */
    if ((what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_ERROR) == 0 &&
        (c->rq != NULL || output_left(c)))
        look(c);
    else
        http_conn_close(c);
}

/* --- listener --- */

/* The longest idle connection makes room. */
static bool evict_idle(struct http_server *s)
{
    struct http_conn *c, *oldest = NULL;

    LIST_FOREACH(c, &s->conns, link)
    {
        if ((c->state == HTTP_IDLE || c->state == HTTP_LINGERING) && !output_left(c) &&
            (oldest == NULL || c->since_ms < oldest->since_ms))
            oldest = c;
    }
    if (oldest == NULL)
        return false;
    http_conn_close(oldest);
    return true;
}

static void on_socket(void *arg, int fd, const struct gw_listen *where, const struct sockaddr *peer,
                      socklen_t peer_bytes)
{
    struct http_server *s = arg;
    struct http_conn *c = mem_zalloc(sizeof *c);
    bool full = s->conns_n >= s->opts.max_conns && !evict_idle(s);

    (void)where;
    (void)peer_bytes;
    if (c != NULL)
        c->bev = s->opts.transport != NULL
                     ? s->opts.transport(s->opts.base, s->opts.transport_arg)
                     : bufferevent_socket_new(s->opts.base, -1, BEV_OPT_CLOSE_ON_FREE);
    /* a newcomer beyond the limit is told so; a flood of them is not */
    if (c == NULL || c->bev == NULL || s->conns_n >= 2 * (size_t)s->opts.max_conns ||
        bufferevent_setfd(c->bev, fd) < 0) {
        if (c != NULL && c->bev != NULL)
            bufferevent_free(c->bev);
        mem_free(c);
        close(fd);
        return;
    }
    c->s = s;
    peer_key_of(peer, &c->peer);
    LIST_INSERT_HEAD(&s->conns, c, link);
    s->conns_n++;
    c->connecting = s->opts.transport != NULL && s->opts.handshake_ms > 0;
    http_conn_enter(c, HTTP_IDLE);
    (void)bufferevent_set_max_single_read(c->bev, READ_ONCE);
    (void)bufferevent_set_max_single_write(c->bev, READ_ONCE);
    bufferevent_setwatermark(c->bev, EV_READ, 0, READ_ONCE);
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    if (full) {
        log_peer(LOG_WARN, "admin.connections_full", LF_UINT("max", s->opts.max_conns));
        http_error_write(s, bufferevent_get_output(c->bev), 503, "too many connections; try again",
                         span_of("", 0), false);
        c->close = true;
        http_conn_enter(c, HTTP_LINGERING);
    }
    if (bufferevent_enable(c->bev, EV_READ | EV_WRITE) < 0)
        http_conn_close(c);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct http_server *s = arg;
    int64_t now = http_now(s);
    struct http_conn *c, *next;

    (void)fd;
    (void)what;
    for (c = LIST_FIRST(&s->conns); c != NULL; c = next) {
        next = LIST_NEXT(c, link);
        size_t unsent = evbuffer_get_length(bufferevent_get_output(c->bev));
        if (unsent > 0 && unsent < c->unsent && c->state != HTTP_LINGERING)
            c->since_ms = now; /* it moves */
        c->unsent = unsent;
        if (now < deadline_of(c))
            continue;
        if (c->state == HTTP_BODYING)
            http_refuse(c->rq, 408, "the body did not arrive in time");
        else if (c->rq == NULL || !c->rq->handed || output_left(c))
            http_conn_close(c);
    }
}

/* --- life --- */

int http_server_start(const struct http_opts *opts, struct http_server **out, char *why,
                      size_t why_bytes)
{
    struct http_server *s = mem_zalloc(sizeof *s);
    struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    int err = E_NOMEM;

    *out = NULL;
    if (s == NULL)
        return E_NOMEM;
    s->opts = *opts;
    LIST_INIT(&s->conns);
    s->tick = event_new(opts->base, -1, EV_PERSIST, on_tick, s);
    if (s->tick == NULL || event_add(s->tick, &tick) < 0)
        goto out;
    if ((err = listener_open(opts->where, opts->base, on_socket, s, &s->listener, why, why_bytes)) <
            0 ||
        (err = listener_start(s->listener)) < 0)
        goto out;
    *out = s;
    s = NULL;
out:
    http_server_free(s);
    return err;
}

uint16_t http_server_port(const struct http_server *s)
{
    return listener_port(s->listener);
}

void http_server_drain(struct http_server *s)
{
    struct http_conn *c, *next;

    s->draining = true;
    listener_free(s->listener);
    s->listener = NULL;
    for (c = LIST_FIRST(&s->conns); c != NULL; c = next) {
        next = LIST_NEXT(c, link);
        if (c->rq == NULL && !output_left(c))
            http_conn_close(c);
        else
            c->close |= c->rq == NULL || c->rq->handed;
    }
}

size_t http_server_unsent(const struct http_server *s)
{
    const struct http_conn *c;
    size_t n = 0;

    LIST_FOREACH(c, &s->conns, link)
    n += output_left(c) && c->state != HTTP_LINGERING;
    return n;
}

size_t http_server_conns(const struct http_server *s)
{
    return s->conns_n;
}

size_t http_server_bodies(const struct http_server *s)
{
    return s->body_bytes;
}

void http_server_free(struct http_server *s)
{
    struct http_conn *c;

    if (s == NULL)
        return;
    listener_free(s->listener);
    if (s->tick != NULL)
        event_free(s->tick);
    while ((c = LIST_FIRST(&s->conns)) != NULL)
        http_conn_close(c);
    s->freed = true;
    http_server_unref(s);
}
