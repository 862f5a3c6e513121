/*
 * Stream reads. A read alternates between a step on the I/O pool (find the place, pread one chunk)
 * and a delivery on the caller's executor; at the head it lies in its journal's list of waiters,
 * where a commit, its deadline, the end of the journal or of the store finds it.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "journal_client/local/block.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/op.h"
#include "journal_client/local/store_int.h"

#define CHUNK_BYTES 131072

static void step(struct task *t);

static void run_done(struct task *t)
{
    struct jc_op *op = jl_op_of(t);

    if (jl_op_enter(op)) {
        op->u.read.cb.done(op->u.read.cb.arg, op->err, &op->u.read.heads);
        jl_op_unref(op); /* the caller's handle */
    }
    jl_op_unref(op);
}

/* Within a delivery: the end comes in the same task. Takes the step's reference. */
static void end_here(struct jc_op *op, int err)
{
    pthread_mutex_lock(&op->store->lock);
    op->u.read.heads = op->j->heads;
    pthread_mutex_unlock(&op->store->lock);
    op->err = err;
    run_done(&op->task);
}

static void run_bytes(struct task *t)
{
    struct jc_op *op = jl_op_of(t);
    struct blob *bytes = op->u.read.bytes;
    int64_t at = op->u.read.pos;

    if (!jl_op_enter(op)) {
        jl_op_unref(op);
        return;
    }
    op->u.read.bytes = NULL;
    op->u.read.pos += (int64_t)bytes->len;
    int stop = op->u.read.cb.on_bytes(op->u.read.cb.arg, at, bytes);
    if (stop != 0) {
        end_here(op, E_CANCELED);
        return;
    }
    int err = jl_op_submit(op, step);
    if (err < 0)
        end_here(op, err);
    else
        jl_op_unref(op); /* the next step has its own */
}

/* What a step found under the lock. */
struct place {
    struct jl_frag *f; /* counted; NULL: nothing to read now */
    int64_t n;         /* bytes to read */
    bool parked;
    int err; /* when f is NULL and it is not parked: how the read ends */
};

/* Under the lock. Lies down at the head; the step's reference goes to the registry. */
static void park(struct jc_op *op)
{
    struct jl_store *s = op->store;

    TAILQ_INSERT_TAIL(&op->j->waiters, op, link);
    op->linked = true;
    if (op->u.read.deadline_ms != 0) {
        TAILQ_INSERT_TAIL(&s->timed, op, timed_link);
        op->timed = true;
        pthread_cond_signal(&s->timer_wake);
    }
}

/* Under the lock. The first stored fragment that holds pos or lies behind it. */
static struct jl_frag *find(struct jl_journal *j, int64_t pos)
{
    size_t at = jl_first_behind(j, pos);

    while (at < j->frags_n && jl_frag_jumped(j->frags[at]))
        at++;
    return jl_frag_at(j, at);
}

static struct place locate(struct jc_op *op)
{
    struct jl_read_state *r = &op->u.read;
    struct jl_journal *j = op->j;
    struct place pl = {0};

    if (j->deleted || op->store->closing || op->canceled) {
        pl.err = j->deleted ? E_NOTFOUND : E_CLOSED;
        return pl;
    }
    int64_t head = j->heads.write_head;
    if (r->pos < 0)
        r->pos = head;
    if (r->end > 0 && r->pos >= r->end)
        return pl;
    if (r->pos < head) {
        struct jl_frag *f = find(j, r->pos);
        if (f->begin > r->pos) /* a hole */
            r->pos = r->end > 0 && f->begin > r->end ? r->end : f->begin;
        int64_t end = r->end > 0 && r->end < f->end ? r->end : f->end;
        if (r->pos < end) {
            pl.f = jl_frag_ref(f);
            pl.n = end - r->pos < (int64_t)r->chunk ? end - r->pos : (int64_t)r->chunk;
            return pl;
        }
        if (r->end > 0 && r->pos >= r->end)
            return pl;
    }
    if (!r->block) {
        pl.err = r->pos > head ? E_RANGE : 0;
        return pl;
    }
    park(op);
    pl.parked = true;
    return pl;
}

/* Reads the chunk. E_NOTFOUND: the file went between look and open. */
static int fill(struct jc_op *op, const struct place *pl)
{
    struct jl_read_state *r = &op->u.read;
    struct blob *b = blob_new((size_t)pl->n);
    int fd, err;

    if (b == NULL)
        return E_NOMEM;
    if ((err = jl_frag_pin_live(op->j, pl->f, &fd)) == 0) {
        err = jl_pread_full(fd, b->data, (size_t)pl->n, r->pos - pl->f->begin);
        jl_frag_unpin(pl->f);
    }
    if (err < 0) {
        blob_unref(b);
        return err;
    }
    b->len = (size_t)pl->n;
    r->bytes = b;
    return 0;
}

/* I/O pool. */
static void step(struct task *t)
{
    struct jc_op *op = jl_op_of(t);
    struct jl_store *s = op->store;

    for (;;) {
        pthread_mutex_lock(&s->lock);
        struct place pl = locate(op);
        op->u.read.heads = op->j->heads;
        pthread_mutex_unlock(&s->lock);
        if (pl.parked)
            return;
        op->err = pl.err;
        if (pl.f == NULL)
            break;
        op->err = fill(op, &pl);
        if (op->err == E_NOTFOUND)
            op->err = jl_frag_vanished(op->j, pl.f);
        jl_frag_unref(pl.f);
        if (op->err == E_AGAIN)
            continue;
        if (op->err < 0)
            break;
        jl_op_answer(op, run_bytes);
        return;
    }
    jl_op_answer(op, run_done);
}

/* Under the lock: takes it out of the lists; its registry reference becomes that of a step. */
static void unpark(struct jc_op *op)
{
    TAILQ_REMOVE(&op->j->waiters, op, link);
    op->linked = false;
    if (op->timed) {
        TAILQ_REMOVE(&op->store->timed, op, timed_link);
        op->timed = false;
    }
}

/* Under the lock. */
static void wake(struct jc_op *op, int err)
{
    struct jl_store *s = op->store;

    unpark(op);
    if (err == 0 && !s->closing) {
        op->task.run = step;
        executor_post(jobpool_executor(s->io), &op->task);
        return;
    }
    op->err = err == 0 ? E_CLOSED : err;
    op->u.read.heads = op->j->heads;
    op->task.run = run_done; /* linked, hence not cancelled: no need to look */
    executor_post(op->ex, &op->task);
}

void jl_wake_waiters(struct jl_journal *j, int err)
{
    struct jc_op *op, *next;

    for (op = TAILQ_FIRST(&j->waiters); op != NULL; op = next) {
        next = TAILQ_NEXT(op, link);
        if (err != 0 || op->u.read.pos < j->heads.write_head)
            wake(op, err);
    }
}

int64_t jl_read_deadlines(struct jl_store *s)
{
    struct jc_op *op, *next;
    int64_t nearest = -1;

    pthread_mutex_lock(&s->lock);
    if (!TAILQ_EMPTY(&s->timed)) {
        int64_t now = clock_mono_ms(s->clock);
        for (op = TAILQ_FIRST(&s->timed); op != NULL; op = next) {
            next = TAILQ_NEXT(op, timed_link);
            int64_t left = op->u.read.deadline_ms - now;
            if (left <= 0)
                wake(op, E_TIMEOUT);
            else if (nearest < 0 || left < nearest)
                nearest = left;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return nearest;
}

int jl_read(struct jc_store *store, const struct jc_read_opts *o, const struct jc_reader *r,
            struct jc_op **out)
{
    struct jl_store *s = jl_store_of(store);
    struct jc_op *op;
    int err;

    *out = NULL;
    if (o->offset < -1 || o->end_offset < 0)
        return E_INVALID;
    if ((err = jl_op_new(s, JL_OP_READ, o->journal, r->ex, &op)) < 0)
        return err;
    op->u.read =
        (struct jl_read_state){.cb = *r,
                               .pos = o->offset,
                               .end = o->end_offset,
                               .deadline_ms = o->deadline_ms,
                               .block = o->block,
                               .chunk = o->chunk_bytes == 0 ? CHUNK_BYTES : o->chunk_bytes};
    *out = op;
    if ((err = jl_op_submit(op, step)) < 0) {
        *out = NULL;
        jl_op_unref(op);
    }
    return err;
}
