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

struct seeker {
    struct jc_seeker c;
    struct jl_frag *load;
    const struct jl_opaque *opaque;
};

static bool may_hold(const struct seeker *sk, const struct jl_frag *f)
{
    return f->sum.content_end > 0 && f->sum.max_clock >= sk->c.rq->min_clock;
}

/* Looks at the blocks of one fragment. True: nothing later can be better. */
static bool seek_blocks(struct seeker *sk, const struct jl_frag *f)
{
    const struct jl_blocks *b = &f->blocks;
    int64_t at = sk->c.low > b->base ? sk->c.low - b->base : 0;

    for (; at < (int64_t)b->n && b->base + at <= sk->c.high; at++) {
        if (jc_seek_look(&sk->c, b->base + at, b->v[at].content != 0, b->v[at].max_clock))
            return true;
    }
    return false;
}

/* As seek_blocks, for one that cannot be looked into. */
static bool seek_opaque(struct seeker *sk, const struct jl_frag *f)
{
    int64_t first = f->begin / JC_BLOCK_BYTES;

    return jc_seek_look(&sk->c, first < sk->c.low ? sk->c.low : first, true, f->sum.max_clock);
}

/* Under the lock. E_AGAIN: sk->load first. */
static int seek_locked(struct jl_journal *j, struct seeker *sk)
{
    const struct jc_seek_req *rq = sk->c.rq;

    if (j->hub.deleted)
        return E_NOTFOUND;
    for (size_t at = jl_first_behind(j, rq->offset); at <= j->frags_n; at++) {
        struct jl_frag *f = jl_frag_at(j, at);
        if (f->begin >= rq->end_offset)
            break;
        /* The fragment as a whole first: most are passed over by this. */
        if (jl_frag_jumped(f) || f->end <= rq->offset || !may_hold(sk, f))
            continue;
        if (rq->mode == JC_SEEK_MAX && sk->c.block >= 0 &&
            jc_seek_ms(rq, f->sum.max_clock) <= sk->c.best_ms)
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
    return sk->c.block < 0 ? E_NOTFOUND : 0;
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

void jl_seek(struct jc_seek_ask *a)
{
    struct jl_journal *j = jl_op_journal(&a->op);
    struct jl_opaque opaque = {0};
    struct seeker sk;
    int err;

    do {
        sk = (struct seeker){.c = jc_seeker_of(&a->rq), .opaque = &opaque};
        pthread_mutex_lock(&a->op.hub->lock);
        err = seek_locked(j, &sk);
        pthread_mutex_unlock(&a->op.hub->lock);
        if (err == E_AGAIN) {
            err = seek_load(j, sk.load, &opaque);
            jl_frag_unref(sk.load);
        }
    } while (err == E_AGAIN);
    jl_opaque_fini(&opaque);
    jc_seek_answer(a, err, sk.c.block);
}

void jl_fragments(struct jc_frags_ask *a)
{
    const struct jl_journal *j = jl_op_journal(&a->op);

    pthread_mutex_lock(&a->op.hub->lock);
    size_t all = j->frags_n + 1;
    int err = j->hub.deleted ? E_NOTFOUND : 0;
    if (err == 0 && (a->list = mem_array(all, sizeof *a->list)) == NULL)
        err = E_NOMEM;
    for (size_t i = 0; i < all && err == 0; i++) {
        const struct jl_frag *f = jl_frag_at(j, i);
        struct jc_fragment *to = &a->list[a->n];
        if (jl_frag_jumped(f) || f->begin == f->end)
            continue;
        *to = (struct jc_fragment){.begin = f->begin,
                                   .end = f->end,
                                   .open = f->open,
                                   .mod_time_ms = f->mod_time_ms,
                                   .max_clock = f->sum.max_clock,
                                   .content_end = f->sum.content_end};
        memcpy(to->sha1, f->sha1, sizeof to->sha1);
        a->n++;
    }
    pthread_mutex_unlock(&a->op.hub->lock);
    jc_frags_answer(a, err);
}
