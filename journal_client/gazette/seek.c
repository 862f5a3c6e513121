/*
 * Seeks by clock. What was read of a journal is in its runs; the rest is known by fragment only: a
 * fragment in the store holds no clock much above the time when it was stored, so most of a backlog
 * is passed over by that. What is left is scanned, once, and then known.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"

#define SKEW_MS      (10L * 60 * 1000) /* by how much a writer's clock may be ahead of the store's */
#define SCAN_BYTES   (INT64_C(64) << 20)  /* at once, before others have their turn */
#define TRIES_MAX    2                    /* scans of one gap beyond the first */
#define BACK_BYTES   (INT64_C(1) << 20)   /* a document's begin is looked for so far back */
#define DOCUMENT_MAX (INT64_C(257) << 20) /* the longest one (index.c), and some more */

/* A range that no run covers, within one fragment or behind all. */
struct gap {
    int64_t begin, end;
    int64_t limit; /* not below end: where a document begins, as a rule: where its fragment ends */
    int64_t far;   /* not below limit: that of the next run, or the head */
    bool aligned;  /* a document begins at begin */
    int64_t bound_ms;
};

/* Looks at one run. True: nothing later can be better. */
static bool look(struct jc_seeker *sk, const struct gz_run *run)
{
    int64_t base = run->begin / JC_BLOCK_BYTES;
    size_t at = sk->low > base ? (size_t)(sk->low - base) : 0;

    for (; at < run->n && base + (int64_t)at <= sk->high; at++) {
        if (jc_seek_look(sk, base + (int64_t)at, run->v[at].content, run->v[at].max_clock))
            return true;
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
static bool gap_in(const struct gz_journal *j, const struct jc_seeker *sk, int64_t begin,
                   int64_t end, int64_t limit, bool aligned, struct gap *out)
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
            *out = (struct gap){.begin = begin,
                                .end = stop,
                                .limit = f != NULL && f->end < limit ? f->end : limit,
                                .far = limit,
                                .aligned = aligned,
                                .bound_ms = bound};
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
static bool next_gap(const struct gz_journal *j, struct jc_seeker *sk, struct gap *out)
{
    int64_t pos = sk->rq->offset, head = j->hub.heads.write_head;
    int64_t end = sk->rq->end_offset < head ? sk->rq->end_offset : head;
    bool aligned = pos <= j->hub.heads.first || pos <= j->first, found = false;
    struct gap g;

    for (size_t i = 0; pos < end; i++) {
        const struct gz_run *run = run_at(j, i);
        if (run != NULL && run->end <= pos)
            continue;
        int64_t stop = run == NULL || run->begin > end ? end : run->begin;
        int64_t limit = run == NULL ? head : run->begin;
        if (pos < stop && gap_in(j, sk, pos, stop, limit, aligned, &g)) {
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

static void scan(struct jc_seek_ask *a, struct gap g)
{
    struct gz_journal *j = gz_op_journal(&a->op);
    int64_t from = g.begin, to = g.end;

    if (!g.aligned) {
        /* Somewhere in a document: from the fragment's begin, or from a line before. */
        size_t k = gz_frags_behind(&j->frags, from);
        int64_t floor = k < j->frags.n ? j->frags.v[k].begin : j->hub.heads.first;
        g.aligned = a->tries > 0 || from - floor <= BACK_BYTES;
        from = g.aligned ? floor : from - BACK_BYTES;
    }
    /* The document that holds the end is scanned to its own. When it is longer than that, or lies
     * in several fragments (a writer that tore it may do so), up to the longest there is. */
    if (to - g.begin > SCAN_BYTES)
        to = g.begin + SCAN_BYTES;
    to += BACK_BYTES;
    if (a->tries > 0)
        to = g.begin + (a->tries == 1 ? SCAN_BYTES : DOCUMENT_MAX);
    if (to > (a->tries > 0 ? g.far : g.limit))
        to = a->tries > 0 ? g.far : g.limit;
    TAILQ_INSERT_TAIL(&j->scanners, &a->op, step_link);
    gz_scan_start(j, from, to, g.aligned);
}

/* No scan gets past it: a document ends behind it, if at all, where another run has it already. */
static int pass_over(struct gz_journal *j, const struct gap *g)
{
    struct gz_run nothing = {.begin = g->begin, .end = g->end};

    log_peer(LOG_WARN, "gazette.no_document", LF_STR("journal", j->name), LF_INT("from", g->begin),
             LF_INT("to", g->end));
    return gz_run_keep(j, &nothing);
}

void gz_seek(struct jc_seek_ask *a)
{
    struct gz_journal *j = gz_op_journal(&a->op);
    struct jc_seek_req left = a->rq; /* by what is left: the index knows what was removed, too */
    const struct jc_seek_req *rq = &left;
    struct gap g;
    int err;

    if (left.offset < j->first)
        left.offset = j->first;
    if (left.offset >= left.end_offset) {
        jc_seek_answer(a, E_NOTFOUND, -1);
        return;
    }
    if (j->scanning) {
        TAILQ_INSERT_TAIL(&j->scanners, &a->op, step_link);
        return;
    }
    for (;;) {
        struct jc_seeker sk = jc_seeker_of(rq);
        for (size_t i = 0; rq->mode == JC_SEEK_MAX && run_at(j, i) != NULL; i++) {
            if (run_at(j, i)->end > rq->offset && run_at(j, i)->begin < rq->end_offset)
                (void)look(&sk, run_at(j, i));
        }
        if (j->state != GZ_J_TAIL || !next_gap(j, &sk, &g)) {
            jc_seek_answer(a, sk.block < 0 ? E_NOTFOUND : 0, sk.block);
            return;
        }
        a->tries = a->tried == g.begin + 1 ? a->tries + 1 : 0;
        a->tried = g.begin + 1;
        if (a->tries <= TRIES_MAX) {
            scan(a, g);
            return;
        }
        if ((err = pass_over(j, &g)) < 0) {
            jc_seek_answer(a, err, -1);
            return;
        }
    }
}
