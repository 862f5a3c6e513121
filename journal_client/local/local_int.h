/*
 * Inside of the embedded store. Who owns what:
 *
 *   store lock     queue of requests, listing, journals' heads and fragment lists, operations.
 *                  Order: store lock -> executor's lock; the fd cache's lock is taken alone or
 *                  under the store lock, and nothing under it.
 *   committer      the database, files being written, all that is marked "committer"
 *   I/O pool       reads; borrows fragments by reference, never blocks the committer
 *   timer          deadlines of blocked reads, housekeeping ticks
 *
 * Objects are counted: journal handles (jc_journal) outlive the store that made them.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/jobpool.h"
#include "journal_client/local.h"

/* Of a file system's name. */
#define JL_SEGMENT_MAX 255
#define JL_NAME_RULE                                                                               \
    "a part of a journal's name between slashes has at most 255 bytes and does not end with "      \
    ".open, .raw or .idx"

struct jl_db;
struct jl_store;
struct jl_journal;

/* --- seams for tests: faults and crash points --- */
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
/* The same without threads, for the check: close it with base.ops->close. */
MUST_USE int jl_open_idle(const struct jc_local_opts *o, const struct jl_hooks *hooks,
                          struct jl_store **out, char *why, size_t why_bytes);

struct jl_sha;

/* --- block index (index.c) ---
 * Entry i stands for block base + i. Built only from whole lines in order. */
struct jl_block {
    int64_t first; /* begin of the first document whose last byte lies in this block or later */
    uint64_t max_clock; /* of content documents whose last byte lies in it */
    uint32_t content;   /* 1: there is one */
};

struct jl_blocks {
    struct jl_block *v;
    size_t n, cap;
    int64_t base;
};

/* What is known of a run of bytes as a whole. */
struct jl_sum {
    int64_t content_end;   /* 0: no content */
    uint64_t max_clock;    /* of content */
    uint64_t any_clock;    /* of any document, for the file's time */
    struct jc_marks marks; /* known of the open fragment only */
};

struct jl_probe {
    jc_probe_fn *fn;
    void *arg;
};

/* Makes room so that the next jl_index_add up to offset end cannot fail. */
MUST_USE int jl_index_reserve(struct jl_blocks *b, int64_t end);
/* bytes are whole lines that begin at offset begin; room was reserved. */
void jl_index_add(struct jl_blocks *b, struct jl_sum *sum, const struct jl_probe *probe,
                  int64_t begin, struct span bytes);
void jl_index_fini(struct jl_blocks *b);
/* [start, stop) of the documents whose last byte lies in the block; end is where the run ends.
 * Empty (start == stop) when there are none. */
void jl_index_range(const struct jl_blocks *b, int64_t block, int64_t end, int64_t *start,
                    int64_t *stop);
/* Reads a fragment's file, builds index and summary, and feeds the digest (NULL: none).
 * E_CORRUPT: shorter than it should be, or the last line has no end. */
MUST_USE int jl_index_scan(int fd, int64_t begin, int64_t end, const struct jl_probe *probe,
                           struct jl_blocks *b, struct jl_sum *sum, struct jl_sha *sha);
/* Sidecar file. Load: E_NOTFOUND, E_CORRUPT (both: scan instead). */
MUST_USE int jl_index_save(const char *path, int64_t begin, int64_t end, const struct jl_blocks *b);
MUST_USE int jl_index_load(const char *path, int64_t begin, int64_t end, struct jl_blocks *b);

/* --- SHA-1 (sha.c) --- */
MUST_USE struct jl_sha *jl_sha_new(void);
void jl_sha_free(struct jl_sha *h);
MUST_USE int jl_sha_reset(struct jl_sha *h);
MUST_USE int jl_sha_add(struct jl_sha *h, struct span bytes);
/* Ends the computation: only reset and free may follow. */
MUST_USE int jl_sha_hex(struct jl_sha *h, char out[41]);
/* The digest so far; more bytes may follow. */
MUST_USE int jl_sha_peek(const struct jl_sha *h, char out[41]);

/* --- fragments and their descriptors (frag.c) --- */
TAILQ_HEAD(jl_frag_list, jl_frag);

/* What became of a closed fragment's file. All but HERE are holes: reads jump over them. */
enum jl_frag_state {
    JL_FRAG_HERE,
    JL_FRAG_AWAY,    /* vanished while the store ran; looked for at each tick */
    JL_FRAG_LOST,    /* was not there at the start; looked for at the next one */
    JL_FRAG_REMOVED, /* by an operator's request: never comes back */
};

/* lock: store, except where said. Immutable once closed, but for state and blocks (set once). */
struct jl_frag {
    atomic_uint refs;
    struct jl_store *store; /* counted */
    int64_t begin;
    int64_t end;   /* of an open one: the committed end */
    bool open;     /* the growing one */
    bool accepted; /* the database says that it is lost */
    enum jl_frag_state state;
    char sha1[41];
    int64_t mod_time_ms;
    struct jl_sum sum;
    struct jl_blocks blocks; /* v == NULL: not loaded yet (closed ones only) */
    /* lock: fd cache */
    char *path;
    int fd; /* -1: not open */
    unsigned pins;
    TAILQ_ENTRY(jl_frag) lru; /* while fd >= 0 */
};

MUST_USE int jl_frag_new(struct jl_store *s, int64_t begin, int64_t end, struct jl_frag **out);
struct jl_frag *jl_frag_ref(struct jl_frag *f);
void jl_frag_unref(struct jl_frag *f);
/* Sets where the file lies (takes ownership of path). */
void jl_frag_set_path(struct jl_frag *f, char *path);
/* Renames the file on disk and in the object at once. */
MUST_USE int jl_frag_rename(struct jl_frag *f, char *to);
/* The descriptor stays open until unpinned. create: makes the file. E_NOTFOUND: removed meanwhile.
 */
MUST_USE int jl_frag_pin(struct jl_frag *f, bool create, int *fd);
void jl_frag_unpin(struct jl_frag *f);
/* Closes all descriptors that nobody uses. */
void jl_frag_close_all(struct jl_store *s);
/* Any thread of the store but the committer's fast path: loads or rebuilds the block index. */
MUST_USE int jl_frag_load(struct jl_journal *j, struct jl_frag *f);
/* For readers: E_NOTFOUND also when the journal was deleted, so that what was opened by its name is
 * none of a later journal. */
MUST_USE int jl_frag_pin_live(struct jl_journal *j, struct jl_frag *f, int *fd);
static inline bool jl_frag_jumped(const struct jl_frag *f)
{
    return f->state != JL_FRAG_HERE;
}

/* --- journals --- */
TAILQ_HEAD(jl_op_list, jc_op);

/* What is not there of a journal's recorded fragments (loss.c). */
struct jl_loss {
    size_t recorded; /* those that should be there: neither removed nor accepted as lost */
    size_t missing;
    size_t bad;    /* missing, unreadable or of another size */
    int64_t first; /* begin of the first bad one */
};

struct jl_journal {
    atomic_uint refs;
    struct jl_store *store; /* counted */
    int64_t id;
    int64_t create_revision;
    char *name;
    /* lock: store */
    bool deleted;
    struct jc_heads heads;
    struct jl_frag **frags; /* closed ones by rising begin, holes included */
    size_t frags_n, frags_cap;
    struct jl_frag *open; /* may be empty */
    struct jl_op_list followers;
    struct jl_op_list waiters; /* reads blocked at the head */
    /* committer */
    struct jl_sha *sha; /* over the open fragment; NULL: to be computed from the file */
    bool damaged;   /* recovery found its open fragment to differ from what the last close sealed */
    int broken;     /* E_*: takes no more appends until restart */
    bool file_made; /* the open file exists */
    bool renamed;   /* the open file has its closed name, but the database does not say so yet */
    int roll_err;   /* why the last try to record that failed */
    int64_t since_ms;    /* when its first byte was committed, Unix ms; 0: empty */
    int64_t log_start;   /* as recorded: heads.log_start without what only was not found */
    struct jl_loss loss; /* found by recovery */
    bool in_group;
    int64_t tail; /* where the next part of the group begins */
    struct jl_blocks pend_blocks;
    struct jl_sum pend_sum;
    STAILQ_ENTRY(jl_journal) group;
};
STAILQ_HEAD(jl_journal_list, jl_journal);

MUST_USE int jl_journal_new(struct jl_store *s, int64_t id, const char *name,
                            int64_t create_revision, struct jl_journal **out);
struct jl_journal *jl_journal_ref(struct jl_journal *j);
void jl_journal_unref(void *journal); /* impl_release of jc_journal */
/* Under the store lock: what follows from the fragment list. */
void jl_journal_set_first(struct jl_journal *j);
/* Under the store lock: the index of the first closed fragment that ends behind pos. */
size_t jl_first_behind(const struct jl_journal *j, int64_t pos);
/* Fragment number at, the open one behind the closed ones. */
static inline struct jl_frag *jl_frag_at(const struct jl_journal *j, size_t at)
{
    return at < j->frags_n ? j->frags[at] : j->open;
}
/* Its block index is there, or not needed. */
static inline bool jl_frag_loaded(const struct jl_frag *f)
{
    return f->open || jl_frag_jumped(f) || f->blocks.v != NULL;
}
static inline struct jl_journal *jl_of(const struct jc_journal *j)
{
    return j->impl;
}

/* --- operations (op.c) --- */
enum jl_op_kind { JL_OP_WATCH, JL_OP_FOLLOW, JL_OP_READ, JL_OP_BLOCK, JL_OP_SEEK, JL_OP_FRAGMENTS };

struct jl_read_state {
    struct jc_reader cb;
    int64_t pos, end, deadline_ms;
    bool block;
    size_t chunk;
    struct blob *bytes;
    struct jc_heads heads;
};

/* lock: store. Counted: the caller's handle, the registry it is linked in, and a task under way
 * hold one reference each. */
struct jc_op {
    atomic_uint refs;
    enum jl_op_kind kind;
    struct jl_store *store; /* counted */
    struct jl_journal *j;   /* counted; NULL for watch */
    struct executor *ex;
    struct task task;  /* at most one step is under way */
    struct task task2; /* watch, follow: of two that take turns */
    bool canceled;
    bool linked; /* in watchers, followers or waiters */
    bool timed;  /* in the store's list of deadlines */
    /* watch, follow */
    bool pending; /* a posted task has not begun */
    bool second;  /* the last one posted was task2 */
    bool running; /* a callback runs, or it has ended */
    bool dirty;   /* a task began while another ran: it has to look once more */
    bool retry;   /* watch: a snapshot failed for want of memory */
    int end_err;  /* watch, follow: why it ends */
    int err;      /* the answer */
    TAILQ_ENTRY(jc_op) link;
    TAILQ_ENTRY(jc_op) timed_link;
    union {
        struct {
            struct jc_watcher cb;
            struct jc_selector *sel;
            const struct jc_listing *last;
        } watch;
        struct jc_follower follow;
        struct jl_read_state read;
        struct {
            int64_t block, from;
            bool partial;
            jc_block_fn *done;
            void *arg;
            struct jc_block out;
        } block;
        struct {
            struct jc_seek_req rq;
            jc_seek_fn *done;
            void *arg;
            int64_t block;
        } seek;
        struct {
            jc_fragments_fn *done;
            void *arg;
            struct jc_fragment *list;
            size_t n;
        } frags;
    } u;
};

MUST_USE int jl_op_new(struct jl_store *s, enum jl_op_kind kind, const struct jc_journal *j,
                       struct executor *ex, struct jc_op **out);
void jl_op_unref(struct jc_op *op);
/* Takes a reference for the step and runs it on the I/O pool. E_CLOSED (no reference taken). */
MUST_USE int jl_op_submit(struct jc_op *op, void (*run)(struct task *t));
/* From an I/O step: posts run to the op's executor, the step's reference goes along. Nothing is
 * posted, and the reference dropped, when it was cancelled. */
void jl_op_answer(struct jc_op *op, void (*run)(struct task *t));
/* In a task on the executor: true = run the callback. */
bool jl_op_enter(struct jc_op *op);
struct jc_op *jl_op_of(struct task *t);
void jl_op_cancel(struct jc_op *op);

/* watch.c; under the store lock */
void jl_notify(struct jc_op *op);
void jl_notify_followers(struct jl_journal *j);
void jl_end_followers(struct jl_journal *j, int err);
void jl_end_watchers(struct jl_store *s, int err);
void jl_retry_watchers(struct jl_store *s);
int jl_watch(struct jc_store *s, const struct jc_selector *sel, const struct jc_watcher *w,
             struct jc_op **out);
int jl_follow(struct jc_store *s, const struct jc_journal *j, const struct jc_follower *f,
              struct jc_op **out);

/* read.c */
int jl_read(struct jc_store *s, const struct jc_read_opts *o, const struct jc_reader *r,
            struct jc_op **out);
/* Under the store lock: those whose position the head has passed; all when err != 0. */
void jl_wake_waiters(struct jl_journal *j, int err);
/* Timer thread, without the lock. Returns ms until it wants to be called again, -1: no deadline. */
int64_t jl_read_deadlines(struct jl_store *s);

/* block.c */
int jl_read_block(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                  jc_block_fn *done, void *arg, struct jc_op **out);
/* Fragments that one operation could not look into. Owner: its step; each is counted. */
struct jl_opaque {
    struct jl_frag **v;
    size_t n;
};
MUST_USE int jl_opaque_add(struct jl_opaque *o, struct jl_frag *f);
bool jl_opaque_has(const struct jl_opaque *o, const struct jl_frag *f);
void jl_opaque_fini(struct jl_opaque *o);
/* seek.c */
int jl_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex, jc_seek_fn *done,
            void *arg, struct jc_op **out);
int jl_fragments(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                 jc_fragments_fn *done, void *arg);
/* Whole range or an error; E_CORRUPT when the file ends early. */
MUST_USE int jl_pread_full(int fd, void *p, size_t n, int64_t at);

/* --- requests to the committer (request.c) --- */
struct jl_req;
typedef void jl_req_run(struct jl_store *s, struct jl_req *rq);

struct jl_req {
    struct task task; /* the answer */
    STAILQ_ENTRY(jl_req) link;
    struct executor *ex; /* NULL: no answer */
    jl_req_run *run;     /* committer; NULL for an append, which goes through a group */
    bool after;          /* may run after a group that is being collected */
    int err;
    /* append, kv_set */
    struct jc_txn *txn;
    jc_txn_fn *done;
    void *arg;
    union {
        struct {
            jc_apply_fn *done;
            struct jc_change *changes;
            size_t n;
            int64_t revision;
        } apply;
        struct {
            jc_kv_fn *get;
            jc_kv_scan_fn *scan;
            jc_done_fn *set;
            struct jc_txn own; /* kv_set */
            char *key;
            struct blob *value;
            struct jc_kv *list;
            size_t n;
        } kv;
        struct {
            jc_done_fn *done;
            struct jl_journal *j;
            int64_t at;
        } frag;
    } u;
};
STAILQ_HEAD(jl_req_list, jl_req);

MUST_USE int jl_req_new(struct jl_store *s, struct executor *ex, void (*answer)(struct task *t),
                        struct jl_req **out);
/* Gives it to the committer; frees it and returns E_CLOSED when the store closes. */
MUST_USE int jl_req_post(struct jl_store *s, struct jl_req *rq);
void jl_req_free(struct jl_req *rq);
struct jl_req *jl_req_of(struct task *t);
/* Committer: sends it to its executor, or frees it. */
void jl_req_answer(struct jl_req *rq, int err);
int jl_append(struct jc_store *s, struct jc_txn *txn, struct executor *ex, jc_txn_fn *done,
              void *arg);
/* kv.c */
int jl_kv_get(struct jc_store *s, const char *key, struct executor *ex, jc_kv_fn *done, void *arg);
int jl_kv_scan(struct jc_store *s, const char *prefix, struct executor *ex, jc_kv_scan_fn *done,
               void *arg);
int jl_kv_set(struct jc_store *s, const struct jc_kv *kv, size_t n, struct executor *ex,
              jc_done_fn *done, void *arg);
/* apply.c */
int jl_apply(struct jc_store *s, const struct jc_change *c, size_t n, struct executor *ex,
             jc_apply_fn *done, void *arg);
void jl_changes_free(struct jc_change *changes, size_t n);
/* Removes all files of a journal name that the database does not know any more. */
MUST_USE int jl_trash_empty(struct jl_store *s, const char *name);

/* commit.c; committer thread */
void *jl_committer_main(void *store);
/* The thread of deadlines and ticks; store.c */
void *jl_timer_main(void *store);

/* roll.c; committer */
/* Closes the open fragment if it is due (or force). */
MUST_USE int jl_roll(struct jl_store *s, struct jl_journal *j, const struct jc_spec *spec,
                     bool force);
/* An earlier close whose record failed is recorded now; before anything is appended. */
MUST_USE int jl_roll_finish(struct jl_store *s, struct jl_journal *j);
MUST_USE int jl_remove_prefix(struct jl_store *s, struct jl_journal *j, size_t n);
/* Makes a hole, or removes the prefix when all below was removed before. The file may be gone
 * already. E_NOTFOUND: it is such a hole. */
MUST_USE int jl_remove_one(struct jl_store *s, struct jl_journal *j, size_t at);
void jl_housekeeping(struct jl_store *s);
int64_t jl_now_ms(const struct jl_store *s);

/* seal.c: at a clean close the digest of each open fragment is kept, so that damage to it does not
 * go unseen. Returns 1 when the seal for just this end exists and differs, 0, or E_*. */
void jl_seal_all(struct jl_store *s);
MUST_USE int jl_seal_drop(struct jl_store *s, const struct jl_journal *j);
MUST_USE int jl_seal_compare(struct jl_store *s, const struct jl_journal *j, const char *sha1);

/* recover.c */
MUST_USE int jl_recover(struct jl_store *s, char *why, size_t why_bytes);

/* --- files and folders (dir.c) --- */
MUST_USE int jl_mkdirs(const char *path, bool sync);
MUST_USE int jl_sync_dir(const char *path);
/* Heap strings; NULL: out of memory. */
MUST_USE char *jl_path_open(const char *dir, const char *journal, int64_t begin);
MUST_USE char *jl_path_closed(const char *dir, const char *journal, int64_t begin, int64_t end,
                              const char *sha1);
MUST_USE char *jl_path_index(const char *dir, const char *journal, int64_t begin, int64_t end);
MUST_USE char *jl_path_join(const char *dir, const char *kind, const char *journal);
/* A closed fragment's file name. */
bool jl_name_parse(const char *name, int64_t *begin, int64_t *end, char sha1[41]);
/* Removes the files in one folder (not below it) whose name ends so. */
MUST_USE int jl_remove_files(const char *folder, const char *suffix);
void jl_why(char *why, size_t why_bytes, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- the store --- */
struct jl_store {
    struct jc_store base; /* first */
    atomic_uint refs;
    char *dir;
    const struct clock *clock;
    struct jl_probe probe;
    bool read_only, accept_lost;
    int64_t fragment_bytes, housekeeping_ms;
    struct jl_hooks hooks;
    int lock_fd;
    struct jobpool *io;
    pthread_t committer, timer;
    bool committer_runs, timer_runs;

    pthread_mutex_t lock;
    pthread_cond_t work, timer_wake;
    bool closing;
    bool stop_timer;
    bool tick_queued;
    struct jl_req_list queue;
    const struct jc_listing *listing; /* written by the committer only */
    struct jl_op_list watchers, timed;

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
struct jl_store *jl_store_ref(struct jl_store *s);
void jl_store_unref(struct jl_store *s);
