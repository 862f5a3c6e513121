/*
 * The fetch engine over the embedded store: random journals whose fragments are closed, removed
 * from below and punched out of the middle, against the model of what was written.
 */
#include "tests/unit/gateway/fetch_model.h"

#include <unistd.h>

#include "journal_client/local.h"

/* Owner: one test. The lab's worker and cache work on `store` instead of the fake one. */
struct live {
    struct model *m;
    struct jc_store *store;
    const struct jc_journal *j;
    char dir[64];
    struct gw_cache *fake_cache;
    bool done;
    int err;
    struct jc_heads heads;
    struct jc_fragment frags[64];
    size_t frags_n;
};

static void pump(struct live *l)
{
    while (!l->done)
        assert_true(mailbox_wait(&l->m->lab->w.mb, 20000) > 0);
    l->done = false;
}

static void on_done(void *arg, int err)
{
    struct live *l = arg;

    l->err = err;
    l->done = true;
}

static void on_apply(void *arg, int err, int64_t revision)
{
    (void)revision;
    on_done(arg, err);
}

static void on_txn(void *arg, int err, struct jc_txn *txn)
{
    (void)txn;
    on_done(arg, err);
}

static void on_snapshot(void *arg, const struct jc_listing *snapshot)
{
    struct live *l = arg;

    if (snapshot->n > 0 && l->j == NULL)
        l->j = jc_journal_ref(snapshot->items[0]);
}

static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct live *l = arg;

    l->heads = *heads;
    l->done = true;
}

static void on_fragments(void *arg, int err, const struct jc_fragment *list, size_t n)
{
    struct live *l = arg;

    l->frags_n = n < 64 ? n : 64;
    memcpy(l->frags, list, l->frags_n * sizeof *list);
    on_done(arg, err);
}

/* The store's heads, to the part that the worker sees. */
static void look_heads(struct live *l)
{
    const struct jc_follower f = {.ex = &l->m->lab->w.mb.ex, .on_heads = on_heads, .arg = l};
    struct jc_op *op;

    assert_int_equal(l->store->ops->follow(l->store, l->j, &f, &op), 0);
    pump(l);
    l->store->ops->cancel(op);
    gw_part_update(l->m->lab->topics[0].parts[0], &l->heads);
    assert_int_equal(l->heads.content_end, l->m->content_end);
    assert_int_equal(l->heads.write_head, l->m->len);
}

/* Appends what the model has more than the store, as one transaction. */
static void flush(struct live *l)
{
    struct model *m = l->m;
    struct blob *bytes = blob_copy(span_of(m->bytes + m->flushed, m->len - m->flushed));
    struct jc_append_part part = {.journal = l->j, .bytes = bytes};
    struct jc_txn txn = {.parts = &part, .parts_n = 1};

    assert_int_equal(l->store->ops->append(l->store, &txn, &m->lab->w.mb.ex, on_txn, l), 0);
    pump(l);
    assert_int_equal(l->err, 0);
    blob_unref(bytes);
    m->flushed = m->len;
    look_heads(l);
}

static void close_fragments(struct live *l)
{
    struct executor *ex = &l->m->lab->w.mb.ex;

    assert_int_equal(jc_local_flush(l->store, ex, on_done, l), 0);
    pump(l);
    assert_int_equal(l->err, 0);
    assert_int_equal(l->store->ops->fragments(l->store, l->j, ex, on_fragments, l), 0);
    pump(l);
    assert_int_equal(l->err, 0);
}

static struct live *live_new(uint64_t seed)
{
    struct live *l = mem_zalloc(sizeof *l);
    struct lab *lab = lab_new();
    const struct jc_label label = {JC_LABEL_COLLECTION, "docs"};
    const struct jc_spec spec = {.name = "docs/p0", .labels = &label, .labels_n = 1};
    const struct jc_change change = {.upsert = &spec};
    const struct jc_selector all = {0};
    const struct jc_watcher watcher = {.ex = &lab->w.mb.ex, .on_snapshot = on_snapshot, .arg = l};
    struct jc_op *op;

    assert_non_null(l);
    l->m = model_new(lab, seed);
    snprintf(l->dir, sizeof l->dir, "/tmp/sluice-fetch-XXXXXX");
    assert_non_null(mkdtemp(l->dir));
    const struct jc_local_opts opts = {.dir = l->dir, .probe = gw_doc_probe};
    assert_int_equal(jc_local_open(&opts, &l->store, NULL, 0), 0);
    assert_int_equal(l->store->ops->watch(l->store, &all, &watcher, &op), 0);
    assert_int_equal(l->store->ops->apply(l->store, &change, 1, &lab->w.mb.ex, on_apply, l), 0);
    pump(l);
    while (l->j == NULL)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
    l->store->ops->cancel(op);

    lab->shared.store = l->store;
    l->fake_cache = lab->shared.cache;
    assert_int_equal(gw_cache_new(4 << 20, l->store, lab->shared.loads, &lab->shared.cache), 0);
    lab_topic(lab, "docs", 1);
    gw_part_unref(lab->topics[0].parts[0]);
    assert_int_equal(gw_part_new(l->j, &lab->topics[0].parts[0]), 0);
    lab->topics[0].bound = model_bound(l->m, seed);
    lab_view(lab);
    return l;
}

static void live_free(struct live *l)
{
    struct lab *lab = l->m->lab;
    char command[128];

    fetch_worker_stop(&lab->w); /* ends its followers */
    gw_cache_free(lab->shared.cache);
    lab->shared.cache = l->fake_cache;
    l->store->ops->close(l->store);
    lab->shared.store = &lab->fs->base;
    assert_int_equal(fetch_worker_start(&lab->w), 0); /* for lab_free */
    jc_journal_unref(l->j);
    lab_free(lab);
    model_free(l->m);
    snprintf(command, sizeof command, "rm -rf %s", l->dir);
    assert_int_equal(system(command), 0);
    mem_free(l);
}

static void offsets_are_answered_as_the_model_says_while_fragments_come_and_go(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct live *l = live_new(seed);
        struct model *m = l->m;
        int64_t at = 0;

        for (int round = 0; round < 6; round++) {
            model_write(m, 20 + rnd(m, 60));
            flush(l);
            at = model_follow(m, at);
            model_fetch_many(m, 8);
            close_fragments(l);
            model_fetch_many(m, 8);
        }
        if (seed % 2 == 0) { /* the oldest fragments go */
            int64_t end = l->frags[rnd(m, l->frags_n)].end;
            for (size_t i = 0; i < m->n; i++) {
                if (m->docs[i].end <= end && m->docs[i].content)
                    m->log_start = m->docs[i].end;
            }
            model_remove(m, 0, end);
            assert_int_equal(
                jc_local_remove_fragments(l->store, l->j, end, &m->lab->w.mb.ex, on_done, l), 0);
            pump(l);
            assert_int_equal(l->err, 0);
            look_heads(l);
            assert_int_equal(l->heads.log_start, m->log_start);
        } else if (l->frags_n > 3) { /* one in the middle goes: the log start stays */
            const struct jc_fragment *f = &l->frags[1 + rnd(m, l->frags_n - 3)];
            model_remove(m, f->begin, f->end);
            assert_int_equal(jc_local_punch(l->store, l->j, f->begin, &m->lab->w.mb.ex, on_done, l),
                             0);
            pump(l);
            assert_int_equal(l->err, 0);
        }
        m->lab->encoder.id++; /* what was cached before the removal may be served: start afresh */
        lab_view(m->lab);
        model_fetch_many(m, 40);
        live_free(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_answered_as_the_model_says_while_fragments_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
