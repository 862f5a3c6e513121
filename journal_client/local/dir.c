/*
 * Names, folders and their durability. A file is durable by name only when its folder was synced,
 * and a new folder when its parent was.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "journal_client/local/dir.h"

int jl_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = 0;

    if (fd < 0)
        return err_from_errno(errno);
    if (fsync(fd) < 0) {
        err = err_from_errno(errno);
        log_event(LOG_ERROR, "store.sync", LF_STR("path", path), LF_ERRNO(errno));
    }
    close(fd);
    return err;
}

/* Makes one folder; then syncs the parent, so that the name survives. */
static int make_one(char *path, char *slash, bool sync)
{
    if (mkdir(path, 0755) < 0) {
        if (errno == EEXIST)
            return 0;
        int e = errno;
        log_event(LOG_ERROR, "store.mkdir", LF_STR("path", path), LF_ERRNO(e));
        return err_from_errno(e);
    }
    if (!sync)
        return 0;
    char *up = slash;
    while (up > path && *--up != '/') {
    }
    if (up == path)
        return jl_sync_dir(*path == '/' ? "/" : ".");
    *up = '\0';
    int err = jl_sync_dir(path);
    *up = '/';
    return err;
}

int jl_mkdirs(const char *path, bool sync)
{
    char *copy = mem_strdup(path);
    int err = 0;

    if (copy == NULL)
        return E_NOMEM;
    size_t n = strlen(copy);
    struct stat st;
    if (stat(copy, &st) == 0 && S_ISDIR(st.st_mode))
        goto out;
    for (size_t i = 1; i <= n && err == 0; i++) {
        if (copy[i] != '/' && copy[i] != '\0')
            continue;
        char kept = copy[i];
        copy[i] = '\0';
        err = make_one(copy, copy + i, sync);
        copy[i] = kept;
    }
out:
    mem_free(copy);
    return err;
}

char *jl_path_join(const char *dir, const char *kind, const char *journal)
{
    size_t bytes = strlen(dir) + strlen(kind) + strlen(journal) + 3;
    char *p = mem_alloc(bytes);

    if (p != NULL)
        (void)snprintf(p, bytes, "%s/%s/%s", dir, kind, journal);
    return p;
}

static char *path_file(const char *dir, const char *kind, const char *journal, const char *file)
{
    size_t bytes = strlen(dir) + strlen(kind) + strlen(journal) + strlen(file) + 4;
    char *p = mem_alloc(bytes);

    if (p != NULL)
        (void)snprintf(p, bytes, "%s/%s/%s/%s", dir, kind, journal, file);
    return p;
}

char *jl_path_open(const char *dir, const char *journal, int64_t begin)
{
    char file[32];

    (void)snprintf(file, sizeof file, "%016llx.open", (unsigned long long)begin);
    return path_file(dir, "open", journal, file);
}

char *jl_path_closed(const char *dir, const char *journal, int64_t begin, int64_t end,
                     const char *sha1)
{
    char file[96];

    (void)snprintf(file, sizeof file, "%016llx-%016llx-%s.raw", (unsigned long long)begin,
                   (unsigned long long)end, sha1);
    return path_file(dir, "fragments", journal, file);
}

char *jl_path_index(const char *dir, const char *journal, int64_t begin, int64_t end)
{
    char file[64];

    (void)snprintf(file, sizeof file, "%016llx-%016llx.idx", (unsigned long long)begin,
                   (unsigned long long)end);
    return path_file(dir, "index", journal, file);
}

bool jl_name_parse(const char *name, int64_t *begin, int64_t *end, char sha1[41])
{
    uint64_t b, e, part;

    if (strlen(name) != 16 + 1 + 16 + 1 + 40 + 4 || name[16] != '-' || name[33] != '-' ||
        strcmp(name + 74, ".raw") != 0)
        return false;
    if (num_parse_hex(span_of(name, 16), &b) < 0 || num_parse_hex(span_of(name + 17, 16), &e) < 0)
        return false;
    for (size_t i = 0; i < 40; i += 8) {
        if (num_parse_hex(span_of(name + 34 + i, 8), &part) < 0)
            return false;
    }
    if (b >= e || e > INT64_MAX)
        return false;
    *begin = (int64_t)b;
    *end = (int64_t)e;
    memcpy(sha1, name + 34, 40);
    sha1[40] = '\0';
    return true;
}

int jl_remove_files(const char *folder, const char *suffix)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int err = 0;
    size_t n = strlen(suffix);

    if (d == NULL)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_from_errno(errno);
    while ((e = readdir(d)) != NULL) { // NOLINT(concurrency-mt-unsafe): nobody else has d
        size_t len = strlen(e->d_name);
        if (len < n || strcmp(e->d_name + len - n, suffix) != 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) < 0 && errno != ENOENT) {
            err = err_from_errno(errno);
            log_event(LOG_ERROR, "store.remove", LF_STR("folder", folder), LF_ERRNO(errno));
        }
    }
    closedir(d);
    (void)rmdir(folder); /* stays when journals lie below it */
    return err;
}

void jl_why(char *why, size_t why_bytes, const char *fmt, ...)
{
    va_list ap;

    if (why == NULL || why_bytes == 0)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(why, why_bytes, fmt, ap);
    va_end(ap);
}
