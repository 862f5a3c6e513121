/*
 * The distributed store under a broker that misbehaves while it is written to: whether an append
 * landed is not to be seen from its end, so each fault is tried with the content stored and with it
 * not. What is stored must be each document once; the answer must be that it is.
 */
#include "tests/contract/gazette_bench.h"

#define CALLS_MAX 40

struct row {
    const char *name;
    struct stand_in_fault f;
};

#define APPEND(k, v, a, l)                                                                         \
    {                                                                                              \
        .kind = STAND_IN_##k, .method = STAND_IN_APPEND, .value = (v), .after = (a),               \
        .landed = (l), .times = 2                                                                  \
    }

static const struct row rows[] = {
    {"append: slow", APPEND(SLOW, 300, 0, false)},
    {"append: stream reset before content", APPEND(RESET_STREAM, 0, 0, false)},
    {"append: stream reset within content", APPEND(RESET_STREAM, 0, 10000, false)},
    {"append: stream reset, stored", APPEND(RESET_STREAM, 0, 0, true)},
    {"append: connection reset before content", APPEND(RESET_CONN, 0, 0, false)},
    {"append: connection reset within content", APPEND(RESET_CONN, 0, 10000, false)},
    {"append: connection reset, stored", APPEND(RESET_CONN, 0, 0, true)},
    {"append: goaway", APPEND(GOAWAY, 0, 0, false)},
    {"append: goaway and closed", APPEND(GOAWAY, 1, 0, false)},
    {"append: goaway and closed, stored", APPEND(GOAWAY, 1, 0, true)},
    {"append: ends without an answer", APPEND(END, 0, 0, false)},
    {"append: ends without an answer, stored", APPEND(END, 0, 0, true)},
    {"append: half an answer, stored", APPEND(HALF, 0, 0, false)},
    {"append: half an answer and closed, stored", APPEND(HALF, 2, 0, false)},
    {"append: grpc unknown", APPEND(GRPC, 2, 0, false)},
    {"append: grpc unknown, stored", APPEND(GRPC, 2, 0, true)},
    {"append: grpc unavailable, stored", APPEND(GRPC, 14, 0, true)},
    {"append: grpc exhausted", APPEND(GRPC, 8, 0, false)},
    {"append: grpc exhausted, stored", APPEND(GRPC, 8, 0, true)},
    {"append: no primary", APPEND(STATUS, 2, 0, false)},
    {"append: not the primary", APPEND(STATUS, 3, 0, false)},
    {"append: insufficient brokers", APPEND(STATUS, 4, 0, false)},
    {"append: wrong offset, says the answer", APPEND(STATUS, 11, 0, false)},
    {"append: store unhealthy", APPEND(STATUS, 15, 0, false)},
    {"append: journal not found", APPEND(STATUS, 1, 0, false)},
    {"read back is reset", {.kind = STAND_IN_RESET_STREAM, .method = STAND_IN_READ, .times = 4}},
};

#define ROWS (sizeof rows / sizeof rows[0])

static void each_document_is_stored_once(void **state)
{
    const struct row *row = *state;
    struct bench b = {0};

    bench_start(&b);
    bench_follow(&b);
    for (int round = 0; round < 3; round++) { /* an empty journal first: no offset can be said */
        uint64_t calls = stand_in_calls(b.si, STAND_IN_APPEND);
        assert_int_equal(stand_in_fault(b.si, &row->f), 0);
        assert_int_equal(bench_append(&b, 100), 0);
        assert_int_equal(bench_append(&b, 1), 0);
        bench_expect_stored(&b);
        bench_expect_head(&b);
        assert_true(stand_in_calls(b.si, STAND_IN_APPEND) - calls < CALLS_MAX);
        stand_in_calm(b.si);
    }
    bench_expect_stream(&b);
    bench_end(&b);
}

/* After a hand-off the broker that answers a Read may know less than the primary: what landed
 * unseen must not be taken for gone on its word, and be stored again. */
static void a_replica_that_knows_less_settles_no_doubt(void **state)
{
    const struct stand_in_fault lost = {
        .kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPEND, .landed = true};
    const struct stand_in_fault low = {
        .kind = STAND_IN_LOWER_HEAD, .method = STAND_IN_READ, .value = 3000, .times = 3};

    (void)state;
    for (int followed = 0; followed < 2; followed++) {
        struct bench b = {0};
        bench_start(&b);
        if (followed == 1)
            bench_follow(&b);
        assert_int_equal(bench_append(&b, 10), 0);
        if (followed == 1)
            bench_expect_head(&b);
        assert_int_equal(stand_in_fault(b.si, &lost), 0);
        assert_int_equal(stand_in_fault(b.si, &low), 0);
        assert_int_equal(bench_append(&b, 10), 0);
        bench_expect_stored(&b);
        bench_end(&b);
    }
}

/* The answer of the first call is lost, and reading back what happened fails too for a while. */
static void doubt_is_settled_when_reads_come_back(void **state)
{
    const struct stand_in_fault lost = {
        .kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPEND, .landed = true};
    const struct stand_in_fault blind = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_READ, .value = 14, .times = 5};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 10), 0);
    assert_int_equal(stand_in_fault(b.si, &lost), 0);
    assert_int_equal(stand_in_fault(b.si, &blind), 0);
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_stored(&b);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* Every broker was down: appends are refused with status 12 until somebody resets the head. */
static void a_head_that_was_lost_is_reset_and_appends_go_on(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}, .so = {.listing_lag_ms = -1}};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 50), 0);
    assert_int_equal(bench_append(&b, 50), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_all_down(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_stored(&b);
    bench_expect_head(&b);
    bench_expect_stream(&b);

    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_all_down(b.si, BENCH_JOURNAL), 0);
    bench_reopen(&b); /* and by one that never saw it */
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_stored(&b);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* An append of somebody else lies where ours was to go: ours goes behind it. */
static void an_append_of_others_in_between_is_kept(void **state)
{
    struct bench b = {0}, other;

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 5), 0);
    other = (struct bench){.si = b.si, .docs = b.docs};
    assert_int_equal(temp_dir_make(other.dir, sizeof other.dir), 0);
    bench_open(&other);
    for (int i = 0; i < 100 && other.j == NULL; i++) {
        other.j = lab_find(&other.lab, BENCH_JOURNAL);
        lab_settle(&other.lab, 20);
    }
    assert_non_null(other.j);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(bench_append(&other, 3), 0);
        b.docs = other.docs;
        assert_int_equal(bench_append(&b, 2), 0);
        other.docs = b.docs;
    }
    bench_expect_stored(&b);
    bench_expect_stream(&b);
    bench_expect_stream(&other);
    bench_close(&other);
    temp_dir_remove(other.dir);
    bench_end(&b);
}

/* After a hand-off a replica may tell a head that the primary refuses, for as long as it likes. */
static void a_head_that_is_refused_again_and_again_is_asked_for_ever_more_slowly(void **state)
{
    const struct stand_in_fault wrong = {
        .kind = STAND_IN_STATUS, .method = STAND_IN_APPEND, .value = 11, .times = -1};
    struct lab_done d = {0};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 1), 0);
    struct jc_append_part part = {.journal = b.j, .bytes = blob_copy(span_str("C9:refused\n"))};
    struct jc_txn txn = {.parts = &part, .parts_n = 1};
    assert_non_null(part.bytes);
    assert_int_equal(stand_in_fault(b.si, &wrong), 0);
    uint64_t before = stand_in_calls(b.si, STAND_IN_APPEND);
    assert_int_equal(b.lab.s->ops->append(b.lab.s, &txn, &b.lab.mb.ex, lab_on_txn, &d), 0);
    lab_settle(&b.lab, 2000);
    assert_false(d.done);
    uint64_t calls = stand_in_calls(b.si, STAND_IN_APPEND) - before;
    assert_true(calls >= 2);
    assert_true(calls < CALLS_MAX);
    stand_in_calm(b.si);
    lab_wait(&b.lab, &d.done);
    assert_int_equal(d.err, 0);
    assert_int_equal(part.begin, BENCH_DOC);
    blob_unref(part.bytes);
    bench_end(&b);
}

/* A lost answer to Apply: the change was made. Asked again with the old revision it must not look
 * as if somebody else had won. */
static void a_lost_answer_of_apply_is_an_error_or_success_and_never_twice(void **state)
{
    static const struct stand_in_fault faults[] = {
        {.kind = STAND_IN_RESET_STREAM, .method = STAND_IN_APPLY, .landed = true},
        {.kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPLY, .landed = true},
        {.kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPLY},
        {.kind = STAND_IN_GRPC, .method = STAND_IN_APPLY, .value = 14},
        {.kind = STAND_IN_HALF, .method = STAND_IN_APPLY},
    };
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "bench/applied/part-%03zu", i);
        const struct jc_spec spec = {.name = name};
        const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
        assert_int_equal(stand_in_fault(b.si, &faults[i]), 0);
        int err = lab_apply(&b.lab, &c, 1, NULL);
        const struct jc_journal *j = lab_find(&b.lab, name);
        for (int k = 0; k < 100 && j == NULL && (err == 0 || faults[i].landed); k++) {
            lab_settle(&b.lab, 20);
            j = lab_find(&b.lab, name);
        }
        if (err == 0)
            assert_non_null(j);
        else
            assert_true(err == E_CONFLICT || err == E_IO || err == E_AGAIN);
        jc_journal_unref(j);
        stand_in_calm(b.si);
    }
    bench_end(&b);
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 6];
    size_t n = 0;

    for (; n < ROWS; n++)
        tests[n] = (struct CMUnitTest){.name = rows[n].name,
                                       .test_func = each_document_is_stored_once,
                                       .initial_state = (void *)(uintptr_t)&rows[n]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(doubt_is_settled_when_reads_come_back);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_replica_that_knows_less_settles_no_doubt);
    tests[n++] =
        (struct CMUnitTest)cmocka_unit_test(a_head_that_was_lost_is_reset_and_appends_go_on);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(an_append_of_others_in_between_is_kept);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(
        a_head_that_is_refused_again_and_again_is_asked_for_ever_more_slowly);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(
        a_lost_answer_of_apply_is_an_error_or_success_and_never_twice);
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return _cmocka_run_group_tests("faults of appends", tests, n, NULL, NULL);
}
