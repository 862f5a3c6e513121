/*
 * What groups must not forget, in a SQLite file of its own (WAL, synchronous=FULL): generations and
 * committed offsets. One thread writes; all writes that queued up meanwhile go into one transaction
 * (group commit), and each is answered after it is durable. Reading happens once, at the start:
 * afterwards the memory of the groups thread is the truth.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/executor.h"
#include "base/span.h"

struct group_store;

enum group_op_kind {
    GROUP_OP_PUT_GROUP,     /* generation, protocol_type, empty_since_ms */
    GROUP_OP_DELETE_GROUP,  /* with all its offsets */
    GROUP_OP_PUT_OFFSET,    /* topic, partition, epoch, offset, metadata, commit_ms */
    GROUP_OP_DELETE_OFFSET, /* topic, partition, epoch */
};

struct group_op {
    enum group_op_kind kind;
    struct span task;
    struct span group;
    /* PUT_GROUP */
    int32_t generation;
    int64_t empty_since_ms; /* wall clock; 0: it has members */
    /* offsets */
    struct span topic;
    int32_t partition;
    int32_t epoch;
    int64_t offset;
    int64_t commit_ms; /* wall clock */
    struct span metadata;
};

/*
 * Owner: the caller, until posted to the store; back in done.
 *
 * The operations and all that they point to are the caller's as well, in the same memory as the
 * write (beside it, or in the arena of the call that holds it), and are given back with that
 * memory, never by themselves. Neither the store nor the groups service frees them, and none of
 * them may point into what an earlier write can change when it is done: a group's task and id stay
 * as long as it has writes, names of topics are copied.
 */
struct group_write {
    struct task task; /* in the store: its queue. Back: posted to ex, run = done */
    struct executor *ex;
    void (*done)(struct group_write *w); /* on ex; w->err tells; frees w */
    int err;
    size_t ops_n;
    struct group_op *ops;
};

/* What group_store_load finds; spans are borrowed for the call. A negative return ends the load. */
struct group_visitor {
    int (*group)(void *arg, const struct group_op *op);  /* as PUT_GROUP */
    int (*offset)(void *arg, const struct group_op *op); /* as PUT_OFFSET; after all groups */
    void *arg;
};

/* Opens or creates the file, brings an older schema up to date, starts the thread. E_VERSION: the
 * file is of a newer program; E_BUSY: another process has it; E_CORRUPT, E_IO, E_NOMEM. why: one
 * line for the operator. */
MUST_USE int group_store_open(const char *path, struct group_store **out, char *why,
                              size_t why_bytes);
/* Before the first write; on the caller's thread. */
MUST_USE int group_store_load(struct group_store *s, const struct group_visitor *v);
/* Any thread; never blocks for long. Writes become durable in the order of the calls. */
void group_store_post(struct group_store *s, struct group_write *w);
/* Finishes what is queued (each write is answered), joins the thread, closes the file. NULL is
 * allowed. */
void group_store_close(struct group_store *s);

/* Tests: what the thread does, step by step, without one. The n-th step of a batch from now on
 * fails as if the process died there: all later ones answer E_IO and change nothing. */
enum group_store_step {
    GROUP_STEP_BEGIN,
    GROUP_STEP_APPLY, /* before each operation */
    GROUP_STEP_COMMIT,
    GROUP_STEP_DONE, /* durable, not answered yet */
};
typedef int group_step_fn(void *arg, enum group_store_step step);
void group_store_on_step(struct group_store *s, group_step_fn *fn, void *arg);
