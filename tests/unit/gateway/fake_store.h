/*
 * A store in memory, for tests of the gateway: journals are byte strings that tests append lines
 * to. Everything that a store must do asynchronously is posted to the caller's executor. Any
 * thread: one lock, nothing is called while it is held but posts. No transactions, no durability.
 *
 * fake_store_new(); fake_journal(fs, "acme/a", labels...); fake_append(fs, "acme/a", "{...}\n");
 * ...; fake_store_free() after all operations were cancelled and all mailboxes drained.
 */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#ifndef PLAIN_ASSERTS
#include <cmocka.h>
#endif

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/gateway.h"
#include "journal_client/store.h"

enum fake_kind { FAKE_WATCH, FAKE_FOLLOW };

/* Owner: the store's list holds one reference until cancel or end; each posted task another. */
struct jc_op {
    LIST_ENTRY(jc_op) link;
    struct fake_store *fs;
    unsigned refs; /* lock */
    enum fake_kind kind;
    bool off;       /* lock: cancelled */
    bool scheduled; /* lock: a delivery is on its way, and will bring the last state */
    struct jc_watcher watcher;
    struct jc_follower follower;
    struct fake_journal *journal;
};

struct fake_journal {
    LIST_ENTRY(fake_journal) link;
    const struct jc_journal *j; /* newest revision */
    int64_t create_revision;
    struct blob *bytes; /* all that was ever appended */
    struct jc_heads heads;
    bool silent;  /* heads are not told: as if the primary did not answer */
    bool deleted; /* kept, because operations refer to it */
};

struct fake_kv {
    char *key;
    struct blob *value;
};

struct fake_store {
    struct jc_store base; /* first member */
    pthread_mutex_t lock;
    int64_t revision;
    LIST_HEAD(, fake_journal) journals;
    LIST_HEAD(, jc_op) ops;
    struct fake_kv kv[256];
    size_t kv_n;
    int kv_fail; /* the next so many kv_set fail with E_NOSPACE */
    unsigned block_reads;
    unsigned seeks;
};

/* --- deliveries --- */

struct fake_task {
    struct task task;
    struct jc_op *op;
};

static inline struct fake_store *fake_of(struct jc_store *s)
{
    return (struct fake_store *)s;
}

/* lock */
static inline void fake_op_unref(struct jc_op *op)
{
    if (--op->refs == 0)
        mem_free(op);
}

static inline const struct jc_listing *fake_listing(struct fake_store *fs)
{
    const struct jc_journal *items[8192];
    struct fake_journal *f;
    const struct jc_listing *out;
    size_t n = 0;

    LIST_FOREACH(f, &fs->journals, link)
    {
        if (!f->deleted)
            items[n++] = f->j;
    }
    for (size_t i = 1; i < n; i++) { /* by name */
        const struct jc_journal *x = items[i];
        size_t k = i;
        for (; k > 0 && strcmp(items[k - 1]->spec.name, x->spec.name) > 0; k--)
            items[k] = items[k - 1];
        items[k] = x;
    }
    assert_int_equal(jc_listing_new(fs->revision, items, n, &out), 0);
    return out;
}

static inline void fake_run(struct task *t)
{
    struct fake_task *ft = (struct fake_task *)t;
    struct jc_op *op = ft->op;
    struct fake_store *fs = op->fs;
    const struct jc_listing *listing = NULL;
    struct jc_heads heads = {0};

    mem_free(ft);
    pthread_mutex_lock(&fs->lock);
    op->scheduled = false;
    bool off = op->off;
    bool ended = op->kind == FAKE_FOLLOW && op->journal->deleted;
    if (!off && op->kind == FAKE_WATCH)
        listing = fake_listing(fs);
    if (!off && op->kind == FAKE_FOLLOW)
        heads = op->journal->heads;
    if (!off && ended) { /* the end releases it */
        op->off = true;
        LIST_REMOVE(op, link);
        fake_op_unref(op);
    }
    pthread_mutex_unlock(&fs->lock);
    if (!off) { /* same thread as cancel: it cannot come in between */
        if (op->kind == FAKE_WATCH)
            op->watcher.on_snapshot(op->watcher.arg, listing);
        else if (!ended)
            op->follower.on_heads(op->follower.arg, &heads);
        else if (op->follower.on_end != NULL)
            op->follower.on_end(op->follower.arg, E_NOTFOUND);
    }
    jc_listing_unref(listing);
    pthread_mutex_lock(&fs->lock);
    fake_op_unref(op);
    pthread_mutex_unlock(&fs->lock);
}

/* lock */
static inline void fake_schedule(struct jc_op *op)
{
    if (op->scheduled || (op->kind == FAKE_FOLLOW && op->journal->silent))
        return;
    struct fake_task *t = mem_zalloc(sizeof *t);
    ASSERT(t != NULL);
    t->task.run = fake_run;
    t->op = op;
    op->scheduled = true;
    op->refs++;
    executor_post(op->kind == FAKE_WATCH ? op->watcher.ex : op->follower.ex, &t->task);
}

/* lock */
static inline void fake_tell(struct fake_store *fs, enum fake_kind kind, struct fake_journal *f)
{
    struct jc_op *op;

    LIST_FOREACH(op, &fs->ops, link)
    {
        if (op->kind == kind && (kind == FAKE_WATCH || op->journal == f))
            fake_schedule(op);
    }
}

static inline struct fake_journal *fake_find(struct fake_store *fs, const char *name)
{
    struct fake_journal *f;

    LIST_FOREACH(f, &fs->journals, link)
    {
        if (!f->deleted && strcmp(f->j->spec.name, name) == 0)
            return f;
    }
    return NULL;
}

static inline struct fake_journal *fake_find_revision(struct fake_store *fs,
                                                      const struct jc_journal *j)
{
    struct fake_journal *f;

    LIST_FOREACH(f, &fs->journals, link)
    {
        if (f->create_revision == j->create_revision && strcmp(f->j->spec.name, j->spec.name) == 0)
            return f;
    }
    return NULL;
}

/* --- operations --- */

static inline struct jc_op *fake_op(struct fake_store *fs, enum fake_kind kind)
{
    struct jc_op *op = mem_zalloc(sizeof *op);

    ASSERT(op != NULL);
    op->fs = fs;
    op->kind = kind;
    op->refs = 1;
    return op;
}

static inline int fake_watch(struct jc_store *s, const struct jc_selector *sel,
                             const struct jc_watcher *w, struct jc_op **out)
{
    struct fake_store *fs = fake_of(s);
    struct jc_op *op = fake_op(fs, FAKE_WATCH);

    (void)sel;
    op->watcher = *w;
    pthread_mutex_lock(&fs->lock);
    LIST_INSERT_HEAD(&fs->ops, op, link);
    fake_schedule(op);
    pthread_mutex_unlock(&fs->lock);
    *out = op;
    return 0;
}

static inline int fake_follow(struct jc_store *s, const struct jc_journal *j,
                              const struct jc_follower *f, struct jc_op **out)
{
    struct fake_store *fs = fake_of(s);
    struct jc_op *op = fake_op(fs, FAKE_FOLLOW);

    op->follower = *f;
    pthread_mutex_lock(&fs->lock);
    op->journal = fake_find_revision(fs, j);
    ASSERT(op->journal != NULL);
    LIST_INSERT_HEAD(&fs->ops, op, link);
    fake_schedule(op);
    pthread_mutex_unlock(&fs->lock);
    *out = op;
    return 0;
}

static inline void fake_cancel(struct jc_op *op)
{
    struct fake_store *fs = op->fs;

    pthread_mutex_lock(&fs->lock);
    op->off = true;
    LIST_REMOVE(op, link);
    fake_op_unref(op);
    pthread_mutex_unlock(&fs->lock);
}

/* Answers of one-shot operations: block reads and seeks may be cancelled, so they are jc_ops of
 * their own kind with only a task. */
struct fake_answer {
    struct task task;
    enum { ANSWER_BLOCK, ANSWER_SEEK, ANSWER_KV, ANSWER_SCAN, ANSWER_DONE } what;
    int err;
    void *arg;
    jc_block_fn *block_fn;
    struct jc_block block;
    jc_seek_fn *seek_fn;
    int64_t seek_block;
    jc_kv_fn *kv_fn;
    struct blob *value;
    jc_kv_scan_fn *scan_fn;
    struct jc_kv *list;
    size_t list_n;
    jc_done_fn *done_fn;
    struct jc_op *op; /* block, seek */
};

static inline void fake_answer_run(struct task *t)
{
    struct fake_answer *a = (struct fake_answer *)t;
    bool off = false;

    if (a->op != NULL) {
        struct fake_store *fs = a->op->fs;
        pthread_mutex_lock(&fs->lock);
        off = a->op->off;
        if (!off) {
            a->op->off = true;
            LIST_REMOVE(a->op, link);
            fake_op_unref(a->op);
        }
        fake_op_unref(a->op);
        pthread_mutex_unlock(&fs->lock);
    }
    switch (a->what) {
    case ANSWER_BLOCK:
        if (off)
            jc_block_fini(&a->block);
        else
            a->block_fn(a->arg, a->err, &a->block);
        break;
    case ANSWER_SEEK:
        if (!off)
            a->seek_fn(a->arg, a->err, a->seek_block);
        break;
    case ANSWER_KV:
        a->kv_fn(a->arg, a->err, a->value == NULL ? (struct span){NULL, 0} : blob_span(a->value));
        blob_unref(a->value);
        break;
    case ANSWER_SCAN:
        a->scan_fn(a->arg, a->err, a->list, a->list_n);
        for (size_t i = 0; i < a->list_n; i++) {
            mem_free((void *)(uintptr_t)a->list[i].key);
            mem_free((void *)(uintptr_t)a->list[i].value.p);
        }
        mem_free(a->list);
        break;
    case ANSWER_DONE:
        a->done_fn(a->arg, a->err);
        break;
    }
    mem_free(a);
}

static inline struct fake_answer *fake_answer_new(void *arg)
{
    struct fake_answer *a = mem_zalloc(sizeof *a);

    ASSERT(a != NULL);
    a->task.run = fake_answer_run;
    a->arg = arg;
    return a;
}

/* lock. An op for an answer that may be cancelled. */
static inline struct jc_op *fake_answer_op(struct fake_store *fs, struct fake_answer *a,
                                           struct fake_journal *f)
{
    struct jc_op *op = fake_op(fs, FAKE_FOLLOW);

    op->journal = f;
    op->scheduled = true; /* nothing else is ever delivered by it */
    op->refs++;
    LIST_INSERT_HEAD(&fs->ops, op, link);
    a->op = op;
    return op;
}

/* The line that holds `at`: [*begin, *end), the newline included. False: no whole line there. */
static inline bool fake_line(const struct fake_journal *f, int64_t at, int64_t *begin, int64_t *end)
{
    const struct blob *b = f->bytes;

    if (at < 0 || at >= f->heads.write_head)
        return false;
    size_t from = (size_t)at;
    while (from > 0 && b->data[from - 1] != '\n')
        from--;
    const uint8_t *nl = memchr(b->data + from, '\n', b->len - from);
    if (nl == NULL)
        return false;
    *begin = (int64_t)from;
    *end = nl - b->data + 1;
    return true;
}

static inline int fake_read_block(struct jc_store *s, const struct jc_block_req *r,
                                  struct executor *ex, jc_block_fn *done, void *arg,
                                  struct jc_op **out)
{
    struct fake_store *fs = fake_of(s);
    struct fake_answer *a = fake_answer_new(arg);
    int64_t lo = r->block * JC_BLOCK_BYTES;
    int64_t hi = lo + JC_BLOCK_BYTES;
    int64_t begin;
    int64_t end;
    int64_t at;

    pthread_mutex_lock(&fs->lock);
    struct fake_journal *f = fake_find_revision(fs, r->journal);
    ASSERT(f != NULL);
    fs->block_reads++;
    a->what = ANSWER_BLOCK;
    a->block_fn = done;
    a->block.block = r->block;
    a->block.sealed = f->heads.write_head >= hi;
    a->block.read_to = f->heads.write_head < hi ? f->heads.write_head : hi;
    if (f->deleted)
        a->err = E_NOTFOUND;
    /* Whole lines whose last byte lies in [max(lo, from), hi), from the first stored byte on. */
    int64_t from = r->from > lo ? r->from : lo;
    int64_t first = -1;
    int64_t last = -1;
    for (at = from > f->heads.first ? from : f->heads.first; fake_line(f, at, &begin, &end);
         at = end) {
        if (end - 1 >= hi)
            break;
        if (end - 1 < from || begin < f->heads.first)
            continue;
        if (first < 0)
            first = begin;
        last = end;
    }
    if (first >= 0 && a->err == 0) {
        a->block.segments = mem_array(1, sizeof *a->block.segments);
        ASSERT(a->block.segments != NULL);
        a->block.segments_n = 1;
        a->block.segments[0].offset = first;
        a->block.segments[0].bytes =
            blob_copy(span_of(f->bytes->data + first, (size_t)(last - first)));
    }
    *out = fake_answer_op(fs, a, f);
    executor_post(ex, &a->task);
    pthread_mutex_unlock(&fs->lock);
    return 0;
}

static inline int fake_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                            jc_seek_fn *done, void *arg, struct jc_op **out)
{
    struct fake_store *fs = fake_of(s);
    struct fake_answer *a = fake_answer_new(arg);
    int64_t begin;
    int64_t end;
    uint64_t best = 0;

    pthread_mutex_lock(&fs->lock);
    struct fake_journal *f = fake_find_revision(fs, r->journal);
    ASSERT(f != NULL);
    fs->seeks++;
    a->what = ANSWER_SEEK;
    a->seek_fn = done;
    a->err = E_NOTFOUND;
    for (int64_t at = f->heads.first; fake_line(f, at, &begin, &end); at = end) {
        struct jc_doc_info info;
        gw_doc_probe(NULL, span_of(f->bytes->data + begin, (size_t)(end - begin - 1)), &info);
        if (info.kind != JC_DOC_CONTENT || end - 1 < r->offset || end - 1 >= r->end_offset ||
            info.clock < r->min_clock || info.clock > r->max_clock)
            continue;
        uint64_t ms = info.clock >> 4;
        if (a->err == 0 && (r->mode == JC_SEEK_FIRST || ms / 10000 <= best / 10000))
            continue;
        best = ms;
        a->err = 0;
        a->seek_block = (end - 1) / JC_BLOCK_BYTES;
    }
    *out = fake_answer_op(fs, a, f);
    executor_post(ex, &a->task);
    pthread_mutex_unlock(&fs->lock);
    return 0;
}

static inline int fake_kv_get(struct jc_store *s, const char *key, struct executor *ex,
                              jc_kv_fn *done, void *arg)
{
    struct fake_store *fs = fake_of(s);
    struct fake_answer *a = fake_answer_new(arg);

    a->what = ANSWER_KV;
    a->kv_fn = done;
    a->err = E_NOTFOUND;
    pthread_mutex_lock(&fs->lock);
    for (size_t i = 0; i < fs->kv_n; i++) {
        if (strcmp(fs->kv[i].key, key) == 0) {
            a->err = 0;
            a->value = blob_ref(fs->kv[i].value);
        }
    }
    pthread_mutex_unlock(&fs->lock);
    executor_post(ex, &a->task);
    return 0;
}

static inline int fake_kv_scan(struct jc_store *s, const char *prefix, struct executor *ex,
                               jc_kv_scan_fn *done, void *arg)
{
    struct fake_store *fs = fake_of(s);
    struct fake_answer *a = fake_answer_new(arg);

    a->what = ANSWER_SCAN;
    a->scan_fn = done;
    pthread_mutex_lock(&fs->lock);
    a->list = mem_array(fs->kv_n + 1, sizeof *a->list);
    ASSERT(a->list != NULL);
    for (size_t i = 0; i < fs->kv_n; i++) {
        const struct blob *v = fs->kv[i].value;
        if (strncmp(fs->kv[i].key, prefix, strlen(prefix)) != 0)
            continue;
        uint8_t *copy = mem_alloc(v->len + 1);
        ASSERT(copy != NULL);
        memcpy(copy, v->data, v->len);
        a->list[a->list_n].key = mem_strdup(fs->kv[i].key);
        a->list[a->list_n].value = span_of(copy, v->len);
        a->list_n++;
    }
    pthread_mutex_unlock(&fs->lock);
    executor_post(ex, &a->task);
    return 0;
}

static inline int fake_kv_set(struct jc_store *s, const struct jc_kv *kv, size_t n,
                              struct executor *ex, jc_done_fn *done, void *arg)
{
    struct fake_store *fs = fake_of(s);
    struct fake_answer *a = fake_answer_new(arg);

    a->what = ANSWER_DONE;
    a->done_fn = done;
    pthread_mutex_lock(&fs->lock);
    if (fs->kv_fail > 0) {
        fs->kv_fail--;
        a->err = E_NOSPACE;
        n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < fs->kv_n && strcmp(fs->kv[at].key, kv[i].key) != 0)
            at++;
        if (at == fs->kv_n) {
            assert_true(fs->kv_n < sizeof fs->kv / sizeof fs->kv[0]);
            fs->kv[fs->kv_n++].key = mem_strdup(kv[i].key);
        } else {
            blob_unref(fs->kv[at].value);
        }
        fs->kv[at].value = blob_copy(kv[i].value);
    }
    pthread_mutex_unlock(&fs->lock);
    executor_post(ex, &a->task);
    return 0;
}

static inline void fake_close(struct jc_store *s)
{
    (void)s;
}

/* --- for tests --- */

static inline struct fake_store *fake_store_new(void)
{
    static const struct jc_store_ops ops = {
        .name = "fake",
        .watch = fake_watch,
        .follow = fake_follow,
        .read_block = fake_read_block,
        .seek = fake_seek,
        .kv_get = fake_kv_get,
        .kv_scan = fake_kv_scan,
        .kv_set = fake_kv_set,
        .cancel = fake_cancel,
        .close = fake_close,
    };
    struct fake_store *fs = mem_zalloc(sizeof *fs);

    ASSERT(fs != NULL);
    fs->base.ops = &ops;
    fs->revision = 1;
    pthread_mutex_init(&fs->lock, NULL);
    LIST_INIT(&fs->journals);
    LIST_INIT(&fs->ops);
    return fs;
}

static inline void fake_store_free(struct fake_store *fs)
{
    struct fake_journal *f;

    assert_true(LIST_EMPTY(&fs->ops)); /* else something was not cancelled */
    while ((f = LIST_FIRST(&fs->journals)) != NULL) {
        LIST_REMOVE(f, link);
        jc_journal_unref(f->j);
        blob_unref(f->bytes);
        mem_free(f);
    }
    for (size_t i = 0; i < fs->kv_n; i++) {
        mem_free(fs->kv[i].key);
        blob_unref(fs->kv[i].value);
    }
    pthread_mutex_destroy(&fs->lock);
    mem_free(fs);
}

static inline const struct jc_journal *fake_make(const char *name, const struct jc_label *labels,
                                                 size_t n, int64_t create, int64_t mod)
{
    const struct jc_spec spec = {.name = name, .labels = labels, .labels_n = n};
    const struct jc_journal *j;

    assert_int_equal(jc_journal_new(&spec, create, mod, &j), 0);
    return j;
}

/* labels sorted by name. Returns the journal; it is listed at once. */
static inline struct fake_journal *fake_journal_labels(struct fake_store *fs, const char *name,
                                                       const struct jc_label *labels, size_t n)
{
    struct fake_journal *f = mem_zalloc(sizeof *f);

    ASSERT(f != NULL);
    pthread_mutex_lock(&fs->lock);
    f->create_revision = ++fs->revision;
    f->j = fake_make(name, labels, n, f->create_revision, f->create_revision);
    f->bytes = blob_new(4096);
    LIST_INSERT_HEAD(&fs->journals, f, link);
    fake_tell(fs, FAKE_WATCH, NULL);
    pthread_mutex_unlock(&fs->lock);
    return f;
}

static inline struct fake_journal *fake_journal(struct fake_store *fs, const char *name,
                                                const char *collection)
{
    const struct jc_label label = {JC_LABEL_COLLECTION, collection};
    return fake_journal_labels(fs, name, &label, 1);
}

/* A new revision with other labels. */
static inline void fake_relabel(struct fake_store *fs, struct fake_journal *f,
                                const struct jc_label *labels, size_t n)
{
    pthread_mutex_lock(&fs->lock);
    const struct jc_journal *old = f->j;
    f->j = fake_make(old->spec.name, labels, n, f->create_revision, ++fs->revision);
    jc_journal_unref(old);
    fake_tell(fs, FAKE_WATCH, NULL);
    pthread_mutex_unlock(&fs->lock);
}

static inline void fake_delete(struct fake_store *fs, struct fake_journal *f)
{
    pthread_mutex_lock(&fs->lock);
    f->deleted = true;
    fs->revision++;
    fake_tell(fs, FAKE_WATCH, NULL);
    fake_tell(fs, FAKE_FOLLOW, f);
    pthread_mutex_unlock(&fs->lock);
}

/* Bytes with whole lines. Heads follow from what the lines are. */
static inline void fake_append(struct fake_store *fs, struct fake_journal *f, const char *text)
{
    size_t n = strlen(text);

    pthread_mutex_lock(&fs->lock);
    if (f->bytes->cap - f->bytes->len < n) {
        struct blob *grown = blob_new((f->bytes->len + n) * 2);
        ASSERT(grown != NULL);
        memcpy(grown->data, f->bytes->data, f->bytes->len);
        grown->len = f->bytes->len;
        blob_unref(f->bytes);
        f->bytes = grown;
    }
    memcpy(f->bytes->data + f->bytes->len, text, n);
    size_t at = f->bytes->len;
    f->bytes->len += n;
    while (at < f->bytes->len) {
        const uint8_t *nl = memchr(f->bytes->data + at, '\n', f->bytes->len - at);
        struct jc_doc_info info;
        ASSERT(nl != NULL);
        size_t end = (size_t)(nl - f->bytes->data) + 1;
        gw_doc_probe(NULL, span_of(f->bytes->data + at, end - 1 - at), &info);
        if (info.kind == JC_DOC_CONTENT) {
            f->heads.content_end = (int64_t)end;
            if (info.clock > f->heads.max_clock)
                f->heads.max_clock = info.clock;
        }
        at = end;
    }
    f->heads.write_head = (int64_t)f->bytes->len;
    fake_tell(fs, FAKE_FOLLOW, f);
    pthread_mutex_unlock(&fs->lock);
}

/* As retention does: everything below `first` is gone. log_start as the caller says. */
static inline void fake_remove_below(struct fake_store *fs, struct fake_journal *f, int64_t first,
                                     int64_t log_start)
{
    pthread_mutex_lock(&fs->lock);
    f->heads.first = first;
    f->heads.log_start = log_start;
    fake_tell(fs, FAKE_FOLLOW, f);
    pthread_mutex_unlock(&fs->lock);
}

/* All replicas died: the journal ends at content_end, in another life. settling: not even that is
 * sure. */
static inline void fake_lose(struct fake_store *fs, struct fake_journal *f, int64_t content_end,
                             bool settling)
{
    pthread_mutex_lock(&fs->lock);
    f->heads.content_end = f->heads.write_head = content_end;
    f->heads.life++;
    f->heads.settle += jc_heads_settling(&f->heads) != settling;
    fake_tell(fs, FAKE_FOLLOW, f);
    pthread_mutex_unlock(&fs->lock);
}

/* Whether heads are told at all; turning it off tells them now. */
static inline void fake_silent(struct fake_store *fs, struct fake_journal *f, bool silent)
{
    pthread_mutex_lock(&fs->lock);
    f->silent = silent;
    if (!silent)
        fake_tell(fs, FAKE_FOLLOW, f);
    pthread_mutex_unlock(&fs->lock);
}
