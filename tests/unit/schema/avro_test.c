/*
 * Schemas and bytes of collections: the fixtures of field extraction, odd cases 41, 47, 53, 55, 57,
 * 59 and 61, names, defaults, deletions, errors with their pointers. What is written is read back
 * by avro-c, which knows nothing of how it was made, and compared as JSON text. Long, since nearly
 * all of it is fixtures: schemas, documents and what they become, which share one reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <avro.h>
#include <locale.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/json_reader.h"
#include "schema/transcode.h"

static struct sc_avro *av;
static struct sc_scratch *scratch;
static struct sc_selection sel;
static struct sc_schema_error fault;

static int try_compile(const char *schema, const char *key, enum sc_deletions deletions,
                       bool strict)
{
    const struct span k = span_str(key);
    struct sc_avro_opts opts = {
        .key = &k, .key_n = 1, .select = &sel, .deletions = deletions, .strict_names = strict};
    struct sc_schema *s;
    int r;

    sc_avro_free(av);
    av = NULL;
    if ((r = sc_schema_new(span_str(schema), NULL, 0, &fault, &s)) == 0)
        r = sc_avro_new(s, &opts, &fault, &av);
    sc_schema_free(s);
    return r;
}

static void compile(const char *schema, const char *key, enum sc_deletions deletions)
{
    int r = try_compile(schema, key, deletions, false);

    if (r < 0)
        print_message("%s: %s\n", fault.pointer, fault.reason);
    assert_int_equal(r, 0);
}

/* --- avro-c's view of bytes, as JSON text --- */

static void render(avro_value_t *v, struct writer *w)
{
    avro_value_t part = {NULL, NULL};
    const char *text = NULL;
    const void *raw = NULL;
    double d = 0;
    int64_t l = 0;
    int32_t i = 0;
    size_t n = 0;
    int b = 0;

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): avro-c filled it in */
    switch (avro_value_get_type(v)) {
    case AVRO_NULL:
        wr_str(w, "null");
        break;
    case AVRO_BOOLEAN:
        avro_value_get_boolean(v, &b);
        wr_str(w, b ? "true" : "false");
        break;
    case AVRO_INT32:
        avro_value_get_int(v, &i);
        wr_printf(w, "%d", (int)i);
        break;
    case AVRO_INT64:
        avro_value_get_long(v, &l);
        wr_printf(w, "%lld", (long long)l);
        break;
    case AVRO_DOUBLE:
        avro_value_get_double(v, &d);
        wr_printf(w, "%.17g", d);
        break;
    case AVRO_STRING:
        avro_value_get_string(v, &text, &n);
        sc_json_quote(span_of(text, n - 1), w);
        break;
    case AVRO_FIXED:
        avro_value_get_fixed(v, &raw, &n);
        for (size_t k = 0; k < n; k++)
            wr_printf(w, "%02x", ((const uint8_t *)raw)[k]);
        break;
    case AVRO_UNION:
        avro_value_get_current_branch(v, &part);
        render(&part, w);
        break;
    case AVRO_RECORD:
    case AVRO_ARRAY:
    case AVRO_MAP:
        avro_value_get_size(v, &n);
        b = avro_value_get_type(v) == AVRO_ARRAY;
        wr_u8(w, b ? '[' : '{');
        for (size_t k = 0; k < n; k++) {
            if (k > 0)
                wr_u8(w, ',');
            avro_value_get_by_index(v, k, &part, &text);
            if (!b) {
                sc_json_quote(span_str(text), w);
                wr_u8(w, ':');
            }
            render(&part, w);
        }
        wr_u8(w, b ? ']' : '}');
        break;
    case AVRO_BYTES:
    case AVRO_FLOAT:
    case AVRO_ENUM:
    case AVRO_LINK:
    default:
        fail();
    }
}

static struct blob *decoded(struct span schema_text, struct span framed)
{
    avro_schema_t schema;
    avro_reader_t reader;
    avro_value_iface_t *iface;
    avro_value_t v;
    struct writer w;
    struct blob *out;

    if (avro_schema_from_json_length((const char *)schema_text.p, schema_text.n, &schema) != 0)
        print_message("%s\n%.*s\n", avro_strerror(), SPAN_FMT(schema_text));
    assert_int_equal(framed.p[0], 0);
    reader = avro_reader_memory((const char *)framed.p + 5, (int64_t)framed.n - 5);
    iface = avro_generic_class_from_schema(schema);
    assert_int_equal(avro_generic_value_new(iface, &v), 0);
    assert_int_equal(avro_value_read(reader, &v), 0);
    /* nothing may be left over */
    assert_int_not_equal(avro_skip(reader, 1), 0);
    wr_init(&w, 1 << 24);
    render(&v, &w);
    wr_u8(&w, 0);
    out = wr_take(&w);
    avro_value_decref(&v);
    avro_value_iface_decref(iface);
    avro_schema_decref(schema);
    avro_reader_free(reader);
    return out;
}

static struct sc_avro_record encode(struct span doc)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = sc_transcode(av, scratch, doc, &rec, &err);

    if (r < 0)
        print_message("%.*s: %s: %s\n", SPAN_FMT(doc), err.pointer, err.reason);
    assert_int_equal(r, 0);
    return rec;
}

static void value_is(const char *doc, const char *want)
{
    struct sc_avro_record rec = encode(span_str(doc));
    struct blob *got = decoded(sc_avro_value_schema(av), rec.value);

    assert_string_equal((const char *)got->data, want);
    blob_unref(got);
}

static void key_is(const char *doc, const char *want)
{
    struct sc_avro_record rec = encode(span_str(doc));
    struct blob *got = decoded(sc_avro_key_schema(av), rec.key);
    struct sc_transcode_error err;
    uint8_t copy[256];
    size_t n = rec.key.n;

    assert_string_equal((const char *)got->data, want);
    blob_unref(got);
    assert_true(n <= sizeof copy);
    memcpy(copy, rec.key.p, n);
    assert_int_equal(sc_transcode_key(av, scratch, span_str(doc), &rec, &err), 0);
    assert_true(span_eq(rec.key, span_of(copy, n)) && rec.value.p == NULL);
}

static void misfits(const char *doc, int code, const char *pointer)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = sc_transcode(av, scratch, span_str(doc), &rec, &err);

    assert_string_equal(err.pointer, pointer);
    if (r != code)
        print_message("%s: %s\n", doc, err.reason);
    assert_int_equal(r, code);
    assert_non_null(err.reason);
    assert_true(err.at <= strlen(doc));
}

static void schema_has(const char *part)
{
    struct span s = sc_avro_value_schema(av);

    if (memmem(s.p, s.n, part, strlen(part)) == NULL)
        print_message("%.*s\nlacks %s\n", SPAN_FMT(s), part);
    assert_non_null(memmem(s.p, s.n, part, strlen(part)));
}

static bool noted(const char *field)
{
    const struct sc_avro_note *notes;
    size_t n = sc_avro_notes(av, &notes);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(notes[i].field, field) == 0)
            return true;
    }
    return false;
}

static int setup(void **state)
{
    static const struct span published = {(const uint8_t *)SC_PUBLISHED_NAME,
                                          sizeof SC_PUBLISHED_NAME - 1};

    (void)state;
    sel = (struct sc_selection){.depth = 1, .exclude = &published, .exclude_n = 1};
    return sc_scratch_new(&scratch);
}

static int teardown(void **state)
{
    (void)state;
    sc_avro_free(av);
    av = NULL;
    sc_scratch_free(scratch);
    scratch = NULL;
    return 0;
}

#define OBJECT(props, more) "{\"type\":\"object\",\"properties\":{" props "}" more "}"
#define ID                  "\"id\":{\"type\":\"string\"}"
#define NEEDS_ID            ",\"required\":[\"id\"]"

/* --- fixtures of field extraction --- */

static void all_of_with_a_null_default(void **state)
{
    (void)state;
    compile(OBJECT(ID,
                   NEEDS_ID ",\"allOf\":[{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],"
                            "\"default\":null}}},{\"properties\":{\"a\":{\"title\":\"A\"}}}]"),
            "/id", SC_DELETE_TOMBSTONE);
    schema_has("{\"name\":\"a\",\"type\":[\"null\",\"string\"],\"default\":null}");
    value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"a\":null}");
    value_is("{\"id\":\"1\",\"a\":\"x\"}", "{\"id\":\"1\",\"a\":\"x\"}");
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
    sel = (struct sc_selection){.require = by_name, .require_n = 2};
    compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    value_is(doc, "{\"id\":\"1\",\"a_y_z\":\"Z\",\"b\":2}");

    sel = (struct sc_selection){.depth = 1};
    compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    value_is(
        doc,
        "{\"id\":\"1\",\"_meta_op\":\"c\",\"a\":{\"x\":1,\"y\":{\"z\":\"Z\",\"_flow_extra\":{}},"
        "\"_flow_extra\":{}},\"b\":2,\"flow_published_at\":null}");

    sel = (struct sc_selection){.depth = 2, .exclude = &y, .exclude_n = 1};
    compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    value_is(doc, "{\"id\":\"1\",\"_meta_op\":\"c\",\"a_x\":1,\"b\":2,\"flow_published_at\":null}");

    /* what lies below a field that was asked for is in it already */
    sel = (struct sc_selection){.depth = SC_DEPTH_ALL, .require = &a, .require_n = 1};
    compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    value_is(
        doc,
        "{\"id\":\"1\",\"_meta_op\":\"c\",\"a\":{\"x\":1,\"y\":{\"z\":\"Z\",\"_flow_extra\":{}},"
        "\"_flow_extra\":{}},\"b\":2,\"flow_published_at\":null}");

    sel = (struct sc_selection){.require = &document, .require_n = 1};
    compile(FIELDS, "/id", SC_DELETE_TOMBSTONE);
    value_is(
        doc,
        "{\"id\":\"1\",\"flow_document\":{\"_meta\":{\"op\":\"c\"},\"a\":{\"x\":1,\"y\":{\"z\":"
        "\"Z\",\"_flow_extra\":{}},\"_flow_extra\":{}},\"b\":2,\"id\":\"1\",\"_flow_extra\":{}}}");
    assert_int_equal(try_compile(FIELDS, "/nope/x", SC_DELETE_TOMBSTONE, false), 0);
}

static void a_required_field_must_exist_an_included_one_is_noted(void **state)
{
    const struct span none = span_str("typo"), nul = span_str("n");
    const char *text = OBJECT(ID ",\"n\":{\"type\":\"null\"}", NEEDS_ID);

    (void)state;
    sel = (struct sc_selection){.require = &none, .require_n = 1};
    assert_int_equal(try_compile(text, "/id", SC_DELETE_TOMBSTONE, false), E_INVALID);
    assert_non_null(strstr(fault.reason, "typo"));
    sel = (struct sc_selection){.include = &none, .include_n = 1};
    compile(text, "/id", SC_DELETE_TOMBSTONE);
    assert_true(noted("typo"));
    /* a location that can only be null: forbidden as a field, null inside of others */
    sel = (struct sc_selection){.require = &nul, .require_n = 1};
    assert_int_equal(try_compile(text, "/id", SC_DELETE_TOMBSTONE, false), E_INVALID);
    sel = (struct sc_selection){.depth = 1};
    compile(text, "/id", SC_DELETE_TOMBSTONE);
    assert_true(noted("n"));
    compile(OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"null\"}},"
                      "\"additionalProperties\":false}",
                   NEEDS_ID),
            "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"id\":\"1\",\"o\":{\"n\":null}}",
             "{\"id\":\"1\",\"flow_published_at\":null,\"o\":{\"n\":null}}");
    value_is("{\"id\":\"1\",\"o\":{}}",
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
    compile(text, "/id", SC_DELETE_CDC);
    value_is(made, "{\"id\":\"1\",\"_meta_op\":\"c\",\"v\":2,\"_is_deleted\":0}");
    value_is(gone, "{\"id\":\"1\",\"_meta_op\":\"d\",\"v\":null,\"_is_deleted\":1}");
    value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"_meta_op\":null,\"v\":null,\"_is_deleted\":0}");
    value_is("{\"_meta\":{\"op\":\"d\"},\"id\":\"1\",\"_meta\":{}}",
             "{\"id\":\"1\",\"_meta_op\":null,\"v\":null,\"_is_deleted\":0}");
    compile(text, "/id", SC_DELETE_TOMBSTONE);
    rec = encode(span_str(gone));
    assert_true(rec.value.p == NULL && rec.value.n == 0 && rec.deleted);
    key_is(gone, "{\"_flow_key\":{\"p1\":\"1\"}}");
    rec = encode(span_str(made));
    assert_true(rec.value.p != NULL && !rec.deleted);
    compile(text, "/id", SC_DELETE_HEADER);
    rec = encode(span_str(gone));
    assert_true(rec.value.p != NULL && rec.deleted);
    value_is(gone, "{\"id\":\"1\",\"_meta_op\":\"d\",\"v\":null}");
}

static void a_deletion_needs_no_more_than_its_key(void **state)
{
    struct sc_avro_record rec;

    (void)state;
    compile(OBJECT(ID ",\"v\":{\"type\":\"integer\"}", ",\"required\":[\"id\",\"v\"]"), "/id",
            SC_DELETE_TOMBSTONE);
    rec = encode(span_str("{\"_meta\":{\"op\":\"d\"},\"id\":\"1\",\"v\":\"not even an integer\"}"));
    assert_true(rec.deleted && rec.value.p == NULL && rec.key.n == 7);
    misfits("{\"_meta\":{\"op\":\"d\"}}", E_INVALID, "/id");
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
    compile(text, "/id", SC_DELETE_CDC);
    value_is("{\"id\":\"1\",\"a-b\":1,\"a_b\":2,\"a "
             "b\":3,\"9\":4,\"\":5,\"\xc3\xbc\":6,\"_is_deleted\":7}",
             "{\"id\":\"1\",\"_\":5,\"_9\":4,\"_is_deleted_2\":7,\"a_b_2\":3,\"a_b_3\":1,\"a_b\":2,"
             "\"__2\":6,"
             "\"_is_deleted\":0}");
    assert_true(noted("a-b") && !noted("a_b"));
    assert_int_equal(try_compile(text, "/id", SC_DELETE_TOMBSTONE, true), E_INVALID);
    assert_non_null(strstr(fault.reason, "^[A-Za-z_][A-Za-z0-9_]*$"));
}

static void integers_may_be_written_with_a_fraction_of_zero(void **state)
{
    (void)state;
    compile(OBJECT(ID ",\"n\":{\"type\":\"integer\"}", NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"id\":\"1\",\"n\":0.0}", "{\"id\":\"1\",\"n\":0}");
    value_is("{\"id\":\"1\",\"n\":10.0}", "{\"id\":\"1\",\"n\":10}");
    value_is("{\"id\":\"1\",\"n\":-1e3}", "{\"id\":\"1\",\"n\":-1000}");
    value_is("{\"id\":\"1\",\"n\":92233720368547758070e-1}",
             "{\"id\":\"1\",\"n\":9223372036854775807}");
    misfits("{\"id\":\"1\",\"n\":0.1}", E_INVALID, "/n");
    misfits("{\"id\":\"1\",\"n\":9223372036854775808}", E_RANGE, "/n");
    misfits("{\"id\":\"1\",\"n\":1e400}", E_RANGE, "/n");
    misfits("{\"id\":\"1\",\"n\":1e-400}", E_INVALID, "/n");
    value_is("{\"id\":\"1\",\"n\":0e400}", "{\"id\":\"1\",\"n\":0}");
}

static void numbers_or_strings_with_a_format_are_one_of_them(void **state)
{
    (void)state;
    compile(
        OBJECT(ID
               ",\"s\":{\"type\":[\"string\",\"integer\"],\"format\":\"number\"},\"d\":{\"type\":["
               "\"string\",\"number\"],\"format\":\"number\"}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"id\":\"1\",\"s\":1.0,\"d\":\"1.5\"}", "{\"id\":\"1\",\"d\":1.5,\"s\":\"1\"}");
    value_is("{\"id\":\"1\",\"s\":1,\"d\":\"123.456\"}",
             "{\"id\":\"1\",\"d\":123.456,\"s\":\"1\"}");
    value_is("{\"id\":\"1\",\"s\":\"1.0\",\"d\":\"-Infinity\"}",
             "{\"id\":\"1\",\"d\":-inf,\"s\":\"1.0\"}");
    value_is("{\"id\":\"1\",\"s\":\"1.1\",\"d\":2}", "{\"id\":\"1\",\"d\":2,\"s\":\"1.1\"}");
    value_is("{\"id\":\"1\",\"s\":-12e2,\"d\":null,\"d\":1}",
             "{\"id\":\"1\",\"d\":1,\"s\":\"-1200\"}");
    misfits("{\"id\":\"1\",\"s\":1.5}", E_INVALID, "/s");
    misfits("{\"id\":\"1\",\"d\":\"1.5x\"}", E_INVALID, "/d");
    misfits("{\"id\":\"1\",\"d\":\"\"}", E_INVALID, "/d");
    misfits("{\"id\":\"1\",\"s\":1e500}", E_RANGE, "/s");
}

static void basic_types_of_the_mapping_table(void **state)
{
    (void)state;
    compile(
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
    schema_has("\"logicalType\":\"duration\"");
    schema_has("{\"name\":\"i\",\"type\":\"long\",\"default\":42}");
    value_is(
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
    misfits("{\"id\":\"1\",\"dur\":\"xP1Y\"}", E_INVALID, "/dur");
    misfits("{\"id\":\"1\",\"dur\":\"P\"}", E_INVALID, "/dur");
    misfits("{\"id\":\"1\",\"dur\":\"PT\"}", E_INVALID, "/dur");
    misfits("{\"id\":\"1\",\"dur\":\"P1DT\"}", E_INVALID, "/dur");
    misfits("{\"id\":\"1\",\"dur\":\"P4294967296D\"}", E_RANGE, "/dur");
    misfits("{\"id\":\"1\",\"date\":\"2023-02-29\"}", E_INVALID, "/date");
    misfits("{\"id\":\"1\",\"ts\":\"2023-02-28T24:00:00Z\"}", E_INVALID, "/ts");
    misfits("{\"id\":\"1\",\"u\":\"a0d1b9a4-7f3d-11ef-8000-01020304050\"}", E_INVALID, "/u");
    misfits("{\"id\":\"1\",\"m\":{\"a/b\":true}}", E_INVALID, "/m/a~1b");
    misfits("{\"id\":\"1\",\"l\":{}}", E_INVALID, "/l");
}

static void malformed_utf8_is_replaced_everywhere(void **state)
{
    (void)state;
    compile(OBJECT(ID ",\"s\":{\"type\":\"string\"},\"raw\":{}", NEEDS_ID), "/id",
            SC_DELETE_TOMBSTONE);
    value_is("{\"id\":\"\xff\",\"s\":\"a\xc3(\xe2\x82\",\"raw\":{\"\xf8k\": "
             "\"\xed\xa0\x80\"},\"\xff\":1}",
             "{\"id\":\"\xef\xbf\xbd\",\"raw\":{\"json\":\"{\\\"\xef\xbf\xbdk\\\":\\\"\xef\xbf\xbd"
             "\xef\xbf\xbd\xef\xbf\xbd\\\"}\"},\"s\":\"a\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void the_time_of_publishing_is_a_timestamp(void **state)
{
    (void)state;
    sel = (struct sc_selection){.depth = 1};
    compile(OBJECT(ID, NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    schema_has(
        "{\"name\":\"flow_published_at\",\"type\":[\"null\",{\"type\":\"long\",\"logicalType\":"
        "\"timestamp-micros\"}],\"default\":null}");
    /* 13814000-1dd2-11b2-... is 1970-01-01 */
    value_is("{\"_meta\":{\"uuid\":\"13814000-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
             "{\"id\":\"1\",\"flow_published_at\":0}");
    value_is("{\"_meta\":{\"uuid\":\"1381400b-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
             "{\"id\":\"1\",\"flow_published_at\":1}");
    value_is("{\"_meta\":{\"uuid\":\"13813fff-1dd2-11b2-8000-010203040506\"},\"id\":\"1\"}",
             "{\"id\":\"1\",\"flow_published_at\":-1}");
    value_is("{\"_meta\":{\"uuid\":\"13813fff-1dd2-41b2-8000-010203040506\"},\"id\":\"1\"}",
             "{\"id\":\"1\",\"flow_published_at\":null}");
    value_is("{\"_meta\":{\"uuid\":5},\"id\":\"1\"}", "{\"id\":\"1\",\"flow_published_at\":null}");
}

/* --- odd cases --- */

static void case_41_defaults_fit_the_first_branch_or_are_left_out(void **state)
{
    (void)state;
    compile(
        OBJECT(
            ID
            ",\"a\":{\"type\":\"string\",\"default\":\"u\"},\"b\":{\"type\":[\"integer\",\"null\"],"
            "\"default\":null},\"c\":{\"type\":[\"integer\",\"null\"],\"default\":3},\"d\":{"
            "\"const\":\"x\"},\"e\":{\"enum\":[\"p\",\"q\"],\"default\":\"q\"},\"f\":{},\"g\":{"
            "\"type\":\"integer\",\"default\":\"no\"},\"h\":{\"type\":\"number\",\"default\":"
            "1e400},\"i\":{\"type\":\"integer\",\"default\":9223372036854775807},\"j\":{\"type\":"
            "\"object\",\"properties\":{\"k\":{\"type\":\"integer\"}},\"default\":{\"k\":5}},\"l\":"
            "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"default\":[1,2]}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    schema_has("{\"name\":\"a\",\"type\":\"string\",\"default\":\"u\"}");
    schema_has("{\"name\":\"b\",\"type\":[\"null\",\"long\"],\"default\":null}");
    schema_has("{\"name\":\"c\",\"type\":[\"long\",\"null\"],\"default\":3}");
    schema_has("{\"name\":\"e\",\"type\":\"string\",\"default\":\"q\"}");
    schema_has("{\"name\":\"g\",\"type\":[\"null\",\"long\"],\"default\":null}");
    schema_has("{\"name\":\"h\",\"type\":\"double\"}");
    schema_has("{\"name\":\"i\",\"type\":\"long\"}");
    assert_true(noted("g"));
    value_is(
        "{\"id\":\"1\"}",
        "{\"id\":\"1\",\"a\":\"u\",\"b\":null,\"c\":3,\"d\":null,\"e\":\"q\",\"f\":null,\"g\":null,"
        "\"h\":inf,\"i\":9223372036854775807,\"j\":{\"k\":5,\"_flow_extra\":{}},\"l\":[1,2]}");
    value_is("{\"id\":\"1\",\"c\":null,\"a\":\"\",\"f\":null}",
             "{\"id\":\"1\",\"a\":\"\",\"b\":null,\"c\":null,\"d\":null,\"e\":\"q\",\"f\":null,"
             "\"g\":null,"
             "\"h\":inf,\"i\":9223372036854775807,\"j\":{\"k\":5,\"_flow_extra\":{}},\"l\":[1,2]}");
}

static void case_47_no_name_is_defined_twice(void **state)
{
    (void)state;
    compile(
        OBJECT(
            ID
            ",\"a\":{\"$ref\":\"#/$defs/addr\"},\"b\":{\"$ref\":\"#/$defs/addr\"},\"c\":{\"type\":"
            "\"object\",\"properties\":{\"street\":{\"type\":\"integer\"}}},\"root\":{\"type\":"
            "\"object\",\"properties\":{\"root\":{\"$ref\":\"#/$defs/addr\"}}},\"self\":{\"$ref\":"
            "\"#\"},\"string\":{\"$ref\":\"#/$defs/addr\"}",
            NEEDS_ID ",\"$defs\":{\"addr\":{\"type\":\"object\",\"properties\":{\"street\":{"
                     "\"type\":\"string\"},\"kind\":{\"enum\":[\"x\",\"y\"]}},"
                     "\"additionalProperties\":false}}"),
        "/id", SC_DELETE_TOMBSTONE);
    value_is(
        "{\"id\":\"1\",\"a\":{\"street\":\"s\"},\"b\":{\"kind\":\"x\"},\"c\":{\"street\":1},"
        "\"root\":{"
        "\"root\":{}},\"self\":{\"id\":[ ]},\"string\":{}}",
        "{\"id\":\"1\",\"a\":{\"kind\":null,\"street\":\"s\"},\"b\":{\"kind\":\"x\",\"street\":"
        "null},"
        "\"c\":{\"street\":1,\"_flow_extra\":{}},\"root\":{\"root\":{\"kind\":null,\"street\":null}"
        ","
        "\"_flow_extra\":{}},\"self\":{\"json\":\"{\\\"id\\\":[]}\"},\"string\":{\"kind\":null,"
        "\"street\":null}}");
}

static void case_53_integers_beyond_2_53_are_exact(void **state)
{
    (void)state;
    compile(
        OBJECT(
            "\"id\":{\"type\":\"integer\"},\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
            "\"integer\"},"
            "\"c\":{\"type\":\"integer\"},\"d\":{\"type\":\"number\"},\"e\":{\"type\":\"integer\"}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"id\":13911860366432393,\"a\":9007199254740993,\"b\":9223372036854775807,\"c\":"
             "-9223372036854775808,\"d\":1.0,\"e\":1e3}",
             "{\"id\":13911860366432393,\"a\":9007199254740993,\"b\":9223372036854775807,\"c\":"
             "-9223372036854775808,\"d\":1,\"e\":1000}");
    key_is("{\"id\":13911860366432393}", "{\"_flow_key\":{\"p1\":13911860366432393}}");
}

static void case_55_a_nul_is_a_byte_like_any_other(void **state)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    static const char raw[] = "{\"id\":\"a\0b\"}";

    (void)state;
    compile(OBJECT(ID ",\"s\":{\"type\":\"string\"},\"x\\u0000y\":{\"type\":\"integer\"},\"tail\":{"
                      "\"type\":\"integer\"}",
                   NEEDS_ID),
            "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"id\":\"k\\u0000ey\",\"s\":\"a\\u0000b\",\"x\\u0000y\":1,\"tail\":7}",
             "{\"id\":\"k\\u0000ey\",\"s\":\"a\\u0000b\",\"tail\":7,\"x_y\":1}");
    key_is("{\"id\":\"k\\u0000ey\"}", "{\"_flow_key\":{\"p1\":\"k\\u0000ey\"}}");
    /* raw it is no JSON; the next document is as good as ever */
    assert_int_equal(sc_transcode(av, scratch, span_of(raw, sizeof raw - 1), &rec, &err), E_SYNTAX);
    value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"s\":null,\"tail\":null,\"x_y\":null}");
}

static void case_57_deep_nesting_is_bounded(void **state)
{
    static const size_t depths[] = {100, 1000, 9000, 100000, 1000000};
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    struct writer w;

    (void)state;
    compile(OBJECT(ID ",\"raw\":{},\"self\":{\"$ref\":\"#\"}", NEEDS_ID), "/id",
            SC_DELETE_TOMBSTONE);
    for (size_t i = 0; i < 2 * sizeof depths / sizeof depths[0]; i++) {
        size_t depth = depths[i / 2];
        int r;

        wr_init(&w, 1 << 26);
        wr_str(&w, i % 2 == 0 ? "{\"id\":\"1\",\"raw\":" : "{\"id\":\"1\",\"skipped\":");
        for (size_t k = 0; k < depth; k++)
            wr_str(&w, k % 2 == 0 ? "[" : "{\"a\":");
        wr_str(&w, "0");
        for (size_t k = depth; k > 0; k--)
            wr_u8(&w, (k - 1) % 2 == 0 ? ']' : '}');
        wr_str(&w, "}");
        r = sc_transcode(av, scratch, blob_span(w.b), &rec, &err);
        assert_int_equal(r, depth < SC_JSON_MAX_DEPTH ? 0 : E_LIMIT);
        wr_fini(&w);
    }
    wr_init(&w, 1 << 20);
    for (size_t k = 0; k < 100000; k++)
        wr_u8(&w, '[');
    assert_int_equal(sc_transcode(av, scratch, blob_span(w.b), &rec, &err), E_LIMIT);
    wr_fini(&w);
    misfits("{\"id\":[[[[1]]]]}", E_INVALID, "/id");
}

static void check_doubles(void)
{
    char text[11000], *p = text;

    p += snprintf(
        p, 200,
        "{\"id\":\"1\",\"n\":[1e400,-1e400,1e-400,-1e-400,4.9e-324,0.1,1.7976931348623157e308,0.");
    for (size_t i = 0; i < 10000; i++)
        *p++ = (char)('1' + i % 9);
    (void)snprintf(p, 100, ",9007199254740993,123456789012345678901234567890]}");
    value_is(text, "{\"id\":\"1\",\"n\":[inf,-inf,0,-0,4.9406564584124654e-324,0.10000000000000001,"
                   "1.7976931348623157e+308,0.12345678912345678,9007199254740992,"
                   "1.2345678901234568e+29]}");
}

static void case_59_doubles_are_the_nearest_in_any_locale(void **state)
{
    (void)state;
    compile(OBJECT(ID ",\"n\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}", NEEDS_ID),
            "/id", SC_DELETE_TOMBSTONE);
    check_doubles();
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) {
        struct sc_avro_record rec = encode(span_str(
            "{\"id\":\"1\",\"n\":[0.1,1.00000000000000011102230246251565404236316680908203125]}"));
        uint8_t copy[64];
        size_t n = rec.value.n;

        assert_true(n <= sizeof copy);
        memcpy(copy, rec.value.p, n);
        (void)setlocale(LC_NUMERIC, "C"); /* NOLINT(concurrency-mt-unsafe): one thread */
        rec = encode(span_str(
            "{\"id\":\"1\",\"n\":[0.1,1.00000000000000011102230246251565404236316680908203125]}"));
        assert_true(span_eq(rec.value, span_of(copy, n)));
    }
}

static void case_61_a_malformed_document_is_an_error_of_its_own(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "{\"id\":\"1\"",
        "{\"id\":\"1\",}",
        "{\"id\":\"\\u12\"}",
        "{\"id\" 1}",
        "[\"id\"}",
        "{\"id\":\"1\"}}",
        "{\"id\":\"1\"} x",
        "{\"x\":01,\"id\":\"1\"}",
        "nul",
        "{\"x\":\"\\u12\",\"id\":\"1\"}",
        "{\"id\":\"1\",\"raw\":[1,]}",
        "{\"id\":\"1\",\"raw\":{\"a\":tru}}",
        "{\"id\":\"1\",\"raw\":1.}",
        "{'id':1}",
        "{\"id\":\"1\",\"n\":-}",
        "{\"id\":\"1\",\"n\":1e}",
        "{\"id\":\"1\",\"n\":nulL}",
        "{\"id\":\"a\nb\"}",
        "{\"id\":\"\\x\"}",
        "{\"id\":\"1\" \"n\":1}",
        "{\"id\":\"1\",\"l\":[1 2]}",
        "{\"id\":\"1\",\"l\":[1,]}",
        "{\"id\":\"1\",\"m\":{\"a\":1,}}",
        "{\"id\":\"1\",\"m\":{\"a\"}}",
    };

    (void)state;
    compile(OBJECT(ID ",\"raw\":{},\"n\":{\"type\":\"integer\"},\"l\":{\"type\":\"array\","
                      "\"items\":{\"type\":"
                      "\"integer\"}},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
                      "\"integer\"}}",
                   NEEDS_ID),
            "/id", SC_DELETE_TOMBSTONE);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        misfits(bad[i], E_SYNTAX, "");
        value_is(" \t{\"id\" : \"1\"}\r\n",
                 "{\"id\":\"1\",\"l\":null,\"m\":null,\"n\":null,\"raw\":null}");
    }
}

/* --- members, duplicates, errors --- */

static void members_come_in_any_order_and_the_last_of_duplicates_counts(void **state)
{
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{"
                  "\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},"
                  "\"additionalProperties\":{\"type\":\"integer\"}}",
               NEEDS_ID);

    (void)state;
    compile(text, "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"o\":{\"z\":1,\"b\":\"B\",\"y\":2,\"a\":1},\"id\":\"1\"}",
             "{\"id\":\"1\",\"o\":{\"a\":1,\"b\":\"B\",\"_flow_extra\":{\"z\":1,\"y\":2}}}");
    value_is("{\"o\":{\"a\":\"bad\",\"\\u0061\":2,\"b\":[],\"b\":\"B\"},\"id\":5,\"id\":\"1\"}",
             "{\"id\":\"1\",\"o\":{\"a\":2,\"b\":\"B\",\"_flow_extra\":{}}}");
    value_is("{\"o\":{\"a\":[[1]]},\"o\":{\"b\":\"B\",\"a\":7},\"id\":\"1\"}",
             "{\"id\":\"1\",\"o\":{\"a\":7,\"b\":\"B\",\"_flow_extra\":{}}}");
    misfits("{\"id\":\"1\",\"o\":{\"a\":1},\"o\":{\"b\":\"B\"}}", E_INVALID, "/o/a");
    misfits("{\"id\":\"1\",\"o\":{\"a\":1,\"a\":null}}", E_INVALID, "/o/a");
    misfits("{\"id\":\"1\",\"o\":{\"a\":1,\"zz\":\"x\"}}", E_INVALID, "/o/zz");
    misfits("{\"id\":null}", E_INVALID, "/id");
    misfits("{}", E_INVALID, "/id");
    misfits("7", E_INVALID, "/id");
    misfits("[{\"id\":\"1\"}]", E_INVALID, "/id");
}

static void nested_selections_of_one_place_all_get_their_value(void **state)
{
    const struct span want[] = {span_str("/o/a"), span_str("/o"), span_str("/l/1"),
                                span_str("/l/1/b")};
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false},\"l\":{\"type\":\"array\",\"items\":{"
                  "\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false}}",
               NEEDS_ID);

    (void)state;
    sel = (struct sc_selection){.require = want, .require_n = 4};
    compile(text, "/id", SC_DELETE_TOMBSTONE);
    value_is("{\"l\":[{\"b\":1},{\"b\":2},{\"b\":3}],\"o\":{\"a\":9},\"id\":\"1\"}",
             "{\"id\":\"1\",\"l_1\":{\"b\":2},\"l_1_b\":2,\"o\":{\"a\":9},\"o_a\":9}");
    value_is("{\"o\":{\"a\":9},\"o\":{},\"id\":\"1\",\"l\":[{\"b\":1},{\"b\":2}],\"l\":[]}",
             "{\"id\":\"1\",\"l_1\":null,\"l_1_b\":null,\"o\":{\"a\":null},\"o_a\":null}");
    value_is("{\"o\":{\"a\":9},\"o\":null,\"id\":\"1\"}",
             "{\"id\":\"1\",\"l_1\":null,\"l_1_b\":null,\"o\":null,\"o_a\":null}");
    misfits("{\"o\":{\"a\":\"x\"},\"id\":\"1\"}", E_INVALID, "/o/a");
    misfits("{\"l\":[{},{\"b\":\"x\"}],\"id\":\"1\"}", E_INVALID, "/l/1/b");
}

static void pointers_of_errors_name_the_innermost_place(void **state)
{
    char doc[2000], *p = doc;
    struct sc_avro_record rec;
    struct sc_transcode_error err;

    (void)state;
    compile(
        OBJECT(
            ID
            ",\"l\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":"
            "\"object\",\"properties\":{\"a~/b\":{\"type\":\"integer\"},\"r\":{\"type\":\"object\","
            "\"required\":[\"q\"],\"properties\":{\"q\":{\"type\":\"boolean\"}}}},"
            "\"additionalProperties\":{\"type\":\"integer\"}}}}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    misfits("{\"id\":\"1\",\"l\":[[],[{},{\"r\":{}}]]}", E_INVALID, "/l/1/1/r/q");
    misfits("{\"id\":\"1\",\"l\":[[],[{},{\"a~/b\":\"x\"}]]}", E_INVALID, "/l/1/1/a~0~1b");
    misfits("{\"id\":\"1\",\"l\":[[],[{},{\"r\":{\"q\":null}}]]}", E_INVALID, "/l/1/1/r/q");
    misfits("{\"id\":\"1\",\"l\":[[],7]}", E_INVALID, "/l/1");
    p += snprintf(p, 100, "{\"id\":\"1\",\"l\":[[{\"");
    memset(p, 'k', 900);
    (void)snprintf(p + 900, 100, "\":\"x\"}]]}");
    assert_int_equal(sc_transcode(av, scratch, span_str(doc), &rec, &err), E_INVALID);
    assert_string_equal(err.pointer, "/l/0/0...");
}

static void keys_are_scalars_and_have_defaults(void **state)
{
    (void)state;
    assert_int_equal(
        try_compile(OBJECT("\"id\":{\"type\":\"array\"}", ""), "/id", SC_DELETE_CDC, false),
        E_INVALID);
    assert_int_equal(
        try_compile(OBJECT(ID, ",\"additionalProperties\":false"), "/other", SC_DELETE_CDC, false),
        E_INVALID);
    assert_int_equal(try_compile("{\"type\":\"string\"}", "/id", SC_DELETE_CDC, false), E_INVALID);
    assert_int_equal(try_compile(OBJECT(ID, ""), "id", SC_DELETE_CDC, false), E_INVALID);
    compile(OBJECT("\"id\":{\"type\":\"integer\",\"default\":7}", ""), "/id", SC_DELETE_TOMBSTONE);
    key_is("{}", "{\"_flow_key\":{\"p1\":7}}");
    compile(OBJECT("\"id\":{\"type\":[\"integer\",\"null\"]}", ""), "/id", SC_DELETE_TOMBSTONE);
    key_is("{}", "{\"_flow_key\":{\"p1\":null}}");
    compile(OBJECT(ID, ""), "/id", SC_DELETE_TOMBSTONE);
    misfits("{}", E_INVALID, "/id");
}

static void frames_carry_the_ids(void **state)
{
    struct sc_avro_record rec;

    (void)state;
    compile(OBJECT(ID, NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    sc_avro_set_ids(av, 0x01020304, 0x7fffffff);
    rec = encode(span_str("{\"id\":\"ab\"}"));
    assert_memory_equal(rec.key.p, "\0\1\2\3\4\4ab", 8);
    assert_memory_equal(rec.value.p, "\0\x7f\xff\xff\xff\4ab", 8);
    assert_int_equal(rec.key.n, 8);
}

static void too_large_or_too_deep_a_part_is_served_as_text(void **state)
{
    struct writer w;

    (void)state;
    wr_init(&w, 1 << 20);
    wr_str(
        &w,
        "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":\"string\"},"
        "\"big\":{\"$ref\":\"#/$defs/d0\"}},\"$defs\":{");
    for (int i = 0; i < 30; i++)
        wr_printf(
            &w,
            "\"d%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%d\"},\"b\":{"
            "\"$ref\":\"#/$defs/d%d\"}}},",
            i, i + 1, i + 1);
    wr_str(&w, "\"d30\":{\"type\":\"string\"}}}");
    wr_u8(&w, 0);
    compile((const char *)w.b->data, "/id", SC_DELETE_TOMBSTONE);
    wr_fini(&w);
    assert_true(noted("root.big"));
    value_is("{\"id\":\"1\",\"big\":{\"a\": 1}}",
             "{\"id\":\"1\",\"big\":{\"json\":\"{\\\"a\\\":1}\"}}");
}

static void compiling_and_encoding_without_memory_is_an_answer(void **state)
{
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\","
                  "\"default\":5}}}",
               NEEDS_ID);
    const struct span doc = span_str("{\"o\":{\"z\":[1, 2],\"a\":1},\"id\":\"a\\u0000\\\"b\"}");
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = -1;

    (void)state;
    for (long i = 0; r < 0; i++) {
        mem_fail_after(i, 0);
        r = try_compile(text, "/id", SC_DELETE_TOMBSTONE, false);
        mem_fail_after(-1, 0);
        assert_true(r == 0 || r == E_NOMEM || r == E_LIMIT);
        assert_true(i < 1000);
    }
    r = -1;
    for (long i = 0; r < 0; i++) {
        sc_scratch_free(scratch);
        assert_int_equal(sc_scratch_new(&scratch), 0);
        mem_fail_after(i, 0);
        r = sc_transcode(av, scratch, doc, &rec, &err);
        mem_fail_after(-1, 0);
        assert_true(r == 0 || r == E_NOMEM);
        assert_true(i < 100);
    }
    /* grown once, it allocates no more */
    mem_fail_after(0, 1);
    r = sc_transcode(av, scratch, doc, &rec, &err);
    mem_fail_after(-1, 0);
    assert_int_equal(r, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
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
        T(case_41_defaults_fit_the_first_branch_or_are_left_out),
        T(case_47_no_name_is_defined_twice),
        T(case_53_integers_beyond_2_53_are_exact),
        T(case_55_a_nul_is_a_byte_like_any_other),
        T(case_57_deep_nesting_is_bounded),
        T(case_59_doubles_are_the_nearest_in_any_locale),
        T(case_61_a_malformed_document_is_an_error_of_its_own),
        T(members_come_in_any_order_and_the_last_of_duplicates_counts),
        T(nested_selections_of_one_place_all_get_their_value),
        T(pointers_of_errors_name_the_innermost_place),
        T(keys_are_scalars_and_have_defaults),
        T(frames_carry_the_ids),
        T(too_large_or_too_deep_a_part_is_served_as_text),
        T(compiling_and_encoding_without_memory_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
