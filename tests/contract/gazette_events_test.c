/*
 * What happens to a cluster in its life, over the stand-in: a listing that lags, tokens, objects
 * that are damaged, pruned or compressed, suspension, a journal made anew. What must hold is in
 * gazette_bench.h.
 */
#include "tests/contract/gazette_bench.h"

#include <dirent.h>

#include "tests/contract/gazette_suspend.h"
#include <gazette_proto/broker.pb-c.h>

#define KEY       "c2VjcmV0LW9mLXRoZS1iZW5jaA=="
#define OTHER_KEY "YW5vdGhlciBzZWNyZXQgYWx0b2dldGhlcg=="

static const struct stand_in_fault late_head = {
    .kind = STAND_IN_SLOW, .method = STAND_IN_READ, .value = 300};

/* An append between the answer of the fragment list and that of the head query: nothing is stored,
 * but the head is not 0. What lies before it is there all the same. */
static void an_append_between_fragment_list_and_head_is_seen(void **state)
{
    struct bench b = {0}, other;

    (void)state;
    bench_start(&b);
    other = (struct bench){.si = b.si};
    assert_int_equal(temp_dir_make(other.dir, sizeof other.dir), 0);
    bench_reopen(&other);
    assert_int_equal(stand_in_fault(b.si, &late_head), 0);
    bench_follow(&other);
    for (int i = 0; i < 200 && stand_in_hits(b.si) == 0; i++)
        lab_settle(&other.lab, 5);
    assert_int_equal(stand_in_hits(b.si), 1);
    assert_int_equal(bench_append(&b, 7), 0);
    other.docs = b.docs;
    bench_expect_head(&other);
    assert_int_equal(other.heads.log_start, 0);
    bench_expect_stream(&other);
    bench_close(&other);
    temp_dir_remove(other.dir);
    bench_end(&b);
}

static void a_listing_that_lags_is_no_gap(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = 4000},
                      .so = {.listing_lag_ms = 150}};

    (void)state;
    bench_start(&b);
    b.o.file_root = b.root;
    bench_reopen(&b);
    bench_follow(&b);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(bench_append(&b, 15), 0);
        if (i % 10 == 9)
            bench_expect_stream(&b);
    }
    bench_expect_head(&b);
    bench_expect_blocks(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

/* --- tokens --- */

static void streams_that_end_with_their_token_are_opened_again(void **state)
{
    struct bench b = {.so = {.auth_keys = KEY}, .o = {.auth_keys = KEY}};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(bench_append(&b, 10), 0);
        stand_in_end_calls(b.si, STAND_IN_ANY, STAND_IN_END, 0);
        bench_expect_head(&b);
    }
    bench_expect_stream(&b);
    bench_end(&b);
}

/* A key that is not the broker's: nothing is had, and the broker is asked with patience. */
static void a_wrong_key_is_refused_and_asked_with_patience(void **state)
{
    struct bench b = {.so = {.auth_keys = KEY}, .o = {.auth_keys = KEY}};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 3), 0);
    bench_close(&b);
    uint64_t calls = stand_in_calls(b.si, STAND_IN_LIST);
    b.o.auth_keys = OTHER_KEY;
    bench_open(&b);
    lab_settle(&b.lab, 1500);
    calls = stand_in_calls(b.si, STAND_IN_LIST) - calls;
    assert_true(calls >= 1 && calls < 12);
    b.o.auth_keys = KEY;
    bench_reopen(&b);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* --- objects --- */

struct object_row {
    const char *name, *codec;
    enum stand_in_fault_kind fault;
    bool damaged;
};

static const struct object_row object_rows[] = {
    {"objects: none", "none", STAND_IN_FILE_GONE, false},
    {"objects: gzip", "gzip", STAND_IN_FILE_GONE, false},
    {"objects: zstd", "zstd", STAND_IN_FILE_GONE, false},
    {"objects: snappy", "snappy", STAND_IN_FILE_GONE, false},
    {"objects: none, gone", "none", STAND_IN_FILE_GONE, true},
    {"objects: none, cut off", "none", STAND_IN_FILE_SHORT, true},
    {"objects: gzip, gone", "gzip", STAND_IN_FILE_GONE, true},
    {"objects: gzip, cut off", "gzip", STAND_IN_FILE_SHORT, true},
    {"objects: gzip, another byte", "gzip", STAND_IN_FILE_WRONG, true},
    {"objects: zstd, cut off", "zstd", STAND_IN_FILE_SHORT, true},
    {"objects: zstd, another byte", "zstd", STAND_IN_FILE_WRONG, true},
    {"objects: snappy, cut off", "snappy", STAND_IN_FILE_SHORT, true},
    {"objects: snappy, another byte", "snappy", STAND_IN_FILE_WRONG, true},
};

#define OBJECT_ROWS (sizeof object_rows / sizeof object_rows[0])

/* Stored fragments are read where they lie; what is damaged there is had from the broker. */
static void stored_objects_are_read_or_passed_by(void **state)
{
    const struct object_row *row = *state;
    const struct stand_in_fault f = {.kind = row->fault, .method = STAND_IN_STORE, .times = -1};
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = 40000}};
    uint64_t direct, direct_now, brokered;

    bench_start(&b);
    bench_close(&b);
    b.o.codec = row->codec;
    b.o.file_root = b.root;
    bench_open(&b);
    assert_int_equal(lab_delete(&b.lab, BENCH_JOURNAL), 0);
    b.j = lab_create(&b.lab, BENCH_JOURNAL);
    if (row->damaged)
        assert_int_equal(stand_in_fault(b.si, &f), 0);
    for (int i = 0; i < 24; i++)
        assert_int_equal(bench_append(&b, 100), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    jc_gazette_read_stats(&direct, &brokered);
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    bench_expect_blocks(&b);
    jc_gazette_read_stats(&direct_now, &brokered);
    if (!row->damaged)
        assert_true(direct_now - direct >= (uint64_t)b.docs * BENCH_DOC);
    bench_end(&b);
}

static size_t descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) // NOLINT(concurrency-mt-unsafe): a stream of its own
        n++;
    (void)closedir(d);
    return n;
}

/* Opens the store over a journal whose fragments are gzip. */
static void start_gzip(struct bench *b)
{
    bench_start(b);
    bench_close(b);
    b->o.codec = "gzip";
    b->o.file_root = b->root;
    bench_open(b);
    assert_int_equal(lab_delete(&b->lab, BENCH_JOURNAL), 0);
    b->j = lab_create(&b->lab, BENCH_JOURNAL);
}

/* Each inflated one is a file: they are few, however many fragments a backlog has. */
static void a_backlog_of_many_small_fragments_holds_few_descriptors(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = 1024}};

    (void)state;
    start_gzip(&b);
    for (int i = 0; i < 200; i++)
        assert_int_equal(bench_append(&b, 10), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    size_t before = descriptors();
    bench_expect_stream(&b);
    bench_expect_blocks(&b);
    assert_true(descriptors() <= before + 70);
    bench_end(&b);
}

/* One that is damaged is inflated once; its bytes come from the broker. */
static void a_damaged_fragment_is_not_inflated_for_each_read(void **state)
{
    const struct stand_in_fault f = {
        .kind = STAND_IN_FILE_WRONG, .method = STAND_IN_STORE, .times = -1};
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = 8 << 20}};
    uint64_t direct, direct_now, brokered;

    (void)state;
    start_gzip(&b);
    assert_int_equal(bench_append(&b, 10000), 0); /* 2 MB: eight blocks */
    assert_int_equal(stand_in_fault(b.si, &f), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    jc_gazette_read_stats(&direct, &brokered);
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    bench_expect_blocks(&b);
    bench_expect_stream(&b);
    jc_gazette_read_stats(&direct_now, &brokered);
    assert_true(direct_now - direct <= (uint64_t)b.docs * BENCH_DOC);
    bench_end(&b);
}

static void what_a_bucket_policy_removed_moves_the_start(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = 2000}};
    struct lab_read r = {0};

    (void)state;
    bench_start(&b);
    for (int i = 0; i < 10; i++)
        assert_int_equal(bench_append(&b, 20), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 3), 0);
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    assert_int_equal(b.heads.first, 3 * 20 * BENCH_DOC);
    assert_int_equal(b.heads.log_start, b.heads.first);
    const struct jc_read_opts o = {.journal = b.j};
    lab_read(&b.lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_int_equal(r.first_offset, b.heads.first);
    assert_int_equal(r.n, (b.docs - 60) * BENCH_DOC);
    mem_free(r.text);
    bench_end(&b);
}

/* --- suspension --- */

/* PARTIAL: read as ever, and nothing that reads resumes it. */
static void a_partly_suspended_journal_is_read_as_it_lies(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_head(&b);
    bench_suspend(&b);
    lab_settle(&b.lab, 100);
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_head(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

/* FULL: served from its spec without one Read; the first append brings it back. */
static void a_fully_suspended_journal_is_asked_nothing(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}};

    (void)state;
    bench_start(&b);
    bench_suspend(&b);
    bench_reopen(&b);
    lab_settle(&b.lab, 100);
    uint64_t reads = stand_in_calls(b.si, STAND_IN_READ);
    struct jc_heads h = lab_heads(&b.lab, b.j);
    assert_int_equal(h.write_head, 0);
    struct lab_read r = {0};
    const struct jc_read_opts o = {
        .journal = b.j, .block = true, .deadline_ms = clock_mono_ms(clock_system()) + 300};
    lab_read(&b.lab, &r, &o);
    assert_int_equal(r.err, E_TIMEOUT);
    assert_int_equal(stand_in_calls(b.si, STAND_IN_READ), reads);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* All that was written is removed before: begin and end are where it goes on, for the gateway that
 * runs, one that comes back to its data and one that has none. */
static void a_journal_suspended_with_nothing_left_goes_on_at_its_offset(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}};
    struct lab_read r = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_append(&b, 20), 0);
    bench_expect_head(&b);
    const int64_t end = 60L * BENCH_DOC;
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 10), 0);
    bench_suspend(&b);
    for (int life = 0; life < 3; life++) {
        if (life > 0) {
            bench_close(&b);
            b.opened -= life == 1;
            bench_reopen(&b);
            bench_follow(&b);
        }
        while (b.heads.log_start < end || b.heads.write_head < end)
            assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
        assert_int_equal(b.heads.log_start, end);
        assert_int_equal(b.heads.content_end, end);
        assert_int_equal(b.heads.write_head, end);
        assert_false(b.went_back);
    }
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), end + 10L * BENCH_DOC);
    const struct jc_read_opts o = {
        .journal = b.j, .offset = end, .end_offset = end + 10L * BENCH_DOC};
    lab_read(&b.lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_int_equal(r.first_offset, end);
    assert_int_equal(r.n, 10L * BENCH_DOC);
    mem_free(r.text);
    bench_end(&b);
}

/* --- lives --- */

static void a_journal_made_anew_is_another(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    int64_t was = b.j->create_revision;
    assert_int_equal(lab_delete(&b.lab, BENCH_JOURNAL), 0);
    while (!b.ended)
        assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
    jc_journal_unref(b.j);
    b.j = lab_create(&b.lab, BENCH_JOURNAL);
    assert_true(b.j->create_revision > was);
    b.docs = 0;
    b.heads = (struct jc_heads){0};
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 5), 0);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* Its fragments lie in the store still, and come back; appends go behind them. */
static void a_journal_made_anew_over_its_old_store_goes_on(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 10), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(lab_delete(&b.lab, BENCH_JOURNAL), 0);
    jc_journal_unref(b.j);
    b.j = lab_create(&b.lab, BENCH_JOURNAL);
    assert_int_equal(bench_append(&b, 5), 0);
    bench_follow(&b);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

/* All replicas were lost, and with them the last appends: the store goes on. */
static void after_a_loss_of_all_replicas_the_journal_goes_on(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 40), 0);
    bench_close(&b);
    assert_int_equal(stand_in_lose(b.si, BENCH_JOURNAL, (int64_t)30 * BENCH_DOC), 0);
    stand_in_end_calls(b.si, STAND_IN_ANY, STAND_IN_RESET_CONN, 0);
    b.docs = 30;
    bench_reopen(&b);
    bench_follow(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    bench_expect_stream(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(an_append_between_fragment_list_and_head_is_seen),
        cmocka_unit_test(a_listing_that_lags_is_no_gap),
        cmocka_unit_test(streams_that_end_with_their_token_are_opened_again),
        cmocka_unit_test(a_wrong_key_is_refused_and_asked_with_patience),
        cmocka_unit_test(a_backlog_of_many_small_fragments_holds_few_descriptors),
        cmocka_unit_test(a_damaged_fragment_is_not_inflated_for_each_read),
        cmocka_unit_test(what_a_bucket_policy_removed_moves_the_start),
        cmocka_unit_test(a_partly_suspended_journal_is_read_as_it_lies),
        cmocka_unit_test(a_fully_suspended_journal_is_asked_nothing),
        cmocka_unit_test(a_journal_suspended_with_nothing_left_goes_on_at_its_offset),
        cmocka_unit_test(a_journal_made_anew_is_another),
        cmocka_unit_test(a_journal_made_anew_over_its_old_store_goes_on),
        cmocka_unit_test(after_a_loss_of_all_replicas_the_journal_goes_on),
    };
    struct CMUnitTest tests[OBJECT_ROWS + sizeof plain / sizeof plain[0]];
    size_t n = sizeof plain / sizeof plain[0];

    memcpy(tests, plain, sizeof plain);
    for (size_t i = 0; i < OBJECT_ROWS; i++)
        tests[n++] = (struct CMUnitTest){.name = object_rows[i].name,
                                         .test_func = stored_objects_are_read_or_passed_by,
                                         .initial_state = (void *)(uintptr_t)&object_rows[i]};
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return _cmocka_run_group_tests("events", tests, n, NULL, NULL);
}
