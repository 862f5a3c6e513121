/*
 * Requests that would write or administrate: refused item by item with the error that an operator
 * of a real Kafka would meet as a principal without the right, names and indexes filled in so that
 * clients can match the answer. Produce is advertised only because clients derive what they may
 * fetch from it; with acks = 0 nobody waits for an answer and none is sent. Worker thread.
 */
#include "base/log.h"
#include "gateway/conn.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"

static const char read_only[] = "this gateway serves topics for reading";

enum { RESOURCE_TOPIC = 2, RESOURCE_GROUP = 32 };
#define BY_ID_VERSION 6 /* DeleteTopics */

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

/* A topic that is there says so: programs that create what they need go on then. */
static int refuse_create_topics(struct request *rq)
{
    const struct kp_create_topics_req *body = rq->body;
    struct kp_create_topics_resp *resp = request_response(rq);
    size_t n = (size_t)body->topics_n;

    if (resp == NULL ||
        (resp->topics = kp_array(&kp_create_topics_resp_topics_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->topics_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        bool there = gw_task_topic(request_task(rq), body->topics[i].name) != NULL;
        resp->topics[i].name = body->topics[i].name;
        resp->topics[i].error_code =
            there ? KE_TOPIC_ALREADY_EXISTS : KE_TOPIC_AUTHORIZATION_FAILED;
        resp->topics[i].error_message = there ? span_str("the topic exists") : span_str(read_only);
        metric_kafka_error(resp->topics[i].error_code);
    }
    request_reply(rq, resp);
    return 0;
}

static int refuse_delete_topics(struct request *rq)
{
    const struct kp_delete_topics_req *body = rq->body;
    struct kp_delete_topics_resp *resp = request_response(rq);
    bool by_id = rq->header.api_version >= BY_ID_VERSION;
    size_t n = (size_t)(by_id ? body->topics_n : body->topic_names_n);

    if (resp == NULL ||
        (resp->responses = kp_array(&kp_delete_topics_resp_responses_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->responses_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kp_delete_topics_resp_responses *out = &resp->responses[i];
        out->name = by_id ? body->topics[i].name : body->topic_names[i];
        out->error_code = KE_TOPIC_AUTHORIZATION_FAILED;
        out->error_message = span_str(read_only);
        if (by_id && !uuid_is_zero(&body->topics[i].topic_id)) {
            const struct gw_topic *t =
                gw_task_topic_by_id(request_task(rq), &body->topics[i].topic_id);
            out->topic_id = body->topics[i].topic_id;
            if (t == NULL)
                out->error_code = KE_UNKNOWN_TOPIC_ID;
            else
                out->name = span_str(t->name);
        }
        metric_kafka_error(out->error_code);
    }
    request_reply(rq, resp);
    return 0;
}

static int refuse_create_partitions(struct request *rq)
{
    const struct kp_create_partitions_req *body = rq->body;
    struct kp_create_partitions_resp *resp = request_response(rq);
    size_t n = (size_t)body->topics_n;

    if (resp == NULL ||
        (resp->results = kp_array(&kp_create_partitions_resp_results_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->results_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        resp->results[i].name = body->topics[i].name;
        resp->results[i].error_code = KE_TOPIC_AUTHORIZATION_FAILED;
        resp->results[i].error_message = span_str(read_only);
        metric_kafka_error(KE_TOPIC_AUTHORIZATION_FAILED);
    }
    request_reply(rq, resp);
    return 0;
}

static int refuse_delete_records(struct request *rq)
{
    const struct kp_delete_records_req *body = rq->body;
    struct kp_delete_records_resp *resp = request_response(rq);
    size_t topics = (size_t)body->topics_n;

    if (resp == NULL ||
        (resp->topics = kp_array(&kp_delete_records_resp_topics_desc, &rq->arena, topics)) == NULL)
        return E_NOMEM;
    resp->topics_n = (int32_t)topics;
    for (size_t i = 0; i < topics; i++) {
        const struct kp_delete_records_req_topics *in = &body->topics[i];
        struct kp_delete_records_resp_topics *out = &resp->topics[i];
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
    }
    request_reply(rq, resp);
    return 0;
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

static int refuse_alter_configs(struct request *rq)
{
    const struct kp_alter_configs_req *body = rq->body;
    struct kp_alter_configs_resp *resp = request_response(rq);
    size_t n = (size_t)body->resources_n;

    if (resp == NULL ||
        (resp->responses = kp_array(&kp_alter_configs_resp_responses_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->responses_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        resp->responses[i].resource_type = body->resources[i].resource_type;
        resp->responses[i].resource_name = body->resources[i].resource_name;
        resp->responses[i].error_code = config_error(body->resources[i].resource_type);
        resp->responses[i].error_message = span_str(read_only);
        metric_kafka_error(resp->responses[i].error_code);
    }
    request_reply(rq, resp);
    return 0;
}

static int refuse_incremental_alter_configs(struct request *rq)
{
    const struct kp_incremental_alter_configs_req *body = rq->body;
    struct kp_incremental_alter_configs_resp *resp = request_response(rq);
    size_t n = (size_t)body->resources_n;

    if (resp == NULL ||
        (resp->responses =
             kp_array(&kp_incremental_alter_configs_resp_responses_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->responses_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        resp->responses[i].resource_type = body->resources[i].resource_type;
        resp->responses[i].resource_name = body->resources[i].resource_name;
        resp->responses[i].error_code = config_error(body->resources[i].resource_type);
        resp->responses[i].error_message = span_str(read_only);
        metric_kafka_error(resp->responses[i].error_code);
    }
    request_reply(rq, resp);
    return 0;
}

static int refuse_init_producer_id(struct request *rq)
{
    const struct kp_init_producer_id_req *body = rq->body;
    struct kp_init_producer_id_resp *resp = request_response(rq);

    if (resp == NULL)
        return E_NOMEM;
    resp->error_code = body->transactional_id.p != NULL ? KE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                                                        : KE_CLUSTER_AUTHORIZATION_FAILED;
    resp->producer_id = -1;
    resp->producer_epoch = -1;
    metric_kafka_error(resp->error_code);
    request_reply(rq, resp);
    return 0;
}

static int refuse_describe_acls(struct request *rq)
{
    struct kp_describe_acls_resp *resp = request_response(rq);

    if (resp == NULL)
        return E_NOMEM;
    resp->error_code = KE_SECURITY_DISABLED;
    resp->error_message = span_str("there are no access lists here");
    metric_kafka_error(resp->error_code);
    request_reply(rq, resp);
    return 0;
}

int handle_refuse_admin(struct request *rq)
{
    switch (rq->api->key) {
    case KP_API_CREATE_TOPICS:
        return refuse_create_topics(rq);
    case KP_API_DELETE_TOPICS:
        return refuse_delete_topics(rq);
    case KP_API_DELETE_RECORDS:
        return refuse_delete_records(rq);
    case KP_API_INIT_PRODUCER_ID:
        return refuse_init_producer_id(rq);
    case KP_API_DESCRIBE_ACLS:
        return refuse_describe_acls(rq);
    case KP_API_ALTER_CONFIGS:
        return refuse_alter_configs(rq);
    case KP_API_CREATE_PARTITIONS:
        return refuse_create_partitions(rq);
    case KP_API_INCREMENTAL_ALTER_CONFIGS:
        return refuse_incremental_alter_configs(rq);
    default:
        return E_UNSUPPORTED;
    }
}
