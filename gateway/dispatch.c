/*
 * From a frame to its handler. The order of checks is written once, here:
 *
 *   1. header     too short or malformed: the connection closes
 *   2. API key    not in the table: the connection closes. Kafka does the same; there is no answer
 *                 whose layout the client would expect
 *   3. version    outside of the row's range: ApiVersions is answered with error 35 in the layout
 *                 of version 0 and the connection goes on (KIP-511); any other closes
 *   4. login      before it only ApiVersions, SaslHandshake and SaslAuthenticate are served, after
 * a session's end only the latter two: any other closes, its body unseen
 *   5. body       must decode wholly, within the arena's budget: otherwise the connection closes
 *   6. handler
 *
 * "Closes" always means: after the answers to the requests before it.
 */
#include "gateway/dispatch.h"

#include "base/mem.h"
#include "gateway/conn.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"

/* clang-format off */
const struct api_row api_rows[] = {
    {KP_API_PRODUCE,                   3,  9, handle_produce},
    {KP_API_FETCH,                     4, 18, handle_fetch},
    {KP_API_LIST_OFFSETS,              1, 11, handle_list_offsets},
    {KP_API_METADATA,                  0, 13, handle_metadata},
    {KP_API_OFFSET_COMMIT,             2, 10, handle_offset_commit},
    {KP_API_OFFSET_FETCH,              1, 10, handle_offset_fetch},
    {KP_API_FIND_COORDINATOR,          0,  6, handle_find_coordinator},
    {KP_API_JOIN_GROUP,                0,  9, handle_join_group},
    {KP_API_HEARTBEAT,                 0,  4, handle_heartbeat},
    {KP_API_LEAVE_GROUP,               0,  5, handle_leave_group},
    {KP_API_SYNC_GROUP,                0,  5, handle_sync_group},
    {KP_API_DESCRIBE_GROUPS,           0,  6, handle_describe_groups},
    {KP_API_LIST_GROUPS,               0,  5, handle_list_groups},
    {KP_API_SASL_HANDSHAKE,            0,  1, handle_sasl_handshake},
    {KP_API_API_VERSIONS,              0,  4, handle_api_versions},
    {KP_API_CREATE_TOPICS,             2,  7, handle_refuse_admin},
    {KP_API_DELETE_TOPICS,             1,  6, handle_refuse_admin},
    {KP_API_DELETE_RECORDS,            0,  2, handle_refuse_admin},
    {KP_API_INIT_PRODUCER_ID,          0,  5, handle_refuse_admin},
    {KP_API_OFFSET_FOR_LEADER_EPOCH,   2,  4, handle_offset_for_leader_epoch},
    {KP_API_DESCRIBE_ACLS,             1,  3, handle_refuse_admin},
    {KP_API_DESCRIBE_CONFIGS,          1,  4, handle_describe_configs},
    {KP_API_ALTER_CONFIGS,             0,  2, handle_refuse_admin},
    {KP_API_DESCRIBE_LOG_DIRS,         1,  5, handle_describe_log_dirs},
    {KP_API_SASL_AUTHENTICATE,         0,  2, handle_sasl_authenticate},
    {KP_API_CREATE_PARTITIONS,         0,  3, handle_refuse_admin},
    {KP_API_DELETE_GROUPS,             0,  2, handle_delete_groups},
    {KP_API_INCREMENTAL_ALTER_CONFIGS, 0,  1, handle_refuse_admin},
    {KP_API_OFFSET_DELETE,             0,  0, handle_offset_delete},
    {KP_API_DESCRIBE_CLUSTER,          0,  2, handle_describe_cluster},
    {KP_API_CONSUMER_GROUP_HEARTBEAT,  0,  1, handle_consumer_group_heartbeat},
    {KP_API_CONSUMER_GROUP_DESCRIBE,   0,  1, handle_consumer_group_describe},
    {KP_API_LIST_CONFIG_RESOURCES,     0,  1, handle_list_config_resources},
    {KP_API_DESCRIBE_TOPIC_PARTITIONS, 0,  0, handle_describe_topic_partitions},
};
/* clang-format on */
const size_t api_rows_n = sizeof api_rows / sizeof api_rows[0];

const struct api_row *api_row_find(int16_t key)
{
    for (size_t i = 0; i < api_rows_n; i++) {
        if (api_rows[i].key == key)
            return &api_rows[i];
    }
    return NULL;
}

/* Checks 1 to 5. On success *row is the one to serve. */
static int admit(struct request *rq, struct reader *r, const struct api_row **row)
{
    bool known;
    int err;

    if ((err = kp_request_header_decode(r, &rq->header, &known)) < 0)
        return err;
    *row = api_row_find(rq->header.api_key);
    rq->api = kp_api_find(rq->header.api_key);
    if (*row == NULL || rq->api == NULL)
        return E_UNSUPPORTED;
    metric_api_request(rq->header.api_key);
    if (!known || rq->header.api_version < (*row)->min || rq->header.api_version > (*row)->max) {
        if (rq->header.api_key != KP_API_API_VERSIONS)
            return E_VERSION;
        /* The body has a layout that we do not know: it is not looked at. */
        rq->unknown_version = true;
        rq->header.api_version = 0;
        return 0;
    }
    if ((err = auth_admit(rq)) < 0)
        return err;
    if ((rq->body = arena_alloc(&rq->arena, rq->api->request_bytes)) == NULL)
        return E_NOMEM;
    return kp_decode(rq->api->request, rq->header.api_version, r, &rq->arena, rq->body);
}

void dispatch_frame(struct conn *c, struct blob *frame)
{
    const struct api_row *row = NULL;
    struct request *rq = request_new(c, frame);
    int err;

    if (rq == NULL) {
        blob_unref(frame);
        conn_close(c, E_NOMEM, "request not taken");
        return;
    }
    conn_queue(c, rq);
    struct reader r = reader_of(blob_span(frame));
    bool raw = c->auth.raw;
    err = raw ? auth_raw(rq) : admit(rq, &r, &row);
    blob_unref(frame); /* the request has its own reference */
    if (!raw && err == 0) {
        request_charge(rq);
        err = row->handler(rq);
    }
    if (err < 0)
        request_abort(rq, err);
}
