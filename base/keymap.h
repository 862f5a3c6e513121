/*
 * A table from a key (bytes) to a pointer: groups by name, members by id, topics by name. Owner:
 * whoever holds it; not thread-safe. Keys are borrowed: they live in what the pointer points to.
 * Grows by doubling; the only call that can fail is the one that inserts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct keymap_slot {
    struct span key;
    void *value; /* NULL: free */
};

/* Zeroed: empty. */
struct keymap {
    struct keymap_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t n;
};

void keymap_fini(struct keymap *m);                        /* not the values */
void *keymap_get(const struct keymap *m, struct span key); /* NULL: not there */
/* Room for one more entry, so that the next keymap_put cannot fail. */
MUST_USE int keymap_reserve(struct keymap *m);
/* The key is not in the table yet. E_NOMEM. value is not NULL. */
MUST_USE int keymap_put(struct keymap *m, struct span key, void *value);
/* What was there, or NULL. */
void *keymap_take(struct keymap *m, struct span key);
/* All entries, in no order: *at begins as 0; NULL at the end. The entry just returned may be taken
 * out (but then some entries may be seen twice or missed: begin anew where that matters). */
void *keymap_next(const struct keymap *m, size_t *at);
