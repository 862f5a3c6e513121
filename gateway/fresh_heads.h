/*
 * Asks the store for the heads of partitions as they are now, before an answer says where they
 * begin or end, where the store's followers may be late (jc_store_ops.fresh; design O5, O8). Runs
 * on the worker's thread.
 */
#pragma once

#include "gateway/part.h"
#include "gateway/worker.h"

struct fresh_slot;

/* Owner: who asks, until done was called or fresh_heads_cancel. */
struct fresh_heads {
    /* by who asks */
    struct worker *w;
    /* All parts know what could be found out; at most a few seconds after the start, possibly
     * within it. */
    void (*done)(struct fresh_heads *fh);
    /* private */
    struct fresh_slot *slots; /* who asks gives the memory */
    size_t n, cap;
    size_t asked, answered;
    bool pumping;
};

struct fresh_slot {
    struct fresh_heads *fh;
    struct gw_part *part; /* kept alive by who asks */
    struct jc_op *op;
};

/* True: the store may know more than it has told of. */
bool fresh_heads_lag(const struct worker *w);
/* slots: memory for max parts, of who asks. */
void fresh_heads_init(struct fresh_heads *fh, struct worker *w, struct fresh_slot *slots,
                      size_t max, void (*done)(struct fresh_heads *fh));
/* At most max times. */
void fresh_heads_add(struct fresh_heads *fh, struct gw_part *part);
void fresh_heads_start(struct fresh_heads *fh);
/* done is not called any more. */
void fresh_heads_cancel(struct fresh_heads *fh);
