/*
 * Publishing: documents in, one transaction out. Needs no HTTP: `sluice publish --data-dir` uses it
 * too. A publisher belongs to one thread (its home: in the server the control thread); parsing and
 * stamping run on the job pool, the commit on the store's committer.
 *
 * Life of a request: find or create the collection's journals -> job: parse, check, stamp, route
 * -> store append (prepare writes the UUIDs) -> answer. All faults of a body are collected; with
 * one fault nothing of it is published.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/blob.h"
#include "base/executor.h"
#include "base/mailbox.h"
#include "journal_client/store.h"

struct catalog;
struct publisher;

/* Borrowed until publisher_free. Zero limits mean the default in brackets. */
struct publisher_opts {
    struct jc_store *store;
    struct mailbox *home;      /* of the owning thread: all answers arrive there */
    struct executor *jobs;     /* may compute for long; never the home mailbox's thread alone */
    const struct clock *clock; /* wall time for the expiry of idempotency keys; NULL: system's */
    unsigned partitions;       /* of a collection that a first publish creates [1] */
    bool read_only_catalog;    /* unknown collections are an error (404) instead ... */
    const struct catalog *catalog; /* ... but for those that it defines, which are created with
                                      their key; may be NULL */
    size_t max_body_bytes;         /* one request [64 MiB] */
    size_t max_document_bytes;     /* one document [64 MiB] */
    size_t max_in_flight_bytes; /* bodies of all running requests; more is answered 503 [256 MiB] */
    int64_t idempotency_ms;     /* how long an Idempotency-Key is remembered, counted from the
                                   transaction's own clock [7 days] */
};

enum publish_form {
    PUBLISH_AUTO,   /* JSON when the first byte that is not white space is '[', else NDJSON */
    PUBLISH_NDJSON, /* one document a line; blank lines are skipped */
    PUBLISH_JSON,   /* one array of documents, or one document */
};

#define PUBLISH_MAX_PARTITIONS 1024
#define PUBLISH_MAX_KEYS       32  /* = GW_KEY_PARTS_MAX */
#define PUBLISH_MAX_IDEM_KEY   256 /* bytes of an idempotency key */

/* Borrowed for the call, except body. */
struct publish_req {
    struct span collection;
    struct blob *body; /* the publisher takes over this reference, also when it fails */
    enum publish_form form;
    /* Only for a collection that does not exist yet: */
    unsigned partitions;     /* 0: the publisher's default */
    const struct span *keys; /* JSON pointers, e.g. "/id" */
    size_t keys_n;
    struct span idempotency_key; /* n == 0: none */
};

/* An answer as HTTP has it; the command line reads the same. Borrowed for the callback. */
struct publish_answer {
    int status;             /* 200, 400, 404, 409, 413, 422, 500, 503, 507 */
    struct span json;       /* one object, see docs/ingest.md */
    bool replayed;          /* the stored answer of an earlier request with this key */
    unsigned retry_after;   /* seconds; 0: none */
    const char *collection; /* on success: its name, and how many partitions it has; else NULL, 0 */
    size_t partitions;
};

typedef void publish_fn(void *arg, const struct publish_answer *answer);

/* Starts watching the store's journals. Home thread. */
MUST_USE int publisher_new(const struct publisher_opts *opts, struct publisher **out);
/* Home thread. done is called exactly once, later, on the home thread, never from inside. Negative
 * (E_NOMEM): nothing was started and done is not called. */
MUST_USE int publisher_post(struct publisher *p, const struct publish_req *rq, publish_fn *done,
                            void *arg);

/* Somebody who needs the store's producer id; owned by who asks, until done. */
struct publisher_wait {
    STAILQ_ENTRY(publisher_wait) link;
    struct task task; /* the publisher's */
    int err;
    uint8_t id[6];
    void (*done)(struct publisher_wait *w); /* err and id are set; may free w */
};
STAILQ_HEAD(publisher_waits, publisher_wait);

/* Reads the id, or makes it when the store has none. done comes later, on the home thread. Does not
 * count as busy. */
void publisher_need_producer(struct publisher *p, struct publisher_wait *w);
/* Requests that were not answered yet. */
size_t publisher_busy(const struct publisher *p);
/* The last listing of the store, borrowed for the event; NULL before the first arrived. */
const struct jc_listing *publisher_listing(const struct publisher *p);
/* Home thread: requests that wait for a listing are answered now, by 503, and so are later ones. */
void publisher_hurry(struct publisher *p);
/* Home thread, and only when publisher_busy() is 0. NULL is allowed. */
void publisher_free(struct publisher *p);
/* Another catalog is in force: for publishes that look at it from now on. Borrowed as opts are. */
void publisher_set_catalog(struct publisher *p, const struct catalog *c);
