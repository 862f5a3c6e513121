/*
 * Requests that compare a schema with many versions, or with large ones: on the job pool, one at a
 * time, from a copy of the subject, so that the control thread goes on meanwhile. All functions are
 * for the control thread.
 */
#pragma once

#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/registry_answer.h"

struct http_rq;
struct registry_jobs;

/* Copied; what it points to must live until registry_jobs_free returns. */
struct registry_job_opts {
    struct mailbox *control;
    struct jobpool *jobs;
    /* rq has its answer: status and body as of registry_answer; w is the callee's. */
    void (*answered)(void *arg, struct http_rq *rq, int status, struct writer *w);
    /* The pool is free: rq of that task may be answered anew, by what is served now. */
    void (*again)(void *arg, struct http_rq *rq, struct span task);
    void *arg;
};

MUST_USE int registry_jobs_new(const struct registry_job_opts *opts, struct registry_jobs **out);
/* Takes rq when its answer would take long; false: it is for the caller to answer, at once. ask has
 * no body yet; its strings live as long as rq, its task as long as the view. */
bool registry_job_take(struct registry_jobs *j, struct http_rq *rq, const struct registry_ask *ask,
                       const struct gw_view *view);
/* Requests that are not answered. NULL is allowed. */
size_t registry_jobs_busy(const struct registry_jobs *j);
/* Waits for the one that runs, draining the control mailbox; drops the others. NULL is allowed. */
void registry_jobs_free(struct registry_jobs *j);
