/*
 * One wall reading a transaction, never going back. The counter's carry into the timestamp needs no
 * code: a clock is one u64 and the counter its lowest bits, so a tick is + 1.
 */
#include "journal_client/txn_clock.h"

#include "journal_client/uuid.h"

void jc_txn_clock_init(struct jc_txn_clock *c, const struct clock *source, uint64_t last)
{
    *c = (struct jc_txn_clock){.source = source, .last = last};
}

uint64_t jc_txn_clock_tick(struct jc_txn_clock *c)
{
    if (c->last < UINT64_MAX)
        c->last++;
    return c->last;
}

uint64_t jc_txn_clock_begin(struct jc_txn_clock *c)
{
    uint64_t now;

    c->reads++;
    if (jc_clock_from_unix_ns(clock_wall_ns(c->source), &now) < 0)
        now = 0;
    c->reading = now;
    if (now <= c->last)
        return jc_txn_clock_tick(c);
    c->last = now;
    return now;
}

uint64_t jc_txn_clock_pass(struct jc_txn_clock *c, uint64_t floor)
{
    uint64_t from = c->reading != 0 ? c->reading : c->last;

    if (floor < c->last || floor - from > JC_CLOCK_AHEAD)
        return c->last;
    c->last = floor;
    return jc_txn_clock_tick(c);
}

void jc_txn_clock_observe(struct jc_txn_clock *c, uint64_t seen)
{
    if (seen > c->last)
        c->last = seen;
}
