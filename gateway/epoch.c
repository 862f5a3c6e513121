/*
 * OffsetForLeaderEpoch 2-4 (O11). An epoch is a life of a topic's journals, not a broker's term, so
 * the offsets of an older one mean nothing any more: its end is the log start, which sends the
 * client to the beginning of what there is. Runs on the worker's thread; answers at once.
 */
#include "gateway/fetch_int.h"
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

int handle_offset_for_leader_epoch(struct request *rq)
{
    const struct kp_offset_for_leader_epoch_req *req = rq->body;
    struct kp_offset_for_leader_epoch_resp *resp = request_response(rq);
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
        for (int32_t j = 0; j < in->partitions_n; j++)
            answer_one(request_task(rq), in->topic, &in->partitions[j], &out->partitions[j]);
    }
    request_reply(rq, resp);
    return 0;
}
