/*
 * Tokens for brokers over time: clocks that are set, and refusals that a new token mends. The
 * stand-in judges them by the real clock.
 */
#include "tests/contract/gazette_bench.h"

#include <stdatomic.h>

#define KEY "c2VjcmV0LW9mLXRoZS1sYWI="

static _Atomic int64_t shift_s;

static int64_t shifted_wall_ns(void *arg)
{
    (void)arg;
    return clock_wall_ns(clock_system()) + atomic_load(&shift_s) * 1000000000;
}

static int64_t real_mono_ms(void *arg)
{
    (void)arg;
    return clock_mono_ms(clock_system());
}

static const struct clock shifted = {.wall_ns = shifted_wall_ns, .mono_ms = real_mono_ms};

/* Started an hour ahead, set back later: what was signed before is from the future. */
static void a_clock_that_is_set_back_costs_no_hour(void **state)
{
    struct bench b = {.so = {.auth_keys = KEY}, .o = {.auth_keys = KEY, .clock = &shifted}};
    const struct jc_spec spec = {.name = BENCH_JOURNAL};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    struct lab_done d = {0};

    (void)state;
    assert_int_equal(temp_dir_make(b.dir, sizeof b.dir), 0);
    assert_int_equal(stand_in_start(&b.so, &b.si), 0);
    atomic_store(&shift_s, 3600);
    bench_open(&b);
    assert_int_equal(b.lab.s->ops->apply(b.lab.s, &c, 1, &b.lab.mb.ex, lab_on_apply, &d), 0);
    while (stand_in_calls(b.si, STAND_IN_LIST) == 0)
        lab_settle(&b.lab, 20);
    lab_settle(&b.lab, 200);
    assert_false(d.done);
    atomic_store(&shift_s, 0);
    lab_wait(&b.lab, &d.done);
    assert_int_equal(d.err, 0);
    b.j = lab_find(&b.lab, BENCH_JOURNAL);
    assert_int_equal(bench_append(&b, 3), 0);
    bench_expect_stream(&b);
    bench_end(&b);
}

static void a_refused_write_is_tried_once_more_with_a_new_token(void **state)
{
    static const struct stand_in_fault append = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_APPEND, .value = 16};
    static const struct stand_in_fault apply = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_APPLY, .value = 16};
    const struct jc_spec spec = {.name = "bench/other/part-000"};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    struct bench b = {.so = {.auth_keys = KEY}, .o = {.auth_keys = KEY}};

    (void)state;
    bench_start(&b);
    for (int i = 0; i < 2; i++) { /* of each part and each change, not of all time */
        assert_int_equal(stand_in_fault(b.si, &append), 0);
        assert_int_equal(bench_append(&b, 2), 0);
        assert_int_equal(stand_in_hits(b.si), 2 * i + 1);
        assert_int_equal(stand_in_fault(b.si, &apply), 0);
        assert_int_equal(lab_apply(&b.lab, &c, 1, NULL), i == 0 ? 0 : E_CONFLICT);
        assert_int_equal(stand_in_hits(b.si), 2 * i + 2);
    }
    bench_expect_stored(&b);
    bench_end(&b);
}

/* Who may not, may not: it is said at once. */
static void a_refusal_that_stands_is_an_error_at_once(void **state)
{
    static const struct stand_in_fault append = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_APPEND, .value = 7, .times = -1};
    static const struct stand_in_fault apply = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_APPLY, .value = 7, .times = -1};
    const struct jc_spec spec = {.name = "bench/other/part-000"};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    struct bench b = {.so = {.auth_keys = KEY}, .o = {.auth_keys = KEY}};

    (void)state;
    bench_start(&b);
    assert_int_equal(stand_in_fault(b.si, &append), 0);
    assert_int_equal(stand_in_fault(b.si, &apply), 0);
    assert_int_equal(bench_append(&b, 1), E_DENIED);
    uint64_t calls = stand_in_calls(b.si, STAND_IN_APPLY);
    assert_int_equal(lab_apply(&b.lab, &c, 1, NULL), E_DENIED);
    assert_int_equal(stand_in_calls(b.si, STAND_IN_APPLY) - calls, 2);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_is_set_back_costs_no_hour),
        cmocka_unit_test(a_refused_write_is_tried_once_more_with_a_new_token),
        cmocka_unit_test(a_refusal_that_stands_is_an_error_at_once),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
