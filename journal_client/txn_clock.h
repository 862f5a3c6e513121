/*
 * The one clock of a process (design, section 6): each transaction takes one wall reading, after
 * any wait; everything that is stored derives from it. Within a transaction each document ticks the
 * u64 by one and the counter carries into the timestamp without a second reading; the next
 * transaction starts at max(reading, last + 1). A reading that no Gazette clock can hold falls back
 * to last + 1, never to 1970. Not thread-safe: owned by the store's committer.
 *
 * Clocks of other hands (a label, a document that was not stamped here) may lie ahead of ours. What
 * must come after one of them passes it with jc_txn_clock_pass, which takes no reading; nothing
 * passes a clock that lies more than JC_CLOCK_AHEAD ahead of the reading, or one bad value would
 * take the whole process there for good.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

#define JC_CLOCK_AHEAD (UINT64_C(3600) * 10000000 * 16) /* an hour, in steps of a clock */

struct jc_txn_clock {
    const struct clock *source;
    uint64_t last;    /* the highest clock given out or observed */
    uint64_t reading; /* the running transaction's; 0: out of range */
    uint64_t reads;   /* wall readings taken; tests assert exactly one a transaction */
};

void jc_txn_clock_init(struct jc_txn_clock *c, const struct clock *source, uint64_t last);
/* Starts a transaction: takes one reading and returns its first clock. */
uint64_t jc_txn_clock_begin(struct jc_txn_clock *c);
/* The next clock of the running transaction: last + 1. */
uint64_t jc_txn_clock_tick(struct jc_txn_clock *c);
/* In a running transaction whose newest clock is last: the newest one if it lies above floor, else
 * floor + 1; unchanged (at or below floor) when floor is too far ahead of the reading: compare. */
uint64_t jc_txn_clock_pass(struct jc_txn_clock *c, uint64_t floor);
/* Raises last, for clocks found in the store at start. */
void jc_txn_clock_observe(struct jc_txn_clock *c, uint64_t seen);
