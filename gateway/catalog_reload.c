/* See catalog_reload.h. */
#include "gateway/catalog_reload.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/config.h"
#include "gateway/metrics.h"

#define FAULTS_LOGGED 20

/* Owner: the home thread; while a job runs, what is marked so belongs to the job. */
struct catalog_reload {
    struct catalog_reload_opts opts;
    struct task job;
    struct task done;
    bool busy;
    bool stopped;
    bool asked;                    /* catalog_reload_now came while a job ran */
    bool pending;                  /* job: something changed; it is read when it stands still */
    bool read;                     /* job: to be read whatever the files say */
    struct catalog_files files;    /* job */
    struct catalog_faults *faults; /* job */
    const struct catalog *catalog; /* job: the outcome, a reference; NULL: none */
    int err;                       /* job: of a reading; E_AGAIN: there was none */
};

static struct catalog_reload *of_job(struct task *t)
{
    return (struct catalog_reload *)((char *)t - offsetof(struct catalog_reload, job));
}

static struct catalog_reload *of_done(struct task *t)
{
    return (struct catalog_reload *)((char *)t - offsetof(struct catalog_reload, done));
}

static void read_catalog(struct catalog_reload *r)
{
    const char *path = r->opts.config->catalog_path;
    struct catalog_files files = {0};

    r->err = catalog_read(path, r->faults, &files, &r->catalog);
    if (r->err == 0)
        r->err = catalog_admit(r->catalog, r->opts.config, r->faults);
    if (files.n > 0) {
        catalog_files_fini(&r->files);
        r->files = files;
    } else {
        catalog_files_fini(&files);
    }
}

static void run_job(struct task *t)
{
    struct catalog_reload *r = of_job(t);
    bool changed = catalog_files_restamp(&r->files);

    r->err = E_AGAIN;
    if (r->read || (r->pending && !changed)) {
        r->pending = false;
        read_catalog(r);
    } else if (changed) {
        r->pending = true; /* whoever writes it may not be done yet */
    }
    executor_post(r->opts.home, &r->done);
}

static void say_faults(const struct catalog_reload *r)
{
    char text[800];

    for (size_t i = 0; i < r->faults->n && i < FAULTS_LOGGED; i++) {
        const struct catalog_fault *f = &r->faults->list[i];

        catalog_fault_text(f, text, sizeof text);
        log_event(f->warning ? LOG_WARN : LOG_ERROR,
                  f->warning ? "catalog.warning" : "catalog.fault", LF_STR("text", text));
    }
}

static void take(struct catalog_reload *r)
{
    say_faults(r);
    if (r->err < 0) {
        metric_add(M_CATALOG_RELOADS_FAILED, 1);
        log_event(LOG_ERROR, "catalog.not_reloaded", LF_STR("file", r->opts.config->catalog_path),
                  LF_UINT("faults", r->faults->faults), LF_ERR(r->err),
                  LF_STR("effect", "the catalog in force stays"));
    } else {
        metric_add(M_CATALOG_RELOADS, 1);
        log_event(LOG_INFO, "catalog.reloaded", LF_STR("file", r->opts.config->catalog_path),
                  LF_UINT("tasks", r->catalog->tasks_n),
                  LF_UINT("collections", r->catalog->collections_n),
                  LF_UINT("warnings", r->faults->warnings));
        r->opts.on_catalog(r->opts.arg, r->catalog);
    }
}

static void begin(struct catalog_reload *r, bool read)
{
    r->busy = true;
    r->read = read;
    executor_post(r->opts.jobs, &r->job);
}

static void run_done(struct task *t)
{
    struct catalog_reload *r = of_done(t);

    r->busy = false;
    if (!r->stopped && r->err != E_AGAIN)
        take(r);
    catalog_unref(r->catalog);
    r->catalog = NULL;
    if (!r->stopped && r->asked) {
        r->asked = false;
        begin(r, true);
    }
}

int catalog_reload_start(const struct catalog_reload_opts *opts, struct catalog_reload **out)
{
    int err = E_NOMEM;

    *out = NULL;
    struct catalog_reload *r = mem_zalloc(sizeof *r);
    if (r == NULL)
        return E_NOMEM;
    r->opts = *opts;
    r->job.run = run_job;
    r->done.run = run_done;
    r->err = E_AGAIN;
    if ((r->faults = mem_zalloc(sizeof *r->faults)) == NULL ||
        (err = catalog_files_copy(opts->files, &r->files)) < 0) {
        mem_free(r->faults);
        mem_free(r);
        return err;
    }
    *out = r;
    return 0;
}

void catalog_reload_tick(struct catalog_reload *r)
{
    if (!r->busy && !r->stopped)
        begin(r, false);
}

void catalog_reload_now(struct catalog_reload *r)
{
    if (r->stopped)
        return;
    if (r->busy)
        r->asked = true;
    else
        begin(r, true);
}

void catalog_reload_stop(struct catalog_reload *r)
{
    r->stopped = true;
}

bool catalog_reload_busy(const struct catalog_reload *r)
{
    return r->busy;
}

void catalog_reload_free(struct catalog_reload *r)
{
    if (r == NULL)
        return;
    ASSERT(!r->busy);
    catalog_unref(r->catalog);
    catalog_files_fini(&r->files);
    mem_free(r->faults);
    mem_free(r);
}
