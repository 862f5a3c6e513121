/*
 * SQLite behind a table of statements. WAL, synchronous=FULL: a commit is one fsync. The owner
 * locks the file exclusively, so that no shared-memory file lies about. Knows nothing of journals'
 * files.
 *
 * A COMMIT that fails leaves a doubt: its frames may be in the log although they were reported as
 * failed, and recovery after a crash would then find them. The next write therefore first puts a
 * harmless transaction over them; until that worked, nothing is written and files stay as they are.
 */
#include "journal_client/local/db.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sqlite.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/store_int.h"

struct jl_db {
    sqlite3 *h;
    sqlite3_stmt *stmts[JL_SQL_N];
    bool unsettled;
    int64_t fence;
};

static const char *const sql_text[] = {
#define X(name, text) text,
    JL_SQL_TABLE(X)
#undef X
};

static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE journal(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " create_rev INTEGER NOT NULL, mod_rev INTEGER NOT NULL, fragment_bytes INTEGER NOT NULL,"
    " fragment_age_ms INTEGER NOT NULL, retention_ms INTEGER NOT NULL,"
    " retention_bytes INTEGER NOT NULL, write_head INTEGER NOT NULL DEFAULT 0,"
    " content_end INTEGER NOT NULL DEFAULT 0, max_clock INTEGER NOT NULL DEFAULT 0,"
    " log_start INTEGER NOT NULL DEFAULT 0, open_begin INTEGER NOT NULL DEFAULT 0,"
    " open_since_ms INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE label(journal INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(journal, name, value)) WITHOUT ROWID;"
    "CREATE TABLE fragment(journal INTEGER NOT NULL, begin INTEGER NOT NULL, end INTEGER NOT NULL,"
    " sha1 TEXT NOT NULL, mod_time_ms INTEGER NOT NULL, max_clock INTEGER NOT NULL,"
    " content_end INTEGER NOT NULL, missing INTEGER NOT NULL,"
    " PRIMARY KEY(journal, begin)) WITHOUT ROWID;"
    "CREATE TABLE kv(key BLOB PRIMARY KEY, value BLOB NOT NULL, expires_ms INTEGER NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE INDEX kv_expires ON kv(expires_ms) WHERE expires_ms > 0;"
    "CREATE TABLE trash(name TEXT PRIMARY KEY) WITHOUT ROWID;"
    "PRAGMA user_version = 1;";
_Static_assert(JL_DB_FORMAT == 1, "user_version above");

#define REVISION_RANDOM_BITS 21

static int failed(struct jl_db *db, int rc, const char *what)
{
    log_event(LOG_ERROR, "store.database", LF_STR("what", what),
              LF_STR("text", sqlite3_errmsg(db->h)), LF_INT("code", rc));
    return err_from_sqlite(rc);
}

static int exec(struct jl_db *db, const char *sql)
{
    int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : failed(db, rc, "exec");
}

static int pragma_i64(struct jl_db *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->h, sql, -1, &st, NULL);

    if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
        *out = sqlite3_column_int64(st, 0);
    int err = rc == SQLITE_ROW ? 0 : failed(db, rc, "pragma");
    sqlite3_finalize(st);
    return err;
}

static int open_handle(struct jl_store *s, struct jl_db *db)
{
    char uri[4352], wal[4352];
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    int n = snprintf(wal, sizeof wal, "%s/sluice.db-wal", s->dir);
    size_t at = (size_t)snprintf(uri, sizeof uri, "file:");

    if (n < 0 || (size_t)n >= sizeof wal)
        return E_LIMIT;
    /* Each character that means something in a URI is escaped. */
    for (const char *p = s->dir; *p != '\0'; p++) {
        if (at + 64 > sizeof uri)
            return E_LIMIT;
        if (*p == '%' || *p == '?' || *p == '#')
            at += (size_t)snprintf(uri + at, sizeof uri - at, "%%%02x", (unsigned)*p);
        else
            uri[at++] = *p;
    }
    /* Without a log file nothing has to be recovered; immutable then avoids making one. */
    const char *how = !s->read_only            ? "mode=rwc"
                      : access(wal, F_OK) == 0 ? "mode=ro"
                                               : "mode=ro&immutable=1";
    (void)snprintf(uri + at, sizeof uri - at, "/sluice.db?%s", how);
    flags |= s->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc = sqlite3_open_v2(uri, &db->h, flags, NULL);
    if (rc != SQLITE_OK)
        return db->h == NULL ? E_NOMEM : failed(db, rc, "open");
    if (s->read_only)
        (void)sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

/* Where the revisions of a new store begin. Topic ids and leader epochs of readers hang on create
 * revisions: a store that is made where another one was lost must not repeat them. So they rise
 * with the time of making, by far more a second than a store counts, and hold some chance for
 * clocks that stand still. Below 2^53 (readers of JSON) until the year 2106. */
static int first_revision(const struct jl_store *s, int64_t *out)
{
    uint32_t chance = 0;
    ssize_t n;

    do {
        n = getrandom(&chance, sizeof chance, 0);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof chance)
        return E_IO;
    int64_t seconds = clock_wall_ns(s->hub.clock) / 1000000000;
    if (seconds < 0 || seconds > UINT32_MAX)
        seconds = UINT32_MAX;
    *out = (seconds << REVISION_RANDOM_BITS) +
           (int64_t)(chance & ((UINT32_C(1) << REVISION_RANDOM_BITS) - 1));
    return 0;
}

static int create(const struct jl_store *s, struct jl_db *db)
{
    char sql[160];
    int64_t revision;
    int err = first_revision(s, &revision);

    if (err < 0)
        return err;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO meta(key, value) VALUES ('revision', %" PRId64 "); COMMIT;",
                   revision);
    if ((err = exec(db, "BEGIN IMMEDIATE")) < 0)
        return err;
    if ((err = exec(db, schema)) == 0)
        err = exec(db, sql);
    return err; /* the handle is closed on failure: that rolls back */
}

static int setup(struct jl_store *s, struct jl_db *db, char *why, size_t why_bytes)
{
    int64_t version = 0;
    int err;

    if (!s->read_only) {
        if ((err = exec(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;")) < 0)
            return err;
    }
    if ((err = pragma_i64(db, "PRAGMA user_version", &version)) < 0)
        return err;
    if (version > JL_DB_FORMAT) {
        jl_why(why, why_bytes, "the folder has format %lld, this program knows %d",
               (long long)version, JL_DB_FORMAT);
        return E_VERSION;
    }
    if (version == 0) {
        if (s->read_only) {
            jl_why(why, why_bytes, "there is no store in %s", s->dir);
            return E_NOTFOUND;
        }
        if ((err = jl_loss_content(s, why, why_bytes)) < 0 || (err = create(s, db)) < 0)
            return err;
    }
    return 0;
}

int jl_db_open(struct jl_store *s, char *why, size_t why_bytes)
{
    struct jl_db *db = mem_zalloc(sizeof *db);
    int err;

    if (db == NULL)
        return E_NOMEM;
    if ((err = open_handle(s, db)) < 0 || (err = setup(s, db, why, why_bytes)) < 0) {
        if (db->h != NULL && why != NULL && why_bytes > 0 && why[0] == '\0')
            jl_why(why, why_bytes, "sluice.db: %s", sqlite3_errmsg(db->h));
        jl_db_close(db);
        return err;
    }
    s->db = db;
    return 0;
}

void jl_db_close(struct jl_db *db)
{
    if (db == NULL)
        return;
    for (size_t i = 0; i < JL_SQL_N; i++)
        sqlite3_finalize(db->stmts[i]);
    if (db->h != NULL)
        sqlite3_close(db->h);
    mem_free(db);
}

static int bind(struct jl_db *db, sqlite3_stmt *st, const char *fmt, va_list ap)
{
    int rc = SQLITE_OK;

    for (int i = 1; *fmt != '\0' && rc == SQLITE_OK; fmt++, i++) {
        if (*fmt == 'i') {
            rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
        } else if (*fmt == 's') {
            rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
        } else {
            struct span b = va_arg(ap, struct span);
            ASSERT(*fmt == 'b');
            rc = b.n == 0 ? sqlite3_bind_zeroblob(st, i, 0)
                          : sqlite3_bind_blob64(st, i, b.p, b.n, SQLITE_TRANSIENT);
        }
    }
    return rc == SQLITE_OK ? 0 : failed(db, rc, "bind");
}

static int start(struct jl_db *db, enum jl_sql sql, const char *fmt, va_list ap)
{
    if (db->stmts[sql] == NULL) {
        int rc = sqlite3_prepare_v3(db->h, sql_text[sql], -1, SQLITE_PREPARE_PERSISTENT,
                                    &db->stmts[sql], NULL);
        if (rc != SQLITE_OK)
            return failed(db, rc, sql_text[sql]);
    }
    int err = bind(db, db->stmts[sql], fmt, ap);
    if (err < 0)
        jl_db_end(db, sql);
    return err;
}

void jl_db_end(struct jl_db *db, enum jl_sql sql)
{
    sqlite3_reset(db->stmts[sql]);
    sqlite3_clear_bindings(db->stmts[sql]);
}

int jl_db_run(struct jl_db *db, enum jl_sql sql, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int err = start(db, sql, fmt, ap);
    va_end(ap);
    if (err < 0)
        return err;
    int rc = sqlite3_step(db->stmts[sql]);
    if (rc != SQLITE_DONE)
        err = failed(db, rc, sql_text[sql]);
    jl_db_end(db, sql);
    return err;
}

int jl_db_query(struct jl_db *db, enum jl_sql sql, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int err = start(db, sql, fmt, ap);
    va_end(ap);
    return err;
}

int jl_db_row(struct jl_db *db, enum jl_sql sql)
{
    int rc = sqlite3_step(db->stmts[sql]);

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : failed(db, rc, sql_text[sql]);
}

int64_t jl_db_i64(struct jl_db *db, enum jl_sql sql, int col)
{
    return sqlite3_column_int64(db->stmts[sql], col);
}

struct span jl_db_span(struct jl_db *db, enum jl_sql sql, int col)
{
    const void *p = sqlite3_column_blob(db->stmts[sql], col);

    return span_of(p, (size_t)sqlite3_column_bytes(db->stmts[sql], col));
}

const char *jl_db_text(struct jl_db *db, enum jl_sql sql, int col)
{
    const unsigned char *p = sqlite3_column_text(db->stmts[sql], col);

    return p == NULL ? "" : (const char *)p;
}

int64_t jl_db_last_id(struct jl_db *db)
{
    return sqlite3_last_insert_rowid(db->h);
}

bool jl_db_unsettled(const struct jl_db *db)
{
    return db->unsettled;
}

void jl_db_rollback(struct jl_store *s)
{
    /* SQLite has rolled back by itself after some errors. */
    if (sqlite3_get_autocommit(s->db->h) == 0 && jl_db_run(s->db, JL_SQL_ROLLBACK, "") < 0)
        s->db->unsettled = true; /* the next begin finds out */
}

static int commit(struct jl_store *s)
{
    int err = s->hooks.commit(s->hooks.arg);

    if (err == 0)
        err = jl_db_run(s->db, JL_SQL_COMMIT, "");
    if (err == 0 && s->hooks.committed != NULL)
        err = s->hooks.committed(s->hooks.arg);
    if (err == 0)
        return 0;
    s->db->unsettled = true;
    jl_db_rollback(s);
    return err;
}

static int settle(struct jl_store *s)
{
    int err = jl_db_run(s->db, JL_SQL_BEGIN, "");

    if (err == 0 && (err = jl_db_run(s->db, JL_SQL_META_SET, "si", "fence", ++s->db->fence)) == 0)
        err = commit(s);
    if (err < 0) {
        jl_db_rollback(s);
        return err;
    }
    s->db->unsettled = false;
    return 0;
}

int jl_db_settle(struct jl_store *s)
{
    return s->db->unsettled ? settle(s) : 0;
}

/* What is written to a file that was deleted, or that another took the place of, is gone with the
 * process. */
static int still_there(struct jl_store *s)
{
    int moved = 0;

    if (sqlite3_file_control(s->db->h, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        !moved)
        return 0;
    log_peer(LOG_ERROR, "store.database_moved",
             LF_STR("text", "the file was deleted or replaced while it was in use"));
    return E_IO;
}

int jl_db_begin(struct jl_store *s)
{
    int err;

    if ((err = jl_db_settle(s)) < 0 || (err = still_there(s)) < 0)
        return err;
    return jl_db_run(s->db, JL_SQL_BEGIN, "");
}

int jl_db_commit(struct jl_store *s)
{
    int err = commit(s);

    /* At once, so that in most cases the doubt ends before the answer goes out. */
    if (err < 0 && settle(s) < 0)
        log_event(LOG_ERROR, "store.unsettled", LF_ERR(err));
    return err;
}

int jl_db_meta(struct jl_db *db, const char *key, int64_t *out)
{
    int err = jl_db_query(db, JL_SQL_META_GET, "s", key);

    *out = 0;
    if (err < 0)
        return err;
    if ((err = jl_db_row(db, JL_SQL_META_GET)) == 1)
        *out = jl_db_i64(db, JL_SQL_META_GET, 0);
    jl_db_end(db, JL_SQL_META_GET);
    return err < 0 ? err : 0;
}

int jl_db_integrity(struct jl_db *db, char *why, size_t why_bytes)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->h, "PRAGMA integrity_check(1)", -1, &st, NULL);
    int err = E_CORRUPT;

    if (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(st, 0);
        if (text != NULL && strcmp((const char *)text, "ok") == 0)
            err = 0;
        else
            jl_why(why, why_bytes, "sluice.db: %s", text == NULL ? "?" : (const char *)text);
    } else {
        jl_why(why, why_bytes, "sluice.db: %s", sqlite3_errmsg(db->h));
    }
    sqlite3_finalize(st);
    return err;
}
