/* Strict number parsing and guarded arithmetic. No locale, no leading or trailing rubbish, no sign
 * where none belongs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

MUST_USE int num_parse_i64(struct span s, int64_t *out); /* E_SYNTAX, E_RANGE */
MUST_USE int num_parse_u64(struct span s, uint64_t *out);
/* 1 to 16 lower-case hex digits, nothing else; E_SYNTAX otherwise. */
MUST_USE int num_parse_hex(struct span s, uint64_t *out);
/* "64KiB", "10MB", "1GiB", plain bytes. */
MUST_USE int num_parse_bytes(struct span s, uint64_t *out);
/* "500ms", "10s", "5m", "1h", "7d"; plain number = ms. */
MUST_USE int num_parse_ms(struct span s, int64_t *out);
void num_hex16(uint64_t v, char out[17]); /* 16 lower-case digits and a NUL */

static inline bool num_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool num_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
