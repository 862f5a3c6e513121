/*
 * Private parts of backfills: backfill.c keeps states and the listing, backfill_call.c leads one
 * request to its answer, backfill_scan.c looks for documents of other producers, backfill_label.c
 * puts labels on journals. Home thread, except where said.
 */
#pragma once

#include <sys/queue.h>

#include "gateway/backfill.h"
#include "gateway/publish_int.h"

#define BF_KEY_PREFIX "backfill/"

struct bf_call;
STAILQ_HEAD(bf_calls, bf_call);

/* Owner: struct backfills. A collection that has a state or a request. */
struct bf_collection {
    LIST_ENTRY(bf_collection) link;
    struct backfills *bf;
    char *name;
    struct backfill_state state; /* durable */
    struct bf_calls calls;       /* the first one runs */
    bool running;
    /* labels */
    bool dirty;            /* some journal may lack its label */
    bool applying;         /* an apply is under way */
    int64_t need_revision; /* the listing must be as new before the next try */
    int64_t used_revision; /* of the apply under way */
    size_t batch;          /* journals of one apply: halved by each failure, doubled by success */
    size_t skip;           /* journals that cannot be labelled just now; until the next tick */
};
LIST_HEAD(bf_collections, bf_collection);

struct backfills {
    struct backfill_opts opts;
    struct jc_op *watch;
    const struct jc_listing *newest;  /* as it came */
    const struct jc_listing *listing; /* indexed; NULL before the first */
    struct pub_index *index;          /* of listing */
    struct bf_collections collections;
    enum { BF_STATES_UNKNOWN, BF_STATES_ASKED, BF_STATES_KNOWN } states;
    bool draining;
    size_t busy;
};

void bf_point(const struct backfills *bf, const char *where);
/* Starts the collection's next request; drops a collection that nobody needs. */
void bf_collection_next(struct bf_collection *col);

/* --- labels (backfill_label.c) --- */
void bf_labels_apply(struct bf_collection *col);

/* --- search (backfill_scan.c) --- */

/* Owner: a request. Reads the heads of all journals, then, if wanted, the content documents with a
 * clock >= bound until one of another producer turns up. */
struct bf_scan {
    struct task task;
    struct backfills *bf;
    const struct pub_index_row *rows; /* borrowed until done */
    size_t rows_n;
    uint64_t bound;
    uint8_t own[6];
    bool look; /* for foreign producers */
    void (*done)(void *arg, int err);
    void *arg;
    /* result */
    uint64_t max_clock; /* of all content */
    struct backfill_foreign foreign;
    /* where it stands */
    struct jc_op *op;
    struct jc_heads *heads; /* rows_n */
    bool looking;           /* all heads are known: documents */
    size_t at;
    int64_t pos;
    struct jc_block block;
    int err;
};

/* Set the fields above the result. done comes later, never from inside; free with bf_scan_fini
 * after it. Negative: done is not called. */
MUST_USE int bf_scan_start(struct bf_scan *sc);
void bf_scan_fini(struct bf_scan *sc);

/* --- requests (backfill_call.c) --- */
struct bf_call {
    STAILQ_ENTRY(bf_call) link;
    struct task task;
    struct bf_collection *col;
    enum backfill_verb verb;
    bool force;
    uint64_t expect;
    backfill_fn *done;
    void *arg;
    struct publisher_wait wait;
    uint8_t producer[6];
    struct jc_op *relist;
    const struct jc_listing *fresh;
    struct pub_index *ix;
    const struct pub_index_row *rows; /* of fresh */
    size_t rows_n;
    struct bf_scan scan;
    uint64_t label_floor;   /* the highest label: the marker's clock lies above */
    uint64_t content_floor; /* the highest clock of a document: the same, unless forced */
    bool label_ahead, content_ahead;
    struct blob *marker; /* one line, the same in all partitions */
    struct jc_append_part *parts;
    struct jc_txn txn;
    struct jc_kv kv;
    char *key;
    char value[BACKFILL_STATE_MAX];
    struct backfill_state next;
    uint64_t clock;
    unsigned attempts;
};

void bf_call_begin(struct bf_call *c);
/* Answers with 503 and frees it; it was not begun. */
void bf_call_drop(struct bf_call *c, int err);
