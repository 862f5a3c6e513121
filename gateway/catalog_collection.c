/* `collections:` of a catalog: schemas, key, projections and journals of each. */
#include <stdlib.h>

#include "gateway/catalog_int.h"
#include "gateway/view_build.h"
#include "schema/key.h"

static bool is_pointer(const char *text)
{
    struct sc_pointer *p;

    if (text[0] != '\0' && text[0] != '/')
        return false;
    if (sc_pointer_new(span_str(text), &p) < 0)
        return false;
    sc_pointer_free(p);
    return true;
}

static void read_key(struct catalog_reader *r, const struct cat_node *n,
                     struct catalog_collection *c)
{
    struct sc_key *key;
    size_t k = 0, bytes = 0;

    if (!cat_is_list(r, n))
        return;
    if (n->n == 0 || n->n > GW_KEY_PARTS_MAX) {
        cat_fault(r, n, "1 to %d JSON pointers belong here", GW_KEY_PARTS_MAX);
        return;
    }
    struct span *keys = cat_array(r, n->n, sizeof *keys);
    for (const struct cat_node *i = n->first; keys != NULL && i != NULL; i = i->next) {
        const char *text;

        if (!cat_text(r, i, &text))
            return;
        keys[k] = span_str(text);
        if ((bytes += keys[k].n) > GW_KEY_BYTES_MAX) {
            cat_fault(r, i, "the key's pointers are longer than %zu bytes", GW_KEY_BYTES_MAX);
            return;
        }
        int err = text[0] != '/' ? E_SYNTAX : sc_key_new(&keys[k], 1, &key);
        if (err == E_NOMEM) {
            r->failed = true;
            return;
        }
        if (err < 0) {
            cat_fault(r, i, "\"%.100s\" is no JSON pointer such as /id", text);
            return;
        }
        sc_key_free(key);
        k++;
    }
    c->keys = keys;
    c->keys_n = k;
}

/* --- projections --- */

static int by_field(const void *a, const void *b)
{
    const struct sc_projection *x = a, *y = b;

    return span_cmp(x->field, y->field);
}

static bool read_location(struct catalog_reader *r, const struct cat_node *n, const char **out)
{
    if (!cat_text(r, n, out))
        return false;
    if (is_pointer(*out))
        return true;
    cat_fault(r, n, "\"%.100s\" is no JSON pointer such as /id", *out);
    return false;
}

static bool read_projection(struct catalog_reader *r, const struct cat_node *n,
                            struct sc_projection *out, bool *partition)
{
    const struct cat_node *location = cat_member(n, "location");
    const char *text;

    *partition = false;
    if (n->kind == CAT_TEXT) {
        if (!read_location(r, n, &text))
            return false;
    } else {
        if (!cat_is_map(r, n))
            return false;
        for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
            if (cat_is(m, "partition"))
                (void)cat_bool(r, m, partition);
            else if (!cat_is(m, "location"))
                cat_unknown(r, m);
        }
        if (location == NULL) {
            cat_fault(r, n, "the location is missing");
            return false;
        }
        if (!read_location(r, location, &text))
            return false;
    }
    *out = (struct sc_projection){span_str(cat_copy(r, n->key)), span_str(text)};
    return true;
}

static void read_projections(struct catalog_reader *r, const struct cat_node *n,
                             struct catalog_collection *c)
{
    size_t k = 0, parts = 0;

    if (!cat_is_map(r, n))
        return;
    struct sc_projection *list = cat_array(r, n->n, sizeof *list);
    struct span *partitions = cat_array(r, n->n, sizeof *partitions);
    for (const struct cat_node *m = n->first; list != NULL && partitions != NULL && m != NULL;
         m = m->next) {
        bool partition;

        if (!read_projection(r, m, &list[k], &partition))
            continue;
        if (partition)
            partitions[parts++] = list[k].field;
        k++;
    }
    if (k > 0)
        qsort(list, k, sizeof *list, by_field);
    c->projections = list;
    c->projections_n = k;
    c->partitions = partitions;
    c->partitions_n = parts;
}

/* --- journals --- */

static void read_journals(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_collection *c)
{
    static const char *const others[] = {"fragments", "flags", "maxAppendRate", "replication"};
    const char *text;

    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (!cat_is(m, "prefix")) {
            if (!CAT_AMONG(m, others))
                cat_unknown(r, m);
            continue;
        }
        if (!cat_text(r, m, &text))
            continue;
        size_t len = strlen(text);
        while (len > 0 && text[len - 1] == '/')
            len--;
        if (len == 0)
            cat_fault(r, m, "a prefix of journal names belongs here");
        else
            c->prefix = cat_copy(r, span_of(text, len));
    }
}

/* --- collections --- */

struct schemas {
    const char *schema, *read, *write;
    bool seen;
};

static bool read_schemas(struct catalog_reader *r, const struct cat_node *m, struct schemas *s)
{
    const char **to = cat_is(m, "schema")        ? &s->schema
                      : cat_is(m, "readSchema")  ? &s->read
                      : cat_is(m, "writeSchema") ? &s->write
                                                 : NULL;

    if (to == NULL)
        return false;
    s->seen = true;
    (void)cat_schema(r, m, to);
    return true;
}

static bool legal_name(struct span name)
{
    if (name.n == 0 || name.n > 512 || name.p[0] == '/' || name.p[name.n - 1] == '/')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool fine = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' ||
                    (c == '/' && name.p[i - 1] != '/');
        if (!fine)
            return false;
    }
    return true;
}

bool cat_name(struct catalog_reader *r, const struct cat_node *n, struct span name)
{
    if (legal_name(name))
        return true;
    cat_fault(r, n,
              "a name has letters, digits, \"-\", \"_\", \".\", in segments between \"/\", and at "
              "most 512 bytes");
    return false;
}

static void read_collection(struct catalog_reader *r, const struct cat_node *n)
{
    static const char *const others[] = {"derive", "derivation",  "delete", "reset",
                                         "redact", "expectPubId", "data",   "$comment"};
    struct catalog_collection *c = cat_array(r, 1, sizeof *c);
    struct schemas s = {0};

    if (c == NULL || !cat_name(r, n, n->key) || !cat_is_map(r, n))
        return;
    c->name = cat_copy(r, n->key);
    c->file = cat_copy(r, span_str(cat_file_name(r, n)));
    c->line = n->line;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "key"))
            read_key(r, m, c);
        else if (cat_is(m, "projections"))
            read_projections(r, m, c);
        else if (cat_is(m, "journals"))
            read_journals(r, m, c);
        else if (!read_schemas(r, m, &s) && !CAT_AMONG(m, others))
            cat_unknown(r, m);
    }
    c->read_schema = s.read != NULL ? s.read : s.schema != NULL ? s.schema : s.write;
    c->write_schema = s.write != NULL ? s.write : s.schema != NULL ? s.schema : s.read;
    if (cat_member(n, "key") == NULL)
        cat_fault(r, n, "the key is missing");
    if (!s.seen)
        cat_fault(r, n, "the schema is missing");
    if (c->name != NULL && c->file != NULL)
        cat_chain(r, &r->collections, c);
}

void cat_read_collections(struct catalog_reader *r, const struct cat_node *n)
{
    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next)
        read_collection(r, m);
}

static int by_name(const void *a, const void *b)
{
    const struct catalog_collection *x = a, *y = b;
    int c = span_cmp(span_str(x->name), span_str(y->name));

    return c != 0 ? c : x->line < y->line ? -1 : x->line > y->line;
}

void cat_end_collections(struct catalog_reader *r)
{
    size_t n = r->collections.n, k = 0;
    struct catalog_collection *list = cat_array(r, n, sizeof *list);

    if (list == NULL)
        return;
    for (const struct cat_chain *c = r->collections.first; c != NULL; c = c->next)
        list[k++] = *(const struct catalog_collection *)c->item;
    if (n > 0)
        qsort(list, n, sizeof *list, by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            cat_say(r, false, list[i].file, (uint32_t)list[i].line, NULL,
                    "this collection is also "
                    "defined in another file");
    }
    r->catalog->collections = list;
    r->catalog->collections_n = n;
}

const struct catalog_collection *catalog_collection(const struct catalog *c, struct span name)
{
    size_t lo = 0, hi = c->collections_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int o = span_cmp(name, span_str(c->collections[mid].name));

        if (o == 0)
            return &c->collections[mid];
        if (o < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
