/* UUIDs and Gazette clocks: fixed vectors, exact inverses, refused text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal_client/uuid.h"

static const struct {
    uint64_t clock;
    uint16_t flags;
    const char *text;
} vectors[] = {
    {0x1122334455667788, 2, "45566778-2334-1112-a002-010000000001"},
    {0x1f1865219aa68871, 2, "19aa6887-8652-11f1-8402-010000000001"},
    {0x1f1865219aa68871, 0, "19aa6887-8652-11f1-8400-010000000001"},
    {0x1f1865219aa68871, 1, "19aa6887-8652-11f1-8401-010000000001"},
    {0x1f1865219aa68861, 1, "19aa6886-8652-11f1-8401-010000000001"},
    {0x1f1865a7b5bfa000, 2, "7b5bfa00-865a-11f1-8002-010000000001"},
};

static void known_uuids_parse_and_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct jc_uuid u;
        char out[JC_UUID_TEXT];
        assert_int_equal(jc_uuid_parse(span_str(vectors[i].text), &u), 0);
        assert_true(u.clock == vectors[i].clock);
        assert_int_equal(u.flags, vectors[i].flags);
        assert_memory_equal(u.producer, "\1\0\0\0\0\1", 6);
        jc_uuid_format(&u, out);
        assert_memory_equal(out, vectors[i].text, JC_UUID_TEXT);
    }
}

static void any_uuid_survives_the_round_trip(void **state)
{
    uint64_t x = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct jc_uuid u, back;
        char out[JC_UUID_TEXT];
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        u.clock = x;
        u.flags = (uint16_t)(x >> 20 & 0x3ff);
        for (size_t k = 0; k < 6; k++)
            u.producer[k] = (uint8_t)(x >> (k * 9));
        jc_uuid_format(&u, out);
        assert_int_equal(jc_uuid_parse(span_of(out, sizeof out), &back), 0);
        assert_true(back.clock == u.clock && back.flags == u.flags);
        assert_memory_equal(back.producer, u.producer, 6);
    }
}

static void text_that_is_no_v1_uuid_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "19aa6887-8652-11f1-8402-01000000000",
        "19aa6887-8652-11f1-8402-0100000000012",
        "19aa6887x8652-11f1-8402-010000000001",
        "19aa6887-8652-41f1-8402-010000000001", /* version 4 */
        "19aa6887-8652-11f1-0402-010000000001", /* variant */
        "19aa6887-8652-11f1-c402-010000000001",
        "g9aa6887-8652-11f1-8402-010000000001",
        "19aa688-78652-11f1-8402-010000000001",
    };
    struct jc_uuid u;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(jc_uuid_parse(span_str(bad[i]), &u), E_SYNTAX);
    assert_int_equal(jc_uuid_parse(span_str("19AA6887-8652-11F1-8402-01000000000A"), &u), 0);
}

static void content_is_told_by_mask(void **state)
{
    (void)state;
    assert_true(jc_flags_content(0) && jc_flags_content(1) && jc_flags_content(3));
    assert_true(jc_flags_content(0x3f8) && jc_flags_content(0x3f9));
    assert_false(jc_flags_content(2) || jc_flags_content(4) || jc_flags_content(6));
    assert_false(jc_flags_content(0x3fa) || jc_flags_content(5));
}

static void clocks_and_unix_time_agree(void **state)
{
    uint64_t c;

    (void)state;
    assert_int_equal(jc_clock_unix_ms(0x1b21dd2138140000), 0);
    assert_int_equal(jc_clock_unix_ms(0x1b21dd213813ffff), -1); /* rounded down */
    assert_int_equal(jc_clock_unix_ms(0x1ee833b04afc0000), 1700000000000);
    assert_int_equal(jc_clock_unix_ms(0x1f1ee147f4558f10), 1796190722720);
    assert_int_equal(jc_clock_unix_ms(0), -1);
    assert_int_equal(jc_clock_from_unix_ns(1700000000000000000, &c), 0);
    assert_true(c == 0x1ee833b04afc0000);
    assert_int_equal(jc_clock_from_unix_ns(-1, &c), 0);
    assert_true(c == 0x1b21dd213813fff0);
    assert_int_equal(jc_clock_from_unix_ns(INT64_MIN, &c), 0);
    assert_int_equal(jc_clock_from_unix_ns(INT64_MAX, &c), 0);
}

static void a_time_bound_is_the_smallest_clock_that_reaches_it(void **state)
{
    static const int64_t times[] = {0, 1, 999, 1700000000123, 1796190722720, 4102444800000};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        uint64_t c = jc_clock_from_unix_ms(times[i]);
        assert_int_equal(jc_clock_unix_ms(c), times[i]);
        assert_int_equal(jc_clock_unix_ms(c - 1), times[i] - 1);
    }
    assert_true(jc_clock_from_unix_ms(-1) == 0); /* documents without a clock read as -1 */
    assert_true(jc_clock_from_unix_ms(INT64_MIN) == 0);
    assert_true(jc_clock_from_unix_ms(INT64_MAX) == UINT64_MAX);
}

static void label_clocks_are_sixteen_lower_case_digits(void **state)
{
    uint64_t c = 7;

    (void)state;
    assert_int_equal(jc_clock_parse_hex(span_str("1f1865219aa68871"), &c), 0);
    assert_true(c == 0x1f1865219aa68871);
    c = 7;
    static const char *const bad[] = {"",
                                      "1f1865219aa6887",
                                      "1f1865219aa688711",
                                      "1F1865219AA68871",
                                      "0x1865219aa68871",
                                      "1f1865219aa6887 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(jc_clock_parse_hex(span_str(bad[i]), &c), E_SYNTAX);
    assert_true(c == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_uuids_parse_and_print),
        cmocka_unit_test(any_uuid_survives_the_round_trip),
        cmocka_unit_test(text_that_is_no_v1_uuid_is_refused),
        cmocka_unit_test(content_is_told_by_mask),
        cmocka_unit_test(clocks_and_unix_time_agree),
        cmocka_unit_test(a_time_bound_is_the_smallest_clock_that_reaches_it),
        cmocka_unit_test(label_clocks_are_sixteen_lower_case_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
