/*
 * One part of a transaction: an append at the offset where the part must lie, under the claim of
 * this gateway; the reset of a head that all brokers have lost. When it stays open whether a part
 * landed: append_doubt.c. See append.h.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/append.h"

#define CHUNK_BYTES (256u << 10)
#define WAIT_MS     45000 /* a part that found no broker for so long fails: a lease and more */
#define APPEND_MS   15000 /* of a call, and 1 ms for each KiB: a primary waits for a dead replica */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    gz_txn_step(arg);
}

void gz_part_again(struct gz_txn *t, int err)
{
    if (gz_mono_ms(t->s) - t->since_ms > WAIT_MS) {
        log_event(LOG_ERROR, "gazette.append_failed", LF_STR("journal", gz_part_journal(t)->name),
                  LF_STR("status", gz_status_text(t->status)), LF_ERR(err),
                  LF_STR("message", t->said));
        gz_txn_finish(t, err < 0 && err != E_AGAIN ? err : E_IO);
        return;
    }
    if (t->timer == NULL && (t->timer = evtimer_new(t->s->evb, on_timer, t)) == NULL) {
        gz_txn_finish(t, E_NOMEM);
        return;
    }
    gz_arm(t->timer, gz_backoff_ms(t->attempt++));
}

void gz_part_landed(struct gz_txn *t, int64_t begin)
{
    struct jc_append_part *p = gz_part_of(t);
    struct gz_journal *j = gz_part_journal(t);

    if (begin != p->begin)
        log_event(LOG_WARN, "gazette.append_moved", LF_STR("journal", j->name),
                  LF_INT("expected", p->begin), LF_INT("begin", begin));
    t->recorded = t->recorded && begin == p->begin;
    p->begin = begin;
    p->end = begin + (int64_t)p->bytes->len;
    j->append_head = p->end;
    gz_journal_take(j, p->begin, blob_span(p->bytes));
    t->doubt = t->unsure = t->reset = false;
    t->below_ms = 0;
    t->attempt = t->moves = 0;
    t->denied = false;
    t->since_ms = gz_mono_ms(t->s);
    t->at++;
    t->wrote++;
    gz_txn_step(t);
}

/* The head is not where it was thought to be; what was sent can not land there any more. At once
 * when another writer was first; where it goes on, a broker tells a head that its primary refuses.
 */
void gz_part_moved(struct gz_txn *t)
{
    struct gz_journal *j = gz_part_journal(t);

    j->append_refused = gz_part_of(t)->begin;
    j->append_head = -1;
    t->doubt = t->unsure = t->reset = false;
    t->below_ms = 0;
    if (t->wrote == 0)
        t->prepared = false; /* nothing is written: prepare again, at the new offsets */
    gz_begun_moved(t);
    if (t->moves++ == 0)
        gz_txn_step(t);
    else
        gz_part_again(t, E_AGAIN);
}

static bool seen_mine(const struct gz_txn *t)
{
    return t->seen.owner == t->s->owner && t->seen.epoch == gz_part_journal(t)->claim.epoch;
}

/* The registers were not what the append asked for. */
static void mismatch(struct gz_txn *t)
{
    struct gz_journal *j = gz_part_journal(t);

    if (seen_mine(t)) {
        j->claim.stands = true;
    } else if (!t->claiming) { /* another gateway writes here, too */
        log_peer(t->s->single_writer ? LOG_ERROR : LOG_WARN, "gazette.claim_lost",
                 LF_STR("journal", j->name), LF_UINT("epoch", j->claim.epoch),
                 LF_UINT("theirs", t->seen.epoch));
        j->fenced = t->s->single_writer;
        j->claim = (struct gz_claim_of){.seen = t->seen.epoch};
    }
}

void gz_part_hear(struct gz_txn *t, const struct gz_end *end)
{
    _Static_assert(sizeof t->said == sizeof end->message, "copied whole");
    memcpy(t->said, end->message, sizeof t->said);
}

/* --- the answer --- */

static void take_registers(struct gz_txn *t, const Gz__LabelSet *set)
{
    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        if (strcmp(set->labels[i]->name, GZ_WRITER) == 0 &&
            gz_claim_parse(set->labels[i]->value, &t->seen) < 0)
            t->seen = (struct gz_claim){0};
    }
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
    take_registers(t, m->registers);
    if (m->header != NULL)
        gz_route_take(gz_part_journal(t), m->header->route);
    if (m->store_health_error != NULL && m->store_health_error[0] != '\0')
        log_peer(LOG_WARN, "gazette.store_unhealthy", LF_STR("journal", gz_part_journal(t)->name),
                 LF_STR("message", m->store_health_error));
    gz__append_response__free_unpacked(m, NULL);
}

/* Content goes out as the connection takes it: a chunk a message, then an empty one. */
static void on_drained(void *arg)
{
    struct gz_txn *t = arg;
    struct span body = blob_span(gz_part_of(t)->bytes), chunk;
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
    log_event(LOG_WARN, "gazette.head_reset", LF_STR("journal", gz_part_journal(t)->name),
              LF_INT("head", t->head), LF_STR("status", gz_status_text(t->status)));
    if (end->err < 0 || t->status != GZ_OK) {
        gz_part_again(t, end->err);
        return;
    }
    t->reset = false;
    if (t->unsure) { /* what was sent before may be among what was found */
        t->doubt = true;
        gz_txn_step(t);
    } else {
        gz_part_moved(t);
    }
}

static void on_append_end(void *arg, const struct gz_end *end)
{
    struct gz_txn *t = arg;
    struct gz_journal *j = gz_part_journal(t);
    const struct gz_append_seen seen = {end->err, t->status, t->commit_begin, t->commit_end,
                                        end->grpc_status != GZ_NO_STATUS};
    const struct gz_append_about about = {.bytes = (int64_t)gz_part_of(t)->bytes->len,
                                          .unsure = t->unsure,
                                          .claiming = t->claiming,
                                          .mine = seen_mine(t),
                                          .deleted = j->hub.deleted};
    int fail;

    t->call = NULL;
    gz_part_hear(t, end);
    if (t->resets) {
        on_reset_end(t, end);
        return;
    }
    if (end->err == 0 && t->status == GZ_REGISTER_MISMATCH)
        mismatch(t);
    if (end->message[0] != '\0')
        log_peer(LOG_WARN, "gazette.append", LF_STR("journal", j->name),
                 LF_STR("message", end->message), LF_ERR(end->err));
    if (end->err == E_DENIED && t->s->auth_key != NULL && !t->denied) {
        t->denied = true; /* once more, with a new token */
        gz_part_again(t, end->err);
        return;
    }
    switch (gz_append_judge(&seen, &about, &fail)) {
    case GZ_V_LANDED:
        j->claim.stands = j->claim.stands || t->claiming;
        gz_part_landed(t, t->commit_begin);
        break;
    case GZ_V_MOVED:
        if (t->status == GZ_REGISTER_MISMATCH) {
            /* Somebody was first, or registers outlived their bytes: not at once. */
            j->append_head = -1;
            t->prepared = t->wrote > 0;
            gz_begun_moved(t);
            gz_part_again(t, E_AGAIN);
        } else {
            gz_part_moved(t);
        }
        break;
    case GZ_V_DOUBT:
        t->doubt = t->unsure = true;
        gz_part_again(t, end->err);
        break;
    case GZ_V_RESET:
        t->reset = true;
        gz_part_again(t, E_AGAIN);
        break;
    case GZ_V_AGAIN:
        gz_part_again(t, E_AGAIN);
        break;
    case GZ_V_CLAIM_LOST:
        gz_part_send(t);
        break;
    case GZ_V_FAIL:
        gz_txn_finish(t, fail);
        break;
    }
}

/* --- the call --- */

/* Registers of an append: what must stand, what will stand. Borrowed by the request. */
struct registers {
    Gz__Label check, make;
    Gz__Label *check_list, *make_list;
    Gz__LabelSet check_set, make_set;
    Gz__LabelSelector selector;
    char value[GZ_CLAIM_MAX];
};

static void set_registers(struct gz_txn *t, int64_t offset, struct registers *r,
                          Gz__AppendRequest *rq)
{
    static char writer[] = GZ_WRITER, any[] = "";
    struct gz_journal *j = gz_part_journal(t);
    struct gz_claim claim = {j->claim.epoch, t->s->owner};

    t->claiming = !j->claim.stands;
    if (t->claiming && j->claim.epoch == 0) /* kept until it stands: attempts exclude each other */
        claim.epoch = j->claim.epoch =
            gz_claim_epoch(j->claim.seen, clock_wall_ns(t->s->hub.clock) / 1000000);
    gz_claim_format(&claim, r->value);
    gz__label__init(&r->check);
    gz__label_set__init(&r->check_set);
    gz__label_selector__init(&r->selector);
    r->check.name = writer;
    /* Where no offset can be said, nobody's claim may stand. */
    r->check.value = offset > 0 ? r->value : any;
    r->check_list = &r->check;
    r->check_set.labels = &r->check_list;
    r->check_set.n_labels = 1;
    if (t->claiming)
        r->selector.exclude = &r->check_set;
    else
        r->selector.include = &r->check_set;
    rq->check_registers = &r->selector;
    if (!t->claiming)
        return;
    r->make = r->check;
    r->make.value = r->value;
    gz__label_set__init(&r->make_set);
    r->make_list = &r->make;
    r->make_set.labels = &r->make_list;
    r->make_set.n_labels = 1;
    rq->union_registers = &r->make_set;
}

/* offset: where it must be appended; 0 cannot be said, and means anywhere. */
static void call_append(struct gz_txn *t, int64_t offset)
{
    const struct gz_call_cb cb = {
        .on_message = on_response, .on_drained = on_drained, .on_end = on_append_end, .arg = t};
    struct gz_journal *j = gz_part_journal(t);
    Gz__AppendRequest rq;
    gz__append_request__init(&rq);
    struct registers registers;
    int64_t limit_ms = APPEND_MS + (int64_t)gz_part_of(t)->bytes->len / 1024;
    struct blob *b;
    int err = E_NOMEM;

    rq.journal = j->name;
    rq.offset = offset;
    rq.min_etcd_revision = j->mod_revision;
    t->claiming = false;
    if (!t->resets) /* an empty append changes no registers */
        set_registers(t, offset, &registers, &rq);
    t->seen = (struct gz_claim){0};
    t->status = -1;
    t->sent = 0;
    t->begun = t->closed = false;
    t->commit_begin = t->commit_end = 0;
    if ((b = gz_pack(&rq.base)) != NULL &&
        (err = gz_pool_call(t->s->pool, j->primary, "Append", limit_ms, &cb, &t->call)) == 0) {
        t->begun = true;
        if ((err = gz_call_send(t->call, blob_span(b), span_of(NULL, 0))) < 0) {
            gz_call_cancel(t->call);
            t->call = NULL;
        }
    }
    blob_unref(b);
    if (err < 0) {
        t->resets = false;
        gz_part_again(t, err);
    }
}

/* The status 12 of all others is for who would overwrite what brokers do not know of any more: the
 * head is set to what they list. */
static void on_listed(struct gz_txn *t, int64_t head, enum gz_head_by by)
{
    (void)by;
    t->head = head;
    t->resets = true;
    call_append(t, head);
}

void gz_part_reset(struct gz_txn *t)
{
    gz_head_listed(t, gz_part_journal(t), on_listed);
}

void gz_part_send(struct gz_txn *t)
{
    if (gz_part_journal(t)->fenced)
        gz_txn_finish(t, E_DENIED);
    else
        call_append(t, gz_part_of(t)->begin);
}
