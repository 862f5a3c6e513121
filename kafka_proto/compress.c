/*
 * The codecs of record batches over whole sections in memory: gzip, lz4 and zstd; snappy has its
 * own file. Output always goes to a new blob. Unpacking grows that blob step by step up to the
 * caller's bound, so a small hostile input cannot take more than it really unpacks to (times two).
 * Pure, any thread.
 */
#include "kafka_proto/compress.h"

#include <lz4frame.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "kafka_proto/compress_int.h"

#define INPUT_LIMIT ((size_t)1 << 30)
#define FIRST_ROOM  256
#define GZIP_WBITS  (15 + 16) /* largest window, gzip wrapper */

static const char *const codec_names[] = {
    [KP_CODEC_NONE] = "none", [KP_CODEC_GZIP] = "gzip", [KP_CODEC_SNAPPY] = "snappy",
    [KP_CODEC_LZ4] = "lz4",   [KP_CODEC_ZSTD] = "zstd",
};

int kp_codec_parse(struct span name, enum kp_codec *out)
{
    *out = KP_CODEC_NONE;
    for (size_t i = 0; i < sizeof codec_names / sizeof codec_names[0]; i++) {
        if (span_eq_str(name, codec_names[i])) {
            *out = (enum kp_codec)i;
            return 0;
        }
    }
    return E_INVALID;
}

const char *kp_codec_name(enum kp_codec c)
{
    return (size_t)c < sizeof codec_names / sizeof codec_names[0] ? codec_names[c] : "unknown";
}

int kp_sink_room(struct kp_sink *s, size_t want)
{
    size_t limit = s->max + 1; /* one more byte, so that too much shows itself */
    size_t cap = s->b == NULL ? 0 : s->b->cap;
    struct blob *b;

    if (s->b != NULL && s->b->len > s->max)
        return E_LIMIT;
    if (s->b != NULL && s->b->cap > s->b->len)
        return 0;
    if (want < FIRST_ROOM)
        want = FIRST_ROOM;
    if (want < cap * 2)
        want = cap * 2;
    if (want > limit)
        want = limit;
    if ((b = blob_new(want)) == NULL)
        return E_NOMEM;
    if (s->b != NULL) {
        memcpy(b->data, s->b->data, s->b->len);
        b->len = s->b->len;
        blob_unref(s->b);
    }
    s->b = b;
    return 0;
}

/* --- gzip --- */

static int gzip_compress(struct span in, size_t head_room, struct blob **out)
{
    z_stream z = {0};
    struct blob *b = NULL;
    int err = E_NOMEM;

    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return E_NOMEM;
    if ((b = kp_blob_with_room(head_room, deflateBound(&z, (uLong)in.n))) == NULL)
        goto out;
    z.next_in = (Bytef *)(uintptr_t)in.p;
    z.avail_in = (uInt)in.n;
    z.next_out = b->data + b->len;
    z.avail_out = (uInt)(b->cap - b->len);
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        goto out;
    b->len += z.total_out;
    *out = b;
    b = NULL;
    err = 0;
out:
    blob_unref(b);
    (void)deflateEnd(&z);
    return err;
}

static int gzip_decompress(struct span in, struct kp_sink *sink)
{
    z_stream z = {0};
    int r = Z_OK;
    int err = 0;

    if (inflateInit2(&z, GZIP_WBITS) != Z_OK)
        return E_NOMEM;
    z.next_in = (Bytef *)(uintptr_t)in.p;
    z.avail_in = (uInt)in.n;
    for (;;) {
        size_t room;

        if ((err = kp_sink_room(sink, in.n * 4)) < 0)
            break;
        room = sink->b->cap - sink->b->len;
        z.next_out = sink->b->data + sink->b->len;
        z.avail_out = (uInt)room;
        r = inflate(&z, Z_NO_FLUSH);
        sink->b->len += room - z.avail_out;
        if (r == Z_STREAM_END) {
            if (z.avail_in == 0)
                break;
            if (inflateReset(&z) != Z_OK) { /* the next member */
                err = E_SYNTAX;
                break;
            }
        } else if (r != Z_OK || (z.avail_in == 0 && z.avail_out > 0)) {
            err = r == Z_MEM_ERROR ? E_NOMEM : E_SYNTAX;
            break;
        }
    }
    (void)inflateEnd(&z);
    return err;
}

/* --- lz4 --- */

static int lz4_compress(struct span in, size_t head_room, struct blob **out)
{
    LZ4F_preferences_t prefs = {0};
    struct blob *b;
    size_t n;

    prefs.frameInfo.blockSizeID = LZ4F_max64KB;
    prefs.frameInfo.blockMode = LZ4F_blockIndependent;
    prefs.frameInfo.contentChecksumFlag = LZ4F_noContentChecksum;
    prefs.frameInfo.blockChecksumFlag = LZ4F_noBlockChecksum;
    if ((b = kp_blob_with_room(head_room, LZ4F_compressFrameBound(in.n, &prefs))) == NULL)
        return E_NOMEM;
    n = LZ4F_compressFrame(b->data + b->len, b->cap - b->len, in.p, in.n, &prefs);
    if (LZ4F_isError(n)) {
        blob_unref(b);
        return E_NOMEM;
    }
    b->len += n;
    *out = b;
    return 0;
}

static int lz4_decompress(struct span in, struct kp_sink *sink)
{
    LZ4F_dctx *ctx = NULL;
    size_t hint = 1;
    int err = 0;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)))
        return E_NOMEM;
    for (;;) {
        size_t room, taken = in.n;

        if ((err = kp_sink_room(sink, in.n * 4)) < 0)
            break;
        room = sink->b->cap - sink->b->len;
        hint = LZ4F_decompress(ctx, sink->b->data + sink->b->len, &room, in.p, &taken, NULL);
        if (LZ4F_isError(hint)) {
            err = E_SYNTAX;
            break;
        }
        sink->b->len += room;
        in.p += taken;
        in.n -= taken;
        if (hint == 0 && in.n == 0)
            break; /* at the end of a frame; else the next one follows */
        if (taken == 0 && room == 0) {
            err = E_SYNTAX;
            break;
        }
    }
    (void)LZ4F_freeDecompressionContext(ctx);
    return err;
}

/* --- zstd --- */

static int zstd_compress(struct span in, size_t head_room, struct blob **out)
{
    struct blob *b;
    size_t n;

    if ((b = kp_blob_with_room(head_room, ZSTD_compressBound(in.n))) == NULL)
        return E_NOMEM;
    n = ZSTD_compress(b->data + b->len, b->cap - b->len, in.p, in.n, ZSTD_CLEVEL_DEFAULT);
    if (ZSTD_isError(n)) {
        blob_unref(b);
        return E_NOMEM;
    }
    b->len += n;
    *out = b;
    return 0;
}

static int zstd_decompress(struct span in, struct kp_sink *sink)
{
    ZSTD_inBuffer src = {in.p, in.n, 0};
    ZSTD_DCtx *ctx;
    int err = 0;

    if ((ctx = ZSTD_createDCtx()) == NULL)
        return E_NOMEM;
    for (;;) {
        size_t before = src.pos;
        ZSTD_outBuffer dst;
        size_t hint;

        if ((err = kp_sink_room(sink, in.n * 4)) < 0)
            break;
        dst = (ZSTD_outBuffer){sink->b->data + sink->b->len, sink->b->cap - sink->b->len, 0};
        hint = ZSTD_decompressStream(ctx, &dst, &src);
        if (ZSTD_isError(hint)) {
            err = E_SYNTAX;
            break;
        }
        sink->b->len += dst.pos;
        if (hint == 0 && src.pos == src.size)
            break;
        if (src.pos == before && dst.pos == 0) {
            err = E_SYNTAX;
            break;
        }
    }
    (void)ZSTD_freeDCtx(ctx);
    return err;
}

/* --- choice --- */

struct blob *kp_blob_with_room(size_t head_room, size_t n)
{
    struct blob *b;

    if (n > SIZE_MAX - head_room || (b = blob_new(head_room + n)) == NULL)
        return NULL;
    memset(b->data, 0, head_room);
    b->len = head_room;
    return b;
}

int kp_compress(enum kp_codec c, struct span in, size_t head_room, struct blob **out)
{
    *out = NULL;
    if (in.n > INPUT_LIMIT)
        return E_LIMIT;
    switch (c) {
    case KP_CODEC_GZIP:
        return gzip_compress(in, head_room, out);
    case KP_CODEC_SNAPPY:
        return kp_snappy_compress(in, head_room, out);
    case KP_CODEC_LZ4:
        return lz4_compress(in, head_room, out);
    case KP_CODEC_ZSTD:
        return zstd_compress(in, head_room, out);
    case KP_CODEC_NONE:
        break;
    }
    return E_INVALID;
}

int kp_decompress(enum kp_codec c, struct span in, size_t max, struct blob **out)
{
    struct kp_sink sink = {.max = max < INPUT_LIMIT ? max : INPUT_LIMIT};
    int err = E_INVALID;

    *out = NULL;
    if (in.n > INPUT_LIMIT)
        return E_LIMIT;
    switch (c) {
    case KP_CODEC_GZIP:
        err = gzip_decompress(in, &sink);
        break;
    case KP_CODEC_SNAPPY:
        err = kp_snappy_decompress(in, &sink);
        break;
    case KP_CODEC_LZ4:
        err = lz4_decompress(in, &sink);
        break;
    case KP_CODEC_ZSTD:
        err = zstd_decompress(in, &sink);
        break;
    case KP_CODEC_NONE:
        break;
    }
    if (err == 0 && sink.b != NULL && sink.b->len > sink.max)
        err = E_LIMIT;
    if (err < 0) {
        blob_unref(sink.b);
        return err;
    }
    *out = sink.b;
    return 0;
}
