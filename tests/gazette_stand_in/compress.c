/* How a fragment's bytes are stored: as they are, in several gzip members, as one zstd frame, or in
 * the framing format of snappy with masked CRC-32C. */
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/writer.h"
#include "kafka_proto/batch.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define GZIP_MEMBER  (1u << 20)
#define SNAPPY_CHUNK 65536
#define OBJECT_MAX   (1u << 30)

static int gzip_member(struct span raw, struct writer *w)
{
    z_stream z = {0};
    uint8_t buf[16384];
    int rv;

    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return E_NOMEM;
    z.next_in = (Bytef *)(uintptr_t)raw.p;
    z.avail_in = (uInt)raw.n;
    do {
        z.next_out = buf;
        z.avail_out = sizeof buf;
        rv = deflate(&z, Z_FINISH);
        wr_bytes(w, buf, sizeof buf - z.avail_out);
    } while (rv == Z_OK);
    (void)deflateEnd(&z);
    return rv == Z_STREAM_END ? wr_err(w) : E_NOMEM;
}

/* At least two members when there is anything to part, so that readers meet several. */
static int gzip_all(struct span raw, struct writer *w)
{
    size_t member = raw.n / 2 < GZIP_MEMBER ? raw.n / 2 + 1 : GZIP_MEMBER;
    int err = 0;

    for (size_t at = 0; at < raw.n && err == 0; at += member)
        err = gzip_member(span_of(raw.p + at, raw.n - at < member ? raw.n - at : member), w);
    return err;
}

static int zstd_all(struct span raw, struct writer *w)
{
    size_t bound = ZSTD_compressBound(raw.n);
    uint8_t *buf = mem_alloc(bound);
    int err = E_NOMEM;

    if (buf == NULL)
        return E_NOMEM;
    size_t n = ZSTD_compress(buf, bound, raw.p, raw.n, 1);
    if (!ZSTD_isError(n)) {
        wr_bytes(w, buf, n);
        err = wr_err(w);
    }
    mem_free(buf);
    return err;
}

static void le24(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
}

static int snappy_all(struct span raw, struct writer *w)
{
    static const uint8_t magic[] = {0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'};
    size_t bound = snappy_max_compressed_length(SNAPPY_CHUNK);
    char *buf = mem_alloc(bound);

    if (buf == NULL)
        return E_NOMEM;
    wr_bytes(w, magic, sizeof magic);
    for (size_t at = 0; at < raw.n; at += SNAPPY_CHUNK) {
        size_t part = raw.n - at < SNAPPY_CHUNK ? raw.n - at : SNAPPY_CHUNK, n = bound;
        uint32_t crc = kp_crc32c(0, span_of(raw.p + at, part));
        uint8_t head[8] = {0};
        crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
        if (snappy_compress((const char *)raw.p + at, part, buf, &n) != SNAPPY_OK)
            break;
        le24(head + 1, n + 4);
        for (int i = 0; i < 4; i++)
            head[4 + i] = (uint8_t)(crc >> (8 * i));
        wr_bytes(w, head, sizeof head);
        wr_bytes(w, buf, n);
    }
    mem_free(buf);
    return wr_err(w);
}

int si_compress(Gz__Codec codec, struct span raw, struct blob **out)
{
    struct writer w;
    int err = E_UNSUPPORTED;

    *out = NULL;
    wr_init(&w, OBJECT_MAX);
    if (codec == GZ__CODEC__CODEC_NONE) {
        wr_span(&w, raw);
        err = wr_err(&w);
    } else if (codec == GZ__CODEC__CODEC_GZIP) {
        err = gzip_all(raw, &w);
    } else if (codec == GZ__CODEC__CODEC_ZSTANDARD) {
        err = zstd_all(raw, &w);
    } else if (codec == GZ__CODEC__CODEC_SNAPPY) {
        err = snappy_all(raw, &w);
    }
    if (err == 0 && (*out = wr_take(&w)) == NULL)
        err = E_NOMEM;
    wr_fini(&w);
    return err;
}
