/*
 * OffsetCommit: checked against the group and the topics as they are now, written, and answered
 * when it is durable; only then the memory changes. A commit is filed under the epoch that it was
 * made in (docs/groups.md): without one, or with one that we never gave out, under the present one.
 * Groups thread.
 */
#include <string.h>

#include "base/utf8.h"
#include "gateway/groups/consumer.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#define TOPIC_ID_VERSION     10
#define MEMBER_EPOCH_VERSION 9 /* from here on clients know KIP-848's errors */

typedef const struct kp_offset_commit_req commit_req;
typedef const struct kp_offset_commit_req_topics commit_topic;
typedef const struct kp_offset_commit_req_topics_partitions commit_part;

/* All answers are laid out first, so that nothing can fail once it is written. */
static int lay_out(struct group_call *c)
{
    commit_req *req = c->body;
    struct kp_offset_commit_resp *resp = c->resp;
    size_t n = (size_t)req->topics_n;
    size_t ops = 0;

    resp->topics = kp_array(&kp_offset_commit_resp_topics_desc, &c->arena, n);
    if (resp->topics == NULL)
        return E_NOMEM;
    resp->topics_n = req->topics_n;
    for (size_t i = 0; i < n; i++) {
        commit_topic *in = &req->topics[i];
        struct kp_offset_commit_resp_topics *out = &resp->topics[i];
        out->name = in->name;
        out->topic_id = in->topic_id;
        out->partitions = kp_array(&kp_offset_commit_resp_topics_partitions_desc, &c->arena,
                                   (size_t)in->partitions_n);
        if (out->partitions == NULL)
            return E_NOMEM;
        out->partitions_n = in->partitions_n;
        ops += (size_t)in->partitions_n;
        for (int32_t j = 0; j < in->partitions_n; j++)
            out->partitions[j].partition_index = in->partitions[j].partition_index;
    }
    c->write.ops = arena_array(&c->arena, ops + 1, sizeof *c->write.ops);
    return c->write.ops == NULL ? E_NOMEM : 0;
}

/* The same error for all, except those that have one. */
static void refuse(struct group_call *c, int16_t error)
{
    struct kp_offset_commit_resp *resp = c->resp;

    for (int32_t i = 0; i < resp->topics_n; i++) {
        for (int32_t j = 0; j < resp->topics[i].partitions_n; j++) {
            struct kp_offset_commit_resp_topics_partitions *p = &resp->topics[i].partitions[j];
            if (p->error_code == KE_NONE)
                p->error_code = error;
        }
    }
    metric_kafka_error(error);
    group_call_reply(c);
}

static struct group_speaker speaker(const struct group_call *c)
{
    commit_req *req = c->body;

    return (struct group_speaker){req->member_id, req->group_instance_id,
                                  req->generation_id_or_member_epoch};
}

/* Finds the group, and whether this one may commit to it. */
static int16_t admit(struct groups *gs, struct group_call *c)
{
    commit_req *req = c->body;
    const struct group_speaker who = speaker(c);
    bool nobody = who.generation < 0 && who.member_id.n == 0 && who.instance_id.p == NULL;

    if (c->refuse != KE_NONE)
        return c->refuse;
    if (!utf8_is_text(req->group_id))
        return KE_INVALID_GROUP_ID;
    c->group = groups_find(gs, c->task_name, req->group_id);
    if (c->group == NULL) {
        if (!nobody)
            return who.generation < 0 ? KE_UNKNOWN_MEMBER_ID : KE_ILLEGAL_GENERATION;
        /* An empty id is nobody's group, but old clients commit to it. */
        return groups_make(gs, c->task_name, req->group_id, &c->group) < 0
                   ? KE_COORDINATOR_NOT_AVAILABLE
                   : KE_NONE;
    }
    if (nobody && c->group->ops->empty(c->group))
        return KE_NONE;
    int16_t error = c->group->ops->check_commit(c->group, &who, groups_now_ms(gs));
    if (c->group->ops == &consumer_ops && c->version < MEMBER_EPOCH_VERSION &&
        (error == KE_NONE || error == KE_STALE_MEMBER_EPOCH))
        return KE_UNSUPPORTED_VERSION; /* it is a member, but may not speak like this */
    return error;
}

static int16_t take_one(struct group_call *c, const struct gw_topic *t, commit_part *in,
                        int64_t wall_ms)
{
    const struct group_speaker who = speaker(c);
    int32_t epoch = in->committed_leader_epoch;

    if (t == NULL || in->partition_index < 0 || (size_t)in->partition_index >= t->parts_n)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (in->committed_metadata.n > OFFSET_METADATA_MAX)
        return KE_OFFSET_METADATA_TOO_LARGE;
    if (epoch <= 0 || epoch > t->epoch) { /* ours begin at 1; 0 is what unset numbers are in Go */
        int16_t error = who.generation < 0
                            ? KE_NONE
                            : c->group->ops->check_raised(c->group, &who, span_str(t->name));
        if (error != KE_NONE)
            return error;
        epoch = t->epoch;
    }
    struct span name = span_of(arena_strndup(&c->arena, t->name, strlen(t->name)), strlen(t->name));
    if (name.p == NULL)
        return KE_COORDINATOR_NOT_AVAILABLE;
    c->write.ops[c->write.ops_n++] = (struct group_op){
        .kind = GROUP_OP_PUT_OFFSET,
        .task = span_str(c->group->task),
        .group = span_str(c->group->id),
        .topic = name,
        .partition = in->partition_index,
        .epoch = epoch,
        .offset = in->committed_offset,
        .commit_ms = wall_ms,
        .metadata = in->committed_metadata,
    };
    return KE_NONE;
}

static void take_all(struct groups *gs, struct group_call *c)
{
    commit_req *req = c->body;
    struct kp_offset_commit_resp *resp = c->resp;
    int64_t wall_ms = groups_wall_ms(gs);

    for (int32_t i = 0; i < req->topics_n; i++) {
        commit_topic *in = &req->topics[i];
        bool by_id = c->version >= TOPIC_ID_VERSION;
        const struct gw_topic *t = by_id ? groups_topic_by_id(gs, c->task_name, &in->topic_id)
                                         : groups_topic(gs, c->task_name, in->name);
        for (int32_t j = 0; j < in->partitions_n; j++) {
            int16_t error = by_id && t == NULL ? (int16_t)KE_UNKNOWN_TOPIC_ID
                                               : take_one(c, t, &in->partitions[j], wall_ms);
            resp->topics[i].partitions[j].error_code = error;
            if (error != KE_NONE)
                metric_kafka_error(error);
        }
    }
}

/* Durable, or not; the memory follows in the order of the writes. */
static void written(struct group_write *w)
{
    struct group_call *c = call_of_write(w);
    struct groups *gs = c->gs;
    struct group *g = c->group;
    struct group_out out;
    int err = w->err;

    groups_written(gs, g);
    for (size_t i = 0; i < w->ops_n && err == 0; i++) {
        const struct group_op *op = &w->ops[i];
        err = offsets_put(&g->offsets, op->topic, op->partition, op->epoch, op->offset,
                          op->metadata, op->commit_ms);
    }
    if (err < 0)
        refuse(c, KE_COORDINATOR_NOT_AVAILABLE);
    else
        group_call_reply(c);
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

static void run_commit(struct groups *gs, struct group_call *c)
{
    struct group_out out;
    int16_t error;

    if (lay_out(c) < 0) {
        group_call_fail(c);
        return;
    }
    if ((error = admit(gs, c)) != KE_NONE) {
        refuse(c, error);
        return;
    }
    take_all(gs, c);
    if (c->write.ops_n > 0) {
        groups_write(gs, c->group, &c->write, written);
        return;
    }
    struct group *g = c->group;
    group_call_reply(c);
    group_out_init(&out);
    groups_settle(gs, g, &out); /* it may have been made for this */
}

int handle_offset_commit(struct request *rq)
{
    return groups_call(rq, run_commit);
}
