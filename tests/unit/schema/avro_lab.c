/* The helpers of avro_lab.h: compiling, encoding, and reading back with avro-c. */
#include "avro_lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <avro.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/json_reader.h"

struct sc_avro *lab_av;
struct sc_scratch *lab_scratch;
struct sc_selection lab_sel;
struct sc_schema_error lab_fault;

int lab_try_compile(const char *schema, const char *key, enum sc_deletions deletions, bool strict)
{
    const struct span k = span_str(key);
    struct sc_avro_opts opts = {
        .key = &k, .key_n = 1, .select = &lab_sel, .deletions = deletions, .strict_names = strict};
    struct sc_schema *s;
    int r;

    sc_avro_free(lab_av);
    lab_av = NULL;
    if ((r = sc_schema_new(span_str(schema), NULL, 0, &lab_fault, &s)) == 0)
        r = sc_avro_new(s, &opts, &lab_fault, &lab_av);
    sc_schema_free(s);
    return r;
}

void lab_compile(const char *schema, const char *key, enum sc_deletions deletions)
{
    int r = lab_try_compile(schema, key, deletions, false);

    if (r < 0)
        print_message("%s: %s\n", lab_fault.pointer, lab_fault.reason);
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

struct sc_avro_record lab_encode(struct span doc)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = sc_transcode(lab_av, lab_scratch, doc, &rec, &err);

    if (r < 0)
        print_message("%.*s: %s: %s\n", SPAN_FMT(doc), err.pointer, err.reason);
    assert_int_equal(r, 0);
    return rec;
}

void lab_value_is(const char *doc, const char *want)
{
    struct sc_avro_record rec = lab_encode(span_str(doc));
    struct blob *got = decoded(sc_avro_value_schema(lab_av), rec.value);

    assert_string_equal((const char *)got->data, want);
    blob_unref(got);
}

void lab_key_is(const char *doc, const char *want)
{
    struct sc_avro_record rec = lab_encode(span_str(doc));
    struct blob *got = decoded(sc_avro_key_schema(lab_av), rec.key);
    struct sc_transcode_error err;
    uint8_t copy[256];
    size_t n = rec.key.n;

    assert_string_equal((const char *)got->data, want);
    blob_unref(got);
    assert_true(n <= sizeof copy);
    memcpy(copy, rec.key.p, n);
    assert_int_equal(sc_transcode_key(lab_av, lab_scratch, span_str(doc), &rec, &err), 0);
    assert_true(span_eq(rec.key, span_of(copy, n)) && rec.value.p == NULL);
}

void lab_misfits(const char *doc, int code, const char *pointer)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = sc_transcode(lab_av, lab_scratch, span_str(doc), &rec, &err);

    assert_string_equal(err.pointer, pointer);
    if (r != code)
        print_message("%s: %s\n", doc, err.reason);
    assert_int_equal(r, code);
    assert_non_null(err.reason);
    assert_true(err.at <= strlen(doc));
}

void lab_schema_has(const char *part)
{
    struct span s = sc_avro_value_schema(lab_av);

    if (memmem(s.p, s.n, part, strlen(part)) == NULL)
        print_message("%.*s\nlacks %s\n", SPAN_FMT(s), part);
    assert_non_null(memmem(s.p, s.n, part, strlen(part)));
}

bool lab_noted(const char *field)
{
    const struct sc_avro_note *notes;
    size_t n = sc_avro_notes(lab_av, &notes);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(notes[i].field, field) == 0)
            return true;
    }
    return false;
}

int lab_setup(void **state)
{
    static const struct span published = {(const uint8_t *)SC_PUBLISHED_NAME,
                                          sizeof SC_PUBLISHED_NAME - 1};

    (void)state;
    lab_sel = (struct sc_selection){.depth = 1, .exclude = &published, .exclude_n = 1};
    return sc_scratch_new(&lab_scratch);
}

int lab_teardown(void **state)
{
    (void)state;
    sc_avro_free(lab_av);
    lab_av = NULL;
    sc_scratch_free(lab_scratch);
    lab_scratch = NULL;
    return 0;
}
