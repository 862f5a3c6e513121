/*
 * The strict checker: RFC 8259 grammar, UTF-8 and escapes, in one pass with one bit a level instead
 * of recursion. Numbers are checked as text only, so their size does not matter. Pure, any thread.
 */
#include "schema/json_int.h"

static const uint8_t *fail(struct js_check *c, const uint8_t *at, const char *reason)
{
    c->at = at;
    c->reason = reason;
    c->err = E_SYNTAX;
    return NULL;
}

static inline bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_hex(uint8_t c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static const uint8_t *check_escape(struct js_check *c, const uint8_t *p)
{
    if (c->end - p < 2)
        return fail(c, p, "input ends inside an escape");
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 2;
    case 'u':
        for (int i = 2; i < 6; i++) {
            if (c->end - p <= i)
                return fail(c, p, "input ends inside an escape");
            if (!is_hex(p[i]))
                return fail(c, p, "an escape \\u without four hex digits");
        }
        return p + 6;
    default:
        return fail(c, p, "unknown escape in a string");
    }
}

const uint8_t *js_check_string(struct js_check *c, const uint8_t *p)
{
    for (;;) {
        p = js_plain_run(p, c->end);
        if (p == c->end)
            return fail(c, p, "input ends inside a string");
        if (*p == '"')
            return p + 1;
        if (*p == '\\') {
            if ((p = check_escape(c, p)) == NULL)
                return NULL;
        } else if (*p < 0x20) {
            return fail(c, p, "raw control character in a string");
        } else {
            /* text in other scripts comes in runs: stay here until ASCII is back */
            do {
                size_t n = utf8_len(p, c->end);

                if (n == 0 && !c->lax)
                    return fail(c, p, "invalid UTF-8 in a string");
                c->dirty |= n == 0;
                p += n == 0 ? 1 : n;
            } while (p < c->end && *p >= 0x80);
        }
    }
}

static const uint8_t *digits(struct js_check *c, const uint8_t *p)
{
    if (p == c->end || !is_digit(*p))
        return fail(c, p, "a digit is missing in a number");
    while (p < c->end && is_digit(*p))
        p++;
    return p;
}

static const uint8_t *check_number(struct js_check *c, const uint8_t *p)
{
    if (*p == '-')
        p++;
    if (p < c->end && *p == '0')
        p++; /* a digit behind it is not part of the number: the caller refuses it */
    else if ((p = digits(c, p)) == NULL)
        return NULL;
    if (p < c->end && *p == '.' && (p = digits(c, p + 1)) == NULL)
        return NULL;
    if (p < c->end && (*p | 0x20) == 'e') {
        p++;
        if (p < c->end && (*p == '+' || *p == '-'))
            p++;
        p = digits(c, p);
    }
    return p;
}

static const uint8_t *check_word(struct js_check *c, const uint8_t *p, const char *word, size_t n)
{
    if ((size_t)(c->end - p) < n || memcmp(p, word, n) != 0)
        return fail(c, p, "a value is expected");
    return p + n;
}

static const uint8_t *check_scalar(struct js_check *c, const uint8_t *p)
{
    switch (*p) {
    case '"':
        return js_check_string(c, p + 1);
    case 't':
        return check_word(c, p, "true", 4);
    case 'f':
        return check_word(c, p, "false", 5);
    case 'n':
        return check_word(c, p, "null", 4);
    default:
        if (*p == '-' || is_digit(*p))
            return check_number(c, p);
        return fail(c, p, "a value is expected");
    }
}

/* White space between the tokens of a pair. */
static inline const uint8_t *inner_ws(struct js_check *c, const uint8_t *p)
{
    if (p < c->end && *p <= ' ') {
        c->spaced = true;
        p = js_ws(p, c->end);
    }
    return p;
}

/* A key and its colon; the next byte is where the value begins. */
static const uint8_t *check_key(struct js_check *c, const uint8_t *p)
{
    if (p == c->end || *p != '"')
        return fail(c, p, "a key is expected");
    if ((p = js_check_string(c, p + 1)) == NULL)
        return NULL;
    p = inner_ws(c, p);
    if (p == c->end || *p != ':')
        return fail(c, p, "a colon is expected");
    return inner_ws(c, p + 1);
}

static inline bool in_object(const struct js_check *c)
{
    size_t level = c->depth - 1;

    return (c->stack[level / 8] >> (level % 8) & 1) != 0;
}

/* p on the bracket. Behind it stands the first value (after its key), or *closed: the pair is
 * empty. */
static const uint8_t *open_pair(struct js_check *c, const uint8_t *p, bool *closed)
{
    bool object = *p == '{';
    uint8_t bit = (uint8_t)(1u << (c->depth % 8));
    uint8_t *byte = &c->stack[c->depth / 8];

    if (c->depth == SC_JSON_MAX_DEPTH) {
        (void)fail(c, p, "nested too deeply");
        c->err = E_LIMIT;
        return NULL;
    }
    p = inner_ws(c, p + 1);
    if (p < c->end && *p == (object ? '}' : ']')) {
        *closed = true;
        return p + 1;
    }
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    c->depth++;
    return object ? check_key(c, p) : p;
}

/* p behind a value: closes pairs until the next value begins, or *done: all are closed. */
static const uint8_t *behind_value(struct js_check *c, const uint8_t *p, bool *done)
{
    while (c->depth > 0) {
        bool object = in_object(c);

        p = inner_ws(c, p);
        if (p == c->end)
            return fail(c, p,
                        object ? "input ends inside an object" : "input ends inside an array");
        if (*p == ',') {
            p = inner_ws(c, p + 1);
            return object ? check_key(c, p) : p;
        }
        if (*p != (object ? '}' : ']'))
            return fail(c, p, object ? "a comma or } is expected" : "a comma or ] is expected");
        p++;
        c->depth--;
    }
    *done = true;
    return p;
}

const uint8_t *js_check_value(struct js_check *c, const uint8_t *p)
{
    bool done = false;

    c->depth = 0;
    c->stack[0] = 0;
    while (!done) {
        bool scalar = true;

        if (p == c->end)
            return fail(c, p, "input ends where a value is expected");
        if (*p == '{' || *p == '[') {
            scalar = false;
            p = open_pair(c, p, &scalar); /* an empty pair is as good as a scalar */
        } else {
            p = check_scalar(c, p);
        }
        if (p == NULL)
            return NULL;
        if (scalar && (p = behind_value(c, p, &done)) == NULL)
            return NULL;
    }
    return p;
}

static int report(const struct js_check *c, struct span text, struct sc_json_error *err)
{
    *err = (struct sc_json_error){.at = (size_t)(c->at - text.p), .reason = c->reason};
    return c->err;
}

static const uint8_t *begin(struct js_check *c, struct span text, const uint8_t *p)
{
    static const uint8_t bom[3] = {0xef, 0xbb, 0xbf};

    c->end = text.p + text.n;
    c->lax = c->dirty = c->spaced = false;
    c->at = p;
    c->reason = NULL;
    c->err = 0;
    if (p == text.p && span_has_prefix(text, span_of(bom, sizeof bom)))
        return fail(c, p, "byte order mark");
    return js_ws(p, c->end);
}

int sc_json_check(struct span text, struct sc_json_error *err)
{
    struct js_check c;
    const uint8_t *p;

    *err = (struct sc_json_error){0};
    if (text.p == NULL)
        text = span_of("", 0);
    if ((p = begin(&c, text, text.p)) == NULL || (p = js_check_value(&c, p)) == NULL)
        return report(&c, text, err);
    p = js_ws(p, c.end);
    if (p != c.end) {
        (void)fail(&c, p, "bytes behind the value");
        return report(&c, text, err);
    }
    return 0;
}

/* p on the closing bracket: nothing but white space may follow. */
static int array_end(struct js_check *c, struct span text, const uint8_t *p, size_t *pos,
                     struct sc_json_error *err)
{
    const uint8_t *tail = js_ws(p + 1, c->end);

    if (tail != c->end) {
        (void)fail(c, tail, "bytes behind the array");
        return report(c, text, err);
    }
    *pos = (size_t)(p - text.p);
    return E_NOTFOUND;
}

int sc_json_array_next(struct span text, size_t *pos, struct sc_json_value *out,
                       struct sc_json_error *err)
{
    struct js_check c;
    const uint8_t *p, *value;
    bool first = *pos == 0;

    *out = (struct sc_json_value){0};
    *err = (struct sc_json_error){0};
    if (text.p == NULL)
        text = span_of("", 0);
    if (*pos > text.n)
        return E_NOTFOUND;
    if ((p = begin(&c, text, text.p + *pos)) == NULL)
        goto bad;
    if (p == c.end || (first && *p != '[')) {
        (void)fail(&c, p, first ? "an array is expected" : "input ends inside an array");
        goto bad;
    }
    if (!first && *p == ']')
        return array_end(&c, text, p, pos, err);
    if (!first && *p != ',') {
        (void)fail(&c, p, "a comma or ] is expected");
        goto bad;
    }
    p = js_ws(p + 1, c.end);
    if (first && p < c.end && *p == ']')
        return array_end(&c, text, p, pos, err);
    value = p;
    if ((p = js_check_value(&c, p)) == NULL)
        goto bad;
    *pos = (size_t)(p - text.p);
    *out = (struct sc_json_value){.kind = js_kind(*value),
                                  .text = span_of(value, (size_t)(p - value))};
    return 0;
bad:
    return report(&c, text, err);
}
