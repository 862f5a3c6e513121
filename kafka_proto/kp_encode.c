/*
 * The one encoder: the same walk twice, first to measure, then to write, since lengths of frames
 * and of tagged fields precede their bodies. All faults of the message show in the first pass.
 * Records that lie in blobs are not copied: a splice notes where they belong (zero-copy to the
 * socket).
 */
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "kafka_proto/kp_int.h"

#define STRING_MAX 0x7fff /* what Kafka's readers accept, also for compact strings */

struct enc {
    int16_t version;
    bool flexible;
    struct writer *w;          /* NULL: measuring */
    size_t n;                  /* bytes of the head so far, spliced ones not among them */
    size_t spliced;            /* bytes in splices so far */
    struct kp_splice *splices; /* NULL: counting */
    size_t splices_n;
    int err; /* first fault; sticky */
};

static void put_struct(struct enc *e, const struct kp_desc *d, const void *msg);
static void put_field(struct enc *e, const struct kp_field *f, const void *msg);

static void fail(struct enc *e, int err)
{
    if (e->err == 0)
        e->err = err;
}

static void grow(struct enc *e, size_t *sum, size_t n)
{
    if (!num_add_size(*sum, n, sum))
        fail(e, E_LIMIT);
}

static void put_bytes(struct enc *e, const void *p, size_t n)
{
    grow(e, &e->n, n);
    if (e->w != NULL)
        wr_bytes(e->w, p, n);
}

static void put_i8(struct enc *e, int8_t v)
{
    put_bytes(e, &v, 1);
}

static void put_i16(struct enc *e, int16_t v)
{
    grow(e, &e->n, 2);
    if (e->w != NULL)
        wr_i16(e->w, v);
}

static void put_i32(struct enc *e, int32_t v)
{
    grow(e, &e->n, 4);
    if (e->w != NULL)
        wr_i32(e->w, v);
}

static void put_i64(struct enc *e, int64_t v)
{
    grow(e, &e->n, 8);
    if (e->w != NULL)
        wr_i64(e->w, v);
}

static void put_uvarint(struct enc *e, uint32_t v)
{
    grow(e, &e->n, uvarint32_size(v));
    if (e->w != NULL)
        wr_uvarint32(e->w, v);
}

/* A length or count; n < 0 is null. `wide`: four bytes instead of two before KIP-482. */
static void put_length(struct enc *e, const struct kp_field *f, int64_t n, bool wide)
{
    if (n < 0 && e->version < f->null_min) {
        fail(e, E_INVALID);
        return;
    }
    if (n >= INT32_MAX || (!wide && n > STRING_MAX)) {
        fail(e, E_LIMIT);
        return;
    }
    if (e->flexible)
        put_uvarint(e, n < 0 ? 0 : (uint32_t)n + 1);
    else if (wide)
        put_i32(e, n < 0 ? -1 : (int32_t)n);
    else
        put_i16(e, (int16_t)(n < 0 ? -1 : n));
}

static void put_span(struct enc *e, const struct kp_field *f, struct span s)
{
    int64_t n = s.p == NULL ? -1 : s.n > INT32_MAX ? INT32_MAX : (int64_t)s.n;

    put_length(e, f, n, f->type != KP_T_STRING);
    if (e->err == 0 && n > 0)
        put_bytes(e, s.p, s.n);
}

static void put_piece(struct enc *e, const struct kp_piece *p)
{
    if (p->len == 0)
        return;
    if (p->blob == NULL) {
        put_bytes(e, p->bytes, p->len);
        return;
    }
    if (e->splices != NULL)
        e->splices[e->splices_n] =
            (struct kp_splice){.at = e->n, .blob = p->blob, .off = p->off, .len = p->len};
    e->splices_n++;
    grow(e, &e->spliced, p->len);
}

/* Never null: clients take null records for a fault. Decoded records are copied. */
static void put_records(struct enc *e, const struct kp_field *f, const struct kp_records *rec)
{
    size_t total = 0;

    if (rec->pieces_n == 0) {
        static const uint8_t none[1];
        put_span(e, f, rec->in.p == NULL ? span_of(none, 0) : rec->in);
        return;
    }
    for (size_t i = 0; i < rec->pieces_n; i++) {
        const struct kp_piece *p = &rec->pieces[i];
        if (p->blob != NULL && (p->off > p->blob->len || p->len > p->blob->len - p->off))
            fail(e, E_INVALID);
        grow(e, &total, p->len);
    }
    put_length(e, f, total > INT32_MAX ? INT32_MAX : (int64_t)total, true);
    for (size_t i = 0; i < rec->pieces_n && e->err == 0; i++)
        put_piece(e, &rec->pieces[i]);
}

/* NOLINTBEGIN(misc-no-recursion): recursion is as deep as the tables nest, five levels */

/* One element, or the field itself when it is no array. */
static void put_one(struct enc *e, const struct kp_field *f, const void *at)
{
    switch ((enum kp_type)f->type) {
    case KP_T_BOOL: {
        bool v;
        memcpy(&v, at, sizeof v);
        put_i8(e, v ? 1 : 0);
        return;
    }
    case KP_T_INT8:
        put_bytes(e, at, 1);
        return;
    case KP_T_INT16: {
        int16_t v;
        memcpy(&v, at, sizeof v);
        put_i16(e, v);
        return;
    }
    case KP_T_INT32: {
        int32_t v;
        memcpy(&v, at, sizeof v);
        put_i32(e, v);
        return;
    }
    case KP_T_INT64: {
        int64_t v;
        memcpy(&v, at, sizeof v);
        put_i64(e, v);
        return;
    }
    case KP_T_UUID:
        put_bytes(e, at, sizeof(struct kp_uuid));
        return;
    case KP_T_STRING:
    case KP_T_BYTES: {
        struct span s;
        memcpy(&s, at, sizeof s);
        put_span(e, f, s);
        return;
    }
    case KP_T_RECORDS: {
        struct kp_records rec;
        memcpy(&rec, at, sizeof rec);
        put_records(e, f, &rec);
        return;
    }
    case KP_T_STRUCT:
        break;
    }
    put_struct(e, f->sub, at);
}

static void put_array(struct enc *e, const struct kp_field *f, const void *msg)
{
    const char *elements;
    int32_t n;

    memcpy(&elements, (const char *)msg + f->off, sizeof elements);
    memcpy(&n, (const char *)msg + f->n_off, sizeof n);
    put_length(e, f, n, true);
    if (n > 0 && elements == NULL)
        fail(e, E_INVALID);
    for (int32_t i = 0; i < n && e->err == 0; i++)
        put_one(e, f, elements + (size_t)i * f->size);
}

static void put_field(struct enc *e, const struct kp_field *f, const void *msg)
{
    if (f->array) {
        put_array(e, f, msg);
    } else if (kp_field_by_pointer(f)) {
        const void *p;
        memcpy(&p, (const char *)msg + f->off, sizeof p);
        put_i8(e, p == NULL ? -1 : 1);
        if (p != NULL)
            put_struct(e, f->sub, p);
    } else {
        put_one(e, f, (const char *)msg + f->off);
    }
}

/* Tagged fields: only those that differ from their default, in rising order as the table has them.
 */
static void put_tags(struct enc *e, const struct kp_desc *d, const void *msg)
{
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < d->fields_n; i++) {
            const struct kp_field *f = &d->fields[i];
            if (f->tag < 0 || !kp_field_in(f, e->version) || kp_field_is_default(f, msg))
                continue;
            if (pass == 0) {
                n++;
                continue;
            }
            struct enc sub = {.version = e->version, .flexible = true};
            put_field(&sub, f, msg);
            grow(&sub, &sub.n, sub.spliced);
            if (sub.err != 0 || sub.n > INT32_MAX) {
                fail(e, sub.err != 0 ? sub.err : E_LIMIT);
                return;
            }
            put_uvarint(e, (uint32_t)f->tag);
            put_uvarint(e, (uint32_t)sub.n);
            put_field(e, f, msg);
        }
        if (pass == 0)
            put_uvarint(e, n);
    }
}

static void put_struct(struct enc *e, const struct kp_desc *d, const void *msg)
{
    for (size_t i = 0; i < d->fields_n && e->err == 0; i++) {
        const struct kp_field *f = &d->fields[i];
        if (!kp_field_in(f, e->version)) {
            if (!f->ignorable && !kp_field_is_default(f, msg))
                fail(e, E_INVALID);
        } else if (f->tag < 0) {
            put_field(e, f, msg);
        }
    }
    if (e->flexible && e->err == 0)
        put_tags(e, d, msg);
}

/* NOLINTEND(misc-no-recursion) */

/* What stands before the body of a response. */
struct head {
    bool present;
    bool tags; /* response header v1: an empty tag section */
    int32_t correlation_id;
};

static int encode(const struct kp_desc *d, int16_t version, const void *msg,
                  const struct head *head, struct arena *a, struct kp_encoded *out)
{
    struct enc size = {.version = version, .flexible = version >= d->flexible};
    size_t head_bytes = head->present ? 4 + 4 + (head->tags ? 1 : 0) : 0;
    struct writer w;
    int err;

    *out = (struct kp_encoded){.head = NULL};
    if (version < d->min || version > d->max)
        return E_VERSION;
    put_struct(&size, d, msg);
    grow(&size, &size.n, head_bytes);
    if (size.err != 0)
        return size.err;
    if (size.n > INT32_MAX || size.spliced > INT32_MAX - size.n)
        return E_LIMIT; /* a frame's length is an int32 */

    struct kp_splice *splices = arena_array(a, size.splices_n, sizeof *splices);
    if (splices == NULL)
        return kp_arena_failure(a, size.splices_n, sizeof *splices);
    wr_init(&w, size.n);
    wr_reserve(&w, size.n);
    struct enc e = {.version = version, .flexible = size.flexible, .w = &w, .splices = splices};
    if (head->present) {
        put_i32(&e, (int32_t)(size.n + size.spliced - 4));
        put_i32(&e, head->correlation_id);
        if (head->tags)
            put_uvarint(&e, 0);
    }
    put_struct(&e, d, msg);
    if ((err = wr_err(&w)) < 0)
        goto out;
    ASSERT(e.err == 0 && e.n == size.n && e.splices_n == size.splices_n);

    struct blob *b = wr_take(&w);
    if (b == NULL) {
        err = E_NOMEM;
        goto out;
    }
    out->head = b;
    out->splices = splices;
    out->splices_n = e.splices_n;
    out->total = e.n + e.spliced;
out:
    wr_fini(&w);
    return err;
}

int kp_encode_response(const struct kp_api *api, int16_t version, int32_t correlation_id,
                       const void *resp, struct arena *a, struct kp_encoded *out)
{
    struct head head = {.present = true,
                        .tags = kp_response_header_has_tags(api, version),
                        .correlation_id = correlation_id};

    return encode(api->response, version, resp, &head, a, out);
}

int kp_encode(const struct kp_desc *d, int16_t version, const void *msg, struct arena *a,
              struct writer *out)
{
    static const struct head none;
    struct kp_encoded enc;
    size_t at = 0;
    int err = encode(d, version, msg, &none, a, &enc);

    if (err < 0)
        return err;
    ASSERT(enc.head != NULL);
    wr_reserve(out, enc.total);
    for (size_t i = 0; i < enc.splices_n; i++) {
        const struct kp_splice *s = &enc.splices[i];
        wr_bytes(out, enc.head->data + at, s->at - at);
        wr_bytes(out, s->blob->data + s->off, s->len);
        at = s->at;
    }
    wr_bytes(out, enc.head->data + at, enc.head->len - at);
    blob_unref(enc.head);
    return wr_err(out);
}
