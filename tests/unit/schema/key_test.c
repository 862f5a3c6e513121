/* Keys: their text, and their hash, whose values are part of the stored layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "schema/key.h"

static struct sc_key *key_of(const char *a, const char *b)
{
    const struct span parts[2] = {span_str(a), span_str(b)};
    struct sc_key *k;

    assert_int_equal(sc_key_new(parts, b == NULL ? 1 : 2, &k), 0);
    return k;
}

static uint32_t hash_of(const char *doc, const char *a, const char *b)
{
    struct sc_key *k = key_of(a, b);
    struct span which;
    uint32_t h;

    assert_int_equal(sc_key_hash(k, span_str(doc), &h, &which), 0);
    sc_key_free(k);
    return h;
}

static void text_is(const char *doc, const char *a, const char *b, const char *want)
{
    struct sc_key *k = key_of(a, b);
    struct span which;
    struct writer w;

    wr_init(&w, 1000);
    assert_int_equal(sc_key_text(k, span_str(doc), &w, &which), 0);
    if (!span_eq_str(blob_span(w.b), want))
        print_error("%s: %.*s\n", doc, SPAN_FMT(blob_span(w.b)));
    assert_true(span_eq_str(blob_span(w.b), want));
    wr_fini(&w);
    sc_key_free(k);
}

static void the_text_of_a_key_is_the_values_own(void **state)
{
    static const char doc[] =
        "{\"id\":13911860366432393,\"o\":{\"s\":\"k\\u0000ey\"},\"n\":null,\"t\":true,"
        "\"f\":1.50,\"a\":[10,20]}";
    (void)state;

    text_is(doc, "/id", NULL, "13911860366432393");
    text_is(doc, "/o/s", NULL, "\"k\\u0000ey\"");
    text_is(doc, "/f", NULL, "1.5");
    text_is(doc, "/n", "/t", "[null,true]");
    text_is(doc, "/a/1", "/id", "[20,13911860366432393]");
}

static void a_bare_key_is_what_a_string_says(void **state)
{
    static const struct {
        const char *a, *b;
        struct span want;
        bool null;
    } rows[] = {
        {"/s", NULL, {(const uint8_t *)"k\0\"\xc3\xa9", 5}, false},
        {"/lone", NULL, {(const uint8_t *)"\xef\xbf\xbd", 3}, false},
        {"/empty", NULL, {(const uint8_t *)"", 0}, false},
        {"/i", NULL, {(const uint8_t *)"13911860366432393", 17}, false},
        {"/f", NULL, {(const uint8_t *)"1.5", 3}, false},
        {"/t", NULL, {(const uint8_t *)"true", 4}, false},
        {"/n", NULL, {(const uint8_t *)"", 0}, true},
        {"/empty", "/n", {(const uint8_t *)"[\"\",null]", 9}, false},
    };
    const struct span doc =
        span_str("{\"s\":\"k\\u0000\\\"\\u00e9\",\"lone\":\"\\ud800\",\"empty\":\"\","
                 "\"i\":13911860366432393,\"f\":1.50,\"t\":true,\"n\":null,\"o\":{}}");

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sc_key *k = key_of(rows[i].a, rows[i].b);
        struct span which;
        struct writer w;
        bool null = !rows[i].null;

        wr_init(&w, 1000);
        assert_int_equal(sc_key_bare(k, doc, &w, &null, &which), 0);
        assert_true(span_eq(w.b == NULL ? span_of("", 0) : blob_span(w.b), rows[i].want));
        assert_int_equal(null, rows[i].null);
        wr_fini(&w);
        sc_key_free(k);
    }
}

static void a_part_that_is_absent_or_no_scalar_is_named(void **state)
{
    static const struct {
        const char *a, *b;
        int err;
        const char *which;
    } rows[] = {
        {"/x", NULL, E_NOTFOUND, "/x"},
        {"/id", "/o/x", E_NOTFOUND, "/o/x"},
        {"/o", NULL, E_INVALID, "/o"},
        {"/id", "/l", E_INVALID, "/l"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sc_key *k = key_of(rows[i].a, rows[i].b);
        struct span which;
        struct writer w;
        uint32_t h;

        wr_init(&w, 1000);
        assert_int_equal(sc_key_text(k, span_str("{\"id\":1,\"o\":{},\"l\":[]}"), &w, &which),
                         rows[i].err);
        assert_true(span_eq_str(which, rows[i].which));
        assert_int_equal(sc_key_hash(k, span_str("{\"id\":1,\"o\":{},\"l\":[]}"), &h, &which),
                         rows[i].err);
        assert_true(span_eq_str(which, rows[i].which));
        wr_fini(&w);
        sc_key_free(k);
    }
}

/* Kafka knows keys by their bytes: a tombstone must reach what was written with another spelling.
 */
static void equal_keys_are_equal_texts_in_any_spelling(void **state)
{
    static const char *const groups[][9] = {
        /* the first is what is written */
        {"1", "1.0", "1e0", "10e-1", "0.1e1", "1.000e+00", "0.0001E4", NULL},
        {"0", "-0", "0.0", "0e99", "-0.00e-5", "0E+9999999999999999999999", NULL},
        {"-12.5", "-125e-1", "-1.25e1", "-0.125e2", "-12.500", NULL},
        {"9007199254740993", "9007199254740993.0", "9.007199254740993e15", NULL},
        {"123456789012345678901234567890", "1234567890123456789012345678.9e2", NULL},
        {"100", "1e2", "1E+2", "1e0002", "100.0", NULL},
        {"1e+401", "10e400", "0.1e402", NULL},
        {"-1.25e+403", "-125e401", NULL},
        {"0.000001", "1e-6", "0.1e-5", "0.00000100", NULL},
        {"1e-7", "0.0000001", "100e-9", NULL},
        {"1.5e-9", "0.0000000015", NULL},
        {"1e-400", "0.1e-399", NULL},
        {"\"a/\"", "\"\\u0061/\"", "\"\\u0061\\/\"", "\"a\\/\"", NULL},
        {"\"\\u0001\\n\\\"\\\\\"", "\"\\u0001\\u000A\\u0022\\u005c\"", NULL},
        {"\"\xf0\x9f\x98\x80\xc3\xa9\"", "\"\\ud83d\\uDE00\\u00E9\"", NULL},
        {"\"\\ud83dx\"", "\"\\uD83Dx\"", NULL},
        {"\"\\ud83e\"", NULL}, /* not U+FFFD: another key */
        {"\"1\"", NULL},
        {"true", NULL},
        {"null", NULL},
    };
    char doc[200];

    (void)state;
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (size_t i = 0; groups[g][i] != NULL; i++) {
            char both[200];

            (void)snprintf(doc, sizeof doc, "{\"id\":%s, \"n\":2.0}", groups[g][i]);
            text_is(doc, "/id", NULL, groups[g][0]);
            (void)snprintf(both, sizeof both, "[%s,2]", groups[g][0]);
            text_is(doc, "/id", "/n", both);
        }
    }
    /* written out up to 400 zeros, also those that the document has written out */
    struct writer w;

    wr_init(&w, 2000);
    wr_str(&w, "{\"id\":1");
    for (int i = 0; i < 401; i++)
        wr_u8(&w, '0');
    wr_str(&w, "}");
    wr_u8(&w, 0);
    text_is((const char *)w.b->data, "/id", NULL, "1e+401");
    wr_fini(&w);
}

/* What reads without looking back must not be led astray by what is no JSON. */
static void the_key_of_what_is_no_json_stays_in_bounds(void **state)
{
    static const char *const docs[] = {
        "{\"id\":\"\\", "{\"id\":\"\\u12\"}", "{\"id\":\"\\ud83d\\u\"}",
        "{\"id\":-}",   "{\"id\":1e}",        "{\"id\":1.}",
        "{\"id\":01}",  "{\"id\":--1}",       "{\"id\":\"\\q\\\"",
        "{\"id\":",     "{\"id\":tru}",       "{\"id\":1e99999999999}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        struct sc_key *k = key_of("/id", NULL);
        size_t n = strlen(docs[i]);
        char *copy = mem_alloc(n); /* of the exact size: the sanitizer sees what goes past it */
        struct span which;
        struct writer w;

        assert_non_null(copy);
        memcpy(copy, docs[i], n);
        wr_init(&w, 1000);
        (void)!sc_key_text(k, span_of(copy, n), &w, &which);
        wr_fini(&w);
        mem_free(copy);
        sc_key_free(k);
    }
}

static void equal_numbers_hash_alike_in_any_spelling(void **state)
{
    static const char *const groups[][8] = {
        {"1", "1.0", "1e0", "10e-1", "0.1e1", "1.000e+00", "0.0001E4", NULL},
        {"0", "-0", "0.0", "0e99", "-0.00e-5", "0E+9999999999999999999999", NULL},
        {"-12.5", "-125e-1", "-1.25e1", "-0.125e2", "-12.500", NULL},
        {"9007199254740993", "9007199254740993.0", "9.007199254740993e15", NULL},
        {"1e400", "10e399", "0.1e401", NULL},
        {"100", "1e2", "1E+2", "1e0002", NULL},
        {"1e1000000000000000001", "10e1000000000000000000", "0.1e1000000000000000002", NULL},
        {"9007199254740992", NULL},
        {"-1", NULL},
        {"1e401", NULL},
        {"1e-400", "0.1e-399", NULL},
        {"12.5", NULL},
    };
    uint32_t first[12];
    (void)state;

    for (size_t g = 0; g < 12; g++) {
        for (size_t i = 0; groups[g][i] != NULL; i++) {
            char doc[100];
            uint32_t h;

            (void)snprintf(doc, sizeof doc, "{\"id\":%s}", groups[g][i]);
            h = hash_of(doc, "/id", NULL);
            if (i == 0)
                first[g] = h;
            assert_int_equal(h, first[g]);
        }
        for (size_t other = 0; other < g; other++)
            assert_int_not_equal(first[g], first[other]);
    }
}

static void strings_hash_after_unescaping_and_kinds_differ(void **state)
{
    (void)state;
    assert_int_equal(hash_of("{\"id\":\"\\u0061\\/\"}", "/id", NULL),
                     hash_of("{\"id\":\"a/\"}", "/id", NULL));
    assert_int_equal(hash_of("{\"id\":\"\\ud83d\\ude00\"}", "/id", NULL),
                     hash_of("{\"id\":\"\xf0\x9f\x98\x80\"}", "/id", NULL));
    assert_int_not_equal(hash_of("{\"id\":\"1\"}", "/id", NULL),
                         hash_of("{\"id\":1}", "/id", NULL));
    assert_int_not_equal(hash_of("{\"id\":\"null\"}", "/id", NULL),
                         hash_of("{\"id\":null}", "/id", NULL));
    assert_int_not_equal(hash_of("{\"id\":\"a\\u0000b\"}", "/id", NULL),
                         hash_of("{\"id\":\"a\"}", "/id", NULL));
    assert_int_not_equal(hash_of("{\"a\":\"xy\",\"b\":\"z\"}", "/a", "/b"),
                         hash_of("{\"a\":\"x\",\"b\":\"yz\"}", "/a", "/b"));
    assert_int_not_equal(hash_of("{\"a\":1,\"b\":2}", "/a", "/b"),
                         hash_of("{\"a\":1,\"b\":2}", "/b", "/a"));
}

/* These numbers decide in which journal a document lies. Never change one. */
static void the_hashes_of_the_stored_layout_never_change(void **state)
{
    static const struct {
        const char *doc, *a, *b;
        uint32_t hash;
    } vectors[] = {
        {"{\"id\":null}", "/id", NULL, 0x9b9314bb},
        {"{\"id\":false}", "/id", NULL, 0x41c22f77},
        {"{\"id\":true}", "/id", NULL, 0x4b4f1793},
        {"{\"id\":0}", "/id", NULL, 0x07d96d10},
        {"{\"id\":1}", "/id", NULL, 0x21fb1abe},
        {"{\"id\":-1.5e300}", "/id", NULL, 0x425b4943},
        {"{\"id\":13911860366432393}", "/id", NULL, 0xafee1579},
        {"{\"id\":\"\"}", "/id", NULL, 0xf4c9ee51},
        {"{\"id\":\"abc\"}", "/id", NULL, 0xbb99f2d5},
        {"{\"id\":\"\\u00e9\\n\"}", "/id", NULL, 0x03d59b55},
        {"{\"a\":1,\"b\":\"x\"}", "/a", "/b", 0x799008cb},
    };
    (void)state;

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint32_t h = hash_of(vectors[i].doc, vectors[i].a, vectors[i].b);

        if (h != vectors[i].hash)
            print_error("vector %zu: 0x%08x\n", i, h);
        assert_int_equal(h, vectors[i].hash);
    }
}

static void sequential_keys_spread_over_few_partitions(void **state)
{
    size_t count[4] = {0};
    char doc[64];
    (void)state;

    for (int i = 0; i < 4000; i++) {
        (void)snprintf(doc, sizeof doc, "{\"id\":%d}", i);
        count[hash_of(doc, "/id", NULL) % 4]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(count[i], 900, 1100);
}

static void bad_pointers_and_no_memory_yield_no_key(void **state)
{
    const struct span parts[2] = {span_str("/a"), span_str("b")};
    struct sc_key *k;
    struct span which;
    uint32_t h;
    (void)state;

    assert_int_equal(sc_key_new(parts, 2, &k), E_SYNTAX);
    assert_null(k);
    assert_int_equal(sc_key_new(parts, 0, &k), E_SYNTAX);
    mem_fail_after(1, 0);
    assert_int_equal(sc_key_new(parts, 1, &k), E_NOMEM);
    assert_null(k);
    assert_int_equal(sc_key_new(parts, 1, &k), 0);
    assert_int_equal(sc_key_parts(k), 1);
    mem_fail_after(0, 0);
    assert_int_equal(sc_key_hash(k, span_str("{\"a\":1}"), &h, &which), E_NOMEM);
    sc_key_free(k);
    sc_key_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_of_a_key_is_the_values_own),
        cmocka_unit_test(a_bare_key_is_what_a_string_says),
        cmocka_unit_test(a_part_that_is_absent_or_no_scalar_is_named),
        cmocka_unit_test(equal_keys_are_equal_texts_in_any_spelling),
        cmocka_unit_test(the_key_of_what_is_no_json_stays_in_bounds),
        cmocka_unit_test(equal_numbers_hash_alike_in_any_spelling),
        cmocka_unit_test(strings_hash_after_unescaping_and_kinds_differ),
        cmocka_unit_test(the_hashes_of_the_stored_layout_never_change),
        cmocka_unit_test(sequential_keys_spread_over_few_partitions),
        cmocka_unit_test(bad_pointers_and_no_memory_yield_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
