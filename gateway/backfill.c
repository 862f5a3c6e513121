/*
 * Keeps the backfills of all collections: their states, read once from the store, the listing, and
 * the queues of requests. Home thread only. The state in memory changes only when the commit that
 * stored it was answered, so labels never run ahead of what survives a crash.
 */
#include "gateway/backfill_int.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

void bf_point(const struct backfills *bf, const char *where)
{
    if (bf->opts.point != NULL)
        bf->opts.point(bf->opts.point_arg, where);
}

/* --- collections
 * ------------------------------------------------------------------------------------- */

static struct bf_collection *find(const struct backfills *bf, struct span name)
{
    struct bf_collection *col;

    LIST_FOREACH(col, &bf->collections, link)
    {
        if (span_eq_str(name, col->name))
            return col;
    }
    return NULL;
}

static struct bf_collection *find_or_add(struct backfills *bf, struct span name)
{
    struct bf_collection *col = find(bf, name);

    if (col != NULL)
        return col;
    if ((col = mem_zalloc(sizeof *col)) == NULL)
        return NULL;
    if ((col->name = mem_strndup((const char *)name.p, name.n)) == NULL) {
        mem_free(col);
        return NULL;
    }
    col->bf = bf;
    col->batch = 64;
    STAILQ_INIT(&col->calls);
    LIST_INSERT_HEAD(&bf->collections, col, link);
    return col;
}

static void drop(struct bf_collection *col)
{
    LIST_REMOVE(col, link);
    mem_free(col->name);
    mem_free(col);
}

void bf_collection_next(struct bf_collection *col)
{
    struct bf_call *c = STAILQ_FIRST(&col->calls);

    if (c == NULL && col->state.begin == 0 && !col->running) {
        drop(col);
        return;
    }
    if (c == NULL || col->running || col->bf->states != BF_STATES_KNOWN)
        return;
    col->running = true;
    bf_call_begin(c);
}

/* --- states
 * ------------------------------------------------------------------------------------------ */

static void next_all(struct backfills *bf)
{
    struct bf_collection *col, *next;

    for (col = LIST_FIRST(&bf->collections); col != NULL; col = next) {
        next = LIST_NEXT(col, link);
        bf_labels_apply(col);
        bf_collection_next(col);
    }
}

static void fail_all(struct backfills *bf, int err)
{
    struct bf_collection *col, *next;
    struct bf_call *c;

    for (col = LIST_FIRST(&bf->collections); col != NULL; col = next) {
        next = LIST_NEXT(col, link);
        while ((c = STAILQ_FIRST(&col->calls)) != NULL) {
            STAILQ_REMOVE_HEAD(&col->calls, link);
            bf_call_drop(c, err);
        }
        bf_collection_next(col);
    }
}

static int take_states(struct backfills *bf, const struct jc_kv *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct span name = span_str(list[i].key + sizeof BF_KEY_PREFIX - 1);
        struct bf_collection *col;
        struct backfill_state state;

        if (backfill_state_parse(list[i].value, &state) < 0) {
            log_event(LOG_ERROR, "backfill.state", LF_SPAN("collection", name), LF_ERR(E_CORRUPT));
            continue; /* the next begin writes a good one; labels that were set stay */
        }
        if ((col = find_or_add(bf, name)) == NULL)
            return E_NOMEM;
        col->state = state;
        col->dirty = true;
    }
    return 0;
}

static void on_states(void *arg, int err, const struct jc_kv *list, size_t n)
{
    struct backfills *bf = arg;

    bf->busy--;
    if (err == 0)
        err = take_states(bf, list, n);
    bf->states = err == 0 ? BF_STATES_KNOWN : BF_STATES_UNKNOWN;
    if (err == 0) {
        next_all(bf);
        return;
    }
    log_event(LOG_ERROR, "backfill.states", LF_ERR(err));
    fail_all(bf, err);
}

static int ask_states(struct backfills *bf)
{
    struct jc_store *s = bf->opts.store;
    int err;

    bf->states = BF_STATES_ASKED;
    bf->busy++;
    if ((err = s->ops->kv_scan(s, BF_KEY_PREFIX, &bf->opts.home->ex, on_states, bf)) < 0) {
        bf->states = BF_STATES_UNKNOWN;
        bf->busy--;
    }
    return err;
}

/* --- listing
 * ----------------------------------------------------------------------------------------- */

static void take_listing(struct backfills *bf)
{
    struct bf_collection *col;
    struct pub_index *ix = NULL;

    if (bf->newest == NULL || bf->newest == bf->listing)
        return;
    if (pub_index_new(bf->newest, &ix) < 0) {
        /* The old one stays in use until the next tick. */
        log_event(LOG_ERROR, "backfill.listing", LF_ERR(E_NOMEM));
        return;
    }
    mem_free(bf->index);
    jc_listing_unref(bf->listing);
    bf->index = ix;
    bf->listing = jc_listing_ref(bf->newest);
    LIST_FOREACH(col, &bf->collections, link)
    {
        col->dirty = col->state.begin != 0;
        bf_labels_apply(col);
    }
}

static void on_snapshot(void *arg, const struct jc_listing *snapshot)
{
    struct backfills *bf = arg;

    jc_listing_unref(bf->newest);
    bf->newest = jc_listing_ref(snapshot);
    take_listing(bf);
}

static void on_watch_end(void *arg, int err)
{
    struct backfills *bf = arg;

    (void)err;
    bf->watch = NULL;
}

/* --- for the caller
 * ---------------------------------------------------------------------------------- */

int backfills_new(const struct backfill_opts *opts, struct backfills **out)
{
    struct backfills *bf = mem_zalloc(sizeof *bf);
    const struct jc_selector all = {.matches = NULL, .n = 0};
    struct jc_watcher w = {.on_snapshot = on_snapshot, .on_end = on_watch_end};
    int err;

    *out = NULL;
    if (bf == NULL)
        return E_NOMEM;
    bf->opts = *opts;
    LIST_INIT(&bf->collections);
    w.ex = &opts->home->ex;
    w.arg = bf;
    if ((err = opts->store->ops->watch(opts->store, &all, &w, &bf->watch)) < 0)
        goto out;
    if ((err = ask_states(bf)) < 0)
        goto out;
    *out = bf;
    bf = NULL;
out:
    backfills_free(bf);
    return err;
}

int backfills_post(struct backfills *bf, const struct backfill_req *rq, backfill_fn *done,
                   void *arg)
{
    struct bf_call *c = mem_zalloc(sizeof *c);
    struct bf_collection *col;

    if (c == NULL)
        return E_NOMEM;
    if ((c->key = backfill_key(rq->collection)) == NULL ||
        (col = find_or_add(bf, rq->collection)) == NULL) {
        mem_free(c->key);
        mem_free(c);
        return E_NOMEM;
    }
    c->col = col;
    c->verb = rq->verb;
    c->force = rq->force;
    c->expect = rq->expect;
    c->done = done;
    c->arg = arg;
    STAILQ_INSERT_TAIL(&col->calls, c, link);
    bf->busy++;
    if (bf->states == BF_STATES_UNKNOWN)
        (void)ask_states(bf); /* when not even that works, the next tick does it */
    bf_collection_next(col);
    return 0;
}

int backfills_status(const struct backfills *bf, struct span collection,
                     struct backfill_status *out)
{
    const struct bf_collection *col = find(bf, collection);
    const struct pub_index_row *rows;

    *out = (struct backfill_status){0};
    if (bf->states != BF_STATES_KNOWN || bf->listing == NULL)
        return E_AGAIN;
    if (col != NULL)
        out->state = col->state;
    rows = pub_index_find(bf->index, collection, &out->journals);
    for (size_t i = 0; i < out->journals; i++) {
        struct backfill_label l;

        backfill_label_of(&rows[i].journal->spec, &l);
        if (l.clock > out->truncated_at)
            out->truncated_at = l.clock;
        out->labelled += l.plain && l.clock >= out->state.begin;
    }
    return out->journals == 0 && out->state.begin == 0 ? E_NOTFOUND : 0;
}

void backfills_tick(struct backfills *bf)
{
    struct bf_collection *col;

    if (bf->states == BF_STATES_UNKNOWN && !bf->draining)
        (void)ask_states(bf);
    take_listing(bf);
    LIST_FOREACH(col, &bf->collections, link)
    {
        col->skip = 0;
        bf_labels_apply(col);
    }
}

void backfills_drain(struct backfills *bf)
{
    bf->draining = true;
}

size_t backfills_busy(const struct backfills *bf)
{
    return bf->busy;
}

void backfills_free(struct backfills *bf)
{
    struct bf_collection *col;

    if (bf == NULL)
        return;
    ASSERT(bf->busy == 0);
    if (bf->watch != NULL)
        bf->opts.store->ops->cancel(bf->watch);
    while ((col = LIST_FIRST(&bf->collections)) != NULL)
        drop(col);
    jc_listing_unref(bf->newest);
    jc_listing_unref(bf->listing);
    mem_free(bf->index);
    mem_free(bf);
}
