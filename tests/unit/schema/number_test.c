/* Numbers, dates and UUIDs as texts: against the C library where it is exact, and by table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "schema/digits.h"
#include "schema/number.h"
#include "schema/text.h"

static uint64_t seed = UINT64_C(88172645463325252);

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void is_nearest(const char *text)
{
    struct sc_num n;
    size_t len = strlen(text);
    const uint8_t *end = sc_num_scan((const uint8_t *)text, (const uint8_t *)text + len, &n);
    double got, want = strtod(text, NULL);
    uint64_t got_bits, want_bits;

    assert_ptr_equal(end, text + len);
    got = sc_num_double(&n);
    memcpy(&got_bits, &got, sizeof got);
    memcpy(&want_bits, &want, sizeof want);
    if (got_bits != want_bits)
        print_message("%s: %.17g, not %.17g\n", text, got, want);
    assert_true(got_bits == want_bits);
}

static void doubles_are_the_nearest(void **state)
{
    char text[1200];

    (void)state;
    for (unsigned i = 0; i < 60000; i++) {
        uint64_t bits = rnd();
        double d;

        memcpy(&d, &bits, sizeof d);
        if (d - d != 0)
            continue;
        (void)snprintf(text, sizeof text, "%.*e", (int)(rnd() % 40), d);
        is_nearest(text);
        (void)snprintf(text, sizeof text, "%.17g", d);
        is_nearest(text);
        (void)snprintf(text, sizeof text, "%u.%llue%d", (unsigned)(bits % 1000),
                       (unsigned long long)rnd(), (int)(rnd() % 700) - 350);
        is_nearest(text);
        /* exactly between two doubles, and a hair above */
        (void)snprintf(text, sizeof text, "%llu.5", (unsigned long long)(bits >> 12 | 1ull << 52));
        is_nearest(text);
        (void)snprintf(text, sizeof text, "%llu.50000000000000000000000000000001",
                       (unsigned long long)(bits >> 12 | 1ull << 52));
        is_nearest(text);
    }
    is_nearest("2.4703282292062327208299439634110686182e-324");
    is_nearest("2.4703282292062328e-324");
    is_nearest("2.2250738585072011e-308");
    is_nearest("1.7976931348623158e308");
    is_nearest("1.7976931348623159e308");
    is_nearest("0e999999999999999999999");
    is_nearest("1e-999999999999999999999");
    is_nearest("-1e999999999999999999999");
}

static void long_numbers_are_the_nearest_to_the_last_digit(void **state)
{
    char text[3000];

    (void)state;
    for (unsigned extra = 0; extra < 2; extra++) {
        /* the middle of 1 and the next double has 53 places; what follows after 1,500 zeros counts
         */
        size_t n = (size_t)snprintf(text, sizeof text, "1.%s",
                                    "00000000000000011102230246251565404236316680908203125");

        memset(text + n, '0', 1500);
        text[n + 1500] = extra != 0 ? '1' : '0';
        text[n + 1501] = 0;
        is_nearest(text);
    }
    memset(text, '9', 2000);
    text[310] = 0;
    is_nearest(text);
}

static void dates_follow_the_calendar(void **state)
{
    static const struct {
        const char *text;
        int64_t days;
    } table[] = {{"1970-01-01", 0},       {"1969-12-31", -1},      {"2000-02-29", 11016},
                 {"0000-01-01", -719528}, {"9999-12-31", 2932896}, {"1900-03-01", -25508}};
    static const char *const bad[] = {"1900-02-29", "2021-00-01", "2021-13-01", "2021-1-01",
                                      "2021-01-32", "2021-01-00", "20210101",   "2021-01-01 "};
    int64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(sc_text_date(span_str(table[i].text), &v), 0);
        assert_int_equal(v, table[i].days);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sc_text_date(span_str(bad[i]), &v), E_SYNTAX);
}

static void times_have_offsets_and_fractions(void **state)
{
    static const struct {
        const char *text;
        int64_t micros;
    } table[] = {{"1970-01-01T00:00:00Z", 0},
                 {"1970-01-01t00:00:00.0000019z", 1},
                 {"1970-01-01 01:00:00+01:00", 0},
                 {"1969-12-31T23:59:59.999999999Z", -1},
                 {"1970-01-01T00:00:00-23:59", INT64_C(86340000000)},
                 {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)}};
    static const char *const bad[] = {
        "1970-01-01T00:00:00",        "1970-01-01T00:00:00.Z",     "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z",       "1970-01-01T00:00:61Z",      "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+0100",   "1970-01-01T00:00:00Z ",     "1970-01-01x00:00:00Z",
        "1970-02-30T00:00:00Z",       "1970-01-01T00:00:00,5Z",    "-970-01-01T00:00:00Z",
        "1970-01-01T00:00:00+01:00Z", "1970-01-01T00:00:00.5+1:0", "1970-01-01"};
    int64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(sc_text_time(span_str(table[i].text), &v), 0);
        assert_int_equal(v, table[i].micros);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sc_text_time(span_str(bad[i]), &v), E_SYNTAX);
}

static void texts_are_read_as_numbers_more_leniently(void **state)
{
    static const char *const good[] = {"1",   "+1.5", "-.5",       "5.", "007",
                                       "1e3", "inf",  "-Infinity", "NaN"};
    static const char *const bad[] = {"",     "+",   ".",  "e3", "1e",
                                      "0x10", "1_0", " 1", "1 ", "infinite"};
    double d;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double want = strtod(good[i], NULL);

        assert_int_equal(sc_num_parse_text(span_str(good[i]), &d), 0);
        assert_true(d == want || (d != d && want != want));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sc_num_parse_text(span_str(bad[i]), &d), E_SYNTAX);
}

/* Each length, each byte that may follow, and with less than eight bytes left. */
static void runs_of_digits_are_taken_whole(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 19; n++) {
        for (unsigned next = 0; next < 256; next++) {
            uint8_t text[32];
            uint64_t want = 0, got = 0;

            if (next >= '0' && next <= '9')
                continue;
            for (size_t i = 0; i < n; i++) {
                text[i] = (uint8_t)('0' + rnd() % 10);
                want = want * 10 + (uint64_t)(text[i] - '0');
            }
            memset(text + n, (int)next, sizeof text - n);
            for (size_t size = n; size < sizeof text; size++, got = 0) {
                assert_ptr_equal(dg_take(text, text + size, &got), text + n);
                assert_true(got == want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_are_the_nearest),
        cmocka_unit_test(runs_of_digits_are_taken_whole),
        cmocka_unit_test(long_numbers_are_the_nearest_to_the_last_digit),
        cmocka_unit_test(dates_follow_the_calendar),
        cmocka_unit_test(times_have_offsets_and_fractions),
        cmocka_unit_test(texts_are_read_as_numbers_more_leniently),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
