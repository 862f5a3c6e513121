/*
 * The file of the groups and the thread that writes it. All writes that are queued when a
 * transaction begins go into it: a thousand commits a second cost as many fsyncs as the disk can
 * do, not a thousand. A COMMIT that fails may yet be found after a crash; those writes were
 * answered with an error, so either outcome is what their callers must expect.
 *
 * SQLite in WAL mode with synchronous=FULL: a COMMIT that returned is on the disk. The file is
 * locked exclusively, so no shared-memory file lies about.
 */
#include "gateway/groups/group_store.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sqlite.h"

/* From version i to i + 1. Written once, never changed: a new layout is a new script at the end. */
static const char *const migrations[] = {
    "CREATE TABLE groups(task BLOB NOT NULL, name BLOB NOT NULL, generation INTEGER NOT NULL,"
    " empty_since_ms INTEGER NOT NULL, PRIMARY KEY(task, name)) WITHOUT ROWID;"
    "CREATE TABLE offsets(task BLOB NOT NULL, name BLOB NOT NULL, topic BLOB NOT NULL,"
    " partition INTEGER NOT NULL, epoch INTEGER NOT NULL, offset INTEGER NOT NULL,"
    " commit_ms INTEGER NOT NULL, metadata BLOB NOT NULL,"
    " PRIMARY KEY(task, name, topic, partition, epoch)) WITHOUT ROWID;",
};
#define FORMAT ((int)(sizeof migrations / sizeof migrations[0]))

enum statement {
    ST_BEGIN,
    ST_COMMIT,
    ST_ROLLBACK,
    ST_PUT_GROUP,
    ST_DELETE_GROUP,
    ST_DELETE_OFFSETS,
    ST_PUT_OFFSET,
    ST_DELETE_OFFSET,
    ST_N,
};

static const char delete_offset[] = "DELETE FROM offsets WHERE task = ?1 AND name = ?2"
                                    " AND topic = ?3 AND partition = ?4 AND epoch = ?5";

static const char *const sql[ST_N] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_ROLLBACK] = "ROLLBACK",
    [ST_PUT_GROUP] = "INSERT OR REPLACE INTO groups VALUES(?1, ?2, ?3, ?4)",
    [ST_DELETE_GROUP] = "DELETE FROM groups WHERE task = ?1 AND name = ?2",
    [ST_DELETE_OFFSETS] = "DELETE FROM offsets WHERE task = ?1 AND name = ?2",
    [ST_PUT_OFFSET] = "INSERT OR REPLACE INTO offsets VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [ST_DELETE_OFFSET] = delete_offset,
};

struct group_store {
    sqlite3 *db;
    sqlite3_stmt *st[ST_N];
    pthread_t thread;
    bool started;
    group_step_fn *step;
    void *step_arg;
    bool died; /* a step said so: nothing is written any more */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    struct task_queue queue; /* lock */
    bool stopping;           /* lock */
};

/* --- SQLite --- */

static int failed(struct group_store *s, int rc, const char *what)
{
    log_peer(LOG_ERROR, "groups.database", LF_STR("what", what),
             LF_STR("text", sqlite3_errmsg(s->db)), LF_INT("code", rc));
    return err_from_sqlite(rc);
}

static int exec(struct group_store *s, const char *text)
{
    int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : failed(s, rc, "exec");
}

static int run(struct group_store *s, enum statement which)
{
    int rc = sqlite3_step(s->st[which]);

    (void)sqlite3_reset(s->st[which]);
    (void)sqlite3_clear_bindings(s->st[which]);
    return rc == SQLITE_DONE ? 0 : failed(s, rc, sql[which]);
}

/* An empty text is not null: its pointer is of no matter then. */
static int bind_span(sqlite3_stmt *st, int i, struct span v)
{
    return sqlite3_bind_blob64(st, i, v.n == 0 ? "" : (const char *)v.p, v.n, SQLITE_STATIC);
}

static int bind_group(sqlite3_stmt *st, const struct group_op *op)
{
    int rc = bind_span(st, 1, op->task);
    return rc == SQLITE_OK ? bind_span(st, 2, op->group) : rc;
}

static int bind_offset(sqlite3_stmt *st, const struct group_op *op)
{
    int rc = bind_group(st, op);

    if (rc == SQLITE_OK)
        rc = bind_span(st, 3, op->topic);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(st, 4, op->partition);
    return rc == SQLITE_OK ? sqlite3_bind_int(st, 5, op->epoch) : rc;
}

static int put_group(struct group_store *s, const struct group_op *op)
{
    sqlite3_stmt *st = s->st[ST_PUT_GROUP];
    int rc = bind_group(st, op);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(st, 3, op->generation);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(st, 4, op->empty_since_ms);
    return rc == SQLITE_OK ? run(s, ST_PUT_GROUP) : failed(s, rc, "bind");
}

static int put_offset(struct group_store *s, const struct group_op *op)
{
    sqlite3_stmt *st = s->st[ST_PUT_OFFSET];
    int rc = bind_offset(st, op);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(st, 6, op->offset);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(st, 7, op->commit_ms);
    if (rc == SQLITE_OK)
        rc = bind_span(st, 8, op->metadata);
    return rc == SQLITE_OK ? run(s, ST_PUT_OFFSET) : failed(s, rc, "bind");
}

static int delete_group(struct group_store *s, const struct group_op *op)
{
    int rc = bind_group(s->st[ST_DELETE_OFFSETS], op);

    if (rc == SQLITE_OK)
        rc = bind_group(s->st[ST_DELETE_GROUP], op);
    if (rc != SQLITE_OK)
        return failed(s, rc, "bind");
    int err = run(s, ST_DELETE_OFFSETS);
    return err < 0 ? err : run(s, ST_DELETE_GROUP);
}

static int apply(struct group_store *s, const struct group_op *op)
{
    switch (op->kind) {
    case GROUP_OP_PUT_GROUP:
        return put_group(s, op);
    case GROUP_OP_DELETE_GROUP:
        return delete_group(s, op);
    case GROUP_OP_PUT_OFFSET:
        return put_offset(s, op);
    case GROUP_OP_DELETE_OFFSET: {
        int rc = bind_offset(s->st[ST_DELETE_OFFSET], op);
        return rc == SQLITE_OK ? run(s, ST_DELETE_OFFSET) : failed(s, rc, "bind");
    }
    }
    return E_INVALID;
}

/* --- the thread --- */

static int step(struct group_store *s, enum group_store_step which)
{
    if (s->died)
        return E_IO;
    if (s->step != NULL && s->step(s->step_arg, which) < 0) {
        s->died = true;
        return E_IO;
    }
    return 0;
}

/* What is written to a file that was deleted, or that another took the place of, is gone with the
 * process. */
static int still_there(struct group_store *s)
{
    int moved = 0;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || !moved)
        return 0;
    log_peer(LOG_ERROR, "groups.database_moved",
             LF_STR("text", "the file was deleted or replaced while it was in use"));
    return E_IO;
}

static int write_batch(struct group_store *s, const struct task_queue *batch)
{
    const struct task *t;
    int err;

    if ((err = step(s, GROUP_STEP_BEGIN)) < 0 || (err = still_there(s)) < 0 ||
        (err = run(s, ST_BEGIN)) < 0)
        return err;
    STAILQ_FOREACH(t, batch, link)
    {
        const struct group_write *w = (const struct group_write *)t;
        for (size_t i = 0; i < w->ops_n; i++) {
            if ((err = step(s, GROUP_STEP_APPLY)) < 0 || (err = apply(s, &w->ops[i])) < 0)
                goto undo;
        }
    }
    if ((err = step(s, GROUP_STEP_COMMIT)) < 0 || (err = run(s, ST_COMMIT)) < 0)
        goto undo;
    return step(s, GROUP_STEP_DONE);
undo:
    if (sqlite3_get_autocommit(s->db) == 0)
        (void)run(s, ST_ROLLBACK);
    return err;
}

static void answer(struct task_queue *batch, int err)
{
    while (!STAILQ_EMPTY(batch)) {
        struct group_write *w = (struct group_write *)STAILQ_FIRST(batch);
        STAILQ_REMOVE_HEAD(batch, link);
        w->err = err;
        executor_post(w->ex, &w->task);
    }
}

static void *thread_main(void *arg)
{
    struct group_store *s = arg;

    for (;;) {
        struct task_queue batch = STAILQ_HEAD_INITIALIZER(batch);
        pthread_mutex_lock(&s->lock);
        while (STAILQ_EMPTY(&s->queue) && !s->stopping)
            pthread_cond_wait(&s->woken, &s->lock);
        STAILQ_CONCAT(&batch, &s->queue);
        pthread_mutex_unlock(&s->lock);
        if (STAILQ_EMPTY(&batch))
            return NULL; /* stopping, and nothing left */
        answer(&batch, write_batch(s, &batch));
    }
}

void group_store_post(struct group_store *s, struct group_write *w)
{
    pthread_mutex_lock(&s->lock);
    STAILQ_INSERT_TAIL(&s->queue, &w->task, link);
    pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
}

void group_store_on_step(struct group_store *s, group_step_fn *fn, void *arg)
{
    s->step = fn;
    s->step_arg = arg;
}

/* --- opening and loading --- */

static int migrate(struct group_store *s, char *why, size_t why_bytes)
{
    sqlite3_stmt *st = NULL;
    int version = -1;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &st, NULL);

    if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
        version = sqlite3_column_int(st, 0);
    (void)sqlite3_finalize(st);
    if (version < 0)
        return failed(s, rc, "version");
    if (version > FORMAT) {
        snprintf(why, why_bytes, "the file of the groups has format %d, this program knows %d",
                 version, FORMAT);
        return E_VERSION;
    }
    for (; version < FORMAT; version++) {
        char bump[64];
        int err;
        snprintf(bump, sizeof bump, "PRAGMA user_version = %d; COMMIT;", version + 1);
        if ((err = exec(s, "BEGIN IMMEDIATE")) < 0 || (err = exec(s, migrations[version])) < 0 ||
            (err = exec(s, bump)) < 0)
            return err;
    }
    return 0;
}

static int open_file(struct group_store *s, const char *path, char *why, size_t why_bytes)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &s->db, flags, NULL);
    int err;

    if (rc != SQLITE_OK)
        return s->db == NULL ? E_NOMEM : failed(s, rc, "open");
    if ((err = exec(s, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                       "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;")) < 0 ||
        (err = migrate(s, why, why_bytes)) < 0)
        return err;
    for (int i = 0; i < ST_N; i++) {
        rc = sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->st[i], NULL);
        if (rc != SQLITE_OK)
            return failed(s, rc, sql[i]);
    }
    return 0;
}

static int start(struct group_store *s)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&s->thread, NULL, thread_main, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return E_NOMEM;
    pthread_setname_np(s->thread, "groups-store");
    s->started = true;
    return 0;
}

int group_store_open(const char *path, struct group_store **out, char *why, size_t why_bytes)
{
    struct group_store *s = mem_zalloc(sizeof *s);
    int err;

    *out = NULL;
    if (s == NULL)
        return E_NOMEM;
    STAILQ_INIT(&s->queue);
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes on Linux */
    (void)pthread_cond_init(&s->woken, NULL);
    if ((err = open_file(s, path, why, why_bytes)) < 0 || (err = start(s)) < 0) {
        if (why_bytes > 0 && why[0] == '\0')
            snprintf(why, why_bytes, "%s: %s", path,
                     s->db != NULL ? sqlite3_errmsg(s->db) : err_text(err));
        group_store_close(s);
        return err;
    }
    *out = s;
    return 0;
}

static struct span column(sqlite3_stmt *st, int i)
{
    const void *p = sqlite3_column_blob(st, i);
    return span_of(p == NULL ? "" : p, (size_t)sqlite3_column_bytes(st, i));
}

static int load_row(sqlite3_stmt *st, bool offsets, const struct group_visitor *v)
{
    struct group_op op = {.task = column(st, 0), .group = column(st, 1)};

    if (!offsets) {
        op.kind = GROUP_OP_PUT_GROUP;
        op.generation = sqlite3_column_int(st, 2);
        op.empty_since_ms = sqlite3_column_int64(st, 3);
        return v->group(v->arg, &op);
    }
    op.kind = GROUP_OP_PUT_OFFSET;
    op.topic = column(st, 2);
    op.partition = sqlite3_column_int(st, 3);
    op.epoch = sqlite3_column_int(st, 4);
    op.offset = sqlite3_column_int64(st, 5);
    op.commit_ms = sqlite3_column_int64(st, 6);
    op.metadata = column(st, 7);
    return v->offset(v->arg, &op);
}

static int load(struct group_store *s, const char *text, bool offsets,
                const struct group_visitor *v)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);
    int err = 0;

    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        if ((rc = sqlite3_step(st)) != SQLITE_ROW)
            break;
        if ((err = load_row(st, offsets, v)) < 0)
            break;
    }
    if (err == 0 && rc != SQLITE_DONE)
        err = failed(s, rc, text);
    (void)sqlite3_finalize(st);
    return err;
}

int group_store_load(struct group_store *s, const struct group_visitor *v)
{
    int err = load(s, "SELECT * FROM groups", false, v);
    return err < 0 ? err : load(s, "SELECT * FROM offsets", true, v);
}

void group_store_close(struct group_store *s)
{
    if (s == NULL)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_cond_signal(&s->woken);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    for (int i = 0; i < ST_N; i++)
        (void)sqlite3_finalize(s->st[i]);
    (void)sqlite3_close(s->db);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->woken);
    mem_free(s);
}
