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
    if (jc_clock_from_unix_ns(clock_wall_ns(c->source), &now) < 0 || now <= c->last)
        return jc_txn_clock_tick(c);
    c->last = now;
    return now;
}

void jc_txn_clock_observe(struct jc_txn_clock *c, uint64_t seen)
{
    if (seen > c->last)
        c->last = seen;
}
