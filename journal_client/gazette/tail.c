/*
 * The tail of a journal: one long Read that waits at the head. What it brings is probed, taken into
 * heads and index, and kept for a while (the ring), since all who follow will ask for it. The
 * stream ends whenever a broker, a token or a route ends; it is opened again at the next byte.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define RING_BYTES (512u << 10)
#define REFRESH_MS 30000

void gz_ring_drop(struct gz_journal *j)
{
    struct gz_tail_blob *b;

    while ((b = STAILQ_FIRST(&j->ring)) != NULL) {
        STAILQ_REMOVE_HEAD(&j->ring, link);
        blob_unref(b->bytes);
        mem_free(b);
    }
    j->ring_bytes = 0;
}

static void ring_add(struct gz_journal *j, int64_t at, struct blob *bytes)
{
    struct gz_tail_blob *b = mem_alloc(sizeof *b);

    if (b == NULL) { /* it is only a cache, but it must be without gaps */
        blob_unref(bytes);
        gz_ring_drop(j);
        return;
    }
    *b = (struct gz_tail_blob){.at = at, .bytes = bytes};
    STAILQ_INSERT_TAIL(&j->ring, b, link);
    j->ring_bytes += bytes->cap + sizeof *b;
    while (j->ring_bytes > RING_BYTES && STAILQ_NEXT(STAILQ_FIRST(&j->ring), link) != NULL) {
        b = STAILQ_FIRST(&j->ring);
        STAILQ_REMOVE_HEAD(&j->ring, link);
        j->ring_bytes -= b->bytes->cap + sizeof *b;
        blob_unref(b->bytes);
        mem_free(b);
    }
}

static int take(struct gz_journal *j, int64_t offset, struct span bytes)
{
    struct blob *whole;
    int err = gz_feed_add(&j->tail, &j->store->probe, offset, bytes, &whole);

    if (err == 0 && whole != NULL)
        ring_add(j, j->tail.run.end - (int64_t)whole->len, whole);
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
        return;
    }
    if (err == 0 && m.content.n > 0) {
        j->progress = true;
        err = take(j, m.offset, m.content);
    }
    if (err < 0) {
        log_peer(LOG_ERROR, "gazette.tail", LF_STR("journal", j->name), LF_ERR(err));
        gz_call_cancel(j->call);
        j->call = NULL;
        gz_arm(j->timer, 1000);
        return;
    }
    gz_journal_publish(j);
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_journal *j = arg;

    j->call = NULL;
    if (j->progress)
        j->attempt = 0;
    if (j->attempt >= 2 && (end->err < 0 || j->status != GZ_OK))
        log_peer(LOG_WARN, "gazette.tail_waits", LF_STR("journal", j->name),
                 LF_STR("status", gz_status_text(j->status)), LF_STR("message", end->message),
                 LF_ERR(end->err));
    gz_arm(j->timer, j->progress && end->err == 0 ? 1 : gz_backoff_ms(j->attempt++));
    gz_settle_start(j, true); /* another broker may know less */
}

void gz_tail_start(struct gz_journal *j)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = j};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    rq.journal = j->name;
    rq.offset = j->tail.pos;
    rq.block = 1;
    rq.min_etcd_revision = j->mod_revision;
    j->status = GZ_OK;
    j->progress = false;
    if ((err = gz_rpc(j->store, j->endpoint, "Read", &rq.base, 0, &cb, &j->call)) < 0) {
        log_peer(LOG_WARN, "gazette.tail_waits", LF_STR("journal", j->name), LF_ERR(err));
        gz_arm(j->timer, gz_backoff_ms(j->attempt++));
    }
}

void gz_tail_stop(struct gz_journal *j)
{
    if (j->call != NULL)
        gz_call_cancel(j->call);
    j->call = NULL;
}

void gz_search_done(struct gz_journal *j)
{
    j->state = GZ_J_TAIL;
    j->attempt = 0;
    gz_tail_start(j);
    gz_journal_publish(j);
}
