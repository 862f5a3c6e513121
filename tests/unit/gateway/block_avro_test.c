/* Documents as Avro records in batches, and those that do not fit their schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/block_build.h"

static const char schema_text[] =
    "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":\"integer\"},"
    "\"_meta\":{\"type\":\"object\",\"properties\":{\"op\":{\"type\":\"string\"}}}}}";

static struct sc_avro *program(enum sc_deletions deletions)
{
    const struct span key[] = {{(const uint8_t *)"/id", 3}};
    const struct span only[] = {{(const uint8_t *)"id", 2}};
    const struct sc_selection select = {.depth = 0, .include = only, .include_n = 1};
    const struct sc_avro_opts opts = {
        .key = key, .key_n = 1, .select = &select, .deletions = deletions};
    struct sc_schema_error why;
    struct sc_schema *schema;
    struct sc_avro *a;

    assert_int_equal(sc_schema_new(span_str(schema_text), NULL, 0, &why, &schema), 0);
    assert_int_equal(sc_avro_new(schema, &opts, &why, &a), 0);
    sc_schema_free(schema);
    sc_avro_set_ids(a, 7, 8);
    return a;
}

static int64_t misfits[8];
static size_t misfits_n;

static void on_misfit(void *arg, int64_t offset, const struct sc_transcode_error *why)
{
    (void)arg;
    assert_true(why->reason[0] != '\0');
    misfits[misfits_n++] = offset;
}

static struct gw_build how_of(struct sc_avro *a, enum gw_misfit misfit)
{
    misfits_n = 0;
    return (struct gw_build){.bound = {0, UINT64_MAX},
                             .avro = a,
                             .avro_key = true,
                             .avro_value = true,
                             .misfit = misfit,
                             .on_misfit = on_misfit};
}

static struct gw_blockbatches *build_more(const struct gw_build *how, const char *text,
                                          int64_t offset, const struct gw_blockbatches *old)
{
    struct jc_segment segment = {.offset = offset, .bytes = blob_copy(span_str(text))};
    struct jc_block block = {
        .segments = &segment, .segments_n = 1, .read_to = offset + (int64_t)strlen(text)};
    struct gw_blockbatches *out;

    assert_int_equal(gw_block_build(how, &block, old, &out), 0);
    blob_unref(segment.bytes);
    return out;
}

static struct gw_blockbatches *build(const struct gw_build *how, const char *text)
{
    return build_more(how, text, 0, NULL);
}

/* The i-th record of all batches. */
static struct kp_header headers[4];
static struct kp_record record(const struct gw_blockbatches *e, size_t i)
{
    struct kp_record rec = {0};
    size_t seen = 0;

    for (size_t b = 0; b < e->n; b++) {
        struct kp_batch_view v;
        struct kp_record_iter it;

        assert_int_equal(kp_batch_parse(blob_span(e->batches[b].bytes), &v), 0);
        kp_record_iter_init(&it, &v, v.payload);
        while (kp_record_next(&it, &rec, headers, 4) == 0)
            if (seen++ == i)
                return rec;
    }
    fail();
    return rec;
}

static void assert_bytes(struct span got, const char *want, size_t n)
{
    assert_int_equal(got.n, n);
    assert_memory_equal(got.p, want, n);
}

static void key_and_value_are_avro_with_their_ids(void **state)
{
    struct sc_avro *a = program(SC_DELETE_TOMBSTONE);
    const struct gw_build how = how_of(a, GW_MISFIT_STOP);
    struct gw_blockbatches *e = build(&how, "{\"id\":3}\n{\"id\":4,\"_meta\":{\"op\":\"d\"}}\n");

    (void)state;
    struct kp_record r = record(e, 0);
    assert_bytes(r.key, "\0\0\0\0\7\6", 6);
    assert_bytes(r.value, "\0\0\0\0\10\6", 6);
    r = record(e, 1);
    assert_bytes(r.key, "\0\0\0\0\7\10", 6);
    assert_null(r.value.p);
    assert_int_equal(misfits_n, 0);
    gw_blockbatches_unref(e);
    sc_avro_free(a);
}

static void deletions_by_header_are_told_in_each_record(void **state)
{
    struct sc_avro *a = program(SC_DELETE_HEADER);
    const struct gw_build how = how_of(a, GW_MISFIT_STOP);
    struct gw_blockbatches *e = build(&how, "{\"id\":3}\n{\"id\":4,\"_meta\":{\"op\":\"d\"}}\n");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kp_record r = record(e, i);
        assert_int_equal(r.headers_n, 1);
        assert_true(span_eq_str(headers[0].key, SC_DELETED_FIELD));
        assert_true(span_eq_str(headers[0].value, i == 0 ? "0" : "1"));
        assert_int_equal(r.value.n, 6);
    }
    gw_blockbatches_unref(e);
    sc_avro_free(a);
}

#define GOOD "{\"id\":1}\n" /* 9 bytes */
#define BAD  "{\"id\":\"\"}\n"

static void documents_before_and_behind_a_misfit_are_built_and_no_batch_spans_it(void **state)
{
    struct sc_avro *a = program(SC_DELETE_TOMBSTONE);
    const struct gw_build how = how_of(a, GW_MISFIT_STOP);
    struct gw_blockbatches *e = build(&how, GOOD GOOD BAD BAD GOOD);

    (void)state;
    assert_int_equal(e->n, 2);
    assert_int_equal(e->batches[0].last_offset, 17);
    assert_int_equal(e->refused_n, 1);
    assert_int_equal(e->refused[0].begin, 27);
    assert_int_equal(e->refused[0].end, 38);
    assert_int_equal(e->batches[1].base_offset, 46);
    assert_int_equal(gw_blockbatches_refused(e, 0), 27);
    assert_int_equal(gw_blockbatches_refused(e, 37), 27);
    assert_int_equal(gw_blockbatches_refused(e, 38), INT64_MAX);
    assert_int_equal(misfits_n, 2);

    struct gw_build more = how;
    more.from = e->read_to;
    struct gw_blockbatches *longer = build_more(&more, BAD GOOD, e->read_to, e);
    assert_int_equal(longer->n, 3);
    assert_int_equal(longer->refused_n, 2);
    assert_int_equal(gw_blockbatches_refused(longer, 38), e->read_to + 9);
    gw_blockbatches_unref(longer);
    gw_blockbatches_unref(e);
    sc_avro_free(a);
}

static void misfits_are_left_out_or_served_as_stored_by_policy(void **state)
{
    struct sc_avro *a = program(SC_DELETE_TOMBSTONE);
    const struct gw_build skip = how_of(a, GW_MISFIT_SKIP);
    struct gw_blockbatches *e = build(&skip, GOOD BAD "no json\n" GOOD);

    (void)state;
    assert_int_equal(e->refused_n, 0);
    assert_int_equal(e->n, 1);
    assert_int_equal(e->batches[0].records, 2);
    assert_int_equal(misfits_n, 2);
    gw_blockbatches_unref(e);

    const struct gw_build raw = how_of(a, GW_MISFIT_RAW);
    e = build(&raw, GOOD BAD);
    struct kp_record r = record(e, 1);
    assert_true(span_eq_str(r.value, "{\"id\":\"\"}"));
    assert_int_equal(r.headers_n, 1);
    assert_true(span_eq_str(headers[0].key, GW_HEADER_MISFIT));
    assert_true(span_has_prefix(headers[0].value, span_str("/id: ")));
    gw_blockbatches_unref(e);
    sc_avro_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_and_value_are_avro_with_their_ids),
        cmocka_unit_test(deletions_by_header_are_told_in_each_record),
        cmocka_unit_test(documents_before_and_behind_a_misfit_are_built_and_no_batch_spans_it),
        cmocka_unit_test(misfits_are_left_out_or_served_as_stored_by_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
