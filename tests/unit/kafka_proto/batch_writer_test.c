/* Record batches as bytes: the layout against vectors written down from KIP-98, the rules of O9,
 * and what happens when memory ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/writer.h"
#include "kafka_proto/batch.h"

static struct kp_record record(int64_t offset, int64_t timestamp, const char *value)
{
    return (struct kp_record){.offset = offset, .timestamp = timestamp, .value = span_str(value)};
}

static void the_crc_is_castagnoli_and_continues_over_pieces(void **state)
{
    uint8_t zeros[32] = {0}, ones[32];
    (void)state;

    memset(ones, 0xff, sizeof ones);
    assert_int_equal(kp_crc32c(0, span_str("123456789")), 0xe3069283);
    assert_int_equal(kp_crc32c(0, span_str("")), 0);
    assert_int_equal(kp_crc32c(0, span_of(zeros, 32)), 0x8a9136aa);
    assert_int_equal(kp_crc32c(0, span_of(ones, 32)), 0x62a8ab43);
    assert_int_equal(kp_crc32c(kp_crc32c(0, span_str("1234")), span_str("56789")), 0xe3069283);
}

static void a_batch_of_one_record_has_exactly_these_bytes(void **state)
{
    static const uint8_t want[] = {
        0,    0,    0,    0,    0,    0,    0,    42,                    /* base offset */
        0,    0,    0,    61,                                            /* length */
        0xff, 0xff, 0xff, 0xff,                                          /* leader epoch */
        2,                                                               /* magic */
        0,    0,    0,    0,                                             /* crc: set below */
        0,    0,                                                         /* attributes */
        0,    0,    0,    0,                                             /* last offset delta */
        0,    0,    0,    0,    0,    0,    0x03, 0xe8,                  /* base timestamp */
        0,    0,    0,    0,    0,    0,    0x03, 0xe8,                  /* max timestamp */
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,                  /* producer id */
        0xff, 0xff,                                                      /* producer epoch */
        0xff, 0xff, 0xff, 0xff,                                          /* base sequence */
        0,    0,    0,    1,                                             /* records */
        0x16, 0x00, 0x00, 0x00, 0x02, 'k',  0x04, 'v',  'w', 0x02, 0x02, /* a record, 1 header */
        'h',
    };
    uint8_t expected[sizeof want + 1];
    const struct kp_header h = {span_str("h"), {NULL, 0}};
    struct kp_batch_writer w;
    struct kp_batch b;
    (void)state;

    memcpy(expected, want, sizeof want);
    expected[sizeof want] = 0x01; /* the header's null value */
    be_store32(expected + 8, sizeof expected - 12);
    be_store32(expected + 17, kp_crc32c(0, span_of(expected + 21, sizeof expected - 21)));
    expected[61] = (uint8_t)((sizeof expected - 62) * 2);

    kp_batch_writer_init(&w);
    assert_int_equal(kp_batch_writer_bytes(&w), 0);
    assert_int_equal(kp_batch_writer_add(&w, &(struct kp_record){.offset = 42,
                                                                 .timestamp = 1000,
                                                                 .key = span_str("k"),
                                                                 .value = span_str("vw"),
                                                                 .headers = &h,
                                                                 .headers_n = 1}),
                     0);
    assert_int_equal(kp_batch_writer_bytes(&w), sizeof expected);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    be_store32(expected + 17, kp_crc32c(0, span_of(expected + 21, sizeof expected - 21)));
    assert_int_equal(b.bytes->len, sizeof expected);
    assert_memory_equal(b.bytes->data, expected, sizeof expected);
    assert_int_equal(kp_batch_writer_bytes(&w), 0);
    kp_batch_fini(&b);
    kp_batch_writer_fini(&w);
}

static void null_and_empty_differ_and_no_headers_is_one_zero_byte(void **state)
{
    static const uint8_t want[] = {
        0x0c, 0, 0, 0, 0x01, 0x01, 0x00, /* null key, null value */
        0x0c, 0, 0, 4, 0x00, 0x00, 0x00, /* empty key, empty value */
    };
    struct kp_batch_writer w;
    struct kp_batch b;
    (void)state;

    kp_batch_writer_init(&w);
    assert_int_equal(kp_batch_writer_add(&w, &(struct kp_record){.offset = 5}), 0);
    assert_int_equal(
        kp_batch_writer_add(
            &w, &(struct kp_record){.offset = 7, .key = span_str(""), .value = span_str("")}),
        0);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    assert_int_equal(b.bytes->len, KP_BATCH_HEAD + sizeof want);
    assert_memory_equal(b.bytes->data + KP_BATCH_HEAD, want, sizeof want);
    assert_int_equal(be_load32(b.bytes->data + 23), 2); /* the last record's delta, no padding */
    kp_batch_fini(&b);
}

static void a_header_key_is_never_null_on_the_wire(void **state)
{
    const struct kp_header h[2] = {{{NULL, 0}, span_str("")},
                                   {span_str("\xc3\xbc"), span_str("1")}};
    static const uint8_t want[] = {0x1c, 0,    0,    0,    0x01, 0x01, 0x04,
                                   0x00, 0x00, 0x04, 0xc3, 0xbc, 0x02, '1'};
    struct kp_batch_writer w;
    struct kp_batch b;
    (void)state;

    kp_batch_writer_init(&w);
    assert_int_equal(kp_batch_writer_add(&w, &(struct kp_record){.headers = h, .headers_n = 2}), 0);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    assert_int_equal(b.bytes->len, KP_BATCH_HEAD + sizeof want);
    assert_memory_equal(b.bytes->data + KP_BATCH_HEAD + 1, want + 1, sizeof want - 1);
    assert_int_equal(b.bytes->data[KP_BATCH_HEAD], (sizeof want - 1) * 2);
    kp_batch_fini(&b);
}

static void a_control_batch_moves_the_position_by_one_record(void **state)
{
    static const uint8_t record_bytes[] = {0x14, 0, 0, 0, 0x08, 0, 0, 0xff, 0xff, 0x01, 0x00};
    struct kp_batch b;
    (void)state;

    assert_int_equal(kp_batch_control(999, 5, &b), 0);
    assert_int_equal(b.base_offset, 999);
    assert_int_equal(b.last_offset, 999);
    assert_int_equal(b.records, 1);
    assert_int_equal(be_load64(b.bytes->data), 999);
    assert_int_equal(be_load16(b.bytes->data + 21), 0x20); /* control, no codec */
    assert_int_equal(be_load32(b.bytes->data + 23), 0);
    assert_int_equal(b.bytes->len, KP_BATCH_HEAD + sizeof record_bytes);
    assert_memory_equal(b.bytes->data + KP_BATCH_HEAD, record_bytes, sizeof record_bytes);
    kp_batch_fini(&b);
}

static void offsets_must_rise_and_spans_stay_within_31_bits(void **state)
{
    struct kp_batch_writer w;
    struct kp_record rec = record(1000, 0, "x");
    (void)state;

    kp_batch_writer_init(&w);
    assert_false(kp_batch_writer_fits(&w, -1, 0));
    assert_true(kp_batch_writer_fits(&w, INT64_MAX, INT64_MIN));
    assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    assert_false(kp_batch_writer_fits(&w, 1000, 0));
    assert_false(kp_batch_writer_fits(&w, 999, 0));
    assert_true(kp_batch_writer_fits(&w, 1000 + (int64_t)INT32_MAX, 0));
    assert_false(kp_batch_writer_fits(&w, 1001 + (int64_t)INT32_MAX, 0));
    assert_true(kp_batch_writer_fits(&w, 1001, INT32_MAX));
    assert_false(kp_batch_writer_fits(&w, 1001, (int64_t)INT32_MAX + 1));
    assert_true(kp_batch_writer_fits(&w, 1001, -(int64_t)INT32_MAX));
    assert_false(kp_batch_writer_fits(&w, 1001, -(int64_t)INT32_MAX - 1));
    assert_false(kp_batch_writer_fits(&w, 1001, INT64_MIN));
    assert_false(kp_batch_writer_fits(&w, 1001, INT64_MAX));
    rec = record(1001, -INT32_MAX, "y");
    assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    /* the span counts between the extremes, not from the first record */
    assert_false(kp_batch_writer_fits(&w, 1002, 1));
    assert_true(kp_batch_writer_fits(&w, 1002, 0));
    kp_batch_writer_fini(&w);
}

static void only_the_first_sixteen_bytes_change_with_the_epoch(void **state)
{
    struct kp_batch_writer w;
    struct kp_batch b;
    struct kp_batch_view v;
    struct kp_record rec = record(7, 1, "value");
    (void)state;

    kp_batch_writer_init(&w);
    assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    kp_batch_patch(&b, 77, b.bytes->data); /* in a test only: nobody else holds the blob */
    assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
    assert_int_equal(v.leader_epoch, 77);
    assert_int_equal(v.base_offset, 7);
    kp_batch_fini(&b);
}

static void growing_keeps_every_record_and_gives_the_rest_back(void **state)
{
    struct kp_batch_writer w;
    struct kp_batch b;
    struct kp_batch_view v;
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header h[1];
    char value[200];
    (void)state;

    kp_batch_writer_init(&w);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(value, sizeof value, "%0*d", i % 150 + 1, i);
        rec = record(i * 3, i % 7, value);
        assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    }
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    assert_true(b.bytes->cap - b.bytes->len <= b.bytes->len / 8 + 256);
    assert_int_equal(b.last_offset, 2999 * 3);
    assert_int_equal(b.max_timestamp, 6);
    assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
    assert_int_equal(v.records, 3000);
    kp_record_iter_init(&it, &v, v.payload);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(value, sizeof value, "%0*d", i % 150 + 1, i);
        assert_int_equal(kp_record_next(&it, &rec, h, 1), 0);
        assert_int_equal(rec.offset, i * 3);
        assert_int_equal(rec.timestamp, i % 7);
        assert_true(span_eq_str(rec.value, value));
        assert_null(rec.key.p);
    }
    assert_int_equal(kp_record_next(&it, &rec, h, 1), E_NOTFOUND);
    kp_batch_fini(&b);
}

static void compression_is_skipped_when_it_does_not_make_the_batch_smaller(void **state)
{
    (void)state;
    for (int c = KP_CODEC_GZIP; c <= KP_CODEC_ZSTD; c++) {
        struct kp_batch_writer w;
        struct kp_batch b;
        struct kp_record rec = record(1, 1, "abc");

        kp_batch_writer_init(&w);
        assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
        assert_int_equal(kp_batch_writer_finish(&w, (enum kp_codec)c, &b), 0);
        assert_int_equal(be_load16(b.bytes->data + 21), 0);
        kp_batch_fini(&b);
        for (int i = 0; i < 100; i++) {
            rec = record(i, 1, "the same text in every record of this batch");
            assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
        }
        assert_int_equal(kp_batch_writer_finish(&w, (enum kp_codec)c, &b), 0);
        assert_int_equal(be_load16(b.bytes->data + 21), c);
        assert_true(b.bytes->len < 2000);
        kp_batch_fini(&b);
    }
}

static void out_of_memory_adds_nothing_and_leaves_the_writer_usable(void **state)
{
    struct kp_batch_writer w;
    struct kp_batch b;
    struct kp_record rec = record(1, 1, "abc");
    char big[8000];
    (void)state;

    memset(big, 'x', sizeof big);
    kp_batch_writer_init(&w);
    mem_fail_after(0, 0);
    assert_int_equal(kp_batch_writer_add(&w, &rec), E_NOMEM);
    assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    rec = (struct kp_record){.offset = 2, .value = span_of(big, sizeof big)};
    mem_fail_after(0, 0);
    assert_int_equal(kp_batch_writer_add(&w, &rec), E_NOMEM);
    assert_int_equal(w.records, 1);
    assert_int_equal(kp_batch_writer_add(&w, &rec), 0);
    mem_fail_after(0, 0);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_LZ4, &b), E_NOMEM);
    assert_null(b.bytes);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_LZ4, &b), 0);
    assert_int_equal(b.records, 2);
    kp_batch_fini(&b);
    mem_fail_after(0, 1);
    assert_int_equal(kp_batch_control(1, 1, &b), E_NOMEM);
    mem_fail_after(-1, 0);
}

static void a_record_beyond_the_length_field_is_refused(void **state)
{
    struct kp_batch_writer w;
    struct kp_record rec = {.offset = 1, .value = span_of("x", (size_t)INT32_MAX - 20)};
    (void)state;

    kp_batch_writer_init(&w);
    assert_int_equal(kp_batch_writer_add(&w, &rec), E_LIMIT);
    rec.value = span_of("x", SIZE_MAX / 2);
    assert_int_equal(kp_batch_writer_add(&w, &rec), E_LIMIT);
    assert_int_equal(w.records, 0);
    kp_batch_writer_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crc_is_castagnoli_and_continues_over_pieces),
        cmocka_unit_test(a_batch_of_one_record_has_exactly_these_bytes),
        cmocka_unit_test(null_and_empty_differ_and_no_headers_is_one_zero_byte),
        cmocka_unit_test(a_header_key_is_never_null_on_the_wire),
        cmocka_unit_test(a_control_batch_moves_the_position_by_one_record),
        cmocka_unit_test(offsets_must_rise_and_spans_stay_within_31_bits),
        cmocka_unit_test(only_the_first_sixteen_bytes_change_with_the_epoch),
        cmocka_unit_test(growing_keeps_every_record_and_gives_the_rest_back),
        cmocka_unit_test(compression_is_skipped_when_it_does_not_make_the_batch_smaller),
        cmocka_unit_test(out_of_memory_adds_nothing_and_leaves_the_writer_usable),
        cmocka_unit_test(a_record_beyond_the_length_field_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
