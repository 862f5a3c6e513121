/* Which Avro schemas are valid, which are one schema, and which read what another wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/avro_compat.h"

static struct sc_avro_model *model(const char *text)
{
    struct sc_schema_error why;
    struct sc_avro_model *m;

    if (sc_avro_model_new(span_str(text), &why, &m) != 0)
        fail_msg("%s: %s %s", text, why.reason, why.pointer);
    return m;
}

#define REC(fields)       "{\"type\":\"record\",\"name\":\"R\",\"fields\":[" fields "]}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":" type "}"

/* The rows of the specification's "Schema Resolution". why NULL: compatible. */
static void resolution_follows_the_specification(void **state)
{
    static const struct {
        const char *reader, *writer, *why, *path;
    } rows[] = {
        {"\"int\"", "\"int\"", NULL, ""},
        {"\"long\"", "\"int\"", NULL, ""},
        {"\"float\"", "\"int\"", NULL, ""},
        {"\"float\"", "\"long\"", NULL, ""},
        {"\"double\"", "\"int\"", NULL, ""},
        {"\"double\"", "\"long\"", NULL, ""},
        {"\"double\"", "\"float\"", NULL, ""},
        {"\"string\"", "\"bytes\"", NULL, ""},
        {"\"bytes\"", "\"string\"", NULL, ""},
        {"\"int\"", "\"long\"", "TYPE_MISMATCH", "/"},
        {"\"long\"", "\"float\"", "TYPE_MISMATCH", "/"},
        {"\"float\"", "\"double\"", "TYPE_MISMATCH", "/"},
        {"\"boolean\"", "\"int\"", "TYPE_MISMATCH", "/"},
        {"\"int\"", "\"boolean\"", "TYPE_MISMATCH", "/"},
        {"\"string\"", "\"int\"", "TYPE_MISMATCH", "/"},
        {"\"null\"", "\"int\"", "TYPE_MISMATCH", "/"},
        {"{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}", "\"int\"", NULL, ""},
        {"{\"type\":\"array\",\"items\":\"long\"}", "{\"type\":\"array\",\"items\":\"int\"}", NULL,
         ""},
        {"{\"type\":\"array\",\"items\":\"int\"}", "{\"type\":\"array\",\"items\":\"long\"}",
         "TYPE_MISMATCH", "/items"},
        {"{\"type\":\"map\",\"values\":\"int\"}", "{\"type\":\"map\",\"values\":\"long\"}",
         "TYPE_MISMATCH", "/values"},
        {"{\"type\":\"map\",\"values\":\"int\"}", "{\"type\":\"array\",\"items\":\"int\"}",
         "TYPE_MISMATCH", "/"},
        {"{\"type\":\"fixed\",\"name\":\"a.F\",\"size\":4}",
         "{\"type\":\"fixed\",\"name\":\"b.F\",\"size\":4}", NULL, ""},
        {"{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}",
         "{\"type\":\"fixed\",\"name\":\"F\",\"size\":8}", "FIXED_SIZE_MISMATCH", "/size"},
        {"{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}",
         "{\"type\":\"fixed\",\"name\":\"G\",\"size\":4}", "NAME_MISMATCH", "/name"},
        {"{\"type\":\"fixed\",\"name\":\"n.F\",\"size\":4,\"aliases\":[\"G\"]}",
         "{\"type\":\"fixed\",\"name\":\"n.G\",\"size\":4}", NULL, ""},
        {"{\"type\":\"fixed\",\"name\":\"n.F\",\"size\":4,\"aliases\":[\"G\"]}",
         "{\"type\":\"fixed\",\"name\":\"m.G\",\"size\":4}", "NAME_MISMATCH", "/name"},
        {"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}",
         "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"B\",\"A\"]}", NULL, ""},
        {"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}",
         "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"B\",\"A\"]}", "MISSING_ENUM_SYMBOLS",
         "/symbols"},
        {"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"],\"default\":\"A\"}",
         "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"B\",\"A\"]}", NULL, ""},
        {REC(FIELD("a", "\"int\"")), REC(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")), NULL,
         ""},
        {REC(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")), REC(FIELD("a", "\"int\"")),
         "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1"},
        {REC("{\"name\":\"b\",\"type\":\"int\",\"default\":1}"), REC(""), NULL, ""},
        {REC("{\"name\":\"b\",\"type\":[\"null\",\"int\"],\"default\":null}"), REC(""), NULL, ""},
        {REC("{\"name\":\"b\",\"type\":\"int\",\"aliases\":[\"a\"]}"), REC(FIELD("a", "\"int\"")),
         NULL, ""},
        {REC("{\"name\":\"b\",\"type\":\"int\",\"aliases\":[\"a\"]}"),
         REC(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")), "AMBIGUOUS_FIELD_ALIAS",
         "/fields/0"},
        {REC(FIELD("a", "\"int\"")), REC(FIELD("a", "\"long\"")), "TYPE_MISMATCH",
         "/fields/0/type"},
        {"[\"null\",\"int\"]", "\"int\"", NULL, ""},
        {"[\"null\",\"long\"]", "\"int\"", NULL, ""},
        {"[\"null\",\"string\"]", "\"int\"", "MISSING_UNION_BRANCH", "/"},
        {"\"int\"", "[\"int\"]", NULL, ""},
        {"\"int\"", "[\"int\",\"null\"]", "TYPE_MISMATCH", "/1"},
        {"[\"null\",\"int\"]", "[\"int\"]", NULL, ""},
        {"[\"int\"]", "[\"null\",\"int\"]", "MISSING_UNION_BRANCH", "/0"},
        {"\"int\"", "[]", NULL, ""},
        /* recursion adds nothing by itself */
        {REC(FIELD("next", "[\"null\",\"R\"]")), REC(FIELD("next", "[\"null\",\"R\"]")), NULL, ""},
        {REC(FIELD("next", "[\"null\",\"R\"]")), REC(FIELD("next", "[\"null\",\"R\",\"int\"]")),
         "MISSING_UNION_BRANCH", "/fields/0/type/2"},
    };
    static struct sc_incompats list;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sc_avro_model *r = model(rows[i].reader), *w = model(rows[i].writer);

        assert_int_equal(sc_avro_reads(r, w, &list), 0);
        if (rows[i].why == NULL ? list.n > 0 : list.n == 0)
            fail_msg("%s reads %s", rows[i].reader, rows[i].writer);
        if (rows[i].why != NULL) {
            assert_string_equal(sc_incompat_name(list.list[0].kind), rows[i].why);
            assert_string_equal(list.list[0].path, rows[i].path);
        }
        sc_avro_model_free(r);
        sc_avro_model_free(w);
    }
}

static void what_is_no_avro_schema_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "1",
        "null",
        "\"unknown\"",
        "{}",
        "{\"type\":\"record\",\"name\":\"R\"}",
        "{\"type\":\"record\",\"fields\":[]}",
        "{\"type\":\"record\",\"name\":\"1R\",\"fields\":[]}",
        "{\"type\":\"record\",\"name\":\"R-\",\"fields\":[]}",
        "{\"type\":\"record\",\"name\":\"int\",\"fields\":[]}",
        "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"a..b\",\"fields\":[]}",
        REC(FIELD("a", "\"int\"") "," FIELD("a", "\"int\"")),
        REC("{\"name\":\"a\"}"),
        REC("{\"type\":\"int\"}"),
        REC(FIELD("a b", "\"int\"")),
        REC("{\"name\":\"a\",\"type\":\"int\",\"aliases\":[1]}"),
        REC("{\"name\":\"a\",\"type\":\"int\",\"default\":\"1\"}"),
        REC("{\"name\":\"a\",\"type\":\"int\",\"default\":2147483648}"),
        REC("{\"name\":\"a\",\"type\":[\"int\",\"string\"],\"default\":null}"),
        REC("{\"name\":\"a\",\"type\":\"R\",\"default\":{}}"),
        REC(FIELD("a", "{\"type\":\"fixed\",\"name\":\"R\",\"size\":1}")),
        "{\"type\":\"fixed\",\"name\":\"F\"}",
        "{\"type\":\"fixed\",\"name\":\"F\",\"size\":-1}",
        "{\"type\":\"fixed\",\"name\":\"F\",\"size\":\"4\"}",
        "{\"type\":\"enum\",\"name\":\"E\"}",
        "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"A\"]}",
        "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A-\"]}",
        "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"],\"default\":\"B\"}",
        "{\"type\":\"array\"}",
        "{\"type\":\"map\",\"values\":\"none\"}",
        "[\"int\",\"int\"]",
        "[\"int\",[\"null\"]]",
        "[{\"type\":\"map\",\"values\":\"int\"},{\"type\":\"map\",\"values\":\"long\"}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sc_schema_error why;
        struct sc_avro_model *m;
        int err = sc_avro_model_new(span_str(texts[i]), &why, &m);

        if (err >= 0)
            fail_msg("%s is taken", texts[i]);
        assert_null(m);
        assert_true(why.reason[0] != '\0');
    }
}

static void one_schema_may_be_written_in_many_ways(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"\"int\"", " {\"type\" : \"int\"} ", true},
        {"{\"type\":\"record\",\"name\":\"n.R\",\"fields\":[]}",
         "{\"fields\":[],\"namespace\":\"n\",\"name\":\"R\",\"type\":\"record\"}", true},
        {REC(FIELD("a", "{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}") "," FIELD("b", "\"F\"")),
         REC(FIELD("a", "{\"size\":4,\"type\":\"fixed\",\"name\":\"F\"}") "," FIELD(
             "b", "{\"type\":\"F\"}")),
         true},
        {REC(FIELD("a", "[\"null\",\"R\"]")), REC(FIELD("a", "[\"null\",\"R\"]")), true},
        {REC(FIELD("a", "\"int\"")), REC(FIELD("a", "\"long\"")), false},
        {REC(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")),
         REC(FIELD("b", "\"int\"") "," FIELD("a", "\"int\"")), false},
        {"\"long\"", "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}", false},
        {REC("{\"name\":\"a\",\"type\":\"int\",\"default\":1}"),
         REC("{\"name\":\"a\",\"type\":\"int\",\"default\":2}"), false},
        {REC("{\"name\":\"a\",\"type\":\"int\",\"doc\":\"x\"}"), REC(FIELD("a", "\"int\"")), false},
        {"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}",
         "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"B\",\"A\"]}", false},
        {"[\"int\",\"null\"]", "[\"null\",\"int\"]", false},
    };
    bool same;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sc_avro_model *a = model(rows[i].a), *b = model(rows[i].b);

        assert_int_equal(sc_avro_model_same(a, b, &same), 0);
        assert_true(same == rows[i].same);
        assert_int_equal(sc_avro_model_same(b, a, &same), 0);
        assert_true(same == rows[i].same);
        sc_avro_model_free(a);
        sc_avro_model_free(b);
    }
    assert_int_equal(
        sc_json_same(span_str("{\"a\":1,\"b\":[2]}"), span_str(" {\"b\":[2], \"a\":1}"), &same), 0);
    assert_true(same);
    assert_int_equal(
        sc_json_same(span_str("{\"a\":1,\"a\":1}"), span_str("{\"a\":1,\"b\":5}"), &same), 0);
    assert_false(same);
    assert_int_equal(
        sc_json_same(span_str("{\"a\":1,\"b\":5}"), span_str("{\"a\":1,\"a\":1}"), &same), 0);
    assert_false(same);
    assert_int_equal(sc_json_same(span_str("{\"a\":1}"), span_str("{\"a\":2}"), &same), 0);
    assert_false(same);
    assert_int_equal(sc_json_same(span_str("{"), span_str("{}"), &same), E_SYNTAX);
}

/* Names may lead deeper than the text is nested: n records, each with the one before it. */
static void chains_of_names_are_bounded(void **state)
{
    static struct sc_incompats list;
    struct writer w;
    bool same;

    (void)state;
    for (int n = 100; n <= 10000; n *= 100) {
        wr_init(&w, (size_t)4 << 20);
        wr_str(&w, "[{\"type\":\"record\",\"name\":\"R0\",\"fields\":[]}");
        for (int i = 1; i < n; i++)
            wr_printf(&w,
                      ",{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[{\"name\":\"f\",\"type\":"
                      "\"R%d\"}]}",
                      i, i - 1);
        wr_u8(&w, ']');
        wr_u8(&w, '\0');
        struct sc_avro_model *a = model((const char *)w.b->data);
        struct sc_avro_model *b = model((const char *)w.b->data);
        int err = sc_avro_reads(a, b, &list);
        assert_true(n == 100 ? err == 0 && list.n == 0 : err == 0 || err == E_LIMIT);
        assert_int_equal(sc_avro_model_same(a, b, &same), 0);
        assert_true(n > 100 || same);
        sc_avro_model_free(a);
        sc_avro_model_free(b);
        wr_fini(&w);
    }
}

static void out_of_memory_is_an_error(void **state)
{
    static const char text[] = REC(FIELD("next", "[\"null\",\"R\"]"));
    static struct sc_incompats list;

    (void)state;
    for (long after = 0; after < 12; after++) {
        struct sc_schema_error why;
        struct sc_avro_model *m, *good = model(text);

        mem_fail_after(after, 0);
        int err = sc_avro_model_new(span_str(text), &why, &m);
        if (err == 0)
            err = sc_avro_reads(good, m, &list);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || err == E_NOMEM); /* not: too large */
        sc_avro_model_free(m);
        sc_avro_model_free(good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolution_follows_the_specification),
        cmocka_unit_test(what_is_no_avro_schema_is_refused),
        cmocka_unit_test(one_schema_may_be_written_in_many_ways),
        cmocka_unit_test(chains_of_names_are_bounded),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
