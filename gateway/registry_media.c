/* See registry_media.h. */
#include "gateway/registry_media.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/span.h"

static const char *const TYPES[] = {REGISTRY_JSON, "application/vnd.schemaregistry+json",
                                    "application/json"};

#define TYPES_N (sizeof TYPES / sizeof TYPES[0])

static struct span trimmed(struct span s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = span_of(s.p + 1, s.n - 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static struct span cut(struct span *rest, char at)
{
    if (rest->n == 0) /* perhaps no pointer either */
        return *rest;
    const uint8_t *end = memchr(rest->p, at, rest->n);
    size_t n = end == NULL ? rest->n : (size_t)(end - rest->p);
    struct span part = span_of(rest->p, n);

    *rest = span_of(rest->p + n + (end != NULL), rest->n - n - (end != NULL));
    return trimmed(part);
}

static bool same_word(struct span s, const char *word)
{
    return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

/* "0.75" in thousandths; what cannot be read counts as 1. */
static int weight(struct span params)
{
    while (params.n > 0) {
        struct span value = cut(&params, ';'), name = cut(&value, '=');
        int w = 0;

        if (!same_word(name, "q"))
            continue;
        value = trimmed(value);
        if (value.n == 0 || value.p[0] != '0')
            return 1000;
        for (size_t i = 2, step = 100; i < value.n && i < 5; i++, step /= 10) {
            if (value.p[i] < '0' || value.p[i] > '9')
                return 1000;
            w += (value.p[i] - '0') * (int)step;
        }
        return w;
    }
    return 1000;
}

/* How closely the range names the type: 0 not at all, 1 as anything, 2 by its first half, 3 itself.
 */
static int closeness(struct span range, const char *type)
{
    if (same_word(range, type))
        return 3;
    if (same_word(range, "application/*"))
        return 2;
    return same_word(range, "*/*") || same_word(range, "*") ? 1 : 0;
}

const char *registry_accepts(const char *accept)
{
    int close[TYPES_N] = {0}, q[TYPES_N] = {0};
    struct span rest = span_str(accept);
    const char *best = NULL;
    int best_q = 0;

    if (trimmed(rest).n == 0)
        return REGISTRY_JSON;
    while (rest.n > 0) {
        struct span params = cut(&rest, ','), range = cut(&params, ';');

        for (size_t i = 0; i < TYPES_N; i++) {
            int c = closeness(range, TYPES[i]);
            if (c == 0 || c < close[i])
                continue;
            close[i] = c;
            q[i] = weight(params);
        }
    }
    for (size_t i = 0; i < TYPES_N; i++) {
        if (q[i] > best_q) {
            best = TYPES[i];
            best_q = q[i];
        }
    }
    return best;
}

bool registry_reads(const char *content_type)
{
    struct span rest = span_str(content_type), type = cut(&rest, ';');

    if (content_type == NULL || type.n == 0)
        return true;
    for (size_t i = 0; i < TYPES_N; i++) {
        if (same_word(type, TYPES[i]))
            return true;
    }
    return same_word(type, "application/octet-stream");
}
