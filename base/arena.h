/*
 * Owner: one request. A bump allocator freed in one go, with a hard budget: one wire byte must not
 * buy unlimited memory. Memory is aligned for any type. Not thread-safe.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/span.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *head; /* newest chunk */
    size_t used;              /* bytes handed out, for the budget */
    size_t budget;
};

/* budget in bytes: the sum of all allocations may not pass it. Allocates nothing by itself. */
void arena_init(struct arena *a, size_t budget);
/* Frees all memory handed out; the arena may be used again. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);
/* Zeroed memory, or NULL when out of memory or over the budget. bytes == 0 yields a unique non-NULL
 * pointer. */
MUST_USE void *arena_alloc(struct arena *a, size_t bytes);
/* NULL also when count * bytes overflows. */
MUST_USE void *arena_array(struct arena *a, size_t count, size_t bytes);
MUST_USE char *arena_strndup(struct arena *a, const char *s, size_t n); /* NUL-terminated */
MUST_USE char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
