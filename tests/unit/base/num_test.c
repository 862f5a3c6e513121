/* Strict numbers, spans and the hash: small pure functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/span.h"

static void signed_numbers_reach_both_extremes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
        int64_t v;
    } rows[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"007", 0, 7},
        {"-42", 0, -42},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", E_RANGE, 0},
        {"-9223372036854775809", E_RANGE, 0},
        {"99999999999999999999999", E_RANGE, 0},
        {"", E_SYNTAX, 0},
        {"-", E_SYNTAX, 0},
        {"--1", E_SYNTAX, 0},
        {"+1", E_SYNTAX, 0},
        {" 1", E_SYNTAX, 0},
        {"1 ", E_SYNTAX, 0},
        {"1a", E_SYNTAX, 0},
        {"0x1", E_SYNTAX, 0},
        {"1.0", E_SYNTAX, 0},
        {"99999999999999999999999x", E_SYNTAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t v = 12345;
        assert_int_equal(num_parse_i64(span_str(rows[i].text), &v), rows[i].err);
        assert_true(v == (rows[i].err == 0 ? rows[i].v : 12345));
    }
}

static void unsigned_numbers_refuse_signs_and_overflow(void **state)
{
    (void)state;
    uint64_t v = 1;
    assert_int_equal(num_parse_u64(span_str("18446744073709551615"), &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(num_parse_u64(span_str("18446744073709551616"), &v), E_RANGE);
    assert_int_equal(num_parse_u64(span_str("184467440737095516150"), &v), E_RANGE);
    assert_int_equal(num_parse_u64(span_str("-1"), &v), E_SYNTAX);
    assert_int_equal(num_parse_u64((struct span){NULL, 0}, &v), E_SYNTAX);
    assert_int_equal(num_parse_u64(span_of("12\0", 3), &v), E_SYNTAX);
    assert_int_equal(num_parse_u64(span_of("1234", 2), &v), 0);
    assert_true(v == 12);
}

static void hex_is_lower_case_and_at_most_16_digits(void **state)
{
    (void)state;
    uint64_t v = 0;
    assert_int_equal(num_parse_hex(span_str("0"), &v), 0);
    assert_true(v == 0);
    assert_int_equal(num_parse_hex(span_str("00000000deadbeef"), &v), 0);
    assert_true(v == 0xdeadbeef);
    assert_int_equal(num_parse_hex(span_str("ffffffffffffffff"), &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(num_parse_hex(span_str(""), &v), E_SYNTAX);
    assert_int_equal(num_parse_hex(span_str("00000000000000000"), &v), E_SYNTAX);
    assert_int_equal(num_parse_hex(span_str("DEAD"), &v), E_SYNTAX);
    assert_int_equal(num_parse_hex(span_str("0x1"), &v), E_SYNTAX);
    assert_int_equal(num_parse_hex(span_str("1g"), &v), E_SYNTAX);
    assert_true(v == UINT64_MAX);
}

static void hex16_and_parse_hex_are_inverse(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 0xf0, UINT64_C(0x0123456789abcdef), UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[17];
        uint64_t back = 1;
        num_hex16(values[i], text);
        assert_int_equal(num_parse_hex(span_str(text), &back), 0);
        assert_true(back == values[i]);
    }
    char text[17];
    num_hex16(0xabc, text);
    assert_string_equal(text, "0000000000000abc");
}

static void byte_sizes_know_decimal_and_binary_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
        uint64_t v;
    } rows[] = {
        {"0", 0, 0},
        {"17B", 0, 17},
        {"64KiB", 0, 65536},
        {"10MB", 0, 10000000},
        {"10KB", 0, 10000},
        {"2MiB", 0, 2097152},
        {"1GiB", 0, 1073741824},
        {"3GB", 0, 3000000000},
        {"1TB", 0, UINT64_C(1000000000000)},
        {"1TiB", 0, UINT64_C(1099511627776)},
        {"16777215TiB", 0, UINT64_C(16777215) << 40},
        {"16777216TiB", E_RANGE, 0},
        {"18446744073709551616", E_RANGE, 0},
        {"", E_SYNTAX, 0},
        {"KiB", E_SYNTAX, 0},
        {"1kib", E_SYNTAX, 0},
        {"1 KiB", E_SYNTAX, 0},
        {"-1KiB", E_SYNTAX, 0},
        {"1.5GiB", E_SYNTAX, 0},
        {"1KiBx", E_SYNTAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t v = 99;
        assert_int_equal(num_parse_bytes(span_str(rows[i].text), &v), rows[i].err);
        assert_true(v == (rows[i].err == 0 ? rows[i].v : 99));
    }
}

static void durations_are_milliseconds_without_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int err;
        int64_t v;
    } rows[] = {
        {"250", 0, 250},
        {"500ms", 0, 500},
        {"10s", 0, 10000},
        {"5m", 0, 300000},
        {"1h", 0, 3600000},
        {"7d", 0, 604800000},
        {"9223372036854775807", 0, INT64_MAX},
        {"9223372036854775808", E_RANGE, 0},
        {"9999999999999999d", E_RANGE, 0},
        {"-1s", E_SYNTAX, 0},
        {"1w", E_SYNTAX, 0},
        {"s", E_SYNTAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t v = 99;
        assert_int_equal(num_parse_ms(span_str(rows[i].text), &v), rows[i].err);
        assert_true(v == (rows[i].err == 0 ? rows[i].v : 99));
    }
}

static void guarded_sums_and_products_report_overflow(void **state)
{
    (void)state;
    size_t v;
    assert_true(num_add_size(SIZE_MAX - 1, 1, &v));
    assert_true(v == SIZE_MAX);
    assert_false(num_add_size(SIZE_MAX, 1, &v));
    assert_true(num_mul_size(SIZE_MAX / 2, 2, &v));
    assert_false(num_mul_size(SIZE_MAX / 2, 3, &v));
}

static void spans_order_like_memcmp_and_shorter_first(void **state)
{
    (void)state;
    assert_int_equal(span_cmp(span_str("a"), span_str("b")), -1);
    assert_int_equal(span_cmp(span_str("b"), span_str("ab")), 1);
    assert_int_equal(span_cmp(span_str("ab"), span_str("abc")), -1);
    assert_int_equal(span_cmp(span_str("abc"), span_str("ab")), 1);
    assert_int_equal(span_cmp(span_str("ab"), span_str("ab")), 0);
    assert_int_equal(span_cmp(span_str("\x7f"), span_str("\x80")), -1);
    assert_int_equal(span_cmp(span_str(NULL), span_str("")), 0);
    assert_int_equal(span_cmp(span_str(NULL), span_str("x")), -1);
}

static void spans_compare_with_text_and_prefixes(void **state)
{
    (void)state;
    assert_true(span_eq_str(span_str("topic"), "topic"));
    assert_false(span_eq_str(span_str("topic"), "topics"));
    assert_false(span_eq_str(span_str("topic"), "topix"));
    assert_true(span_eq(span_str(NULL), span_str("")));
    assert_true(span_has_prefix(span_str("abc"), span_str("ab")));
    assert_true(span_has_prefix(span_str("abc"), span_str("")));
    assert_false(span_has_prefix(span_str("ab"), span_str("abc")));
    assert_false(span_has_prefix(span_str("abc"), span_str("b")));
}

/* Computed apart, with big integers in Python: the routing of stored documents depends on them. */
static void hashes_never_change(void **state)
{
    (void)state;
    assert_true(hash_bytes(span_str(""), 0) == UINT64_C(0xefd01f60ba992926));
    assert_true(hash_bytes(span_str("a"), 0) == UINT64_C(0x82a2a958a9bece5b));
    assert_true(hash_bytes(span_str("sluice"), 42) == UINT64_C(0xd67e1617117e9028));
    assert_true(hash_bytes(span_str(NULL), 0) == hash_bytes(span_str(""), 0));
    assert_true(hash_bytes(span_str("ab"), 0) != hash_bytes(span_str("ba"), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_numbers_reach_both_extremes),
        cmocka_unit_test(unsigned_numbers_refuse_signs_and_overflow),
        cmocka_unit_test(hex_is_lower_case_and_at_most_16_digits),
        cmocka_unit_test(hex16_and_parse_hex_are_inverse),
        cmocka_unit_test(byte_sizes_know_decimal_and_binary_units),
        cmocka_unit_test(durations_are_milliseconds_without_a_unit),
        cmocka_unit_test(guarded_sums_and_products_report_overflow),
        cmocka_unit_test(spans_order_like_memcmp_and_shorter_first),
        cmocka_unit_test(spans_compare_with_text_and_prefixes),
        cmocka_unit_test(hashes_never_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
