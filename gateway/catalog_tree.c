/* Building trees, whatever the text they come from (catalog_tree.h). */
#include "gateway/catalog_tree.h"

#include <stdlib.h>

#include "base/keymap.h"
#include "base/mem.h"

#define DOUBLES_MAX 100 /* of one mapping */

void cat_stop(struct cat_builder *b, uint32_t line, const char *text)
{
    if (b->stopped)
        return;
    b->stopped = true;
    b->tree->fault(b->tree->arg, b->tree->file, line,
                   b->depth == 0 ? NULL : b->stack[b->depth - 1].node, text);
}

static struct span keep(struct cat_builder *b, struct span s)
{
    const char *copy = arena_strndup(b->tree->arena, (const char *)s.p, s.n);

    if (copy == NULL) {
        b->tree->failed = b->stopped = true;
        return (struct span){NULL, 0};
    }
    return span_of(copy, s.n);
}

/* A new node at the place that is due; NULL: stopped. */
static struct cat_node *put(struct cat_builder *b, enum cat_kind kind, uint32_t line)
{
    struct cat_tree *t = b->tree;

    if (b->stopped)
        return NULL;
    if (t->nodes++ >= CAT_NODES_MAX) {
        cat_stop(b, line, "there are more than 4,000,000 values");
        return NULL;
    }
    struct cat_node *n = arena_alloc(t->arena, sizeof *n);
    if (n == NULL) {
        t->failed = b->stopped = true;
        return NULL;
    }
    n->kind = kind;
    n->file = t->file;
    n->line = line;
    if (b->depth == 0) {
        if (b->root == NULL)
            b->root = n;
        return n;
    }
    struct cat_node *parent = b->stack[b->depth - 1].node;
    struct cat_node *last = b->stack[b->depth - 1].last;
    n->parent = parent;
    n->index = parent->n++;
    if (parent->kind == CAT_MAP) {
        n->key = b->stack[b->depth - 1].key;
        n->line = b->stack[b->depth - 1].key_line;
        b->stack[b->depth - 1].has_key = false;
    }
    if (last == NULL)
        parent->first = n;
    else
        last->next = n;
    b->stack[b->depth - 1].last = n;
    return n;
}

bool cat_wants_key(const struct cat_builder *b)
{
    return b->depth > 0 && b->stack[b->depth - 1].node->kind == CAT_MAP &&
           !b->stack[b->depth - 1].has_key;
}

void cat_put_key(struct cat_builder *b, struct span key, uint32_t line)
{
    if (b->stopped)
        return;
    if (memchr(key.p, 0, key.n) != NULL) {
        cat_stop(b, line, "a key holds a NUL");
        return;
    }
    b->stack[b->depth - 1].key = keep(b, key);
    b->stack[b->depth - 1].key_line = line;
    b->stack[b->depth - 1].has_key = true;
}

struct cat_node *cat_put_scalar(struct cat_builder *b, enum cat_kind kind, struct span text,
                                uint32_t line)
{
    struct cat_node *n = put(b, kind, line);

    if (n != NULL)
        n->text = keep(b, text);
    return n;
}

struct cat_node *cat_open(struct cat_builder *b, enum cat_kind kind, uint32_t line)
{
    if (!b->stopped && b->depth == CAT_DEPTH_MAX)
        cat_stop(b, line, "nested more than 200 levels deep");
    struct cat_node *n = put(b, kind, line);
    if (n == NULL)
        return NULL;
    b->stack[b->depth].node = n;
    b->stack[b->depth].last = NULL;
    b->stack[b->depth].has_key = false;
    b->depth++;
    return n;
}

struct cat_node *cat_put_copy(struct cat_builder *b, const struct cat_node *from)
{
    if (from->kind != CAT_LIST && from->kind != CAT_MAP) {
        struct cat_node *n = put(b, from->kind, from->line);
        if (n != NULL)
            n->text = from->text;
        return n;
    }
    struct cat_node *n = cat_open(b, from->kind, from->line);
    for (const struct cat_node *c = from->first; n != NULL && c != NULL; c = c->next) {
        if (from->kind == CAT_MAP) {
            b->stack[b->depth - 1].key = c->key;
            b->stack[b->depth - 1].key_line = c->line;
            b->stack[b->depth - 1].has_key = true;
        }
        if (cat_put_copy(b, c) == NULL)
            return NULL;
    }
    if (n != NULL)
        cat_close(b);
    return n;
}

/* --- the end of a mapping: merged keys, doubles --- */

static int by_key(const void *a, const void *b)
{
    const struct cat_node *x = *(const struct cat_node *const *)a;
    const struct cat_node *y = *(const struct cat_node *const *)b;
    int c = span_cmp(x->key, y->key);

    return c != 0 ? c : x->index < y->index ? -1 : x->index > y->index;
}

static void unlink_child(struct cat_node *map, const struct cat_node *gone)
{
    struct cat_node **at = &map->first;

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    map->n--;
}

/* Notes a key; false when it is there already, or the builder stopped. */
static bool is_new(struct cat_builder *b, struct keymap *keys, struct cat_node *map,
                   struct span key)
{
    if (keymap_get(keys, key) != NULL)
        return false;
    if (keymap_put(keys, key, map) < 0)
        b->tree->failed = b->stopped = true;
    return !b->stopped;
}

static void merge_from(struct cat_builder *b, struct keymap *keys, struct cat_node *map,
                       const struct cat_node *from)
{
    for (const struct cat_node *c = from->first; c != NULL && !b->stopped; c = c->next) {
        if (!is_new(b, keys, map, c->key))
            continue;
        b->stack[b->depth - 1].key = c->key;
        b->stack[b->depth - 1].key_line = c->line;
        b->stack[b->depth - 1].has_key = true;
        (void)cat_put_copy(b, c);
    }
}

/* YAML's `<<`: members of other mappings that this one has not. Those of lists are mappings, or
 * have no keys. */
static void merge(struct cat_builder *b, struct cat_node *map)
{
    const struct cat_node *from = cat_member(map, "<<");
    struct keymap keys = {0};

    if (from == NULL || (from->kind != CAT_MAP && from->kind != CAT_LIST))
        return;
    if (from == b->stack[b->depth - 1].last) {
        struct cat_node *before = NULL;
        for (struct cat_node *c = map->first; c != from; c = c->next)
            before = c;
        b->stack[b->depth - 1].last = before;
    }
    unlink_child(map, from);
    for (const struct cat_node *c = map->first; c != NULL && !b->stopped; c = c->next)
        (void)is_new(b, &keys, map, c->key);
    if (from->kind == CAT_MAP)
        merge_from(b, &keys, map, from);
    for (const struct cat_node *c = from->first; from->kind == CAT_LIST && c != NULL; c = c->next) {
        if (c->kind == CAT_MAP)
            merge_from(b, &keys, map, c);
    }
    keymap_fini(&keys);
}

static void drop_doubles(struct cat_builder *b, struct cat_node *map)
{
    size_t k = 0;

    if (map->n < 2)
        return;
    size_t doubles = 0;
    const struct cat_node **sorted = mem_array(map->n, sizeof(const struct cat_node *));
    if (sorted == NULL) {
        b->tree->failed = b->stopped = true;
        return;
    }
    for (const struct cat_node *c = map->first; c != NULL; c = c->next)
        sorted[k++] = c;
    qsort(sorted, k, sizeof(const struct cat_node *), by_key);
    for (size_t i = 1; i < k; i++) {
        if (!span_eq(sorted[i - 1]->key, sorted[i]->key))
            continue;
        if (++doubles > DOUBLES_MAX) { /* each costs a walk along the list */
            cat_stop(b, sorted[i]->line, "too many keys are given twice");
            break;
        }
        b->tree->fault(b->tree->arg, b->tree->file, sorted[i]->line, sorted[i], "given twice");
        unlink_child(map, sorted[i]);
        sorted[i] = sorted[i - 1];
    }
    mem_free(sorted);
}

void cat_close(struct cat_builder *b)
{
    if (b->stopped)
        return;
    struct cat_node *n = b->stack[b->depth - 1].node;
    if (n->kind == CAT_MAP) {
        merge(b, n);
        if (!b->stopped)
            drop_doubles(b, n);
    }
    b->depth--;
}

/* --- looks --- */

const struct cat_node *cat_member(const struct cat_node *map, const char *key)
{
    if (map == NULL || map->kind != CAT_MAP)
        return NULL;
    for (const struct cat_node *c = map->first; c != NULL; c = c->next) {
        if (strcmp((const char *)c->key.p, key) == 0)
            return c;
    }
    return NULL;
}

static void put_segment(struct span s, struct writer *out)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '~')
            wr_str(out, "~0");
        else if (s.p[i] == '/')
            wr_str(out, "~1");
        else
            wr_u8(out, s.p[i]);
    }
}

void cat_pointer(const struct cat_node *n, struct writer *out)
{
    const struct cat_node *path[CAT_DEPTH_MAX + 1];
    size_t depth = 0;

    for (; n != NULL && n->parent != NULL && depth <= CAT_DEPTH_MAX; n = n->parent)
        path[depth++] = n;
    while (depth > 0) {
        n = path[--depth];
        wr_str(out, "/");
        if (n->parent->kind == CAT_MAP)
            put_segment(n->key, out);
        else
            wr_printf(out, "%u", n->index);
    }
}
