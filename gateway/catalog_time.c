/*
 * RFC 3339 instants of a catalog as bounds on document clocks. A clock counts ticks of 100 ns since
 * 1582-10-15 in its upper 60 bits; 16 counter steps share a tick. Pure.
 */
#include <stdbool.h>

#include "gateway/catalog_int.h"

#define DAYS_1582 INT64_C(141427) /* from 1582-10-15 to 1970-01-01 */
#define TICKS_SEC INT64_C(10000000)
#define TICKS_MAX ((INT64_C(1) << 60) - 1)

struct cursor {
    const uint8_t *p, *end;
};

static bool digits(struct cursor *c, unsigned n, int64_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < n; i++) {
        if (c->p == c->end || *c->p < '0' || *c->p > '9')
            return false;
        *out = *out * 10 + (*c->p++ - '0');
    }
    return true;
}

static bool one_of(struct cursor *c, const char *set)
{
    if (c->p == c->end || *c->p == 0 || strchr(set, *c->p) == NULL)
        return false;
    c->p++;
    return true;
}

static bool leap(int64_t y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

static int64_t month_days(int64_t y, int64_t m)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[m - 1] + (m == 2 && leap(y) ? 1 : 0);
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    int64_t years = y - 1;
    int64_t days = years * 365 + years / 4 - years / 100 + years / 400 - INT64_C(719162);

    for (int64_t i = 1; i < m; i++)
        days += month_days(y, i);
    return days + d - 1;
}

/* Up to nine digits behind the point; *ns of the second. */
static bool fraction(struct cursor *c, int64_t *ns)
{
    int64_t unit = INT64_C(100000000);

    *ns = 0;
    if (!one_of(c, "."))
        return true;
    if (c->p == c->end || *c->p < '0' || *c->p > '9')
        return false;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, unit /= 10) {
        if (unit == 0)
            return false;
        *ns += (*c->p - '0') * unit;
    }
    return true;
}

static bool offset_of(struct cursor *c, int64_t *seconds)
{
    int64_t h, m;

    *seconds = 0;
    if (one_of(c, "Zz"))
        return true;
    bool west = c->p < c->end && *c->p == '-';
    if (!one_of(c, "+-") || !digits(c, 2, &h) || !one_of(c, ":") || !digits(c, 2, &m) || h > 23 ||
        m > 59)
        return false;
    *seconds = (h * 60 + m) * 60;
    if (west)
        *seconds = -*seconds;
    return true;
}

int catalog_time_parse(struct span text, struct catalog_time *out)
{
    struct cursor c = {text.p, text.p + text.n};
    int64_t y, mo, d, h, mi, s, ns, off;

    *out = (struct catalog_time){0, 0};
    if (!digits(&c, 4, &y) || !one_of(&c, "-") || !digits(&c, 2, &mo) || !one_of(&c, "-") ||
        !digits(&c, 2, &d) || !one_of(&c, "Tt") || !digits(&c, 2, &h) || !one_of(&c, ":") ||
        !digits(&c, 2, &mi) || !one_of(&c, ":") || !digits(&c, 2, &s) || !fraction(&c, &ns) ||
        !offset_of(&c, &off) || c.p != c.end)
        return E_SYNTAX;
    if (y < 1 || mo < 1 || mo > 12 || d < 1 || d > month_days(y, mo) || h > 23 || mi > 59 || s > 59)
        return E_SYNTAX; /* no leap seconds: a clock has none */
    int64_t seconds = (days_of(y, mo, d) + DAYS_1582) * 86400 + (h * 60 + mi) * 60 + s - off;
    if (seconds < 0 || seconds > TICKS_MAX / TICKS_SEC - 1)
        return E_RANGE;
    int64_t ticks = seconds * TICKS_SEC + ns / 100;
    out->at_least = (uint64_t)(ticks + (ns % 100 != 0)) << 4;
    out->at_most = (uint64_t)ticks << 4 | 15;
    return 0;
}
