/*
 * From a folder to a running store. The database says what was committed; files follow:
 *
 *   open file longer than the head     the tail of an unfinished commit: cut
 *   open file shorter or missing       E_CORRUPT, unless it had been renamed and not yet recorded
 *   closed file without a record       left alone and logged; unlinked only when the database
 *                                      names it as removed
 *   record without a file              a hole until it is back; E_CORRUPT when they are many
 * (loss.h)
 *
 * First all journals are looked at, then anything is changed: a start that is refused leaves the
 * folder as it was.
 * The open fragment is read once, for its index and its SHA-1 (at most one fragment a journal). In
 * read-only mode all this happens in memory alone.
 */
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
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/request.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"

struct rec {
    struct jl_store *s;
    struct jl_journal *j;
    int64_t open_begin;
    struct jl_folder folder; /* its closed files */
    char *why;
    size_t why_bytes;
};

/* --- rows --- */

static int load_fragments(struct rec *r)
{
    struct jl_store *s = r->s;
    struct jl_journal *j = r->j;
    int err = jl_db_query(s->db, JL_SQL_FRAGMENTS, "i", j->id);
    size_t cap = 0;

    while (err == 0 && (err = jl_db_row(s->db, JL_SQL_FRAGMENTS)) == 1) {
        struct jl_frag *f;
        if (jl_db_i64(s->db, JL_SQL_FRAGMENTS, 6) == JL_ROW_GOING) {
            err = 0; /* removed already: jl_loss_orphans unlinks what is left */
            continue;
        }
        if (j->frags_n == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            struct jl_frag **v = mem_realloc(j->frags, cap * sizeof(struct jl_frag *));
            if (v == NULL) {
                err = E_NOMEM;
                break;
            }
            j->frags = v;
            j->frags_cap = cap;
        }
        if ((err = jl_frag_new(s, jl_db_i64(s->db, JL_SQL_FRAGMENTS, 0),
                               jl_db_i64(s->db, JL_SQL_FRAGMENTS, 1), &f)) < 0)
            break;
        j->frags[j->frags_n++] = f;
        (void)snprintf(f->sha1, sizeof f->sha1, "%s", jl_db_text(s->db, JL_SQL_FRAGMENTS, 2));
        f->mod_time_ms = jl_db_i64(s->db, JL_SQL_FRAGMENTS, 3);
        f->sum.max_clock = (uint64_t)jl_db_i64(s->db, JL_SQL_FRAGMENTS, 4);
        f->sum.content_end = jl_db_i64(s->db, JL_SQL_FRAGMENTS, 5);
        const int64_t row = jl_db_i64(s->db, JL_SQL_FRAGMENTS, 6);
        f->accepted = row == JL_ROW_LOST;
        f->state = row == JL_ROW_REMOVED ? JL_FRAG_REMOVED : JL_FRAG_HERE;
        char *path = jl_path_closed(s->dir, j->name, f->begin, f->end, f->sha1);
        if (path == NULL) {
            err = E_NOMEM;
            break;
        }
        jl_frag_set_path(f, path);
    }
    jl_db_end(s->db, JL_SQL_FRAGMENTS);
    return err;
}

/* --- the open file --- */

static int corrupt(struct rec *r, const char *what, int64_t have)
{
    jl_why(r->why, r->why_bytes,
           "journal %s: %s: the committed end is %lld, the open fragment begins at %lld, its file "
           "has %lld bytes",
           r->j->name, what, (long long)r->j->hub.heads.write_head, (long long)r->open_begin,
           (long long)have);
    log_event(LOG_ERROR, "store.corrupt", LF_STR("journal", r->j->name), LF_STR("what", what),
              LF_INT("write_head", r->j->hub.heads.write_head), LF_INT("bytes", have));
    return E_CORRUPT;
}

static int cut_tail(struct rec *r, int64_t have, int64_t want)
{
    log_event(LOG_WARN, "store.tail_cut", LF_STR("journal", r->j->name),
              LF_INT("bytes", have - want));
    if (r->s->read_only)
        return 0;
    if (truncate(r->j->open->path, (off_t)want) < 0) {
        log_event(LOG_ERROR, "store.cut", LF_STR("path", r->j->open->path), LF_ERRNO(errno));
        return err_from_errno(errno);
    }
    return 0;
}

/* The close got as far as the name. */
static int adopt(struct rec *r, const struct jl_found *f)
{
    struct jl_journal *j = r->j;
    char *path = jl_path_closed(r->s->dir, j->name, f->begin, f->end, f->sha1);
    struct stat st;

    if (path == NULL)
        return E_NOMEM;
    jl_frag_set_path(j->open, path);
    if (stat(path, &st) < 0 || st.st_size != f->end - f->begin)
        return corrupt(r, "the renamed fragment has another size", (int64_t)st.st_size);
    log_event(LOG_INFO, "store.close_resumed", LF_STR("journal", j->name),
              LF_INT("begin", f->begin));
    memcpy(j->open->sha1, f->sha1, sizeof f->sha1);
    j->open->mod_time_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    j->renamed = true;
    return 0;
}

static int check_file(struct rec *r)
{
    struct jl_journal *j = r->j;
    int64_t want = j->hub.heads.write_head - r->open_begin;
    struct stat st;

    bool there = stat(j->open->path, &st) == 0;
    int64_t have = there ? (int64_t)st.st_size : 0;
    if (want < 0)
        return corrupt(r, "the database contradicts itself", have);
    if (have < want) {
        const struct jl_found *f =
            jl_folder_find(&r->folder, r->open_begin, j->hub.heads.write_head, NULL);
        return f != NULL && !there ? adopt(r, f) : corrupt(r, "committed bytes are missing", have);
    }
    j->file_made = there;
    return have > want ? cut_tail(r, have, want) : 0;
}

/* What its bytes are, against its name or the seal of the last clean close. */
static int check_digest(struct rec *r)
{
    struct jl_journal *j = r->j;
    struct jl_frag *f = j->open;
    char sha1[41];
    int err;

    if ((err = jl_sha_peek(j->sha, sha1)) < 0)
        return err;
    if (j->renamed && strcmp(sha1, f->sha1) != 0)
        return corrupt(r, "the renamed fragment has another SHA-1", f->end - f->begin);
    if ((err = jl_seal_compare(r->s, j, sha1)) <= 0)
        return err;
    /* Its lines still are lines: readers get them, the operator gets to know. */
    log_event(LOG_ERROR, "store.damaged", LF_STR("journal", j->name), LF_INT("begin", f->begin),
              LF_INT("end", f->end));
    j->damaged = true;
    return 0;
}

/* Index, summary and running digest of the open fragment, by reading it once. */
static int scan_open(struct rec *r)
{
    struct jl_journal *j = r->j;
    struct jl_frag *f = j->open;
    int fd, err;

    if (f->begin == f->end)
        return 0;
    if (j->sha == NULL && (j->sha = jl_sha_new()) == NULL)
        return E_NOMEM;
    if (jl_frag_pin(f, false, &fd) < 0)
        return corrupt(r, "the open fragment cannot be read", 0);
    err = jl_index_scan(fd, f->begin, f->end, &r->s->probe, &f->blocks, &f->sum, j->sha);
    jl_frag_unpin(f);
    if (err == E_CORRUPT)
        return corrupt(r, "the committed end is not the end of a line", f->end - f->begin);
    return err < 0 ? err : check_digest(r);
}

static int open_fragment(struct rec *r)
{
    struct jl_journal *j = r->j;
    struct jl_frag *f = j->open;
    char *path = jl_path_open(r->s->dir, j->name, r->open_begin);
    int err;

    if (path == NULL)
        return E_NOMEM;
    jl_frag_set_path(f, path);
    f->begin = r->open_begin;
    f->end = j->hub.heads.write_head;
    f->blocks.base = f->begin / JC_BLOCK_BYTES;
    if ((err = check_file(r)) < 0 || (err = scan_open(r)) < 0)
        return err;
    /* The probe may have learnt: what the database knows is never taken back. */
    if (f->sum.content_end > j->hub.heads.content_end)
        j->hub.heads.content_end = f->sum.content_end;
    if (f->sum.max_clock > j->hub.heads.max_clock)
        j->hub.heads.max_clock = f->sum.max_clock;
    (void)jc_marks_merge(&j->hub.heads.marks, &f->sum.marks);
    if (j->renamed && !r->s->read_only)
        return jl_roll_finish(r->s, j);
    return 0;
}

/* What is there, and whether that is enough. Changes nothing. */
static int look_at_journal(struct rec *r)
{
    int err;

    if ((err = jl_db_marks_get(r->s->db, r->j->id, &r->j->hub.heads.marks)) < 0 ||
        (err = load_fragments(r)) < 0 || (err = jl_folder_list(r->s, r->j, &r->folder)) < 0)
        return err;
    jl_loss_judge(r->j, &r->folder);
    return 0;
}

static int recover_journal(struct rec *r)
{
    int err;

    if ((err = open_fragment(r)) < 0 || (err = jl_loss_settle(r->s, r->j)) < 0)
        return err;
    jl_loss_orphans(r->s, r->j, &r->folder);
    jl_journal_set_first(r->j);
    return 0;
}

/* --- the list --- */

struct rows {
    const struct jc_journal **v;
    struct rec *recs; /* one a journal */
    size_t n, cap;
};

static int load_labels(struct jl_store *s, int64_t id, struct jc_label **out, size_t *n)
{
    size_t cap = 0;
    int err = jl_db_query(s->db, JL_SQL_LABELS, "i", id);

    while (err == 0 && (err = jl_db_row(s->db, JL_SQL_LABELS)) == 1) {
        err = 0;
        if (*n == cap) {
            cap = cap == 0 ? 8 : cap * 2;
            struct jc_label *v = mem_realloc(*out, cap * sizeof *v);
            if (v == NULL) {
                err = E_NOMEM;
                break;
            }
            *out = v;
        }
        char *name = mem_strdup(jl_db_text(s->db, JL_SQL_LABELS, 0));
        char *value = mem_strdup(jl_db_text(s->db, JL_SQL_LABELS, 1));
        (*out)[(*n)++] = (struct jc_label){name, value};
        if (name == NULL || value == NULL)
            err = E_NOMEM;
    }
    jl_db_end(s->db, JL_SQL_LABELS);
    return err;
}

static void free_labels(struct jc_label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_free((void *)(uintptr_t)labels[i].name);
        mem_free((void *)(uintptr_t)labels[i].value);
    }
    mem_free(labels);
}

/* One row of the journal table into a journal object with its committed heads. */
static int row_journal(struct jl_store *s, struct rec *r, const struct jc_journal **out)
{
    struct jl_db *db = s->db;
    const enum jl_sql q = JL_SQL_JOURNALS;
    struct jc_label *labels = NULL;
    size_t labels_n = 0;
    int64_t id = jl_db_i64(db, q, 0);
    int err;

    *out = NULL;
    if ((err = jl_journal_new(s, id, jl_db_text(db, q, 1), jl_db_i64(db, q, 2), &r->j)) < 0)
        return err;
    if ((err = load_labels(s, id, &labels, &labels_n)) == 0) {
        const struct jc_spec spec = {.name = r->j->name,
                                     .labels = labels,
                                     .labels_n = labels_n,
                                     .fragment_bytes = jl_db_i64(db, q, 4),
                                     .fragment_age_ms = jl_db_i64(db, q, 5),
                                     .retention_ms = jl_db_i64(db, q, 6),
                                     .retention_bytes = jl_db_i64(db, q, 7)};
        err = jc_journal_new_impl(&spec, r->j->create_revision, jl_db_i64(db, q, 3), r->j,
                                  jl_journal_unref, out);
    }
    free_labels(labels, labels_n);
    if (err < 0) {
        jl_journal_unref(r->j);
        return err;
    }
    r->j->hub.heads = (struct jc_heads){.write_head = jl_db_i64(db, q, 8),
                                        .content_end = jl_db_i64(db, q, 9),
                                        .max_clock = (uint64_t)jl_db_i64(db, q, 10),
                                        .log_start = jl_db_i64(db, q, 11)};
    r->j->log_start = r->j->hub.heads.log_start;
    r->open_begin = jl_db_i64(db, q, 12);
    r->j->since_ms = jl_db_i64(db, q, 13);
    return 0;
}

static int grow_rows(struct rows *rows)
{
    size_t cap = rows->cap == 0 ? 64 : rows->cap * 2;
    const struct jc_journal **v = mem_realloc(rows->v, cap * sizeof *v);

    if (v != NULL)
        rows->v = v;
    struct rec *recs = mem_realloc(rows->recs, cap * sizeof *recs);
    if (recs != NULL)
        rows->recs = recs;
    if (v == NULL || recs == NULL)
        return E_NOMEM;
    rows->cap = cap;
    return 0;
}

/* All rows first: recovery of a journal may write, which must not meet an open query. */
// NOLINTNEXTLINE(readability-non-const-parameter): written through struct rec
static int load_rows(struct jl_store *s, struct rows *rows, char *why, size_t why_bytes)
{
    int err = jl_db_query(s->db, JL_SQL_JOURNALS, "");

    while (err == 0 && (err = jl_db_row(s->db, JL_SQL_JOURNALS)) == 1) {
        if (rows->n == rows->cap && (err = grow_rows(rows)) < 0)
            break;
        rows->recs[rows->n] = (struct rec){.s = s, .why = why, .why_bytes = why_bytes};
        if ((err = row_journal(s, &rows->recs[rows->n], &rows->v[rows->n])) < 0)
            break;
        rows->n++;
    }
    jl_db_end(s->db, JL_SQL_JOURNALS);
    return err;
}

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        jl_folder_fini(&rows->recs[i].folder);
        jc_journal_unref(rows->v[i]);
    }
    mem_free(rows->v);
    mem_free(rows->recs);
}

/* All journals are looked at before one is refused, so that the text tells of all. */
static int look_at_all(struct jl_store *s, struct rows *rows, char *why, size_t why_bytes)
{
    size_t refused = 0;
    char text[480];
    int err = 0;

    for (size_t i = 0; i < rows->n && err == 0; i++) {
        const struct jl_journal *j = rows->recs[i].j;
        err = look_at_journal(&rows->recs[i]);
        if (err == 0 && jl_loss_refused(&j->loss) && refused++ == 0)
            jl_loss_text(j, text, sizeof text);
    }
    if (err < 0 || refused == 0 || s->accept_lost)
        return err;
    if (refused == 1)
        jl_why(why, why_bytes, "%s", text);
    else
        jl_why(why, why_bytes, "%zu journals lack fragments; %s", refused, text);
    log_event(LOG_ERROR, "store.refused", LF_UINT("journals", refused), LF_STR("first", text));
    return E_CORRUPT;
}

/* Deletions that a crash interrupted. */
static int empty_trash(struct jl_store *s)
{
    int err;

    for (;;) {
        if ((err = jl_db_query(s->db, JL_SQL_TRASH_NEXT, "")) < 0)
            return err;
        err = jl_db_row(s->db, JL_SQL_TRASH_NEXT);
        char *name = err == 1 ? mem_strdup(jl_db_text(s->db, JL_SQL_TRASH_NEXT, 0)) : NULL;
        jl_db_end(s->db, JL_SQL_TRASH_NEXT);
        if (err <= 0)
            return err;
        err = name == NULL ? E_NOMEM : jl_trash_empty(s, name);
        if (err == 0 && (err = jl_db_begin(s)) == 0) {
            if ((err = jl_db_run(s->db, JL_SQL_TRASH_DEL, "s", name)) < 0)
                jl_db_rollback(s);
            else
                err = jl_db_commit(s);
        }
        mem_free(name);
        if (err < 0)
            return err;
    }
}

int jl_recover(struct jl_store *s, char *why, size_t why_bytes)
{
    struct rows rows = {0};
    int64_t clock = 0;
    int err;

    if ((err = jl_db_meta(s->db, "revision", &s->revision)) < 0 ||
        (err = jl_db_meta(s->db, "last_clock", &clock)) < 0)
        return err;
    jc_txn_clock_init(&s->txn_clock, s->hub.clock, (uint64_t)clock);
    s->clock_saved = (uint64_t)clock;
    if ((err = load_rows(s, &rows, why, why_bytes)) < 0 ||
        (err = look_at_all(s, &rows, why, why_bytes)) < 0)
        goto out;
    if (!s->read_only && (err = empty_trash(s)) < 0)
        goto out;
    for (size_t i = 0; i < rows.n && err == 0; i++)
        err = recover_journal(&rows.recs[i]);
    if (err == 0)
        err = jc_listing_new(s->revision, rows.v, rows.n, &s->hub.listing);
out:
    free_rows(&rows);
    return err;
}
