/*
 * From a document to a record's key, value and headers, as its topic's encoder says: JSON as it is
 * stored, or Avro. Pure; one block_encoder per build, which belongs to one thread.
 */
#pragma once

#include "gateway/block_build.h"
#include "kafka_proto/batch.h"
#include "schema/transcode.h"

#define BLOCK_HEADERS_MAX 2

struct block_encoder {
    const struct gw_build *how;
    struct sc_scratch *scratch; /* Avro alone */
    struct writer key;          /* JSON text; reused for each document */
    char why[640];              /* of a document that did not fit and is served raw */
};

/* Until the next document. */
struct block_record {
    struct span key;   /* p NULL: null */
    struct span value; /* p NULL: a tombstone */
    struct kp_header headers[BLOCK_HEADERS_MAX];
    size_t headers_n;
};

/* how is borrowed. E_NOMEM. */
MUST_USE int block_encoder_init(struct block_encoder *e, const struct gw_build *how);
void block_encoder_fini(struct block_encoder *e);
/* E_INVALID: the document does not fit its schema and is not to be served (how->on_misfit was
 * told); E_NOMEM. */
MUST_USE int block_encode(struct block_encoder *e, struct span doc, int64_t offset,
                          struct block_record *out);
