/*
 * One document: the walk over the selected locations, the slots, and the two records made of them.
 * An error is first only noted; its pointer is found by encoding the value in question again. Pure;
 * a scratch belongs to one thread at a time.
 */
#include "schema/transcode.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "schema/tc_int.h"

#define DOC_MAX ((size_t)1 << 30)
/* A buffer larger than this does not outlive its document. */
#define KEEP_BYTES ((size_t)16 << 20)

struct sc_scratch {
    struct tc t;
    uint64_t serial; /* the program that the guesses are about */
    uint8_t *out;    /* both records */
    size_t out_cap;
};

int sc_scratch_new(struct sc_scratch **out)
{
    *out = mem_zalloc(sizeof **out);
    return *out == NULL ? E_NOMEM : 0;
}

void sc_scratch_free(struct sc_scratch *s)
{
    if (s == NULL)
        return;
    mem_free(s->t.o_base);
    mem_free(s->t.pieces);
    mem_free(s->t.guesses);
    mem_free(s->t.text);
    mem_free(s->out);
    mem_free(s);
}

/* --- the walk --- */

static const uint8_t *walk_value(struct tc *t, const struct pg_walk *walk, const uint8_t *p);

static const uint8_t *walk_entry(struct tc *t, const struct pg_entry *e, const uint8_t *p);

/* A record whose members are looked at on the way: one scan for both. *done: the walk below has
 * been done with it. */
static const uint8_t *walk_tapped(struct tc *t, const struct pg_entry *e, const uint8_t *p,
                                  bool *done)
{
    const uint8_t *q, *values[PG_MAX_TAPS];
    uint32_t at, len;

    memset(t->tapped, 0, sizeof t->tapped);
    t->taps = e->taps;
    q = tc_piece_of(t, e->sinks[0].node, p, &at, &len);
    t->taps = NULL;
    if (q == NULL)
        return NULL;
    t->pieces[e->sinks[0].slot].at = at;
    t->pieces[e->sinks[0].slot].len = len;
    *done = len != TC_MISFIT; /* else it may not have seen all members */
    if (!*done)
        return q;
    memcpy(values, t->tapped, sizeof values);
    for (uint32_t i = 0; i < e->below->names.n; i++) {
        if (values[i] != NULL && walk_entry(t, &e->below->entries[i], values[i]) == NULL)
            return NULL;
    }
    return q;
}

/* A selected location: p on its value. */
static const uint8_t *walk_entry(struct tc *t, const struct pg_entry *e, const uint8_t *p)
{
    const uint8_t *q = NULL;
    bool below = e->below != NULL && (*p == '{' || *p == '['), done = false;

    /* a duplicate replaces all that its name led to */
    tc_clear(t->pieces + e->slot_lo, e->slot_hi - e->slot_lo);
    if (below && e->taps != NULL) {
        q = walk_tapped(t, e, p, &done);
        return q == NULL || done ? q : walk_value(t, e->below, p);
    }
    for (uint32_t i = 0; i < e->sinks_n; i++) {
        uint32_t at, len;

        if ((q = tc_piece_of(t, e->sinks[i].node, p, &at, &len)) == NULL)
            return NULL;
        t->pieces[e->sinks[i].slot].at = at;
        t->pieces[e->sinks[i].slot].len = len;
    }
    if (below)
        return walk_value(t, e->below, p);
    return q != NULL ? q : tc_skip(t, p);
}

/* The usual entry: one sink, nothing below. */
static inline const uint8_t *walk_leaf(struct tc *t, const struct pg_sink *sink, const uint8_t *p)
{
    uint32_t at, len;

    if ((p = tc_piece_of(t, sink->node, p, &at, &len)) != NULL) {
        t->pieces[sink->slot].at = at;
        t->pieces[sink->slot].len = len;
    }
    return p;
}

static const uint8_t *walk_object(struct tc *t, const struct pg_walk *walk, const uint8_t *p)
{
    size_t ordinal = 0;

    if ((p = tc_open(t, p, '}')) == NULL)
        return NULL;
    while (*p != '}') {
        uint32_t i;

        if ((p = tc_member(t, &walk->names, ordinal++, p, &i)) == NULL)
            return NULL;
        if (i == TC_UNKNOWN)
            p = tc_skip(t, p);
        else if (walk->entries[i].leaf)
            p = walk_leaf(t, walk->entries[i].sinks, p);
        else
            p = walk_entry(t, &walk->entries[i], p);
        if (p == NULL || (p = tc_next(t, p, '}')) == NULL)
            return NULL;
    }
    return p + 1;
}

static const uint8_t *walk_array(struct tc *t, const struct pg_walk *walk, const uint8_t *p)
{
    uint64_t index = 0;

    if ((p = tc_open(t, p, ']')) == NULL)
        return NULL;
    while (*p != ']') {
        const struct pg_entry *e = NULL;
        uint64_t v;

        for (uint32_t i = 0; i < walk->names.n && e == NULL; i++) {
            struct span s = walk->names.names[i].s;

            if (num_parse_u64(s, &v) == 0 && v == index && (s.n == 1 || s.p[0] != '0'))
                e = &walk->entries[i];
        }
        index++;
        p = e == NULL ? tc_skip(t, p) : walk_entry(t, e, p);
        if (p == NULL || (p = tc_next(t, p, ']')) == NULL)
            return NULL;
    }
    return p + 1;
}

/* p on a bracket. */
static const uint8_t *walk_value(struct tc *t, const struct pg_walk *walk, const uint8_t *p)
{
    return *p == '{' ? walk_object(t, walk, p) : walk_array(t, walk, p);
}

/* --- one run --- */

static bool begin(struct sc_scratch *s, const struct sc_avro *a, const struct pg_program *pg,
                  struct span doc)
{
    struct tc *t = &s->t;

    if ((size_t)(t->o_end - t->o_base) > KEEP_BYTES) {
        mem_free(t->o_base);
        t->o_base = t->o_end = NULL;
    }
    t->doc = doc.p;
    t->end = doc.p + doc.n;
    t->o = t->o_base;
    t->pieces_n = 0;
    t->err = 0;
    t->taps = NULL;
    t->trace = t->path_full = false;
    t->path_n = 0;
    t->path[0] = 0;
    t->check.end = t->end;
    t->check.lax = true;
    if (!tc_room(t, 64) || !tc_room_pieces(t, pg->slots_n))
        return false;
    memset(t->pieces, 0, pg->slots_n * sizeof *t->pieces);
    t->pieces_n = pg->slots_n;
    if (s->serial != a->serial) {
        size_t n = a->guesses_n;

        if (n > t->guesses_cap) {
            mem_free(t->guesses);
            t->guesses_cap = 0;
            if ((t->guesses = mem_array(n, sizeof *t->guesses)) == NULL) {
                t->err = E_NOMEM;
                return false;
            }
            t->guesses_cap = n;
        }
        if (n > 0)
            memset(t->guesses, 0, n * sizeof *t->guesses);
        s->serial = a->serial;
    }
    return true;
}

static bool walk(struct tc *t, const struct pg_program *pg)
{
    const uint8_t *p = js_ws(t->doc, t->end);

    if (p == t->end)
        (void)tc_fail(t, E_SYNTAX, p, "input ends where a value is expected");
    else if ((p = walk_entry(t, &pg->root, p)) != NULL && (p = js_ws(p, t->end)) != t->end)
        (void)tc_fail(t, E_SYNTAX, p, "bytes behind the value");
    return t->err == 0 || tc_is_misfit(t);
}

/* How many bytes the outputs have; false: one of them is missing or does not fit. */
static bool measure(struct tc *t, const struct pg_output *out, size_t n, size_t *bytes)
{
    *bytes = SC_FRAME_BYTES;
    for (size_t i = 0; i < n; i++) {
        const struct tc_piece *piece = &t->pieces[out[i].slot];

        if (tc_piece_is_set(piece)) {
            *bytes += piece->len - 1;
            continue;
        }
        if (piece->len == 0 && out[i].absent.p != NULL) {
            *bytes += out[i].absent.n;
            continue;
        }
        (void)snprintf(t->path, sizeof t->path, "%.*s",
                       out[i].pointer.n < sizeof t->path - 4 ? (int)out[i].pointer.n : 0,
                       (const char *)out[i].pointer.p);
        t->path_n = strlen(t->path);
        if (piece->len == 0) {
            (void)tc_misfit(t, t->end, "a required field is missing");
        } else {
            const uint8_t *value = t->doc + piece->at;

            t->trace = true;
            (void)tc_value(t, out[i].node, value);
        }
        return false;
    }
    if (*bytes <= SC_AVRO_MAX_BYTES)
        return true;
    (void)tc_fail(t, E_LIMIT, t->doc, "the record is too large");
    return false;
}

static uint8_t *put(const struct tc *t, const struct pg_output *out, size_t n, uint32_t id,
                    uint8_t *to)
{
    sc_avro_frame(id, to);
    to += SC_FRAME_BYTES;
    for (size_t i = 0; i < n; i++) {
        const struct tc_piece *piece = &t->pieces[out[i].slot];
        struct span s = out[i].absent;

        if (piece->len != 0)
            s = span_of(t->o_base + piece->at, piece->len - 1);
        tc_copy(to, s.p, s.n);
        to += s.n;
    }
    return to;
}

static bool room_out(struct sc_scratch *s, size_t n)
{
    if (s->out_cap > KEEP_BYTES || n > s->out_cap) {
        mem_free(s->out);
        s->out_cap = 0;
        n = n < 4096 ? 4096 : n + n / 2;
        if ((s->out = mem_alloc(n + TC_SLACK)) == NULL) {
            s->t.err = E_NOMEM;
            return false;
        }
        s->out_cap = n;
    }
    return true;
}

static int report(const struct tc *t, struct sc_transcode_error *err)
{
    if (t->err == E_NOMEM)
        return t->err;
    err->reason = t->reason;
    err->at = (size_t)(t->at - t->doc);
    err->pointer[0] = 0;
    if (tc_is_misfit(t))
        memcpy(err->pointer, t->path, sizeof err->pointer);
    return t->err;
}

static int run(const struct sc_avro *a, struct sc_scratch *s, struct span doc, bool value,
               struct sc_avro_record *out, struct sc_transcode_error *err)
{
    const struct pg_program *pg = value ? &a->both : &a->key_only;
    struct tc *t = &s->t;
    size_t key_n, value_n = 0;
    const struct tc_piece *deleted;
    uint8_t *end;

    *out = (struct sc_avro_record){.deleted = false};
    err->pointer[0] = 0; /* not the whole of it: this runs for each document */
    err->reason = "out of memory";
    err->at = 0;
    if (doc.p == NULL)
        doc = span_of("", 0);
    if (doc.n > DOC_MAX) {
        err->reason = "the document is too large";
        return E_LIMIT;
    }
    if (!begin(s, a, pg, doc) || !walk(t, pg))
        return report(t, err);
    t->err = 0;
    deleted = &t->pieces[pg->deleted];
    out->deleted = deleted->len > 1 && deleted->len != TC_MISFIT && t->o_base[deleted->at] != 0;
    value = value && !(out->deleted && a->deletions == SC_DELETE_TOMBSTONE);
    if (!measure(t, pg->key, pg->key_n, &key_n) ||
        (value && !measure(t, pg->value, pg->value_n, &value_n)) || !room_out(s, key_n + value_n))
        return report(t, err);
    end = put(t, pg->key, pg->key_n, a->key_id, s->out);
    out->key = span_of(s->out, (size_t)(end - s->out));
    if (value) {
        uint8_t *from = end;

        end = put(t, pg->value, pg->value_n, a->value_id, end);
        out->value = span_of(from, (size_t)(end - from));
    }
    err->reason = NULL;
    return 0;
}

int sc_transcode(const struct sc_avro *a, struct sc_scratch *s, struct span doc,
                 struct sc_avro_record *out, struct sc_transcode_error *err)
{
    return run(a, s, doc, true, out, err);
}

int sc_transcode_key(const struct sc_avro *a, struct sc_scratch *s, struct span doc,
                     struct sc_avro_record *out, struct sc_transcode_error *err)
{
    return run(a, s, doc, false, out, err);
}

int pg_encode(const struct pg_node *node, struct span json, struct writer *out)
{
    struct tc t = {.doc = json.p, .end = json.p + json.n};
    int err;

    t.check.end = t.end;
    t.check.lax = true;
    /* without guesses: names are looked up */
    if (tc_room(&t, 64) && tc_value(&t, node, json.p) != NULL)
        wr_bytes(out, t.o_base, (size_t)(t.o - t.o_base));
    err = t.err;
    mem_free(t.o_base);
    mem_free(t.pieces);
    mem_free(t.text);
    return err < 0 ? err : wr_err(out);
}
