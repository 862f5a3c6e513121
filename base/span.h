/* A borrowed run of bytes. Never owns; never NUL-terminated by promise. {NULL, 0} is the null span
 * where null differs from empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const uint8_t *p;
    size_t n;
};

static inline struct span span_of(const void *p, size_t n)
{
    return (struct span){(const uint8_t *)p, n};
}

/* Borrow of a C string, without its NUL; the null span for NULL. */
static inline struct span span_str(const char *s)
{
    return s == NULL ? (struct span){NULL, 0} : span_of(s, strlen(s));
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool span_eq_str(struct span a, const char *s)
{
    return span_eq(a, span_str(s));
}

static inline bool span_has_prefix(struct span a, struct span prefix)
{
    return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

/* Order as by memcmp, shorter first when one is a prefix of the other. */
int span_cmp(struct span a, struct span b);

/* Whether key is one of the n sorted spans; *at is its index then, else unchanged. */
bool span_find(const struct span *sorted, size_t n, struct span key, size_t *at);

/* Printf helper: "%.*s", SPAN_FMT(s). */
#define SPAN_FMT(s) (int)(s).n, (const char *)(s).p
