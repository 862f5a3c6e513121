/* See registry_target.h. */
#include "gateway/registry_target.h"

#include <strings.h>

#include "base/num.h"

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* E_SYNTAX; E_LIMIT: it does not fit. */
static int decode(struct span raw, bool plus, uint8_t *out, size_t out_bytes, struct span *part)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = raw.p[i];

        if (c == '%') {
            int hi = raw.n - i > 2 ? hex(raw.p[i + 1]) : -1;
            int lo = hi < 0 ? -1 : hex(raw.p[i + 2]);

            if (lo < 0)
                return E_SYNTAX;
            c = (uint8_t)(hi * 16 + lo);
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c == '\0')
            return E_SYNTAX;
        if (n == out_bytes)
            return E_LIMIT;
        out[n++] = c;
    }
    *part = span_of(out, n);
    return 0;
}

/* Behind scheme and authority: what goes through a proxy names them, and a server has to take that
 * form too (RFC 9112, 3.2.2). */
static const char *origin_form(const char *target)
{
    size_t n = strncasecmp(target, "http://", 7) == 0 ? 7 : 0;

    if (strncasecmp(target, "https://", 8) == 0)
        n = 8;
    return n == 0 ? target : target + n + strcspn(target + n, "/?#");
}

int registry_target_parse(const char *target, struct registry_target *out)
{
    int err;

    target = origin_form(target);
    size_t len = strcspn(target, "?#");
    out->n = 0;
    out->query = span_of("", 0);
    if (target[len] == '?')
        out->query = span_of(target + len + 1, strcspn(target + len + 1, "#"));
    for (size_t i = 0; i < len;) {
        if (target[i] == '/') {
            i++;
            continue;
        }
        size_t n = strcspn(target + i, "/?#");
        if (out->n == REGISTRY_PARTS_MAX)
            return E_LIMIT;
        err = decode(span_of(target + i, n), false, out->text[out->n], REGISTRY_PART_BYTES,
                     &out->part[out->n]);
        if (err < 0)
            return err;
        out->n++;
        i += n;
    }
    return 0;
}

bool registry_target_is(const struct registry_target *t, size_t i, const char *word)
{
    return i < t->n && span_eq_str(t->part[i], word);
}

bool registry_query(const struct registry_target *t, const char *name, uint8_t *buf,
                    size_t buf_bytes, struct span *out)
{
    size_t n = strlen(name);
    struct span q = t->query;

    *out = span_of("", 0);
    while (q.n > 0) {
        const uint8_t *amp = memchr(q.p, '&', q.n);
        size_t len = amp == NULL ? q.n : (size_t)(amp - q.p);

        if (len >= n && memcmp(q.p, name, n) == 0 && (len == n || q.p[n] == '=')) {
            struct span raw = len == n ? span_of("", 0) : span_of(q.p + n + 1, len - n - 1);
            return decode(raw, true, buf, buf_bytes, out) == 0;
        }
        q = span_of(q.p + len + (amp != NULL), q.n - len - (amp != NULL));
    }
    return false;
}

bool registry_query_flag(const struct registry_target *t, const char *name)
{
    uint8_t buf[16];
    struct span value;

    return registry_query(t, name, buf, sizeof buf, &value) && value.n == 4 &&
           strncasecmp((const char *)value.p, "true", 4) == 0;
}

int registry_query_int(const struct registry_target *t, const char *name, int64_t fallback,
                       int64_t *out)
{
    uint8_t buf[32];
    struct span value;

    *out = fallback;
    if (!registry_query(t, name, buf, sizeof buf, &value) || value.n == 0)
        return 0;
    return num_parse_i64(value, out) < 0 ? E_SYNTAX : 0;
}
