/*
 * Private to schema/tc_*.c and transcode.c: the state of one run and the steps that everything is
 * made of. A step takes the place of a value's first byte and answers the byte behind it, or NULL
 * with err set. E_INVALID and E_RANGE are *misfits*: the walk may go on behind the value, since a
 * later duplicate may replace it. All others end the run.
 */
#pragma once

#include "schema/json_int.h"
#include "schema/program.h"
#include "schema/transcode.h"

#define TC_SLACK 32 /* writable bytes behind o_end: copies go in steps of 16 */

/* Bytes of the output, or where a value stands that does not fit. */
struct tc_piece {
    uint32_t at;  /* offset in the output; TC_MISFIT: in the document */
    uint32_t len; /* bytes + 1; 0: absent */
};
#define TC_MISFIT UINT32_MAX

/* Does it say where bytes are? One look: 0 and TC_MISFIT are neighbours. */
static inline bool tc_piece_is_set(const struct tc_piece *piece)
{
    return piece->len + 1 > 1;
}

struct tc {
    const uint8_t *doc, *end;
    uint8_t *o, *o_base, *o_end; /* output: next byte, first byte, hard end */
    struct tc_piece *pieces;     /* a stack: slots, then one frame a record */
    size_t pieces_n, pieces_cap;
    uint16_t *guesses;
    size_t guesses_cap;
    const uint8_t *taps; /* for the next record: pg_entry.taps */
    const uint8_t *tapped[PG_MAX_TAPS];
    uint8_t *text; /* an unescaped key or text */
    size_t text_cap;
    struct js_check check;
    /* errors */
    int err;
    const char *reason;
    const uint8_t *at;
    bool trace; /* note the path of the first misfit */
    bool path_full;
    size_t path_n;
    char path[sizeof((struct sc_transcode_error *)0)->pointer];
};

const uint8_t *tc_fail(struct tc *t, int err, const uint8_t *at, const char *reason);
/* Makes room for n more bytes and the slack. false: E_NOMEM or E_LIMIT. */
bool tc_grow(struct tc *t, size_t n);
bool tc_grow_pieces(struct tc *t, size_t n);
bool tc_grow_text(struct tc *t, size_t n);
void tc_path_push(struct tc *t, struct span token);

static inline const uint8_t *tc_misfit(struct tc *t, const uint8_t *at, const char *reason)
{
    return tc_fail(t, E_INVALID, at, reason);
}
static inline bool tc_is_misfit(const struct tc *t)
{
    return t->err == E_INVALID || t->err == E_RANGE;
}

static inline bool tc_room(struct tc *t, size_t n)
{
    return __builtin_expect((size_t)(t->o_end - t->o) >= n, 1) || tc_grow(t, n);
}

/* Room for n pieces on top. */
static inline bool tc_room_pieces(struct tc *t, size_t n)
{
    return __builtin_expect(t->pieces_cap - t->pieces_n >= n, 1) || tc_grow_pieces(t, n);
}

/* Zigzag varint; room for 10 bytes is there. */
static inline uint8_t *tc_long(uint8_t *o, int64_t v)
{
    uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);

    while (z >= 0x80) {
        *o++ = (uint8_t)(z | 0x80);
        z >>= 7;
    }
    *o++ = (uint8_t)z;
    return o;
}

/* Copies within our own buffers, which have slack on both sides. */
static inline void tc_copy(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n > 64) {
        memcpy(to, from, n);
        return;
    }
    memcpy(to, from, 16);
    for (size_t i = 16; i < n; i += 16)
        memcpy(to + i, from + i, 16);
}

/* The same downwards over bytes that begin at least 16 further up. */
static inline void tc_copy_down(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n > 128) {
        memmove(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i += 16)
        memcpy(to + i, from + i, 16);
}

/* Few at a time: a call would cost more. */
static inline void tc_clear(struct tc_piece *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (struct tc_piece){0, 0};
}

/* --- structure: each answers NULL, with err set, where the grammar breaks --- */

/* p on the bracket; on the first key's quote, the first element, or the closing bracket. */
static inline const uint8_t *tc_open(struct tc *t, const uint8_t *p, uint8_t close)
{
    p = js_ws(p + 1, t->end);
    if (p == t->end)
        return tc_fail(t, E_SYNTAX, p, "input ends inside an object or array");
    if (close == '}' && *p != '"' && *p != '}')
        return tc_fail(t, E_SYNTAX, p, "a key is expected");
    return p;
}

/* p behind a value; on the next key or element, or on the closing bracket. */
const uint8_t *tc_next_slow(struct tc *t, const uint8_t *p, uint8_t close);

static inline const uint8_t *tc_next(struct tc *t, const uint8_t *p, uint8_t close)
{
    if (t->end - p >= 2) { /* without white space, as nearly always */
        if (*p == close)
            return p;
        if (*p == ',' && (close == '}' ? p[1] == '"' : p[1] > ' ' && p[1] != close))
            return p + 1;
    }
    return tc_next_slow(t, p, close);
}

/* p behind a key; on the value. */
const uint8_t *tc_colon(struct tc *t, const uint8_t *p);

#define TC_UNKNOWN UINT32_MAX

/* p on a key's opening quote, the ordinal-th of its object. *index: which of names, TC_UNKNOWN:
 * none. On the value. */
const uint8_t *tc_member_slow(struct tc *t, const struct pg_names *names, size_t ordinal,
                              const uint8_t *p, uint32_t *index);

/* Does the token of nm stand at q, and a value without white space behind it? */
static inline bool tc_token_at(const struct tc *t, const struct pg_name *nm, const uint8_t *q)
{
    size_t n = nm->token.n;

    if ((size_t)(t->end - q) <= nm->reach)
        return false;
#if defined(__SSE2__)
    {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)q);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)nm->head);
        unsigned same = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));

        if ((same & nm->mask) != nm->mask)
            return false;
    }
    return q[n] > ' ' && (n <= 16 || memcmp(q + 16, nm->token.p + 16, n - 16) == 0);
#else
    return q[n] > ' ' && memcmp(q, nm->token.p, n) == 0;
#endif
}

static inline const uint8_t *tc_member(struct tc *t, const struct pg_names *names, size_t ordinal,
                                       const uint8_t *p, uint32_t *index)
{
    if (ordinal < names->n && t->guesses != NULL) {
        uint32_t guess = t->guesses[names->guess_at + ordinal];

        if (tc_token_at(t, &names->names[guess], p + 1)) {
            *index = guess;
            return p + 1 + names->names[guess].token.n;
        }
    }
    return tc_member_slow(t, names, ordinal, p, index);
}

/* The text of the string at p, unescaped; lives until the next text. The byte behind it. */
const uint8_t *tc_text(struct tc *t, const uint8_t *p, struct span *out);
/* Checks a value and drops it. */
const uint8_t *tc_skip(struct tc *t, const uint8_t *p);
/* Writes the string at p, with its length in front. */
const uint8_t *tc_string(struct tc *t, const uint8_t *p);
/* Writes a value as JSON text without white space, with its length in front. */
const uint8_t *tc_raw(struct tc *t, const uint8_t *p);
/* The same of a scalar, in the only spelling of equal ones. */
const uint8_t *tc_raw_key(struct tc *t, const uint8_t *p);

/* How each kind of value is written, by enum pg_op. */
typedef const uint8_t *tc_put_fn(struct tc *t, const struct pg_node *node, const uint8_t *p);
extern tc_put_fn *const tc_puts[];
/* A null with its branch; room for a byte is there. */
const uint8_t *tc_null(struct tc *t, const struct pg_node *node, const uint8_t *p);

/* Writes any value. */
static inline const uint8_t *tc_value(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    if (node->nullable && node->op != PG_PUBLISHED) {
        if (!tc_room(t, 1))
            return NULL;
        if (*p == 'n')
            return tc_null(t, node, p);
        *t->o++ = (uint8_t)(node->value_branch << 1);
    }
    return tc_puts[node->op](t, node, p);
}

/* What tc_piece_of does after a failure. */
const uint8_t *tc_piece_failed(struct tc *t, const uint8_t *p, size_t at, size_t pieces_n,
                               uint32_t *piece_at, uint32_t *piece_len);

/* The same for a location whose misfit may still be replaced: the piece says what became of it.
 * NULL only when the run is over. Two numbers, not a struct: what is stored as two halves and
 * loaded as one at once stalls the processor. */
static inline const uint8_t *tc_piece_of(struct tc *t, const struct pg_node *node, const uint8_t *p,
                                         uint32_t *piece_at, uint32_t *piece_len)
{
    size_t at = (size_t)(t->o - t->o_base), pieces_n = t->pieces_n;
    const uint8_t *q = tc_value(t, node, p);

    if (__builtin_expect(q == NULL, 0))
        return tc_piece_failed(t, p, at, pieces_n, piece_at, piece_len);
    *piece_at = (uint32_t)at;
    *piece_len = (uint32_t)((size_t)(t->o - t->o_base) - at + 1);
    return q;
}
