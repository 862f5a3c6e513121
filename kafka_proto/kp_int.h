/*
 * The tables that kpgen.py emits and that kp_decode.c, kp_encode.c and kp_defaults.c interpret.
 * Private to kafka_proto. Static and immutable; the generated _Static_asserts tie each row's type
 * to the member that its offset names, so the interpreter may store through offsets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kafka_proto/kp.h"

enum kp_type {
    KP_T_BOOL,
    KP_T_INT8,
    KP_T_INT16,
    KP_T_INT32,
    KP_T_INT64,
    KP_T_UUID,
    KP_T_STRING,
    KP_T_BYTES,
    KP_T_RECORDS,
    KP_T_STRUCT,
};

struct kp_field {
    const char *name;
    uint8_t type; /* enum kp_type, of the element for an array */
    bool array;
    bool ignorable;            /* may be dropped silently where the version lacks the field */
    bool null_default;         /* strings, bytes, arrays, structs: the default is null, not empty */
    int16_t min, max;          /* versions that carry the field */
    int16_t null_min;          /* null is legal from here on; KP_NEVER */
    int16_t tag;               /* -1: in place */
    size_t off;                /* of the member */
    size_t n_off;              /* arrays: of the int32_t count */
    size_t size;               /* of one element in memory */
    int64_t dflt;              /* integers and bool */
    const struct kp_desc *sub; /* structs */
};

struct kp_desc {
    const char *name;              /* of the C struct */
    const struct kp_field *fields; /* in wire order; tags rise */
    size_t fields_n;
    size_t size;
    int16_t min, max;
    int16_t flexible; /* KP_NEVER */
};

#define KP_NEVER INT16_MAX

static inline bool kp_field_in(const struct kp_field *f, int16_t version)
{
    return version >= f->min && version <= f->max;
}

/* True for what is held by pointer: nullable structs. */
static inline bool kp_field_by_pointer(const struct kp_field *f)
{
    return f->type == KP_T_STRUCT && !f->array && f->null_min != KP_NEVER;
}

/* True when the member holds its default: what a version without the field can carry. */
bool kp_field_is_default(const struct kp_field *f, const void *msg);

/* Why arena_array(a, n, size) answered NULL: over the request's budget, or out of memory. */
static inline int kp_arena_failure(const struct arena *a, size_t n, size_t size)
{
    return n > (a->budget - a->used) / size ? E_LIMIT : E_NOMEM;
}

/* Response header v1 ends with a tag section, v0 does not. */
bool kp_response_header_has_tags(const struct kp_api *api, int16_t version);
