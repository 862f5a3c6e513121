/* Members of a KIP-848 group and what they subscribe to. Memory is taken before anything changes.
 * Pure. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/groups/consumer_int.h"

struct consumer_member *consumer_member_find(const struct consumer *c, struct span id)
{
    return keymap_get(&c->by_id, id);
}

static char *copy_span(struct span s)
{
    return mem_strndup(s.p == NULL ? "" : (const char *)s.p, s.n);
}

static void free_member(struct consumer_member *m)
{
    if (m == NULL)
        return;
    mem_free(m->id);
    mem_free(m->instance);
    mem_free(m->rack);
    mem_free(m->client_id);
    mem_free(m->client_host);
    mem_free(m->names);
    mem_free(m);
}

int consumer_member_add(struct consumer *c, const struct consumer_heartbeat *ev, struct span id,
                        struct consumer_member **out)
{
    struct consumer_member *m = mem_zalloc(sizeof *m);
    bool is_static = ev->instance_id.p != NULL;

    *out = NULL;
    if (m == NULL)
        return E_NOMEM;
    m->id = copy_span(id);
    m->client_id = mem_strdup(ev->client_id);
    m->client_host = mem_strdup(ev->client_host);
    m->instance = is_static ? copy_span(ev->instance_id) : NULL;
    m->revoke_ms = GROUP_NEVER;
    m->deadline_ms = GROUP_NEVER;
    if (m->id == NULL || m->client_id == NULL || m->client_host == NULL ||
        (is_static && m->instance == NULL) || keymap_reserve(&c->by_id) < 0 ||
        keymap_reserve(&c->by_instance) < 0)
        goto fail;
    if (keymap_put(&c->by_id, span_str(m->id), m) < 0)
        goto fail;
    if (is_static && keymap_put(&c->by_instance, span_str(m->instance), m) < 0) {
        keymap_take(&c->by_id, span_str(m->id));
        goto fail;
    }
    TAILQ_INSERT_TAIL(&c->members, m, link);
    c->members_n++;
    *out = m;
    return 0;
fail:
    free_member(m);
    return E_NOMEM;
}

int consumer_member_rename(struct consumer *c, struct consumer_member *m, struct span id)
{
    char *copy = copy_span(id);

    if (copy == NULL)
        return E_NOMEM;
    keymap_take(&c->by_id, span_str(m->id));
    if (keymap_put(&c->by_id, span_str(copy), m) < 0) {
        /* cannot fail: there is the room of the one just taken out */
        mem_free(copy);
        return E_NOMEM;
    }
    mem_free(m->id);
    m->id = copy;
    return 0;
}

static void clear(struct consumer *c, const struct consumer_member *m, bool target)
{
    for (size_t t = 0; t < c->topics_n; t++) {
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            struct consumer_part *p = &c->topics[t]->parts[i];
            if (p->owner == m) {
                p->owner = NULL;
                p->revoking = p->again = false;
            }
            if (target && p->target == m)
                p->target = NULL;
        }
    }
}

void consumer_member_release(struct consumer *c, struct consumer_member *m)
{
    clear(c, m, false);
}

void consumer_member_drop(struct consumer *c, struct consumer_member *m)
{
    clear(c, m, true);
    keymap_take(&c->by_id, span_str(m->id));
    if (m->instance != NULL)
        keymap_take(&c->by_instance, span_str(m->instance));
    TAILQ_REMOVE(&c->members, m, link);
    c->members_n--;
    c->bytes -= m->names_bytes;
    consumer_pattern_unref(c, m->regex);
    free_member(m);
}

/* --- subscriptions --- */

static int compare_names(const void *a, const void *b)
{
    return span_cmp(*(const struct span *)a, *(const struct span *)b);
}

struct names {
    struct span *list;
    size_t n;
    size_t bytes;
};

/* Sorted, each name once, in one allocation. */
static int copy_names(const struct consumer_heartbeat *ev, struct names *out)
{
    size_t total = ev->names_n * sizeof(struct span);

    for (size_t i = 0; i < ev->names_n; i++)
        total += ev->names[i].n;
    out->bytes = total;
    out->n = 0;
    if ((out->list = mem_zalloc(total + 1)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < ev->names_n; i++)
        out->list[i] = ev->names[i];
    if (ev->names_n > 0)
        qsort(out->list, ev->names_n, sizeof *out->list, compare_names);
    uint8_t *text = (uint8_t *)(out->list + ev->names_n);
    for (size_t i = 0; i < ev->names_n; i++) {
        struct span from = out->list[i];
        if (out->n > 0 && span_eq(out->list[out->n - 1], from))
            continue;
        if (from.n > 0)
            memcpy(text, from.p, from.n);
        out->list[out->n++] = span_of(text, from.n);
        text += from.n;
    }
    return 0;
}

static bool same_names(const struct consumer_member *m, const struct names *new)
{
    if (m->names_n != new->n)
        return false;
    for (size_t i = 0; i < new->n; i++) {
        if (!span_eq(m->names[i], new->list[i]))
            return false;
    }
    return true;
}

static void adopt_plain(struct consumer_member *m, const struct consumer_heartbeat *ev,
                        const struct group_limits *limits)
{
    if (ev->rebalance_ms > 0)
        m->rebalance_ms = ev->rebalance_ms < limits->max_rebalance_ms ? ev->rebalance_ms
                                                                      : limits->max_rebalance_ms;
    if (ev->assignor.p != NULL)
        m->assignor = assign_find(ev->assignor) == assign_range ? "range" : ASSIGN_DEFAULT;
}

int consumer_member_update(struct group *g, struct consumer_member *m,
                           const struct consumer_heartbeat *ev,
                           const struct consumer_topics *topics, char *why, size_t why_bytes)
{
    struct consumer *c = g->consumer;
    struct names names = {0};
    struct consumer_regex *regex = m->regex;
    char *rack = NULL;
    int changed = 0, err = E_NOMEM;

    if (regex != NULL)
        regex->refs++; /* the one that regex stands for from here on */
    if (ev->rack_id.p != NULL && (rack = copy_span(ev->rack_id)) == NULL)
        goto out;
    if (ev->has_names && (err = copy_names(ev, &names)) < 0)
        goto out;
    if (ev->has_names && c->bytes - m->names_bytes + names.bytes > g->limits->max_bytes) {
        err = E_LIMIT;
        goto out;
    }
    if (ev->regex.p != NULL) {
        struct consumer_regex *old = regex;
        regex = NULL;
        consumer_pattern_unref(c, old); /* m still holds it */
        if (ev->regex.n > 0 &&
            (err = consumer_pattern_get(c, ev->regex, topics, &regex, why, why_bytes)) < 0)
            goto out;
    }
    /* Nothing fails from here on. */
    if (ev->has_names && !same_names(m, &names)) {
        mem_free(m->names);
        c->bytes = c->bytes - m->names_bytes + names.bytes;
        m->names = names.list;
        m->names_n = names.n;
        m->names_bytes = names.bytes;
        names.list = NULL;
        changed = 1;
    }
    if (regex != m->regex) {
        struct consumer_regex *old = m->regex;
        m->regex = regex;
        regex = old;
        changed = 1;
    }
    if (rack != NULL) {
        mem_free(m->rack);
        m->rack = rack;
        rack = NULL;
    }
    adopt_plain(m, ev, g->limits);
    err = changed;
out:
    consumer_pattern_unref(c, regex);
    mem_free(names.list);
    mem_free(rack);
    return err;
}
