/*
 * How fast a task may fetch, over all its connections and workers. As in Kafka: the answer that
 * goes over the rate is sent, tells the client for how long it will be throttled
 * (throttle_time_ms), and for that time no further request of its connection is read (KIP-219).
 *
 * Any thread; one lock, a leaf. Tasks that have been quiet for a while are forgotten.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct kp_fetch_resp;
struct quotas;
struct request;

#define QUOTA_THROTTLE_MAX_MS                                                                      \
    30000 /* what is still owed then is waited for after the next answer */

/* rate: bytes of records a second and task; up to one second's worth may come at once. */
MUST_USE int quotas_new(size_t rate, struct quotas **out);
void quotas_free(struct quotas *q); /* NULL is allowed */
/* Takes bytes from the task's rate. How long it owes, in ms; 0: nothing. */
int32_t quota_take(struct quotas *q, struct span task, size_t bytes, int64_t now_ms);
/* For an answer that is about to be sent: takes its records from the rate of the request's task,
 * and mutes the connection when too much was taken. The answer's throttle_time_ms. */
int32_t quota_fetch(struct request *rq, const struct kp_fetch_resp *resp);
