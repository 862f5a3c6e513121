/*
 * One begin or complete on its way to the answer. Home thread, except call_prepare (the store's
 * committer); a call is owned by exactly one of them at a time.
 *
 *   producer id -> list the collection's journals -> begin: highest clocks, foreign producers ->
 *     append the marker to every partition, with the state -> labels -> answer
 *
 * The order against publishes needs no lock. call_prepare and the publisher's prepare both run on
 * the store's one committer, in commit order, and both take their clocks from its one jc_txn_clock,
 * which never repeats and never goes back, whatever the wall clock reads. So every document that is
 * committed before the begin carries a lower clock than the marker, and every later one a higher,
 * also when it was sent, parsed or routed before the begin. Documents that were stamped by another
 * clock (raw appends, another publisher's label) may lie ahead: the begin passes them too.
 */
#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/backfill_int.h"
#include "gateway/metrics.h"
#include "gateway/publish.h"

#define MAX_ATTEMPTS 5

/* Keys in this order; no `hints`: they tell a reader of one journal which other journals the
 * transaction touched, and every reader of a marker must take it without them anyway. */
#define MARK_HEAD      "{\"_meta\":{\"uuid\":\""
#define MARK_NO_UUID   "00000000-0000-1000-8000-000000000000"
#define MARK_BEGIN     "\"},\"backfillBegin\":true,\"is_ack\":true}\n"
#define MARK_COMPLETE  "\"},\"backfillComplete\":true,\"is_ack\":true,\"truncatedAt\":\"%s\"}\n"
#define MARK_BYTES_MAX 256

static void call_relist(struct bf_call *c);

static struct bf_call *call_of(struct task *t)
{
    return (struct bf_call *)(void *)((char *)t - offsetof(struct bf_call, task));
}

static struct executor *home(const struct bf_call *c)
{
    return &c->col->bf->opts.home->ex;
}

/* --- ends
 * -------------------------------------------------------------------------------------------- */

static void call_free(struct bf_call *c)
{
    ASSERT(c->relist == NULL);
    c->col->bf->busy--;
    bf_scan_fini(&c->scan);
    mem_free(c->ix);
    jc_listing_unref(c->fresh);
    blob_unref(c->marker);
    mem_free(c->parts);
    mem_free(c->key);
    mem_free(c);
}

/* Answers, frees, and lets the next one run. */
static void call_answer(struct bf_call *c, const struct backfill_answer *a)
{
    struct bf_collection *col = c->col;

    STAILQ_REMOVE_HEAD(&col->calls, link);
    c->done(c->arg, a);
    call_free(c);
    col->running = false;
    bf_collection_next(col);
}

static void call_refuse(struct bf_call *c, int status, const char *text)
{
    const struct backfill_answer a = {.status = status, .error = text, .foreign = c->scan.foreign};

    call_answer(c, &a);
}

/* A fault that is not the request's. */
static void call_fail(struct bf_call *c, const char *what, int err)
{
    /* 503 says "try again", which cannot mend what the store calls invalid */
    bool broken = err == E_IO || err == E_CORRUPT || err == E_INVALID;
    int status = err == E_NOSPACE ? 507 : broken ? 500 : 503;
    char text[200];

    log_peer(LOG_WARN, "backfill.failed", LF_STR("collection", c->col->name), LF_STR("at", what),
             LF_ERR(err));
    (void)snprintf(text, sizeof text, "%s: %s", what,
                   err == E_CLOSED ? "the server is draining" : err_text(err));
    call_refuse(c, status, text);
}

void bf_call_drop(struct bf_call *c, int err)
{
    const struct backfill_answer a = {.status = err == E_IO || err == E_CORRUPT ? 500 : 503,
                                      .error = "the states of backfills cannot be read"};

    c->done(c->arg, &a);
    call_free(c);
}

/* --- commit
 * ------------------------------------------------------------------------------------------ */

/* Committer thread. One reading; the marker, the state and the label have this one clock. */
static int call_prepare(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    struct bf_call *c = txn->arg;
    struct jc_uuid u = {.flags = JC_FLAG_ACK};

    (void)jc_txn_clock_begin(clock);
    u.clock = jc_txn_clock_pass(clock, c->label_floor);
    /* A bound is the highest label: below one that is too far ahead nothing would ever be seen. */
    if ((c->label_ahead = u.clock <= c->label_floor))
        return E_RANGE;
    u.clock = jc_txn_clock_pass(clock, c->content_floor);
    if ((c->content_ahead = u.clock <= c->content_floor) && !c->force)
        return E_RANGE;
    memcpy(u.producer, c->producer, sizeof u.producer);
    jc_uuid_format(&u, (char *)c->marker->data + sizeof MARK_HEAD - 1);
    c->clock = u.clock;
    c->next = c->col->state; /* nobody changes it while a call of the collection runs */
    if (c->verb == BACKFILL_BEGIN) {
        c->next.phase = BACKFILL_ACTIVE;
        c->next.begin = u.clock;
    } else {
        c->next.phase = BACKFILL_COMPLETED;
        c->next.complete = u.clock;
        c->next.completes = c->next.begin;
    }
    txn->kv[0].value = span_of(c->value, backfill_state_format(&c->next, c->value));
    return 0;
}

static void call_durable(struct bf_call *c)
{
    struct bf_collection *col = c->col;
    struct backfill_answer a = {.status = 200, .clock = c->clock};
    char hex[17];

    if (c->verb == BACKFILL_BEGIN && col->state.phase == BACKFILL_ACTIVE)
        a.superseded = col->state.begin;
    num_hex16(c->clock, hex);
    log_event(LOG_INFO, c->verb == BACKFILL_BEGIN ? "backfill.begun" : "backfill.completed",
              LF_STR("collection", col->name), LF_STR("clock", hex),
              LF_UINT("partitions", c->rows_n));
    if (c->content_ahead)
        log_event(LOG_WARN, "backfill.ahead", LF_STR("collection", col->name),
                  LF_STR("effect", "documents with clocks far ahead stay visible"));
    metric_add(M_BACKFILL_MARKERS, 1);
    bf_point(col->bf, c->verb == BACKFILL_BEGIN ? "begin.durable" : "complete.durable");
    col->state = c->next;
    col->dirty = true;
    bf_labels_apply(col);
    call_answer(c, &a);
}

static void call_committed(void *arg, int err, struct jc_txn *txn)
{
    struct bf_call *c = arg;

    if (err == 0)
        call_durable(c);
    else if (err == E_NOTFOUND && ++c->attempts < MAX_ATTEMPTS)
        call_relist(c); /* a journal was deleted under us */
    else if (err == E_RANGE && c->label_ahead)
        call_refuse(c, 409,
                    "a journal's label truncated-at lies more than an hour ahead of the clock: no "
                    "document could be seen");
    else if (err == E_RANGE && c->content_ahead)
        call_refuse(c, 409,
                    "a document's clock lies more than an hour ahead: it would stay visible; force "
                    "begins nevertheless");
    else if (txn->in_doubt)
        call_refuse(c, 500, "commit: the outcome is not known; ask for the backfill's status");
    else
        call_fail(c, "commit", err);
}

static int make_marker(struct bf_call *c)
{
    char text[MARK_BYTES_MAX], truncated[17];
    size_t n = sizeof MARK_HEAD MARK_NO_UUID - 1;

    (void)snprintf(text, sizeof text, "%s", MARK_HEAD MARK_NO_UUID);
    num_hex16(c->col->state.begin, truncated);
    if (c->verb == BACKFILL_BEGIN)
        (void)snprintf(text + n, sizeof text - n, "%s", MARK_BEGIN);
    else
        (void)snprintf(text + n, sizeof text - n, MARK_COMPLETE, truncated);
    blob_unref(c->marker);
    c->marker = blob_copy(span_str(text));
    return c->marker == NULL ? E_NOMEM : 0;
}

static void call_append(struct bf_call *c)
{
    struct backfills *bf = c->col->bf;
    struct jc_store *s = bf->opts.store;
    int err = make_marker(c);

    mem_free(c->parts);
    c->parts = mem_array(c->rows_n, sizeof c->parts[0]);
    if (err < 0 || c->parts == NULL) {
        call_fail(c, "commit", E_NOMEM);
        return;
    }
    for (size_t i = 0; i < c->rows_n; i++)
        c->parts[i] = (struct jc_append_part){.journal = c->rows[i].journal, .bytes = c->marker};
    c->kv = (struct jc_kv){.key = c->key};
    c->txn = (struct jc_txn){.parts = c->parts,
                             .parts_n = c->rows_n,
                             .kv = &c->kv,
                             .kv_n = 1,
                             .prepare = call_prepare,
                             .arg = c};
    bf_point(bf, c->verb == BACKFILL_BEGIN ? "begin.append" : "complete.append");
    if ((err = s->ops->append(s, &c->txn, home(c), call_committed, c)) < 0)
        call_fail(c, "commit", err);
}

/* --- begin
 * ------------------------------------------------------------------------------------------- */

static void hex_producer(const uint8_t id[6], char out[13])
{
    for (size_t i = 0; i < 6; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", id[i]);
}

static void call_foreign(struct bf_call *c)
{
    const struct backfill_foreign *f = &c->scan.foreign;
    char text[400], who[13];

    hex_producer(f->producer, who);
    (void)snprintf(text, sizeof text,
                   "others publish into the collection, and a backfill would hide their documents: "
                   "the one at offset %lld of %.200s is of %s%s; force begins nevertheless",
                   (long long)f->offset, f->journal, f->no_uuid ? "nobody (no UUID)" : "producer ",
                   f->no_uuid ? "" : who);
    log_event(LOG_WARN, "backfill.foreign", LF_STR("collection", c->col->name),
              LF_STR("journal", f->journal), LF_INT("offset", f->offset),
              LF_STR("producer", f->no_uuid ? "" : who));
    call_refuse(c, 409, text);
}

static void call_scanned(void *arg, int err)
{
    struct bf_call *c = arg;

    if (err == E_NOTFOUND && ++c->attempts < MAX_ATTEMPTS) {
        call_relist(c); /* a journal was deleted under us */
    } else if (err < 0) {
        call_fail(c, "reading the collection", err);
    } else if (c->scan.foreign.found) {
        call_foreign(c);
    } else {
        c->content_floor = c->scan.max_clock;
        call_append(c);
    }
}

static void call_scan(struct bf_call *c)
{
    int err;

    bf_scan_fini(&c->scan);
    c->scan = (struct bf_scan){.bf = c->col->bf,
                               .rows = c->rows,
                               .rows_n = c->rows_n,
                               .bound = c->label_floor,
                               .look = !c->force,
                               .done = call_scanned,
                               .arg = c};
    memcpy(c->scan.own, c->producer, sizeof c->scan.own);
    bf_point(c->col->bf, "begin.scan");
    if ((err = bf_scan_start(&c->scan)) < 0)
        call_fail(c, "reading the collection", err);
}

/* --- listing
 * ----------------------------------------------------------------------------------------- */

static void call_ignore(struct bf_call *c)
{
    const struct backfill_answer a = {.status = 200, .ignored = true};

    log_event(LOG_WARN, "backfill.orphan", LF_STR("collection", c->col->name),
              LF_STR("effect", "no backfill is active: complete is ignored, nothing is written"));
    call_answer(c, &a);
}

/* The state's begin is a floor too: its labels may not be there yet. */
static void take_floors(struct bf_call *c)
{
    c->label_floor = c->col->state.begin;
    c->content_floor = 0;
    for (size_t i = 0; i < c->rows_n; i++) {
        struct backfill_label l;

        backfill_label_of(&c->rows[i].journal->spec, &l);
        if (l.clock > c->label_floor)
            c->label_floor = l.clock;
    }
}

static void call_relisted(struct task *t)
{
    struct bf_call *c = call_of(t);
    const struct backfill_state *state = &c->col->state;
    int err;

    if (c->relist != NULL)
        c->col->bf->opts.store->ops->cancel(c->relist);
    c->relist = NULL;
    mem_free(c->ix);
    c->ix = NULL;
    if ((err = pub_index_new(c->fresh, &c->ix)) < 0) {
        call_fail(c, "list", err);
        return;
    }
    c->rows = pub_index_find(c->ix, span_str(c->col->name), &c->rows_n);
    if (c->rows == NULL) {
        call_refuse(c, 404, "no such collection");
        return;
    }
    take_floors(c);
    if (c->verb == BACKFILL_BEGIN)
        call_scan(c);
    else if (c->expect != 0 && c->expect != state->begin)
        call_refuse(c, 409, "another backfill was begun since");
    else if (state->phase != BACKFILL_ACTIVE)
        call_ignore(c);
    else
        call_append(c);
}

static void on_relist(void *arg, const struct jc_listing *snapshot)
{
    struct bf_call *c = arg;

    if (c->fresh != NULL)
        return;
    c->fresh = jc_listing_ref(snapshot);
    c->task.run = call_relisted; /* not in the callback: it cancels */
    executor_post(home(c), &c->task);
}

static void on_relist_end(void *arg, int err)
{
    struct bf_call *c = arg;

    c->relist = NULL;
    if (c->fresh == NULL)
        call_fail(c, "list", err);
}

/* A watch of its own begins with a snapshot of now; the long-lived one may lag. */
static void call_relist(struct bf_call *c)
{
    const struct jc_match match = {.name = JC_LABEL_COLLECTION, .value = c->col->name};
    const struct jc_selector sel = {.matches = &match, .n = 1};
    const struct jc_watcher w = {
        .ex = home(c), .on_snapshot = on_relist, .on_end = on_relist_end, .arg = c};
    struct jc_store *s = c->col->bf->opts.store;
    int err;

    jc_listing_unref(c->fresh);
    c->fresh = NULL;
    if ((err = s->ops->watch(s, &sel, &w, &c->relist)) < 0)
        call_fail(c, "list", err);
}

/* --- start
 * ------------------------------------------------------------------------------------------- */

static void on_producer(struct publisher_wait *w)
{
    struct bf_call *c = (struct bf_call *)(void *)((char *)w - offsetof(struct bf_call, wait));

    if (w->err < 0) {
        call_fail(c, "reading the producer id", w->err);
        return;
    }
    memcpy(c->producer, w->id, sizeof c->producer);
    if (c->col->bf->draining)
        call_fail(c, "begin", E_CLOSED);
    else
        call_relist(c);
}

void bf_call_begin(struct bf_call *c)
{
    c->wait.done = on_producer;
    publisher_need_producer(c->col->bf->opts.publisher, &c->wait);
}
