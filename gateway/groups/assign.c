/* What the assignors share. See assign.h. */
#include "gateway/groups/assign.h"

#include "base/mem.h"

static const struct {
    const char *name;
    assign_fn *fn;
} assignors[] = {
    {"uniform", assign_uniform},
    {"range", assign_range},
};

assign_fn *assign_find(struct span name)
{
    for (size_t i = 0; i < sizeof assignors / sizeof assignors[0]; i++) {
        if (span_eq_str(name, assignors[i].name))
            return assignors[i].fn;
    }
    return NULL;
}

int assign_index(struct assign *a, uint32_t **memory)
{
    size_t total = 0;

    for (size_t m = 0; m < a->members_n; m++)
        total += a->members[m].topics_n;
    if ((*memory = mem_array(total == 0 ? 1 : total, sizeof **memory)) == NULL)
        return E_NOMEM;
    for (size_t t = 0; t < a->topics_n; t++)
        a->topics[t].subscribers_n = 0;
    for (size_t m = 0; m < a->members_n; m++) {
        for (size_t i = 0; i < a->members[m].topics_n; i++)
            a->topics[a->members[m].topics[i]].subscribers_n++;
    }
    size_t at = 0;
    for (size_t t = 0; t < a->topics_n; t++) {
        a->topics[t].subscribers = *memory + at;
        at += a->topics[t].subscribers_n;
        a->topics[t].subscribers_n = 0;
    }
    for (size_t m = 0; m < a->members_n; m++) {
        for (size_t i = 0; i < a->members[m].topics_n; i++) {
            struct assign_topic *t = &a->topics[a->members[m].topics[i]];
            (*memory)[(size_t)(t->subscribers - *memory) + t->subscribers_n++] = (uint32_t)m;
        }
    }
    return 0;
}
