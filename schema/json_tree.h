/*
 * Private to schema/: a JSON text as a tree, for schemas and other small texts that are not on the
 * hot path. Numbers keep their text, so nothing is rounded. Nodes live in the caller's arena and
 * borrow from the text.
 */
#pragma once

#include "base/arena.h"
#include "schema/json_reader.h"

#define JT_MAX_DEPTH 200

struct jt_node {
    enum sc_json_kind kind;
    uint32_t id;      /* 0, 1, ... in order of appearance */
    uint32_t n;       /* members or elements */
    struct span text; /* the value's own bytes */
    struct span str;  /* strings: unescaped */
    struct span key;  /* members: unescaped */
    struct jt_node *first, *last, *next;
};

/* Why the arena did not give that much: E_LIMIT, its budget is spent; E_NOMEM, there is none. */
static inline int jt_no_room(const struct arena *a, size_t bytes)
{
    return bytes > a->budget - a->used ? E_LIMIT : E_NOMEM;
}

/* E_SYNTAX (err is set), E_LIMIT (too deep, or the arena's budget), E_NOMEM. *nodes_n: how many
 * nodes there are, counted on from its value at the call, so that several trees share one
 * numbering.
 */
MUST_USE int jt_parse(struct span text, struct arena *a, uint32_t *nodes_n,
                      struct sc_json_error *err, struct jt_node **out);
/* The member, of duplicates the last; NULL when there is none or node is no object. */
const struct jt_node *jt_get(const struct jt_node *node, const char *key);
const struct jt_node *jt_member(const struct jt_node *node, struct span key);
/* The value at a JSON pointer's text below node; NULL. */
const struct jt_node *jt_at(const struct jt_node *node, struct span pointer);
