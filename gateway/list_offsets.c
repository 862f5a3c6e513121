/*
 * ListOffsets 1-11 (O7, O10). The ends of a partition are known and answered at once. A time is
 * looked up in two steps: the store's index names the lowest block that may hold a matching
 * document, then that block is read and searched document by document on the load pool; where the
 * index was too coarse, the search goes on behind the block. A request keeps a few look-ups running
 * at a time. Runs on the worker's thread, except where a function says otherwise.
 */
#include "base/mem.h"
#include "gateway/block_build.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"
#include "journal_client/uuid.h"

#define LATEST           (-1)
#define EARLIEST         (-2)
#define LARGEST          (-3)
#define EARLIEST_LOCAL   (-4)
#define LATEST_TIERED    (-5)
#define EARLIEST_PENDING (-6)

#define RUNNING_MAX 8 /* look-ups of one request at a time */

typedef struct kp_list_offsets_resp_topics_partitions answer; /* its generated name fills a line */

struct lister;

/* Owner: the pool job until it posts itself back, then the worker. Outlives a request that is
 * cancelled meanwhile: lookup is NULL then. */
struct block_look {
    struct task task;      /* first member */
    struct lookup *lookup; /* worker */
    struct executor *ex;
    struct jc_block block; /* owned */
    struct gw_time_look look;
    int err;
    int64_t offset;
    int64_t timestamp;
};

/* Owner: the request's arena. One partition that is searched by time. */
struct lookup {
    struct lister *ls;
    answer *out;
    struct gw_part *part; /* owned by the lister's view, as is t */
    const struct gw_topic *t;
    int64_t from; /* documents below were looked at */
    int64_t end;  /* the reader's end when the look-up began */
    int64_t min_ms;
    bool largest;
    /* of the largest time: what was found, and whether all blocks that may hold more are tried */
    bool found;
    bool sweep;
    int64_t start;
    int64_t seek_end; /* the index is asked for documents below */
    int64_t best_offset;
    int64_t best_ms;
    struct jc_op *op;        /* seek or read; at most one of these two */
    struct block_look *look; /* search on the pool */
};

/* Owner: the request's arena. */
struct lister {
    struct request *rq;
    const struct gw_view *view; /* owned reference */
    const struct gw_task *task; /* of that view */
    struct kp_list_offsets_resp *resp;
    struct lookup *lookups;
    size_t n;
    size_t next; /* to be started */
    size_t running;
    bool pumping;
};

static void pump(struct lister *ls);

static struct jc_store *store_of(const struct lookup *l)
{
    return l->ls->rq->w->shared->store;
}

static void found_none(answer *out)
{
    out->offset = -1;
    out->timestamp = -1;
    out->leader_epoch = -1;
}

/* The field came with version 4, and may not be dropped silently. */
static void set_epoch(const struct request *rq, answer *out, int32_t epoch)
{
    if (rq->header.api_version >= 4)
        out->leader_epoch = epoch;
}

static void set_error(answer *out, int16_t error)
{
    metric_kafka_error(error);
    found_none(out);
    out->error_code = error;
}

static void lookup_end(struct lookup *l, int err, int64_t offset, int64_t timestamp)
{
    struct lister *ls = l->ls;

    if (err == 0) {
        l->out->offset = offset;
        l->out->timestamp = timestamp;
        set_epoch(ls->rq, l->out, l->t->epoch);
    } else if (err == E_NOTFOUND) {
        found_none(l->out);
    } else {
        metric_add(M_STORE_ERRORS, 1);
        set_error(l->out, kafka_error_of(err));
    }
    ls->running--;
    pump(ls);
}

/* --- the block that the index named --- */

static void lookup_step(struct lookup *l);

/* The index names the block with the largest clock. Where that clock lies above the bound, another
 * block may hold a larger one below it: then all blocks that may are looked into, once. Where it
 * may be one behind the end, which is in the last block alone, the index is asked for the blocks
 * before that: nobody is told of an offset that Fetch would still call out of range. */
static void largest_found(struct lookup *l, bool found, int64_t offset, int64_t timestamp,
                          int64_t next, bool beyond_end)
{
    if (found && (!l->found || timestamp > l->best_ms ||
                  (timestamp == l->best_ms && offset < l->best_offset))) {
        l->found = true;
        l->best_ms = timestamp;
        l->best_offset = offset;
    }
    if (l->t->bound.max_clock == UINT64_MAX) {
        if (beyond_end && l->seek_end == l->end) {
            l->seek_end = next - JC_BLOCK_BYTES;
            lookup_step(l);
        } else {
            lookup_end(l, l->found ? 0 : E_NOTFOUND, l->best_offset, l->best_ms);
        }
        return;
    }
    l->from = l->sweep ? next : l->start;
    l->sweep = true;
    lookup_step(l);
}

/* Back on the worker. */
static void look_back(struct task *t)
{
    struct block_look *bl = (struct block_look *)t; /* first member */
    struct lookup *l = bl->lookup;
    int64_t offset = bl->offset, timestamp = bl->timestamp;
    int64_t next = (bl->block.block + 1) * JC_BLOCK_BYTES;
    bool beyond_end = bl->block.read_to > bl->look.end;
    int err = bl->err;

    jc_block_fini(&bl->block);
    mem_free(bl);
    if (l == NULL)
        return;
    l->look = NULL;
    if (l->largest && (err == 0 || err == E_NOTFOUND)) {
        largest_found(l, err == 0, offset, timestamp, next, beyond_end);
    } else if (err == E_NOTFOUND && next < l->end) {
        l->from = next;
        lookup_step(l);
    } else {
        lookup_end(l, err, offset, timestamp);
    }
}

/* A thread of the load pool. */
static void look_run(struct task *t)
{
    struct block_look *bl = (struct block_look *)t; /* first member */

    bl->err = gw_block_look_time(&bl->look, &bl->block, &bl->offset, &bl->timestamp);
    bl->task.run = look_back;
    executor_post(bl->ex, &bl->task);
}

static void on_block(void *arg, int err, struct jc_block *block)
{
    struct lookup *l = arg;
    struct block_look *bl;

    l->op = NULL;
    if (err < 0) {
        lookup_end(l, err, -1, -1);
        return;
    }
    if ((bl = mem_zalloc(sizeof *bl)) == NULL) {
        jc_block_fini(block);
        lookup_end(l, E_NOMEM, -1, -1);
        return;
    }
    bl->task.run = look_run;
    bl->lookup = l;
    bl->ex = &l->ls->rq->w->mb.ex;
    bl->block = *block;
    bl->look = (struct gw_time_look){.bound = l->t->bound,
                                     .from = l->from,
                                     .end = l->end,
                                     .min_ms = l->min_ms,
                                     .largest = l->largest};
    l->look = bl;
    executor_post(jobpool_executor(l->ls->rq->w->shared->loads), &bl->task);
}

/* --- the index --- */

static void on_seek(void *arg, int err, int64_t block)
{
    struct lookup *l = arg;
    struct jc_store *store = store_of(l);
    const struct jc_block_req rq = {.journal = l->part->journal, .block = block, .from = l->from};

    l->op = NULL;
    if (err == 0)
        err = store->ops->read_block(store, &rq, &l->ls->rq->w->mb.ex, on_block, l, &l->op);
    if (err == E_NOTFOUND && l->found)
        lookup_end(l, 0, l->best_offset, l->best_ms); /* the sweep is over */
    else if (err < 0)
        lookup_end(l, err, -1, -1);
}

static void lookup_step(struct lookup *l)
{
    struct jc_store *store = store_of(l);
    int64_t min_ms = l->largest ? l->best_ms : l->min_ms;
    bool any = l->largest && (!l->found || l->best_ms < 0);
    uint64_t min_clock = any ? 0 : jc_clock_from_unix_ms(min_ms);
    struct jc_seek_req rq = {.journal = l->part->journal,
                             .offset = l->from,
                             .end_offset = l->seek_end,
                             .min_clock = min_clock > l->t->bound.min_clock ? min_clock
                                                                            : l->t->bound.min_clock,
                             .max_clock = l->t->bound.max_clock,
                             .mode = l->largest && !l->sweep ? JC_SEEK_MAX : JC_SEEK_FIRST};

    if (rq.min_clock > rq.max_clock || l->from >= l->seek_end) {
        lookup_end(l, l->found ? 0 : E_NOTFOUND, l->best_offset, l->best_ms);
        return;
    }
    int err = store->ops->seek(store, &rq, &l->ls->rq->w->mb.ex, on_seek, l, &l->op);
    if (err < 0)
        lookup_end(l, err, -1, -1);
}

/* --- the request --- */

static void lister_release(struct lister *ls)
{
    ls->rq->cancel = NULL;
    ls->rq->park = NULL;
    gw_view_unref(ls->view);
    ls->view = NULL;
}

static void cancel(struct request *rq)
{
    struct lister *ls = rq->park;

    for (size_t i = 0; i < ls->next; i++) {
        struct lookup *l = &ls->lookups[i];

        if (l->op != NULL)
            store_of(l)->ops->cancel(l->op);
        if (l->look != NULL)
            l->look->lookup = NULL; /* read by look_back alone, on this thread */
    }
    lister_release(ls);
}

static void pump(struct lister *ls)
{
    if (ls->pumping) /* a look-up that ended within its start */
        return;
    ls->pumping = true;
    while (ls->next < ls->n && ls->running < RUNNING_MAX) {
        ls->running++;
        lookup_step(&ls->lookups[ls->next++]);
    }
    ls->pumping = false;
    if (ls->next == ls->n && ls->running == 0) {
        struct request *rq = ls->rq;
        struct kp_list_offsets_resp *resp = ls->resp;

        lister_release(ls);
        request_reply(rq, resp);
    }
}

/* Kafka's table: which special times a version may ask for. */
static bool time_supported(int64_t timestamp, int16_t version)
{
    switch (timestamp) {
    case LATEST:
    case EARLIEST:
        return true;
    case LARGEST:
        return version >= 7;
    case EARLIEST_LOCAL:
        return version >= 8;
    case LATEST_TIERED:
        return version >= 9;
    case EARLIEST_PENDING:
        return version >= 11;
    default:
        return timestamp >= 0;
    }
}

/* Answers what is known, or sets up *l and returns true. */
static bool needs_lookup(struct lister *ls, struct span topic, int8_t isolation,
                         const struct kp_list_offsets_req_topics_partitions *in, answer *out,
                         struct lookup *l)
{
    const struct gw_topic *t = gw_task_topic(ls->task, topic);
    struct fetch_ends ends;
    struct jc_heads heads;
    int16_t error;

    out->partition_index = in->partition_index;
    found_none(out);
    if (!time_supported(in->timestamp, ls->rq->header.api_version)) {
        set_error(out, KE_UNSUPPORTED_VERSION);
        return false;
    }
    if ((error = topic_part_error(ls->task, t, in->partition_index)) != KE_NONE) {
        set_error(out, error);
        return false;
    }
    if ((error = fetch_epoch_check(in->current_leader_epoch, t->epoch)) != KE_NONE) {
        set_error(out, error);
        return false;
    }
    struct gw_part *part = t->parts[in->partition_index];
    (void)gw_part_heads(part, &heads);
    fetch_ends_of(&heads, isolation, &ends);
    switch (in->timestamp) {
    case LATEST:
        out->offset = ends.end;
        set_epoch(ls->rq, out, t->epoch);
        return false;
    case EARLIEST:
    case EARLIEST_LOCAL:
        out->offset = ends.log_start;
        set_epoch(ls->rq, out, t->epoch);
        return false;
    case LATEST_TIERED:
    case EARLIEST_PENDING: /* nothing is tiered: no offset, no error, as Kafka without tiers */
        return false;
    default:
        break;
    }
    *l = (struct lookup){.ls = ls,
                         .out = out,
                         .part = part,
                         .t = t,
                         .from = ends.log_start,
                         .start = ends.log_start,
                         .end = ends.end,
                         .seek_end = ends.end,
                         .min_ms = in->timestamp,
                         .largest = in->timestamp == LARGEST};
    return true;
}

static int fill(struct lister *ls, const struct kp_list_offsets_req *req)
{
    struct arena *a = &ls->rq->arena;
    struct kp_list_offsets_resp *resp = ls->resp;
    size_t n = 0;

    for (int32_t i = 0; i < req->topics_n; i++) {
        for (int32_t j = 0; j < req->topics[i].partitions_n; j++) {
            int64_t ts = req->topics[i].partitions[j].timestamp;
            n += ts >= 0 || ts == LARGEST;
        }
    }
    ls->lookups = arena_array(a, n, sizeof *ls->lookups);
    resp->topics = kp_array(&kp_list_offsets_resp_topics_desc, a, (size_t)req->topics_n);
    if (ls->lookups == NULL || resp->topics == NULL)
        return E_NOMEM;
    resp->topics_n = req->topics_n;
    for (int32_t i = 0; i < req->topics_n; i++) {
        const struct kp_list_offsets_req_topics *in = &req->topics[i];
        struct kp_list_offsets_resp_topics *out = &resp->topics[i];

        out->name = in->name;
        out->partitions =
            kp_array(&kp_list_offsets_resp_topics_partitions_desc, a, (size_t)in->partitions_n);
        if (out->partitions == NULL)
            return E_NOMEM;
        out->partitions_n = in->partitions_n;
        for (int32_t j = 0; j < in->partitions_n; j++)
            ls->n += needs_lookup(ls, in->name, req->isolation_level, &in->partitions[j],
                                  &out->partitions[j], &ls->lookups[ls->n]);
    }
    return 0;
}

int handle_list_offsets(struct request *rq)
{
    struct lister *ls = arena_alloc(&rq->arena, sizeof *ls);

    if (ls == NULL || (ls->resp = request_response(rq)) == NULL)
        return E_NOMEM;
    ls->rq = rq;
    ls->view = gw_view_ref(rq->w->view);
    ls->task = request_task(rq);
    rq->park = ls;
    if (fill(ls, rq->body) < 0) {
        lister_release(ls);
        return E_NOMEM;
    }
    rq->cancel = cancel;
    pump(ls);
    return 0;
}
