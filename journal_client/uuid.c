/*
 * Gazette clocks and the UUIDs that carry them. Pure arithmetic: no clock is read here.
 *
 *   time_low = clock bits 4..35, time_mid = 36..51, time_hi = 0x1000 | 52..63,
 *   clock_seq = 0x8000 | counter << 10 | flags, node = producer
 */
#include "journal_client/uuid.h"

#include <string.h>

#include "base/num.h"

/* 1582-10-15 to 1970-01-01 in units of 100 ns. */
#define UNIX_OFFSET  INT64_C(122192928000000000)
#define TICKS_PER_MS 10000
#define TICKS_MAX    ((INT64_C(1) << 60) - 1)

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int jc_uuid_parse(struct span text, struct jc_uuid *out)
{
    uint8_t b[16];
    size_t n = 0;

    if (text.n != JC_UUID_TEXT)
        return E_SYNTAX;
    for (size_t i = 0; i < JC_UUID_TEXT;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.p[i++] != '-')
                return E_SYNTAX;
            continue;
        }
        int high = hex_value(text.p[i]);
        int low = hex_value(text.p[i + 1]); /* groups are even: i + 1 is never past the end */
        if (high < 0 || low < 0)
            return E_SYNTAX;
        b[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    if ((b[6] & 0xf0) != 0x10 || (b[8] & 0xc0) != 0x80)
        return E_SYNTAX;
    uint64_t low = (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
    uint64_t mid = (uint64_t)b[4] << 8 | b[5];
    uint64_t high = (uint64_t)(b[6] & 0x0f) << 8 | b[7];
    out->clock = high << 52 | mid << 36 | low << 4 | (uint64_t)((b[8] >> 2) & 0x0f);
    out->flags = (uint16_t)((b[8] & 3) << 8 | b[9]);
    memcpy(out->producer, b + 10, sizeof out->producer);
    return 0;
}

void jc_uuid_format(const struct jc_uuid *u, char out[JC_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t c = u->clock;
    const uint8_t b[16] = {(uint8_t)(c >> 28),
                           (uint8_t)(c >> 20),
                           (uint8_t)(c >> 12),
                           (uint8_t)(c >> 4),
                           (uint8_t)(c >> 44),
                           (uint8_t)(c >> 36),
                           (uint8_t)(0x10 | c >> 60),
                           (uint8_t)(c >> 52),
                           (uint8_t)(0x80 | (c & 0x0f) << 2 | (u->flags >> 8 & 3)),
                           (uint8_t)u->flags,
                           u->producer[0],
                           u->producer[1],
                           u->producer[2],
                           u->producer[3],
                           u->producer[4],
                           u->producer[5]};
    size_t at = 0;

    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[at++] = '-';
        out[at++] = digits[b[i] >> 4];
        out[at++] = digits[b[i] & 0x0f];
    }
}

int64_t jc_clock_unix_ms(uint64_t clock)
{
    if (clock == 0)
        return -1;
    int64_t ticks = (int64_t)(clock >> 4) - UNIX_OFFSET;
    int64_t ms = ticks / TICKS_PER_MS;
    return ticks % TICKS_PER_MS < 0 ? ms - 1 : ms; /* rounded down, also before 1970 */
}

uint64_t jc_clock_from_unix_ms(int64_t ms)
{
    /* Clock 0 stands for "no time" and reads as -1, so that it is the answer for all below 0. */
    if (ms < 0)
        return 0;
    if (ms > (TICKS_MAX - UNIX_OFFSET) / TICKS_PER_MS)
        return UINT64_MAX;
    return (uint64_t)(ms * TICKS_PER_MS + UNIX_OFFSET) << 4;
}

int jc_clock_from_unix_ns(int64_t ns, uint64_t *out)
{
    int64_t ticks = ns / 100;

    if (ns % 100 < 0)
        ticks--;
    ticks += UNIX_OFFSET; /* |ns / 100| < 2^57: cannot overflow */
    if (ticks <= 0 || ticks > TICKS_MAX)
        return E_RANGE;
    *out = (uint64_t)ticks << 4;
    return 0;
}

int jc_clock_parse_hex(struct span s, uint64_t *out)
{
    uint64_t v;

    if (s.n != 16 || num_parse_hex(s, &v) < 0)
        return E_SYNTAX;
    *out = v;
    return 0;
}
