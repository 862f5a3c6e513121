/* Process-wide counters: relaxed atomics, so that counting never orders or waits for anything. */
#include "gateway/metrics.h"

#define ERROR_SLOTS 129 /* -1 .. 127 */

_Atomic int64_t metric_values[METRIC_COUNT];
static _Atomic int64_t errors[ERROR_SLOTS];
static _Atomic int64_t apis[METRIC_API_KEYS];

void metric_kafka_error(int16_t code)
{
    if (code < -1 || code > ERROR_SLOTS - 2)
        code = -1;
    atomic_fetch_add_explicit(&errors[code + 1], 1, memory_order_relaxed);
}

int64_t metric_kafka_error_get(int16_t code)
{
    if (code < -1 || code > ERROR_SLOTS - 2)
        return 0;
    return atomic_load_explicit(&errors[code + 1], memory_order_relaxed);
}

void metric_api_request(int16_t api_key)
{
    if (api_key >= 0 && api_key < METRIC_API_KEYS)
        atomic_fetch_add_explicit(&apis[api_key], 1, memory_order_relaxed);
}

int64_t metric_api_request_get(int16_t api_key)
{
    if (api_key < 0 || api_key >= METRIC_API_KEYS)
        return 0;
    return atomic_load_explicit(&apis[api_key], memory_order_relaxed);
}
