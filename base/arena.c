/*
 * A bump allocator in chunks. Chunks grow from 1 KiB to 64 KiB with use; what does not fit into a
 * fresh chunk of that size gets a chunk of its own, behind the newest, so that the newest keeps
 * serving small ones. The budget counts what is handed out, rounded up to the alignment.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

#define CHUNK_MIN ((size_t)1024)
#define CHUNK_MAX ((size_t)64 * 1024)
#define ALIGNMENT alignof(max_align_t)

struct arena_chunk {
    struct arena_chunk *next; /* older */
    size_t cap;
    size_t used;
    alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *a, size_t budget)
{
    *a = (struct arena){.budget = budget};
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *c = a->head;

    while (c != NULL) {
        struct arena_chunk *next = c->next;
        mem_free(c);
        c = next;
    }
    a->head = NULL;
    a->used = 0;
}

void arena_fini(struct arena *a)
{
    arena_reset(a);
}

/* A chunk with room for at least `bytes`, linked into the list; NULL when out of memory. */
static struct arena_chunk *add_chunk(struct arena *a, size_t bytes)
{
    size_t cap = a->head == NULL ? CHUNK_MIN : a->head->cap * 2;
    size_t total;

    if (cap > CHUNK_MAX)
        cap = CHUNK_MAX;
    bool own = bytes > cap / 2;
    if (own)
        cap = bytes;
    if (!num_add_size(sizeof(struct arena_chunk), cap, &total))
        return NULL;
    struct arena_chunk *c = mem_zalloc(total);
    if (c == NULL)
        return NULL;
    c->cap = cap;
    if (own && a->head != NULL) {
        c->next = a->head->next;
        a->head->next = c;
    } else {
        c->next = a->head;
        a->head = c;
    }
    return c;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    size_t size;

    if (!num_add_size(bytes == 0 ? 1 : bytes, ALIGNMENT - 1, &size))
        return NULL;
    size &= ~(ALIGNMENT - 1);
    if (size > a->budget - a->used)
        return NULL;

    struct arena_chunk *c = a->head;
    if (c == NULL || c->cap - c->used < size) {
        c = add_chunk(a, size);
        if (c == NULL)
            return NULL;
    }
    void *p = c->data + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t bytes)
{
    size_t total;

    if (!num_mul_size(count, bytes, &total))
        return NULL;
    return arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t bytes;

    if (!num_add_size(n, 1, &bytes))
        return NULL;
    char *copy = arena_alloc(a, bytes);
    if (copy != NULL && n > 0)
        memcpy(copy, s, n);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return NULL;

    size_t bytes = (size_t)n + 1;
    char *text = arena_alloc(a, bytes);
    if (text == NULL)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, bytes, fmt, args);
    va_end(args);
    return text;
}
