/*
 * JoinGroup, SyncGroup, Heartbeat, LeaveGroup: from the wire to the classic core and back. The
 * handlers run on a worker and only post; the rest on the groups thread.
 */
#include <string.h>

#include "base/utf8.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#define JOIN_KNOWN_ID_VERSION        4
#define JOIN_SKIP_ASSIGNMENT_VERSION 9
#define LEAVE_BATCH_VERSION          3

/* Group ids are not empty, and are texts: a NUL divides the keys of our table, and what is no UTF-8
 * would make the metrics of all tasks unreadable. */
static bool legal_id(struct span id)
{
    return id.n > 0 && utf8_is_text(id);
}

static struct span copy_str(struct group_call *c, const char *s)
{
    size_t n = strlen(s);
    return span_of(arena_strndup(&c->arena, s, n), n);
}

static struct span copy_span(struct group_call *c, struct span s)
{
    uint8_t *p = arena_alloc(&c->arena, s.n);

    if (p != NULL && s.n > 0)
        memcpy(p, s.p, s.n);
    return span_of(p, s.n);
}

/* --- JoinGroup --- */

static void refuse_join(struct group_call *c, int16_t error, struct span member_id)
{
    const struct kp_join_group_req *req = c->body;
    struct kp_join_group_resp *resp = c->resp;

    resp->error_code = error;
    resp->generation_id = -1;
    resp->protocol_type = c->version >= 7 ? req->protocol_type : resp->protocol_type;
    resp->protocol_name = span_str("");
    resp->leader = span_str("");
    resp->member_id = member_id.p == NULL ? span_str("") : member_id;
    metric_kafka_error(error);
    group_call_reply(c);
}

static int list_members(struct group_call *c, const struct group *g)
{
    struct kp_join_group_resp *resp = c->resp;
    size_t n = classic_members(g);
    size_t i = 0;

    resp->members = kp_array(&kp_join_group_resp_members_desc, &c->arena, n);
    if (resp->members == NULL)
        return E_NOMEM;
    for (const struct classic_member *m = classic_first(g); m != NULL; m = classic_next(m), i++) {
        struct kp_join_group_resp_members *at = &resp->members[i];
        at->member_id = copy_str(c, m->id);
        at->metadata = copy_span(c, classic_metadata(g, m));
        if (m->instance != NULL)
            at->group_instance_id = copy_str(c, m->instance);
        if (at->member_id.p == NULL || at->metadata.p == NULL ||
            (m->instance != NULL && at->group_instance_id.p == NULL))
            return E_NOMEM;
    }
    resp->members_n = (int32_t)n;
    return 0;
}

static void answer_join(struct group_wait *w, struct group *g)
{
    struct group_call *c = call_of_wait(w);
    const struct kp_join_group_req *req = c->body;
    struct kp_join_group_resp *resp = c->resp;
    const struct classic_result *r = &w->out.classic;

    if (w->error == KE_MEMBER_ID_REQUIRED) {
        refuse_join(c, w->error, span_str(c->new_id));
        return;
    }
    if (w->error != KE_NONE) {
        refuse_join(c, w->error, req->member_id);
        return;
    }
    resp->generation_id = r->generation;
    resp->protocol_type = copy_str(c, g->ops->protocol_type(g));
    resp->protocol_name = copy_str(c, classic_protocol_name(g));
    resp->leader = copy_str(c, r->leader);
    resp->member_id = copy_str(c, r->member->id);
    resp->skip_assignment = r->skip_assignment;
    if (resp->protocol_type.p == NULL || resp->protocol_name.p == NULL || resp->leader.p == NULL ||
        resp->member_id.p == NULL || (r->list_members && list_members(c, g) < 0)) {
        group_call_fail(c);
        return;
    }
    c->error = &resp->error_code;
    group_call_reply_stored(c, g);
}

static int join_event(struct group_call *c, struct classic_join *ev)
{
    const struct kp_join_group_req *req = c->body;
    size_t n = req->protocols_n > 0 ? (size_t)req->protocols_n : 0;
    struct classic_protocol *list = arena_array(&c->arena, n + 1, sizeof *list);
    bool is_static = req->group_instance_id.p != NULL;

    c->new_id =
        groups_member_id(&c->arena, is_static ? req->group_instance_id : span_str(c->client_id));
    if (list == NULL || c->new_id == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        list[i] = (struct classic_protocol){req->protocols[i].name, req->protocols[i].metadata};
    *ev = (struct classic_join){
        .member_id = req->member_id,
        .instance_id = req->group_instance_id,
        .protocol_type = req->protocol_type,
        .protocols = list,
        .protocols_n = n,
        .session_ms = req->session_timeout_ms,
        .rebalance_ms = req->rebalance_timeout_ms,
        .client_id = c->client_id,
        .client_host = c->client_host,
        .new_id = c->new_id,
        .known_member_id = c->version >= JOIN_KNOWN_ID_VERSION,
        .skip_assignment = c->version >= JOIN_SKIP_ASSIGNMENT_VERSION,
    };
    return 0;
}

static void run_join(struct groups *gs, struct group_call *c)
{
    const struct kp_join_group_req *req = c->body;
    struct group *g = groups_find(gs, c->task_name, req->group_id);
    struct classic_join ev;
    struct group_out out;

    if (c->refuse != KE_NONE || !legal_id(req->group_id)) {
        refuse_join(c, c->refuse != KE_NONE ? c->refuse : KE_INVALID_GROUP_ID, req->member_id);
        return;
    }
    if (g == NULL && req->member_id.n > 0) {
        refuse_join(c, KE_UNKNOWN_MEMBER_ID, req->member_id);
        return;
    }
    if (g != NULL && g->ops != &classic_ops) {
        if (!g->ops->empty(g)) {
            refuse_join(c, KE_INCONSISTENT_GROUP_PROTOCOL, req->member_id);
            return;
        }
        g->ops->free(g);
        g->ops = &classic_ops;
        g->classic = NULL;
    }
    int err = g != NULL ? 0 : groups_make(gs, c->task_name, req->group_id, &g);
    if (err < 0 || join_event(c, &ev) < 0) {
        refuse_join(c, KE_COORDINATOR_NOT_AVAILABLE, req->member_id);
        return;
    }
    group_out_init(&out);
    c->wait.answer = answer_join;
    classic_on_join(g, &ev, groups_now_ms(gs), &c->wait, &out);
    groups_settle(gs, g, &out);
}

int handle_join_group(struct request *rq)
{
    return groups_call(rq, run_join);
}

/* --- SyncGroup --- */

static void refuse_sync(struct group_call *c, int16_t error)
{
    struct kp_sync_group_resp *resp = c->resp;

    resp->error_code = error;
    resp->assignment = span_str("");
    metric_kafka_error(error);
    group_call_reply(c);
}

static void answer_sync(struct group_wait *w, struct group *g)
{
    struct group_call *c = call_of_wait(w);
    struct kp_sync_group_resp *resp = c->resp;

    if (w->error != KE_NONE) {
        refuse_sync(c, w->error);
        return;
    }
    const struct classic_member *m = w->out.classic.member;
    resp->protocol_type = copy_str(c, g->ops->protocol_type(g));
    resp->protocol_name = copy_str(c, classic_protocol_name(g));
    resp->assignment =
        copy_span(c, m->assignment == NULL ? span_str("") : blob_span(m->assignment));
    if (resp->protocol_type.p == NULL || resp->protocol_name.p == NULL ||
        resp->assignment.p == NULL)
        group_call_fail(c);
    else
        group_call_reply(c);
}

static void run_sync(struct groups *gs, struct group_call *c)
{
    const struct kp_sync_group_req *req = c->body;
    struct group *g = groups_find(gs, c->task_name, req->group_id);
    size_t n = req->assignments_n > 0 ? (size_t)req->assignments_n : 0;
    struct classic_assignment *list = arena_array(&c->arena, n + 1, sizeof *list);
    struct group_out out;

    if (c->refuse != KE_NONE || list == NULL) {
        refuse_sync(c, c->refuse != KE_NONE ? c->refuse : KE_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    if (g == NULL || g->ops != &classic_ops) {
        refuse_sync(c, legal_id(req->group_id) ? KE_UNKNOWN_MEMBER_ID : KE_INVALID_GROUP_ID);
        return;
    }
    for (size_t i = 0; i < n; i++)
        list[i] = (struct classic_assignment){req->assignments[i].member_id,
                                              req->assignments[i].assignment};
    const struct classic_sync ev = {
        .who = {req->member_id, req->group_instance_id, req->generation_id},
        .protocol_type = req->protocol_type,
        .protocol_name = req->protocol_name,
        .assignments = list,
        .assignments_n = n,
    };
    group_out_init(&out);
    c->wait.answer = answer_sync;
    classic_on_sync(g, &ev, groups_now_ms(gs), &c->wait, &out);
    groups_settle(gs, g, &out);
}

int handle_sync_group(struct request *rq)
{
    return groups_call(rq, run_sync);
}

/* --- Heartbeat --- */

static void run_heartbeat(struct groups *gs, struct group_call *c)
{
    const struct kp_heartbeat_req *req = c->body;
    struct kp_heartbeat_resp *resp = c->resp;
    struct group *g = groups_find(gs, c->task_name, req->group_id);
    const struct group_speaker who = {req->member_id, req->group_instance_id, req->generation_id};

    if (c->refuse != KE_NONE)
        resp->error_code = c->refuse;
    else if (!legal_id(req->group_id))
        resp->error_code = KE_INVALID_GROUP_ID;
    else if (g == NULL || g->ops != &classic_ops)
        resp->error_code = KE_UNKNOWN_MEMBER_ID;
    else /* moves one deadline to a later time: the heap's stays right, only early */
        resp->error_code = classic_on_heartbeat(g, &who, groups_now_ms(gs));
    if (resp->error_code != KE_NONE)
        metric_kafka_error(resp->error_code);
    group_call_reply(c);
}

int handle_heartbeat(struct request *rq)
{
    return groups_call(rq, run_heartbeat);
}

/* --- LeaveGroup --- */

static int16_t leave_one(struct groups *gs, struct group_call *c, struct span group_id,
                         const struct group_speaker *who)
{
    struct group *g = groups_find(gs, c->task_name, group_id);
    struct group_out out;

    if (g == NULL)
        return KE_UNKNOWN_MEMBER_ID;
    group_out_init(&out);
    int16_t error = g->ops->leave == NULL ? KE_UNKNOWN_MEMBER_ID
                                          : g->ops->leave(g, who, groups_now_ms(gs), &out);
    groups_settle(gs, g, &out);
    return error;
}

static void run_leave(struct groups *gs, struct group_call *c)
{
    const struct kp_leave_group_req *req = c->body;
    struct kp_leave_group_resp *resp = c->resp;
    size_t n = req->members_n > 0 ? (size_t)req->members_n : 0;

    if (c->refuse != KE_NONE || !legal_id(req->group_id)) {
        resp->error_code = c->refuse != KE_NONE ? c->refuse : KE_INVALID_GROUP_ID;
        metric_kafka_error(resp->error_code);
        group_call_reply(c);
        return;
    }
    if (c->version < LEAVE_BATCH_VERSION) {
        const struct group_speaker who = {req->member_id, {NULL, 0}, -1};
        resp->error_code = leave_one(gs, c, req->group_id, &who);
        group_call_reply(c);
        return;
    }
    if ((resp->members = kp_array(&kp_leave_group_resp_members_desc, &c->arena, n)) == NULL) {
        group_call_fail(c);
        return;
    }
    resp->members_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct group_speaker who = {req->members[i].member_id,
                                          req->members[i].group_instance_id, -1};
        resp->members[i].member_id = req->members[i].member_id;
        resp->members[i].group_instance_id = req->members[i].group_instance_id;
        resp->members[i].error_code = leave_one(gs, c, req->group_id, &who);
    }
    group_call_reply(c);
}

int handle_leave_group(struct request *rq)
{
    return groups_call(rq, run_leave);
}
