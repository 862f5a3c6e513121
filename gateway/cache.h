/*
 * The shared cache of finished record batches. Key: (part id, block, encoder id, bound,
 * signals, codec allowed by the client's version). Single-flight: one load per key, later askers
 * wait on it. Byte budget with second-chance eviction. Entries are immutable and counted; a growing
 * block's entry is replaced by a longer one that shares its batches. Any thread; its shard locks
 * are leaves.
 */
#pragma once

#include "base/jobpool.h"
#include "gateway/signal.h"
#include "gateway/view.h"
#include "kafka_proto/batch.h"

struct gw_cache;
struct gw_cache_wait; /* one asker that waits for a load */

struct gw_cache_key {
    uint64_t part_id;
    int64_t block;
    uint32_t encoder_id;
    enum kp_codec codec;
    struct gw_bound bound;
    struct gw_signal signal;
};

/* Owner: immutable, counted. The batches of one block, by rising offset. */
struct gw_blockbatches {
    atomic_uint refs;
    int64_t read_to;       /* no visible document whose last byte is below this is missing */
    int64_t content_end;   /* end of the last content document found, hidden by the bound or not; 0
                              when there was none */
    struct jc_marks marks; /* the highest markers found: what raises a head brings those below it */
    int64_t log_start;     /* of the partition when the block was read */
    bool sealed;           /* complete for ever */
    struct gw_lead pending;   /* signals that no record behind them has told yet */
    struct jc_range *damaged; /* owned; what the store could not read, by rising begin: no batch
                                 holds records on both sides of one. Such entries are not kept */
    size_t damaged_n;
    struct jc_range *refused; /* owned; documents that do not fit their schema where that stops the
                                 partition, by rising begin; no batch spans one */
    size_t refused_n;
    size_t n;
    size_t bytes;              /* memory that it keeps alive */
    struct kp_batch batches[]; /* each holds its own reference on its bytes */
};

/* All borrowed for the call. */
struct gw_cache_ask {
    struct gw_part *part;
    const struct gw_encoder *encoder;
    enum kp_codec codec; /* the encoder's, or KP_CODEC_NONE for clients that cannot read it */
    struct gw_bound bound;
    struct gw_signal signal; /* zeroed: records carry no signals */
    int64_t block;
    int64_t need_to; /* an entry that was read less far and is not sealed will not do */
};

/* err 0: entry is a reference that the receiver owns. Otherwise entry is NULL: E_NOTFOUND journal
 * gone, E_IO, E_CORRUPT, E_NOMEM. The wait is over and must not be cancelled any more. */
typedef void gw_cache_fn(void *arg, int err, struct gw_blockbatches *entry);

/* loads: where blocks are encoded; borrowed, as is the store. */
MUST_USE int gw_cache_new(size_t budget_bytes, struct jc_store *store, struct jobpool *loads,
                          struct gw_cache **out);
/* Waits for running loads, so the store and the pool must still be alive; nobody may ask or wait
 * any more. NULL is allowed. */
void gw_cache_free(struct gw_cache *c);

/* 0 and *out set: there at once, the caller owns the reference. 0 and *wait set: done will run on
 * ex (a mailbox; call from its thread) unless cancelled. Otherwise a negative E_*, and nothing will
 * run. Exactly one of *out and *wait is set on 0. */
MUST_USE int gw_cache_get(struct gw_cache *c, const struct gw_cache_ask *ask, struct executor *ex,
                          gw_cache_fn *done, void *arg, struct gw_blockbatches **out,
                          struct gw_cache_wait **wait);
/* On the thread of the wait's executor: done will not run. The load goes on for others. */
void gw_cache_cancel(struct gw_cache_wait *w);
/* The entry if it is there and read far enough, without loading; NULL otherwise. The caller owns
 * the reference. */
struct gw_blockbatches *gw_cache_peek(struct gw_cache *c, const struct gw_cache_ask *ask);
/* Starts a load that nobody waits for, unless the entry is there or on its way. Failure is silent:
 * whoever needs the block will meet it. */
void gw_cache_prefetch(struct gw_cache *c, const struct gw_cache_ask *ask);

/* Bytes that count against the budget. */
size_t gw_cache_bytes(const struct gw_cache *c);

struct gw_blockbatches *gw_blockbatches_ref(struct gw_blockbatches *b);
void gw_blockbatches_unref(struct gw_blockbatches *b); /* NULL is allowed */
/* Where the first damage that ends behind offset begins (at or below offset: it lies in it);
 * INT64_MAX when there is none. */
int64_t gw_blockbatches_damage(const struct gw_blockbatches *b, int64_t offset);
/* The same for refused documents. */
int64_t gw_blockbatches_refused(const struct gw_blockbatches *b, int64_t offset);
/* Index of the first batch whose last offset is >= offset; b->n when there is none. */
size_t gw_blockbatches_find(const struct gw_blockbatches *b, int64_t offset);
