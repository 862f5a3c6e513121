/*
 * What was seen of documents: for each 256 KiB line of the offset space the largest clock of
 * content in it, 16 bytes a block. A feed cuts a stream of bytes into documents on the way.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define DOCUMENT_MAX (256u << 20)

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

/* bytes begin at pos, which is run.end + what part holds. */
static int add_lines(struct gz_feed *f, const struct gz_probe *probe, struct span bytes,
                     struct blob **whole)
{
    const uint8_t *last = memrchr(bytes.p, '\n', bytes.n);
    size_t n = last == NULL ? 0 : (size_t)(last + 1 - bytes.p), held = wr_len(&f->part);
    struct span text = span_of(bytes.p, n);
    struct blob *b = NULL;
    int err;

    if (n > 0 && (err = reserve(&f->run, f->pos + (int64_t)n)) < 0)
        return err;
    if (n > 0 && (whole != NULL || held > 0)) {
        if ((b = blob_new(held + n)) == NULL)
            return E_NOMEM;
        if (held > 0)
            memcpy(b->data, f->part.b->data, held);
        memcpy(b->data + held, bytes.p, n);
        b->len = held + n;
        text = blob_span(b);
        drop_part(f);
    }
    wr_bytes(&f->part, bytes.p + n, bytes.n - n);
    if (wr_err(&f->part) < 0) {
        err = wr_err(&f->part);
        blob_unref(b);
        return err;
    }
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
    } else if (offset > f->pos) { /* fragments hold whole documents: one begins behind a hole */
        drop_part(f);
        f->pos = f->run.end = offset;
        if (!f->aligned)
            f->run.begin = offset;
        f->aligned = true;
    }
    if (!f->aligned)
        bytes = align(f, bytes);
    if (bytes.n == 0)
        return 0;
    return add_lines(f, probe, bytes, whole);
}
