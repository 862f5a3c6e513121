/* What counts as a text: RFC 3629, section 4's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

#define TEXT(s) utf8_is_text(span_of((const uint8_t *)(s), sizeof(s) - 1))

static void well_formed_sequences_of_each_length_are_text(void **state)
{
    (void)state;
    assert_true(utf8_is_text((struct span){NULL, 0}));
    assert_true(TEXT(""));
    assert_true(TEXT("orders-1 \t\x7f"));
    assert_true(TEXT("\xc2\x80\xdf\xbf"));
    assert_true(TEXT("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"));
    assert_true(TEXT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
}

static void everything_else_is_not(void **state)
{
    (void)state;
    assert_false(TEXT("a\0b"));
    assert_false(TEXT("\xff\xfe"));
    assert_false(TEXT("\x80"));
    assert_false(TEXT("\xc1\xbf"));         /* overlong */
    assert_false(TEXT("\xe0\x9f\xbf"));     /* overlong */
    assert_false(TEXT("\xf0\x8f\xbf\xbf")); /* overlong */
    assert_false(TEXT("\xed\xa0\x80"));     /* a surrogate */
    assert_false(TEXT("\xf4\x90\x80\x80")); /* above U+10FFFF */
    assert_false(TEXT("a\xc3"));            /* cut */
    assert_false(TEXT("\xe2\x82"));
    assert_false(TEXT("\xf0\x9f\x98"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_sequences_of_each_length_are_text),
        cmocka_unit_test(everything_else_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
