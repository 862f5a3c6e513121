/* Fixtures of field extraction: which fields a collection has, and the types of the mapping table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "avro_lab.h"
#include "base/mem.h"
#include "base/writer.h"

/* --- fixtures of field extraction --- */

static void all_of_with_a_null_default(void **state)
{
    (void)state;
    lab_compile(OBJECT(ID, NEEDS_ID
                       ",\"allOf\":[{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],"
                       "\"default\":null}}},{\"properties\":{\"a\":{\"title\":\"A\"}}}]"),
                "/id", SC_DELETE_TOMBSTONE);
    lab_schema_has("{\"name\":\"a\",\"type\":[\"null\",\"string\"],\"default\":null}");
    lab_value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"a\":null}");
    lab_value_is("{\"id\":\"1\",\"a\":\"x\"}", "{\"id\":\"1\",\"a\":\"x\"}");
}

#define FIELDS                                                                                     \
    OBJECT(ID ",\"b\":{\"type\":\"integer\"},\"a\":{\"type\":\"object\",\"properties\":{\"x\":{"   \
              "\"type\":\"integer\"},\"y\":{\"type\":\"object\",\"properties\":{\"z\":{\"type\":"  \
              "\"string\"}}}}},\"_meta\":{\"type\":\"object\",\"properties\":{\"op\":{\"type\":"   \
              "\"string\"}},\"additionalProperties\":false}",                                      \
           NEEDS_ID)

static void fields_are_selected_by_name_pointer_and_depth(void **state)
{
    const struct span by_name[] = {span_str("a/y/z"), span_str("/b")};
    const struct span document = span_str("flow_document"), a = span_str("a"), y = span_str("/a/y");
    const char *doc =
        "{\"a\":{\"y\":{\"z\":\"Z\"},\"x\":1},\"b\":2,\"id\":\"1\",\"_meta\":{\"op\":\"c\"}}";

    (void)state;
    lab_sel = (struct sc_selection){.require = by_name, .require_n = 2};
    lab_compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(doc, "{\"id\":\"1\",\"a_y_z\":\"Z\",\"b\":2}");

    lab_sel = (struct sc_selection){.depth = 1};
    lab_compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(
        doc,
        "{\"id\":\"1\",\"_meta_op\":\"c\",\"a\":{\"x\":1,\"y\":{\"z\":\"Z\",\"_flow_extra\":{}},"
        "\"_flow_extra\":{}},\"b\":2,\"flow_published_at\":null}");

    lab_sel = (struct sc_selection){.depth = 2, .exclude = &y, .exclude_n = 1};
    lab_compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(doc,
                 "{\"id\":\"1\",\"_meta_op\":\"c\",\"a_x\":1,\"b\":2,\"flow_published_at\":null}");

    /* what lies below a field that was asked for is in it already */
    lab_sel = (struct sc_selection){.depth = SC_DEPTH_ALL, .require = &a, .require_n = 1};
    lab_compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(
        doc,
        "{\"id\":\"1\",\"_meta_op\":\"c\",\"a\":{\"x\":1,\"y\":{\"z\":\"Z\",\"_flow_extra\":{}},"
        "\"_flow_extra\":{}},\"b\":2,\"flow_published_at\":null}");

    lab_sel = (struct sc_selection){.require = &document, .require_n = 1};
    lab_compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(
        doc,
        "{\"id\":\"1\",\"flow_document\":{\"_meta\":{\"op\":\"c\"},\"a\":{\"x\":1,\"y\":{\"z\":"
        "\"Z\",\"_flow_extra\":{}},\"_flow_extra\":{}},\"b\":2,\"id\":\"1\",\"_flow_extra\":{}}}");
    assert_int_equal(lab_try_compile(FIELDS, "/nope/x", SC_DELETE_TOMBSTONE, false), 0);
}

static void a_required_field_must_exist_an_included_one_is_noted(void **state)
{
    const struct span none = span_str("typo"), nul = span_str("n");
    const char *text = OBJECT(ID ",\"n\":{\"type\":\"null\"}", NEEDS_ID);

    (void)state;
    lab_sel = (struct sc_selection){.require = &none, .require_n = 1};
    assert_int_equal(lab_try_compile(text, "/id", SC_DELETE_TOMBSTONE, false), E_INVALID);
    assert_non_null(strstr(lab_fault.reason, "typo"));
    lab_sel = (struct sc_selection){.include = &none, .include_n = 1};
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    assert_true(lab_noted("typo"));
    /* a location that can only be null: forbidden as a field, null inside of others */
    lab_sel = (struct sc_selection){.require = &nul, .require_n = 1};
    assert_int_equal(lab_try_compile(text, "/id", SC_DELETE_TOMBSTONE, false), E_INVALID);
    lab_sel = (struct sc_selection){.depth = 1};
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    assert_true(lab_noted("n"));
    lab_compile(OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"null\"}},"
                          "\"additionalProperties\":false}",
                       NEEDS_ID),
                "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":\"1\",\"o\":{\"n\":null}}",
                 "{\"id\":\"1\",\"flow_published_at\":null,\"o\":{\"n\":null}}");
    lab_value_is("{\"id\":\"1\",\"o\":{}}",
                 "{\"id\":\"1\",\"flow_published_at\":null,\"o\":{\"n\":null}}");
}

static void deletions_are_tombstones_fields_or_the_callers_header(void **state)
{
    const char *text = OBJECT(ID ",\"v\":{\"type\":\"integer\"},\"_meta\":{\"type\":\"object\","
                                 "\"properties\":{\"op\":{\"type\":\"string\"}}}",
                              NEEDS_ID);
    const char *made = "{\"id\":\"1\",\"v\":2,\"_meta\":{\"op\":\"c\"}}";
    const char *gone = "{\"id\":\"1\",\"_meta\":{\"x\":1,\"op\":\"\\u0064\"}}";
    struct sc_avro_record rec;

    (void)state;
    lab_compile(text, "/id", SC_DELETE_CDC);
    lab_value_is(made, "{\"id\":\"1\",\"_meta_op\":\"c\",\"v\":2,\"_is_deleted\":0}");
    lab_value_is(gone, "{\"id\":\"1\",\"_meta_op\":\"d\",\"v\":null,\"_is_deleted\":1}");
    lab_value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"_meta_op\":null,\"v\":null,\"_is_deleted\":0}");
    lab_value_is("{\"_meta\":{\"op\":\"d\"},\"id\":\"1\",\"_meta\":{}}",
                 "{\"id\":\"1\",\"_meta_op\":null,\"v\":null,\"_is_deleted\":0}");
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    rec = lab_encode(span_str(gone));
    assert_true(rec.value.p == NULL && rec.value.n == 0 && rec.deleted);
    lab_key_is(gone, "{\"_flow_key\":{\"p1\":\"1\"}}");
    rec = lab_encode(span_str(made));
    assert_true(rec.value.p != NULL && !rec.deleted);
    lab_compile(text, "/id", SC_DELETE_HEADER);
    rec = lab_encode(span_str(gone));
    assert_true(rec.value.p != NULL && rec.deleted);
    lab_value_is(gone, "{\"id\":\"1\",\"_meta_op\":\"d\",\"v\":null}");
}

static void a_deletion_needs_no_more_than_its_key(void **state)
{
    struct sc_avro_record rec;

    (void)state;
    lab_compile(OBJECT(ID ",\"v\":{\"type\":\"integer\"}", ",\"required\":[\"id\",\"v\"]"), "/id",
                SC_DELETE_TOMBSTONE);
    rec = lab_encode(
        span_str("{\"_meta\":{\"op\":\"d\"},\"id\":\"1\",\"v\":\"not even an integer\"}"));
    assert_true(rec.deleted && rec.value.p == NULL && rec.key.n == 7);
    lab_misfits("{\"_meta\":{\"op\":\"d\"}}", E_INVALID, "/id");
}

static void names_are_made_valid_and_unique(void **state)
{
    const char *text =
        OBJECT(ID ",\"a-b\":{\"type\":\"integer\"},\"a_b\":{\"type\":\"integer\"},\"a b\":{"
                  "\"type\":\"integer\"},\"9\":{\"type\":\"integer\"},\"\":{\"type\":"
                  "\"integer\"},\"\xc3\xbc\":{\"type\":\"integer\"},\"_is_deleted\":{"
                  "\"type\":\"integer\"}",
               NEEDS_ID);

    (void)state;
    lab_compile(text, "/id", SC_DELETE_CDC);
    lab_value_is(
        "{\"id\":\"1\",\"a-b\":1,\"a_b\":2,\"a "
        "b\":3,\"9\":4,\"\":5,\"\xc3\xbc\":6,\"_is_deleted\":7}",
        "{\"id\":\"1\",\"_\":5,\"_9\":4,\"_is_deleted_2\":7,\"a_b_2\":3,\"a_b_3\":1,\"a_b\":2,"
        "\"__2\":6,"
        "\"_is_deleted\":0}");
    assert_true(lab_noted("a-b") && !lab_noted("a_b"));
    assert_int_equal(lab_try_compile(text, "/id", SC_DELETE_TOMBSTONE, true), E_INVALID);
    assert_non_null(strstr(lab_fault.reason, "^[A-Za-z_][A-Za-z0-9_]*$"));
}

static void integers_may_be_written_with_a_fraction_of_zero(void **state)
{
    (void)state;
    lab_compile(OBJECT(ID ",\"n\":{\"type\":\"integer\"}", NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":\"1\",\"n\":0.0}", "{\"id\":\"1\",\"n\":0}");
    lab_value_is("{\"id\":\"1\",\"n\":10.0}", "{\"id\":\"1\",\"n\":10}");
    lab_value_is("{\"id\":\"1\",\"n\":-1e3}", "{\"id\":\"1\",\"n\":-1000}");
    lab_value_is("{\"id\":\"1\",\"n\":92233720368547758070e-1}",
                 "{\"id\":\"1\",\"n\":9223372036854775807}");
    lab_misfits("{\"id\":\"1\",\"n\":0.1}", E_INVALID, "/n");
    lab_misfits("{\"id\":\"1\",\"n\":9223372036854775808}", E_RANGE, "/n");
    lab_misfits("{\"id\":\"1\",\"n\":1e400}", E_RANGE, "/n");
    lab_misfits("{\"id\":\"1\",\"n\":1e-400}", E_INVALID, "/n");
    lab_value_is("{\"id\":\"1\",\"n\":0e400}", "{\"id\":\"1\",\"n\":0}");
}

static void numbers_or_strings_with_a_format_are_one_of_them(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(ID
               ",\"s\":{\"type\":[\"string\",\"integer\"],\"format\":\"number\"},\"d\":{\"type\":["
               "\"string\",\"number\"],\"format\":\"number\"}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":\"1\",\"s\":1.0,\"d\":\"1.5\"}", "{\"id\":\"1\",\"d\":1.5,\"s\":\"1\"}");
    lab_value_is("{\"id\":\"1\",\"s\":1,\"d\":\"123.456\"}",
                 "{\"id\":\"1\",\"d\":123.456,\"s\":\"1\"}");
    lab_value_is("{\"id\":\"1\",\"s\":\"1.0\",\"d\":\"-Infinity\"}",
                 "{\"id\":\"1\",\"d\":-inf,\"s\":\"1.0\"}");
    lab_value_is("{\"id\":\"1\",\"s\":\"1.1\",\"d\":2}", "{\"id\":\"1\",\"d\":2,\"s\":\"1.1\"}");
    lab_value_is("{\"id\":\"1\",\"s\":-12e2,\"d\":null,\"d\":1}",
                 "{\"id\":\"1\",\"d\":1,\"s\":\"-1200\"}");
    lab_misfits("{\"id\":\"1\",\"s\":1.5}", E_INVALID, "/s");
    lab_misfits("{\"id\":\"1\",\"d\":\"1.5x\"}", E_INVALID, "/d");
    lab_misfits("{\"id\":\"1\",\"d\":\"\"}", E_INVALID, "/d");
    lab_misfits("{\"id\":\"1\",\"s\":1e500}", E_RANGE, "/s");
}

static void basic_types_of_the_mapping_table(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(
            ID
            ",\"i\":{\"type\":\"integer\",\"default\":42},\"dur\":{\"type\":\"string\",\"format\":"
            "\"duration\"},\"dur2\":{\"type\":\"string\",\"format\":\"duration\"},\"date\":{"
            "\"type\":\"string\",\"format\":\"date\"},\"ts\":{\"type\":\"string\",\"format\":"
            "\"date-time\"},\"u\":{\"type\":\"string\",\"format\":\"uuid\"},\"m\":{\"type\":"
            "\"object\",\"additionalProperties\":{\"type\":\"integer\"}},\"r\":{\"type\":"
            "\"object\",\"properties\":{\"b\":{\"type\":\"string\"},\"x-y\":{\"type\":"
            "\"integer\"}}},\"e\":{\"type\":\"object\",\"additionalProperties\":false},\"l\":{"
            "\"type\":\"array\"}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_schema_has("\"logicalType\":\"duration\"");
    lab_schema_has("{\"name\":\"i\",\"type\":\"long\",\"default\":42}");
    lab_value_is(
        "{\"id\":\"1\",\"dur\":\"P1Y2M3DT4H5M6.789S\",\"dur2\":\"P2W\",\"date\":\"1969-12-31\","
        "\"ts\":"
        "\"2020-01-02T03:04:05.678901999+01:00\",\"u\":\"{A0D1B9A4-7F3D-11EF-8000-010203040506}\","
        "\"m\":{\"b\":1,\"a\":-9223372036854775808},\"r\":{\"a\":1,\"b\":\"B\",\"bb\":[ 1 "
        "],\"x-y\":2},"
        "\"e\":{\"dropped\":1},\"l\":[1,null,\"x\"]}",
        "{\"id\":\"1\",\"date\":-1,\"dur\":0e000000030000006568e000,\"dur2\":"
        "000000000e00000000000000,"
        "\"e\":{},\"i\":42,\"l\":[{\"json\":\"1\"},null,{\"json\":\"\\\"x\\\"\"}],\"m\":{\"b\":1,"
        "\"a\":"
        "-9223372036854775808},\"r\":{\"b\":\"B\",\"_flow_extra\":{\"a\":{\"json\":\"1\"},\"bb\":{"
        "\"json\":\"[1]\"},\"x-y\":{\"json\":\"2\"}}},\"ts\":1577930645678901,\"u\":"
        "\"A0D1B9A4-7F3D-11EF-8000-010203040506\"}");
    lab_misfits("{\"id\":\"1\",\"dur\":\"xP1Y\"}", E_INVALID, "/dur");
    lab_misfits("{\"id\":\"1\",\"dur\":\"P\"}", E_INVALID, "/dur");
    lab_misfits("{\"id\":\"1\",\"dur\":\"PT\"}", E_INVALID, "/dur");
    lab_misfits("{\"id\":\"1\",\"dur\":\"P1DT\"}", E_INVALID, "/dur");
    lab_misfits("{\"id\":\"1\",\"dur\":\"P4294967296D\"}", E_RANGE, "/dur");
    lab_misfits("{\"id\":\"1\",\"date\":\"2023-02-29\"}", E_INVALID, "/date");
    lab_misfits("{\"id\":\"1\",\"ts\":\"2023-02-28T24:00:00Z\"}", E_INVALID, "/ts");
    lab_misfits("{\"id\":\"1\",\"u\":\"a0d1b9a4-7f3d-11ef-8000-01020304050\"}", E_INVALID, "/u");
    lab_misfits("{\"id\":\"1\",\"m\":{\"a/b\":true}}", E_INVALID, "/m/a~1b");
    lab_misfits("{\"id\":\"1\",\"l\":{}}", E_INVALID, "/l");
}

static void malformed_utf8_is_replaced_everywhere(void **state)
{
    (void)state;
    lab_compile(OBJECT(ID ",\"s\":{\"type\":\"string\"},\"raw\":{}", NEEDS_ID), "/id",
                SC_DELETE_TOMBSTONE);
    lab_value_is(
        "{\"id\":\"\xff\",\"s\":\"a\xc3(\xe2\x82\",\"raw\":{\"\xf8k\": "
        "\"\xed\xa0\x80\"},\"\xff\":1}",
        "{\"id\":\"\xef\xbf\xbd\",\"raw\":{\"json\":\"{\\\"\xef\xbf\xbdk\\\":\\\"\xef\xbf\xbd"
        "\xef\xbf\xbd\xef\xbf\xbd\\\"}\"},\"s\":\"a\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void the_time_of_publishing_is_a_timestamp(void **state)
{
    (void)state;
    lab_sel = (struct sc_selection){.depth = 1};
    lab_compile(OBJECT(ID, NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    lab_schema_has(
        "{\"name\":\"flow_published_at\",\"type\":[\"null\",{\"type\":\"long\",\"logicalType\":"
        "\"timestamp-micros\"}],\"default\":null}");
    /* 13814000-1dd2-11b2-... is 1970-01-01 */
    lab_value_is("{\"_meta\":{\"uuid\":\"13814000-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"flow_published_at\":0}");
    lab_value_is("{\"_meta\":{\"uuid\":\"1381400b-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"flow_published_at\":1}");
    lab_value_is("{\"_meta\":{\"uuid\":\"13813fff-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"flow_published_at\":-1}");
    lab_value_is("{\"_meta\":{\"uuid\":\"13813fff-1dd2-41b2-8000-010203040506\"},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"flow_published_at\":null}");
    lab_value_is("{\"_meta\":{\"uuid\":5},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"flow_published_at\":null}");
}

/* --- odd cases --- */

/* A location that can only be null is no field, asked for or not; inside of a record it is null. */
static void a_location_that_is_only_null_is_no_field(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(ID ",\"n\":{\"type\":\"null\"},\"r\":{\"type\":\"object\",\"properties\":{\"n\":{"
                  "\"type\":\"null\"}},\"additionalProperties\":false,\"required\":[\"n\"]}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":\"1\",\"n\":null,\"r\":{\"n\":null}}",
                 "{\"id\":\"1\",\"r\":{\"n\":null}}");
    lab_value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"r\":null}");
    lab_misfits("{\"id\":\"1\",\"r\":{\"n\":1}}", E_INVALID, "/r/n");
}

static void equal_keys_are_equal_bytes_in_any_spelling(void **state)
{
    (void)state;
    lab_compile(OBJECT("\"id\":{\"type\":\"number\"}", NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    lab_key_is("{\"id\":-0.0}", "{\"_flow_key\":{\"p1\":0}}");
    lab_value_is("{\"id\":-0.0}", "{\"id\":-0}");
    lab_compile(OBJECT("\"id\":{\"type\":[\"string\",\"number\"],\"format\":\"number\"}", NEEDS_ID),
                "/id", SC_DELETE_TOMBSTONE);
    lab_key_is("{\"id\":\"-0\"}", "{\"_flow_key\":{\"p1\":0}}");
    lab_compile(OBJECT("\"id\":{}", NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    lab_key_is("{\"id\":1.0}", "{\"_flow_key\":{\"p1\":{\"json\":\"1\"}}}");
    lab_key_is("{\"id\":-10e-1}", "{\"_flow_key\":{\"p1\":{\"json\":\"-1\"}}}");
    lab_key_is("{\"id\":\"\\u0061\\/\"}", "{\"_flow_key\":{\"p1\":{\"json\":\"\\\"a/\\\"\"}}}");
    lab_key_is("{\"id\":\"x\xff\"}",
               "{\"_flow_key\":{\"p1\":{\"json\":\"\\\"x\xef\xbf\xbd\\\"\"}}}");
    lab_value_is("{\"id\":1.0}", "{\"id\":{\"json\":\"1.0\"}}");
}

static void no_object_and_no_array_is_a_key_whatever_its_schema_admits(void **state)
{
    (void)state;
    lab_compile(OBJECT("\"id\":{}", NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    lab_misfits("{\"id\":{\"a\":1}}", E_INVALID, "/id");
    lab_misfits("{\"id\":[1]}", E_INVALID, "/id");
    lab_misfits("{\"id\":[1}", E_SYNTAX, "");
    lab_key_is("{\"id\":true}", "{\"_flow_key\":{\"p1\":{\"json\":\"true\"}}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_of_with_a_null_default),
        T(fields_are_selected_by_name_pointer_and_depth),
        T(a_required_field_must_exist_an_included_one_is_noted),
        T(deletions_are_tombstones_fields_or_the_callers_header),
        T(a_deletion_needs_no_more_than_its_key),
        T(names_are_made_valid_and_unique),
        T(integers_may_be_written_with_a_fraction_of_zero),
        T(numbers_or_strings_with_a_format_are_one_of_them),
        T(basic_types_of_the_mapping_table),
        T(malformed_utf8_is_replaced_everywhere),
        T(the_time_of_publishing_is_a_timestamp),
        T(a_location_that_is_only_null_is_no_field),
        T(equal_keys_are_equal_bytes_in_any_spelling),
        T(no_object_and_no_array_is_a_key_whatever_its_schema_admits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
