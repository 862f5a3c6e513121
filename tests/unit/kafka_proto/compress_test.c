/* Each codec: round trips of every awkward size, other writers' forms, bounds, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <snappy-c.h>
#include <string.h>

#include "base/mem.h"
#include "kafka_proto/compress.h"

/* Half repetitive, half noise; the same on each run. */
static void fill(uint8_t *p, size_t n)
{
    uint32_t x = 2463534242u;

    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        p[i] = (i / 64) % 2 == 0 ? (uint8_t)('a' + i % 20) : (uint8_t)x;
    }
}

static void every_codec_restores_every_size(void **state)
{
    static const size_t sizes[] = {0, 1, 31, 32767, 32768, 32769, 65536, 65537, 200000};
    uint8_t *data = mem_alloc(200000);
    (void)state;

    assert_non_null(data);
    fill(data, 200000);
    for (int c = KP_CODEC_GZIP; c <= KP_CODEC_ZSTD; c++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct blob *packed, *plain;
            size_t n = sizes[i];

            assert_int_equal(kp_compress((enum kp_codec)c, span_of(data, n), 61, &packed), 0);
            for (size_t k = 0; k < 61; k++)
                assert_int_equal(packed->data[k], 0);
            assert_int_equal(kp_decompress((enum kp_codec)c,
                                           span_of(packed->data + 61, packed->len - 61), n, &plain),
                             0);
            assert_int_equal(plain->len, n);
            assert_memory_equal(plain->data, data, n);
            blob_unref(plain);
            if (n > 0) {
                assert_int_equal(kp_decompress((enum kp_codec)c,
                                               span_of(packed->data + 61, packed->len - 61), n - 1,
                                               &plain),
                                 E_LIMIT);
                assert_null(plain);
            }
            blob_unref(packed);
        }
    }
    mem_free(data);
}

static void several_members_or_frames_in_a_row_are_read(void **state)
{
    static const enum kp_codec codecs[] = {KP_CODEC_GZIP, KP_CODEC_LZ4, KP_CODEC_ZSTD};
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        struct blob *one, *two, *both, *plain;

        assert_int_equal(kp_compress(codecs[i], span_str("first,"), 0, &one), 0);
        assert_int_equal(kp_compress(codecs[i], span_str("second"), one->len, &two), 0);
        both = two;
        memcpy(both->data, one->data, one->len);
        assert_int_equal(kp_decompress(codecs[i], blob_span(both), 1000, &plain), 0);
        assert_true(span_eq_str(blob_span(plain), "first,second"));
        blob_unref(plain);
        blob_unref(one);
        blob_unref(both);
    }
}

static void snappy_is_written_as_xerial_and_raw_is_read_too(void **state)
{
    static const uint8_t head[] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1};
    struct blob *packed, *plain;
    char raw[64];
    size_t n = sizeof raw;
    (void)state;

    assert_int_equal(kp_compress(KP_CODEC_SNAPPY, span_str("hello"), 0, &packed), 0);
    assert_memory_equal(packed->data, head, sizeof head);
    assert_int_equal(packed->data[19], packed->len - 20);
    blob_unref(packed);
    assert_int_equal(snappy_compress("hello", 5, raw, &n), SNAPPY_OK);
    assert_int_equal(kp_decompress(KP_CODEC_SNAPPY, span_of(raw, n), 100, &plain), 0);
    assert_true(span_eq_str(blob_span(plain), "hello"));
    blob_unref(plain);
}

static void lz4_is_one_frame_of_independent_blocks_without_checksums_or_size(void **state)
{
    struct blob *packed;
    (void)state;

    assert_int_equal(kp_compress(KP_CODEC_LZ4, span_str("hello"), 0, &packed), 0);
    assert_int_equal(packed->data[4], 0x60); /* version 1, independent */
    assert_int_equal(packed->data[5], 0x40); /* 64 KiB */
    blob_unref(packed);
}

static void cut_input_is_malformed(void **state)
{
    uint8_t data[5000];
    (void)state;

    fill(data, sizeof data);
    for (int c = KP_CODEC_GZIP; c <= KP_CODEC_ZSTD; c++) {
        struct blob *packed, *plain;

        assert_int_equal(kp_compress((enum kp_codec)c, span_of(data, sizeof data), 0, &packed), 0);
        for (size_t n = 0; n < packed->len; n += n < 40 ? 1 : 97) {
            /* snappy's header alone is a whole section of no bytes */
            if (c == KP_CODEC_SNAPPY && n == 16)
                continue;
            assert_int_equal(
                kp_decompress((enum kp_codec)c, span_of(packed->data, n), 100000, &plain),
                E_SYNTAX);
            assert_null(plain);
        }
        blob_unref(packed);
    }
}

static void a_small_lie_does_not_buy_much_memory(void **state)
{
    /* raw snappy that claims 1 GiB - 1 of output in 9 bytes */
    static const uint8_t lie[] = {0xff, 0xff, 0xff, 0xff, 0x03, 0x00, 'x', 'y', 'z'};
    struct blob *plain;
    (void)state;

    assert_int_equal(kp_decompress(KP_CODEC_SNAPPY, span_of(lie, sizeof lie), SIZE_MAX, &plain),
                     E_SYNTAX);
}

static void names_and_numbers_belong_together(void **state)
{
    static const char *const names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    enum kp_codec c;
    (void)state;

    for (int i = 0; i < 5; i++) {
        assert_int_equal(kp_codec_parse(span_str(names[i]), &c), 0);
        assert_int_equal(c, i);
        assert_string_equal(kp_codec_name(c), names[i]);
    }
    assert_int_equal(kp_codec_parse(span_str("GZIP"), &c), E_INVALID);
    assert_int_equal(kp_codec_parse(span_str(""), &c), E_INVALID);
}

static void out_of_memory_is_an_answer(void **state)
{
    struct blob *packed, *plain;
    (void)state;

    for (int c = KP_CODEC_GZIP; c <= KP_CODEC_ZSTD; c++) {
        assert_int_equal(kp_compress((enum kp_codec)c, span_str("hello hello"), 0, &packed), 0);
        mem_fail_after(0, 1);
        assert_int_equal(kp_decompress((enum kp_codec)c, blob_span(packed), 100, &plain), E_NOMEM);
        assert_null(plain);
        assert_int_equal(kp_compress((enum kp_codec)c, span_str("hello"), 0, &plain), E_NOMEM);
        assert_null(plain);
        mem_fail_after(-1, 0);
        blob_unref(packed);
    }
    assert_int_equal(kp_compress(KP_CODEC_NONE, span_str("x"), 0, &packed), E_INVALID);
    assert_int_equal(kp_decompress(KP_CODEC_NONE, span_str("x"), 9, &packed), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_restores_every_size),
        cmocka_unit_test(several_members_or_frames_in_a_row_are_read),
        cmocka_unit_test(snappy_is_written_as_xerial_and_raw_is_read_too),
        cmocka_unit_test(lz4_is_one_frame_of_independent_blocks_without_checksums_or_size),
        cmocka_unit_test(cut_input_is_malformed),
        cmocka_unit_test(a_small_lie_does_not_buy_much_memory),
        cmocka_unit_test(names_and_numbers_belong_together),
        cmocka_unit_test(out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
