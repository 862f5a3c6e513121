/* How topics are named and shown, for the handlers that list them. Worker thread; pure. */
#pragma once

#include "gateway/request.h"

#define GW_NODE_ID 1 /* the one broker that clients see; stable over restarts */

/* Operations that a client may do, as bits of Kafka's AclOperation numbers: what a gateway for
 * reading permits. */
#define GW_TOPIC_OPERATIONS   ((1 << 3) | (1 << 8) | (1 << 10)) /* READ DESCRIBE DESCRIBE_CONFIGS */
#define GW_CLUSTER_OPERATIONS ((1 << 8) | (1 << 10))            /* DESCRIBE DESCRIBE_CONFIGS */

/* Kafka's rule for names: 1 to 249 of [a-zA-Z0-9._-], not "." and not "..". Collections whose names
 * break it ("acme/orders") are served under them all the same, as long as they exist. */
bool topic_name_legal(struct span name);
/* The error for a name that no topic has: 17 when it could not be one, else 3. */
int16_t topic_name_error(struct span name);
/* 0, or what to say of a topic as a whole: 5 while it has no journal. */
int16_t topic_error(const struct gw_topic *t);
/* The error of a partition that a request names: 3 when there is no such topic or partition, 6 when
 * the task is served elsewhere, 5 while the topic has no journal, else 0. */
int16_t topic_part_error(const struct gw_task *task, const struct gw_topic *t, int32_t partition);

/* The broker that this client's task is served by: we, or the place that the task was moved to. */
struct topic_broker {
    int32_t node;
    const char *host;
    uint16_t port;
    bool elsewhere;
};
void topic_broker(const struct request *rq, struct topic_broker *out);

static inline bool uuid_is_zero(const struct kp_uuid *id)
{
    static const struct kp_uuid zero;
    return memcmp(id, &zero, sizeof zero) == 0;
}
