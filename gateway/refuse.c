/*
 * Requests that would write or administrate: refused item by item with the error that an operator
 * of a real Kafka would meet as a principal without the right, names and indexes filled in so that
 * clients can match the answer. Produce is advertised only because clients derive what they may
 * fetch from it; with acks = 0 nobody waits for an answer and none is sent. Worker thread.
 */
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "gateway/conn.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"

static const char read_only[] = "this gateway serves topics for reading";

enum { RESOURCE_TOPIC = 2, RESOURCE_GROUP = 32 };

int handle_produce(struct request *rq)
{
    const struct kp_produce_req *body = rq->body;
    struct kp_produce_resp *resp = request_response(rq);

    log_peer(LOG_INFO, "produce.refused", LF_STR("peer", rq->conn->peer),
             LF_SPAN("client", rq->header.client_id), LF_INT("acks", body->acks));
    if (body->acks == 0) {
        metric_kafka_error(KE_TOPIC_AUTHORIZATION_FAILED);
        request_no_reply(rq);
        return 0;
    }
    if (resp == NULL)
        return E_NOMEM;
    size_t topics = (size_t)body->topic_data_n;
    resp->responses = kp_array(&kp_produce_resp_responses_desc, &rq->arena, topics);
    if (resp->responses == NULL)
        return E_NOMEM;
    resp->responses_n = (int32_t)topics;
    for (size_t i = 0; i < topics; i++) {
        const struct kp_produce_req_topic_data *in = &body->topic_data[i];
        struct kp_produce_resp_responses *out = &resp->responses[i];
        size_t n = (size_t)in->partition_data_n;
        out->name = in->name;
        out->partition_responses =
            kp_array(&kp_produce_resp_responses_partition_responses_desc, &rq->arena, n);
        if (out->partition_responses == NULL)
            return E_NOMEM;
        out->partition_responses_n = (int32_t)n;
        for (size_t k = 0; k < n; k++) {
            out->partition_responses[k].index = in->partition_data[k].index;
            out->partition_responses[k].error_code = KE_TOPIC_AUTHORIZATION_FAILED;
            out->partition_responses[k].base_offset = -1;
            out->partition_responses[k].error_message = span_str(read_only);
            metric_kafka_error(KE_TOPIC_AUTHORIZATION_FAILED);
        }
    }
    request_reply(rq, resp);
    return 0;
}

/* --- the others: a list of items, each refused by itself --- */

/* How one item is refused; out is of the answer's list. Kafka's error, which the caller counts;
 * KE_NONE: counted already; E_NOMEM. */
typedef int refuse_fn(struct request *rq, size_t i, void *out);

/* A topic that is there says so: programs that create what they need go on then. */
static int refuse_topic(struct request *rq, size_t i, void *item)
{
    const struct kp_create_topics_req *body = rq->body;
    struct kp_create_topics_resp_topics *out = item;
    bool there = gw_task_topic(request_task(rq), body->topics[i].name) != NULL;

    out->name = body->topics[i].name;
    out->error_message = there ? span_str("the topic exists") : span_str(read_only);
    return out->error_code = there ? KE_TOPIC_ALREADY_EXISTS : KE_TOPIC_AUTHORIZATION_FAILED;
}

static int refuse_deletion(struct request *rq, size_t i, void *item)
{
    const struct kp_delete_topics_req *body = rq->body;
    struct kp_delete_topics_resp_responses *out = item;
    bool by_id = body->topics_n > 0; /* from version 6 on; before, there are names */

    out->name = by_id ? body->topics[i].name : body->topic_names[i];
    out->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
    out->error_message = span_str(read_only);
    if (by_id && !uuid_is_zero(&body->topics[i].topic_id)) {
        const struct gw_topic *t = gw_task_topic_by_id(request_task(rq), &body->topics[i].topic_id);
        out->topic_id = body->topics[i].topic_id;
        if (t == NULL)
            out->error_code = KE_UNKNOWN_TOPIC_ID;
        else
            out->name = span_str(t->name);
    }
    return out->error_code;
}

static int refuse_partitions(struct request *rq, size_t i, void *item)
{
    const struct kp_create_partitions_req *body = rq->body;
    struct kp_create_partitions_resp_results *out = item;

    out->name = body->topics[i].name;
    out->error_message = span_str(read_only);
    return out->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
}

static int refuse_records(struct request *rq, size_t i, void *item)
{
    const struct kp_delete_records_req_topics *in =
        &((const struct kp_delete_records_req *)rq->body)->topics[i];
    struct kp_delete_records_resp_topics *out = item;
    size_t n = (size_t)in->partitions_n;

    out->name = in->name;
    out->partitions = kp_array(&kp_delete_records_resp_topics_partitions_desc, &rq->arena, n);
    if (out->partitions == NULL)
        return E_NOMEM;
    out->partitions_n = (int32_t)n;
    for (size_t k = 0; k < n; k++) {
        out->partitions[k].partition_index = in->partitions[k].partition_index;
        out->partitions[k].low_watermark = -1;
        out->partitions[k].error_code = KE_TOPIC_AUTHORIZATION_FAILED;
        metric_kafka_error(KE_TOPIC_AUTHORIZATION_FAILED);
    }
    return KE_NONE;
}

static int16_t config_error(int8_t resource_type)
{
    switch (resource_type) {
    case RESOURCE_TOPIC:
        return KE_TOPIC_AUTHORIZATION_FAILED;
    case RESOURCE_GROUP:
        return KE_GROUP_AUTHORIZATION_FAILED;
    default:
        return KE_CLUSTER_AUTHORIZATION_FAILED;
    }
}

static int refuse_configs(struct request *rq, size_t i, void *item)
{
    const struct kp_alter_configs_req *body = rq->body;
    struct kp_alter_configs_resp_responses *out = item;

    out->resource_type = body->resources[i].resource_type;
    out->resource_name = body->resources[i].resource_name;
    out->error_message = span_str(read_only);
    return out->error_code = config_error(out->resource_type);
}

static int refuse_changes(struct request *rq, size_t i, void *item)
{
    const struct kp_incremental_alter_configs_req *body = rq->body;
    struct kp_incremental_alter_configs_resp_responses *out = item;

    out->resource_type = body->resources[i].resource_type;
    out->resource_name = body->resources[i].resource_name;
    out->error_message = span_str(read_only);
    return out->error_code = config_error(out->resource_type);
}

static int refuse_producer(struct request *rq, size_t i, void *item)
{
    const struct kp_init_producer_id_req *body = rq->body;
    struct kp_init_producer_id_resp *out = item;

    (void)i;
    out->producer_id = -1;
    out->producer_epoch = -1;
    return out->error_code = body->transactional_id.p != NULL
                                 ? KE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                                 : KE_CLUSTER_AUTHORIZATION_FAILED;
}

static int refuse_acls(struct request *rq, size_t i, void *item)
{
    struct kp_describe_acls_resp *out = item;

    (void)rq;
    (void)i;
    out->error_message = span_str("there are no access lists here");
    return out->error_code = KE_SECURITY_DISABLED;
}

/* Where the lists of an API lie. */
struct refusal {
    int16_t key;
    refuse_fn *refuse;
    /* of the answer; NULL: it has none, and is refused as a whole */
    const struct kp_desc *item;
    size_t item_bytes, list, list_n;
    size_t asked_n; /* of the request */
    size_t named_n; /* of its other list, of which one is empty; 0: it has one */
};

// clang-format off
#define LISTS(api, in, out)                                                                        \
    .item = &kp_##api##_resp_##out##_desc, .item_bytes = sizeof(struct kp_##api##_resp_##out),     \
    .list = offsetof(struct kp_##api##_resp, out),                                                 \
    .list_n = offsetof(struct kp_##api##_resp, out##_n),                                           \
    .asked_n = offsetof(struct kp_##api##_req, in##_n)

static const struct refusal refusals[] = {
    {KP_API_CREATE_TOPICS,             refuse_topic,      LISTS(create_topics, topics, topics)},
    {KP_API_DELETE_TOPICS,             refuse_deletion,   LISTS(delete_topics, topics, responses),
     .named_n = offsetof(struct kp_delete_topics_req, topic_names_n)},
    {KP_API_DELETE_RECORDS,            refuse_records,    LISTS(delete_records, topics, topics)},
    {KP_API_INIT_PRODUCER_ID,          refuse_producer,   .item = NULL},
    {KP_API_DESCRIBE_ACLS,             refuse_acls,       .item = NULL},
    {KP_API_ALTER_CONFIGS,             refuse_configs,    LISTS(alter_configs, resources, responses)},
    {KP_API_CREATE_PARTITIONS,         refuse_partitions, LISTS(create_partitions, topics, results)},
    {KP_API_INCREMENTAL_ALTER_CONFIGS, refuse_changes,    LISTS(incremental_alter_configs, resources, responses)},
};
// clang-format on

static int32_t count_at(const void *body, size_t offset)
{
    int32_t n = 0;

    if (offset > 0)
        memcpy(&n, (const char *)body + offset, sizeof n);
    return n;
}

static int refuse_all(struct request *rq, const struct refusal *r)
{
    char *resp = request_response(rq), *item = resp;
    int32_t n = 1;

    if (resp == NULL)
        return E_NOMEM;
    if (r->item != NULL) {
        n = count_at(rq->body, r->asked_n) + count_at(rq->body, r->named_n);
        if ((item = kp_array(r->item, &rq->arena, (size_t)n)) == NULL)
            return E_NOMEM;
        memcpy(resp + r->list, &(void *){item}, sizeof(void *));
        memcpy(resp + r->list_n, &n, sizeof n);
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        int error = r->refuse(rq, i, item + i * r->item_bytes);
        if (error < 0)
            return error;
        if (error != KE_NONE)
            metric_kafka_error((int16_t)error);
    }
    request_reply(rq, resp);
    return 0;
}

int handle_refuse_admin(struct request *rq)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].key == rq->api->key)
            return refuse_all(rq, &refusals[i]);
    }
    return E_UNSUPPORTED;
}
