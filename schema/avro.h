/*
 * The Avro face of one binding: from shape, selected fields and options to the key's and value's
 * Avro schemas and to the program that schema/transcode.h runs. docs/avro.md is the contract:
 * types, names, defaults, deletions. Immutable once made, any thread. Pure.
 */
#pragma once

#include "schema/shape.h"

#define SC_FRAME_BYTES    5             /* 0x00 and the schema's id, big-endian */
#define SC_DELETED_FIELD  "_is_deleted" /* field (cdc) and record header (header) */
#define SC_PUBLISHED_NAME "flow_published_at"
#define SC_DEPTH_ALL      UINT32_MAX

/* How a document with /_meta/op = "d" is served. */
enum sc_deletions {
    SC_DELETE_TOMBSTONE, /* `kafka`: the key with a null value */
    SC_DELETE_CDC,       /* `cdc`: the value with _is_deleted = 1 (0 in all others) */
    SC_DELETE_HEADER     /* `header`: the value; the caller writes the record header */
};

/* A field with a name of its own. Every declared location has one by itself: its pointer without
 * the leading slash; the root is flow_document, the time of /_meta/uuid flow_published_at. */
struct sc_projection {
    struct span field;
    struct span pointer;
};

/* Fields are named as above, or by pointer ("/a/b"). */
struct sc_selection {
    uint32_t depth; /* recommended: 0 nothing, N levels, SC_DEPTH_ALL */
    size_t include_n;
    const struct span *include; /* a field that does not exist is a note */
    size_t require_n;
    const struct span *require; /* ... is an error */
    size_t exclude_n;
    const struct span *exclude; /* key fields stay all the same */
};

struct sc_avro_opts {
    const struct span *key; /* pointers, >= 1 */
    size_t key_n;
    const struct sc_projection *projections; /* the catalog's */
    size_t projections_n;
    const struct sc_selection *select; /* NULL: depth 1 */
    enum sc_deletions deletions;
    bool strict_names; /* a selected name that is no Avro name is refused, not folded */
};

/* Something an operator should know: a field that was renamed, a default that does not fit. */
struct sc_avro_note {
    char field[128];
    char text[256];
};

struct sc_avro;

/* The schema may be freed afterwards. E_INVALID: a key that is no scalar or
 * cannot exist, an unknown required field; E_LIMIT: too many fields; E_NOMEM. err->pointer is the
 * location in the document. */
MUST_USE int sc_avro_new(const struct sc_schema *schema, const struct sc_avro_opts *opts,
                         struct sc_schema_error *err, struct sc_avro **out);
void sc_avro_free(struct sc_avro *a); /* NULL is allowed */

/* Schema texts: JSON, compact, the same bytes for the same input everywhere. Borrow. */
struct span sc_avro_key_schema(const struct sc_avro *a);
struct span sc_avro_value_schema(const struct sc_avro *a);
enum sc_deletions sc_avro_deletions(const struct sc_avro *a);
size_t sc_avro_notes(const struct sc_avro *a, const struct sc_avro_note **out);

/* The ids that frames carry; 1 each until set. Not thread-safe: set them before the first use. */
void sc_avro_set_ids(struct sc_avro *a, uint32_t key_id, uint32_t value_id);
uint32_t sc_avro_key_id(const struct sc_avro *a);
uint32_t sc_avro_value_id(const struct sc_avro *a);

/* --- any Avro schema, for the registry (schema/avro_canon.c) --- */

/* Ids for a set of schema texts: out[i] in [1, 2^31), equal for equal texts, derived from the texts
 * alone, so that all replicas of one catalog agree. A text's id is a 64-bit fingerprint of it
 * folded to 31 bits; when two texts of the set meet, the one that sorts first keeps it and the
 * other takes the next number that is free of all. E_NOMEM. */
MUST_USE int sc_schema_ids(const struct span *texts, size_t n, uint32_t *out);

/* Parsing Canonical Form of an Avro schema (names, order, no annotations). E_SYNTAX, E_INVALID (not
 * an Avro schema), E_NOMEM, E_LIMIT. */
struct writer;
MUST_USE int sc_avro_canonical(struct span schema, struct writer *out);
/* CRC-64-AVRO of the bytes. */
uint64_t sc_avro_fingerprint(struct span bytes);

/* The five bytes in front of an Avro message. */
void sc_avro_frame(uint32_t id, uint8_t out[SC_FRAME_BYTES]);
