/*
 * ListOffsets 1-11 (O7, O10). The ends of a partition are known and answered at once, unless the
 * store has to be asked for them first; a time is looked up then (time_look.h). A request keeps a
 * few look-ups running at a time. Runs on the worker's thread.
 */
#include "gateway/fetch_int.h"
#include "gateway/fresh_heads.h"
#include "gateway/metrics.h"
#include "gateway/time_look.h"
#include "gateway/topics.h"

#define LATEST           (-1)
#define EARLIEST         (-2)
#define LARGEST          (-3)
#define EARLIEST_LOCAL   (-4)
#define LATEST_TIERED    (-5)
#define EARLIEST_PENDING (-6)

#define RUNNING_MAX 8 /* look-ups by time of one request at a time */

typedef struct kp_list_offsets_resp_topics_partitions answer; /* its generated name fills a line */

/* Owner: the request's arena. One partition whose answer is not known at once. */
struct lookup {
    struct time_look look; /* first member */
    struct lister *ls;
    const struct gw_topic *t; /* of the lister's view, as is part */
    struct gw_part *part;
    int64_t timestamp;
    answer *out;
};

/* Owner: the request's arena. */
struct lister {
    struct request *rq;
    const struct gw_view *view; /* owned reference */
    const struct gw_task *task; /* of that view */
    struct kp_list_offsets_resp *resp;
    int8_t isolation;
    struct lookup *lookups;
    size_t n;
    struct fresh_heads fresh; /* the store is asked about all of them first */
    bool known;               /* ... and has answered */
    size_t next;              /* to be looked up */
    size_t running;
    bool pumping;
};

static void pump(struct lister *ls);

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

static void lookup_end(struct time_look *look, int err, int64_t offset, int64_t timestamp)
{
    struct lookup *l = (struct lookup *)look; /* first member */
    struct lister *ls = l->ls;

    if (err == 0) {
        l->out->offset = offset;
        l->out->timestamp = timestamp;
        set_epoch(ls->rq, l->out, l->look.t->epoch);
    } else if (err == E_NOTFOUND) {
        found_none(l->out);
    } else {
        metric_add(M_STORE_ERRORS, 1);
        set_error(l->out, kafka_error_of(err));
    }
    ls->running--;
    pump(ls);
}

/* --- ends --- */

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

    fresh_heads_cancel(&ls->fresh);
    for (size_t i = 0; i < ls->next; i++)
        time_look_cancel(&ls->lookups[i].look);
    lister_release(ls);
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

/* True: where the partition ends, or begins, is part of the answer. */
static bool asks_for_ends(int64_t timestamp)
{
    return timestamp != LATEST_TIERED && timestamp != EARLIEST_PENDING;
}

/* Answers by what is known, or sets up a look-up by time and returns true. */
static bool needs_search(struct lookup *l)
{
    struct lister *ls = l->ls;
    struct fetch_ends ends;
    struct jc_heads heads;
    answer *out = l->out;

    (void)gw_part_heads(l->part, &heads);
    fetch_ends_of(&heads, ls->isolation, &ends);
    /* Where it ends is what these ask for (O8). */
    if (ends.settling && (l->timestamp == LATEST || l->timestamp == LARGEST || l->timestamp >= 0)) {
        set_error(out, ls->rq->header.api_version >= 5 ? KE_OFFSET_NOT_AVAILABLE
                                                       : KE_LEADER_NOT_AVAILABLE);
        return false;
    }
    switch (l->timestamp) {
    case LATEST:
        out->offset = ends.end;
        set_epoch(ls->rq, out, l->t->epoch);
        return false;
    case EARLIEST:
    case EARLIEST_LOCAL:
        out->offset = ends.log_start;
        set_epoch(ls->rq, out, l->t->epoch);
        return false;
    case LATEST_TIERED:
    case EARLIEST_PENDING: /* nothing is tiered: no offset, no error, as Kafka without tiers */
        return false;
    default:
        break;
    }
    const struct gw_shared *shared = ls->rq->w->shared;
    time_look_init(&l->look, l->t, l->part, &ends, l->timestamp);
    l->look.largest = l->timestamp == LARGEST;
    l->look.store = shared->store;
    l->look.loads = jobpool_executor(shared->loads);
    l->look.ex = &ls->rq->w->mb.ex;
    l->look.done = lookup_end;
    return true;
}

static void pump(struct lister *ls)
{
    if (ls->pumping || !ls->known) /* something that ended within its start */
        return;
    ls->pumping = true;
    while (ls->next < ls->n && ls->running < RUNNING_MAX) {
        struct lookup *l = &ls->lookups[ls->next++];
        if (!needs_search(l))
            continue;
        ls->running++;
        time_look_start(&l->look);
    }
    ls->pumping = false;
    if (ls->next == ls->n && ls->running == 0) {
        struct request *rq = ls->rq;
        struct kp_list_offsets_resp *resp = ls->resp;

        lister_release(ls);
        request_reply(rq, resp);
    }
}

/* What the store knows by now is known here. */
static void on_fresh(struct fresh_heads *fh)
{
    struct lister *ls = (struct lister *)(void *)((char *)fh - offsetof(struct lister, fresh));

    ls->known = true;
    pump(ls);
}

/* --- the request --- */

/* Refuses, or sets up *l and returns true. */
static bool admit(struct lister *ls, struct span topic,
                  const struct kp_list_offsets_req_topics_partitions *in, answer *out,
                  struct lookup *l)
{
    const struct gw_topic *t = gw_task_topic(ls->task, topic);
    int16_t error;

    out->partition_index = in->partition_index;
    found_none(out);
    if (!time_supported(in->timestamp, ls->rq->header.api_version)) {
        set_error(out, KE_UNSUPPORTED_VERSION);
        return false;
    }
    if ((error = topic_part_error(ls->task, t, in->partition_index)) != KE_NONE ||
        (error = fetch_epoch_check(in->current_leader_epoch, t->epoch)) != KE_NONE) {
        set_error(out, error);
        return false;
    }
    *l = (struct lookup){.ls = ls,
                         .t = t,
                         .part = t->parts[in->partition_index],
                         .timestamp = in->timestamp,
                         .out = out};
    return true;
}

static int fill(struct lister *ls, const struct kp_list_offsets_req *req)
{
    struct arena *a = &ls->rq->arena;
    struct kp_list_offsets_resp *resp = ls->resp;
    size_t n = 0;

    for (int32_t i = 0; i < req->topics_n; i++)
        n += (size_t)req->topics[i].partitions_n;
    ls->lookups = arena_array(a, n, sizeof *ls->lookups);
    resp->topics = kp_array(&kp_list_offsets_resp_topics_desc, a, (size_t)req->topics_n);
    bool lag = fresh_heads_lag(ls->rq->w);
    struct fresh_slot *slots = arena_array(a, lag ? n : 0, sizeof *slots);
    if (ls->lookups == NULL || resp->topics == NULL || slots == NULL)
        return E_NOMEM;
    fresh_heads_init(&ls->fresh, ls->rq->w, slots, lag ? n : 0, on_fresh);
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
        for (int32_t j = 0; j < in->partitions_n; j++) {
            struct lookup *l = &ls->lookups[ls->n];
            if (!admit(ls, in->name, &in->partitions[j], &out->partitions[j], l))
                continue;
            ls->n++;
            if (lag && asks_for_ends(l->timestamp))
                fresh_heads_add(&ls->fresh, l->part);
        }
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
    ls->isolation = ((const struct kp_list_offsets_req *)rq->body)->isolation_level;
    if (fill(ls, rq->body) < 0) {
        lister_release(ls);
        return E_NOMEM;
    }
    rq->cancel = cancel;
    fresh_heads_start(&ls->fresh);
    return 0;
}
