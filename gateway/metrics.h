/* Process-wide counters and gauges: one relaxed atomic each. Rendered by the admin listener in
 * Prometheus text form. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum metric_id {
#define X(symbol, type, name, help) symbol,
#include "gateway/metrics.def"
#undef X
    METRIC_COUNT
};

extern _Atomic int64_t metric_values[METRIC_COUNT];

static inline void metric_add(enum metric_id m, int64_t n)
{
    atomic_fetch_add_explicit(&metric_values[m], n, memory_order_relaxed);
}

static inline void metric_set(enum metric_id m, int64_t n)
{
    atomic_store_explicit(&metric_values[m], n, memory_order_relaxed);
}

static inline int64_t metric_get(enum metric_id m)
{
    return atomic_load_explicit(&metric_values[m], memory_order_relaxed);
}

/* Kafka error numbers sent to clients, by number (sluice_kafka_errors_total{code="3"}). Codes
 * outside -1..127 count as -1. */
void metric_kafka_error(int16_t code);
/* Requests by API key (sluice_api_requests_total{api="Fetch"}). */
void metric_api_request(int16_t api_key);
/* For the renderer: 0 for a number outside of what is counted. */
#define METRIC_API_KEYS 128
int64_t metric_kafka_error_get(int16_t code);
int64_t metric_api_request_get(int16_t api_key);
