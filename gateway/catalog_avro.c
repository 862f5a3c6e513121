/*
 * Compiles the Avro programs of a catalog's bindings, once all of it was read, and gives their
 * schemas ids, which depend on all texts of the catalog together. A collection that has no Avro
 * form is a fault, with its place.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "gateway/catalog_int.h"

#include <stdio.h>

/* Of everything that the program is made of. */
struct marker {
    uint64_t a, b;
};

static void mark(struct marker *m, struct span s)
{
    m->a = hash_bytes(s, m->a ^ s.n);
    m->b = hash_bytes(s, m->b + 0x9e3779b97f4a7c15 + s.n);
}

static void mark_number(struct marker *m, uint64_t v)
{
    mark(m, span_of(&v, sizeof v));
}

static void mark_list(struct marker *m, const struct span *list, size_t n)
{
    mark_number(m, n);
    for (size_t i = 0; i < n; i++)
        mark(m, list[i]);
}

/* Of all files that schemas may refer to: once for all bindings, since they may be many. */
static struct marker mark_docs(const struct catalog *c)
{
    struct marker m = {1, 2};

    for (size_t i = 0; i < c->docs_n; i++) {
        mark(&m, c->docs[i].uri);
        mark(&m, c->docs[i].text);
    }
    return m;
}

static struct marker mark_of(struct marker m, const struct catalog_task *t,
                             const struct catalog_binding *b)
{
    const struct catalog_collection *from = b->collection;

    mark(&m, span_str(from->read_schema));
    mark(&m, span_str(from->write_schema));
    mark_list(&m, from->keys, from->keys_n);
    for (size_t i = 0; i < from->projections_n; i++) {
        mark(&m, from->projections[i].field);
        mark(&m, from->projections[i].pointer);
    }
    mark_number(&m, b->has_select);
    mark_number(&m, b->select.depth);
    mark_list(&m, b->select.include, b->select.include_n);
    mark_list(&m, b->select.require, b->select.require_n);
    mark_list(&m, b->select.exclude, b->select.exclude_n);
    mark_number(&m, (uint64_t)t->deletions);
    mark_number(&m, t->strict_names);
    return m;
}

static void say(struct catalog_reader *r, bool warning, const struct catalog_binding *b,
                const char *pointer, const char *text)
{
    char line[240];

    (void)snprintf(line, sizeof line, "%.50s as Avro: %.60s%s%.110s", b->source, pointer,
                   pointer[0] == '\0' ? "" : ": ", text);
    cat_say(r, warning, b->file, (uint32_t)b->line, NULL, line);
}

static int parse_schema(struct catalog_reader *r, const struct catalog_collection *from,
                        struct sc_schema_error *why, struct sc_schema **out)
{
    const struct catalog *c = r->catalog;
    struct sc_schema_doc *docs = mem_array(c->docs_n + 1, sizeof *docs);

    *out = NULL;
    if (docs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < c->docs_n; i++)
        docs[i] = c->docs[i];
    docs[c->docs_n] =
        (struct sc_schema_doc){span_str("flow://write-schema"), span_str(from->write_schema)};
    int err = sc_schema_new(span_str(from->read_schema), docs, c->docs_n + 1, why, out);
    mem_free(docs);
    return err;
}

static void compile(struct catalog_reader *r, const struct catalog_task *t,
                    struct catalog_binding *b, struct marker docs)
{
    const struct catalog_collection *from = b->collection;
    struct sc_schema_error why = {"", ""};
    struct sc_schema *schema = NULL;
    struct sc_avro *avro = NULL;
    const struct sc_avro_note *notes;
    const struct sc_avro_opts opts = {.key = from->keys,
                                      .key_n = from->keys_n,
                                      .projections = from->projections,
                                      .projections_n = from->projections_n,
                                      .select = b->has_select ? &b->select : NULL,
                                      .deletions = t->deletions,
                                      .strict_names = t->strict_names};
    int err = parse_schema(r, from, &why, &schema);

    if (err == 0)
        err = sc_avro_new(schema, &opts, &why, &avro);
    sc_schema_free(schema);
    if (err == 0) {
        const struct marker m = mark_of(docs, t, b);
        size_t n = sc_avro_notes(avro, &notes);

        for (size_t i = 0; i < n; i++)
            say(r, true, b, notes[i].field, notes[i].text);
        err = gw_avro_new(avro, (const uint64_t[2]){m.a, m.b}, &b->avro);
        if (err < 0)
            sc_avro_free(avro);
    }
    if (err == E_NOMEM)
        r->failed = true;
    else if (err < 0)
        say(r, false, b, why.pointer, why.reason);
}

/* Nobody else has seen the catalog yet. */
static struct catalog_binding *changeable(const struct catalog_binding *b)
{
    union {
        const struct catalog_binding *in;
        struct catalog_binding *out;
    } u = {.in = b};
    return u.out;
}

/* A binding's texts, in a fixed order. */
static size_t texts_of(const struct catalog_task *t, const struct catalog_binding *b,
                       struct span out[3])
{
    size_t n = 0;

    if (b->avro != NULL) {
        out[n++] = sc_avro_key_schema(b->avro->avro);
        out[n++] = sc_avro_value_schema(b->avro->avro);
    }
    if (b->collection != NULL && t->value_format == CATALOG_FORMAT_JSON)
        out[n++] = span_str(b->collection->read_schema);
    return n;
}

static void take_ids(const struct catalog_task *t, struct catalog_binding *b, const uint32_t *ids)
{
    if (b->avro != NULL) {
        sc_avro_set_ids(b->avro->avro, ids[0], ids[1]);
        ids += 2;
    }
    if (b->collection != NULL && t->value_format == CATALOG_FORMAT_JSON)
        b->json_id = ids[0];
}

static void give_ids(struct catalog_reader *r)
{
    const struct catalog *c = r->catalog;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < c->tasks_n; i++)
        n += 3 * c->tasks[i].bindings_n;
    struct span *texts = mem_array(n + 3, sizeof *texts);
    uint32_t *ids = mem_array(n + 3, sizeof *ids);
    for (size_t i = 0; texts != NULL && i < c->tasks_n; i++) {
        for (size_t j = 0; j < c->tasks[i].bindings_n; j++)
            k += texts_of(&c->tasks[i], &c->tasks[i].bindings[j], &texts[k]);
    }
    if (texts == NULL || ids == NULL || sc_schema_ids(texts, k, ids) < 0)
        r->failed = true;
    k = 0;
    for (size_t i = 0; !r->failed && i < c->tasks_n; i++) {
        for (size_t j = 0; j < c->tasks[i].bindings_n; j++) {
            struct span unused[3];
            struct catalog_binding *b = changeable(&c->tasks[i].bindings[j]);

            take_ids(&c->tasks[i], b, &ids[k]);
            k += texts_of(&c->tasks[i], b, unused);
        }
    }
    mem_free(texts);
    mem_free(ids);
}

void cat_compile(struct catalog_reader *r)
{
    const struct catalog *c = r->catalog;
    const struct marker docs = mark_docs(c);

    for (size_t i = 0; i < c->tasks_n; i++) {
        const struct catalog_task *t = &c->tasks[i];
        bool given = t->value_format == CATALOG_FORMAT_AVRO || t->key_format == CATALOG_FORMAT_AVRO;

        if (t->value_format == CATALOG_FORMAT_JSON && t->key_format != CATALOG_FORMAT_AVRO)
            continue;
        for (size_t j = 0; j < t->bindings_n; j++) {
            struct catalog_binding *b = changeable(&t->bindings[j]);
            if (b->collection != NULL)
                compile(r, t, b, docs);
            else
                say(r, !given, b, "",
                    given ? "its schema is not in the catalog; give it, or value_format: json"
                          : "its schema is not in the catalog: served as JSON");
        }
    }
    give_ids(r);
}

void cat_drop_programs(struct catalog *c)
{
    for (size_t i = 0; i < c->tasks_n; i++) {
        for (size_t j = 0; j < c->tasks[i].bindings_n; j++)
            gw_avro_unref(c->tasks[i].bindings[j].avro);
    }
}
