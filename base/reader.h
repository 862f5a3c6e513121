/*
 * Bounds-checked big-endian reads over a borrowed buffer. A read never runs past the end and never
 * moves the reader when it fails. Varints: unsigned LEB128 (KIP-482) and zigzag (record batch v2).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct reader {
    const uint8_t *p;
    const uint8_t *end;
};

static inline struct reader reader_of(struct span s)
{
    return (struct reader){s.p, s.p == NULL ? s.p : s.p + s.n};
}

static inline size_t rd_left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

/* Borrows n bytes; they live as long as the buffer below. */
MUST_USE static inline int rd_take(struct reader *r, size_t n, const uint8_t **out)
{
    if (rd_left(r) < n)
        return E_SHORT;
    *out = r->p;
    r->p += n;
    return 0;
}

MUST_USE int rd_u8(struct reader *r, uint8_t *out);
MUST_USE int rd_i8(struct reader *r, int8_t *out);
MUST_USE int rd_i16(struct reader *r, int16_t *out);
MUST_USE int rd_u16(struct reader *r, uint16_t *out);
MUST_USE int rd_i32(struct reader *r, int32_t *out);
MUST_USE int rd_u32(struct reader *r, uint32_t *out);
MUST_USE int rd_i64(struct reader *r, int64_t *out);
MUST_USE int rd_f64(struct reader *r, double *out);
/* At most 5 (10) bytes; E_SYNTAX for an over-long or overflowing one, E_SHORT at the end of input.
 */
MUST_USE int rd_uvarint32(struct reader *r, uint32_t *out);
MUST_USE int rd_varint32(struct reader *r, int32_t *out);
MUST_USE int rd_varint64(struct reader *r, int64_t *out);
