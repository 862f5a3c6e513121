/*
 * A connection between its two buffers (conn.h). Refuses what no Kafka client sends: a frame length
 * that is negative or above max_request_bytes. One function changes the state; its legal changes
 * are a table. Runs on the worker's thread.
 */
#include "gateway/conn.h"

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/writer.h"
#include "gateway/metrics.h"

#define FRAME_PREFIX 4

/* clang-format off */
static const bool legal[CONN_STATES][CONN_STATES] = {
    [CONN_READING]  = {[CONN_BLOCKED] = true, [CONN_FLUSHING] = true, [CONN_CLOSED] = true},
    [CONN_BLOCKED]  = {[CONN_READING] = true, [CONN_FLUSHING] = true, [CONN_CLOSED] = true},
    [CONN_FLUSHING] = {[CONN_CLOSED] = true},
    [CONN_CLOSED]   = {false},
};
/* clang-format on */

static int64_t now_ms(const struct conn *c)
{
    return clock_mono_ms(c->w->shared->clock);
}

static void set_state(struct conn *c, enum conn_state to)
{
    ASSERT(legal[c->state][to]);
    c->state = to;
    switch (to) {
    case CONN_READING:
        c->io->reading(c, true);
        break;
    case CONN_BLOCKED:
    case CONN_FLUSHING:
        c->io->reading(c, false);
        c->frame_ms = 0; /* it is we who do not read: no fault of the peer */
        break;
    case CONN_CLOSED:
        c->io->shut(c);
        if (c->mute_over != NULL)
            event_del(c->mute_over);
        LIST_REMOVE(c, link);
        c->w->conns_n--;
        c->w->input_granted -= c->granted;
        c->granted = 0;
        metric_add(M_CONNECTIONS_OPEN, -1);
        worker_bury(c->w, c);
        break;
    case CONN_STATES:
        break;
    }
}

static void note_input(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *arg)
{
    struct conn *c = arg;

    (void)buf;
    if (info->n_added == 0)
        return;
    c->bytes_in += info->n_added;
    c->active_ms = now_ms(c);
    metric_add(M_BYTES_IN, (int64_t)info->n_added);
}

static void note_output(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *arg)
{
    struct conn *c = arg;

    if (info->n_deleted > 0) {
        c->bytes_out += info->n_deleted;
        c->active_ms = now_ms(c);
        metric_add(M_BYTES_OUT, (int64_t)info->n_deleted);
        c->moved_bytes += info->n_deleted;
    }
    if (evbuffer_get_length(buf) == 0) {
        c->output_ms = 0;
        c->moved_bytes = 0;
    } else if (c->output_ms == 0 ||
               c->moved_bytes >= c->w->shared->config->conn_output_bytes / CONN_STALL_SHARE) {
        c->output_ms = now_ms(c);
        c->moved_bytes = 0;
    }
    if (info->n_deleted > 0)
        conn_wake_starved(c);
}

int conn_init(struct conn *c, struct worker *w, bool login)
{
    worker_assert(w);
    c->w = w;
    if (evbuffer_add_cb(c->in, note_input, c) == NULL ||
        evbuffer_add_cb(c->out, note_output, c) == NULL)
        return E_NOMEM; /* the buffers go with io, and the callbacks with them */
    TAILQ_INIT(&c->queue);
    c->state = CONN_READING;
    c->active_ms = now_ms(c);
    auth_conn_init(c, login);
    LIST_INSERT_HEAD(&w->conns, c, link);
    w->conns_n++;
    metric_add(M_CONNECTIONS_OPEN, 1);
    metric_add(M_CONNECTIONS_TOTAL, 1);
    return 0;
}

void conn_fini(struct conn *c)
{
    ASSERT(c->queue_n == 0);
    auth_conn_fini(c);
    if (c->mute_over != NULL)
        event_free(c->mute_over);
    evbuffer_remove_cb(c->in, note_input, c);
    evbuffer_remove_cb(c->out, note_output, c);
}

size_t conn_room(const struct conn *c)
{
    size_t unsent = evbuffer_get_length(c->out) + c->held_bytes + c->gathered_bytes;
    size_t budget = c->w->shared->config->conn_output_bytes;

    return unsent < budget ? budget - unsent : 0;
}

bool conn_may_collect(const struct conn *c, const struct request *rq)
{
    /* the oldest goes on when only those behind it hold something: they wait for its answer */
    return conn_room(c) > 0 || (rq == TAILQ_FIRST(&c->queue) && evbuffer_get_length(c->out) == 0);
}

void conn_wake_starved(struct conn *c)
{
    if (c->starved_n > 0)
        worker_turn_add(c->w, c);
}

void conn_feed(struct conn *c)
{
    struct request *rq;

    while (c->starved_n > 0 && c->state != CONN_CLOSED) {
        TAILQ_FOREACH(rq, &c->queue, link)
        {
            if (rq->fed != NULL && conn_may_collect(c, rq))
                break;
        }
        if (rq == NULL)
            return;
        request_feed(rq); /* may end any request of the connection */
    }
}

/* Whether a budget is used up. */
static bool full(const struct conn *c)
{
    return c->queue_n >= CONN_PIPELINE || auth_checking(&c->auth) || c->muted ||
           (c->queue_n > 0 && c->w->request_bytes > WORKER_REQUEST_BYTES) ||
           c->queue_bytes > c->w->shared->config->max_request_bytes || conn_room(c) == 0;
}

/* After anything that fills or frees a budget. */
static void settle(struct conn *c)
{
    switch (c->state) {
    case CONN_READING:
        if (full(c))
            set_state(c, CONN_BLOCKED);
        break;
    case CONN_BLOCKED:
        /* Not at the first byte of room: requests would come one by one. */
        if (!full(c) && conn_room(c) >= c->w->shared->config->conn_output_bytes / 2) {
            set_state(c, CONN_READING);
            if (evbuffer_get_length(c->in) > 0)
                worker_turn_add(c->w, c);
        }
        break;
    case CONN_FLUSHING:
        if (c->queue_n == 0 && evbuffer_get_length(c->out) == 0)
            conn_close(c, 0, "finished");
        break;
    case CONN_CLOSED:
    case CONN_STATES:
        break;
    }
}

/* A large frame needs its bytes out of the worker's budget before they are read. */
static bool grant(struct conn *c, size_t bytes)
{
    struct worker *w = c->w;

    if (bytes <= CONN_INPUT_FREE || bytes <= c->granted)
        return true;
    size_t left = w->input_granted < WORKER_INPUT_BYTES ? WORKER_INPUT_BYTES - w->input_granted : 0;
    if (bytes - c->granted > left && w->input_granted > 0)
        return false; /* the tick asks again; a lone frame always gets through */
    w->input_granted += bytes - c->granted;
    c->granted = bytes;
    c->io->limit(c, bytes);
    return true;
}

/* Whoever is not logged in may be sending secrets: no copy of them stays in the buffer. */
static ev_ssize_t take_bytes(struct conn *c, uint8_t *to, size_t n)
{
    struct evbuffer_iovec run;

    if (c->auth.state == AUTH_OPEN || c->auth.state == AUTH_DONE)
        return evbuffer_remove(c->in, to, n);
    size_t got = 0;
    while (got < n && evbuffer_peek(c->in, -1, NULL, &run, 1) > 0 && run.iov_len > 0) {
        size_t part = run.iov_len < n - got ? run.iov_len : n - got;
        memcpy(to + got, run.iov_base, part);
        mem_wipe(run.iov_base, part);
        evbuffer_drain(c->in, part);
        got += part;
    }
    return (ev_ssize_t)got;
}

/* Takes the next whole frame. E_AGAIN: not there yet. */
static int next_frame(struct conn *c, struct blob **out)
{
    uint8_t prefix[FRAME_PREFIX];
    size_t have = evbuffer_get_length(c->in);

    *out = NULL;
    if (have < FRAME_PREFIX)
        return E_AGAIN;
    if (evbuffer_copyout(c->in, prefix, FRAME_PREFIX) != FRAME_PREFIX)
        return E_NOMEM;
    uint32_t n = be_load32(prefix); /* a negative length is a huge one */
    if (n > auth_frame_max(c) || n > INT32_MAX)
        return E_LIMIT;
    if (!grant(c, FRAME_PREFIX + n) || have - FRAME_PREFIX < n)
        return E_AGAIN;
    struct blob *frame = blob_new(n);
    if (frame == NULL)
        return E_NOMEM;
    evbuffer_drain(c->in, FRAME_PREFIX);
    frame->len = n;
    if (n > 0 && take_bytes(c, frame->data, n) != (ev_ssize_t)n) {
        blob_unref(frame);
        return E_NOMEM;
    }
    *out = frame;
    return 0;
}

/* Answers leave at once, as far as the transport takes them. */
static void push(struct conn *c)
{
    if (c->state == CONN_CLOSED || c->in_input)
        return;
    if (evbuffer_get_length(c->out) > 0) {
        int err = c->io->send(c);
        if (err < 0) {
            conn_close(c, 0, "connection lost");
            return;
        }
    }
    settle(c);
}

/* A frame's length that cannot be: clients of another protocol are told apart for the operator. */
static const char *length_reason(const struct conn *c)
{
    uint8_t b[FRAME_PREFIX] = {0};

    if (c->requests == 0 && evbuffer_copyout(c->in, b, sizeof b) == (ev_ssize_t)sizeof b) {
        if (b[0] == 0x16 && b[1] == 3)
            return "TLS was spoken to a listener without TLS";
        if (memcmp(b, "GET ", 4) == 0 || memcmp(b, "POST", 4) == 0 || memcmp(b, "HEAD", 4) == 0)
            return "HTTP was spoken to the Kafka listener";
    }
    return "frame length refused";
}

void conn_input(struct conn *c)
{
    int err = 0;
    int frames = 0;

    worker_assert(c->w);
    worker_drain_mailbox(c->w);
    c->in_input = true;
    while (c->state == CONN_READING && frames < CONN_TURN) {
        struct blob *frame;
        if ((err = next_frame(c, &frame)) < 0)
            break;
        frames++;
        c->frame_ms = 0;
        c->requests++;
        dispatch_frame(c, frame);
        settle(c);
    }
    c->in_input = false;
    push(c);
    if (c->state != CONN_READING)
        return;
    if (err == E_LIMIT)
        metric_add(M_PROTOCOL_ERRORS, 1);
    if (err < 0 && err != E_AGAIN)
        conn_close(c, err, err == E_LIMIT ? length_reason(c) : "frame not taken");
    else if (frames == CONN_TURN)
        worker_turn_add(c->w, c);
    else if (evbuffer_get_length(c->in) == 0)
        c->frame_ms = 0;
    else if (c->frame_ms == 0)
        c->frame_ms = now_ms(c);
}

void conn_output(struct conn *c)
{
    worker_assert(c->w);
    push(c);
}

void conn_queue(struct conn *c, struct request *rq)
{
    TAILQ_INSERT_TAIL(&c->queue, rq, link);
    c->queue_n++;
    c->queue_bytes += rq->frame_bytes;
    if (c->granted > 0) { /* the frame that has just been taken */
        rq->granted = c->granted;
        c->granted = 0;
        c->io->limit(c, CONN_INPUT_FREE);
    }
}

static void unqueue(struct conn *c, struct request *rq)
{
    if (rq->done && rq->out != NULL)
        c->held_bytes -= evbuffer_get_length(rq->out);
    TAILQ_REMOVE(&c->queue, rq, link);
    c->queue_n--;
    c->queue_bytes -= rq->frame_bytes;
    c->w->input_granted -= rq->granted;
    request_free(rq);
}

/* Requests that were read but will not be answered. */
static void drop_requests(struct conn *c)
{
    struct request *rq;

    while ((rq = TAILQ_FIRST(&c->queue)) != NULL)
        unqueue(c, rq);
}

void conn_flush(struct conn *c)
{
    struct request *rq;

    if (c->state == CONN_CLOSED)
        return;
    while ((rq = TAILQ_FIRST(&c->queue)) != NULL && rq->done) {
        bool last = rq->close_after;
        size_t bytes = rq->out != NULL ? evbuffer_get_length(rq->out) : 0;
        if (bytes > 0 && evbuffer_add_buffer(c->out, rq->out) < 0) {
            conn_close(c, E_NOMEM, "answer not queued");
            return;
        }
        c->held_bytes -= bytes; /* rq->out is empty now */
        unqueue(c, rq);
        conn_wake_starved(c); /* another one is the oldest now */
        if (last) {
            drop_requests(c);
            conn_finish(c);
            return;
        }
    }
    settle(c);
    push(c);
}

static void on_mute_over(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;

    (void)fd;
    (void)what;
    c->muted = false;
    settle(c);
}

void conn_mute(struct conn *c, int64_t ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    struct timeval due;

    if (c->state == CONN_CLOSED)
        return;
    if (c->mute_over == NULL)
        c->mute_over = event_new(c->w->base, -1, 0, on_mute_over, c);
    if (c->mute_over == NULL)
        return; /* out of memory: the client was told, that has to do */
    if (c->muted && event_pending(c->mute_over, EV_TIMEOUT, &due) != 0) {
        struct timeval now;
        (void)event_base_gettimeofday_cached(c->w->base, &now);
        evutil_timeradd(&now, &tv, &now);
        if (evutil_timercmp(&now, &due, <=))
            return;
    }
    c->muted = event_add(c->mute_over, &tv) == 0;
}

void conn_finish(struct conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    if (c->state != CONN_FLUSHING)
        set_state(c, CONN_FLUSHING);
    settle(c);
    push(c);
}

void conn_close(struct conn *c, int err, const char *reason)
{
    worker_assert(c->w);
    if (c->state == CONN_CLOSED)
        return;
    if (err != 0)
        log_peer(LOG_INFO, "conn.closed", LF_STR("peer", c->peer), LF_STR("reason", reason),
                 LF_ERR(err), LF_UINT("requests", c->requests));
    else
        log_event(LOG_DEBUG, "conn.closed", LF_STR("peer", c->peer), LF_STR("reason", reason),
                  LF_UINT("requests", c->requests), LF_UINT("in", c->bytes_in),
                  LF_UINT("out", c->bytes_out));
    set_state(c, CONN_CLOSED);
    drop_requests(c);
}

void conn_gone(struct conn *c, const char *reason)
{
    conn_close(c, 0, reason);
}

void conn_deadlines(struct conn *c, int64_t now)
{
    const struct gw_config *config = c->w->shared->config;

    if (c->state == CONN_CLOSED)
        return;
    if (c->frame_ms != 0 && now - c->frame_ms >= config->stall_ms)
        conn_close(c, E_TIMEOUT, "frame not finished in time");
    else if (c->handshake_ms != 0 && now >= c->handshake_ms)
        conn_close(c, E_TIMEOUT, "TLS handshake not finished in time");
    else if (auth_overdue(c, now))
        conn_close(c, E_TIMEOUT, "no login in time");
    else if (c->output_ms != 0 && now - c->output_ms >= config->stall_ms)
        conn_close(c, E_TIMEOUT, "answer not read in time");
    else if (c->queue_n == 0 && now - c->active_ms >= config->idle_ms)
        conn_close(c, 0, "idle");
    else if (c->frame_ms != 0 && c->granted == 0 && evbuffer_get_length(c->in) >= CONN_INPUT_FREE)
        worker_turn_add(c->w, c); /* it may wait for the input budget */
}
