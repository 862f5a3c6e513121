/*
 * Reads record batches v2: the head with all its checks, then record by record. Bytes are hostile:
 * every length is compared with what is left before use. Magic 0 and 1 are refused, compressed
 * sections are not unpacked here (kp_decompress). Pure, any thread.
 */
#include "base/reader.h"
#include "base/writer.h"
#include "kafka_proto/batch.h"

#define MIN_TO_JUDGE         17 /* base offset, length, leader epoch, magic */
#define LENGTH_OVERHEAD      12 /* base offset and length do not count themselves */
#define ATTR_CODEC           0x07
#define ATTR_LOG_APPEND_TIME 0x08
#define ATTR_TRANSACTIONAL   0x10
#define ATTR_CONTROL         0x20

int kp_batch_parse(struct span in, struct kp_batch_view *out)
{
    const uint8_t *h = in.p;
    struct kp_batch_view v = {0};
    int32_t length, last_delta;

    *out = (struct kp_batch_view){0};
    if (in.n < MIN_TO_JUDGE)
        return E_SHORT;
    if (h[16] != 2)
        return E_VERSION;
    length = (int32_t)be_load32(h + 8);
    if (length < KP_BATCH_HEAD - LENGTH_OVERHEAD)
        return E_SYNTAX;
    if (in.n - LENGTH_OVERHEAD < (size_t)length)
        return E_SHORT;
    v.size = LENGTH_OVERHEAD + (size_t)length;
    if (kp_crc32c(0, span_of(h + 21, v.size - 21)) != be_load32(h + 17))
        return E_CORRUPT;

    v.base_offset = (int64_t)be_load64(h);
    v.leader_epoch = (int32_t)be_load32(h + 12);
    v.attributes = (int16_t)be_load16(h + 21);
    last_delta = (int32_t)be_load32(h + 23);
    v.base_timestamp = (int64_t)be_load64(h + 27);
    v.max_timestamp = (int64_t)be_load64(h + 35);
    v.records = (int32_t)be_load32(h + 57);
    v.control = (v.attributes & ATTR_CONTROL) != 0;
    v.transactional = (v.attributes & ATTR_TRANSACTIONAL) != 0;
    v.payload = span_of(h + KP_BATCH_HEAD, v.size - KP_BATCH_HEAD);
    if ((v.attributes & ATTR_CODEC) > KP_CODEC_ZSTD || v.records < 0 || last_delta < 0 ||
        __builtin_add_overflow(v.base_offset, (int64_t)last_delta, &v.last_offset))
        return E_SYNTAX;
    v.codec = (enum kp_codec)(v.attributes & ATTR_CODEC);
    *out = v;
    return 0;
}

void kp_record_iter_init(struct kp_record_iter *it, const struct kp_batch_view *v,
                         struct span payload)
{
    *it = (struct kp_record_iter){.batch = v, .rest = payload, .left = v->records};
}

/* A varint length, then that many bytes; -1 is null where that is allowed. */
static int take_bytes(struct reader *r, bool nullable, struct span *out)
{
    const uint8_t *p;
    int32_t n;
    int err;

    if ((err = rd_varint32(r, &n)) < 0)
        return err;
    if (n < 0) {
        *out = (struct span){NULL, 0};
        return n == -1 && nullable ? 0 : E_SYNTAX;
    }
    if ((err = rd_take(r, (size_t)n, &p)) < 0)
        return err;
    *out = span_of(p, (size_t)n);
    return 0;
}

static int take_headers(struct reader *r, struct kp_record *rec, struct kp_header *headers,
                        size_t max)
{
    int32_t n;
    int err;

    if ((err = rd_varint32(r, &n)) < 0)
        return err;
    if (n < 0)
        return E_SYNTAX;
    if ((size_t)n > max)
        return E_LIMIT;
    for (int32_t i = 0; i < n; i++) {
        if ((err = take_bytes(r, false, &headers[i].key)) < 0 ||
            (err = take_bytes(r, true, &headers[i].value)) < 0)
            return err;
    }
    rec->headers = headers;
    rec->headers_n = (size_t)n;
    return 0;
}

static int read_body(const struct kp_batch_view *batch, struct reader *r, struct kp_record *rec,
                     struct kp_header *headers, size_t headers_max)
{
    int64_t time_delta;
    int32_t offset_delta;
    int8_t attributes;
    int err;

    if ((err = rd_i8(r, &attributes)) < 0 || (err = rd_varint64(r, &time_delta)) < 0 ||
        (err = rd_varint32(r, &offset_delta)) < 0 || (err = take_bytes(r, true, &rec->key)) < 0 ||
        (err = take_bytes(r, true, &rec->value)) < 0 ||
        (err = take_headers(r, rec, headers, headers_max)) < 0)
        return err;
    if (rd_left(r) > 0 ||
        __builtin_add_overflow(batch->base_offset, (int64_t)offset_delta, &rec->offset) ||
        __builtin_add_overflow(batch->base_timestamp, time_delta, &rec->timestamp))
        return E_SYNTAX;
    if ((batch->attributes & ATTR_LOG_APPEND_TIME) != 0)
        rec->timestamp = batch->max_timestamp;
    return 0;
}

int kp_record_next(struct kp_record_iter *it, struct kp_record *out, struct kp_header *headers,
                   size_t headers_max)
{
    struct reader r = reader_of(it->rest);
    struct kp_record rec = {0};
    struct span body;
    int err;

    *out = (struct kp_record){0};
    if (it->left == 0)
        return it->rest.n == 0 ? E_NOTFOUND : E_TRAILING;
    if ((err = take_bytes(&r, false, &body)) == 0) {
        struct reader b = reader_of(body);

        err = read_body(it->batch, &b, &rec, headers, headers_max);
    }
    if (err < 0)
        return err == E_LIMIT ? E_LIMIT : E_SYNTAX; /* the section is whole: short is malformed */
    it->rest = span_of(r.p, rd_left(&r));
    it->left--;
    *out = rec;
    return 0;
}
