/*
 * The tail of a journal: one long Read that waits at the head, or, of one that sleeps (idle.c),
 * a short one now and then. What it brings is probed, taken into
 * heads and index, and kept for a while (the ring), since all who follow will ask for it. The
 * stream ends whenever a broker, a token or a route ends; it is opened again at the next byte.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define LASTED_MS                                                                                  \
    10000 /* a stream that held for so long was a good one, though it brought nothing */

static int take(struct gz_journal *j, int64_t offset, struct span bytes)
{
    struct blob *whole;
    int err = gz_feed_add(&j->tail, &j->store->probe, offset, bytes, &whole);

    if (err == 0 && whole != NULL)
        gz_ring_add(j, j->tail.run.end - (int64_t)whole->len, whole);
    return err;
}

void gz_journal_take(struct gz_journal *j, int64_t offset, struct span bytes)
{
    int64_t end = offset + (int64_t)bytes.n;

    if (end > j->min_head)
        j->min_head = end;
    /* Bytes of others between are still to come from the tail. */
    if (!j->tail_set || j->state != GZ_J_TAIL || offset > j->tail.pos)
        return;
    if (take(j, offset, bytes) < 0)
        return; /* the tail brings it again */
    gz_journal_publish(j);
}

static void on_message(void *arg, struct span msg)
{
    struct gz_journal *j = arg;
    struct gz_read_msg m;
    int err = gz_read_parse(msg, &m);

    if (err == 0)
        gz_route_take_header(j, m.header);
    if (err == 0 && m.status != GZ_OK) {
        j->status = m.status;
        j->said_head = m.write_head;
        return;
    }
    if (err == 0 && m.content.n > 0) {
        int64_t pos = j->tail.pos;
        err = take(j, m.offset, m.content);
        if (j->tail.pos > pos) /* and not the same once more */
            j->progress = true;
    }
    if (err < 0) {
        log_peer(LOG_ERROR, "gazette.tail", LF_STR("journal", j->name), LF_ERR(err));
        gz_tail_stop(j);
        gz_arm(j->timer, 1000);
        return;
    }
    gz_journal_publish(j);
}

/* A short read came to the head: what is known is fresh. */
static void short_end(struct gz_journal *j)
{
    j->attempt = 0;
    if (j->said_head < j->tail.pos)
        gz_settle_start(j, true); /* a broker that knows less */
    gz_fresh(j);
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_journal *j = arg;
    bool was_short = j->call_short;

    j->call = NULL;
    gz_count_tail(-1);
    if (j->progress || gz_mono_ms(j->store) - j->call_ms > LASTED_MS)
        j->attempt = 0;
    if (was_short && end->err == 0 && j->status == GZ_NOT_YET_AVAILABLE) {
        short_end(j);
        return;
    }
    if (j->attempt >= 2 && (end->err < 0 || j->status != GZ_OK))
        log_peer(LOG_WARN, "gazette.tail_waits", LF_STR("journal", j->name),
                 LF_STR("status", gz_status_text(j->status)), LF_STR("message", end->message),
                 LF_ERR(end->err));
    gz_fresh_failed(j);
    gz_arm(j->timer, j->progress && end->err == 0 ? 1 : gz_backoff_ms(j->attempt++));
    gz_settle_start(j, true);        /* another broker may know less */
    if (was_short && j->attempt > 2) /* what is stored may be had all the same */
        gz_ops_ready(&j->starting, 0);
}

void gz_tail_start(struct gz_journal *j)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = j};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    j->call_short = j->asleep || gz_stale(j);
    if (j->call_short)
        gz_fresh_begins(j);
    rq.journal = j->name;
    rq.offset = j->tail.pos;
    rq.block = !j->call_short;
    rq.min_etcd_revision = j->mod_revision;
    j->status = GZ_OK;
    j->said_head = j->tail.pos;
    j->progress = false;
    j->call_ms = gz_mono_ms(j->store);
    if ((err = gz_rpc(j->store, j->endpoint, "Read", &rq.base, j->call_short ? GZ_RPC_MS : 0, &cb,
                      &j->call)) < 0) {
        log_peer(LOG_WARN, "gazette.tail_waits", LF_STR("journal", j->name), LF_ERR(err));
        gz_fresh_failed(j);
        gz_arm(j->timer, gz_backoff_ms(j->attempt++));
    } else {
        gz_count_tail(1);
    }
}

void gz_tail_stop(struct gz_journal *j)
{
    if (j->call != NULL) {
        gz_call_cancel(j->call);
        if (j->state == GZ_J_TAIL)
            gz_count_tail(-1);
    }
    j->call = NULL;
}

void gz_tail_skip(struct gz_journal *j, int64_t to)
{
    if (j->state != GZ_J_TAIL || !j->tail_set || j->tail.pos >= to)
        return;
    log_event(LOG_WARN, "gazette.tail_skips", LF_STR("journal", j->name),
              LF_INT("from", j->tail.pos), LF_INT("to", to));
    gz_tail_stop(j);
    gz_fresh_failed(j);
    gz_ring_drop(j);
    gz_feed_fini(&j->tail);
    gz_feed_init(&j->tail, to, true);
    gz_arm(j->timer, 1);
}

void gz_search_done(struct gz_journal *j)
{
    j->state = GZ_J_TAIL;
    j->attempt = 0;
    j->used_ms = gz_mono_ms(j->store);
    gz_tail_start(j);
    gz_journal_publish(j);
}
