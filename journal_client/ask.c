/*
 * Reads of blocks, seeks, listings of fragments and fresh heads: what the caller asked and how it
 * is answered. How the answer is found is each store's own (jc_hub_ops).
 */
#include "base/mem.h"
#include "journal_client/hub.h"

/* --- blocks --- */

static void block_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct jc_block_ask *a = (struct jc_block_ask *)op;

    if (jc_op_enter(op)) {
        /* The receiver owns what is in it; the struct is the callback's only. */
        struct jc_block out = a->out;
        a->out = (struct jc_block){0};
        a->done(a->arg, op->err, op->err == 0 ? &out : NULL);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

void jc_block_answer(struct jc_block_ask *a, int err)
{
    a->op.err = err;
    if (err < 0)
        jc_block_fini(&a->out);
    pthread_mutex_lock(&a->op.hub->lock);
    a->out.log_start = a->op.j->heads.log_start;
    pthread_mutex_unlock(&a->op.hub->lock);
    jc_op_answer(&a->op, block_done);
}

static void block_fini(struct jc_op *op)
{
    struct jc_block_ask *a = (struct jc_block_ask *)op;

    if (op->hub->ops->block_fini != NULL)
        op->hub->ops->block_fini(a);
    jc_block_fini(&a->out);
}

static void block_ready(struct jc_op *op)
{
    struct jc_block_ask *a = (struct jc_block_ask *)op;

    if (op->err < 0)
        jc_block_answer(a, op->err);
    else
        op->hub->ops->block(a);
}

int jc_hub_read_block(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                      jc_block_fn *done, void *arg, struct jc_op **out)
{
    struct jc_hub *h = jc_hub_of(s);
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->block < 0 || r->block > INT64_MAX / 2 / JC_BLOCK_BYTES || r->from < 0)
        return E_INVALID;
    if ((err = jc_op_new(h, h->ops->block_bytes, r->journal, ex, block_fini, &op)) < 0)
        return err;
    struct jc_block_ask *a = (struct jc_block_ask *)op;
    a->rq = *r;
    a->rq.journal = NULL; /* borrowed for the call only */
    a->done = done;
    a->arg = arg;
    return jc_op_start(op, block_ready, out);
}

/* --- seeks --- */

static void seek_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct jc_seek_ask *a = (const struct jc_seek_ask *)op;

    if (jc_op_enter(op)) {
        a->done(a->arg, op->err, a->block);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

void jc_seek_answer(struct jc_seek_ask *a, int err, int64_t block)
{
    a->op.err = err;
    a->block = err == 0 ? block : -1;
    jc_op_answer(&a->op, seek_done);
}

static void seek_ready(struct jc_op *op)
{
    struct jc_seek_ask *a = (struct jc_seek_ask *)op;

    if (op->err < 0)
        jc_seek_answer(a, op->err, -1);
    else
        op->hub->ops->seek(a);
}

int jc_hub_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                jc_seek_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->offset < 0 || r->end_offset <= r->offset)
        return E_INVALID;
    if ((err = jc_op_new(jc_hub_of(s), sizeof(struct jc_seek_ask), r->journal, ex, NULL, &op)) < 0)
        return err;
    struct jc_seek_ask *a = (struct jc_seek_ask *)op;
    a->rq = *r;
    a->rq.journal = NULL; /* borrowed for the call only */
    a->done = done;
    a->arg = arg;
    return jc_op_start(op, seek_ready, out);
}

bool jc_seek_look(struct jc_seeker *sk, int64_t block, bool content, uint64_t max_clock)
{
    if (!content || max_clock < sk->rq->min_clock)
        return false;
    int64_t ms = jc_seek_ms(sk->rq, max_clock);
    if (sk->rq->mode == JC_SEEK_FIRST || sk->block < 0 || ms > sk->best_ms) {
        sk->best_ms = ms;
        sk->block = block;
    }
    return sk->rq->mode == JC_SEEK_FIRST;
}

/* --- fragments --- */

static void frags_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct jc_frags_ask *a = (const struct jc_frags_ask *)op;

    a->done(a->arg, op->err, a->list, a->n);
    jc_op_unref(op);
}

void jc_frags_answer(struct jc_frags_ask *a, int err)
{
    a->op.err = err;
    jc_op_answer(&a->op, frags_done);
}

static void frags_fini(struct jc_op *op)
{
    mem_free(((struct jc_frags_ask *)op)->list);
}

static void frags_ready(struct jc_op *op)
{
    struct jc_frags_ask *a = (struct jc_frags_ask *)op;

    if (op->err < 0)
        jc_frags_answer(a, op->err);
    else
        op->hub->ops->fragments(a);
}

int jc_hub_fragments(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                     jc_fragments_fn *done, void *arg)
{
    struct jc_op *op;
    int err;

    if ((err = jc_op_new(jc_hub_of(s), sizeof(struct jc_frags_ask), j, ex, frags_fini, &op)) < 0)
        return err;
    ((struct jc_frags_ask *)op)->done = done;
    ((struct jc_frags_ask *)op)->arg = arg;
    if ((err = jc_op_start(op, frags_ready, &op)) == 0)
        jc_op_unref(op); /* nobody holds a handle: the step's reference carries it */
    return err;
}

/* --- fresh heads --- */

static void fresh_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct jc_fresh_ask *a = (const struct jc_fresh_ask *)op;

    if (jc_op_enter(op)) {
        a->done(a->arg, op->err, op->err == 0 || op->err == E_AGAIN ? &a->heads : NULL);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

void jc_fresh_answer(struct jc_fresh_ask *a, int err)
{
    pthread_mutex_lock(&a->op.hub->lock);
    a->heads = a->op.j->heads;
    pthread_mutex_unlock(&a->op.hub->lock);
    a->op.err = err;
    jc_op_answer(&a->op, fresh_done);
}

static void fresh_ready(struct jc_op *op)
{
    struct jc_fresh_ask *a = (struct jc_fresh_ask *)op;

    if (op->err < 0)
        jc_fresh_answer(a, op->err);
    else
        op->hub->ops->fresh(a);
}

static void run_fresh(struct task *t)
{
    struct jc_op *op = jc_op_of(t);

    if (jc_op_canceled(op))
        jc_op_unref(op);
    else
        fresh_ready(op);
}

int jc_hub_fresh(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                 jc_fresh_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if ((err = jc_op_new(jc_hub_of(s), sizeof(struct jc_fresh_ask), j, ex, NULL, &op)) < 0)
        return err;
    ((struct jc_fresh_ask *)op)->done = done;
    ((struct jc_fresh_ask *)op)->arg = arg;
    op->ready = fresh_ready;
    *out = op;
    if ((err = jc_op_step(op, run_fresh)) < 0) {
        *out = NULL;
        jc_op_unref(op);
    }
    return err;
}
