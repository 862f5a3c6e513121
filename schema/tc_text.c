/*
 * Strings, keys and raw JSON on their way to Avro. Bytes that are not UTF-8 and lone surrogates
 * become U+FFFD, since Avro's strings must be UTF-8; NUL is a byte like any other. Also the growing
 * of the buffers and the path of an error. Pure; one thread a run.
 */
#include "base/mem.h"
#include "schema/tc_int.h"

#define BUFFER_MAX ((size_t)1 << 30) /* so that offsets fit pieces */

const uint8_t *tc_fail(struct tc *t, int err, const uint8_t *at, const char *reason)
{
    t->err = err;
    t->at = at;
    t->reason = reason;
    return NULL;
}

/* --- structure --- */

const uint8_t *tc_next_slow(struct tc *t, const uint8_t *p, uint8_t close)
{
    p = js_ws(p, t->end);
    if (p == t->end)
        return tc_fail(t, E_SYNTAX, p, "input ends inside an object or array");
    if (*p == close)
        return p;
    if (*p != ',')
        return tc_fail(t, E_SYNTAX, p, "a comma or a closing bracket is expected");
    p = js_ws(p + 1, t->end);
    if (p == t->end || *p == close || (close == '}' && *p != '"'))
        return tc_fail(t, E_SYNTAX, p, close == '}' ? "a key is expected" : "a value is expected");
    return p;
}

const uint8_t *tc_colon(struct tc *t, const uint8_t *p)
{
    p = js_ws(p, t->end);
    if (p == t->end || *p != ':')
        return tc_fail(t, E_SYNTAX, p, "a colon is expected");
    p = js_ws(p + 1, t->end);
    if (p == t->end)
        return tc_fail(t, E_SYNTAX, p, "input ends where a value is expected");
    return p;
}

/* --- buffers --- */

bool tc_grow(struct tc *t, size_t n)
{
    size_t used = (size_t)(t->o - t->o_base), cap = (size_t)(t->o_end - t->o_base);
    uint8_t *p;

    if (n > BUFFER_MAX - used) {
        (void)tc_fail(t, E_LIMIT, t->doc, "the record is too large");
        return false;
    }
    cap = cap < 4096 ? 4096 : cap * 2;
    if (cap < used + n)
        cap = used + n;
    if ((p = mem_realloc(t->o_base, cap + TC_SLACK)) == NULL) {
        t->err = E_NOMEM;
        return false;
    }
    t->o_base = p;
    t->o = p + used;
    t->o_end = p + cap;
    return true;
}

bool tc_grow_pieces(struct tc *t, size_t n)
{
    size_t cap = t->pieces_cap < 256 ? 256 : t->pieces_cap * 2;
    struct tc_piece *p;

    if (cap < t->pieces_n + n)
        cap = t->pieces_n + n;
    if (cap > BUFFER_MAX / sizeof *p || (p = mem_realloc(t->pieces, cap * sizeof *p)) == NULL) {
        t->err = E_NOMEM;
        return false;
    }
    t->pieces = p;
    t->pieces_cap = cap;
    return true;
}

bool tc_grow_text(struct tc *t, size_t n)
{
    uint8_t *p;

    if (n <= t->text_cap)
        return true;
    n = n < 256 ? 256 : n;
    if ((p = mem_realloc(t->text, n)) == NULL) {
        t->err = E_NOMEM;
        return false;
    }
    t->text = p;
    t->text_cap = n;
    return true;
}

/* One token of the pointer of an error, escaped. A path that is full stays as it is. */
void tc_path_push(struct tc *t, struct span token)
{
    size_t n = t->path_n;

    if (t->path_full)
        return;
    for (size_t i = 0; i <= token.n; i++) {
        uint8_t c = i == 0 ? '/' : token.p[i - 1];
        bool escape = i > 0 && (c == '/' || c == '~');

        if (n + 2 > sizeof t->path - sizeof "...") {
            memcpy(t->path + t->path_n, "...", sizeof "...");
            t->path_full = true;
            return;
        }
        if (escape)
            t->path[n++] = '~';
        t->path[n++] = escape ? (c == '/' ? '1' : '0') : (char)(c < 0x20 ? '?' : c);
    }
    t->path[n] = 0;
    t->path_n = n;
}

/* --- strings --- */

static const uint8_t *bad_string(struct tc *t, const uint8_t *p)
{
    if (p < t->end && *p == '\\')
        return tc_fail(t, E_SYNTAX, p, "a broken escape in a string");
    return tc_fail(t, E_SYNTAX, p,
                   p < t->end ? "raw control character in a string" : "input ends inside a string");
}

/* p behind the opening quote: the closing one; *clean: nothing has to be rewritten. */
static const uint8_t *string_end(struct tc *t, const uint8_t *p, bool *clean)
{
    *clean = true;
    for (;;) {
        size_t n;

        p = js_plain_run(p, t->end);
        if (p == t->end)
            return bad_string(t, p);
        if (*p == '"')
            return p;
        if (*p == '\\') {
            *clean = false;
            if (t->end - p < 2)
                return bad_string(t, t->end);
            p += 2;
        } else if (*p < 0x20) {
            return bad_string(t, p);
        } else {
            do {
                n = utf8_len(p, t->end);
                *clean = *clean && n > 0;
                p += n > 0 ? n : 1;
            } while (p < t->end && *p >= 0x80);
        }
    }
}

/* Rewrites [p, end) to at most three times its length; the byte behind, NULL at a broken escape. */
static uint8_t *rewrite(struct tc *t, const uint8_t *p, const uint8_t *end, uint8_t *to)
{
    while (p < end) {
        const uint8_t *run = js_plain_run(p, end);
        size_t n = (size_t)(run - p), taken;

        memcpy(to, p, n);
        to += n;
        if ((p = run) == end)
            break;
        if (*p == '\\') {
            if ((taken = js_unescape(p, end, to, &n)) == 0) {
                (void)bad_string(t, p);
                return NULL;
            }
        } else if ((taken = n = utf8_len(p, end)) > 0) {
            memcpy(to, p, n);
        } else {
            memcpy(to, "\xef\xbf\xbd", 3);
            n = 3;
            taken = 1;
        }
        p += taken;
        to += n;
    }
    return to;
}

/* [p, end) was rewritten to at + 10: puts its length in front. */
static void put_length(struct tc *t, uint8_t *at, const uint8_t *to)
{
    size_t n = (size_t)(to - (at + 10));
    uint8_t *body = tc_long(at, (int64_t)n);

    memmove(body, at + 10, n);
    t->o = body + n;
}

static void put_bytes(struct tc *t, const uint8_t *p, size_t n)
{
    uint8_t *o = tc_long(t->o, (int64_t)n);

    if (n <= 16 && t->end - p >= 16)
        memcpy(o, p, 16);
    else
        memcpy(o, p, n);
    t->o = o + n;
}

const uint8_t *tc_string(struct tc *t, const uint8_t *p)
{
    const uint8_t *q = js_plain_run(p + 1, t->end);
    bool clean = true;
    size_t n;

    p++;
    if (q == t->end || *q != '"') {
        if ((q = string_end(t, p, &clean)) == NULL)
            return NULL;
    }
    n = (size_t)(q - p);
    if (clean) {
        if (!tc_room(t, n + 10))
            return NULL;
        put_bytes(t, p, n);
    } else {
        uint8_t *to;

        if (!tc_room(t, 3 * n + 14) || (to = rewrite(t, p, q, t->o + 10)) == NULL)
            return NULL;
        put_length(t, t->o, to);
    }
    return q + 1;
}

const uint8_t *tc_text(struct tc *t, const uint8_t *p, struct span *out)
{
    bool clean;
    const uint8_t *q = string_end(t, ++p, &clean), *to;
    size_t n;

    if (q == NULL)
        return NULL;
    n = (size_t)(q - p);
    *out = span_of(p, n);
    if (!clean) {
        if (!tc_grow_text(t, 3 * n + 4) || (to = rewrite(t, p, q, t->text)) == NULL)
            return NULL;
        *out = span_of(t->text, (size_t)(to - t->text));
    }
    return q + 1;
}

const uint8_t *tc_member_slow(struct tc *t, const struct pg_names *names, size_t ordinal,
                              const uint8_t *p, uint32_t *index)
{
    struct span key;
    uint32_t i;

    if ((p = tc_text(t, p, &key)) == NULL)
        return NULL;
    *index = TC_UNKNOWN;
    if (names->n == 0)
        return tc_colon(t, p);
    for (i = pg_hash(key) & names->table_mask; names->table[i] != 0;
         i = (i + 1) & names->table_mask) {
        if (span_eq(names->names[names->table[i] - 1].s, key)) {
            *index = names->table[i] - 1;
            break;
        }
    }
    if (ordinal < names->n && t->guesses != NULL && *index != TC_UNKNOWN)
        t->guesses[names->guess_at + ordinal] = (uint16_t)*index;
    return tc_colon(t, p);
}

/* --- raw values --- */

const uint8_t *tc_skip(struct tc *t, const uint8_t *p)
{
    t->check.dirty = t->check.spaced = false;
    if ((p = js_check_value(&t->check, p)) == NULL)
        (void)tc_fail(t, t->check.err, t->check.at, t->check.reason);
    return p;
}

/* A checked value without white space between tokens, its strings made UTF-8. */
static uint8_t *put_minified(const uint8_t *p, const uint8_t *end, uint8_t *to)
{
    while ((p = js_ws(p, end)) < end) {
        const uint8_t *q;

        if (*p != '"') {
            *to++ = *p++;
            continue;
        }
        q = js_skip_string(p + 1, end);
        while (p < q) {
            size_t n = utf8_len(p, q);

            memcpy(to, n > 0 ? (const char *)p : "\xef\xbf\xbd", n > 0 ? n : 3);
            to += n > 0 ? n : 3;
            p += n > 0 ? n : 1;
        }
    }
    return to;
}

const uint8_t *tc_raw(struct tc *t, const uint8_t *p)
{
    const uint8_t *q = tc_skip(t, p);
    size_t n;

    if (q == NULL)
        return NULL;
    n = (size_t)(q - p);
    if (!t->check.dirty && !t->check.spaced) {
        if (!tc_room(t, n + 10))
            return NULL;
        put_bytes(t, p, n);
        return q;
    }
    if (!tc_room(t, (t->check.dirty ? 3 : 1) * n + 10))
        return NULL;
    put_length(t, t->o, put_minified(p, q, t->o + 10));
    return q;
}

const uint8_t *tc_raw_key(struct tc *t, const uint8_t *p)
{
    const uint8_t *q = tc_skip(t, p);
    size_t n = q == NULL ? 0 : (size_t)(q - p);

    if (q == NULL || !tc_grow_text(t, n + JS_CANON_MORE))
        return NULL;
    n = js_canon(span_of(p, n), t->text);
    if (!tc_room(t, 3 * n + 10))
        return NULL;
    put_length(t, t->o, put_minified(t->text, t->text + n, t->o + 10));
    return q;
}
