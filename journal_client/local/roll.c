/*
 * Closing fragments, removing them, and the housekeeping tick. Committer thread.
 *
 * A close renames the file first and records it second; a crash between is mended by recovery, and
 * a record that fails is tried again before the journal takes another byte (`renamed`).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"
#include "journal_client/uuid.h"

int64_t jl_now_ms(const struct jl_store *s)
{
    return clock_wall_ns(s->hub.clock) / 1000000;
}

/* The SHA-1 so far, or from the file when the running one was given up. */
static int final_sha(struct jl_journal *j, int fd, char out[41])
{
    struct jl_frag *f = j->open;
    struct jl_blocks b;
    struct jl_sum sum;
    int err;

    if (j->sha == NULL) {
        if ((j->sha = jl_sha_new()) == NULL)
            return E_NOMEM;
        err = jl_index_scan(fd, f->begin, f->end, &f->store->probe, &b, &sum, j->sha);
        if (err < 0) {
            jl_sha_free(j->sha);
            j->sha = NULL;
            return err;
        }
        jl_index_fini(&b);
    }
    return jl_sha_peek(j->sha, out);
}

/* Content and times durable, before the name says that it is whole. */
static int settle_file(struct jl_store *s, struct jl_journal *j, int fd, int64_t mod_ms)
{
    const struct timespec at = {.tv_sec = mod_ms / 1000, .tv_nsec = mod_ms % 1000 * 1000000};
    const struct timespec times[2] = {at, at};

    /* Bytes of a failed group may lie behind the end. */
    if (ftruncate(fd, (off_t)(j->open->end - j->open->begin)) < 0)
        return err_from_errno(errno);
    if (futimens(fd, times) < 0)
        log_event(LOG_WARN, "store.file_time", LF_STR("journal", j->name), LF_ERRNO(errno));
    if (s->hooks.fdatasync(s->hooks.arg, fd) < 0) {
        log_event(LOG_ERROR, "store.sync", LF_STR("journal", j->name), LF_ERRNO(errno));
        return j->broken = E_IO;
    }
    return 0;
}

static int make_folders(struct jl_store *s, struct jl_journal *j)
{
    char *closed = jl_path_join(s->dir, "fragments", j->name);
    char *index = jl_path_join(s->dir, "index", j->name);
    int err = closed == NULL || index == NULL ? E_NOMEM : 0;

    if (err == 0 && (err = jl_mkdirs(closed, true)) == 0)
        err = jl_mkdirs(index, false);
    mem_free(closed);
    mem_free(index);
    return err;
}

static int sync_folders(struct jl_store *s, struct jl_journal *j)
{
    char *closed = jl_path_join(s->dir, "fragments", j->name);
    char *open = jl_path_join(s->dir, "open", j->name);
    int err = closed == NULL || open == NULL ? E_NOMEM : 0;

    if (err == 0 && (err = jl_sync_dir(closed)) == 0)
        err = jl_sync_dir(open);
    mem_free(closed);
    mem_free(open);
    return err;
}

static void save_index(struct jl_store *s, struct jl_journal *j)
{
    struct jl_frag *f = j->open;
    char *path = jl_path_index(s->dir, j->name, f->begin, f->end);

    if (path != NULL && jl_index_save(path, f->begin, f->end, &f->blocks) < 0)
        (void)unlink(path);
    mem_free(path);
}

/* First half: the file under its closed name. */
static int close_file(struct jl_store *s, struct jl_journal *j)
{
    struct jl_frag *f = j->open;
    char sha1[41];
    char *to = NULL;
    int fd, err;

    if (jl_frag_pin(f, false, &fd) < 0)
        return E_IO;
    int64_t mod_ms = jl_now_ms(s);
    int64_t clock_ms = jc_clock_unix_ms(f->sum.any_clock) + 1; /* rounded up: at least the clock */
    if (clock_ms > mod_ms)
        mod_ms = clock_ms;
    if ((err = final_sha(j, fd, sha1)) == 0 && (err = settle_file(s, j, fd, mod_ms)) == 0)
        err = make_folders(s, j);
    jl_frag_unpin(f);
    if (err < 0)
        return err;
    s->hooks.point(s->hooks.arg, "close.synced");
    save_index(s, j);
    if ((to = jl_path_closed(s->dir, j->name, f->begin, f->end, sha1)) == NULL)
        return E_NOMEM;
    if ((err = jl_frag_rename(f, to)) < 0) {
        mem_free(to);
        return err;
    }
    pthread_mutex_lock(&s->hub.lock);
    memcpy(f->sha1, sha1, sizeof f->sha1);
    f->mod_time_ms = mod_ms;
    pthread_mutex_unlock(&s->hub.lock);
    j->renamed = true;
    s->hooks.point(s->hooks.arg, "close.renamed");
    return 0;
}

static int reserve_frag(struct jl_store *s, struct jl_journal *j)
{
    int err = 0;

    pthread_mutex_lock(&s->hub.lock);
    if (j->frags_n == j->frags_cap) {
        size_t cap = j->frags_cap == 0 ? 8 : j->frags_cap * 2;
        struct jl_frag **v = mem_realloc(j->frags, cap * sizeof(struct jl_frag *));
        if (v == NULL) {
            err = E_NOMEM;
        } else {
            j->frags = v;
            j->frags_cap = cap;
        }
    }
    pthread_mutex_unlock(&s->hub.lock);
    return err;
}

static int record_close(struct jl_store *s, struct jl_journal *j)
{
    const struct jl_frag *f = j->open;
    int err;

    if ((err = jl_db_begin(s)) < 0)
        return err;
    if ((err = jl_db_run(s->db, JL_SQL_FRAG_ADD, "iiisiii", j->id, f->begin, f->end, f->sha1,
                         f->mod_time_ms, (int64_t)f->sum.max_clock, f->sum.content_end)) == 0)
        err = jl_db_run(s->db, JL_SQL_OPEN_BEGIN, "ii", j->id, f->end);
    if (err < 0) {
        jl_db_rollback(s);
        return err;
    }
    return jl_db_commit(s);
}

/* Second half: the record, and a new open fragment. */
int jl_roll_finish(struct jl_store *s, struct jl_journal *j)
{
    struct jl_frag *f = j->open;
    struct jl_frag *next = NULL;
    char *path = NULL;
    int err;

    if (!j->renamed)
        return 0;
    if ((err = sync_folders(s, j)) < 0 || (err = reserve_frag(s, j)) < 0 ||
        (err = jl_frag_new(s, f->end, f->end, &next)) < 0)
        goto out;
    err = E_NOMEM;
    if ((path = jl_path_open(s->dir, j->name, f->end)) == NULL)
        goto out;
    if ((err = record_close(s, j)) < 0)
        goto out;
    s->hooks.point(s->hooks.arg, "close.committed");
    jl_frag_set_path(next, path);
    next->open = true;
    path = NULL;
    pthread_mutex_lock(&s->hub.lock);
    f->open = false;
    j->frags[j->frags_n++] = f;
    j->open = next;
    pthread_mutex_unlock(&s->hub.lock);
    j->renamed = false;
    j->file_made = false;
    j->since_ms = 0;
    if (j->sha == NULL || jl_sha_reset(j->sha) < 0) {
        jl_sha_free(j->sha);
        j->sha = jl_sha_new(); /* NULL: computed from the file when it closes */
    }
    return 0;
out:
    mem_free(path);
    jl_frag_unref(next);
    return err;
}

static bool due(const struct jl_store *s, const struct jl_journal *j, const struct jc_spec *spec)
{
    int64_t limit = spec->fragment_bytes > 0 ? spec->fragment_bytes : s->fragment_bytes;

    if (j->open->end - j->open->begin >= limit)
        return true;
    return spec->fragment_age_ms > 0 && jl_now_ms(s) - j->since_ms >= spec->fragment_age_ms;
}

int jl_roll(struct jl_store *s, struct jl_journal *j, const struct jc_spec *spec, bool force)
{
    int err = 0;

    if (j->hub.deleted || j->broken < 0 || (j->open->begin == j->open->end && !j->renamed))
        return j->broken;
    if (!j->renamed && !force && !due(s, j, spec))
        return 0;
    /* Bytes behind the end may be those of a commit that recovery would find. */
    err = jl_db_settle(s);
    if (err == 0 && !j->renamed)
        err = close_file(s, j);
    if (err == 0)
        err = jl_roll_finish(s, j);
    if (err < 0)
        log_event(LOG_ERROR, "store.close_fragment", LF_STR("journal", j->name),
                  LF_INT("begin", j->open->begin), LF_ERR(err));
    return err;
}

/* --- removal --- */

static void drop_files(struct jl_store *s, struct jl_journal *j, struct jl_frag *f)
{
    char *index = jl_path_index(s->dir, j->name, f->begin, f->end);

    if (unlink(f->path) < 0 && errno != ENOENT)
        log_event(LOG_WARN, "store.remove", LF_STR("path", f->path), LF_ERRNO(errno));
    if (index != NULL)
        (void)unlink(index);
    mem_free(index);
}

/* Unlinked for good, so that the rows may go with the next removal. */
static void sync_closed(struct jl_store *s, struct jl_journal *j)
{
    char *folder = jl_path_join(s->dir, "fragments", j->name);
    int err = folder == NULL ? E_NOMEM : jl_sync_dir(folder);

    mem_free(folder);
    if (err < 0 && err != E_NOTFOUND)
        log_event(LOG_WARN, "store.sync_folder", LF_STR("journal", j->name), LF_ERR(err));
}

static int record_prefix(struct jl_store *s, struct jl_journal *j, int64_t end, int64_t log_start)
{
    int err;

    if ((err = jl_db_begin(s)) < 0)
        return err;
    /* The rows stay until the next removal, so that a crash leaves the names of what has to go. */
    if ((err = jl_db_run(s->db, JL_SQL_FRAGS_GONE, "i", j->id)) == 0 &&
        (err = jl_db_run(s->db, JL_SQL_FRAGS_GOING, "ii", j->id, end)) == 0)
        err = jl_db_run(s->db, JL_SQL_LOG_START, "ii", j->id, log_start);
    if (err < 0) {
        jl_db_rollback(s);
        return err;
    }
    return jl_db_commit(s);
}

int jl_remove_prefix(struct jl_store *s, struct jl_journal *j, size_t n)
{
    int64_t log_start = j->log_start;
    int err;

    /* Holes that were made and now lie at the front go along. */
    while (n < j->frags_n && j->frags[n]->state == JL_FRAG_REMOVED)
        n++;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (j->frags[i]->sum.content_end > log_start)
            log_start = j->frags[i]->sum.content_end;
    }
    struct jl_frag **gone = mem_array(n, sizeof(struct jl_frag *));
    if (gone == NULL)
        return E_NOMEM;
    if ((err = record_prefix(s, j, j->frags[n - 1]->end, log_start)) < 0) {
        mem_free(gone);
        return err;
    }
    s->hooks.point(s->hooks.arg, "remove.committed");
    pthread_mutex_lock(&s->hub.lock);
    memcpy(gone, j->frags, n * sizeof(struct jl_frag *));
    memmove(j->frags, j->frags + n, (j->frags_n - n) * sizeof(struct jl_frag *));
    j->frags_n -= n;
    j->log_start = log_start;
    if (log_start > j->hub.heads.log_start)
        j->hub.heads.log_start = log_start;
    jl_loss_front(j);
    jl_journal_set_first(j);
    jc_notify_followers(&j->hub);
    pthread_mutex_unlock(&s->hub.lock);
    log_event(LOG_INFO, "store.removed", LF_STR("journal", j->name), LF_UINT("fragments", n),
              LF_INT("log_start", log_start));
    for (size_t i = 0; i < n; i++) {
        drop_files(s, j, gone[i]);
        jl_frag_unref(gone[i]);
    }
    mem_free(gone);
    sync_closed(s, j);
    return 0;
}

int jl_remove_one(struct jl_store *s, struct jl_journal *j, size_t at)
{
    struct jl_frag *f = j->frags[at];
    bool front = true;
    int err;

    if (f->state == JL_FRAG_REMOVED)
        return E_NOTFOUND;
    for (size_t i = 0; i < at; i++)
        front = front && j->frags[i]->state == JL_FRAG_REMOVED;
    if (front)
        return jl_remove_prefix(s, j, at + 1);
    if ((err = jl_db_begin(s)) < 0)
        return err;
    if ((err = jl_db_run(s->db, JL_SQL_FRAG_SET, "iii", j->id, f->begin, (int64_t)JL_ROW_REMOVED)) <
        0) {
        jl_db_rollback(s);
        return err;
    }
    if ((err = jl_db_commit(s)) < 0)
        return err;
    pthread_mutex_lock(&s->hub.lock);
    f->state = JL_FRAG_REMOVED;
    jl_journal_set_first(j);
    jc_notify_followers(&j->hub);
    pthread_mutex_unlock(&s->hub.lock);
    drop_files(s, j, f);
    return 0;
}

/* --- the tick --- */

static void retain(struct jl_store *s, struct jl_journal *j, const struct jc_spec *spec)
{
    int64_t now = jl_now_ms(s);
    int64_t kept = j->open->end - j->open->begin;
    size_t n = 0;

    pthread_mutex_lock(&s->hub.lock);
    for (size_t i = 0; i < j->frags_n; i++)
        kept += j->frags[i]->state == JL_FRAG_REMOVED ? 0 : j->frags[i]->end - j->frags[i]->begin;
    for (; n < j->frags_n; n++) {
        const struct jl_frag *f = j->frags[n];
        bool old = spec->retention_ms > 0 && now - f->mod_time_ms > spec->retention_ms;
        bool much = spec->retention_bytes > 0 && kept > spec->retention_bytes;
        if (f->state == JL_FRAG_REMOVED)
            continue;
        if (!old && !much)
            break;
        kept -= f->end - f->begin;
    }
    while (n > 0 && j->frags[n - 1]->state == JL_FRAG_REMOVED)
        n--; /* remove_prefix takes them along when something before them goes */
    pthread_mutex_unlock(&s->hub.lock);
    int err = n == 0 ? 0 : jl_remove_prefix(s, j, n);
    if (err < 0)
        log_event(LOG_ERROR, "store.retention", LF_STR("journal", j->name), LF_ERR(err));
}

static void expire(struct jl_store *s)
{
    int64_t now = jl_now_ms(s);
    int err = jl_db_query(s->db, JL_SQL_KV_DUE, "i", now);

    if (err == 0) {
        err = jl_db_row(s->db, JL_SQL_KV_DUE);
        jl_db_end(s->db, JL_SQL_KV_DUE);
    }
    if (err != 1 || jl_db_begin(s) < 0)
        return;
    if (jl_db_run(s->db, JL_SQL_KV_EXPIRE, "i", now) < 0 || jl_db_commit(s) < 0)
        jl_db_rollback(s);
}

void jl_housekeeping(struct jl_store *s)
{
    for (size_t i = 0; i < s->hub.listing->n; i++) {
        const struct jc_journal *item = s->hub.listing->items[i];
        struct jl_journal *j = jl_of(item);
        jl_loss_tick(s, j);
        if (jl_roll(s, j, &item->spec, false) < 0)
            continue;
        retain(s, j, &item->spec);
    }
    expire(s);
    pthread_mutex_lock(&s->hub.lock);
    jc_retry_watchers(&s->hub);
    pthread_mutex_unlock(&s->hub.lock);
}
