/* See labels.h. Pure. */
#include "gateway/labels.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool literal(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '+' || c == '/' || c == '.';
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int gw_label_decode(struct span value, struct arena *a, struct span *out)
{
    size_t n = 0;

    *out = (struct span){NULL, 0};
    uint8_t *text = arena_alloc(a, value.n + 1);
    if (text == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = value.p[i];
        if (c == '%') {
            if (value.n - i < 3)
                return E_SYNTAX;
            int hi = hex_digit(value.p[i + 1]);
            int lo = hex_digit(value.p[i + 2]);
            if (hi < 0 || lo < 0 || hi + lo == 0)
                return E_SYNTAX;
            c = (uint8_t)(hi * 16 + lo);
            i += 2;
        } else if (!literal(c)) {
            return E_SYNTAX;
        }
        text[n++] = c;
    }
    text[n] = '\0';
    *out = span_of(text, n);
    return 0;
}

char *gw_label_encode(struct arena *a, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = strlen(text), k = 0;
    char *out = arena_alloc(a, 3 * n + 1);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];

        if (literal(c)) {
            out[k++] = (char)c;
        } else {
            out[k++] = '%';
            out[k++] = hex[c >> 4];
            out[k++] = hex[c & 15];
        }
    }
    out[k] = '\0';
    return out;
}

int gw_label_key(const struct jc_spec *spec, struct arena *a,
                 struct span pointers[GW_KEY_PARTS_MAX], size_t *n)
{
    size_t k = 0, bytes = 0;

    *n = 0;
    for (; k < GW_KEY_PARTS_MAX; k++) {
        char name[sizeof GW_LABEL_KEY + 8];
        const char *value;

        snprintf(name, sizeof name, GW_LABEL_KEY "%zu", k);
        int err = jc_spec_label(spec, name, &value);
        if (err == E_NOTFOUND)
            break;
        if (err < 0)
            return E_SYNTAX;
        if (strlen(value) > 3 * GW_KEY_BYTES_MAX)
            return E_LIMIT;
        if ((err = gw_label_decode(span_str(value), a, &pointers[k])) < 0)
            return err;
        if ((bytes += pointers[k].n) > GW_KEY_BYTES_MAX)
            return E_LIMIT;
    }
    *n = k;
    return 0;
}

int gw_rank_cmp(const struct jc_journal *a, const struct jc_journal *b)
{
    if (a->create_revision != b->create_revision)
        return a->create_revision < b->create_revision ? -1 : 1;
    return strcmp(a->spec.name, b->spec.name);
}
