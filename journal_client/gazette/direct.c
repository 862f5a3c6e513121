/*
 * Reading stored fragments where they lie: a file below the mounted root of a file:// store, or an
 * object by its signed URL. Plain ones are read by ranges. Compressed ones have no offsets inside:
 * the first read inflates the whole fragment into a scratch file, checks its SHA-1, and later reads
 * come from there until the scratch budget, in bytes and in files, is used up. One that is damaged
 * is not tried again for a while, nor is a store that failed (object.c).
 *
 * What is read is checked: length and SHA-1 of what is inflated, or read as a whole; of a part of a
 * plain one the size of the file, or what the answer says (object.c).
 *
 * Jobs run on the I/O pool and end at home; scratch files are home's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/direct.h"

#define READ_BYTES (256u << 10)
#define SPOOLS_MAX 64    /* each holds a descriptor */
#define FAILED_MS  60000 /* a fragment that is damaged is not inflated again for so long */

enum spool_state { SPOOL_LOADING, SPOOL_READY, SPOOL_FAILED };

struct gz_spool {
    TAILQ_ENTRY(gz_spool) link;
    unsigned refs; /* home only: jobs and the list */
    int64_t create_revision, begin, end;
    char sha1[41];
    enum spool_state state;
    int64_t failed_ms;
    int fd;
    TAILQ_HEAD(, gz_job) waiters;
};

struct gz_job {
    struct task task;
    TAILQ_ENTRY(gz_job) link; /* waiters of a spool */
    struct gz_store *s;
    struct gz_journal *j; /* counted */
    struct gz_source src;
    int64_t begin, end; /* of the fragment */
    Gz__Codec codec;
    char sha1[41];
    int64_t at;
    size_t max;
    struct gz_spool *spool;
    bool loads;
    gz_direct_fn *done; /* NULL: forgotten */
    void *arg;
    int err;
    struct blob *bytes;
};

static void on_home(struct task *t);

/* --- the pool's part --- */

static int pread_full(int fd, uint8_t *to, size_t n, int64_t at)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_from_errno(errno);
        if (got == 0)
            return E_CORRUPT;
        to += got;
        n -= (size_t)got;
        at += got;
    }
    return 0;
}

static int read_file(struct gz_job *job)
{
    struct stat st;
    int err, fd = open(job->src.path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_from_errno(errno);
    if (fstat(fd, &st) < 0 || st.st_size != job->end - job->begin)
        err = E_CORRUPT;
    else
        err = pread_full(fd, job->bytes->data, job->max, job->at - job->begin);
    (void)close(fd);
    return err;
}

static int on_range_bytes(void *arg, struct span bytes)
{
    struct gz_job *job = arg;

    if (bytes.n > job->max - job->bytes->len)
        return E_CORRUPT; /* the whole object instead of the range */
    memcpy(job->bytes->data + job->bytes->len, bytes.p, bytes.n);
    job->bytes->len += bytes.n;
    return 0;
}

/* What was read is the whole fragment: then its sum is known. */
static int check_sum(const struct gz_job *job)
{
    struct gz_sha *sha;
    char hex[41];
    int err;

    if (job->sha1[0] == '\0' || (int64_t)job->max != job->end - job->begin)
        return 0;
    if ((err = gz_sha_new(&sha)) < 0)
        return err;
    if ((err = gz_sha_add(sha, blob_span(job->bytes))) == 0 && (err = gz_sha_hex(sha, hex)) == 0 &&
        strcmp(hex, job->sha1) != 0)
        err = E_CORRUPT;
    gz_sha_free(sha);
    return err;
}

static int read_plain(struct gz_job *job)
{
    int64_t from = job->at - job->begin;
    const struct gz_object_ask ask = {
        .from = from, .to = from + (int64_t)job->max - 1, .size = job->end - job->begin};
    int err;

    if (job->src.path != NULL) {
        if ((err = read_file(job)) == 0)
            job->bytes->len = job->max;
    } else {
        err = gz_http_get(job->s, job->src.url, &ask, on_range_bytes, job);
        if (err == 0 && job->bytes->len != job->max)
            err = E_CORRUPT;
    }
    return err == 0 ? check_sum(job) : err;
}

struct load {
    struct gz_job *job;
    struct gz_inflate *z;
    struct gz_sha *sha;
    int64_t written;
};

static int on_inflated(void *arg, struct span out)
{
    struct load *l = arg;
    size_t n = out.n;
    int err;

    if (l->written + (int64_t)n > l->job->end - l->job->begin)
        return E_CORRUPT;
    if ((err = gz_sha_add(l->sha, out)) < 0)
        return err;
    for (const uint8_t *p = out.p; n > 0;) {
        ssize_t put = write(l->job->spool->fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_from_errno(errno);
        p += put;
        n -= (size_t)put;
    }
    l->written += (int64_t)out.n;
    return 0;
}

static int on_stored(void *arg, struct span bytes)
{
    struct load *l = arg;

    return gz_inflate_add(l->z, bytes);
}

static int load_file(struct load *l)
{
    uint8_t *buf = mem_alloc(READ_BYTES);
    int err = 0, fd = open(l->job->src.path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || buf == NULL)
        err = buf == NULL ? E_NOMEM : err_from_errno(errno);
    while (err == 0) {
        ssize_t got = read(fd, buf, READ_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            err = got < 0 ? err_from_errno(errno) : 0;
            break;
        }
        err = on_stored(l, span_of(buf, (size_t)got));
    }
    if (fd >= 0)
        (void)close(fd);
    mem_free(buf);
    return err;
}

static int make_scratch(const struct gz_store *s, int *out)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s/fragment.XXXXXX", s->scratch_dir) >= (int)sizeof path)
        return E_LIMIT;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    (void)unlink(path); /* it lives as long as it is open */
    *out = fd;
    return 0;
}

/* Inflates the fragment into its scratch file. */
static int load(struct gz_job *job)
{
    const struct gz_object_ask ask = {.to = -1,
                                      .size = -1,
                                      .encoded = job->codec == GZ__CODEC__CODEC_GZIP ||
                                                 job->codec == GZ__CODEC__CODEC_GZIP_OFFLOAD};
    struct load l = {.job = job};
    char hex[41];
    int err;

    if ((err = gz_sha_new(&l.sha)) < 0 ||
        (err = gz_inflate_new(job->codec, on_inflated, &l, &l.z)) < 0 ||
        (err = make_scratch(job->s, &job->spool->fd)) < 0)
        goto out;
    if (job->src.path != NULL)
        err = load_file(&l);
    else
        err = gz_http_get(job->s, job->src.url, &ask, on_stored, &l);
    if (err == 0)
        err = gz_inflate_end(l.z);
    if (err == 0 && l.written != job->end - job->begin)
        err = E_CORRUPT;
    if (err == 0 && (err = gz_sha_hex(l.sha, hex)) == 0 && strcmp(hex, job->sha1) != 0)
        err = E_CORRUPT;
    gz_count_read(true, (size_t)l.written);
out:
    gz_inflate_free(l.z);
    gz_sha_free(l.sha);
    return err;
}

static void run_job(struct task *t)
{
    struct gz_job *job = (struct gz_job *)t;

    if (job->loads)
        job->err = load(job);
    if (job->err == 0 && job->spool != NULL) {
        job->err = pread_full(job->spool->fd, job->bytes->data, job->max, job->at - job->begin);
        job->bytes->len = job->max;
    } else if (job->err == 0) {
        job->err = read_plain(job);
    }
    job->task.run = on_home;
    mailbox_post(&job->s->mb, &job->task);
}

/* --- home --- */

static void spool_unref(struct gz_spool *sp)
{
    if (--sp->refs > 0)
        return;
    if (sp->fd >= 0)
        (void)close(sp->fd);
    mem_free(sp);
}

static void spool_drop(struct gz_store *s, struct gz_spool *sp)
{
    TAILQ_REMOVE(&s->spools, sp, link);
    s->spools_n--;
    if (sp->state == SPOOL_READY)
        s->spool_bytes -= sp->end - sp->begin;
    spool_unref(sp);
}

/* The least recently used ones make room; those that load stay. */
static void spools_trim(struct gz_store *s)
{
    struct gz_spool *sp, *prev;

    for (sp = TAILQ_LAST(&s->spools, gz_spool_list);
         sp != NULL && (s->spool_bytes > s->scratch_bytes || s->spools_n > SPOOLS_MAX); sp = prev) {
        prev = TAILQ_PREV(sp, gz_spool_list, link);
        if (sp->state != SPOOL_LOADING && prev != NULL)
            spool_drop(s, sp);
    }
}

static void job_free(struct gz_job *job)
{
    if (job->spool != NULL)
        spool_unref(job->spool);
    gz_source_fini(&job->src);
    blob_unref(job->bytes);
    gz_journal_unref(job->j);
    mem_free(job);
}

static void job_end(struct gz_job *job)
{
    struct blob *bytes = job->err == 0 ? job->bytes : NULL;

    if (job->done != NULL) {
        if (bytes != NULL)
            job->bytes = NULL;
        job->done(job->arg, job->err, bytes);
    }
    job_free(job);
}

static void loaded(struct gz_job *job)
{
    struct gz_spool *sp = job->spool;
    struct gz_store *s = job->s;
    struct gz_job *w;

    sp->state = job->err == 0 ? SPOOL_READY : SPOOL_FAILED;
    if (job->err == 0) {
        s->spool_bytes += sp->end - sp->begin;
    } else { /* its name stays, its file goes */
        if (sp->fd >= 0)
            (void)close(sp->fd);
        sp->fd = -1;
        sp->failed_ms = gz_mono_ms(s);
    }
    while ((w = TAILQ_FIRST(&sp->waiters)) != NULL) {
        TAILQ_REMOVE(&sp->waiters, w, link);
        w->err = job->err;
        if (w->err == 0 && !s->stopping) {
            w->task.run = run_job;
            executor_post(jobpool_executor(s->io), &w->task);
        } else {
            if (w->err == 0)
                w->err = E_CLOSED;
            job_end(w);
        }
    }
    /* What is damaged stays so for a while; what failed for another reason may do the next time. */
    if (job->err < 0 && job->err != E_CORRUPT)
        spool_drop(s, sp);
    spools_trim(s);
}

static struct gz_spool *spool_find(struct gz_store *s, const struct gz_job *job)
{
    struct gz_spool *sp;

    TAILQ_FOREACH(sp, &s->spools, link)
    {
        if (sp->create_revision == job->j->create_revision && sp->begin == job->begin &&
            strcmp(sp->sha1, job->sha1) == 0)
            return sp;
    }
    return NULL;
}

static struct gz_spool *spool_new(struct gz_store *s, const struct gz_job *job)
{
    struct gz_spool *sp = mem_zalloc(sizeof *sp);

    if (sp == NULL)
        return NULL;
    *sp = (struct gz_spool){.refs = 1,
                            .create_revision = job->j->create_revision,
                            .begin = job->begin,
                            .end = job->end,
                            .fd = -1};
    memcpy(sp->sha1, job->sha1, sizeof sp->sha1);
    TAILQ_INIT(&sp->waiters);
    TAILQ_INSERT_HEAD(&s->spools, sp, link);
    s->spools_n++;
    return sp;
}

/* A plain one that is damaged: only its name is kept. */
static void remember_damage(struct gz_store *s, const struct gz_job *job)
{
    struct gz_spool *sp = spool_find(s, job);

    if (sp == NULL && (sp = spool_new(s, job)) == NULL)
        return;
    sp->state = SPOOL_FAILED;
    sp->failed_ms = gz_mono_ms(s);
    spools_trim(s);
}

/* Gives the job its spool, if it needs one; run becomes false when it waits for another job that
 * loads it. E_UNSUPPORTED: it was found damaged, or its store failed, just now. */
static int use_spool(struct gz_store *s, struct gz_job *job, bool *run)
{
    struct gz_spool *sp = spool_find(s, job);

    *run = true;
    if (sp != NULL && sp->state == SPOOL_FAILED) {
        if (gz_mono_ms(s) - sp->failed_ms < FAILED_MS)
            return E_UNSUPPORTED;
        spool_drop(s, sp);
        sp = NULL;
    }
    if (sp == NULL && job->src.url != NULL && gz_http_paused(s, job->src.url))
        return E_UNSUPPORTED;
    if (job->codec == GZ__CODEC__CODEC_NONE)
        return 0;
    if (sp == NULL) {
        if ((sp = spool_new(s, job)) == NULL)
            return E_NOMEM;
        job->loads = true;
    } else {
        TAILQ_REMOVE(&s->spools, sp, link);
        TAILQ_INSERT_HEAD(&s->spools, sp, link);
        if (sp->state == SPOOL_LOADING) {
            TAILQ_INSERT_TAIL(&sp->waiters, job, link);
            *run = false;
        }
    }
    sp->refs++;
    job->spool = sp;
    return 0;
}

static void on_home(struct task *t)
{
    struct gz_job *job = (struct gz_job *)t;

    if (job->loads)
        loaded(job);
    else if (job->err == E_CORRUPT && job->spool == NULL)
        remember_damage(job->s, job);
    job_end(job);
}

int gz_direct_start(struct gz_journal *j, const struct gz_frag *f, int64_t begin, size_t max,
                    gz_direct_fn *done, void *arg, struct gz_job **out)
{
    struct gz_store *s = j->store;
    struct gz_job *job;
    bool run = true;
    int err;

    *out = NULL;
    if (s->no_direct || f->url == NULL)
        return E_UNSUPPORTED;
    if ((job = mem_zalloc(sizeof *job)) == NULL)
        return E_NOMEM;
    job->s = s;
    job->j = gz_journal_ref(j);
    job->begin = f->begin;
    job->end = f->end;
    job->codec = f->codec;
    memcpy(job->sha1, f->sha1, sizeof job->sha1);
    job->at = begin;
    job->max = max;
    job->done = done;
    job->arg = arg;
    if ((err = gz_source_of(s, f->url, &job->src)) < 0)
        goto out;
    err = E_NOMEM;
    if ((job->bytes = blob_new(max)) == NULL || (err = use_spool(s, job, &run)) < 0)
        goto out;
    if (run) {
        job->task.run = run_job;
        executor_post(jobpool_executor(s->io), &job->task);
    }
    *out = job;
    return 0;
out:
    job_free(job);
    return err;
}

void gz_direct_forget(struct gz_job *job)
{
    job->done = NULL;
}

void gz_direct_end(struct gz_store *s)
{
    struct gz_spool *sp;

    while ((sp = TAILQ_FIRST(&s->spools)) != NULL)
        spool_drop(s, sp);
    gz_http_end(s);
}
