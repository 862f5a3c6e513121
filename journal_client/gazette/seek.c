/*
 * Seeks by clock. What was read of a journal is in its runs; the rest is known by fragment only: a
 * fragment in the store holds no clock much above the time when it was stored, so most of a backlog
 * is passed over by that. What is left is scanned, once, and then known.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"

#define SKEW_MS    (10L * 60 * 1000) /* by how much a writer's clock may be ahead of the store's */
#define SCAN_BYTES (INT64_C(64) << 20) /* at once, before others have their turn */
#define BACK_BYTES (INT64_C(1) << 20)  /* a document's begin is looked for so far back */

struct seek_op {
    struct jc_op op; /* first */
    struct jc_seek_req rq;
    jc_seek_fn *done;
    void *arg;
    int64_t block;
    int64_t tried; /* begin + 1 of the last range that was scanned for it */
};

struct seeker {
    const struct jc_seek_req *rq;
    int64_t low, high; /* blocks, inclusive */
    int64_t best_ms;   /* JC_SEEK_MAX */
    int64_t block;     /* -1: none */
};

/* A range that no run covers, within one fragment or behind all. */
struct gap {
    int64_t begin, end;
    bool aligned; /* a document begins there */
    int64_t bound_ms;
};

static void run_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct seek_op *so = (const struct seek_op *)op;

    if (jc_op_enter(op)) {
        so->done(so->arg, op->err, so->block);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

static void finish(struct seek_op *so, int err, int64_t block)
{
    so->op.err = err;
    so->block = err == 0 ? block : -1;
    jc_op_answer(&so->op, run_done);
}

static int64_t capped_ms(const struct seeker *sk, uint64_t clock)
{
    return jc_clock_unix_ms(clock < sk->rq->max_clock ? clock : sk->rq->max_clock);
}

/* Looks at one run. True: nothing later can be better. */
static bool look(struct seeker *sk, const struct gz_run *run)
{
    int64_t base = run->begin / JC_BLOCK_BYTES;
    size_t at = sk->low > base ? (size_t)(sk->low - base) : 0;

    for (; at < run->n && base + (int64_t)at <= sk->high; at++) {
        const struct gz_block *b = &run->v[at];
        if (!b->content || b->max_clock < sk->rq->min_clock)
            continue;
        if (sk->rq->mode == JC_SEEK_FIRST) {
            sk->block = base + (int64_t)at;
            return true;
        }
        int64_t ms = capped_ms(sk, b->max_clock);
        if (sk->block < 0 || ms > sk->best_ms) {
            sk->best_ms = ms;
            sk->block = base + (int64_t)at;
        }
    }
    return false;
}

static const struct gz_run *run_at(const struct gz_journal *j, size_t i)
{
    if (i < j->runs_n)
        return &j->runs[i];
    return i == j->runs_n && j->tail_set ? &j->tail.run : NULL;
}

/* The part of [begin, end) that fragments fill, clipped to the first one that may hold what is
 * sought. False: none. last: the last such part instead (for the largest clock). */
static bool gap_in(const struct gz_journal *j, const struct seeker *sk, int64_t begin, int64_t end,
                   bool aligned, struct gap *out)
{
    bool found = false, last = sk->rq->mode == JC_SEEK_MAX;

    for (size_t k = gz_frags_behind(&j->frags, begin); k <= j->frags.n && begin < end; k++) {
        const struct gz_frag *f = k < j->frags.n ? &j->frags.v[k] : NULL;
        int64_t bound = INT64_MAX, stop = end;
        if (f != NULL) {
            if (f->begin >= begin) {
                begin = f->begin;
                aligned = true;
            }
            if (f->end < end)
                stop = f->end;
            if (f->mod_time_s > 0)
                bound = f->mod_time_s * 1000L + SKEW_MS;
        }
        if (begin >= stop)
            break;
        bool may = bound >= jc_clock_unix_ms(sk->rq->min_clock) &&
                   (!last || sk->block < 0 || bound >= sk->best_ms);
        if (may) {
            *out = (struct gap){begin, stop, aligned, bound};
            found = true;
            if (!last)
                return true;
        }
        begin = stop;
        aligned = true;
    }
    return found;
}

/* The next range to scan before the answer is sure. */
static bool next_gap(const struct gz_journal *j, struct seeker *sk, struct gap *out)
{
    int64_t pos = sk->rq->offset, head = j->hub.heads.write_head;
    int64_t end = sk->rq->end_offset < head ? sk->rq->end_offset : head;
    bool aligned = pos <= j->hub.heads.first, found = false;
    struct gap g;

    for (size_t i = 0; pos < end; i++) {
        const struct gz_run *run = run_at(j, i);
        if (run != NULL && run->end <= pos)
            continue;
        int64_t stop = run == NULL || run->begin > end ? end : run->begin;
        if (pos < stop && gap_in(j, sk, pos, stop, aligned, &g)) {
            *out = g;
            found = true;
            if (sk->rq->mode == JC_SEEK_FIRST)
                return true;
        }
        if (run == NULL)
            break;
        /* In order: what is found before the next gap is the answer. */
        if (sk->rq->mode == JC_SEEK_FIRST && run->begin < end && look(sk, run))
            return false;
        pos = run->end;
        aligned = true;
    }
    return found;
}

/* Takes the reference of a step. */
static void step(struct seek_op *so)
{
    struct gz_journal *j = gz_op_journal(&so->op);
    const struct jc_seek_req *rq = &so->rq;
    struct seeker sk = {.rq = rq,
                        .low = rq->offset / JC_BLOCK_BYTES,
                        .high = (rq->end_offset - 1) / JC_BLOCK_BYTES,
                        .best_ms = INT64_MIN,
                        .block = -1};
    struct gap g;

    if (j->scanning) {
        TAILQ_INSERT_TAIL(&j->scanners, &so->op, step_link);
        return;
    }
    for (size_t i = 0; rq->mode == JC_SEEK_MAX && run_at(j, i) != NULL; i++) {
        if (run_at(j, i)->end > rq->offset && run_at(j, i)->begin < rq->end_offset)
            (void)look(&sk, run_at(j, i));
    }
    if (j->state == GZ_J_TAIL && next_gap(j, &sk, &g)) {
        int64_t from = g.begin, to = g.end;
        bool again = so->tried == g.begin + 1;
        so->tried = g.begin + 1;
        if (!g.aligned) {
            /* Somewhere in a document: from the fragment's begin, or from a line before. */
            size_t k = gz_frags_behind(&j->frags, from);
            int64_t floor = k < j->frags.n ? j->frags.v[k].begin : j->hub.heads.first;
            g.aligned = again || from - floor <= BACK_BYTES;
            from = g.aligned ? floor : from - BACK_BYTES;
        } else if (again) { /* the last scan did not get past it */
            finish(so, E_CORRUPT, -1);
            return;
        }
        if (to - g.begin > SCAN_BYTES)
            to = g.begin + SCAN_BYTES;
        TAILQ_INSERT_TAIL(&j->scanners, &so->op, step_link);
        gz_scan_start(j, from, to, g.aligned);
        return;
    }
    finish(so, sk.block < 0 ? E_NOTFOUND : 0, sk.block);
}

static void ready(struct jc_op *op)
{
    struct seek_op *so = (struct seek_op *)op;

    if (op->err < 0)
        finish(so, op->err, -1);
    else
        step(so);
}

int gz_seek(struct jc_store *store, const struct jc_seek_req *r, struct executor *ex,
            jc_seek_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->offset < 0 || r->end_offset <= r->offset)
        return E_INVALID;
    if ((err = jc_op_new(jc_hub_of(store), sizeof(struct seek_op), r->journal, ex, NULL, &op)) < 0)
        return err;
    struct seek_op *so = (struct seek_op *)op;
    so->rq = *r;
    so->rq.journal = NULL; /* borrowed for the call only */
    so->done = done;
    so->arg = arg;
    return gz_op_start(op, ready, out);
}
