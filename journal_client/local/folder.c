/*
 * Files of journals as the folder holds them, whatever the database says: the closed ones of one
 * journal, all of them, and those that belong to nobody. Blocks; recovery, check and committer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/store_int.h"

#define PATH_BYTES 4352
#define DEPTH_MAX  300 /* a journal's name has at most 512 bytes */

static int found_cmp(const void *a, const void *b)
{
    const struct jl_found *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int folder_add(struct jl_folder *fo, const struct jl_found *f)
{
    if (fo->n == fo->cap) {
        size_t cap = fo->cap == 0 ? 64 : fo->cap * 2;
        struct jl_found *v = mem_realloc(fo->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        fo->v = v;
        fo->cap = cap;
    }
    fo->v[fo->n++] = *f;
    return 0;
}

int jl_folder_list(const struct jl_store *s, const struct jl_journal *j, struct jl_folder *out)
{
    char *path = jl_path_join(s->dir, "fragments", j->name);
    struct dirent *e;
    struct stat st;
    int err = 0;

    if (path == NULL)
        return E_NOMEM;
    DIR *d = opendir(path);
    int e_open = errno;
    if (d == NULL && e_open != ENOENT && e_open != ENOTDIR) {
        log_event(LOG_ERROR, "store.folder", LF_STR("path", path), LF_ERRNO(e_open));
        err = err_from_errno(e_open);
    }
    mem_free(path);
    while (err == 0 && d != NULL &&
           (e = readdir(d)) != NULL) { // NOLINT(concurrency-mt-unsafe): nobody else has d
        struct jl_found f;
        if (!jl_name_parse(e->d_name, &f.begin, &f.end, f.sha1))
            continue;
        f.sound = fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
                  st.st_size == f.end - f.begin &&
                  faccessat(dirfd(d), e->d_name, R_OK, AT_EACCESS) == 0;
        err = folder_add(out, &f);
    }
    if (d != NULL)
        closedir(d);
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, found_cmp);
    return err;
}

void jl_folder_fini(struct jl_folder *fo)
{
    mem_free(fo->v);
    *fo = (struct jl_folder){0};
}

const struct jl_found *jl_folder_find(const struct jl_folder *fo, int64_t begin, int64_t end,
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

/* --- all journals --- */

struct walk {
    jl_walk_fn *fn;
    void *arg;
    char path[PATH_BYTES];
    size_t root; /* where the journal's name begins in path */
};

static bool ours(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && (strcmp(name + n - 4, ".raw") == 0 || strcmp(name + n - 5, ".open") == 0);
}

static int walk(struct walk *w, size_t len, int depth);

static int walk_entry(struct walk *w, size_t len, const struct dirent *e, int depth)
{
    struct stat st;

    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return 0;
    if (ours(e->d_name))
        return w->fn(w->arg, len > w->root ? w->path + w->root : "", e->d_name);
    int n = snprintf(w->path + len, sizeof w->path - len, "/%s", e->d_name);
    int err = 0;
    if (n > 0 && (size_t)n < sizeof w->path - len && lstat(w->path, &st) == 0 &&
        S_ISDIR(st.st_mode))
        err = walk(w, len + (size_t)n, depth - 1);
    w->path[len] = '\0';
    return err;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as a journal's name has parts
static int walk(struct walk *w, size_t len, int depth)
{
    struct dirent *e;
    int err = 0;

    if (depth == 0)
        return 0;
    DIR *d = opendir(w->path);
    if (d == NULL)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_from_errno(errno);
    while (err == 0 && (e = readdir(d)) != NULL) // NOLINT(concurrency-mt-unsafe): nobody else has d
        err = walk_entry(w, len, e, depth);
    closedir(d);
    return err;
}

int jl_walk(const char *folder, jl_walk_fn *fn, void *arg)
{
    struct walk w = {.fn = fn, .arg = arg};
    int n = snprintf(w.path, sizeof w.path, "%s", folder);

    if (n < 0 || (size_t)n >= sizeof w.path)
        return E_LIMIT;
    w.root = (size_t)n + 1; /* behind the slash */
    return walk(&w, (size_t)n, DEPTH_MAX);
}

struct example {
    char name[600];
};

static int note_example(void *arg, const char *journal, const char *file)
{
    struct example *x = arg;

    (void)snprintf(x->name, sizeof x->name, "%.512s/%.80s", journal, file);
    return 1;
}

int jl_loss_content(const struct jl_store *s, char *why, size_t why_bytes)
{
    static const char *const kinds[] = {"fragments", "open"};
    char path[PATH_BYTES];
    struct example x;

    for (size_t i = 0; i < 2; i++) {
        if (snprintf(path, sizeof path, "%s/%s", s->dir, kinds[i]) >= (int)sizeof path)
            return E_LIMIT;
        int found = jl_walk(path, note_example, &x);
        if (found < 0)
            return found;
        if (found == 0)
            continue;
        jl_why(
            why, why_bytes,
            "%s holds journals (%s/%.200s) but no database that knows them: sluice.db is missing "
            "or empty. Put sluice.db back from a backup, or move %s/fragments and %s/open away "
            "to begin with an empty store",
            s->dir, kinds[i], x.name, s->dir, s->dir);
        log_event(LOG_ERROR, "store.database_missing", LF_STR("dir", s->dir),
                  LF_STR("file", x.name));
        return E_CORRUPT;
    }
    return 0;
}

int jl_loss_database(const struct jl_store *s, char *why, size_t why_bytes)
{
    char path[PATH_BYTES];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/sluice.db", s->dir) >= (int)sizeof path)
        return E_LIMIT;
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) {
        jl_why(why, why_bytes, "cannot look at %s", path);
        return err_from_errno(errno);
    }
    if (there && st.st_size > 0)
        return 0;
    int err = jl_loss_content(s, why, why_bytes);
    if (err == 0 && s->read_only) {
        jl_why(why, why_bytes, "there is no store in %s", s->dir);
        err = E_NOTFOUND;
    }
    return err;
}

/* --- what belongs to nobody --- */

/* Moves the files of one folder (not below it). */
static int move_files(const char *from, const char *to)
{
    struct dirent *e;
    bool made = false;
    int err = 0;
    DIR *d = opendir(from);

    if (d == NULL)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_from_errno(errno);
    while (err == 0 &&
           (e = readdir(d)) != NULL) { // NOLINT(concurrency-mt-unsafe): nobody else has d
        char target[PATH_BYTES];
        if (!ours(e->d_name))
            continue;
        if (!made && (err = jl_mkdirs(to, true)) < 0)
            break;
        made = true;
        if (snprintf(target, sizeof target, "%s/%s", to, e->d_name) >= (int)sizeof target)
            err = E_LIMIT;
        else if (renameat(dirfd(d), e->d_name, AT_FDCWD, target) < 0)
            err = err_from_errno(errno);
        log_event(err < 0 ? LOG_ERROR : LOG_WARN, "store.set_aside", LF_STR("file", e->d_name),
                  LF_STR("to", to), LF_ERR(err));
    }
    closedir(d);
    if (made && err == 0 && (err = jl_sync_dir(to)) == 0)
        err = jl_sync_dir(from);
    return err;
}

int jl_set_aside(struct jl_store *s, const char *name)
{
    static const char *const kinds[] = {"fragments", "open"};
    char to[PATH_BYTES];
    char *index = jl_path_join(s->dir, "index", name);
    int err = index == NULL ? E_NOMEM : jl_remove_files(index, ".idx"); /* derived: of no worth */

    mem_free(index);
    for (size_t i = 0; i < 2 && err == 0; i++) {
        char *from = jl_path_join(s->dir, kinds[i], name);
        if (from == NULL)
            err = E_NOMEM;
        else if (snprintf(to, sizeof to, "%s/lost+found/%lld/%s/%s", s->dir, (long long)s->revision,
                          kinds[i], name) >= (int)sizeof to)
            err = E_LIMIT;
        else
            err = move_files(from, to);
        mem_free(from);
    }
    return err;
}
