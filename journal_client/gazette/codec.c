/*
 * Inflating stored fragments as their bytes come: gzip (several members in a row), zstd, and
 * snappy's framing format.
 */
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define OUT_BYTES     (128u << 10)
#define SNAPPY_CHUNK  65536 /* inflated, at most */
#define SNAPPY_STORED (SNAPPY_CHUNK + 16384)

struct gz_inflate {
    Gz__Codec codec;
    gz_inflate_fn *out;
    void *arg;
    bool ended; /* at the end of a member or frame */
    bool begun;
    z_stream z;
    bool z_ready;
    ZSTD_DStream *zstd;
    uint8_t *buf;
    /* a snappy chunk that is coming in */
    uint8_t head[4];
    size_t head_n, chunk_n;
    uint8_t *chunk;
};

int gz_inflate_new(Gz__Codec codec, gz_inflate_fn *out, void *arg, struct gz_inflate **inflate)
{
    struct gz_inflate *z = mem_zalloc(sizeof *z);

    *inflate = NULL;
    if (z == NULL)
        return E_NOMEM;
    z->codec = codec;
    z->out = out;
    z->arg = arg;
    z->ended = true;
    bool ok = (z->buf = mem_alloc(OUT_BYTES)) != NULL;
    switch (codec) {
    case GZ__CODEC__CODEC_NONE:
        break;
    case GZ__CODEC__CODEC_GZIP:
    case GZ__CODEC__CODEC_GZIP_OFFLOAD:
        ok = ok && (z->z_ready = inflateInit2(&z->z, 15 + 16) == Z_OK);
        break;
    case GZ__CODEC__CODEC_ZSTANDARD:
        ok = ok && (z->zstd = ZSTD_createDStream()) != NULL;
        break;
    case GZ__CODEC__CODEC_SNAPPY:
        ok = ok && (z->chunk = mem_alloc(SNAPPY_STORED)) != NULL;
        break;
    case GZ__CODEC__CODEC_INVALID:
    case _GZ__CODEC_IS_INT_SIZE:
    default:
        gz_inflate_free(z);
        return E_UNSUPPORTED;
    }
    if (!ok) {
        gz_inflate_free(z);
        return E_NOMEM;
    }
    *inflate = z;
    return 0;
}

void gz_inflate_free(struct gz_inflate *z)
{
    if (z == NULL)
        return;
    if (z->z_ready)
        (void)inflateEnd(&z->z);
    (void)ZSTD_freeDStream(z->zstd);
    mem_free(z->buf);
    mem_free(z->chunk);
    mem_free(z);
}

static int add_gzip(struct gz_inflate *z, struct span in)
{
    int err;

    z->z.next_in = (Bytef *)(uintptr_t)in.p;
    z->z.avail_in = (uInt)in.n;
    while (z->z.avail_in > 0) {
        if (z->ended && z->begun && inflateReset(&z->z) != Z_OK) /* the next member */
            return E_CORRUPT;
        z->ended = false;
        z->begun = true;
        do {
            z->z.next_out = z->buf;
            z->z.avail_out = OUT_BYTES;
            int rc = inflate(&z->z, Z_NO_FLUSH);
            if (rc == Z_MEM_ERROR)
                return E_NOMEM;
            if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
                return E_CORRUPT;
            size_t n = OUT_BYTES - z->z.avail_out;
            if (n > 0 && (err = z->out(z->arg, span_of(z->buf, n))) < 0)
                return err;
            if (rc == Z_STREAM_END) {
                z->ended = true;
                break;
            }
        } while (z->z.avail_in > 0 || z->z.avail_out == 0);
    }
    return 0;
}

static int add_zstd(struct gz_inflate *z, struct span in)
{
    ZSTD_inBuffer from = {in.p, in.n, 0};
    size_t made;
    int err;

    do {
        ZSTD_outBuffer to = {z->buf, OUT_BYTES, 0};
        size_t rc = ZSTD_decompressStream(z->zstd, &to, &from);
        if (ZSTD_isError(rc))
            return E_CORRUPT;
        z->ended = rc == 0;
        made = to.pos;
        if (made > 0 && (err = z->out(z->arg, span_of(z->buf, made))) < 0)
            return err;
    } while (from.pos < from.size || made == OUT_BYTES);
    return 0;
}

/* A whole chunk of the framing format: its 4-byte head (type, 24-bit length) was taken off.
 * Checksums are not looked at: the fragment's own SHA-1 is. */
static int snappy_chunk(struct gz_inflate *z)
{
    static const uint8_t magic[] = {'s', 'N', 'a', 'P', 'p', 'Y'};
    uint8_t type = z->head[0];
    size_t n = OUT_BYTES;

    if (type == 0xff)
        return z->chunk_n == sizeof magic && memcmp(z->chunk, magic, sizeof magic) == 0 ? 0
                                                                                        : E_CORRUPT;
    if (type >= 0x80) /* padding and what may be passed over */
        return 0;
    if (type > 1 || z->chunk_n < 4)
        return E_CORRUPT;
    if (type == 1)
        return z->out(z->arg, span_of(z->chunk + 4, z->chunk_n - 4));
    if (snappy_uncompress((const char *)z->chunk + 4, z->chunk_n - 4, (char *)z->buf, &n) !=
        SNAPPY_OK)
        return E_CORRUPT;
    return z->out(z->arg, span_of(z->buf, n));
}

static int add_snappy(struct gz_inflate *z, struct span in)
{
    int err;

    while (in.n > 0 || (z->head_n == 4 && z->chunk_n == 0)) {
        if (z->head_n < 4) {
            z->head[z->head_n++] = in.p[0];
            in = span_of(in.p + 1, in.n - 1);
            z->ended = false;
            if (z->head_n < 4)
                continue;
        }
        size_t want = (size_t)z->head[1] | (size_t)z->head[2] << 8 | (size_t)z->head[3] << 16;
        bool skip = z->head[0] >= 0x80 && z->head[0] != 0xff;
        if (want > SNAPPY_STORED && !skip)
            return E_CORRUPT;
        size_t part = want - z->chunk_n < in.n ? want - z->chunk_n : in.n;
        if (part > 0 && !skip)
            memcpy(z->chunk + z->chunk_n, in.p, part);
        z->chunk_n += part;
        in = span_of(in.p + part, in.n - part);
        if (z->chunk_n < want)
            return 0;
        if ((err = snappy_chunk(z)) < 0)
            return err;
        z->head_n = z->chunk_n = 0;
        z->ended = true;
    }
    return 0;
}

int gz_inflate_add(struct gz_inflate *z, struct span in)
{
    if (in.n == 0)
        return 0;
    switch (z->codec) {
    case GZ__CODEC__CODEC_NONE:
        return z->out(z->arg, in);
    case GZ__CODEC__CODEC_GZIP_OFFLOAD:
        if (!z->begun && in.p[0] != 0x1f) { /* the store inflated it on its way */
            z->codec = GZ__CODEC__CODEC_NONE;
            return z->out(z->arg, in);
        }
        return add_gzip(z, in);
    case GZ__CODEC__CODEC_GZIP:
        return add_gzip(z, in);
    case GZ__CODEC__CODEC_ZSTANDARD:
        return add_zstd(z, in);
    case GZ__CODEC__CODEC_SNAPPY:
        return add_snappy(z, in);
    case GZ__CODEC__CODEC_INVALID:
    case _GZ__CODEC_IS_INT_SIZE:
    default:
        return E_UNSUPPORTED;
    }
}

int gz_inflate_end(struct gz_inflate *z)
{
    return z->ended ? 0 : E_CORRUPT;
}
