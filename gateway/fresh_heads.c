/* See fresh_heads.h. */
#include "gateway/fresh_heads.h"

#include "base/assert.h"
#include "gateway/config.h"

#define ASKED_MAX 256 /* questions of one request that run at a time */

static void pump(struct fresh_heads *fh);

bool fresh_heads_lag(const struct worker *w)
{
    return w->shared->store->ops->fresh != NULL;
}

void fresh_heads_init(struct fresh_heads *fh, struct worker *w, struct fresh_slot *slots,
                      size_t max, void (*done)(struct fresh_heads *fh))
{
    *fh = (struct fresh_heads){.w = w, .done = done, .slots = slots, .cap = max};
}

void fresh_heads_add(struct fresh_heads *fh, struct gw_part *part)
{
    ASSERT(fh->n < fh->cap);
    fh->slots[fh->n++] = (struct fresh_slot){.fh = fh, .part = part};
}

/* What could not be found out leaves what is known; where the store is not sure of that, it says so
 * in the heads. */
static void on_fresh(void *arg, int err, const struct jc_heads *heads)
{
    struct fresh_slot *slot = arg;

    (void)err;
    slot->op = NULL;
    if (heads != NULL)
        gw_part_update(slot->part, heads);
    slot->fh->answered++;
    pump(slot->fh);
}

static void ask(struct fresh_heads *fh, struct fresh_slot *slot)
{
    struct jc_store *store = fh->w->shared->store;

    if (slot->part->empty || store->ops->fresh == NULL ||
        store->ops->fresh(store, slot->part->journal, &fh->w->mb.ex, on_fresh, slot, &slot->op) < 0)
        fh->answered++;
}

static void pump(struct fresh_heads *fh)
{
    if (fh->pumping)
        return;
    fh->pumping = true;
    while (fh->asked < fh->n && fh->asked - fh->answered < ASKED_MAX)
        ask(fh, &fh->slots[fh->asked++]);
    fh->pumping = false;
    if (fh->answered == fh->n)
        fh->done(fh);
}

void fresh_heads_start(struct fresh_heads *fh)
{
    pump(fh);
}

void fresh_heads_cancel(struct fresh_heads *fh)
{
    for (size_t i = 0; i < fh->n; i++) {
        if (fh->slots[i].op != NULL)
            fh->w->shared->store->ops->cancel(fh->slots[i].op);
        fh->slots[i].op = NULL;
    }
}
