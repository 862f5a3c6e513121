/*
 * Strings and white space: quoting, unquoting, minifying. Bytes are never taken for C strings, NUL
 * is a byte like any other. Pure, any thread.
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

static void quote_control(uint8_t c, struct writer *out)
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c == 0 ? NULL : memchr(from, c, sizeof from - 1);
    char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

    if (at == NULL) {
        wr_bytes(out, esc, sizeof esc);
        return;
    }
    esc[1] = to[at - from];
    wr_bytes(out, esc, 2);
}

void sc_json_quote(struct span raw, struct writer *out)
{
    const uint8_t *p = raw.p, *end = raw.n == 0 ? raw.p : raw.p + raw.n;

    wr_u8(out, '"');
    while (p < end) {
        const uint8_t *run = js_plain_run(p, end);
        size_t n;

        wr_bytes(out, p, (size_t)(run - p));
        if ((p = run) == end)
            break;
        if (*p < 0x80) {
            quote_control(*p++, out);
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

        while (p<end && * p> ' ') {
            if (*p++ == '"' && (p = js_skip_string(p, end)) == NULL)
                p = end;
        }
        if (p == start)
            p++; /* not JSON: a stray control byte passes */
        wr_bytes(out, start, (size_t)(p - start));
    }
}
