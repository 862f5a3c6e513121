/*
 * Block reads. No index says where a block's first document begins: it is looked for backwards, in
 * growing steps, unless an earlier block read left a hint (readers go forward, and where one
 * block's last document ends the next one's first begins).
 *
 * What no broker and no fragment gives within GZ_GIVE_UP_MS fails the read, or, for who asked so,
 * is told as a damaged range: up to the end of its fragment, since the next one begins with a
 * document.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define BACK_FIRST 4096
#define BACK_GROWS 8

static void step(struct gz_block_op *b);

void gz_block_fini(struct jc_block_ask *a)
{
    struct gz_block_op *b = (struct gz_block_op *)a;

    for (size_t i = 0; i < b->n; i++)
        blob_unref(b->v[i].bytes);
    mem_free(b->v);
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
static int add_segment(struct gz_block_op *b, size_t from, size_t to, int64_t begin, int64_t end)
{
    struct jc_block *out = &b->ask.out;
    struct blob *copy = blob_new((size_t)(end - begin));

    if (copy == NULL)
        return E_NOMEM;
    for (size_t i = from; i < to; i++) {
        const struct gz_piece *p = &b->v[i];
        int64_t a = p->at > begin ? p->at : begin, z = piece_end(p) < end ? piece_end(p) : end;
        if (a >= z)
            continue;
        memcpy(copy->data + (a - begin), p->bytes->data + (a - p->at), (size_t)(z - a));
    }
    copy->len = (size_t)(end - begin);
    out->segments[out->segments_n++] = (struct jc_segment){.offset = begin, .bytes = copy};
    return 0;
}

/* --- what could not be read --- */

static bool is_damage(const struct gz_block_op *b, int err)
{
    return b->ask.rq.partial && (err == E_CORRUPT || err == E_IO);
}

static int add_damage(struct gz_block_op *b, int64_t begin, int64_t end)
{
    struct jc_block *out = &b->ask.out;
    size_t at = out->damaged_n;
    struct jc_range *v = mem_realloc(out->damaged, (at + 1) * sizeof *v);

    if (v == NULL)
        return E_NOMEM;
    out->damaged = v;
    while (at > 0 && v[at - 1].begin > begin)
        at--;
    memmove(v + at + 1, v + at, (out->damaged_n - at) * sizeof *v);
    v[at] = (struct jc_range){begin, end};
    out->damaged_n++;
    return 0;
}

/* The damaged range that ends at `end`; NULL: none. */
static struct jc_range *damage_before(struct gz_block_op *b, int64_t end)
{
    struct jc_block *out = &b->ask.out;

    for (size_t i = 0; i < out->damaged_n; i++) {
        if (out->damaged[i].end == end)
            return &out->damaged[i];
    }
    return NULL;
}

/* Up to where nothing is known when pos cannot be read. */
static int64_t damage_end(const struct gz_block_op *b, int64_t pos)
{
    const struct gz_frags *f = &gz_op_journal(&b->ask.op)->frags;
    size_t k = gz_frags_behind(f, pos);

    return k < f->n && f->v[k].begin <= pos && f->v[k].end < b->until ? f->v[k].end : b->until;
}

/* Where the first document of pieces [from, to), which adjoin, begins: one that begins in a damaged
 * range is missing as well. */
static int64_t first_begin(struct gz_block_op *b, size_t from, size_t to)
{
    const struct gz_frags *f = &gz_op_journal(&b->ask.op)->frags;
    int64_t at = b->v[from].at;
    struct jc_range *damage = damage_before(b, at);
    size_t k = gz_frags_behind(f, at);

    if (damage == NULL || (k < f->n && f->v[k].begin == at))
        return at;
    for (size_t i = from; i < to; i++) {
        const struct blob *bytes = b->v[i].bytes;
        const uint8_t *nl = memchr(bytes->data, '\n', bytes->len);
        damage->end = b->v[i].at + (nl == NULL ? (int64_t)bytes->len : nl + 1 - bytes->data);
        if (nl != NULL)
            break;
    }
    return damage->end;
}

/* Looking back for a document's begin may have met damage of which nothing was asked. */
static void clip_damage(struct gz_block_op *b)
{
    struct jc_block *out = &b->ask.out;
    size_t n = 0;

    for (size_t i = 0; i < out->damaged_n; i++) {
        struct jc_range r = out->damaged[i];
        if (r.begin < b->p0)
            r.begin = b->p0;
        if (r.begin < r.end)
            out->damaged[n++] = r;
    }
    out->damaged_n = n;
}

static void keep_hint(struct gz_journal *j, int64_t block, int64_t begin)
{
    j->hints[j->hint_next].block = block;
    j->hints[j->hint_next].begin = begin;
    j->hint_next = (j->hint_next + 1) % GZ_HINTS;
}

static int make_segments(struct gz_block_op *b)
{
    struct jc_block *out = &b->ask.out;
    const struct gz_piece *v = b->v;
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
        int64_t begin = first_begin(b, i, k), end = newline_below(v, i, k, b->high);
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
        keep_hint(gz_op_journal(&b->ask.op), out->block + 1, last);
    return 0;
}

/* --- reading --- */

static int insert(struct gz_block_op *b, size_t at, const struct gz_range *r)
{
    if (b->n == b->cap) {
        size_t cap = b->cap == 0 ? 8 : b->cap * 2;
        struct gz_piece *v = mem_realloc(b->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        b->v = v;
        b->cap = cap;
    }
    struct gz_piece *v = b->v;
    memmove(v + at + 1, v + at, (b->n - at) * sizeof *v);
    v[at] = (struct gz_piece){.at = r->at, .bytes = r->bytes};
    b->n++;
    return 0;
}

static void on_range(struct gz_range *r, int err)
{
    struct gz_block_op *b =
        (struct gz_block_op *)(void *)((char *)r - offsetof(struct gz_block_op, range));

    if (jc_op_canceled(&b->ask.op)) {
        blob_unref(r->bytes);
        jc_op_unref(&b->ask.op);
        return;
    }
    if (err == 0 && r->bytes != NULL && (err = insert(b, b->front, r)) < 0)
        blob_unref(r->bytes);
    int64_t known = b->until;
    if (is_damage(b, err)) {
        known = damage_end(b, b->low);
        err = add_damage(b, b->low, known);
        r->bytes = NULL;
    }
    if (err < 0) {
        jc_block_answer(&b->ask, err);
        return;
    }
    if (r->bytes == NULL) {
        b->low = known;
    } else {
        b->low = r->at + (int64_t)r->bytes->len;
        b->front++;
    }
    step(b);
}

/* True: no document that ends in [p0, high) has its begin before the first piece. */
static bool complete(struct gz_block_op *b)
{
    const struct gz_piece *v = b->v;
    size_t n = b->n, k;
    int64_t p0 = b->p0;

    if (b->exact || n == 0 || v[0].at >= p0 || damage_before(b, v[0].at) != NULL)
        return true;
    for (k = 1; k < n && v[k].at == piece_end(&v[k - 1]); k++) {
    }
    return newline_below(v, 0, k, p0) >= 0 || newline_below(v, 0, k, b->high) < 0;
}

static void run_told(struct task *t)
{
    struct gz_block_op *b =
        (struct gz_block_op *)(void *)((char *)t - offsetof(struct gz_block_op, told));

    jc_block_answer(&b->ask, b->err);
}

/* What the read found out about the journal's begin is told first. */
static void answer(struct gz_block_op *b, int err)
{
    struct gz_journal *j = gz_op_journal(&b->ask.op);

    b->err = err;
    b->told.run = run_told;
    if (j->first > b->first)
        gz_told_then(j->store, &b->told);
    else
        jc_block_answer(&b->ask, err);
}

/* Reads on to `until`; then more before it, if the begin of the first document is still missing. */
static void step(struct gz_block_op *b)
{
    struct gz_journal *j = gz_op_journal(&b->ask.op);
    int err;

    if (b->low >= b->until) {
        if (complete(b)) {
            err = make_segments(b);
            clip_damage(b);
            answer(b, err);
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
static void place(struct gz_block_op *b)
{
    const struct gz_journal *j = gz_op_journal(&b->ask.op);

    b->back = BACK_FIRST;
    for (size_t i = 0; i < GZ_HINTS; i++) {
        if (j->hints[i].block == b->ask.rq.block && j->hints[i].begin <= b->p0) {
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

void gz_block(struct jc_block_ask *a)
{
    struct gz_block_op *b = (struct gz_block_op *)a;
    const struct gz_journal *j = gz_op_journal(&a->op);
    int64_t low = a->rq.block * JC_BLOCK_BYTES, head = j->hub.heads.write_head;

    b->first = j->first;
    a->out.block = a->rq.block;
    a->out.sealed = head >= low + JC_BLOCK_BYTES;
    a->out.read_to = a->out.sealed ? low + JC_BLOCK_BYTES : head;
    b->p0 = a->rq.from > low ? a->rq.from : low;
    b->high = b->until = a->out.read_to;
    if (b->p0 >= b->high || b->high <= j->hub.heads.first) {
        jc_block_answer(a, 0);
        return;
    }
    place(b);
    step(b);
}
