/*
 * Private to schema/: how shapes are made. shape_merge.c: the algebra; schema_refs.c: which schema
 * a $ref names; shape_read.c: keywords to shapes; shape.c: the public face. All memory is the
 * arena's; the first failure sticks in err, and everything after it answers SC_NEVER quickly.
 */
#pragma once

#include "base/arena.h"
#include "schema/json_tree.h"
#include "schema/shape.h"

#define SHAPE_ARENA_BYTES ((size_t)128 << 20)
#define TREE_ARENA_BYTES  ((size_t)512 << 20)
#define SHAPE_MAX_MERGES  1000000

extern const struct sc_shape SC_NEVER; /* nothing: types == 0 */

struct merge_entry {
    const struct sc_shape *a, *b, *result;
    unsigned op; /* 0: free */
};

/* Makes and merges shapes. NULL is "anything" for all arguments and results. */
struct shape_maker {
    struct arena *a;
    int err;
    uint32_t merges;
    struct merge_entry *memo; /* open addressing, a power of two */
    size_t memo_cap, memo_n;
};

void *mk_alloc(struct shape_maker *mk, size_t n, size_t bytes);
struct span mk_copy(struct shape_maker *mk, struct span s);
/* Puts the last touch on a shape: impossible parts go, the weight is summed up. NULL when it admits
 * anything and says nothing. */
const struct sc_shape *mk_finish(struct shape_maker *mk, struct sc_shape *s);
const struct sc_shape *mk_types(struct shape_maker *mk, unsigned types);
const struct sc_shape *mk_intersect(struct shape_maker *mk, const struct sc_shape *a,
                                    const struct sc_shape *b);
const struct sc_shape *mk_union(struct shape_maker *mk, const struct sc_shape *a,
                                const struct sc_shape *b);
/* The same shape with another default (NULL-span: none). */
const struct sc_shape *mk_with_default(struct shape_maker *mk, const struct sc_shape *s,
                                       struct span def);
/* The property of this name; NULL. */
const struct sc_property *shape_property(const struct sc_shape *s, struct span name);

static inline unsigned shape_types(const struct sc_shape *s)
{
    return s == NULL ? SC_T_ANY : s->types;
}
static inline bool shape_is_never(const struct sc_shape *s)
{
    return s != NULL && s->types == 0;
}

/* --- $ref --- */

struct refs_resource {
    struct span uri; /* without fragment */
    const struct jt_node *root;
};
struct refs_anchor {
    uint32_t resource;
    bool dynamic; /* $dynamicAnchor; $recursiveAnchor, whose name is "" */
    struct span name;
    const struct jt_node *node;
};
struct refs {
    struct arena *a;
    int err;
    bool ids; /* `id` of draft 4 counts where no $schema says which draft it is */
    struct refs_resource *resources;
    size_t resources_n, resources_cap;
    struct refs_anchor *anchors;
    size_t anchors_n, anchors_cap;
    uint32_t *resource_of; /* by node id: which resource the node belongs to */
};

/* Walks a document and files its $id and $anchor. */
void refs_index(struct refs *r, struct span uri, const struct jt_node *root);
/* The schema that `ref` names, seen from node; NULL when there is none. *open: it is one that need
 * not be there, and then admits anything: of the scheme `flow:`, or JSON Schema's own. */
const struct jt_node *refs_resolve(struct refs *r, const struct jt_node *node, struct span ref,
                                   bool *open);
/* `ref` seen from node, without its fragment. */
struct span refs_uri(struct refs *r, const struct jt_node *node, struct span ref);
/* target, found by a $dynamicRef (or $recursiveRef), may only be one of several, depending on the
 * way that led to the reference: all of them, one a call. *at begins as 0; NULL at the end. */
const struct jt_node *refs_candidate(const struct refs *r, const struct jt_node *target,
                                     struct span ref, size_t *at);

/* --- reading --- */

struct shape_reader {
    struct shape_maker mk;
    struct refs refs, refs_by_id; /* the second where the first knows no answer */
    const struct sc_shape **memo; /* by node id */
    uint8_t *state;               /* by node id: 0 unread, 1 being read, 2 read */
    /* Reads the document of this name; of any, when uri.p is NULL. 0: all such are read. */
    int (*more)(struct shape_reader *rd, struct span uri);
    const struct jt_node *bad; /* where err was seen */
    const char *reason;
    unsigned depth;
};
const struct sc_shape *read_schema(struct shape_reader *rd, const struct jt_node *node);
