/* One reading a transaction, never back, carries into the timestamp. Readings are injected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal_client/txn_clock.h"
#include "journal_client/uuid.h"

static int64_t reading_ns;
static unsigned readings;

static int64_t wall(void *arg)
{
    (void)arg;
    readings++;
    return reading_ns;
}

static int64_t mono(void *arg)
{
    (void)arg;
    fail_msg("the monotonic clock stamps nothing");
    return 0;
}

static const struct clock injected = {wall, mono, NULL};

static uint64_t clock_of(int64_t ns)
{
    uint64_t c;

    assert_int_equal(jc_clock_from_unix_ns(ns, &c), 0);
    return c;
}

static void a_transaction_reads_the_clock_once(void **state)
{
    struct jc_txn_clock c;

    (void)state;
    readings = 0;
    reading_ns = 1700000000000000000;
    jc_txn_clock_init(&c, &injected, 0);
    assert_true(jc_txn_clock_begin(&c) == clock_of(reading_ns));
    for (int i = 0; i < 1000; i++)
        (void)jc_txn_clock_tick(&c);
    assert_int_equal(readings, 1);
    assert_int_equal(c.reads, 1);
}

static void ticks_carry_into_the_timestamp_without_a_reading(void **state)
{
    struct jc_txn_clock c;
    uint64_t first;

    (void)state;
    reading_ns = 1700000000000000000;
    jc_txn_clock_init(&c, &injected, 0);
    first = jc_txn_clock_begin(&c);
    readings = 0;
    for (uint64_t i = 1; i <= 40; i++)
        assert_true(jc_txn_clock_tick(&c) == first + i);
    assert_true(c.last >> 4 == (first >> 4) + 2); /* two carries of the 4-bit counter */
    assert_int_equal(readings, 0);
}

static void the_same_reading_or_an_earlier_one_goes_on_by_one(void **state)
{
    struct jc_txn_clock c;
    uint64_t a, b;

    (void)state;
    jc_txn_clock_init(&c, &injected, 0);
    reading_ns = 1000000000;
    a = jc_txn_clock_begin(&c);
    b = jc_txn_clock_begin(&c);
    assert_true(b == a + 1);
    reading_ns = 999000000; /* a step back */
    assert_true(jc_txn_clock_begin(&c) == a + 2);
    reading_ns = 1000000100;
    assert_true(jc_txn_clock_begin(&c) == clock_of(1000000100));
}

static void a_clock_seen_in_the_store_is_never_repeated(void **state)
{
    struct jc_txn_clock c;
    uint64_t ahead = clock_of(5000000000);

    (void)state;
    reading_ns = 1000000000;
    jc_txn_clock_init(&c, &injected, 0);
    jc_txn_clock_observe(&c, ahead);
    jc_txn_clock_observe(&c, 1);
    assert_true(jc_txn_clock_begin(&c) == ahead + 1);
    jc_txn_clock_init(&c, &injected, ahead + 7);
    assert_true(jc_txn_clock_begin(&c) == ahead + 8);
}

static void the_highest_clock_does_not_wrap(void **state)
{
    struct jc_txn_clock c;

    (void)state;
    jc_txn_clock_init(&c, &injected, UINT64_MAX);
    assert_true(jc_txn_clock_begin(&c) == UINT64_MAX);
    assert_true(jc_txn_clock_tick(&c) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_reads_the_clock_once),
        cmocka_unit_test(ticks_carry_into_the_timestamp_without_a_reading),
        cmocka_unit_test(the_same_reading_or_an_earlier_one_goes_on_by_one),
        cmocka_unit_test(a_clock_seen_in_the_store_is_never_repeated),
        cmocka_unit_test(the_highest_clock_does_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
