/* See strict_name.h. */
#include "gateway/strict_name.h"

#include <stdint.h>

static bool plain(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static size_t put(uint8_t c, char *out)
{
    static const char hex[] = "0123456789ABCDEF";

    if (plain(c)) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '.';
    out[1] = hex[c >> 4];
    out[2] = hex[c & 15];
    return 3;
}

void gw_strict_name(struct span name, char *out)
{
    size_t k = 0;

    for (size_t i = 0; i < name.n; i++)
        k += put(name.p[i], out + k);
    out[k] = '\0';
}

static int digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool gw_strict_name_of(struct span asked, char *out)
{
    size_t k = 0;

    out[0] = '\0';
    if (memchr(asked.p, '/', asked.n) != NULL) {
        gw_strict_name(asked, out);
        return true;
    }
    for (size_t i = 0; i < asked.n; i++) {
        uint8_t c = asked.p[i];

        if (c == '.') {
            int hi = asked.n - i < 3 ? -1 : digit(asked.p[i + 1]);
            int lo = hi < 0 ? -1 : digit(asked.p[i + 2]);
            if (lo < 0)
                return false;
            c = (uint8_t)(hi * 16 + lo);
            i += 2;
        }
        k += put(c, out + k);
    }
    out[k] = '\0';
    return true;
}
