/*
 * Disks that fill up and fail: an append that fails leaves no trace in any journal, everything that
 * was answered stays, and the store goes on where going on is honest.
 */
#include "tests/unit/journal_client/local_lab.h"

/* The journal holds "a\n" and "b\n" around a failure of the append between. */
static void expect_recovers(struct local_lab *l, atomic_int *fault, int want)
{
    const struct jc_journal *j = lab_create(&l->lab, "acme/a"), *k = lab_create(&l->lab, "acme/k");
    struct jc_append_part parts[] = {{.journal = k, .bytes = blob_copy(span_str("k-lost\n"))},
                                     {.journal = j, .bytes = blob_copy(span_str("j-lost\n"))}};
    struct jc_kv kv = {.key = "lost", .value = span_str("v")};
    struct jc_txn txn = {.parts = parts, .parts_n = 2, .kv = &kv, .kv_n = 1};

    assert_int_equal(lab_append(&l->lab, j, "a\n"), 0);
    atomic_store(fault, 0);
    assert_int_equal(lab_txn(&l->lab, &txn), want);
    assert_int_equal(lab_heads(&l->lab, k).write_head, 0);
    assert_int_equal(lab_heads(&l->lab, j).write_head, 2);
    assert_int_equal(lab_kv_get(&l->lab, "lost").err, E_NOTFOUND);
    assert_int_equal(lab_append(&l->lab, j, "b\n"), 0);
    assert_int_equal(lab_append(&l->lab, k, "k\n"), 0);
    lab_expect_text(&l->lab, j, 0, "a\nb\n");
    lab_expect_text(&l->lab, k, 0, "k\n");
    assert_int_equal(ll_flush(l), 0);
    blob_unref(parts[0].bytes);
    blob_unref(parts[1].bytes);
    jc_journal_unref(j);
    jc_journal_unref(k);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, j, 0, "a\nb\n");
    jc_journal_unref(j);
}

static void a_full_disk_fails_the_append_and_nothing_else(void **state)
{
    struct local_lab *l = *state;

    expect_recovers(l, &l->write_in, E_NOSPACE);
}

static void a_write_error_is_an_io_error(void **state)
{
    struct local_lab *l = *state;

    atomic_store(&l->write_errno, EIO);
    expect_recovers(l, &l->write_in, E_IO);
}

static void a_failed_commit_record_leaves_no_trace(void **state)
{
    struct local_lab *l = *state;

    expect_recovers(l, &l->commit_in, E_NOSPACE);
}

static void short_writes_are_completed(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");

    atomic_store(&l->short_writes, true);
    assert_int_equal(lab_append(&l->lab, j, "a long line that takes several writes\n"), 0);
    lab_expect_text(&l->lab, j, 0, "a long line that takes several writes\n");
    jc_journal_unref(j);
}

static void a_failed_sync_makes_the_journal_read_only_until_a_restart(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a"), *k = lab_create(&l->lab, "acme/k");

    assert_int_equal(lab_append(&l->lab, j, "a\n"), 0);
    atomic_store(&l->sync_in, 0);
    assert_int_equal(lab_append(&l->lab, j, "lost\n"), E_IO);
    assert_int_equal(lab_append(&l->lab, j, "refused\n"), E_IO);
    assert_int_equal(lab_append(&l->lab, k, "k\n"), 0); /* others go on */
    lab_expect_text(&l->lab, j, 0, "a\n");
    jc_journal_unref(j);
    jc_journal_unref(k);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "b\n"), 0);
    lab_expect_text(&l->lab, j, 0, "a\nb\n");
    jc_journal_unref(j);
}

static void a_doubtful_commit_is_settled_before_anything_is_written(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    struct jc_append_part part = {.journal = j, .bytes = blob_copy(span_str("doubt\n"))};
    struct jc_txn txn = {.parts = &part, .parts_n = 1};
    char path[1024];
    struct stat st;

    assert_int_equal(lab_append(&l->lab, j, "a\n"), 0);
    /* One that fails and is settled at once is no doubt. */
    atomic_store(&l->commit_fails, 1);
    txn.in_doubt = true;
    assert_int_equal(lab_txn(&l->lab, &txn), E_NOSPACE);
    assert_false(txn.in_doubt);
    /* The commit fails, and so do the first two tries to settle it. */
    atomic_store(&l->commit_fails, 3);
    assert_int_equal(lab_txn(&l->lab, &txn), E_NOSPACE);
    assert_true(txn.in_doubt);
    blob_unref(part.bytes);
    /* A recovery that found the commit would find its bytes. */
    assert_true(ll_file(l, "open", "acme/a", "", path, sizeof path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 8);
    lab_expect_text(&l->lab, j, 0, "a\n");
    part.bytes = blob_copy(span_str("no\n"));
    assert_int_equal(lab_txn(&l->lab, &txn), E_NOSPACE);
    assert_false(txn.in_doubt); /* nothing of it was written */
    blob_unref(part.bytes);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 8);
    assert_int_equal(lab_append(&l->lab, j, "b\n"), 0);
    lab_expect_text(&l->lab, j, 0, "a\nb\n");
    assert_int_equal(ll_flush(l), 0); /* the rest of the doubt is cut */
    jc_journal_unref(j);
}

static void a_failed_rename_leaves_the_fragment_growing(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    static struct lab_frags x;

    assert_int_equal(lab_append(&l->lab, j, "C0001:a\n"), 0);
    atomic_store(&l->rename_in, 0);
    assert_int_equal(ll_flush(l), E_IO);
    assert_int_equal(lab_append(&l->lab, j, "C0002:b\n"), 0);
    assert_int_equal(ll_flush(l), 0);
    lab_frags(&l->lab, j, &x);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.v[0].end, 16);
    jc_journal_unref(j);
}

static void a_close_whose_record_fails_is_recorded_before_the_next_byte(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    static struct lab_frags x;

    assert_int_equal(lab_append(&l->lab, j, "C0001:a\n"), 0);
    atomic_store(&l->commit_in, 0);
    assert_int_equal(ll_flush(l), E_NOSPACE);
    lab_expect_text(&l->lab, j, 0, "C0001:a\n"); /* readable under its new name */
    assert_int_equal(lab_append(&l->lab, j, "C0002:b\n"), 0);
    lab_frags(&l->lab, j, &x);
    assert_int_equal(x.n, 2);
    assert_int_equal(x.v[0].end, 8);
    lab_expect_text(&l->lab, j, 0, "C0001:a\nC0002:b\n");
    jc_journal_unref(j);
}

static void a_close_whose_record_failed_is_adopted_at_restart(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    static struct lab_frags x;

    assert_int_equal(lab_append(&l->lab, j, "C0001:a\n"), 0);
    atomic_store(&l->commit_in, 0);
    assert_int_equal(ll_flush(l), E_NOSPACE);
    jc_journal_unref(j);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    lab_frags(&l->lab, j, &x);
    assert_true(x.n == 1 && !x.v[0].open);
    lab_expect_text(&l->lab, j, 0, "C0001:a\n");
    assert_int_equal(lab_append(&l->lab, j, "C0002:b\n"), 0);
    jc_journal_unref(j);
}

static void a_failed_apply_changes_nothing(void **state)
{
    struct local_lab *l = *state;
    const struct jc_spec spec = {.name = "acme/a"};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    int64_t before, after;

    assert_int_equal(lab_apply(&l->lab, NULL, 0, &before), 0);
    atomic_store(&l->commit_in, 0);
    assert_int_equal(lab_apply(&l->lab, &c, 1, &after), E_NOSPACE);
    assert_int_equal(before, after);
    assert_null(lab_find(&l->lab, "acme/a"));
    assert_int_equal(lab_apply(&l->lab, &c, 1, NULL), 0);
}

/* One round of everything, with the n-th allocation failing. Returns true when it failed somewhere.
 */
static bool round_without_memory(struct local_lab *l, long n)
{
    char text[64], name[64];
    bool failed = false;

    (void)snprintf(name, sizeof name, "acme/n%ld", n);
    (void)snprintf(text, sizeof text, "C%04lx:x\n", n + 1);
    const struct jc_spec spec = {.name = name};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    struct blob *b = blob_copy(span_str(text));
    struct jc_append_part part = {.journal = j, .bytes = b};
    struct jc_txn txn = {.parts = &part, .parts_n = 1};
    struct lab_done d[4] = {{0}};
    const struct jc_store_ops *ops = l->lab.s->ops;
    int64_t before = lab_heads(&l->lab, j).write_head;

    mem_fail_after(n, 0);
    d[0].err = ops->append(l->lab.s, &txn, &l->lab.mb.ex, lab_on_txn, &d[0]);
    if (d[0].err == 0)
        lab_wait(&l->lab, &d[0].done);
    d[1].err = jc_local_flush(l->lab.s, &l->lab.mb.ex, lab_on_done, &d[1]);
    if (d[1].err == 0)
        lab_wait(&l->lab, &d[1].done);
    d[2].err = ops->apply(l->lab.s, &c, 1, &l->lab.mb.ex, lab_on_apply, &d[2]);
    if (d[2].err == 0)
        lab_wait(&l->lab, &d[2].done);
    mem_fail_after(-1, 0);
    for (size_t i = 0; i < 3; i++) {
        if (d[i].err != 0 && d[i].err != E_NOMEM)
            fail_msg("allocation %ld, call %zu: %s", n, i, err_name(d[i].err));
        failed = failed || d[i].err != 0;
    }
    int64_t grown = lab_heads(&l->lab, j).write_head - before;
    assert_int_equal(grown, d[0].err == 0 ? (int64_t)strlen(text) : 0);
    const struct jc_journal *made = lab_find(&l->lab, name);
    assert_true((made != NULL) == (d[2].err == 0));
    jc_journal_unref(made);
    jc_journal_unref(j);
    blob_unref(b);
    return failed;
}

static void an_append_whose_database_was_deleted_is_not_called_done(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[512], away[512];

    (void)snprintf(path, sizeof path, "%s/sluice.db", l->dir);
    (void)snprintf(away, sizeof away, "%s/away.db", l->dir);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(lab_append(&l->lab, j, "C0001:a\n"), E_IO);
    assert_int_equal(rename(away, path), 0);
    assert_int_equal(lab_append(&l->lab, j, "C0002:b\n"), 0);
    lab_expect_text(&l->lab, j, 0, "C0002:b\n");
    jc_journal_unref(j);
}

static void out_of_memory_is_an_answer_at_every_allocation(void **state)
{
    struct local_lab *l = *state;
    long failures = 0;

    jc_journal_unref(lab_create(&l->lab, "acme/a"));
    for (long n = 0; n < 60; n++)
        failures += round_without_memory(l, n);
    assert_true(failures > 20);
    ll_reopen(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "end\n"), 0);
    jc_journal_unref(j);
}

static void a_thousand_queued_transactions_share_their_syncs(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    enum { N = 1000 };
    static struct jc_append_part parts[N];
    static struct jc_txn txns[N];
    static struct lab_done d[N];
    struct blob *b = blob_copy(span_str("C0001:small\n"));

    memset(d, 0, sizeof d);
    assert_int_equal(lab_append(&l->lab, j, "warm\n"), 0);
    atomic_store(&l->syncs, 0);
    for (size_t i = 0; i < N; i++) {
        parts[i] = (struct jc_append_part){.journal = j, .bytes = b};
        txns[i] = (struct jc_txn){.parts = &parts[i], .parts_n = 1};
        assert_int_equal(
            l->lab.s->ops->append(l->lab.s, &txns[i], &l->lab.mb.ex, lab_on_txn, &d[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        lab_wait(&l->lab, &d[i].done);
        assert_int_equal(d[i].err, 0);
        assert_int_equal(parts[i].begin, 5 + 12 * i); /* in the order of the calls */
    }
    assert_true(atomic_load(&l->syncs) < N / 10);
    blob_unref(b);
    jc_journal_unref(j);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown)
    const struct CMUnitTest tests[] = {
        T(a_full_disk_fails_the_append_and_nothing_else),
        T(a_write_error_is_an_io_error),
        T(a_failed_commit_record_leaves_no_trace),
        T(short_writes_are_completed),
        T(a_failed_sync_makes_the_journal_read_only_until_a_restart),
        T(a_doubtful_commit_is_settled_before_anything_is_written),
        T(a_failed_rename_leaves_the_fragment_growing),
        T(a_close_whose_record_fails_is_recorded_before_the_next_byte),
        T(a_close_whose_record_failed_is_adopted_at_restart),
        T(a_failed_apply_changes_nothing),
        T(an_append_whose_database_was_deleted_is_not_called_done),
        T(out_of_memory_is_an_answer_at_every_allocation),
        T(a_thousand_queued_transactions_share_their_syncs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
