/* Well-formed UTF-8: utf8.h. */
#include "base/utf8.h"

static inline bool continues(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

size_t utf8_len(const uint8_t *p, const uint8_t *end)
{
    ptrdiff_t left = end - p;
    uint8_t a;

    if (left < 1)
        return 0;
    a = p[0];
    if (a < 0x80)
        return 1;
    if (a < 0xc2 || a > 0xf4 || left < 2)
        return 0;
    if (a < 0xe0)
        return continues(p[1]) ? 2 : 0;
    if (left < 3 || !continues(p[1]) || !continues(p[2]))
        return 0;
    if (a < 0xf0) {
        if ((a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] > 0x9f)) /* overlong, surrogate */
            return 0;
        return 3;
    }
    if (left < 4 || !continues(p[3]) || (a == 0xf0 && p[1] < 0x90) || (a == 0xf4 && p[1] > 0x8f))
        return 0;
    return 4;
}

bool utf8_is_text(struct span s)
{
    const uint8_t *p = s.p, *end = s.n == 0 ? s.p : s.p + s.n;

    while (p < end) {
        size_t n = *p == 0 ? 0 : utf8_len(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}
