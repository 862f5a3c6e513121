/* What is JSON and what is not, with the place of the fault; arrays element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "schema/json_reader.h"

static int check(const char *text)
{
    struct sc_json_error err;

    return sc_json_check(span_str(text), &err);
}

static void refused_at(struct span text, size_t at)
{
    struct sc_json_error err;
    /* an exact copy on the heap: the sanitizer sees each byte read behind the end */
    uint8_t *copy = mem_alloc(text.n);

    assert_non_null(copy);
    memcpy(copy, text.p, text.n);
    assert_int_equal(sc_json_check(span_of(copy, text.n), &err), E_SYNTAX);
    assert_non_null(err.reason);
    if (err.at != at)
        print_error("%.*s: %s at %zu\n", SPAN_FMT(text), err.reason, err.at);
    assert_int_equal(err.at, at);
    mem_free(copy);
}

static void every_kind_of_value_is_accepted(void **state)
{
    static const char *const good[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-12",
        "0.5",
        "1e5",
        "1E+05",
        "1e-0",
        "-0.0e-0",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1]",
        "[1,2]",
        "[[],{}]",
        "{\"a\":1}",
        "{\"a\":{\"b\":[null]},\"a\":2}",
        " \t\r\n1\n",
        "{ \"a\" : [ 1 , 2 ] }\r\n",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"",
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "\"\\u0000\"",
        "\"\x7f\"",
        "\"\xc2\x80\xdf\xbf\"",
        "\"\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "1e400",
        "-1e-999999999999999999999",
        "{\"\":\"\"}",
        "[0,-0,0e0]",
    };
    (void)state;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (check(good[i]) != 0)
            print_error("%s\n", good[i]);
        assert_int_equal(check(good[i]), 0);
    }
}

static void every_prefix_of_a_document_is_refused(void **state)
{
    static const char doc[] =
        "{\"a\":[1,-2.5e+3,true,false,null,{\"b\\u00e9\xc3\xa9\\n\":\"c, a rather "
        "long string\"}],\"z\":\"\xf0\x9f\x98\x80\"}";
    (void)state;

    assert_int_equal(check(doc), 0);
    for (size_t n = 1; n < sizeof doc - 1; n++) {
        struct sc_json_error err;
        uint8_t *copy = mem_alloc(n);

        assert_non_null(copy);
        memcpy(copy, doc, n);
        assert_int_equal(sc_json_check(span_of(copy, n), &err), E_SYNTAX);
        assert_true(err.at <= n);
        mem_free(copy);
    }
}

static void malformed_text_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } bad[] = {
        {" ", 1},
        {"nul", 0},
        {"nulL", 0},
        {"True", 0},
        {"NaN", 0},
        {"Infinity", 0},
        {"01", 1},
        {"-", 1},
        {"-a", 1},
        {"+1", 0},
        {".5", 0},
        {"1.", 2},
        {"1.e5", 2},
        {"1e", 2},
        {"1e+", 3},
        {"0x10", 1},
        {"1 2", 2},
        {"[1", 2},
        {"[1,", 3},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"[1}", 2},
        {"{\"a\":1]", 6},
        {"{", 1},
        {"{\"a\"", 4},
        {"{\"a\":", 5},
        {"{\"a\":}", 5},
        {"{\"a\" 1}", 5},
        {"{\"a\":1,}", 7},
        {"{,}", 1},
        {"{a:1}", 1},
        {"{1:1}", 1},
        {"{\"a\":1}}", 7},
        {"]", 0},
        {"}", 0},
        {"'a'", 0},
        {"\"a", 2},
        {"\"\\\"", 3},
        {"\"\\x\"", 1},
        {"\"\\", 1},
        {"\"\\u12\"", 1},
        {"\"\\u12", 1},
        {"\"\\u123g\"", 1},
        {"\"a\nb\"", 2},
        {"\"a\tb\"", 2},
        {"\"\x01\"", 1},
        {"[1]x", 3},
        {"{} {}", 3},
        {"// c\n1", 0},
        {"[1/**/]", 2},
        {"\v1", 0},
        {"\xc2\xa0"
         "1",
         0},
        {"\xef\xbb\xbf{}", 0},
        {"{}\xef\xbb\xbf", 2},
        {"\"0123456789abcdef\n\"", 17},
    };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused_at(span_str(bad[i].text), bad[i].at);
    assert_int_equal(check(""), E_SYNTAX);
}

static void invalid_utf8_of_each_kind_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2x",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xe1\x80",
        "\xe1\x80x",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf1\x80\x80",
        "\xf1\x80\x80x",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xf8\x88\x80\x80",
        "\xfe",
    };
    char text[64];
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(text, sizeof text, "\"%s\"", bad[i]);
        refused_at(span_str(text), 1);
        (void)snprintf(text, sizeof text, "[\"\xc3\xa9 and some more text %s\"]", bad[i]);
        refused_at(span_str(text), 24);
        (void)snprintf(text, sizeof text, "{\"%s\":1}", bad[i]);
        refused_at(span_str(text), 2);
        (void)snprintf(text, sizeof text, "\"%s", bad[i]); /* at the very end of the input */
        refused_at(span_str(text), 1);
    }
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    static const char text[] = "{\"a\0b\":\"c\0d\"} \0";
    (void)state;

    refused_at(span_of(text, sizeof text - 1), 3);
    refused_at(span_of("\0", 1), 0);
    refused_at(span_of("1\0", 2), 1);
    refused_at(span_of("[\0]", 3), 1);
}

/* n opening brackets, a 1, n closing ones; alternating objects when `objects`. */
static int nested(size_t n, bool objects, bool closed)
{
    uint8_t *text = mem_alloc(n * 6 + 1);
    struct sc_json_error err;
    size_t at = 0;
    int r;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        if (objects && i % 2 == 1) {
            memcpy(text + at, "{\"k\":", 5);
            at += 5;
        } else {
            text[at++] = '[';
        }
    }
    text[at++] = '1';
    for (size_t i = n; closed && i-- > 0;)
        text[at++] = objects && i % 2 == 1 ? '}' : ']';
    r = sc_json_check(span_of(text, at), &err);
    mem_free(text);
    return r;
}

static void nesting_is_bounded_not_the_stack(void **state)
{
    (void)state;
    for (int objects = 0; objects < 2; objects++) {
        assert_int_equal(nested(100, objects != 0, true), 0);
        assert_int_equal(nested(SC_JSON_MAX_DEPTH, objects != 0, true), 0);
        assert_int_equal(nested(SC_JSON_MAX_DEPTH + 1, objects != 0, true), E_LIMIT);
        assert_int_equal(nested(1000000, objects != 0, true), E_LIMIT);
        assert_int_equal(nested(100, objects != 0, false), E_SYNTAX);
        assert_int_equal(nested(100000, objects != 0, false), E_LIMIT);
    }
}

static void mismatched_brackets_are_refused_at_depth(void **state)
{
    (void)state;
    refused_at(span_str("[[[[{\"a\":[{\"b\":1}}"), 17);
    refused_at(span_str("{\"a\":[[[[[[[[[1]]]]]]]]}}"), 23);
}

static void numbers_of_any_size_are_text(void **state)
{
    size_t n = 100000;
    char *text = mem_alloc(n);
    struct sc_json_error err;
    (void)state;

    assert_non_null(text);
    memset(text, '7', n);
    assert_int_equal(sc_json_check(span_of(text, n), &err), 0);
    text[1] = '.';
    assert_int_equal(sc_json_check(span_of(text, n), &err), 0);
    text[n - 1] = '.';
    assert_int_equal(sc_json_check(span_of(text, n), &err), E_SYNTAX);
    mem_free(text);
}

/* Iterates and returns the final code; *n counts elements, joined writes them with '|'. */
static int elements(const char *text, char *joined, size_t room)
{
    struct sc_json_value v;
    struct sc_json_error err;
    size_t pos = 0, at = 0;
    int r;

    joined[0] = 0;
    while ((r = sc_json_array_next(span_str(text), &pos, &v, &err)) == 0)
        at += (size_t)snprintf(joined + at, room - at, "%.*s|", SPAN_FMT(v.text));
    if (r == E_NOTFOUND) /* the end stays the end */
        assert_int_equal(sc_json_array_next(span_str(text), &pos, &v, &err), E_NOTFOUND);
    return r;
}

static void arrays_yield_their_elements_as_they_stand(void **state)
{
    static const struct {
        const char *text, *joined;
        int err;
    } rows[] = {
        {"[]", "", E_NOTFOUND},
        {" [ \n ] \n", "", E_NOTFOUND},
        {"[1]", "1|", E_NOTFOUND},
        {"[ {\"a\": 1} , [2 ],\"x,]\" ]\n", "{\"a\": 1}|[2 ]|\"x,]\"|", E_NOTFOUND},
        {"[1,]", "1|", E_SYNTAX},
        {"[,1]", "", E_SYNTAX},
        {"[1 2]", "1|", E_SYNTAX},
        {"[1", "1|", E_SYNTAX},
        {"[1,", "1|", E_SYNTAX},
        {"[", "", E_SYNTAX},
        {"", "", E_SYNTAX},
        {"  ", "", E_SYNTAX},
        {"{}", "", E_SYNTAX},
        {"[1] x", "1|", E_SYNTAX},
        {"[] []", "", E_SYNTAX},
        {"[1,{\"a\":}]", "1|", E_SYNTAX},
        {"\xef\xbb\xbf[1]", "", E_SYNTAX},
    };
    char joined[200];
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(elements(rows[i].text, joined, sizeof joined), rows[i].err);
        assert_string_equal(joined, rows[i].joined);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_accepted),
        cmocka_unit_test(every_prefix_of_a_document_is_refused),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(invalid_utf8_of_each_kind_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(nesting_is_bounded_not_the_stack),
        cmocka_unit_test(mismatched_brackets_are_refused_at_depth),
        cmocka_unit_test(numbers_of_any_size_are_text),
        cmocka_unit_test(arrays_yield_their_elements_as_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
