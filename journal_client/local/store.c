/*
 * Opening and closing: the lock file, the threads, the table of operations. And the hooks that
 * tests replace.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/block.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/request.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/store_int.h"

#define FRAGMENT_BYTES     (INT64_C(64) << 20)
#define HOUSEKEEPING_MS    1000
#define FDS_MAX            512
#define FAKE_CLOCK_POLL_MS 5

static ssize_t sys_pwrite(void *arg, int fd, const void *p, size_t n, off_t at)
{
    (void)arg;
    return pwrite(fd, p, n, at);
}

static int sys_fdatasync(void *arg, int fd)
{
    (void)arg;
    return fdatasync(fd);
}

static int sys_rename(void *arg, const char *from, const char *to)
{
    (void)arg;
    return rename(from, to);
}

static int sys_commit(void *arg)
{
    (void)arg;
    return 0;
}

static void sys_point(void *arg, const char *where)
{
    (void)arg;
    (void)where;
}

const struct jl_hooks jl_hooks_system = {.pwrite = sys_pwrite,
                                         .fdatasync = sys_fdatasync,
                                         .rename = sys_rename,
                                         .commit = sys_commit,
                                         .point = sys_point};

/* --- the object --- */

static void jl_free(struct jc_hub *h)
{
    struct jl_store *s = (struct jl_store *)h;

    pthread_mutex_destroy(&s->fd_lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->timer_wake);
    mem_free(s->dir);
    mem_free(s);
}

static size_t fd_budget(void)
{
    struct rlimit rl;
    size_t n = FDS_MAX;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur / 4 < n)
        n = (size_t)(rl.rlim_cur / 4);
    return n < 8 ? 8 : n;
}

/* Under the lock. */
static void jl_timed(struct jc_hub *h)
{
    struct jl_store *s = (struct jl_store *)h;

    s->timer_news = true;
    pthread_cond_signal(&s->timer_wake);
}

static void jl_close(struct jc_store *s);

static const struct jc_hub_ops hub_ops = {.free = jl_free,
                                          .journal_free = jl_journal_free,
                                          .timed = jl_timed,
                                          .read_fetch = jl_read_fetch,
                                          .read_bytes = sizeof(struct jc_read),
                                          .block = jl_block,
                                          .block_bytes = sizeof(struct jc_block_ask),
                                          .seek = jl_seek,
                                          .fragments = jl_fragments};

static const struct jc_store_ops local_ops = {.name = "local",
                                              .name_rule = JL_NAME_RULE,
                                              .watch = jc_hub_watch,
                                              .follow = jc_hub_follow,
                                              .read = jc_hub_read,
                                              .read_block = jc_hub_read_block,
                                              .seek = jc_hub_seek,
                                              .append = jl_append,
                                              .apply = jl_apply,
                                              .fragments = jc_hub_fragments,
                                              .kv_get = jl_kv_get,
                                              .kv_scan = jl_kv_scan,
                                              .kv_set = jl_kv_set,
                                              .cancel = jc_op_cancel,
                                              .close = jl_close};

static int store_new(const struct jc_local_opts *o, const struct jl_hooks *hooks,
                     struct jl_store **out)
{
    struct jl_store *s = mem_zalloc(sizeof *s);
    pthread_condattr_t mono;

    *out = NULL;
    if (s == NULL)
        return E_NOMEM;
    jc_hub_init(&s->hub, &local_ops, &hub_ops, o->clock != NULL ? o->clock : clock_system());
    s->probe = (struct jl_probe){o->probe, o->probe_arg};
    s->read_only = o->read_only;
    s->accept_lost = o->accept_lost;
    s->fragment_bytes = o->fragment_bytes > 0 ? o->fragment_bytes : FRAGMENT_BYTES;
    s->housekeeping_ms = o->housekeeping_ms > 0 ? o->housekeeping_ms : HOUSEKEEPING_MS;
    s->hooks = *hooks;
    s->lock_fd = -1;
    s->fds_max = fd_budget();
    STAILQ_INIT(&s->queue);
    TAILQ_INIT(&s->fd_lru);
    pthread_mutex_init(&s->fd_lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&s->timer_wake, &mono);
    pthread_condattr_destroy(&mono);
    if ((s->dir = mem_strdup(o->dir)) == NULL) {
        jc_hub_unref(&s->hub);
        return E_NOMEM;
    }
    for (size_t n = strlen(s->dir); n > 1 && s->dir[n - 1] == '/'; n--)
        s->dir[n - 1] = '\0';
    *out = s;
    return 0;
}

/* --- the lock --- */

static int lock_busy(const struct jl_store *s, int fd, char *why, size_t why_bytes)
{
    char pid[24] = "";
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    if (pid[0] != '\0')
        jl_why(why, why_bytes, "%s is in use by process %s", s->dir, pid);
    else
        jl_why(why, why_bytes, "%s is in use by a reader", s->dir);
    return E_BUSY;
}

static int take_lock(struct jl_store *s, char *why, size_t why_bytes)
{
    char path[4352], pid[24];
    int flags = s->read_only ? O_RDONLY : O_RDWR | O_CREAT;

    if (snprintf(path, sizeof path, "%s/LOCK", s->dir) >= (int)sizeof path)
        return E_LIMIT;
    s->lock_fd = open(path, flags | O_CLOEXEC, 0644);
    if (s->lock_fd < 0) {
        int e = errno;
        jl_why(why, why_bytes, e == ENOENT ? "there is no store in %s" : "cannot open %s/LOCK",
               s->dir);
        return err_from_errno(e);
    }
    if (flock(s->lock_fd, (s->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_from_errno(errno);
        return lock_busy(s, s->lock_fd, why, why_bytes);
    }
    if (s->read_only)
        return 0;
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    /* Only a hint for people: the flock is what counts. */
    if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, pid, (size_t)n, 0) != n)
        log_event(LOG_WARN, "store.lock_pid", LF_ERRNO(errno));
    return 0;
}

static void drop_lock(struct jl_store *s)
{
    if (s->lock_fd < 0)
        return;
    if (!s->read_only && s->db != NULL && ftruncate(s->lock_fd, 0) < 0)
        log_event(LOG_WARN, "store.lock_pid", LF_ERRNO(errno));
    close(s->lock_fd);
    s->lock_fd = -1;
}

/* --- the timer --- */

static void run_tick(struct jl_store *s, struct jl_req *rq)
{
    pthread_mutex_lock(&s->hub.lock);
    s->tick_queued = false;
    pthread_mutex_unlock(&s->hub.lock);
    jl_housekeeping(s);
    jl_req_answer(rq, 0);
}

static void post_tick(struct jl_store *s)
{
    struct jl_req *rq;

    pthread_mutex_lock(&s->hub.lock);
    bool skip = s->tick_queued || s->read_only;
    s->tick_queued = true;
    pthread_mutex_unlock(&s->hub.lock);
    if (skip)
        return;
    if (jl_req_new(s, NULL, NULL, &rq) == 0) {
        rq->run = run_tick;
        if (jl_req_post(s, rq) == 0)
            return;
        jl_req_free(rq);
    }
    pthread_mutex_lock(&s->hub.lock);
    s->tick_queued = false;
    pthread_mutex_unlock(&s->hub.lock);
}

/* Sleeps; a new deadline or the end wakes it. */
static bool timer_sleep(struct jl_store *s, int64_t ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&s->hub.lock);
    if (!s->stop_timer && !s->timer_news)
        pthread_cond_timedwait(&s->timer_wake, &s->hub.lock, &until);
    bool stop = s->stop_timer;
    pthread_mutex_unlock(&s->hub.lock);
    return !stop;
}

void *jl_timer_main(void *store)
{
    struct jl_store *s = store;
    const struct clock *real = clock_system();
    int64_t next_tick = clock_mono_ms(real) + s->housekeeping_ms;
    int64_t ms;

    do {
        int64_t now = clock_mono_ms(real);
        if (now >= next_tick) {
            post_tick(s);
            next_tick = now + s->housekeeping_ms;
        }
        ms = next_tick - now;
        pthread_mutex_lock(&s->hub.lock);
        s->timer_news = false;
        pthread_mutex_unlock(&s->hub.lock);
        int64_t nearest = jc_read_deadlines(&s->hub);
        /* An injected clock moves by itself: look often. */
        if (nearest >= 0 && s->hub.clock != real && nearest > FAKE_CLOCK_POLL_MS)
            nearest = FAKE_CLOCK_POLL_MS;
        if (nearest >= 0 && nearest < ms)
            ms = nearest;
    } while (timer_sleep(s, ms));
    return NULL;
}

/* --- open and close --- */

static int start_threads(struct jl_store *s, unsigned io_threads)
{
    sigset_t all, old;
    int err;

    if ((err = jobpool_new(io_threads == 0 ? 2 : io_threads, "store-io", &s->io)) < 0)
        return err;
    s->hub.steps = jobpool_executor(s->io);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->committer_runs = pthread_create(&s->committer, NULL, jl_committer_main, s) == 0;
    s->timer_runs = pthread_create(&s->timer, NULL, jl_timer_main, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (s->committer_runs)
        pthread_setname_np(s->committer, "store-commit");
    if (s->timer_runs)
        pthread_setname_np(s->timer, "store-timer");
    return s->committer_runs && s->timer_runs ? 0 : E_NOMEM;
}

static void end_operations(struct jl_store *s)
{
    pthread_mutex_lock(&s->hub.lock);
    for (size_t i = 0; s->hub.listing != NULL && i < s->hub.listing->n; i++) {
        struct jl_journal *j = jl_of(s->hub.listing->items[i]);
        jc_wake_waiters(&j->hub, E_CLOSED);
        jc_end_followers(&j->hub, E_CLOSED);
    }
    jc_end_watchers(&s->hub, E_CLOSED);
    pthread_mutex_unlock(&s->hub.lock);
}

static void jl_close(struct jc_store *store)
{
    struct jl_store *s = jl_store_of(store);

    pthread_mutex_lock(&s->hub.lock);
    s->hub.closing = true;
    s->stop_timer = true;
    pthread_cond_signal(&s->work);
    pthread_cond_signal(&s->timer_wake);
    pthread_mutex_unlock(&s->hub.lock);
    if (s->timer_runs)
        pthread_join(s->timer, NULL);
    if (s->committer_runs)
        pthread_join(s->committer, NULL);
    end_operations(s);
    if (s->committer_runs)
        jl_seal_all(s);
    jobpool_free(s->io); /* steps that were queued end their operations */
    jc_hub_drop_listing(&s->hub);
    jl_frag_close_all(s);
    jl_db_close(s->db);
    drop_lock(s);
    s->db = NULL;
    jc_hub_unref(&s->hub);
}

/* Everything but the threads. */
int jl_open_idle(const struct jc_local_opts *o, const struct jl_hooks *hooks, struct jl_store **out,
                 char *why, size_t why_bytes)
{
    struct jl_store *s;
    int err;

    *out = NULL;
    if (why != NULL && why_bytes > 0)
        why[0] = '\0';
    if (o->dir == NULL || o->dir[0] == '\0' || o->probe == NULL)
        return E_INVALID;
    if ((err = store_new(o, hooks, &s)) < 0)
        return err;
    if (!s->read_only && (err = jl_mkdirs(s->dir, true)) < 0) {
        jl_why(why, why_bytes, "cannot make the folder %s", s->dir);
        goto out;
    }
    if ((err = jl_loss_database(s, why, why_bytes)) < 0 ||
        (err = take_lock(s, why, why_bytes)) < 0 || (err = jl_db_open(s, why, why_bytes)) < 0 ||
        (err = jl_recover(s, why, why_bytes)) < 0)
        goto out;
    *out = s;
    return 0;
out:
    if (why != NULL && why_bytes > 0 && why[0] == '\0')
        jl_why(why, why_bytes, "%s: %s", s->dir, err_text(err));
    jl_close(&s->hub.base);
    return err;
}

int jl_open(const struct jc_local_opts *o, const struct jl_hooks *hooks, struct jc_store **out,
            char *why, size_t why_bytes)
{
    struct jl_store *s;
    int err;

    *out = NULL;
    if ((err = jl_open_idle(o, hooks, &s, why, why_bytes)) < 0)
        return err;
    if ((err = start_threads(s, o->io_threads)) < 0) {
        jl_why(why, why_bytes, "%s: threads: %s", s->dir, err_text(err));
        jl_close(&s->hub.base);
        return err;
    }
    log_event(LOG_INFO, "store.opened", LF_STR("dir", s->dir),
              LF_UINT("journals", s->hub.listing->n), LF_INT("revision", s->revision));
    *out = &s->hub.base;
    return 0;
}

int jc_local_open(const struct jc_local_opts *o, struct jc_store **out, char *why, size_t why_bytes)
{
    return jl_open(o, &jl_hooks_system, out, why, why_bytes);
}
