/*
 * Private parts of the publisher: its requests. publish.c keeps the publisher and admits requests,
 * publish_call.c leads each one to its answer.
 */
#pragma once

#include <sys/queue.h>

#include "base/arena.h"
#include "gateway/publish_int.h"

#define PUB_SHA_BYTES  32
#define PUB_ANSWER_MAX ((size_t)4 << 20)

/* Owner: home thread, and for a time its job or the committer. */
struct publish_call {
    LIST_ENTRY(publish_call) link;
    struct task task; /* the next step, on its way to the home thread or the job pool */
    struct publisher *p;
    publish_fn *done;
    void *arg;
    struct arena arena; /* the request's strings */
    struct span collection;
    struct blob *body;
    enum publish_form form;
    unsigned partitions;
    struct span *keys;
    size_t keys_n;
    char *idem_key; /* in the store; NULL: none */
    uint8_t sha[PUB_SHA_BYTES];
    struct blob *stored; /* value of idem_key: SHA-256 of the body, then the answer */
    struct pub_layout *layout;
    struct pub_parsed parsed;
    int parse_err;
    struct jc_op *relist;
    const struct jc_listing *fresh; /* what relist brought */
    struct pub_specs *specs;
    struct jc_txn txn;
    struct jc_append_part *parts;
    struct jc_kv kv;
    struct blob *kv_value;
    struct writer answer;
    unsigned attempts;
    bool waiting; /* for the producer id */
};

LIST_HEAD(publish_calls, publish_call);

/* Owner: home thread. */
struct publisher {
    struct publisher_opts opts;
    struct jc_op *watch;
    const struct jc_listing *listing;
    struct pub_index *index;
    struct publish_calls calls;
    size_t busy;
    size_t in_flight_bytes;
    uint8_t producer[6];
    enum { PRODUCER_UNKNOWN, PRODUCER_ASKED, PRODUCER_KNOWN } producer_state;
    struct publisher_waits waits; /* others who need the id */
    bool hurried;                 /* nobody waits for a listing any more */
    bool producer_written;        /* a kv_set of ours was answered: kv_get must find an id */
};

/* Sends the call's task to an executor, to go on with run. */
void pub_call_post(struct publish_call *c, struct executor *ex, void (*run)(struct task *t));
struct publish_call *pub_call_of(struct task *t);
/* Answers with an error and frees the call. */
void pub_call_refuse(struct publish_call *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a fault that is not the request's; err names the status. */
void pub_call_fail(struct publish_call *c, const char *what, int err);
/* The request is admitted: leads it to its answer. */
void pub_call_begin(struct publish_call *c);
/* Answers it, if it waits for a listing. */
void pub_call_hurry(struct publish_call *c);
