/* A bucket a task: filled at the rate up to one second's worth; a debt is what is waited for. */
#include "gateway/quota.h"

#include <pthread.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

#define BUCKETS   256
#define SECOND_MS INT64_C(1000)

struct bucket {
    LIST_ENTRY(bucket) link;
    char *task;
    int64_t level; /* bytes that may be taken; below 0: owed */
    int64_t at_ms; /* when level was true */
};

struct quotas {
    pthread_mutex_t lock;
    int64_t rate;
    LIST_HEAD(, bucket) buckets[BUCKETS];
};

int quotas_new(size_t rate, struct quotas **out)
{
    *out = NULL;
    struct quotas *q = mem_zalloc(sizeof *q);
    if (q == NULL)
        return E_NOMEM;
    pthread_mutex_init(&q->lock, NULL);
    q->rate = (int64_t)rate;
    *out = q;
    return 0;
}

static void forget(struct bucket *b)
{
    LIST_REMOVE(b, link);
    mem_free(b->task);
    mem_free(b);
}

void quotas_free(struct quotas *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct bucket *b;
        while ((b = LIST_FIRST(&q->buckets[i])) != NULL)
            forget(b);
    }
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
}

static void refill(const struct quotas *q, struct bucket *b, int64_t now_ms)
{
    int64_t passed = now_ms - b->at_ms;

    b->at_ms = now_ms;
    if (passed <= 0)
        return;
    /* Nobody owes more than an hour: far above one answer. */
    if (passed >= 3600 * SECOND_MS)
        b->level = q->rate;
    else
        b->level += q->rate * passed / SECOND_MS;
    if (b->level > q->rate)
        b->level = q->rate;
}

/* The task's; made when it is not there. Full ones on the way are as good as forgotten. */
static struct bucket *find(struct quotas *q, struct span task, int64_t now_ms)
{
    size_t i = hash_bytes(task, 0) % BUCKETS;
    struct bucket *b = LIST_FIRST(&q->buckets[i]);

    while (b != NULL) {
        struct bucket *next = LIST_NEXT(b, link);
        refill(q, b, now_ms);
        if (span_eq_str(task, b->task))
            return b;
        if (b->level == q->rate)
            forget(b);
        b = next;
    }
    if ((b = mem_zalloc(sizeof *b)) == NULL)
        return NULL;
    if ((b->task = mem_strndup((const char *)task.p, task.n)) == NULL) {
        mem_free(b);
        return NULL;
    }
    b->level = q->rate;
    b->at_ms = now_ms;
    LIST_INSERT_HEAD(&q->buckets[i], b, link);
    return b;
}

int32_t quota_take(struct quotas *q, struct span task, size_t bytes, int64_t now_ms)
{
    int64_t ms = 0;

    pthread_mutex_lock(&q->lock);
    struct bucket *b = find(q, task, now_ms);
    if (b != NULL) { /* out of memory: this one is free */
        b->level -= (int64_t)bytes;
        if (b->level < 0)
            ms = (-b->level * SECOND_MS + q->rate - 1) / q->rate;
    }
    pthread_mutex_unlock(&q->lock);
    return (int32_t)(ms < QUOTA_THROTTLE_MAX_MS ? ms : QUOTA_THROTTLE_MAX_MS);
}

static size_t record_bytes(const struct kp_fetch_resp *resp)
{
    size_t n = 0;

    for (int32_t t = 0; t < resp->responses_n; t++) {
        const struct kp_fetch_resp_responses *topic = &resp->responses[t];
        for (int32_t p = 0; p < topic->partitions_n; p++) {
            const struct kp_records *r = &topic->partitions[p].records;
            for (size_t i = 0; i < r->pieces_n; i++)
                n += r->pieces[i].len;
        }
    }
    return n;
}

int32_t quota_fetch(struct request *rq, const struct kp_fetch_resp *resp)
{
    struct quotas *q = rq->w->shared->quotas;
    size_t bytes;

    if (q == NULL || (bytes = record_bytes(resp)) == 0)
        return 0;
    int32_t ms =
        quota_take(q, span_str(request_task(rq)->name), bytes, clock_mono_ms(rq->w->shared->clock));
    if (ms > 0) {
        metric_add(M_FETCH_THROTTLED, 1);
        request_mute(rq, ms);
    }
    return ms;
}
