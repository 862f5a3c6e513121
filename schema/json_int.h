/*
 * Private to schema/json_*.c and key.c: the scanner's primitives. All take [p, end) and never read
 * at or behind end. Those called "skip" or "next" trust the input to be valid JSON: on anything
 * else they answer something, or NULL, but stay in bounds. 16 bytes a step with SSE2 (part of
 * x86-64), else byte by byte.
 */
#pragma once

#include "base/utf8.h"
#include "schema/json_reader.h"
#include "schema/number.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline const uint8_t *js_ws(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

static inline bool js_is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte of a string's inside that needs a look: a quote, a backslash, a control character
 * or a byte that is not ASCII; or end. */
static inline const uint8_t *js_plain_run(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);

    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* a signed compare: bytes from 0x80 on are negative, so it catches them too */
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back)),
                                   _mm_cmplt_epi8(v, space));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);

        if (mask != 0)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && js_is_plain(*p))
        p++;
    return p;
}

/* p stands behind an opening quote. The byte behind the closing one, NULL when there is none. */
static inline const uint8_t *js_skip_string(const uint8_t *p, const uint8_t *end)
{
    for (;;) {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');

        while (end - p >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
            unsigned mask = (unsigned)_mm_movemask_epi8(
                _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back)));

            if (mask != 0) {
                p += __builtin_ctz(mask);
                break;
            }
            p += 16;
        }
#endif
        while (p < end && *p != '"' && *p != '\\')
            p++;
        if (p == end)
            return NULL;
        if (*p == '"')
            return p + 1;
        if (end - p < 2)
            return NULL;
        p += 2; /* an escape: its second byte ends nothing */
    }
}

/* p at a value's first byte. The byte behind the value, NULL when the input ends inside. */
const uint8_t *js_skip_value(const uint8_t *p, const uint8_t *end);

/* Walks over the members of one object: p behind its brace, or behind a member's value. */
struct js_object {
    const uint8_t *p;
    const uint8_t *end;
    bool first;
};
struct js_member {
    struct span key;   /* raw, between the quotes */
    struct span value; /* its own bytes */
};
/* false at the closing brace (it->p stands on it) or where the structure breaks. */
bool js_object_next(struct js_object *it, struct js_member *out);

/* Compares after unescaping. */
bool js_key_is(struct span raw, struct span want);

/* One escape at p (on the backslash) as UTF-8 in out. A surrogate pair is one escape, a lone
 * surrogate yields U+FFFD. The bytes taken, 0 when malformed. */
size_t js_unescape(const uint8_t *p, const uint8_t *end, uint8_t out[4], size_t *out_n);

enum sc_json_kind js_kind(uint8_t first);

/* The one text of all spellings of a string or a number (sc_num_canon), as keys need it: what
 * sc_json_quote writes, but lone surrogates stay escapes and bytes that are not UTF-8 stay as they
 * are, so that unequal strings remain unequal. Other values are copied. to has room for the text
 * and JS_CANON_MORE more. Bytes written. */
#define JS_CANON_MORE SC_NUM_CANON_MORE
size_t js_canon(struct span text, uint8_t *to);

/* Where a strict check stands. The caller sets end and lax; a failure sets at, reason and err. */
struct js_check {
    const uint8_t *end;
    bool lax;    /* bytes that are not UTF-8 pass, and dirty is set */
    bool dirty;  /* the caller clears these two; they are only ever set */
    bool spaced; /* white space stood between tokens inside the value */
    const uint8_t *at;
    const char *reason;
    int err;
    size_t depth;
    uint8_t stack[(SC_JSON_MAX_DEPTH + 7) / 8]; /* one bit a level: 1 is an object */
};
/* Checks the value that begins at p; the byte behind it, or NULL with at, reason and err set. */
const uint8_t *js_check_value(struct js_check *c, const uint8_t *p);
/* The same for the inside of a string: p behind its opening quote. */
const uint8_t *js_check_string(struct js_check *c, const uint8_t *p);
