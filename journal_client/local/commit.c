/*
 * The committer: takes what is queued, makes one group of the appends, and commits it.
 *
 *   stage    each transaction in order: unless_kv, offsets, prepare, key-values, index, pwrite
 *   sync     one fdatasync per touched file
 *   record   one database transaction with all heads and key-values: the commit point
 *   publish  heads and index under the store lock, all journals of the group at once
 *   answer   then close fragments that are full
 *
 * What a group adds lies beside the committed state (pend_*) until the commit point. When anything
 * fails before it, the whole group fails and files are cut back to their committed ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/request.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"

#define GROUP_BYTES       (8u << 20)
#define GROUP_TXNS        4096
#define EARLY_WRITE_BYTES 262144

struct group {
    struct jl_req_list staged;
    struct jl_journal_list journals;
    struct jl_req_list after; /* reads that were queued between */
    size_t staged_n;
};

/* --- files --- */

static int write_all(struct jl_store *s, int fd, struct span b, int64_t at)
{
    while (b.n > 0) {
        ssize_t n = s->hooks.pwrite(s->hooks.arg, fd, b.p, b.n, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int e = n == 0 ? ENOSPC : errno;
            log_event(LOG_ERROR, "store.write", LF_INT("at", at), LF_ERRNO(e));
            return err_from_errno(e);
        }
        b.p += n;
        b.n -= (size_t)n;
        at += n;
    }
    return 0;
}

/* The growing file is made with the first append after a close, and its name made durable. */
static int make_file(struct jl_store *s, struct jl_journal *j)
{
    char *folder = jl_path_join(s->dir, "open", j->name);
    int fd, err;

    if (folder == NULL)
        return E_NOMEM;
    if ((err = jl_mkdirs(folder, true)) == 0 && (err = jl_frag_pin(j->open, true, &fd)) == 0) {
        if (ftruncate(fd, 0) < 0) /* what an earlier failed group left */
            err = err_from_errno(errno);
        jl_frag_unpin(j->open);
        if (err == 0)
            err = jl_sync_dir(folder);
    }
    mem_free(folder);
    if (err == 0)
        j->file_made = true;
    return err == E_NOTFOUND ? E_IO : err;
}

/* --- staging --- */

static int join_group(struct jl_store *s, struct group *g, struct jl_journal *j)
{
    struct jl_frag *f = j->open;
    int err;

    if (j->in_group)
        return 0;
    if (j->renamed) /* its bytes are named by their SHA-1 already */
        return j->roll_err;
    if (!j->file_made && (err = make_file(s, j)) < 0)
        return err;
    /* Continues with the last committed block. */
    j->pend_blocks.n = 0;
    j->pend_blocks.base = f->blocks.base + (f->blocks.n == 0 ? 0 : (int64_t)f->blocks.n - 1);
    if ((err = jl_index_reserve(&j->pend_blocks, f->end == f->begin ? f->begin + 1 : f->end)) < 0)
        return err;
    if (f->blocks.n > 0)
        j->pend_blocks.v[j->pend_blocks.n++] = f->blocks.v[f->blocks.n - 1];
    j->pend_sum = f->sum;
    j->tail = f->end;
    j->in_group = true;
    STAILQ_INSERT_TAIL(&g->journals, j, group);
    return 0;
}

static bool whole_lines(const struct blob *b)
{
    return b != NULL && b->len > 0 && b->data[b->len - 1] == '\n';
}

/* Gives the part its offsets. */
static int place_part(struct jl_store *s, struct group *g, struct jc_append_part *p)
{
    struct jl_journal *j = jl_of(p->journal);
    int err;

    if (j->hub.deleted)
        return E_NOTFOUND;
    if (j->broken < 0)
        return j->broken;
    if (!whole_lines(p->bytes))
        return E_INVALID;
    if ((err = join_group(s, g, j)) < 0)
        return err;
    if (j->tail > INT64_MAX - (int64_t)p->bytes->len)
        return E_RANGE;
    p->begin = j->tail;
    p->end = j->tail + (int64_t)p->bytes->len;
    if ((err = jl_index_reserve(&j->pend_blocks, p->end)) < 0)
        return err;
    j->tail = p->end;
    return 0;
}

static int key_is_free(struct jl_store *s, const char *key)
{
    int err = jl_db_query(s->db, JL_SQL_KV_GET, "bi", span_str(key), jl_now_ms(s));

    if (err < 0)
        return err;
    err = jl_db_row(s->db, JL_SQL_KV_GET);
    jl_db_end(s->db, JL_SQL_KV_GET);
    return err == 1 ? E_EXISTS : err;
}

/* Nothing is written yet: a refusal leaves the group as it was. */
static int admit(struct jl_store *s, struct group *g, struct jc_txn *txn)
{
    size_t placed = 0;
    int err = txn->unless_kv == NULL ? 0 : key_is_free(s, txn->unless_kv);

    for (; placed < txn->parts_n && err == 0; placed++) {
        if ((err = place_part(s, g, &txn->parts[placed])) < 0)
            break;
    }
    if (err == 0 && txn->prepare != NULL) {
        err = txn->prepare(txn, &s->txn_clock);
        for (size_t i = 0; i < txn->parts_n && err >= 0; i++) {
            if (!whole_lines(txn->parts[i].bytes))
                err = E_INVALID;
        }
    }
    if (err >= 0)
        return 0;
    while (placed > 0) {
        const struct jc_append_part *p = &txn->parts[--placed];
        jl_of(p->journal)->tail = p->begin;
    }
    return err;
}

/* From here on a failure is the whole group's. */
static int write_txn(struct jl_store *s, struct jc_txn *txn)
{
    int err;

    for (size_t i = 0; i < txn->kv_n; i++) {
        const struct jc_kv *kv = &txn->kv[i];
        if ((err = jl_db_run(s->db, JL_SQL_KV_SET, "bbi", span_str(kv->key), kv->value,
                             kv->expires_ms)) < 0)
            return err;
    }
    for (size_t i = 0; i < txn->parts_n; i++) {
        const struct jc_append_part *p = &txn->parts[i];
        struct jl_journal *j = jl_of(p->journal);
        struct span b = blob_span(p->bytes);
        int fd;
        if ((err = jl_frag_pin(j->open, true, &fd)) < 0)
            return err == E_NOTFOUND ? E_IO : err;
        err = write_all(s, fd, b, p->begin - j->open->begin);
        /* The disk starts while the rest is computed; the sync below is what counts. */
        if (err == 0 && b.n >= EARLY_WRITE_BYTES)
            (void)sync_file_range(fd, p->begin - j->open->begin, (off_t)b.n, SYNC_FILE_RANGE_WRITE);
        jl_frag_unpin(j->open);
        if (err < 0)
            return err;
        jl_index_add(&j->pend_blocks, &j->pend_sum, &s->probe, p->begin, b);
        if (j->sha != NULL && jl_sha_add(j->sha, b) < 0) {
            jl_sha_free(j->sha); /* computed from the file when it closes */
            j->sha = NULL;
        }
    }
    return 0;
}

/* --- sync and record --- */

static int sync_journal(struct jl_store *s, struct jl_journal *j)
{
    int fd, err;

    if ((err = jl_frag_pin(j->open, false, &fd)) < 0)
        return E_IO;
    if (s->hooks.fdatasync(s->hooks.arg, fd) < 0) {
        /* The kernel may have dropped the pages: a second try could succeed and mean nothing. */
        log_event(LOG_ERROR, "store.sync", LF_STR("journal", j->name), LF_ERRNO(errno));
        j->broken = err = E_IO;
    }
    jl_frag_unpin(j->open);
    return err;
}

/* Markers are rare: they cost their rows only in the transaction that brings one. */
static int record_marks(struct jl_store *s, const struct jl_journal *j)
{
    struct jc_marks m = j->hub.heads.marks;

    return jc_marks_merge(&m, &j->pend_sum.marks) ? jl_db_marks_set(s->db, j->id, &m) : 0;
}

static int record(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;
    int64_t now = jl_now_ms(s);
    int err;

    STAILQ_FOREACH(j, &g->journals, group)
    {
        int64_t since = j->since_ms == 0 ? now : j->since_ms;
        const struct jc_heads *h = &j->hub.heads;
        int64_t content =
            j->pend_sum.content_end > h->content_end ? j->pend_sum.content_end : h->content_end;
        uint64_t clock =
            j->pend_sum.max_clock > h->max_clock ? j->pend_sum.max_clock : h->max_clock;
        if (j->tail == j->open->end)
            continue;
        if ((err = jl_db_run(s->db, JL_SQL_HEAD, "iiiii", j->id, j->tail, content, (int64_t)clock,
                             since)) < 0 ||
            (err = record_marks(s, j)) < 0)
            return err;
    }
    if (s->txn_clock.last != s->clock_saved &&
        (err = jl_db_run(s->db, JL_SQL_META_SET, "si", "last_clock", (int64_t)s->txn_clock.last)) <
            0)
        return err;
    return jl_db_commit(s);
}

/* Room for the group's blocks, so that nothing can fail after the commit point. */
static int reserve(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;
    int err = 0;

    pthread_mutex_lock(&s->hub.lock); /* readers look at the array that may move */
    STAILQ_FOREACH(j, &g->journals, group)
    {
        if (err == 0 && j->tail > j->open->end)
            err = jl_index_reserve(&j->open->blocks, j->tail);
    }
    pthread_mutex_unlock(&s->hub.lock);
    return err;
}

static void publish_journal(struct jl_journal *j, int64_t now)
{
    struct jl_frag *f = j->open;
    struct jl_blocks *b = &f->blocks;
    const struct jl_blocks *add = &j->pend_blocks;

    if (j->tail == f->end)
        return;
    b->n = (size_t)(add->base - b->base);
    for (size_t i = 0; i < add->n; i++)
        b->v[b->n++] = add->v[i];
    f->end = j->tail;
    f->sum = j->pend_sum;
    if (j->since_ms == 0)
        j->since_ms = now;
    j->hub.heads.write_head = f->end;
    if (f->sum.content_end > j->hub.heads.content_end)
        j->hub.heads.content_end = f->sum.content_end;
    if (f->sum.max_clock > j->hub.heads.max_clock)
        j->hub.heads.max_clock = f->sum.max_clock;
    (void)jc_marks_merge(&j->hub.heads.marks, &f->sum.marks);
    jl_journal_set_first(j);
}

static void publish(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;
    int64_t now = jl_now_ms(s);

    pthread_mutex_lock(&s->hub.lock);
    STAILQ_FOREACH(j, &g->journals, group)
    {
        publish_journal(j, now);
    }
    STAILQ_FOREACH(j, &g->journals, group)
    {
        jc_wake_waiters(&j->hub, 0);
        jc_notify_followers(&j->hub);
    }
    pthread_mutex_unlock(&s->hub.lock);
    s->clock_saved = s->txn_clock.last;
}

/* Back to the committed state. */
static void undo(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;

    jl_db_rollback(s);
    STAILQ_FOREACH(j, &g->journals, group)
    {
        int fd;
        if (j->tail == j->open->end)
            continue;
        jl_sha_free(j->sha);
        j->sha = NULL;
        /* While a failed commit may still turn up at recovery, its bytes have to be there. */
        if (!jl_db_unsettled(s->db) && jl_frag_pin(j->open, false, &fd) == 0) {
            if (ftruncate(fd, (off_t)(j->open->end - j->open->begin)) < 0)
                log_event(LOG_WARN, "store.cut", LF_STR("journal", j->name), LF_ERRNO(errno));
            jl_frag_unpin(j->open);
        }
    }
}

static int sync_and_record(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;
    int err;

    if ((err = reserve(s, g)) < 0)
        return err;
    s->hooks.point(s->hooks.arg, "append.written");
    STAILQ_FOREACH(j, &g->journals, group)
    {
        if (j->tail > j->open->end && (err = sync_journal(s, j)) < 0)
            return err;
    }
    s->hooks.point(s->hooks.arg, "append.synced");
    if ((err = record(s, g)) < 0)
        return err;
    s->hooks.point(s->hooks.arg, "append.committed");
    return 0;
}

/* --- the group --- */

/* Stages one transaction. A refusal answers it; a failure of the group is returned. */
static int stage(struct jl_store *s, struct group *g, struct jl_req *rq)
{
    int err = admit(s, g, rq->txn);

    if (err < 0) {
        jl_req_answer(rq, err);
        return 0;
    }
    STAILQ_INSERT_TAIL(&g->staged, rq, link);
    g->staged_n++;
    return write_txn(s, rq->txn);
}

static void answer_all(struct jl_req_list *list, int err)
{
    struct jl_req *rq;

    while ((rq = STAILQ_FIRST(list)) != NULL) {
        STAILQ_REMOVE_HEAD(list, link);
        jl_req_answer(rq, err);
    }
}

static void leave_group(struct jl_store *s, struct group *g)
{
    struct jl_journal *j;

    while ((j = STAILQ_FIRST(&g->journals)) != NULL) {
        STAILQ_REMOVE_HEAD(&g->journals, group);
        j->in_group = false;
        const struct jc_journal *item = jc_listing_find(s->hub.listing, span_str(j->name));
        /* Its answer does not depend on it: a failed close is logged and tried again later. */
        if (item != NULL && jl_of(item) == j && jl_roll(s, j, &item->spec, false) < 0)
            continue;
    }
}

/* Closes whose record had failed: a transaction of their own, before the group's begins. */
static void finish_rolls(struct jl_store *s, const struct jl_req_list *txns)
{
    const struct jl_req *rq;

    STAILQ_FOREACH(rq, txns, link)
    {
        for (size_t i = 0; i < rq->txn->parts_n; i++) {
            struct jl_journal *j = jl_of(rq->txn->parts[i].journal);
            if (j->renamed && !j->hub.deleted)
                j->roll_err = jl_roll_finish(s, j);
        }
    }
}

static void run_group(struct jl_store *s, struct jl_req_list *txns)
{
    struct group g;
    struct jl_req *rq;
    int err;

    STAILQ_INIT(&g.staged);
    STAILQ_INIT(&g.journals);
    STAILQ_INIT(&g.after);
    g.staged_n = 0;
    finish_rolls(s, txns);
    STAILQ_FOREACH(rq, txns, link)
    {
        rq->txn->in_doubt = false;
    }
    err = jl_db_begin(s);
    while (err == 0 && (rq = STAILQ_FIRST(txns)) != NULL) {
        STAILQ_REMOVE_HEAD(txns, link);
        err = stage(s, &g, rq);
    }
    if (err == 0 && g.staged_n > 0)
        err = sync_and_record(s, &g);
    if (err == 0 && g.staged_n > 0)
        publish(s, &g);
    else
        undo(s, &g);
    bool doubt = err < 0 && jl_db_unsettled(s->db);
    STAILQ_FOREACH(rq, &g.staged, link)
    {
        rq->txn->in_doubt = doubt;
    }
    answer_all(&g.staged, err);
    answer_all(txns, err);
    leave_group(s, &g);
}

static size_t txn_bytes(const struct jc_txn *txn)
{
    size_t n = 0;

    for (size_t i = 0; i < txn->parts_n; i++)
        n += txn->parts[i].bytes == NULL ? 0 : txn->parts[i].bytes->len;
    return n;
}

/* Takes from the front of work what may go into one group. */
static void collect(struct jl_req_list *work, struct jl_req_list *txns, struct jl_req_list *after)
{
    size_t bytes = 0, n = 0;
    struct jl_req *rq;

    while ((rq = STAILQ_FIRST(work)) != NULL && n < GROUP_TXNS) {
        if (rq->run != NULL && !rq->after)
            break;
        if (rq->run == NULL) {
            size_t more = txn_bytes(rq->txn);
            if (n > 0 && bytes + more > GROUP_BYTES)
                break;
            bytes += more;
            n++;
        }
        STAILQ_REMOVE_HEAD(work, link);
        STAILQ_INSERT_TAIL(rq->run == NULL ? txns : after, rq, link);
    }
}

static void run_all(struct jl_store *s, struct jl_req_list *work)
{
    struct jl_req_list txns, after;
    struct jl_req *rq;

    STAILQ_INIT(&txns);
    STAILQ_INIT(&after);
    while (!STAILQ_EMPTY(work)) {
        collect(work, &txns, &after);
        if (!STAILQ_EMPTY(&txns))
            run_group(s, &txns);
        while ((rq = STAILQ_FIRST(&after)) != NULL) {
            STAILQ_REMOVE_HEAD(&after, link);
            rq->run(s, rq);
        }
        rq = STAILQ_FIRST(work);
        if (rq != NULL && rq->run != NULL && !rq->after) {
            STAILQ_REMOVE_HEAD(work, link);
            rq->run(s, rq);
        }
    }
}

/* Waits for requests and takes them all. False: none is left and the store closes. */
static bool take_work(struct jl_store *s, struct jl_req_list *work)
{
    STAILQ_INIT(work);
    pthread_mutex_lock(&s->hub.lock);
    while (STAILQ_EMPTY(&s->queue) && !s->hub.closing)
        pthread_cond_wait(&s->work, &s->hub.lock);
    STAILQ_CONCAT(work, &s->queue);
    pthread_mutex_unlock(&s->hub.lock);
    return !STAILQ_EMPTY(work);
}

void *jl_committer_main(void *store)
{
    struct jl_store *s = store;
    struct jl_req_list work;

    while (take_work(s, &work))
        run_all(s, &work);
    return NULL;
}
