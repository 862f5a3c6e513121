/*
 * Typed looks at a YAML document tree: each says what it wanted, and where, when it finds something
 * else. Plain scalars have JSON's types (null, booleans, numbers); quoted ones are text.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"
#include "gateway/catalog_int.h"
#include "schema/json_reader.h"

#define JSON_DEPTH_MAX 200
#define JSON_BYTES_MAX ((size_t)16 << 20)

size_t cat_line(const yaml_node_t *n)
{
    return n == NULL ? 0 : n->start_mark.line + 1;
}

yaml_node_t *cat_node(struct catalog_reader *r, int index)
{
    return yaml_document_get_node(&r->doc, index);
}

__attribute__((format(printf, 4, 0))) static void
add(struct catalog_reader *r, bool warning, const yaml_node_t *at, const char *fmt, va_list ap)
{
    struct catalog_faults *f = r->faults;

    if (warning)
        f->warnings++;
    else
        f->faults++;
    if (f->n == CATALOG_FAULTS_MAX)
        return;
    f->list[f->n].line = cat_line(at);
    f->list[f->n].warning = warning;
    (void)vsnprintf(f->list[f->n].text, sizeof f->list[f->n].text, fmt, ap);
    f->n++;
}

void cat_fault(struct catalog_reader *r, const yaml_node_t *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(r, false, at, fmt, ap);
    va_end(ap);
}

void cat_warn(struct catalog_reader *r, const yaml_node_t *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(r, true, at, fmt, ap);
    va_end(ap);
}

void *cat_array(struct catalog_reader *r, size_t n, size_t each)
{
    void *p = arena_array(&r->catalog->arena, n, each);

    r->failed = r->failed || p == NULL;
    return p;
}

/* --- types --- */

enum scalar { SCALAR_NONE, SCALAR_NULL, SCALAR_FALSE, SCALAR_TRUE, SCALAR_NUMBER, SCALAR_TEXT };

static bool is_number(struct span s)
{
    struct sc_json_error err;

    return s.n > 0 && (s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9')) &&
           sc_json_check(s, &err) == 0;
}

static struct span text_of(const yaml_node_t *n)
{
    return span_of(n->data.scalar.value, n->data.scalar.length);
}

static enum scalar scalar_of(const yaml_node_t *n)
{
    if (n == NULL || n->type != YAML_SCALAR_NODE)
        return SCALAR_NONE;
    if (n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return SCALAR_TEXT;
    struct span s = text_of(n);
    if (s.n == 0 || span_eq_str(s, "null") || span_eq_str(s, "~"))
        return SCALAR_NULL;
    if (span_eq_str(s, "true"))
        return SCALAR_TRUE;
    if (span_eq_str(s, "false"))
        return SCALAR_FALSE;
    return is_number(s) ? SCALAR_NUMBER : SCALAR_TEXT;
}

static const char *kind_of(const yaml_node_t *n)
{
    if (n != NULL && n->type == YAML_MAPPING_NODE)
        return "a mapping";
    if (n != NULL && n->type == YAML_SEQUENCE_NODE)
        return "a sequence";
    switch (scalar_of(n)) {
    case SCALAR_FALSE:
    case SCALAR_TRUE:
        return "a boolean";
    case SCALAR_NUMBER:
        return "a number";
    case SCALAR_TEXT:
        return "text";
    case SCALAR_NULL:
    case SCALAR_NONE:
        break;
    }
    return "nothing";
}

bool cat_string(struct catalog_reader *r, yaml_node_t *n, const char *what, const char **out)
{
    *out = NULL;
    if (scalar_of(n) != SCALAR_TEXT || memchr(n->data.scalar.value, 0, n->data.scalar.length)) {
        cat_fault(r, n, "%s: text belongs here, not %s", what,
                  scalar_of(n) == SCALAR_TEXT ? "a NUL" : kind_of(n));
        return false;
    }
    *out = arena_strndup(&r->catalog->arena, (const char *)n->data.scalar.value,
                         n->data.scalar.length);
    r->failed = r->failed || *out == NULL;
    return *out != NULL;
}

bool cat_bool(struct catalog_reader *r, yaml_node_t *n, const char *what, bool *out)
{
    enum scalar s = scalar_of(n);

    *out = s == SCALAR_TRUE;
    if (s == SCALAR_TRUE || s == SCALAR_FALSE)
        return true;
    cat_fault(r, n, "%s: true or false belongs here, not %s", what, kind_of(n));
    return false;
}

bool cat_count(struct catalog_reader *r, yaml_node_t *n, const char *what, int64_t max,
               int64_t *out)
{
    *out = 0;
    if (scalar_of(n) == SCALAR_NUMBER && num_parse_i64(text_of(n), out) == 0 && *out >= 0 &&
        *out <= max)
        return true;
    *out = 0;
    cat_fault(r, n, "%s: a whole number from 0 to %lld belongs here", what, (long long)max);
    return false;
}

/* --- mappings --- */

bool cat_mapping(struct catalog_reader *r, yaml_node_t *n, const char *what, struct cat_pairs *out)
{
    *out = (struct cat_pairs){.map = n};
    if (n != NULL && n->type == YAML_MAPPING_NODE)
        return true;
    cat_fault(r, n, "%s: a mapping belongs here, not %s", what, kind_of(n));
    return false;
}

static bool seen_before(struct catalog_reader *r, const struct cat_pairs *p, const yaml_node_t *key)
{
    const yaml_node_pair_t *first = p->map->data.mapping.pairs.start;

    for (size_t i = 0; i < p->at; i++) {
        const yaml_node_t *other = cat_node(r, first[i].key);
        if (other != NULL && other->type == YAML_SCALAR_NODE &&
            span_eq(text_of(other), text_of(key)))
            return true;
    }
    return false;
}

bool cat_next(struct catalog_reader *r, struct cat_pairs *p)
{
    const yaml_node_pair_t *first = p->map->data.mapping.pairs.start;
    size_t n = (size_t)(p->map->data.mapping.pairs.top - first);

    for (; p->at < n; p->at++) {
        yaml_node_t *key = cat_node(r, first[p->at].key);

        if (key == NULL || key->type != YAML_SCALAR_NODE ||
            memchr(key->data.scalar.value, 0, key->data.scalar.length) != NULL) {
            cat_fault(r, key, "a key must be text");
            continue;
        }
        if (seen_before(r, p, key)) {
            cat_fault(r, key, "\"%.100s\" is given twice", (const char *)key->data.scalar.value);
            continue;
        }
        p->key = (const char *)key->data.scalar.value; /* libyaml ends it with a NUL */
        p->key_node = key;
        p->value = cat_node(r, first[p->at].value);
        p->at++;
        return true;
    }
    return false;
}

/* --- JSON --- */

static bool put_json(struct catalog_reader *r, yaml_node_t *n, struct writer *w, unsigned depth);

static bool put_items(struct catalog_reader *r, yaml_node_t *n, struct writer *w, unsigned depth)
{
    wr_str(w, "[");
    for (const yaml_node_item_t *it = n->data.sequence.items.start; it < n->data.sequence.items.top;
         it++) {
        wr_str(w, it == n->data.sequence.items.start ? "" : ",");
        if (!put_json(r, cat_node(r, *it), w, depth))
            return false;
    }
    wr_str(w, "]");
    return true;
}

static bool put_pairs(struct catalog_reader *r, yaml_node_t *n, struct writer *w, unsigned depth)
{
    struct cat_pairs p = {.map = n};
    bool first = true;

    wr_str(w, "{");
    while (cat_next(r, &p)) {
        wr_str(w, first ? "" : ",");
        first = false;
        sc_json_quote(span_str(p.key), w);
        wr_str(w, ":");
        if (!put_json(r, p.value, w, depth))
            return false;
    }
    wr_str(w, "}");
    return true;
}

static bool put_json(struct catalog_reader *r, yaml_node_t *n, struct writer *w, unsigned depth)
{
    if (n == NULL || depth == 0 || wr_err(w) < 0) {
        cat_fault(r, n, "the schema is nested too deeply or too long");
        return false;
    }
    if (n->type == YAML_SEQUENCE_NODE)
        return put_items(r, n, w, depth - 1);
    if (n->type == YAML_MAPPING_NODE)
        return put_pairs(r, n, w, depth - 1);
    switch (scalar_of(n)) {
    case SCALAR_NUMBER:
    case SCALAR_TRUE:
    case SCALAR_FALSE:
        wr_span(w, text_of(n));
        break;
    case SCALAR_TEXT:
        sc_json_quote(text_of(n), w);
        break;
    case SCALAR_NULL:
    case SCALAR_NONE:
        wr_str(w, "null");
        break;
    }
    return true;
}

bool cat_json(struct catalog_reader *r, yaml_node_t *n, const char **out)
{
    struct writer w;
    bool ok;

    *out = NULL;
    wr_init(&w, JSON_BYTES_MAX);
    ok = put_json(r, n, &w, JSON_DEPTH_MAX);
    if (ok && wr_err(&w) == 0 && w.b != NULL)
        *out = arena_strndup(&r->catalog->arena, (const char *)w.b->data, w.b->len);
    if (ok && *out == NULL)
        cat_fault(r, n, "the schema is too long");
    wr_fini(&w);
    return *out != NULL;
}
