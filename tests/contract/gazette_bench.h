/*
 * A distributed store over a stand-in broker, and what must hold however the broker behaves: a
 * reader has each document once and in order, heads do not go back, and the broker is not asked
 * without bound.
 */
#pragma once

#include "tests/contract/store_lab.h"

#include <sys/stat.h>

#include "base/log.h"
#include "journal_client/gazette.h"
#include "tests/contract/temp_dir.h"
#include "tests/gazette_stand_in/stand_in.h"

#define BENCH_JOURNAL "bench/orders/part-000"
#define BENCH_DOC     200 /* bytes */

/* Owner: one test. */
struct bench {
    struct stand_in_opts so;
    struct jc_gazette_opts o;
    struct stand_in *si;
    struct lab lab;
    const struct jc_journal *j;
    char dir[256], root[300], data[400], at[64];
    unsigned opened; /* stores so far: each has a data folder of its own */
    unsigned docs;   /* appended so far */
    /* heads as they were told */
    struct jc_op *follow;
    struct jc_heads heads;
    bool went_back, ended;
};

static inline void bench_open(struct bench *b)
{
    char why[256];
    struct jc_store *s = NULL;

    (void)snprintf(b->data, sizeof b->data, "%s/data-%u", b->dir, b->opened++);
    (void)snprintf(b->at, sizeof b->at, "127.0.0.1:%u", stand_in_port(b->si));
    b->o.brokers = b->at;
    b->o.data_dir = b->data;
    b->o.probe = lab_probe;
    assert_int_equal(jc_gazette_open(&b->o, &s, why, sizeof why), 0);
    lab_init(&b->lab, s);
}

/* Set b->so and b->o before; files are in b->root. */
static inline void bench_start(struct bench *b)
{
    assert_int_equal(temp_dir_make(b->dir, sizeof b->dir), 0);
    (void)snprintf(b->root, sizeof b->root, "%s/fragments", b->dir);
    assert_int_equal(mkdir(b->root, 0700), 0);
    b->so.file_root = b->root;
    assert_int_equal(stand_in_start(&b->so, &b->si), 0);
    bench_open(b);
    b->j = lab_create(&b->lab, BENCH_JOURNAL);
}

static inline void bench_close(struct bench *b)
{
    if (b->follow != NULL)
        b->lab.s->ops->cancel(b->follow);
    b->follow = NULL;
    b->heads = (struct jc_heads){0};
    jc_journal_unref(b->j);
    b->j = NULL;
    if (b->lab.s != NULL)
        lab_fini(&b->lab);
}

/* Another gateway, that has never seen this cluster. */
static inline void bench_reopen(struct bench *b)
{
    bench_close(b);
    bench_open(b);
    for (int i = 0; i < 100 && b->j == NULL; i++) {
        b->j = lab_find(&b->lab, BENCH_JOURNAL);
        lab_settle(&b->lab, 20);
    }
    assert_non_null(b->j);
}

static inline void bench_end(struct bench *b)
{
    bench_close(b);
    stand_in_stop(b->si);
    b->si = NULL;
    temp_dir_remove(b->dir);
}

/* --- documents --- */

/* Appends n documents in one call; each says its number. Returns the store's answer. */
static inline int bench_append(struct bench *b, unsigned n)
{
    char *text = mem_alloc((size_t)n * BENCH_DOC + 1);
    int err;

    assert_non_null(text);
    for (unsigned i = 0; i < n; i++) {
        char *p = text + (size_t)i * BENCH_DOC;
        int at = snprintf(p, BENCH_DOC, "C%016x:doc %08u ", b->docs + 1, b->docs);
        memset(p + at, '.', BENCH_DOC - (size_t)at);
        p[BENCH_DOC - 1] = '\n';
        b->docs++;
    }
    err = lab_append_span(&b->lab, b->j, span_of(text, (size_t)n * BENCH_DOC), NULL);
    mem_free(text);
    return err;
}

/* bytes must be documents 0, 1, 2 ... of all that was appended, each once. */
static inline void bench_expect_docs(const struct bench *b, struct span bytes)
{
    assert_int_equal(bytes.n, (size_t)b->docs * BENCH_DOC);
    for (unsigned i = 0; i < b->docs; i++) {
        char want[40];
        int n = snprintf(want, sizeof want, "C%016x:doc %08u ", i + 1, i);
        if (memcmp(bytes.p + (size_t)i * BENCH_DOC, want, (size_t)n) != 0)
            fail_msg("document %u is: %.40s", i, (const char *)bytes.p + (size_t)i * BENCH_DOC);
    }
}

/* What the broker holds. */
static inline void bench_expect_stored(struct bench *b)
{
    struct blob *c = NULL;

    assert_int_equal(stand_in_content(b->si, BENCH_JOURNAL, &c), 0);
    bench_expect_docs(b, blob_span(c));
    blob_unref(c);
}

/* All of it by one stream. */
static inline void bench_expect_stream(struct bench *b)
{
    struct lab_read r = {0};
    const struct jc_read_opts o = {
        .journal = b->j, .offset = 0, .end_offset = (int64_t)b->docs * BENCH_DOC, .block = true};

    lab_read(&b->lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_int_equal(r.jumps, 0);
    bench_expect_docs(b, span_of(r.text, r.n));
    mem_free(r.text);
}

/* All of it by blocks, as Fetch reads. */
static inline void bench_expect_blocks(struct bench *b)
{
    int64_t end = (int64_t)b->docs * BENCH_DOC, pos = 0;
    uint8_t *all = mem_alloc((size_t)end + 1);

    assert_non_null(all);
    for (int64_t block = 0; block * JC_BLOCK_BYTES < end; block++) {
        struct lab_block x = lab_block(&b->lab, b->j, block, 0);
        assert_int_equal(x.err, 0);
        for (size_t i = 0; i < x.b.segments_n; i++) {
            const struct jc_segment *s = &x.b.segments[i];
            assert_int_equal(s->offset, pos);
            assert_true(pos + (int64_t)s->bytes->len <= end);
            memcpy(all + pos, s->bytes->data, s->bytes->len);
            pos += (int64_t)s->bytes->len;
        }
        jc_block_fini(&x.b);
    }
    bench_expect_docs(b, span_of(all, (size_t)pos));
    mem_free(all);
}

/* --- heads --- */

static inline void bench_on_heads(void *arg, const struct jc_heads *h)
{
    struct bench *b = arg;

    if (h->content_end < b->heads.content_end || h->write_head < b->heads.write_head ||
        h->content_end > h->write_head)
        b->went_back = true;
    b->heads = *h;
}

static inline void bench_on_end(void *arg, int err)
{
    struct bench *b = arg;

    (void)err;
    b->ended = true;
    b->follow = NULL;
}

static inline void bench_follow(struct bench *b)
{
    const struct jc_follower f = {
        .ex = &b->lab.mb.ex, .on_heads = bench_on_heads, .on_end = bench_on_end, .arg = b};

    assert_int_equal(b->lab.s->ops->follow(b->lab.s, b->j, &f, &b->follow), 0);
}

/* Until the high watermark is what was appended. */
static inline void bench_expect_head(struct bench *b)
{
    int64_t end = (int64_t)b->docs * BENCH_DOC;

    while (b->heads.content_end < end)
        assert_true(mailbox_wait(&b->lab.mb, LAB_WAIT_MS) > 0);
    assert_int_equal(b->heads.content_end, end);
    assert_false(b->went_back);
}
