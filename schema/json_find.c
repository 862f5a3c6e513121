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

/* 64 bytes as bit masks, the first byte in bit 0. */
struct marks {
    uint64_t quote, back, open, close;
};

#if defined(__SSE2__)
static inline struct marks marks_of(const uint8_t *p)
{
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');
    const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    struct marks m = {0, 0, 0, 0};

    for (unsigned i = 0; i < 64; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i low = _mm_or_si128(v, bit); /* [ and ] become { and } */

        m.quote |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote)) << i;
        m.back |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, back)) << i;
        m.open |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(low, open)) << i;
        m.close |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(low, close)) << i;
    }
    return m;
}
#else
static inline struct marks marks_of(const uint8_t *p)
{
    struct marks m = {0, 0, 0, 0};

    for (unsigned i = 0; i < 64; i++) {
        m.quote |= (uint64_t)(p[i] == '"') << i;
        m.back |= (uint64_t)(p[i] == '\\') << i;
        m.open |= (uint64_t)((p[i] | 0x20) == '{') << i;
        m.close |= (uint64_t)((p[i] | 0x20) == '}') << i;
    }
    return m;
}
#endif

/* The bytes that a backslash in front makes literal: the odd ones of each run. *carry: the run goes
 * on in the next block. Adding 1 at a run's start ripples to its end, and the end's place says
 * whether the run was odd. (The trick is simdjson's.) */
static inline uint64_t escaped_bytes(uint64_t back, uint64_t *carry)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    uint64_t follows, odd_starts, sums;
    bool over;

    if (back == 0) {
        uint64_t first = *carry;

        *carry = 0;
        return first;
    }
    back &= ~*carry;
    follows = back << 1 | *carry;
    odd_starts = back & ~even & ~follows;
    over = __builtin_add_overflow(odd_starts, back, &sums);
    *carry = over;
    return (even ^ sums << 1) & follows;
}

/* Bit i = parity of bits 0..i: from each opening quote to the byte before its closing one. */
static inline uint64_t prefix_parity(uint64_t x)
{
    for (unsigned i = 1; i < 64; i *= 2)
        x ^= x << i;
    return x;
}

/* p on a bracket. Counts brackets outside of strings, 64 bytes a step. */
static const uint8_t *skip_pair(const uint8_t *p, const uint8_t *end)
{
    uint64_t carry = 0, inside = 0;
    uint64_t depth = 0;
    uint8_t tail[64];

    for (;; p += 64) {
        const uint8_t *at = p;
        struct marks m;
        uint64_t closes;

        if (end - p < 64) {
            memset(tail, ' ', sizeof tail);
            memcpy(tail, p, (size_t)(end - p));
            at = tail;
        }
        m = marks_of(at);
        inside ^= prefix_parity(m.quote & ~escaped_bytes(m.back, &carry));
        m.open &= ~inside;
        closes = m.close & ~inside;
        inside = 0 - (inside >> 63); /* what the last byte was, for all of the next block */
        for (; closes != 0; closes &= closes - 1) {
            uint64_t before = (closes & (0 - closes)) - 1; /* the bytes in front of this one */

            depth += (uint64_t)__builtin_popcountll(m.open & before);
            m.open &= ~before;
            if (--depth == 0)
                return p + __builtin_ctzll(closes) + 1;
        }
        if (end - p <= 64)
            return NULL;
        depth += (uint64_t)__builtin_popcountll(m.open);
    }
}

const uint8_t *js_skip_value(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start = p;

    if (p == end)
        return NULL;
    if (*p == '"')
        return js_skip_string(p + 1, end);
    if (*p == '{' || *p == '[')
        return skip_pair(p, end);
    while (p<end && * p> ' ' && *p != ',' && *p != ']' && *p != '}')
        p++;
    return p == start ? NULL : p;
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

/* The last member with this key of the object at p. */
static bool find_member(const uint8_t *p, const uint8_t *end, struct span key, struct span *out)
{
    struct js_object it = {p + 1, end, true};
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

static bool find_element(const uint8_t *p, const uint8_t *end, struct span token, struct span *out)
{
    const uint8_t *value;
    uint64_t index;

    if (num_parse_u64(token, &index) < 0 || (token.n > 1 && token.p[0] == '0'))
        return false;
    for (p++;; index--) {
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
    end = doc.p + doc.n;
    if ((p = js_ws(doc.p, end)) == end)
        return E_NOTFOUND;
    /* the document's own end is not looked for: walking its members finds it anyway */
    v = span_of(p, (size_t)(end - p));
    for (size_t i = 0; i < ptr->n; i++) {
        bool found = false;

        if (v.p[0] == '{')
            found = find_member(v.p, v.p + v.n, ptr->tokens[i], &v);
        else if (v.p[0] == '[')
            found = find_element(v.p, v.p + v.n, ptr->tokens[i], &v);
        if (!found)
            return E_NOTFOUND;
    }
    if (ptr->n == 0) {
        if ((end = js_skip_value(p, end)) == NULL)
            return E_SYNTAX;
        v = span_of(p, (size_t)(end - p));
    }
    *out = (struct sc_json_value){.kind = js_kind(v.p[0]), .text = v};
    return 0;
}
