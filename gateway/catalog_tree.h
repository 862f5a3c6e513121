/*
 * A YAML or JSON file as a tree of values that know where they stand. YAML has JSON's types: plain
 * scalars are null, booleans, numbers or text, quoted ones text. Aliases are copied, within the
 * budget of values that all files of a catalog share, so that no file can blow up. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "base/writer.h"

#define CAT_DEPTH_MAX 200     /* levels of lists and mappings */
#define CAT_NODES_MAX 4000000 /* values of all files together */

enum cat_kind { CAT_NULL, CAT_FALSE, CAT_TRUE, CAT_NUMBER, CAT_TEXT, CAT_LIST, CAT_MAP };

/* Owner: the tree's arena. Immutable once its file is read. */
struct cat_node {
    enum cat_kind kind;
    uint32_t file;  /* index of the file, as the caller numbers them */
    uint32_t line;  /* 1-based; of a member: of its key */
    uint32_t index; /* place in its list */
    const struct cat_node *parent;
    struct span key;  /* of a member of a mapping; NUL-terminated */
    struct span text; /* numbers: as written; text: the content; NUL-terminated */
    uint32_t n;       /* of children */
    struct cat_node *first;
    struct cat_node *next;
};

struct cat_tree {
    struct arena *arena;
    size_t nodes; /* so far, over all files */
    /* Says a fault; the tree goes on without what was faulty. at: the mapping or list in which, or
     * NULL. */
    void (*fault)(void *arg, uint32_t file, uint32_t line, const struct cat_node *at,
                  const char *text);
    void *arg;
    /* while a file is read */
    uint32_t file;
    bool failed; /* out of memory */
};

/* One document. NULL when there is none: a fault was said, or t->failed. */
const struct cat_node *cat_tree_yaml(struct cat_tree *t, uint32_t file, struct span text);
const struct cat_node *cat_tree_json(struct cat_tree *t, uint32_t file, struct span text);

/* NULL when map is no mapping or has no such member. */
const struct cat_node *cat_member(const struct cat_node *map, const char *key);
/* The node's JSON pointer within its file; "" for the root. */
void cat_pointer(const struct cat_node *n, struct writer *out);

/* --- for the two readers --- */

/* Puts values together in the order of the text. */
struct cat_builder {
    struct cat_tree *tree;
    struct cat_node *root;
    struct {
        struct cat_node *node;
        struct cat_node *last;
        struct span key; /* of the value that comes next */
        uint32_t key_line;
        bool has_key;
    } stack[CAT_DEPTH_MAX];
    size_t depth;
    bool stopped; /* a limit was passed, or memory is out: a fault was said */
};

/* Whether a key is due: the innermost container is a mapping without one. */
bool cat_wants_key(const struct cat_builder *b);
void cat_put_key(struct cat_builder *b, struct span key, uint32_t line);
struct cat_node *cat_put_scalar(struct cat_builder *b, enum cat_kind kind, struct span text,
                                uint32_t line);
struct cat_node *cat_open(struct cat_builder *b, enum cat_kind kind, uint32_t line);
void cat_close(struct cat_builder *b);
/* A copy of a finished value, at the place that is due. */
struct cat_node *cat_put_copy(struct cat_builder *b, const struct cat_node *n);
void cat_stop(struct cat_builder *b, uint32_t line, const char *text);
