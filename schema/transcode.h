/*
 * JSON document -> Avro key and value, by the program of a struct sc_avro: one strict pass, no
 * tree, no allocation per document once the scratch has grown. Members may come in any order; of
 * duplicates the last counts. Locale-proof. What each value becomes: docs/avro.md.
 *
 * Threads: the program is shared; a scratch belongs to one thread at a time.
 */
#pragma once

#include "schema/avro.h"

#define SC_AVRO_MAX_BYTES ((size_t)256 << 20) /* of one key or value */

struct sc_scratch;
MUST_USE int sc_scratch_new(struct sc_scratch **out); /* E_NOMEM */
void sc_scratch_free(struct sc_scratch *s);           /* NULL is allowed */

/* Spans live until the scratch is used again or freed. */
struct sc_avro_record {
    struct span key;   /* with its frame */
    struct span value; /* with its frame; {NULL, 0}: a tombstone */
    bool deleted;      /* /_meta/op is "d", in every mode */
};

struct sc_transcode_error {
    char pointer[512];  /* the location in the document; a longer one ends in "..." */
    const char *reason; /* static text, without values of the document */
    size_t at;          /* byte offset in the document where it was seen */
};

/* doc: one document; white space around it is allowed. Any bytes are safe.
 * E_SYNTAX: not JSON (pointer is ""); E_INVALID: a value or a missing field that the schema does
 * not admit; E_RANGE: a number, date or text beyond what its Avro type holds; E_LIMIT: nested more
 * than SC_JSON_MAX_DEPTH deep or larger than SC_AVRO_MAX_BYTES; E_NOMEM. *err is filled for all but
 * E_NOMEM. After an error the scratch is as good as new. */
MUST_USE int sc_transcode(const struct sc_avro *a, struct sc_scratch *s, struct span doc,
                          struct sc_avro_record *out, struct sc_transcode_error *err);
/* The key alone: cheaper where the value is served as it is stored (out->value is empty). */
MUST_USE int sc_transcode_key(const struct sc_avro *a, struct sc_scratch *s, struct span doc,
                              struct sc_avro_record *out, struct sc_transcode_error *err);
