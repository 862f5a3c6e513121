/*
 * Strings and white space: quoting, unquoting, one spelling for all, minifying. Bytes are never
 * taken for C strings, NUL is a byte like any other. Pure, any thread.
 */
#include "schema/json_int.h"

static int hex4(const uint8_t *p, const uint8_t *end)
{
    int v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i];
        int d;

        if (c >= '0' && c <= '9')
            d = c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            d = (c | 0x20) - 'a' + 10;
        else
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static size_t put_utf8(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

static size_t unescape_u(const uint8_t *p, const uint8_t *end, uint8_t out[4], size_t *out_n)
{
    int high = hex4(p + 2, end), low;
    uint32_t c;

    if (high < 0)
        return 0;
    c = (uint32_t)high;
    if (c >= 0xd800 && c < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' &&
        (low = hex4(p + 8, end)) >= 0xdc00 && low < 0xe000) {
        *out_n = put_utf8(0x10000 + ((c - 0xd800) << 10) + ((uint32_t)low - 0xdc00), out);
        return 12;
    }
    if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd;
    *out_n = put_utf8(c, out);
    return 6;
}

size_t js_unescape(const uint8_t *p, const uint8_t *end, uint8_t out[4], size_t *out_n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    *out_n = 1;
    if (end - p < 2 || p[1] == 0)
        return 0;
    if (p[1] == 'u')
        return unescape_u(p, end, out, out_n);
    if ((at = memchr(from, p[1], sizeof from - 1)) == NULL)
        return 0;
    out[0] = (uint8_t)to[at - from];
    return 2;
}

/* What sc_json_quote makes of a character that cannot stand in a string as it is. */
static size_t escape(uint8_t c, uint8_t to[6])
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\b\f\n\r\t", as[] = "\"\\bfnrt";
    const char *at = c == 0 ? NULL : memchr(from, c, sizeof from - 1);

    to[0] = '\\';
    if (at != NULL) {
        to[1] = (uint8_t)as[at - from];
        return 2;
    }
    to[1] = 'u';
    to[2] = to[3] = '0';
    to[4] = (uint8_t)hex[c >> 4];
    to[5] = (uint8_t)hex[c & 15];
    return 6;
}

/* The escape at p in its only spelling, never longer than it is; *n: the bytes it takes. Not an
 * escape: its backslash. */
static size_t canon_escape(const uint8_t *p, const uint8_t *end, size_t *n, uint8_t *to)
{
    uint8_t bytes[4];
    size_t len;

    if ((*n = js_unescape(p, end, bytes, &len)) == 0) {
        to[0] = *p;
        return *n = 1;
    }
    if (*n == 6 && (hex4(p + 2, end) & 0xf800) == 0xd800) { /* a lone surrogate */
        for (size_t i = 0; i < 6; i++)
            to[i] = p[i] >= 'A' && p[i] <= 'F' ? p[i] | 0x20 : p[i];
        return 6;
    }
    if (len == 1 && (bytes[0] < 0x20 || bytes[0] == '"' || bytes[0] == '\\'))
        return escape(bytes[0], to);
    memcpy(to, bytes, len);
    return len;
}

size_t js_canon(struct span text, uint8_t *to)
{
    const uint8_t *p = text.p, *end = text.p + text.n;
    struct sc_num number;
    size_t n = 0;

    if (text.n > 0 && *p != '"' && sc_num_scan(p, end, &number) == end)
        return sc_num_canon(&number, to);
    while (p < end) {
        const uint8_t *run = memchr(p, '\\', (size_t)(end - p));
        size_t taken = (size_t)((run == NULL ? end : run) - p);

        memcpy(to + n, p, taken);
        n += taken;
        p += taken;
        if (p < end) {
            n += canon_escape(p, end, &taken, to + n);
            p += taken;
        }
    }
    return n;
}

int sc_json_unquote(struct span text, struct writer *out)
{
    struct js_check c = {.end = text.p + text.n};
    const uint8_t *p, *end;

    if (text.n < 2 || text.p[0] != '"' || js_check_string(&c, text.p + 1) != c.end)
        return E_SYNTAX;
    end = c.end - 1;
    for (p = text.p + 1; p < end;) {
        const uint8_t *run = memchr(p, '\\', (size_t)(end - p));
        uint8_t bytes[4];
        size_t n;

        if (run == NULL)
            run = end;
        wr_bytes(out, p, (size_t)(run - p));
        p = run;
        if (p < end) {
            p += js_unescape(p, end, bytes, &n);
            wr_bytes(out, bytes, n);
        }
    }
    return wr_err(out);
}

void sc_json_quote(struct span raw, struct writer *out)
{
    const uint8_t *p = raw.p, *end = raw.n == 0 ? raw.p : raw.p + raw.n;

    wr_u8(out, '"');
    while (p < end) {
        const uint8_t *run = js_plain_run(p, end);
        uint8_t esc[6];
        size_t n;

        wr_bytes(out, p, (size_t)(run - p));
        if ((p = run) == end)
            break;
        if (*p < 0x80) {
            wr_bytes(out, esc, escape(*p++, esc));
        } else if ((n = utf8_len(p, end)) > 0) {
            wr_bytes(out, p, n);
            p += n;
        } else {
            wr_bytes(out, "\xef\xbf\xbd", 3); /* one U+FFFD a byte */
            p++;
        }
    }
    wr_u8(out, '"');
}

void sc_json_minify(struct span text, struct writer *out)
{
    const uint8_t *p = text.p, *end = text.n == 0 ? text.p : text.p + text.n;

    while ((p = js_ws(p, end)) < end) {
        const uint8_t *start = p;

        while (p != end && *p > ' ') {
            if (*p++ == '"' && (p = js_skip_string(p, end)) == NULL)
                p = end;
        }
        if (p == start)
            p++; /* not JSON: a stray control byte passes */
        wr_bytes(out, start, (size_t)(p - start));
    }
}
