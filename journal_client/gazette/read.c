/*
 * Stream reads. A read alternates between a step at home (one range) and a delivery on the caller's
 * executor; at the head it lies in its journal's list of waiters, where news of the head, its
 * deadline, the end of the journal or of the store finds it.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define CHUNK_BYTES 131072

static void step(struct jc_op *op);

static void run_step(struct task *t)
{
    struct jc_op *op = gz_op_of(t);

    if (gz_op_canceled(op))
        gz_op_unref(op);
    else
        step(op);
}

static void run_start(struct task *t)
{
    struct jc_op *op = gz_op_of(t);

    if (gz_op_canceled(op))
        gz_op_unref(op);
    else
        gz_op_when_ready(op);
}

static void run_done(struct task *t)
{
    struct jc_op *op = gz_op_of(t);

    if (gz_op_enter(op)) {
        op->u.read.cb.done(op->u.read.cb.arg, op->err, &op->u.read.heads);
        gz_op_unref(op); /* the caller's handle */
    }
    gz_op_unref(op);
}

static struct jc_heads heads_of(const struct jc_op *op)
{
    pthread_mutex_lock(&op->store->lock);
    struct jc_heads h = op->j->heads;
    pthread_mutex_unlock(&op->store->lock);
    return h;
}

/* Takes the step's reference. */
static void finish(struct jc_op *op, int err)
{
    op->err = err;
    op->u.read.heads = heads_of(op);
    gz_op_answer(op, run_done);
}

/* Within a delivery: the end comes in the same task. */
static void end_here(struct jc_op *op, int err)
{
    op->err = err;
    op->u.read.heads = heads_of(op);
    run_done(&op->task);
}

static void run_bytes(struct task *t)
{
    struct jc_op *op = gz_op_of(t);
    struct blob *bytes = op->u.read.bytes;

    if (!gz_op_enter(op)) {
        gz_op_unref(op);
        return;
    }
    op->u.read.bytes = NULL;
    op->u.read.pos = op->u.read.at + (int64_t)bytes->len;
    int stop = op->u.read.cb.on_bytes(op->u.read.cb.arg, op->u.read.at, bytes);
    if (stop != 0) {
        end_here(op, E_CANCELED);
        return;
    }
    int err = gz_op_home(op, run_step);
    if (err < 0)
        end_here(op, err);
    else
        gz_op_unref(op); /* the next step has its own */
}

static void on_range(struct gz_range *r, int err)
{
    struct jc_op *op = (struct jc_op *)(void *)((char *)r - offsetof(struct jc_op, range));

    if (gz_op_canceled(op)) {
        blob_unref(r->bytes);
        gz_op_unref(op);
    } else if (err < 0) {
        finish(op, err);
    } else if (r->bytes == NULL) { /* nothing is stored there */
        op->u.read.pos = r->end;
        step(op);
    } else {
        op->u.read.bytes = r->bytes;
        op->u.read.at = r->at;
        gz_op_answer(op, run_bytes);
    }
}

/* Lies down at the head; the step's reference goes to the registry. False: there is news already.
 */
static void park(struct jc_op *op)
{
    struct gz_store *s = op->store;
    bool canceled;

    pthread_mutex_lock(&s->lock);
    canceled = op->canceled;
    if (!canceled) {
        TAILQ_INSERT_TAIL(&op->j->waiters, op, link);
        op->linked = true;
        if (op->u.read.deadline_ms != 0) {
            TAILQ_INSERT_TAIL(&s->timed, op, timed_link);
            op->timed = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (canceled) {
        gz_op_unref(op);
        return;
    }
    int64_t next = gz_read_deadlines(s);
    if (next >= 0)
        gz_arm(s->deadline, next);
}

/* Home; takes a reference of a step. */
static void step(struct jc_op *op)
{
    struct gz_journal *j = op->j;
    int64_t head = j->heads.write_head, stop;

    if (op->err < 0 || j->deleted || op->store->stopping) {
        finish(op, op->err < 0 ? op->err : op->store->stopping ? E_CLOSED : E_NOTFOUND);
        return;
    }
    if (op->u.read.pos < 0)
        op->u.read.pos = head;
    if (op->u.read.end > 0 && op->u.read.pos >= op->u.read.end) {
        finish(op, 0);
        return;
    }
    stop = op->u.read.end > 0 && op->u.read.end < head ? op->u.read.end : head;
    if (op->u.read.pos < stop) {
        op->range = (struct gz_range){.j = j,
                                      .begin = op->u.read.pos,
                                      .end = stop,
                                      .max = op->u.read.chunk,
                                      .done = on_range};
        gz_range_start(&op->range);
    } else if (!op->u.read.block) {
        finish(op, op->u.read.pos > head ? E_RANGE : 0);
    } else {
        park(op);
    }
}

void gz_read_ready(struct jc_op *op)
{
    if (gz_op_canceled(op))
        gz_op_unref(op);
    else
        step(op);
}

/* Under the lock: out of the lists; its registry reference becomes that of a step. */
static void wake(struct jc_op *op, int err)
{
    TAILQ_REMOVE(&op->j->waiters, op, link);
    op->linked = false;
    if (op->timed) {
        TAILQ_REMOVE(&op->store->timed, op, timed_link);
        op->timed = false;
    }
    if (err == 0) {
        op->task.run = run_step;
        mailbox_post(&op->store->mb, &op->task);
        return;
    }
    op->err = err;
    op->u.read.heads = op->j->heads;
    op->task.run = run_done;
    executor_post(op->ex, &op->task);
}

void gz_wake_waiters(struct gz_journal *j, int err)
{
    struct jc_op *op, *next;

    for (op = TAILQ_FIRST(&j->waiters); op != NULL; op = next) {
        next = TAILQ_NEXT(op, link);
        if (err != 0 || op->u.read.pos < j->heads.write_head)
            wake(op, err);
    }
}

int64_t gz_read_deadlines(struct gz_store *s)
{
    struct jc_op *op, *next;
    int64_t nearest = -1, now = clock_mono_ms(s->clock);

    pthread_mutex_lock(&s->lock);
    for (op = TAILQ_FIRST(&s->timed); op != NULL; op = next) {
        next = TAILQ_NEXT(op, timed_link);
        int64_t left = op->u.read.deadline_ms - now;
        if (left <= 0)
            wake(op, E_TIMEOUT);
        else if (nearest < 0 || left < nearest)
            nearest = left;
    }
    pthread_mutex_unlock(&s->lock);
    return nearest;
}

int gz_read(struct jc_store *store, const struct jc_read_opts *o, const struct jc_reader *r,
            struct jc_op **out)
{
    struct gz_store *s = gz_store_of(store);
    struct jc_op *op;
    int err;

    *out = NULL;
    if (o->offset < -1 || o->end_offset < 0)
        return E_INVALID;
    if ((err = gz_op_new(s, GZ_OP_READ, o->journal, r->ex, &op)) < 0)
        return err;
    op->u.read.cb = *r;
    op->u.read.pos = o->offset;
    op->u.read.end = o->end_offset;
    op->u.read.deadline_ms = o->deadline_ms;
    op->u.read.block = o->block;
    op->u.read.chunk = o->chunk_bytes == 0 ? CHUNK_BYTES : o->chunk_bytes;
    *out = op;
    if ((err = gz_op_home(op, run_start)) < 0) {
        *out = NULL;
        gz_op_unref(op);
    }
    return err;
}
