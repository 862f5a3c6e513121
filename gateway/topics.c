/* Names and errors of topics (topics.h). */
#include "gateway/topics.h"

#define NAME_MAX_BYTES 249

bool topic_name_legal(struct span name)
{
    if (name.n == 0 || name.n > NAME_MAX_BYTES || span_eq_str(name, ".") || span_eq_str(name, ".."))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

int16_t topic_name_error(struct span name)
{
    return topic_name_legal(name) ? KE_UNKNOWN_TOPIC_OR_PARTITION : KE_INVALID_TOPIC_EXCEPTION;
}

int16_t topic_error(const struct gw_topic *t)
{
    return t->parts_n == 0 ? KE_LEADER_NOT_AVAILABLE : KE_NONE;
}

int16_t topic_part_error(const struct gw_task *task, const struct gw_topic *t, int32_t partition)
{
    if (t == NULL)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    if (task->redirect_host != NULL)
        return KE_NOT_LEADER_OR_FOLLOWER;
    if (t->parts_n == 0)
        return KE_LEADER_NOT_AVAILABLE;
    if (partition < 0 || (size_t)partition >= t->parts_n)
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    return KE_NONE;
}

void topic_broker(const struct request *rq, struct topic_broker *out)
{
    const struct gw_task *task = request_task(rq);

    *out = (struct topic_broker){.node = GW_NODE_ID};
    request_advertised(rq, &out->host, &out->port);
    if (task->redirect_host != NULL)
        *out = (struct topic_broker){.node = task->redirect_node,
                                     .host = task->redirect_host,
                                     .port = task->redirect_port,
                                     .elsewhere = true};
}
