/*
 * The shared cache of finished record batches. Key: (part id, block, encoder id, bound class, codec
 * allowed by the client's version). Single-flight: one load per key, later askers wait on it. Byte
 * budget with clock eviction. Entries are immutable and counted; a growing block's entry is
 * replaced by a longer one that shares its batches.
 */
#pragma once

#include "gateway/view.h"
#include "kafka_proto/batch.h"

struct gw_cache;

struct gw_cache_key {
    uint64_t part_id;
    int64_t block;
    uint32_t encoder_id;
    enum kp_codec codec;
    struct gw_bound bound;
};

/* Owner: immutable, counted. The batches of one block, by rising offset. */
struct gw_blockbatches {
    atomic_uint refs;
    int64_t read_to; /* no visible document whose last byte is below this is missing */
    bool sealed;     /* complete for ever */
    size_t n;
    size_t bytes;
    struct kp_batch batches[]; /* each holds its own reference on its bytes */
};

MUST_USE int gw_cache_new(size_t budget_bytes, struct gw_cache **out);
void gw_cache_free(struct gw_cache *c);
void gw_blockbatches_unref(struct gw_blockbatches *b); /* NULL is allowed */
