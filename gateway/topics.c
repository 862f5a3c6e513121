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
