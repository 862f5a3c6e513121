/* The reader against hostile bytes: every cut, every flipped bit, every wrong length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/writer.h"
#include "kafka_proto/batch.h"

static struct kp_batch sample(void)
{
    const struct kp_header h[2] = {{span_str("a"), {NULL, 0}}, {span_str("b"), span_str("")}};
    struct kp_batch_writer w;
    struct kp_batch b;

    kp_batch_writer_init(&w);
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            kp_batch_writer_add(&w, &(struct kp_record){.offset = 10 + i * 2,
                                                        .timestamp = 100 - i,
                                                        .key = span_str("key"),
                                                        .value = span_str("value"),
                                                        .headers = h,
                                                        .headers_n = i % 3 == 2 ? 2 : 0}),
            0);
    assert_int_equal(kp_batch_writer_finish(&w, KP_CODEC_NONE, &b), 0);
    return b;
}

static void reseal(uint8_t *p, size_t n)
{
    be_store32(p + 17, kp_crc32c(0, span_of(p + 21, n - 21)));
}

static void what_was_written_is_read_back(void **state)
{
    struct kp_batch b = sample();
    struct kp_batch_view v;
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header h[2];
    (void)state;

    assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
    assert_int_equal(v.size, b.bytes->len);
    assert_int_equal(v.base_offset, 10);
    assert_int_equal(v.last_offset, 18);
    assert_int_equal(v.base_timestamp, 100);
    assert_int_equal(v.max_timestamp, 100);
    assert_int_equal(v.leader_epoch, -1);
    assert_false(v.control);
    kp_record_iter_init(&it, &v, v.payload);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(kp_record_next(&it, &rec, h, 2), 0);
        assert_int_equal(rec.offset, 10 + i * 2);
        assert_int_equal(rec.timestamp, 100 - i);
        assert_int_equal(rec.headers_n, i % 3 == 2 ? 2 : 0);
        if (rec.headers_n == 2) {
            assert_null(rec.headers[0].value.p);
            assert_non_null(rec.headers[1].value.p);
            assert_int_equal(rec.headers[1].value.n, 0);
        }
    }
    assert_int_equal(kp_record_next(&it, &rec, h, 2), E_NOTFOUND);
    kp_batch_fini(&b);
}

static void every_prefix_is_short(void **state)
{
    struct kp_batch b = sample();
    struct kp_batch_view v;
    (void)state;

    for (size_t n = 0; n < b.bytes->len; n++)
        assert_int_equal(kp_batch_parse(span_of(b.bytes->data, n), &v), E_SHORT);
    kp_batch_fini(&b);
}

static void every_flipped_bit_behind_the_length_is_noticed(void **state)
{
    struct kp_batch b = sample();
    struct kp_batch_view v;
    (void)state;

    for (size_t i = 16; i < b.bytes->len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.bytes->data[i] ^= (uint8_t)(1 << bit);
            assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v),
                             i == 16 ? E_VERSION : E_CORRUPT);
            b.bytes->data[i] ^= (uint8_t)(1 << bit);
        }
    }
    kp_batch_fini(&b);
}

static void wrong_heads_are_refused_although_the_crc_fits(void **state)
{
    struct kp_batch b = sample();
    uint8_t *p = b.bytes->data;
    size_t n = b.bytes->len;
    struct kp_batch_view v;
    (void)state;

    be_store32(p + 8, 48);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    be_store32(p + 8, 0x80000000u);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    be_store32(p + 8, 0x7fffffffu);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SHORT);
    be_store32(p + 8, (uint32_t)n - 12);

    be_store16(p + 21, 5); /* no such codec */
    reseal(p, n);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    be_store16(p + 21, 0);
    be_store32(p + 23, UINT32_MAX); /* last offset delta -1 */
    reseal(p, n);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    be_store32(p + 23, 8);
    be_store32(p + 57, UINT32_MAX); /* -1 records */
    reseal(p, n);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    be_store32(p + 57, 5);
    be_store64(p, INT64_MAX); /* the last offset overflows */
    reseal(p, n);
    assert_int_equal(kp_batch_parse(span_of(p, n), &v), E_SYNTAX);
    kp_batch_fini(&b);
}

/* One record section by hand under a view that claims `records`. */
static int first_error(const uint8_t *payload, size_t n, int32_t records, size_t headers_max)
{
    struct kp_batch_view v = {.records = records};
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header h[4];
    int err;

    kp_record_iter_init(&it, &v, span_of(payload, n));
    while ((err = kp_record_next(&it, &rec, h, headers_max)) == 0)
        ;
    return err;
}

static void malformed_records_are_refused(void **state)
{
    static const uint8_t good[] = {0x0c, 0, 0, 0, 0x01, 0x01, 0x00};
    static const uint8_t long_body[] = {0x0e, 0, 0, 0, 0x01, 0x01, 0x00, 0x00};
    static const uint8_t bad_key[] = {0x0c, 0, 0, 0, 0x03, 0x01, 0x00};      /* length -2 */
    static const uint8_t far_value[] = {0x0c, 0, 0, 0, 0x01, 0x7e, 0x00};    /* length 63 */
    static const uint8_t neg_headers[] = {0x0c, 0, 0, 0, 0x01, 0x01, 0x01};  /* -1 headers */
    static const uint8_t many_headers[] = {0x0c, 0, 0, 0, 0x01, 0x01, 0x7e}; /* 63 headers */
    static const uint8_t null_header[] = {0x10, 0, 0, 0, 0x01, 0x01, 0x02, 0x01, 0x01};
    static const uint8_t neg_record[] = {0x01};
    static const uint8_t overlong[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    (void)state;

    assert_int_equal(first_error(good, sizeof good, 1, 4), E_NOTFOUND);
    assert_int_equal(first_error(good, sizeof good, 0, 4), E_TRAILING);
    assert_int_equal(first_error(good, sizeof good, 2, 4), E_SYNTAX);
    for (size_t n = 0; n < sizeof good; n++)
        assert_int_equal(first_error(good, n, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(long_body, sizeof long_body, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(bad_key, sizeof bad_key, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(far_value, sizeof far_value, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(neg_headers, sizeof neg_headers, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(many_headers, sizeof many_headers, 1, 4), E_LIMIT);
    assert_int_equal(first_error(null_header, sizeof null_header, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(neg_record, sizeof neg_record, 1, 4), E_SYNTAX);
    assert_int_equal(first_error(overlong, sizeof overlong, 1, 4), E_SYNTAX);
}

static void log_append_time_overrides_the_records_own(void **state)
{
    struct kp_batch b = sample();
    struct kp_batch_view v;
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header h[2];
    (void)state;

    be_store16(b.bytes->data + 21, 0x08);
    be_store64(b.bytes->data + 35, 777);
    reseal(b.bytes->data, b.bytes->len);
    assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
    kp_record_iter_init(&it, &v, v.payload);
    assert_int_equal(kp_record_next(&it, &rec, h, 2), 0);
    assert_int_equal(rec.timestamp, 777);
    kp_batch_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(every_prefix_is_short),
        cmocka_unit_test(every_flipped_bit_behind_the_length_is_noticed),
        cmocka_unit_test(wrong_heads_are_refused_although_the_crc_fits),
        cmocka_unit_test(malformed_records_are_refused),
        cmocka_unit_test(log_append_time_overrides_the_records_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
