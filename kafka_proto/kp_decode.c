/*
 * The one decoder: walks the descriptor table over hostile bytes. Every read is bounds-checked by
 * the reader; an array's count is held against the bytes that are left before anything is
 * allocated; all memory comes from the arena and its budget. Strings, bytes and records are
 * borrowed from the input. Recursion is as deep as the tables nest, never as the input says.
 */
#include <string.h>

#include "base/assert.h"
#include "kafka_proto/kp_int.h"

#define STRING_MAX 0x7fff /* Kafka's own bound, also for compact strings */

struct ctx {
    struct arena *a;
    int16_t version;
    bool flexible;
};

static int decode_struct(const struct ctx *c, const struct kp_desc *d, struct reader *r, void *out);

/* NOLINTBEGIN(misc-no-recursion): recursion is as deep as the tables nest, five levels */

/* The fewest bytes that one element takes, at least 1 (the generator refuses empty elements). */
static size_t wire_min(const struct ctx *c, const struct kp_field *f)
{
    switch ((enum kp_type)f->type) {
    case KP_T_BOOL:
    case KP_T_INT8:
        return 1;
    case KP_T_INT16:
        return 2;
    case KP_T_INT32:
        return 4;
    case KP_T_INT64:
        return 8;
    case KP_T_UUID:
        return sizeof(struct kp_uuid);
    case KP_T_STRING:
        return c->flexible ? 1 : 2;
    case KP_T_BYTES:
    case KP_T_RECORDS:
        return c->flexible ? 1 : 4;
    case KP_T_STRUCT:
        break;
    }

    size_t n = c->flexible ? 1 : 0;
    for (size_t i = 0; i < f->sub->fields_n; i++) {
        const struct kp_field *g = &f->sub->fields[i];
        if (!kp_field_in(g, c->version) || g->tag >= 0)
            continue;
        if (g->array)
            n += c->flexible ? 1 : 4;
        else if (kp_field_by_pointer(g))
            n += 1;
        else
            n += wire_min(c, g);
    }
    return n;
}

/* A length or count, -1 for null where the field allows that in this version. `wide`: four bytes
 * instead of two before KIP-482. */
static int decode_length(const struct ctx *c, const struct kp_field *f, bool wide, struct reader *r,
                         int32_t *out)
{
    int64_t n;
    int err;

    if (c->flexible) {
        uint32_t v;
        if ((err = rd_uvarint32(r, &v)) < 0)
            return err;
        n = (int64_t)v - 1;
    } else if (wide) {
        int32_t v;
        if ((err = rd_i32(r, &v)) < 0)
            return err;
        n = v;
    } else {
        int16_t v;
        if ((err = rd_i16(r, &v)) < 0)
            return err;
        n = v;
    }
    if (n < -1 || n > INT32_MAX || (n == -1 && c->version < f->null_min))
        return E_SYNTAX;
    *out = (int32_t)n;
    return 0;
}

static int decode_span(const struct ctx *c, const struct kp_field *f, struct reader *r,
                       struct span *out)
{
    int32_t n;
    int err = decode_length(c, f, f->type != KP_T_STRING, r, &n);

    *out = (struct span){NULL, 0};
    if (err < 0 || n < 0)
        return err;
    if (f->type == KP_T_STRING && n > STRING_MAX)
        return E_SYNTAX;
    if ((err = rd_take(r, (size_t)n, &out->p)) < 0)
        return err;
    out->n = (size_t)n;
    return 0;
}

/* One element, or the field itself when it is no array. */
static int decode_one(const struct ctx *c, const struct kp_field *f, struct reader *r, void *at)
{
    int err;

    switch ((enum kp_type)f->type) {
    case KP_T_BOOL: {
        uint8_t v;
        if ((err = rd_u8(r, &v)) < 0)
            return err;
        bool b = v != 0;
        memcpy(at, &b, sizeof b);
        return 0;
    }
    case KP_T_INT8: {
        int8_t v;
        if ((err = rd_i8(r, &v)) < 0)
            return err;
        memcpy(at, &v, sizeof v);
        return 0;
    }
    case KP_T_INT16: {
        int16_t v;
        if ((err = rd_i16(r, &v)) < 0)
            return err;
        memcpy(at, &v, sizeof v);
        return 0;
    }
    case KP_T_INT32: {
        int32_t v;
        if ((err = rd_i32(r, &v)) < 0)
            return err;
        memcpy(at, &v, sizeof v);
        return 0;
    }
    case KP_T_INT64: {
        int64_t v;
        if ((err = rd_i64(r, &v)) < 0)
            return err;
        memcpy(at, &v, sizeof v);
        return 0;
    }
    case KP_T_UUID: {
        const uint8_t *p;
        if ((err = rd_take(r, sizeof(struct kp_uuid), &p)) < 0)
            return err;
        memcpy(at, p, sizeof(struct kp_uuid));
        return 0;
    }
    case KP_T_STRING:
    case KP_T_BYTES: {
        struct span s;
        if ((err = decode_span(c, f, r, &s)) < 0)
            return err;
        memcpy(at, &s, sizeof s);
        return 0;
    }
    case KP_T_RECORDS: {
        struct kp_records rec = {.pieces = NULL};
        if ((err = decode_span(c, f, r, &rec.in)) < 0)
            return err;
        memcpy(at, &rec, sizeof rec);
        return 0;
    }
    case KP_T_STRUCT:
        break;
    }
    return decode_struct(c, f->sub, r, at);
}

static int decode_array(const struct ctx *c, const struct kp_field *f, struct reader *r, void *out)
{
    char *elements = NULL;
    int32_t n;
    int err = decode_length(c, f, true, r, &n);

    if (err < 0)
        return err;
    if (n > 0) {
        /* before allocating: the input must be able to hold that many */
        size_t min = wire_min(c, f);
        ASSERT(min > 0);
        if ((size_t)n > rd_left(r) / min)
            return E_SHORT;
        elements = f->type == KP_T_STRUCT ? kp_array(f->sub, c->a, (size_t)n)
                                          : arena_array(c->a, (size_t)n, f->size);
        if (elements == NULL)
            return kp_arena_failure(c->a, (size_t)n, f->size);
    }
    for (int32_t i = 0; i < n; i++)
        if ((err = decode_one(c, f, r, elements + (size_t)i * f->size)) < 0)
            return err;
    memcpy((char *)out + f->off, &elements, sizeof elements);
    memcpy((char *)out + f->n_off, &n, sizeof n);
    return 0;
}

/* A struct behind a pointer: one byte says whether it follows, negative for null. */
static int decode_nullable_struct(const struct ctx *c, const struct kp_field *f, struct reader *r,
                                  void *at)
{
    void *p = NULL;
    int8_t present;
    int err = rd_i8(r, &present);

    if (err < 0)
        return err;
    if (present >= 0) {
        p = kp_array(f->sub, c->a, 1);
        if (p == NULL)
            return kp_arena_failure(c->a, 1, f->size);
        if ((err = decode_struct(c, f->sub, r, p)) < 0)
            return err;
    }
    memcpy(at, &p, sizeof p);
    return 0;
}

static int decode_field(const struct ctx *c, const struct kp_field *f, struct reader *r, void *out)
{
    if (f->array)
        return decode_array(c, f, r, out);
    if (kp_field_by_pointer(f))
        return decode_nullable_struct(c, f, r, (char *)out + f->off);
    return decode_one(c, f, r, (char *)out + f->off);
}

static const struct kp_field *find_tag(const struct ctx *c, const struct kp_desc *d, uint32_t tag)
{
    for (size_t i = 0; i < d->fields_n; i++) {
        const struct kp_field *f = &d->fields[i];
        if (f->tag >= 0 && (uint32_t)f->tag == tag && kp_field_in(f, c->version))
            return f;
    }
    return NULL;
}

/* KIP-482: tags rise strictly, so none comes twice. Unknown ones are skipped. A known one must use
 * up its bytes exactly. */
static int decode_tags(const struct ctx *c, const struct kp_desc *d, struct reader *r, void *out)
{
    uint32_t n;
    int64_t last = -1;
    int err = rd_uvarint32(r, &n);

    if (err < 0)
        return err;
    while (n-- > 0) {
        uint32_t tag, size;
        const uint8_t *p;

        if ((err = rd_uvarint32(r, &tag)) < 0 || (err = rd_uvarint32(r, &size)) < 0 ||
            (err = rd_take(r, size, &p)) < 0)
            return err;
        if ((int64_t)tag <= last)
            return E_SYNTAX;
        last = tag;

        const struct kp_field *f = find_tag(c, d, tag);
        if (f == NULL)
            continue;
        struct reader sub = {p, p + size};
        if ((err = decode_field(c, f, &sub, out)) < 0)
            return err == E_SHORT ? E_SYNTAX : err; /* the frame is whole, its sizes disagree */
        if (rd_left(&sub) != 0)
            return E_SYNTAX;
    }
    return 0;
}

/* *out holds defaults already. */
static int decode_struct(const struct ctx *c, const struct kp_desc *d, struct reader *r, void *out)
{
    for (size_t i = 0; i < d->fields_n; i++) {
        const struct kp_field *f = &d->fields[i];
        if (!kp_field_in(f, c->version) || f->tag >= 0)
            continue;
        int err = decode_field(c, f, r, out);
        if (err < 0)
            return err;
    }
    return c->flexible ? decode_tags(c, d, r, out) : 0;
}

/* NOLINTEND(misc-no-recursion) */

int kp_decode(const struct kp_desc *d, int16_t version, struct reader *r, struct arena *a,
              void *out)
{
    struct ctx c = {.a = a, .version = version, .flexible = version >= d->flexible};

    kp_defaults(d, out);
    if (version < d->min || version > d->max)
        return E_VERSION;
    int err = decode_struct(&c, d, r, out);
    if (err < 0)
        return err;
    return rd_left(r) == 0 ? 0 : E_TRAILING;
}
