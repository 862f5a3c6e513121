/*
 * Truncation signals of the publisher: begin and complete a backfill of a collection (design,
 * section 6). A begin takes one clock reading. Its clock is the boundary: documents below it are
 * stale, in all partitions.
 *
 *   marker   the body of an ACK document, appended to every partition in one transaction, under one
 *            clock and the store's own producer
 *   state    kept in the store under backfill/<collection>, set by the marker's own commit: either
 *            both are there or neither
 *   labels   estuary.dev/truncated-at on every journal of the collection, by list watch and
 *            compare-and-set, after the state is durable; only forward, other labels stay
 *
 * Labels are not atomic with the marker. Whatever is missing is put there from the state: after a
 * restart, after a lost race, and on a journal that comes later. A `dirty` flag is not stored:
 * after a restart every state counts as dirty until the first listing shows its labels.
 *
 * One object a process. Everything runs on the home thread (the control thread in the server); a
 * search for foreign producers reads on the store's threads and scans on the job pool. Requests of
 * one collection run one after the other, in order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/executor.h"
#include "base/mailbox.h"
#include "base/span.h"
#include "journal_client/store.h"

struct backfills;
struct publisher;

/* Borrowed until backfills_free. */
struct backfill_opts {
    struct jc_store *store;
    struct mailbox *home;
    struct executor *jobs;
    struct publisher *publisher; /* knows the producer id */
    /* Tests: a place where a crash would be interesting. NULL in the server. */
    void (*point)(void *arg, const char *where);
    void *point_arg;
};

enum backfill_verb { BACKFILL_BEGIN, BACKFILL_COMPLETE };

/* Borrowed for the call. */
struct backfill_req {
    enum backfill_verb verb;
    struct span collection;
    bool force;      /* begin although others write documents, too */
    uint64_t expect; /* complete: only the backfill of this begin clock; 0: whichever is active */
};

/* A content document of the current generation that this store did not stamp. */
struct backfill_foreign {
    bool found;
    bool no_uuid; /* it carries no producer at all */
    uint8_t producer[6];
    const char *journal; /* borrowed for the callback */
    int64_t offset;      /* Kafka's: that of its last byte */
};

/* Borrowed for the callback. */
struct backfill_answer {
    int status;          /* as in HTTP: 200, 404, 409, 500, 503, 507 */
    const char *error;   /* one line; NULL with 200 */
    uint64_t clock;      /* of the marker that was written; 0: none was */
    uint64_t superseded; /* begin: the active backfill that it ended */
    bool ignored;        /* complete: no backfill is active, nothing was written */
    struct backfill_foreign foreign;
};

typedef void backfill_fn(void *arg, const struct backfill_answer *answer);

enum backfill_phase { BACKFILL_NONE, BACKFILL_ACTIVE, BACKFILL_COMPLETED };

struct backfill_state {
    enum backfill_phase phase;
    uint64_t begin;     /* clock of the last begin; 0: there never was one */
    uint64_t complete;  /* clock of the last complete; 0: there never was one */
    uint64_t completes; /* the begin that it belongs to */
};

struct backfill_status {
    struct backfill_state state;
    uint64_t truncated_at; /* the highest label; 0: there is none */
    size_t journals;
    size_t labelled; /* of them with a good label, at or above state.begin */
};

/* Home thread. Starts watching the store's journals. */
MUST_USE int backfills_new(const struct backfill_opts *opts, struct backfills **out);
/* done is called exactly once, later, on the home thread, when the marker is durable (labels
 * follow: see backfills_status). E_NOMEM: nothing was started. */
MUST_USE int backfills_post(struct backfills *bf, const struct backfill_req *rq, backfill_fn *done,
                            void *arg);
/* E_AGAIN: not known yet, right after start. E_NOTFOUND: neither a journal nor a backfill. */
MUST_USE int backfills_status(const struct backfills *bf, struct span collection,
                              struct backfill_status *out);
/* About once a second: tries again what failed. */
void backfills_tick(struct backfills *bf);
/* Ends long searches and starts no more; commits that are on their way go on. */
void backfills_drain(struct backfills *bf);
/* Operations that will call back. */
size_t backfills_busy(const struct backfills *bf);
/* Only when backfills_busy() is 0, and before publisher_free. NULL is allowed. */
void backfills_free(struct backfills *bf);

/* --- what is stored (backfill_state.c; pure) --- */

#define BACKFILL_STATE_MAX 256 /* bytes of its JSON */

/* The key of a collection's state. NULL: out of memory; mem_free. */
MUST_USE char *backfill_key(struct span collection);
/* Writes JSON, returns its length. */
size_t backfill_state_format(const struct backfill_state *s, char out[BACKFILL_STATE_MAX]);
/* E_CORRUPT. */
MUST_USE int backfill_state_parse(struct span json, struct backfill_state *out);

/* The labels truncated-at of one spec. */
struct backfill_label {
    uint64_t clock; /* the highest valid value; 0: none */
    bool plain;     /* exactly one of that name, and valid */
};
void backfill_label_of(const struct jc_spec *spec, struct backfill_label *out);
