/* See publish_sink.h. */
#include "app/publish_sink.h"
#include "app/move.h"

#include <stdio.h>
#include <string.h>

#include "base/jobpool.h"
#include "base/mem.h"
#include "gateway/gateway.h"
#include "gateway/publish.h"
#include "journal_client/local.h"

/* --- a running server
 * -------------------------------------------------------------------------------- */

struct http_sink {
    struct publish_sink sink; /* first member */
    const char *admin;
    struct writer path; /* NUL-terminated */
};

static int http_sink_send(struct publish_sink *s, const struct publish_batch *b, const char *key,
                          struct http_answer *out)
{
    struct http_sink *h = (struct http_sink *)(void *)s;
    struct span body = blob_span(b->body);
    struct http_rq rq = {.base = h->admin,
                         .path = (const char *)h->path.b->data,
                         .body = &body,
                         .content_type = b->json ? "application/json" : "application/x-ndjson",
                         .idempotency_key = key};

    return http_send(&rq, out);
}

static void http_sink_close(struct publish_sink *s)
{
    struct http_sink *h = (struct http_sink *)(void *)s;

    wr_fini(&h->path);
    mem_free(h);
}

int publish_sink_http(const char *admin, const struct publish_target *t, struct publish_sink **out)
{
    struct http_sink *h = mem_zalloc(sizeof *h);
    int err;

    *out = NULL;
    if (h == NULL)
        return E_NOMEM;
    h->sink = (struct publish_sink){http_sink_send, http_sink_close};
    h->admin = admin;
    wr_init(&h->path, 65536);
    wr_str(&h->path, "/v1/collections/");
    http_path(&h->path, t->collection);
    wr_str(&h->path, "/documents");
    for (size_t i = 0; i < t->keys_n; i++) {
        wr_str(&h->path, i == 0 ? "?key=" : "&key=");
        http_query(&h->path, t->keys[i]);
    }
    if (t->partitions > 0)
        wr_printf(&h->path, "%spartitions=%u", t->keys_n == 0 ? "?" : "&", t->partitions);
    wr_u8(&h->path, 0);
    if ((err = wr_err(&h->path)) < 0) {
        http_sink_close(&h->sink);
        return err;
    }
    *out = &h->sink;
    return 0;
}

/* --- a folder of our own
 * ----------------------------------------------------------------------------- */

struct direct_sink {
    struct publish_sink sink; /* first member */
    const struct publish_target *target;
    struct jc_store *store;
    struct mailbox mb;
    bool mb_ready;
    struct jobpool *jobs;
    struct publisher *publisher;
    struct http_answer *answer; /* of the batch that is being sent */
    bool answered;
};

static void on_published(void *arg, const struct publish_answer *a)
{
    struct direct_sink *d = arg;

    d->answer->status = a->status;
    d->answer->replayed = a->replayed;
    wr_span(&d->answer->body, a->json);
    d->answered = true;
}

static int direct_send(struct publish_sink *s, const struct publish_batch *b, const char *key,
                       struct http_answer *out)
{
    struct direct_sink *d = (struct direct_sink *)(void *)s;
    struct span keys[PUBLISH_MAX_KEYS];
    struct publish_req rq = {.collection = span_str(d->target->collection),
                             .body = blob_ref(b->body),
                             .form = b->json ? PUBLISH_JSON : PUBLISH_NDJSON,
                             .partitions = d->target->partitions,
                             .keys = keys,
                             .idempotency_key = span_str(key)};

    memset(out, 0, sizeof *out);
    wr_init(&out->body, (size_t)64 << 20);
    for (; rq.keys_n < d->target->keys_n && rq.keys_n < PUBLISH_MAX_KEYS; rq.keys_n++)
        keys[rq.keys_n] = span_str(d->target->keys[rq.keys_n]);
    d->answer = out;
    d->answered = false;
    if (publisher_post(d->publisher, &rq, on_published, d) < 0) {
        (void)snprintf(out->fault, sizeof out->fault, "out of memory");
        return E_NOMEM;
    }
    out->reached = true;
    while (!d->answered)
        (void)mailbox_wait(&d->mb, -1);
    return wr_err(&out->body);
}

static void direct_close(struct publish_sink *s)
{
    struct direct_sink *d = (struct direct_sink *)(void *)s;

    while (d->publisher != NULL && publisher_busy(d->publisher) > 0)
        (void)mailbox_wait(&d->mb, -1);
    publisher_free(d->publisher);
    jobpool_free(d->jobs);
    if (d->store != NULL)
        d->store->ops->close(d->store);
    if (d->mb_ready)
        mailbox_fini(&d->mb);
    mem_free(d);
}

int publish_sink_direct(const char *data_dir, const struct publish_target *t,
                        struct publish_sink **out, char *why, size_t why_bytes)
{
    struct direct_sink *d = mem_zalloc(sizeof *d);
    struct jc_local_opts lo = {.dir = data_dir, .probe = gw_doc_probe};
    struct publisher_opts po = {.partitions = 1, .max_body_bytes = (size_t)1 << 30};
    int err;

    *out = NULL;
    (void)snprintf(why, why_bytes, "out of memory");
    if (d == NULL)
        return E_NOMEM;
    d->sink = (struct publish_sink){direct_send, direct_close};
    d->target = t;
    if ((err = mailbox_init(&d->mb)) < 0)
        goto out;
    d->mb_ready = true;
    if ((err = jobpool_new(1, "publish", &d->jobs)) < 0)
        goto out;
    why[0] = '\0';
    if ((err = move_not_local(&lo, why, why_bytes)) < 0 ||
        (err = jc_local_open(&lo, &d->store, why, why_bytes)) < 0) {
        if (why[0] == '\0')
            (void)snprintf(why, why_bytes, "%s", err_text(err));
        goto out;
    }
    if ((err = move_refused(d->store, &lo, &d->mb, why, why_bytes)) < 0)
        goto out;
    po.store = d->store;
    po.home = &d->mb;
    po.jobs = jobpool_executor(d->jobs);
    if ((err = publisher_new(&po, &d->publisher)) < 0) {
        (void)snprintf(why, why_bytes, "%s", err_text(err));
        goto out;
    }
    *out = &d->sink;
    d = NULL;
out:
    if (d != NULL)
        direct_close(&d->sink);
    return err;
}
