/*
 * Judging what is not there: at the start, when a reader misses a file, and at each tick. Absence
 * is never recorded but by accept_lost, and never unlinks anything: see loss.h.
 */
#include "journal_client/local/loss.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/store_int.h"

/* Of so many recorded fragments one may be missing without a word; one always. */
#define SHARE 20

static bool too_much(size_t recorded, size_t missing, size_t bad)
{
    size_t allowed = recorded / SHARE > 1 ? recorded / SHARE : 1;

    return bad > allowed || (missing > 0 && missing == recorded);
}

bool jl_loss_refused(const struct jl_loss *loss)
{
    return too_much(loss->recorded, loss->missing, loss->bad);
}

void jl_loss_text(const struct jl_journal *j, char *text, size_t bytes)
{
    const struct jl_loss *l = &j->loss;

    (void)snprintf(text, bytes,
                   "journal %.200s: %zu of its %zu recorded fragments are missing or damaged in "
                   "%.200s/fragments (the first begins at offset %lld). Put the files back, or "
                   "start once with --accept-lost-fragments to serve what is left",
                   j->name, l->bad, l->recorded, j->store->dir, (long long)l->first);
}

/* --- at the start --- */

static void judge(struct jl_journal *j, struct jl_frag *f, const struct jl_found *found)
{
    bool expected = !f->accepted;

    if (f->state == JL_FRAG_REMOVED)
        return;
    f->state = found == NULL ? JL_FRAG_LOST : JL_FRAG_HERE;
    if (!expected && found == NULL)
        return;
    j->loss.recorded += expected;
    if (found != NULL && found->sound)
        return;
    if (j->loss.bad++ == 0)
        j->loss.first = f->begin;
    j->loss.missing += found == NULL;
    log_event(found == NULL ? LOG_WARN : LOG_ERROR,
              found == NULL ? "store.fragment_missing" : "store.fragment_damaged",
              LF_STR("journal", j->name), LF_INT("begin", f->begin), LF_INT("end", f->end));
}

void jl_loss_judge(struct jl_journal *j, const struct jl_folder *fo)
{
    j->loss = (struct jl_loss){0};
    for (size_t i = 0; i < j->frags_n; i++) {
        struct jl_frag *f = j->frags[i];
        judge(j, f, jl_folder_find(fo, f->begin, f->end, f->sha1));
    }
}

/* The row that the fragment should have now; -1: the one it has. */
static int row_of(const struct jl_store *s, const struct jl_frag *f)
{
    if (f->accepted && f->state == JL_FRAG_HERE)
        return JL_ROW_HERE;
    if (!f->accepted && f->state == JL_FRAG_LOST && s->accept_lost)
        return JL_ROW_LOST;
    return -1;
}

static int record_rows(struct jl_store *s, struct jl_journal *j)
{
    bool begun = false;
    int err = 0;

    for (size_t i = 0; i < j->frags_n && err == 0; i++) {
        struct jl_frag *f = j->frags[i];
        int row = row_of(s, f);
        if (row < 0)
            continue;
        if (!begun && (err = jl_db_begin(s)) < 0)
            break;
        begun = true;
        f->accepted = row == JL_ROW_LOST;
        log_event(LOG_WARN, row == JL_ROW_LOST ? "store.loss_accepted" : "store.fragment_found",
                  LF_STR("journal", j->name), LF_INT("begin", f->begin), LF_INT("end", f->end));
        err = jl_db_run(s->db, JL_SQL_FRAG_SET, "iii", j->id, f->begin, (int64_t)row);
    }
    if (err == 0 && begun)
        err = jl_db_commit(s);
    else if (begun)
        jl_db_rollback(s);
    return err;
}

void jl_loss_front(struct jl_journal *j)
{
    for (size_t i = 0; i < j->frags_n; i++) {
        const struct jl_frag *f = j->frags[i];
        if (f->state != JL_FRAG_LOST && f->state != JL_FRAG_REMOVED)
            break;
        if (f->sum.content_end > j->hub.heads.log_start)
            j->hub.heads.log_start = f->sum.content_end;
    }
}

int jl_loss_settle(struct jl_store *s, struct jl_journal *j)
{
    jl_loss_front(j);
    return s->read_only ? 0 : record_rows(s, j);
}

/* The row of a file's name; JL_ROW_* or -1. */
static int row_known(struct jl_store *s, const struct jl_journal *j, const struct jl_found *f)
{
    int row = -1;
    int err = jl_db_query(s->db, JL_SQL_FRAG_KNOWN, "iiis", j->id, f->begin, f->end, f->sha1);

    if (err == 0 && (err = jl_db_row(s->db, JL_SQL_FRAG_KNOWN)) == 1)
        row = (int)jl_db_i64(s->db, JL_SQL_FRAG_KNOWN, 0);
    jl_db_end(s->db, JL_SQL_FRAG_KNOWN);
    return err < 0 ? JL_ROW_HERE : row; /* in doubt it is left alone */
}

bool jl_loss_known(struct jl_store *s, const struct jl_journal *j, const struct jl_found *f)
{
    if (j->renamed && j->open->begin == f->begin && j->open->end == f->end &&
        strcmp(j->open->sha1, f->sha1) == 0)
        return true;
    return row_known(s, j, f) >= 0;
}

void jl_loss_orphans(struct jl_store *s, struct jl_journal *j, const struct jl_folder *fo)
{
    size_t strange = 0;

    for (size_t i = 0; i < fo->n; i++) {
        const struct jl_found *f = &fo->v[i];
        int row = row_known(s, j, f);
        if (row < 0 && !jl_loss_known(s, j, f)) {
            if (strange++ == 0)
                log_event(LOG_WARN, "store.orphan", LF_STR("journal", j->name),
                          LF_INT("begin", f->begin), LF_INT("end", f->end),
                          LF_STR("sha1", f->sha1));
            continue;
        }
        if (s->read_only || (row != JL_ROW_REMOVED && row != JL_ROW_GOING))
            continue;
        /* A crash came between the record of its removal and the unlink. */
        char *path = jl_path_closed(s->dir, j->name, f->begin, f->end, f->sha1);
        if (path != NULL)
            (void)unlink(path);
        mem_free(path);
        log_event(LOG_INFO, "store.removal_resumed", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin));
    }
    if (strange > 1)
        log_event(LOG_WARN, "store.orphans", LF_STR("journal", j->name), LF_UINT("files", strange));
}

/* --- while it runs --- */

static bool is_there(const struct jl_frag *f)
{
    struct stat st;

    return stat(f->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == f->end - f->begin;
}

/* Under the lock: references to the fragments that should be there; NULL: out of memory. */
static struct jl_frag **expected(struct jl_journal *j, size_t *n, size_t *missing)
{
    struct jl_frag **v = mem_array(j->frags_n + 1, sizeof(struct jl_frag *));

    *n = *missing = 0;
    for (size_t i = 0; v != NULL && i < j->frags_n; i++) {
        struct jl_frag *f = j->frags[i];
        if (f->state == JL_FRAG_HERE)
            v[(*n)++] = jl_frag_ref(f);
        else if (f->state == JL_FRAG_AWAY || (f->state == JL_FRAG_LOST && !f->accepted))
            (*missing)++;
    }
    return v;
}

/* Whether so much is away that jumping over it would hide a journal from its readers. E_IO: yes. */
static int look_around(struct jl_journal *j)
{
    struct jl_store *s = j->store;
    size_t n, missing;

    pthread_mutex_lock(&s->hub.lock);
    struct jl_frag **v = expected(j, &n, &missing);
    pthread_mutex_unlock(&s->hub.lock);
    if (v == NULL)
        return E_NOMEM;
    size_t recorded = n + missing;
    bool refused = false;
    for (size_t i = 0; i < n; i++) {
        if (!refused && access(v[i]->path, F_OK) < 0) {
            missing++;
            refused = too_much(recorded, missing, missing);
        }
        jl_frag_unref(v[i]);
    }
    mem_free(v);
    if (!refused)
        return 0;
    log_event(LOG_ERROR, "store.fragments_away", LF_STR("journal", j->name),
              LF_UINT("recorded", recorded), LF_UINT("missing", missing));
    return E_IO;
}

/* Under the lock: f is still listed, and its file should be there. */
static bool listed(const struct jl_journal *j, const struct jl_frag *f)
{
    for (size_t i = 0; i < j->frags_n && !j->hub.deleted; i++) {
        if (j->frags[i] == f)
            return f->state == JL_FRAG_HERE;
    }
    return false;
}

int jl_frag_vanished(struct jl_journal *j, struct jl_frag *f)
{
    struct jl_store *s = j->store;
    int err;

    pthread_mutex_lock(&s->hub.lock);
    bool deleted = j->hub.deleted, open = f->open, gone = listed(j, f);
    pthread_mutex_unlock(&s->hub.lock);
    if (deleted) /* the next look says so */
        return E_AGAIN;
    if (open) {
        log_event(LOG_ERROR, "store.open_fragment_missing", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin));
        return E_CORRUPT;
    }
    if (!gone)
        return E_AGAIN;
    if ((err = look_around(j)) < 0)
        return err;
    pthread_mutex_lock(&s->hub.lock);
    if ((gone = listed(j, f)))
        f->state = JL_FRAG_AWAY; /* heads stay: they must not go back when it returns */
    pthread_mutex_unlock(&s->hub.lock);
    if (gone)
        log_event(LOG_WARN, "store.fragment_missing", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin), LF_INT("end", f->end));
    return E_AGAIN;
}

void jl_loss_tick(struct jl_store *s, struct jl_journal *j)
{
    for (size_t i = 0; i < j->frags_n; i++) { /* the list itself changes on this thread only */
        struct jl_frag *f = j->frags[i];
        pthread_mutex_lock(&s->hub.lock);
        bool away = f->state == JL_FRAG_AWAY;
        pthread_mutex_unlock(&s->hub.lock);
        if (!away || !is_there(f))
            continue;
        pthread_mutex_lock(&s->hub.lock);
        if (f->state == JL_FRAG_AWAY)
            f->state = JL_FRAG_HERE;
        pthread_mutex_unlock(&s->hub.lock);
        log_event(LOG_WARN, "store.fragment_found", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin), LF_INT("end", f->end));
    }
}
