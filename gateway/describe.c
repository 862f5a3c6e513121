/*
 * DescribeCluster (60) and DescribeTopicPartitions (75): what admin clients of Kafka 4 ask instead
 * of Metadata. There is one broker, and there are no controllers to ask. DescribeTopicPartitions
 * answers sorted topics in pages: a page ends at the client's limit of partitions or ours, and its
 * cursor names the first partition that is missing. Worker thread.
 */
#include <stdlib.h>

#include "gateway/metrics.h"
#include "gateway/topics.h"

enum { ENDPOINT_BROKERS = 1, ENDPOINT_CONTROLLERS = 2 };
#define PAGE_PARTITIONS 2000 /* Kafka's max.request.partition.size.limit */

static int cluster_error(struct request *rq, struct kp_describe_cluster_resp *resp, int16_t error,
                         const char *text)
{
    resp->error_code = error;
    resp->error_message = span_str(text);
    metric_kafka_error(error);
    request_reply(rq, resp);
    return 0;
}

int handle_describe_cluster(struct request *rq)
{
    const struct kp_describe_cluster_req *body = rq->body;
    struct kp_describe_cluster_resp *resp = request_response(rq);
    struct topic_broker broker;

    if (resp == NULL)
        return E_NOMEM;
    if (body->endpoint_type == ENDPOINT_CONTROLLERS)
        return cluster_error(rq, resp, KE_MISMATCHED_ENDPOINT_TYPE,
                             "this is a broker, not a controller");
    if (body->endpoint_type != ENDPOINT_BROKERS)
        return cluster_error(rq, resp, KE_UNSUPPORTED_ENDPOINT_TYPE, "unknown endpoint type");
    resp->brokers = kp_array(&kp_describe_cluster_resp_brokers_desc, &rq->arena, 1);
    if (resp->brokers == NULL)
        return E_NOMEM;
    topic_broker(rq, &broker);
    resp->brokers_n = 1;
    resp->brokers[0].broker_id = broker.node;
    resp->brokers[0].host = span_str(broker.host);
    resp->brokers[0].port = broker.port;
    resp->cluster_id = span_str(rq->w->shared->cluster_id);
    resp->controller_id = broker.node;
    if (body->include_cluster_authorized_operations)
        resp->cluster_authorized_operations = GW_CLUSTER_OPERATIONS;
    request_reply(rq, resp);
    return 0;
}

/* --- topic partitions --- */

struct pager {
    struct request *rq;
    struct topic_broker broker;
    struct kp_describe_topic_partitions_resp *resp;
    int32_t *node;
    size_t left; /* partitions that this page may still hold */
};

/* Names to answer: sorted, each once, from the cursor on. */
static int span_order(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

static int list_names(struct request *rq, struct span **out, size_t *n)
{
    const struct kp_describe_topic_partitions_req *body = rq->body;
    const struct gw_task *task = request_task(rq);
    size_t asked = (size_t)body->topics_n;
    size_t count = asked == 0 ? task->topics_n : asked;
    size_t kept = 0;

    struct span *names = arena_array(&rq->arena, count, sizeof *names);
    if (names == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < count; i++)
        names[i] = asked == 0 ? span_str(task->topics[i].name) : body->topics[i].name;
    if (asked != 0)
        qsort(names, count, sizeof *names, span_order);
    for (size_t i = 0; i < count; i++) {
        bool again = kept > 0 && span_eq(names[kept - 1], names[i]);
        bool before = body->cursor != NULL && span_cmp(names[i], body->cursor->topic_name) < 0;
        if (!again && !before)
            names[kept++] = names[i];
    }
    *out = names;
    *n = kept;
    return 0;
}

static int set_cursor(struct pager *p, struct span topic, size_t partition)
{
    p->resp->next_cursor = arena_alloc(&p->rq->arena, sizeof *p->resp->next_cursor);
    if (p->resp->next_cursor == NULL)
        return E_NOMEM;
    p->resp->next_cursor->topic_name = topic;
    p->resp->next_cursor->partition_index = (int32_t)partition;
    return 0;
}

/* Adds the topic's partitions from `from` on, as many as the page holds. */
static int add_topic(struct pager *p, const struct gw_topic *t, struct span name, size_t from)
{
    struct kp_describe_topic_partitions_resp_topics *out = &p->resp->topics[p->resp->topics_n++];
    bool away = p->broker.elsewhere;
    size_t parts_n = away && t->parts_n == 0 ? 1 : t->parts_n; /* as in metadata.c */
    size_t n = from < parts_n ? parts_n - from : 0;

    if (n > p->left)
        n = p->left;
    out->name = name;
    if (!away)
        out->topic_id = t->id;
    out->error_code = away ? KE_NONE : topic_error(t);
    out->topic_authorized_operations = GW_TOPIC_OPERATIONS;
    out->partitions =
        kp_array(&kp_describe_topic_partitions_resp_topics_partitions_desc, &p->rq->arena, n);
    if (out->partitions == NULL)
        return E_NOMEM;
    out->partitions_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kp_describe_topic_partitions_resp_topics_partitions *q = &out->partitions[i];
        q->partition_index = (int32_t)(from + i);
        q->leader_id = p->broker.node;
        q->leader_epoch = away ? -1 : t->epoch;
        q->replica_nodes = q->isr_nodes = p->node;
        q->replica_nodes_n = q->isr_nodes_n = 1;
        /* Null is legal on the wire, but the Java admin client falls over it. */
        q->eligible_leader_replicas_n = q->last_known_elr_n = 0;
    }
    p->left -= n;
    if (from + n < parts_n)
        return set_cursor(p, out->name, from + n);
    return 0;
}

static int add_page(struct pager *p, const struct span *names, size_t n, size_t from)
{
    const struct kp_describe_topic_partitions_req *body = p->rq->body;
    int err;

    p->resp->topics = kp_array(&kp_describe_topic_partitions_resp_topics_desc, &p->rq->arena, n);
    if (p->resp->topics == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n && p->resp->next_cursor == NULL; i++) {
        const struct gw_topic *t = gw_task_topic(request_task(p->rq), names[i]);
        if (t == NULL) {
            struct kp_describe_topic_partitions_resp_topics *out =
                &p->resp->topics[p->resp->topics_n++];
            out->name = names[i];
            out->error_code = topic_name_error(names[i]);
            metric_kafka_error(out->error_code);
            continue;
        }
        if (p->left == 0)
            return set_cursor(p, names[i], 0);
        bool at_cursor = body->cursor != NULL && span_eq(names[i], body->cursor->topic_name);
        if ((err = add_topic(p, t, names[i], at_cursor ? from : 0)) < 0)
            return err;
    }
    return 0;
}

int handle_describe_topic_partitions(struct request *rq)
{
    const struct kp_describe_topic_partitions_req *body = rq->body;
    struct pager p = {.rq = rq, .resp = request_response(rq)};
    struct span *names;
    size_t n;
    size_t from = 0;
    int err;

    if (body->cursor != NULL && body->cursor->partition_index < 0)
        return E_INVALID; /* the answer has no place for an error: Kafka's client never asks so */
    if (body->cursor != NULL)
        from = (size_t)body->cursor->partition_index;
    if (p.resp == NULL || (p.node = arena_alloc(&rq->arena, sizeof *p.node)) == NULL)
        return E_NOMEM;
    topic_broker(rq, &p.broker);
    *p.node = p.broker.node;
    p.left = body->response_partition_limit < 1 ? 1 : (size_t)body->response_partition_limit;
    if (p.left > PAGE_PARTITIONS)
        p.left = PAGE_PARTITIONS;
    if ((err = list_names(rq, &names, &n)) < 0 || (err = add_page(&p, names, n, from)) < 0)
        return err;
    request_reply(rq, p.resp);
    return 0;
}
