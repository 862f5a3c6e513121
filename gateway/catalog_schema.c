/*
 * Schemas as JSON text. A `$ref` to another file becomes a reference to one of the catalog's docs
 * by its absolute URI; references within a text ("#/...") stay as they are, and so do those to a
 * `$id` of the same text and all whose scheme says that they are no files (`flow:`, `http:`,
 * `urn:`). Where they lead, if anywhere, schema/ knows.
 */
#include <stdio.h>

#include "base/keymap.h"
#include "gateway/catalog_int.h"
#include "schema/json_reader.h"

/* Where a value stands: what its members' keys mean. */
enum place {
    PLACE_SCHEMA, /* keywords */
    PLACE_NAMES,  /* names of properties or definitions, with schemas */
    PLACE_VALUE,  /* example values: nothing in them is a keyword */
};

struct schema_text {
    struct catalog_reader *r;
    const struct cat_node *root; /* of the text: where a $id may stand */
    struct keymap ids;           /* all of them, once the first $ref asks */
    bool has_ids;
    struct writer w;
    bool failed;
};

static enum place place_of(const struct cat_node *n, enum place parent)
{
    static const char *const names[] = {"properties",  "patternProperties", "$defs",
                                        "definitions", "dependentSchemas",  "dependencies"};
    static const char *const values[] = {"const", "enum", "default", "examples", "example"};

    if (parent != PLACE_SCHEMA || n->parent == NULL || n->parent->kind != CAT_MAP)
        return parent == PLACE_NAMES ? PLACE_SCHEMA : parent;
    if (CAT_AMONG(n, names))
        return PLACE_NAMES;
    return CAT_AMONG(n, values) ? PLACE_VALUE : PLACE_SCHEMA;
}

/* `id` is what draft 4 called it. Whether a text is of draft 4 is not asked: where the name leads
 * nowhere, schema/ says so. As deep as trees are: CAT_DEPTH_MAX. */
static void find_ids(struct schema_text *t, const struct cat_node *n, enum place place)
{
    static const char *const keys[] = {"$id", "id"};

    if (n->kind != CAT_MAP && n->kind != CAT_LIST)
        return;
    for (const struct cat_node *c = n->first; c != NULL; c = c->next) {
        if (n->kind == CAT_MAP && place == PLACE_SCHEMA && c->kind == CAT_TEXT &&
            CAT_AMONG(c, keys) && keymap_get(&t->ids, c->text) == NULL &&
            keymap_put(&t->ids, c->text, t) < 0)
            t->r->failed = true;
        find_ids(t, c, place_of(c, place));
    }
}

static bool has_id(struct schema_text *t, struct span id)
{
    if (!t->has_ids)
        find_ids(t, t->root, PLACE_SCHEMA);
    t->has_ids = true;
    return keymap_get(&t->ids, id) != NULL;
}

/* Writes "file:///path#fragment" and sees to it that the file is one of the docs. */
static void put_file_ref(struct schema_text *t, const struct cat_node *at, struct span url,
                         struct span fragment)
{
    struct cat_source *s = cat_source(t->r, at, url);
    struct writer uri;

    if (s == NULL || s->root == NULL) {
        t->failed = true;
        return;
    }
    s->is_doc = true;
    wr_init(&uri, (size_t)64 * 1024);
    wr_str(&uri, "file://");
    wr_str(&uri, s->path);
    wr_span(&uri, fragment);
    if (wr_err(&uri) < 0)
        t->r->failed = true;
    else
        sc_json_quote(blob_span(uri.b), &t->w);
    wr_fini(&uri);
}

static void split(struct span ref, struct span *url, struct span *fragment)
{
    const uint8_t *hash = memchr(ref.p, '#', ref.n);
    size_t n = hash == NULL ? ref.n : (size_t)(hash - ref.p);

    *url = span_of(ref.p, n);
    *fragment = span_of(ref.p + n, ref.n - n);
}

/* A colon in front of the first slash ends a scheme (RFC 3986, 4.2). */
static bool is_no_file(struct span url)
{
    const uint8_t *colon = memchr(url.p, ':', url.n), *slash = memchr(url.p, '/', url.n);

    return colon != NULL && (slash == NULL || colon < slash) &&
           !span_has_prefix(url, span_str("file:"));
}

static void put_ref(struct schema_text *t, const struct cat_node *n)
{
    struct span url, fragment;

    split(n->text, &url, &fragment);
    if (url.n == 0 || is_no_file(url) || has_id(t, url))
        sc_json_quote(n->text, &t->w);
    else
        put_file_ref(t, n, url, fragment);
}

static void put_value(struct schema_text *t, const struct cat_node *n, enum place place)
{
    switch (n->kind) {
    case CAT_NULL:
        wr_str(&t->w, "null");
        return;
    case CAT_FALSE:
        wr_str(&t->w, "false");
        return;
    case CAT_TRUE:
        wr_str(&t->w, "true");
        return;
    case CAT_NUMBER:
        wr_span(&t->w, n->text);
        return;
    case CAT_TEXT:
        sc_json_quote(n->text, &t->w);
        return;
    case CAT_LIST:
    case CAT_MAP:
        break;
    }
    wr_str(&t->w, n->kind == CAT_MAP ? "{" : "[");
    for (const struct cat_node *c = n->first; c != NULL; c = c->next) {
        wr_str(&t->w, c == n->first ? "" : ",");
        if (n->kind == CAT_MAP) {
            sc_json_quote(c->key, &t->w);
            wr_str(&t->w, ":");
        }
        if (n->kind == CAT_MAP && place == PLACE_SCHEMA && cat_is(c, "$ref") && c->kind == CAT_TEXT)
            put_ref(t, c);
        else
            put_value(t, c, place_of(c, place));
    }
    wr_str(&t->w, n->kind == CAT_MAP ? "}" : "]");
}

static bool finish(struct schema_text *t, const struct cat_node *n, const char **out)
{
    if (t->w.err == E_LIMIT)
        cat_fault(t->r, n, "the schema is longer than 16 MiB");
    else if (wr_err(&t->w) < 0)
        t->r->failed = true;
    else if (!t->failed)
        *out = cat_copy(t->r, blob_span(t->w.b));
    wr_fini(&t->w);
    keymap_fini(&t->ids);
    return *out != NULL;
}

bool cat_schema(struct catalog_reader *r, const struct cat_node *n, const char **out)
{
    struct schema_text t = {.r = r, .root = n};
    struct span url, fragment;

    *out = NULL;
    wr_init(&t.w, SC_SCHEMA_MAX_BYTES);
    if (n->kind == CAT_TEXT) {
        split(n->text, &url, &fragment);
        wr_str(&t.w, "{\"$ref\":");
        put_file_ref(&t, n, url, fragment);
        wr_str(&t.w, "}");
    } else if (n->kind == CAT_MAP || n->kind == CAT_TRUE || n->kind == CAT_FALSE) {
        put_value(&t, n, PLACE_SCHEMA);
    } else {
        cat_fault(r, n, "a JSON schema, or the name of its file, belongs here, not %s",
                  cat_kind_text(n));
        t.failed = true;
    }
    return finish(&t, n, out);
}

void cat_docs(struct catalog_reader *r)
{
    /* Each doc may name further ones: room for all that there can be. */
    struct sc_schema_doc *docs = cat_array(r, CATALOG_FILES_MAX, sizeof *docs);
    bool done[CATALOG_FILES_MAX] = {false};
    size_t n = 0;

    for (size_t i = 0; docs != NULL && i < r->sources_n;) {
        const struct cat_source *s = &r->sources[i];
        struct schema_text t = {.r = r, .root = s->root};
        const char *text = NULL;
        char uri[4200];

        if (!s->is_doc || done[i]) {
            i++;
            continue;
        }
        done[i] = true;
        wr_init(&t.w, SC_SCHEMA_MAX_BYTES);
        put_value(&t, s->root, PLACE_SCHEMA);
        if (finish(&t, s->root, &text)) {
            (void)snprintf(uri, sizeof uri, "file://%s", s->path);
            const char *kept = cat_copy(r, span_str(uri));
            docs[n++] = (struct sc_schema_doc){span_str(kept), span_str(text)};
        }
        i = 0; /* an earlier file may have become one */
    }
    r->catalog->docs = docs;
    r->catalog->docs_n = n;
}
