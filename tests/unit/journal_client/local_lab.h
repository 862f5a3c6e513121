/* The embedded store in a folder of the test's own, with faults to order and a clock to set. */
#pragma once

#include "tests/contract/store_lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "journal_client/local/block.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/store_int.h"
#include "tests/contract/temp_dir.h"

struct local_lab {
    struct lab lab; /* first */
    char dir[256];
    struct jl_hooks hooks;
    struct jc_local_opts opts;
    /* faults; counted down by each call, 0 = this one fails */
    atomic_int write_in, sync_in, rename_in, commit_in;
    atomic_int commit_fails; /* so many commits fail */
    atomic_int doubt_in;     /* this commit is durable, but reported as failed */
    atomic_int write_errno;
    atomic_bool short_writes;
    atomic_int syncs;
    /* the injected clock */
    struct clock clock;
    _Atomic int64_t wall_ms, mono_ms;
    char why[512];
};

static inline bool ll_due(atomic_int *n)
{
    int now = atomic_load(n);

    return now >= 0 && atomic_fetch_sub(n, 1) == 0;
}

static inline ssize_t ll_pwrite(void *arg, int fd, const void *p, size_t n, off_t at)
{
    struct local_lab *l = arg;

    if (ll_due(&l->write_in)) {
        /* Half of it lands, as on a full disk. */
        if (n > 1 && pwrite(fd, p, n / 2, at) < 0)
            return -1;
        errno = atomic_load(&l->write_errno);
        return -1;
    }
    if (atomic_load(&l->short_writes) && n > 3)
        n = n / 3;
    return pwrite(fd, p, n, at);
}

static inline int ll_fdatasync(void *arg, int fd)
{
    struct local_lab *l = arg;

    (void)fd; /* the kernel keeps the bytes: nothing here tests the disk */
    atomic_fetch_add(&l->syncs, 1);
    if (ll_due(&l->sync_in)) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static inline int ll_rename(void *arg, const char *from, const char *to)
{
    struct local_lab *l = arg;

    if (ll_due(&l->rename_in)) {
        errno = EIO;
        return -1;
    }
    return rename(from, to);
}

static inline int ll_commit(void *arg)
{
    struct local_lab *l = arg;

    if (atomic_load(&l->commit_fails) > 0) {
        atomic_fetch_sub(&l->commit_fails, 1);
        return E_NOSPACE;
    }
    return ll_due(&l->commit_in) ? E_NOSPACE : 0;
}

static inline int ll_committed(void *arg)
{
    struct local_lab *l = arg;

    return ll_due(&l->doubt_in) ? E_IO : 0;
}

static inline void ll_point(void *arg, const char *where)
{
    (void)arg;
    (void)where;
}

static inline int64_t ll_wall(void *arg)
{
    return atomic_load(&((struct local_lab *)arg)->wall_ms) * 1000000;
}

static inline int64_t ll_mono(void *arg)
{
    return atomic_load(&((struct local_lab *)arg)->mono_ms);
}

static inline int ll_try_open(struct local_lab *l)
{
    struct jc_store *s;
    int err = jl_open(&l->opts, &l->hooks, &s, l->why, sizeof l->why);

    if (err == 0)
        lab_init(&l->lab, s);
    return err;
}

static inline void ll_open(struct local_lab *l)
{
    int err = ll_try_open(l);

    if (err < 0)
        print_error("%s\n", l->why);
    assert_int_equal(err, 0);
}

static inline void ll_close(struct local_lab *l)
{
    if (l->lab.s != NULL)
        lab_fini(&l->lab);
}

static inline void ll_reopen(struct local_lab *l)
{
    ll_close(l);
    ll_open(l);
}

static inline void ll_faults_off(struct local_lab *l)
{
    atomic_store(&l->write_in, -1);
    atomic_store(&l->sync_in, -1);
    atomic_store(&l->rename_in, -1);
    atomic_store(&l->commit_in, -1);
    atomic_store(&l->doubt_in, -1);
    atomic_store(&l->write_errno, ENOSPC);
}

static inline int ll_setup(void **state)
{
    struct local_lab *l = mem_zalloc(sizeof *l);

    assert_non_null(l);
    log_setup(LOG_ERROR + 1, LOG_FORMAT_TEXT); /* faults are what these tests order */
    assert_int_equal(temp_dir_make(l->dir, sizeof l->dir), 0);
    ll_faults_off(l);
    l->wall_ms = 1800000000000;
    l->mono_ms = 1000;
    l->clock = (struct clock){ll_wall, ll_mono, l};
    l->hooks =
        (struct jl_hooks){ll_pwrite, ll_fdatasync, ll_rename, ll_commit, ll_point, l, ll_committed};
    l->opts = (struct jc_local_opts){
        .dir = l->dir, .clock = &l->clock, .probe = lab_probe, .housekeeping_ms = 3600000};
    ll_open(l);
    *state = l;
    return 0;
}

static inline void ll_report(void *arg, const char *text)
{
    (void)arg;
    print_error("fault: %s\n", text);
}

static inline void ll_no_report(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

/* Closes the store; its check must be clean. */
static inline int ll_teardown(void **state)
{
    struct local_lab *l = *state;

    ll_close(l);
    assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_report, NULL), 0);
    temp_dir_remove(l->dir);
    mem_free(l);
    return 0;
}

/* For tests that leave a damaged folder behind. */
static inline int ll_teardown_damaged(void **state)
{
    struct local_lab *l = *state;

    ll_close(l);
    temp_dir_remove(l->dir);
    mem_free(l);
    return 0;
}

static inline int ll_flush(struct local_lab *l)
{
    struct lab_done d = {0};

    assert_int_equal(jc_local_flush(l->lab.s, &l->lab.mb.ex, lab_on_done, &d), 0);
    lab_wait(&l->lab, &d.done);
    return d.err;
}

static inline int ll_remove(struct local_lab *l, const struct jc_journal *j, int64_t end)
{
    struct lab_done d = {0};

    assert_int_equal(jc_local_remove_fragments(l->lab.s, j, end, &l->lab.mb.ex, lab_on_done, &d),
                     0);
    lab_wait(&l->lab, &d.done);
    return d.err;
}

static inline int ll_punch(struct local_lab *l, const struct jc_journal *j, int64_t begin)
{
    struct lab_done d = {0};

    assert_int_equal(jc_local_punch(l->lab.s, j, begin, &l->lab.mb.ex, lab_on_done, &d), 0);
    lab_wait(&l->lab, &d.done);
    return d.err;
}

static inline void ll_run_tick(struct jl_store *s, struct jl_req *rq)
{
    jl_housekeeping(s);
    jl_req_answer(rq, 0);
}

static inline void ll_tick_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    *(bool *)rq->arg = true;
    jl_req_free(rq);
}

/* One round of housekeeping, behind all that was asked before. */
static inline void ll_tick(struct local_lab *l)
{
    struct jl_store *s = jl_store_of(l->lab.s);
    struct jl_req *rq;
    bool done = false;

    assert_int_equal(jl_req_new(s, &l->lab.mb.ex, ll_tick_done, &rq), 0);
    rq->run = ll_run_tick;
    rq->arg = &done;
    assert_int_equal(jl_req_post(s, rq), 0);
    lab_wait(&l->lab, &done);
}

/* Appends and closes the fragment; returns its begin. */
static inline int64_t ll_fragment(struct local_lab *l, const struct jc_journal *j, const char *text)
{
    int64_t begin;

    assert_int_equal(lab_append_span(&l->lab, j, span_str(text), &begin), 0);
    assert_int_equal(ll_flush(l), 0);
    return begin;
}

/* The path of the only file with that ending below DIR/kind/journal; false when there is none. */
static inline bool ll_file(struct local_lab *l, const char *kind, const char *journal,
                           const char *prefix, char *out, size_t bytes)
{
    char folder[512];
    struct dirent *e;
    bool found = false;

    (void)snprintf(folder, sizeof folder, "%s/%s/%s", l->dir, kind, journal);
    DIR *d = opendir(folder);
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            (void)snprintf(out, bytes, "%s/%.200s", folder, e->d_name);
            found = true;
        }
    }
    if (d != NULL)
        closedir(d);
    return found;
}
