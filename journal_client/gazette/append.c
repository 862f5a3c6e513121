/*
 * Transactions, one after the other, in the order in which they were given:
 *
 *   the key of `unless_kv` free? -> the head of each journal -> prepare -> each part by one append
 * at just that head -> the key-values
 *
 * The offset of an append makes it exactly once: after a failure that leaves open whether it
 * landed, what lies at its offset is read back and compared. Writers of other processes move the
 * head; as long as nothing of the transaction is written, it is prepared anew, behind them; later
 * parts follow the head as they stand. The parts of several journals are not atomic: a failure
 * between them is told, and logged.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define CHUNK_BYTES (256u << 10)
#define WAIT_MS     30000 /* a part that found no broker for so long fails */
#define APPEND_MS   60000

struct gz_txn {
    STAILQ_ENTRY(gz_txn) link;
    struct task task; /* toward home, then back */
    struct gz_store *s;
    struct jc_txn *txn;
    struct executor *ex;
    jc_txn_fn *done;
    void *arg;
    int err;
    /* home */
    size_t asked; /* the part whose head is asked for */
    size_t at;    /* the part under way; parts_n: all are written */
    bool prepared;
    bool doubt;  /* the running part may have landed */
    bool resets; /* the running call resets the head */
    unsigned attempt;
    int64_t since_ms;
    struct event *timer;
    struct gz_call *call;
    int status;
    int64_t commit_begin, commit_end, head;
    size_t sent;
    bool begun;            /* the first message is sent */
    bool closed;           /* so is the last */
    struct gz_range range; /* reading back */
    size_t compared;
    bool same, ended;
};

static void step(struct gz_txn *t);

/* --- its end --- */

static void run_done(struct task *task)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)task - offsetof(struct gz_txn, task));

    t->done(t->arg, t->err, t->txn);
    gz_store_unref(t->s);
    mem_free(t);
}

static void answer(struct gz_txn *t, int err)
{
    if (t->timer != NULL)
        event_free(t->timer);
    t->timer = NULL;
    t->err = err;
    t->task.run = run_done;
    executor_post(t->ex, &t->task);
}

static void finish(struct gz_txn *t, int err)
{
    struct gz_store *s = t->s;

    if (err < 0 && t->at > 0 && t->at < t->txn->parts_n)
        log_event(LOG_ERROR, "gazette.txn_torn", LF_UINT("parts", t->txn->parts_n),
                  LF_UINT("written", t->at), LF_ERR(err));
    s->txn = NULL;
    answer(t, err);
    gz_append_next(s);
}

/* --- one part --- */

static struct jc_append_part *part_of(const struct gz_txn *t)
{
    return &t->txn->parts[t->at];
}

static struct gz_journal *journal_of(const struct gz_txn *t)
{
    return gz_of(part_of(t)->journal);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    step(arg);
}

static void again(struct gz_txn *t, int err)
{
    if (gz_mono_ms(t->s) - t->since_ms > WAIT_MS) {
        log_event(LOG_ERROR, "gazette.append_failed", LF_STR("journal", journal_of(t)->name),
                  LF_STR("status", gz_status_text(t->status)), LF_ERR(err));
        finish(t, err < 0 && err != E_AGAIN ? err : E_IO);
        return;
    }
    if (t->timer == NULL && (t->timer = evtimer_new(t->s->evb, on_timer, t)) == NULL) {
        finish(t, E_NOMEM);
        return;
    }
    gz_arm(t->timer, gz_backoff_ms(t->attempt++));
}

static void landed(struct gz_txn *t, int64_t begin)
{
    struct jc_append_part *p = part_of(t);
    struct gz_journal *j = journal_of(t);

    if (begin != p->begin)
        log_event(LOG_WARN, "gazette.append_moved", LF_STR("journal", j->name),
                  LF_INT("expected", p->begin), LF_INT("begin", begin));
    p->begin = begin;
    p->end = begin + (int64_t)p->bytes->len;
    j->append_head = p->end;
    gz_journal_take(j, p->begin, blob_span(p->bytes));
    t->doubt = false;
    t->attempt = 0;
    t->since_ms = gz_mono_ms(t->s);
    t->at++;
    step(t);
}

/* The head is not where it was thought to be. */
static void moved(struct gz_txn *t)
{
    journal_of(t)->append_head = -1;
    if (t->at == 0)
        t->prepared = false; /* nothing is written: prepare again, at the new offsets */
    step(t);
}

static void on_response(void *arg, struct span msg)
{
    struct gz_txn *t = arg;
    Gz__AppendResponse *m = gz__append_response__unpack(NULL, msg.n, msg.p);

    if (m == NULL)
        return;
    t->status = m->status;
    if (m->commit != NULL) {
        t->commit_begin = m->commit->begin;
        t->commit_end = m->commit->end;
    }
    if (m->store_health_error != NULL && m->store_health_error[0] != '\0')
        log_peer(LOG_WARN, "gazette.store_unhealthy", LF_STR("journal", journal_of(t)->name),
                 LF_STR("message", m->store_health_error));
    gz__append_response__free_unpacked(m, NULL);
}

/* Content goes out as the connection takes it: a chunk a message, then an empty one. */
static void on_drained(void *arg)
{
    struct gz_txn *t = arg;
    struct span body = blob_span(part_of(t)->bytes), chunk;
    uint8_t head[8];
    size_t n = 0;

    if (!t->begun || t->closed) /* the first message comes first */
        return;
    if (t->resets || t->sent == body.n) {
        t->closed = true;
        if (gz_call_send(t->call, span_of(NULL, 0), span_of(NULL, 0)) == 0)
            gz_call_finish(t->call);
        return; /* without memory the call's deadline ends it */
    }
    chunk =
        span_of(body.p + t->sent, body.n - t->sent < CHUNK_BYTES ? body.n - t->sent : CHUNK_BYTES);
    head[n++] = 4 << 3 | 2; /* content */
    for (size_t left = chunk.n; n == 1 || left > 0; left >>= 7)
        head[n++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    if (gz_call_send(t->call, span_of(head, n), chunk) == 0)
        t->sent += chunk.n;
}

static void on_reset_end(struct gz_txn *t, const struct gz_end *end)
{
    t->resets = false;
    log_event(LOG_WARN, "gazette.head_reset", LF_STR("journal", journal_of(t)->name),
              LF_INT("head", t->head), LF_STR("status", gz_status_text(t->status)));
    if (end->err < 0 || t->status != GZ_OK)
        again(t, end->err);
    else
        moved(t);
}

static void on_append_end(void *arg, const struct gz_end *end)
{
    struct gz_txn *t = arg;
    const struct jc_append_part *p = part_of(t);

    t->call = NULL;
    if (t->resets) {
        on_reset_end(t, end);
        return;
    }
    if (end->err < 0 && end->err != E_AGAIN && end->err != E_TIMEOUT && end->err != E_SYNTAX) {
        finish(t, end->err);
        return;
    }
    if (end->err < 0 || t->status < 0) {
        if (end->message[0] != '\0')
            log_peer(LOG_WARN, "gazette.append", LF_STR("journal", journal_of(t)->name),
                     LF_STR("message", end->message), LF_ERR(end->err));
        t->doubt = true;
        again(t, end->err);
        return;
    }
    if (t->status == GZ_OK && t->commit_end - t->commit_begin == (int64_t)p->bytes->len)
        landed(t, t->commit_begin);
    else if (t->status == GZ_WRONG_OFFSET)
        moved(t);
    else if (t->status == GZ_NOT_ALLOWED)
        finish(t, E_DENIED);
    else if (t->status == GZ_JOURNAL_NOT_FOUND && journal_of(t)->hub.deleted)
        finish(t, E_NOTFOUND);
    else
        again(t, E_AGAIN); /* 12 as well: its head is reset first */
}

/* offset: where it must be appended; 0 cannot be said, and means anywhere. */
static void call_append(struct gz_txn *t, int64_t offset)
{
    const struct gz_call_cb cb = {
        .on_message = on_response, .on_drained = on_drained, .on_end = on_append_end, .arg = t};
    struct gz_journal *j = journal_of(t);
    Gz__AppendRequest rq;
    gz__append_request__init(&rq);
    struct blob *b;
    int err = E_NOMEM;

    rq.journal = j->name;
    rq.offset = offset;
    rq.min_etcd_revision = j->mod_revision;
    t->status = -1;
    t->sent = 0;
    t->begun = t->closed = false;
    t->commit_begin = t->commit_end = 0;
    if ((b = gz_pack(&rq.base)) != NULL &&
        (err = gz_pool_call(t->s->pool, j->endpoint, "Append", APPEND_MS, &cb, &t->call)) == 0) {
        t->begun = true;
        if ((err = gz_call_send(t->call, blob_span(b), span_of(NULL, 0))) < 0) {
            gz_call_cancel(t->call);
            t->call = NULL;
        }
    }
    blob_unref(b);
    if (err < 0) {
        t->resets = false;
        again(t, err);
    }
}

/* --- what lies there? --- */

static void on_back(struct gz_range *r, int err)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)r - offsetof(struct gz_txn, range));
    const struct jc_append_part *p = part_of(t);

    if (err == 0 && r->bytes != NULL)
        t->same = t->same && r->at == r->begin &&
                  memcmp(r->bytes->data, p->bytes->data + t->compared, r->bytes->len) == 0;
    else
        t->same = false;
    t->compared += r->bytes == NULL ? 0 : r->bytes->len;
    blob_unref(r->bytes);
    if (t->ended) {
        answer(t, t->err);
    } else if (err < 0) {
        again(t, err);
    } else if (!t->same) { /* somebody else's */
        t->doubt = false;
        moved(t);
    } else if (t->compared == p->bytes->len) {
        log_event(LOG_INFO, "gazette.append_landed", LF_STR("journal", journal_of(t)->name),
                  LF_INT("begin", p->begin));
        landed(t, p->begin);
    } else {
        r->begin = p->begin + (int64_t)t->compared;
        r->bytes = NULL;
        gz_range_start(r);
    }
}

static void read_back(struct gz_txn *t)
{
    const struct jc_append_part *p = part_of(t);

    t->compared = 0;
    t->same = true;
    t->range = (struct gz_range){.j = journal_of(t),
                                 .begin = p->begin,
                                 .end = p->end,
                                 .max = GZ_PIECE,
                                 .no_direct = true,
                                 .done = on_back};
    gz_range_start(&t->range);
}

/* --- heads --- */

static void on_head_message(void *arg, struct span msg)
{
    struct gz_txn *t = arg;
    struct gz_read_msg m;

    if (gz_read_parse(msg, &m) < 0)
        return;
    t->status = m.status;
    t->head = m.write_head;
}

static void on_head_end(void *arg, const struct gz_end *end)
{
    struct gz_txn *t = arg;
    struct gz_journal *j = gz_of(t->txn->parts[t->asked].journal);
    const struct jc_append_part *p = part_of(t);

    t->call = NULL;
    if (t->status == GZ_SUSPENDED) { /* its spec says where it goes on; the append resumes it */
        t->head = j->suspend_offset;
        t->status = GZ_NOT_YET_AVAILABLE;
    }
    if (end->err < 0 || t->status != GZ_NOT_YET_AVAILABLE) {
        again(t, end->err);
        return;
    }
    if (t->resets) {
        call_append(t, t->head);
    } else if (!t->doubt) {
        j->append_head = t->head;
        step(t);
    } else if (t->head >= p->end) {
        read_back(t);
    } else {
        t->doubt = false; /* it did not, and cannot any more when the offset is another */
        if (t->head == p->begin)
            call_append(t, p->begin);
        else
            moved(t);
    }
}

/* Of the journal of part `at`. */
static void ask_head(struct gz_txn *t, size_t at)
{
    const struct gz_call_cb cb = {.on_message = on_head_message, .on_end = on_head_end, .arg = t};
    struct gz_journal *j = gz_of(t->txn->parts[at].journal);
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    t->asked = at;
    rq.journal = j->name;
    rq.offset = -1;
    rq.min_etcd_revision = j->mod_revision;
    t->status = -1;
    if ((err = gz_rpc(t->s, j->endpoint, "Read", &rq.base, GZ_RPC_MS, &cb, &t->call)) < 0)
        again(t, err);
}

/* --- the whole --- */

/* Offsets of all parts, from what is known of heads. Returns the index of a part whose head is not
 * known, parts_n when all are. */
static size_t place(struct gz_txn *t)
{
    struct jc_txn *txn = t->txn;

    for (size_t i = t->at; i < txn->parts_n; i++) {
        struct jc_append_part *p = &txn->parts[i];
        struct gz_journal *j = gz_of(p->journal);
        int64_t at = j->append_head;
        for (size_t k = t->at; k < i; k++) {
            if (gz_of(txn->parts[k].journal) == j)
                at = txn->parts[k].end;
        }
        if (j->state == GZ_J_TAIL && j->tail.pos > at && at == j->append_head)
            at = j->append_head = j->tail.pos;
        if (at < 0)
            return i;
        p->begin = at;
        p->end = at + (int64_t)p->bytes->len;
    }
    return txn->parts_n;
}

static void on_kv_set(void *arg, int err)
{
    finish(arg, err);
}

static void write_kv(struct gz_txn *t)
{
    struct jc_store *kv = t->s->kv;
    int err = 0;

    if (t->txn->kv_n > 0)
        err = kv->ops->kv_set(kv, t->txn->kv, t->txn->kv_n, &t->s->mb.ex, on_kv_set, t);
    if (t->txn->kv_n == 0 || err < 0)
        finish(t, err);
}

/* What is to be done next; whenever something has ended. */
static void step(struct gz_txn *t)
{
    struct jc_txn *txn = t->txn;
    size_t unknown;
    int err;

    if (t->at == txn->parts_n && t->prepared) {
        write_kv(t);
        return;
    }
    for (size_t i = t->at; i < txn->parts_n; i++) {
        if (gz_of(txn->parts[i].journal)->hub.deleted) {
            finish(t, E_NOTFOUND);
            return;
        }
    }
    if (t->doubt || (t->status == GZ_INDEX_GREATER && t->prepared)) {
        t->resets = !t->doubt;
        ask_head(t, t->at);
        return;
    }
    if ((unknown = place(t)) < txn->parts_n) {
        ask_head(t, unknown);
        return;
    }
    if (!t->prepared) {
        if (txn->prepare != NULL && (err = txn->prepare(txn, &t->s->txn_clock)) < 0) {
            finish(t, err);
            return;
        }
        t->prepared = true;
        if (txn->parts_n == 0) {
            write_kv(t);
            return;
        }
    }
    call_append(t, part_of(t)->begin);
}

static void on_unless(void *arg, int err, struct span value)
{
    struct gz_txn *t = arg;

    (void)value;
    if (err == E_NOTFOUND)
        step(t);
    else
        finish(t, err < 0 ? err : E_EXISTS);
}

void gz_append_next(struct gz_store *s)
{
    struct gz_txn *t = STAILQ_FIRST(&s->txns);
    int err;

    if (s->txn != NULL || t == NULL || !s->clock_ready)
        return;
    STAILQ_REMOVE_HEAD(&s->txns, link);
    s->txn = t;
    t->since_ms = gz_mono_ms(s);
    if (t->err < 0) {
        finish(t, t->err);
    } else if (t->txn->unless_kv == NULL) {
        step(t);
    } else if ((err = s->kv->ops->kv_get(s->kv, t->txn->unless_kv, &s->mb.ex, on_unless, t)) < 0) {
        finish(t, err);
    }
}

bool gz_append_idle(const struct gz_store *s)
{
    return s->txn == NULL && STAILQ_EMPTY(&s->txns);
}

void gz_append_end(struct gz_store *s, int err)
{
    struct gz_txn *t;

    while ((t = STAILQ_FIRST(&s->txns)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->txns, link);
        answer(t, err);
    }
    if ((t = s->txn) == NULL)
        return;
    if (t->call != NULL)
        gz_call_cancel(t->call);
    if (t->call == NULL && t->range.busy) { /* its end comes through the range's */
        t->ended = true;
        t->err = err;
        gz_range_cancel(&t->range);
        s->txn = NULL;
    } else if (t->call != NULL || (t->timer != NULL && evtimer_pending(t->timer, NULL))) {
        s->txn = NULL;
        answer(t, err);
    } /* else the key-value store is about to answer */
}

static void run_home(struct task *task)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)task - offsetof(struct gz_txn, task));
    struct gz_store *s = t->s;

    if (s->stopping) {
        answer(t, E_CLOSED);
        return;
    }
    STAILQ_INSERT_TAIL(&s->txns, t, link);
    gz_append_next(s);
}

int gz_append(struct jc_store *store, struct jc_txn *txn, struct executor *ex, jc_txn_fn *done,
              void *arg)
{
    struct gz_store *s = gz_store_of(store);
    struct gz_txn *t = mem_zalloc(sizeof *t);
    int err;

    if (t == NULL)
        return E_NOMEM;
    t->s = gz_store_ref(s);
    t->txn = txn;
    t->ex = ex;
    t->done = done;
    t->arg = arg;
    for (size_t i = 0; i < txn->parts_n; i++) {
        const struct blob *b = txn->parts[i].bytes;
        if (b->len == 0 || b->data[b->len - 1] != '\n')
            t->err = E_INVALID;
    }
    t->task.run = run_home;
    pthread_mutex_lock(&s->hub.lock);
    err = s->hub.closing ? E_CLOSED : 0;
    if (err == 0)
        mailbox_post(&s->mb, &t->task);
    pthread_mutex_unlock(&s->hub.lock);
    if (err < 0) {
        gz_store_unref(s);
        mem_free(t);
    }
    return err;
}
