/*
 * Doubles: Clinger's exact case, then the multiplication by a 128-bit power of five of Eisel and
 * Lemire; the rare numbers that neither decides, and those with more than 19 digits that lie near
 * the middle of two doubles, go to the C library under the "C" locale. Integers never pass through
 * a double.
 */
#include "schema/number.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/digits.h"

#define EXP_CLAMP  INT64_C(1000000000)
#define MANT_BITS  52
#define SLOW_MAX   780 /* digits that can decide a rounding, and some */
#define MANT_EXACT (UINT64_C(1) << 53)

__extension__ typedef unsigned __int128 u128;

static const uint64_t POW10[20] = {
    UINT64_C(1),
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

static inline bool is_digit(uint8_t c)
{
    return (uint8_t)(c - '0') < 10;
}

/* p behind the e; NULL without a digit. */
static const uint8_t *take_exponent(const uint8_t *p, const uint8_t *end, int64_t *exp)
{
    bool negative = p < end && *p == '-';
    const uint8_t *first;
    int64_t v = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (first = p; p < end && is_digit(*p); p++) {
        if (v < EXP_CLAMP)
            v = v * 10 + (*p - '0');
    }
    *exp += negative ? -v : v;
    return p == first ? NULL : p;
}

const uint8_t *sc_num_scan(const uint8_t *p, const uint8_t *end, struct sc_num *out)
{
    const uint8_t *start = p, *first, *dot;
    uint64_t m = 0;
    int64_t exp = 0;

    out->negative = p < end && *p == '-';
    p += out->negative;
    first = p;
    if (p < end && *p == '0') {
        p++; /* a digit behind it belongs to no number: the caller refuses it */
    } else {
        p = dg_take(p, end, &m);
    }
    if (p == first)
        return NULL;
    out->digits = (size_t)(p - first);
    out->plain = true;
    if (p < end && *p == '.') {
        dot = ++p;
        p = dg_take(p, end, &m);
        if (p == dot)
            return NULL;
        exp = -(int64_t)(p - dot);
        out->digits += (size_t)(p - dot);
        out->plain = false;
    }
    if (p < end && (*p | 0x20) == 'e') {
        out->plain = false;
        if ((p = take_exponent(p + 1, end, &exp)) == NULL)
            return NULL;
    }
    out->text = span_of(start, (size_t)(p - start));
    out->mant = m;
    out->exp = exp;
    return p;
}

/* --- digits without zeros on both sides --- */

struct significant {
    uint64_t head;   /* the first 19 digits */
    size_t n;        /* digits from the first to the last that is not 0 */
    int64_t exp;     /* of the last digit */
    int64_t exp_all; /* as exp, when all behind the first 19 are dropped */
};

static struct significant significant(const struct sc_num *num)
{
    const uint8_t *p = num->text.p, *end = p + num->text.n;
    struct significant s = {0};
    int64_t frac = 0, exp = 0, zeros = 0;
    bool dotted = false;
    size_t n = 0;

    for (; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            dotted = true;
        } else if (is_digit(*p)) {
            frac += dotted;
            if (*p == '0' && s.n == 0)
                continue;
            n++;
            if (n <= 19)
                s.head = s.head * 10 + (uint64_t)(*p - '0');
            zeros = *p == '0' ? zeros + 1 : 0;
            s.n = n;
        }
    }
    if (p < end)
        (void)take_exponent(p + 1, end, &exp);
    s.n = n - (size_t)zeros;
    s.exp = exp - frac + zeros;
    s.exp_all = exp - frac + (n > 19 ? (int64_t)n - 19 : 0);
    if (n <= 19)
        s.head /= POW10[zeros];
    else if (s.n < 19)
        s.head /= POW10[19 - s.n];
    return s;
}

int sc_num_i64(const struct sc_num *n, int64_t *out)
{
    struct significant s;
    uint64_t m = n->mant, max = (uint64_t)INT64_MAX + n->negative;

    *out = 0;
    if (!n->plain || n->digits > 19) {
        s = significant(n);
        if (s.n == 0)
            return 0;
        if (s.exp < 0)
            return E_INVALID;
        if (s.n > 19 || s.exp > 19 - (int64_t)s.n)
            return E_RANGE;
        m = s.head * POW10[s.exp];
    }
    if (m > max)
        return E_RANGE;
    *out = n->negative ? (int64_t)(0 - m) : (int64_t)m;
    return 0;
}

/* The first `left` digits from the first that is not 0; how many bytes. */
static size_t put_digits(const struct sc_num *n, size_t left, uint8_t *to)
{
    bool begun = false;
    size_t at = 0;

    for (const uint8_t *p = n->text.p; left > 0; p++) {
        begun = begun || (*p >= '1' && *p <= '9');
        if (begun && is_digit(*p)) {
            to[at++] = *p;
            left--;
        }
    }
    return at;
}

static size_t put_zeros(int64_t n, uint8_t *to)
{
    if (n <= 0)
        return 0;
    memset(to, '0', (size_t)n);
    return (size_t)n;
}

int sc_num_text(const struct sc_num *n, uint8_t *to, size_t *len)
{
    struct significant s = significant(n);
    size_t at = 0;

    *len = 0;
    if (s.n > 0 && s.exp < 0)
        return E_INVALID;
    if (s.exp > SC_NUM_MAX_ZEROS && !n->plain)
        return E_RANGE;
    if (s.n == 0)
        to[at++] = '0';
    else if (n->negative)
        to[at++] = '-';
    at += put_digits(n, s.n, to + at);
    if (s.n > 0)
        at += put_zeros(s.exp, to + at);
    *len = at;
    return 0;
}

size_t sc_num_canon(const struct sc_num *n, uint8_t *to)
{
    const struct significant s = significant(n);
    const int64_t point = s.exp + (int64_t)s.n; /* digits before the dot */
    const bool decimal = s.exp < 0 && point > 0;
    size_t at = 0, whole = decimal ? (size_t)point : 1;

    if (s.n == 0) {
        to[0] = '0';
        return 1;
    }
    if (s.exp > EXP_CLAMP || s.exp < -EXP_CLAMP) { /* what it is beyond that, is not known */
        memcpy(to, n->text.p, n->text.n);
        return n->text.n;
    }
    if (n->negative)
        to[at++] = '-';
    if (s.exp >= 0 && s.exp <= SC_NUM_MAX_ZEROS) {
        at += put_digits(n, s.n, to + at);
        return at + put_zeros(s.exp, to + at);
    }
    if (point <= 0 && point >= -5) {
        to[at++] = '0';
        to[at++] = '.';
        at += put_zeros(-point, to + at);
        return at + put_digits(n, s.n, to + at);
    }
    (void)put_digits(n, s.n, to + at);
    if (s.n > whole) {
        memmove(to + at + whole + 1, to + at + whole, s.n - whole);
        to[at + whole] = '.';
        at++;
    }
    at += s.n;
    if (!decimal) {
        char exponent[24];
        int len = snprintf(exponent, sizeof exponent, "e%+lld", (long long)point - 1);

        memcpy(to + at, exponent, (size_t)len);
        at += (size_t)len;
    }
    return at;
}

/* --- doubles --- */

static double from_bits(uint64_t bits, bool negative)
{
    double d;

    bits |= (uint64_t)negative << 63;
    memcpy(&d, &bits, sizeof d);
    return d;
}

#define INFINITY_BITS (UINT64_C(0x7ff) << MANT_BITS)

/* w * 10^q to the nearest double; false: undecided. w > 0. */
static bool eisel_lemire(uint64_t w, int64_t q, uint64_t *bits)
{
    unsigned lz, top, shift;
    u128 product;
    uint64_t upper, lower, mant;
    int64_t power;

    if (q < SC_POW5_MIN || q > SC_POW5_MAX) {
        *bits = q < 0 ? 0 : INFINITY_BITS;
        return true;
    }
    lz = (unsigned)__builtin_clzll(w);
    w <<= lz;
    product = (u128)w * SC_POW5[q - SC_POW5_MIN][0];
    upper = (uint64_t)(product >> 64);
    lower = (uint64_t)product;
    if ((upper & 0x1ff) == 0x1ff) {
        uint64_t more = (uint64_t)(((u128)w * SC_POW5[q - SC_POW5_MIN][1]) >> 64);

        lower += more;
        upper += more > lower;
    }
    if (lower == UINT64_MAX && (q < -27 || q > 55))
        return false;
    top = (unsigned)(upper >> 63);
    shift = top + 64 - MANT_BITS - 3;
    mant = upper >> shift;
    power = ((INT64_C(217706) * q) >> 16) + 63 + top - lz + 1023;
    if (power <= 0) {
        if (1 - power >= 64) {
            *bits = 0;
            return true;
        }
        mant >>= 1 - power;
        mant += mant & 1;
        *bits = mant >> 1; /* a carry into bit 52 is the smallest normal number */
        return true;
    }
    if (lower <= 1 && q >= -4 && q <= 23 && (mant & 3) == 1 && mant << shift == upper)
        mant &= ~UINT64_C(1); /* exactly between two: to even */
    mant += mant & 1;
    mant >>= 1;
    if (mant >= UINT64_C(2) << MANT_BITS) {
        mant = UINT64_C(1) << MANT_BITS;
        power++;
    }
    if (power >= 0x7ff) {
        *bits = INFINITY_BITS;
        return true;
    }
    *bits = (mant & ~(UINT64_C(1) << MANT_BITS)) | (uint64_t)power << MANT_BITS;
    return true;
}

/* By the C library, on a text of at most SLOW_MAX digits: what was cut off only matters by being
 * there, so a 1 stands for it. */
static double slow_double(const struct sc_num *n, const struct significant *s)
{
    char buf[SLOW_MAX + 32];
    size_t at = 0, room = s->n < SLOW_MAX ? s->n : SLOW_MAX;
    int64_t exp = s->exp + (int64_t)(s->n - room);

    if (n->negative)
        buf[at++] = '-';
    at += put_digits(n, room, (uint8_t *)buf + at);
    if (room < s->n) {
        buf[at++] = '1';
        exp--;
    }
    (void)snprintf(buf + at, sizeof buf - at, "e%lld", (long long)exp);
    /* "C" is a static object of the C library: nothing to free */
    return strtod_l(buf, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

double sc_num_double(const struct sc_num *n)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct significant s;
    uint64_t bits, above;
    double d;

    if (n->digits <= 19) {
        if (n->mant == 0)
            return n->negative ? -0.0 : 0.0;
        if (n->mant <= MANT_EXACT && n->exp >= -22 && n->exp <= 22) {
            d = (double)n->mant;
            d = n->exp < 0 ? d / exact[-n->exp] : d * exact[n->exp];
            return n->negative ? -d : d;
        }
        if (eisel_lemire(n->mant, n->exp, &bits))
            return from_bits(bits, n->negative);
    }
    s = significant(n);
    if (s.n == 0)
        return n->negative ? -0.0 : 0.0;
    if (s.n <= 19 && eisel_lemire(s.head, s.exp, &bits))
        return from_bits(bits, n->negative);
    if (s.n > 19 && eisel_lemire(s.head, s.exp_all, &bits) &&
        eisel_lemire(s.head + 1, s.exp_all, &above) && bits == above)
        return from_bits(bits, n->negative);
    return slow_double(n, &s);
}

static bool word_is(struct span s, const char *word)
{
    size_t i = 0;

    for (; i < s.n && word[i] != 0; i++) {
        if ((s.p[i] | 0x20) != (uint8_t)word[i])
            return false;
    }
    return i == s.n && word[i] == 0;
}

int sc_num_parse_text(struct span text, double *out)
{
    const uint8_t *p = text.p, *end = text.p + text.n, *dot;
    struct sc_num n = {.text = text};
    struct span rest;

    *out = 0;
    if (text.n == 0)
        return E_SYNTAX;
    n.negative = *p == '-';
    p += *p == '-' || *p == '+';
    rest = span_of(p, (size_t)(end - p));
    if (word_is(rest, "inf") || word_is(rest, "infinity") || word_is(rest, "nan")) {
        bool nan = (*p | 0x20) == 'n';

        *out = from_bits(INFINITY_BITS | (nan ? UINT64_C(1) << (MANT_BITS - 1) : 0),
                         n.negative && !nan);
        return 0;
    }
    dot = dg_take(p, end, &n.mant);
    n.digits = (size_t)(dot - p);
    p = dot;
    if (p < end && *p == '.') {
        p = dg_take(p + 1, end, &n.mant);
        n.exp = -(int64_t)(p - dot - 1);
        n.digits += (size_t)(p - dot - 1);
    }
    if (n.digits == 0)
        return E_SYNTAX;
    if (p < end && (*p | 0x20) == 'e' && (p = take_exponent(p + 1, end, &n.exp)) == NULL)
        return E_SYNTAX;
    if (p != end)
        return E_SYNTAX;
    *out = sc_num_double(&n);
    return 0;
}
