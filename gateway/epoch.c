/*
 * OffsetForLeaderEpoch 2-4 (O11). An epoch is a life of a topic's journals, not a broker's term, so
 * the offsets of an older one mean nothing any more: its end is the log start, which sends the
 * client to the beginning of what there is. Runs on the worker's thread; answers at once, unless
 * the store has to be asked for its heads.
 */
#include "gateway/fetch_int.h"
#include "gateway/fresh_heads.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"

static void answer_one(const struct gw_task *task, struct span topic,
                       const struct kp_offset_for_leader_epoch_req_topics_partitions *in,
                       struct kp_offset_for_leader_epoch_resp_topics_partitions *out)
{
    const struct gw_topic *t = gw_task_topic(task, topic);
    struct fetch_ends ends;
    struct jc_heads heads;

    out->partition = in->partition;
    out->error_code = topic_part_error(task, t, in->partition);
    if (out->error_code == KE_NONE) {
        out->error_code = fetch_epoch_check(in->current_leader_epoch, t->epoch);
        if (out->error_code == KE_NONE) {
            (void)gw_part_heads(t->parts[in->partition], &heads);
            fetch_ends_of(&heads, READ_UNCOMMITTED, &ends);
            /* The end of the running epoch is a head: one that may still rise would make clients
             * drop what they have. */
            if (ends.settling && in->leader_epoch == t->epoch)
                out->error_code = KE_NOT_LEADER_OR_FOLLOWER;
            else
                fetch_epoch_end(in->leader_epoch, t->epoch, &ends, &out->leader_epoch,
                                &out->end_offset);
        }
    }
    if (out->error_code != KE_NONE)
        metric_kafka_error(out->error_code);
}

/* Owner: the request's arena. */
struct asker {
    struct fresh_heads fresh; /* first member */
    struct request *rq;
    const struct gw_view *view; /* owned reference */
    const struct gw_task *task; /* of that view */
    struct kp_offset_for_leader_epoch_resp *resp;
};

static void asker_release(struct asker *as)
{
    as->rq->cancel = NULL;
    as->rq->park = NULL;
    gw_view_unref(as->view);
}

static void cancel(struct request *rq)
{
    struct asker *as = rq->park;

    fresh_heads_cancel(&as->fresh);
    asker_release(as);
}

/* What the store knows by now is known here. */
static void on_fresh(struct fresh_heads *fh)
{
    struct asker *as = (struct asker *)fh; /* first member */
    struct request *rq = as->rq;
    const struct kp_offset_for_leader_epoch_req *req = rq->body;
    struct kp_offset_for_leader_epoch_resp *resp = as->resp;

    for (int32_t i = 0; i < req->topics_n; i++) {
        const struct kp_offset_for_leader_epoch_req_topics *in = &req->topics[i];
        for (int32_t j = 0; j < in->partitions_n; j++)
            answer_one(as->task, in->topic, &in->partitions[j], &resp->topics[i].partitions[j]);
    }
    asker_release(as);
    request_reply(rq, resp);
}

/* The parts whose ends are asked for. */
static int add_parts(struct asker *as, const struct kp_offset_for_leader_epoch_req *req)
{
    struct request *rq = as->rq;
    size_t n = 0;

    for (int32_t i = 0; fresh_heads_lag(rq->w) && i < req->topics_n; i++)
        n += (size_t)req->topics[i].partitions_n;
    struct fresh_slot *slots = arena_array(&rq->arena, n, sizeof *slots);
    if (slots == NULL)
        return E_NOMEM;
    fresh_heads_init(&as->fresh, rq->w, slots, n, on_fresh);
    for (int32_t i = 0; n > 0 && i < req->topics_n; i++) {
        const struct kp_offset_for_leader_epoch_req_topics *in = &req->topics[i];
        const struct gw_topic *t = gw_task_topic(as->task, in->topic);
        for (int32_t j = 0; j < in->partitions_n; j++) {
            if (topic_part_error(as->task, t, in->partitions[j].partition) == KE_NONE)
                fresh_heads_add(&as->fresh, t->parts[in->partitions[j].partition]);
        }
    }
    return 0;
}

static int make_response(struct request *rq, struct kp_offset_for_leader_epoch_resp *resp)
{
    const struct kp_offset_for_leader_epoch_req *req = rq->body;
    size_t n = (size_t)req->topics_n;

    if (resp == NULL || (resp->topics = kp_array(&kp_offset_for_leader_epoch_resp_topics_desc,
                                                 &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->topics_n = req->topics_n;
    for (int32_t i = 0; i < req->topics_n; i++) {
        const struct kp_offset_for_leader_epoch_req_topics *in = &req->topics[i];
        struct kp_offset_for_leader_epoch_resp_topics *out = &resp->topics[i];

        out->topic = in->topic;
        out->partitions = kp_array(&kp_offset_for_leader_epoch_resp_topics_partitions_desc,
                                   &rq->arena, (size_t)in->partitions_n);
        if (out->partitions == NULL)
            return E_NOMEM;
        out->partitions_n = in->partitions_n;
    }
    return 0;
}

int handle_offset_for_leader_epoch(struct request *rq)
{
    struct kp_offset_for_leader_epoch_resp *resp = request_response(rq);
    struct asker *as = arena_alloc(&rq->arena, sizeof *as);

    if (as == NULL || make_response(rq, resp) < 0)
        return E_NOMEM;
    *as = (struct asker){.rq = rq, .resp = resp, .view = rq->w->view, .task = request_task(rq)};
    if (add_parts(as, rq->body) < 0)
        return E_NOMEM;
    (void)gw_view_ref(as->view);
    rq->park = as;
    rq->cancel = cancel;
    fresh_heads_start(&as->fresh);
    return 0;
}
