/*
 * Owner: immutable once shared. Reference-counted bytes that travel between threads: fragments read
 * from a store, finished record batches, response heads. Born with one reference, written only
 * while that is the only one.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct blob {
    atomic_uint refs;
    size_t cap; /* bytes allocated behind data */
    size_t len; /* bytes that are valid */
    uint8_t data[];
};

/* len = 0, cap as asked; NULL when out of memory. */
MUST_USE struct blob *blob_new(size_t cap);
MUST_USE struct blob *blob_copy(struct span bytes);
/* Takes one more reference and returns its argument. */
struct blob *blob_ref(struct blob *b);
/* NULL is allowed. Any thread. */
void blob_unref(struct blob *b);

static inline struct span blob_span(const struct blob *b)
{
    return span_of(b->data, b->len);
}
