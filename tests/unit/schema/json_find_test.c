/* Pointers, and what they find in documents with traps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "schema/json_reader.h"

static int find(const char *doc, const char *pointer, struct sc_json_value *v)
{
    struct sc_pointer *p;
    int err;

    assert_int_equal(sc_pointer_new(span_str(pointer), &p), 0);
    assert_true(span_eq_str(sc_pointer_text(p), pointer));
    err = sc_json_find(span_str(doc), p, v);
    sc_pointer_free(p);
    return err;
}

static void found(const char *doc, const char *pointer, enum sc_json_kind kind, const char *text)
{
    struct sc_json_value v;

    assert_int_equal(find(doc, pointer, &v), 0);
    assert_int_equal(v.kind, kind);
    if (!span_eq_str(v.text, text))
        print_error("%s %s: %.*s\n", doc, pointer, SPAN_FMT(v.text));
    assert_true(span_eq_str(v.text, text));
}

static void absent(const char *doc, const char *pointer)
{
    struct sc_json_value v;

    assert_int_equal(find(doc, pointer, &v), E_NOTFOUND);
}

static void the_examples_of_rfc_6901_hold(void **state)
{
    static const char doc[] =
        "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,"
        "\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8}";
    (void)state;

    found(doc, "", SC_JSON_OBJECT, doc);
    found(doc, "/foo", SC_JSON_ARRAY, "[\"bar\",\"baz\"]");
    found(doc, "/foo/0", SC_JSON_STRING, "\"bar\"");
    found(doc, "/foo/1", SC_JSON_STRING, "\"baz\"");
    absent(doc, "/foo/2");
    absent(doc, "/foo/-");
    absent(doc, "/foo/00");
    absent(doc, "/foo/01");
    absent(doc, "/foo/");
    absent(doc, "/foo/99999999999999999999999");
    found(doc, "/", SC_JSON_NUMBER, "0");
    found(doc, "/a~1b", SC_JSON_NUMBER, "1");
    found(doc, "/c%d", SC_JSON_NUMBER, "2");
    found(doc, "/e^f", SC_JSON_NUMBER, "3");
    found(doc, "/g|h", SC_JSON_NUMBER, "4");
    found(doc, "/i\\j", SC_JSON_NUMBER, "5");
    found(doc, "/k\"l", SC_JSON_NUMBER, "6");
    found(doc, "/ ", SC_JSON_NUMBER, "7");
    found(doc, "/m~0n", SC_JSON_NUMBER, "8");
    found("{\"~1\":1}", "/~01", SC_JSON_NUMBER, "1");
}

static void malformed_pointers_are_refused(void **state)
{
    static const char *const bad[] = {"a", " /a", "/~", "/~2", "/a~/b", "/~~0"};
    struct sc_pointer *p;
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(sc_pointer_new(span_str(bad[i]), &p), E_SYNTAX);
        assert_null(p);
    }
    mem_fail_after(0, 0);
    assert_int_equal(sc_pointer_new(span_str("/a"), &p), E_NOMEM);
    assert_null(p);
    sc_pointer_free(NULL);
}

static void of_duplicate_keys_the_last_wins_on_every_level(void **state)
{
    (void)state;
    found("{\"a\":1,\"a\":2}", "/a", SC_JSON_NUMBER, "2");
    found("{\"a\":{\"b\":1},\"a\":{\"b\":2,\"b\":3}}", "/a/b", SC_JSON_NUMBER, "3");
    absent("{\"a\":{\"b\":1},\"a\":{}}", "/a/b");
    absent("{\"a\":{\"b\":1},\"a\":null}", "/a/b");
}

static void keys_compare_after_unescaping(void **state)
{
    (void)state;
    found("{\"\\u0061\":1}", "/a", SC_JSON_NUMBER, "1");
    found("{\"\\u00e9\":1}", "/\xc3\xa9", SC_JSON_NUMBER, "1");
    found("{\"\\ud83d\\ude00\":1}", "/\xf0\x9f\x98\x80", SC_JSON_NUMBER, "1");
    found("{\"\\ud83d\":1}", "/\xef\xbf\xbd", SC_JSON_NUMBER, "1");
    found("{\"x\\/y\":1}", "/x~1y", SC_JSON_NUMBER, "1");
    found("{\"a\":0,\"\\u0061\":1}", "/a", SC_JSON_NUMBER, "1");
    absent("{\"\\u0061b\":1}", "/a");
    absent("{\"\\\\u0061\":1}", "/a");
    absent("{\"ab\":1}", "/a");
}

static void white_space_and_brackets_in_strings_mislead_nobody(void **state)
{
    static const char doc[] =
        " {\r\n \"s\" : \"}]{[\\\"\\\\\" ,\t\"long\": \"0123456789abcdef}\\\"]01234\","
        " \"o\" : { \"x\" : [ 1 , { \"y\" : \"]\" } , -2.5e3 ] } } \n";
    (void)state;

    found(doc, "/s", SC_JSON_STRING, "\"}]{[\\\"\\\\\"");
    found(doc, "/o/x/0", SC_JSON_NUMBER, "1");
    found(doc, "/o/x/1", SC_JSON_OBJECT, "{ \"y\" : \"]\" }");
    found(doc, "/o/x/1/y", SC_JSON_STRING, "\"]\"");
    found(doc, "/o/x/2", SC_JSON_NUMBER, "-2.5e3");
    absent(doc, "/o/x/3");
    absent(doc, "/s/0");
    found("true", "", SC_JSON_TRUE, "true");
    found("[false,null]", "/0", SC_JSON_FALSE, "false");
    found("[false,null]", "/1", SC_JSON_NULL, "null");
}

static void deep_values_are_skipped_without_recursion(void **state)
{
    size_t n = 1000000, at = 0;
    char *doc = mem_alloc(2 * n + 32);
    struct sc_pointer *p;
    struct sc_json_value v;
    (void)state;

    assert_non_null(doc);
    memcpy(doc, "{\"d\":", 5);
    at = 5;
    memset(doc + at, '[', n);
    memset(doc + at + n, ']', n);
    at += 2 * n;
    memcpy(doc + at, ",\"k\":1}", 7);
    at += 7;
    assert_int_equal(sc_pointer_new(span_str("/k"), &p), 0);
    assert_int_equal(sc_json_find(span_of(doc, at), p, &v), 0);
    assert_true(span_eq_str(v.text, "1"));
    sc_pointer_free(p);
    mem_free(doc);
}

static void escapes_across_every_block_border_end_no_string(void **state)
{
    char doc[512];
    (void)state;

    /* runs of backslashes of every length at every place of two 64-byte blocks; an escaped quote
     * and brackets follow, which only count when a run was miscounted */
    for (size_t pad = 0; pad < 70; pad++) {
        for (size_t run = 0; run < 140; run += 2) {
            size_t n = 0;

            memcpy(doc, "{\"o\":{\"s\":\"", 11);
            n = 11;
            memset(doc + n, 'x', pad);
            n += pad;
            memset(doc + n, '\\', run);
            n += run;
            memcpy(doc + n, "\\\"]}}{[\\\\\"},\"k\":1}", 18);
            n += 18;
            doc[n] = 0;
            found(doc, "/k", SC_JSON_NUMBER, "1");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_rfc_6901_hold),
        cmocka_unit_test(malformed_pointers_are_refused),
        cmocka_unit_test(of_duplicate_keys_the_last_wins_on_every_level),
        cmocka_unit_test(keys_compare_after_unescaping),
        cmocka_unit_test(white_space_and_brackets_in_strings_mislead_nobody),
        cmocka_unit_test(escapes_across_every_block_border_end_no_string),
        cmocka_unit_test(deep_values_are_skipped_without_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
