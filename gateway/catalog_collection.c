/* `collections:` of a catalog: schema and key of each. */
#include <stdlib.h>

#include "gateway/catalog_int.h"
#include "gateway/view_build.h"
#include "schema/key.h"

static const char *const other_keys[] = {"projections", "journals",    "derive", "delete",
                                         "reset",       "expectPubId", "data"};

static bool is_other(const char *key)
{
    for (size_t i = 0; i < sizeof other_keys / sizeof other_keys[0]; i++) {
        if (strcmp(key, other_keys[i]) == 0)
            return true;
    }
    return false;
}

static void read_key(struct catalog_reader *r, yaml_node_t *n, struct catalog_collection *c)
{
    struct sc_key *key;
    size_t count;

    if (n->type != YAML_SEQUENCE_NODE ||
        n->data.sequence.items.start == n->data.sequence.items.top) {
        cat_fault(r, n, "%s: key: a sequence of JSON pointers belongs here", c->name);
        return;
    }
    count = (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
    if (count > GW_KEY_PARTS_MAX) {
        cat_fault(r, n, "%s: key: at most %d pointers", c->name, GW_KEY_PARTS_MAX);
        return;
    }
    struct span *keys = cat_array(r, count, sizeof *keys);
    if (keys == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        yaml_node_t *item = cat_node(r, n->data.sequence.items.start[i]);
        const char *text;

        if (!cat_string(r, item, "key", &text))
            return;
        keys[i] = span_str(text);
        int err = text[0] != '/' ? E_SYNTAX : sc_key_new(&keys[i], 1, &key);
        if (err == 0) {
            sc_key_free(key);
        } else {
            cat_fault(r, item, "%s: key: \"%.100s\" is no JSON pointer such as /id", c->name, text);
            return;
        }
    }
    c->keys = keys;
    c->keys_n = count;
}

static void read_schema(struct catalog_reader *r, yaml_node_t *n, const char *what,
                        const char **out)
{
    bool unused;

    if (n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        (strcmp((const char *)n->data.scalar.value, "true") == 0 ||
         strcmp((const char *)n->data.scalar.value, "false") == 0)) {
        (void)cat_bool(r, n, what, &unused);
        (void)cat_json(r, n, out);
    } else if (n->type == YAML_SCALAR_NODE) {
        cat_fault(r, n,
                  "%s: schemas in other files are not read by this build; put the schema here",
                  what);
    } else if (n->type == YAML_SEQUENCE_NODE) {
        cat_fault(r, n, "%s: a JSON schema belongs here, not a sequence", what);
    } else {
        (void)cat_json(r, n, out);
    }
}

static void read_collection(struct catalog_reader *r, const struct cat_pairs *at,
                            struct catalog_collection *c)
{
    const char *schema = NULL, *read = NULL, *write = NULL;
    bool schema_seen = false, key_seen = false;
    struct cat_pairs p;

    c->line = cat_line(at->key_node);
    c->name = arena_strndup(&r->catalog->arena, at->key, strlen(at->key));
    r->failed = r->failed || c->name == NULL;
    if (c->name == NULL || !cat_mapping(r, at->value, c->name, &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "key") == 0) {
            key_seen = true;
            read_key(r, p.value, c);
        } else if (strcmp(p.key, "schema") == 0) {
            schema_seen = true;
            read_schema(r, p.value, "schema", &schema);
        } else if (strcmp(p.key, "readSchema") == 0) {
            schema_seen = true;
            read_schema(r, p.value, "readSchema", &read);
        } else if (strcmp(p.key, "writeSchema") == 0) {
            schema_seen = true;
            read_schema(r, p.value, "writeSchema", &write);
        } else if (!is_other(p.key)) {
            cat_warn(r, p.key_node, "unknown key \"%.100s\"", p.key);
        }
    }
    c->schema = read != NULL ? read : schema != NULL ? schema : write;
    if (!key_seen)
        cat_fault(r, at->key_node, "%s: the key is missing", c->name);
    if (!schema_seen)
        cat_fault(r, at->key_node, "%s: the schema is missing", c->name);
}

static int by_name(const void *a, const void *b)
{
    const struct catalog_collection *x = a, *y = b;

    return span_cmp(span_str(x->name), span_str(y->name));
}

void cat_read_collections(struct catalog_reader *r, yaml_node_t *n)
{
    struct catalog_collection *list;
    struct cat_pairs p;
    size_t count = 0;

    if (!cat_mapping(r, n, "collections", &p))
        return;
    list = cat_array(r, (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start),
                     sizeof *list);
    while (list != NULL && !r->failed && cat_next(r, &p))
        read_collection(r, &p, &list[count++]);
    if (list == NULL || r->failed)
        return;
    qsort(list, count, sizeof *list, by_name);
    r->catalog->collections = list;
    r->catalog->collections_n = count;
}

const struct catalog_collection *catalog_collection(const struct catalog *c, struct span name)
{
    size_t lo = 0, hi = c->collections_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int d = span_cmp(name, span_str(c->collections[mid].name));
        if (d == 0)
            return &c->collections[mid];
        if (d < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
