/*
 * Counted bytes. Dropping a reference is a release, and the last drop acquires before it frees, so
 * that all use on other threads happened before the memory goes back to the heap.
 */
#include "base/blob.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/num.h"

struct blob *blob_new(size_t cap)
{
    size_t bytes;

    if (!num_add_size(sizeof(struct blob), cap, &bytes))
        return NULL;
    struct blob *b = mem_alloc(bytes);
    if (b == NULL)
        return NULL;
    atomic_init(&b->refs, 1);
    b->cap = cap;
    b->len = 0;
    return b;
}

struct blob *blob_copy(struct span bytes)
{
    struct blob *b = blob_new(bytes.n);

    if (b == NULL)
        return NULL;
    if (bytes.n > 0)
        memcpy(b->data, bytes.p, bytes.n);
    b->len = bytes.n;
    return b;
}

struct blob *blob_ref(struct blob *b)
{
    unsigned before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);

    ASSERT(before > 0 && before < UINT32_MAX);
    return b;
}

void blob_unref(struct blob *b)
{
    if (b == NULL)
        return;
    unsigned before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before == 1)
        mem_free(b);
}
