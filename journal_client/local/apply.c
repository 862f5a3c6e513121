/*
 * Changes of the journal list: compare-and-set, all or none, one revision each. Committer thread.
 * A deletion commits first and removes files after; until they are gone the name lies in `trash`,
 * so that neither a crash nor a re-creation can meet old bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/request.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/store_int.h"

void jl_changes_free(struct jc_change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* A copied spec is the spec of a journal value that nobody else holds. */
        if (changes[i].upsert != NULL)
            jc_journal_unref(
                (const struct jc_journal *)(const void *)((const char *)changes[i].upsert -
                                                          offsetof(struct jc_journal, spec)));
        mem_free((void *)(uintptr_t)changes[i].delete_name);
    }
    mem_free(changes);
}

static int copy_changes(const struct jc_change *c, size_t n, struct jc_change **out)
{
    struct jc_change *copy = mem_array(n, sizeof *copy);
    int err = 0;

    *out = NULL;
    if (copy == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n && err == 0; i++) {
        copy[i].expect_mod_revision = c[i].expect_mod_revision;
        if (c[i].upsert != NULL) {
            const struct jc_journal *j;
            if ((err = jc_journal_new(c[i].upsert, 0, 0, &j)) == 0)
                copy[i].upsert = &j->spec;
        }
        if (err == 0 && c[i].delete_name != NULL &&
            (copy[i].delete_name = mem_strdup(c[i].delete_name)) == NULL)
            err = E_NOMEM;
    }
    if (err < 0)
        jl_changes_free(copy, n);
    else
        *out = copy;
    return err;
}

static bool ends_with(struct span s, const char *suffix)
{
    struct span x = span_str(suffix);

    return s.n >= x.n && memcmp(s.p + s.n - x.n, x.p, x.n) == 0;
}

/* What the broker allows but our file layout cannot hold: a folder must not look like a file.
 * JL_NAME_RULE says it to people. */
static bool segments_ok(const char *name)
{
    for (const char *p = name; *p != '\0';) {
        struct span seg = span_of(p, strcspn(p, "/"));
        if (seg.n > JL_SEGMENT_MAX || ends_with(seg, ".open") || ends_with(seg, ".raw") ||
            ends_with(seg, ".idx"))
            return false;
        p += seg.n + (p[seg.n] == '/' ? 1 : 0);
    }
    return true;
}

static const char *name_of(const struct jc_change *c)
{
    return c->upsert != NULL ? c->upsert->name : c->delete_name;
}

static int check_one(const struct jl_store *s, const struct jc_change *c)
{
    const char *why = NULL;

    if ((c->upsert == NULL) == (c->delete_name == NULL) || c->expect_mod_revision < -1)
        return E_INVALID;
    if (c->upsert != NULL && (jc_spec_check(c->upsert, &why) < 0 || !segments_ok(c->upsert->name)))
        return E_INVALID;
    const struct jc_journal *now = jc_listing_find(s->hub.listing, span_str(name_of(c)));
    int64_t expect = c->expect_mod_revision;
    if (now == NULL)
        return c->delete_name != NULL ? E_NOTFOUND : expect > 0 ? E_CONFLICT : 0;
    return expect >= 0 && expect != now->mod_revision ? E_CONFLICT : 0;
}

static int check_all(const struct jl_store *s, const struct jc_change *c, size_t n)
{
    int err;

    for (size_t i = 0; i < n; i++) {
        if ((err = check_one(s, &c[i])) < 0)
            return err;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(name_of(&c[k]), name_of(&c[i])) == 0)
                return E_INVALID;
        }
    }
    return 0;
}

/* --- the database's side --- */

static int put_labels(struct jl_store *s, int64_t id, const struct jc_spec *spec)
{
    int err = jl_db_run(s->db, JL_SQL_LABELS_DEL, "i", id);

    for (size_t i = 0; i < spec->labels_n && err == 0; i++)
        err = jl_db_run(s->db, JL_SQL_LABEL_ADD, "iss", id, spec->labels[i].name,
                        spec->labels[i].value);
    return err;
}

/* Files of a deleted journal of that name may still lie there. */
static int claim_name(struct jl_store *s, const char *name)
{
    int err = jl_db_query(s->db, JL_SQL_TRASH_GET, "s", name);

    if (err < 0)
        return err;
    err = jl_db_row(s->db, JL_SQL_TRASH_GET);
    jl_db_end(s->db, JL_SQL_TRASH_GET);
    if (err < 0)
        return err;
    if (err == 1 && ((err = jl_trash_empty(s, name)) < 0 ||
                     (err = jl_db_run(s->db, JL_SQL_TRASH_DEL, "s", name)) < 0))
        return err;
    /* Of a database that was lost or put back: bytes that nobody may write over. */
    return jl_set_aside(s, name);
}

static int upsert(struct jl_store *s, const struct jc_spec *spec, int64_t revision,
                  const struct jc_journal **out)
{
    const struct jc_journal *now = jc_listing_find(s->hub.listing, span_str(spec->name));
    struct jl_journal *j = NULL;
    int err;

    *out = NULL;
    if (now != NULL) {
        j = jl_journal_ref(jl_of(now));
        err = jl_db_run(s->db, JL_SQL_JOURNAL_SET, "iiiiii", j->id, revision, spec->fragment_bytes,
                        spec->fragment_age_ms, spec->retention_ms, spec->retention_bytes);
    } else {
        if ((err = claim_name(s, spec->name)) < 0)
            return err;
        err = jl_db_run(s->db, JL_SQL_JOURNAL_ADD, "siiiii", spec->name, revision,
                        spec->fragment_bytes, spec->fragment_age_ms, spec->retention_ms,
                        spec->retention_bytes);
        if (err == 0)
            err = jl_journal_new(s, jl_db_last_id(s->db), spec->name, revision, &j);
    }
    if (err == 0 && (err = put_labels(s, j->id, spec)) == 0)
        err = jc_journal_new_impl(spec, j->create_revision, revision, j, jl_journal_unref, out);
    if (err < 0 && j != NULL)
        jl_journal_unref(j);
    return err;
}

static int erase(struct jl_store *s, const char *name)
{
    const struct jc_journal *item = jc_listing_find(s->hub.listing, span_str(name));
    int err;

    ASSERT(item != NULL); /* checked before */
    const struct jl_journal *j = jl_of(item);
    if ((err = jl_db_run(s->db, JL_SQL_JOURNAL_DEL, "i", j->id)) < 0 ||
        (err = jl_db_run(s->db, JL_SQL_LABELS_DEL, "i", j->id)) < 0 ||
        (err = jl_db_run(s->db, JL_SQL_FRAGS_DEL, "i", j->id)) < 0 ||
        (err = jl_db_marks_drop(s->db, j->id)) < 0 || (err = jl_seal_drop(s, j)) < 0)
        return err;
    return jl_db_run(s->db, JL_SQL_TRASH_ADD, "s", name);
}

/* --- the listing's side --- */

static int by_name(const void *a, const void *b)
{
    const struct jc_journal *const *x = a;
    const struct jc_journal *const *y = b;

    return strcmp((*x)->spec.name, (*y)->spec.name);
}

static const struct jc_change *change_of(const struct jc_change *c, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name_of(&c[i]), name) == 0)
            return &c[i];
    }
    return NULL;
}

/* made[i] belongs to c[i]; NULL for a deletion. */
static int next_listing(struct jl_store *s, const struct jc_change *c, size_t n,
                        const struct jc_journal *const *made, int64_t revision,
                        const struct jc_listing **out)
{
    const struct jc_listing *old = s->hub.listing;
    const struct jc_journal **items = mem_array(old->n + n, sizeof *items);
    size_t at = 0;

    *out = NULL;
    if (items == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < old->n; i++) {
        if (change_of(c, n, old->items[i]->spec.name) == NULL)
            items[at++] = old->items[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (made[i] != NULL)
            items[at++] = made[i];
    }
    if (at > 1)
        qsort(items, at, sizeof *items, by_name);
    int err = jc_listing_new(revision, items, at, out);
    mem_free(items);
    return err;
}

static void publish(struct jl_store *s, const struct jc_listing *next, const struct jc_change *c,
                    size_t n)
{
    const struct jc_listing *old = s->hub.listing;

    pthread_mutex_lock(&s->hub.lock);
    s->hub.listing = next;
    for (size_t i = 0; i < n; i++) {
        if (c[i].delete_name == NULL)
            continue;
        const struct jc_journal *item = jc_listing_find(old, span_str(c[i].delete_name));
        ASSERT(item != NULL);
        struct jl_journal *j = jl_of(item);
        j->hub.deleted = true;
        jc_wake_waiters(&j->hub, E_NOTFOUND);
        jc_end_followers(&j->hub, E_NOTFOUND);
    }
    jc_notify_watchers(&s->hub);
    pthread_mutex_unlock(&s->hub.lock);
    jc_listing_unref(old);
}

int jl_trash_empty(struct jl_store *s, const char *name)
{
    static const char *const kinds[][2] = {
        {"open", ".open"}, {"fragments", ".raw"}, {"index", ".idx"}};
    int err = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && err == 0; i++) {
        char *folder = jl_path_join(s->dir, kinds[i][0], name);
        err = folder == NULL ? E_NOMEM : jl_remove_files(folder, kinds[i][1]);
        mem_free(folder);
    }
    return err;
}

/* The files of what was deleted. A failure is logged; the name stays in the trash. */
static void sweep(struct jl_store *s, const struct jc_change *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c[i].delete_name == NULL || jl_trash_empty(s, c[i].delete_name) < 0 ||
            jl_db_begin(s) < 0)
            continue;
        if (jl_db_run(s->db, JL_SQL_TRASH_DEL, "s", c[i].delete_name) < 0 || jl_db_commit(s) < 0)
            jl_db_rollback(s);
    }
}

static int change_rows(struct jl_store *s, const struct jc_change *c, size_t n, int64_t revision,
                       const struct jc_journal **made)
{
    int err = 0;

    for (size_t i = 0; i < n && err == 0; i++)
        err = c[i].upsert != NULL ? upsert(s, c[i].upsert, revision, &made[i])
                                  : erase(s, c[i].delete_name);
    if (err == 0)
        err = jl_db_run(s->db, JL_SQL_META_SET, "si", "revision", revision);
    return err;
}

static int apply(struct jl_store *s, const struct jc_change *c, size_t n)
{
    const struct jc_journal **made = NULL;
    const struct jc_listing *next = NULL;
    int64_t revision = s->revision + 1;
    int err;

    if ((err = check_all(s, c, n)) < 0 || n == 0)
        return err;
    if ((made = mem_array(n, sizeof *made)) == NULL)
        return E_NOMEM;
    if ((err = jl_db_begin(s)) == 0) {
        if ((err = change_rows(s, c, n, revision, made)) == 0 &&
            (err = next_listing(s, c, n, made, revision, &next)) == 0)
            err = jl_db_commit(s);
        if (err < 0)
            jl_db_rollback(s);
    }
    if (err == 0) {
        s->revision = revision;
        publish(s, next, c, n);
        s->hooks.point(s->hooks.arg, "apply.committed");
        sweep(s, c, n);
    } else {
        jc_listing_unref(next);
    }
    for (size_t i = 0; i < n; i++)
        jc_journal_unref(made[i]);
    mem_free(made);
    return err;
}

/* --- the request --- */

static void apply_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    rq->u.apply.done(rq->arg, rq->err, rq->u.apply.revision);
    jl_changes_free(rq->u.apply.changes, rq->u.apply.n);
    jl_req_free(rq);
}

static void run_apply(struct jl_store *s, struct jl_req *rq)
{
    int err = apply(s, rq->u.apply.changes, rq->u.apply.n);

    rq->u.apply.revision = s->revision;
    jl_req_answer(rq, err);
}

int jl_apply(struct jc_store *store, const struct jc_change *c, size_t n, struct executor *ex,
             jc_apply_fn *done, void *arg)
{
    struct jl_store *s = jl_store_of(store);
    struct jl_req *rq;
    int err;

    if (s->read_only)
        return E_DENIED;
    if ((err = jl_req_new(s, ex, apply_done, &rq)) < 0)
        return err;
    rq->run = run_apply;
    rq->arg = arg;
    rq->u.apply.done = done;
    rq->u.apply.n = n;
    if ((err = copy_changes(c, n, &rq->u.apply.changes)) < 0) {
        jl_req_free(rq);
        return err;
    }
    if ((err = jl_req_post(s, rq)) < 0) {
        jl_changes_free(rq->u.apply.changes, n);
        jl_req_free(rq);
    }
    return err;
}
