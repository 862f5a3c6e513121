/*
 * Numbers of JSON texts: scanned once, then read as an exact integer or as the nearest double. No
 * locale, no rounding on the way. Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define SC_POW5_MIN (-342)
#define SC_POW5_MAX 308
extern const uint64_t SC_POW5[SC_POW5_MAX - SC_POW5_MIN + 1][2];

#define SC_NUM_MAX_ZEROS 400 /* that sc_num_text writes behind the digits */

struct sc_num {
    struct span text; /* the number's own bytes */
    uint64_t mant;    /* value = mant * 10^exp when digits <= 19 */
    int64_t exp;
    size_t digits; /* before and behind the dot, leading zeros included */
    bool negative;
    bool plain; /* no dot, no exponent */
};

/* Scans the number at p by JSON's grammar. The byte behind it, or NULL. */
const uint8_t *sc_num_scan(const uint8_t *p, const uint8_t *end, struct sc_num *out);
/* The whole text as a number, more leniently, as text columns hold them: a plus sign, leading
 * zeros, no digit on one side of the dot, and the words inf, infinity and nan in any case with a
 * sign. */
MUST_USE int sc_num_parse_text(struct span text, double *out); /* E_SYNTAX */
/* E_INVALID: it has a fraction (1.0 and 1e3 have none); E_RANGE: beyond int64. */
MUST_USE int sc_num_i64(const struct sc_num *n, int64_t *out);
/* The nearest double, ties to even; infinity beyond the largest. */
double sc_num_double(const struct sc_num *n);
/* An integer in decimal, without exponent: 1e3 is 1000, -0 is 0. to has room for the text and
 * SC_NUM_MAX_ZEROS more. E_INVALID: a fraction; E_RANGE: the exponent asks for more zeros. */
MUST_USE int sc_num_text(const struct sc_num *n, uint8_t *to, size_t *len);
#define SC_NUM_CANON_MORE (SC_NUM_MAX_ZEROS + 16)
/* The one text of all numbers that are equal: 1, 1.0 and 1e0 are 1, -0 is 0. Integers in decimal as
 * in sc_num_text; fractions in decimal unless more than five zeros follow the dot; else one digit
 * before the dot and an exponent (1.5e-7, 1e+401). Exact. to has room for the text and
 * SC_NUM_CANON_MORE more. Bytes written. */
size_t sc_num_canon(const struct sc_num *n, uint8_t *to);
