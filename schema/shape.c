/*
 * The public face of shapes: reads a schema with the documents that it refers to, finds the shape
 * at a pointer. Pure, any thread.
 */
#include "schema/shape.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "schema/shape_int.h"

struct sc_schema {
    struct arena arena;
    const struct sc_shape *root;
};

void sc_schema_free(struct sc_schema *s)
{
    if (s == NULL)
        return;
    arena_fini(&s->arena);
    mem_free(s);
}

const struct sc_shape *sc_schema_root(const struct sc_schema *s)
{
    return s->root;
}

static int refuse(struct sc_schema_error *err, int code, struct span pointer, const char *reason,
                  const char *detail)
{
    (void)snprintf(err->pointer, sizeof err->pointer, "%.*s", SPAN_FMT(pointer));
    (void)snprintf(err->reason, sizeof err->reason, "%s%s%s", reason, detail == NULL ? "" : ": ",
                   detail == NULL ? "" : detail);
    return code;
}

/* Writes the pointer of target below node, backwards from *at; false: not below it. */
static bool trace(const struct jt_node *node, const struct jt_node *target, char *buf, size_t *at)
{
    char index[24];
    size_t i = 0;

    if (node == target)
        return true;
    for (const struct jt_node *m = node->first; m != NULL; m = m->next, i++) {
        struct span token = m->key;

        if (!trace(m, target, buf, at))
            continue;
        if (node->kind == SC_JSON_ARRAY) {
            (void)snprintf(index, sizeof index, "%zu", i);
            token = span_str(index);
        }
        for (size_t k = token.n; k > 0; k--) {
            uint8_t c = token.p[k - 1];
            bool escape = c == '~' || c == '/';

            if (*at < 3)
                return true; /* too long: the front is cut off */
            if (escape)
                buf[--*at] = c == '~' ? '0' : '1';
            buf[--*at] = escape ? '~' : (char)c;
        }
        if (*at > 0)
            buf[--*at] = '/';
        return true;
    }
    return false;
}

struct parse {
    struct arena tree;
    struct shape_reader rd;
    uint32_t nodes_n;
    const struct jt_node **roots;
    size_t roots_n;
};

static int parse_one(struct parse *ps, struct span text, struct sc_schema_error *err)
{
    struct sc_json_error json;
    struct jt_node *root;
    char detail[96];
    int r;

    if (text.n > SC_SCHEMA_MAX_BYTES)
        return refuse(err, E_LIMIT, span_str(""), "the schema is too large", NULL);
    if ((r = jt_parse(text, &ps->tree, &ps->nodes_n, &json, &root)) == E_NOMEM)
        return r;
    if (r < 0) {
        (void)snprintf(detail, sizeof detail, "%s at byte %zu", json.reason, json.at);
        return refuse(err, r, span_str(""), r == E_SYNTAX ? "the schema is not JSON" : "the schema",
                      detail);
    }
    ps->roots[ps->roots_n++] = root;
    return 0;
}

static int read_failed(struct parse *ps, struct sc_schema_error *err)
{
    char buf[sizeof err->pointer], detail[128];
    const struct jt_node *bad = ps->rd.bad;
    bool named = bad != NULL && bad->kind == SC_JSON_STRING;
    size_t at = sizeof buf;
    int code = ps->rd.mk.err;

    for (size_t i = 0; ps->rd.bad != NULL && i < ps->roots_n; i++) {
        at = sizeof buf;
        if (trace(ps->roots[i], ps->rd.bad, buf, &at))
            break;
    }
    if (code == E_NOMEM)
        return code;
    if (named) /* a $ref, or the name of a type */
        (void)snprintf(detail, sizeof detail, "%.*s", bad->str.n < 100 ? (int)bad->str.n : 100,
                       (const char *)bad->str.p);
    return refuse(err, code, span_of(buf + at, sizeof buf - at),
                  ps->rd.reason == NULL ? "the schema is too large" : ps->rd.reason,
                  named ? detail : NULL);
}

static int too_large(struct sc_schema_error *err, int code)
{
    return code == E_NOMEM ? code
                           : refuse(err, code, span_str(""), "the schema is too large", NULL);
}

/* Makes room for what is kept of each node, and files $id and $anchor of all texts. */
static int index_all(struct parse *ps, const struct sc_schema_doc *docs, size_t n,
                     struct sc_schema_error *err)
{
    struct shape_reader *rd = &ps->rd;

    rd->refs = (struct refs){.a = &ps->tree};
    rd->refs_by_id = (struct refs){.a = &ps->tree, .ids = true};
    rd->memo = arena_array(&ps->tree, ps->nodes_n, sizeof(struct sc_shape *));
    rd->state = arena_alloc(&ps->tree, ps->nodes_n);
    rd->refs.resource_of = arena_array(&ps->tree, ps->nodes_n, sizeof(uint32_t));
    rd->refs_by_id.resource_of = arena_array(&ps->tree, ps->nodes_n, sizeof(uint32_t));
    if (rd->memo == NULL || rd->state == NULL || rd->refs.resource_of == NULL ||
        rd->refs_by_id.resource_of == NULL)
        return too_large(err, jt_no_room(&ps->tree, ps->nodes_n * sizeof(struct sc_shape *)));
    for (size_t i = 0; i <= n; i++) {
        const struct span uri = i == 0 ? span_str("") : docs[i - 1].uri;

        refs_index(&rd->refs, uri, ps->roots[i]);
        refs_index(&rd->refs_by_id, uri, ps->roots[i]);
    }
    if (rd->refs.err < 0 || rd->refs_by_id.err < 0)
        return too_large(err, rd->refs.err < 0 ? rd->refs.err : rd->refs_by_id.err);
    return 0;
}

static int read_all(struct parse *ps, struct span text, const struct sc_schema_doc *docs, size_t n,
                    struct sc_schema_error *err, struct sc_schema *s)
{
    struct shape_reader *rd = &ps->rd;
    int r;

    ps->roots = arena_array(&ps->tree, n + 1, sizeof(struct jt_node *));
    if (ps->roots == NULL)
        return E_NOMEM;
    if ((r = parse_one(ps, text, err)) < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        if ((r = parse_one(ps, docs[i].text, err)) < 0)
            return r;
    }
    if ((r = index_all(ps, docs, n, err)) < 0)
        return r;
    rd->mk.a = &s->arena;
    s->root = read_schema(rd, ps->roots[0]);
    return rd->mk.err < 0 ? read_failed(ps, err) : 0;
}

int sc_schema_new(struct span text, const struct sc_schema_doc *docs, size_t docs_n,
                  struct sc_schema_error *err, struct sc_schema **out)
{
    struct parse ps = {.nodes_n = 0};
    struct sc_schema *s;
    int r = E_NOMEM;

    *out = NULL;
    *err = (struct sc_schema_error){.pointer = ""};
    arena_init(&ps.tree, TREE_ARENA_BYTES);
    if ((s = mem_zalloc(sizeof *s)) == NULL)
        goto out;
    arena_init(&s->arena, SHAPE_ARENA_BYTES);
    if ((r = read_all(&ps, text, docs, docs_n, err, s)) < 0)
        goto out;
    *out = s;
    s = NULL;
out:
    sc_schema_free(s);
    arena_fini(&ps.tree);
    return r;
}

/* --- locations --- */

static void at_member(const struct sc_shape **cur, struct span name, bool only,
                      enum sc_exists *exists)
{
    const struct sc_property *p = shape_property(*cur, name);
    enum sc_exists here;

    if (p != NULL) {
        here = p->required && only ? SC_EXISTS_MUST : SC_EXISTS_MAY;
        *cur = p->shape;
    } else {
        here = (*cur)->extra == NULL ? SC_EXISTS_IMPLICIT : SC_EXISTS_MAY;
        *cur = (*cur)->extra;
    }
    *exists = here > *exists ? here : *exists;
}

static void at_index(const struct sc_shape **cur, struct span token, enum sc_exists *exists)
{
    enum sc_exists here = SC_EXISTS_MAY;
    uint64_t i;

    if (num_parse_u64(token, &i) < 0 || i >= (*cur)->max_items) {
        *cur = &SC_NEVER;
        return;
    }
    if (i < (*cur)->tuple_n) {
        *cur = (*cur)->tuple[i];
    } else {
        here = (*cur)->items == NULL ? SC_EXISTS_IMPLICIT : SC_EXISTS_MAY;
        *cur = (*cur)->items;
    }
    *exists = here > *exists ? here : *exists;
}

int sc_shape_at(const struct sc_shape *root, struct span pointer, const struct sc_shape **out,
                enum sc_exists *exists)
{
    const struct sc_shape *cur = root;
    uint8_t *token;
    size_t i = 0;
    bool top = true;

    *out = NULL;
    *exists = SC_EXISTS_MUST;
    if (pointer.n > 0 && pointer.p[0] != '/')
        return E_SYNTAX;
    if ((token = mem_alloc(pointer.n + 1)) == NULL)
        return E_NOMEM;
    while (i < pointer.n) {
        size_t n = 0;
        unsigned types = shape_types(cur);

        for (i++; i < pointer.n && pointer.p[i] != '/'; i++) {
            uint8_t c = pointer.p[i];

            if (c == '~') {
                i++;
                if (i == pointer.n || (pointer.p[i] != '0' && pointer.p[i] != '1')) {
                    mem_free(token);
                    return E_SYNTAX;
                }
                c = pointer.p[i] == '0' ? '~' : '/';
            }
            token[n++] = c;
        }
        /* a document is an object, whatever else its schema admits at the root */
        if (top && (types & SC_T_OBJECT) != 0)
            types = SC_T_OBJECT;
        top = false;
        if (cur == NULL)
            *exists = SC_EXISTS_IMPLICIT > *exists ? SC_EXISTS_IMPLICIT : *exists;
        else if ((types & SC_T_OBJECT) != 0)
            at_member(&cur, span_of(token, n), types == SC_T_OBJECT, exists);
        else if ((types & SC_T_ARRAY) != 0)
            at_index(&cur, span_of(token, n), exists);
        else
            cur = &SC_NEVER;
    }
    mem_free(token);
    if (shape_is_never(cur))
        *exists = SC_EXISTS_NEVER;
    *out = cur;
    return 0;
}
