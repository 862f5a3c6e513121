/*
 * Collects batches for the partitions that have something to say, one partition after the other
 * until the answer is full. A pass parks on the batch cache or on a seek and goes on in their
 * callbacks; it starts anew when the view changes. Refuses to send a batch that ends below the
 * asked offset, or a control batch where anything visible was not looked at (O2, O9).
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"

#define STARVED 2 /* no room for a first batch: the pass was dropped, or is to be */

static void gather_run(struct fetch *f);

static const struct gw_shared *shared(const struct fetch *f)
{
    return f->fw->w->shared;
}

/* zstd needs Fetch 10: older clients get the batches uncompressed. */
static enum kp_codec codec_for(const struct fetch *f, const struct gw_encoder *e)
{
    return e->codec == KP_CODEC_ZSTD && f->version < 10 ? KP_CODEC_NONE : e->codec;
}

static bool bounded(const struct gw_bound *b)
{
    return b->min_clock > 0 || b->max_clock < UINT64_MAX;
}

static void drop_batches(struct fetch *f)
{
    for (size_t i = 0; i < f->batches_n; i++)
        kp_batch_fini(&f->batches[i]);
    f->batches_n = 0;
    request_release(f->rq, f->bytes);
    f->bytes = 0;
    f->counted = 0;
}

void fetch_gather_reset(struct fetch *f)
{
    if (f->cache_wait != NULL)
        gw_cache_cancel(f->cache_wait);
    if (f->seek_op != NULL)
        shared(f)->store->ops->cancel(f->seek_op);
    if (f->asked != NULL)
        fresh_heads_cancel(&f->fresh);
    f->cache_wait = NULL;
    f->seek_op = NULL;
    f->asked = NULL;
    gw_blockbatches_unref(f->cur.entry);
    f->cur.entry = NULL;
    f->cur.begun = false;
    drop_batches(f);
    f->order_n = 0;
    f->order_at = 0;
}

/* Takes over the reference in *b, also when it fails. */
static int add_batch(struct fetch *f, struct fetch_part *p, struct kp_batch *b)
{
    if (f->batches_n == f->batches_cap) {
        size_t cap = f->batches_cap == 0 ? 16 : f->batches_cap * 2;
        struct kp_batch *grown = mem_realloc(f->batches, cap * sizeof *grown);
        if (grown == NULL) {
            kp_batch_fini(b);
            return E_NOMEM;
        }
        f->batches = grown;
        f->batches_cap = cap;
    }
    request_hold(f->rq, b->bytes->len);
    f->bytes += b->bytes->len;
    f->cur.bytes += b->bytes->len;
    f->batches[f->batches_n++] = *b;
    p->batch_n++;
    return 0;
}

/* A partition that cannot be read keeps what was collected of it only if nothing is wrong with the
 * rest: an error has no records beside it. */
static void fail_part(struct fetch *f, struct fetch_part *p, int err)
{
    while (p->batch_n > 0) {
        struct kp_batch *b = &f->batches[--f->batches_n];
        f->bytes -= b->bytes->len;
        request_release(f->rq, b->bytes->len);
        p->batch_n--;
        kp_batch_fini(b);
    }
    f->cur.bytes = 0;
    p->plan.verdict = FETCH_ERROR;
    /* Java's consumer dies of numbers that Kafka never sends here: these it knows, and retries */
    p->plan.error = err == E_NOTFOUND ? KE_UNKNOWN_TOPIC_OR_PARTITION
                    : err == E_RANGE  ? KE_OFFSET_OUT_OF_RANGE
                    : err == E_NOMEM  ? KE_UNKNOWN_SERVER_ERROR
                                      : KE_KAFKA_STORAGE_ERROR;
    f->answer_now = true;
}

/* What this reader may see of the partition now. */
static void look_ends(const struct fetch *f, struct fetch_part *p)
{
    struct jc_heads heads;

    (void)gw_part_heads(p->part, &heads);
    fetch_ends_of(&heads, f->isolation, &p->ends);
}

/* Java's consumer dies of LEADER_NOT_AVAILABLE (5) in a Fetch: a topic that has no journal just now
 * is 6 here, which sends every client to Metadata, where it is 5. */
static int16_t missing_error(const struct fetch *f, const struct fetch_part *p)
{
    if (p->t == NULL)
        return f->version >= 13 ? KE_UNKNOWN_TOPIC_ID : KE_UNKNOWN_TOPIC_OR_PARTITION;
    return p->elsewhere || p->t->parts_n == 0 ? KE_NOT_LEADER_OR_FOLLOWER
                                              : KE_UNKNOWN_TOPIC_OR_PARTITION;
}

/* The error of a part that its view does not hold, or the plan for one that it does. */
static void plan_part(struct fetch *f, struct fetch_part *p)
{
    if (p->part == NULL) {
        p->ends = (struct fetch_ends){-1, -1, -1, -1, -1, false};
        p->plan = (struct fetch_plan){.verdict = FETCH_ERROR,
                                      .error = missing_error(f, p),
                                      .diverging_epoch = -1,
                                      .diverging_end = -1};
        return;
    }
    look_ends(f, p);
    fetch_plan(&p->want, p->t->epoch, &p->ends, &p->plan);
    if (p->plan.error == KE_OFFSET_NOT_AVAILABLE && f->version < 11)
        p->plan.error = KE_NOT_LEADER_OR_FOLLOWER;
    if (gw_part_lost(p->part)) { /* the view that says so is on its way */
        p->plan.verdict = FETCH_ERROR;
        p->plan.error = KE_NOT_LEADER_OR_FOLLOWER;
    }
}

/* --- one partition --- */

/* How many bytes the answer may still grow by. */
static size_t answer_room(const struct fetch *f)
{
    size_t left = f->max_bytes > f->bytes ? f->max_bytes - f->bytes : 0;
    size_t conn = request_room(f->rq);

    return left < conn ? left : conn;
}

/* How many bytes p may still add; the very first batch of an answer may pass it. */
static size_t room(const struct fetch *f, const struct fetch_part *p)
{
    size_t part_max = p->max_bytes < 0 ? 0 : (size_t)p->max_bytes;
    size_t left = answer_room(f);

    part_max = part_max > f->cur.bytes ? part_max - f->cur.bytes : 0;
    return part_max < left ? part_max : left;
}

/* False: p is full, or the answer is. */
static bool has_room(struct fetch *f, const struct fetch_part *p, size_t bytes)
{
    if (bytes <= room(f, p) || f->bytes == 0)
        return true;
    if (answer_room(f) < bytes)
        f->answer_now = true; /* nothing more would fit, so waiting is in vain */
    else
        f->cur.part_full = true;
    return false;
}

/* The batches of the entry from cur.at on, up to bytes that the store cannot read or a document
 * that does not fit its schema. 1: full, or at such a place; 0: the block is used up; STARVED;
 * E_CORRUPT, E_INVALID: at such a place before any record; E_NOMEM. */
static int take_entry(struct fetch *f, struct fetch_part *p)
{
    const struct gw_blockbatches *e = f->cur.entry;
    size_t i = gw_blockbatches_find(e, f->cur.at);
    int64_t damage = gw_blockbatches_damage(e, f->cur.at);
    int64_t refused = gw_blockbatches_refused(e, f->cur.at);
    int64_t stop = damage < refused ? damage : refused;

    f->cur.seek = i == e->n; /* nothing visible here: the next one may be far */
    for (; i < e->n && e->batches[i].base_offset < stop; i++) {
        struct kp_batch b = e->batches[i];

        if (f->bytes == 0 && !request_may_collect(f->rq))
            return STARVED; /* others filled the output while this one waited for its block */
        if (!has_room(f, p, b.bytes->len))
            return 1;
        (void)blob_ref(b.bytes);
        int err = add_batch(f, p, &b);
        if (err < 0)
            return err;
        f->cur.at = b.last_offset + 1;
    }
    if (stop < INT64_MAX)
        return p->batch_n > 0 ? 1 : damage < refused ? E_CORRUPT : E_INVALID;
    return 0;
}

/* Uses the block that arrived. 1: p is done with; 0: go on at cur.at; STARVED; E_NOMEM. */
static int use_entry(struct fetch *f, struct fetch_part *p)
{
    struct gw_blockbatches *e = f->cur.entry;
    int64_t looked_to = e->sealed ? (f->cur.block + 1) * JC_BLOCK_BYTES : e->read_to;

    /* Documents may be durable that no follower has told of yet: what is served must lie below the
     * high watermark that goes with it. Others may have been removed: who asked for them is told,
     * not led past them. */
    if (e->content_end > p->ends.hwm || e->log_start > p->ends.log_start)
        gw_part_raise(p->part, e->content_end, &e->marks, e->log_start);
    look_ends(f, p);
    int rc = p->want.offset < p->ends.log_start ? E_RANGE : take_entry(f, p);
    f->cur.entry = NULL;
    gw_blockbatches_unref(e);
    if (rc != 0)
        return rc;
    if (looked_to < f->cur.need_to)
        return 1; /* against the store's contract: serve what there is, claim nothing about it */
    if (looked_to > f->cur.at)
        f->cur.at = looked_to;
    return 0;
}

static void on_block(void *arg, int err, struct gw_blockbatches *entry)
{
    struct fetch *f = arg;
    struct fetch_worker *fw = f->fw;

    f->cache_wait = NULL;
    f->cur.err = err;
    f->cur.entry = entry;
    gather_run(f);
    fetch_run_queue(fw);
}

static void on_seek(void *arg, int err, int64_t block)
{
    struct fetch *f = arg;
    struct fetch_worker *fw = f->fw;

    f->seek_op = NULL;
    f->cur.seek = false;
    if (err == 0 && block * JC_BLOCK_BYTES > f->cur.at)
        f->cur.at = block * JC_BLOCK_BYTES;
    else if (err == E_NOTFOUND)
        f->cur.at = f->cur.seek_end;
    else
        f->cur.err = err;
    gather_run(f);
    fetch_run_queue(fw);
}

static struct gw_cache_ask ask_of(const struct fetch *f, const struct fetch_part *p, int64_t block)
{
    int64_t block_end = (block + 1) * JC_BLOCK_BYTES;

    struct gw_cache_ask ask = {.part = p->part,
                               .encoder = p->t->encoder,
                               .codec = codec_for(f, p->t->encoder),
                               .bound = p->t->bound,
                               .block = block,
                               .need_to = block_end < p->ends.end ? block_end : p->ends.end};
    gw_signal_of(p->t, p->part, block, &ask.signal);
    return ask;
}

/* 1: parked; 0: the entry is there; negative: failed. */
static int ask_block(struct fetch *f, struct fetch_part *p)
{
    int64_t block = f->cur.at / JC_BLOCK_BYTES;
    int64_t rest = (block + 1) * JC_BLOCK_BYTES - f->cur.at;
    struct gw_cache_ask ask = ask_of(f, p, block);

    f->cur.block = block;
    f->cur.need_to = ask.need_to;
    int err = gw_cache_get(shared(f)->cache, &ask, &f->fw->w->mb.ex, on_block, f, &f->cur.entry,
                           &f->cache_wait);
    if (err < 0)
        return err;
    /* the next block is read and encoded while this one is */
    if ((block + 1) * JC_BLOCK_BYTES < p->ends.end && room(f, p) > (size_t)rest) {
        ask = ask_of(f, p, block + 1);
        gw_cache_prefetch(shared(f)->cache, &ask);
    }
    return f->cache_wait != NULL ? 1 : 0;
}

/* Finds the next block with visible documents, at a cost that does not depend on what lies between
 * (O7). Same results as ask_block. */
static int seek_block(struct fetch *f, struct fetch_part *p)
{
    int64_t block = f->cur.at / JC_BLOCK_BYTES;
    struct gw_cache_ask ask = ask_of(f, p, block);
    struct gw_blockbatches *e = gw_cache_peek(shared(f)->cache, &ask);
    struct jc_store *store = shared(f)->store;

    if (e != NULL && gw_blockbatches_find(e, f->cur.at) < e->n) {
        f->cur.block = block;
        f->cur.need_to = ask.need_to;
        f->cur.entry = e;
        metric_add(M_CACHE_HITS, 1);
        return 0;
    }
    gw_blockbatches_unref(e);
    struct jc_seek_req rq = {.journal = p->part->journal,
                             .offset = f->cur.at,
                             .end_offset = p->ends.end,
                             .min_clock = p->t->bound.min_clock,
                             .max_clock = p->t->bound.max_clock,
                             .mode = JC_SEEK_FIRST};
    f->cur.seek_end = p->ends.end;
    int err = store->ops->seek(store, &rq, &f->fw->w->mb.ex, on_seek, f, &f->seek_op);
    return err < 0 ? err : 1;
}

/* All below the end was looked at: where a hidden run stands between the client's next position and
 * the end, one control batch takes it there (O9), beside the records before it if there are any. */
static int close_part(struct fetch *f, struct fetch_part *p)
{
    int64_t next = p->batch_n == 0 ? p->want.offset : f->batches[f->batches_n - 1].last_offset + 1;
    struct kp_batch b;

    if (next >= p->ends.end)
        return 0;
    int err = kp_batch_control(p->ends.end - 1, -1, &b);
    if (err < 0)
        return err;
    if (has_room(f, p, b.bytes->len))
        return add_batch(f, p, &b);
    kp_batch_fini(&b);
    return 0;
}

static void fed(struct request *rq)
{
    struct fetch *f = rq->park;
    struct fetch_worker *fw = f->fw;

    if (f->state != FETCH_STARVED)
        return; /* something else woke it meanwhile */
    fetch_wake(f);
    fetch_run_queue(fw);
}

/* Drops the pass; another one begins when the connection's output has room again. */
static void starve(struct fetch *f)
{
    fetch_gather_reset(f);
    f->state = FETCH_STARVED;
    request_starve(f->rq, fed);
}

/* 1: parked; 0: p is done with; negative: failed. */
static int gather_part(struct fetch *f, struct fetch_part *p)
{
    for (;;) {
        int rc = f->cur.err;

        if (rc == 0 && f->cur.entry != NULL) {
            rc = use_entry(f, p);
            if (rc == STARVED) {
                starve(f);
                return 1;
            }
            if (rc == 1)
                return 0;
        }
        if (rc < 0)
            return rc;
        if (f->cur.at >= p->ends.end)
            return close_part(f, p);
        if (!has_room(f, p, 1))
            return 0;
        rc = f->cur.seek ? seek_block(f, p) : ask_block(f, p);
        if (rc != 0)
            return rc;
    }
}

/* --- a pass --- */

static void on_fresh(struct fresh_heads *fh)
{
    struct fetch *f = (struct fetch *)(void *)((char *)fh - offsetof(struct fetch, fresh));
    struct fetch_worker *fw = f->fw;

    f->asking = false;
    if (f->asks) /* within the start */
        return;
    gather_run(f);
    fetch_run_queue(fw);
}

/* An offset above the head is no error before the store was asked: another gateway may have served
 * what lies there, and who is told "out of range" loses its place (O8). True: parked. */
static bool ask_head(struct fetch *f, struct fetch_part *p)
{
    if (p->part == NULL || p->part->empty || f->asked == p || !fresh_heads_lag(f->fw->w))
        return false;
    look_ends(f, p);
    if (p->ends.settling || p->want.offset <= p->ends.hwm || p->want.offset <= p->ends.write_head)
        return false;
    f->asked = p;
    fresh_heads_init(&f->fresh, f->fw->w, &f->fresh_slot, 1, on_fresh);
    fresh_heads_add(&f->fresh, p->part);
    f->asking = f->asks = true;
    fresh_heads_start(&f->fresh);
    f->asks = false;
    return f->asking;
}

/* True when p has something to collect. */
static bool begin_part(struct fetch *f, struct fetch_part *p)
{
    p->batch_at = f->batches_n;
    p->batch_n = 0;
    plan_part(f, p);
    switch (p->plan.verdict) {
    case FETCH_ERROR:
    case FETCH_DIVERGED:
        f->answer_now = true;
        return false;
    case FETCH_NOTHING:
        p->seen_end = p->ends.end;
        if (f->session == NULL || fetch_part_told(p, &p->ends))
            fetch_unmark_ready(p);
        return false;
    case FETCH_READ:
        break;
    }
    f->cur.begun = true;
    f->cur.seek = bounded(&p->t->bound);
    f->cur.part_full = false;
    f->cur.at = p->want.offset;
    f->cur.bytes = 0;
    f->cur.err = 0;
    return true;
}

static void end_part(struct fetch *f, struct fetch_part *p)
{
    size_t bytes = f->cur.bytes;

    /* what the partition's own limit left behind counts as there: it is not worth waiting for */
    if (f->cur.part_full && p->max_bytes > 0 && bytes < (size_t)p->max_bytes)
        bytes = (size_t)p->max_bytes;
    f->counted += bytes;
    p->seen_end = p->ends.end;
    f->cur.begun = false;
}

static void gather_end(struct fetch *f)
{
    int64_t now = clock_mono_ms(shared(f)->clock);

    bool ready =
        f->answer_now || f->counted >= f->min_bytes || now >= f->deadline_ms || f->fw->draining;

    if (!ready && f->changed)
        fetch_wake(f);
    else if (ready || !request_may_wait(f->rq))
        fetch_answer(f);
    else
        fetch_wait_begin(f);
}

static void gather_run(struct fetch *f)
{
    for (; f->order_at < f->order_n; f->order_at++) {
        struct fetch_part *p = f->order[f->order_at];

        if (!f->cur.begun && ask_head(f, p))
            return;
        if (!f->cur.begun && !begin_part(f, p))
            continue;
        int rc = gather_part(f, p);
        if (rc == 1)
            return;
        if (rc < 0)
            fail_part(f, p, rc);
        end_part(f, p);
    }
    gather_end(f);
}

/* The ready partitions as they are now, since the list changes while the pass is parked. Requests
 * without a session start somewhere else each time, so that a full answer starves nobody; in
 * sessions the served ones go to the back. */
static int order_parts(struct fetch *f)
{
    struct fetch_part_list *ready = fetch_ready_list(f);
    struct fetch_part *p;
    size_t n = 0, start;

    TAILQ_FOREACH(p, ready, ready_link)
    n++;
    if (n > f->order_cap) {
        struct fetch_part **grown = mem_realloc(f->order, n * sizeof(struct fetch_part *));
        if (grown == NULL)
            return E_NOMEM;
        f->order = grown;
        f->order_cap = n;
    }
    start = n == 0 || f->session != NULL ? 0 : (size_t)(f->rotation % n);
    f->order_n = n;
    size_t i = n - start;
    TAILQ_FOREACH(p, ready, ready_link)
    {
        f->order[i == n ? (i = 0) : i] = p;
        i++;
    }
    return 0;
}

void fetch_gather(struct fetch *f)
{
    fetch_gather_reset(f);
    f->state = FETCH_GATHERING;
    f->answer_now = false;
    f->changed = false;
    if (!request_may_collect(f->rq)) {
        starve(f);
        return;
    }
    if (order_parts(f) < 0) {
        fetch_refuse(f, E_NOMEM);
        return;
    }
    gather_run(f);
}
