/* The offset rules as a table: no store, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/fetch_int.h"

static void every_offset_has_one_meaning(void **state)
{
    (void)state;
    /* log start 100, high watermark 200, write head 250 */
    const struct jc_heads heads = {
        .first = 90, .log_start = 100, .content_end = 200, .write_head = 250};
    static const struct {
        int64_t offset;
        enum fetch_verdict verdict;
    } rows[] = {
        {INT64_MIN, FETCH_ERROR}, {-1, FETCH_ERROR},        {0, FETCH_ERROR},
        {99, FETCH_ERROR},        {100, FETCH_READ},        {199, FETCH_READ},
        {200, FETCH_NOTHING},     {249, FETCH_NOTHING},     {250, FETCH_NOTHING},
        {251, FETCH_ERROR},       {INT64_MAX, FETCH_ERROR},
    };
    for (int8_t isolation = 0; isolation < 2; isolation++) {
        struct fetch_ends ends;

        fetch_ends_of(&heads, isolation, &ends);
        assert_int_equal(ends.end, 200);
        assert_int_equal(ends.lso, 200);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const struct fetch_want want = {rows[i].offset, -1, -1};
            struct fetch_plan plan;

            fetch_plan(&want, 1, &ends, &plan);
            assert_int_equal(plan.verdict, rows[i].verdict);
            assert_int_equal(plan.error,
                             rows[i].verdict == FETCH_ERROR ? KE_OFFSET_OUT_OF_RANGE : KE_NONE);
        }
    }
}

static void above_a_head_that_settles_nothing_is_out_of_range_yet(void **state)
{
    (void)state;
    const struct jc_heads heads = {
        .log_start = 100, .content_end = 200, .write_head = 250, .settle = 1};
    const struct fetch_want above = {251, -1, -1}, below = {99, -1, -1}, within = {250, -1, -1};
    const struct fetch_want diverging = {251, -1, 4}, older = {251, -1, 3};
    struct fetch_ends ends;
    struct fetch_plan plan;

    fetch_ends_of(&heads, READ_UNCOMMITTED, &ends);
    fetch_plan(&above, 4, &ends, &plan);
    assert_int_equal(plan.error, KE_OFFSET_NOT_AVAILABLE);
    fetch_plan(&below, 4, &ends, &plan);
    assert_int_equal(plan.error, KE_OFFSET_OUT_OF_RANGE);
    fetch_plan(&within, 4, &ends, &plan);
    assert_int_equal(plan.verdict, FETCH_NOTHING);
    /* A head that may rise truncates nobody; the end of an older epoch is no head. */
    fetch_plan(&diverging, 4, &ends, &plan);
    assert_int_equal(plan.error, KE_OFFSET_NOT_AVAILABLE);
    fetch_plan(&older, 4, &ends, &plan);
    assert_int_equal(plan.verdict, FETCH_DIVERGED);
}

static void the_epoch_is_checked_before_the_offset(void **state)
{
    (void)state;
    const struct jc_heads heads = {.log_start = 0, .content_end = 10, .write_head = 10};
    const struct fetch_want old = {99, 1, -1}, newer = {-5, 3, -1};
    struct fetch_ends ends;
    struct fetch_plan plan;

    fetch_ends_of(&heads, READ_UNCOMMITTED, &ends);
    fetch_plan(&old, 2, &ends, &plan);
    assert_int_equal(plan.error, KE_FENCED_LEADER_EPOCH);
    fetch_plan(&newer, 2, &ends, &plan);
    assert_int_equal(plan.error, KE_UNKNOWN_LEADER_EPOCH);
}

static void divergence_is_told_only_where_offsets_part(void **state)
{
    (void)state;
    const struct jc_heads heads = {.log_start = 40, .content_end = 90, .write_head = 95};
    static const struct {
        int64_t offset;
        int32_t last;
        enum fetch_verdict verdict;
        int64_t end;
    } rows[] = {
        {50, 2, FETCH_READ, -1}, {92, 2, FETCH_DIVERGED, 90}, {50, 1, FETCH_DIVERGED, 40},
        {40, 1, FETCH_READ, -1}, {50, 3, FETCH_ERROR, -1},
    };
    struct fetch_ends ends;

    fetch_ends_of(&heads, READ_UNCOMMITTED, &ends);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct fetch_want want = {rows[i].offset, -1, rows[i].last};
        struct fetch_plan plan;

        fetch_plan(&want, 2, &ends, &plan);
        assert_int_equal(plan.verdict, rows[i].verdict);
        assert_int_equal(plan.diverging_end, rows[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_offset_has_one_meaning),
        cmocka_unit_test(above_a_head_that_settles_nothing_is_out_of_range_yet),
        cmocka_unit_test(the_epoch_is_checked_before_the_offset),
        cmocka_unit_test(divergence_is_told_only_where_offsets_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
