/*
 * Inside of the embedded store. Who owns what:
 *
 *   store lock     (the hub's) queue of requests, listing, journals' heads and fragment lists,
 * operations. Order: store lock -> executor's lock; the fd cache's lock is taken alone or under the
 * store lock, and nothing under it. committer      the database, files being written, all that is
 * marked "committer" I/O pool       reads; borrows fragments by reference, never blocks the
 * committer timer          deadlines of blocked reads, housekeeping ticks
 *
 * Objects are counted: journal handles (jc_journal) outlive the store that made them.
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "base/jobpool.h"
#include "journal_client/local.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/request.h"

/* Of a file system's name. */
#define JL_SEGMENT_MAX 255
#define JL_NAME_RULE                                                                               \
    "a part of a journal's name between slashes has at most 255 bytes and does not end with "      \
    ".open, .raw or .idx"

struct jl_db;

struct jl_hooks {
    ssize_t (*pwrite)(void *arg, int fd, const void *p, size_t n, off_t at);
    int (*fdatasync)(void *arg, int fd);
    int (*rename)(void *arg, const char *from, const char *to);
    int (*commit)(void *arg);                    /* before COMMIT; an E_* makes it fail */
    void (*point)(void *arg, const char *where); /* a place where a crash would be interesting */
    void *arg;
    int (*committed)(void *arg); /* behind COMMIT, may be NULL; an E_* reports as failed what is
                                    durable: the doubt of decision 0001 */
};
extern const struct jl_hooks jl_hooks_system;
/* As jc_local_open, with faults. */
MUST_USE int jl_open(const struct jc_local_opts *o, const struct jl_hooks *hooks,
                     struct jc_store **out, char *why, size_t why_bytes);
/* The same without threads, for the check: close it with hub.base.ops->close. */
MUST_USE int jl_open_idle(const struct jc_local_opts *o, const struct jl_hooks *hooks,
                          struct jl_store **out, char *why, size_t why_bytes);

struct jl_store {
    struct jc_hub hub; /* first */
    char *dir;
    struct jl_probe probe;
    bool read_only, accept_lost;
    int64_t fragment_bytes, housekeeping_ms;
    struct jl_hooks hooks;
    int lock_fd;
    struct jobpool *io;
    pthread_t committer, timer;
    bool committer_runs, timer_runs;

    /* lock: the hub's */
    pthread_cond_t work, timer_wake;
    bool stop_timer;
    bool timer_news; /* a deadline was added since the timer looked */
    bool tick_queued;
    struct jl_req_list queue;

    pthread_mutex_t fd_lock;
    struct jl_frag_list fd_lru; /* oldest first */
    size_t fds_n, fds_max;

    /* committer */
    struct jl_db *db;
    struct jc_txn_clock txn_clock;
    int64_t revision;
    uint64_t clock_saved;
};

static inline struct jl_store *jl_store_of(struct jc_store *s)
{
    return (struct jl_store *)s;
}

/* commit.c; committer thread */
void *jl_committer_main(void *store);
/* The thread of deadlines and ticks; store.c */
void *jl_timer_main(void *store);

/* recover.c */
MUST_USE int jl_recover(struct jl_store *s, char *why, size_t why_bytes);
