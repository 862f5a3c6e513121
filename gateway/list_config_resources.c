/*
 * ListConfigResources (74): what DescribeConfigs can be asked about: the task's topics and the
 * broker. Version 0 asks for client metrics alone, which are not served (KIP-714). Worker thread.
 */
#include "gateway/metrics.h"
#include "gateway/topics.h"

enum {
    RESOURCE_TOPIC = 2,
    RESOURCE_BROKER = 4,
    RESOURCE_BROKER_LOGGER = 8,
    RESOURCE_CLIENT_METRICS = 16,
    RESOURCE_GROUP = 32,
};

typedef const struct kp_list_config_resources_req list_req;

static bool known(int8_t type)
{
    return type == RESOURCE_TOPIC || type == RESOURCE_BROKER || type == RESOURCE_BROKER_LOGGER ||
           type == RESOURCE_CLIENT_METRICS || type == RESOURCE_GROUP;
}

/* An empty list asks for all types. */
static bool asked(list_req *body, int8_t type)
{
    for (int32_t i = 0; i < body->resource_types_n; i++) {
        if (body->resource_types[i] == type)
            return true;
    }
    return body->resource_types_n <= 0;
}

static void add(struct kp_list_config_resources_resp *resp, int8_t type, struct span name)
{
    resp->config_resources[resp->config_resources_n].resource_name = name;
    resp->config_resources[resp->config_resources_n++].resource_type = type;
}

static int fill(struct request *rq, struct kp_list_config_resources_resp *resp)
{
    list_req *body = rq->body;
    const struct gw_task *task = request_task(rq);
    bool lists = rq->header.api_version >= 1;
    size_t n = lists ? task->topics_n + 1 : 0;

    resp->config_resources_n = 0;
    resp->config_resources =
        kp_array(&kp_list_config_resources_resp_config_resources_desc, &rq->arena, n);
    if (resp->config_resources == NULL)
        return E_NOMEM;
    for (int32_t i = 0; lists && i < body->resource_types_n; i++) {
        if (!known(body->resource_types[i])) {
            resp->error_code = KE_UNSUPPORTED_VERSION; /* Kafka's answer, too */
            metric_kafka_error(resp->error_code);
            return 0;
        }
    }
    for (size_t i = 0; lists && asked(body, RESOURCE_TOPIC) && i < task->topics_n; i++)
        add(resp, RESOURCE_TOPIC, span_str(task->topics[i].name));
    if (lists && asked(body, RESOURCE_BROKER)) {
        struct topic_broker broker;
        topic_broker(rq, &broker);
        const char *name = arena_printf(&rq->arena, "%d", broker.node);
        if (name == NULL)
            return E_NOMEM;
        add(resp, RESOURCE_BROKER, span_str(name));
    }
    return 0;
}

int handle_list_config_resources(struct request *rq)
{
    struct kp_list_config_resources_resp *resp = request_response(rq);
    int err;

    if (resp == NULL)
        return E_NOMEM;
    if ((err = fill(rq, resp)) < 0)
        return err;
    request_reply(rq, resp);
    return 0;
}
