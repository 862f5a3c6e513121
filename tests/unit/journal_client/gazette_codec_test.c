/* Stored fragments of every codec, whole, in pieces, cut, damaged, and larger than they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define TEXT_BYTES 300000
#define LIMIT      (4u << 20)

static uint8_t text[TEXT_BYTES];
static struct writer packed; /* what is stored */

struct sink {
    struct writer got;
    size_t most; /* in one call */
    size_t limit;
};

static int on_out(void *arg, struct span out)
{
    struct sink *s = arg;

    if (out.n > s->most)
        s->most = out.n;
    if (wr_len(&s->got) + out.n > s->limit)
        return E_CORRUPT; /* as the reader of a fragment does: longer than its name says */
    wr_bytes(&s->got, out.p, out.n);
    return 0;
}

/* Lines that repeat a little. */
static int setup(void **state)
{
    uint32_t x = 1;

    (void)state;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        x = x * 1664525u + 1013904223u;
        text[i] = i % 80 == 79 ? '\n' : (uint8_t)('a' + (x >> 24) % 7);
    }
    wr_init(&packed, LIMIT);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    wr_fini(&packed);
    return 0;
}

static void gzip_member(const uint8_t *p, size_t n)
{
    z_stream z = {0};
    uint8_t *buf = mem_alloc(n + 1024);

    assert_non_null(buf);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = buf;
    z.avail_out = (uInt)(n + 1024);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    wr_bytes(&packed, buf, n + 1024 - z.avail_out);
    (void)deflateEnd(&z);
    mem_free(buf);
}

static void zstd_frame(const uint8_t *p, size_t n)
{
    size_t room = ZSTD_compressBound(n);
    uint8_t *buf = mem_alloc(room);

    assert_non_null(buf);
    size_t made = ZSTD_compress(buf, room, p, n, 3);
    assert_false(ZSTD_isError(made));
    wr_bytes(&packed, buf, made);
    mem_free(buf);
}

static void snappy_head(uint8_t type, size_t n)
{
    const uint8_t head[] = {type, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)};

    wr_bytes(&packed, head, sizeof head);
}

static void snappy_begin(void)
{
    snappy_head(0xff, 6);
    wr_str(&packed, "sNaPpY");
}

/* plain: stored as it is. The checksum is not looked at: the fragment's SHA-1 is. */
static void snappy_part(const uint8_t *p, size_t n, bool plain)
{
    char buf[100000];
    size_t made = sizeof buf;

    assert_int_equal(snappy_compress((const char *)p, n, buf, &made), SNAPPY_OK);
    snappy_head(plain ? 1 : 0, 4 + (plain ? n : made));
    wr_str(&packed, "crc.");
    wr_bytes(&packed, plain ? p : (const uint8_t *)buf, plain ? n : made);
}

static void pack(Gz__Codec codec)
{
    wr_fini(&packed);
    wr_init(&packed, LIMIT);
    if (codec == GZ__CODEC__CODEC_NONE) {
        wr_bytes(&packed, text, TEXT_BYTES);
    } else if (codec == GZ__CODEC__CODEC_GZIP) {
        for (size_t at = 0; at < TEXT_BYTES; at += 100000)
            gzip_member(text + at, 100000);
    } else if (codec == GZ__CODEC__CODEC_ZSTANDARD) {
        for (size_t at = 0; at < TEXT_BYTES; at += 150000)
            zstd_frame(text + at, 150000);
    } else {
        snappy_begin();
        for (size_t at = 0; at < TEXT_BYTES; at += 60000)
            snappy_part(text + at, 60000, at == 60000);
        snappy_head(0xfe, 3); /* padding */
        wr_bytes(&packed, "\0\0\0", 3);
    }
    assert_int_equal(wr_err(&packed), 0);
}

/* In pieces of so many bytes. Returns the first error. */
static int inflate_all(Gz__Codec codec, struct span in, size_t piece, struct sink *s)
{
    struct gz_inflate *z;
    int err = gz_inflate_new(codec, on_out, s, &z);

    assert_int_equal(err, 0);
    for (size_t at = 0; err == 0 && at < in.n; at += piece)
        err = gz_inflate_add(z, span_of(in.p + at, in.n - at < piece ? in.n - at : piece));
    if (err == 0)
        err = gz_inflate_end(z);
    gz_inflate_free(z);
    return err;
}

static int unpack(Gz__Codec codec, struct span in, size_t piece, struct sink *s)
{
    *s = (struct sink){.limit = TEXT_BYTES};
    wr_init(&s->got, LIMIT);
    int err = inflate_all(codec, in, piece, s);
    assert_true(s->most <= 256u << 10 || codec == GZ__CODEC__CODEC_NONE);
    return err;
}

static const Gz__Codec codecs[] = {GZ__CODEC__CODEC_NONE, GZ__CODEC__CODEC_GZIP,
                                   GZ__CODEC__CODEC_ZSTANDARD, GZ__CODEC__CODEC_SNAPPY};
#define CODECS (sizeof codecs / sizeof codecs[0])

static void any_split_of_the_input_gives_the_same_text(void **state)
{
    static const size_t pieces[] = {1, 3, 4, 10, 4096, 1u << 20};
    struct sink s;

    (void)state;
    for (size_t c = 0; c < CODECS; c++) {
        pack(codecs[c]);
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            assert_int_equal(unpack(codecs[c], blob_span(packed.b), pieces[i], &s), 0);
            assert_int_equal(wr_len(&s.got), TEXT_BYTES);
            assert_memory_equal(s.got.b->data, text, TEXT_BYTES);
            wr_fini(&s.got);
        }
    }
}

static void what_is_cut_is_damaged_or_short(void **state)
{
    struct sink s;

    (void)state;
    for (size_t c = 1; c < CODECS; c++) {
        pack(codecs[c]);
        struct span all = blob_span(packed.b);
        for (size_t n = 0; n < all.n; n += n < 200 ? 1 : 997) {
            int err = unpack(codecs[c], span_of(all.p, n), 5000, &s);
            assert_true(err == E_CORRUPT || (err == 0 && wr_len(&s.got) < TEXT_BYTES) ||
                        (codecs[c] == GZ__CODEC__CODEC_SNAPPY && err == 0));
            wr_fini(&s.got);
        }
    }
}

static void damage_is_an_error_or_another_text_and_nothing_worse(void **state)
{
    struct sink s;
    uint32_t x = 7;

    (void)state;
    for (size_t c = 1; c < CODECS; c++) {
        pack(codecs[c]);
        for (size_t round = 0; round < 150; round++) {
            x = x * 1664525u + 1013904223u;
            size_t at = round < 60 ? round : (x >> 4) % packed.b->len;
            uint8_t kept = packed.b->data[at];
            packed.b->data[at] ^= (uint8_t)(1 + (x >> 27));
            int err = unpack(codecs[c], blob_span(packed.b), 4096, &s);
            assert_true(err == 0 || err == E_CORRUPT || err == E_NOMEM);
            wr_fini(&s.got);
            packed.b->data[at] = kept;
        }
    }
}

static void a_fragment_longer_than_it_says_is_given_up_early(void **state)
{
    const size_t bomb = (size_t)64 << 20;
    uint8_t *zeros = mem_zalloc(bomb);
    struct sink s;

    (void)state;
    assert_non_null(zeros);
    for (int zstd = 0; zstd < 2; zstd++) {
        wr_fini(&packed);
        wr_init(&packed, LIMIT);
        if (zstd)
            zstd_frame(zeros, bomb);
        else
            gzip_member(zeros, bomb);
        assert_true(packed.b->len < 100000);
        Gz__Codec codec = zstd ? GZ__CODEC__CODEC_ZSTANDARD : GZ__CODEC__CODEC_GZIP;
        assert_int_equal(unpack(codec, blob_span(packed.b), 4096, &s), E_CORRUPT);
        assert_true(wr_len(&s.got) <= TEXT_BYTES);
        wr_fini(&s.got);
    }
    mem_free(zeros);
}

static void a_snappy_chunk_of_more_than_its_format_allows_is_refused(void **state)
{
    struct sink s;
    uint8_t *zeros = mem_zalloc(1u << 20);
    size_t made = snappy_max_compressed_length(1u << 20);
    char *buf = mem_alloc(made);

    (void)state;
    assert_non_null(zeros);
    assert_non_null(buf);
    assert_int_equal(snappy_compress((const char *)zeros, 1u << 20, buf, &made), SNAPPY_OK);
    wr_fini(&packed);
    wr_init(&packed, LIMIT);
    snappy_begin();
    snappy_head(0, 4 + made);
    wr_str(&packed, "crc.");
    wr_bytes(&packed, buf, made);
    assert_int_equal(unpack(GZ__CODEC__CODEC_SNAPPY, blob_span(packed.b), 4096, &s), E_CORRUPT);
    wr_fini(&s.got);
    mem_free(zeros);
    mem_free(buf);
}

static void raw_snappy_is_none_of_a_brokers(void **state)
{
    struct sink s;
    char buf[100000];
    size_t made = sizeof buf;

    (void)state;
    assert_int_equal(snappy_compress((const char *)text, 60000, buf, &made), SNAPPY_OK);
    assert_int_equal(unpack(GZ__CODEC__CODEC_SNAPPY, span_of((const uint8_t *)buf, made), 4096, &s),
                     E_CORRUPT);
    wr_fini(&s.got);
}

/* GZIP_OFFLOAD: who stores it may inflate it on its way. */
static void an_offloaded_fragment_may_come_inflated(void **state)
{
    struct sink s = {.limit = TEXT_BYTES};
    struct gz_inflate *z;

    (void)state;
    wr_init(&s.got, TEXT_BYTES);
    assert_int_equal(gz_inflate_new(GZ__CODEC__CODEC_GZIP_OFFLOAD, on_out, &s, &z), 0);
    for (size_t at = 0; at < TEXT_BYTES; at += TEXT_BYTES / 10)
        assert_int_equal(gz_inflate_add(z, span_of(text + at, TEXT_BYTES / 10)), 0);
    assert_int_equal(gz_inflate_end(z), 0);
    gz_inflate_free(z);
    assert_int_equal(wr_len(&s.got), TEXT_BYTES);
    assert_memory_equal(s.got.b->data, text, TEXT_BYTES);
    wr_fini(&s.got);
}

static void an_unknown_codec_is_not_supported(void **state)
{
    struct gz_inflate *z;

    (void)state;
    assert_int_equal(gz_inflate_new((Gz__Codec)9, on_out, NULL, &z), E_UNSUPPORTED);
    assert_null(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_of_the_input_gives_the_same_text),
        cmocka_unit_test(what_is_cut_is_damaged_or_short),
        cmocka_unit_test(damage_is_an_error_or_another_text_and_nothing_worse),
        cmocka_unit_test(a_fragment_longer_than_it_says_is_given_up_early),
        cmocka_unit_test(a_snappy_chunk_of_more_than_its_format_allows_is_refused),
        cmocka_unit_test(raw_snappy_is_none_of_a_brokers),
        cmocka_unit_test(an_offloaded_fragment_may_come_inflated),
        cmocka_unit_test(an_unknown_codec_is_not_supported),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
