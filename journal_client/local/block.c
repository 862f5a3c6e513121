/*
 * Block reads, answered by the I/O pool. A block read reads what it answers and little more: the
 * index gives the range of the block's documents, and from a `from` inside of it the start of that
 * document is found backwards, in growing steps that end at its newline.
 *
 * Bytes that cannot be read fail the read, or, for who asked so, are told as damaged ranges between
 * what is healthy: one bad file must not hide its neighbours. A range begins behind the last whole
 * line that could be read.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/block.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/store_int.h"

#define BACK_BYTES     4096
#define BACK_BYTES_MAX (1u << 20)

static _Atomic uint64_t reads_total, read_bytes_total;

void jc_local_read_stats(uint64_t *reads, uint64_t *bytes)
{
    *reads = atomic_load_explicit(&reads_total, memory_order_relaxed);
    *bytes = atomic_load_explicit(&read_bytes_total, memory_order_relaxed);
}

/* Returns how many bytes came; fewer than n with *err set. */
static size_t pread_some(int fd, uint8_t *to, size_t n, int64_t at, int *err)
{
    size_t have = 0;

    atomic_fetch_add_explicit(&reads_total, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&read_bytes_total, n, memory_order_relaxed);
    *err = 0;
    while (have < n) {
        ssize_t got = pread(fd, to + have, n - have, (off_t)(at + (int64_t)have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            log_event(LOG_ERROR, "store.read", LF_INT("at", at), LF_ERRNO(errno));
            *err = err_from_errno(errno);
        }
        if (got == 0)
            *err = E_CORRUPT;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    return have;
}

int jl_pread_full(int fd, void *p, size_t n, int64_t at)
{
    int err;

    (void)pread_some(fd, p, n, at, &err);
    return err;
}

/* --- fragments that cannot be looked into --- */

bool jl_opaque_has(const struct jl_opaque *o, const struct jl_frag *f)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->v[i] == f)
            return true;
    }
    return false;
}

int jl_opaque_add(struct jl_opaque *o, struct jl_frag *f)
{
    struct jl_frag **v = mem_realloc(o->v, (o->n + 1) * sizeof(struct jl_frag *));

    if (v == NULL)
        return E_NOMEM;
    o->v = v;
    o->v[o->n++] = jl_frag_ref(f);
    return 0;
}

void jl_opaque_fini(struct jl_opaque *o)
{
    for (size_t i = 0; i < o->n; i++)
        jl_frag_unref(o->v[i]);
    mem_free(o->v);
    *o = (struct jl_opaque){0};
}

/* --- the plan --- */

struct piece {
    struct jl_frag *f; /* counted */
    int64_t start, stop;
    bool opaque; /* known to be unreadable: where its documents begin and end is not */
};

struct plan {
    struct piece *v;
    size_t n, cap;
    struct jl_frag *load; /* counted: this one's index is needed first */
};

static void plan_fini(struct plan *pl)
{
    for (size_t i = 0; i < pl->n; i++)
        jl_frag_unref(pl->v[i].f);
    mem_free(pl->v);
    jl_frag_unref(pl->load);
    *pl = (struct plan){0};
}

static int plan_add(struct plan *pl, struct jl_frag *f, int64_t start, int64_t stop, bool opaque)
{
    if (pl->n == pl->cap) {
        size_t cap = pl->cap == 0 ? 4 : pl->cap * 2;
        struct piece *v = mem_realloc(pl->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        pl->v = v;
        pl->cap = cap;
    }
    pl->v[pl->n++] =
        (struct piece){.f = jl_frag_ref(f), .start = start, .stop = stop, .opaque = opaque};
    return 0;
}

/* Under the lock: what to read for the block. */
static int make_plan(struct jc_block_ask *op, const struct jl_opaque *opaque, struct plan *pl)
{
    struct jl_journal *j = jl_op_journal(&op->op);
    struct jc_block *out = &op->out;
    int64_t block = op->rq.block;
    int64_t low = block * JC_BLOCK_BYTES;
    int64_t high = low + JC_BLOCK_BYTES;
    int64_t head = j->hub.heads.write_head;

    if (j->hub.deleted)
        return E_NOTFOUND;
    if (op->op.canceled)
        return E_CANCELED;
    out->block = block;
    out->sealed = head >= high;
    out->read_to = out->sealed ? high : head;
    int64_t from = op->rq.from > low ? op->rq.from : low;
    if (from >= high)
        return 0;
    for (size_t at = jl_first_behind(j, from); at <= j->frags_n; at++) {
        struct jl_frag *f = jl_frag_at(j, at);
        int64_t start, stop;
        int err;
        if (f->begin >= high)
            break;
        if (jl_frag_jumped(f) || f->end <= from)
            continue;
        bool bad = jl_opaque_has(opaque, f);
        if (!bad && !jl_frag_loaded(f)) {
            pl->load = jl_frag_ref(f);
            return 0;
        }
        if (jl_frag_loaded(f)) {
            jl_index_range(&f->blocks, block, f->end, &start, &stop);
        } else {
            start = f->begin > low ? f->begin : low;
            stop = f->end < high ? f->end : high;
        }
        if (start < stop && stop > from && (err = plan_add(pl, f, start, stop, bad)) < 0)
            return err;
    }
    return 0;
}

/* The begin of the document that holds offset from: behind the last newline before it, at or above
 * start, which is a document's begin. */
static int find_begin(int fd, int64_t file, int64_t start, int64_t from, int64_t *out)
{
    size_t cap = BACK_BYTES;
    int64_t stop = from;
    uint8_t *buf = NULL;
    int err = 0;

    while (stop > start) {
        size_t n = stop - start < (int64_t)cap ? (size_t)(stop - start) : cap;
        uint8_t *grown = mem_realloc(buf, cap);
        if (grown == NULL) {
            err = E_NOMEM;
            break;
        }
        buf = grown;
        if ((err = jl_pread_full(fd, buf, n, stop - (int64_t)n - file)) < 0)
            break;
        const uint8_t *nl = memrchr(buf, '\n', n);
        stop -= (int64_t)n;
        if (nl != NULL) {
            *out = stop + (nl + 1 - buf);
            mem_free(buf);
            return 0;
        }
        cap = cap * 4 < BACK_BYTES_MAX ? cap * 4 : BACK_BYTES_MAX;
    }
    mem_free(buf);
    *out = start;
    return err;
}

/* --- the read --- */

/* As jl_frag_pin, for readers: a file that was opened by name after the journal's deletion may be
 * one of a journal that was made since under that name. */
int jl_frag_pin_live(struct jl_journal *j, struct jl_frag *f, int *fd)
{
    int err = jl_frag_pin(f, false, fd);

    if (err < 0)
        return err;
    pthread_mutex_lock(&j->store->hub.lock);
    bool deleted = j->hub.deleted;
    pthread_mutex_unlock(&j->store->hub.lock);
    if (!deleted)
        return 0;
    jl_frag_unpin(f);
    return E_NOTFOUND;
}

/* Owner: one run_plan. */
struct reading {
    struct jc_block_ask *op;
    const struct plan *pl;
    struct jc_segment *seg; /* grows, or NULL */
    int64_t end;            /* offset behind what it holds */
    struct jl_frag *gone;   /* borrowed from the plan: the file that was not there */
};

static bool is_damage(const struct jc_block_ask *op, int err)
{
    return op->rq.partial && (err == E_CORRUPT || err == E_IO);
}

static int add_damage(struct reading *rd, int64_t begin, int64_t end)
{
    struct jc_block *out = &rd->op->out;
    struct jc_range *last = out->damaged_n == 0 ? NULL : &out->damaged[out->damaged_n - 1];

    rd->seg = NULL;
    if (last != NULL && last->end == begin) {
        last->end = end;
        return 0;
    }
    if (out->damaged == NULL && (out->damaged = mem_array(rd->pl->n, sizeof *out->damaged)) == NULL)
        return E_NOMEM;
    out->damaged[out->damaged_n++] = (struct jc_range){begin, end};
    return 0;
}

/* A segment with room for piece i and those that adjoin it. */
static int open_segment(struct reading *rd, size_t i, int64_t begin)
{
    struct jc_block *out = &rd->op->out;
    const struct piece *v = rd->pl->v;
    size_t last = i;

    while (last + 1 < rd->pl->n && v[last + 1].start == v[last].stop)
        last++;
    struct blob *b = blob_new((size_t)(v[last].stop - begin));
    if (b == NULL)
        return E_NOMEM;
    rd->seg = &out->segments[out->segments_n++];
    *rd->seg = (struct jc_segment){.offset = begin, .bytes = b};
    rd->end = begin;
    return 0;
}

/* Appends [begin, stop of p) to the segment. On an error it has grown by the whole lines that came.
 */
static int read_piece(struct reading *rd, const struct piece *p, int fd, int64_t begin)
{
    struct blob *b = rd->seg->bytes;
    uint8_t *to = b->data + b->len;
    int err;
    size_t got = pread_some(fd, to, (size_t)(p->stop - begin), begin - p->f->begin, &err);

    if (err < 0) {
        const uint8_t *nl = got == 0 ? NULL : memrchr(to, '\n', got);
        got = nl == NULL ? 0 : (size_t)(nl + 1 - to);
    }
    b->len += got;
    rd->end += (int64_t)got;
    return err;
}

/* One piece, from the begin of the document that holds `from`. */
static int take_piece(struct reading *rd, size_t i)
{
    const struct piece *p = &rd->pl->v[i];
    struct jc_block *out = &rd->op->out;
    int64_t begin = p->start;
    int64_t from = rd->op->rq.from;
    int fd, err = 0;

    if (p->opaque)
        return add_damage(rd, p->start, p->stop);
    if ((err = jl_frag_pin_live(jl_op_journal(&rd->op->op), p->f, &fd)) < 0) {
        rd->gone = err == E_NOTFOUND ? p->f : NULL;
        return is_damage(rd->op, err) ? add_damage(rd, p->start, p->stop) : err;
    }
    if (from > begin)
        err = find_begin(fd, p->f->begin, begin, from, &begin);
    if (err == 0 && (rd->seg == NULL || rd->end != begin))
        err = open_segment(rd, i, begin);
    int64_t healthy = begin;
    if (err == 0) {
        err = read_piece(rd, p, fd, begin);
        healthy = rd->end;
        if (rd->seg->bytes->len == 0) { /* nothing of it could be read */
            blob_unref(rd->seg->bytes);
            out->segments_n--;
            rd->seg = NULL;
        }
    }
    jl_frag_unpin(p->f);
    return is_damage(rd->op, err) ? add_damage(rd, healthy, p->stop) : err;
}

static int run_plan(struct jc_block_ask *op, const struct plan *pl, struct jl_frag **gone)
{
    struct reading rd = {.op = op, .pl = pl};
    struct jc_block *out = &op->out;
    int err = 0;

    if (pl->n == 0)
        return 0;
    out->segments = mem_array(pl->n, sizeof *out->segments);
    if (out->segments == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < pl->n && err == 0; i++)
        err = take_piece(&rd, i);
    *gone = rd.gone;
    return err;
}

/* One attempt. E_AGAIN: an index was loaded, or a file had vanished, or one turned out unreadable.
 */
static int block_try(struct jc_block_ask *op, struct jl_opaque *opaque)
{
    struct plan pl = {0};
    struct jl_frag *gone = NULL, *bad = NULL;
    int err;

    jc_block_fini(&op->out);
    pthread_mutex_lock(&op->op.hub->lock);
    err = make_plan(op, opaque, &pl);
    pthread_mutex_unlock(&op->op.hub->lock);
    if (err == 0 && pl.load != NULL) {
        err = jl_frag_load(jl_op_journal(&op->op), pl.load);
        if (err == E_NOTFOUND)
            gone = pl.load;
        bad = is_damage(op, err) ? pl.load : NULL;
        if (err == 0)
            err = E_AGAIN;
    } else if (err == 0) {
        err = run_plan(op, &pl, &gone);
    }
    if (gone != NULL) {
        err = jl_frag_vanished(jl_op_journal(&op->op), gone);
        bad = is_damage(op, err) ? gone : NULL;
    }
    if (bad != NULL && (err = jl_opaque_add(opaque, bad)) == 0)
        err = E_AGAIN;
    plan_fini(&pl);
    return err;
}

void jl_block(struct jc_block_ask *op)
{
    struct jl_opaque opaque = {0};
    int err;

    do {
        err = block_try(op, &opaque);
    } while (err == E_AGAIN);
    jl_opaque_fini(&opaque);
    jc_block_answer(op, err);
}
