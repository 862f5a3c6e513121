/*
 * See registry_job.h. Only the one that runs has a copy: what waits is the request and the name of
 * its task, and begins anew, since the catalog may be another one by then.
 */
#include "gateway/registry_job.h"

#include <sys/queue.h>

#include "base/mem.h"
#include "gateway/http_server.h"
#include "gateway/registry_int.h"

#define LONG_BYTES ((size_t)1 << 20) /* of texts: some 30 ms */
#define ANSWER_MAX ((size_t)64 << 20)

struct waiting {
    STAILQ_ENTRY(waiting) link;
    struct http_rq *rq;
    char *task;
};

/* Owner: the control thread, while it runs the pool. */
struct job {
    struct task task; /* first member */
    struct registry_jobs *jobs;
    struct http_rq *rq;
    const struct gw_view *view;      /* counted: of ask.task */
    struct registry_history history; /* of the one subject */
    struct blob *body;
    struct registry_ask ask;
    struct writer answer;
    int status;
};

struct registry_jobs {
    struct registry_job_opts opts;
    struct job *running; /* NULL: none */
    STAILQ_HEAD(, waiting) waits;
    size_t waits_n;
};

int registry_jobs_new(const struct registry_job_opts *opts, struct registry_jobs **out)
{
    struct registry_jobs *j = mem_zalloc(sizeof *j);

    *out = j;
    if (j == NULL)
        return E_NOMEM;
    j->opts = *opts;
    STAILQ_INIT(&j->waits);
    return 0;
}

static void job_free(struct job *job)
{
    if (job == NULL)
        return;
    registry_history_fini(&job->history);
    blob_unref(job->body);
    gw_view_unref(job->view);
    wr_fini(&job->answer);
    mem_free(job);
}

static struct waiting *next_waiting(struct registry_jobs *j)
{
    struct waiting *wait = STAILQ_FIRST(&j->waits);

    if (wait != NULL) {
        STAILQ_REMOVE_HEAD(&j->waits, link);
        j->waits_n--;
    }
    return wait;
}

static void wait_free(struct waiting *wait)
{
    if (wait != NULL)
        mem_free(wait->task);
    mem_free(wait);
}

/* --- running --- */

/* Control thread. */
static void on_answered(struct task *t)
{
    struct job *job = (struct job *)t; /* first member */
    struct registry_jobs *j = job->jobs;
    struct waiting *wait;

    j->running = NULL;
    j->opts.answered(j->opts.arg, job->rq, job->status, &job->answer);
    job_free(job);
    while (j->running == NULL && (wait = next_waiting(j)) != NULL) {
        j->opts.again(j->opts.arg, wait->rq, span_str(wait->task));
        wait_free(wait);
    }
}

/* A thread of the pool. */
static void run(struct task *t)
{
    struct job *job = (struct job *)t; /* first member */

    job->status = registry_answer(&job->ask, &job->answer);
    job->task.run = on_answered;
    mailbox_post(job->jobs->opts.control, &job->task);
}

static int copy_subject(const struct registry_subject *from, struct registry_history *to)
{
    struct registry_subject *s;
    int err = registry_history_subject(to, from->task, span_str(from->name), &s);

    for (size_t i = 0; err == 0 && i < from->versions_n; i++)
        err = registry_subject_add(s, &from->versions[i]);
    if (err == 0)
        s->served = from->served;
    return err;
}

static bool start(struct registry_jobs *j, struct http_rq *rq, const struct registry_ask *ask,
                  const struct gw_view *view, const struct registry_subject *s)
{
    struct job *job = mem_zalloc(sizeof *job);

    if (job == NULL)
        return false;
    wr_init(&job->answer, ANSWER_MAX);
    registry_history_init(&job->history);
    if (copy_subject(s, &job->history) < 0 || (job->body = http_take_body(rq)) == NULL) {
        job_free(job);
        return false;
    }
    job->jobs = j;
    job->rq = rq;
    job->view = gw_view_ref(view);
    job->ask = *ask;
    job->ask.history = &job->history;
    job->ask.body = blob_span(job->body);
    job->task.run = run;
    j->running = job;
    executor_post(jobpool_executor(j->opts.jobs), &job->task);
    return true;
}

bool registry_job_take(struct registry_jobs *j, struct http_rq *rq, const struct registry_ask *ask,
                       const struct gw_view *view)
{
    const struct registry_subject *s = http_body_bytes(rq) > 0 ? registry_compared(ask) : NULL;
    size_t bytes = http_body_bytes(rq);

    for (size_t i = 0; s != NULL && i < s->versions_n; i++)
        bytes += s->versions[i].text.n;
    if (s == NULL || bytes < LONG_BYTES)
        return false;
    if (j->running == NULL)
        return start(j, rq, ask, view, s);

    struct waiting *wait = mem_zalloc(sizeof *wait);
    if (wait == NULL || (wait->task = mem_strdup(ask->task->name)) == NULL) {
        wait_free(wait);
        return false;
    }
    wait->rq = rq;
    STAILQ_INSERT_TAIL(&j->waits, wait, link);
    j->waits_n++;
    return true;
}

size_t registry_jobs_busy(const struct registry_jobs *j)
{
    return j == NULL ? 0 : j->waits_n + (j->running != NULL);
}

void registry_jobs_free(struct registry_jobs *j)
{
    struct waiting *wait;

    if (j == NULL)
        return;
    while ((wait = next_waiting(j)) != NULL) {
        http_drop(wait->rq);
        wait_free(wait);
    }
    while (j->running != NULL) /* the pool always comes back */
        (void)mailbox_wait(j->opts.control, -1);
    mem_free(j);
}
