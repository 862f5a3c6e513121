/*
 * The database of the embedded store: the truth about commit ends, specs, fragments and key-values.
 * Used by one thread at a time (recovery, then the committer). Errors are logged here, with
 * SQLite's own words.
 */
#pragma once

#include "journal_client/local/store_int.h"

#define JL_DB_FORMAT 1

/* fragment.missing: what the database knows of the file. */
enum jl_row {
    JL_ROW_HERE = 0,
    JL_ROW_LOST = 1,    /* a person accepted that it is not there (format 1 before: any hole) */
    JL_ROW_REMOVED = 2, /* a hole made by request; its file goes */
    JL_ROW_GOING = 3,   /* removed with its prefix; the row stays until the file is gone */
};

/* clang-format off */
#define JL_SQL_TABLE(X)                                                                            \
    X(BEGIN,       "BEGIN IMMEDIATE")                                                              \
    X(COMMIT,      "COMMIT")                                                                       \
    X(ROLLBACK,    "ROLLBACK")                                                                     \
    X(META_GET,    "SELECT value FROM meta WHERE key = ?1")                                        \
    X(META_SET,    "INSERT OR REPLACE INTO meta(key, value) VALUES (?1, ?2)")                      \
    X(META_DROP,   "DELETE FROM meta WHERE key GLOB ?1")                                           \
    X(JOURNALS,    "SELECT id, name, create_rev, mod_rev, fragment_bytes, fragment_age_ms,"        \
                   " retention_ms, retention_bytes, write_head, content_end, max_clock,"           \
                   " log_start, open_begin, open_since_ms FROM journal ORDER BY name")             \
    X(LABELS,      "SELECT name, value FROM label WHERE journal = ?1 ORDER BY name, value")        \
    X(FRAGMENTS,   "SELECT begin, end, sha1, mod_time_ms, max_clock, content_end, missing"         \
                   " FROM fragment WHERE journal = ?1 ORDER BY begin")                             \
    X(JOURNAL_ADD, "INSERT INTO journal(name, create_rev, mod_rev, fragment_bytes,"                \
                   " fragment_age_ms, retention_ms, retention_bytes)"                              \
                   " VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6)")                                         \
    X(JOURNAL_SET, "UPDATE journal SET mod_rev = ?2, fragment_bytes = ?3, fragment_age_ms = ?4,"   \
                   " retention_ms = ?5, retention_bytes = ?6 WHERE id = ?1")                       \
    X(JOURNAL_DEL, "DELETE FROM journal WHERE id = ?1")                                            \
    X(LABEL_ADD,   "INSERT INTO label(journal, name, value) VALUES (?1, ?2, ?3)")                  \
    X(LABELS_DEL,  "DELETE FROM label WHERE journal = ?1")                                         \
    X(FRAGS_DEL,   "DELETE FROM fragment WHERE journal = ?1")                                      \
    X(HEAD,        "UPDATE journal SET write_head = ?2, content_end = ?3, max_clock = ?4,"         \
                   " open_since_ms = ?5 WHERE id = ?1")                                            \
    X(FRAG_ADD,    "INSERT INTO fragment(journal, begin, end, sha1, mod_time_ms, max_clock,"       \
                   " content_end, missing) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)")                \
    X(FRAG_SET,    "UPDATE fragment SET missing = ?3 WHERE journal = ?1 AND begin = ?2")           \
    X(FRAG_KNOWN,  "SELECT missing FROM fragment WHERE journal = ?1 AND begin = ?2 AND end = ?3"   \
                   " AND sha1 = ?4")                                                               \
    X(FRAGS_GOING, "UPDATE fragment SET missing = 3 WHERE journal = ?1 AND end <= ?2")             \
    X(FRAGS_GONE,  "DELETE FROM fragment WHERE journal = ?1 AND missing = 3")                      \
    X(OPEN_BEGIN,  "UPDATE journal SET open_begin = ?2, open_since_ms = 0 WHERE id = ?1")          \
    X(LOG_START,   "UPDATE journal SET log_start = ?2 WHERE id = ?1")                              \
    X(KV_GET,      "SELECT value, expires_ms FROM kv WHERE key = ?1 AND"                           \
                   " (expires_ms = 0 OR expires_ms > ?2)")                                         \
    X(KV_SCAN,     "SELECT key, value, expires_ms FROM kv WHERE key >= ?1 AND"                     \
                   " (expires_ms = 0 OR expires_ms > ?2) ORDER BY key")                            \
    X(KV_SET,      "INSERT OR REPLACE INTO kv(key, value, expires_ms) VALUES (?1, ?2, ?3)")        \
    X(KV_EXPIRE,   "DELETE FROM kv WHERE expires_ms > 0 AND expires_ms <= ?1")                     \
    X(KV_DUE,      "SELECT 1 FROM kv WHERE expires_ms > 0 AND expires_ms <= ?1 LIMIT 1")           \
    X(TRASH_ADD,   "INSERT OR REPLACE INTO trash(name) VALUES (?1)")                               \
    X(TRASH_DEL,   "DELETE FROM trash WHERE name = ?1")                                            \
    X(TRASH_GET,   "SELECT 1 FROM trash WHERE name = ?1")                                          \
    X(TRASH_NEXT,  "SELECT name FROM trash LIMIT 1")
/* clang-format on */

enum jl_sql {
#define X(name, text) JL_SQL_##name,
    JL_SQL_TABLE(X)
#undef X
        JL_SQL_N
};

struct sqlite3_stmt;

MUST_USE int jl_db_open(struct jl_store *s, char *why, size_t why_bytes);
void jl_db_close(struct jl_db *db); /* NULL is allowed */

/* A writing transaction. begin refuses while the outcome of an earlier failed commit is not settled
 * (decision 0001). commit: on failure the transaction is rolled back. */
MUST_USE int jl_db_begin(struct jl_store *s);
MUST_USE int jl_db_commit(struct jl_store *s);
void jl_db_rollback(struct jl_store *s);
/* A failed commit may still be found by a later recovery: files must stay as they are. */
bool jl_db_unsettled(const struct jl_db *db);
/* Ends that doubt, if there is one; begin does the same. Before a file is cut or renamed. */
MUST_USE int jl_db_settle(struct jl_store *s);

/* Runs a statement without rows. fmt: i = int64_t, s = const char * (text), b = struct span (blob).
 */
MUST_USE int jl_db_run(struct jl_db *db, enum jl_sql sql, const char *fmt, ...);
/* Starts a query; fetch rows with jl_db_row (1 = a row, 0 = no more, else E_*), always end it. */
MUST_USE int jl_db_query(struct jl_db *db, enum jl_sql sql, const char *fmt, ...);
MUST_USE int jl_db_row(struct jl_db *db, enum jl_sql sql);
void jl_db_end(struct jl_db *db, enum jl_sql sql);
int64_t jl_db_i64(struct jl_db *db, enum jl_sql sql, int col);
/* Borrowed until the next row or the end. */
struct span jl_db_span(struct jl_db *db, enum jl_sql sql, int col);
const char *jl_db_text(struct jl_db *db, enum jl_sql sql, int col); /* "" for null */
int64_t jl_db_last_id(struct jl_db *db);
/* 0 when absent. */
MUST_USE int jl_db_meta(struct jl_db *db, const char *key, int64_t *out);
/* The markers of a journal, kept among the meta values. Within a writing transaction: set, drop. */
MUST_USE int jl_db_marks_set(struct jl_db *db, int64_t journal, const struct jc_marks *m);
MUST_USE int jl_db_marks_get(struct jl_db *db, int64_t journal, struct jc_marks *out);
MUST_USE int jl_db_marks_drop(struct jl_db *db, int64_t journal);
/* SQLite's own check; E_CORRUPT with its words in why. */
MUST_USE int jl_db_integrity(struct jl_db *db, char *why, size_t why_bytes);
