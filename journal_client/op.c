/*
 * Stores and journals as counted objects, and the life of an operation. What several threads touch
 * of it lies under the store lock; a task under way holds a reference and looks at `canceled`
 * first. Nothing is posted once it was cancelled, so that the executor may go away after
 * jc_cancel().
 */
#include "base/assert.h"
#include "base/mem.h"
#include "journal_client/hub.h"

void jc_hub_init(struct jc_hub *h, const struct jc_store_ops *base, const struct jc_hub_ops *ops,
                 const struct clock *clock)
{
    h->base.ops = base;
    h->ops = ops;
    h->clock = clock;
    atomic_init(&h->refs, 1);
    TAILQ_INIT(&h->watchers);
    TAILQ_INIT(&h->timed);
    (void)pthread_mutex_init(&h->lock, NULL);
}

void jc_hub_ref(struct jc_hub *h)
{
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void jc_hub_unref(struct jc_hub *h)
{
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(TAILQ_EMPTY(&h->watchers) && TAILQ_EMPTY(&h->timed));
    (void)pthread_mutex_destroy(&h->lock);
    h->ops->free(h);
}

void jc_hub_drop_listing(struct jc_hub *h)
{
    pthread_mutex_lock(&h->lock);
    const struct jc_listing *last = h->listing;
    h->listing = NULL;
    pthread_mutex_unlock(&h->lock);
    jc_listing_unref(last); /* not under the lock: journals may go with it */
}

void jc_hub_journal_init(struct jc_hub_journal *j, struct jc_hub *h)
{
    atomic_init(&j->refs, 1);
    j->hub = h;
    jc_hub_ref(h);
    TAILQ_INIT(&j->followers);
    TAILQ_INIT(&j->waiters);
}

void jc_hub_journal_ref(struct jc_hub_journal *j)
{
    atomic_fetch_add_explicit(&j->refs, 1, memory_order_relaxed);
}

void jc_hub_journal_unref(struct jc_hub_journal *j)
{
    struct jc_hub *h = j->hub;

    if (atomic_fetch_sub_explicit(&j->refs, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(TAILQ_EMPTY(&j->followers) && TAILQ_EMPTY(&j->waiters));
    h->ops->journal_free(j);
    jc_hub_unref(h);
}

/* --- operations --- */

int jc_op_new(struct jc_hub *h, size_t bytes, const struct jc_journal *j, struct executor *ex,
              void (*fini)(struct jc_op *op), struct jc_op **out)
{
    struct jc_op *op = mem_zalloc(bytes);

    *out = NULL;
    if (op == NULL)
        return E_NOMEM;
    atomic_init(&op->refs, 1);
    op->hub = h;
    jc_hub_ref(h);
    op->j = j == NULL ? NULL : j->impl;
    if (op->j != NULL)
        jc_hub_journal_ref(op->j);
    op->ex = ex;
    op->fini = fini;
    *out = op;
    return 0;
}

void jc_op_ref(struct jc_op *op)
{
    atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
}

void jc_op_unref(struct jc_op *op)
{
    if (op == NULL || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (op->fini != NULL)
        op->fini(op);
    if (op->j != NULL)
        jc_hub_journal_unref(op->j);
    struct jc_hub *h = op->hub;
    mem_free(op);
    jc_hub_unref(h);
}

struct jc_op *jc_op_of(struct task *t)
{
    return (struct jc_op *)(void *)((char *)t - offsetof(struct jc_op, task));
}

int jc_op_step(struct jc_op *op, void (*run)(struct task *t))
{
    struct jc_hub *h = op->hub;
    int err = E_CLOSED;

    pthread_mutex_lock(&h->lock);
    if (!h->closing) {
        jc_op_ref(op);
        op->task.run = run;
        executor_post(h->steps, &op->task);
        err = 0;
    }
    pthread_mutex_unlock(&h->lock);
    return err;
}

static void run_begin(struct task *t)
{
    struct jc_op *op = jc_op_of(t);

    if (jc_op_canceled(op))
        jc_op_unref(op);
    else if (op->hub->ops->begin != NULL)
        op->hub->ops->begin(op);
    else
        op->ready(op);
}

int jc_op_start(struct jc_op *op, void (*ready)(struct jc_op *op), struct jc_op **out)
{
    op->ready = ready;
    *out = op;
    int err = jc_op_step(op, run_begin);
    if (err < 0) {
        *out = NULL;
        jc_op_unref(op);
    }
    return err;
}

void jc_op_answer(struct jc_op *op, void (*run)(struct task *t))
{
    struct jc_hub *h = op->hub;
    bool dropped;

    /* Posted under the lock: after a cancel has returned, nothing reaches the executor. */
    pthread_mutex_lock(&h->lock);
    dropped = op->canceled;
    if (!dropped) {
        op->task.run = run;
        executor_post(op->ex, &op->task);
    }
    pthread_mutex_unlock(&h->lock);
    if (dropped)
        jc_op_unref(op);
}

bool jc_op_canceled(struct jc_op *op)
{
    pthread_mutex_lock(&op->hub->lock);
    bool canceled = op->canceled;
    pthread_mutex_unlock(&op->hub->lock);
    return canceled;
}

bool jc_op_enter(struct jc_op *op)
{
    return !jc_op_canceled(op);
}

void jc_op_link(struct jc_op *op, struct jc_op_list *list)
{
    TAILQ_INSERT_TAIL(list, op, link);
    op->list = list;
    jc_op_ref(op);
}

void jc_op_unlink(struct jc_op *op)
{
    TAILQ_REMOVE(op->list, op, link);
    op->list = NULL;
    if (op->timed)
        TAILQ_REMOVE(&op->hub->timed, op, timed_link);
    op->timed = false;
}

void jc_op_cancel(struct jc_op *op)
{
    struct jc_hub *h = op->hub;
    bool was_linked;

    pthread_mutex_lock(&h->lock);
    ASSERT(!op->canceled);
    op->canceled = true;
    was_linked = op->list != NULL;
    if (was_linked)
        jc_op_unlink(op);
    pthread_mutex_unlock(&h->lock);
    if (was_linked)
        jc_op_unref(op);
    jc_op_unref(op);
}
