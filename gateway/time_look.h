/*
 * Look-up of a time in a partition (O10): the first document with a timestamp of at least that, or
 * the first of those with the largest timestamp. Two steps: the store's index names the lowest
 * block that may hold a matching document, then that block is read and searched document by
 * document on the load pool; where the index was too coarse, the search goes on behind the block.
 * Runs on the thread of `ex`.
 */
#pragma once

#include "base/jobpool.h"
#include "gateway/fetch_int.h"

struct block_look;

/* Owner: who asks, until done was called or time_look_cancel; ex's thread. */
struct time_look {
    /* by who asks */
    struct jc_store *store;   /* borrowed */
    struct executor *loads;   /* of the pool that searches blocks */
    struct executor *ex;      /* of the thread that asks */
    const struct gw_topic *t; /* of a view that who asks holds on to, as is part */
    struct gw_part *part;
    int64_t min_ms;
    bool largest;
    /* The end, possibly within the start. 0; E_NOTFOUND: no document matches, offset is -1; or the
     * store's error. */
    void (*done)(struct time_look *l, int err, int64_t offset, int64_t timestamp);
    /* private */
    int64_t from; /* documents below were looked at */
    int64_t end;  /* the reader's end when the look-up began */
    /* of the largest time: what was found, and whether all blocks that may hold more are tried */
    bool found;
    bool sweep;
    int64_t start;
    int64_t seek_end; /* the index is asked for documents below */
    int64_t best_offset;
    int64_t best_ms;
    struct jc_op *op;        /* seek or read; at most one of these two */
    struct block_look *look; /* search on the pool */
};

/* Sets *l up for the documents between ends->log_start and ends->end; store, loads, ex, done and
 * largest are for the caller to fill in. */
void time_look_init(struct time_look *l, const struct gw_topic *t, struct gw_part *part,
                    const struct fetch_ends *ends, int64_t min_ms);
void time_look_start(struct time_look *l);
/* done is not called any more. A look-up that has ended may be cancelled, too. */
void time_look_cancel(struct time_look *l);
