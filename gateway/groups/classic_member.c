/*
 * The members of a classic group: who they are, what protocols they speak, how those are counted.
 * All memory of a group is taken here, before anything of it changes. Pure.
 */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/groups/classic_int.h"

struct classic_member *classic_member_find(const struct classic *c, struct span id)
{
    return keymap_get(&c->by_id, id);
}

struct classic_member *classic_member_static(const struct classic *c, struct span instance)
{
    return keymap_get(&c->by_instance, instance);
}

int16_t classic_member_check(const struct classic *c, const struct group_speaker *who,
                             struct classic_member **out)
{
    *out = NULL;
    if (who->instance_id.p != NULL) {
        struct classic_member *m = classic_member_static(c, who->instance_id);
        if (m == NULL)
            return KE_UNKNOWN_MEMBER_ID;
        if (!span_eq_str(who->member_id, m->id))
            return KE_FENCED_INSTANCE_ID;
        *out = m;
        return KE_NONE;
    }
    *out = classic_member_find(c, who->member_id);
    return *out == NULL ? KE_UNKNOWN_MEMBER_ID : KE_NONE;
}

void classic_member_alive(struct classic *c, struct classic_member *m, int64_t now_ms)
{
    m->deadline_ms = now_ms + m->session_ms;
    if (m->deadline_ms < c->due_ms)
        c->due_ms = m->deadline_ms;
}

/* --- protocols --- */

static size_t protocols_size(const struct classic_join *ev)
{
    size_t bytes = ev->protocols_n * sizeof *ev->protocols;

    for (size_t i = 0; i < ev->protocols_n; i++)
        bytes += ev->protocols[i].name.n + ev->protocols[i].metadata.n;
    return bytes;
}

/* One allocation: the array, then all bytes. */
static struct classic_protocol *copy_protocols(const struct classic_join *ev, size_t bytes)
{
    struct classic_protocol *list = mem_alloc(bytes > 0 ? bytes : 1);

    if (list == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)(list + ev->protocols_n);
    for (size_t i = 0; i < ev->protocols_n; i++) {
        struct span name = ev->protocols[i].name;
        struct span metadata = ev->protocols[i].metadata;
        list[i].name = span_of(at, name.n);
        memcpy(at, name.p, name.n);
        at += name.n;
        list[i].metadata = span_of(at, metadata.n);
        if (metadata.n > 0)
            memcpy(at, metadata.p, metadata.n);
        at += metadata.n;
    }
    return list;
}

/* Room for the name of whichever protocol the votes choose. */
static int reserve_name(struct classic *c, const struct classic_join *ev)
{
    size_t longest = 0;

    for (size_t i = 0; i < ev->protocols_n; i++) {
        if (ev->protocols[i].name.n > longest)
            longest = ev->protocols[i].name.n;
    }
    if (longest + 1 <= c->name_cap)
        return 0;
    char *name = mem_realloc(c->protocol_name, longest + 1);
    if (name == NULL)
        return E_NOMEM;
    if (c->name_cap == 0)
        name[0] = '\0';
    c->protocol_name = name;
    c->name_cap = longest + 1;
    return 0;
}

static struct classic_name *name_of(struct classic *c, struct span name)
{
    struct classic_name *at = keymap_get(&c->names, name);

    if (at != NULL)
        return at;
    if ((at = mem_zalloc(sizeof *at + name.n)) == NULL)
        return NULL;
    memcpy(at->name, name.p, name.n);
    at->bytes = name.n;
    if (keymap_put(&c->names, span_of(at->name, name.n), at) < 0) {
        mem_free(at);
        return NULL;
    }
    return at;
}

/* A name that a member lists twice counts once. */
static bool repeated(const struct classic_protocol *list, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (span_eq(list[k].name, list[i].name))
            return true;
    }
    return false;
}

static void count_names(struct classic *c, const struct classic_protocol *list, size_t n, bool on)
{
    for (size_t i = 0; i < n; i++) {
        struct classic_name *at = keymap_get(&c->names, list[i].name);
        if (at == NULL || repeated(list, i))
            continue;
        if (on)
            at->n++;
        else
            at->n--;
    }
}

/* Names that nobody speaks (any more). */
static void drop_bare_names(struct classic *c, const struct classic_protocol *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct classic_name *at = keymap_get(&c->names, list[i].name);
        if (at == NULL || at->n > 0)
            continue;
        (void)keymap_take(&c->names, span_of(at->name, at->bytes));
        mem_free(at);
    }
}

void classic_names_fini(struct classic *c)
{
    struct classic_name *at;

    for (size_t i = 0; (at = keymap_next(&c->names, &i)) != NULL;)
        mem_free(at);
    keymap_fini(&c->names);
}

static void forget_protocols(struct classic *c, struct classic_member *m)
{
    count_names(c, m->protocols, m->protocols_n, false);
    drop_bare_names(c, m->protocols, m->protocols_n);
    c->bytes -= m->protocols_bytes;
    mem_free(m->protocols);
    m->protocols = NULL;
    m->protocols_n = 0;
    m->protocols_bytes = 0;
}

static int take_protocols(struct group *g, struct classic_member *m, const struct classic_join *ev)
{
    struct classic *c = g->classic;
    size_t bytes = protocols_size(ev);
    struct classic_protocol *list = NULL;
    bool named = true;

    if (ev->protocols_n > CLASSIC_PROTOCOLS_MAX ||
        c->bytes - m->protocols_bytes + bytes > g->limits->max_bytes)
        return E_LIMIT;
    for (size_t i = 0; i < ev->protocols_n; i++)
        named = named && name_of(c, ev->protocols[i].name) != NULL;
    if (!named || reserve_name(c, ev) < 0 || (list = copy_protocols(ev, bytes)) == NULL) {
        drop_bare_names(c, ev->protocols, ev->protocols_n);
        return E_NOMEM;
    }
    count_names(c, list, ev->protocols_n, true);
    forget_protocols(c, m);
    c->bytes += bytes;
    m->protocols = list;
    m->protocols_n = ev->protocols_n;
    m->protocols_bytes = bytes;
    return 0;
}

static bool speaks(const struct classic_member *m, struct span name)
{
    for (size_t i = 0; i < m->protocols_n; i++) {
        if (span_eq(m->protocols[i].name, name))
            return true;
    }
    return false;
}

static bool all_speak(const struct classic *c, struct span name,
                      const struct classic_member *except)
{
    const struct classic_name *at = keymap_get(&c->names, name);
    size_t n = at == NULL ? 0 : at->n;

    if (except == NULL)
        return n == c->members_n;
    return n - (speaks(except, name) ? 1 : 0) == c->members_n - 1;
}

bool classic_protocols_fit(const struct classic *c, const struct classic_join *ev,
                           const struct classic_member *except)
{
    for (size_t i = 0; i < ev->protocols_n; i++) {
        if (all_speak(c, ev->protocols[i].name, except))
            return true;
    }
    return false;
}

/* Which of the first member's protocols all speak: what all speak, the first one speaks too. */
static uint64_t candidates(const struct classic *c, const struct classic_member *first)
{
    uint64_t set = 0;

    for (size_t i = 0; i < first->protocols_n; i++) {
        if (all_speak(c, first->protocols[i].name, NULL))
            set |= (uint64_t)1 << i;
    }
    return set;
}

/* The member's vote: its first protocol that is a candidate, as an index of first's. */
static size_t vote_of(const struct classic_member *m, const struct classic_member *first,
                      uint64_t set)
{
    for (size_t i = 0; i < m->protocols_n; i++) {
        for (size_t j = 0; j < first->protocols_n; j++) {
            if ((set >> j & 1) != 0 && span_eq(m->protocols[i].name, first->protocols[j].name))
                return j;
        }
    }
    return CLASSIC_PROTOCOLS_MAX;
}

const struct classic_protocol *classic_vote(const struct classic *c)
{
    const struct classic_member *first = TAILQ_FIRST(&c->members);
    const struct classic_member *m;
    size_t votes[CLASSIC_PROTOCOLS_MAX + 1] = {0};
    size_t best = CLASSIC_PROTOCOLS_MAX;

    if (first == NULL)
        return NULL;
    uint64_t set = candidates(c, first);
    TAILQ_FOREACH(m, &c->members, link)
    {
        votes[vote_of(m, first, set)]++;
    }
    /* Equal votes: the first member's own order. */
    for (size_t j = 0; j < first->protocols_n; j++) {
        if ((set >> j & 1) != 0 && (best == CLASSIC_PROTOCOLS_MAX || votes[j] > votes[best]))
            best = j;
    }
    return best == CLASSIC_PROTOCOLS_MAX ? NULL : &first->protocols[best];
}

bool classic_member_matches(const struct classic_member *m, const struct classic_join *ev)
{
    if (m->protocols_n != ev->protocols_n)
        return false;
    for (size_t i = 0; i < m->protocols_n; i++) {
        if (!span_eq(m->protocols[i].name, ev->protocols[i].name) ||
            !span_eq(m->protocols[i].metadata, ev->protocols[i].metadata))
            return false;
    }
    return true;
}

/* --- coming and going --- */

static void free_member(struct classic_member *m)
{
    mem_free(m->id);
    mem_free(m->instance);
    mem_free(m->client_id);
    mem_free(m->client_host);
    mem_free(m->protocols);
    blob_unref(m->assignment);
    mem_free(m);
}

static void set_times(const struct group *g, struct classic_member *m,
                      const struct classic_join *ev)
{
    m->session_ms = ev->session_ms;
    m->rebalance_ms = ev->rebalance_ms > 0 ? ev->rebalance_ms : ev->session_ms;
    if (m->rebalance_ms > g->limits->max_rebalance_ms)
        m->rebalance_ms = g->limits->max_rebalance_ms;
}

static int set_names(struct classic_member *m, const struct classic_join *ev, struct span id)
{
    if ((m->id = mem_strndup((const char *)id.p, id.n)) == NULL ||
        (m->client_id = mem_strdup(ev->client_id)) == NULL ||
        (m->client_host = mem_strdup(ev->client_host)) == NULL)
        return E_NOMEM;
    if (ev->instance_id.p != NULL &&
        (m->instance = mem_strndup((const char *)ev->instance_id.p, ev->instance_id.n)) == NULL)
        return E_NOMEM;
    return 0;
}

int classic_member_add(struct group *g, const struct classic_join *ev, struct span id,
                       struct classic_member **out)
{
    struct classic *c = g->classic;
    struct classic_member *m = mem_zalloc(sizeof *m);
    char *type = NULL;
    int err = E_NOMEM;

    *out = NULL;
    if (m == NULL)
        return E_NOMEM;
    if ((err = set_names(m, ev, id)) < 0 || (err = keymap_reserve(&c->by_id)) < 0 ||
        (err = keymap_reserve(&c->by_instance)) < 0)
        goto out;
    if (c->protocol_type == NULL || c->members_n == 0) {
        err = E_NOMEM;
        type = mem_strndup((const char *)ev->protocol_type.p, ev->protocol_type.n);
        if (type == NULL)
            goto out;
    }
    if ((err = take_protocols(g, m, ev)) < 0)
        goto out;
    if (type != NULL) {
        mem_free(c->protocol_type);
        c->protocol_type = type;
        type = NULL;
    }
    err = keymap_put(&c->by_id, span_str(m->id), m);
    if (err == 0 && m->instance != NULL)
        err = keymap_put(&c->by_instance, span_str(m->instance), m);
    ASSERT(err == 0); /* both were reserved */
    set_times(g, m, ev);
    TAILQ_INSERT_TAIL(&c->members, m, link);
    c->members_n++;
    *out = m;
    m = NULL;
out:
    mem_free(type);
    if (m != NULL)
        free_member(m);
    return err;
}

int classic_member_update(struct group *g, struct classic_member *m, const struct classic_join *ev)
{
    int err = classic_member_matches(m, ev) ? 0 : take_protocols(g, m, ev);

    if (err == 0)
        set_times(g, m, ev);
    return err;
}

int classic_member_rename(struct classic *c, struct classic_member *m, struct span id)
{
    char *name = mem_strndup((const char *)id.p, id.n);

    if (name == NULL)
        return E_NOMEM;
    (void)keymap_take(&c->by_id, span_str(m->id));
    mem_free(m->id);
    m->id = name;
    int err = keymap_put(&c->by_id, span_str(m->id), m);
    ASSERT(err == 0); /* it was in there a moment ago: there is room */
    return 0;
}

void classic_member_drop(struct classic *c, struct classic_member *m)
{
    ASSERT(m->join == NULL && m->sync == NULL);
    (void)keymap_take(&c->by_id, span_str(m->id));
    if (m->instance != NULL)
        (void)keymap_take(&c->by_instance, span_str(m->instance));
    if (c->leader == m)
        c->leader = NULL;
    TAILQ_REMOVE(&c->members, m, link);
    c->members_n--;
    forget_protocols(c, m);
    free_member(m);
}

/* --- ids that were handed out --- */

struct classic_pending *classic_pending_find(const struct classic *c, struct span id)
{
    return keymap_get(&c->pending_by_id, id);
}

int classic_pending_add(struct classic *c, const char *id, int64_t deadline_ms)
{
    size_t n = strlen(id);
    struct classic_pending *p = mem_zalloc(sizeof *p + n + 1);

    if (p == NULL)
        return E_NOMEM;
    memcpy(p->id, id, n);
    p->deadline_ms = deadline_ms;
    if (keymap_put(&c->pending_by_id, span_of(p->id, n), p) < 0) {
        mem_free(p);
        return E_NOMEM;
    }
    TAILQ_INSERT_TAIL(&c->pending, p, link);
    return 0;
}

void classic_pending_drop(struct classic *c, struct classic_pending *p)
{
    (void)keymap_take(&c->pending_by_id, span_str(p->id));
    TAILQ_REMOVE(&c->pending, p, link);
    mem_free(p);
}
