/*
 * From files to a catalog: all files first, then collections, then tasks, so that their order in
 * the text does not matter; all faults in one run.
 */
#include "gateway/catalog.h"

#include "base/mem.h"
#include "gateway/catalog_int.h"

#define CATALOG_ARENA ((size_t)1 << 30)
#define TREE_ARENA    ((size_t)2 << 30)

/* --- life --- */

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
    cat_drop_programs(c);
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

/* --- reading --- */

static void on_tree_fault(void *arg, uint32_t file, uint32_t line, const struct cat_node *at,
                          const char *text)
{
    struct catalog_reader *r = arg;
    const char *name = file < r->sources_n ? r->sources[file].name : r->catalog->path;

    cat_say(r, false, name, line, at, text);
}

static void read_imports(struct catalog_reader *r, const struct cat_node *n)
{
    if (!cat_is_list(r, n))
        return;
    for (const struct cat_node *i = n->first; i != NULL; i = i->next) {
        const struct cat_node *url = i->kind == CAT_MAP ? cat_member(i, "url") : i;
        const struct cat_node *type = cat_member(i, "contentType");
        struct cat_source *s;

        if (type != NULL && type->kind == CAT_TEXT && !span_eq_str(type->text, "CATALOG"))
            continue; /* a schema or settings: read where it is used */
        if (url == NULL || url->kind != CAT_TEXT)
            cat_fault(r, i, "the name of a file belongs here");
        else if ((s = cat_source(r, url, url->text)) != NULL)
            s->imported = true;
    }
}

/* The list of sources grows while it is walked, and a file that was read for another reason may
 * turn out to be imported: until a walk finds nothing new. */
static void read_files(struct catalog_reader *r)
{
    bool seen[CATALOG_FILES_MAX] = {false};
    bool found = true;

    while (found) {
        found = false;
        for (size_t i = 0; i < r->sources_n; i++) {
            const struct cat_source *s = &r->sources[i];
            const struct cat_node *import = cat_member(s->root, "import");

            if (!s->imported || seen[i])
                continue;
            seen[i] = found = true;
            if (import != NULL)
                read_imports(r, import);
        }
    }
}

static void check_keys(struct catalog_reader *r, const struct cat_node *root)
{
    static const char *const known[] = {"collections", "materializations", "import",  "captures",
                                        "tests",       "storageMappings",  "$schema", "$id",
                                        "resources",   "$comment"};

    if (!cat_is_map(r, root))
        return;
    for (const struct cat_node *m = root->first; m != NULL; m = m->next) {
        if (!CAT_AMONG(m, known))
            cat_unknown(r, m);
    }
}

/* Calls read for the member of each imported file that has it. */
static void each_file(struct catalog_reader *r, const char *key,
                      void (*read)(struct catalog_reader *r, const struct cat_node *n))
{
    for (size_t i = 0; i < r->sources_n; i++) {
        const struct cat_node *n =
            r->sources[i].imported ? cat_member(r->sources[i].root, key) : NULL;

        if (n != NULL)
            read(r, n);
    }
}

static void read_all(struct catalog_reader *r)
{
    read_files(r);
    for (size_t i = 0; i < r->sources_n; i++) {
        if (r->sources[i].imported && r->sources[i].root != NULL)
            check_keys(r, r->sources[i].root);
    }
    each_file(r, "collections", cat_read_collections);
    cat_end_collections(r);
    each_file(r, "materializations", cat_read_materializations);
    cat_end_tasks(r);
    cat_docs(r);
}

/* text NULL: the file is read. */
static int parse(const char *path, const struct span *text, struct catalog_faults *faults,
                 struct catalog_files *files, const struct catalog **out)
{
    int err = E_NOMEM;

    *out = NULL;
    faults->n = faults->faults = faults->warnings = 0;
    struct catalog_reader *r = mem_zalloc(sizeof *r);
    struct catalog *c = mem_zalloc(sizeof *c);
    if (r == NULL || c == NULL) {
        mem_free(r);
        mem_free(c);
        return E_NOMEM;
    }
    atomic_init(&c->refs, 1);
    arena_init(&c->arena, CATALOG_ARENA);
    arena_init(&r->arena, TREE_ARENA);
    r->catalog = c;
    r->faults = faults;
    r->files = files;
    r->tree = (struct cat_tree){.arena = &r->arena, .fault = on_tree_fault, .arg = r};
    if ((c->path = arena_strndup(&c->arena, path, strlen(path))) == NULL)
        goto out;
    if (text != NULL)
        cat_take_main(r, path, *text);
    else
        cat_open_main(r, path);
    if (r->sources_n > 0)
        read_all(r);
    if (!r->failed && !r->tree.failed && faults->faults == 0)
        cat_compile(r);
    err = r->failed || r->tree.failed ? E_NOMEM : faults->faults > 0 ? E_INVALID : 0;
out:
    cat_wipe_secrets(r);
    keymap_fini(&r->by_url);
    keymap_fini(&r->looked);
    arena_fini(&r->arena);
    mem_free(r);
    if (err < 0) {
        cat_drop(c);
        return err;
    }
    *out = c;
    return 0;
}

int catalog_parse(struct span text, const char *path, struct catalog_faults *faults,
                  const struct catalog **out)
{
    return parse(path, &text, faults, NULL, out);
}

int catalog_read(const char *path, struct catalog_faults *faults, struct catalog_files *files,
                 const struct catalog **out)
{
    return parse(path, NULL, faults, files, out);
}
