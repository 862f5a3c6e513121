/*
 * One locked queue and a few threads. The threads block all signals, so that signals reach the
 * control thread alone.
 */
#include "base/jobpool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"

struct jobpool {
    struct executor ex; /* first member: a pool is an executor */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct task_queue queue;
    bool stop;
    unsigned n; /* threads running */
    pthread_t threads[];
};

static void post(struct executor *ex, struct task *t)
{
    struct jobpool *p = (struct jobpool *)ex;

    pthread_mutex_lock(&p->lock);
    STAILQ_INSERT_TAIL(&p->queue, t, link);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *thread_main(void *arg)
{
    struct jobpool *p = arg;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct task *t = STAILQ_FIRST(&p->queue);
        if (t != NULL) {
            STAILQ_REMOVE_HEAD(&p->queue, link);
            pthread_mutex_unlock(&p->lock);
            t->run(t);
            pthread_mutex_lock(&p->lock);
        } else if (p->stop) {
            break;
        } else {
            pthread_cond_wait(&p->wake, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start_threads(struct jobpool *p, unsigned threads, const char *name)
{
    sigset_t all;
    sigset_t old;
    int err = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < threads; i++) {
        int rc = pthread_create(&p->threads[i], NULL, thread_main, p);
        if (rc != 0) {
            /* EAGAIN: the system is out of threads, which is memory by another name. */
            err = E_NOMEM;
            break;
        }
        char label[16];
        snprintf(label, sizeof label, "%.10s-%u", name, i % 1000);
        pthread_setname_np(p->threads[i], label);
        p->n++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

int jobpool_new(unsigned threads, const char *name, struct jobpool **out)
{
    ASSERT(threads >= 1);
    *out = NULL;
    struct jobpool *p = mem_zalloc(sizeof *p + threads * sizeof p->threads[0]);
    if (p == NULL)
        return E_NOMEM;
    p->ex.post = post;
    STAILQ_INIT(&p->queue);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);

    int err = start_threads(p, threads, name);
    if (err != 0) {
        jobpool_free(p);
        return err;
    }
    *out = p;
    return 0;
}

void jobpool_free(struct jobpool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

struct executor *jobpool_executor(struct jobpool *p)
{
    return &p->ex;
}
