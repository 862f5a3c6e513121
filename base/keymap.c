/*
 * Open addressing with linear probing; an entry that goes pulls later ones back, so there are no
 * marks of the dead. At most three quarters full.
 */
#include "base/keymap.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"

#define FIRST_CAP 8

void keymap_fini(struct keymap *m)
{
    mem_free(m->slots);
    *m = (struct keymap){0};
}

static size_t home(const struct keymap *m, struct span key)
{
    return (size_t)hash_bytes(key, 0) & (m->cap - 1);
}

/* Of the key, or of the free place where it belongs. */
static size_t place(const struct keymap *m, struct span key)
{
    size_t i = home(m, key);

    while (m->slots[i].value != NULL && !span_eq(m->slots[i].key, key))
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *keymap_get(const struct keymap *m, struct span key)
{
    return m->n == 0 ? NULL : m->slots[place(m, key)].value;
}

int keymap_reserve(struct keymap *m)
{
    struct keymap next = {.cap = m->cap == 0 ? FIRST_CAP : m->cap * 2, .n = m->n};

    if (m->cap > 0 && m->n + 1 <= m->cap / 4 * 3)
        return 0;
    if ((next.slots = mem_array(next.cap, sizeof *next.slots)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].value != NULL)
            next.slots[place(&next, m->slots[i].key)] = m->slots[i];
    }
    mem_free(m->slots);
    *m = next;
    return 0;
}

int keymap_put(struct keymap *m, struct span key, void *value)
{
    int err = keymap_reserve(m);

    if (err < 0)
        return err;
    size_t i = place(m, key);
    ASSERT(value != NULL && m->slots[i].value == NULL);
    m->slots[i] = (struct keymap_slot){key, value};
    m->n++;
    return 0;
}

void *keymap_take(struct keymap *m, struct span key)
{
    if (m->n == 0)
        return NULL;
    size_t hole = place(m, key);
    void *taken = m->slots[hole].value;
    if (taken == NULL)
        return NULL;
    m->slots[hole].value = NULL;
    m->n--;
    /* Whoever could not sit at home because of the hole moves into it. */
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].value != NULL;
         i = (i + 1) & (m->cap - 1)) {
        size_t want = home(m, m->slots[i].key);
        if (((i - want) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
            m->slots[hole] = m->slots[i];
            m->slots[i].value = NULL;
            hole = i;
        }
    }
    return taken;
}

void *keymap_next(const struct keymap *m, size_t *at)
{
    while (*at < m->cap) {
        void *value = m->slots[(*at)++].value;
        if (value != NULL)
            return value;
    }
    return NULL;
}
