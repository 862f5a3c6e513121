/*
 * OffsetFetch: what a group has committed in the present epochs of its topics. -1 without an error
 * is said only when there truly is no such commit. A name that the task does not show is no error,
 * as with Kafka: what is asked is what the group knows, and consumers end on an error there. Of a
 * topic that went and may come back the newest commit counts. Answers from memory. Groups thread.
 */
#include <string.h>

#include "base/utf8.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#define NULL_ALL_VERSION 2
#define BATCH_VERSION    8
#define TOPIC_ID_VERSION 10

/* The answer of one group has two layouts with the same fields; the newer one is filled in, and
 * copied into the older one where that is asked for. */
typedef struct kp_offset_fetch_resp_groups group_answer;
typedef struct kp_offset_fetch_resp_groups_topics topic_answer;
typedef struct kp_offset_fetch_resp_groups_topics_partitions part_answer;

struct question {
    struct span group_id;
    struct group_speaker who;
    const struct kp_offset_fetch_req_groups_topics *topics;
    int32_t topics_n; /* -1: all */
};

/* at NULL: there is no such commit. */
static int fill_part(struct group_call *c, const struct group_offset *at, int32_t partition,
                     part_answer *out)
{
    out->partition_index = partition;
    out->committed_offset = -1;
    out->committed_leader_epoch = -1;
    out->metadata = span_str("");
    if (at == NULL)
        return 0;
    out->committed_offset = at->offset;
    if (at->offset >= 0)
        out->committed_leader_epoch = at->epoch;
    if (at->metadata_n > 0) {
        char *copy = arena_strndup(&c->arena, at->metadata, at->metadata_n);
        if (copy == NULL)
            return E_NOMEM;
        out->metadata = span_of(copy, at->metadata_n);
    }
    return 0;
}

static int fill_named(struct groups *gs, struct group_call *c, const struct group *g,
                      const struct question *q, group_answer *out)
{
    out->topics =
        kp_array(&kp_offset_fetch_resp_groups_topics_desc, &c->arena, (size_t)q->topics_n);
    if (out->topics == NULL)
        return E_NOMEM;
    out->topics_n = q->topics_n;
    for (int32_t i = 0; i < q->topics_n; i++) {
        bool by_id = c->version >= TOPIC_ID_VERSION;
        const struct gw_topic *t =
            by_id ? groups_topic_by_id(gs, c->task_name, &q->topics[i].topic_id)
                  : groups_topic(gs, c->task_name, q->topics[i].name);
        topic_answer *to = &out->topics[i];
        to->name = q->topics[i].name;
        to->topic_id = q->topics[i].topic_id;
        to->partitions_n = q->topics[i].partition_indexes_n;
        to->partitions = kp_array(&kp_offset_fetch_resp_groups_topics_partitions_desc, &c->arena,
                                  (size_t)to->partitions_n);
        if (to->partitions == NULL)
            return E_NOMEM;
        for (int32_t j = 0; j < to->partitions_n; j++) {
            int32_t partition = q->topics[i].partition_indexes[j];
            const struct group_offset *at = NULL;
            if (g != NULL && t != NULL)
                at = offsets_get(&g->offsets, span_str(t->name), partition, t->epoch);
            else if (g != NULL && !by_id)
                at = offsets_newest(&g->offsets, q->topics[i].name, partition);
            if (fill_part(c, at, partition, &to->partitions[j]) < 0)
                return E_NOMEM;
            if (t == NULL && by_id)
                to->partitions[j].error_code = KE_UNKNOWN_TOPIC_ID;
        }
    }
    return 0;
}

/* Commits of the topic's present epoch. */
static int fill_present(struct group_call *c, const struct gw_topic *t,
                        const struct offsets_topic *list, topic_answer *to)
{
    to->name = span_of(arena_strndup(&c->arena, t->name, strlen(t->name)), strlen(t->name));
    to->topic_id = t->id;
    to->partitions =
        kp_array(&kp_offset_fetch_resp_groups_topics_partitions_desc, &c->arena, list->n);
    if (to->name.p == NULL || to->partitions == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < list->n; i++) {
        if (list->list[i].epoch != t->epoch)
            continue;
        if (fill_part(c, &list->list[i], list->list[i].partition,
                      &to->partitions[to->partitions_n]) < 0)
            return E_NOMEM;
        to->partitions_n++;
    }
    return 0;
}

static int fill_all(struct groups *gs, struct group_call *c, const struct group *g,
                    group_answer *out)
{
    size_t n = g == NULL ? 0 : g->offsets.by_name.n;
    const struct offsets_topic *list;

    out->topics_n = 0;
    if ((out->topics = kp_array(&kp_offset_fetch_resp_groups_topics_desc, &c->arena, n)) == NULL)
        return E_NOMEM;
    if (g == NULL)
        return 0;
    TAILQ_FOREACH(list, &g->offsets.topics, link)
    {
        const struct gw_topic *t = groups_topic(gs, c->task_name, span_str(list->name));
        topic_answer *to = &out->topics[out->topics_n];
        if (t == NULL)
            continue; /* the task does not show it any more */
        if (fill_present(c, t, list, to) < 0)
            return E_NOMEM;
        if (to->partitions_n > 0)
            out->topics_n++;
    }
    return 0;
}

static int answer_group(struct groups *gs, struct group_call *c, const struct question *q,
                        group_answer *out)
{
    struct group *g = NULL;

    out->group_id = q->group_id;
    out->error_code = c->refuse;
    if (out->error_code == KE_NONE && !utf8_is_text(q->group_id))
        out->error_code = KE_INVALID_GROUP_ID;
    if (out->error_code == KE_NONE)
        g = groups_find(gs, c->task_name, q->group_id);
    if (g != NULL && g->ops->check_fetch != NULL &&
        (q->who.generation >= 0 || q->who.member_id.n > 0))
        out->error_code = g->ops->check_fetch(g, &q->who, groups_now_ms(gs));
    if (out->error_code != KE_NONE) {
        metric_kafka_error(out->error_code);
        out->topics_n = 0;
        out->topics = kp_array(&kp_offset_fetch_resp_groups_topics_desc, &c->arena, 0);
        return out->topics == NULL ? E_NOMEM : 0;
    }
    return q->topics_n < 0 ? fill_all(gs, c, g, out) : fill_named(gs, c, g, q, out);
}

/* --- the layout of one group --- */

static int old_question(struct group_call *c, struct question *q)
{
    const struct kp_offset_fetch_req *req = c->body;
    struct kp_offset_fetch_req_groups_topics *topics;
    size_t n = req->topics_n > 0 ? (size_t)req->topics_n : 0;

    *q = (struct question){.group_id = req->group_id, .topics_n = req->topics_n};
    q->who.generation = -1;
    if (req->topics_n < 0 && c->version < NULL_ALL_VERSION)
        q->topics_n = 0;
    if ((topics = arena_array(&c->arena, n + 1, sizeof *topics)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        topics[i].name = req->topics[i].name;
        topics[i].partition_indexes = req->topics[i].partition_indexes;
        topics[i].partition_indexes_n = req->topics[i].partition_indexes_n;
    }
    q->topics = topics;
    return 0;
}

/* Version 1 has errors of partitions alone; clients of 2 to 7 look at both. */
static int copy_answer(struct group_call *c, const struct question *q, const group_answer *from)
{
    struct kp_offset_fetch_resp *resp = c->resp;
    bool spread = from->error_code != KE_NONE && q->topics_n > 0;
    size_t n = spread ? (size_t)q->topics_n : (size_t)from->topics_n;

    resp->error_code = from->error_code;
    if ((resp->topics = kp_array(&kp_offset_fetch_resp_topics_desc, &c->arena, n)) == NULL)
        return E_NOMEM;
    resp->topics_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kp_offset_fetch_resp_topics *to = &resp->topics[i];
        size_t parts = spread ? (size_t)q->topics[i].partition_indexes_n
                              : (size_t)from->topics[i].partitions_n;
        to->name = spread ? q->topics[i].name : from->topics[i].name;
        to->partitions = kp_array(&kp_offset_fetch_resp_topics_partitions_desc, &c->arena, parts);
        if (to->partitions == NULL)
            return E_NOMEM;
        to->partitions_n = (int32_t)parts;
        for (size_t j = 0; j < parts; j++) {
            struct kp_offset_fetch_resp_topics_partitions *p = &to->partitions[j];
            part_answer refused = {.committed_offset = -1,
                                   .committed_leader_epoch = -1,
                                   .metadata = span_str(""),
                                   .error_code = from->error_code};
            if (spread)
                refused.partition_index = q->topics[i].partition_indexes[j];
            const part_answer *in = spread ? &refused : &from->topics[i].partitions[j];
            p->partition_index = in->partition_index;
            p->committed_offset = in->committed_offset;
            p->committed_leader_epoch = in->committed_leader_epoch;
            p->metadata = in->metadata;
            p->error_code = in->error_code;
        }
    }
    return 0;
}

static int run_one(struct groups *gs, struct group_call *c)
{
    struct question q;
    group_answer answer;

    kp_defaults(&kp_offset_fetch_resp_groups_desc, &answer);
    if (old_question(c, &q) < 0 || answer_group(gs, c, &q, &answer) < 0)
        return E_NOMEM;
    return copy_answer(c, &q, &answer);
}

static int run_batch(struct groups *gs, struct group_call *c)
{
    const struct kp_offset_fetch_req *req = c->body;
    struct kp_offset_fetch_resp *resp = c->resp;

    resp->groups = kp_array(&kp_offset_fetch_resp_groups_desc, &c->arena, (size_t)req->groups_n);
    if (resp->groups == NULL)
        return E_NOMEM;
    resp->groups_n = req->groups_n;
    for (int32_t i = 0; i < req->groups_n; i++) {
        const struct kp_offset_fetch_req_groups *in = &req->groups[i];
        const struct question q = {
            .group_id = in->group_id,
            .who = {in->member_id.p == NULL ? span_str("") : in->member_id,
                    {NULL, 0},
                    in->member_epoch},
            .topics = in->topics,
            .topics_n = in->topics_n,
        };
        if (answer_group(gs, c, &q, &resp->groups[i]) < 0)
            return E_NOMEM;
    }
    return 0;
}

static void run_fetch(struct groups *gs, struct group_call *c)
{
    int err = c->version >= BATCH_VERSION ? run_batch(gs, c) : run_one(gs, c);

    if (err < 0)
        group_call_fail(c);
    else
        group_call_reply(c);
}

int handle_offset_fetch(struct request *rq)
{
    return groups_call(rq, run_fetch);
}
