/*
 * Where a journal ends, for appends. The primary is asked (barrier.h): a Read at the head is
 * answered by any replica, which may know less, and says 0 where retention removed all fragments.
 * See append.h.
 */
#include "journal_client/gazette/append.h"

#define BELOW_MS 1000 /* a head below a part is believed when it is told for so long */

bool gz_head_below(struct gz_txn *t, enum gz_head_by by)
{
    int64_t now = gz_mono_ms(t->s);

    if (by != GZ_HEAD_PRIMARY)
        return false;
    if (t->below_ms == 0)
        t->below_ms = now;
    return now - t->below_ms >= BELOW_MS;
}

static void answer(struct gz_txn *t, int64_t head, enum gz_head_by by)
{
    t->on_head(t, head, by);
}

/* --- what brokers list; status 12 --- */

static void on_read_message(void *arg, struct span msg)
{
    struct gz_txn *t = arg;
    struct gz_read_msg m;

    if (gz_read_parse(msg, &m) < 0)
        return;
    t->status = m.status;
    t->barrier.head = m.write_head;
}

static void on_read_end(void *arg, const struct gz_end *end)
{
    struct gz_txn *t = arg;
    const struct gz_journal *j = t->head_of;

    t->call = NULL;
    gz_part_hear(t, end);
    if (end->err == 0 && t->status == GZ_NOT_YET_AVAILABLE && t->barrier.head >= 0)
        answer(t, t->barrier.head, GZ_HEAD_LISTED);
    else if (end->err == 0 && t->status == GZ_SUSPENDED && j->suspend_level != 0)
        answer(t, j->suspend_offset, GZ_HEAD_SPEC);
    else
        gz_part_again(t, end->err);
}

void gz_head_listed(struct gz_txn *t, struct gz_journal *j, gz_head_fn *done)
{
    const struct gz_call_cb cb = {.on_message = on_read_message, .on_end = on_read_end, .arg = t};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    t->on_head = done;
    t->head_of = j;
    rq.journal = j->name;
    rq.offset = -1;
    rq.min_etcd_revision = j->mod_revision;
    t->status = -1;
    t->barrier.head = -1;
    if ((err = gz_rpc(t->s, j->primary, "Read", &rq.base, GZ_RPC_MS, &cb, &t->call)) < 0)
        gz_part_again(t, err);
}

/* --- the primary's word --- */

static void on_message(void *arg, struct span msg)
{
    struct gz_txn *t = arg;

    gz_barrier_take(&t->barrier, msg);
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_txn *t = arg;
    struct gz_journal *j = t->head_of;
    bool denied = end->err == E_DENIED || (end->err == 0 && t->barrier.status == GZ_NOT_ALLOWED);

    t->call = NULL;
    t->status = t->barrier.status;
    gz_part_hear(t, end);
    if (end->err == 0 && t->status == GZ_OK) {
        answer(t, t->barrier.head, GZ_HEAD_PRIMARY);
    } else if (end->err == 0 && t->status == GZ_SUSPENDED && j->suspend_level != 0) {
        answer(t, j->suspend_offset, GZ_HEAD_SPEC); /* the append resumes it */
    } else if (end->err == 0 && t->status == GZ_INDEX_GREATER) {
        gz_head_listed(t, j, t->on_head);
    } else if (denied && (t->denied || t->s->auth_key == NULL)) {
        gz_txn_finish(t, E_DENIED);
    } else {
        t->denied = t->denied || denied; /* once more, with a new token */
        gz_part_again(t, end->err);
    }
}

void gz_head_ask(struct gz_txn *t, struct gz_journal *j, gz_head_fn *done)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = t};
    int err;

    t->on_head = done;
    t->head_of = j;
    t->barrier = (struct gz_barrier){.status = -1};
    if ((err = gz_barrier_call(j, j->primary, &cb, &t->call)) < 0)
        gz_part_again(t, err);
}
