/*
 * The public face of shapes: reads a schema with the documents that it refers to, finds the shape
 * at a pointer. Of the documents only those are parsed that a reference leads to: a catalog may
 * have a thousand of them, for as many schemas. Pure, any thread.
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
    struct shape_reader rd; /* first member */
    struct arena tree;
    const struct sc_schema_doc *docs;
    size_t docs_n;
    bool *taken; /* of docs */
    uint32_t nodes_n, nodes_cap;
    const struct jt_node **roots;
    size_t roots_n;
};

static void *longer(struct parse *ps, const void *old, size_t cap, size_t bytes)
{
    void *p = arena_array(&ps->tree, cap, bytes);

    if (p != NULL && ps->nodes_cap > 0)
        memcpy(p, old, ps->nodes_cap * bytes);
    return p;
}

/* Makes room for what is kept of each node. */
static int make_room(struct parse *ps)
{
    struct shape_reader *rd = &ps->rd;
    size_t cap = ps->nodes_cap * (size_t)2;

    if (ps->nodes_n <= ps->nodes_cap)
        return 0;
    cap = cap > ps->nodes_n && cap <= UINT32_MAX ? cap : ps->nodes_n;
    void *memo = longer(ps, rd->memo, cap, sizeof(struct sc_shape *));
    void *state = longer(ps, rd->state, cap, 1);
    void *of = longer(ps, rd->refs.resource_of, cap, sizeof(uint32_t));
    void *of_by_id = longer(ps, rd->refs_by_id.resource_of, cap, sizeof(uint32_t));
    if (memo == NULL || state == NULL || of == NULL || of_by_id == NULL)
        return jt_no_room(&ps->tree, cap * sizeof(struct sc_shape *));
    rd->memo = memo;
    rd->state = state;
    rd->refs.resource_of = of;
    rd->refs_by_id.resource_of = of_by_id;
    ps->nodes_cap = (uint32_t)cap;
    return 0;
}

/* Parses a text and files its $id and $anchor. */
static int add_text(struct parse *ps, struct span uri, struct span text, struct sc_json_error *json)
{
    struct shape_reader *rd = &ps->rd;
    struct jt_node *root;
    int r;

    *json = (struct sc_json_error){.reason = "it is too large"};
    if (text.n > SC_SCHEMA_MAX_BYTES)
        return E_LIMIT;
    if ((r = jt_parse(text, &ps->tree, &ps->nodes_n, json, &root)) < 0 || (r = make_room(ps)) < 0)
        return r;
    ps->roots[ps->roots_n++] = root;
    refs_index(&rd->refs, uri, root);
    refs_index(&rd->refs_by_id, uri, root);
    return rd->refs.err < 0 ? rd->refs.err : rd->refs_by_id.err;
}

static int more(struct shape_reader *rd, struct span uri)
{
    struct parse *ps = (struct parse *)rd; /* first member */
    struct sc_json_error json;

    for (size_t i = ps->docs_n; i > 0; i--) {
        const struct sc_schema_doc *doc = &ps->docs[i - 1];

        if (ps->taken[i - 1] || (uri.p != NULL && !span_eq(doc->uri, uri)))
            continue;
        ps->taken[i - 1] = true;
        int r = add_text(ps, doc->uri, doc->text, &json);
        return r < 0 ? r : 1;
    }
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

static int read_all(struct parse *ps, struct span text, struct sc_schema_error *err,
                    struct sc_schema *s)
{
    struct shape_reader *rd = &ps->rd;
    struct sc_json_error json;
    char detail[96];

    ps->roots = arena_array(&ps->tree, ps->docs_n + 1, sizeof(struct jt_node *));
    ps->taken = arena_array(&ps->tree, ps->docs_n + 1, sizeof(bool));
    if (ps->roots == NULL || ps->taken == NULL)
        return E_NOMEM;
    rd->more = more;
    rd->refs = (struct refs){.a = &ps->tree};
    rd->refs_by_id = (struct refs){.a = &ps->tree, .ids = true};
    rd->mk.a = &s->arena;
    int r = add_text(ps, span_str(""), text, &json);
    if (r == E_NOMEM)
        return r;
    if (r < 0) {
        (void)snprintf(detail, sizeof detail, "%s at byte %zu", json.reason, json.at);
        return refuse(err, r, span_str(""), r == E_SYNTAX ? "the schema is not JSON" : "the schema",
                      detail);
    }
    s->root = read_schema(rd, ps->roots[0]);
    return rd->mk.err < 0 ? read_failed(ps, err) : 0;
}

int sc_schema_new(struct span text, const struct sc_schema_doc *docs, size_t docs_n,
                  struct sc_schema_error *err, struct sc_schema **out)
{
    struct parse ps = {.docs = docs, .docs_n = docs_n};
    struct sc_schema *s;
    int r = E_NOMEM;

    *out = NULL;
    *err = (struct sc_schema_error){.pointer = ""};
    arena_init(&ps.tree, TREE_ARENA_BYTES);
    if ((s = mem_zalloc(sizeof *s)) == NULL)
        goto out;
    arena_init(&s->arena, SHAPE_ARENA_BYTES);
    if ((r = read_all(&ps, text, err, s)) < 0)
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
