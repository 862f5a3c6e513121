/*
 * DescribeGroups, ListGroups, DeleteGroups, OffsetDelete: what tools ask of groups. Groups of
 * KIP-848 have a describe call of their own (ConsumerGroupDescribe). Groups thread.
 */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#define GROUP_OPERATIONS        ((1 << 3) | (1 << 6) | (1 << 8)) /* READ DELETE DESCRIBE */
#define NOT_FOUND_VERSION       6 /* DescribeGroups tells unknown groups by an error from here on */
#define GROUP_TYPE_CONSUMER_MSG "this group is not a classic one"

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

static struct group *find(struct groups *gs, struct group_call *c, struct span id)
{
    if (id.p == NULL || memchr(id.p, 0, id.n) != NULL)
        return NULL;
    return groups_find(gs, c->task_name, id);
}

/* --- DescribeGroups --- */

static int describe_member(struct group_call *c, const struct group *g,
                           const struct classic_member *m,
                           struct kp_describe_groups_resp_groups_members *out)
{
    bool stable = classic_state_of(g) == CLASSIC_STABLE;

    out->member_id = copy_str(c, m->id);
    out->client_id = copy_str(c, m->client_id);
    out->client_host = copy_str(c, m->client_host);
    out->member_metadata = copy_span(c, stable ? classic_metadata(g, m) : span_str(""));
    out->member_assignment =
        copy_span(c, stable && m->assignment != NULL ? blob_span(m->assignment) : span_str(""));
    if (m->instance != NULL && (out->group_instance_id = copy_str(c, m->instance)).p == NULL)
        return E_NOMEM;
    return out->member_id.p == NULL || out->client_id.p == NULL || out->client_host.p == NULL ||
                   out->member_metadata.p == NULL || out->member_assignment.p == NULL
               ? E_NOMEM
               : 0;
}

static int describe_classic(struct group_call *c, const struct group *g,
                            struct kp_describe_groups_resp_groups *out)
{
    const char *name = classic_protocol_name(g);
    bool stable = classic_state_of(g) == CLASSIC_STABLE;
    size_t n = classic_members(g);
    size_t i = 0;

    out->group_state = span_str(g->ops->state(g));
    out->protocol_type = copy_str(c, g->ops->protocol_type(g));
    out->protocol_data = copy_str(c, stable && name != NULL ? name : "");
    out->members = kp_array(&kp_describe_groups_resp_groups_members_desc, &c->arena, n);
    if (out->protocol_type.p == NULL || out->protocol_data.p == NULL || out->members == NULL)
        return E_NOMEM;
    out->members_n = (int32_t)n;
    for (const struct classic_member *m = classic_first(g); m != NULL; m = classic_next(m)) {
        int err = describe_member(c, g, m, &out->members[i++]);
        if (err < 0)
            return err;
    }
    return 0;
}

static int describe_one(struct groups *gs, struct group_call *c, struct span id,
                        struct kp_describe_groups_resp_groups *out)
{
    const struct kp_describe_groups_req *req = c->body;
    const struct group *g = find(gs, c, id);

    out->group_id = id;
    out->group_state = span_str("");
    out->protocol_type = span_str("");
    out->protocol_data = span_str("");
    out->members = kp_array(&kp_describe_groups_resp_groups_members_desc, &c->arena, 0);
    if (out->members == NULL)
        return E_NOMEM;
    if (req->include_authorized_operations)
        out->authorized_operations = GROUP_OPERATIONS;
    out->error_code = c->refuse;
    if (c->refuse != KE_NONE)
        return 0;
    if (g != NULL && g->ops == &classic_ops)
        return describe_classic(c, g, out);
    out->group_state = span_str("Dead");
    if (c->version >= NOT_FOUND_VERSION) {
        out->error_code = KE_GROUP_ID_NOT_FOUND;
        out->error_message =
            span_str(g == NULL ? "there is no such group" : GROUP_TYPE_CONSUMER_MSG);
    }
    return 0;
}

static void run_describe(struct groups *gs, struct group_call *c)
{
    const struct kp_describe_groups_req *req = c->body;
    struct kp_describe_groups_resp *resp = c->resp;

    resp->groups = kp_array(&kp_describe_groups_resp_groups_desc, &c->arena, (size_t)req->groups_n);
    if (resp->groups == NULL) {
        group_call_fail(c);
        return;
    }
    resp->groups_n = req->groups_n;
    for (int32_t i = 0; i < req->groups_n; i++) {
        if (describe_one(gs, c, req->groups[i], &resp->groups[i]) < 0) {
            group_call_fail(c);
            return;
        }
    }
    group_call_reply(c);
}

int handle_describe_groups(struct request *rq)
{
    return groups_call(rq, run_describe);
}

/* --- ListGroups --- */

/* An empty filter passes everything; names in any case. */
static bool passes(const struct span *filter, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++) {
        if (filter[i].n == strlen(name) &&
            strncasecmp((const char *)filter[i].p, name, filter[i].n) == 0)
            return true;
    }
    return n <= 0;
}

static int list_one(struct group_call *c, const struct group *g)
{
    const struct kp_list_groups_req *req = c->body;
    struct kp_list_groups_resp *resp = c->resp;
    const char *state = g->ops->state(g);
    struct kp_list_groups_resp_groups *out = &resp->groups[resp->groups_n];

    if (!span_eq_str(span_str(g->task), c->task_name) || g->deleting ||
        !passes(req->states_filter, req->states_filter_n, state) ||
        !passes(req->types_filter, req->types_filter_n, g->ops->type))
        return 0;
    out->group_id = copy_str(c, g->id);
    out->protocol_type = copy_str(c, g->ops->protocol_type(g));
    out->group_state = span_str(state);
    out->group_type = span_str(g->ops->type);
    resp->groups_n++;
    return out->group_id.p == NULL || out->protocol_type.p == NULL ? E_NOMEM : 0;
}

static void run_list(struct groups *gs, struct group_call *c)
{
    struct kp_list_groups_resp *resp = c->resp;
    size_t n = c->refuse != KE_NONE ? 0 : groups_of(gs, c->task_name);
    const struct group *g;

    resp->groups_n = 0;
    resp->error_code = c->refuse;
    if ((resp->groups = kp_array(&kp_list_groups_resp_groups_desc, &c->arena, n)) == NULL) {
        group_call_fail(c);
        return;
    }
    for (size_t at = 0; n > 0 && (g = keymap_next(&gs->table, &at)) != NULL;) {
        if (list_one(c, g) < 0) {
            group_call_fail(c);
            return;
        }
    }
    group_call_reply(c);
}

int handle_list_groups(struct request *rq)
{
    return groups_call(rq, run_list);
}

/* --- DeleteGroups --- */

/* One write for each group, in the call's memory; the last one to come back answers. */
struct deletion {
    struct group_write write;
    struct group_op op;
    struct group_call *c;
    struct group *g;
    int16_t *error;
};

struct deletions {
    size_t left;
};

static void delete_answered(struct group_call *c, struct deletions *all)
{
    if (--all->left == 0)
        group_call_reply(c);
}

static void deleted(struct group_write *w)
{
    struct deletion *d = (struct deletion *)(void *)w;
    struct group_call *c = d->c;
    struct groups *gs = c->gs;
    struct group *g = d->g;

    groups_written(gs, g);
    if (w->err < 0) {
        *d->error = KE_COORDINATOR_NOT_AVAILABLE;
        metric_kafka_error(*d->error);
    }
    struct deletions *all = (struct deletions *)(void *)c->scratch;
    int err = w->err;
    delete_answered(c, all);
    groups_deleted(gs, g, err);
}

static int16_t begin_delete(struct groups *gs, struct group_call *c, struct deletion *d,
                            struct span id)
{
    struct group *g = find(gs, c, id);

    if (g == NULL || g->deleting)
        return KE_GROUP_ID_NOT_FOUND;
    if (!g->ops->empty(g))
        return KE_NON_EMPTY_GROUP;
    d->c = c;
    d->g = g;
    d->op = (struct group_op){
        .kind = GROUP_OP_DELETE_GROUP, .task = span_str(g->task), .group = span_str(g->id)};
    d->write.ops = &d->op;
    d->write.ops_n = 1;
    g->deleting = true;
    groups_write(gs, g, &d->write, deleted);
    return KE_NONE;
}

static void run_delete(struct groups *gs, struct group_call *c)
{
    const struct kp_delete_groups_req *req = c->body;
    struct kp_delete_groups_resp *resp = c->resp;
    size_t n = (size_t)req->groups_names_n;
    struct deletion *list = arena_array(&c->arena, n + 1, sizeof *list);
    struct deletions *all = arena_alloc(&c->arena, sizeof *all);

    resp->results = kp_array(&kp_delete_groups_resp_results_desc, &c->arena, n);
    if (resp->results == NULL || list == NULL || all == NULL) {
        group_call_fail(c);
        return;
    }
    resp->results_n = (int32_t)n;
    all->left = 1; /* ours, so that nobody answers before all are asked */
    c->scratch = all;
    for (size_t i = 0; i < n; i++) {
        struct kp_delete_groups_resp_results *out = &resp->results[i];
        out->group_id = req->groups_names[i];
        list[i].error = &out->error_code;
        out->error_code =
            c->refuse != KE_NONE ? c->refuse : begin_delete(gs, c, &list[i], req->groups_names[i]);
        if (out->error_code == KE_NONE)
            all->left++;
        else
            metric_kafka_error(out->error_code);
    }
    delete_answered(c, all);
}

int handle_delete_groups(struct request *rq)
{
    return groups_call(rq, run_delete);
}

/* --- OffsetDelete --- */

static void offsets_deleted(struct group_write *w)
{
    struct group_call *c = call_of_write(w);
    struct groups *gs = c->gs;
    struct group *g = c->group;
    struct group_out out;

    groups_written(gs, g);
    if (w->err == 0)
        groups_forget(g, w);
    else
        ((struct kp_offset_delete_resp *)c->resp)->error_code = KE_COORDINATOR_NOT_AVAILABLE;
    group_call_reply(c);
    group_out_init(&out);
    groups_settle(gs, g, &out);
}

/* A request may name a partition, or its topic, any number of times. */
static bool planned(const struct group_write *w, const char *topic, int32_t partition,
                    int32_t epoch)
{
    for (size_t i = 0; i < w->ops_n; i++) {
        const struct group_op *op = &w->ops[i];
        if (op->partition == partition && op->epoch == epoch && span_eq_str(op->topic, topic))
            return true;
    }
    return false;
}

/* Of every epoch: an audit has no use for what the operator deletes. There is room for one
 * operation for each offset of the group. */
static int delete_partition(struct group_call *c, const struct offsets_topic *t, int32_t partition)
{
    for (size_t i = 0; t != NULL && i < t->n; i++) {
        if (t->list[i].partition != partition ||
            planned(&c->write, t->name, partition, t->list[i].epoch))
            continue;
        ASSERT(c->write.ops_n < c->group->offsets.n);
        struct span name = copy_str(c, t->name);
        if (name.p == NULL)
            return E_NOMEM;
        c->write.ops[c->write.ops_n++] = (struct group_op){.kind = GROUP_OP_DELETE_OFFSET,
                                                           .task = span_str(c->group->task),
                                                           .group = span_str(c->group->id),
                                                           .topic = name,
                                                           .partition = partition,
                                                           .epoch = t->list[i].epoch,
                                                           .commit_ms = t->list[i].commit_ms};
    }
    return 0;
}

static int delete_topic(struct groups *gs, struct group_call *c,
                        const struct kp_offset_delete_req_topics *in,
                        struct kp_offset_delete_resp_topics *out)
{
    const struct group *g = c->group;
    const struct gw_topic *t = groups_topic(gs, c->task_name, in->name);
    int16_t error = KE_NONE;

    /* Commits and subscriptions are by the served name, whichever was asked. */
    struct span name = t == NULL ? in->name : span_str(t->name);
    if (t == NULL && offsets_topic(&g->offsets, name) == NULL)
        error = KE_UNKNOWN_TOPIC_OR_PARTITION;
    else if (!g->ops->empty(g) && g->ops->subscribed(g, name))
        error = KE_GROUP_SUBSCRIBED_TO_TOPIC;
    out->name = in->name;
    out->partitions_n = in->partitions_n;
    out->partitions = kp_array(&kp_offset_delete_resp_topics_partitions_desc, &c->arena,
                               (size_t)in->partitions_n);
    if (out->partitions == NULL)
        return E_NOMEM;
    for (int32_t i = 0; i < in->partitions_n; i++) {
        out->partitions[i].partition_index = in->partitions[i].partition_index;
        out->partitions[i].error_code = error;
        if (error == KE_NONE && delete_partition(c, offsets_topic(&g->offsets, name),
                                                 in->partitions[i].partition_index) < 0)
            return E_NOMEM;
    }
    return 0;
}

static int16_t admit_delete(struct groups *gs, struct group_call *c)
{
    const struct kp_offset_delete_req *req = c->body;
    const struct group *g;

    if (c->refuse != KE_NONE)
        return c->refuse;
    if ((g = c->group = find(gs, c, req->group_id)) == NULL)
        return KE_GROUP_ID_NOT_FOUND;
    /* Of members that speak another protocol than a consumer's nobody knows what they read. */
    if (!g->ops->empty(g) && strcmp(g->ops->protocol_type(g), "consumer") != 0)
        return KE_NON_EMPTY_GROUP;
    return KE_NONE;
}

static void run_offset_delete(struct groups *gs, struct group_call *c)
{
    const struct kp_offset_delete_req *req = c->body;
    struct kp_offset_delete_resp *resp = c->resp;

    resp->error_code = admit_delete(gs, c);
    if (resp->error_code != KE_NONE) {
        metric_kafka_error(resp->error_code);
        group_call_reply(c);
        return;
    }
    resp->topics = kp_array(&kp_offset_delete_resp_topics_desc, &c->arena, (size_t)req->topics_n);
    c->write.ops = arena_array(&c->arena, c->group->offsets.n + 1, sizeof *c->write.ops);
    if (resp->topics == NULL || c->write.ops == NULL) {
        group_call_fail(c);
        return;
    }
    resp->topics_n = req->topics_n;
    for (int32_t i = 0; i < req->topics_n; i++) {
        if (delete_topic(gs, c, &req->topics[i], &resp->topics[i]) < 0) {
            group_call_fail(c);
            return;
        }
    }
    if (c->write.ops_n > 0)
        groups_write(gs, c->group, &c->write, offsets_deleted);
    else
        group_call_reply(c);
}

int handle_offset_delete(struct request *rq)
{
    return groups_call(rq, run_offset_delete);
}
