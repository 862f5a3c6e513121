/*
 * Which topics a KIP-848 group reads: what its members name and what their patterns match, as the
 * task has it now. A new table is built beside the old one and takes its place when it is complete.
 * Pure.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "gateway/groups/consumer_int.h"

static struct span id_key(const struct kp_uuid *id)
{
    return span_of(id->b, sizeof id->b);
}

static struct span name_key(const struct consumer_topic *t)
{
    return span_of(t->name, t->name_n);
}

static bool names_topic(const struct consumer_member *m, struct span topic)
{
    size_t at;

    return span_find(m->names, m->names_n, topic, &at);
}

bool consumer_member_subscribes(const struct consumer *c, const struct consumer_member *m,
                                struct span topic)
{
    return names_topic(m, topic) || (m->regex != NULL && consumer_pattern_hits(c, m->regex, topic));
}

size_t consumer_member_reads(const struct consumer *c, const struct consumer_member *m,
                             uint32_t *out)
{
    const bool *hits = m->regex == NULL ? NULL : m->regex->hits;
    size_t n = 0, k = 0;

    for (size_t i = 0; i < c->live_n && (hits != NULL || k < m->names_n); i++) {
        struct span topic = name_key(c->topics[i]);
        int order = 1;
        /* both are in order: one walk over them */
        while (k < m->names_n && (order = span_cmp(m->names[k], topic)) < 0)
            k++;
        if ((k < m->names_n && order == 0) || (hits != NULL && hits[i]))
            out[n++] = (uint32_t)i;
    }
    return n;
}

size_t consumer_member_reads_max(const struct consumer *c, const struct consumer_member *m)
{
    return m->regex != NULL || m->names_n > c->live_n ? c->live_n : m->names_n;
}

/* --- a new table --- */

struct table {
    struct consumer_topic_info *wanted; /* what is read, by name, each once */
    size_t wanted_n;
    size_t wanted_cap;
    struct consumer_topic **list;
    bool *fresh; /* list[i] is new; otherwise it is one of the old table */
    size_t n;
    size_t live_n;
    struct keymap by_name;
    struct keymap by_id;
};

static void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->fresh[i])
            mem_free(t->list[i]);
    }
    mem_free(t->wanted);
    mem_free(t->list);
    mem_free(t->fresh);
    keymap_fini(&t->by_name);
    keymap_fini(&t->by_id);
}

static int want(struct table *t, const struct consumer_topic_info *info)
{
    if (t->wanted_n == t->wanted_cap) {
        size_t cap = t->wanted_cap == 0 ? 16 : 2 * t->wanted_cap;
        void *p = mem_realloc(t->wanted, cap * sizeof *t->wanted);
        if (p == NULL)
            return E_NOMEM;
        t->wanted = p;
        t->wanted_cap = cap;
    }
    t->wanted[t->wanted_n++] = *info;
    return 0;
}

static int compare_infos(const void *a, const void *b)
{
    return span_cmp(((const struct consumer_topic_info *)a)->name,
                    ((const struct consumer_topic_info *)b)->name);
}

static int want_names(const struct consumer *c, struct table *t,
                      const struct consumer_topics *topics)
{
    const struct consumer_member *m, *before = NULL;
    struct consumer_topic_info info;
    int err;

    TAILQ_FOREACH(m, &c->members, link)
    {
        /* As a rule all members send the same: once is enough. */
        bool same = before != NULL && before->names_n == m->names_n;
        for (size_t i = 0; same && i < m->names_n; i++)
            same = span_eq(before->names[i], m->names[i]);
        before = m;
        for (size_t i = 0; !same && i < m->names_n; i++) {
            if (topics->find(topics, m->names[i], &info) && info.partitions > 0 &&
                (err = want(t, &info)) < 0)
                return err;
        }
    }
    return 0;
}

static int want_matches(const struct consumer *c, struct table *t,
                        const struct consumer_topics *topics)
{
    const struct consumer_regex *r;
    int err;

    for (size_t i = 0; !TAILQ_EMPTY(&c->regexes) && i < topics->n; i++) {
        struct consumer_topic_info info = topics->at(topics, i);
        TAILQ_FOREACH(r, &c->regexes, link)
        {
            if (info.partitions > 0 && r->seen_hits[i])
                break;
        }
        if (r != NULL && (err = want(t, &info)) < 0)
            return err;
    }
    return 0;
}

static int collect(const struct consumer *c, struct table *t, const struct consumer_topics *topics)
{
    size_t n = 0;
    int err;

    if ((err = want_names(c, t, topics)) < 0 || (err = want_matches(c, t, topics)) < 0)
        return err;
    if (t->wanted_n > 0)
        qsort(t->wanted, t->wanted_n, sizeof *t->wanted, compare_infos);
    for (size_t i = 0; i < t->wanted_n; i++) {
        if (n == 0 || !span_eq(t->wanted[n - 1].name, t->wanted[i].name))
            t->wanted[n++] = t->wanted[i];
    }
    t->wanted_n = n;
    return 0;
}

/* The table is what it was, as far as partitions to give out go. */
static bool same_live(const struct consumer *c, const struct table *t)
{
    if (t->wanted_n != c->live_n)
        return false;
    for (size_t i = 0; i < c->live_n; i++) {
        if (memcmp(&c->topics[i]->id, &t->wanted[i].id, sizeof t->wanted[i].id) != 0 ||
            c->topics[i]->epoch != t->wanted[i].epoch ||
            c->topics[i]->partitions != t->wanted[i].partitions ||
            !span_eq(name_key(c->topics[i]), t->wanted[i].name))
            return false;
    }
    return true;
}

static struct consumer_topic *make_topic(const struct consumer_topic_info *info, int32_t parts_n)
{
    size_t parts_bytes = (size_t)parts_n * sizeof(struct consumer_part);
    struct consumer_topic *t = mem_zalloc(sizeof *t + parts_bytes + info->name.n + 1);

    if (t == NULL)
        return NULL;
    t->id = info->id;
    t->epoch = info->epoch;
    t->parts_n = parts_n;
    t->name_n = info->name.n;
    t->name = (char *)t + sizeof *t + parts_bytes;
    memcpy(t->name, info->name.p, info->name.n);
    return t;
}

static int add_live(const struct consumer *c, struct table *t,
                    const struct consumer_topic_info *info)
{
    struct consumer_topic *old = keymap_get(&c->topic_by_id, id_key(&info->id));
    struct consumer_topic *topic = old;
    int err;

    /* Same id, same name: an id is made of it. */
    if (old == NULL || old->parts_n < info->partitions) {
        if ((topic = make_topic(info, info->partitions)) == NULL)
            return E_NOMEM;
        if (old != NULL)
            topic->epoch = old->epoch;
        for (int32_t i = 0; old != NULL && i < old->parts_n; i++)
            topic->parts[i] = old->parts[i];
    }
    t->fresh[t->n] = topic != old;
    t->list[t->n++] = topic;
    t->live_n = t->n;
    if ((err = keymap_put(&t->by_name, name_key(topic), topic)) < 0)
        return err;
    return keymap_put(&t->by_id, id_key(&topic->id), topic);
}

static bool is_owned(const struct consumer_topic *t)
{
    for (int32_t i = 0; i < t->parts_n; i++) {
        if (t->parts[i].owner != NULL)
            return true;
    }
    return false;
}

static int build(const struct consumer *c, struct table *t)
{
    size_t cap = t->wanted_n + c->topics_n + 1;
    int err;

    t->list = mem_array(cap, sizeof(void *));
    t->fresh = mem_array(cap, sizeof *t->fresh);
    if (t->list == NULL || t->fresh == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < t->wanted_n; i++) {
        if ((err = add_live(c, t, &t->wanted[i])) < 0)
            return err;
    }
    for (size_t i = 0; i < c->topics_n; i++) {
        struct consumer_topic *old = c->topics[i];
        if (keymap_get(&t->by_id, id_key(&old->id)) != NULL || !is_owned(old))
            continue;
        t->list[t->n++] = old;
        if ((err = keymap_put(&t->by_id, id_key(&old->id), old)) < 0)
            return err;
    }
    return 0;
}

static int match_all(const struct consumer *c, const struct table *t)
{
    struct consumer_regex *r;

    TAILQ_FOREACH(r, &c->regexes, link)
    {
        if ((r->new_hits = mem_array(t->wanted_n + 1, sizeof *r->new_hits)) == NULL)
            return E_NOMEM;
    }
    for (size_t i = 0, at; !TAILQ_EMPTY(&c->regexes) && i < t->wanted_n; i++) {
        if (!consumer_seen(c, t->wanted[i].name, &at))
            continue;
        TAILQ_FOREACH(r, &c->regexes, link)
        r->new_hits[i] = r->seen_hits[at];
    }
    return 0;
}

static void keep_hits(struct consumer *c, bool new)
{
    struct consumer_regex *r;

    TAILQ_FOREACH(r, &c->regexes, link)
    {
        mem_free(new ? r->hits : r->new_hits);
        if (new)
            r->hits = r->new_hits;
        r->new_hits = NULL;
    }
}

/* What its owners know is about another life: each must begin anew. */
static void take_epoch(struct consumer_topic *t, int32_t epoch)
{
    for (int32_t i = 0; t->epoch != epoch && i < t->parts_n; i++)
        t->parts[i].again = t->parts[i].owner != NULL;
    t->epoch = epoch;
}

/* Nothing fails here. The old table's keys lie in topics that may go: the tables go first. */
static void replace(struct consumer *c, struct table *t)
{
    keymap_fini(&c->topic_by_name);
    keymap_fini(&c->topic_by_id);
    for (size_t i = 0; i < c->topics_n; i++) {
        if (keymap_get(&t->by_id, id_key(&c->topics[i]->id)) != c->topics[i])
            mem_free(c->topics[i]);
    }
    mem_free(c->topics);
    for (size_t i = 0; i < t->n; i++) {
        t->list[i]->partitions = i < t->live_n ? t->wanted[i].partitions : 0;
        if (i < t->live_n)
            take_epoch(t->list[i], t->wanted[i].epoch);
    }
    c->topics = t->list;
    c->topics_n = t->n;
    c->live_n = t->live_n;
    c->topic_by_name = t->by_name;
    c->topic_by_id = t->by_id;
    t->list = NULL;
    t->n = 0;
    t->by_name = t->by_id = (struct keymap){0};
}

int consumer_refresh(struct group *g, const struct consumer_topics *topics)
{
    struct consumer *c = g->consumer;
    struct table t = {0};
    bool changed = false;
    int err;

    if ((err = consumer_patterns_look(c, topics)) < 0 || (err = collect(c, &t, topics)) < 0 ||
        (err = match_all(c, &t)) < 0)
        goto out;
    changed = !same_live(c, &t);
    if (changed) {
        if ((err = build(c, &t)) < 0)
            goto out;
        replace(c, &t);
        consumer_bump(g);
    }
    keep_hits(c, true);
    c->refresh = false;
out:
    if (err < 0)
        keep_hits(c, false);
    table_fini(&t);
    return err;
}

void consumer_topics_free(struct consumer *c)
{
    keymap_fini(&c->topic_by_name);
    keymap_fini(&c->topic_by_id);
    for (size_t i = 0; i < c->topics_n; i++)
        mem_free(c->topics[i]);
    mem_free(c->topics);
    mem_free(c->seen);
}
