/*
 * Transactions. Those that share no journal (nor a key of `unless_kv`) run side by side; those that
 * do, in the order in which they were given. One goes through:
 *
 *   the key of `unless_kv` free? -> the head of each journal -> prepare -> each part by one append
 * at just that head (append_part.c) -> the key-values
 *
 * Writers of other processes move the head; as long as nothing of the transaction is written, it is
 * prepared anew, behind them; later parts follow the head as they stand. The parts of several
 * journals are not atomic: a failure between them is told, and logged.
 */
#include "journal_client/gazette/append.h"

#include "base/log.h"
#include "base/mem.h"

#define RUNNING_MAX 64

/* --- its end --- */

static void run_done(struct task *task)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)task - offsetof(struct gz_txn, task));

    t->done(t->arg, t->err, t->txn);
    gz_begun_free(t);
    gz_store_unref(t->s);
    mem_free(t);
}

static void run_answer(struct task *task)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)task - offsetof(struct gz_txn, task));

    t->task.run = run_done;
    executor_post(t->ex, &t->task);
}

/* Behind the news of the heads that it made. */
void gz_txn_answer(struct gz_txn *t, int err)
{
    if (t->timer != NULL)
        event_free(t->timer);
    t->timer = NULL;
    t->err = err;
    /* What was sent may turn up; what was written is there. */
    t->txn->in_doubt = err < 0 && (t->unsure || t->at > 0 || t->call != NULL || gz_begun_left(t));
    t->task.run = run_answer;
    gz_told_then(t->s, &t->task);
}

void gz_txn_finish(struct gz_txn *t, int err)
{
    struct gz_store *s = t->s;

    if (err < 0 && t->wrote > 0 && t->at < t->txn->parts_n)
        log_event(LOG_ERROR, "gazette.txn_torn", LF_UINT("parts", t->txn->parts_n),
                  LF_UINT("written", t->wrote), LF_ERR(err));
    TAILQ_REMOVE(&s->txns_running, t, link);
    s->txns_running_n--;
    gz_txn_answer(t, err);
    gz_append_next(s);
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
        if (gz_begun_kept(t, i))
            continue;
        for (size_t k = t->at; k < i; k++) {
            if (gz_of(txn->parts[k].journal) == j && !gz_begun_kept(t, k))
                at = txn->parts[k].end;
        }
        /* A tail that is not above what was refused is old: one that sleeps, of all others. */
        if (j->state == GZ_J_TAIL && j->tail.pos > at && j->tail.pos > j->append_refused &&
            at == j->append_head)
            at = j->append_head = j->tail.pos;
        if (at < 0)
            return i;
        t->replaced = t->replaced || (t->prepared && p->begin != at);
        p->begin = at;
        p->end = at + (int64_t)p->bytes->len;
    }
    return txn->parts_n;
}

static void on_kv_set(void *arg, int err)
{
    gz_txn_finish(arg, err);
}

static void write_kv(struct gz_txn *t)
{
    struct jc_store *kv = t->s->kv;
    size_t n = t->txn->kv_n;
    struct jc_kv *list = mem_array(n + 1, sizeof *list);
    int err = list == NULL ? E_NOMEM : 0;

    if (err == 0) {
        for (size_t i = 0; i < n; i++)
            list[i] = t->txn->kv[i];
        n += gz_begun_end(t, &list[n]);
        if (n > 0)
            err = kv->ops->kv_set(kv, list, n, &t->s->mb.ex, on_kv_set, t);
        mem_free(list);
    }
    if (n == 0 || err < 0)
        gz_txn_finish(t, err);
}

static void on_place_head(struct gz_txn *t, int64_t head, enum gz_head_by by)
{
    (void)by; /* where it is not the last word, the append is refused */
    t->head_of->append_head = head;
    gz_txn_step(t);
}

/* What is to be done next; whenever something has ended. */
void gz_txn_step(struct gz_txn *t)
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
            gz_txn_finish(t, E_NOTFOUND);
            return;
        }
    }
    if (t->reset) {
        gz_part_reset(t);
        return;
    }
    if (t->doubt) {
        gz_part_settle(t);
        return;
    }
    if (!gz_begun_ready(t))
        return;
    while (t->at < txn->parts_n && gz_begun_kept(t, t->at))
        t->at++;
    /* A part that may have landed keeps its offset until that is settled. */
    if (!t->unsure) {
        unknown = place(t);
        if (t->replaced) { /* the answer and the record would tell of other places */
            t->replaced = false;
            t->prepared = t->wrote > 0;
            gz_begun_moved(t);
            gz_txn_step(t);
            return;
        }
        if (unknown < txn->parts_n) {
            gz_head_ask(t, gz_of(txn->parts[unknown].journal), on_place_head);
            return;
        }
        if (!gz_begun_fits(t)) {
            gz_begun_moved(t);
            gz_part_again(t, E_AGAIN);
            return;
        }
    }
    if (!t->prepared) {
        if (txn->prepare != NULL && (err = txn->prepare(txn, &t->s->txn_clock)) < 0) {
            gz_txn_finish(t, err);
            return;
        }
        t->prepared = true;
    }
    if (t->at == txn->parts_n)
        write_kv(t);
    else if (gz_begun_record(t))
        gz_part_send(t);
}

static void on_unless(void *arg, int err, struct span value)
{
    struct gz_txn *t = arg;

    (void)value;
    if (err == E_NOTFOUND && !t->s->hurried && !t->s->stopping)
        gz_txn_step(t);
    else
        gz_txn_finish(t, err == 0 ? E_EXISTS : err == E_NOTFOUND ? E_CLOSED : err);
}

/* --- which ones --- */

static void begin(struct gz_store *s, struct gz_txn *t)
{
    int err;

    TAILQ_REMOVE(&s->txns, t, link);
    TAILQ_INSERT_TAIL(&s->txns_running, t, link);
    s->txns_running_n++;
    t->since_ms = gz_mono_ms(s);
    if (t->err < 0)
        gz_txn_finish(t, t->err);
    else if (t->txn->unless_kv == NULL)
        gz_txn_step(t);
    else if ((err = s->kv->ops->kv_get(s->kv, t->txn->unless_kv, &s->mb.ex, on_unless, t)) < 0)
        gz_txn_finish(t, err);
}

/* Its journals are taken in this round: nobody behind it may use them before it. */
static void mark(struct gz_store *s, const struct gz_txn *t)
{
    for (size_t i = 0; i < t->txn->parts_n; i++)
        gz_of(t->txn->parts[i].journal)->append_round = s->append_round;
}

static bool same_key(const struct gz_txn *a, const struct gz_txn *b)
{
    return a->txn->unless_kv != NULL && b->txn->unless_kv != NULL &&
           strcmp(a->txn->unless_kv, b->txn->unless_kv) == 0;
}

static bool blocked(struct gz_store *s, const struct gz_txn *t)
{
    const struct gz_txn *other;

    for (size_t i = 0; i < t->txn->parts_n; i++) {
        if (gz_of(t->txn->parts[i].journal)->append_round == s->append_round)
            return true;
    }
    TAILQ_FOREACH(other, &s->txns_running, link)
    {
        if (same_key(t, other))
            return true;
    }
    TAILQ_FOREACH(other, &s->txns, link)
    {
        if (other == t)
            break;
        if (same_key(t, other))
            return true;
    }
    return false;
}

/* The first one that may run; NULL: none. */
static struct gz_txn *next(struct gz_store *s)
{
    struct gz_txn *t;

    if (s->txns_running_n >= RUNNING_MAX)
        return NULL;
    s->append_round++;
    TAILQ_FOREACH(t, &s->txns_running, link)
    {
        mark(s, t);
    }
    TAILQ_FOREACH(t, &s->txns, link)
    {
        if (!blocked(s, t))
            return t;
        mark(s, t);
    }
    return NULL;
}

void gz_append_next(struct gz_store *s)
{
    struct gz_txn *t;

    if (!s->clock_ready || s->append_inside)
        return; /* the outer one goes on */
    s->append_inside = true;
    while ((t = next(s)) != NULL)
        begin(s, t);
    s->append_inside = false;
}

bool gz_append_idle(const struct gz_store *s)
{
    return TAILQ_EMPTY(&s->txns_running) && TAILQ_EMPTY(&s->txns);
}

static void end_running(struct gz_store *s, struct gz_txn *t, int err)
{
    bool reads = t->call == NULL && t->range.busy;

    if (!reads && t->call == NULL && (t->timer == NULL || !evtimer_pending(t->timer, NULL)))
        return;                              /* the key-value store is about to answer */
    TAILQ_REMOVE(&s->txns_running, t, link); /* once answered it may be gone already */
    s->txns_running_n--;
    if (reads) { /* its end comes through the range's */
        t->ended = true;
        t->err = err;
        gz_range_cancel(&t->range);
        return;
    }
    if (t->call != NULL)
        gz_call_cancel(t->call);
    gz_txn_answer(t, err);
}

void gz_append_end(struct gz_store *s, int err)
{
    struct gz_txn *t, *following;

    while ((t = TAILQ_FIRST(&s->txns)) != NULL) {
        TAILQ_REMOVE(&s->txns, t, link);
        gz_txn_answer(t, err);
    }
    for (t = TAILQ_FIRST(&s->txns_running); t != NULL; t = following) {
        following = TAILQ_NEXT(t, link);
        end_running(s, t, err);
    }
}

static void run_home(struct task *task)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)task - offsetof(struct gz_txn, task));
    struct gz_store *s = t->s;

    if (s->stopping || s->hurried) {
        gz_txn_answer(t, E_CLOSED);
        return;
    }
    TAILQ_INSERT_TAIL(&s->txns, t, link);
    gz_append_next(s);
}

static void run_hurry(struct task *task)
{
    struct gz_store *s =
        (struct gz_store *)(void *)((char *)task - offsetof(struct gz_store, hurry));

    s->hurried = true;
    if (s->stopping)
        return; /* they ended with it */
    gz_append_end(s, E_CLOSED);
    gz_apply_end(s, E_CLOSED);
}

void gz_hurry(struct jc_store *store)
{
    struct gz_store *s = gz_store_of(store);

    pthread_mutex_lock(&s->hub.lock);
    if (!s->hub.closing && !s->hurry_asked) {
        s->hurry_asked = true;
        gz_later(s, &s->hurry, run_hurry);
    }
    pthread_mutex_unlock(&s->hub.lock);
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
