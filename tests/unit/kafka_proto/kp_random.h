/*
 * Random messages straight from the tables, and deep comparison, for tests of every API and
 * version. Deterministic for a seed. Memory comes from the arena. What a version lacks stays at its
 * default.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "kafka_proto/kp_int.h"

struct kp_random {
    uint64_t state; /* not 0 */
    struct arena *a;
    int16_t version;
};

static inline uint32_t kp_random_below(struct kp_random *r, uint32_t n)
{
    r->state ^= r->state << 13; /* xorshift64 */
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (uint32_t)(r->state >> 32) % n;
}

static inline void *kp_random_alloc(struct kp_random *r, size_t n)
{
    void *p = arena_alloc(r->a, n);

    ASSERT(p != NULL);
    return p;
}

/* ASCII, mostly short; sometimes around the lengths where a varint grows by a byte. */
static inline struct span kp_random_text(struct kp_random *r)
{
    static const uint32_t edges[] = {0, 1, 126, 127, 128, 200};
    size_t n = kp_random_below(r, 12) == 0
                   ? edges[kp_random_below(r, sizeof edges / sizeof edges[0])]
                   : kp_random_below(r, 12);
    uint8_t *p = kp_random_alloc(r, n);

    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(' ' + kp_random_below(r, 95));
    return span_of(p, n);
}

static inline int64_t kp_random_int(struct kp_random *r, size_t size)
{
    int64_t max = size == 8 ? INT64_MAX : (INT64_C(1) << (8 * size - 1)) - 1;

    switch (kp_random_below(r, 6)) {
    case 0:
        return 0;
    case 1:
        return -1;
    case 2:
        return max;
    case 3:
        return -max - 1;
    default:
        return (int64_t)(r->state & (uint64_t)max);
    }
}

static inline void kp_random_struct(struct kp_random *r, const struct kp_desc *d, void *out);

static inline void kp_random_one(struct kp_random *r, const struct kp_field *f, void *at)
{
    bool null = r->version >= f->null_min && !f->array && kp_random_below(r, 4) == 0;

    switch ((enum kp_type)f->type) {
    case KP_T_BOOL: {
        bool v = kp_random_below(r, 2) == 1;
        memcpy(at, &v, sizeof v);
        return;
    }
    case KP_T_INT8:
    case KP_T_INT16:
    case KP_T_INT32:
    case KP_T_INT64: {
        int64_t v = kp_random_int(r, f->size);
        int32_t v32 = (int32_t)v;
        int16_t v16 = (int16_t)v;
        int8_t v8 = (int8_t)v;
        memcpy(at,
               f->size == 8   ? (void *)&v
               : f->size == 4 ? (void *)&v32
               : f->size == 2 ? (void *)&v16
                              : (void *)&v8,
               f->size);
        return;
    }
    case KP_T_UUID:
        for (size_t i = 0; i < f->size; i++)
            ((uint8_t *)at)[i] = (uint8_t)kp_random_below(r, 256);
        return;
    case KP_T_STRING:
    case KP_T_BYTES: {
        struct span s = null ? (struct span){NULL, 0} : kp_random_text(r);
        memcpy(at, &s, sizeof s);
        return;
    }
    case KP_T_RECORDS: {
        struct kp_records rec = {.in = kp_random_text(r)}; /* null is never encoded */
        memcpy(at, &rec, sizeof rec);
        return;
    }
    case KP_T_STRUCT:
        break;
    }
    if (!kp_field_by_pointer(f) || f->array) {
        kp_random_struct(r, f->sub, at);
    } else {
        void *p = null ? NULL : kp_random_alloc(r, f->size);
        if (p != NULL)
            kp_random_struct(r, f->sub, p);
        memcpy(at, &p, sizeof p);
    }
}

static inline void kp_random_array(struct kp_random *r, const struct kp_field *f, void *out)
{
    bool null = r->version >= f->null_min && kp_random_below(r, 4) == 0;
    int32_t n = null ? -1 : (int32_t)kp_random_below(r, 4);
    char *elements = n > 0 ? kp_random_alloc(r, (size_t)n * f->size) : NULL;

    for (int32_t i = 0; i < n; i++)
        kp_random_one(r, f, elements + (size_t)i * f->size);
    memcpy((char *)out + f->off, &elements, sizeof elements);
    memcpy((char *)out + f->n_off, &n, sizeof n);
}

static inline void kp_random_struct(struct kp_random *r, const struct kp_desc *d, void *out)
{
    kp_defaults(d, out);
    for (size_t i = 0; i < d->fields_n; i++) {
        const struct kp_field *f = &d->fields[i];
        if (!kp_field_in(f, r->version) || (f->tag >= 0 && kp_random_below(r, 3) == 0))
            continue;
        if (f->array)
            kp_random_array(r, f, out);
        else
            kp_random_one(r, f, (char *)out + f->off);
    }
}

/* A new random message of that version. */
static inline void *kp_random_message(struct kp_random *r, const struct kp_desc *d, int16_t version)
{
    void *msg = kp_random_alloc(r, d->size);

    r->version = version;
    kp_random_struct(r, d, msg);
    return msg;
}

static inline bool kp_same_span(struct span a, struct span b)
{
    return (a.p == NULL) == (b.p == NULL) && span_eq(a, b);
}

static inline bool kp_same_struct(const struct kp_desc *d, const void *a, const void *b);

static inline bool kp_same_one(const struct kp_field *f, const void *a, const void *b)
{
    if (f->type == KP_T_STRING || f->type == KP_T_BYTES) {
        struct span x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return kp_same_span(x, y);
    }
    if (f->type == KP_T_RECORDS) {
        struct kp_records x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return span_eq(x.in, y.in);
    }
    if (f->type != KP_T_STRUCT)
        return memcmp(a, b, f->size) == 0;
    if (f->array || !kp_field_by_pointer(f))
        return kp_same_struct(f->sub, a, b);

    const void *p, *q;
    memcpy(&p, a, sizeof p);
    memcpy(&q, b, sizeof q);
    return p == NULL || q == NULL ? p == q : kp_same_struct(f->sub, p, q);
}

/* Deep equality; null and empty differ, but for records. */
static inline bool kp_same_struct(const struct kp_desc *d, const void *a, const void *b)
{
    for (size_t i = 0; i < d->fields_n; i++) {
        const struct kp_field *f = &d->fields[i];
        const char *p = (const char *)a + f->off, *q = (const char *)b + f->off;
        if (!f->array) {
            if (!kp_same_one(f, p, q))
                return false;
            continue;
        }
        int32_t n, m;
        memcpy(&n, (const char *)a + f->n_off, sizeof n);
        memcpy(&m, (const char *)b + f->n_off, sizeof m);
        const char *x, *y;
        memcpy(&x, p, sizeof x);
        memcpy(&y, q, sizeof y);
        if (n != m)
            return false;
        for (int32_t k = 0; k < n; k++)
            if (!kp_same_one(f, x + (size_t)k * f->size, y + (size_t)k * f->size))
                return false;
    }
    return true;
}
