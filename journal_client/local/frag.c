/*
 * Fragment objects and the bounded cache of their descriptors. A reader pins the descriptor for the
 * length of its pread; whoever has it pinned goes on reading even when the file is renamed or
 * unlinked. At most fds_max descriptors stay open unpinned (least recently used go first).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/store_int.h"

int jl_frag_new(struct jl_store *s, int64_t begin, int64_t end, struct jl_frag **out)
{
    struct jl_frag *f = mem_zalloc(sizeof *f);

    *out = NULL;
    if (f == NULL)
        return E_NOMEM;
    atomic_init(&f->refs, 1);
    jc_hub_ref(&s->hub);
    f->store = s;
    f->begin = begin;
    f->end = end;
    f->blocks.base = begin / JC_BLOCK_BYTES;
    f->fd = -1;
    *out = f;
    return 0;
}

struct jl_frag *jl_frag_ref(struct jl_frag *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

/* Under the cache's lock. */
static void close_fd(struct jl_frag *f)
{
    struct jl_store *s = f->store;

    TAILQ_REMOVE(&s->fd_lru, f, lru);
    s->fds_n--;
    close(f->fd);
    f->fd = -1;
}

void jl_frag_unref(struct jl_frag *f)
{
    if (f == NULL || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct jl_store *s = f->store;
    pthread_mutex_lock(&s->fd_lock);
    ASSERT(f->pins == 0);
    if (f->fd >= 0)
        close_fd(f);
    pthread_mutex_unlock(&s->fd_lock);
    jl_index_fini(&f->blocks);
    mem_free(f->path);
    mem_free(f);
    jc_hub_unref(&s->hub);
}

void jl_frag_set_path(struct jl_frag *f, char *path)
{
    pthread_mutex_lock(&f->store->fd_lock);
    mem_free(f->path);
    f->path = path;
    pthread_mutex_unlock(&f->store->fd_lock);
}

int jl_frag_rename(struct jl_frag *f, char *to)
{
    struct jl_store *s = f->store;
    int err = 0;

    pthread_mutex_lock(&s->fd_lock);
    if (s->hooks.rename(s->hooks.arg, f->path, to) < 0) {
        err = err_from_errno(errno);
        log_event(LOG_ERROR, "store.rename", LF_STR("to", to), LF_ERRNO(errno));
    } else {
        mem_free(f->path);
        f->path = to;
    }
    pthread_mutex_unlock(&s->fd_lock);
    return err;
}

/* Closes unpinned descriptors from the oldest until n are open. */
static void shrink(struct jl_store *s, size_t n)
{
    struct jl_frag *f, *next;

    for (f = TAILQ_FIRST(&s->fd_lru); f != NULL && s->fds_n > n; f = next) {
        next = TAILQ_NEXT(f, lru);
        if (f->pins == 0)
            close_fd(f);
    }
}

static int open_file(struct jl_store *s, const char *path, bool create)
{
    int flags = O_CLOEXEC | (s->read_only ? O_RDONLY : O_RDWR) | (create ? O_CREAT : 0);
    int fd = open(path, flags, 0644);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        shrink(s, 0);
        fd = open(path, flags, 0644);
    }
    return fd;
}

int jl_frag_pin(struct jl_frag *f, bool create, int *fd)
{
    struct jl_store *s = f->store;
    int err = 0;

    pthread_mutex_lock(&s->fd_lock);
    if (f->fd >= 0) {
        TAILQ_REMOVE(&s->fd_lru, f, lru);
        TAILQ_INSERT_TAIL(&s->fd_lru, f, lru);
    } else {
        if (s->fds_n >= s->fds_max)
            shrink(s, s->fds_max - 1);
        int got = open_file(s, f->path, create);
        if (got < 0) {
            err = err_from_errno(errno);
            if (errno != ENOENT)
                log_event(LOG_ERROR, "store.open_file", LF_STR("path", f->path), LF_ERRNO(errno));
        } else {
            f->fd = got;
            s->fds_n++;
            TAILQ_INSERT_TAIL(&s->fd_lru, f, lru);
        }
    }
    if (err == 0) {
        f->pins++;
        *fd = f->fd;
    }
    pthread_mutex_unlock(&s->fd_lock);
    return err;
}

void jl_frag_unpin(struct jl_frag *f)
{
    pthread_mutex_lock(&f->store->fd_lock);
    ASSERT(f->pins > 0);
    f->pins--;
    pthread_mutex_unlock(&f->store->fd_lock);
}

void jl_frag_close_all(struct jl_store *s)
{
    pthread_mutex_lock(&s->fd_lock);
    shrink(s, 0);
    pthread_mutex_unlock(&s->fd_lock);
}

/* From the sidecar, else by reading the fragment once; then a new sidecar is left behind. */
static int load_blocks(struct jl_journal *j, struct jl_frag *f, struct jl_blocks *b)
{
    struct jl_store *s = f->store;
    char *path = jl_path_index(s->dir, j->name, f->begin, f->end);
    struct jl_sum sum;
    int fd, err;

    if (path == NULL)
        return E_NOMEM;
    err = jl_index_load(path, f->begin, f->end, b);
    if (err != 0 && err != E_NOMEM) {
        log_event(LOG_INFO, "store.index_rebuilt", LF_STR("journal", j->name),
                  LF_INT("begin", f->begin), LF_ERR(err));
        if ((err = jl_frag_pin_live(j, f, &fd)) == 0) {
            err = jl_index_scan(fd, f->begin, f->end, &s->probe, b, &sum, NULL);
            jl_frag_unpin(f);
        }
        if (err == 0 && !s->read_only) {
            char *folder = jl_path_join(s->dir, "index", j->name);
            /* Best effort: without it the next start reads the fragment again. */
            if (folder != NULL && jl_mkdirs(folder, false) == 0 &&
                jl_index_save(path, f->begin, f->end, b) < 0)
                (void)unlink(path);
            mem_free(folder);
        }
    }
    mem_free(path);
    return err;
}

int jl_frag_load(struct jl_journal *j, struct jl_frag *f)
{
    struct jl_store *s = f->store;
    struct jl_blocks b = {0};
    int err;

    if ((err = load_blocks(j, f, &b)) < 0)
        return err;
    pthread_mutex_lock(&s->hub.lock);
    if (f->blocks.v == NULL) {
        f->blocks = b;
        b.v = NULL;
    }
    pthread_mutex_unlock(&s->hub.lock);
    jl_index_fini(&b);
    return 0;
}
