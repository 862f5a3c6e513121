/*
 * Record batches and codecs against arbitrary bytes. The first byte chooses: bit 0 seals the rest
 * with a fitting magic, length and CRC (else no input would pass the checksum), bits 1-3 name a
 * codec that unpacks the rest as it is. What parses completely must survive being written and read
 * again.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/writer.h"
#include "kafka_proto/batch.h"

#define UNPACKED_MAX ((size_t)1 << 20)
#define HEADERS      8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_bytes(struct span a, struct span b)
{
    return (a.p == NULL) == (b.p == NULL) && span_eq(a, b);
}

static void same_records(const struct kp_batch_view *va, struct span pa,
                         const struct kp_batch_view *vb, struct span pb)
{
    struct kp_record_iter a, b;
    struct kp_record ra, rb;
    struct kp_header ha[HEADERS], hb[HEADERS];

    kp_record_iter_init(&a, va, pa);
    kp_record_iter_init(&b, vb, pb);
    while (kp_record_next(&a, &ra, ha, HEADERS) == 0) {
        ASSERT(kp_record_next(&b, &rb, hb, HEADERS) == 0);
        ASSERT(ra.offset == rb.offset && ra.timestamp == rb.timestamp);
        ASSERT(same_bytes(ra.key, rb.key) && same_bytes(ra.value, rb.value));
        ASSERT(ra.headers_n == rb.headers_n);
        for (size_t i = 0; i < ra.headers_n; i++) {
            ASSERT(same_bytes(ha[i].key, hb[i].key) && same_bytes(ha[i].value, hb[i].value));
        }
    }
    ASSERT(kp_record_next(&b, &rb, hb, HEADERS) == E_NOTFOUND);
}

/* Iterates a section; when all of it can be written again, does so and compares. */
static void try_records(const struct kp_batch_view *v, struct span payload, enum kp_codec codec)
{
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header headers[HEADERS];
    struct kp_batch_writer w;
    struct kp_batch b = {0};
    struct kp_batch_view back;
    struct blob *plain = NULL;
    bool fits = true;
    int err;

    kp_batch_writer_init(&w);
    kp_record_iter_init(&it, v, payload);
    while ((err = kp_record_next(&it, &rec, headers, HEADERS)) == 0) {
        fits = fits && kp_batch_writer_fits(&w, rec.offset, rec.timestamp);
        if (fits)
            ASSERT(kp_batch_writer_add(&w, &rec) == 0);
    }
    if (err == E_NOTFOUND && fits && w.records > 0) {
        ASSERT(kp_batch_writer_finish(&w, codec, &b) == 0);
        ASSERT(kp_batch_parse(blob_span(b.bytes), &back) == 0);
        if (back.codec != KP_CODEC_NONE)
            ASSERT(kp_decompress(back.codec, back.payload, SIZE_MAX, &plain) == 0);
        same_records(v, payload, &back, plain == NULL ? back.payload : blob_span(plain));
    }
    blob_unref(plain);
    kp_batch_fini(&b);
    kp_batch_writer_fini(&w);
}

static void try_batch(struct span in, enum kp_codec again)
{
    struct kp_batch_view v;
    struct blob *plain = NULL;

    if (kp_batch_parse(in, &v) < 0)
        return;
    ASSERT(v.size <= in.n && v.payload.n <= in.n);
    if (v.codec == KP_CODEC_NONE) {
        try_records(&v, v.payload, again);
    } else if (kp_decompress(v.codec, v.payload, UNPACKED_MAX, &plain) == 0) {
        try_records(&v, blob_span(plain), again);
        blob_unref(plain);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum kp_codec codec;
    struct blob *plain;
    uint8_t *copy;

    if (size == 0)
        return 0;
    codec = (enum kp_codec)(data[0] >> 1 & 7);
    if (codec > KP_CODEC_ZSTD)
        codec = KP_CODEC_NONE;
    if (kp_decompress(codec, span_of(data + 1, size - 1), UNPACKED_MAX, &plain) == 0) {
        ASSERT(plain->len <= UNPACKED_MAX);
        blob_unref(plain);
    }
    /* an exact copy, so that the sanitizer sees a read past the end */
    if ((copy = mem_alloc(size)) == NULL)
        return 0;
    memcpy(copy, data + 1, --size);
    if ((data[0] & 1) != 0 && size >= KP_BATCH_HEAD) {
        copy[16] = 2;
        be_store32(copy + 8, (uint32_t)(size - 12));
        be_store32(copy + 17, kp_crc32c(0, span_of(copy + 21, size - 21)));
    }
    try_batch(span_of(copy, size), codec);
    mem_free(copy);
    return 0;
}
