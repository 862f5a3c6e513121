/*
 * Requests to the committer: one queue, in order. Each is answered once, by the task inside of it.
 */
#include "journal_client/local/request.h"
#include "base/mem.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/store_int.h"

int jl_req_new(struct jl_store *s, struct executor *ex, void (*answer)(struct task *t),
               struct jl_req **out)
{
    (void)s;
    struct jl_req *rq = mem_zalloc(sizeof *rq);

    *out = NULL;
    if (rq == NULL)
        return E_NOMEM;
    rq->ex = ex;
    rq->task.run = answer;
    *out = rq;
    return 0;
}

int jl_req_post(struct jl_store *s, struct jl_req *rq)
{
    int err = 0;

    pthread_mutex_lock(&s->hub.lock);
    if (s->hub.closing) {
        err = E_CLOSED;
    } else {
        if (STAILQ_EMPTY(&s->queue))
            pthread_cond_signal(&s->work);
        STAILQ_INSERT_TAIL(&s->queue, rq, link);
    }
    pthread_mutex_unlock(&s->hub.lock);
    return err;
}

struct jl_req *jl_req_of(struct task *t)
{
    return (struct jl_req *)(void *)((char *)t - offsetof(struct jl_req, task));
}

void jl_req_free(struct jl_req *rq)
{
    mem_free(rq);
}

void jl_req_answer(struct jl_req *rq, int err)
{
    rq->err = err;
    if (rq->ex == NULL)
        jl_req_free(rq);
    else
        executor_post(rq->ex, &rq->task);
}

static void append_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    rq->done(rq->arg, rq->err, rq->txn);
    jl_req_free(rq);
}

int jl_append(struct jc_store *store, struct jc_txn *txn, struct executor *ex, jc_txn_fn *done,
              void *arg)
{
    struct jl_store *s = jl_store_of(store);
    struct jl_req *rq;
    int err;

    if (s->read_only)
        return E_DENIED;
    if ((err = jl_req_new(s, ex, append_done, &rq)) < 0)
        return err;
    rq->txn = txn;
    rq->done = done;
    rq->arg = arg;
    if ((err = jl_req_post(s, rq)) < 0)
        jl_req_free(rq);
    return err;
}

static void frag_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    rq->u.frag.done(rq->arg, rq->err);
    if (rq->u.frag.j != NULL)
        jl_journal_unref(rq->u.frag.j);
    jl_req_free(rq);
}

static int frag_request(struct jl_store *s, jl_req_run *run, const struct jc_journal *j, int64_t at,
                        struct executor *ex, jc_done_fn *done, void *arg)
{
    struct jl_req *rq;
    int err;

    if (s->read_only)
        return E_DENIED;
    if ((err = jl_req_new(s, ex, frag_done, &rq)) < 0)
        return err;
    rq->run = run;
    rq->arg = arg;
    rq->u.frag.done = done;
    rq->u.frag.j = j == NULL ? NULL : jl_journal_ref(jl_of(j));
    rq->u.frag.at = at;
    if ((err = jl_req_post(s, rq)) < 0) {
        if (rq->u.frag.j != NULL)
            jl_journal_unref(rq->u.frag.j);
        jl_req_free(rq);
    }
    return err;
}

static void run_flush(struct jl_store *s, struct jl_req *rq)
{
    int first = 0;

    for (size_t i = 0; i < s->hub.listing->n; i++) {
        const struct jc_journal *j = s->hub.listing->items[i];
        int err = jl_roll(s, jl_of(j), &j->spec, true);
        if (err < 0 && first == 0)
            first = err;
    }
    jl_req_answer(rq, first);
}

static void run_remove(struct jl_store *s, struct jl_req *rq)
{
    struct jl_journal *j = rq->u.frag.j;
    size_t n = 0;

    if (j->hub.deleted) {
        jl_req_answer(rq, E_NOTFOUND);
        return;
    }
    while (n < j->frags_n && j->frags[n]->end <= rq->u.frag.at)
        n++; /* the list itself changes on this thread only */
    jl_req_answer(rq, n == 0 ? 0 : jl_remove_prefix(s, j, n));
}

static void run_punch(struct jl_store *s, struct jl_req *rq)
{
    struct jl_journal *j = rq->u.frag.j;
    int err = E_NOTFOUND;

    for (size_t i = 0; i < j->frags_n && !j->hub.deleted; i++) {
        if (j->frags[i]->begin == rq->u.frag.at) {
            err = jl_remove_one(s, j, i);
            break;
        }
    }
    jl_req_answer(rq, err);
}

int jc_local_flush(struct jc_store *s, struct executor *ex, jc_done_fn *done, void *arg)
{
    return frag_request(jl_store_of(s), run_flush, NULL, 0, ex, done, arg);
}

int jc_local_remove_fragments(struct jc_store *s, const struct jc_journal *j, int64_t end,
                              struct executor *ex, jc_done_fn *done, void *arg)
{
    return frag_request(jl_store_of(s), run_remove, j, end, ex, done, arg);
}

int jc_local_punch(struct jc_store *s, const struct jc_journal *j, int64_t begin,
                   struct executor *ex, jc_done_fn *done, void *arg)
{
    return frag_request(jl_store_of(s), run_punch, j, begin, ex, done, arg);
}
