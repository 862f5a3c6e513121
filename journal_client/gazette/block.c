/*
 * Block reads. No index says where a block's first document begins: it is looked for backwards, in
 * growing steps, unless an earlier block read left a hint (readers go forward, and where one
 * block's last document ends the next one's first begins).
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define BACK_FIRST 4096
#define BACK_GROWS 8

struct piece {
    int64_t at;
    struct blob *bytes;
};

struct block_op {
    struct jc_op op; /* first */
    struct gz_range range;
    int64_t block, from;
    jc_block_fn *done;
    void *arg;
    struct jc_block out;
    struct piece *v; /* by rising offset */
    size_t n, cap;
    int64_t low, high; /* what is asked */
    int64_t p0;        /* documents that end at or behind it */
    int64_t back;      /* so far back for the document's begin */
    bool exact;        /* low is a document's begin */
    size_t front;      /* pieces that the running backward read brought */
    int64_t until;     /* where the running read ends */
};

static void step(struct block_op *b);

static void drop(struct jc_op *op)
{
    struct block_op *b = (struct block_op *)op;

    for (size_t i = 0; i < b->n; i++)
        blob_unref(b->v[i].bytes);
    mem_free(b->v);
    b->v = NULL;
    b->n = b->cap = 0;
    jc_block_fini(&b->out);
}

static void run_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    struct block_op *b = (struct block_op *)op;

    if (jc_op_enter(op)) {
        struct jc_block out = b->out;
        b->out = (struct jc_block){0};
        b->done(b->arg, op->err, op->err == 0 ? &out : NULL);
        jc_op_unref(op);
    }
    jc_op_unref(op);
}

static void finish(struct block_op *b, int err)
{
    b->op.err = err;
    if (err < 0)
        drop(&b->op);
    jc_op_answer(&b->op, run_done);
}

/* --- from pieces to segments --- */

static int64_t piece_end(const struct piece *p)
{
    return p->at + (int64_t)p->bytes->len;
}

/* The offset behind the last newline of pieces [from, to) that lies below limit; -1: none. */
static int64_t newline_below(const struct piece *v, size_t from, size_t to, int64_t limit)
{
    for (size_t i = to; i > from; i--) {
        const struct piece *p = &v[i - 1];
        if (p->at >= limit)
            continue;
        size_t n = limit - p->at < (int64_t)p->bytes->len ? (size_t)(limit - p->at) : p->bytes->len;
        const uint8_t *nl = memrchr(p->bytes->data, '\n', n);
        if (nl != NULL)
            return p->at + (nl + 1 - p->bytes->data);
    }
    return -1;
}

/* Pieces [from, to) adjoin. */
static int add_segment(struct block_op *b, size_t from, size_t to, int64_t begin, int64_t end)
{
    struct jc_block *out = &b->out;
    struct blob *copy = blob_new((size_t)(end - begin));

    if (copy == NULL)
        return E_NOMEM;
    for (size_t i = from; i < to; i++) {
        const struct piece *p = &b->v[i];
        int64_t a = p->at > begin ? p->at : begin, z = piece_end(p) < end ? piece_end(p) : end;
        if (a >= z)
            continue;
        memcpy(copy->data + (a - begin), p->bytes->data + (a - p->at), (size_t)(z - a));
    }
    copy->len = (size_t)(end - begin);
    out->segments[out->segments_n++] = (struct jc_segment){.offset = begin, .bytes = copy};
    return 0;
}

static void keep_hint(struct gz_journal *j, int64_t block, int64_t begin)
{
    j->hints[j->hint_next].block = block;
    j->hints[j->hint_next].begin = begin;
    j->hint_next = (j->hint_next + 1) % GZ_HINTS;
}

static int make_segments(struct block_op *b)
{
    struct jc_block *out = &b->out;
    const struct piece *v = b->v;
    size_t n = b->n;
    int64_t p0 = b->p0, last = -1;
    int err;

    if (n == 0)
        return 0;
    if ((out->segments = mem_array(n, sizeof out->segments[0])) == NULL)
        return E_NOMEM;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && v[k].at == piece_end(&v[k - 1]); k++) {
        }
        int64_t begin = v[i].at, end = newline_below(v, i, k, b->high);
        if (begin < p0) {
            int64_t behind = newline_below(v, i, k, p0);
            if (behind > begin)
                begin = behind;
        }
        last = -1;
        if (end <= p0 || end <= begin)
            continue;
        if ((err = add_segment(b, i, k, begin, end)) < 0)
            return err;
        last = piece_end(&v[k - 1]) >= b->high ? end : -1;
    }
    if (out->segments_n == 0) {
        mem_free(out->segments);
        out->segments = NULL;
    }
    if (out->sealed && last >= 0)
        keep_hint(gz_op_journal(&b->op), out->block + 1, last);
    return 0;
}

/* --- reading --- */

static int insert(struct block_op *b, size_t at, const struct gz_range *r)
{
    if (b->n == b->cap) {
        size_t cap = b->cap == 0 ? 8 : b->cap * 2;
        struct piece *v = mem_realloc(b->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        b->v = v;
        b->cap = cap;
    }
    struct piece *v = b->v;
    memmove(v + at + 1, v + at, (b->n - at) * sizeof *v);
    v[at] = (struct piece){.at = r->at, .bytes = r->bytes};
    b->n++;
    return 0;
}

static void on_range(struct gz_range *r, int err)
{
    struct block_op *b = (struct block_op *)(void *)((char *)r - offsetof(struct block_op, range));

    if (jc_op_canceled(&b->op)) {
        blob_unref(r->bytes);
        jc_op_unref(&b->op);
        return;
    }
    if (err == 0 && r->bytes != NULL && (err = insert(b, b->front, r)) < 0)
        blob_unref(r->bytes);
    if (err < 0) {
        finish(b, err);
        return;
    }
    if (r->bytes == NULL) {
        b->low = b->until;
    } else {
        b->low = r->at + (int64_t)r->bytes->len;
        b->front++;
    }
    step(b);
}

/* True: no document that ends in [p0, high) has its begin before the first piece. */
static bool complete(const struct block_op *b)
{
    const struct piece *v = b->v;
    size_t n = b->n, k;
    int64_t p0 = b->p0;

    if (b->exact || n == 0 || v[0].at >= p0)
        return true;
    for (k = 1; k < n && v[k].at == piece_end(&v[k - 1]); k++) {
    }
    return newline_below(v, 0, k, p0) >= 0 || newline_below(v, 0, k, b->high) < 0;
}

/* Reads on to `until`; then more before it, if the begin of the first document is still missing. */
static void step(struct block_op *b)
{
    struct gz_journal *j = gz_op_journal(&b->op);
    int err;

    if (b->low >= b->until) {
        if (complete(b)) {
            err = make_segments(b);
            finish(b, err);
            return;
        }
        int64_t stop = b->v[0].at;
        b->back *= BACK_GROWS;
        b->low = stop - b->back;
        if (b->low <= j->hub.heads.first) {
            b->low = j->hub.heads.first;
            b->exact = true;
        }
        b->until = stop;
        b->front = 0;
        if (b->low >= stop) {
            step(b);
            return;
        }
    }
    b->range = (struct gz_range){
        .j = j, .begin = b->low, .end = b->until, .max = GZ_PIECE + BACK_FIRST, .done = on_range};
    gz_range_start(&b->range);
}

/* Where to begin reading for documents that end at or behind p0. */
static void place(struct block_op *b)
{
    const struct gz_journal *j = gz_op_journal(&b->op);

    b->back = BACK_FIRST;
    for (size_t i = 0; i < GZ_HINTS; i++) {
        if (j->hints[i].block == b->block && j->hints[i].begin <= b->p0) {
            b->low = j->hints[i].begin;
            b->exact = true;
            if (b->p0 - b->low < GZ_PIECE)
                return;
        }
    }
    b->exact = false;
    b->low = b->p0 - BACK_FIRST;
    if (b->low <= j->hub.heads.first) {
        b->low = j->hub.heads.first;
        b->exact = true;
    }
}

static void ready(struct jc_op *op)
{
    struct block_op *b = (struct block_op *)op;
    const struct gz_journal *j = gz_op_journal(op);
    int64_t low = b->block * JC_BLOCK_BYTES, head = j->hub.heads.write_head;

    if (op->err < 0) {
        finish(b, op->err);
        return;
    }
    b->out.block = b->block;
    b->out.sealed = head >= low + JC_BLOCK_BYTES;
    b->out.read_to = b->out.sealed ? low + JC_BLOCK_BYTES : head;
    b->p0 = b->from > low ? b->from : low;
    b->high = b->until = b->out.read_to;
    if (b->p0 >= b->high || b->high <= j->hub.heads.first) {
        finish(b, 0);
        return;
    }
    place(b);
    step(b);
}

int gz_read_block(struct jc_store *store, const struct jc_block_req *r, struct executor *ex,
                  jc_block_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->block < 0 || r->block > INT64_MAX / 2 / JC_BLOCK_BYTES || r->from < 0)
        return E_INVALID;
    if ((err = jc_op_new(jc_hub_of(store), sizeof(struct block_op), r->journal, ex, drop, &op)) < 0)
        return err;
    struct block_op *b = (struct block_op *)op;
    b->block = r->block;
    b->from = r->from;
    b->done = done;
    b->arg = arg;
    return gz_op_start(op, ready, out);
}
