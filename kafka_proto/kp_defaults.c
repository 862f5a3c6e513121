/*
 * What a field holds when nobody set it: written before decoding and before a response is filled,
 * and compared when a version without the field is encoded. Also the look-up of an API. Pure.
 */
#include <string.h>

#include "kafka_proto/kp_int.h"

/* Empty is not null: a non-NULL pointer to no bytes. */
static const uint8_t kp_empty[1];

static void store_int(const struct kp_field *f, void *at)
{
    switch ((enum kp_type)f->type) {
    case KP_T_BOOL: {
        bool v = f->dflt != 0;
        memcpy(at, &v, sizeof v);
        break;
    }
    case KP_T_INT8: {
        int8_t v = (int8_t)f->dflt;
        memcpy(at, &v, sizeof v);
        break;
    }
    case KP_T_INT16: {
        int16_t v = (int16_t)f->dflt;
        memcpy(at, &v, sizeof v);
        break;
    }
    case KP_T_INT32: {
        int32_t v = (int32_t)f->dflt;
        memcpy(at, &v, sizeof v);
        break;
    }
    case KP_T_INT64:
        memcpy(at, &f->dflt, sizeof f->dflt);
        break;
    case KP_T_UUID:
    case KP_T_STRING:
    case KP_T_BYTES:
    case KP_T_RECORDS:
    case KP_T_STRUCT:
        break;
    }
}

/* NOLINTBEGIN(misc-no-recursion): recursion is as deep as the tables nest, five levels */

void kp_defaults(const struct kp_desc *d, void *out)
{
    memset(out, 0, d->size);
    for (size_t i = 0; i < d->fields_n; i++) {
        const struct kp_field *f = &d->fields[i];
        char *at = (char *)out + f->off;

        if (f->array) {
            int32_t n = f->null_default ? -1 : 0;
            memcpy((char *)out + f->n_off, &n, sizeof n);
        } else if (f->type == KP_T_STRING || f->type == KP_T_BYTES) {
            struct span s = {f->null_default ? NULL : kp_empty, 0};
            memcpy(at, &s, sizeof s);
        } else if (f->type == KP_T_STRUCT && !kp_field_by_pointer(f)) {
            kp_defaults(f->sub, at);
        } else if (f->type != KP_T_STRUCT) {
            store_int(f, at);
        }
    }
}

void *kp_array(const struct kp_desc *d, struct arena *a, size_t n)
{
    char *elements = arena_array(a, n, d->size);

    if (elements == NULL || n == 0)
        return elements;
    kp_defaults(d, elements);
    for (size_t i = 1; i < n; i++)
        memcpy(elements + i * d->size, elements, d->size);
    return elements;
}

static bool int_is(const struct kp_field *f, const void *at)
{
    uint8_t want[sizeof(int64_t)] = {0};

    store_int(f, want);
    return memcmp(at, want, f->size) == 0;
}

static bool struct_is_default(const struct kp_desc *d, const void *msg)
{
    for (size_t i = 0; i < d->fields_n; i++)
        if (!kp_field_is_default(&d->fields[i], msg))
            return false;
    return true;
}

/* A NULL span counts as empty where null has no meaning: such a field was never set. */
static bool span_is_default(const struct kp_field *f, const void *at)
{
    struct span s;

    memcpy(&s, at, sizeof s);
    if (f->null_default)
        return s.p == NULL;
    return s.n == 0 && (s.p != NULL || f->null_min == KP_NEVER);
}

bool kp_field_is_default(const struct kp_field *f, const void *msg)
{
    const char *at = (const char *)msg + f->off;

    if (f->array) {
        int32_t n;
        memcpy(&n, (const char *)msg + f->n_off, sizeof n);
        return n == (f->null_default ? -1 : 0);
    }
    switch ((enum kp_type)f->type) {
    case KP_T_BOOL:
    case KP_T_INT8:
    case KP_T_INT16:
    case KP_T_INT32:
    case KP_T_INT64:
        return int_is(f, at);
    case KP_T_UUID: {
        static const struct kp_uuid zero;
        return memcmp(at, &zero, sizeof zero) == 0;
    }
    case KP_T_STRING:
    case KP_T_BYTES:
        return span_is_default(f, at);
    case KP_T_RECORDS: {
        struct kp_records r;
        memcpy(&r, at, sizeof r);
        return r.in.n == 0 && r.pieces_n == 0;
    }
    case KP_T_STRUCT:
        break;
    }
    if (kp_field_by_pointer(f)) {
        const void *p;
        memcpy(&p, at, sizeof p);
        return p == NULL;
    }
    return struct_is_default(f->sub, at);
}

/* NOLINTEND(misc-no-recursion) */

const struct kp_api *kp_api_find(int16_t key)
{
    size_t lo = 0, hi = kp_apis_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (kp_apis[mid].key == key)
            return &kp_apis[mid];
        if (kp_apis[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
