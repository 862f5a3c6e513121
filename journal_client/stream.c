/*
 * Stream reads. A read alternates between a step of the store (bytes from its position) and a
 * delivery on the caller's executor; at the head it lies in its journal's list of waiters, where
 * news of the head, its deadline, the end of the journal or of the store finds it.
 */
#include "base/mem.h"
#include "journal_client/hub.h"

#define CHUNK_BYTES 131072

static void run_step(struct task *t);

static struct jc_read *read_of(struct jc_op *op)
{
    return (struct jc_read *)op;
}

static void run_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct jc_read *r = read_of(op);

    if (jc_op_enter(op)) {
        r->cb.done(r->cb.arg, op->err, &r->heads);
        jc_op_unref(op); /* the caller's handle */
    }
    jc_op_unref(op);
}

static void take_heads(struct jc_read *r)
{
    pthread_mutex_lock(&r->op.hub->lock);
    r->heads = r->op.j->heads;
    pthread_mutex_unlock(&r->op.hub->lock);
}

/* Within a delivery: the end comes in the same task. Takes the step's reference. */
static void end_here(struct jc_read *r, int err)
{
    take_heads(r);
    r->op.err = err;
    run_done(&r->op.task);
}

static void run_bytes(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct jc_read *r = read_of(op);
    struct blob *bytes = r->bytes;

    if (!jc_op_enter(op)) {
        jc_op_unref(op);
        return;
    }
    r->bytes = NULL;
    r->pos = r->at + (int64_t)bytes->len;
    if (r->cb.on_bytes(r->cb.arg, r->at, bytes) != 0) {
        end_here(r, E_CANCELED);
        return;
    }
    int err = jc_op_step(op, run_step);
    if (err < 0)
        end_here(r, err);
    else
        jc_op_unref(op); /* the next step has its own */
}

enum step { STEP_FETCH, STEP_END, STEP_WAIT };

/* Under the lock. Lies down at the head; a reference of its own keeps it there. */
static void park(struct jc_read *r)
{
    struct jc_hub *h = r->op.hub;

    jc_op_link(&r->op, &r->op.j->waiters);
    if (r->deadline_ms != 0) {
        TAILQ_INSERT_TAIL(&h->timed, &r->op, timed_link);
        r->op.timed = true;
        h->ops->timed(h);
    }
}

/* Under the lock: what is next; for STEP_FETCH up to where, else op.err. */
static enum step look(struct jc_read *r, int64_t *stop)
{
    const struct jc_hub_journal *j = r->op.j;
    int64_t head = j->heads.write_head;

    r->heads = j->heads;
    if (r->op.err < 0)
        return STEP_END;
    if (j->deleted || r->op.hub->closing || r->op.canceled) {
        r->op.err = j->deleted ? E_NOTFOUND : E_CLOSED;
        return STEP_END;
    }
    if (r->pos < 0)
        r->pos = head;
    if (r->end > 0 && r->pos >= r->end)
        return STEP_END;
    *stop = r->end > 0 && r->end < head ? r->end : head;
    if (r->pos < *stop)
        return STEP_FETCH;
    if (!r->block) {
        r->op.err = r->pos > head ? E_RANGE : 0;
        return STEP_END;
    }
    park(r);
    return STEP_WAIT;
}

void jc_read_step(struct jc_read *r)
{
    struct jc_hub *h = r->op.hub;
    int64_t stop = 0;

    pthread_mutex_lock(&h->lock);
    enum step next = look(r, &stop);
    pthread_mutex_unlock(&h->lock);
    if (next == STEP_FETCH)
        h->ops->read_fetch(r, stop);
    else if (next == STEP_END)
        jc_op_answer(&r->op, run_done);
    else
        jc_op_unref(&r->op);
}

static void run_step(struct task *t)
{
    jc_read_step(read_of(jc_op_of(t)));
}

static void ready(struct jc_op *op)
{
    jc_read_step(read_of(op));
}

void jc_read_got(struct jc_read *r, int err, int64_t at, struct blob *bytes, int64_t skip_to)
{
    if (err == 0 && bytes != NULL) {
        r->bytes = bytes;
        r->at = at;
        jc_op_answer(&r->op, run_bytes);
        return;
    }
    if (err == 0)
        r->pos = skip_to;
    else if (err != E_AGAIN)
        r->op.err = err;
    jc_read_step(r);
}

/* Under the lock: out of the list; its reference becomes that of a step. */
static void wake(struct jc_read *r, int err)
{
    struct jc_hub *h = r->op.hub;

    jc_op_unlink(&r->op);
    if (err == 0 && !h->closing) {
        r->op.task.run = run_step;
        executor_post(h->steps, &r->op.task);
        return;
    }
    r->op.err = err == 0 ? E_CLOSED : err;
    r->heads = r->op.j->heads;
    r->op.task.run = run_done; /* linked, hence not cancelled: no need to look */
    executor_post(r->op.ex, &r->op.task);
}

void jc_wake_waiters(struct jc_hub_journal *j, int err)
{
    struct jc_op *op, *next;

    for (op = TAILQ_FIRST(&j->waiters); op != NULL; op = next) {
        next = TAILQ_NEXT(op, link);
        if (err != 0 || read_of(op)->pos < j->heads.write_head)
            wake(read_of(op), err);
    }
}

int64_t jc_read_deadlines(struct jc_hub *h)
{
    struct jc_op *op, *next;
    int64_t nearest = -1;

    pthread_mutex_lock(&h->lock);
    int64_t now = TAILQ_EMPTY(&h->timed) ? 0 : clock_mono_ms(h->clock);
    for (op = TAILQ_FIRST(&h->timed); op != NULL; op = next) {
        next = TAILQ_NEXT(op, timed_link);
        int64_t left = read_of(op)->deadline_ms - now;
        if (left <= 0)
            wake(read_of(op), E_TIMEOUT);
        else if (nearest < 0 || left < nearest)
            nearest = left;
    }
    pthread_mutex_unlock(&h->lock);
    return nearest;
}

static void fini(struct jc_op *op)
{
    blob_unref(read_of(op)->bytes);
}

int jc_hub_read(struct jc_store *s, const struct jc_read_opts *o, const struct jc_reader *cb,
                struct jc_op **out)
{
    struct jc_hub *h = jc_hub_of(s);
    struct jc_op *op;
    int err;

    *out = NULL;
    if (o->offset < -1 || o->end_offset < 0)
        return E_INVALID;
    if ((err = jc_op_new(h, h->ops->read_bytes, o->journal, cb->ex, fini, &op)) < 0)
        return err;
    struct jc_read *r = read_of(op);
    r->cb = *cb;
    r->pos = o->offset;
    r->end = o->end_offset;
    r->deadline_ms = o->deadline_ms;
    r->block = o->block;
    r->chunk = o->chunk_bytes == 0 ? CHUNK_BYTES : o->chunk_bytes;
    return jc_op_start(op, ready, out);
}
