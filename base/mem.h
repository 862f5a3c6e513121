/*
 * The only way to the heap outside base/. Same contracts as malloc/calloc/realloc/free (NULL on
 * failure; mem_free(NULL) is allowed), plus failure injection, so that a test can make the n-th
 * allocation fail and prove that out of memory is an answer. Any thread; the injection counter is
 * process-wide and atomic.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

MUST_USE void *mem_alloc(size_t bytes);
MUST_USE void *mem_zalloc(size_t bytes);
/* NULL when count * bytes overflows. Zeroed. */
MUST_USE void *mem_array(size_t count, size_t bytes);
MUST_USE void *mem_realloc(void *p, size_t bytes);
void mem_free(void *p);
/* NUL-terminated copy of n bytes; the caller frees it with mem_free. */
MUST_USE char *mem_strndup(const char *s, size_t n);
MUST_USE char *mem_strdup(const char *s);
/* Overwrites secrets; never optimised away. */
void mem_wipe(void *p, size_t bytes);

/* Tests only: the allocation number `after` from now (0 = the next) fails once, or all later ones
 * too if `forever`. Negative: off. */
void mem_fail_after(long after, int forever);
