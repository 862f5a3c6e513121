/*
 * A publisher and its backfills over the real embedded store in a folder of the test's own, on one
 * home thread, with the wall clock's readings in nanoseconds, a proxy before the store that orders
 * faults and races, and points at which the process dies.
 */
#pragma once

#include "tests/unit/journal_client/local_lab.h"

#include "base/jobpool.h"
#include "gateway/backfill.h"
#include "gateway/block_build.h"
#include "gateway/gateway.h"
#include "gateway/publish.h"
#include "journal_client/uuid.h"

#define BL_EPOCH_NS INT64_C(1800000000000000000)

struct bl {
    struct local_lab l; /* first: the real store, and home's mailbox */
    struct clock clock;
    _Atomic int64_t wall_ns;
    atomic_uint readings;
    struct jc_store proxy; /* what publisher and backfills see */
    struct jobpool *jobs;
    struct publisher *p;
    struct backfills *bf;
    /* orders for the proxy; applies that only change specs count, creations do not */
    unsigned applies;
    int apply_err; /* ... fail with it, apply_errs times */
    unsigned apply_errs;
    void (*before_apply)(struct bl *bl); /* runs once */
    int append_err;                      /* the next append fails with it */
    int scan_err;                        /* the next kv_scan fails with it */
    /* points */
    const char *die_at;
    int die_in; /* at the (die_in + 1)-th visit */
    char trace[4096];
};

static inline struct bl *bl_of(struct jc_store *s)
{
    return (struct bl *)(void *)((char *)s - offsetof(struct bl, proxy));
}

static inline struct jc_store *bl_real(struct jc_store *s)
{
    return bl_of(s)->l.lab.s;
}

/* --- the proxy --- */

static inline int bl_watch(struct jc_store *s, const struct jc_selector *sel,
                           const struct jc_watcher *w, struct jc_op **out)
{
    return bl_real(s)->ops->watch(bl_real(s), sel, w, out);
}

static inline int bl_follow(struct jc_store *s, const struct jc_journal *j,
                            const struct jc_follower *f, struct jc_op **out)
{
    return bl_real(s)->ops->follow(bl_real(s), j, f, out);
}

static inline int bl_read_block(struct jc_store *s, const struct jc_block_req *r,
                                struct executor *ex, jc_block_fn *done, void *arg,
                                struct jc_op **out)
{
    return bl_real(s)->ops->read_block(bl_real(s), r, ex, done, arg, out);
}

static inline int bl_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                          jc_seek_fn *done, void *arg, struct jc_op **out)
{
    return bl_real(s)->ops->seek(bl_real(s), r, ex, done, arg, out);
}

struct bl_fault {
    struct task task;
    int err;
    void *arg;
    jc_apply_fn *apply;
    jc_txn_fn *append;
    struct jc_txn *txn;
    jc_kv_scan_fn *scan;
};

static inline void bl_run_fault(struct task *t)
{
    struct bl_fault *f = (struct bl_fault *)(void *)t;

    if (f->apply != NULL)
        f->apply(f->arg, f->err, 0);
    else if (f->append != NULL)
        f->append(f->arg, f->err, f->txn);
    else
        f->scan(f->arg, f->err, NULL, 0);
    mem_free(f);
}

static inline int bl_fault(struct executor *ex, struct bl_fault what)
{
    struct bl_fault *f = mem_zalloc(sizeof *f);

    assert_non_null(f);
    *f = what;
    f->task.run = bl_run_fault;
    executor_post(ex, &f->task);
    return 0;
}

static inline int bl_apply(struct jc_store *s, const struct jc_change *c, size_t n,
                           struct executor *ex, jc_apply_fn *done, void *arg)
{
    struct bl *bl = bl_of(s);
    void (*before)(struct bl *) = bl->before_apply;

    if (n > 0 && c[0].expect_mod_revision > 0) {
        bl->applies++;
        bl->before_apply = NULL;
        if (before != NULL)
            before(bl);
        if (bl->apply_errs > 0) {
            bl->apply_errs--;
            return bl_fault(ex, (struct bl_fault){.err = bl->apply_err, .arg = arg, .apply = done});
        }
    }
    return bl_real(s)->ops->apply(bl_real(s), c, n, ex, done, arg);
}

static inline int bl_append(struct jc_store *s, struct jc_txn *txn, struct executor *ex,
                            jc_txn_fn *done, void *arg)
{
    struct bl *bl = bl_of(s);
    int err = bl->append_err;

    bl->append_err = 0;
    if (err < 0)
        return bl_fault(ex, (struct bl_fault){.err = err, .arg = arg, .append = done, .txn = txn});
    return bl_real(s)->ops->append(bl_real(s), txn, ex, done, arg);
}

static inline int bl_kv_get(struct jc_store *s, const char *key, struct executor *ex,
                            jc_kv_fn *done, void *arg)
{
    return bl_real(s)->ops->kv_get(bl_real(s), key, ex, done, arg);
}

static inline int bl_kv_scan(struct jc_store *s, const char *prefix, struct executor *ex,
                             jc_kv_scan_fn *done, void *arg)
{
    struct bl *bl = bl_of(s);
    int err = bl->scan_err;

    bl->scan_err = 0;
    if (err < 0)
        return bl_fault(ex, (struct bl_fault){.err = err, .arg = arg, .scan = done});
    return bl_real(s)->ops->kv_scan(bl_real(s), prefix, ex, done, arg);
}

static inline int bl_kv_set(struct jc_store *s, const struct jc_kv *kv, size_t n,
                            struct executor *ex, jc_done_fn *done, void *arg)
{
    return bl_real(s)->ops->kv_set(bl_real(s), kv, n, ex, done, arg);
}

static inline void bl_cancel(struct jc_op *op)
{
    jc_op_cancel(op);
}

/* --- life --- */

static inline int64_t bl_wall(void *arg)
{
    struct bl *bl = arg;

    atomic_fetch_add(&bl->readings, 1);
    return atomic_load(&bl->wall_ns);
}

static inline int64_t bl_mono(void *arg)
{
    (void)arg;
    return clock_mono_ms(clock_system());
}

static inline void bl_visit(struct bl *bl, const char *where)
{
    if (bl->die_at != NULL && strcmp(bl->die_at, where) == 0 && bl->die_in-- == 0)
        _exit(42);
}

/* Home thread. */
static inline void bl_point(void *arg, const char *where)
{
    struct bl *bl = arg;
    size_t n = strlen(bl->trace);

    (void)snprintf(bl->trace + n, sizeof bl->trace - n, "%s ", where);
    bl_visit(bl, where);
}

/* The store's threads. */
static inline void bl_store_point(void *arg, const char *where)
{
    bl_visit(arg, where);
}

static inline void bl_open(struct bl *bl)
{
    struct publisher_opts po = {.partitions = 3, .home = &bl->l.lab.mb};
    struct backfill_opts bo = {.home = &bl->l.lab.mb, .point = bl_point, .point_arg = bl};

    ll_open(&bl->l);
    assert_int_equal(jobpool_new(2, "test", &bl->jobs), 0);
    po.store = bo.store = &bl->proxy;
    po.jobs = bo.jobs = jobpool_executor(bl->jobs);
    assert_int_equal(publisher_new(&po, &bl->p), 0);
    bo.publisher = bl->p;
    assert_int_equal(backfills_new(&bo, &bl->bf), 0);
}

static inline void bl_close(struct bl *bl)
{
    backfills_drain(bl->bf);
    while (backfills_busy(bl->bf) > 0)
        (void)mailbox_wait(&bl->l.lab.mb, 1000);
    backfills_free(bl->bf);
    publisher_free(bl->p);
    jobpool_free(bl->jobs);
    ll_close(&bl->l);
}

static inline void bl_reopen(struct bl *bl)
{
    bl_close(bl);
    bl_open(bl);
}

/* Not open yet. */
static inline struct bl *bl_new(void)
{
    static const struct jc_store_ops ops = {
        .name = "proxy",
        .watch = bl_watch,
        .follow = bl_follow,
        .read_block = bl_read_block,
        .seek = bl_seek,
        .apply = bl_apply,
        .append = bl_append,
        .kv_get = bl_kv_get,
        .kv_scan = bl_kv_scan,
        .kv_set = bl_kv_set,
        .cancel = bl_cancel,
    };
    struct bl *bl = mem_zalloc(sizeof *bl);

    assert_non_null(bl);
    log_setup(LOG_ERROR + 1, LOG_FORMAT_TEXT); /* faults are what these tests order */
    assert_int_equal(temp_dir_make(bl->l.dir, sizeof bl->l.dir), 0);
    ll_faults_off(&bl->l);
    bl->wall_ns = BL_EPOCH_NS;
    bl->clock = (struct clock){bl_wall, bl_mono, bl};
    bl->l.hooks =
        (struct jl_hooks){ll_pwrite, ll_fdatasync, ll_rename, ll_commit, bl_store_point, bl, NULL};
    bl->l.opts = (struct jc_local_opts){
        .dir = bl->l.dir, .clock = &bl->clock, .probe = gw_doc_probe, .housekeeping_ms = 3600000};
    bl->proxy.ops = &ops;
    return bl;
}

static inline int bl_setup(void **state)
{
    struct bl *bl = bl_new();

    bl_open(bl);
    *state = bl;
    return 0;
}

static inline int bl_teardown(void **state)
{
    struct bl *bl = *state;

    bl_close(bl);
    assert_int_equal(jc_local_check(bl->l.dir, gw_doc_probe, NULL, ll_report, NULL), 0);
    temp_dir_remove(bl->l.dir);
    mem_free(bl);
    return 0;
}

/* --- requests --- */

struct bl_answer {
    bool done;
    struct backfill_answer a;
    char error[512];
    char journal[256];
};

static inline void bl_on_answer(void *arg, const struct backfill_answer *a)
{
    struct bl_answer *out = arg;

    assert_false(out->done);
    out->done = true;
    out->a = *a;
    assert_int_equal(a->status == 200, a->error == NULL);
    (void)snprintf(out->error, sizeof out->error, "%s", a->error == NULL ? "" : a->error);
    if (a->foreign.found)
        (void)snprintf(out->journal, sizeof out->journal, "%s", a->foreign.journal);
}

static inline void bl_post(struct bl *bl, struct backfill_req rq, const char *collection,
                           struct bl_answer *out)
{
    memset(out, 0, sizeof *out);
    rq.collection = span_str(collection);
    assert_int_equal(backfills_post(bl->bf, &rq, bl_on_answer, out), 0);
    assert_false(out->done); /* never from inside */
}

static inline struct bl_answer bl_ask(struct bl *bl, struct backfill_req rq, const char *collection)
{
    struct bl_answer a;

    bl_post(bl, rq, collection, &a);
    lab_wait(&bl->l.lab, &a.done);
    return a;
}

/* The marker's clock. */
static inline uint64_t bl_begin(struct bl *bl, const char *collection)
{
    struct bl_answer a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN}, collection);

    if (a.a.status != 200)
        fail_msg("%d %s", a.a.status, a.error);
    return a.a.clock;
}

static inline uint64_t bl_complete(struct bl *bl, const char *collection)
{
    struct bl_answer a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_COMPLETE}, collection);

    if (a.a.status != 200)
        fail_msg("%d %s", a.a.status, a.error);
    return a.a.clock;
}

struct bl_published {
    bool done;
    int status;
    uint64_t clock; /* of the ACK */
    char json[2000];
};

static inline void bl_on_published(void *arg, const struct publish_answer *a)
{
    struct bl_published *out = arg;
    const char *at;

    out->done = true;
    out->status = a->status;
    (void)snprintf(out->json, sizeof out->json, "%.*s", SPAN_FMT(a->json));
    if ((at = strstr(out->json, "\"clock\":\"")) != NULL)
        assert_int_equal(jc_clock_parse_hex(span_of(at + 9, 16), &out->clock), 0);
}

static inline void bl_publish_start(struct bl *bl, const char *collection, const char *body,
                                    struct bl_published *out)
{
    struct publish_req rq = {.collection = span_str(collection), .body = blob_copy(span_str(body))};

    memset(out, 0, sizeof *out);
    assert_int_equal(publisher_post(bl->p, &rq, bl_on_published, out), 0);
}

static inline uint64_t bl_publish(struct bl *bl, const char *collection, const char *body)
{
    struct bl_published out;

    bl_publish_start(bl, collection, body, &out);
    lab_wait(&bl->l.lab, &out.done);
    if (out.status != 200)
        fail_msg("%d %s", out.status, out.json);
    return out.clock;
}

static inline struct backfill_status bl_status(struct bl *bl, const char *collection)
{
    struct backfill_status st;
    int err;

    while ((err = backfills_status(bl->bf, span_str(collection), &st)) == E_AGAIN)
        assert_true(mailbox_wait(&bl->l.lab.mb, LAB_WAIT_MS) > 0);
    assert_true(err == 0 || err == E_NOTFOUND);
    return st;
}

/* Until every journal carries the label, if there is to be one. */
static inline struct backfill_status bl_settle(struct bl *bl, const char *collection)
{
    struct backfill_status st = bl_status(bl, collection);

    while (st.state.begin != 0 && st.labelled < st.journals) {
        assert_true(mailbox_wait(&bl->l.lab.mb, LAB_WAIT_MS) > 0);
        st = bl_status(bl, collection);
    }
    return st;
}

/* --- journals --- */

/* Sets labels (name, value, ..., NULL; sorted) of a journal, or makes it. Returns the store's
 * answer; expect: its revision, 0 to create, -1 not to compare. */
static inline int bl_put(struct bl *bl, const char *name, int64_t expect, ...)
{
    struct jc_label labels[16];
    struct jc_spec spec = {.name = name, .labels = labels};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = expect};
    const char *label;
    va_list ap;

    va_start(ap, expect);
    while ((label = va_arg(ap, const char *)) != NULL)
        labels[spec.labels_n++] = (struct jc_label){label, va_arg(ap, const char *)};
    va_end(ap);
    return lab_apply(&bl->l.lab, &c, 1, NULL);
}

/* The label as text into out ("" without one). */
static inline const char *bl_label(struct bl *bl, const char *journal, const char *name)
{
    static char out[64];
    const struct jc_journal *j = lab_find(&bl->l.lab, journal);
    const char *value = "";

    assert_non_null(j);
    if (jc_spec_label(&j->spec, name, &value) < 0)
        value = "";
    (void)snprintf(out, sizeof out, "%s", value);
    jc_journal_unref(j);
    return out;
}

/* All bytes of a journal; mem_free. */
static inline char *bl_bytes(struct bl *bl, const char *journal)
{
    const struct jc_journal *j = lab_find(&bl->l.lab, journal);
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j};

    assert_non_null(j);
    lab_read(&bl->l.lab, &r, &o);
    assert_int_equal(r.err, 0);
    jc_journal_unref(j);
    return r.text == NULL ? mem_strdup("") : r.text;
}

static inline void bl_raw(struct bl *bl, const char *journal, const char *line)
{
    const struct jc_journal *j = lab_find(&bl->l.lab, journal);

    assert_non_null(j);
    assert_int_equal(lab_append(&bl->l.lab, j, line), 0);
    jc_journal_unref(j);
}

/* A document of any clock and producer. */
static inline void bl_raw_document(struct bl *bl, const char *journal, uint64_t clock,
                                   const uint8_t producer[6], const char *members)
{
    struct jc_uuid u = {.clock = clock, .flags = JC_FLAG_CONTINUE};
    char uuid[JC_UUID_TEXT + 1] = "", line[512];

    memcpy(u.producer, producer, sizeof u.producer);
    jc_uuid_format(&u, uuid);
    (void)snprintf(line, sizeof line, "{\"_meta\":{\"uuid\":\"%s\"},%s}\n", uuid, members);
    bl_raw(bl, journal, line);
}

/* Calls fn for each line of a journal with what the gateway sees in it. */
static inline void bl_each(struct bl *bl, const char *journal,
                           void (*fn)(void *arg, struct span line, const struct jc_doc_info *info),
                           void *arg)
{
    char *text = bl_bytes(bl, journal);
    struct sc_uuid_hint hint = {0};

    for (char *p = text, *nl; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
        struct jc_doc_info info;

        gw_doc_look(span_of(p, (size_t)(nl - p)), &hint, &info);
        fn(arg, span_of(p, (size_t)(nl - p)), &info);
    }
    mem_free(text);
}

/* What a reader sees: content at or above the bound that the labels imply. */
struct bl_view {
    uint64_t bound;
    size_t visible, stale;
    uint64_t lowest; /* of the visible ones */
    char text[1 << 16];
};

static inline void bl_view_line(void *arg, struct span line, const struct jc_doc_info *info)
{
    struct bl_view *v = arg;
    size_t n = strlen(v->text);

    if (info->kind != JC_DOC_CONTENT)
        return;
    if (info->clock < v->bound) {
        v->stale++;
        return;
    }
    v->visible++;
    if (v->lowest == 0 || info->clock < v->lowest)
        v->lowest = info->clock;
    (void)snprintf(v->text + n, sizeof v->text - n, "%.*s\n", SPAN_FMT(line));
}

struct bl_names {
    bool done;
    const char *collection;
    uint64_t bound;
    size_t n;
    char names[64][128];
};

static inline void bl_on_names(void *arg, const struct jc_listing *l)
{
    struct bl_names *x = arg;

    if (x->done)
        return;
    x->done = true;
    for (size_t i = 0; i < l->n; i++) {
        struct backfill_label label;
        const char *c;

        if (jc_spec_label(&l->items[i]->spec, JC_LABEL_COLLECTION, &c) < 0 ||
            strcmp(c, x->collection) != 0)
            continue;
        assert_true(x->n < 64);
        (void)snprintf(x->names[x->n++], sizeof x->names[0], "%s", l->items[i]->spec.name);
        backfill_label_of(&l->items[i]->spec, &label);
        if (label.clock > x->bound)
            x->bound = label.clock;
    }
}

/* From a listing of now. */
static inline void bl_names(struct bl *bl, const char *collection, struct bl_names *x)
{
    const struct jc_selector all = {0};
    const struct jc_watcher w = {.ex = &bl->l.lab.mb.ex, .on_snapshot = bl_on_names, .arg = x};
    struct jc_op *op;

    memset(x, 0, sizeof *x);
    x->collection = collection;
    assert_int_equal(bl->l.lab.s->ops->watch(bl->l.lab.s, &all, &w, &op), 0);
    lab_wait(&bl->l.lab, &x->done);
    bl->l.lab.s->ops->cancel(op);
}

static inline void bl_see(struct bl *bl, const char *collection, struct bl_view *v)
{
    struct bl_names names;

    bl_names(bl, collection, &names);
    memset(v, 0, sizeof *v);
    v->bound = names.bound;
    for (size_t i = 0; i < names.n; i++)
        bl_each(bl, names.names[i], bl_view_line, v);
}

static inline uint64_t bl_clock_of(int64_t ns)
{
    uint64_t c;

    assert_int_equal(jc_clock_from_unix_ns(ns, &c), 0);
    return c;
}
