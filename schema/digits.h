/*
 * Private to schema/: runs of decimal digits, eight bytes a step and without a branch for each
 * digit, since how many there are is what a processor cannot guess. Pure.
 */
#pragma once

#include <stdint.h>
#include <string.h>

/* The digits that the eight bytes at p begin with: how many, and *v their number. */
static inline unsigned dg_take8(const uint8_t *p, uint64_t *v)
{
    uint64_t x, other;
    unsigned n;

    memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    x ^= UINT64_C(0x3030303030303030); /* digits become 0 to 9 */
    /* A carry reaches only bytes behind the first that is no digit. */
    other = ((x + UINT64_C(0x0606060606060606)) | x) & UINT64_C(0xf0f0f0f0f0f0f0f0);
    n = other == 0 ? 8 : (unsigned)__builtin_ctzll(other) / 8;
    x = n == 0 ? 0 : x << (64 - 8 * n); /* as if zeros stood in front */
    x = x * 10 + (x >> 8);
    *v = ((x & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
          ((x >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
         32;
    return n;
}

/* Appends all digits at p to *m, modulo 2^64; the byte behind them. */
static inline const uint8_t *dg_take(const uint8_t *p, const uint8_t *end, uint64_t *m)
{
    static const uint32_t power[9] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

    while (end - p >= 8) {
        uint64_t v;
        unsigned n = dg_take8(p, &v);

        *m = *m * power[n] + v;
        p += n;
        if (n < 8)
            return p;
    }
    for (; p < end && (uint8_t)(*p - '0') < 10; p++)
        *m = *m * 10 + (uint64_t)(*p - '0');
    return p;
}
