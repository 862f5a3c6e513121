/*
 * From a catalog file to the catalog: one YAML document, all faults in one run. libyaml's own limit
 * on nesting guards its recursion.
 */
#include "gateway/catalog.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "gateway/catalog_int.h"

#define ARENA_BYTES ((size_t)512 << 20)

static void wipe_tokens(const struct catalog *c)
{
    for (size_t i = 0; i < c->tasks_n; i++) {
        for (size_t k = 0; k < c->tasks[i].tokens_n; k++) {
            union {
                const char *in;
                char *out;
            } u = {.in = c->tasks[i].tokens[k]};
            mem_wipe(u.out, strlen(u.out));
        }
    }
}

void cat_drop(struct catalog *c)
{
    if (c == NULL)
        return;
    wipe_tokens(c);
    arena_fini(&c->arena);
    mem_free(c);
}

/* Counting is the only change that a catalog ever sees. */
static struct catalog *counted(const struct catalog *c)
{
    union {
        const struct catalog *in;
        struct catalog *out;
    } u = {.in = c};
    return u.out;
}

const struct catalog *catalog_ref(const struct catalog *c)
{
    atomic_fetch_add_explicit(&counted(c)->refs, 1, memory_order_relaxed);
    return c;
}

void catalog_unref(const struct catalog *c)
{
    if (c != NULL && atomic_fetch_sub_explicit(&counted(c)->refs, 1, memory_order_acq_rel) == 1)
        cat_drop(counted(c));
}

static void read_root(struct catalog_reader *r)
{
    yaml_node_t *root = yaml_document_get_root_node(&r->doc);
    bool materializations = false;
    struct cat_pairs p;

    if (root == NULL) {
        cat_fault(r, NULL, "the file is empty");
        return;
    }
    if (!cat_mapping(r, root, "catalog", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "collections") == 0) {
            cat_read_collections(r, p.value);
        } else if (strcmp(p.key, "materializations") == 0) {
            materializations = true;
            cat_read_materializations(r, p.value);
        } else if (strcmp(p.key, "import") == 0 || strcmp(p.key, "$ref") == 0) {
            cat_fault(r, p.key_node, "%s: other files are not read by this build", p.key);
        } else if (strcmp(p.key, "captures") != 0 && strcmp(p.key, "tests") != 0 &&
                   strcmp(p.key, "storageMappings") != 0 && strcmp(p.key, "$schema") != 0 &&
                   strcmp(p.key, "$id") != 0) {
            cat_warn(r, p.key_node, "unknown key \"%.100s\"", p.key);
        }
    }
    if (!materializations)
        cat_fault(r, root, "materializations are missing");
}

static void resolve(struct catalog_reader *r)
{
    const struct catalog *c = r->catalog;

    for (size_t i = 0; i < c->tasks_n; i++) {
        union {
            const struct catalog_binding *in;
            struct catalog_binding *out;
        } u = {.in = c->tasks[i].bindings};
        for (size_t k = 0; k < c->tasks[i].bindings_n; k++)
            u.out[k].collection = catalog_collection(c, span_str(u.out[k].source));
    }
}

static int load(struct catalog_reader *r, struct span text)
{
    yaml_parser_t parser;

    if (yaml_parser_initialize(&parser) == 0)
        return E_NOMEM;
    yaml_parser_set_input_string(&parser, text.p, text.n);
    if (yaml_parser_load(&parser, &r->doc) == 0) {
        yaml_node_t at = {.start_mark = parser.problem_mark};
        int err = parser.error == YAML_MEMORY_ERROR ? E_NOMEM : E_INVALID;

        if (err == E_INVALID)
            cat_fault(r, &at, "%s", parser.problem == NULL ? "not YAML" : parser.problem);
        yaml_parser_delete(&parser);
        return err;
    }
    yaml_parser_delete(&parser);
    return 0;
}

int catalog_parse(struct span text, const char *path, struct catalog_faults *faults,
                  const struct catalog **out)
{
    struct catalog_reader r = {.faults = faults};
    int err;

    *out = NULL;
    faults->n = faults->faults = faults->warnings = 0;
    if ((r.catalog = mem_zalloc(sizeof *r.catalog)) == NULL)
        return E_NOMEM;
    atomic_init(&r.catalog->refs, 1);
    arena_init(&r.catalog->arena, ARENA_BYTES);
    if ((err = load(&r, text)) < 0)
        goto out;
    if ((r.catalog->path = arena_strndup(&r.catalog->arena, path, strlen(path))) == NULL)
        r.failed = true;
    read_root(&r);
    resolve(&r);
    yaml_document_delete(&r.doc);
    err = r.failed ? E_NOMEM : faults->faults > 0 ? E_INVALID : 0;
    if (err < 0)
        goto out;
    *out = r.catalog;
    r.catalog = NULL;
out:
    cat_drop(r.catalog);
    return err;
}

/* E_INVALID: a fault was added. */
static int read_file(const char *path, struct catalog_reader *r, uint8_t **text, size_t *n)
{
    FILE *f = fopen(path, "rbe");
    uint8_t *buf = NULL;
    size_t cap = 0;
    int err = 0;

    *n = 0;
    if (f == NULL) {
        cat_fault(r, NULL, "cannot be opened: %s", err_text(err_from_errno(errno)));
        return E_INVALID;
    }
    while (err == 0 && !feof(f)) {
        if (*n == cap) {
            cap = cap == 0 ? 65536 : cap * 2;
            uint8_t *grown = cap > 2 * CATALOG_MAX_BYTES ? NULL : mem_realloc(buf, cap);
            if (grown == NULL) {
                err = cap > 2 * CATALOG_MAX_BYTES ? E_LIMIT : E_NOMEM;
                break;
            }
            buf = grown;
        }
        *n += fread(buf + *n, 1, cap - *n, f);
        if (ferror(f))
            err = E_IO;
    }
    (void)fclose(f);
    if (err == 0 && *n > CATALOG_MAX_BYTES)
        err = E_LIMIT;
    if (err == E_LIMIT)
        cat_fault(r, NULL, "longer than 64 MiB");
    if (err == E_IO)
        cat_fault(r, NULL, "cannot be read: %s", err_text(err));
    if (err < 0) {
        mem_free(buf);
        return err == E_NOMEM ? err : E_INVALID;
    }
    *text = buf;
    return 0;
}

int catalog_read(const char *path, struct catalog_faults *faults, const struct catalog **out)
{
    struct catalog_reader r = {.faults = faults};
    uint8_t *text = NULL;
    size_t n;
    int err;

    *out = NULL;
    faults->n = faults->faults = faults->warnings = 0;
    if ((err = read_file(path, &r, &text, &n)) < 0)
        return err;
    err = catalog_parse(span_of(text, n), path, faults, out);
    mem_wipe(text, n); /* it holds tokens */
    mem_free(text);
    return err;
}
