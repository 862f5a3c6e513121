/*
 * The one clock of a process (design, section 6): each transaction takes one wall reading, after
 * any wait; everything that is stored derives from it. Within a transaction each document ticks the
 * u64 by one and the counter carries into the timestamp without a second reading; the next
 * transaction starts at max(reading, last + 1). A reading that no Gazette clock can hold falls back
 * to last + 1, never to 1970. Not thread-safe: owned by the store's committer.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct jc_txn_clock {
    const struct clock *source;
    uint64_t last;  /* the highest clock given out or observed */
    uint64_t reads; /* wall readings taken; tests assert exactly one a transaction */
};

void jc_txn_clock_init(struct jc_txn_clock *c, const struct clock *source, uint64_t last);
/* Starts a transaction: takes one reading and returns its first clock. */
uint64_t jc_txn_clock_begin(struct jc_txn_clock *c);
/* The next clock of the running transaction: last + 1. */
uint64_t jc_txn_clock_tick(struct jc_txn_clock *c);
/* Raises last, for clocks found in the store at start. */
void jc_txn_clock_observe(struct jc_txn_clock *c, uint64_t seen);
