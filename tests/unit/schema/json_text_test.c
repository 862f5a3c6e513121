/* Quoting and unquoting are inverse on UTF-8; minifying touches white space outside of strings
 * only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "schema/json_reader.h"

static void quoted(struct span raw, const char *want)
{
    struct writer w, back;
    struct sc_json_error err;

    wr_init(&w, 10000);
    wr_init(&back, 10000);
    sc_json_quote(raw, &w);
    assert_int_equal(wr_err(&w), 0);
    assert_true(span_eq_str(blob_span(w.b), want));
    assert_int_equal(sc_json_check(blob_span(w.b), &err), 0);
    assert_int_equal(sc_json_unquote(blob_span(w.b), &back), 0);
    wr_fini(&w);
    wr_fini(&back);
}

static void quoting_escapes_what_must_be_escaped(void **state)
{
    (void)state;
    quoted(span_of(NULL, 0), "\"\"");
    quoted(span_str("plain"), "\"plain\"");
    quoted(span_of("a\0b", 3), "\"a\\u0000b\"");
    quoted(span_str("\"\\/\b\f\n\r\t\x1f\x7f"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u001f\x7f\"");
    quoted(span_str("0123456789abcdef\n0123456789abcdef"),
           "\"0123456789abcdef\\n0123456789abcdef\"");
    quoted(span_str("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"),
           "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\"");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    quoted(span_str("a\xff"
                    "b"),
           "\"a\xef\xbf\xbd"
           "b\"");
    quoted(span_str("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    quoted(span_str("\xe4\xb8"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void unquoted(const char *text, struct span want)
{
    struct writer w;

    wr_init(&w, 1000);
    assert_int_equal(sc_json_unquote(span_str(text), &w), 0);
    assert_int_equal(wr_len(&w), want.n);
    if (want.n > 0)
        assert_memory_equal(w.b->data, want.p, want.n);
    wr_fini(&w);
}

static void unquoting_restores_the_text(void **state)
{
    (void)state;
    unquoted("\"\"", span_str(""));
    unquoted("\"a\\u0000b\"", span_of("a\0b", 3));
    unquoted("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", span_str("\"\\/\b\f\n\r\t"));
    unquoted("\"\\u00E9\\u4e2d\"", span_str("\xc3\xa9\xe4\xb8\xad"));
    unquoted("\"\\uD83D\\uDE00!\"", span_str("\xf0\x9f\x98\x80!"));
    unquoted("\"\xc3\xa9\"", span_str("\xc3\xa9"));
}

static void a_lone_surrogate_becomes_a_replacement_character(void **state)
{
    (void)state;
    unquoted("\"\\ud800\"", span_str("\xef\xbf\xbd"));
    unquoted("\"\\udc00\\ud800\"", span_str("\xef\xbf\xbd\xef\xbf\xbd"));
    unquoted("\"\\ud83dx\"", span_str("\xef\xbf\xbdx"));
    unquoted("\"\\ud83d\\n\"", span_str("\xef\xbf\xbd\n"));
    unquoted("\"\\ud83d\\ud83d\\ude00\"", span_str("\xef\xbf\xbd\xf0\x9f\x98\x80"));
    unquoted("\"\\ud83d\\u0041\"", span_str("\xef\xbf\xbd"
                                            "A"));
}

static void what_is_no_string_is_not_unquoted(void **state)
{
    static const char *const bad[] = {"",       "\"",     "x",        "\"a",
                                      "a\"",    "\"a\"b", "\"\\x\"",  "\"\\u1\"",
                                      "\"\\\"", "\"\n\"", "\"\xff\"", "\"a\"\""};
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct writer w;

        wr_init(&w, 1000);
        assert_int_equal(sc_json_unquote(span_str(bad[i]), &w), E_SYNTAX);
        wr_fini(&w);
    }
}

static void minifying_drops_white_space_outside_of_strings(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {" 1 ", "1"},
        {"{ \"a b\" : [ 1 , \" \\\" x \" ] ,\r\n\t\"c\" : null }",
         "{\"a b\":[1,\" \\\" x \"],\"c\":null}"},
        {"[]", "[]"},
        {"\"a\\\\\"", "\"a\\\\\""},
        {"", ""},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct writer w;

        wr_init(&w, 1000);
        sc_json_minify(span_str(rows[i].text), &w);
        assert_int_equal(wr_err(&w), 0);
        assert_int_equal(wr_len(&w), strlen(rows[i].want));
        if (w.b != NULL)
            assert_memory_equal(w.b->data, rows[i].want, w.b->len);
        wr_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoting_escapes_what_must_be_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(unquoting_restores_the_text),
        cmocka_unit_test(a_lone_surrogate_becomes_a_replacement_character),
        cmocka_unit_test(what_is_no_string_is_not_unquoted),
        cmocka_unit_test(minifying_drops_white_space_outside_of_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
