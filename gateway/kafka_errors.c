/* The one place where an E_* turns into a number of Kafka's. */
#include "gateway/kafka_errors.h"

#include "base/err.h"

int16_t kafka_error_of(int err)
{
    switch (err) {
    case 0:
        return KE_NONE;
    case E_NOTFOUND:
        return KE_UNKNOWN_TOPIC_OR_PARTITION;
    case E_RANGE:
        return KE_OFFSET_OUT_OF_RANGE;
    case E_AGAIN:
    case E_BUSY:
        return KE_NOT_LEADER_OR_FOLLOWER; /* retriable: the client asks for metadata and again */
    case E_TIMEOUT:
    case E_CANCELED:
        return KE_REQUEST_TIMED_OUT;
    case E_CLOSED:
        return KE_LEADER_NOT_AVAILABLE;
    case E_VERSION:
    case E_UNSUPPORTED:
        return KE_UNSUPPORTED_VERSION;
    case E_SHORT:
    case E_SYNTAX:
    case E_TRAILING:
    case E_INVALID:
    case E_LIMIT:
        return KE_INVALID_REQUEST;
    case E_IO:
    case E_NOSPACE:
    case E_CORRUPT:
        return KE_KAFKA_STORAGE_ERROR;
    case E_DENIED:
        return KE_TOPIC_AUTHORIZATION_FAILED;
    default:
        return KE_UNKNOWN_SERVER_ERROR;
    }
}
