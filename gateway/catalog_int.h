/* Private to catalog*.c: one reading of a catalog, with typed looks at its values. */
#pragma once

#include "base/keymap.h"
#include "base/writer.h"
#include "gateway/catalog.h"
#include "gateway/catalog_tree.h"

/* A file that was read, whatever for. */
struct cat_source {
    const char *path;            /* resolved: each file is read once */
    const char *name;            /* for messages: as it was named */
    const struct cat_node *root; /* NULL: it has faults */
    bool imported;               /* its collections and materializations count */
    bool is_doc;                 /* schemas refer to it */
};

struct cat_chain { /* results in the order in which they are found */
    const void *item;
    struct cat_chain *next;
};

struct cat_list {
    struct cat_chain *first;
    struct cat_chain *last;
    size_t n;
};

struct catalog_reader {
    struct catalog *catalog; /* under construction */
    struct catalog_faults *faults;
    struct catalog_files *files; /* NULL: nobody asks */
    struct arena arena;          /* trees and sources */
    struct cat_tree tree;
    struct cat_source sources[CATALOG_FILES_MAX];
    size_t sources_n;
    struct keymap by_url; /* of those read: the file that named it, NUL, as it was named */
    struct keymap looked; /* paths that `files` has */
    size_t bytes;         /* of all files */
    struct cat_list collections;
    struct cat_list tasks;
    struct cat_list secrets; /* values that must not outlive the reading */
    size_t others;           /* materializations that are none of ours */
    bool failed;             /* out of memory */
};

__attribute__((format(printf, 3, 4))) void
cat_fault(struct catalog_reader *r, const struct cat_node *at, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void
cat_warn(struct catalog_reader *r, const struct cat_node *at, const char *fmt, ...);
/* A fault or warning of the trees, before their file has a place among the sources. */
void cat_say(struct catalog_reader *r, bool warning, const char *file, uint32_t line,
             const struct cat_node *at, const char *text);
void cat_unknown(struct catalog_reader *r, const struct cat_node *at);
const char *cat_kind_text(const struct cat_node *n);

/* Each faults and answers false when the value is of another type. Texts are copied. */
bool cat_is_map(struct catalog_reader *r, const struct cat_node *n);
bool cat_is_list(struct catalog_reader *r, const struct cat_node *n);
bool cat_text(struct catalog_reader *r, const struct cat_node *n, const char **out);
bool cat_bool(struct catalog_reader *r, const struct cat_node *n, bool *out);
bool cat_count(struct catalog_reader *r, const struct cat_node *n, int64_t max, int64_t *out);
/* One of the words; *out is its index. */
bool cat_word(struct catalog_reader *r, const struct cat_node *n, const char *const *words,
              size_t words_n, size_t *out);
#define CAT_WORD(r, n, words, out) cat_word(r, n, words, sizeof(words) / sizeof(words)[0], out)
/* Whether the member's key is this one, or one of these. */
bool cat_is(const struct cat_node *n, const char *key);
bool cat_among(const struct cat_node *n, const char *const *keys, size_t keys_n);
#define CAT_AMONG(n, keys) cat_among(n, keys, sizeof(keys) / sizeof(keys)[0])
/* In the catalog's memory; NULL: r->failed. */
void *cat_array(struct catalog_reader *r, size_t n, size_t each);
const char *cat_copy(struct catalog_reader *r, struct span s);
void cat_chain(struct catalog_reader *r, struct cat_list *l, const void *item);

/* catalog_files.c */
/* Reads the main file. */
void cat_open_main(struct catalog_reader *r, const char *path);
void cat_take_main(struct catalog_reader *r, const char *path, struct span text);
/* The file that `url`, written at `at`, names; NULL: a fault was said. */
struct cat_source *cat_source(struct catalog_reader *r, const struct cat_node *at, struct span url);
const char *cat_file_name(const struct catalog_reader *r, const struct cat_node *n);

/* catalog_schema.c */
/* A schema, inline or in another file, as JSON text in the catalog's memory. */
bool cat_schema(struct catalog_reader *r, const struct cat_node *n, const char **out);
/* Fills catalog->docs, once all schemas were read. */
void cat_docs(struct catalog_reader *r);

/* Faults a name that is none of a collection or task. */
bool cat_name(struct catalog_reader *r, const struct cat_node *n, struct span name);

/* catalog_collection.c, catalog_task.c, catalog_config.c, catalog_binding.c */
void cat_read_collections(struct catalog_reader *r, const struct cat_node *n);
void cat_end_collections(struct catalog_reader *r);
void cat_read_materializations(struct catalog_reader *r, const struct cat_node *n);
void cat_end_tasks(struct catalog_reader *r);
void cat_wipe_secrets(struct catalog_reader *r);
void cat_read_config(struct catalog_reader *r, const struct cat_node *n, struct catalog_task *t);
/* False: there is no topic, since the binding is disabled or has faults. */
bool cat_read_binding(struct catalog_reader *r, const struct cat_node *n,
                      const struct catalog_task *t, struct catalog_binding *b);
/* After cat_end_collections: what a binding says of its collection's fields. */
void cat_check_binding(struct catalog_reader *r, const struct catalog_binding *b);
/* catalog_avro.c */
/* Compiles the Avro programs, after cat_docs. */
void cat_compile(struct catalog_reader *r);
void cat_drop_programs(struct catalog *c);
/* The catalog under construction, which nobody else has seen yet. */
void cat_drop(struct catalog *c);
