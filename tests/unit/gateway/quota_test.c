/* A task's rate. What it does to a connection is tested by tests/integration/test_auth.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "gateway/quota.h"

static void a_second_is_free_and_then_the_rate_holds(void **state)
{
    struct quotas *q;
    struct span a = span_str("a");

    (void)state;
    assert_int_equal(quotas_new(1000, &q), 0);
    assert_int_equal(quota_take(q, a, 1000, 5000), 0);
    assert_int_equal(quota_take(q, a, 1, 5000), 1);
    assert_int_equal(quota_take(q, a, 999, 5000), 1000);
    assert_int_equal(quota_take(q, a, 0, 5400), 600);
    assert_int_equal(quota_take(q, a, 0, 6000), 0);
    assert_int_equal(quota_take(q, span_str("b"), 1000, 6000), 0); /* each has its own */
    assert_int_equal(quota_take(q, a, 500, 6000), 500);
    quotas_free(q);
}

static void a_debt_is_waited_for_in_parts(void **state)
{
    struct quotas *q;
    struct span a = span_str("a");

    (void)state;
    assert_int_equal(quotas_new(1000, &q), 0);
    assert_int_equal(quota_take(q, a, 101000, 0), QUOTA_THROTTLE_MAX_MS);
    assert_int_equal(quota_take(q, a, 0, 90000), 10000);
    assert_int_equal(quota_take(q, a, 0, 100000), 0);
    assert_int_equal(quota_take(q, a, SIZE_MAX / 1000000, 0), QUOTA_THROTTLE_MAX_MS);
    quotas_free(q);
}

static void many_tasks_that_went_quiet_take_no_memory(void **state)
{
    struct quotas *q;
    char name[16];

    (void)state;
    assert_int_equal(quotas_new(1000, &q), 0);
    for (int i = 0; i < 100000; i++) {
        int n = snprintf(name, sizeof name, "%d", i);
        assert_int_equal(quota_take(q, span_of(name, (size_t)n), 10, i), 0);
    }
    quotas_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_is_free_and_then_the_rate_holds),
        cmocka_unit_test(a_debt_is_waited_for_in_parts),
        cmocka_unit_test(many_tasks_that_went_quiet_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
