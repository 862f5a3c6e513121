/*
 * Operations of callers: what can be cancelled. The table of the store (store.c) points here.
 */
#pragma once

#include "journal_client/local/journal.h"

struct jl_store;

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
