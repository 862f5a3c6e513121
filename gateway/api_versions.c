/*
 * ApiVersions (18): the rows of the dispatch table, and nothing else. A version that we do not
 * speak is answered in the layout of version 0 with error 35 and the same list, so that the client
 * can try again on this connection (KIP-511). From version 3 on the client's software name and
 * version must look like names, as in Kafka; otherwise error 42. Worker thread.
 */
#include <stdio.h>

#include "gateway/conn.h"
#include "gateway/dispatch.h"
#include "gateway/metrics.h"

static bool alnum(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? */
static bool software_word(struct span s)
{
    if (s.n == 0 || !alnum(s.p[0]) || !alnum(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
            return false;
    }
    return true;
}

int handle_api_versions(struct request *rq)
{
    struct kp_api_versions_resp *resp = request_response(rq);
    const struct kp_api_versions_req *body = rq->body;

    if (resp == NULL)
        return E_NOMEM;
    if (rq->unknown_version) {
        resp->error_code = KE_UNSUPPORTED_VERSION;
    } else if (rq->header.api_version >= 3 && (!software_word(body->client_software_name) ||
                                               !software_word(body->client_software_version))) {
        resp->error_code = KE_INVALID_REQUEST;
        metric_kafka_error(resp->error_code);
        request_reply(rq, resp);
        return 0;
    }
    if (resp->error_code != KE_NONE)
        metric_kafka_error(resp->error_code);
    else if (rq->header.api_version >= 3)
        snprintf(rq->conn->software, sizeof rq->conn->software, "%.*s/%.*s",
                 SPAN_FMT(body->client_software_name), SPAN_FMT(body->client_software_version));
    resp->api_keys = kp_array(&kp_api_versions_resp_api_keys_desc, &rq->arena, api_rows_n);
    if (resp->api_keys == NULL)
        return E_NOMEM;
    resp->api_keys_n = (int32_t)api_rows_n;
    for (size_t i = 0; i < api_rows_n; i++) {
        resp->api_keys[i].api_key = api_rows[i].key;
        resp->api_keys[i].min_version = api_rows[i].min;
        resp->api_keys[i].max_version = api_rows[i].max;
    }
    request_reply(rq, resp);
    return 0;
}
