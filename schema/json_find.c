/*
 * Walks over JSON that is known to be valid: skips values without looking into them, finds what a
 * pointer names. Of duplicate keys the last wins, so an object is always walked to its end. Pure,
 * any thread; no recursion, since a skip only counts brackets.
 */
#include "base/mem.h"
#include "base/num.h"
#include "schema/json_int.h"

struct sc_pointer {
    struct span text;
    size_t n;
    struct span tokens[]; /* unescaped; text and tokens point into the same allocation */
};

/* --- primitives --- */

enum sc_json_kind js_kind(uint8_t first)
{
    switch (first) {
    case '{':
        return SC_JSON_OBJECT;
    case '[':
        return SC_JSON_ARRAY;
    case '"':
        return SC_JSON_STRING;
    case 't':
        return SC_JSON_TRUE;
    case 'f':
        return SC_JSON_FALSE;
    case 'n':
        return SC_JSON_NULL;
    default:
        return SC_JSON_NUMBER;
    }
}

/* The next quote or bracket at or behind p, or end. */
static inline const uint8_t *next_mark(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), bit = _mm_set1_epi8(0x20);
    const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');

    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i low = _mm_or_si128(v, bit); /* [ and ] become { and } */
        __m128i hit =
            _mm_or_si128(_mm_cmpeq_epi8(v, quote),
                         _mm_or_si128(_mm_cmpeq_epi8(low, open), _mm_cmpeq_epi8(low, close)));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);

        if (mask != 0)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

const uint8_t *js_skip_value(const uint8_t *p, const uint8_t *end)
{
    size_t depth = 0;

    if (p == end)
        return NULL;
    if (*p == '"')
        return js_skip_string(p + 1, end);
    if (*p != '{' && *p != '[') {
        const uint8_t *start = p;

        while (p<end && * p> ' ' && *p != ',' && *p != ']' && *p != '}')
            p++;
        return p == start ? NULL : p;
    }
    while ((p = next_mark(p, end)) < end) {
        if (*p == '"') {
            if ((p = js_skip_string(p + 1, end)) == NULL)
                return NULL;
            continue;
        }
        if ((*p | 0x20) == '{')
            depth++;
        else if (--depth == 0)
            return p + 1;
        p++;
    }
    return NULL;
}

bool js_object_next(struct js_object *it, struct js_member *out)
{
    const uint8_t *p = js_ws(it->p, it->end), *value, *end;

    if (p == it->end || *p == '}') {
        it->p = p;
        return false;
    }
    if (!it->first) {
        if (*p != ',')
            return false;
        p = js_ws(p + 1, it->end);
    }
    if (p == it->end || *p != '"' || (end = js_skip_string(p + 1, it->end)) == NULL)
        return false;
    out->key = span_of(p + 1, (size_t)(end - p) - 2);
    p = js_ws(end, it->end);
    if (p == it->end || *p != ':')
        return false;
    value = js_ws(p + 1, it->end);
    if ((end = js_skip_value(value, it->end)) == NULL)
        return false;
    out->value = span_of(value, (size_t)(end - value));
    it->p = end;
    it->first = false;
    return true;
}

bool js_key_is(struct span raw, struct span want)
{
    const uint8_t *p = raw.p, *end = raw.p + raw.n;
    size_t at = 0;

    /* an escape is longer than what it stands for: equal lengths compare as they are */
    if (raw.n <= want.n)
        return span_eq(raw, want);
    if (memchr(raw.p, '\\', raw.n) == NULL)
        return false;
    while (p < end) {
        uint8_t bytes[4] = {*p};
        size_t n = 1, taken = 1;

        if (*p == '\\' && (taken = js_unescape(p, end, bytes, &n)) == 0)
            return false;
        if (n > want.n - at || memcmp(want.p + at, bytes, n) != 0)
            return false;
        at += n;
        p += taken;
    }
    return at == want.n;
}

/* --- pointers --- */

void sc_pointer_free(struct sc_pointer *p)
{
    mem_free(p);
}

struct span sc_pointer_text(const struct sc_pointer *p)
{
    return p->text;
}

/* One token without its slash: ~0 and ~1 become ~ and /. */
static int unescape_token(struct span raw, uint8_t *to, struct span *out)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = raw.p[i];

        if (c == '~') {
            i++;
            if (i == raw.n || (raw.p[i] != '0' && raw.p[i] != '1'))
                return E_SYNTAX;
            c = raw.p[i] == '0' ? '~' : '/';
        }
        to[n++] = c;
    }
    *out = span_of(to, n);
    return 0;
}

int sc_pointer_new(struct span text, struct sc_pointer **out)
{
    struct sc_pointer *p = NULL;
    size_t tokens = 0, bytes, start;
    uint8_t *store;
    int err = E_SYNTAX;

    *out = NULL;
    if (text.n > 0 && text.p[0] != '/')
        goto out;
    for (size_t i = 0; i < text.n; i++)
        tokens += text.p[i] == '/';
    err = E_NOMEM;
    /* the text, then the unescaped tokens, which are never longer; one more so that none is NULL */
    if (!num_mul_size(tokens, sizeof(struct span), &bytes) || text.n > SIZE_MAX / 4 ||
        (p = mem_zalloc(sizeof *p + bytes + 2 * text.n + 1)) == NULL)
        goto out;
    store = (uint8_t *)p + sizeof *p + bytes;
    if (text.n > 0)
        memcpy(store, text.p, text.n);
    p->text = span_of(store, text.n);
    store += text.n;
    for (size_t i = 0; i < text.n; i = start) {
        struct span *token = &p->tokens[p->n++];

        for (start = i + 1; start < text.n && text.p[start] != '/'; start++)
            ;
        if ((err = unescape_token(span_of(text.p + i + 1, start - i - 1), store, token)) < 0)
            goto out;
        store += token->n;
    }
    *out = p;
    p = NULL;
    err = 0;
out:
    sc_pointer_free(p);
    return err;
}

/* The last member with this key. */
static bool find_member(struct span object, struct span key, struct span *out)
{
    struct js_object it = {object.p + 1, object.p + object.n, true};
    struct js_member m;
    bool found = false;

    while (js_object_next(&it, &m)) {
        if (js_key_is(m.key, key)) {
            *out = m.value;
            found = true;
        }
    }
    return found;
}

static bool find_element(struct span array, struct span token, struct span *out)
{
    const uint8_t *p = array.p + 1, *end = array.p + array.n, *value;
    uint64_t index;

    if (num_parse_u64(token, &index) < 0 || (token.n > 1 && token.p[0] == '0'))
        return false;
    for (;; index--) {
        value = js_ws(p, end);
        if (value == end || *value == ']' || (p = js_skip_value(value, end)) == NULL)
            return false;
        if (index == 0)
            break;
        p = js_ws(p, end);
        if (p == end || *p != ',')
            return false;
        p++;
    }
    *out = span_of(value, (size_t)(p - value));
    return true;
}

int sc_json_find(struct span doc, const struct sc_pointer *ptr, struct sc_json_value *out)
{
    const uint8_t *p, *end;
    struct span v;

    *out = (struct sc_json_value){0};
    if (doc.n == 0)
        return E_NOTFOUND;
    p = js_ws(doc.p, doc.p + doc.n);
    if ((end = js_skip_value(p, doc.p + doc.n)) == NULL)
        return E_SYNTAX;
    v = span_of(p, (size_t)(end - p));
    for (size_t i = 0; i < ptr->n; i++) {
        bool found = false;

        if (v.p[0] == '{')
            found = find_member(v, ptr->tokens[i], &v);
        else if (v.p[0] == '[')
            found = find_element(v, ptr->tokens[i], &v);
        if (!found)
            return E_NOTFOUND;
    }
    *out = (struct sc_json_value){.kind = js_kind(v.p[0]), .text = v};
    return 0;
}
