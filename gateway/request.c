/*
 * The life of a request between its frame and its answer. An answer is encoded at once and leaves
 * the connection when all answers before it have left; frame and arena are let go of as soon as it
 * is encoded. Runs on the worker's thread.
 */
#include "gateway/request.h"

#include <event2/buffer.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/conn.h"
#include "gateway/metrics.h"

/* Shorter runs of head bytes are copied: a reference costs a chain link of about that size. */
#define COPY_BELOW 1024

struct request *request_new(struct conn *c, struct blob *frame)
{
    struct request *rq = mem_zalloc(sizeof *rq);

    if (rq == NULL)
        return NULL;
    rq->conn = c;
    rq->w = c->w;
    arena_init(&rq->arena, REQUEST_ARENA_BYTES);
    rq->frame = blob_ref(frame);
    rq->frame_bytes = frame->len;
    rq->received_ms = clock_mono_ms(c->w->shared->clock);
    return rq;
}

static void unstarve(struct request *rq)
{
    if (rq->fed != NULL)
        rq->conn->starved_n--;
    rq->fed = NULL;
}

/* What only the handler needed. */
static void drop_inputs(struct request *rq)
{
    unstarve(rq);
    rq->w->request_bytes -= rq->charged;
    rq->charged = 0;
    arena_fini(&rq->arena);
    blob_unref(rq->frame);
    rq->frame = NULL;
    rq->body = NULL;
    rq->header.client_id = (struct span){NULL, 0};
}

void request_free(struct request *rq)
{
    if (rq == NULL)
        return;
    if (rq->cancel != NULL) {
        void (*cancel)(struct request *) = rq->cancel;
        rq->cancel = NULL;
        cancel(rq);
    }
    if (rq->out != NULL)
        evbuffer_free(rq->out);
    drop_inputs(rq);
    mem_free(rq);
}

/* Done, one way or the other: rq may be gone afterwards. */
static void finish(struct request *rq)
{
    struct conn *c = rq->conn;

    ASSERT(!rq->done);
    rq->done = true;
    if (rq->out != NULL)
        c->held_bytes += evbuffer_get_length(rq->out);
    rq->cancel = NULL;
    rq->park = NULL;
    drop_inputs(rq);
    conn_flush(c);
}

static void drop_blob(const void *data, size_t len, void *arg)
{
    (void)data;
    (void)len;
    blob_unref(arg);
}

/* Queues part of a blob without copying it; the output holds its own reference. */
static int add_blob(struct evbuffer *out, struct blob *b, size_t off, size_t len)
{
    if (off > b->len || len > b->len - off)
        return E_LIMIT;
    if (len == 0)
        return 0;
    blob_ref(b);
    if (evbuffer_add_reference(out, b->data + off, len, drop_blob, b) < 0) {
        blob_unref(b); /* libevent does not call drop_blob when it refuses */
        return E_NOMEM;
    }
    return 0;
}

static int add_head(struct evbuffer *out, struct blob *head, size_t off, size_t len)
{
    if (len >= COPY_BELOW)
        return add_blob(out, head, off, len);
    return len == 0 || evbuffer_add(out, head->data + off, len) == 0 ? 0 : E_NOMEM;
}

/* The encoded answer as one run of bytes: head and record pieces in turn. */
static int compose(struct evbuffer *out, const struct kp_encoded *enc)
{
    size_t at = 0;
    int err;

    for (size_t i = 0; i < enc->splices_n; i++) {
        const struct kp_splice *s = &enc->splices[i];
        if ((err = add_head(out, enc->head, at, s->at - at)) < 0)
            return err;
        at = s->at;
        if ((err = add_blob(out, s->blob, s->off, s->len)) < 0)
            return err;
    }
    return add_head(out, enc->head, at, enc->head->len - at);
}

void request_reply(struct request *rq, const void *resp)
{
    struct kp_encoded enc = {0};
    int err;

    worker_assert(rq->w);
    ASSERT(!rq->done);
    err = kp_encode_response(rq->api, rq->header.api_version, rq->header.correlation_id, resp,
                             &rq->arena, &enc);
    if (err < 0)
        goto out;
    if ((rq->out = evbuffer_new()) == NULL) {
        err = E_NOMEM;
        goto out;
    }
    err = compose(rq->out, &enc);
out:
    blob_unref(enc.head);
    if (err < 0) {
        log_peer(LOG_ERROR, "request.not_encoded", LF_STR("api", rq->api->name),
                 LF_INT("version", rq->header.api_version), LF_STR("peer", rq->conn->peer),
                 LF_ERR(err));
        request_abort(rq, err);
        return;
    }
    metric_add(M_REQUESTS, 1);
    finish(rq);
}

void request_reply_bytes(struct request *rq, struct span bytes)
{
    uint8_t prefix[4];

    worker_assert(rq->w);
    ASSERT(!rq->done);
    be_store32(prefix, (uint32_t)bytes.n);
    if ((rq->out = evbuffer_new()) == NULL || evbuffer_add(rq->out, prefix, sizeof prefix) < 0 ||
        evbuffer_add(rq->out, bytes.p, bytes.n) < 0) {
        request_abort(rq, E_NOMEM);
        return;
    }
    metric_add(M_REQUESTS, 1);
    finish(rq);
}

void request_no_reply(struct request *rq)
{
    worker_assert(rq->w);
    metric_add(M_REQUESTS, 1);
    finish(rq);
}

void request_abort(struct request *rq, int err)
{
    worker_assert(rq->w);
    metric_add(M_PROTOCOL_ERRORS, 1);
    log_peer(LOG_INFO, "request.refused", LF_STR("peer", rq->conn->peer),
             LF_INT("api", rq->header.api_key), LF_INT("version", rq->header.api_version),
             LF_SPAN("client", rq->header.client_id), LF_ERR(err));
    if (rq->out != NULL) {
        evbuffer_free(rq->out);
        rq->out = NULL;
    }
    rq->close_after = true;
    finish(rq);
}

void *request_response(struct request *rq)
{
    void *resp = arena_alloc(&rq->arena, rq->api->response_bytes);

    if (resp != NULL)
        kp_defaults(rq->api->response, resp);
    return resp;
}

size_t request_room(const struct request *rq)
{
    return conn_room(rq->conn);
}

void request_hold(struct request *rq, size_t bytes)
{
    rq->conn->gathered_bytes += bytes;
}

void request_release(struct request *rq, size_t bytes)
{
    ASSERT(bytes <= rq->conn->gathered_bytes);
    rq->conn->gathered_bytes -= bytes;
    if (bytes > 0)
        conn_wake_starved(rq->conn);
}

bool request_may_collect(const struct request *rq)
{
    return conn_may_collect(rq->conn, rq);
}

void request_starve(struct request *rq, void (*fed)(struct request *rq))
{
    worker_assert(rq->w);
    unstarve(rq);
    rq->fed = fed;
    rq->conn->starved_n++;
}

void request_feed(struct request *rq)
{
    void (*fed)(struct request *) = rq->fed;

    unstarve(rq);
    fed(rq);
}

void request_charge(struct request *rq)
{
    size_t holds = rq->arena.used + (rq->frame == NULL ? 0 : rq->frame->len);

    rq->w->request_bytes += holds - rq->charged;
    rq->charged = holds;
}

bool request_may_wait(struct request *rq)
{
    request_charge(rq);
    return rq->w->request_bytes <= WORKER_REQUEST_BYTES;
}

const char *request_principal(const struct request *rq)
{
    return rq->conn->auth.principal != NULL ? rq->conn->auth.principal : "";
}

const struct gw_task *request_task(const struct request *rq)
{
    return gw_view_principal(rq->w->view, request_principal(rq));
}

void request_advertised(const struct request *rq, const char **host, uint16_t *port)
{
    *host = rq->conn->advertise_host;
    *port = rq->conn->advertise_port;
}

void request_mute(struct request *rq, int64_t ms)
{
    conn_mute(rq->conn, ms);
}
