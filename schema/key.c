/*
 * A collection's key: what a document is routed and compacted by. The hash decides which journal a
 * document lies in, so its definition is part of the stored layout and never changes:
 *
 *   h = 0
 *   for each part: h = hash_bytes(tag, h)
 *                  for strings and numbers: h = hash_bytes(canon, h)
 *   result: the two halves of h, xored
 *
 *   tag: one byte, z null, f false, t true, n number, s string
 *   canon of a string: its text, unescaped, UTF-8
 *   canon of a number: "0", else ["-"] digits "e" exponent, for 0.digits * 10^exponent, where
 *     digits neither begin nor end with 0 and the exponent is clamped to +-9 * 10^17
 *
 * No double is involved: integers of any size stay exact. Pure, any thread.
 */
#include "schema/key.h"

#include "base/hash.h"
#include "base/mem.h"
#include "schema/json_int.h"

#define EXPONENT_CLAMP INT64_C(900000000000000000)

struct sc_key {
    size_t n;
    struct sc_pointer *parts[];
};

int sc_key_new(const struct span *pointers, size_t n, struct sc_key **out)
{
    struct sc_key *k = NULL;
    int err = E_SYNTAX;

    *out = NULL;
    if (n == 0)
        goto out;
    err = E_NOMEM;
    if (n > SIZE_MAX / sizeof k->parts[0] / 2 ||
        (k = mem_zalloc(sizeof *k + n * sizeof k->parts[0])) == NULL)
        goto out;
    for (; k->n < n; k->n++) {
        if ((err = sc_pointer_new(pointers[k->n], &k->parts[k->n])) < 0)
            goto out;
    }
    *out = k;
    k = NULL;
    err = 0;
out:
    sc_key_free(k);
    return err;
}

void sc_key_free(struct sc_key *k)
{
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->n; i++)
        sc_pointer_free(k->parts[i]);
    mem_free(k);
}

size_t sc_key_parts(const struct sc_key *k)
{
    return k->n;
}

/* The scalar that part i names. */
static int part_of(const struct sc_key *k, size_t i, struct span doc, struct sc_json_value *out,
                   struct span *which)
{
    int err = sc_json_find(doc, k->parts[i], out);

    if (err == 0 && (out->kind == SC_JSON_ARRAY || out->kind == SC_JSON_OBJECT))
        err = E_INVALID;
    if (err < 0)
        *which = sc_pointer_text(k->parts[i]);
    return err;
}

/* Has it one spelling only? Strings without escapes and integers are nearly all that there is. */
static bool is_canonical(struct span text)
{
    size_t i = text.p[0] == '-';

    if (text.p[0] == '"')
        return memchr(text.p, '\\', text.n) == NULL;
    if (i == text.n || text.p[i] == '0' || text.n > SC_NUM_MAX_ZEROS)
        return false;
    while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
        i++;
    return i == text.n;
}

/* A scalar in its only spelling: equal keys are equal bytes, whoever wrote the documents. */
static void put_scalar(struct span text, struct writer *out)
{
    if (is_canonical(text)) {
        wr_span(out, text);
        return;
    }
    wr_reserve(out, text.n + JS_CANON_MORE);
    if (wr_err(out) == 0)
        out->b->len += js_canon(text, out->b->data + out->b->len);
}

int sc_key_text(const struct sc_key *k, struct span doc, struct writer *out, struct span *which)
{
    struct sc_json_value v;
    int err;

    *which = (struct span){NULL, 0};
    if (k->n > 1)
        wr_u8(out, '[');
    for (size_t i = 0; i < k->n; i++) {
        if ((err = part_of(k, i, doc, &v, which)) < 0)
            return err;
        if (i > 0)
            wr_u8(out, ',');
        put_scalar(v.text, out);
    }
    if (k->n > 1)
        wr_u8(out, ']');
    return wr_err(out);
}

int sc_key_bare(const struct sc_key *k, struct span doc, struct writer *out, bool *null,
                struct span *which)
{
    struct sc_json_value v;
    int err;

    *null = false;
    if (k->n > 1)
        return sc_key_text(k, doc, out, which);
    *which = (struct span){NULL, 0};
    if ((err = part_of(k, 0, doc, &v, which)) < 0)
        return err;
    *null = v.kind == SC_JSON_NULL;
    if (v.kind == SC_JSON_STRING)
        return (err = sc_json_unquote(v.text, out)) < 0 ? err : wr_err(out);
    if (!*null)
        put_scalar(v.text, out);
    return wr_err(out);
}

/* The digits behind e or E, clamped: far beyond the length of any document. */
static int64_t exponent_of(const uint8_t *p, const uint8_t *end)
{
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (v < EXPONENT_CLAMP)
            v = v * 10 + (*p - '0');
    }
    return negative ? -v : v;
}

static void canon_number(struct span text, struct writer *out)
{
    const uint8_t *p = text.p, *end = text.p + text.n, *mantissa, *first = NULL, *last = NULL;
    int64_t point = 0, exponent = 0;
    bool dotted = false;

    if (*p == '-')
        p++;
    mantissa = p;
    /* point: digits before the dot, less the zeros in front of the first other digit */
    for (; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            dotted = true;
            continue;
        }
        if (*p != '0') {
            first = first == NULL ? p : first;
            last = p;
        }
        if (first != NULL && !dotted)
            point++;
        else if (first == NULL && dotted)
            point--;
    }
    if (p < end)
        exponent = exponent_of(p + 1, end);
    if (first == NULL) {
        wr_u8(out, '0');
        return;
    }
    exponent += point;
    if (exponent > EXPONENT_CLAMP)
        exponent = EXPONENT_CLAMP;
    if (exponent < -EXPONENT_CLAMP)
        exponent = -EXPONENT_CLAMP;
    if (mantissa != text.p)
        wr_u8(out, '-');
    for (p = first; p <= last; p++) {
        if (*p != '.')
            wr_u8(out, *p);
    }
    wr_printf(out, "e%lld", (long long)exponent);
}

static int hash_canon(const struct sc_json_value *v, uint64_t *h)
{
    struct writer w;
    int err = 0;

    if (v->kind == SC_JSON_STRING && memchr(v->text.p, '\\', v->text.n) == NULL) {
        *h = hash_bytes(span_of(v->text.p + 1, v->text.n - 2), *h); /* nothing to unescape */
        return 0;
    }
    wr_init(&w, SIZE_MAX / 2);
    if (v->kind == SC_JSON_STRING)
        err = sc_json_unquote(v->text, &w);
    else
        canon_number(v->text, &w);
    if (err == 0 && (err = wr_err(&w)) == 0)
        *h = hash_bytes(w.b == NULL ? span_of("", 0) : blob_span(w.b), *h);
    wr_fini(&w);
    return err;
}

int sc_key_hash(const struct sc_key *k, struct span doc, uint32_t *out, struct span *which)
{
    static const uint8_t tags[] = {
        [SC_JSON_NULL] = 'z',   [SC_JSON_FALSE] = 'f',  [SC_JSON_TRUE] = 't',
        [SC_JSON_NUMBER] = 'n', [SC_JSON_STRING] = 's',
    };
    struct sc_json_value v;
    uint64_t h = 0;
    int err;

    *out = 0;
    *which = (struct span){NULL, 0};
    for (size_t i = 0; i < k->n; i++) {
        if ((err = part_of(k, i, doc, &v, which)) < 0)
            return err;
        h = hash_bytes(span_of(&tags[v.kind], 1), h);
        if ((v.kind == SC_JSON_STRING || v.kind == SC_JSON_NUMBER) &&
            (err = hash_canon(&v, &h)) < 0)
            return err;
    }
    *out = (uint32_t)(h ^ h >> 32);
    return 0;
}
