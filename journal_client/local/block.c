/*
 * Block reads, seeks and listings of fragments: single questions, answered by the I/O pool.
 *
 * A block read reads what it answers and little more: the index gives the range of the block's
 * documents, and from a `from` inside of it the start of that document is found backwards, in
 * growing steps that end at its newline.
 */
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/loss.h"
#include "journal_client/uuid.h"

#define BACK_BYTES     4096
#define BACK_BYTES_MAX (1u << 20)

static _Atomic uint64_t reads_total, read_bytes_total;

void jc_local_read_stats(uint64_t *reads, uint64_t *bytes)
{
    *reads = atomic_load_explicit(&reads_total, memory_order_relaxed);
    *bytes = atomic_load_explicit(&read_bytes_total, memory_order_relaxed);
}

int jl_pread_full(int fd, void *p, size_t n, int64_t at)
{
    uint8_t *to = p;

    atomic_fetch_add_explicit(&reads_total, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&read_bytes_total, n, memory_order_relaxed);
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            log_event(LOG_ERROR, "store.read", LF_INT("at", at), LF_ERRNO(errno));
            return err_from_errno(errno);
        }
        if (got == 0)
            return E_CORRUPT;
        to += got;
        n -= (size_t)got;
        at += got;
    }
    return 0;
}

void jc_block_fini(struct jc_block *b)
{
    for (size_t i = 0; i < b->segments_n; i++)
        blob_unref(b->segments[i].bytes);
    mem_free(b->segments);
    b->segments = NULL;
    b->segments_n = 0;
}

/* Under the lock: the index of the first closed fragment that ends behind pos. */
static size_t first_behind(const struct jl_journal *j, int64_t pos)
{
    size_t low = 0, high = j->frags_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (j->frags[mid]->end <= pos)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Fragment number at, the open one behind the closed ones. */
static struct jl_frag *frag_at(const struct jl_journal *j, size_t at)
{
    return at < j->frags_n ? j->frags[at] : j->open;
}

static bool loaded(const struct jl_frag *f)
{
    return f->open || jl_frag_jumped(f) || f->blocks.v != NULL;
}

/* --- block --- */

struct piece {
    struct jl_frag *f; /* counted */
    int64_t start, stop;
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

static int plan_add(struct plan *pl, struct jl_frag *f, int64_t start, int64_t stop)
{
    if (pl->n == pl->cap) {
        size_t cap = pl->cap == 0 ? 4 : pl->cap * 2;
        struct piece *v = mem_realloc(pl->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        pl->v = v;
        pl->cap = cap;
    }
    pl->v[pl->n++] = (struct piece){.f = jl_frag_ref(f), .start = start, .stop = stop};
    return 0;
}

/* Under the lock: what to read for the block. */
static int make_plan(struct jc_op *op, struct plan *pl)
{
    struct jl_journal *j = op->j;
    struct jc_block *out = &op->u.block.out;
    int64_t block = op->u.block.block;
    int64_t low = block * JC_BLOCK_BYTES;
    int64_t high = low + JC_BLOCK_BYTES;
    int64_t head = j->heads.write_head;

    if (j->deleted)
        return E_NOTFOUND;
    if (op->canceled)
        return E_CANCELED;
    out->block = block;
    out->sealed = head >= high;
    out->read_to = out->sealed ? high : head;
    int64_t from = op->u.block.from > low ? op->u.block.from : low;
    if (from >= high)
        return 0;
    for (size_t at = first_behind(j, from); at <= j->frags_n; at++) {
        struct jl_frag *f = frag_at(j, at);
        int64_t start, stop;
        int err;
        if (f->begin >= high)
            break;
        if (jl_frag_jumped(f) || f->end <= from)
            continue;
        if (!loaded(f)) {
            pl->load = jl_frag_ref(f);
            return 0;
        }
        jl_index_range(&f->blocks, block, f->end, &start, &stop);
        if (start < stop && stop > from && (err = plan_add(pl, f, start, stop)) < 0)
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

/* Reads a run of adjoining pieces into one blob. gone: the fragment whose file was not there. */
static int read_run(const struct piece *v, size_t n, int64_t begin, struct blob **out,
                    struct jl_frag **gone)
{
    struct blob *b = blob_new((size_t)(v[n - 1].stop - begin));
    int err = 0;

    *out = NULL;
    if (b == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n && err == 0; i++) {
        int64_t start = i == 0 ? begin : v[i].start;
        size_t len = (size_t)(v[i].stop - start);
        int fd;
        if ((err = jl_frag_pin(v[i].f, false, &fd)) < 0) {
            *gone = err == E_NOTFOUND ? v[i].f : NULL;
            break;
        }
        err = jl_pread_full(fd, b->data + b->len, len, start - v[i].f->begin);
        jl_frag_unpin(v[i].f);
        b->len += len;
    }
    if (err < 0) {
        blob_unref(b);
        return err;
    }
    *out = b;
    return 0;
}

static int run_plan(struct jc_op *op, const struct plan *pl, struct jl_frag **gone)
{
    struct jc_block *out = &op->u.block.out;
    int64_t from = op->u.block.from;
    int err;

    if (pl->n == 0)
        return 0;
    out->segments = mem_array(pl->n, sizeof *out->segments);
    if (out->segments == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < pl->n;) {
        const struct piece *p = &pl->v[i];
        int64_t begin = p->start;
        size_t n = 1;
        if (from > begin) {
            int fd;
            if ((err = jl_frag_pin(p->f, false, &fd)) < 0) {
                *gone = err == E_NOTFOUND ? p->f : NULL;
                return err;
            }
            err = find_begin(fd, p->f->begin, begin, from, &begin);
            jl_frag_unpin(p->f);
            if (err < 0)
                return err;
        }
        while (i + n < pl->n && p[n].start == p[n - 1].stop)
            n++;
        struct jc_segment *seg = &out->segments[out->segments_n];
        if ((err = read_run(p, n, begin, &seg->bytes, gone)) < 0)
            return err;
        seg->offset = begin;
        out->segments_n++;
        i += n;
    }
    return 0;
}

static void block_done(struct task *t)
{
    struct jc_op *op = jl_op_of(t);

    if (jl_op_enter(op)) {
        /* The receiver owns what is in it; the struct is the callback's only. */
        struct jc_block out = op->u.block.out;
        op->u.block.out = (struct jc_block){0};
        op->u.block.done(op->u.block.arg, op->err, op->err == 0 ? &out : NULL);
        jl_op_unref(op);
    }
    jl_op_unref(op);
}

/* One attempt. E_AGAIN: an index was loaded, or a file had vanished. */
static int block_try(struct jc_op *op)
{
    struct plan pl = {0};
    struct jl_frag *gone = NULL;
    int err;

    jc_block_fini(&op->u.block.out);
    pthread_mutex_lock(&op->store->lock);
    err = make_plan(op, &pl);
    pthread_mutex_unlock(&op->store->lock);
    if (err == 0 && pl.load != NULL) {
        err = jl_frag_load(op->j, pl.load);
        if (err == E_NOTFOUND)
            gone = pl.load;
        if (err == 0)
            err = E_AGAIN;
    } else if (err == 0) {
        err = run_plan(op, &pl, &gone);
    }
    if (gone != NULL)
        err = jl_frag_vanished(op->j, gone);
    plan_fini(&pl);
    return err;
}

static void block_step(struct task *t)
{
    struct jc_op *op = jl_op_of(t);

    do {
        op->err = block_try(op);
    } while (op->err == E_AGAIN);
    if (op->err < 0)
        jc_block_fini(&op->u.block.out);
    jl_op_answer(op, block_done);
}

int jl_read_block(struct jc_store *store, const struct jc_block_req *r, struct executor *ex,
                  jc_block_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->block < 0 || r->block > INT64_MAX / JC_BLOCK_BYTES - 1 || r->from < 0)
        return E_INVALID;
    if ((err = jl_op_new(jl_store_of(store), JL_OP_BLOCK, r->journal, ex, &op)) < 0)
        return err;
    op->u.block.block = r->block;
    op->u.block.from = r->from;
    op->u.block.done = done;
    op->u.block.arg = arg;
    *out = op;
    if ((err = jl_op_submit(op, block_step)) < 0) {
        *out = NULL;
        jl_op_unref(op);
    }
    return err;
}

/* --- seek --- */

struct seeker {
    const struct jc_seek_req *rq;
    int64_t low, high; /* blocks, both inclusive */
    int64_t best_ms;   /* JC_SEEK_MAX; INT64_MIN: none yet */
    int64_t block;     /* the answer so far, -1 none */
    struct jl_frag *load;
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

/* Under the lock. E_AGAIN: sk->load first. */
static int seek_locked(struct jl_journal *j, struct seeker *sk)
{
    const struct jc_seek_req *rq = sk->rq;

    if (j->deleted)
        return E_NOTFOUND;
    for (size_t at = first_behind(j, rq->offset); at <= j->frags_n; at++) {
        struct jl_frag *f = frag_at(j, at);
        if (f->begin >= rq->end_offset)
            break;
        /* The fragment as a whole first: most are passed over by this. */
        if (jl_frag_jumped(f) || f->end <= rq->offset ||
            !may_hold(sk, f->sum.content_end > 0, f->sum.max_clock))
            continue;
        if (rq->mode == JC_SEEK_MAX && sk->block >= 0 &&
            capped_ms(sk, f->sum.max_clock) <= sk->best_ms)
            continue;
        if (!loaded(f)) {
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
    struct jc_op *op = jl_op_of(t);

    if (jl_op_enter(op)) {
        op->u.seek.done(op->u.seek.arg, op->err, op->u.seek.block);
        jl_op_unref(op);
    }
    jl_op_unref(op);
}

static void seek_step(struct task *t)
{
    struct jc_op *op = jl_op_of(t);
    const struct jc_seek_req *rq = &op->u.seek.rq;
    int err;

    do {
        struct seeker sk = {.rq = rq,
                            .low = rq->offset / JC_BLOCK_BYTES,
                            .high = (rq->end_offset - 1) / JC_BLOCK_BYTES,
                            .best_ms = INT64_MIN,
                            .block = -1};
        pthread_mutex_lock(&op->store->lock);
        err = seek_locked(op->j, &sk);
        pthread_mutex_unlock(&op->store->lock);
        if (err == E_AGAIN) {
            int load_err = jl_frag_load(op->j, sk.load);
            if (load_err == E_NOTFOUND)
                load_err = jl_frag_vanished(op->j, sk.load);
            if (load_err < 0)
                err = load_err;
            jl_frag_unref(sk.load);
        }
        op->u.seek.block = err == 0 ? sk.block : -1;
    } while (err == E_AGAIN);
    op->err = err;
    jl_op_answer(op, seek_done);
}

int jl_seek(struct jc_store *store, const struct jc_seek_req *r, struct executor *ex,
            jc_seek_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->offset < 0 || r->end_offset <= r->offset)
        return E_INVALID;
    if ((err = jl_op_new(jl_store_of(store), JL_OP_SEEK, r->journal, ex, &op)) < 0)
        return err;
    op->u.seek.rq = *r;
    op->u.seek.rq.journal = NULL; /* borrowed for the call only */
    op->u.seek.done = done;
    op->u.seek.arg = arg;
    *out = op;
    if ((err = jl_op_submit(op, seek_step)) < 0) {
        *out = NULL;
        jl_op_unref(op);
    }
    return err;
}

/* --- fragments --- */

static void fragments_done(struct task *t)
{
    struct jc_op *op = jl_op_of(t);

    op->u.frags.done(op->u.frags.arg, op->err, op->u.frags.list, op->u.frags.n);
    jl_op_unref(op);
}

static void fragments_step(struct task *t)
{
    struct jc_op *op = jl_op_of(t);
    struct jl_journal *j = op->j;

    pthread_mutex_lock(&op->store->lock);
    size_t all = j->frags_n + 1;
    op->err = j->deleted ? E_NOTFOUND : 0;
    op->u.frags.list = op->err < 0 ? NULL : mem_array(all, sizeof *op->u.frags.list);
    if (op->err == 0 && op->u.frags.list == NULL)
        op->err = E_NOMEM;
    for (size_t i = 0; i < all && op->err == 0; i++) {
        const struct jl_frag *f = frag_at(j, i);
        struct jc_fragment *to = &op->u.frags.list[op->u.frags.n];
        if (jl_frag_jumped(f) || f->begin == f->end)
            continue;
        *to = (struct jc_fragment){.begin = f->begin,
                                   .end = f->end,
                                   .open = f->open,
                                   .mod_time_ms = f->mod_time_ms,
                                   .max_clock = f->sum.max_clock,
                                   .content_end = f->sum.content_end};
        memcpy(to->sha1, f->sha1, sizeof to->sha1);
        op->u.frags.n++;
    }
    pthread_mutex_unlock(&op->store->lock);
    jl_op_answer(op, fragments_done);
}

int jl_fragments(struct jc_store *store, const struct jc_journal *j, struct executor *ex,
                 jc_fragments_fn *done, void *arg)
{
    struct jc_op *op;
    int err;

    if ((err = jl_op_new(jl_store_of(store), JL_OP_FRAGMENTS, j, ex, &op)) < 0)
        return err;
    op->u.frags.done = done;
    op->u.frags.arg = arg;
    err = jl_op_submit(op, fragments_step);
    jl_op_unref(op); /* nobody holds a handle: the step's reference carries it */
    return err;
}
