/*
 * Dates, times, durations and UUIDs by hand: the C library's functions follow the locale, the time
 * zone, or accept too much. Pure, any thread.
 */
#include "schema/text.h"

#define DAY_MICROS   INT64_C(86400000000)
#define UUID_TO_UNIX INT64_C(0x01b21dd213814000) /* 100 ns ticks from 1582-10-15 to 1970 */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* n digits at p; -1 when they are not digits. */
static int take(const uint8_t *p, size_t n)
{
    int v = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_digit(p[i]))
            return -1;
        v = v * 10 + (p[i] - '0');
    }
    return v;
}

/* Days since 1970-01-01; years from 0 to 9999. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int date_at(const uint8_t *p, int64_t *days)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = take(p, 4), month = take(p + 5, 2), day = take(p + 8, 2), length;

    if (year < 0 || p[4] != '-' || month < 1 || month > 12 || p[7] != '-' || day < 1)
        return E_SYNTAX;
    length = lengths[month - 1];
    if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
        length = 29;
    if (day > length)
        return E_SYNTAX;
    *days = days_of(year, month, day);
    return 0;
}

int sc_text_date(struct span s, int64_t *days)
{
    *days = 0;
    return s.n == 10 ? date_at(s.p, days) : E_SYNTAX;
}

int sc_text_time(struct span s, int64_t *micros)
{
    int64_t days, frac = 0, offset = 0;
    int hour, minute, second;
    size_t i = 19, digits = 0;

    *micros = 0;
    if (s.n < 20 || date_at(s.p, &days) < 0)
        return E_SYNTAX;
    hour = take(s.p + 11, 2);
    minute = take(s.p + 14, 2);
    second = take(s.p + 17, 2);
    if (((s.p[10] | 0x20) != 't' && s.p[10] != ' ') || s.p[13] != ':' || s.p[16] != ':' ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return E_SYNTAX;
    if (s.p[i] == '.') {
        for (i++; i < s.n && is_digit(s.p[i]); i++, digits++) {
            if (digits < 6)
                frac = frac * 10 + (s.p[i] - '0');
        }
        if (digits == 0)
            return E_SYNTAX;
        for (; digits < 6; digits++)
            frac *= 10;
    }
    if (s.n - i == 6 && (s.p[i] == '+' || s.p[i] == '-') && s.p[i + 3] == ':') {
        int oh = take(s.p + i + 1, 2), om = take(s.p + i + 4, 2);

        if (oh < 0 || oh > 23 || om < 0 || om > 59)
            return E_SYNTAX;
        offset = (oh * INT64_C(60) + om) * (s.p[i] == '-' ? -60 : 60);
    } else if (s.n - i != 1 || (s.p[i] | 0x20) != 'z') {
        return E_SYNTAX;
    }
    *micros = days * DAY_MICROS +
              (((int64_t)hour * 60 + minute) * 60 + second - offset) * INT64_C(1000000) + frac;
    return 0;
}

int sc_text_duration(struct span s, uint32_t out[3])
{
    static const char units[] = "YMWDHMS"; /* the first four before T */
    uint64_t v[7] = {0}, months, days, millis;
    size_t i = 1, unit = 0, parts = 0;
    bool timed = false;

    out[0] = out[1] = out[2] = 0;
    if (s.n < 3 || s.p[0] != 'P')
        return E_SYNTAX;
    while (i < s.n) {
        uint64_t n = 0, frac = 0;
        size_t digits = 0;

        if (s.p[i] == 'T') {
            if (timed)
                return E_SYNTAX;
            timed = true;
            unit = 4;
            i++;
        }
        for (; i < s.n && is_digit(s.p[i]); i++, digits++) {
            if (n > UINT32_MAX)
                return E_RANGE;
            n = n * 10 + (uint64_t)(s.p[i] - '0');
        }
        if (digits == 0)
            return E_SYNTAX;
        if (i < s.n && s.p[i] == '.') {
            digits = 0;
            for (i++; i < s.n && is_digit(s.p[i]); i++, digits++)
                frac = digits < 3 ? frac * 10 + (uint64_t)(s.p[i] - '0') : frac;
            if (digits == 0 || i == s.n || s.p[i] != 'S')
                return E_SYNTAX;
            for (; digits < 3; digits++)
                frac *= 10;
        }
        while (unit < (timed ? 7u : 4u) && (i == s.n || s.p[i] != (uint8_t)units[unit]))
            unit++;
        if (unit == (timed ? 7u : 4u))
            return E_SYNTAX;
        v[unit] = unit == 6 ? n * 1000 + frac : n;
        unit++;
        i++;
        parts++;
    }
    if (parts == 0 || s.p[s.n - 1] == 'T')
        return E_SYNTAX;
    months = v[0] * 12 + v[1];
    days = v[2] * 7 + v[3];
    millis = v[4] * 3600000 + v[5] * 60000 + v[6];
    if (months > UINT32_MAX || days > UINT32_MAX || millis > UINT32_MAX)
        return E_RANGE;
    out[0] = (uint32_t)months;
    out[1] = (uint32_t)days;
    out[2] = (uint32_t)millis;
    return 0;
}

static int hex(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_uuid(struct span s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < 36; i++) {
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;

        if (hyphen ? s.p[i] != '-' : hex(s.p[i]) < 0)
            return false;
    }
    return true;
}

int sc_text_uuid(struct span s, char out[36])
{
    if (s.n == 38 && s.p[0] == '{' && s.p[37] == '}')
        s = span_of(s.p + 1, 36);
    else if (s.n == 45 && memcmp(s.p, "urn:uuid:", 9) == 0)
        s = span_of(s.p + 9, 36);
    if (is_uuid(s)) {
        memcpy(out, s.p, 36);
        return 0;
    }
    if (s.n != 32)
        return E_SYNTAX;
    for (size_t i = 0, k = 0; i < 32; i++) {
        if (hex(s.p[i]) < 0)
            return E_SYNTAX;
        if (i == 8 || i == 12 || i == 16 || i == 20)
            out[k++] = '-';
        out[k++] = (char)s.p[i];
    }
    return 0;
}

int sc_text_uuid_time(struct span s, int64_t *micros)
{
    static const uint8_t order[] = {15, 16, 17, 9, 10, 11, 12, 0, 1, 2, 3, 4, 5, 6, 7};
    int64_t ticks = 0;

    *micros = 0;
    if (!is_uuid(s) || s.p[14] != '1')
        return E_SYNTAX;
    for (size_t i = 0; i < sizeof order; i++)
        ticks = ticks * 16 + hex(s.p[order[i]]);
    ticks -= UUID_TO_UNIX;
    *micros = ticks >= 0 ? ticks / 10 : -((9 - ticks) / 10);
    return 0;
}
