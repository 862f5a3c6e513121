/*
 * Random collections and random documents (avro_draw.h), encoded by schema/ and read back by
 * avro-c. The seed is printed; SLUICE_TEST_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <avro.h>

#include "avro_draw.h"
#include "base/num.h"
#include "schema/transcode.h"

#define COLLECTIONS 1500
#define SECONDS     10 /* a slow machine looks at fewer */
#define DOCS        6

/* --- avro-c's view --- */

static bool same(avro_value_t *v, const struct want *w);

static bool same_bytes(avro_value_t *v, struct span want)
{
    const void *p = NULL;
    size_t n = 0;

    if (avro_value_get_type(v) == AVRO_FIXED)
        return avro_value_get_fixed(v, &p, &n) == 0 && span_eq(span_of(p, n), want);
    if (avro_value_get_type(v) != AVRO_STRING)
        return false;
    avro_value_get_string(v, (const char **)&p, &n);
    return span_eq(span_of(p, n - 1), want); /* n counts avro-c's own NUL */
}

static bool same_parts(avro_value_t *v, const struct want *w)
{
    avro_value_t part;
    size_t n = 0, seen = 0;

    avro_value_get_size(v, &n);
    for (const struct want *p = w->first; p != NULL; p = p->next, seen++) {
        char name[32];

        (void)snprintf(name, sizeof name, "%.*s", SPAN_FMT(p->key));
        if (w->kind == W_LIST ? avro_value_get_by_index(v, seen, &part, NULL) != 0
                              : avro_value_get_by_name(v, name, &part, NULL) != 0)
            return false;
        if (!same(&part, p))
            return false;
    }
    return n == seen;
}

static bool same(avro_value_t *v, const struct want *w)
{
    avro_type_t type = avro_value_get_type(v);
    avro_value_t part;
    int64_t l = 0;
    int32_t i = 0;
    double d = 0;
    int b = 0;

    if (type == AVRO_UNION)
        return avro_value_get_current_branch(v, &part) == 0 && same(&part, w);
    switch (w->kind) {
    case W_NULL:
        return type == AVRO_NULL;
    case W_LONG:
        if (type == AVRO_INT32)
            return avro_value_get_int(v, &i) == 0 && i == w->l;
        return type == AVRO_INT64 && avro_value_get_long(v, &l) == 0 && l == w->l;
    case W_DOUBLE:
        return type == AVRO_DOUBLE && avro_value_get_double(v, &d) == 0 &&
               span_eq(span_of(&d, sizeof d), span_of(&w->d, sizeof d)); /* also the zero's sign */
    case W_BYTES:
        return same_bytes(v, w->bytes);
    case W_BOOL:
        return type == AVRO_BOOLEAN && avro_value_get_boolean(v, &b) == 0 && b == (int)w->l;
    case W_LIST:
        return type == AVRO_ARRAY && same_parts(v, w);
    case W_MAP:
        return type == AVRO_MAP && same_parts(v, w);
    case W_RECORD:
        return type == AVRO_RECORD && same_parts(v, w);
    case W_JSON:
    default:
        return type == AVRO_RECORD && avro_value_get_by_name(v, "json", &part, NULL) == 0 &&
               same_bytes(&part, w->bytes);
    }
}

struct reader {
    avro_schema_t schema;
    avro_value_iface_t *iface;
    avro_value_t v;
};

static void reader_init(struct reader *r, struct span schema)
{
    if (avro_schema_from_json_length((const char *)schema.p, schema.n, &r->schema) != 0)
        fail_msg("avro-c: %s: %.*s", avro_strerror(), SPAN_FMT(schema));
    r->iface = avro_generic_class_from_schema(r->schema);
    assert_int_equal(avro_generic_value_new(r->iface, &r->v), 0);
}

static void reader_fini(struct reader *r)
{
    avro_value_decref(&r->v);
    avro_value_iface_decref(r->iface);
    avro_schema_decref(r->schema);
}

static bool reads_as(struct reader *r, struct span framed, const struct want *want)
{
    int64_t n = (int64_t)framed.n - SC_FRAME_BYTES;
    avro_reader_t in = avro_reader_memory((const char *)framed.p + SC_FRAME_BYTES, n);
    bool ok;

    avro_value_reset(&r->v);
    ok = avro_value_read(in, &r->v) == 0 && same(&r->v, want);
    if (ok && avro_skip(in, 1) == 0)
        ok = false; /* bytes are left over */
    avro_reader_free(in);
    return ok;
}

/* --- the test --- */

static struct sc_avro *compile(struct span schema, struct span key)
{
    const struct span not = span_str("flow_published_at");
    struct sc_selection sel = {.depth = 1, .exclude = &not, .exclude_n = 1};
    struct sc_avro_opts opts = {.key = &key, .key_n = 1, .select = &sel};
    struct sc_schema_error err;
    struct sc_schema *s;
    struct sc_avro *a = NULL;

    if (sc_schema_new(schema, NULL, 0, &err, &s) < 0 || sc_avro_new(s, &opts, &err, &a) < 0)
        fail_msg("%s: %s: %.*s", err.pointer, err.reason, SPAN_FMT(schema));
    sc_schema_free(s);
    return a;
}

static const struct want *member(const struct want *w, const char *name)
{
    const struct want *p = w->first;

    while (!span_eq_str(p->key, name))
        p = p->next;
    return p;
}

static void look_at_one_collection(struct sc_scratch *scratch)
{
    struct type *t = draw_collection();
    struct reader value, key;
    struct span schema = draw_schema(t);
    struct sc_avro *a;

    a = compile(schema, draw_text("/%s", t->parts[0]->name));
    reader_init(&value, sc_avro_value_schema(a));
    reader_init(&key, sc_avro_key_schema(a));
    for (unsigned i = 0; i < DOCS; i++) {
        struct drawn d = draw_document(t);
        struct want *parts = want_of(W_RECORD), *whole = want_of(W_RECORD);
        struct span doc = draw_below(2) == 0 ? draw_spaced(d.json) : d.json;
        struct sc_transcode_error err;
        struct sc_avro_record rec;

        want_add(parts, draw_text("p1"), member(d.want, t->parts[0]->name));
        want_add(whole, draw_text("_flow_key"), parts);
        if (sc_transcode(a, scratch, doc, &rec, &err) < 0)
            fail_msg("%s: %s: schema %.*s, document %.*s", err.pointer, err.reason,
                     SPAN_FMT(schema), SPAN_FMT(doc));
        if (!reads_as(&value, rec.value, d.want) || !reads_as(&key, rec.key, whole))
            fail_msg("read differently: schema %.*s, document %.*s", SPAN_FMT(schema),
                     SPAN_FMT(doc));
    }
    reader_fini(&value);
    reader_fini(&key);
    sc_avro_free(a);
}

static void avro_c_reads_what_the_json_source_says(void **unused)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    const char *given = getenv("SLUICE_TEST_SEED");
    uint64_t seed = (uint64_t)time(NULL);
    struct sc_scratch *scratch;
    struct timespec now, end;
    unsigned n = 0;

    (void)unused;
    if (given != NULL)
        assert_int_equal(num_parse_u64(span_str(given), &seed), 0);
    print_message("SLUICE_TEST_SEED=%llu\n", (unsigned long long)seed);
    draw_seed(seed);
    assert_int_equal(sc_scratch_new(&scratch), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += SECONDS;
    do {
        draw_begin();
        look_at_one_collection(scratch);
        draw_end();
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (++n < COLLECTIONS && now.tv_sec < end.tv_sec);
    print_message("%u collections of %d documents\n", n, DOCS);
    sc_scratch_free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(avro_c_reads_what_the_json_source_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
