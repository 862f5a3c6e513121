/*
 * Snappy in the framing of the Java library snappy-java ("xerial"), which is what Java clients read
 * and write: 16 bytes of header, then blocks of at most 32 KiB of input, each behind its 4-byte
 * big-endian length. Raw snappy (one block, no header) is read too, since librdkafka writes it. The
 * C++ library under the C interface allocates by new: out of memory inside of it ends the process.
 */
#include <snappy-c.h>
#include <string.h>

#include "base/num.h"
#include "base/writer.h"
#include "kafka_proto/compress_int.h"

#define BLOCK         ((size_t)32 << 10)
#define HEADER        16
#define MAX_EXPANSION 64 /* no element yields more per input byte (a 3-byte copy: 64 in all) */
#define LENGTH_ITSELF 4

static const uint8_t header[HEADER] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                       0,    0,   0,   1,   0,   0,   0,   1};

int kp_snappy_compress(struct span in, size_t head_room, struct blob **out)
{
    size_t blocks = in.n / BLOCK + 1;
    size_t worst = HEADER + blocks * (LENGTH_ITSELF + snappy_max_compressed_length(BLOCK));
    struct blob *b = kp_blob_with_room(head_room, worst);

    if (b == NULL)
        return E_NOMEM;
    memcpy(b->data + b->len, header, HEADER);
    b->len += HEADER;
    for (size_t at = 0; at < in.n; at += BLOCK) {
        size_t n = in.n - at < BLOCK ? in.n - at : BLOCK;
        size_t packed = b->cap - b->len - LENGTH_ITSELF;

        if (snappy_compress((const char *)in.p + at, n, (char *)b->data + b->len + LENGTH_ITSELF,
                            &packed) != SNAPPY_OK) {
            blob_unref(b);
            return E_NOMEM;
        }
        be_store32(b->data + b->len, (uint32_t)packed);
        b->len += LENGTH_ITSELF + packed;
    }
    *out = b;
    return 0;
}

/* The length one block says it unpacks to, held against what its size allows. */
static int block_size(struct span block, size_t *out)
{
    if (snappy_uncompressed_length((const char *)block.p, block.n, out) != SNAPPY_OK ||
        *out / MAX_EXPANSION > block.n)
        return E_SYNTAX;
    return 0;
}

/* Takes the next block off a framed input; a raw input is one block. */
static int next_block(struct span *rest, bool framed, struct span *out)
{
    size_t n = rest->n;

    if (framed) {
        if (rest->n < LENGTH_ITSELF)
            return E_SYNTAX;
        n = be_load32(rest->p);
        rest->p += LENGTH_ITSELF;
        rest->n -= LENGTH_ITSELF;
        if (n > rest->n)
            return E_SYNTAX;
    }
    *out = span_of(rest->p, n);
    rest->p += n;
    rest->n -= n;
    return 0;
}

int kp_snappy_decompress(struct span in, struct kp_sink *sink)
{
    bool framed = in.n >= HEADER && memcmp(in.p, header, 8) == 0;
    struct span rest, block;
    size_t total = 0, n;
    int err;

    if (framed)
        in = span_of(in.p + HEADER, in.n - HEADER);
    else if (in.n == 0)
        return E_SYNTAX;
    for (rest = in; rest.n > 0;) {
        if ((err = next_block(&rest, framed, &block)) < 0 || (err = block_size(block, &n)) < 0)
            return err;
        if (!num_add_size(total, n, &total) || total > sink->max)
            return E_LIMIT;
    }
    if ((sink->b = blob_new(total)) == NULL)
        return E_NOMEM;
    for (rest = in; rest.n > 0;) {
        if ((err = next_block(&rest, framed, &block)) < 0)
            return err;
        n = sink->b->cap - sink->b->len;
        if (snappy_uncompress((const char *)block.p, block.n, (char *)sink->b->data + sink->b->len,
                              &n) != SNAPPY_OK)
            return E_SYNTAX;
        sink->b->len += n;
    }
    return 0;
}
