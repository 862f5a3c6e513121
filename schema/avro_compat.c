/*
 * See avro_compat.h. Two records that are being compared are taken as compatible when they meet
 * again below themselves: recursion adds no fault of its own. A pair that was found compatible is
 * not looked at twice, so that the work is bounded by the pairs of records, times what lies between
 * two records; what passes a number of steps all the same is refused.
 */
#include "schema/avro_compat.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

#define STEPS_MAX 2000000
#define DEPTH_MAX 2000

/* One step of the way from the root to where the check is. */
struct way {
    const struct way *up; /* NULL: the root */
    const char *word;     /* NULL: the number */
    size_t number;
};

/* Pairs of records: an open hash. */
struct pairs {
    uint64_t *keys; /* 0: free */
    size_t n, cap;
};

struct check {
    struct sc_incompats *out;
    struct pairs good; /* compatible, or being looked at */
    size_t steps;
    unsigned depth;
    unsigned trials; /* > 0: a branch is tried, nobody reads what is wrong with it */
    int err;
};

const char *sc_incompat_name(enum sc_incompat_kind kind)
{
    static const char *const names[] = {
        "NAME_MISMATCH",        "FIXED_SIZE_MISMATCH",
        "MISSING_ENUM_SYMBOLS", "READER_FIELD_MISSING_DEFAULT_VALUE",
        "TYPE_MISMATCH",        "MISSING_UNION_BRANCH",
        "AMBIGUOUS_FIELD_ALIAS"};

    return names[kind];
}

/* --- faults --- */

static size_t put_way(const struct way *at, char *out, size_t out_bytes)
{
    size_t n = at->up == NULL ? 0 : put_way(at->up, out, out_bytes);
    int more;

    if (n >= out_bytes)
        return n;
    if (at->word != NULL)
        more = snprintf(out + n, out_bytes - n, "%s%s", "/", at->word);
    else
        more = snprintf(out + n, out_bytes - n, "/%zu", at->number);
    return more < 0 ? out_bytes : n + (size_t)more;
}

/* The root's own step is not written. */
static void put_path(const struct way *at, char *out, size_t out_bytes)
{
    if (at->up == NULL) {
        (void)snprintf(out, out_bytes, "/");
        return;
    }
    char text[SC_INCOMPAT_PATH + 8];
    (void)put_way(at, text, sizeof text);
    (void)snprintf(out, out_bytes, "%.*s", (int)(out_bytes - 1), text + 1); /* behind the root's */
}

__attribute__((format(printf, 4, 5))) static bool
fault(struct check *c, enum sc_incompat_kind kind, const struct way *at, const char *format, ...)
{
    va_list args;

    if (c->trials == 0 && c->out->n < SC_INCOMPAT_MAX) {
        struct sc_incompat *i = &c->out->list[c->out->n++];

        i->kind = kind;
        put_path(at, i->path, sizeof i->path);
        va_start(args, format);
        (void)vsnprintf(i->text, sizeof i->text, format, args);
        va_end(args);
    }
    return false;
}

static int name_n(struct span s)
{
    return (int)(s.n < SC_INCOMPAT_TEXT ? s.n : SC_INCOMPAT_TEXT);
}

/* --- pairs --- */

static uint64_t *pair_slot(const struct pairs *p, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(h ^ h >> 32) & (p->cap - 1);

    while (p->keys[at] != 0 && p->keys[at] != key)
        at = (at + 1) & (p->cap - 1);
    return &p->keys[at];
}

/* An absent key is added. False: it was there, or memory is out (c->err). */
static bool pair_add(struct check *c, uint64_t key)
{
    struct pairs *p = &c->good;

    if (2 * p->n >= p->cap) {
        struct pairs grown = {.n = p->n, .cap = p->cap == 0 ? 64 : 2 * p->cap};

        if ((grown.keys = mem_array(grown.cap, sizeof *grown.keys)) == NULL) {
            c->err = E_NOMEM;
            return false;
        }
        for (size_t i = 0; i < p->cap; i++) {
            if (p->keys[i] != 0)
                *pair_slot(&grown, p->keys[i]) = p->keys[i];
        }
        mem_free(p->keys);
        *p = grown;
    }
    uint64_t *slot = pair_slot(p, key);
    if (*slot == key)
        return false;
    *slot = key;
    p->n++;
    return true;
}

static void pair_drop(struct pairs *p, uint64_t key)
{
    size_t hole = (size_t)(pair_slot(p, key) - p->keys);

    p->keys[hole] = 0;
    p->n--;
    /* what came behind it because of it moves up */
    for (size_t i = (hole + 1) & (p->cap - 1); p->keys[i] != 0; i = (i + 1) & (p->cap - 1)) {
        uint64_t moved = p->keys[i];
        p->keys[i] = 0;
        *pair_slot(p, moved) = moved;
    }
}

/* --- the rules --- */

static bool reads(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                  const struct way *at);

/* Without a word about why not. */
static bool would_read(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                       const struct way *at)
{
    c->trials++;
    bool good = reads(c, r, w, at);
    c->trials--;
    return good;
}

/* Unqualified names count, as the specification says; aliases of the reader's are full ones. */
static bool check_names(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                        const struct way *at)
{
    const struct way here = {at, "name", 0};

    if (span_eq(r->name, w->name))
        return true;
    for (size_t i = 0; i < r->aliases_n; i++) {
        if (span_eq(r->aliases[i], w->full))
            return true;
    }
    return fault(c, SC_INCOMPAT_NAME, &here, "expected: %.*s", name_n(w->full),
                 (const char *)w->full.p);
}

static bool check_symbols(struct check *c, const struct sc_avro_type *r,
                          const struct sc_avro_type *w, const struct way *at)
{
    const struct way here = {at, "symbols", 0};
    char missing[SC_INCOMPAT_TEXT];
    size_t n = 0;

    if (r->fallback.n > 0)
        return true;
    for (size_t i = 0; i < w->symbols_n; i++) {
        struct span s = w->sorted_symbols[i];

        if (sc_avro_has_symbol(r, s))
            continue;
        int more = snprintf(missing + n, sizeof missing - n, "%s%.*s", n == 0 ? "" : ", ",
                            name_n(s), (const char *)s.p);
        n = more < 0 || (size_t)more >= sizeof missing - n ? sizeof missing - 1 : n + (size_t)more;
    }
    return n == 0 || fault(c, SC_INCOMPAT_SYMBOLS, &here, "[%.*s]", (int)n, missing);
}

static bool check_size(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                       const struct way *at)
{
    const struct way here = {at, "size", 0};

    return r->size == w->size ||
           fault(c, SC_INCOMPAT_FIXED_SIZE, &here, "expected: %llu, found: %llu",
                 (unsigned long long)w->size, (unsigned long long)r->size);
}

/* The writer's field that the reader's one is; *many: there are several. */
static const struct sc_avro_member *counterpart(const struct sc_avro_member *f,
                                                const struct sc_avro_type *w, bool *many)
{
    const struct sc_avro_member *found = sc_avro_member_of(w, f->name);

    *many = false;
    for (size_t i = 0; i < f->aliases_n; i++) {
        const struct sc_avro_member *other = sc_avro_member_of(w, f->aliases[i]);

        if (other == NULL)
            continue;
        *many = *many || found != NULL;
        found = other;
    }
    return found;
}

static bool check_members(struct check *c, const struct sc_avro_type *r,
                          const struct sc_avro_type *w, const struct way *at)
{
    const struct way fields = {at, "fields", 0};
    bool good = true, many;

    for (size_t i = 0; i < r->members_n && c->err == 0; i++) {
        const struct sc_avro_member *f = &r->members[i];
        const struct sc_avro_member *of = counterpart(f, w, &many);
        const struct way here = {&fields, NULL, i}, type = {&here, "type", 0};

        if (many)
            good = fault(c, SC_INCOMPAT_AMBIGUOUS, &here, "%.*s", name_n(f->name),
                         (const char *)f->name.p);
        else if (of == NULL && f->fallback == NULL)
            good = fault(c, SC_INCOMPAT_NO_DEFAULT, &here, "%.*s", name_n(f->name),
                         (const char *)f->name.p);
        else if (of != NULL && !reads(c, f->type, of->type, &type))
            good = false;
    }
    return good;
}

static bool check_record(struct check *c, const struct sc_avro_type *r,
                         const struct sc_avro_type *w, const struct way *at)
{
    const uint64_t key = ((uint64_t)r->id + 1) << 32 | ((uint64_t)w->id + 1);

    if (!pair_add(c, key))
        return true;
    bool names = check_names(c, r, w, at);
    bool good = check_members(c, r, w, at) && names;
    if (!good)
        pair_drop(&c->good, key);
    return good;
}

/* Of a writer's union each branch must be read, whatever the reader is. */
static bool check_branches(struct check *c, const struct sc_avro_type *r,
                           const struct sc_avro_type *w, const struct way *at)
{
    bool good = true;

    for (size_t i = 0; i < w->parts_n && c->err == 0; i++) {
        const struct way here = {at, NULL, i};

        if (r->kind != SC_AVRO_UNION)
            good = reads(c, r, w->parts[i], &here) && good;
        else if (!would_read(c, r, w->parts[i], at))
            good = fault(c, SC_INCOMPAT_BRANCH, &here, "reader union lacking writer type: %s",
                         sc_avro_kind_name(w->parts[i]->kind));
    }
    return good;
}

/* What is read of another kind. */
static bool promotes(enum sc_avro_kind to, enum sc_avro_kind from)
{
    if (to == SC_AVRO_STRING || to == SC_AVRO_BYTES)
        return from == SC_AVRO_STRING || from == SC_AVRO_BYTES;
    return to > SC_AVRO_INT && to <= SC_AVRO_DOUBLE && from >= SC_AVRO_INT && from < to;
}

static bool check_kinds(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                        const struct way *at)
{
    const struct way items = {at, "items", 0}, values = {at, "values", 0};

    if (w->kind == SC_AVRO_UNION)
        return check_branches(c, r, w, at);
    if (r->kind == SC_AVRO_UNION) {
        for (size_t i = 0; i < r->parts_n; i++) {
            if (would_read(c, r->parts[i], w, at))
                return true;
        }
        return fault(c, SC_INCOMPAT_BRANCH, at, "reader union lacking writer type: %s",
                     sc_avro_kind_name(w->kind));
    }
    if (r->kind != w->kind)
        return promotes(r->kind, w->kind) ||
               fault(c, SC_INCOMPAT_TYPE, at, "reader type: %s not compatible with writer type: %s",
                     sc_avro_kind_name(r->kind), sc_avro_kind_name(w->kind));
    if (r->kind == SC_AVRO_ARRAY)
        return reads(c, r->parts[0], w->parts[0], &items);
    if (r->kind == SC_AVRO_MAP)
        return reads(c, r->parts[0], w->parts[0], &values);
    if (r->kind == SC_AVRO_RECORD)
        return check_record(c, r, w, at);
    if (r->kind != SC_AVRO_FIXED && r->kind != SC_AVRO_ENUM)
        return true;
    bool good = check_names(c, r, w, at);
    return (r->kind == SC_AVRO_FIXED ? check_size(c, r, w, at) : check_symbols(c, r, w, at)) &&
           good;
}

static bool reads(struct check *c, const struct sc_avro_type *r, const struct sc_avro_type *w,
                  const struct way *at)
{
    if (c->err < 0)
        return false;
    if (c->steps == 0 || c->depth == DEPTH_MAX) {
        c->err = E_LIMIT;
        return false;
    }
    c->steps--;
    c->depth++;
    bool good = check_kinds(c, r, w, at);
    c->depth--;
    return good;
}

int sc_avro_reads(const struct sc_avro_model *reader, const struct sc_avro_model *writer,
                  struct sc_incompats *out)
{
    const struct way root = {NULL, "", 0};
    struct check c = {.out = out, .steps = STEPS_MAX};

    out->n = 0;
    (void)reads(&c, sc_avro_model_root(reader), sc_avro_model_root(writer), &root);
    mem_free(c.good.keys);
    if (c.err < 0)
        out->n = 0;
    return c.err;
}
