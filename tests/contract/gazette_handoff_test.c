/*
 * A journal goes to another broker while it is read and written: the new one has not listed the
 * store yet, so it knows less than was told. What must hold: heads stay what they were and are told
 * as unsure until the primary was heard (O5, O8), and nothing is lost or doubled.
 */
#include "tests/contract/gazette_bench.h"

/* Heads that are sure, or that are not; what they say stays. */
static void wait_sure(struct bench *b, bool sure)
{
    while (b->heads.write_head == 0 || jc_heads_settling(&b->heads) == sure)
        assert_true(mailbox_wait(&b->lab.mb, LAB_WAIT_MS) > 0);
    assert_int_equal(b->heads.content_end, (int64_t)b->docs * BENCH_DOC);
    assert_int_equal(b->heads.life, 0);
    assert_false(b->went_back);
}

/* 1,000 documents in stored fragments that nobody lists by itself. */
static void start(struct bench *b)
{
    b->o = (struct jc_gazette_opts){.fragment_store = "file:///", .fragment_bytes = 30000};
    b->so = (struct stand_in_opts){.listing_lag_ms = -1};
    bench_start(b);
    bench_follow(b);
    for (int i = 0; i < 20; i++)
        assert_int_equal(bench_append(b, 50), 0);
    bench_expect_head(b);
    wait_sure(b, true);
    assert_int_equal(stand_in_close_fragments(b->si, BENCH_JOURNAL), 0);
}

/* Reads know less, ListFragments and Append wait. For a gateway that runs, for one that comes back
 * to its data, and for one that has none. */
static void before_the_store_was_listed_nothing_is_taken_back(void **state)
{
    struct bench b = {0};

    (void)state;
    start(&b);
    assert_int_equal(stand_in_hide_stored(b.si, BENCH_JOURNAL, 2000), 0);
    stand_in_end_calls(b.si, STAND_IN_READ, STAND_IN_END, 0);
    wait_sure(&b, false);
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_head(&b);
    wait_sure(&b, true);
    bench_expect_stream(&b);
    bench_expect_blocks(&b);

    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    bench_close(&b);
    assert_int_equal(stand_in_hide_stored(b.si, BENCH_JOURNAL, 3000), 0);
    b.opened--;
    bench_reopen(&b);
    bench_follow(&b);
    wait_sure(&b, false);
    wait_sure(&b, true);

    assert_int_equal(stand_in_hide_stored(b.si, BENCH_JOURNAL, 700), 0);
    bench_reopen(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 50), 0);
    bench_expect_head(&b);
    wait_sure(&b, true);
    bench_expect_stream(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

/* The first question is answered with "not the primary", the next one with nothing: heads become
 * unsure when the grace of a break is over, however the question fares. */
static void heads_become_unsure_while_a_question_hangs(void **state)
{
    const struct stand_in_fault wrong = {
        .kind = STAND_IN_STATUS, .method = STAND_IN_APPEND, .value = 3};
    const struct stand_in_fault mute = {
        .kind = STAND_IN_HANG, .method = STAND_IN_APPEND, .times = -1};
    struct bench b = {0};

    (void)state;
    start(&b);
    assert_int_equal(stand_in_fault(b.si, &wrong), 0);
    assert_int_equal(stand_in_fault(b.si, &mute), 0);
    stand_in_end_calls(b.si, STAND_IN_READ, STAND_IN_END, 0);
    int64_t t0 = clock_mono_ms(clock_system());
    wait_sure(&b, false);
    assert_true(clock_mono_ms(clock_system()) - t0 < 5000); /* a question takes 15 s */
    stand_in_calm(b.si);
    stand_in_end_calls(b.si, STAND_IN_APPEND, STAND_IN_RESET_STREAM, 0);
    wait_sure(&b, true);
    assert_int_equal(bench_append(&b, 1), 0);
    bench_expect_head(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_store_was_listed_nothing_is_taken_back),
        cmocka_unit_test(heads_become_unsure_while_a_question_hangs),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
