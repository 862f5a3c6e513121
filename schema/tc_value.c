/*
 * Each kind of value. Recursion follows the program, whose depth is bounded; what lies deeper in a
 * document is raw text or skipped, both without recursion. Pure; one thread a run.
 */
#include <stdio.h>

#include "schema/digits.h"
#include "schema/number.h"
#include "schema/tc_int.h"
#include "schema/text.h"

static const uint8_t *word(struct tc *t, const uint8_t *p, const char *w, size_t n)
{
    if ((size_t)(t->end - p) < n || memcmp(p, w, n) != 0)
        return tc_fail(t, E_SYNTAX, p, "a value is expected");
    return p + n;
}

static inline bool is_number(uint8_t c)
{
    return c == '-' || (uint8_t)(c - '0') < 10;
}

static const uint8_t *scan(struct tc *t, const uint8_t *p, struct sc_num *n)
{
    const uint8_t *q = sc_num_scan(p, t->end, n);

    return q == NULL ? tc_fail(t, E_SYNTAX, p, "a digit is missing in a number") : q;
}

/* A value of another type than the schema's: still, it must be JSON. */
static const uint8_t *wrong(struct tc *t, const uint8_t *p, const char *reason)
{
    if (tc_skip(t, p) == NULL)
        return NULL;
    return tc_misfit(t, p, *p == 'n' ? "null is not admitted here" : reason);
}

/* --- scalars --- */

static const uint8_t *put_bool(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    const uint8_t *q;

    (void)node;
    if (*p != 't' && *p != 'f')
        return wrong(t, p, "a boolean is expected");
    q = *p == 't' ? word(t, p, "true", 4) : word(t, p, "false", 5);
    if (q == NULL || !tc_room(t, 1))
        return NULL;
    *t->o++ = *p == 't';
    return q;
}

/* An integer of up to 18 digits without ornaments, as nearly all are. NULL: look closer. */
static inline const uint8_t *plain_long(const uint8_t *p, const uint8_t *end, int64_t *out)
{
    bool negative = *p == '-';
    const uint8_t *first = p + negative;
    uint64_t v = 0;

    if (end - first >= 2 && (uint8_t)(first[0] - '0') < 10 && (uint8_t)(first[1] - '0') >= 10) {
        v = (uint8_t)(first[0] - '0'); /* one digit: so frequent that it is worth a guess */
        p = first + 1;
    } else {
        p = dg_take(first, end, &v);
    }
    if (p == first || p - first > 18 || p == end || *p == '.' || (*p | 0x20) == 'e' ||
        (*first == '0' && p - first > 1))
        return NULL;
    *out = negative ? -(int64_t)v : (int64_t)v;
    return p;
}

static const uint8_t *put_long(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct sc_num n;
    const uint8_t *q;
    int64_t v;
    int err;

    (void)node;
    if ((q = plain_long(p, t->end, &v)) != NULL) {
        if (!tc_room(t, 10))
            return NULL;
        t->o = tc_long(t->o, v);
        return q;
    }
    if (!is_number(*p))
        return wrong(t, p, "an integer is expected");
    if ((q = scan(t, p, &n)) == NULL || !tc_room(t, 10))
        return NULL;
    if ((err = sc_num_i64(&n, &v)) < 0)
        return tc_fail(t, err, p,
                       err == E_RANGE ? "an integer beyond 64 bits" : "an integer is expected");
    t->o = tc_long(t->o, v);
    return q;
}

static const uint8_t *put_double_of(struct tc *t, const struct pg_node *node, double d,
                                    const uint8_t *q)
{
    uint64_t bits;

    if (!tc_room(t, 8))
        return NULL;
    if (node->key && d == 0)
        d = 0; /* not -0 */
    memcpy(&bits, &d, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    memcpy(t->o, &bits, 8);
    t->o += 8;
    return q;
}

static const uint8_t *put_double(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct sc_num n;
    const uint8_t *q;

    if (!is_number(*p))
        return wrong(t, p, "a number is expected");
    if ((q = scan(t, p, &n)) == NULL)
        return NULL;
    return put_double_of(t, node, sc_num_double(&n), q);
}

static const uint8_t *put_number_text(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct span text;
    const uint8_t *q;
    double d;

    if (*p != '"')
        return is_number(*p) ? put_double(t, node, p)
                             : wrong(t, p, "a number or its text is expected");
    if ((q = tc_text(t, p, &text)) == NULL)
        return NULL;
    if (sc_num_parse_text(text, &d) < 0)
        return tc_misfit(t, p, "a text that is not a number");
    return put_double_of(t, node, d, q);
}

static const uint8_t *put_text_number(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct sc_num n;
    const uint8_t *q;
    uint8_t *body;
    size_t len;
    int err;

    (void)node;
    if (*p == '"')
        return tc_string(t, p);
    if (!is_number(*p))
        return wrong(t, p, "a string or an integer is expected");
    if ((q = scan(t, p, &n)) == NULL || !tc_room(t, n.text.n + SC_NUM_MAX_ZEROS + 12))
        return NULL;
    if ((err = sc_num_text(&n, t->o + 10, &len)) < 0)
        return tc_fail(t, err, p,
                       err == E_RANGE ? "an integer with too many digits"
                                      : "a string or an integer is expected");
    body = tc_long(t->o, (int64_t)len);
    memmove(body, t->o + 10, len);
    t->o = body + len;
    return q;
}

static const uint8_t *put_formatted(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    static const char *const reasons[] = {
        [PG_DATE] = "a date is expected (YYYY-MM-DD)",
        [PG_TIME] = "a time is expected (RFC 3339)",
        [PG_UUID] = "a UUID is expected",
        [PG_DURATION] = "a duration is expected (ISO 8601)",
    };
    enum pg_op op = node->op;
    uint32_t parts[3];
    struct span text;
    const uint8_t *q;
    char uuid[36];
    int64_t v = 0;
    int err;

    if (*p != '"')
        return wrong(t, p, reasons[op]);
    if ((q = tc_text(t, p, &text)) == NULL || !tc_room(t, 40))
        return NULL;
    if (op == PG_DATE)
        err = sc_text_date(text, &v);
    else if (op == PG_TIME)
        err = sc_text_time(text, &v);
    else if (op == PG_UUID)
        err = sc_text_uuid(text, uuid);
    else
        err = sc_text_duration(text, parts);
    if (err < 0)
        return tc_fail(t, err == E_RANGE ? err : E_INVALID, p, reasons[op]);
    if (op == PG_UUID) {
        t->o = tc_long(t->o, 36);
        memcpy(t->o, uuid, 36);
        t->o += 36;
    } else if (op == PG_DURATION) {
        for (unsigned i = 0; i < 12; i++)
            *t->o++ = (uint8_t)(parts[i / 4] >> 8 * (i % 4));
    } else {
        t->o = tc_long(t->o, v);
    }
    return q;
}

/* The two that look at what the store itself wrote: nothing in them is a misfit. */
static const uint8_t *put_meta(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct span text = {NULL, 0};
    const uint8_t *q = *p == '"' ? tc_text(t, p, &text) : tc_skip(t, p);
    int64_t v;

    if (q == NULL || !tc_room(t, 12))
        return NULL;
    if (node->op == PG_DELETED) {
        *t->o++ = span_eq_str(text, "d") ? 2 : 0;
        return q;
    }
    if (sc_text_uuid_time(text, &v) < 0) {
        *t->o++ = (uint8_t)(node->null_branch << 1);
        return q;
    }
    *t->o++ = (uint8_t)(node->value_branch << 1);
    t->o = tc_long(t->o, v);
    return q;
}

/* --- arrays and maps: one block, then the empty one --- */

/* A block of n items was written behind at + 1: puts the count in front and the end behind. */
static bool close_block(struct tc *t, size_t at, uint64_t n)
{
    uint8_t count[10], *body;
    size_t bytes, len;

    if (!tc_room(t, 12))
        return false;
    if (n == 0) {
        t->o_base[at] = 0;
        return true;
    }
    bytes = (size_t)(tc_long(count, (int64_t)n) - count);
    body = t->o_base + at + 1;
    len = (size_t)(t->o - body);
    if (bytes > 1)
        memmove(body + bytes - 1, body, len);
    memcpy(t->o_base + at, count, bytes);
    t->o += bytes - 1;
    *t->o++ = 0;
    return true;
}

static const uint8_t *retrace_index(struct tc *t, const struct pg_node *node, const uint8_t *p,
                                    uint64_t index, bool trace)
{
    char text[24];

    t->trace = trace;
    if (!trace || !tc_is_misfit(t))
        return NULL;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)index);
    tc_path_push(t, span_str(text));
    (void)tc_value(t, node, p);
    return NULL;
}

static const uint8_t *put_array(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    bool trace = t->trace;
    uint64_t n = 0;
    size_t at;

    if (*p != '[')
        return wrong(t, p, "an array is expected");
    if (!tc_room(t, 1))
        return NULL;
    at = (size_t)(t->o++ - t->o_base);
    if ((p = tc_open(t, p, ']')) == NULL)
        return NULL;
    while (*p != ']') {
        const uint8_t *value = p;

        t->trace = false;
        if ((p = tc_value(t, node->elem, p)) == NULL)
            return retrace_index(t, node->elem, value, n, trace);
        n++;
        if ((p = tc_next(t, p, ']')) == NULL)
            return NULL;
    }
    t->trace = trace;
    return close_block(t, at, n) ? p + 1 : NULL;
}

/* The member whose key is at `key` and whose value at `value` is a misfit. */
static const uint8_t *retrace_member(struct tc *t, const struct pg_node *node, const uint8_t *key,
                                     const uint8_t *value, bool trace)
{
    struct span name;

    t->trace = trace;
    if (!trace || !tc_is_misfit(t) || tc_text(t, key, &name) == NULL)
        return NULL;
    tc_path_push(t, name);
    (void)tc_value(t, node, value);
    return NULL;
}

static const uint8_t *put_map(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    bool trace = t->trace;
    uint64_t n = 0;
    size_t at;

    if (*p != '{')
        return wrong(t, p, "an object is expected");
    if (!tc_room(t, 1))
        return NULL;
    at = (size_t)(t->o++ - t->o_base);
    if ((p = tc_open(t, p, '}')) == NULL)
        return NULL;
    while (*p != '}') {
        const uint8_t *key = p, *value;

        t->trace = false;
        if ((p = tc_string(t, p)) == NULL || (value = tc_colon(t, p)) == NULL)
            return NULL;
        if ((p = tc_value(t, node->elem, value)) == NULL)
            return retrace_member(t, node->elem, key, value, trace);
        n++;
        if ((p = tc_next(t, p, '}')) == NULL)
            return NULL;
    }
    t->trace = trace;
    return close_block(t, at, n) ? p + 1 : NULL;
}

/* --- records --- */

/* A frame on the stack of pieces: one for each field, then those of the extras as they come. */
struct record {
    const struct pg_record *def;
    const uint8_t *taps;
    size_t pieces;   /* where the frame begins */
    size_t start;    /* output offset */
    uint64_t extras; /* members in the map */
    uint32_t next;   /* fields so far, while they come in the schema's order */
    bool ordered;
};

static const uint8_t *missing(struct tc *t, const struct record *r, size_t i, const uint8_t *p)
{
    const struct tc_piece *piece = &t->pieces[r->pieces + i];
    struct span name = r->def->names.names[i].s;
    const uint8_t *value = t->doc + piece->at;

    if (piece->len == 0) {
        if (t->trace)
            tc_path_push(t, name);
        return tc_misfit(t, p, "a required field is missing");
    }
    t->err = E_INVALID;
    if (t->trace) {
        tc_path_push(t, name);
        (void)tc_value(t, r->def->fields[i].node, value);
    }
    return NULL;
}

/* Copies the pieces behind the output, in order, then down over them. */
static bool gather(struct tc *t, const struct record *r, const uint8_t *p)
{
    const struct tc_piece *piece = t->pieces + r->pieces, *top = t->pieces + t->pieces_n;
    size_t written = (size_t)(t->o - t->o_base) - r->start, total;
    uint8_t *to, *begin;

    /* each byte is copied at most once; the map has a count and an end besides */
    if (!tc_room(t, written + r->def->absent_bytes + 48))
        return false;
    begin = to = t->o + 16; /* apart, so that copies in steps of 16 never overlap */
    for (size_t i = 0; i < r->def->names.n; i++, piece++) {
        struct span s = r->def->fields[i].absent;

        if (tc_piece_is_set(piece)) {
            s = span_of(t->o_base + piece->at, piece->len - 1);
        } else if (piece->len != 0 || s.p == NULL) {
            (void)missing(t, r, i, p);
            return false;
        }
        tc_copy(to, s.p, s.n);
        to += s.n;
    }
    if (r->def->extra != NULL) {
        if (r->extras > 0)
            to = tc_long(to, (int64_t)r->extras);
        for (; piece < top; piece++) {
            tc_copy(to, t->o_base + piece->at, piece->len - 1);
            to += piece->len - 1;
        }
        *to++ = 0;
    }
    total = (size_t)(to - begin);
    tc_copy_down(t->o_base + r->start, begin, total);
    t->o = t->o_base + r->start + total;
    return true;
}

static const uint8_t *put_extra(struct tc *t, struct record *r, const uint8_t *key, bool trace)
{
    size_t at = (size_t)(t->o - t->o_base);
    const uint8_t *p = tc_string(t, key), *value;

    if (p == NULL || (value = tc_colon(t, p)) == NULL)
        return NULL;
    if ((p = tc_value(t, r->def->extra, value)) == NULL)
        return retrace_member(t, r->def->extra, key, value, trace);
    if (!tc_room_pieces(t, 1))
        return NULL;
    t->pieces[t->pieces_n++] = (struct tc_piece){
        .at = (uint32_t)at, .len = (uint32_t)((size_t)(t->o - t->o_base) - at + 1)};
    r->extras++;
    return p;
}

/* One member; p on its key's quote. */
static const uint8_t *put_field(struct tc *t, struct record *r, size_t ordinal, const uint8_t *p,
                                bool trace)
{
    const uint8_t *key = p;
    uint32_t i, at, len;

    if ((p = tc_member(t, &r->def->names, ordinal, p, &i)) == NULL)
        return NULL;
    if (i == TC_UNKNOWN)
        return r->def->extra != NULL ? put_extra(t, r, key, trace) : tc_skip(t, p);
    if (r->taps != NULL && r->taps[i] != 0)
        t->tapped[r->taps[i] - 1] = p;
    if ((p = tc_piece_of(t, r->def->fields[i].node, p, &at, &len)) == NULL)
        return NULL;
    t->pieces[r->pieces + i].at = at;
    t->pieces[r->pieces + i].len = len;
    r->ordered = r->ordered && i == r->next && len != TC_MISFIT;
    r->next++;
    return p;
}

static const uint8_t *put_record(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    struct record r = {.def = node->record, .pieces = t->pieces_n, .ordered = true};
    bool trace = t->trace;
    size_t ordinal = 0;

    r.taps = t->taps;
    t->taps = NULL;
    if (*p != '{')
        return wrong(t, p, "an object is expected");
    if (!tc_room_pieces(t, r.def->names.n + 1u)) /* never none: NULL plus 0 is undefined */
        return NULL;
    tc_clear(t->pieces + t->pieces_n, r.def->names.n);
    t->pieces_n += r.def->names.n;
    r.start = (size_t)(t->o - t->o_base);
    if ((p = tc_open(t, p, '}')) == NULL)
        return NULL;
    while (*p != '}') {
        t->trace = false;
        if ((p = put_field(t, &r, ordinal++, p, trace)) == NULL || (p = tc_next(t, p, '}')) == NULL)
            return NULL;
    }
    t->trace = trace;
    if (r.ordered && r.next == r.def->names.n && r.extras == 0) {
        if (r.def->extra != NULL) {
            if (!tc_room(t, 1))
                return NULL;
            *t->o++ = 0;
        }
    } else if (!gather(t, &r, p)) {
        return NULL;
    }
    t->pieces_n = r.pieces;
    return p + 1;
}

/* --- any value --- */

static const uint8_t *put_null(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    (void)node;
    return *p == 'n' ? word(t, p, "null", 4) : wrong(t, p, "null is expected");
}

static const uint8_t *put_string(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    (void)node;
    return *p == '"' ? tc_string(t, p) : wrong(t, p, "a string is expected");
}

static const uint8_t *put_raw(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    if (!node->key)
        return tc_raw(t, p);
    return *p == '{' || *p == '[' ? wrong(t, p, "a key is no object and no array")
                                  : tc_raw_key(t, p);
}

tc_put_fn *const tc_puts[] = {
    [PG_NULL] = put_null,
    [PG_BOOL] = put_bool,
    [PG_LONG] = put_long,
    [PG_DOUBLE] = put_double,
    [PG_STRING] = put_string,
    [PG_TEXT_NUMBER] = put_text_number,
    [PG_NUMBER_TEXT] = put_number_text,
    [PG_DATE] = put_formatted,
    [PG_TIME] = put_formatted,
    [PG_UUID] = put_formatted,
    [PG_DURATION] = put_formatted,
    [PG_ARRAY] = put_array,
    [PG_MAP] = put_map,
    [PG_RECORD] = put_record,
    [PG_RAW] = put_raw,
    [PG_PUBLISHED] = put_meta,
    [PG_DELETED] = put_meta,
};

const uint8_t *tc_null(struct tc *t, const struct pg_node *node, const uint8_t *p)
{
    *t->o++ = (uint8_t)(node->null_branch << 1);
    return word(t, p, "null", 4);
}

const uint8_t *tc_piece_failed(struct tc *t, const uint8_t *p, size_t at, size_t pieces_n,
                               uint32_t *piece_at, uint32_t *piece_len)
{
    if (!tc_is_misfit(t))
        return NULL;
    t->o = t->o_base + at;
    t->pieces_n = pieces_n;
    t->trace = false;
    *piece_at = (uint32_t)(p - t->doc);
    *piece_len = TC_MISFIT;
    return tc_skip(t, p);
}
