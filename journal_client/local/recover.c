/*
 * From a folder to a running store. The database says what was committed; files follow:
 *
 *   open file longer than the head     the tail of an unfinished commit: cut
 *   open file shorter or missing       E_CORRUPT, unless it had been renamed and not yet recorded
 *   closed file without a record       a removal that was not finished: deleted
 *   record without a file              a hole: recorded, logged, log_start rises for a prefix
 *
 * The open fragment is read once, for its index and its SHA-1 (at most one fragment a journal). In
 * read-only mode all this happens in memory alone.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/local_int.h"

struct rec {
    struct jl_store *s;
    struct jl_journal *j;
    int64_t open_begin;
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
        f->missing = jl_db_i64(s->db, JL_SQL_FRAGMENTS, 6) != 0;
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

/* --- closed files --- */

struct found {
    int64_t begin, end;
    char sha1[41];
    char name[80];
};

struct folder {
    struct found *v;
    size_t n, cap;
};

static int found_cmp(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int list_folder(struct rec *r, struct folder *fo)
{
    char *path = jl_path_join(r->s->dir, "fragments", r->j->name);
    struct dirent *e;
    DIR *d;

    if (path == NULL)
        return E_NOMEM;
    d = opendir(path);
    int e_open = errno;
    mem_free(path);
    if (d == NULL)
        return e_open == ENOENT || e_open == ENOTDIR ? 0 : err_from_errno(e_open);
    while ((e = readdir(d)) != NULL) { // NOLINT(concurrency-mt-unsafe): nobody else has d
        struct found f;
        if (!jl_name_parse(e->d_name, &f.begin, &f.end, f.sha1))
            continue;
        (void)snprintf(f.name, sizeof f.name, "%.79s", e->d_name);
        if (fo->n == fo->cap) {
            size_t cap = fo->cap == 0 ? 64 : fo->cap * 2;
            struct found *v = mem_realloc(fo->v, cap * sizeof *v);
            if (v == NULL) {
                closedir(d);
                return E_NOMEM;
            }
            fo->v = v;
            fo->cap = cap;
        }
        fo->v[fo->n++] = f;
    }
    closedir(d);
    if (fo->n > 1)
        qsort(fo->v, fo->n, sizeof *fo->v, found_cmp);
    return 0;
}

static const struct found *find_file(const struct folder *fo, int64_t begin, int64_t end,
                                     const char *sha1)
{
    size_t low = 0, high = fo->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (fo->v[mid].begin < begin)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < fo->n && fo->v[low].begin == begin; low++) {
        if (fo->v[low].end == end && (sha1 == NULL || strcmp(fo->v[low].sha1, sha1) == 0))
            return &fo->v[low];
    }
    return NULL;
}

/* The files that no record names and that no close was about to record. */
static void drop_orphans(struct rec *r, const struct folder *fo)
{
    struct jl_journal *j = r->j;

    for (size_t i = 0; i < fo->n; i++) {
        const struct found *f = &fo->v[i];
        size_t low = 0, high = j->frags_n;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (j->frags[mid]->begin < f->begin)
                low = mid + 1;
            else
                high = mid;
        }
        bool known = low < j->frags_n && j->frags[low]->begin == f->begin &&
                     j->frags[low]->end == f->end && strcmp(j->frags[low]->sha1, f->sha1) == 0;
        if (known && !j->frags[low]->missing)
            continue;
        /* Removed before the crash: everything below the first record, or a recorded hole. */
        int64_t first = j->frags_n > 0 ? j->frags[0]->begin : r->open_begin;
        char *path = jl_path_closed(r->s->dir, j->name, f->begin, f->end, f->sha1);
        bool removed = known || f->end <= first;
        log_event(LOG_WARN, removed ? "store.orphan_removed" : "store.orphan_ignored",
                  LF_STR("journal", j->name), LF_STR("file", f->name));
        if (removed && path != NULL && !r->s->read_only)
            (void)unlink(path);
        mem_free(path);
    }
}

/* Records without a file become holes. */
static int mark_missing(struct rec *r, const struct folder *fo)
{
    struct jl_journal *j = r->j;
    int err = 0;

    for (size_t i = 0; i < j->frags_n && err == 0; i++) {
        struct jl_frag *f = j->frags[i];
        if (f->missing || find_file(fo, f->begin, f->end, f->sha1) != NULL)
            continue;
        f->missing = true;
        log_event(LOG_WARN, "store.fragment_missing", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin), LF_INT("end", f->end));
        if (!r->s->read_only && (err = jl_db_begin(r->s)) == 0) {
            if ((err = jl_db_run(r->s->db, JL_SQL_FRAG_MISS, "ii", j->id, f->begin)) < 0)
                jl_db_rollback(r->s);
            else
                err = jl_db_commit(r->s);
        }
    }
    if (err < 0)
        return err;
    /* A missing prefix is a removal like any other. */
    if (j->frags_n == 0 || !j->frags[0]->missing)
        return 0;
    if (!r->s->read_only)
        return jl_remove_prefix(r->s, j, 1);
    for (size_t i = 0; i < j->frags_n && j->frags[i]->missing; i++) {
        if (j->frags[i]->sum.content_end > j->heads.log_start)
            j->heads.log_start = j->frags[i]->sum.content_end;
    }
    return 0;
}

/* --- the open file --- */

static int corrupt(struct rec *r, const char *what, int64_t have)
{
    jl_why(r->why, r->why_bytes,
           "journal %s: %s: the committed end is %lld, the open fragment begins at %lld, its file "
           "has %lld bytes",
           r->j->name, what, (long long)r->j->heads.write_head, (long long)r->open_begin,
           (long long)have);
    log_event(LOG_ERROR, "store.corrupt", LF_STR("journal", r->j->name), LF_STR("what", what),
              LF_INT("write_head", r->j->heads.write_head), LF_INT("bytes", have));
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
static int adopt(struct rec *r, const struct found *f)
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

static int check_file(struct rec *r, const struct folder *fo)
{
    struct jl_journal *j = r->j;
    int64_t want = j->heads.write_head - r->open_begin;
    struct stat st;

    bool there = stat(j->open->path, &st) == 0;
    int64_t have = there ? (int64_t)st.st_size : 0;
    if (want < 0)
        return corrupt(r, "the database contradicts itself", have);
    if (have < want) {
        const struct found *f = find_file(fo, r->open_begin, j->heads.write_head, NULL);
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

static int open_fragment(struct rec *r, const struct folder *fo)
{
    struct jl_journal *j = r->j;
    struct jl_frag *f = j->open;
    char *path = jl_path_open(r->s->dir, j->name, r->open_begin);
    int err;

    if (path == NULL)
        return E_NOMEM;
    jl_frag_set_path(f, path);
    f->begin = r->open_begin;
    f->end = j->heads.write_head;
    f->blocks.base = f->begin / JC_BLOCK_BYTES;
    if ((err = check_file(r, fo)) < 0 || (err = scan_open(r)) < 0)
        return err;
    /* The probe may have learnt: what the database knows is never taken back. */
    if (f->sum.content_end > j->heads.content_end)
        j->heads.content_end = f->sum.content_end;
    if (f->sum.max_clock > j->heads.max_clock)
        j->heads.max_clock = f->sum.max_clock;
    (void)jc_marks_merge(&j->heads.marks, &f->sum.marks);
    if (j->renamed && !r->s->read_only)
        return jl_roll_finish(r->s, j);
    return 0;
}

static int recover_journal(struct rec *r)
{
    struct folder fo = {0};
    int err;

    if ((err = jl_db_marks_get(r->s->db, r->j->id, &r->j->heads.marks)) == 0 &&
        (err = load_fragments(r)) == 0 && (err = list_folder(r, &fo)) == 0 &&
        (err = open_fragment(r, &fo)) == 0 && (err = mark_missing(r, &fo)) == 0)
        drop_orphans(r, &fo);
    jl_journal_set_first(r->j);
    mem_free(fo.v);
    return err;
}

/* --- the list --- */

struct rows {
    const struct jc_journal **v;
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
    r->j->heads = (struct jc_heads){.write_head = jl_db_i64(db, q, 8),
                                    .content_end = jl_db_i64(db, q, 9),
                                    .max_clock = (uint64_t)jl_db_i64(db, q, 10),
                                    .log_start = jl_db_i64(db, q, 11)};
    r->open_begin = jl_db_i64(db, q, 12);
    r->j->since_ms = jl_db_i64(db, q, 13);
    return 0;
}

/* All rows first: recovery of a journal may write, which must not meet an open query. */
static int load_rows(struct jl_store *s, struct rows *rows, int64_t **begins)
{
    int err = jl_db_query(s->db, JL_SQL_JOURNALS, "");

    while (err == 0 && (err = jl_db_row(s->db, JL_SQL_JOURNALS)) == 1) {
        struct rec r = {.s = s};
        if (rows->n == rows->cap) {
            size_t cap = rows->cap == 0 ? 64 : rows->cap * 2;
            const struct jc_journal **v = mem_realloc(rows->v, cap * sizeof *v);
            if (v != NULL)
                rows->v = v;
            int64_t *b = mem_realloc(*begins, cap * sizeof *b);
            if (b != NULL)
                *begins = b;
            if (v == NULL || b == NULL) {
                err = E_NOMEM;
                break;
            }
            rows->cap = cap;
        }
        if ((err = row_journal(s, &r, &rows->v[rows->n])) < 0)
            break;
        (*begins)[rows->n++] = r.open_begin;
    }
    jl_db_end(s->db, JL_SQL_JOURNALS);
    return err;
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

// NOLINTNEXTLINE(readability-non-const-parameter): written through struct rec
int jl_recover(struct jl_store *s, char *why, size_t why_bytes)
{
    struct rows rows = {0};
    int64_t *begins = NULL;
    int64_t clock = 0;
    int err;

    if ((err = jl_db_meta(s->db, "revision", &s->revision)) < 0 ||
        (err = jl_db_meta(s->db, "last_clock", &clock)) < 0)
        return err;
    jc_txn_clock_init(&s->txn_clock, s->clock, (uint64_t)clock);
    s->clock_saved = (uint64_t)clock;
    if (!s->read_only && (err = empty_trash(s)) < 0)
        return err;
    err = load_rows(s, &rows, &begins);
    for (size_t i = 0; i < rows.n && err == 0; i++) {
        ASSERT(rows.v[i] != NULL);
        struct rec r = {.s = s,
                        .j = jl_of(rows.v[i]),
                        .open_begin = begins[i],
                        .why = why,
                        .why_bytes = why_bytes};
        err = recover_journal(&r);
    }
    if (err == 0)
        err = jc_listing_new(s->revision, rows.v, rows.n, &s->listing);
    for (size_t i = 0; i < rows.n; i++)
        jc_journal_unref(rows.v[i]);
    mem_free(rows.v);
    mem_free(begins);
    return err;
}
