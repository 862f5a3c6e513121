/*
 * Writes record batches (KIP-98). One growing blob per batch: 61 bytes of head, filled in last,
 * then the records. A record's length precedes it as a varint, so sizes are computed first and
 * nothing is ever moved. Refuses what would break a consumer: falling offsets, spans beyond 2^31 -
 * 1, batches without records. Pure: any thread, one writer per thread.
 */
#include "kafka_proto/batch.h"

#include "base/assert.h"
#include "base/writer.h"

#define FIRST_CAP     4096 /* bytes of the first allocation without a hint */
#define MAX_BYTES     ((size_t)INT32_MAX)
#define ATTR_CONTROL  0x20
#define VARINT32_MAX  5
#define OFF_LENGTH    8
#define OFF_EPOCH     12
#define OFF_MAGIC     16
#define OFF_CRC       17
#define OFF_ATTR      21
#define OFF_LAST      23
#define OFF_BASE_TIME 27
#define OFF_MAX_TIME  35
#define OFF_PRODUCER  43 /* id 8, epoch 2, base sequence 4: all -1 */
#define OFF_RECORDS   57

static inline uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline size_t varint_size(int64_t v)
{
    return (size_t)(63 - __builtin_clzll(zigzag(v) | 1)) / 7 + 1;
}

static inline uint8_t *put_varint(uint8_t *p, int64_t v)
{
    uint64_t u = zigzag(v);

    while (u >= 0x80) {
        *p++ = (uint8_t)(u | 0x80);
        u >>= 7;
    }
    *p++ = (uint8_t)u;
    return p;
}

/* Length -1 and no bytes for the null span: null is not empty. */
static inline uint8_t *put_bytes(uint8_t *p, struct span s)
{
    if (s.p == NULL)
        return put_varint(p, -1);
    p = put_varint(p, (int64_t)s.n);
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    return p + s.n;
}

/* Adds the wire size of s; false when the sum passes what a batch can hold. */
static inline bool add_bytes_size(size_t *sum, struct span s)
{
    size_t n = s.p == NULL ? 0 : s.n;

    if (n > MAX_BYTES - *sum)
        return false;
    *sum += n + varint_size(s.p == NULL ? -1 : (int64_t)n);
    return *sum <= MAX_BYTES;
}

void kp_batch_writer_init(struct kp_batch_writer *w)
{
    *w = (struct kp_batch_writer){0};
}

void kp_batch_writer_fini(struct kp_batch_writer *w)
{
    blob_unref(w->b);
    *w = (struct kp_batch_writer){0};
}

size_t kp_batch_writer_bytes(const struct kp_batch_writer *w)
{
    return w->records == 0 ? 0 : w->b->len;
}

bool kp_batch_writer_fits(const struct kp_batch_writer *w, int64_t offset, int64_t timestamp)
{
    int64_t low, high, span;

    if (offset < 0)
        return false;
    if (w->records == 0)
        return true;
    if (w->records == INT32_MAX || offset <= w->last_offset || offset - w->base_offset > INT32_MAX)
        return false;
    low = timestamp < w->min_timestamp ? timestamp : w->min_timestamp;
    high = timestamp > w->max_timestamp ? timestamp : w->max_timestamp;
    return !__builtin_sub_overflow(high, low, &span) && span <= INT32_MAX;
}

/* Replaces the blob by a larger one with at least `need` bytes in all. */
static int grow(struct kp_batch_writer *w, size_t need)
{
    size_t cap = w->b == NULL ? FIRST_CAP : w->b->cap;
    struct blob *b;

    while (cap < need)
        cap = cap > MAX_BYTES / 2 ? need : cap * 2;
    if ((b = blob_new(cap)) == NULL)
        return E_NOMEM;
    if (w->b == NULL) {
        memset(b->data, 0, KP_BATCH_HEAD);
        b->len = KP_BATCH_HEAD;
    } else {
        memcpy(b->data, w->b->data, w->b->len);
        b->len = w->b->len;
        blob_unref(w->b);
    }
    w->b = b;
    return 0;
}

void kp_batch_writer_reserve(struct kp_batch_writer *w, size_t bytes)
{
    if (bytes < FIRST_CAP)
        bytes = FIRST_CAP;
    if (bytes > MAX_BYTES || (w->b != NULL && w->b->cap >= bytes))
        return;
    if (w->b == NULL) {
        /* exactly as asked, not the next power of two: the hint is usually good */
        if ((w->b = blob_new(bytes)) != NULL) {
            memset(w->b->data, 0, KP_BATCH_HEAD);
            w->b->len = KP_BATCH_HEAD;
        }
        return;
    }
    (void)!grow(w, bytes);
}

/* The record's body without its own length; E_LIMIT. */
static int body_size(const struct kp_record *rec, int64_t time_delta, int64_t offset_delta,
                     size_t *out)
{
    size_t sum = 1 + varint_size(time_delta) + varint_size(offset_delta);

    if (rec->headers_n > INT32_MAX || !add_bytes_size(&sum, rec->key) ||
        !add_bytes_size(&sum, rec->value))
        return E_LIMIT;
    sum += varint_size((int64_t)rec->headers_n);
    for (size_t i = 0; i < rec->headers_n; i++) {
        /* a header's key is never null on the wire */
        struct span key = rec->headers[i].key;

        if (key.p == NULL)
            key = span_of("", 0);
        if (!add_bytes_size(&sum, key) || !add_bytes_size(&sum, rec->headers[i].value))
            return E_LIMIT;
    }
    *out = sum;
    return sum > MAX_BYTES ? E_LIMIT : 0;
}

int kp_batch_writer_add(struct kp_batch_writer *w, const struct kp_record *rec)
{
    bool first = w->records == 0;
    int64_t time_delta, offset_delta;
    size_t body, used, need;
    uint8_t *p;
    int err;

    ASSERT(kp_batch_writer_fits(w, rec->offset, rec->timestamp));
    time_delta = first ? 0 : rec->timestamp - w->base_timestamp;
    offset_delta = first ? 0 : rec->offset - w->base_offset;
    if ((err = body_size(rec, time_delta, offset_delta, &body)) < 0)
        return err;
    used = w->b == NULL ? KP_BATCH_HEAD : w->b->len;
    if (body + VARINT32_MAX > MAX_BYTES - used)
        return E_LIMIT;
    need = used + varint_size((int64_t)body) + body;
    if ((w->b == NULL || w->b->cap < need) && (err = grow(w, need)) < 0)
        return err;

    p = put_varint(w->b->data + used, (int64_t)body);
    *p++ = 0; /* attributes: none are defined */
    p = put_varint(p, time_delta);
    p = put_varint(p, offset_delta);
    p = put_bytes(p, rec->key);
    p = put_bytes(p, rec->value);
    p = put_varint(p, (int64_t)rec->headers_n);
    for (size_t i = 0; i < rec->headers_n; i++) {
        struct span key = rec->headers[i].key;

        p = put_bytes(p, key.p == NULL ? span_of("", 0) : key);
        p = put_bytes(p, rec->headers[i].value);
    }
    w->b->len = need;

    if (first) {
        w->base_offset = rec->offset;
        w->base_timestamp = w->min_timestamp = w->max_timestamp = rec->timestamp;
    }
    w->last_offset = rec->offset;
    if (rec->timestamp < w->min_timestamp)
        w->min_timestamp = rec->timestamp;
    if (rec->timestamp > w->max_timestamp)
        w->max_timestamp = rec->timestamp;
    w->records++;
    return 0;
}

static void write_head(const struct kp_batch_writer *w, struct blob *b, int attributes)
{
    uint8_t *h = b->data;

    be_store64(h, (uint64_t)w->base_offset);
    be_store32(h + OFF_LENGTH, (uint32_t)(b->len - OFF_EPOCH));
    be_store32(h + OFF_EPOCH, UINT32_MAX);
    h[OFF_MAGIC] = 2;
    be_store16(h + OFF_ATTR, (uint16_t)attributes);
    be_store32(h + OFF_LAST, (uint32_t)(w->last_offset - w->base_offset));
    be_store64(h + OFF_BASE_TIME, (uint64_t)w->base_timestamp);
    be_store64(h + OFF_MAX_TIME, (uint64_t)w->max_timestamp);
    memset(h + OFF_PRODUCER, 0xff, OFF_RECORDS - OFF_PRODUCER);
    be_store32(h + OFF_RECORDS, (uint32_t)w->records);
    be_store32(h + OFF_CRC, kp_crc32c(0, span_of(h + OFF_ATTR, b->len - OFF_ATTR)));
}

/* Batches live long in a cache that counts bytes: gives back what growing left over. Without memory
 * for that the batch stays as it is. */
static struct blob *trimmed(struct blob *b)
{
    struct blob *fit;

    if (b->cap - b->len <= b->len / 8 + 256 || (fit = blob_copy(blob_span(b))) == NULL)
        return b;
    blob_unref(b);
    return fit;
}

static int finish(struct kp_batch_writer *w, enum kp_codec codec, int attributes,
                  struct kp_batch *out)
{
    struct blob *packed = NULL;
    struct blob *b;
    int err;

    *out = (struct kp_batch){0};
    ASSERT(w->records > 0);
    if (codec != KP_CODEC_NONE) {
        struct span records = span_of(w->b->data + KP_BATCH_HEAD, w->b->len - KP_BATCH_HEAD);

        if ((err = kp_compress(codec, records, KP_BATCH_HEAD, &packed)) < 0)
            return err;
        if (packed->len >= w->b->len) {
            blob_unref(packed);
            packed = NULL;
            codec = KP_CODEC_NONE;
        }
    }
    b = packed;
    if (b == NULL) {
        b = w->b;
        w->b = NULL;
    }
    write_head(w, b, attributes | (int)codec);
    *out = (struct kp_batch){
        .bytes = trimmed(b),
        .base_offset = w->base_offset,
        .last_offset = w->last_offset,
        .max_timestamp = w->max_timestamp,
        .records = w->records,
    };
    kp_batch_writer_fini(w);
    return 0;
}

int kp_batch_writer_finish(struct kp_batch_writer *w, enum kp_codec codec, struct kp_batch *out)
{
    return finish(w, codec, 0, out);
}

void kp_batch_fini(struct kp_batch *b)
{
    blob_unref(b->bytes);
    *b = (struct kp_batch){0};
}

int kp_batch_control(int64_t offset, int64_t timestamp, struct kp_batch *out)
{
    static const uint8_t key[4] = {0, 0, 0xff,
                                   0xff}; /* version 0, type -1: unknown to all clients */
    struct kp_batch_writer w;
    int err;

    *out = (struct kp_batch){0};
    kp_batch_writer_init(&w);
    kp_batch_writer_reserve(&w, 0);
    if ((err = kp_batch_writer_add(&w, &(struct kp_record){.offset = offset,
                                                           .timestamp = timestamp,
                                                           .key = span_of(key, sizeof key)})) < 0)
        goto out;
    err = finish(&w, KP_CODEC_NONE, ATTR_CONTROL, out);
out:
    kp_batch_writer_fini(&w);
    return err;
}

void kp_batch_patch(const struct kp_batch *b, int32_t leader_epoch, uint8_t out[KP_BATCH_PATCH])
{
    memcpy(out, b->bytes->data, KP_BATCH_PATCH);
    be_store32(out + OFF_EPOCH, (uint32_t)leader_epoch);
}
