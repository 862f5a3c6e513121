/*
 * What every store is built on: the store and its journals as counted objects behind one lock (the
 * store lock of docs/threads.md), and what callers run on them: op.c the life of an operation,
 * news.c watches and followers, stream.c stream reads, ask.c blocks, seeks, fragments,
 * fresh heads.
 *
 * A store has jc_hub and jc_hub_journal as the first members of its own objects and says in
 * jc_hub_ops what differs. Its work on operations ("steps") runs on one executor, `steps`;
 * callbacks run on the executor of the operation. Order of locks: the hub's, then an executor's.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "journal_client/store.h"
#include "journal_client/uuid.h"

struct jc_hub;
struct jc_hub_journal;
struct jc_block_ask;
struct jc_frags_ask;
struct jc_fresh_ask;
struct jc_news;
struct jc_read;
struct jc_seek_ask;

TAILQ_HEAD(jc_op_list, jc_op);

struct jc_hub_ops {
    /* The last reference went; any thread. The store's own members and the memory are its. */
    void (*free)(struct jc_hub *h);
    void (*journal_free)(struct jc_hub_journal *j);
    /* Under the lock, NULL: nothing to do. A journal got a follower: its heads are wanted. */
    void (*followed)(struct jc_news *n);
    /* Under the lock. A read that waits has a deadline: jc_read_deadlines() wants to be called. */
    void (*timed)(struct jc_hub *h);
    /* On steps, with a step's reference: the first step of all but news. NULL: op->ready at once.
     * Calls op->ready when the heads of the journal are known, with op->err set when they never
     * will be. */
    void (*begin)(struct jc_op *op);
    /* On steps, with a step's reference. Reads at most r->chunk bytes from r->pos, which lies below
     * stop, and calls jc_read_got once, then or later, on steps. */
    void (*read_fetch)(struct jc_read *r, int64_t stop);
    size_t read_bytes; /* size of the store's object that begins with a jc_read */
    /* On steps, with a step's reference, which the answer takes: jc_block_answer, jc_seek_answer,
     * jc_frags_answer, once, then or later, on steps. */
    void (*block)(struct jc_block_ask *a);
    void (*block_fini)(struct jc_block_ask *a); /* of the store's own part; NULL: nothing */
    size_t block_bytes;                         /* as read_bytes */
    void (*seek)(struct jc_seek_ask *a);
    void (*fragments)(struct jc_frags_ask *a);
    /* The same, without `begin` before it, for jc_fresh_answer. NULL: there is no `fresh`. */
    void (*fresh)(struct jc_fresh_ask *a);
};

struct jc_hub {
    struct jc_store base; /* first */
    const struct jc_hub_ops *ops;
    const struct clock *clock;
    struct executor *steps; /* set before the first operation */
    atomic_uint refs;
    pthread_mutex_t lock;
    /* lock */
    bool closing;                     /* no new operations, no new steps */
    const struct jc_listing *listing; /* NULL before the first one and behind the close */
    struct jc_op_list watchers, timed;
};

struct jc_hub_journal {
    atomic_uint refs;
    struct jc_hub *hub; /* counted */
    /* lock: the hub's */
    bool deleted;
    bool ready; /* heads are known */
    bool stale; /* they may be old: only lazy followers are told, and begin with them */
    struct jc_heads heads;
    struct jc_op_list followers;
    struct jc_op_list waiters; /* reads at the head */
};

/* refs = 1. */
void jc_hub_init(struct jc_hub *h, const struct jc_store_ops *base, const struct jc_hub_ops *ops,
                 const struct clock *clock);
void jc_hub_ref(struct jc_hub *h);
void jc_hub_unref(struct jc_hub *h);
static inline struct jc_hub *jc_hub_of(struct jc_store *s)
{
    return (struct jc_hub *)s;
}
/* Behind the close. */
void jc_hub_drop_listing(struct jc_hub *h);

/* refs = 1; takes a reference of h. */
void jc_hub_journal_init(struct jc_hub_journal *j, struct jc_hub *h);
void jc_hub_journal_ref(struct jc_hub_journal *j);
void jc_hub_journal_unref(struct jc_hub_journal *j);

/* --- operations (op.c) --- */

/* What all operations have; the first member of each kind's own object. Counted: the caller's
 * handle, the list it is linked in, and a task under way hold one reference each. */
struct jc_op {
    atomic_uint refs;
    struct jc_hub *hub;       /* counted */
    struct jc_hub_journal *j; /* counted; NULL for watch */
    struct executor *ex;
    struct task task;               /* one step is under way at most, on steps or on ex */
    void (*fini)(struct jc_op *op); /* gives back what the kind owns; NULL: nothing */
    /* Of who runs the step. */
    int err;
    void (*ready)(struct jc_op *op); /* its first step, once its journal's heads are known */
    TAILQ_ENTRY(jc_op) step_link;    /* the store's own use */
    /* lock: the hub's */
    bool canceled;
    bool timed;
    struct jc_op_list *list; /* it is linked in; NULL: none */
    TAILQ_ENTRY(jc_op) link;
    TAILQ_ENTRY(jc_op) timed_link;
};

/* bytes: of the kind's object, which is zeroed. j may be NULL. E_NOMEM. */
MUST_USE int jc_op_new(struct jc_hub *h, size_t bytes, const struct jc_journal *j,
                       struct executor *ex, void (*fini)(struct jc_op *op), struct jc_op **out);
void jc_op_ref(struct jc_op *op);
void jc_op_unref(struct jc_op *op);
struct jc_op *jc_op_of(struct task *t);
/* Takes a reference for a step and runs it on steps. E_CLOSED (no reference taken). */
MUST_USE int jc_op_step(struct jc_op *op, void (*run)(struct task *t));
/* The first step of a new operation; sets the caller's handle before it can run. An error frees
 * op. */
MUST_USE int jc_op_start(struct jc_op *op, void (*ready)(struct jc_op *op), struct jc_op **out);
/* From a step: posts run to the op's executor, the step's reference goes along. Nothing is posted,
 * and the reference dropped, when it was cancelled. */
void jc_op_answer(struct jc_op *op, void (*run)(struct task *t));
bool jc_op_canceled(struct jc_op *op);
/* In a task on the executor: true = run the callback. */
bool jc_op_enter(struct jc_op *op);
/* Under the lock: into a list, with a reference of its own; out of it and of the deadlines, the
 * reference then belongs to the caller. */
void jc_op_link(struct jc_op *op, struct jc_op_list *list);
void jc_op_unlink(struct jc_op *op);
/* jc_store_ops.cancel */
void jc_op_cancel(struct jc_op *op);

/* --- watches and followers (news.c) --- */

struct jc_news {
    struct jc_op op;
    struct task task2; /* of two that take turns */
    struct task wake;  /* the store's own use, for `followed` */
    bool is_watch;
    /* lock: the hub's */
    bool pending; /* a posted task has not begun */
    bool second;  /* the last one posted was task2 */
    bool running; /* a callback runs, or it has ended */
    bool dirty;   /* a task began while another ran: it has to look once more */
    bool retry;   /* a snapshot failed for want of memory */
    int end_err;  /* why it ends */
    /* its executor */
    struct jc_watcher watcher;
    struct jc_selector *sel;
    const struct jc_listing *last;
    struct jc_follower follower;
};

/* jc_store_ops.watch and .follow */
int jc_hub_watch(struct jc_store *s, const struct jc_selector *sel, const struct jc_watcher *w,
                 struct jc_op **out);
int jc_hub_follow(struct jc_store *s, const struct jc_journal *j, const struct jc_follower *f,
                  struct jc_op **out);
/* Under the lock. */
void jc_notify_watchers(struct jc_hub *h);
void jc_notify_followers(struct jc_hub_journal *j);
/* Under the lock: somebody who is not lazy follows it. */
bool jc_followed_closely(const struct jc_hub_journal *j);
void jc_end_watchers(struct jc_hub *h, int err);
void jc_end_followers(struct jc_hub_journal *j, int err);
/* Under the lock, now and then: those whose snapshot failed. */
void jc_retry_watchers(struct jc_hub *h);

/* --- stream reads (stream.c) --- */

struct jc_read {
    struct jc_op op;
    struct jc_reader cb;
    int64_t pos, end, deadline_ms;
    bool block;
    size_t chunk;
    int64_t at; /* of bytes */
    struct blob *bytes;
    struct jc_heads heads;
};

/* jc_store_ops.read */
int jc_hub_read(struct jc_store *s, const struct jc_read_opts *o, const struct jc_reader *r,
                struct jc_op **out);
/* On steps; takes a step's reference. */
void jc_read_step(struct jc_read *r);
/* The outcome of read_fetch; takes the step's reference and that of bytes. bytes NULL with err 0:
 * nothing is stored from r->pos to skip_to, which lies behind it. E_AGAIN: look again. */
void jc_read_got(struct jc_read *r, int err, int64_t at, struct blob *bytes, int64_t skip_to);
/* Under the lock: those whose position the head has passed; all when err != 0. */
void jc_wake_waiters(struct jc_hub_journal *j, int err);
/* Any thread, without the lock: ends what is late. Returns ms until the next deadline, -1: none. */
int64_t jc_read_deadlines(struct jc_hub *h);

/* --- blocks, seeks, fragments (ask.c) --- */

struct jc_block_ask {
    struct jc_op op;
    struct jc_block_req rq; /* journal is NULL: see op.j */
    jc_block_fn *done;
    void *arg;
    struct jc_block out;
};

struct jc_seek_ask {
    struct jc_op op;
    struct jc_seek_req rq; /* journal is NULL: see op.j */
    jc_seek_fn *done;
    void *arg;
    int64_t block;
    int64_t tried; /* this and tries: the store's own use, 0 at first */
    unsigned tries;
};

struct jc_frags_ask {
    struct jc_op op;
    jc_fragments_fn *done;
    void *arg;
    struct jc_fragment *list; /* owned */
    size_t n;
};

struct jc_fresh_ask {
    struct jc_op op;
    jc_fresh_fn *done;
    void *arg;
    struct jc_heads heads;
    int64_t since_ms; /* the store's own use */
};

/* jc_store_ops.read_block, .seek, .fragments and .fresh */
int jc_hub_read_block(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                      jc_block_fn *done, void *arg, struct jc_op **out);
int jc_hub_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                jc_seek_fn *done, void *arg, struct jc_op **out);
int jc_hub_fragments(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                     jc_fragments_fn *done, void *arg);
int jc_hub_fresh(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                 jc_fresh_fn *done, void *arg, struct jc_op **out);
/* With err < 0 what was collected is dropped. */
void jc_block_answer(struct jc_block_ask *a, int err);
void jc_seek_answer(struct jc_seek_ask *a, int err, int64_t block);
void jc_frags_answer(struct jc_frags_ask *a, int err);
void jc_fresh_answer(struct jc_fresh_ask *a, int err);

/* The choice among blocks by what an index knows of each. */
struct jc_seeker {
    const struct jc_seek_req *rq;
    int64_t low, high; /* blocks, both inclusive */
    int64_t best_ms;   /* of block */
    int64_t block;     /* the answer so far, -1: none */
};

static inline struct jc_seeker jc_seeker_of(const struct jc_seek_req *rq)
{
    return (struct jc_seeker){.rq = rq,
                              .low = rq->offset / JC_BLOCK_BYTES,
                              .high = (rq->end_offset - 1) / JC_BLOCK_BYTES,
                              .best_ms = INT64_MIN,
                              .block = -1};
}
static inline int64_t jc_seek_ms(const struct jc_seek_req *rq, uint64_t clock)
{
    return jc_clock_unix_ms(clock < rq->max_clock ? clock : rq->max_clock);
}
/* Takes one block in. True: no later block can be better. */
bool jc_seek_look(struct jc_seeker *sk, int64_t block, bool content, uint64_t max_clock);
