/*
 * The files of a catalog: found relative to the file that names them, read once each however often
 * they are named, remembered with their identity and time so that a change is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "gateway/catalog_int.h"

/* Owner: struct catalog_files. */
struct catalog_file {
    char *path;
    bool there;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    struct timespec ctime;
};

static void stamp(const struct stat *st, struct catalog_file *f)
{
    f->there = true;
    f->dev = st->st_dev;
    f->ino = st->st_ino;
    f->size = st->st_size;
    f->mtime = st->st_mtim;
    f->ctime = st->st_ctim;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void catalog_files_fini(struct catalog_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        mem_free(f->list[i].path);
    mem_free(f->list);
    *f = (struct catalog_files){0};
}

int catalog_files_copy(const struct catalog_files *from, struct catalog_files *out)
{
    *out = (struct catalog_files){0};
    out->list = mem_array(from->n == 0 ? 1 : from->n, sizeof *out->list);
    if (out->list == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < from->n; i++) {
        out->list[i] = from->list[i];
        out->n = i + 1;
        if ((out->list[i].path = mem_strdup(from->list[i].path)) == NULL) {
            catalog_files_fini(out);
            return E_NOMEM;
        }
    }
    return 0;
}

static bool same_file(const struct catalog_file *a, const struct catalog_file *b)
{
    return a->there == b->there && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

bool catalog_files_restamp(struct catalog_files *f)
{
    bool changed = false;

    for (size_t i = 0; i < f->n; i++) {
        struct catalog_file *file = &f->list[i];
        struct catalog_file now = {.path = file->path};
        struct stat st;

        if (stat(file->path, &st) == 0)
            stamp(&st, &now);
        changed = changed || !same_file(file, &now);
        *file = now;
    }
    return changed;
}

/* Remembers that the path was looked at, as it was at the first look; st NULL: it is not there. */
static void remember(struct catalog_reader *r, const char *path, const struct stat *st)
{
    struct catalog_files *f = r->files;

    if (f == NULL || keymap_get(&r->looked, span_str(path)) != NULL)
        return;
    const char *kept = arena_strndup(&r->arena, path, strlen(path));
    if (kept == NULL || keymap_put(&r->looked, span_str(kept), r) < 0) {
        r->failed = true;
        return;
    }
    struct catalog_file *grown = mem_realloc(f->list, (f->n + 1) * sizeof *grown);
    if (grown == NULL) {
        r->failed = true;
        return;
    }
    f->list = grown;
    f->list[f->n] = (struct catalog_file){.path = mem_strdup(path)};
    if (f->list[f->n].path == NULL) {
        r->failed = true;
        return;
    }
    if (st != NULL)
        stamp(st, &f->list[f->n]);
    f->n++;
}

/* --- reading --- */

static void unreadable(struct catalog_reader *r, const struct cat_node *at, const char *path,
                       int err)
{
    const char *why = err == E_UNSUPPORTED ? "it is no regular file" : err_text(err);

    if (at == NULL)
        cat_fault(r, NULL, "cannot be read: %s", why);
    else
        cat_fault(r, at, "%.160s cannot be read: %s", path, why);
}

/* E_INVALID: a fault was said. */
static int read_bytes(struct catalog_reader *r, const struct cat_node *at, const char *path,
                      uint8_t **text, size_t *n)
{
    struct stat st;
    uint8_t *buf = NULL;
    int err = 0;

    *text = NULL;
    *n = 0;
    /* Neither the opening of a pipe nor the reading of a device may hold up the reload. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        err = E_UNSUPPORTED;
    else if (fd < 0 || (f = fdopen(fd, "rb")) == NULL)
        err = err_from_errno(errno);
    if (f == NULL) {
        if (fd >= 0)
            (void)close(fd);
        remember(r, path, NULL);
        unreadable(r, at, path, err);
        return E_INVALID;
    }
    bool ok = fstat(fileno(f), &st) == 0;
    remember(r, path, ok ? &st : NULL); /* before it is read: what changes meanwhile is seen */
    size_t cap = CATALOG_MAX_BYTES - r->bytes + 1;
    if (ok && S_ISREG(st.st_mode) && (uint64_t)st.st_size < cap)
        cap = (size_t)st.st_size + 1;
    if ((buf = mem_alloc(cap)) == NULL) {
        (void)fclose(f);
        r->failed = true;
        return E_NOMEM;
    }
    while (*n < cap && !feof(f) && !ferror(f))
        *n += fread(buf + *n, 1, cap - *n, f);
    bool failed = ferror(f) != 0;
    (void)fclose(f);
    r->bytes += *n;
    if (failed)
        unreadable(r, at, path, E_IO);
    else if (r->bytes > CATALOG_MAX_BYTES)
        cat_fault(r, at, "the files are longer than 64 MiB together");
    else {
        *text = buf;
        return 0;
    }
    mem_wipe(buf, *n);
    mem_free(buf);
    return E_INVALID;
}

static bool is_json(const char *path)
{
    size_t n = strlen(path);

    return n >= 5 && strcmp(path + n - 5, ".json") == 0;
}

/* A new source whose text is at hand. */
static struct cat_source *take(struct catalog_reader *r, const char *path, const char *name,
                               struct span text)
{
    uint32_t file = (uint32_t)r->sources_n;
    struct cat_source *s = &r->sources[r->sources_n++];

    s->path = arena_strndup(&r->arena, path, strlen(path));
    s->name = arena_strndup(&r->arena, name, strlen(name));
    if (s->path == NULL || s->name == NULL) {
        r->failed = true;
        r->sources_n--;
        return NULL;
    }
    s->root =
        is_json(path) ? cat_tree_json(&r->tree, file, text) : cat_tree_yaml(&r->tree, file, text);
    return s;
}

void cat_take_main(struct catalog_reader *r, const char *path, struct span text)
{
    char resolved[PATH_MAX];

    struct cat_source *s = take(r, realpath(path, resolved) == NULL ? path : resolved, path, text);
    if (s != NULL)
        s->imported = true;
}

void cat_open_main(struct catalog_reader *r, const char *path)
{
    uint8_t *text;
    size_t n;

    if (read_bytes(r, NULL, path, &text, &n) < 0)
        return;
    cat_take_main(r, path, span_of(text, n));
    mem_wipe(text, n); /* it holds tokens */
    mem_free(text);
}

/* --- other files --- */

/* The path that the URL means, beside the file of `at`; false: a fault was said. */
static bool path_of(struct catalog_reader *r, const struct cat_node *at, struct span url,
                    char out[PATH_MAX])
{
    const char *from = r->sources[at->file].path;
    const char *slash = strrchr(from, '/');
    const struct span scheme = span_str("file://");
    int n;

    if (span_has_prefix(url, scheme))
        url = span_of(url.p + scheme.n, url.n - scheme.n);
    const uint8_t *colon = memchr(url.p, ':', url.n);
    const uint8_t *path = memchr(url.p, '/', url.n);
    if (colon != NULL && (path == NULL || colon < path)) {
        cat_fault(r, at, "only files can be read, not \"%.*s\"", url.n > 100 ? 100 : (int)url.n,
                  (const char *)url.p);
        return false;
    }
    if (url.n == 0 || memchr(url.p, 0, url.n) != NULL) {
        cat_fault(r, at, "the name of a file belongs here");
        return false;
    }
    if (url.p[0] == '/' || slash == NULL)
        n = snprintf(out, PATH_MAX, "%.*s", SPAN_FMT(url));
    else
        n = snprintf(out, PATH_MAX, "%.*s/%.*s", (int)(slash - from), from, SPAN_FMT(url));
    if (n < 0 || n >= PATH_MAX) {
        cat_fault(r, at, "the name of the file is too long");
        return false;
    }
    return true;
}

static struct cat_source *find_source(struct catalog_reader *r, const struct cat_node *at,
                                      struct span url)
{
    char path[PATH_MAX], resolved[PATH_MAX];
    uint8_t *text;
    size_t n;

    if (!path_of(r, at, url, path))
        return NULL;
    if (realpath(path, resolved) == NULL) {
        int err = err_from_errno(errno);
        remember(r, path, NULL);
        unreadable(r, at, path, err);
        return NULL;
    }
    for (size_t i = 0; i < r->sources_n; i++) {
        if (strcmp(r->sources[i].path, resolved) == 0)
            return &r->sources[i];
    }
    if (r->sources_n == CATALOG_FILES_MAX) {
        cat_fault(r, at, "there are more than %d files", CATALOG_FILES_MAX);
        return NULL;
    }
    if (read_bytes(r, at, path, &text, &n) < 0)
        return NULL;
    struct cat_source *s = take(r, resolved, path, span_of(text, n));
    mem_wipe(text, n);
    mem_free(text);
    return s;
}

struct cat_source *cat_source(struct catalog_reader *r, const struct cat_node *at, struct span url)
{
    struct writer key;
    struct cat_source *s = NULL;

    wr_init(&key, url.n + 24);
    wr_printf(&key, "%u", at->file);
    wr_u8(&key, 0);
    wr_span(&key, url);
    if (wr_err(&key) < 0)
        r->failed = true;
    else if ((s = keymap_get(&r->by_url, blob_span(key.b))) == NULL &&
             (s = find_source(r, at, url)) != NULL) {
        const char *kept =
            arena_strndup(&r->arena, (const char *)blob_span(key.b).p, blob_span(key.b).n);
        if (kept == NULL || keymap_put(&r->by_url, span_of(kept, blob_span(key.b).n), s) < 0)
            r->failed = true;
    }
    wr_fini(&key);
    return s;
}
