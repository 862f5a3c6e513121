/*
 * What this program reads and writes of a document by itself: the UUID at /_meta/uuid. Finding it
 * is done for every document of every block, so it must not walk the whole document; yet a later
 * second
 * `_meta` would win, and source rows are full of nested `_meta` and `uuid` keys.
 *
 * The rule that makes stopping early sound: a second key `_meta` is spelled either plainly, then
 * the rest holds `_meta"`, or with escapes, then it holds \u005x, \u006x or \u007x (no short escape
 * stands for one of its letters). Rests without both, found by one fast search, need no walk. All
 * others are walked to the end. Both ways agree on any bytes, valid or not. Pure, any thread.
 */
#include "schema/json_int.h"

#define UUID_TEXT   36
#define KEEP_WALKS  32 /* documents that are walked at once after a search was in vain */
#define META        span_of("_meta", 5)
#define UUID        span_of("uuid", 4)
#define LITERAL     "{\"_meta\":{\"uuid\":\""
#define LITERAL_LEN (sizeof LITERAL - 1)

static bool spells_meta(const uint8_t *p, const uint8_t *end)
{
    if (*p == '_')
        return end - p >= 6 && memcmp(p, "_meta\"", 6) == 0;
    return *p == '\\' && end - p >= 6 && memcmp(p, "\\u00", 4) == 0 && p[4] >= '5' && p[4] <= '7';
}

/* True when [p, end) may hold a key `_meta`. */
static bool may_hold_meta(const uint8_t *p, const uint8_t *end)
{
#if defined(__SSE2__)
    const __m128i under = _mm_set1_epi8('_'), m = _mm_set1_epi8('m');
    const __m128i back = _mm_set1_epi8('\\'), u = _mm_set1_epi8('u');

    for (; end - p >= 17; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
        __m128i hit = _mm_or_si128(_mm_and_si128(_mm_cmpeq_epi8(a, under), _mm_cmpeq_epi8(b, m)),
                                   _mm_and_si128(_mm_cmpeq_epi8(a, back), _mm_cmpeq_epi8(b, u)));

        for (unsigned mask = (unsigned)_mm_movemask_epi8(hit); mask != 0; mask &= mask - 1) {
            if (spells_meta(p + __builtin_ctz(mask), end))
                return true;
        }
    }
#endif
    for (; p < end; p++) {
        if (spells_meta(p, end))
            return true;
    }
    return false;
}

/* The 36 characters when `meta` is an object with such a string. */
static bool uuid_of(struct span meta, struct span *out)
{
    struct js_object it = {meta.p + 1, meta.p + meta.n, true};
    struct js_member m;
    bool found = false;

    if (meta.p[0] != '{')
        return false;
    while (js_object_next(&it, &m)) {
        if (!js_key_is(m.key, UUID))
            continue;
        found = m.value.p[0] == '"' && m.value.n == UUID_TEXT + 2;
        *out = span_of(m.value.p + 1, UUID_TEXT);
    }
    return found;
}

/* The layout that our own ingest writes: `_meta` in front, with nothing but the UUID. it->p is
 * moved behind that member, as a step of the walk would do. */
static bool literal_front(struct js_object *it, struct span *out)
{
    const uint8_t *start = it->p - 1, *text = start + LITERAL_LEN;

    if ((size_t)(it->end - start) < LITERAL_LEN + UUID_TEXT + 2 ||
        memcmp(start, LITERAL, LITERAL_LEN) != 0 || text[UUID_TEXT + 1] != '}' ||
        js_skip_string(text, text + UUID_TEXT + 1) != text + UUID_TEXT + 1)
        return false;
    it->p = text + UUID_TEXT + 2;
    it->first = false;
    *out = span_of(text, UUID_TEXT);
    return true;
}

int sc_uuid_find(struct span doc, struct sc_uuid_hint *hint, struct span *out)
{
    const uint8_t *end, *p;
    struct js_object it;
    struct js_member m;
    struct span text = {NULL, 0};
    bool found, seen;

    *out = (struct span){NULL, 0};
    if (doc.n == 0)
        return E_NOTFOUND;
    end = doc.p + doc.n;
    p = js_ws(doc.p, end);
    if (p == end || *p != '{')
        return E_NOTFOUND;
    it = (struct js_object){p + 1, end, true};
    seen = found = literal_front(&it, &text);
    while (!seen && js_object_next(&it, &m)) {
        if (js_key_is(m.key, META)) {
            seen = true;
            found = uuid_of(m.value, &text);
        }
    }
    if (seen && (hint->walks > 0 || may_hold_meta(it.p, end))) {
        hint->walks = hint->walks > 0 ? hint->walks - 1 : KEEP_WALKS;
        while (js_object_next(&it, &m)) {
            if (js_key_is(m.key, META))
                found = uuid_of(m.value, &text);
        }
    }
    if (!found)
        return E_NOTFOUND;
    *out = text;
    return 0;
}

/* --- stamping --- */

/* Copies without raw line breaks: in valid JSON they stand between tokens only. */
static void copy_line(struct writer *out, const uint8_t *p, const uint8_t *end)
{
    if (memchr(p, '\n', (size_t)(end - p)) == NULL && memchr(p, '\r', (size_t)(end - p)) == NULL) {
        wr_bytes(out, p, (size_t)(end - p));
        return;
    }
    while (p < end) {
        const uint8_t *start = p;

        while (p < end && *p != '\n' && *p != '\r')
            p++;
        wr_bytes(out, start, (size_t)(p - start));
        while (p < end && (*p == '\n' || *p == '\r'))
            p++;
    }
}

/* A quoted UUID of zeros; its place. */
static size_t put_uuid(struct writer *out)
{
    static const char zeros[] = "\"000000000000000000000000000000000000\"";
    size_t at = wr_len(out) + 1;

    wr_bytes(out, zeros, sizeof zeros - 1);
    return at;
}

/* The last member of the object at p that has this key; value.p == NULL when there is none. *empty:
 * the object has no member at all. */
static struct span last_member(const uint8_t *p, const uint8_t *end, struct span key, bool *empty)
{
    struct js_object it = {p + 1, end, true};
    struct js_member m;
    struct span v = {NULL, 0};

    *empty = true;
    while (js_object_next(&it, &m)) {
        *empty = false;
        if (js_key_is(m.key, key))
            v = m.value;
    }
    return v;
}

static int refuse(struct sc_json_error *err, size_t at, const char *reason)
{
    *err = (struct sc_json_error){.at = at, .reason = reason};
    return E_INVALID;
}

int sc_json_stamp(struct span doc, struct writer *out, size_t *uuid_at, struct sc_json_error *err)
{
    const uint8_t *p, *end, *cut, *resume;
    struct span meta, uuid;
    bool empty;

    *uuid_at = 0;
    *err = (struct sc_json_error){0};
    if (doc.n == 0)
        return refuse(err, 0, "not an object");
    end = doc.p + doc.n;
    p = js_ws(doc.p, end);
    if (p == end || *p != '{')
        return refuse(err, (size_t)(p - doc.p), "not an object");
    while (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r')
        end--;
    meta = last_member(p, end, META, &empty);
    if (meta.p == NULL) {
        copy_line(out, p, p + 1);
        wr_str(out, "\"_meta\":{\"uuid\":");
        *uuid_at = put_uuid(out);
        wr_str(out, empty ? "}" : "},");
        copy_line(out, p + 1, end);
        return wr_err(out);
    }
    if (meta.p[0] != '{')
        return refuse(err, (size_t)(meta.p - doc.p), "_meta is not an object");
    uuid = last_member(meta.p, meta.p + meta.n, UUID, &empty);
    cut = uuid.p != NULL ? uuid.p : meta.p + 1;
    resume = uuid.p != NULL ? uuid.p + uuid.n : cut;
    copy_line(out, p, cut);
    if (uuid.p == NULL)
        wr_str(out, "\"uuid\":");
    *uuid_at = put_uuid(out);
    if (uuid.p == NULL && !empty)
        wr_u8(out, ',');
    copy_line(out, resume, end);
    return wr_err(out);
}
