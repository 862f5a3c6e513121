/*
 * What was seen of documents: for each 256 KiB line of the offset space the largest clock of
 * content in it, 16 bytes a block. A feed cuts a stream of bytes into documents on the way; what it
 * could not take for want of memory may be given to it again.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define DOCUMENT_MAX (256u << 20)
#define HOLE_MAX     (INT64_C(16) << 30) /* 1 MiB of index */

void gz_run_fini(struct gz_run *r)
{
    mem_free(r->v);
    *r = (struct gz_run){0};
}

static int reserve(struct gz_run *r, int64_t end)
{
    size_t need = (size_t)((end - 1) / JC_BLOCK_BYTES - r->begin / JC_BLOCK_BYTES + 1);

    if (need <= r->n)
        return 0;
    if (need > r->cap) {
        size_t cap = r->cap * 2 > need ? r->cap * 2 : need + 7;
        struct gz_block *v = mem_realloc(r->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        r->v = v;
        r->cap = cap;
    }
    memset(r->v + r->n, 0, (need - r->n) * sizeof r->v[0]);
    r->n = need;
    return 0;
}

/* One document that ends (behind its newline) at end; room was reserved. */
static void take(struct gz_run *r, const struct gz_probe *probe, struct span line, int64_t end)
{
    struct gz_block *b = &r->v[(end - 1) / JC_BLOCK_BYTES - r->begin / JC_BLOCK_BYTES];
    struct jc_doc_info info = {.kind = JC_DOC_CONTENT};

    probe->fn(probe->arg, line, &info);
    r->end = end;
    if (info.kind == JC_DOC_BLANK)
        return;
    jc_marks_take(&r->sum.marks, &info, end);
    if (info.kind != JC_DOC_CONTENT)
        return;
    b->content = true;
    if (info.clock > b->max_clock)
        b->max_clock = info.clock;
    r->sum.content_end = end;
    if (info.clock > r->sum.max_clock)
        r->sum.max_clock = info.clock;
}

void gz_feed_init(struct gz_feed *f, int64_t pos, bool aligned)
{
    *f = (struct gz_feed){.pos = pos, .aligned = aligned, .run = {.begin = pos, .end = pos}};
    wr_init(&f->part, DOCUMENT_MAX);
}

void gz_feed_fini(struct gz_feed *f)
{
    wr_fini(&f->part);
    gz_run_fini(&f->run);
}

static void drop_part(struct gz_feed *f)
{
    wr_fini(&f->part);
    wr_init(&f->part, DOCUMENT_MAX);
}

/* Until the first newline a feed that is not aligned only looks for it. */
static struct span align(struct gz_feed *f, struct span bytes)
{
    const uint8_t *nl = memchr(bytes.p, '\n', bytes.n);
    size_t skip = nl == NULL ? bytes.n : (size_t)(nl + 1 - bytes.p);

    f->pos += (int64_t)skip;
    f->run.begin = f->run.end = f->pos;
    f->aligned = nl != NULL;
    return span_of(bytes.p + skip, bytes.n - skip);
}

/* The documents that end in bytes, which begin at pos; with the part before them when there is one,
 * or when who follows wants them. Nothing is changed yet. */
static int gather(const struct gz_feed *f, struct span bytes, bool wanted, struct blob **out)
{
    size_t held = wr_len(&f->part);

    *out = NULL;
    if (bytes.n == 0 || (!wanted && held == 0))
        return 0;
    struct blob *b = blob_new(held + bytes.n);
    if (b == NULL)
        return E_NOMEM;
    if (held > 0)
        memcpy(b->data, f->part.b->data, held);
    memcpy(b->data + held, bytes.p, bytes.n);
    b->len = held + bytes.n;
    *out = b;
    return 0;
}

/* The begin of the next document: behind whole ones it takes the place of the part. What fails
 * leaves the part as it was, so that the same bytes may be given again. */
static int keep_rest(struct gz_feed *f, struct span rest, bool anew)
{
    struct writer next;
    int err;

    if (!anew) {
        wr_span(&f->part, rest);
        err = wr_err(&f->part);
        f->part.err = 0;
        return err;
    }
    wr_init(&next, DOCUMENT_MAX);
    wr_span(&next, rest);
    if ((err = wr_err(&next)) < 0) {
        wr_fini(&next);
        return err;
    }
    wr_fini(&f->part);
    f->part = next;
    return 0;
}

/* bytes begin at pos, which is run.end + what part holds. */
static int add_lines(struct gz_feed *f, const struct gz_probe *probe, struct span bytes,
                     struct blob **whole)
{
    const uint8_t *last = memrchr(bytes.p, '\n', bytes.n);
    size_t n = last == NULL ? 0 : (size_t)(last + 1 - bytes.p);
    struct span text = span_of(bytes.p, n);
    struct blob *b = NULL;
    int err;

    if (n > 0 && (err = reserve(&f->run, f->pos + (int64_t)n)) < 0)
        return err;
    if ((err = gather(f, text, whole != NULL, &b)) < 0)
        return err;
    if ((err = keep_rest(f, span_of(bytes.p + n, bytes.n - n), n > 0)) < 0) {
        blob_unref(b);
        return err;
    }
    if (b != NULL)
        text = blob_span(b);
    f->pos += (int64_t)bytes.n;
    int64_t at = f->run.end;
    for (const uint8_t *p = text.p, *end = text.p + text.n; p < end;) {
        const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));
        at += nl + 1 - p;
        take(&f->run, probe, span_of(p, (size_t)(nl - p)), at);
        p = nl + 1;
    }
    if (whole != NULL)
        *whole = b;
    else
        blob_unref(b);
    return 0;
}

/* Fragments hold whole documents: one begins behind a hole. A hole of any size must not cost
 * memory for its blocks: behind a large one the index begins anew (its sums stay), and seeks scan
 * what lay before when they want it. */
static void jump(struct gz_feed *f, int64_t offset)
{
    drop_part(f);
    if (!f->aligned || offset - f->run.end > HOLE_MAX) {
        f->run.begin = offset;
        f->run.n = 0;
    }
    f->pos = f->run.end = offset;
    f->aligned = true;
}

int gz_feed_add(struct gz_feed *f, const struct gz_probe *probe, int64_t offset, struct span bytes,
                struct blob **whole)
{
    if (whole != NULL)
        *whole = NULL;
    if (offset + (int64_t)bytes.n <= f->pos)
        return 0;
    if (offset < f->pos) {
        size_t known = (size_t)(f->pos - offset);
        bytes = span_of(bytes.p + known, bytes.n - known);
    } else if (offset > f->pos) {
        jump(f, offset);
    }
    if (!f->aligned)
        bytes = align(f, bytes);
    if (bytes.n == 0)
        return 0;
    return add_lines(f, probe, bytes, whole);
}
