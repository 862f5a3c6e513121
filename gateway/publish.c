/*
 * The publisher: admits requests, knows the producer id and the listing, and ends. What happens to
 * an admitted request is in publish_call.c. Home thread only.
 */
#include "gateway/publish.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/publish_call.h"

#define KV_PRODUCER   "producer/id"
#define DEFAULT_BYTES ((size_t)64 << 20)
#define WEEK_MS       (INT64_C(7) * 24 * 3600 * 1000)

static void call_start(struct task *t);

/* --- producer id
 * ------------------------------------------------------------------------------------- */

static void run_wait(struct task *t)
{
    struct publisher_wait *w =
        (struct publisher_wait *)(void *)((char *)t - offsetof(struct publisher_wait, task));

    w->done(w);
}

static void answer_wait(struct publisher *p, struct publisher_wait *w, int err)
{
    w->err = err;
    memcpy(w->id, p->producer, sizeof w->id);
    w->task.run = run_wait;
    mailbox_post(p->opts.home, &w->task);
}

static void producer_ready(struct publisher *p, int err)
{
    struct publish_call *c, *next;
    struct publisher_wait *w;

    p->producer_state = err == 0 ? PRODUCER_KNOWN : PRODUCER_UNKNOWN;
    while ((w = STAILQ_FIRST(&p->waits)) != NULL) {
        STAILQ_REMOVE_HEAD(&p->waits, link);
        answer_wait(p, w, err);
    }
    for (c = LIST_FIRST(&p->calls); c != NULL; c = next) {
        next = LIST_NEXT(c, link);
        if (!c->waiting)
            continue;
        c->waiting = false;
        if (err < 0)
            pub_call_fail(c, "reading the producer id", err);
        else
            pub_call_post(c, &p->opts.home->ex, call_start);
    }
}

static void producer_ask(struct publisher *p);

static void on_producer_set(void *arg, int err)
{
    struct publisher *p = arg;

    if (err < 0) {
        producer_ready(p, err); /* nothing is stored: the next request tries again */
        return;
    }
    p->producer_written = true;
    producer_ask(p); /* what was stored counts, not what we sent */
}

static void producer_make(struct publisher *p)
{
    struct jc_store *s = p->opts.store;
    uint8_t id[6];
    struct jc_kv kv = {.key = KV_PRODUCER, .value = span_of(id, sizeof id)};
    int err;

    if (p->producer_written) {
        producer_ready(p, E_CORRUPT);
        return;
    }
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        producer_ready(p, E_IO);
        return;
    }
    id[0] |= 1; /* the multicast bit: no real MAC address */
    if ((err = s->ops->kv_set(s, &kv, 1, &p->opts.home->ex, on_producer_set, p)) < 0)
        producer_ready(p, err);
}

static void on_producer_get(void *arg, int err, struct span value)
{
    struct publisher *p = arg;

    if (err == E_NOTFOUND) {
        producer_make(p);
        return;
    }
    if (err == 0 && (value.n != sizeof p->producer || (value.p[0] & 1) == 0))
        err = E_CORRUPT;
    if (err == 0)
        memcpy(p->producer, value.p, sizeof p->producer);
    producer_ready(p, err);
}

static void producer_ask(struct publisher *p)
{
    struct jc_store *s = p->opts.store;
    int err;

    p->producer_state = PRODUCER_ASKED;
    if ((err = s->ops->kv_get(s, KV_PRODUCER, &p->opts.home->ex, on_producer_get, p)) < 0)
        producer_ready(p, err);
}

void publisher_need_producer(struct publisher *p, struct publisher_wait *w)
{
    if (p->producer_state == PRODUCER_KNOWN) {
        answer_wait(p, w, 0);
        return;
    }
    STAILQ_INSERT_TAIL(&p->waits, w, link);
    if (p->producer_state == PRODUCER_UNKNOWN)
        producer_ask(p);
}

/* --- requests
 * ---------------------------------------------------------------------------------------- */

static bool visible(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* The first step on the home thread, never inside publisher_post. */
static void call_start(struct task *t)
{
    struct publish_call *c = pub_call_of(t);
    struct publisher *p = c->p;

    if (c->body->len > p->opts.max_body_bytes) {
        pub_call_refuse(c, 413, "the body has %zu bytes, the limit is %zu", c->body->len,
                        p->opts.max_body_bytes);
    } else if (p->in_flight_bytes > p->opts.max_in_flight_bytes) {
        pub_call_refuse(c, 503, "too many bytes are being published at once; try again");
    } else if (c->collection.n == 0 || memchr(c->collection.p, 0, c->collection.n) != NULL) {
        pub_call_refuse(c, 400, "the collection's name is empty or holds a NUL");
    } else if (c->partitions > PUBLISH_MAX_PARTITIONS || c->keys_n > PUBLISH_MAX_KEYS) {
        pub_call_refuse(c, 400, "at most %d partitions and %d key pointers", PUBLISH_MAX_PARTITIONS,
                        PUBLISH_MAX_KEYS);
    } else if (c->idem_key != NULL && c->idem_key[0] == '\0') {
        pub_call_refuse(c, 400, "an Idempotency-Key has 1 to %d visible ASCII characters",
                        PUBLISH_MAX_IDEM_KEY);
    } else if (p->producer_state != PRODUCER_KNOWN) {
        c->waiting = true;
        if (p->producer_state == PRODUCER_UNKNOWN)
            producer_ask(p);
    } else {
        pub_call_begin(c);
    }
}

static int call_copy(struct publish_call *c, const struct publish_req *rq)
{
    char *s;

    if ((s = arena_strndup(&c->arena, (const char *)rq->collection.p, rq->collection.n)) == NULL)
        return E_NOMEM;
    c->collection = span_of(s, rq->collection.n);
    c->keys_n = rq->keys_n;
    if ((c->keys = arena_array(&c->arena, rq->keys_n, sizeof c->keys[0])) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < rq->keys_n; i++) {
        if ((s = arena_strndup(&c->arena, (const char *)rq->keys[i].p, rq->keys[i].n)) == NULL)
            return E_NOMEM;
        c->keys[i] = span_of(s, rq->keys[i].n);
    }
    if (rq->idempotency_key.n == 0)
        return 0;
    if (rq->idempotency_key.n > PUBLISH_MAX_IDEM_KEY || !visible(rq->idempotency_key))
        c->idem_key = arena_printf(&c->arena, "%s", "");
    else /* both may hold slashes: the length keeps the keys of two collections apart */
        c->idem_key = arena_printf(&c->arena, "idem/%zu/%s/%.*s", c->collection.n,
                                   (const char *)c->collection.p, SPAN_FMT(rq->idempotency_key));
    return c->idem_key == NULL ? E_NOMEM : 0;
}

int publisher_post(struct publisher *p, const struct publish_req *rq, publish_fn *done, void *arg)
{
    struct publish_call *c = mem_zalloc(sizeof *c);

    if (c == NULL) {
        blob_unref(rq->body);
        return E_NOMEM;
    }
    c->p = p;
    c->done = done;
    c->arg = arg;
    c->body = rq->body;
    c->form = rq->form;
    c->partitions = rq->partitions;
    arena_init(&c->arena, (size_t)1 << 20);
    wr_init(&c->answer, PUB_ANSWER_MAX);
    if (call_copy(c, rq) < 0) {
        arena_fini(&c->arena);
        blob_unref(c->body);
        mem_free(c);
        return E_NOMEM;
    }
    LIST_INSERT_HEAD(&p->calls, c, link);
    p->busy++;
    p->in_flight_bytes += c->body->len;
    pub_call_post(c, &p->opts.home->ex, call_start);
    return 0;
}

size_t publisher_busy(const struct publisher *p)
{
    return p->busy;
}

const struct jc_listing *publisher_listing(const struct publisher *p)
{
    return p->listing;
}

static void on_snapshot(void *arg, const struct jc_listing *snapshot)
{
    struct publisher *p = arg;
    struct pub_index *ix = NULL;

    if (pub_index_new(snapshot, &ix) < 0) {
        log_event(LOG_ERROR, "publish.listing", LF_ERR(E_NOMEM)); /* the old one stays in use */
        return;
    }
    mem_free(p->index);
    jc_listing_unref(p->listing);
    p->index = ix;
    p->listing = jc_listing_ref(snapshot);
}

static void on_watch_end(void *arg, int err)
{
    struct publisher *p = arg;

    (void)err;
    p->watch = NULL;
}

int publisher_new(const struct publisher_opts *opts, struct publisher **out)
{
    struct publisher *p = mem_zalloc(sizeof *p);
    struct jc_selector all = {.matches = NULL, .n = 0};
    struct jc_watcher w = {.on_snapshot = on_snapshot, .on_end = on_watch_end};
    int err;

    *out = NULL;
    if (p == NULL)
        return E_NOMEM;
    p->opts = *opts;
    LIST_INIT(&p->calls);
    STAILQ_INIT(&p->waits);
    if (p->opts.partitions == 0)
        p->opts.partitions = 1;
    if (p->opts.max_body_bytes == 0)
        p->opts.max_body_bytes = DEFAULT_BYTES;
    if (p->opts.max_body_bytes > (size_t)1 << 30)
        p->opts.max_body_bytes = (size_t)1 << 30; /* positions in the output have 32 bits */
    if (p->opts.max_document_bytes == 0)
        p->opts.max_document_bytes = DEFAULT_BYTES;
    if (p->opts.max_in_flight_bytes == 0)
        p->opts.max_in_flight_bytes = 4 * DEFAULT_BYTES;
    if (p->opts.max_in_flight_bytes < p->opts.max_body_bytes)
        p->opts.max_in_flight_bytes = p->opts.max_body_bytes;
    if (p->opts.idempotency_ms == 0)
        p->opts.idempotency_ms = WEEK_MS;
    w.ex = &p->opts.home->ex;
    w.arg = p;
    if ((err = opts->store->ops->watch(opts->store, &all, &w, &p->watch)) < 0) {
        mem_free(p);
        return err;
    }
    *out = p;
    return 0;
}

void publisher_set_catalog(struct publisher *p, const struct catalog *c)
{
    p->opts.catalog = c;
}

void publisher_hurry(struct publisher *p)
{
    struct publish_call *c, *next;

    p->hurried = true;
    for (c = LIST_FIRST(&p->calls); c != NULL; c = next) {
        next = LIST_NEXT(c, link);
        pub_call_hurry(c);
    }
}

void publisher_free(struct publisher *p)
{
    if (p == NULL)
        return;
    ASSERT(p->busy == 0);
    if (p->watch != NULL)
        p->opts.store->ops->cancel(p->watch);
    jc_listing_unref(p->listing);
    mem_free(p->index);
    mem_free(p);
}
