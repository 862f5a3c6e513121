/* Private to catalog*.c: the YAML document tree with typed looks at it. */
#pragma once

#include <yaml.h>

#include "base/writer.h"
#include "gateway/catalog.h"

struct catalog_reader {
    struct catalog *catalog; /* under construction */
    struct catalog_faults *faults;
    yaml_document_t doc;
    bool failed; /* out of memory */
};

__attribute__((format(printf, 3, 4))) void cat_fault(struct catalog_reader *r,
                                                     const yaml_node_t *at, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void cat_warn(struct catalog_reader *r, const yaml_node_t *at,
                                                    const char *fmt, ...);
size_t cat_line(const yaml_node_t *n);
yaml_node_t *cat_node(struct catalog_reader *r, int index);

/* A mapping with its known keys. Zero `at` and call for each key in turn with cat_next. */
struct cat_pairs {
    yaml_node_t *map;
    size_t at;
    const char *key; /* of the present pair, NUL-terminated */
    yaml_node_t *key_node;
    yaml_node_t *value;
};
/* False when n is no mapping (a fault that names what) or is missing. */
bool cat_mapping(struct catalog_reader *r, yaml_node_t *n, const char *what, struct cat_pairs *out);
/* Skips (and faults) keys that are no text or come twice. */
bool cat_next(struct catalog_reader *r, struct cat_pairs *p);

/* Each faults and answers false when the node has another type. Strings are copied. */
bool cat_string(struct catalog_reader *r, yaml_node_t *n, const char *what, const char **out);
bool cat_bool(struct catalog_reader *r, yaml_node_t *n, const char *what, bool *out);
bool cat_count(struct catalog_reader *r, yaml_node_t *n, const char *what, int64_t max,
               int64_t *out);
/* The subtree as JSON text, in the catalog's memory. */
bool cat_json(struct catalog_reader *r, yaml_node_t *n, const char **out);
void *cat_array(struct catalog_reader *r, size_t n, size_t each);

/* catalog_collection.c, catalog_task.c */
void cat_read_collections(struct catalog_reader *r, yaml_node_t *n);
void cat_read_materializations(struct catalog_reader *r, yaml_node_t *n);
/* The catalog under construction, which nobody else has seen yet. */
void cat_drop(struct catalog *c);
