/*
 * Whether two JSON texts are one value, and two Avro schemas are one schema, written differently.
 * Named types are compared once: when they meet again, it must be the same two.
 */
#include "base/mem.h"
#include "schema/avro_model_int.h"
#include "schema/json_tree.h"

#define JSON_ARENA ((size_t)256 << 20)
#define DEPTH_MAX  2000 /* names may lead deeper than the text is nested */

struct same {
    uint32_t *mate; /* of a's type: 1 + id of b's */
    unsigned depth;
};

/* --- JSON values --- */

static bool json_same(const struct jt_node *a, const struct jt_node *b)
{
    const struct jt_node *x, *y;

    if (a == NULL || b == NULL)
        return a == b;
    if (a->kind != b->kind || a->n != b->n)
        return false;
    switch (a->kind) {
    case SC_JSON_NULL:
    case SC_JSON_FALSE:
    case SC_JSON_TRUE:
        return true;
    case SC_JSON_NUMBER:
        return span_eq(a->text, b->text);
    case SC_JSON_STRING:
        return span_eq(a->str, b->str);
    case SC_JSON_ARRAY:
        for (x = a->first, y = b->first; x != NULL && y != NULL; x = x->next, y = y->next) {
            if (!json_same(x, y))
                return false;
        }
        return true;
    case SC_JSON_OBJECT:
        for (x = a->first, y = b->first; x != NULL && y != NULL; x = x->next, y = y->next) {
            if (span_eq(x->key, y->key)) { /* nearly always in the same order */
                if (!json_same(x, y))
                    return false;
            } else if (!json_same(x, jt_member(b, x->key)) || jt_member(a, y->key) == NULL) {
                return false; /* a name may be there twice: both must have all of the other's */
            }
        }
        return true;
    }
    return false;
}

int sc_json_same(struct span a, struct span b, bool *same)
{
    struct sc_json_error why;
    struct jt_node *x, *y;
    struct arena arena;
    uint32_t n = 0;

    *same = false;
    if (a.n > SC_SCHEMA_MAX_BYTES || b.n > SC_SCHEMA_MAX_BYTES)
        return E_LIMIT;
    arena_init(&arena, JSON_ARENA);
    int err = jt_parse(a, &arena, &n, &why, &x);
    if (err == 0 && (err = jt_parse(b, &arena, &n, &why, &y)) == 0)
        *same = json_same(x, y);
    arena_fini(&arena);
    return err;
}

/* --- attributes that have no meaning of their own here --- */

static bool is_known(struct span key)
{
    static const char *const words[] = {"type",    "name",  "namespace", "aliases", "fields",
                                        "symbols", "items", "values",    "size",    "default"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (span_eq_str(key, words[i]))
            return true;
    }
    return false;
}

/* Every further attribute of a is b's too. */
static bool extras_in(const struct jt_node *a, const struct jt_node *b)
{
    if (a->kind != SC_JSON_OBJECT)
        return true;
    for (const struct jt_node *m = a->first; m != NULL; m = m->next) {
        /* of duplicates the last counts */
        if (!is_known(m->key) && !json_same(jt_member(a, m->key), jt_member(b, m->key)))
            return false;
    }
    return true;
}

static bool extras_same(const struct jt_node *a, const struct jt_node *b)
{
    return extras_in(a, b) && extras_in(b, a);
}

/* --- types --- */

static bool type_same(struct same *s, const struct sc_avro_type *a, const struct sc_avro_type *b);

static bool words_same(const struct span *a, size_t a_n, const struct span *b, size_t b_n)
{
    if (a_n != b_n)
        return false;
    for (size_t i = 0; i < a_n; i++) {
        if (!span_eq(a[i], b[i]))
            return false;
    }
    return true;
}

static bool members_same(struct same *s, const struct sc_avro_type *a, const struct sc_avro_type *b)
{
    for (size_t i = 0; i < a->members_n; i++) {
        const struct sc_avro_member *x = &a->members[i], *y = &b->members[i];

        if (!span_eq(x->name, y->name) || !json_same(x->fallback, y->fallback) ||
            !words_same(x->aliases, x->aliases_n, y->aliases, y->aliases_n) ||
            !extras_same(x->node, y->node) || !type_same(s, x->type, y->type))
            return false;
    }
    return true;
}

static bool type_same(struct same *s, const struct sc_avro_type *a, const struct sc_avro_type *b)
{
    if (a->kind != b->kind || !span_eq(a->full, b->full))
        return false;
    if (s->mate[a->id] != 0)
        return s->mate[a->id] == b->id + 1;
    s->mate[a->id] = b->id + 1;
    if (a->parts_n != b->parts_n || a->members_n != b->members_n || a->size != b->size ||
        !span_eq(a->fallback, b->fallback) ||
        !words_same(a->symbols, a->symbols_n, b->symbols, b->symbols_n) ||
        !words_same(a->aliases, a->aliases_n, b->aliases, b->aliases_n) ||
        !extras_same(a->node, b->node))
        return false;
    if (s->depth == DEPTH_MAX)
        return false;
    s->depth++;
    bool same = true;
    for (size_t i = 0; same && i < a->parts_n; i++)
        same = type_same(s, a->parts[i], b->parts[i]);
    same = same && members_same(s, a, b);
    s->depth--;
    return same;
}

int sc_avro_model_same(const struct sc_avro_model *a, const struct sc_avro_model *b, bool *same)
{
    struct same s = {.mate = mem_array((size_t)a->types_n + 1, sizeof *s.mate)};

    *same = false;
    if (s.mate == NULL)
        return E_NOMEM;
    *same = type_same(&s, a->root, b->root);
    mem_free(s.mate);
    return 0;
}
