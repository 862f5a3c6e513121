/*
 * Any Avro schema's Parsing Canonical Form, its fingerprint, and ids made of contents. The form
 * follows the specification's seven rules; it leaves out defaults and logical types, so two schemas
 * of one form may still differ: ids are made of the whole text. Pure, any thread.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/avro.h"
#include "schema/json_tree.h"

#define CANON_ARENA ((size_t)64 << 20)

static const char *const PRIMITIVES[] = {"null",  "boolean", "int",   "long",
                                         "float", "double",  "bytes", "string"};

static bool is_primitive(struct span s)
{
    for (size_t i = 0; i < sizeof PRIMITIVES / sizeof PRIMITIVES[0]; i++) {
        if (span_eq_str(s, PRIMITIVES[i]))
            return true;
    }
    return false;
}

static bool has_dot(struct span s)
{
    return s.n > 0 && memchr(s.p, '.', s.n) != NULL;
}

/* The full name, quoted. */
static void put_name(struct writer *w, struct span name, struct span space)
{
    wr_u8(w, '"');
    if (!has_dot(name) && space.n > 0) {
        wr_span(w, space);
        wr_u8(w, '.');
    }
    wr_span(w, name);
    wr_u8(w, '"');
}

static struct span name_space(struct span full)
{
    size_t dot = full.n;

    while (dot > 0 && full.p[dot - 1] != '.')
        dot--;
    return span_of(full.p, dot == 0 ? 0 : dot - 1);
}

static int put_schema(struct writer *w, const struct jt_node *s, struct span space);

static int put_fields(struct writer *w, const struct jt_node *fields, struct span space)
{
    int err;

    if (fields == NULL || fields->kind != SC_JSON_ARRAY)
        return E_INVALID;
    wr_str(w, ",\"fields\":[");
    for (const struct jt_node *f = fields->first; f != NULL; f = f->next) {
        const struct jt_node *name = jt_get(f, "name"), *type = jt_get(f, "type");

        if (name == NULL || name->kind != SC_JSON_STRING || type == NULL)
            return E_INVALID;
        wr_str(w, f == fields->first ? "{\"name\":" : ",{\"name\":");
        sc_json_quote(name->str, w);
        wr_str(w, ",\"type\":");
        if ((err = put_schema(w, type, space)) < 0)
            return err;
        wr_u8(w, '}');
    }
    wr_u8(w, ']');
    return 0;
}

static int put_named(struct writer *w, const struct jt_node *s, struct span kind, struct span space)
{
    const struct jt_node *name = jt_get(s, "name"), *own = jt_get(s, "namespace");
    const struct jt_node *list = jt_get(s, "symbols"), *size = jt_get(s, "size");
    int err = 0;

    if (name == NULL || name->kind != SC_JSON_STRING)
        return E_INVALID;
    if (has_dot(name->str))
        space = name_space(name->str);
    else if (own != NULL && own->kind == SC_JSON_STRING)
        space = own->str;
    wr_str(w, "{\"name\":");
    put_name(w, name->str, space);
    wr_str(w, ",\"type\":");
    sc_json_quote(span_eq_str(kind, "error") ? span_str("record") : kind, w);
    if (span_eq_str(kind, "enum")) {
        if (list == NULL || list->kind != SC_JSON_ARRAY)
            return E_INVALID;
        wr_str(w, ",\"symbols\":[");
        for (const struct jt_node *e = list->first; e != NULL; e = e->next) {
            if (e->kind != SC_JSON_STRING)
                return E_INVALID;
            if (e != list->first)
                wr_u8(w, ',');
            sc_json_quote(e->str, w);
        }
        wr_u8(w, ']');
    } else if (span_eq_str(kind, "fixed")) {
        struct span text;

        if (size == NULL || (size->kind != SC_JSON_NUMBER && size->kind != SC_JSON_STRING))
            return E_INVALID;
        text = size->kind == SC_JSON_STRING ? size->str : size->text;
        while (text.n > 1 && text.p[0] == '0')
            text = span_of(text.p + 1, text.n - 1);
        wr_str(w, ",\"size\":");
        wr_span(w, text);
    } else {
        err = put_fields(w, jt_get(s, "fields"), space);
    }
    wr_u8(w, '}');
    return err;
}

/* items of an array, values of a map */
static int put_holder(struct writer *w, const struct jt_node *s, const char *kind, const char *part,
                      struct span space)
{
    const struct jt_node *of = jt_get(s, part);
    int err;

    if (of == NULL)
        return E_INVALID;
    wr_printf(w, "{\"type\":\"%s\",\"%s\":", kind, part);
    err = put_schema(w, of, space);
    wr_u8(w, '}');
    return err;
}

/* Recursion is bounded by the tree's depth. */
static int put_schema(struct writer *w, const struct jt_node *s, struct span space)
{
    const struct jt_node *type;
    int err;

    if (s->kind == SC_JSON_STRING) {
        put_name(w, s->str, is_primitive(s->str) ? span_of("", 0) : space);
        return 0;
    }
    if (s->kind == SC_JSON_ARRAY) {
        wr_u8(w, '[');
        for (const struct jt_node *e = s->first; e != NULL; e = e->next) {
            if (e != s->first)
                wr_u8(w, ',');
            if ((err = put_schema(w, e, space)) < 0)
                return err;
        }
        wr_u8(w, ']');
        return 0;
    }
    if ((type = jt_get(s, "type")) == NULL)
        return E_INVALID;
    if (type->kind != SC_JSON_STRING) /* {"type": {...}} */
        return put_schema(w, type, space);
    if (span_eq_str(type->str, "array"))
        return put_holder(w, s, "array", "items", space);
    if (span_eq_str(type->str, "map"))
        return put_holder(w, s, "map", "values", space);
    if (span_eq_str(type->str, "record") || span_eq_str(type->str, "error") ||
        span_eq_str(type->str, "enum") || span_eq_str(type->str, "fixed"))
        return put_named(w, s, type->str, space);
    return put_schema(w, type, space); /* a primitive with attributes, or a name */
}

int sc_avro_canonical(struct span schema, struct writer *out)
{
    struct sc_json_error json;
    struct jt_node *root;
    struct arena a;
    uint32_t n = 0;
    int err;

    if (schema.n > SC_SCHEMA_MAX_BYTES)
        return E_LIMIT;
    arena_init(&a, CANON_ARENA);
    if ((err = jt_parse(schema, &a, &n, &json, &root)) == 0)
        err = put_schema(out, root, span_of("", 0));
    arena_fini(&a);
    return err < 0 ? err : wr_err(out);
}

uint64_t sc_avro_fingerprint(struct span bytes)
{
    const uint64_t empty = UINT64_C(0xc15d213aa4d7a795);
    uint64_t h = empty;

    for (size_t i = 0; i < bytes.n; i++) {
        h ^= bytes.p[i];
        for (unsigned k = 0; k < 8; k++)
            h = (h >> 1) ^ (empty & (0 - (h & 1)));
    }
    return h;
}

/* --- ids --- */

static uint32_t id_of(struct span text)
{
    uint64_t h = sc_avro_fingerprint(text);

    h = (h ^ h >> 31) & INT32_MAX;
    return h == 0 ? 1 : (uint32_t)h;
}

struct id_text {
    struct span text;
    size_t at;
    uint32_t id;
};

static int by_id_and_text(const void *a, const void *b)
{
    const struct id_text *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return span_cmp(x->text, y->text);
}

static int by_id(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Whether the id belongs to some text by itself, or was given away. */
static bool is_taken(const uint32_t *natural, size_t n, const struct id_text *list, size_t done,
                     uint32_t id)
{
    if (bsearch(&id, natural, n, sizeof id, by_id) != NULL)
        return true;
    for (size_t i = 0; i < done; i++) {
        if (list[i].id == id)
            return true;
    }
    return false;
}

int sc_schema_ids(const struct span *texts, size_t n, uint32_t *out)
{
    struct id_text *list = mem_array(n + 1, sizeof *list);
    uint32_t *natural = mem_array(n + 1, sizeof *natural);
    struct span last = {NULL, 0};
    uint32_t owner = 0;
    int err = E_NOMEM;

    if (list == NULL || natural == NULL)
        goto out;
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct id_text){.text = texts[i], .at = i, .id = id_of(texts[i])};
        natural[i] = list[i].id;
    }
    qsort(list, n, sizeof *list, by_id_and_text);
    qsort(natural, n, sizeof *natural, by_id);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = list[i].id;

        if (last.p != NULL && span_eq(list[i].text, last)) {
            id = out[list[i - 1].at];
        } else if (id == owner) { /* two texts met: this one gives way */
            do
                id = id == INT32_MAX ? 1 : id + 1;
            while (is_taken(natural, n, list, i, id));
        }
        owner = list[i].id;
        last = list[i].text;
        out[list[i].at] = id;
        list[i].id = id;
    }
    err = 0;
out:
    mem_free(list);
    mem_free(natural);
    return err;
}
