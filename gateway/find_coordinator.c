/*
 * FindCoordinator (10): there are no groups here yet, so every key is answered with
 * COORDINATOR_NOT_AVAILABLE, which clients take as "ask again later". Clients that consume assigned
 * partitions need the answer, not a coordinator. Worker thread.
 */
#include "gateway/metrics.h"
#include "gateway/request.h"

#define BATCH_VERSION 4
static const char message[] = "consumer groups are not available";

int handle_find_coordinator(struct request *rq)
{
    const struct kp_find_coordinator_req *body = rq->body;
    struct kp_find_coordinator_resp *resp = request_response(rq);

    if (resp == NULL)
        return E_NOMEM;
    if (rq->header.api_version < BATCH_VERSION) {
        resp->error_code = KE_COORDINATOR_NOT_AVAILABLE;
        resp->error_message = span_str(message);
        resp->node_id = -1;
        resp->port = -1;
        metric_kafka_error(resp->error_code);
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
        c->node_id = -1;
        c->port = -1;
        c->error_code = KE_COORDINATOR_NOT_AVAILABLE;
        c->error_message = span_str(message);
        metric_kafka_error(c->error_code);
    }
    request_reply(rq, resp);
    return 0;
}
