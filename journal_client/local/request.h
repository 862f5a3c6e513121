/*
 * Requests to the committer: one queue, in order. Each is answered once, by the task inside of it.
 */
#pragma once

#include <sys/queue.h>

#include "base/executor.h"
#include "journal_client/store.h"

struct jl_journal;
struct jl_store;

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
