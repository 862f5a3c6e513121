/* See time_look.h. On the thread of l->ex, except where a function says otherwise. */
#include "gateway/time_look.h"

#include "base/mem.h"
#include "gateway/block_build.h"
#include "journal_client/uuid.h"

/* Owner: the pool job until it posts itself back, then ex's thread. Outlives a look-up that is
 * cancelled meanwhile: owner is NULL then. */
struct block_look {
    struct task task;        /* first member */
    struct time_look *owner; /* ex's thread */
    struct executor *ex;
    struct jc_block block; /* owned */
    struct gw_time_look look;
    int err;
    int64_t offset;
    int64_t timestamp;
};

static void step(struct time_look *l);

/* --- the block that the index named --- */

/* The index names the block with the largest clock. Where that clock lies above the bound, another
 * block may hold a larger one below it: then all blocks that may are looked into, once. Where it
 * may be one behind the end, which is in the last block alone, the index is asked for the blocks
 * before that: nobody is told of an offset that Fetch would still call out of range. */
static void largest_found(struct time_look *l, bool found, int64_t offset, int64_t timestamp,
                          int64_t next, bool beyond_end)
{
    if (found && (!l->found || timestamp > l->best_ms ||
                  (timestamp == l->best_ms && offset < l->best_offset))) {
        l->found = true;
        l->best_ms = timestamp;
        l->best_offset = offset;
    }
    if (l->t->bound.max_clock == UINT64_MAX) {
        if (beyond_end && l->seek_end == l->end) {
            l->seek_end = next - JC_BLOCK_BYTES;
            step(l);
        } else {
            l->done(l, l->found ? 0 : E_NOTFOUND, l->best_offset, l->best_ms);
        }
        return;
    }
    l->from = l->sweep ? next : l->start;
    l->sweep = true;
    step(l);
}

/* Back on ex's thread. */
static void look_back(struct task *t)
{
    struct block_look *bl = (struct block_look *)t; /* first member */
    struct time_look *l = bl->owner;
    int64_t offset = bl->offset, timestamp = bl->timestamp;
    int64_t next = (bl->block.block + 1) * JC_BLOCK_BYTES;
    bool beyond_end = bl->block.read_to > bl->look.end;
    int err = bl->err;

    jc_block_fini(&bl->block);
    mem_free(bl);
    if (l == NULL)
        return;
    l->look = NULL;
    if (l->largest && (err == 0 || err == E_NOTFOUND)) {
        largest_found(l, err == 0, offset, timestamp, next, beyond_end);
    } else if (err == E_NOTFOUND && next < l->end) {
        l->from = next;
        step(l);
    } else {
        l->done(l, err, offset, timestamp);
    }
}

/* A thread of the load pool. */
static void look_run(struct task *t)
{
    struct block_look *bl = (struct block_look *)t; /* first member */

    bl->err = gw_block_look_time(&bl->look, &bl->block, &bl->offset, &bl->timestamp);
    bl->task.run = look_back;
    executor_post(bl->ex, &bl->task);
}

static void on_block(void *arg, int err, struct jc_block *block)
{
    struct time_look *l = arg;
    struct block_look *bl;

    l->op = NULL;
    if (err < 0) {
        l->done(l, err, -1, -1);
        return;
    }
    if ((bl = mem_zalloc(sizeof *bl)) == NULL) {
        jc_block_fini(block);
        l->done(l, E_NOMEM, -1, -1);
        return;
    }
    bl->task.run = look_run;
    bl->owner = l;
    bl->ex = l->ex;
    bl->block = *block;
    bl->look = (struct gw_time_look){.bound = l->t->bound,
                                     .from = l->from,
                                     .end = l->end,
                                     .min_ms = l->min_ms,
                                     .largest = l->largest};
    l->look = bl;
    executor_post(l->loads, &bl->task);
}

/* --- the index --- */

static void on_seek(void *arg, int err, int64_t block)
{
    struct time_look *l = arg;
    struct jc_store *store = l->store;
    /* What lies in front of a damage is found, as Fetch serves it. */
    const struct jc_block_req rq = {
        .journal = l->part->journal, .block = block, .from = l->from, .partial = true};

    l->op = NULL;
    if (err == 0)
        err = store->ops->read_block(store, &rq, l->ex, on_block, l, &l->op);
    if (err == E_NOTFOUND && l->found)
        l->done(l, 0, l->best_offset, l->best_ms); /* the sweep is over */
    else if (err < 0)
        l->done(l, err, -1, -1);
}

static void step(struct time_look *l)
{
    struct jc_store *store = l->store;
    int64_t min_ms = l->largest ? l->best_ms : l->min_ms;
    bool any = l->largest && (!l->found || l->best_ms < 0);
    uint64_t min_clock = any ? 0 : jc_clock_from_unix_ms(min_ms);
    struct jc_seek_req rq = {.journal = l->part->journal,
                             .offset = l->from,
                             .end_offset = l->seek_end,
                             .min_clock = min_clock > l->t->bound.min_clock ? min_clock
                                                                            : l->t->bound.min_clock,
                             .max_clock = l->t->bound.max_clock,
                             .mode = l->largest && !l->sweep ? JC_SEEK_MAX : JC_SEEK_FIRST};

    if (rq.min_clock > rq.max_clock || l->from >= l->seek_end) {
        l->done(l, l->found ? 0 : E_NOTFOUND, l->best_offset, l->best_ms);
        return;
    }
    int err = store->ops->seek(store, &rq, l->ex, on_seek, l, &l->op);
    if (err < 0)
        l->done(l, err, -1, -1);
}

/* --- */

void time_look_init(struct time_look *l, const struct gw_topic *t, struct gw_part *part,
                    const struct fetch_ends *ends, int64_t min_ms)
{
    *l = (struct time_look){.t = t,
                            .part = part,
                            .min_ms = min_ms,
                            .from = ends->log_start,
                            .start = ends->log_start,
                            .end = ends->end,
                            .seek_end = ends->end};
}

void time_look_start(struct time_look *l)
{
    step(l);
}

void time_look_cancel(struct time_look *l)
{
    if (l->op != NULL)
        l->store->ops->cancel(l->op);
    if (l->look != NULL)
        l->look->owner = NULL; /* read by look_back alone, on this thread */
    l->op = NULL;
    l->look = NULL;
}
