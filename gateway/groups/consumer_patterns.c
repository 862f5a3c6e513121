/*
 * The patterns of a KIP-848 group, and which topics of the task each of them matches. Matching is
 * what a member can make costly for everybody, since one thread owns all groups: so each pattern
 * meets each name once, when the one or the other is new; the group's patterns are few; and names
 * that take many steps are counted. Pure.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/groups/consumer_int.h"

/* Names that one look may spend many steps on, for each pattern. */
#define COSTLY_MAX 100

void consumer_pattern_unref(struct consumer *c, struct consumer_regex *r)
{
    if (r == NULL || --r->refs > 0)
        return;
    TAILQ_REMOVE(&c->regexes, r, link);
    c->regexes_n--;
    group_regex_free(r->re);
    mem_free(r->seen_hits);
    mem_free(r->hits);
    mem_free(r);
}

/* --- the names that were seen --- */

static bool same_names(const struct consumer *c, const struct consumer_topics *topics)
{
    if (c->seen == NULL || c->seen_n != topics->n)
        return false;
    for (size_t i = 0; i < topics->n; i++) {
        if (!span_eq(c->seen[i], topics->at(topics, i).name))
            return false;
    }
    return true;
}

/* One allocation. NULL: E_NOMEM. */
static struct span *copy_names(const struct consumer_topics *topics)
{
    size_t bytes = (topics->n + 1) * sizeof(struct span);

    for (size_t i = 0; i < topics->n; i++)
        bytes += topics->at(topics, i).name.n;
    struct span *list = mem_zalloc(bytes);
    if (list == NULL)
        return NULL;
    uint8_t *text = (uint8_t *)(list + topics->n + 1);
    for (size_t i = 0; i < topics->n; i++) {
        struct span name = topics->at(topics, i).name;
        if (name.n > 0)
            memcpy(text, name.p, name.n);
        list[i] = span_of(text, name.n);
        text += name.n;
    }
    return list;
}

/* What r matches of names, both in order; what it met before is not tried again. */
static int match_names(const struct consumer *c, struct consumer_regex *r, const struct span *names,
                       size_t n)
{
    unsigned costly = COSTLY_MAX;
    size_t old = 0;

    if ((r->new_seen = mem_array(n + 1, sizeof *r->new_seen)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        while (old < c->seen_n && span_cmp(c->seen[old], names[i]) < 0)
            old++;
        if (old < c->seen_n && span_eq(c->seen[old], names[i])) {
            r->new_seen[i] = r->seen_hits[old];
            continue;
        }
        int hit = group_regex_match(r->re, names[i], &costly);
        if (hit < 0 && hit != E_LIMIT)
            return hit;
        r->new_seen[i] = hit == 1; /* what takes too many steps is not matched */
    }
    return 0;
}

/* All or nothing. */
static int see(struct consumer *c, const struct consumer_topics *topics)
{
    struct consumer_regex *r;
    int err = 0;

    if (same_names(c, topics))
        return 0;
    struct span *names = copy_names(topics);
    if (names == NULL)
        return E_NOMEM;
    TAILQ_FOREACH(r, &c->regexes, link)
    {
        if ((err = match_names(c, r, names, topics->n)) < 0)
            break;
    }
    TAILQ_FOREACH(r, &c->regexes, link)
    {
        mem_free(err < 0 ? r->new_seen : r->seen_hits);
        if (err == 0)
            r->seen_hits = r->new_seen;
        r->new_seen = NULL;
    }
    mem_free(err < 0 ? names : c->seen);
    if (err < 0)
        return err;
    c->seen = names;
    c->seen_n = topics->n;
    return 0;
}

int consumer_patterns_look(struct consumer *c, const struct consumer_topics *topics)
{
    if (!TAILQ_EMPTY(&c->regexes))
        return see(c, topics);
    mem_free(c->seen);
    c->seen = NULL;
    c->seen_n = 0;
    return 0;
}

bool consumer_seen(const struct consumer *c, struct span topic, size_t *at)
{
    return span_find(c->seen, c->seen_n, topic, at);
}

bool consumer_pattern_hits(const struct consumer *c, const struct consumer_regex *r,
                           struct span topic)
{
    size_t i;
    return consumer_seen(c, topic, &i) && r->seen_hits[i];
}

/* --- a member's pattern --- */

/* A pattern that takes too many steps for the names of today is refused. */
static int try_all(const struct consumer *c, struct consumer_regex *r, char *why, size_t why_bytes)
{
    unsigned costly = COSTLY_MAX;

    if ((r->seen_hits = mem_array(c->seen_n + 1, sizeof *r->seen_hits)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < c->seen_n; i++) {
        int hit = group_regex_match(r->re, c->seen[i], &costly);
        if (hit == E_LIMIT) {
            snprintf(why, why_bytes, "takes too many steps to match");
            return E_SYNTAX;
        }
        if (hit < 0)
            return hit;
        r->seen_hits[i] = hit == 1;
    }
    return 0;
}

int consumer_pattern_get(struct consumer *c, struct span text, const struct consumer_topics *topics,
                         struct consumer_regex **out, char *why, size_t why_bytes)
{
    struct consumer_regex *r;
    int err;

    *out = NULL;
    TAILQ_FOREACH(r, &c->regexes, link)
    {
        if (span_eq(span_of(r->text, r->text_n), text)) {
            r->refs++;
            *out = r;
            return 0;
        }
    }
    if (c->regexes_n >= CONSUMER_PATTERNS_MAX)
        return E_LIMIT;
    if ((r = mem_zalloc(sizeof *r + text.n + 1)) == NULL)
        return E_NOMEM;
    if ((err = group_regex_new(text, &r->re, why, why_bytes)) < 0) {
        err = err == E_LIMIT ? E_SYNTAX : err;
        goto fail;
    }
    if ((err = see(c, topics)) < 0 || (err = try_all(c, r, why, why_bytes)) < 0)
        goto fail;
    r->refs = 1;
    r->text_n = text.n;
    memcpy(r->text, text.p, text.n);
    TAILQ_INSERT_TAIL(&c->regexes, r, link);
    c->regexes_n++;
    *out = r;
    return 0;
fail:
    group_regex_free(r->re);
    mem_free(r->seen_hits);
    mem_free(r);
    return err;
}
