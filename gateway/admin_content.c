/*
 * GET /v1/journals/{name}/content: the raw lines of a journal with their offsets, as
 * `<offset of the last byte> TAB <line>`, hidden documents included. Streams block by block: the
 * next block is read when the client has taken the last one, so a slow reader costs one block.
 * Control thread.
 */
#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"

#define PROBE_S 2

/* Owner: control thread. */
struct stream {
    struct admin_call call; /* first member */
    struct task destroy;
    const struct jc_journal *journal;
    int64_t pos;   /* the next document has its last byte here or behind; -1: the first byte */
    int64_t end;   /* only documents whose last byte is below; INT64_MAX: no end */
    uint64_t left; /* documents still to be sent */
    bool follow;
    bool started;
    bool flushing;
    bool closed; /* destroy is on its way: callbacks do nothing */
    struct jc_heads heads;
    struct jc_op *heads_op;
    struct jc_op *block_op;
    struct event *probe;
};

static void stream_step(struct stream *s);

static void on_destroy(struct task *t)
{
    struct stream *s = (struct stream *)(void *)((char *)t - offsetof(struct stream, destroy));
    const struct jc_store_ops *ops = s->call.a->host.store->ops;

    if (s->heads_op != NULL)
        ops->cancel(s->heads_op);
    if (s->block_op != NULL)
        ops->cancel(s->block_op);
    if (s->probe != NULL)
        event_free(s->probe);
    admin_call_remove(&s->call);
    jc_journal_unref(s->journal);
    mem_free(s);
}

/* The request was answered or is lost. Later, because an operation must not be cancelled inside its
 * own callback. */
static void stream_close(struct stream *s)
{
    s->closed = true;
    s->call.req = NULL;
    s->destroy.run = on_destroy;
    mailbox_post(s->call.a->host.control, &s->destroy);
}

static void stream_finish(struct stream *s)
{
    http_reply_end(s->call.req);
    stream_close(s);
}

static void stream_refuse(struct stream *s, int status, const char *why)
{
    admin_reply_error(s->call.a, s->call.req, status, "%s", why);
    stream_close(s);
}

/* A fault in mid-stream: the connection breaks, so that nobody takes the part for the whole. */
static void stream_break(struct stream *s, int err)
{
    log_event(LOG_ERROR, "admin.content", LF_STR("journal", s->journal->spec.name), LF_ERR(err));
    if (!s->started) {
        stream_refuse(s, 503, err_text(err));
        return;
    }
    http_drop(s->call.req);
    stream_close(s);
}

/* The client left. */
static void on_lost(void *arg)
{
    struct stream *s = arg;

    if (s->closed)
        return;
    http_drop(s->call.req);
    stream_close(s);
}

/* Who sends nothing more does not wait for what is still to come. */
static void on_probe(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    (void)what;
    if (!s->closed && http_rq_ended(s->call.req))
        stream_finish(s);
}

static void on_flushed(void *arg)
{
    struct stream *s = arg;

    if (s->closed)
        return;
    s->flushing = false;
    stream_step(s);
}

static int emit_segment(struct stream *s, const struct jc_segment *seg, struct evbuffer *out)
{
    const uint8_t *p = seg->bytes->data, *stop = p + seg->bytes->len, *nl;
    int64_t at = seg->offset;

    while (s->left > 0 && p < stop && (nl = memchr(p, '\n', (size_t)(stop - p))) != NULL) {
        size_t n = (size_t)(nl + 1 - p);
        int64_t last = at + (int64_t)n - 1;

        if (last >= s->end)
            break;
        if (last >= s->pos) {
            if (evbuffer_add_printf(out, "%" PRId64 "\t", last) < 0 || evbuffer_add(out, p, n) < 0)
                return E_NOMEM;
            s->left--;
        }
        at += (int64_t)n;
        p = nl + 1;
    }
    return 0;
}

static void on_block(void *arg, int err, struct jc_block *block)
{
    struct stream *s = arg;
    struct evbuffer *out;

    s->block_op = NULL;
    if (s->closed || err < 0) {
        if (err == 0)
            jc_block_fini(block);
        if (!s->closed)
            stream_break(s, err);
        return;
    }
    if ((out = evbuffer_new()) == NULL)
        err = E_NOMEM;
    for (size_t i = 0; err == 0 && i < block->segments_n; i++)
        err = emit_segment(s, &block->segments[i], out);
    if (block->sealed)
        s->pos = (block->block + 1) * JC_BLOCK_BYTES;
    else if (block->read_to > s->pos)
        s->pos = block->read_to;
    jc_block_fini(block);
    if (err < 0) {
        stream_break(s, err);
    } else if (evbuffer_get_length(out) == 0) {
        stream_step(s);
    } else {
        s->flushing = true;
        http_reply_chunk(s->call.req, out, on_flushed, s);
    }
    if (out != NULL)
        evbuffer_free(out);
}

static void stream_step(struct stream *s)
{
    struct jc_store *store = s->call.a->host.store;
    struct jc_block_req rq = {.journal = s->journal};
    int err;

    if (s->flushing || s->block_op != NULL)
        return;
    if (s->pos >= s->end || s->left == 0 || s->call.a->draining) {
        stream_finish(s);
        return;
    }
    if (s->pos >= s->heads.write_head)
        return; /* only while following: new heads go on */
    rq.block = s->pos / JC_BLOCK_BYTES;
    rq.from = s->pos;
    err =
        store->ops->read_block(store, &rq, &s->call.a->host.control->ex, on_block, s, &s->block_op);
    if (err < 0)
        stream_break(s, err);
}

static void add_headers(struct stream *s)
{
    admin_add_header(s->call.req, "Content-Type", "text/plain; charset=utf-8");
    admin_add_header(s->call.req, "Cache-Control", "no-store");
    admin_add_header(s->call.req, "X-Content-Type-Options", "nosniff");
}

/* The first heads: what is asked for is known now. */
static void stream_start(struct stream *s)
{
    struct http_rq *req = s->call.req;
    struct timeval tv = {.tv_sec = PROBE_S};

    if (http_rq_lost(req)) {
        http_drop(req);
        stream_close(s);
        return;
    }
    if (s->pos > s->heads.write_head) {
        stream_refuse(s, 416, "the offset lies behind the journal's end");
        return;
    }
    if (s->pos < s->heads.first)
        s->pos = s->heads.first;
    if (!s->follow && s->end > s->heads.write_head)
        s->end = s->heads.write_head;
    if (http_rq_head(req)->method == HTTP_HEAD) {
        add_headers(s);
        http_reply_start(req, 200); /* the length is not known */
        http_reply_end(req);
        stream_close(s);
        return;
    }
    if (s->follow) {
        s->probe = event_new(s->call.a->base, -1, EV_PERSIST, on_probe, s);
        if (s->probe == NULL || event_add(s->probe, &tv) < 0) {
            stream_refuse(s, 503, "out of memory");
            return;
        }
    }
    s->started = true;
    http_rq_on_lost(req, on_lost, s);
    add_headers(s);
    http_reply_start(req, 200);
    stream_step(s);
}

static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct stream *s = arg;

    if (s->closed)
        return;
    s->heads = *heads;
    if (s->started)
        stream_step(s);
    else
        stream_start(s);
}

static void on_heads_end(void *arg, int err)
{
    struct stream *s = arg;

    s->heads_op = NULL;
    if (!s->closed)
        stream_break(s, err);
}

static void on_end(struct admin_call *call, bool closing)
{
    struct stream *s = (struct stream *)(void *)call;

    if (s->closed)
        return;
    if (!closing) {
        if (s->started && !s->flushing && s->block_op == NULL)
            stream_finish(s);
        return; /* otherwise the next step ends it */
    }
    http_drop(call->req);
    stream_close(s);
}

static bool params_of(struct admin_rq *rq, struct stream *s)
{
    for (size_t i = 0; i < rq->target.params_n; i++) {
        const struct admin_param *p = &rq->target.params[i];
        int64_t v = 0;
        int err = 0;

        if (span_eq_str(p->name, "follow")) {
            s->follow = span_eq_str(p->value, "true") || span_eq_str(p->value, "1");
            if (!s->follow && !span_eq_str(p->value, "false") && !span_eq_str(p->value, "0"))
                err = E_SYNTAX;
        } else if ((err = num_parse_i64(p->value, &v)) < 0 || v < 0) {
            err = E_SYNTAX;
        } else if (span_eq_str(p->name, "offset")) {
            s->pos = v;
        } else if (span_eq_str(p->name, "end")) {
            s->end = v;
        } else if (span_eq_str(p->name, "limit")) {
            s->left = (uint64_t)v;
        } else {
            err = E_NOTFOUND;
        }
        if (err < 0) {
            admin_reply_error(rq->a, rq->req, 400, "parameter \"%.*s\": %s",
                              p->name.n > 100 ? 100 : (int)p->name.n, (const char *)p->name.p,
                              err == E_NOTFOUND ? "unknown" : "malformed value");
            return false;
        }
    }
    return true;
}

void admin_get_content(struct admin_rq *rq)
{
    const struct jc_listing *l = publisher_listing(rq->a->publisher);
    struct jc_store *store = rq->a->host.store;
    const struct jc_journal *j = l == NULL ? NULL : jc_listing_find(l, rq->target.name);
    struct jc_follower f = {
        .ex = &rq->a->host.control->ex, .on_heads = on_heads, .on_end = on_heads_end};
    struct stream *s;

    if (j == NULL) {
        admin_reply_error(rq->a, rq->req, l == NULL ? 503 : 404,
                          l == NULL ? "the journals were not listed yet" : "no such journal");
        return;
    }
    if ((s = mem_zalloc(sizeof *s)) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    s->end = INT64_MAX;
    s->left = UINT64_MAX;
    s->call.end = on_end;
    if (!params_of(rq, s)) {
        mem_free(s);
        return;
    }
    s->journal = jc_journal_ref(j);
    admin_call_add(rq->a, &s->call, rq->req);
    f.arg = s;
    if (store->ops->follow(store, j, &f, &s->heads_op) < 0)
        stream_refuse(s, 503, "the store does not answer");
}
