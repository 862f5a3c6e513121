/*
 * Truncation signals: which record of a journal carries the headers of a backfill's begin and end
 * (docs/truncation.md). The records are fixed by the journal's content alone, so that every
 * consumer is told the same, and batches stay shared:
 *   first   the first visible record of the journal carries the boundary of the labels, and the
 *           complete marker's clock once that boundary's backfill is complete
 *   behind  the first visible record behind the highest begin marker carries its clock; the one
 *           behind the highest complete marker carries that one's
 * Markers inside a block are met while it is built; this is for those in earlier blocks.
 */
#pragma once

#include "gateway/view.h"

#define GW_HEADER_BEGIN    "sluice.backfill-begin"    /* 16 hex digits: a clock */
#define GW_HEADER_COMPLETE "sluice.backfill-complete" /* 16 hex digits: a clock */

/* Clocks to be told with the next visible record; 0: none. */
struct gw_lead {
    uint64_t begin;
    uint64_t complete;
};

static inline bool gw_lead_any(const struct gw_lead *l)
{
    return l->begin != 0 || l->complete != 0;
}

/* Takes in a marker that the next visible record stands behind. */
void gw_lead_take(struct gw_lead *l, const struct jc_doc_info *info);

/* All that decides about the headers of one block besides its own bytes: part of a cache key.
 * Zeroed: the topic has no signals. */
struct gw_signal {
    bool on;
    uint64_t truncated_at; /* of the topic's labels */
    uint64_t complete;     /* of the topic, when it completes truncated_at */
    struct jc_marks marks; /* of the journal, those that end before the block; others zeroed */
};

/* For a block of one of the topic's partitions, as its heads are now. */
void gw_signal_of(const struct gw_topic *t, struct gw_part *part, int64_t block,
                  struct gw_signal *out);
bool gw_signal_eq(const struct gw_signal *a, const struct gw_signal *b);

/* err 0: lead is what the block's first visible record has to tell. */
typedef void gw_lead_fn(void *arg, int err, const struct gw_lead *lead);

/* Asks the store's index, at a cost that does not depend on what lies between; reads at most the
 * blocks that hold the markers. done runs on ex, once. A negative return: it will not run. */
MUST_USE int gw_lead_find(struct jc_store *store, const struct jc_journal *j, int64_t block,
                          const struct gw_bound *bound, const struct gw_signal *signal,
                          struct executor *ex, gw_lead_fn *done, void *arg);
