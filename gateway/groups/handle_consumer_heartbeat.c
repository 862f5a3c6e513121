/*
 * ConsumerGroupHeartbeat (68): from the wire to the KIP-848 core and back. Joining, leaving and
 * staying are all this one call, and none of them waits. Groups thread.
 *
 * Members are not kept over a restart: one that speaks to a group which does not know it is told
 * UNKNOWN_MEMBER_ID and joins again, and the group epoch goes on from the one that was stored.
 */
#include <string.h>

#include "base/utf8.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/consumer_int.h"
#include "gateway/groups/groups_int.h"
#include "gateway/groups/handlers.h"
#include "gateway/metrics.h"
#include "gateway/strict_name.h"

#define STRICT_ASKED_MAX 1024 /* no name of a catalog is longer in any form */
#define OWN_ID_VERSION   1    /* members make their ids from here on (KIP-1082) */

typedef const struct kp_consumer_group_heartbeat_req heartbeat_req;

/* --- the task's topics, as the core sees them --- */

struct task_topics {
    struct consumer_topics source; /* first: the callbacks get it */
    const struct gw_task *task;
};

static struct consumer_topic_info info_of(const struct gw_topic *t)
{
    return (struct consumer_topic_info){span_str(t->name), t->id, t->epoch, (int32_t)t->parts_n};
}

static struct consumer_topic_info topic_at(const struct consumer_topics *s, size_t i)
{
    return info_of(&((const struct task_topics *)(const void *)s)->task->topics[i]);
}

static bool topic_find(const struct consumer_topics *s, struct span name,
                       struct consumer_topic_info *out)
{
    const struct gw_topic *t =
        gw_task_topic(((const struct task_topics *)(const void *)s)->task, name);

    if (t != NULL)
        *out = info_of(t);
    return t != NULL;
}

static struct task_topics topics_of(const struct groups *gs, const char *task_name)
{
    const struct gw_task *task = gw_view_task(gs->view, span_str(task_name));

    if (task == NULL)
        task = &gs->view->none;
    return (struct task_topics){{task->topics_n, topic_at, topic_find}, task};
}

/* --- answers --- */

static void refuse(struct group_call *c, int16_t error, const char *message)
{
    struct kp_consumer_group_heartbeat_resp *resp = c->resp;

    resp->error_code = error;
    if (message[0] != '\0') {
        size_t n = strlen(message);
        char *copy = arena_strndup(&c->arena, message, n);
        if (copy != NULL)
            resp->error_message = span_of(copy, n);
    }
    metric_kafka_error(error);
    group_call_reply(c);
}

static size_t count_parts(const struct consumer_topic *t, const struct consumer_member *m)
{
    size_t n = 0;

    for (int32_t i = 0; i < t->parts_n; i++)
        n += t->parts[i].owner == m && !t->parts[i].revoking;
    return n;
}

static int fill_assignment(struct group_call *c, const struct consumer *group,
                           const struct consumer_member *m)
{
    typedef struct kp_consumer_group_heartbeat_resp_assignment assignment;
    typedef struct kp_consumer_group_heartbeat_resp_assignment_topic_partitions topic_parts;
    struct kp_consumer_group_heartbeat_resp *resp = c->resp;
    assignment *a = arena_alloc(&c->arena, sizeof *a);

    if (a == NULL)
        return E_NOMEM;
    a->topic_partitions =
        kp_array(&kp_consumer_group_heartbeat_resp_assignment_topic_partitions_desc, &c->arena,
                 group->topics_n);
    if (a->topic_partitions == NULL)
        return E_NOMEM;
    a->topic_partitions_n = 0;
    for (size_t t = 0; t < group->topics_n; t++) {
        const struct consumer_topic *topic = group->topics[t];
        size_t n = count_parts(topic, m);
        if (n == 0)
            continue;
        topic_parts *out = &a->topic_partitions[a->topic_partitions_n++];
        out->topic_id = topic->id;
        if ((out->partitions = arena_array(&c->arena, n, sizeof(int32_t))) == NULL)
            return E_NOMEM;
        out->partitions_n = 0;
        for (int32_t i = 0; i < topic->parts_n; i++) {
            if (topic->parts[i].owner == m && !topic->parts[i].revoking)
                out->partitions[out->partitions_n++] = i;
        }
    }
    resp->assignment = a;
    return 0;
}

/* --- the call --- */

/* The names as topics are served under them: strict ones may be asked for in other forms, also
 * before there is such a topic. */
static int served_names(struct group_call *c, const struct gw_task *task, const struct span *in,
                        size_t n, struct span **out)
{
    struct span *list = arena_array(&c->arena, n + 1, sizeof *list);

    *out = list;
    if (list == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        list[i] = in[i];
        if (!task->strict_names || in[i].n == 0 || in[i].n > STRICT_ASKED_MAX)
            continue;
        char *strict = arena_alloc(&c->arena, 3 * in[i].n + 1);
        if (strict == NULL)
            return E_NOMEM;
        const struct gw_topic *t = gw_task_topic(task, in[i]);
        if (t != NULL)
            list[i] = span_str(t->name);
        else if (gw_strict_name_of(in[i], strict))
            list[i] = span_str(strict);
    }
    return 0;
}

static int event_of(struct group_call *c, const struct gw_task *task, struct consumer_heartbeat *ev)
{
    heartbeat_req *req = c->body;
    size_t n = req->topic_partitions_n > 0 ? (size_t)req->topic_partitions_n : 0;
    struct consumer_owned *owned = arena_array(&c->arena, n + 1, sizeof *owned);

    size_t names_n = req->subscribed_topic_names_n > 0 ? (size_t)req->subscribed_topic_names_n : 0;
    struct span *names;
    if (owned == NULL || served_names(c, task, req->subscribed_topic_names, names_n, &names) < 0)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        owned[i] = (struct consumer_owned){req->topic_partitions[i].topic_id,
                                           req->topic_partitions[i].partitions,
                                           (size_t)req->topic_partitions[i].partitions_n};
    /* The id of a member that did not make one; it carries no name, as Kafka's. */
    const char *new_id = groups_member_id(&c->arena, span_str("consumer"));
    if (new_id == NULL)
        return E_NOMEM;
    *ev = (struct consumer_heartbeat){
        .member_id = req->member_id,
        .epoch = req->member_epoch,
        .instance_id = req->instance_id,
        .rack_id = req->rack_id,
        .rebalance_ms = req->rebalance_timeout_ms,
        .has_names = req->subscribed_topic_names_n >= 0,
        .names = names,
        .names_n = names_n,
        .regex = req->subscribed_topic_regex,
        .assignor = req->server_assignor,
        .has_owned = req->topic_partitions_n >= 0,
        .owned = owned,
        .owned_n = n,
        .client_id = c->client_id,
        .client_host = c->client_host,
        .new_id = new_id,
        .makes_own_id = c->version >= OWN_ID_VERSION,
    };
    return 0;
}

/* Finds the group, or makes one for a member that joins. KE_*. */
static int16_t group_of(struct groups *gs, struct group_call *c, struct group **out,
                        const char **why)
{
    heartbeat_req *req = c->body;
    struct group *g;
    int err;

    *why = "";
    *out = NULL;
    if (req->group_id.n == 0 || !utf8_is_text(req->group_id)) {
        *why = "the group id is empty, holds a NUL or is no UTF-8";
        return KE_INVALID_REQUEST;
    }
    g = groups_find(gs, c->task_name, req->group_id);
    if (g == NULL || g->ops != &consumer_ops) {
        if (g != NULL && !g->ops->empty(g)) {
            *why = "the group has members that use the classic protocol";
            return KE_GROUP_ID_NOT_FOUND;
        }
        if (req->member_epoch != 0)
            return KE_UNKNOWN_MEMBER_ID;
    }
    if (g == NULL && (err = groups_make(gs, c->task_name, req->group_id, &g)) < 0)
        return err == E_LIMIT ? KE_GROUP_MAX_SIZE_REACHED : KE_COORDINATOR_NOT_AVAILABLE;
    *out = g;
    return KE_NONE;
}

static void settle(struct groups *gs, struct group *g)
{
    struct group_out out;

    group_out_init(&out);
    groups_settle(gs, g, &out);
}

static void beat(struct groups *gs, struct group_call *c, struct group *g)
{
    struct kp_consumer_group_heartbeat_resp *resp = c->resp;
    struct task_topics topics = topics_of(gs, c->task_name);
    struct consumer_heartbeat ev;
    struct consumer_answer answer;
    int16_t error = KE_COORDINATOR_NOT_AVAILABLE;

    if (event_of(c, topics.task, &ev) == 0 && (g->ops == &consumer_ops || consumer_attach(g) == 0))
        error = consumer_on_heartbeat(g, &ev, &topics.source, groups_now_ms(gs), &answer);
    else
        answer.message[0] = '\0';
    if (error != KE_NONE) {
        refuse(c, error, answer.message);
        settle(gs, g);
        return;
    }
    resp->member_id = ev.member_id;
    resp->member_epoch = answer.epoch;
    resp->heartbeat_interval_ms = (int32_t)consumer_heartbeat_ms(g->limits);
    if (answer.member == NULL) {
        group_call_reply(c);
        settle(gs, g);
        return;
    }
    size_t n = strlen(answer.member->id);
    char *id = arena_strndup(&c->arena, answer.member->id, n);
    if (id == NULL || (answer.assignment && fill_assignment(c, g->consumer, answer.member) < 0)) {
        group_call_fail(c); /* it will ask again, on another connection */
        settle(gs, g);
        return;
    }
    resp->member_id = span_of(id, n);
    c->error = &resp->error_code;
    settle(gs, g); /* it has a member: it stays */
    group_call_reply_stored(c, g);
}

static void run_heartbeat(struct groups *gs, struct group_call *c)
{
    struct group *g;
    const char *why = "";
    int16_t error = c->refuse != KE_NONE ? c->refuse : group_of(gs, c, &g, &why);

    if (error != KE_NONE) {
        refuse(c, error, why);
        return;
    }
    beat(gs, c, g);
}

int handle_consumer_group_heartbeat(struct request *rq)
{
    return groups_call(rq, run_heartbeat);
}
