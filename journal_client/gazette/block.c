/*
 * Block reads. No index says where a block's first document begins: it is looked for backwards, in
 * growing steps, unless an earlier block read left a hint (readers go forward, and where one
 * block's last document ends the next one's first begins).
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define BACK_FIRST 4096
#define BACK_GROWS 8

static void step(struct jc_op *op);

void gz_block_drop(struct jc_op *op)
{
    for (size_t i = 0; i < op->u.block.n; i++)
        blob_unref(op->u.block.v[i].bytes);
    mem_free(op->u.block.v);
    op->u.block.v = NULL;
    op->u.block.n = op->u.block.cap = 0;
    jc_block_fini(&op->u.block.out);
}

static void run_done(struct task *t)
{
    struct jc_op *op = gz_op_of(t);

    if (gz_op_enter(op)) {
        struct jc_block out = op->u.block.out;
        op->u.block.out = (struct jc_block){0};
        op->u.block.done(op->u.block.arg, op->err, op->err == 0 ? &out : NULL);
        gz_op_unref(op);
    }
    gz_op_unref(op);
}

static void finish(struct jc_op *op, int err)
{
    op->err = err;
    if (err < 0)
        gz_block_drop(op);
    gz_op_answer(op, run_done);
}

/* --- from pieces to segments --- */

static int64_t piece_end(const struct gz_piece *p)
{
    return p->at + (int64_t)p->bytes->len;
}

/* The offset behind the last newline of pieces [from, to) that lies below limit; -1: none. */
static int64_t newline_below(const struct gz_piece *v, size_t from, size_t to, int64_t limit)
{
    for (size_t i = to; i > from; i--) {
        const struct gz_piece *p = &v[i - 1];
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
static int add_segment(struct jc_op *op, size_t from, size_t to, int64_t begin, int64_t end)
{
    struct jc_block *out = &op->u.block.out;
    struct blob *b = blob_new((size_t)(end - begin));

    if (b == NULL)
        return E_NOMEM;
    for (size_t i = from; i < to; i++) {
        const struct gz_piece *p = &op->u.block.v[i];
        int64_t a = p->at > begin ? p->at : begin, z = piece_end(p) < end ? piece_end(p) : end;
        if (a >= z)
            continue;
        memcpy(b->data + (a - begin), p->bytes->data + (a - p->at), (size_t)(z - a));
    }
    b->len = (size_t)(end - begin);
    out->segments[out->segments_n++] = (struct jc_segment){.offset = begin, .bytes = b};
    return 0;
}

static void keep_hint(struct gz_journal *j, int64_t block, int64_t begin)
{
    j->hints[j->hint_next].block = block;
    j->hints[j->hint_next].begin = begin;
    j->hint_next = (j->hint_next + 1) % GZ_HINTS;
}

static int make_segments(struct jc_op *op)
{
    struct jc_block *out = &op->u.block.out;
    const struct gz_piece *v = op->u.block.v;
    size_t n = op->u.block.n;
    int64_t p0 = op->u.block.p0, last = -1;
    int err;

    if (n == 0)
        return 0;
    if ((out->segments = mem_array(n, sizeof out->segments[0])) == NULL)
        return E_NOMEM;
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && v[k].at == piece_end(&v[k - 1]); k++) {
        }
        int64_t begin = v[i].at, end = newline_below(v, i, k, op->u.block.high);
        if (begin < p0) {
            int64_t behind = newline_below(v, i, k, p0);
            if (behind > begin)
                begin = behind;
        }
        last = -1;
        if (end <= p0 || end <= begin)
            continue;
        if ((err = add_segment(op, i, k, begin, end)) < 0)
            return err;
        last = piece_end(&v[k - 1]) >= op->u.block.high ? end : -1;
    }
    if (out->segments_n == 0) {
        mem_free(out->segments);
        out->segments = NULL;
    }
    if (out->sealed && last >= 0)
        keep_hint(op->j, out->block + 1, last);
    return 0;
}

/* --- reading --- */

static int insert(struct jc_op *op, size_t at, const struct gz_range *r)
{
    if (op->u.block.n == op->u.block.cap) {
        size_t cap = op->u.block.cap == 0 ? 8 : op->u.block.cap * 2;
        struct gz_piece *v = mem_realloc(op->u.block.v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        op->u.block.v = v;
        op->u.block.cap = cap;
    }
    struct gz_piece *v = op->u.block.v;
    memmove(v + at + 1, v + at, (op->u.block.n - at) * sizeof *v);
    v[at] = (struct gz_piece){.at = r->at, .bytes = r->bytes};
    op->u.block.n++;
    return 0;
}

static void on_range(struct gz_range *r, int err)
{
    struct jc_op *op = (struct jc_op *)(void *)((char *)r - offsetof(struct jc_op, range));

    if (gz_op_canceled(op)) {
        blob_unref(r->bytes);
        gz_op_unref(op);
        return;
    }
    if (err == 0 && r->bytes != NULL && (err = insert(op, op->u.block.front, r)) < 0)
        blob_unref(r->bytes);
    if (err < 0) {
        finish(op, err);
        return;
    }
    if (r->bytes == NULL) {
        op->u.block.low = op->u.block.until;
    } else {
        op->u.block.low = r->at + (int64_t)r->bytes->len;
        op->u.block.front++;
    }
    step(op);
}

/* True: no document that ends in [p0, high) has its begin before the first piece. */
static bool complete(const struct jc_op *op)
{
    const struct gz_piece *v = op->u.block.v;
    size_t n = op->u.block.n, k;
    int64_t p0 = op->u.block.p0;

    if (op->u.block.exact || n == 0 || v[0].at >= p0)
        return true;
    for (k = 1; k < n && v[k].at == piece_end(&v[k - 1]); k++) {
    }
    return newline_below(v, 0, k, p0) >= 0 || newline_below(v, 0, k, op->u.block.high) < 0;
}

/* Reads on to `until`; then more before it, if the begin of the first document is still missing. */
static void step(struct jc_op *op)
{
    struct gz_journal *j = op->j;
    int err;

    if (op->u.block.low >= op->u.block.until) {
        if (complete(op)) {
            err = make_segments(op);
            finish(op, err);
            return;
        }
        int64_t stop = op->u.block.v[0].at;
        op->u.block.back *= BACK_GROWS;
        op->u.block.low = stop - op->u.block.back;
        if (op->u.block.low <= j->heads.first) {
            op->u.block.low = j->heads.first;
            op->u.block.exact = true;
        }
        op->u.block.until = stop;
        op->u.block.front = 0;
        if (op->u.block.low >= stop) {
            step(op);
            return;
        }
    }
    op->range = (struct gz_range){.j = j,
                                  .begin = op->u.block.low,
                                  .end = op->u.block.until,
                                  .max = GZ_PIECE + BACK_FIRST,
                                  .done = on_range};
    gz_range_start(&op->range);
}

/* Where to begin reading for documents that end at or behind p0. */
static void place(struct jc_op *op)
{
    const struct gz_journal *j = op->j;

    op->u.block.back = BACK_FIRST;
    for (size_t i = 0; i < GZ_HINTS; i++) {
        if (j->hints[i].block == op->u.block.block && j->hints[i].begin <= op->u.block.p0) {
            op->u.block.low = j->hints[i].begin;
            op->u.block.exact = true;
            if (op->u.block.p0 - op->u.block.low < GZ_PIECE)
                return;
        }
    }
    op->u.block.exact = false;
    op->u.block.low = op->u.block.p0 - BACK_FIRST;
    if (op->u.block.low <= j->heads.first) {
        op->u.block.low = j->heads.first;
        op->u.block.exact = true;
    }
}

void gz_block_ready(struct jc_op *op)
{
    const struct gz_journal *j = op->j;
    struct jc_block *out = &op->u.block.out;
    int64_t low = op->u.block.block * JC_BLOCK_BYTES, head = j->heads.write_head;

    if (gz_op_canceled(op)) {
        gz_op_unref(op);
        return;
    }
    if (op->err < 0) {
        finish(op, op->err);
        return;
    }
    out->block = op->u.block.block;
    out->sealed = head >= low + JC_BLOCK_BYTES;
    out->read_to = out->sealed ? low + JC_BLOCK_BYTES : head;
    op->u.block.p0 = op->u.block.from > low ? op->u.block.from : low;
    op->u.block.high = op->u.block.until = out->read_to;
    if (op->u.block.p0 >= op->u.block.high || op->u.block.high <= j->heads.first) {
        finish(op, 0);
        return;
    }
    place(op);
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

int gz_read_block(struct jc_store *store, const struct jc_block_req *r, struct executor *ex,
                  jc_block_fn *done, void *arg, struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if (r->block < 0 || r->block > INT64_MAX / 2 / JC_BLOCK_BYTES || r->from < 0)
        return E_INVALID;
    if ((err = gz_op_new(gz_store_of(store), GZ_OP_BLOCK, r->journal, ex, &op)) < 0)
        return err;
    op->u.block.block = r->block;
    op->u.block.from = r->from;
    op->u.block.done = done;
    op->u.block.arg = arg;
    *out = op;
    if ((err = gz_op_home(op, run_start)) < 0) {
        *out = NULL;
        gz_op_unref(op);
    }
    return err;
}
