/*
 * A publisher over a store in memory, on one thread: the mailbox is home, job pool and committer in
 * one. The store keeps journals with revisions, bytes per journal and key-values; the clock's
 * readings are the test's.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/writer.h"
#include "gateway/publish.h"
#include "journal_client/store.h"

#define LAB_MAX 64

struct lab_journal {
    const struct jc_journal *j;
    struct writer bytes;
};

struct lab_kv {
    char key[600];
    struct blob *value;
    int64_t expires_ms;
};

struct jc_op {
    struct jc_watcher watcher;
    char value[600];
    bool filter;
    bool off;
};

struct lab {
    struct jc_store base; /* first member */
    struct mailbox mb;
    struct publisher *p;
    struct publisher_opts opts;
    int64_t wall_ns; /* of the clock */
    struct clock clock;
    struct jc_txn_clock txn_clock;
    int64_t revision;
    struct lab_journal journals[LAB_MAX];
    size_t journals_n;
    struct lab_kv kv[LAB_MAX];
    size_t kv_n;
    struct jc_op *ops[LAB_MAX];
    size_t ops_n;
    unsigned appends;
    int append_err;    /* the next append fails with it, before prepare */
    bool append_doubt; /* ... and may be there all the same */
    int kv_err;        /* the next kv_get fails with it */
    int kv_set_err;    /* the next kv_set fails with it: by the callback, or by its return */
    bool kv_set_at_once;
    /* Runs once before the next apply: another creator is faster. */
    void (*before_apply)(struct lab *lab);
    int apply_err; /* of every apply: by the callback, or (apply_at_once) by its return */
    bool apply_at_once;
    bool mute_watch; /* long-lived watches hear nothing any more: they lag */
};

/* One posted answer. */
struct lab_task {
    struct task task;
    struct lab *lab;
    int err;
    void *arg;
    struct jc_op *op;
    struct jc_txn *txn;
    jc_txn_fn *txn_fn;
    jc_apply_fn *apply_fn;
    jc_kv_fn *kv_fn;
    jc_done_fn *done_fn;
    struct blob *value;
};

static inline struct lab *lab_of(struct jc_store *s)
{
    return (struct lab *)(void *)s;
}

static inline const struct jc_listing *lab_listing(struct lab *lab, const struct jc_op *op)
{
    const struct jc_journal *items[LAB_MAX];
    const struct jc_listing *l;
    size_t n = 0;

    for (size_t i = 0; i < lab->journals_n; i++) {
        const char *value;

        if (op->filter &&
            (jc_spec_label(&lab->journals[i].j->spec, JC_LABEL_COLLECTION, &value) < 0 ||
             strcmp(value, op->value) != 0))
            continue;
        items[n++] = lab->journals[i].j;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && strcmp(items[k - 1]->spec.name, items[k]->spec.name) > 0; k--) {
            const struct jc_journal *x = items[k];
            items[k] = items[k - 1];
            items[k - 1] = x;
        }
    assert_int_equal(jc_listing_new(lab->revision, items, n, &l), 0);
    return l;
}

static inline void lab_run(struct task *t)
{
    struct lab_task *lt = (struct lab_task *)(void *)t;

    if (lt->op != NULL && !lt->op->off) {
        const struct jc_listing *l = lab_listing(lt->lab, lt->op);

        lt->op->watcher.on_snapshot(lt->op->watcher.arg, l);
        jc_listing_unref(l);
    }
    if (lt->txn_fn != NULL)
        lt->txn_fn(lt->arg, lt->err, lt->txn);
    if (lt->apply_fn != NULL)
        lt->apply_fn(lt->arg, lt->err, lt->lab->revision);
    if (lt->kv_fn != NULL)
        lt->kv_fn(lt->arg, lt->err,
                  lt->value == NULL ? (struct span){NULL, 0} : blob_span(lt->value));
    if (lt->done_fn != NULL)
        lt->done_fn(lt->arg, lt->err);
    blob_unref(lt->value);
    mem_free(lt);
}

static inline struct lab_task *lab_task(struct lab *lab, void *arg, int err)
{
    struct lab_task *t = mem_zalloc(sizeof *t);

    assert_non_null(t);
    t->task.run = lab_run;
    t->lab = lab;
    t->arg = arg;
    t->err = err;
    return t;
}

static inline void lab_tell(struct lab *lab, struct jc_op *op)
{
    struct lab_task *t = lab_task(lab, NULL, 0);

    t->op = op;
    mailbox_post(&lab->mb, &t->task);
}

static inline int lab_watch(struct jc_store *s, const struct jc_selector *sel,
                            const struct jc_watcher *w, struct jc_op **out)
{
    struct lab *lab = lab_of(s);
    struct jc_op *op = mem_zalloc(sizeof *op);

    assert_non_null(op);
    assert_true(lab->ops_n < LAB_MAX);
    op->watcher = *w;
    if (sel->n == 1) {
        op->filter = true;
        assert_string_equal(sel->matches[0].name, JC_LABEL_COLLECTION);
        snprintf(op->value, sizeof op->value, "%s", sel->matches[0].value);
    }
    lab->ops[lab->ops_n++] = op;
    lab_tell(lab, op);
    *out = op;
    return 0;
}

static inline void lab_cancel(struct jc_op *op)
{
    assert_false(op->off);
    op->off = true; /* freed with the lab: late tasks look at it */
}

static inline struct lab_journal *lab_find(struct lab *lab, const char *name)
{
    for (size_t i = 0; i < lab->journals_n; i++)
        if (strcmp(lab->journals[i].j->spec.name, name) == 0)
            return &lab->journals[i];
    return NULL;
}

static inline void lab_tell_all(struct lab *lab)
{
    for (size_t i = 0; i < lab->ops_n && !lab->mute_watch; i++)
        if (!lab->ops[i]->off)
            lab_tell(lab, lab->ops[i]);
}

/* A journal with labels given as name, value, ..., NULL (sorted by name). */
static inline void lab_add(struct lab *lab, const char *name, ...)
{
    struct jc_label labels[16];
    struct jc_spec spec = {.name = name, .labels = labels};
    struct lab_journal *lj = &lab->journals[lab->journals_n++];
    const char *label;
    va_list ap;

    va_start(ap, name);
    while ((label = va_arg(ap, const char *)) != NULL)
        labels[spec.labels_n++] = (struct jc_label){label, va_arg(ap, const char *)};
    va_end(ap);
    lab->revision++;
    assert_int_equal(jc_journal_new(&spec, lab->revision, lab->revision, &lj->j), 0);
    wr_init(&lj->bytes, (size_t)1 << 30);
    lab_tell_all(lab);
}

static inline void lab_remove(struct lab *lab, const char *name)
{
    struct lab_journal *lj = lab_find(lab, name);

    assert_non_null(lj);
    jc_journal_unref(lj->j);
    wr_fini(&lj->bytes);
    *lj = lab->journals[--lab->journals_n];
    lab->revision++;
    lab_tell_all(lab);
}

static inline int lab_apply(struct jc_store *s, const struct jc_change *c, size_t n,
                            struct executor *ex, jc_apply_fn *done, void *arg)
{
    struct lab *lab = lab_of(s);
    struct lab_task *t;
    void (*before)(struct lab *) = lab->before_apply;

    if (lab->apply_err < 0 && lab->apply_at_once)
        return lab->apply_err;
    t = lab_task(lab, arg, lab->apply_err);
    lab->before_apply = NULL;
    if (before != NULL)
        before(lab);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(c[i].upsert);
        assert_int_equal(c[i].expect_mod_revision, 0);
        if (lab_find(lab, c[i].upsert->name) != NULL)
            t->err = E_CONFLICT;
    }
    if (t->err == 0) {
        lab->revision++;
        for (size_t i = 0; i < n; i++) {
            struct lab_journal *lj = &lab->journals[lab->journals_n++];

            assert_true(lab->journals_n < LAB_MAX);
            assert_int_equal(jc_journal_new(c[i].upsert, lab->revision, lab->revision, &lj->j), 0);
            wr_init(&lj->bytes, (size_t)1 << 30);
        }
        lab_tell_all(lab);
    }
    t->apply_fn = done;
    executor_post(ex, &t->task);
    return 0;
}

static inline struct lab_kv *lab_kv(struct lab *lab, const char *key)
{
    for (size_t i = 0; i < lab->kv_n; i++)
        if (strcmp(lab->kv[i].key, key) == 0)
            return &lab->kv[i];
    return NULL;
}

static inline void lab_kv_put(struct lab *lab, const struct jc_kv *kv)
{
    struct lab_kv *row = lab_kv(lab, kv->key);

    if (row == NULL) {
        assert_true(lab->kv_n < LAB_MAX);
        row = &lab->kv[lab->kv_n++];
        snprintf(row->key, sizeof row->key, "%s", kv->key);
    }
    blob_unref(row->value);
    row->value = blob_copy(kv->value);
    row->expires_ms = kv->expires_ms;
}

static inline int lab_append(struct jc_store *s, struct jc_txn *txn, struct executor *ex,
                             jc_txn_fn *done, void *arg)
{
    struct lab *lab = lab_of(s);
    struct lab_task *t = lab_task(lab, arg, lab->append_err);

    txn->in_doubt = lab->append_doubt && t->err < 0;
    lab->append_err = 0;
    lab->appends++;
    if (t->err == 0 && txn->unless_kv != NULL && lab_kv(lab, txn->unless_kv) != NULL)
        t->err = E_EXISTS;
    for (size_t i = 0; t->err == 0 && i < txn->parts_n; i++) {
        struct lab_journal *lj = lab_find(lab, txn->parts[i].journal->spec.name);

        if (lj == NULL || lj->j->create_revision != txn->parts[i].journal->create_revision) {
            t->err = E_NOTFOUND;
        } else {
            txn->parts[i].begin = (int64_t)wr_len(&lj->bytes);
            txn->parts[i].end = txn->parts[i].begin + (int64_t)txn->parts[i].bytes->len;
        }
    }
    if (t->err == 0 && txn->prepare != NULL)
        t->err = txn->prepare(txn, &lab->txn_clock);
    if (t->err == 0) {
        for (size_t i = 0; i < txn->parts_n; i++)
            wr_span(&lab_find(lab, txn->parts[i].journal->spec.name)->bytes,
                    blob_span(txn->parts[i].bytes));
        for (size_t i = 0; i < txn->kv_n; i++)
            lab_kv_put(lab, &txn->kv[i]);
    }
    t->txn = txn;
    t->txn_fn = done;
    executor_post(ex, &t->task);
    return 0;
}

static inline int lab_kv_get(struct jc_store *s, const char *key, struct executor *ex,
                             jc_kv_fn *done, void *arg)
{
    struct lab *lab = lab_of(s);
    struct lab_kv *row = lab_kv(lab, key);
    struct lab_task *t = lab_task(lab, arg, row == NULL ? E_NOTFOUND : 0);

    if (lab->kv_err < 0) {
        t->err = lab->kv_err;
        lab->kv_err = 0;
    } else if (row != NULL) {
        t->value = blob_ref(row->value);
    }
    t->kv_fn = done;
    executor_post(ex, &t->task);
    return 0;
}

static inline int lab_kv_set(struct jc_store *s, const struct jc_kv *kv, size_t n,
                             struct executor *ex, jc_done_fn *done, void *arg)
{
    struct lab *lab = lab_of(s);
    int err = lab->kv_set_err;
    struct lab_task *t;

    lab->kv_set_err = 0;
    if (err < 0 && lab->kv_set_at_once)
        return err;
    t = lab_task(lab, arg, err);
    for (size_t i = 0; err == 0 && i < n; i++)
        lab_kv_put(lab, &kv[i]);
    t->done_fn = done;
    executor_post(ex, &t->task);
    return 0;
}

static inline int64_t lab_wall(void *arg)
{
    return ((struct lab *)arg)->wall_ns;
}

static inline int64_t lab_mono(void *arg)
{
    (void)arg;
    return 0;
}

/* --- the test's side --- */

struct lab_answer {
    bool done;
    int status;
    bool replayed;
    unsigned retry_after;
    char json[1 << 16];
};

static inline void lab_on_answer(void *arg, const struct publish_answer *a)
{
    struct lab_answer *out = arg;

    assert_false(out->done);
    out->done = true;
    out->status = a->status;
    out->replayed = a->replayed;
    out->retry_after = a->retry_after;
    assert_true(a->json.n < sizeof out->json);
    memcpy(out->json, a->json.p, a->json.n);
    out->json[a->json.n] = '\0';
}

static inline struct lab *lab_new(const struct publisher_opts *opts)
{
    static const struct jc_store_ops ops = {
        .name = "lab",
        .name_rule = "no name that the lab dislikes",
        .watch = lab_watch,
        .apply = lab_apply,
        .append = lab_append,
        .kv_get = lab_kv_get,
        .kv_set = lab_kv_set,
        .cancel = lab_cancel,
    };
    struct lab *lab = mem_zalloc(sizeof *lab);

    assert_non_null(lab);
    lab->base.ops = &ops;
    lab->wall_ns = INT64_C(1700000000000000000);
    lab->clock = (struct clock){lab_wall, lab_mono, lab};
    jc_txn_clock_init(&lab->txn_clock, &lab->clock, 0);
    assert_int_equal(mailbox_init(&lab->mb), 0);
    lab->opts = *opts;
    lab->opts.store = &lab->base;
    lab->opts.home = &lab->mb;
    lab->opts.jobs = &lab->mb.ex;
    assert_int_equal(publisher_new(&lab->opts, &lab->p), 0);
    return lab;
}

static inline void lab_drain(struct lab *lab)
{
    while (mailbox_drain(&lab->mb) > 0)
        ;
}

static inline void lab_restart(struct lab *lab)
{
    publisher_free(lab->p);
    assert_int_equal(publisher_new(&lab->opts, &lab->p), 0);
}

static inline void lab_free(struct lab *lab)
{
    lab_drain(lab);
    publisher_free(lab->p);
    lab_drain(lab);
    for (size_t i = 0; i < lab->journals_n; i++) {
        jc_journal_unref(lab->journals[i].j);
        wr_fini(&lab->journals[i].bytes);
    }
    for (size_t i = 0; i < lab->kv_n; i++)
        blob_unref(lab->kv[i].value);
    for (size_t i = 0; i < lab->ops_n; i++) {
        assert_true(lab->ops[i]->off);
        mem_free(lab->ops[i]);
    }
    mailbox_fini(&lab->mb);
    mem_free(lab);
}

static inline void lab_post(struct lab *lab, struct publish_req rq, const char *collection,
                            const char *body, struct lab_answer *out)
{
    memset(out, 0, sizeof *out);
    rq.collection = span_str(collection);
    rq.body = blob_copy(span_str(body));
    assert_non_null(rq.body);
    assert_int_equal(publisher_post(lab->p, &rq, lab_on_answer, out), 0);
    assert_false(out->done); /* never from inside */
}

static inline int lab_publish(struct lab *lab, struct publish_req rq, const char *collection,
                              const char *body, struct lab_answer *out)
{
    lab_post(lab, rq, collection, body, out);
    lab_drain(lab);
    assert_true(out->done);
    assert_int_equal(publisher_busy(lab->p), 0);
    return out->status;
}

static inline const char *lab_bytes(struct lab *lab, const char *journal)
{
    struct lab_journal *lj = lab_find(lab, journal);
    static char text[1 << 16];
    size_t n;

    assert_non_null(lj);
    n = wr_len(&lj->bytes);
    assert_true(n < sizeof text);
    if (n > 0)
        memcpy(text, lj->bytes.b->data, n);
    text[n] = '\0';
    return text;
}
