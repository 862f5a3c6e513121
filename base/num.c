/*
 * Strict parsing over spans. All paths end in parse_digits(), which guards every step against
 * overflow; units multiply with a guard too.
 */
#include "base/num.h"

/* Consumes the leading decimal digits of *s: E_SYNTAX without one, E_RANGE when they pass 64 bits.
 */
static int parse_digits(struct span *s, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v))
            return E_RANGE;
    }
    if (i == 0)
        return E_SYNTAX;
    *s = span_of(s->p + i, s->n - i);
    *out = v;
    return 0;
}

int num_parse_u64(struct span s, uint64_t *out)
{
    uint64_t v;

    /* Rubbish behind an overlong number is still rubbish: look at the form first. */
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return E_SYNTAX;
    }
    int err = parse_digits(&s, &v);
    if (err == 0)
        *out = v;
    return err;
}

int num_parse_i64(struct span s, int64_t *out)
{
    bool minus = s.n > 0 && s.p[0] == '-';
    uint64_t v;

    if (minus)
        s = span_of(s.p + 1, s.n - 1);
    int err = num_parse_u64(s, &v);
    if (err != 0)
        return err;
    uint64_t limit = (uint64_t)INT64_MAX + (minus ? 1 : 0);
    if (v > limit)
        return E_RANGE;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int num_parse_hex(struct span s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.n == 0 || s.n > 16)
        return E_SYNTAX;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        uint8_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint8_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint8_t)(c - 'a' + 10);
        else
            return E_SYNTAX;
        v = v << 4 | digit;
    }
    *out = v;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* A number and one of the units, the empty unit included. Case matters: "mb" would be guesswork. */
static int parse_with_unit(struct span s, const struct unit *units, size_t n, uint64_t *out)
{
    uint64_t v;
    int err = parse_digits(&s, &v);

    if (err != 0)
        return err;
    for (size_t i = 0; i < n; i++) {
        if (!span_eq_str(s, units[i].name))
            continue;
        if (__builtin_mul_overflow(v, units[i].factor, &v))
            return E_RANGE;
        *out = v;
        return 0;
    }
    return E_SYNTAX;
}

int num_parse_bytes(struct span s, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", UINT64_C(1000000000000)},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };

    return parse_with_unit(s, units, sizeof units / sizeof units[0], out);
}

int num_parse_ms(struct span s, int64_t *out)
{
    static const struct unit units[] = {
        {"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
    };
    uint64_t v;
    int err = parse_with_unit(s, units, sizeof units / sizeof units[0], &v);

    if (err != 0)
        return err;
    if (v > INT64_MAX)
        return E_RANGE;
    *out = (int64_t)v;
    return 0;
}

void num_hex16(uint64_t v, char out[17])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 15; i >= 0; i--) {
        out[i] = digits[v & 15];
        v >>= 4;
    }
    out[16] = '\0';
}
