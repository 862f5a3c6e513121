/*
 * What becomes of a closed fragment: its object is written below the file root, under the name that
 * a broker gives it, and after a while the listing of the store has it. Its content stays in
 * memory: a Read through the broker is served from there, unless the object was removed. Brokers
 * remove nothing: a bucket's policy does (the oldest), or `gazctl journals prune` (what is stored
 * for longer than the retention, wherever it lies), and the next listing tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

static const char *extension(Gz__Codec codec)
{
    switch ((int)codec) {
    case GZ__CODEC__CODEC_NONE:
        return ".raw";
    case GZ__CODEC__CODEC_GZIP:
        return ".gz";
    case GZ__CODEC__CODEC_ZSTANDARD:
        return ".zst";
    case GZ__CODEC__CODEC_SNAPPY:
        return ".sz";
    default:
        return "";
    }
}

static char *join(const char *a, const char *b)
{
    size_t n = strlen(a) + strlen(b) + 1;
    char *s = mem_alloc(n);

    if (s != NULL)
        (void)snprintf(s, n, "%s%s", a, b);
    return s;
}

static char *object_name(const struct si_journal *j, const struct si_fragment *f)
{
    uint8_t sum[20];
    char tail[128];
    int at;

    si_frag_sum(f, f->end, sum);
    at = snprintf(tail, sizeof tail, "/%016llx-%016llx-", (unsigned long long)f->begin,
                  (unsigned long long)f->end);
    for (size_t i = 0; i < sizeof sum; i++)
        at += snprintf(tail + at, sizeof tail - (size_t)at, "%02x", sum[i]);
    (void)snprintf(tail + at, sizeof tail - (size_t)at, "%s", extension(f->codec));
    return join(j->name, tail);
}

/* Makes the folders above path. */
static int make_folders(char *path)
{
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int rv = mkdir(path, 0755);
        *p = '/';
        if (rv < 0 && errno != EEXIST)
            return E_IO;
    }
    return 0;
}

static int write_file(const char *path, struct span bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = 0;

    if (fd < 0)
        return E_IO;
    while (bytes.n > 0 && err == 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n <= 0)
            err = E_IO;
        else
            bytes = span_of(bytes.p + n, bytes.n - (size_t)n);
    }
    if (close(fd) < 0)
        err = E_IO;
    return err;
}

static char *object_path(const struct stand_in *si, const struct si_fragment *f)
{
    static const char scheme[] = "file://";
    char *folder, *path;

    if (si->file_root == NULL || strncmp(f->store, scheme, sizeof scheme - 1) != 0)
        return NULL;
    if ((folder = join(si->file_root, f->store + sizeof scheme - 1)) == NULL)
        return NULL;
    path = join(folder, f->object);
    mem_free(folder);
    return path;
}

static int write_object(struct stand_in *si, struct si_journal *j, struct si_fragment *f)
{
    char *path = object_path(si, f);
    struct stand_in_fault fault;
    struct blob *b = NULL;
    int err;

    if (path == NULL)
        return 0;
    err = si_compress(f->codec, span_of(f->data, (size_t)(f->end - f->begin)), &b);
    if (err == 0 && si_fault_take(si, STAND_IN_STORE, j->name, &fault)) {
        if (fault.kind == STAND_IN_FILE_SHORT)
            b->len -= b->len / 3 + 1;
        else if (fault.kind == STAND_IN_FILE_WRONG)
            b->data[b->len / 2] ^= 0x20;
        else if (fault.kind == STAND_IN_FILE_GONE)
            goto out;
    }
    if (err == 0 && (err = make_folders(path)) == 0)
        err = write_file(path, blob_span(b));
out:
    blob_unref(b);
    mem_free(path);
    return err;
}

static void list_one(struct si_fragment *f)
{
    f->listed = true;
    f->mod_time_s = si_now_s();
}

int si_close(struct stand_in *si, struct si_journal *j, bool list_now)
{
    struct si_fragment *f = si_open(j);
    Gz__JournalSpec *spec;
    int err = 0;

    if (f != NULL && f->end > f->begin) {
        if ((spec = si_spec(j)) == NULL)
            return E_NOMEM;
        f->closed = true;
        f->closed_ms = si_now_ms();
        if (spec->fragment->n_stores > 0) {
            f->object = object_name(j, f);
            f->store = mem_strdup(spec->fragment->stores[0]);
            err = f->object == NULL || f->store == NULL ? E_NOMEM : write_object(si, j, f);
        }
        gz__journal_spec__free_unpacked(spec, NULL);
    }
    for (size_t i = 0; i < j->n && list_now; i++) {
        if (j->frags[i]->object != NULL && !j->frags[i]->listed)
            list_one(j->frags[i]);
    }
    if (!list_now && si->o.listing_lag_ms >= 0)
        si_clock_in(si, si->o.listing_lag_ms);
    return err;
}

/* Drops fragment i from the index. */
static void drop(struct si_journal *j, size_t i)
{
    si_frag_free(j->frags[i]);
    j->n--;
    memmove(j->frags + i, j->frags + i + 1, (j->n - i) * sizeof *j->frags);
}

int64_t si_list_due(struct stand_in *si, struct si_journal *j)
{
    int64_t now = si_now_ms(), next = -1;
    bool changed = false;

    for (size_t i = j->n; i > 0; i--) {
        struct si_fragment *f = j->frags[i - 1];
        int64_t at = f->gone_ms;
        if (at == 0 && (si->o.listing_lag_ms < 0 || !f->closed || f->listed || f->object == NULL))
            continue;
        if (at == 0)
            at = f->closed_ms + si->o.listing_lag_ms;
        if (at > now)
            next = next < 0 || at - now < next ? at - now : next;
        else if (f->gone_ms != 0)
            drop(j, i - 1);
        else
            list_one(f);
        changed = changed || at <= now;
    }
    if (changed)
        si_wake_readers(j);
    return next;
}

char *si_url(const struct si_fragment *f)
{
    return f->listed ? join(f->store, f->object) : NULL;
}

/* --- removal --- */

static void unlink_object(const struct stand_in *si, const struct si_fragment *f)
{
    char *path = object_path(si, f);

    if (path != NULL)
        (void)unlink(path);
    mem_free(path);
}

/* The object is gone; the next listing tells. */
static void remove_object(struct stand_in *si, struct si_fragment *f)
{
    unlink_object(si, f);
    f->gone_ms = si_now_ms() + si->o.gone_lag_ms;
    si_clock_in(si, si->o.gone_lag_ms);
}

int si_do_prune(struct stand_in *si, const char *journal, unsigned n)
{
    struct si_journal *j = si_find(si, journal);

    if (j == NULL)
        return E_NOTFOUND;
    for (size_t i = 0; i < n && i < j->n && j->frags[i]->listed; i++)
        remove_object(si, j->frags[i]);
    if (si->o.gone_lag_ms == 0)
        (void)si_list_due(si, j);
    return 0;
}

static int prune_aged(struct stand_in *si, struct si_journal *j)
{
    Gz__JournalSpec *spec = si_spec(j);

    if (spec == NULL)
        return E_NOMEM;
    int64_t retention = spec->fragment->retention == NULL ? 0 : spec->fragment->retention->seconds;
    gz__journal_spec__free_unpacked(spec, NULL);
    for (size_t i = 0; i < j->n; i++) {
        struct si_fragment *f = j->frags[i];
        if (f->listed && f->gone_ms == 0 && si_now_s() - f->mod_time_s >= retention)
            remove_object(si, f);
    }
    if (si->o.gone_lag_ms == 0)
        (void)si_list_due(si, j);
    return 0;
}

int si_do_prune_aged(struct stand_in *si, const char *journal)
{
    struct si_journal *j = journal == NULL ? NULL : si_find(si, journal);
    int err = 0;

    if (journal != NULL)
        return j == NULL ? E_NOTFOUND : prune_aged(si, j);
    TAILQ_FOREACH(j, &si->journals, link)
    {
        if (err == 0)
            err = prune_aged(si, j);
    }
    return err;
}

int si_do_age(struct stand_in *si, const char *journal, unsigned n, int64_t seconds)
{
    struct si_journal *j = si_find(si, journal);

    if (j == NULL)
        return E_NOTFOUND;
    if (n > j->n)
        return E_RANGE;
    for (unsigned i = 0; i < n; i++)
        j->frags[i]->mod_time_s = j->frags[i]->listed ? si_now_s() - seconds : 0;
    return 0;
}

void si_do_forget(struct stand_in *si, const char *journal)
{
    struct si_journal *j, *next;

    for (j = TAILQ_FIRST(&si->deleted); j != NULL; j = next) {
        next = TAILQ_NEXT(j, link);
        if (strcmp(j->name, journal) != 0)
            continue;
        for (size_t i = 0; i < j->n; i++)
            unlink_object(si, j->frags[i]);
        TAILQ_REMOVE(&si->deleted, j, link);
        si_journal_free(j);
    }
}
