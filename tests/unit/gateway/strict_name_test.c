/* Strict topic names: one form for each name, and the ways in which clients may write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/strict_name.h"

static void every_byte_but_letters_and_digits_is_encoded(void **state)
{
    static const char *const all[][2] = {
        {"orders", "orders"},
        {"a/b-c", "a.2Fb.2Dc"},
        {"orders.v1", "orders.2Ev1"},
        {"\xc3\xbc", ".C3.BC"},
        {"", ""},
        {".", ".2E"},
    };
    char out[100];

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        gw_strict_name(span_str(all[i][0]), out);
        assert_string_equal(out, all[i][1]);
        assert_true(gw_strict_name_of(span_str(all[i][1]), out));
        assert_string_equal(out, all[i][1]);
    }
}

static void other_ways_to_write_a_name_come_to_its_form(void **state)
{
    char out[100];

    (void)state;
    assert_true(gw_strict_name_of(span_str("a.2fb"), out));
    assert_string_equal(out, "a.2Fb");
    assert_true(gw_strict_name_of(span_str("a/b"), out));
    assert_string_equal(out, "a.2Fb");
    assert_true(gw_strict_name_of(span_str(".61.2Fb"), out));
    assert_string_equal(out, "a.2Fb");
}

static void what_is_cut_or_no_escape_is_no_name(void **state)
{
    static const char *const bad[] = {"a.2", "a.", ".", "orders.v1", "a.2Gb", "a.G2b"};
    char out[100];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(gw_strict_name_of(span_str(bad[i]), out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_but_letters_and_digits_is_encoded),
        cmocka_unit_test(other_ways_to_write_a_name_come_to_its_form),
        cmocka_unit_test(what_is_cut_or_no_escape_is_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
