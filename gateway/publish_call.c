/*
 * One publish request on its way to the answer. Everything here runs on the home thread, except
 * call_job (job pool) and call_prepare (the store's committer); a call is owned by exactly one of
 * them at a time, and passes between them as a posted task.
 *
 *   idempotency key known? -> layout -> job: hash, parse -> create the journals when they are
 *     missing, list again -> append -> answer
 *
 * The collection is created only after a body proved good, so that a bad first request leaves
 * nothing behind. Races (two first publishes, a journal deleted meanwhile) end in a fresh listing
 * and, when the layout is another one, in a second parse.
 */
#include "gateway/publish_call.h"

#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/backfill.h"
#include "gateway/metrics.h"

#define MAX_ATTEMPTS 5

static void call_parsed(struct task *t);
static void call_layout(struct publish_call *c);
static void call_relist(struct publish_call *c);

struct publish_call *pub_call_of(struct task *t)
{
    return (struct publish_call *)(void *)((char *)t - offsetof(struct publish_call, task));
}

void pub_call_post(struct publish_call *c, struct executor *ex, void (*run)(struct task *t))
{
    c->task.run = run;
    executor_post(ex, &c->task);
}

/* --- ends
 * -------------------------------------------------------------------------------------------- */

static void call_free(struct publish_call *c)
{
    ASSERT(c->relist == NULL);
    LIST_REMOVE(c, link);
    c->p->busy--;
    c->p->in_flight_bytes -= c->body->len;
    pub_parsed_fini(&c->parsed);
    pub_layout_free(c->layout);
    pub_specs_free(c->specs);
    jc_listing_unref(c->fresh);
    blob_unref(c->body);
    blob_unref(c->stored);
    blob_unref(c->kv_value);
    mem_free(c->parts);
    wr_fini(&c->answer);
    arena_fini(&c->arena);
    mem_free(c);
}

/* Answers and frees the call. */
static void call_answer(struct publish_call *c, int status, struct span json)
{
    static const char NO_MEMORY[] = "{\"error\":\"out of memory\"}\n";
    struct publish_answer a = {.status = status, .json = json};

    if (json.p == NULL) {
        a.status = 503;
        a.json = span_str(NO_MEMORY);
    }
    if (a.status == 503)
        a.retry_after = 1;
    a.replayed = status == 200 && c->stored != NULL;
    if (status == 200 && c->layout != NULL) {
        a.collection = c->layout->collection;
        a.partitions = c->layout->n;
    }
    if (a.status == 400 || a.status == 409 || a.status == 413 || a.status == 422)
        metric_add(M_PUBLISH_REFUSED, 1);
    c->done(c->arg, &a);
    call_free(c);
}

static void call_answer_written(struct publish_call *c, int status)
{
    struct span json = {NULL, 0};

    if (wr_err(&c->answer) == 0 && wr_len(&c->answer) > 0)
        json = blob_span(c->answer.b);
    call_answer(c, status, json);
}

void pub_call_refuse(struct publish_call *c, int status, const char *fmt, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wr_fini(&c->answer);
    wr_init(&c->answer, PUB_ANSWER_MAX);
    pub_answer_error(&c->answer, "%s", text);
    call_answer_written(c, status);
}

/* A fault that is not the request's. */
void pub_call_fail(struct publish_call *c, const char *what, int err)
{
    /* 503 says "try again", which cannot mend what the store calls invalid */
    bool broken = err == E_IO || err == E_CORRUPT || err == E_INVALID;
    int status = err == E_NOSPACE ? 507 : broken ? 500 : 503;

    metric_add(M_STORE_ERRORS, err == E_NOMEM ? 0 : 1);
    log_peer(LOG_WARN, "publish.failed", LF_SPAN("collection", c->collection), LF_STR("at", what),
             LF_ERR(err));
    pub_call_refuse(c, status, "%s: %s", what, err_text(err));
}

/* --- idempotency keys
 * -------------------------------------------------------------------------------- */

static int sha256(struct span s, uint8_t out[PUB_SHA_BYTES])
{
    unsigned n = PUB_SHA_BYTES;

    return EVP_Digest(s.p, s.n, out, &n, EVP_sha256(), NULL) == 1 ? 0 : E_NOMEM;
}

/* The key was used before: by this very request, or by another one? */
static void call_replay(struct publish_call *c)
{
    struct span v = blob_span(c->stored);

    if (v.n < PUB_SHA_BYTES) {
        pub_call_fail(c, "the stored answer of this Idempotency-Key", E_CORRUPT);
        return;
    }
    if (memcmp(v.p, c->sha, PUB_SHA_BYTES) != 0) {
        blob_unref(c->stored);
        c->stored = NULL;
        pub_call_refuse(c, 422, "this Idempotency-Key was used for another body");
        return;
    }
    metric_add(M_PUBLISH_REPLAYS, 1);
    call_answer(c, 200, span_of(v.p + PUB_SHA_BYTES, v.n - PUB_SHA_BYTES));
}

static void call_on_idem(void *arg, int err, struct span value)
{
    struct publish_call *c = arg;

    if (err == E_NOTFOUND) {
        call_layout(c);
        return;
    }
    if (err < 0) {
        pub_call_fail(c, "looking up the Idempotency-Key", err);
        return;
    }
    if ((c->stored = blob_copy(value)) == NULL) {
        pub_call_fail(c, "looking up the Idempotency-Key", E_NOMEM);
        return;
    }
    if (c->parts != NULL) /* lost the race to commit: the hash is known already */
        call_replay(c);
    else
        call_layout(c);
}

static void call_idem_ask(struct publish_call *c)
{
    struct jc_store *s = c->p->opts.store;
    int err = s->ops->kv_get(s, c->idem_key, &c->p->opts.home->ex, call_on_idem, c);

    if (err < 0)
        pub_call_fail(c, "looking up the Idempotency-Key", err);
}

/* --- commit
 * ------------------------------------------------------------------------------------------ */

/* Committer thread. All that is stored derives from the one clock reading that pub_stamp takes. */
static int call_prepare(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    struct publish_call *c = txn->arg;
    struct span json;
    uint64_t ack;

    /* A label that another writer's faster clock made must not hide what is published after it. */
    c->parsed.above = c->layout->truncated_at;
    ack = pub_stamp(&c->parsed, c->p->producer, clock);

    wr_fini(&c->answer);
    wr_init(&c->answer, PUB_ANSWER_MAX);
    pub_answer_ok(&c->answer, c->layout, &c->parsed, txn->parts, ack);
    if (wr_err(&c->answer) < 0)
        return wr_err(&c->answer);
    if (c->idem_key == NULL)
        return 0;
    json = blob_span(c->answer.b);
    blob_unref(c->kv_value);
    if ((c->kv_value = blob_new(PUB_SHA_BYTES + json.n)) == NULL)
        return E_NOMEM;
    memcpy(c->kv_value->data, c->sha, PUB_SHA_BYTES);
    memcpy(c->kv_value->data + PUB_SHA_BYTES, json.p, json.n);
    c->kv_value->len = PUB_SHA_BYTES + json.n;
    txn->kv[0].value = blob_span(c->kv_value);
    txn->kv[0].expires_ms = jc_clock_unix_ms(ack) + c->p->opts.idempotency_ms;
    return 0;
}

static void call_committed(void *arg, int err, struct jc_txn *txn)
{
    struct publish_call *c = arg;

    if (err == 0) {
        metric_add(M_PUBLISH_REQUESTS, 1);
        metric_add(M_PUBLISH_DOCUMENTS, (int64_t)c->parsed.docs_n);
        call_answer_written(c, 200);
    } else if (err == E_EXISTS && c->idem_key != NULL && ++c->attempts < MAX_ATTEMPTS) {
        call_idem_ask(c); /* a request with the same key was faster */
    } else if (err == E_NOTFOUND && (c->idem_key != NULL || !txn->in_doubt) &&
               ++c->attempts < MAX_ATTEMPTS) {
        call_relist(
            c); /* a journal was deleted under us; what is written already is not repeated */
    } else if (err == E_CONFLICT && c->idem_key != NULL) {
        pub_call_refuse(c, 422,
                        "a part of another body was published under this Idempotency-Key, or the "
                        "partitions changed since");
    } else if (txn->in_doubt) {
        metric_add(M_STORE_ERRORS, 1);
        log_peer(LOG_ERROR, "publish.in_doubt", LF_SPAN("collection", c->collection), LF_ERR(err));
        pub_call_refuse(c, 500,
                        "commit: %s; it is not known whether the documents were published: ask "
                        "again under the same Idempotency-Key",
                        err_text(err));
    } else {
        pub_call_fail(c, "commit", err);
    }
}

static void call_append(struct publish_call *c)
{
    struct jc_store *s = c->p->opts.store;
    size_t n = 0;
    int err;

    if (c->parsed.docs_n == 0) { /* nothing to commit */
        pub_answer_ok(&c->answer, c->layout, &c->parsed, NULL, 0);
        call_answer_written(c, 200);
        return;
    }
    mem_free(c->parts);
    if ((c->parts = mem_array(c->layout->n, sizeof c->parts[0])) == NULL) {
        pub_call_fail(c, "commit", E_NOMEM);
        return;
    }
    for (size_t i = 0; i < c->parsed.outs_n; i++)
        if (c->parsed.outs[i].docs > 0)
            c->parts[n++] = (struct jc_append_part){.journal = c->layout->parts[i].journal,
                                                    .bytes = c->parsed.outs[i].bytes};
    c->txn = (struct jc_txn){
        .parts = c->parts,
        .parts_n = n,
        .prepare = call_prepare,
        .arg = c,
    };
    if (c->idem_key != NULL) {
        c->kv = (struct jc_kv){.key = c->idem_key};
        c->txn.kv = &c->kv;
        c->txn.kv_n = 1;
        c->txn.unless_kv = c->idem_key;
        c->txn.unless_tag = span_of(c->sha, PUB_SHA_BYTES);
    }
    if ((err = s->ops->append(s, &c->txn, &c->p->opts.home->ex, call_committed, c)) < 0)
        pub_call_fail(c, "commit", err);
}

/* --- creation of a collection
 * ------------------------------------------------------------------------ */

static void call_use_layout(struct publish_call *c, struct pub_layout *l)
{
    pub_layout_free(c->layout);
    c->layout = l;
}

static void call_relisted(struct task *t)
{
    struct publish_call *c = pub_call_of(t);
    struct pub_layout *l = NULL;
    struct pub_index *ix = NULL;
    const struct pub_index_row *rows;
    const char *why;
    size_t n;
    int err;

    if (c->relist != NULL)
        c->p->opts.store->ops->cancel(c->relist);
    c->relist = NULL;
    if ((err = pub_index_new(c->fresh, &ix)) < 0) {
        pub_call_fail(c, "list", err);
        return;
    }
    if ((rows = pub_index_find(ix, c->collection, &n)) == NULL) {
        /* Creation lost against journals of these names that do not belong to the collection, or
         * all were deleted again. */
        if (++c->attempts < MAX_ATTEMPTS)
            call_layout(c);
        else
            pub_call_refuse(
                c, 409,
                "the collection cannot be created: its journal names are in use, or it is "
                "being deleted");
    } else if ((err = pub_layout_of(rows, n, &l, &why)) == E_NOMEM) {
        pub_call_fail(c, "list", err);
    } else if (err < 0) {
        pub_call_refuse(c, 409, "%s", why);
    } else if (c->layout != NULL && c->layout->planned && pub_layout_same(c->layout, l)) {
        call_use_layout(c, l);
        call_append(c);
    } else {
        pub_layout_free(l);
        call_layout(c);
    }
    mem_free(ix);
}

static void call_on_relist(void *arg, const struct jc_listing *snapshot)
{
    struct publish_call *c = arg;

    if (c->fresh != NULL)
        return;
    c->fresh = jc_listing_ref(snapshot);
    pub_call_post(c, &c->p->opts.home->ex, call_relisted); /* not in the callback: it cancels */
}

static void call_on_relist_end(void *arg, int err)
{
    struct publish_call *c = arg;

    c->relist = NULL;
    if (c->fresh == NULL)
        pub_call_fail(c, "list", err);
}

void pub_call_hurry(struct publish_call *c)
{
    if (c->relist == NULL || c->fresh != NULL)
        return; /* it goes on by itself */
    c->p->opts.store->ops->cancel(c->relist);
    c->relist = NULL;
    pub_call_fail(c, "list", E_CLOSED);
}

/* A watch of its own begins with a snapshot of now; the publisher's long-lived one may lag. */
static void call_relist(struct publish_call *c)
{
    char *name = arena_strndup(&c->arena, (const char *)c->collection.p, c->collection.n);
    struct jc_match match = {.name = JC_LABEL_COLLECTION, .value = name};
    struct jc_selector sel = {.matches = &match, .n = 1};
    struct jc_watcher w = {.ex = &c->p->opts.home->ex,
                           .on_snapshot = call_on_relist,
                           .on_end = call_on_relist_end,
                           .arg = c};
    struct jc_store *s = c->p->opts.store;
    int err;

    if (name == NULL || c->p->hurried) {
        pub_call_fail(c, "list", name == NULL ? E_NOMEM : E_CLOSED);
        return;
    }
    jc_listing_unref(c->fresh);
    c->fresh = NULL;
    if ((err = s->ops->watch(s, &sel, &w, &c->relist)) < 0)
        pub_call_fail(c, "list", err);
}

/* The store's own rules are stricter than the layout's; no retry mends a name. Brokers have no rule
 * of names that is not the layout's: they refuse what the settings say of new journals. */
static void call_create_failed(struct publish_call *c, int err)
{
    const char *rule = c->p->opts.store->ops->name_rule;

    if (err != E_INVALID)
        pub_call_fail(c, "creating the collection", err);
    else
        pub_call_refuse(c, 400, "the collection cannot be created: the store refuses %s%s",
                        rule == NULL ? "it" : "its name: ", rule == NULL ? "" : rule);
}

static void call_created(void *arg, int err, int64_t revision)
{
    struct publish_call *c = arg;

    (void)revision;
    if (err == 0)
        log_event(LOG_INFO, "collection.created", LF_SPAN("collection", c->collection),
                  LF_UINT("partitions", c->layout->n));
    if (err == 0 || err == E_CONFLICT || err == E_EXISTS)
        call_relist(c);
    else
        call_create_failed(c, err);
}

static void call_create_journals(struct publish_call *c)
{
    struct jc_store *s = c->p->opts.store;
    const char *why;
    int err;

    pub_specs_free(c->specs);
    err = pub_specs_new(c->layout, &c->specs, &why);
    if (err == E_NOMEM) {
        pub_call_fail(c, "creating the collection", err);
        return;
    }
    if (err < 0) {
        pub_call_refuse(c, 400, "the collection cannot be created: %s", why);
        return;
    }
    err = s->ops->apply(s, c->specs->changes, c->specs->n, &c->p->opts.home->ex, call_created, c);
    if (err < 0)
        call_create_failed(c, err);
}

static void call_on_backfill(void *arg, int err, struct span value)
{
    struct publish_call *c = arg;
    struct backfill_state state = {0};

    if (err == 0)
        err = backfill_state_parse(value, &state);
    if (err < 0 && err != E_NOTFOUND && err != E_CORRUPT) {
        pub_call_fail(c, "creating the collection", err);
        return;
    }
    c->layout->truncated_at = state.begin;
    call_create_journals(c);
}

/* The collection may have been there before and back-filled since: its new journals are born with
 * the label. */
static void call_create(struct publish_call *c)
{
    struct jc_store *s = c->p->opts.store;
    char *key = backfill_key(c->collection);
    int err =
        key == NULL ? E_NOMEM : s->ops->kv_get(s, key, &c->p->opts.home->ex, call_on_backfill, c);

    mem_free(key);
    if (err < 0)
        pub_call_fail(c, "creating the collection", err);
}

/* --- parsing
 * ----------------------------------------------------------------------------------------- */

/* Job pool. */
static void call_job(struct task *t)
{
    struct publish_call *c = pub_call_of(t);
    struct pub_limits limits = {.document_bytes = c->p->opts.max_document_bytes,
                                .output_bytes = 2 * c->p->opts.max_body_bytes};

    c->parse_err = c->idem_key == NULL ? 0 : sha256(blob_span(c->body), c->sha);
    pub_parsed_fini(&c->parsed);
    if (c->parse_err == 0 && c->stored == NULL)
        c->parse_err = pub_parse(blob_span(c->body), c->form, c->layout, &limits, &c->parsed);
    pub_call_post(c, &c->p->opts.home->ex, call_parsed);
}

static void call_parsed(struct task *t)
{
    struct publish_call *c = pub_call_of(t);

    if (c->parse_err == E_LIMIT) {
        pub_call_refuse(
            c, 413,
            "too many documents in one request: with their UUIDs they take more than %zu "
            "bytes",
            2 * c->p->opts.max_body_bytes);
    } else if (c->parse_err < 0) {
        pub_call_fail(c, "parsing", c->parse_err);
    } else if (c->stored != NULL) {
        call_replay(c);
    } else if (c->parsed.faults_total > 0) {
        wr_fini(&c->answer);
        wr_init(&c->answer, PUB_ANSWER_MAX);
        pub_answer_faults(&c->answer, &c->parsed);
        call_answer_written(c, c->parsed.unroutable ? 409 : 400);
    } else if (c->layout->planned) {
        call_create(c);
    } else {
        call_append(c);
    }
}

/* Compares what the request asks for with what is there. */
static bool call_layout_fits(struct publish_call *c, const struct pub_layout *l, size_t journals)
{
    if (c->keys_n > 0 && !pub_layout_has_key(l, c->keys, c->keys_n)) {
        pub_call_refuse(c, 409, "the collection exists with another key (%s%s%s)",
                        l->pointers_n == 0 ? "none" : (const char *)l->pointers[0].p,
                        l->pointers_n > 1 ? ", " : "",
                        l->pointers_n > 1 ? (const char *)l->pointers[1].p : "");
        return false;
    }
    if (c->partitions > 0 && c->partitions != journals) {
        pub_call_refuse(c, 409,
                        "the collection exists with %zu partitions, the request asks for %u",
                        journals, c->partitions);
        return false;
    }
    return true;
}

/* A collection that has no journal yet: *l stays NULL when none may be made. */
static int plan_new(const struct publish_call *c, struct pub_layout **l, const char **why)
{
    const struct publisher_opts *o = &c->p->opts;
    const struct catalog_collection *known =
        o->catalog == NULL ? NULL : catalog_collection(o->catalog, c->collection);
    unsigned partitions = c->partitions > 0 ? c->partitions : o->partitions;

    if (known == NULL && o->read_only_catalog)
        return 0;
    if (known == NULL)
        return pub_layout_plan(c->collection, partitions, c->keys, c->keys_n, l, why);
    if (c->keys_n > 0) {
        bool same = c->keys_n == known->keys_n;
        for (size_t i = 0; same && i < c->keys_n; i++)
            same = span_eq(c->keys[i], known->keys[i]);
        if (!same) {
            *why = "the catalog defines another key for the collection";
            return E_INVALID;
        }
    }
    return pub_layout_plan(c->collection, partitions, known->keys, known->keys_n, l, why);
}

/* Chooses the layout by the newest listing at hand, then parses. */
static void call_layout(struct publish_call *c)
{
    struct publisher *p = c->p;
    struct pub_index *fresh = NULL;
    const struct pub_index *ix = p->index;
    const struct pub_index_row *rows;
    struct pub_layout *l = NULL;
    const char *why = "";
    size_t n = 0;
    int err = 0;

    if (c->stored != NULL) { /* only the hash of the body is needed */
        pub_call_post(c, p->opts.jobs, call_job);
        return;
    }
    if (c->fresh == NULL && ix == NULL) {
        call_relist(c); /* right after start: the first listing is still on its way */
        return;
    }
    if (c->fresh != NULL && (err = pub_index_new(c->fresh, &fresh)) < 0) {
        pub_call_fail(c, "list", err);
        return;
    }
    rows = pub_index_find(fresh != NULL ? fresh : ix, c->collection, &n);
    if (rows != NULL)
        err = pub_layout_of(rows, n, &l, &why);
    else
        err = plan_new(c, &l, &why);
    mem_free(fresh);
    if (err == E_NOMEM) {
        pub_call_fail(c, "list", err);
    } else if (err < 0) {
        pub_call_refuse(c, rows != NULL ? 409 : 400, "%s", why);
    } else if (l == NULL) {
        pub_call_refuse(c, 404, "no such collection");
    } else {
        call_use_layout(c, l);
        if (l->planned || call_layout_fits(c, l, n))
            pub_call_post(c, p->opts.jobs, call_job);
    }
}

void pub_call_begin(struct publish_call *c)
{
    if (c->idem_key != NULL)
        call_idem_ask(c);
    else
        call_layout(c);
}
