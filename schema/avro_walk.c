/*
 * The tree of selected locations: pointers with a common beginning share it, so that a document is
 * walked once. Slots are numbered in the order of the tree; so each location has one run of slots
 * at and below it, which a duplicate member clears. Pure.
 */
#include "schema/avro_int.h"

struct target {
    struct target *next;
    const struct pg_node *node;
    uint32_t *slot;
};
struct level {
    struct level *next, *first, *last; /* siblings, children */
    struct span token;
    struct target *targets, *targets_last;
    uint32_t children, targets_n;
};

static void fill_name(struct av *av, struct pg_name *out, struct span s)
{
    struct span token = av_join(av, s, "\":", span_of("", 0));
    size_t head = token.n < sizeof out->head ? token.n : sizeof out->head;

    out->s = s;
    out->token = token;
    out->reach = token.n < sizeof out->head ? sizeof out->head : (uint32_t)token.n;
    for (size_t k = 0; k < s.n; k++) {
        if (s.p[k] < 0x20 || s.p[k] == '"' || s.p[k] == '\\')
            out->reach = UINT32_MAX; /* it has to be escaped */
    }
    if (head > 0) /* none: out of memory */
        memcpy(out->head, token.p, head);
    out->mask = (uint16_t)((1u << head) - 1);
}

void av_names(struct av *av, struct pg_names *names, const struct span *list, size_t n)
{
    struct pg_name *out = av_alloc(av, n + 1, sizeof *out);
    size_t cap = 4;
    uint32_t *table;

    while (cap < 2 * n + 2)
        cap *= 2;
    table = av_alloc(av, cap, sizeof *table);
    if (out == NULL || table == NULL)
        return;
    if (n > PG_MAX_NAMES) {
        (void)av_fail(av, E_LIMIT, span_str(""), "too many members", (struct span){NULL, 0});
        return;
    }
    names->n = (uint32_t)n;
    names->names = out;
    names->table = table;
    names->table_mask = (uint32_t)cap - 1;
    names->guess_at = av->out->guesses_n;
    av->out->guesses_n += (uint32_t)n;
    for (size_t i = 0; i < n && av->err == 0; i++) {
        uint32_t at = pg_hash(list[i]) & names->table_mask;

        fill_name(av, &out[i], list[i]);
        while (table[at] != 0)
            at = (at + 1) & names->table_mask;
        table[at] = (uint32_t)i + 1;
    }
}

static struct level *child(struct av *av, struct level *parent, struct span token)
{
    struct level *l;

    for (l = parent->first; l != NULL; l = l->next) {
        if (span_eq(l->token, token))
            return l;
    }
    if ((l = arena_alloc(&av->tmp, sizeof *l)) == NULL) {
        av->err = E_NOMEM;
        return NULL;
    }
    l->token = token;
    if (parent->last == NULL)
        parent->first = l;
    else
        parent->last->next = l;
    parent->last = l;
    parent->children++;
    return l;
}

static void insert(struct av *av, struct level *root, struct span pointer,
                   const struct pg_node *node, uint32_t *slot)
{
    struct level *at = root;
    struct target *t = arena_alloc(&av->tmp, sizeof *t);
    size_t depth = 0;

    for (size_t i = 0; i < pointer.n && at != NULL && av->err == 0;) {
        uint8_t *token = av_alloc(av, pointer.n + PG_SLACK, 1);
        size_t n = 0;

        if (token == NULL)
            return;
        for (i++; i < pointer.n && pointer.p[i] != '/'; i++) {
            uint8_t c = pointer.p[i];

            if (c == '~' && i + 1 < pointer.n)
                c = pointer.p[++i] == '0' ? '~' : '/';
            token[n++] = c;
        }
        at = child(av, at, span_of(token, n));
        if (++depth > PG_MAX_DEPTH) {
            (void)av_fail(av, E_LIMIT, pointer, "a pointer with too many parts",
                          (struct span){NULL, 0});
            return;
        }
    }
    if (t == NULL || at == NULL) {
        av->err = av->err < 0 ? av->err : E_NOMEM;
        return;
    }
    t->node = node;
    t->slot = slot;
    if (at->targets_last == NULL)
        at->targets = t;
    else
        at->targets_last->next = t;
    at->targets_last = t;
    at->targets_n++;
}

static void find_taps(struct av *av, struct pg_entry *e)
{
    const struct pg_node *node = e->sinks_n == 1 ? e->sinks[0].node : NULL;
    uint32_t found = 0;
    uint8_t *taps;

    if (node == NULL || node->op != PG_RECORD || e->below->names.n > PG_MAX_TAPS ||
        (taps = av_alloc(av, node->record->names.n + 1u, 1)) == NULL)
        return;
    for (uint32_t i = 0; i < node->record->names.n; i++) {
        for (uint32_t k = 0; k < e->below->names.n; k++) {
            if (span_eq(node->record->names.names[i].s, e->below->names.names[k].s)) {
                taps[i] = (uint8_t)(k + 1);
                found++;
            }
        }
    }
    if (found == e->below->names.n)
        e->taps = taps;
}

static void build(struct av *av, const struct level *l, uint32_t *slots, struct pg_entry *out)
{
    struct pg_sink *sinks = av_alloc(av, l->targets_n + 1u, sizeof *sinks);
    struct pg_walk *walk;
    struct pg_entry *entries;
    struct span *names;
    uint32_t i = 0;

    if (sinks == NULL)
        return;
    out->slot_lo = *slots;
    out->sinks = sinks;
    for (const struct target *t = l->targets; t != NULL; t = t->next) {
        *t->slot = (*slots)++;
        sinks[out->sinks_n++] = (struct pg_sink){.node = t->node, .slot = *t->slot};
    }
    if (l->children > 0) {
        walk = av_alloc(av, 1, sizeof *walk);
        entries = av_alloc(av, l->children, sizeof *entries);
        names = arena_array(&av->tmp, l->children, sizeof *names);
        if (walk == NULL || entries == NULL || names == NULL) {
            av->err = av->err < 0 ? av->err : E_NOMEM;
            return;
        }
        for (const struct level *c = l->first; c != NULL; c = c->next) {
            names[i] = c->token;
            build(av, c, slots, &entries[i++]);
        }
        av_names(av, &walk->names, names, l->children);
        walk->entries = entries;
        out->below = walk;
        find_taps(av, out);
    }
    out->slot_hi = *slots;
    out->leaf = out->sinks_n == 1 && out->below == NULL;
}

void av_walk(struct av *av, struct pg_program *pg, struct pg_output *key, size_t key_n,
             struct pg_output *value, size_t value_n)
{
    struct pg_node *deleted = av_alloc(av, 1, sizeof *deleted);
    struct level root = {.next = NULL};
    uint32_t slots = 0;

    if (deleted == NULL)
        return;
    deleted->op = PG_DELETED;
    insert(av, &root, span_str("/_meta/op"), deleted, &pg->deleted);
    for (size_t i = 0; i < key_n && av->err == 0; i++)
        insert(av, &root, key[i].pointer, key[i].node, &key[i].slot);
    for (size_t i = 0; i < value_n && av->err == 0; i++)
        insert(av, &root, value[i].pointer, value[i].node, &value[i].slot);
    if (av->err < 0)
        return;
    build(av, &root, &slots, &pg->root);
    pg->slots_n = slots;
    pg->key = key;
    pg->key_n = key_n;
    pg->value = value;
    pg->value_n = value_n;
}
