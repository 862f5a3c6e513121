/* Stream reads (journal_client/stream.c) from a cluster: one range a step. */
#include "journal_client/gazette/gazette_int.h"

static void on_range(struct gz_range *r, int err)
{
    struct gz_read *o = (struct gz_read *)(void *)((char *)r - offsetof(struct gz_read, range));

    jc_read_got(&o->read, err, r->at, r->bytes, r->end);
}

void gz_read_fetch(struct jc_read *r, int64_t stop)
{
    struct gz_read *o = (struct gz_read *)r;

    o->range = (struct gz_range){.j = gz_op_journal(&r->op),
                                 .begin = r->pos,
                                 .end = stop,
                                 .max = r->chunk,
                                 .done = on_range};
    gz_range_start(&o->range);
}
