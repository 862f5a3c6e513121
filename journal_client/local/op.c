/*
 * Life of an operation. Its state lives under the store lock; a task under way holds a reference
 * and looks at `canceled` first. Nothing is posted once it was cancelled, so that the executor may
 * go away after jc_cancel().
 */
#include "journal_client/local/op.h"
#include "base/assert.h"
#include "base/mem.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/store_int.h"

int jl_op_new(struct jl_store *s, enum jl_op_kind kind, const struct jc_journal *j,
              struct executor *ex, struct jc_op **out)
{
    struct jc_op *op = mem_zalloc(sizeof *op);

    *out = NULL;
    if (op == NULL)
        return E_NOMEM;
    atomic_init(&op->refs, 1);
    op->kind = kind;
    op->store = jl_store_ref(s);
    op->j = j == NULL ? NULL : jl_journal_ref(jl_of(j));
    op->ex = ex;
    *out = op;
    return 0;
}

void jl_op_unref(struct jc_op *op)
{
    if (op == NULL || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
        return;
    switch (op->kind) {
    case JL_OP_WATCH:
        mem_free(op->u.watch.sel);
        jc_listing_unref(op->u.watch.last);
        break;
    case JL_OP_READ:
        blob_unref(op->u.read.bytes);
        break;
    case JL_OP_BLOCK:
        jc_block_fini(&op->u.block.out);
        break;
    case JL_OP_FRAGMENTS:
        mem_free(op->u.frags.list);
        break;
    case JL_OP_FOLLOW:
    case JL_OP_SEEK:
        break;
    }
    if (op->j != NULL)
        jl_journal_unref(op->j);
    struct jl_store *s = op->store;
    mem_free(op);
    jl_store_unref(s);
}

struct jc_op *jl_op_of(struct task *t)
{
    return (struct jc_op *)(void *)((char *)t - offsetof(struct jc_op, task));
}

int jl_op_submit(struct jc_op *op, void (*run)(struct task *t))
{
    struct jl_store *s = op->store;
    int err = E_CLOSED;

    pthread_mutex_lock(&s->lock);
    if (!s->closing) {
        atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
        op->task.run = run;
        executor_post(jobpool_executor(s->io), &op->task);
        err = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

void jl_op_answer(struct jc_op *op, void (*run)(struct task *t))
{
    struct jl_store *s = op->store;
    bool dropped;

    /* Posted under the lock: after a cancel has returned, nothing reaches the executor. */
    pthread_mutex_lock(&s->lock);
    dropped = op->canceled;
    if (!dropped) {
        op->task.run = run;
        executor_post(op->ex, &op->task);
    }
    pthread_mutex_unlock(&s->lock);
    if (dropped)
        jl_op_unref(op);
}

bool jl_op_enter(struct jc_op *op)
{
    pthread_mutex_lock(&op->store->lock);
    bool go = !op->canceled;
    pthread_mutex_unlock(&op->store->lock);
    return go;
}

static struct jl_op_list *list_of(struct jc_op *op)
{
    if (op->kind == JL_OP_WATCH)
        return &op->store->watchers;
    return op->kind == JL_OP_FOLLOW ? &op->j->followers : &op->j->waiters;
}

void jl_op_cancel(struct jc_op *op)
{
    struct jl_store *s = op->store;
    bool was_linked;

    pthread_mutex_lock(&s->lock);
    ASSERT(!op->canceled);
    op->canceled = true;
    was_linked = op->linked;
    if (op->linked) {
        TAILQ_REMOVE(list_of(op), op, link);
        op->linked = false;
    }
    if (op->timed) {
        TAILQ_REMOVE(&s->timed, op, timed_link);
        op->timed = false;
    }
    pthread_mutex_unlock(&s->lock);
    if (was_linked)
        jl_op_unref(op);
    jl_op_unref(op);
}
