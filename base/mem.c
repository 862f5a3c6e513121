/*
 * The heap, with failure injection for tests. The countdown is off (negative) in production, where
 * an allocation costs one relaxed load more than malloc.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_countdown = -1;
static atomic_bool fail_forever;

/* True when this allocation is the one that a test asked to fail. */
static bool must_fail(void)
{
    long n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

    while (n >= 0) {
        /* 0 is "this one"; with `forever` the counter stays there. */
        long next = n == 0 && atomic_load(&fail_forever) ? 0 : n - 1;
        if (atomic_compare_exchange_weak(&fail_countdown, &n, next))
            return n == 0;
    }
    return false;
}

/* No object may be larger than PTRDIFF_MAX. malloc knows, but sanitizers end the process when they
 * see such a request, and here it is an answer. */
static bool refused(size_t bytes)
{
    return bytes > PTRDIFF_MAX || must_fail();
}

void mem_fail_after(long after, int forever)
{
    atomic_store(&fail_forever, forever != 0);
    atomic_store(&fail_countdown, after < 0 ? -1 : after);
}

void *mem_alloc(size_t bytes)
{
    if (refused(bytes))
        return NULL;
    return malloc(bytes == 0 ? 1 : bytes);
}

void *mem_zalloc(size_t bytes)
{
    if (refused(bytes))
        return NULL;
    return calloc(1, bytes == 0 ? 1 : bytes);
}

void *mem_array(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    return mem_zalloc(total);
}

void *mem_realloc(void *p, size_t bytes)
{
    if (refused(bytes))
        return NULL;
    /* realloc(p, 0) frees p in glibc: the caller could not tell that from failure. */
    return realloc(p, bytes == 0 ? 1 : bytes);
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strndup(const char *s, size_t n)
{
    if (n == SIZE_MAX)
        return NULL;
    char *copy = mem_alloc(n + 1);
    if (copy == NULL)
        return NULL;
    if (n > 0)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_wipe(void *p, size_t bytes)
{
    if (bytes > 0)
        explicit_bzero(p, bytes);
}
