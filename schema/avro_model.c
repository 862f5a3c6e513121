/*
 * Reads an Avro schema into its graph. The rules are the specification's ("Names", "Complex
 * Types"), as strict as Java's parser; a default of a union may fit any branch (1.12). Recursion is
 * bounded by the depth of the JSON tree.
 */
#include "schema/avro_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "schema/avro_model_int.h"
#include "schema/json_tree.h"

#define MODEL_ARENA   ((size_t)256 << 20)
#define DEFAULT_STEPS 1000000
#define DEFAULT_DEPTH 200

static const char *const KINDS[] = {"null",   "boolean", "int",    "long",  "float",
                                    "double", "bytes",   "string", "array", "map",
                                    "union",  "fixed",   "enum",   "record"};
static const char *const KIND_NAMES[] = {"NULL",   "BOOLEAN", "INT",    "LONG",  "FLOAT",
                                         "DOUBLE", "BYTES",   "STRING", "ARRAY", "MAP",
                                         "UNION",  "FIXED",   "ENUM",   "RECORD"};

/* Named types that are known so far: an open hash by full name. */
struct names {
    struct sc_avro_type **slots;
    size_t n, cap;
};

struct parse {
    struct sc_avro_model *m;
    struct names names;
    struct sc_schema_error *why;
    size_t steps; /* left for defaults */
    int err;
};

const char *sc_avro_kind_name(enum sc_avro_kind kind)
{
    return KIND_NAMES[kind];
}

/* --- faults --- */

static void *fail(struct parse *p, const char *reason, struct span where)
{
    if (p->err == 0) {
        p->err = E_INVALID;
        (void)snprintf(p->why->reason, sizeof p->why->reason, "%s", reason);
        (void)snprintf(p->why->pointer, sizeof p->why->pointer, "%.*s",
                       (int)(where.n < 100 ? where.n : 100), (const char *)where.p);
    }
    return NULL;
}

static void *no_room(struct parse *p, int err)
{
    if (p->err == 0) {
        p->err = err;
        (void)snprintf(p->why->reason, sizeof p->why->reason, "the schema is too large");
    }
    return NULL;
}

static void *take(struct parse *p, size_t count, size_t bytes)
{
    void *mem = arena_array(&p->m->arena, count == 0 ? 1 : count, bytes);

    return mem == NULL ? no_room(p, jt_no_room(&p->m->arena, count * bytes)) : mem;
}

/* --- names --- */

static bool is_word(struct span s)
{
    if (s.n == 0 || (s.p[0] >= '0' && s.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (!(c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')))
            return false;
    }
    return true;
}

/* Words with dots between them. */
static bool is_path(struct span s)
{
    size_t from = 0;

    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '.')
            continue;
        if (!is_word(span_of(s.p + from, i - from)))
            return false;
        from = i + 1;
    }
    return true;
}

static size_t last_dot(struct span s)
{
    size_t n = s.n;

    while (n > 0 && s.p[n - 1] != '.')
        n--;
    return n;
}

static struct span space_of(struct span full)
{
    size_t dot = last_dot(full);

    return span_of(full.p, dot == 0 ? 0 : dot - 1);
}

static struct span short_of(struct span full)
{
    size_t dot = last_dot(full);

    return span_of(full.p + dot, full.n - dot);
}

/* name in the namespace, unless it has one. */
static struct span full_name(struct parse *p, struct span name, struct span space)
{
    if (space.n == 0 || last_dot(name) > 0)
        return name;
    uint8_t *full = take(p, space.n + 1 + name.n, 1);
    if (full == NULL)
        return name;
    memcpy(full, space.p, space.n);
    full[space.n] = '.';
    memcpy(full + space.n + 1, name.p, name.n);
    return span_of(full, space.n + 1 + name.n);
}

/* Where the name is, or would be. */
static struct sc_avro_type **slot_of(const struct names *t, struct span full)
{
    size_t at = hash_bytes(full, 0) & (t->cap - 1);

    while (t->slots[at] != NULL && !span_eq(t->slots[at]->full, full))
        at = (at + 1) & (t->cap - 1);
    return &t->slots[at];
}

static struct sc_avro_type *known(const struct parse *p, struct span full)
{
    return p->names.cap == 0 ? NULL : *slot_of(&p->names, full);
}

static void remember(struct parse *p, struct sc_avro_type *type)
{
    struct names *t = &p->names;

    if (2 * t->n >= t->cap) {
        struct names grown = {.cap = t->cap == 0 ? 16 : 2 * t->cap};

        if ((grown.slots = take(p, grown.cap, sizeof(struct sc_avro_type *))) == NULL)
            return;
        for (size_t i = 0; i < t->cap; i++) {
            if (t->slots[i] != NULL)
                *slot_of(&grown, t->slots[i]->full) = t->slots[i];
        }
        grown.n = t->n;
        *t = grown;
    }
    *slot_of(t, type->full) = type;
    t->n++;
}

/* The kind of that name; false: it is none that has no name of its own. */
static bool plain_kind(struct span s, enum sc_avro_kind *kind)
{
    for (size_t i = 0; i <= SC_AVRO_STRING; i++) {
        if (span_eq_str(s, KINDS[i])) {
            *kind = (enum sc_avro_kind)i;
            return true;
        }
    }
    return false;
}

/* --- types --- */

static struct sc_avro_type *type_new(struct parse *p, enum sc_avro_kind kind,
                                     const struct jt_node *node)
{
    struct sc_avro_type *t = take(p, 1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->kind = kind;
    t->node = node;
    t->id = p->m->types_n++;
    return t;
}

static struct sc_avro_type *parse_type(struct parse *p, const struct jt_node *n, struct span space);

/* A list of strings: names when `path`, words otherwise. Names go into the namespace. */
static const struct span *parse_words(struct parse *p, const struct jt_node *n, bool path,
                                      struct span space, size_t *count)
{
    struct span *list;

    *count = 0;
    if (n == NULL)
        return NULL;
    if (n->kind != SC_JSON_ARRAY)
        return fail(p, "a list of names belongs here", n->key);
    if ((list = take(p, n->n, sizeof *list)) == NULL)
        return NULL;
    for (const struct jt_node *e = n->first; e != NULL; e = e->next) {
        if (e->kind != SC_JSON_STRING || !(path ? is_path(e->str) : is_word(e->str)))
            return fail(p, "it is no name", e->kind == SC_JSON_STRING ? e->str : e->text);
        list[(*count)++] = path ? full_name(p, e->str, space) : e->str;
    }
    return list;
}

static int by_text(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

static void parse_symbols(struct parse *p, struct sc_avro_type *t)
{
    const struct jt_node *list = jt_get(t->node, "symbols"), *def = jt_get(t->node, "default");
    struct span *sorted;

    if (list == NULL) {
        fail(p, "an enum needs symbols", t->full);
        return;
    }
    t->symbols = parse_words(p, list, false, span_of("", 0), &t->symbols_n);
    if (t->symbols == NULL || (sorted = take(p, t->symbols_n, sizeof *sorted)) == NULL)
        return;
    if (t->symbols_n > 0)
        memcpy(sorted, t->symbols, t->symbols_n * sizeof *sorted);
    qsort(sorted, t->symbols_n, sizeof *sorted, by_text);
    t->sorted_symbols = sorted;
    for (size_t i = 1; i < t->symbols_n; i++) {
        if (span_eq(sorted[i], sorted[i - 1]))
            fail(p, "a symbol is there twice", sorted[i]);
    }
    if (def == NULL)
        return;
    if (def->kind != SC_JSON_STRING || !sc_avro_has_symbol(t, def->str))
        fail(p, "the default of an enum is one of its symbols", t->full);
    t->fallback = def->str;
}

static void parse_size(struct parse *p, struct sc_avro_type *t)
{
    const struct jt_node *size = jt_get(t->node, "size");

    if (size == NULL || size->kind != SC_JSON_NUMBER || num_parse_u64(size->text, &t->size) < 0 ||
        t->size > INT32_MAX)
        fail(p, "a fixed needs a size", t->full);
}

static int by_member(const void *a, const void *b)
{
    const struct sc_avro_member *const *x = a, *const *y = b;

    return span_cmp((*x)->name, (*y)->name);
}

static bool parse_member(struct parse *p, const struct jt_node *n, struct span space,
                         struct sc_avro_member *f)
{
    const struct jt_node *name = jt_get(n, "name"), *type = jt_get(n, "type");

    if (name == NULL || name->kind != SC_JSON_STRING || !is_word(name->str)) {
        fail(p, "a field needs a name", name == NULL ? span_of("", 0) : name->text);
        return false;
    }
    if (type == NULL) {
        fail(p, "a field needs a type", name->str);
        return false;
    }
    f->name = name->str;
    f->node = n;
    f->type = parse_type(p, type, space);
    f->fallback = jt_get(n, "default");
    f->aliases = parse_words(p, jt_get(n, "aliases"), false, span_of("", 0), &f->aliases_n);
    return p->err == 0;
}

static void parse_members(struct parse *p, struct sc_avro_type *t)
{
    const struct jt_node *list = jt_get(t->node, "fields");
    const struct sc_avro_member **sorted;
    struct sc_avro_member *members;

    if (list == NULL || list->kind != SC_JSON_ARRAY) {
        fail(p, "a record needs fields", t->full);
        return;
    }
    members = take(p, list->n, sizeof *members);
    sorted = take(p, list->n, sizeof(struct sc_avro_member *));
    if (members == NULL || sorted == NULL)
        return;
    for (const struct jt_node *f = list->first; f != NULL; f = f->next) {
        struct sc_avro_member *to = &members[t->members_n];

        if (!parse_member(p, f, space_of(t->full), to))
            return;
        to->pos = t->members_n;
        sorted[t->members_n++] = to;
    }
    qsort(sorted, t->members_n, sizeof(struct sc_avro_member *), by_member);
    for (size_t i = 1; i < t->members_n; i++) {
        if (span_eq(sorted[i]->name, sorted[i - 1]->name))
            fail(p, "a field is there twice", sorted[i]->name);
    }
    t->members = members;
    t->by_name = sorted;
}

static struct sc_avro_type *parse_named(struct parse *p, const struct jt_node *n,
                                        enum sc_avro_kind kind, struct span space)
{
    const struct jt_node *name = jt_get(n, "name"), *own = jt_get(n, "namespace");
    enum sc_avro_kind primitive;
    struct sc_avro_type *t;

    if (name == NULL || name->kind != SC_JSON_STRING || !is_path(name->str))
        return fail(p, "it is no name", name == NULL ? span_of("", 0) : name->text);
    if (own != NULL && last_dot(name->str) == 0) {
        if (own->kind != SC_JSON_STRING || (own->str.n > 0 && !is_path(own->str)))
            return fail(p, "it is no namespace", own->text);
        space = own->str;
    }
    if ((t = type_new(p, kind, n)) == NULL)
        return NULL;
    t->full = full_name(p, name->str, space);
    t->name = short_of(t->full);
    if (plain_kind(t->full, &primitive))
        return fail(p, "the name is a primitive type's", t->full);
    if (known(p, t->full) != NULL)
        return fail(p, "a name is defined twice", t->full);
    remember(p, t);
    t->aliases = parse_words(p, jt_get(n, "aliases"), true, space_of(t->full), &t->aliases_n);
    if (p->err == 0 && kind == SC_AVRO_ENUM)
        parse_symbols(p, t);
    else if (p->err == 0 && kind == SC_AVRO_FIXED)
        parse_size(p, t);
    else if (p->err == 0)
        parse_members(p, t);
    return p->err == 0 ? t : NULL;
}

/* What two branches of one union must not share. */
static struct span branch_name(const struct sc_avro_type *t)
{
    return t->full.n > 0 ? t->full : span_str(KINDS[t->kind]);
}

static int by_branch(const void *a, const void *b)
{
    return span_cmp(branch_name(*(const struct sc_avro_type *const *)a),
                    branch_name(*(const struct sc_avro_type *const *)b));
}

static struct sc_avro_type *parse_union(struct parse *p, const struct jt_node *n, struct span space)
{
    struct sc_avro_type *t = type_new(p, SC_AVRO_UNION, n);
    const struct sc_avro_type **sorted;

    if (t == NULL || (t->parts = take(p, n->n, sizeof(struct sc_avro_type *))) == NULL ||
        (sorted = take(p, n->n, sizeof(struct sc_avro_type *))) == NULL)
        return NULL;
    for (const struct jt_node *e = n->first; e != NULL; e = e->next) {
        const struct sc_avro_type *branch = parse_type(p, e, space);

        if (branch == NULL)
            return NULL;
        if (branch->kind == SC_AVRO_UNION)
            return fail(p, "a union must not hold a union", span_of("", 0));
        sorted[t->parts_n] = branch;
        t->parts[t->parts_n++] = branch;
    }
    qsort(sorted, t->parts_n, sizeof(struct sc_avro_type *), by_branch);
    for (size_t i = 1; i < t->parts_n; i++) {
        if (span_eq(branch_name(sorted[i]), branch_name(sorted[i - 1])))
            return fail(p, "a union has a type twice", branch_name(sorted[i]));
    }
    return t;
}

static struct sc_avro_type *parse_holder(struct parse *p, const struct jt_node *n,
                                         enum sc_avro_kind kind, const char *part,
                                         struct span space)
{
    const struct jt_node *of = jt_get(n, part);
    struct sc_avro_type *t;

    if (of == NULL)
        return fail(p, kind == SC_AVRO_MAP ? "a map needs values" : "an array needs items",
                    span_of("", 0));
    if ((t = type_new(p, kind, n)) == NULL ||
        (t->parts = take(p, 1, sizeof(struct sc_avro_type *))) == NULL)
        return NULL;
    t->parts_n = 1;
    t->parts[0] = parse_type(p, of, space);
    return t->parts[0] == NULL ? NULL : t;
}

static struct sc_avro_type *parse_word(struct parse *p, struct span word, const struct jt_node *n,
                                       struct span space)
{
    enum sc_avro_kind kind;
    struct sc_avro_type *t;

    if (plain_kind(word, &kind))
        return type_new(p, kind, n);
    /* a name of no namespace is seen from all of them, as Java sees it */
    if ((t = known(p, full_name(p, word, space))) != NULL || (t = known(p, word)) != NULL)
        return t;
    return p->err == 0 ? fail(p, "it is no type", word) : NULL;
}

static struct sc_avro_type *parse_type(struct parse *p, const struct jt_node *n, struct span space)
{
    const struct jt_node *type;

    if (n->kind == SC_JSON_STRING)
        return parse_word(p, n->str, n, space);
    if (n->kind == SC_JSON_ARRAY)
        return parse_union(p, n, space);
    if (n->kind != SC_JSON_OBJECT || (type = jt_get(n, "type")) == NULL)
        return fail(p, "it is no type", n->kind == SC_JSON_OBJECT ? span_of("", 0) : n->text);
    if (type->kind != SC_JSON_STRING)
        return parse_type(p, type, space);
    if (span_eq_str(type->str, "array"))
        return parse_holder(p, n, SC_AVRO_ARRAY, "items", space);
    if (span_eq_str(type->str, "map"))
        return parse_holder(p, n, SC_AVRO_MAP, "values", space);
    if (span_eq_str(type->str, "record") || span_eq_str(type->str, "error"))
        return parse_named(p, n, SC_AVRO_RECORD, space);
    if (span_eq_str(type->str, "enum"))
        return parse_named(p, n, SC_AVRO_ENUM, space);
    if (span_eq_str(type->str, "fixed"))
        return parse_named(p, n, SC_AVRO_FIXED, space);
    return parse_word(p, type->str, n, space);
}

/* --- defaults --- */

static bool fits(struct parse *p, const struct sc_avro_type *t, const struct jt_node *v,
                 unsigned depth);

static bool fits_record(struct parse *p, const struct sc_avro_type *t, const struct jt_node *v,
                        unsigned depth)
{
    if (v->kind != SC_JSON_OBJECT)
        return false;
    for (size_t i = 0; i < t->members_n; i++) {
        const struct jt_node *of = jt_member(v, t->members[i].name);

        if (of == NULL)
            of = t->members[i].fallback;
        if (of == NULL || !fits(p, t->members[i].type, of, depth + 1))
            return false;
    }
    return true;
}

static bool is_whole(const struct jt_node *v, int64_t min, int64_t max)
{
    int64_t n;

    return v->kind == SC_JSON_NUMBER && num_parse_i64(v->text, &n) == 0 && n >= min && n <= max;
}

static bool fits(struct parse *p, const struct sc_avro_type *t, const struct jt_node *v,
                 unsigned depth)
{
    bool one = false;

    if (depth > DEFAULT_DEPTH || p->steps == 0) {
        no_room(p, E_LIMIT);
        return false;
    }
    p->steps--;
    switch (t->kind) {
    case SC_AVRO_NULL:
        return v->kind == SC_JSON_NULL;
    case SC_AVRO_BOOLEAN:
        return v->kind == SC_JSON_TRUE || v->kind == SC_JSON_FALSE;
    case SC_AVRO_INT:
        return is_whole(v, INT32_MIN, INT32_MAX);
    case SC_AVRO_LONG:
        return is_whole(v, INT64_MIN, INT64_MAX);
    case SC_AVRO_FLOAT:
    case SC_AVRO_DOUBLE:
        return v->kind == SC_JSON_NUMBER;
    case SC_AVRO_BYTES:
    case SC_AVRO_STRING:
    case SC_AVRO_FIXED:
    case SC_AVRO_ENUM:
        return v->kind == SC_JSON_STRING;
    case SC_AVRO_ARRAY:
    case SC_AVRO_MAP:
        if (v->kind != (t->kind == SC_AVRO_MAP ? SC_JSON_OBJECT : SC_JSON_ARRAY))
            return false;
        for (const struct jt_node *e = v->first; e != NULL; e = e->next) {
            if (!fits(p, t->parts[0], e, depth + 1))
                return false;
        }
        return true;
    case SC_AVRO_UNION:
        for (size_t i = 0; !one && i < t->parts_n; i++)
            one = fits(p, t->parts[i], v, depth + 1);
        return one;
    case SC_AVRO_RECORD:
        return fits_record(p, t, v, depth);
    }
    return false;
}

/* When all names are known. */
static void check_defaults(struct parse *p)
{
    for (size_t i = 0; p->err == 0 && i < p->names.cap; i++) {
        const struct sc_avro_type *t = p->names.slots[i];

        for (size_t k = 0; t != NULL && p->err == 0 && k < t->members_n; k++) {
            const struct sc_avro_member *f = &t->members[k];
            if (f->fallback != NULL && !fits(p, f->type, f->fallback, 0))
                fail(p, "a default does not fit its type", f->name);
        }
    }
}

/* --- looking up --- */

const struct sc_avro_member *sc_avro_member_of(const struct sc_avro_type *record, struct span name)
{
    size_t lo = 0, hi = record->members_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(record->by_name[mid]->name, name);

        if (c == 0)
            return record->by_name[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

bool sc_avro_has_symbol(const struct sc_avro_type *e, struct span symbol)
{
    return e->symbols_n > 0 &&
           bsearch(&symbol, e->sorted_symbols, e->symbols_n, sizeof symbol, by_text) != NULL;
}

/* --- life --- */

int sc_avro_model_new(struct span text, struct sc_schema_error *err, struct sc_avro_model **out)
{
    struct sc_json_error json = {0, NULL};
    struct jt_node *root;
    uint32_t n = 0;

    *out = NULL;
    *err = (struct sc_schema_error){"", ""};
    if (text.n > SC_SCHEMA_MAX_BYTES)
        return E_LIMIT;
    struct sc_avro_model *m = mem_zalloc(sizeof *m);
    if (m == NULL)
        return E_NOMEM;
    arena_init(&m->arena, MODEL_ARENA);
    struct parse p = {.m = m, .why = err, .steps = DEFAULT_STEPS};
    uint8_t *copy = take(&p, text.n, 1);
    if (copy != NULL) {
        if (text.n > 0)
            memcpy(copy, text.p, text.n);
        p.err = jt_parse(span_of(copy, text.n), &m->arena, &n, &json, &root);
        if (p.err < 0)
            (void)snprintf(err->reason, sizeof err->reason, "%s",
                           json.reason == NULL ? "it is no JSON" : json.reason);
    }
    if (p.err == 0)
        m->root = parse_type(&p, root, span_of("", 0));
    check_defaults(&p);
    if (p.err < 0) {
        sc_avro_model_free(m);
        return p.err;
    }
    *out = m;
    return 0;
}

void sc_avro_model_free(struct sc_avro_model *m)
{
    if (m == NULL)
        return;
    arena_fini(&m->arena);
    mem_free(m);
}

const struct sc_avro_type *sc_avro_model_root(const struct sc_avro_model *m)
{
    return m->root;
}

uint32_t sc_avro_model_types(const struct sc_avro_model *m)
{
    return m->types_n;
}
