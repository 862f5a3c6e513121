/* Parsing Canonical Form and fingerprints by the specification's examples; ids made of contents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/avro.h"

static void canonical(const char *text, const char *want)
{
    struct writer w;

    wr_init(&w, 1 << 20);
    assert_int_equal(sc_avro_canonical(span_str(text), &w), 0);
    wr_u8(&w, 0);
    assert_string_equal((const char *)w.b->data, want);
    wr_fini(&w);
}

static void forms_of_the_specification(void **state)
{
    (void)state;
    canonical("\"int\"", "\"int\"");
    canonical("{ \"type\" : \"int\", \"logicalType\":\"date\" }", "\"int\"");
    canonical("[ \"null\", {\"type\":\"string\"} ]", "[\"null\",\"string\"]");
    canonical(
        "{\"fields\":[{\"default\":1,\"type\":{\"type\":\"string\"},\"name\":\"f\",\"doc\":\"d\"}],"
        "\"type\":\"record\",\"name\":\"r\",\"namespace\":\"x.y\",\"aliases\":[\"z\"]}",
        "{\"name\":\"x.y.r\",\"type\":\"record\",\"fields\":[{\"name\":\"f\",\"type\":\"string\"}]"
        "}");
    canonical("{\"type\":\"record\",\"name\":\"a.b.r\",\"fields\":[{\"name\":\"e\",\"type\":{"
              "\"type\":\"enum\","
              "\"name\":\"E\",\"symbols\":[\"A\",\"B\"],\"default\":\"A\"}},{\"name\":\"s\","
              "\"type\":\"r\"},{"
              "\"name\":\"x\",\"type\":{\"type\":\"fixed\",\"name\":\"q.F\",\"size\":\"007\"}},{"
              "\"name\":\"m\","
              "\"type\":{\"type\":\"map\",\"values\":{\"type\":\"array\",\"items\":\"E\"}}}]}",
              "{\"name\":\"a.b.r\",\"type\":\"record\",\"fields\":[{\"name\":\"e\",\"type\":{"
              "\"name\":\"a.b.E\","
              "\"type\":\"enum\",\"symbols\":[\"A\",\"B\"]}},{\"name\":\"s\",\"type\":\"a.b.r\"},{"
              "\"name\":\"x\","
              "\"type\":{\"name\":\"q.F\",\"type\":\"fixed\",\"size\":7}},{\"name\":\"m\",\"type\":"
              "{\"type\":"
              "\"map\",\"values\":{\"type\":\"array\",\"items\":\"a.b.E\"}}}]}");
    /* escapes go where they need not be */
    canonical("{\"type\":\"\\u0065num\",\"name\":\"E\",\"symbols\":[\"\\u0041\"]}",
              "{\"name\":\"E\",\"type\":\"enum\",\"symbols\":[\"A\"]}");
}

static void fingerprints_of_the_specification(void **state)
{
    (void)state;
    assert_true(sc_avro_fingerprint(span_str("\"int\"")) == UINT64_C(0x7275d51a3f395c8f));
    assert_true(sc_avro_fingerprint(span_str("\"string\"")) == UINT64_C(0x8f014872634503c7));
    assert_true(sc_avro_fingerprint(span_str("\"null\"")) == UINT64_C(0x63dd24e7cc258f8a));
}

static void what_is_no_avro_schema_is_refused(void **state)
{
    static const char *const bad[] = {"{}",
                                      "{\"type\":\"record\",\"name\":\"r\"}",
                                      "{\"type\":\"record\",\"fields\":[]}",
                                      "{\"type\":\"array\"}",
                                      "{\"type\":\"map\"}",
                                      "{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[1]}",
                                      "{\"type\":\"fixed\",\"name\":\"f\"}",
                                      "7"};
    struct writer w;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wr_init(&w, 1 << 20);
        assert_int_equal(sc_avro_canonical(span_str(bad[i]), &w), E_INVALID);
        wr_fini(&w);
    }
    wr_init(&w, 1 << 20);
    assert_int_equal(sc_avro_canonical(span_str("{"), &w), E_SYNTAX);
    wr_fini(&w);
}

static void ids_are_made_of_contents_alone(void **state)
{
    struct span texts[4] = {span_str("\"int\""), span_str("\"long\""), span_str("\"int\""),
                            span_str("{\"type\":\"int\",\"logicalType\":\"date\"}")};
    struct span turned[4] = {texts[3], texts[2], texts[1], texts[0]};
    uint32_t a[4], b[4];

    (void)state;
    assert_int_equal(sc_schema_ids(texts, 4, a), 0);
    assert_int_equal(sc_schema_ids(turned, 4, b), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(a[i], b[3 - i]);
        assert_in_range(a[i], 1, INT32_MAX);
    }
    assert_int_equal(a[0], a[2]);
    /* one canonical form, two schemas: a logical type is part of what readers see */
    assert_int_not_equal(a[0], a[3]);
    assert_int_equal(sc_schema_ids(texts, 0, a), 0);
}

/* Enough texts that some meet in 31 bits: all ids differ all the same, in any order. */
static void texts_that_meet_get_ids_of_their_own(void **state)
{
    enum { N = 200000 };
    char(*store)[32] = mem_array(N, sizeof *store);
    struct span *texts = mem_array(N, sizeof *texts);
    uint32_t *ids = mem_array(N, sizeof *ids), *again = mem_array(N, sizeof *again);
    uint8_t *seen = mem_zalloc((size_t)1 << 28);
    size_t moved = 0;
    uint64_t x = 1;

    (void)state;
    assert_true(store != NULL && texts != NULL && ids != NULL && again != NULL && seen != NULL);
    for (size_t i = 0; i < N; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        (void)snprintf(store[i], sizeof store[i], "\"t%016llx\"",
                       (unsigned long long)(x ^ x >> 29));
        texts[i] = span_str(store[i]);
    }
    assert_int_equal(sc_schema_ids(texts, N, ids), 0);
    for (size_t i = 0; i < N; i++) {
        uint32_t alone;

        assert_int_equal(seen[ids[i] / 8] >> ids[i] % 8 & 1, 0);
        seen[ids[i] / 8] |= (uint8_t)(1u << ids[i] % 8);
        assert_int_equal(sc_schema_ids(&texts[i], 1, &alone), 0);
        moved += alone != ids[i];
    }
    assert_in_range(moved, 1, 40);
    for (size_t i = 0; i < N / 2; i++) {
        struct span t = texts[i];

        texts[i] = texts[N - 1 - i];
        texts[N - 1 - i] = t;
    }
    assert_int_equal(sc_schema_ids(texts, N, again), 0);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(again[i], ids[N - 1 - i]);
    mem_free(store);
    mem_free(texts);
    mem_free(ids);
    mem_free(again);
    mem_free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_the_specification),
        cmocka_unit_test(fingerprints_of_the_specification),
        cmocka_unit_test(what_is_no_avro_schema_is_refused),
        cmocka_unit_test(ids_are_made_of_contents_alone),
        cmocka_unit_test(texts_that_meet_get_ids_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
