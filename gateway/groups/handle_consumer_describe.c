/*
 * ConsumerGroupDescribe (69): KIP-848 groups with their members, what these have and what they
 * should have. Classic groups are answered with GROUP_ID_NOT_FOUND, upon which tools ask
 * DescribeGroups. Groups thread.
 */
#include <string.h>

#include "gateway/groups/consumer_int.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"

#define GROUP_OPERATIONS ((1 << 3) | (1 << 6) | (1 << 8)) /* READ DELETE DESCRIBE */
#define MEMBER_CONSUMER  1                                /* speaks KIP-848 itself */

typedef struct kp_consumer_group_describe_resp_groups group_answer;
typedef struct kp_consumer_group_describe_resp_groups_members member_answer;

static int copy(struct group_call *c, const char *s, struct span *out)
{
    size_t n = strlen(s);
    char *p = arena_strndup(&c->arena, s, n);

    *out = span_of(p, n);
    return p == NULL ? E_NOMEM : 0;
}

/* Both assignments have the same layout under two names. */
struct parts {
    struct span name;
    struct kp_uuid id;
    int32_t *list;
    int32_t n;
};

static bool has(const struct consumer_part *p, const struct consumer_member *m, bool target)
{
    return target ? p->target == m : p->owner == m && !p->revoking;
}

/* Returns how many topics it fills in of out, or E_NOMEM. */
static int collect(struct group_call *c, const struct consumer *group,
                   const struct consumer_member *m, bool target, struct parts *out)
{
    int found = 0;

    for (size_t t = 0; t < group->topics_n; t++) {
        const struct consumer_topic *topic = group->topics[t];
        size_t n = 0;
        for (int32_t i = 0; i < topic->parts_n; i++)
            n += has(&topic->parts[i], m, target);
        if (n == 0)
            continue;
        struct parts *p = &out[found++];
        *p = (struct parts){.id = topic->id};
        if (copy(c, topic->name, &p->name) < 0 ||
            (p->list = arena_array(&c->arena, n, sizeof(int32_t))) == NULL)
            return E_NOMEM;
        for (int32_t i = 0; i < topic->parts_n; i++) {
            if (has(&topic->parts[i], m, target))
                p->list[p->n++] = i;
        }
    }
    return found;
}

static int fill_assignments(struct group_call *c, const struct consumer *group,
                            const struct consumer_member *m, member_answer *out)
{
    struct parts *list = arena_array(&c->arena, group->topics_n + 1, sizeof *list);
    int n;

    if (list == NULL || (n = collect(c, group, m, false, list)) < 0)
        return E_NOMEM;
    out->assignment.topic_partitions =
        kp_array(&kp_consumer_group_describe_resp_groups_members_assignment_topic_partitions_desc,
                 &c->arena, (size_t)n);
    if (out->assignment.topic_partitions == NULL)
        return E_NOMEM;
    out->assignment.topic_partitions_n = n;
    for (int i = 0; i < n; i++) {
        out->assignment.topic_partitions[i].topic_id = list[i].id;
        out->assignment.topic_partitions[i].topic_name = list[i].name;
        out->assignment.topic_partitions[i].partitions = list[i].list;
        out->assignment.topic_partitions[i].partitions_n = list[i].n;
    }
    if ((n = collect(c, group, m, true, list)) < 0)
        return E_NOMEM;
    out->target_assignment.topic_partitions = kp_array(
        &kp_consumer_group_describe_resp_groups_members_target_assignment_topic_partitions_desc,
        &c->arena, (size_t)n);
    if (out->target_assignment.topic_partitions == NULL)
        return E_NOMEM;
    out->target_assignment.topic_partitions_n = n;
    for (int i = 0; i < n; i++) {
        out->target_assignment.topic_partitions[i].topic_id = list[i].id;
        out->target_assignment.topic_partitions[i].topic_name = list[i].name;
        out->target_assignment.topic_partitions[i].partitions = list[i].list;
        out->target_assignment.topic_partitions[i].partitions_n = list[i].n;
    }
    return 0;
}

static int fill_names(struct group_call *c, const struct consumer_member *m, member_answer *out)
{
    if ((out->subscribed_topic_names =
             arena_array(&c->arena, m->names_n + 1, sizeof(struct span))) == NULL)
        return E_NOMEM;
    out->subscribed_topic_names_n = (int32_t)m->names_n;
    for (size_t i = 0; i < m->names_n; i++) {
        char *p = arena_strndup(&c->arena, (const char *)m->names[i].p, m->names[i].n);
        if (p == NULL)
            return E_NOMEM;
        out->subscribed_topic_names[i] = span_of(p, m->names[i].n);
    }
    if (m->regex == NULL)
        return 0;
    char *p = arena_strndup(&c->arena, m->regex->text, m->regex->text_n);
    if (p == NULL)
        return E_NOMEM;
    out->subscribed_topic_regex = span_of(p, m->regex->text_n);
    return 0;
}

static int fill_member(struct group_call *c, const struct consumer *group,
                       const struct consumer_member *m, member_answer *out)
{
    int err;

    if ((err = copy(c, m->id, &out->member_id)) < 0 ||
        (err = copy(c, m->client_id, &out->client_id)) < 0 ||
        (err = copy(c, m->client_host, &out->client_host)) < 0 ||
        (m->instance != NULL && (err = copy(c, m->instance, &out->instance_id)) < 0) ||
        (m->rack != NULL && (err = copy(c, m->rack, &out->rack_id)) < 0) ||
        (err = fill_names(c, m, out)) < 0)
        return err;
    out->member_epoch = m->epoch;
    out->member_type = MEMBER_CONSUMER;
    return fill_assignments(c, group, m, out);
}

static int fill_group(struct group_call *c, const struct group *g, group_answer *out)
{
    const struct consumer *group = g->consumer;
    const struct consumer_member *m;

    out->group_state = span_str(g->ops->state(g));
    out->group_epoch = g->generation;
    out->assignment_epoch = group->assignment_epoch;
    out->assignor_name = span_str(consumer_assignor(group));
    out->members =
        kp_array(&kp_consumer_group_describe_resp_groups_members_desc, &c->arena, group->members_n);
    if (out->members == NULL)
        return E_NOMEM;
    out->members_n = 0;
    TAILQ_FOREACH(m, &group->members, link)
    {
        int err = fill_member(c, group, m, &out->members[out->members_n++]);
        if (err < 0)
            return err;
    }
    return 0;
}

static int describe_one(struct groups *gs, struct group_call *c, struct span id, group_answer *out)
{
    const struct kp_consumer_group_describe_req *req = c->body;
    const struct group *g = NULL;

    out->group_id = id;
    out->group_state = span_str("");
    out->assignor_name = span_str("");
    out->members = kp_array(&kp_consumer_group_describe_resp_groups_members_desc, &c->arena, 0);
    if (out->members == NULL)
        return E_NOMEM;
    if (req->include_authorized_operations)
        out->authorized_operations = GROUP_OPERATIONS;
    out->error_code = c->refuse;
    if (c->refuse == KE_NONE) {
        if (id.n > 0 && memchr(id.p, 0, id.n) == NULL)
            g = groups_find(gs, c->task_name, id);
        if (g != NULL && g->ops == &consumer_ops)
            return fill_group(c, g, out);
        out->error_code = KE_GROUP_ID_NOT_FOUND;
        out->error_message =
            span_str(g == NULL ? "there is no such group" : "the group uses the classic protocol");
    }
    metric_kafka_error(out->error_code);
    return 0;
}

static void run_describe(struct groups *gs, struct group_call *c)
{
    const struct kp_consumer_group_describe_req *req = c->body;
    struct kp_consumer_group_describe_resp *resp = c->resp;
    size_t n = (size_t)req->group_ids_n;

    resp->groups = kp_array(&kp_consumer_group_describe_resp_groups_desc, &c->arena, n);
    if (resp->groups == NULL) {
        group_call_fail(c);
        return;
    }
    resp->groups_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        if (describe_one(gs, c, req->group_ids[i], &resp->groups[i]) < 0) {
            group_call_fail(c);
            return;
        }
    }
    group_call_reply(c);
}

int handle_consumer_group_describe(struct request *rq)
{
    return groups_call(rq, run_describe);
}
