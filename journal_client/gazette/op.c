/*
 * Life of an operation. What other threads may touch of it lies under the store lock; a task under
 * way holds a reference and looks at `canceled` first. Nothing is posted to the executor once it
 * was cancelled, so that the executor may go away after jc_cancel().
 */
#include "base/assert.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

int gz_op_new(struct gz_store *s, enum gz_op_kind kind, const struct jc_journal *j,
              struct executor *ex, struct jc_op **out)
{
    struct jc_op *op = mem_zalloc(sizeof *op);

    *out = NULL;
    if (op == NULL)
        return E_NOMEM;
    atomic_init(&op->refs, 1);
    op->kind = kind;
    op->store = gz_store_ref(s);
    op->j = j == NULL ? NULL : gz_journal_ref(gz_of(j));
    op->ex = ex;
    *out = op;
    return 0;
}

void gz_op_unref(struct jc_op *op)
{
    if (op == NULL || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
        return;
    switch (op->kind) {
    case GZ_OP_WATCH:
        mem_free(op->u.watch.sel);
        jc_listing_unref(op->u.watch.last);
        break;
    case GZ_OP_READ:
        blob_unref(op->u.read.bytes);
        break;
    case GZ_OP_BLOCK:
        gz_block_drop(op);
        break;
    case GZ_OP_FRAGS:
        mem_free(op->u.frags.list);
        break;
    case GZ_OP_FOLLOW:
    case GZ_OP_SEEK:
        break;
    }
    if (op->j != NULL)
        gz_journal_unref(op->j);
    struct gz_store *s = op->store;
    mem_free(op);
    gz_store_unref(s);
}

struct jc_op *gz_op_of(struct task *t)
{
    return (struct jc_op *)(void *)((char *)t - offsetof(struct jc_op, task));
}

int gz_op_home(struct jc_op *op, void (*run)(struct task *t))
{
    struct gz_store *s = op->store;
    int err = E_CLOSED;

    pthread_mutex_lock(&s->lock);
    if (!s->closing) {
        atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
        op->task.run = run;
        mailbox_post(&s->mb, &op->task);
        err = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

void gz_op_answer(struct jc_op *op, void (*run)(struct task *t))
{
    struct gz_store *s = op->store;
    bool dropped;

    pthread_mutex_lock(&s->lock);
    dropped = op->canceled;
    if (!dropped) {
        op->task.run = run;
        executor_post(op->ex, &op->task);
    }
    pthread_mutex_unlock(&s->lock);
    if (dropped)
        gz_op_unref(op);
}

bool gz_op_canceled(struct jc_op *op)
{
    pthread_mutex_lock(&op->store->lock);
    bool canceled = op->canceled;
    pthread_mutex_unlock(&op->store->lock);
    return canceled;
}

bool gz_op_enter(struct jc_op *op)
{
    return !gz_op_canceled(op);
}

static struct gz_op_list *list_of(struct jc_op *op)
{
    if (op->kind == GZ_OP_WATCH)
        return &op->store->watchers;
    return op->kind == GZ_OP_FOLLOW ? &op->j->followers : &op->j->waiters;
}

void gz_op_cancel(struct jc_op *op)
{
    struct gz_store *s = op->store;
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
        gz_op_unref(op);
    gz_op_unref(op);
}

void gz_op_ready(struct jc_op *op)
{
    switch (op->kind) {
    case GZ_OP_READ:
        gz_read_ready(op);
        break;
    case GZ_OP_BLOCK:
        gz_block_ready(op);
        break;
    case GZ_OP_SEEK:
        gz_seek_ready(op);
        break;
    case GZ_OP_FRAGS:
        gz_fragments_ready(op);
        break;
    case GZ_OP_WATCH:
    case GZ_OP_FOLLOW:
        break;
    }
}

void gz_op_when_ready(struct jc_op *op)
{
    struct gz_journal *j = op->j;

    if (op->store->stopping) {
        op->err = E_CLOSED;
    } else if (j->deleted) {
        op->err = E_NOTFOUND;
    } else if (!j->ready) {
        TAILQ_INSERT_TAIL(&j->starting, op, home_link);
        gz_journal_wake(j);
        return;
    } else {
        gz_journal_wake(j);
    }
    gz_op_ready(op);
}
