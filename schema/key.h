/* A collection's key: one or more JSON pointers. Extraction for routing and for the Kafka record
 * key. */
#pragma once

#include "schema/json_reader.h"

struct sc_key; /* immutable, any thread */

/* pointers: "/id", "/a/b", ... n >= 1. E_SYNTAX. */
MUST_USE int sc_key_new(const struct span *pointers, size_t n, struct sc_key **out);
void sc_key_free(struct sc_key *k);
size_t sc_key_parts(const struct sc_key *k);

/* The key as JSON text: one part: that value's text; several: an array of them. Scalars only:
 * E_INVALID for an array or object, E_NOTFOUND when a part is absent (both name the pointer in
 * *which). null is a legal part. Equal keys are equal texts, however the documents spell them. */
MUST_USE int sc_key_text(const struct sc_key *k, struct span doc, struct writer *out,
                         struct span *which);

/* The same; but of one part that is a string only what it says: its UTF-8 without quotes and
 * escapes. *null: the one part is null, and nothing is written. */
MUST_USE int sc_key_bare(const struct sc_key *k, struct span doc, struct writer *out, bool *null,
                         struct span *which);

/* 32-bit routing hash of the document's key: equal for equal keys (strings compare after
 * unescaping; 1, 1.0 and 1e0 are equal). Part of the stored layout: never changes. */
MUST_USE int sc_key_hash(const struct sc_key *k, struct span doc, uint32_t *out,
                         struct span *which);
