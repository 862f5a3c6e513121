/*
 * A store on a bench: each operation of jc_store_ops as a plain call that waits for its callback on
 * a mailbox of its own. For the contract suite and for the tests of the embedded store.
 *
 * Test documents are lines "<kind><clock hex>:rest", kind C content or A hidden; a line of blanks
 * is blank, any other line is content without a clock. lab_probe reads them.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mailbox.h"
#include "base/mem.h"
#include "base/num.h"
#include "journal_client/store.h"

#define LAB_WAIT_MS 20000

struct lab {
    struct jc_store *s;
    struct mailbox mb;
};

static inline void lab_probe(void *arg, struct span line, struct jc_doc_info *out)
{
    size_t i = 1;
    uint64_t clock = 0;

    (void)arg;
    *out = (struct jc_doc_info){.kind = JC_DOC_CONTENT};
    size_t blanks = 0;
    while (blanks < line.n && (line.p[blanks] == ' ' || line.p[blanks] == '\r'))
        blanks++;
    if (blanks == line.n) {
        out->kind = JC_DOC_BLANK;
        return;
    }
    if (line.p[0] != 'C' && line.p[0] != 'A')
        return;
    while (i < line.n && i <= 16 && line.p[i] != ':')
        i++;
    if (i == 1 || i >= line.n || line.p[i] != ':' ||
        num_parse_hex(span_of(line.p + 1, i - 1), &clock) < 0)
        return;
    out->clock = clock;
    if (line.p[0] == 'A') {
        out->kind = JC_DOC_HIDDEN;
        out->flags = 2;
    }
}

static inline void lab_init(struct lab *lab, struct jc_store *s)
{
    lab->s = s;
    assert_int_equal(mailbox_init(&lab->mb), 0);
}

/* Closes the store, runs what it still posts, and ends the mailbox. */
static inline void lab_fini(struct lab *lab)
{
    if (lab->s != NULL)
        lab->s->ops->close(lab->s);
    lab->s = NULL;
    mailbox_fini(&lab->mb);
}

static inline void lab_wait(struct lab *lab, const bool *flag)
{
    while (!*flag)
        assert_true(mailbox_wait(&lab->mb, LAB_WAIT_MS) > 0);
}

/* Runs what comes within ms. */
static inline void lab_settle(struct lab *lab, int ms)
{
    while (mailbox_wait(&lab->mb, ms) > 0) {
    }
}

/* --- apply --- */

struct lab_done {
    bool done;
    int err;
    int64_t value;
};

static inline void lab_on_apply(void *arg, int err, int64_t revision)
{
    struct lab_done *d = arg;

    assert_false(d->done);
    *d = (struct lab_done){true, err, revision};
}

static inline int lab_apply(struct lab *lab, const struct jc_change *c, size_t n, int64_t *revision)
{
    struct lab_done d = {0};

    assert_int_equal(lab->s->ops->apply(lab->s, c, n, &lab->mb.ex, lab_on_apply, &d), 0);
    assert_false(d.done);
    lab_wait(lab, &d.done);
    if (revision != NULL)
        *revision = d.value;
    return d.err;
}

struct lab_find {
    struct span name;
    bool done;
    const struct jc_journal *j;
};

static inline void lab_on_find(void *arg, const struct jc_listing *l)
{
    struct lab_find *f = arg;

    if (f->done)
        return;
    f->done = true;
    f->j = jc_listing_find(l, f->name);
    if (f->j != NULL)
        (void)jc_journal_ref(f->j);
}

/* A reference, or NULL. */
static inline const struct jc_journal *lab_find(struct lab *lab, const char *name)
{
    struct lab_find f = {.name = span_str(name)};
    const struct jc_selector all = {0};
    const struct jc_watcher w = {.ex = &lab->mb.ex, .on_snapshot = lab_on_find, .arg = &f};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->watch(lab->s, &all, &w, &op), 0);
    lab_wait(lab, &f.done);
    lab->s->ops->cancel(op);
    return f.j;
}

static inline const struct jc_journal *lab_create_spec(struct lab *lab, const struct jc_spec *spec)
{
    const struct jc_change c = {.upsert = spec, .expect_mod_revision = 0};

    assert_int_equal(lab_apply(lab, &c, 1, NULL), 0);
    const struct jc_journal *j = lab_find(lab, spec->name);
    assert_non_null(j);
    return j;
}

static inline const struct jc_journal *lab_create(struct lab *lab, const char *name)
{
    const struct jc_spec spec = {.name = name};

    return lab_create_spec(lab, &spec);
}

static inline int lab_delete(struct lab *lab, const char *name)
{
    const struct jc_change c = {.delete_name = name, .expect_mod_revision = -1};

    return lab_apply(lab, &c, 1, NULL);
}

/* --- append --- */

static inline void lab_on_txn(void *arg, int err, struct jc_txn *txn)
{
    struct lab_done *d = arg;

    (void)txn;
    assert_false(d->done);
    d->done = true;
    d->err = err;
}

static inline int lab_txn(struct lab *lab, struct jc_txn *txn)
{
    struct lab_done d = {0};

    assert_int_equal(lab->s->ops->append(lab->s, txn, &lab->mb.ex, lab_on_txn, &d), 0);
    assert_false(d.done);
    lab_wait(lab, &d.done);
    return d.err;
}

static inline int lab_append_span(struct lab *lab, const struct jc_journal *j, struct span bytes,
                                  int64_t *begin)
{
    struct jc_append_part part = {.journal = j, .bytes = blob_copy(bytes)};
    struct jc_txn txn = {.parts = &part, .parts_n = 1};

    assert_non_null(part.bytes);
    int err = lab_txn(lab, &txn);
    blob_unref(part.bytes);
    if (err == 0)
        assert_int_equal(part.end - part.begin, bytes.n);
    if (begin != NULL)
        *begin = part.begin;
    return err;
}

static inline int lab_append(struct lab *lab, const struct jc_journal *j, const char *text)
{
    return lab_append_span(lab, j, span_str(text), NULL);
}

/* --- heads --- */

struct lab_heads {
    bool done;
    struct jc_heads h;
};

static inline void lab_on_heads(void *arg, const struct jc_heads *h)
{
    struct lab_heads *x = arg;

    x->done = true;
    x->h = *h;
}

static inline struct jc_heads lab_heads(struct lab *lab, const struct jc_journal *j)
{
    struct lab_heads x = {0};
    const struct jc_follower f = {.ex = &lab->mb.ex, .on_heads = lab_on_heads, .arg = &x};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->follow(lab->s, j, &f, &op), 0);
    lab_wait(lab, &x.done);
    lab->s->ops->cancel(op);
    return x.h;
}

/* --- read --- */

struct lab_read {
    struct lab *lab;
    bool done;
    int err;
    size_t chunks;
    size_t stop_after; /* chunks; 0 = never */
    int64_t first_offset, next_offset;
    size_t jumps;
    char *text; /* NUL-terminated, what came */
    size_t n;
    struct jc_heads heads;
};

static inline int lab_on_bytes(void *arg, int64_t offset, struct blob *b)
{
    struct lab_read *r = arg;

    assert_false(r->done);
    if (r->chunks++ == 0)
        r->first_offset = offset;
    else if (offset != r->next_offset)
        r->jumps++;
    assert_true(b->len > 0 && (r->chunks == 1 || offset >= r->next_offset));
    r->next_offset = offset + (int64_t)b->len;
    r->text = mem_realloc(r->text, r->n + b->len + 1);
    assert_non_null(r->text);
    memcpy(r->text + r->n, b->data, b->len);
    r->n += b->len;
    r->text[r->n] = '\0';
    blob_unref(b);
    return r->chunks == r->stop_after ? 1 : 0;
}

static inline void lab_on_read_done(void *arg, int err, const struct jc_heads *heads)
{
    struct lab_read *r = arg;

    assert_false(r->done);
    r->done = true;
    r->err = err;
    r->heads = *heads;
}

static inline struct jc_op *lab_read_start(struct lab *lab, struct lab_read *r,
                                           const struct jc_read_opts *o)
{
    const struct jc_reader cb = {
        .ex = &lab->mb.ex, .on_bytes = lab_on_bytes, .done = lab_on_read_done, .arg = r};
    struct jc_op *op;

    r->lab = lab;
    assert_int_equal(lab->s->ops->read(lab->s, o, &cb, &op), 0);
    return op;
}

/* Reads to the end of it; free r->text. */
static inline void lab_read(struct lab *lab, struct lab_read *r, const struct jc_read_opts *o)
{
    (void)lab_read_start(lab, r, o);
    lab_wait(lab, &r->done);
}

static inline void lab_expect_text(struct lab *lab, const struct jc_journal *j, int64_t offset,
                                   const char *text)
{
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j, .offset = offset};

    lab_read(lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_string_equal(r.text == NULL ? "" : r.text, text);
    mem_free(r.text);
}

/* --- block and seek --- */

struct lab_block {
    bool done;
    int err;
    struct jc_block b;
};

static inline void lab_on_block(void *arg, int err, struct jc_block *b)
{
    struct lab_block *x = arg;

    assert_false(x->done);
    x->done = true;
    x->err = err;
    if (err == 0)
        x->b = *b;
}

/* The caller ends it with jc_block_fini(&x.b). */
static inline struct lab_block lab_block(struct lab *lab, const struct jc_journal *j, int64_t block,
                                         int64_t from)
{
    struct lab_block x = {0};
    const struct jc_block_req rq = {.journal = j, .block = block, .from = from};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->read_block(lab->s, &rq, &lab->mb.ex, lab_on_block, &x, &op), 0);
    lab_wait(lab, &x.done);
    return x;
}

static inline void lab_on_seek(void *arg, int err, int64_t block)
{
    struct lab_done *d = arg;

    *d = (struct lab_done){true, err, block};
}

/* The block, or a negative error. */
static inline int64_t lab_seek(struct lab *lab, const struct jc_seek_req *rq)
{
    struct lab_done d = {0};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->seek(lab->s, rq, &lab->mb.ex, lab_on_seek, &d, &op), 0);
    lab_wait(lab, &d.done);
    return d.err < 0 ? d.err : d.value;
}

/* --- fragments --- */

struct lab_frags {
    bool done;
    int err;
    size_t n;
    struct jc_fragment v[256];
};

static inline void lab_on_frags(void *arg, int err, const struct jc_fragment *v, size_t n)
{
    struct lab_frags *x = arg;

    x->done = true;
    x->err = err;
    x->n = n;
    assert_true(n <= 256);
    if (n > 0)
        memcpy(x->v, v, n * sizeof *v);
}

static inline void lab_frags(struct lab *lab, const struct jc_journal *j, struct lab_frags *x)
{
    x->done = false;
    assert_int_equal(lab->s->ops->fragments(lab->s, j, &lab->mb.ex, lab_on_frags, x), 0);
    lab_wait(lab, &x->done);
}

/* --- key-value --- */

struct lab_kv {
    bool done;
    int err;
    char value[256];
    size_t n;
};

static inline void lab_on_kv(void *arg, int err, struct span value)
{
    struct lab_kv *x = arg;

    x->done = true;
    x->err = err;
    x->n = value.n;
    assert_true(value.n < sizeof x->value);
    if (value.n > 0)
        memcpy(x->value, value.p, value.n);
    x->value[value.n] = '\0';
}

static inline struct lab_kv lab_kv_get(struct lab *lab, const char *key)
{
    struct lab_kv x = {0};

    assert_int_equal(lab->s->ops->kv_get(lab->s, key, &lab->mb.ex, lab_on_kv, &x), 0);
    lab_wait(lab, &x.done);
    return x;
}

static inline void lab_on_done(void *arg, int err)
{
    struct lab_done *d = arg;

    assert_false(d->done);
    *d = (struct lab_done){true, err, 0};
}

static inline int lab_kv_set(struct lab *lab, const char *key, const char *value, int64_t expires)
{
    const struct jc_kv kv = {.key = key, .value = span_str(value), .expires_ms = expires};
    struct lab_done d = {0};

    assert_int_equal(lab->s->ops->kv_set(lab->s, &kv, 1, &lab->mb.ex, lab_on_done, &d), 0);
    lab_wait(lab, &d.done);
    return d.err;
}
