/*
 * A part of which it is open whether it landed. The primary is asked where the journal ends
 * (append_head.c), what lies at the part's offset is read back and compared, and only then is the
 * part sent again, at the same offset, so that one of the two lands at most. See append.h.
 */
#include "base/log.h"
#include "journal_client/gazette/append.h"

static void on_back(struct gz_range *r, int err)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)r - offsetof(struct gz_txn, range));
    const struct jc_append_part *p = gz_part_of(t);

    if (err == 0 && r->bytes != NULL)
        t->same = t->same && r->at == p->begin + (int64_t)t->compared &&
                  memcmp(r->bytes->data, p->bytes->data + t->compared, r->bytes->len) == 0;
    else
        t->same = false;
    t->compared += r->bytes == NULL ? 0 : r->bytes->len;
    blob_unref(r->bytes);
    if (t->ended) {
        gz_txn_answer(t, t->err);
    } else if (err < 0) {
        gz_part_again(t, err);
    } else if (!t->same) { /* somebody else's */
        gz_part_moved(t);
    } else if (t->compared == p->bytes->len) {
        log_event(LOG_INFO, "gazette.append_landed", LF_STR("journal", gz_part_journal(t)->name),
                  LF_INT("begin", p->begin));
        gz_part_landed(t, p->begin);
    } else {
        r->begin = p->begin + (int64_t)t->compared;
        r->bytes = NULL;
        gz_range_start(r);
    }
}

static void read_back(struct gz_txn *t)
{
    const struct jc_append_part *p = gz_part_of(t);

    t->compared = 0;
    t->same = true;
    t->range = (struct gz_range){.j = gz_part_journal(t),
                                 .begin = p->begin,
                                 .end = p->end,
                                 .max = GZ_PIECE,
                                 .no_direct = true,
                                 .done = on_back};
    gz_range_start(&t->range);
}

static void resolve(struct gz_txn *t, int64_t head, enum gz_head_by by)
{
    const struct jc_append_part *p = gz_part_of(t);

    if (by == GZ_HEAD_LISTED) { /* nobody appends before that is set */
        t->reset = true;
        gz_txn_step(t);
        return;
    }
    if (head >= p->begin)
        t->below_ms = 0;
    switch (gz_append_doubt(head, p->begin, p->end)) {
    case GZ_D_COMPARE:
        read_back(t);
        break;
    case GZ_D_SEND_AGAIN:
        t->doubt = false;
        gz_part_send(t);
        break;
    case GZ_D_GONE:
        gz_part_moved(t);
        break;
    case GZ_D_BELOW:
        if (gz_head_below(t, by))
            gz_part_moved(t);
        else
            gz_part_again(t, E_AGAIN);
        break;
    }
}

void gz_part_settle(struct gz_txn *t)
{
    gz_head_ask(t, gz_part_journal(t), resolve);
}
