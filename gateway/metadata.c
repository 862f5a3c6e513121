/*
 * Metadata (3), versions 0 to 13. Never creates a topic, whatever the client allows. In version 0
 * an empty list asks for all topics; from version 1 on null does, and an empty list for none (only
 * the broker is told then). Topics may be asked for by id from version 12 on; versions 10 and 11
 * carry the field, but Kafka refuses it there, and so do we. Each known topic is answered once,
 * however often it is asked for. Worker thread.
 */
#include "gateway/metrics.h"
#include "gateway/topics.h"

#define BY_ID_VERSION 12

struct builder {
    struct request *rq;
    const struct gw_task *task;
    struct kp_metadata_resp *resp;
    struct topic_broker broker;
    int32_t *node; /* the one replica of every partition: shared by all */
    bool *seen;    /* by place in the task */
    bool operations;
};

static struct kp_metadata_resp_topics *next_topic(struct builder *b)
{
    return &b->resp->topics[b->resp->topics_n++];
}

/* A task that is served elsewhere names the other place as the leader of what is known of its
 * topics, one partition at least, without the epochs and ids of this place: clients would compare
 * them with those of the other. */
static int add_partitions(struct builder *b, const struct gw_topic *t,
                          struct kp_metadata_resp_topics *out)
{
    bool away = b->broker.elsewhere;
    size_t n = away && t->parts_n == 0 ? 1 : t->parts_n;

    out->partitions = kp_array(&kp_metadata_resp_topics_partitions_desc, &b->rq->arena, n);
    if (out->partitions == NULL)
        return E_NOMEM;
    out->partitions_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kp_metadata_resp_topics_partitions *p = &out->partitions[i];
        p->partition_index = (int32_t)i;
        p->leader_id = b->broker.node;
        p->leader_epoch = away ? -1 : t->epoch;
        p->replica_nodes = p->isr_nodes = b->node;
        p->replica_nodes_n = p->isr_nodes_n = 1;
    }
    return 0;
}

/* name: the one that was asked for, which may be another way to write a strict name; null: none. */
static int add_topic(struct builder *b, const struct gw_topic *t, struct span name)
{
    size_t at = (size_t)(t - b->task->topics);
    bool other = name.p != NULL && !span_eq_str(name, t->name);

    if (b->seen[at] && !other)
        return 0;
    b->seen[at] = b->seen[at] || !other;
    struct kp_metadata_resp_topics *out = next_topic(b);
    out->name = other ? name : span_str(t->name);
    if (!b->broker.elsewhere || name.p == NULL)
        out->topic_id = t->id;
    out->error_code = b->broker.elsewhere ? KE_NONE : topic_error(t);
    if (out->error_code != KE_NONE)
        metric_kafka_error(out->error_code);
    if (b->operations)
        out->topic_authorized_operations = GW_TOPIC_OPERATIONS;
    return add_partitions(b, t, out);
}

static void add_error(struct builder *b, struct span name, const struct kp_uuid *id, int16_t error)
{
    struct kp_metadata_resp_topics *out = next_topic(b);

    if (name.p == NULL && b->rq->header.api_version < BY_ID_VERSION)
        name = span_of("", 0); /* null is not possible there */
    out->name = name;
    out->topic_id = *id;
    out->error_code = error;
    metric_kafka_error(error);
}

static int add_asked(struct builder *b, const struct kp_metadata_req_topics *asked)
{
    bool by_id = !uuid_is_zero(&asked->topic_id);
    const struct gw_topic *t;

    if ((by_id || asked->name.p == NULL) && b->rq->header.api_version < BY_ID_VERSION) {
        add_error(b, asked->name, &asked->topic_id, KE_INVALID_REQUEST);
        return 0;
    }
    if (by_id) {
        t = gw_task_topic_by_id(b->task, &asked->topic_id);
        if (t == NULL) {
            add_error(b, (struct span){NULL, 0}, &asked->topic_id, KE_UNKNOWN_TOPIC_ID);
            return 0;
        }
        return add_topic(b, t, (struct span){NULL, 0});
    }
    t = asked->name.p == NULL ? NULL : gw_task_topic(b->task, asked->name);
    if (t == NULL) {
        add_error(b, asked->name, &asked->topic_id, topic_name_error(asked->name));
        return 0;
    }
    return add_topic(b, t, asked->name);
}

static int add_topics(struct builder *b, const struct kp_metadata_req *body)
{
    bool all = b->rq->header.api_version == 0 ? body->topics_n <= 0 : body->topics_n < 0;
    size_t asked = all ? b->task->topics_n : (size_t)body->topics_n;
    int err;

    b->seen = arena_array(&b->rq->arena, b->task->topics_n, sizeof(bool));
    b->resp->topics = kp_array(&kp_metadata_resp_topics_desc, &b->rq->arena, asked);
    if (b->seen == NULL || b->resp->topics == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < asked; i++) {
        err = all ? add_topic(b, &b->task->topics[i], span_str(b->task->topics[i].name))
                  : add_asked(b, &body->topics[i]);
        if (err < 0)
            return err;
    }
    return 0;
}

int handle_metadata(struct request *rq)
{
    const struct kp_metadata_req *body = rq->body;
    struct kp_metadata_resp *resp = request_response(rq);
    int err;

    if (resp == NULL)
        return E_NOMEM;
    struct builder b = {.rq = rq,
                        .task = request_task(rq),
                        .resp = resp,
                        .node = arena_alloc(&rq->arena, sizeof(int32_t)),
                        .operations = body->include_topic_authorized_operations};
    resp->brokers = kp_array(&kp_metadata_resp_brokers_desc, &rq->arena, 1);
    if (b.node == NULL || resp->brokers == NULL)
        return E_NOMEM;
    topic_broker(rq, &b.broker);
    *b.node = b.broker.node;
    resp->brokers_n = 1;
    resp->brokers[0].node_id = b.broker.node;
    resp->brokers[0].host = span_str(b.broker.host);
    resp->brokers[0].port = b.broker.port;
    resp->controller_id = b.broker.node;
    resp->cluster_id = span_str(rq->w->shared->cluster_id);
    if (body->include_cluster_authorized_operations)
        resp->cluster_authorized_operations = GW_CLUSTER_OPERATIONS;
    if ((err = add_topics(&b, body)) < 0)
        return err;
    request_reply(rq, resp);
    return 0;
}
