/*
 * Seeks by clock and listings of fragments: questions to the index and to the list of fragments.
 * A fragment whose index cannot be made may hold anything: a seek names its blocks, and whoever
 * reads them meets the damage.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/block.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/store_int.h"
#include "journal_client/uuid.h"

struct seek_op {
    struct jc_op op; /* first */
    struct jc_seek_req rq;
    jc_seek_fn *done;
    void *arg;
    int64_t block;
};

struct frags_op {
    struct jc_op op; /* first */
    jc_fragments_fn *done;
    void *arg;
    struct jc_fragment *list;
    size_t n;
};

struct seeker {
    const struct jc_seek_req *rq;
    int64_t low, high; /* blocks, both inclusive */
    int64_t best_ms;   /* JC_SEEK_MAX; INT64_MIN: none yet */
    int64_t block;     /* the answer so far, -1 none */
    struct jl_frag *load;
    const struct jl_opaque *opaque;
};

static int64_t capped_ms(const struct seeker *sk, uint64_t clock)
{
    return jc_clock_unix_ms(clock < sk->rq->max_clock ? clock : sk->rq->max_clock);
}

static bool may_hold(const struct seeker *sk, bool content, uint64_t max_clock)
{
    return content && max_clock >= sk->rq->min_clock;
}

/* Looks at the blocks of one fragment. True: nothing later can be better. */
static bool seek_blocks(struct seeker *sk, const struct jl_frag *f)
{
    const struct jl_blocks *b = &f->blocks;
    int64_t at = sk->low > b->base ? sk->low - b->base : 0;

    for (; at < (int64_t)b->n && b->base + at <= sk->high; at++) {
        const struct jl_block *e = &b->v[at];
        if (!may_hold(sk, e->content != 0, e->max_clock))
            continue;
        if (sk->rq->mode == JC_SEEK_FIRST) {
            sk->block = b->base + at;
            return true;
        }
        int64_t ms = capped_ms(sk, e->max_clock);
        if (ms > sk->best_ms || sk->block < 0) {
            sk->best_ms = ms;
            sk->block = b->base + at;
        }
    }
    return false;
}

/* As seek_blocks, for one that cannot be looked into. */
static bool seek_opaque(struct seeker *sk, const struct jl_frag *f)
{
    int64_t first = f->begin / JC_BLOCK_BYTES;
    int64_t ms = capped_ms(sk, f->sum.max_clock);

    if (first < sk->low)
        first = sk->low;
    if (sk->rq->mode == JC_SEEK_MAX && sk->block >= 0 && ms <= sk->best_ms)
        return false;
    sk->best_ms = ms;
    sk->block = first;
    return sk->rq->mode == JC_SEEK_FIRST;
}

/* Under the lock. E_AGAIN: sk->load first. */
static int seek_locked(struct jl_journal *j, struct seeker *sk)
{
    const struct jc_seek_req *rq = sk->rq;

    if (j->hub.deleted)
        return E_NOTFOUND;
    for (size_t at = jl_first_behind(j, rq->offset); at <= j->frags_n; at++) {
        struct jl_frag *f = jl_frag_at(j, at);
        if (f->begin >= rq->end_offset)
            break;
        /* The fragment as a whole first: most are passed over by this. */
        if (jl_frag_jumped(f) || f->end <= rq->offset ||
            !may_hold(sk, f->sum.content_end > 0, f->sum.max_clock))
            continue;
        if (rq->mode == JC_SEEK_MAX && sk->block >= 0 &&
            capped_ms(sk, f->sum.max_clock) <= sk->best_ms)
            continue;
        if (jl_opaque_has(sk->opaque, f)) {
            if (seek_opaque(sk, f))
                break;
            continue;
        }
        if (!jl_frag_loaded(f)) {
            sk->load = jl_frag_ref(f);
            return E_AGAIN;
        }
        if (seek_blocks(sk, f))
            break;
    }
    return sk->block < 0 ? E_NOTFOUND : 0;
}

static void seek_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct seek_op *so = (const struct seek_op *)op;

    if (jc_op_enter(op)) {
        so->done(so->arg, op->err, so->block);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

/* Loads what the look asked for. E_AGAIN: look again. */
static int seek_load(struct jl_journal *j, struct jl_frag *f, struct jl_opaque *opaque)
{
    int err = jl_frag_load(j, f);

    if (err == E_NOTFOUND)
        err = jl_frag_vanished(j, f);
    if (err == E_CORRUPT || err == E_IO)
        err = jl_opaque_add(opaque, f);
    return err < 0 ? err : E_AGAIN;
}

static void seek_step(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct seek_op *so = (struct seek_op *)op;
    struct jl_journal *j = jl_op_journal(op);
    struct jl_opaque opaque = {0};
    int err;

    do {
        struct seeker sk = {.rq = &so->rq,
                            .low = so->rq.offset / JC_BLOCK_BYTES,
                            .high = (so->rq.end_offset - 1) / JC_BLOCK_BYTES,
                            .best_ms = INT64_MIN,
                            .block = -1,
                            .opaque = &opaque};
        pthread_mutex_lock(&op->hub->lock);
        err = seek_locked(j, &sk);
        pthread_mutex_unlock(&op->hub->lock);
        if (err == E_AGAIN) {
            err = seek_load(j, sk.load, &opaque);
            jl_frag_unref(sk.load);
        }
        so->block = err == 0 ? sk.block : -1;
    } while (err == E_AGAIN);
    jl_opaque_fini(&opaque);
    op->err = err;
    jc_op_answer(op, seek_done);
}

int jl_seek(struct jc_store *store, const struct jc_seek_req *r, struct executor *ex,
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
    return jc_op_start(op, seek_step, out);
}

/* --- fragments --- */

static void fragments_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct frags_op *fo = (const struct frags_op *)op;

    fo->done(fo->arg, op->err, fo->list, fo->n);
    jc_op_unref(op);
}

static void fragments_step(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct frags_op *fo = (struct frags_op *)op;
    const struct jl_journal *j = jl_op_journal(op);

    pthread_mutex_lock(&op->hub->lock);
    size_t all = j->frags_n + 1;
    op->err = j->hub.deleted ? E_NOTFOUND : 0;
    fo->list = op->err < 0 ? NULL : mem_array(all, sizeof *fo->list);
    if (op->err == 0 && fo->list == NULL)
        op->err = E_NOMEM;
    for (size_t i = 0; i < all && op->err == 0; i++) {
        const struct jl_frag *f = jl_frag_at(j, i);
        struct jc_fragment *to = &fo->list[fo->n];
        if (jl_frag_jumped(f) || f->begin == f->end)
            continue;
        *to = (struct jc_fragment){.begin = f->begin,
                                   .end = f->end,
                                   .open = f->open,
                                   .mod_time_ms = f->mod_time_ms,
                                   .max_clock = f->sum.max_clock,
                                   .content_end = f->sum.content_end};
        memcpy(to->sha1, f->sha1, sizeof to->sha1);
        fo->n++;
    }
    pthread_mutex_unlock(&op->hub->lock);
    jc_op_answer(op, fragments_done);
}

static void fragments_fini(struct jc_op *op)
{
    mem_free(((struct frags_op *)op)->list);
}

int jl_fragments(struct jc_store *store, const struct jc_journal *j, struct executor *ex,
                 jc_fragments_fn *done, void *arg)
{
    struct jc_op *op;
    int err;

    if ((err = jc_op_new(jc_hub_of(store), sizeof(struct frags_op), j, ex, fragments_fini, &op)) <
        0)
        return err;
    ((struct frags_op *)op)->done = done;
    ((struct frags_op *)op)->arg = arg;
    if ((err = jc_op_start(op, fragments_step, &op)) == 0)
        jc_op_unref(op); /* nobody holds a handle: the step's reference carries it */
    return err;
}
