/*
 * FindCoordinator (10). Groups of the task are kept here, so we are the coordinator of every one of
 * them, unless the task is served elsewhere. There are no transactions and no share groups: those
 * keys get COORDINATOR_NOT_AVAILABLE and INVALID_REQUEST. Worker thread; answers at once.
 */
#include "gateway/metrics.h"
#include "gateway/request.h"
#include "gateway/topics.h"

#define BATCH_VERSION 4

enum key_type { KEY_GROUP = 0, KEY_TRANSACTION = 1, KEY_SHARE = 2 };

struct found {
    int16_t error;
    const char *message; /* NULL: none */
    int32_t node;
    const char *host;
    int32_t port;
};

static struct found refused(int16_t error, const char *message)
{
    return (struct found){error, message, -1, "", -1};
}

static struct found find(const struct request *rq, int8_t key_type)
{
    const struct gw_task *task = request_task(rq);
    const char *host;
    uint16_t port;

    if (key_type == KEY_TRANSACTION)
        return refused(KE_COORDINATOR_NOT_AVAILABLE, "there are no transactions here");
    if (key_type != KEY_GROUP)
        return refused(KE_INVALID_REQUEST, "only groups have a coordinator here");
    if (task->redirect_host != NULL)
        return (struct found){KE_NONE, NULL, task->redirect_node, task->redirect_host,
                              task->redirect_port};
    if (rq->w->shared->groups == NULL || rq->w->draining)
        return refused(KE_COORDINATOR_NOT_AVAILABLE, "groups are not available now");
    request_advertised(rq, &host, &port);
    return (struct found){KE_NONE, NULL, GW_NODE_ID, host, port};
}

int handle_find_coordinator(struct request *rq)
{
    const struct kp_find_coordinator_req *body = rq->body;
    struct kp_find_coordinator_resp *resp = request_response(rq);
    const struct found f = find(rq, body->key_type);

    if (resp == NULL)
        return E_NOMEM;
    if (rq->header.api_version < BATCH_VERSION) {
        resp->error_code = f.error;
        resp->error_message = span_str(f.message);
        resp->node_id = f.node;
        resp->host = span_str(f.host);
        resp->port = f.port;
        if (f.error != KE_NONE)
            metric_kafka_error(f.error);
        request_reply(rq, resp);
        return 0;
    }
    size_t n = (size_t)body->coordinator_keys_n;
    resp->coordinators = kp_array(&kp_find_coordinator_resp_coordinators_desc, &rq->arena, n);
    if (resp->coordinators == NULL)
        return E_NOMEM;
    resp->coordinators_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct kp_find_coordinator_resp_coordinators *c = &resp->coordinators[i];
        c->key = body->coordinator_keys[i];
        c->node_id = f.node;
        c->host = span_str(f.host);
        c->port = f.port;
        c->error_code = f.error;
        c->error_message = span_str(f.message);
        if (f.error != KE_NONE)
            metric_kafka_error(f.error);
    }
    request_reply(rq, resp);
    return 0;
}
