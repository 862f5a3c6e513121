/*
 * Private to schema/: what sc_avro_new compiles and sc_transcode runs. Immutable, in one arena.
 *
 * A *node* says how one JSON value becomes one Avro value. The *walk* is the tree of selected
 * locations: at each, the values of its *sinks* are encoded into *slots*; *outputs* then put the
 * slots in the order of the schemas. Bytes that the program holds for absent fields are followed by
 * PG_SLACK readable bytes, so that they can be copied in steps of 16.
 */
#pragma once

#include "base/arena.h"
#include "schema/avro.h"

#define PG_SLACK     16
#define PG_MAX_DEPTH 64 /* of nodes, and of pointers */
#define PG_MAX_TAPS  8
#define PG_MAX_NAMES 65534 /* of one record, so that a guess fits 16 bits */

enum pg_op {
    PG_NULL,
    PG_BOOL,
    PG_LONG,
    PG_DOUBLE,
    PG_STRING,
    PG_TEXT_NUMBER, /* string from a string or an integer */
    PG_NUMBER_TEXT, /* double from a number or a string */
    PG_DATE,
    PG_TIME,
    PG_UUID,
    PG_DURATION,
    PG_ARRAY,
    PG_MAP,
    PG_RECORD,
    PG_RAW,
    PG_PUBLISHED, /* timestamp of a version 1 UUID, null for anything else */
    PG_DELETED    /* long 1 for the string "d", else 0 */
};

/* Names that are looked up while an object is walked. */
struct pg_name {
    struct span s;
    struct span token; /* as JSON nearly always spells it: name, quote, colon */
    uint8_t head[16];  /* the token's first bytes, 0 behind it */
    uint32_t reach;    /* bytes to read for a look at it; UINT32_MAX: it is never spelled so */
    uint16_t mask;     /* bits of head that count */
};
struct pg_names {
    uint32_t n;
    uint32_t table_mask; /* table has a power of two entries */
    uint32_t guess_at; /* first of n guesses of the scratch, each below n: the i-th member's name */
    const struct pg_name *names;
    const uint32_t *table; /* index + 1, 0: free */
};

struct pg_node {
    enum pg_op op;
    bool nullable;
    bool key;                   /* part of a key: equal values have equal bytes; a scalar */
    uint8_t null_branch;        /* 0 or 1, when nullable */
    uint8_t value_branch;       /* the other */
    const struct pg_node *elem; /* PG_ARRAY, PG_MAP */
    const struct pg_record *record;
    /* the schema's side: full name of the named type that this location has (or would have) */
    struct span name;
    bool default_null; /* of the field that has this node */
    struct span def;   /* JSON text of the field's Avro default; .p == NULL: none */
};

struct pg_field {
    const struct pg_node *node;
    struct span avro_name;
    struct span absent; /* what is written when the member is not there; .p == NULL: an error */
};
struct pg_record {
    struct pg_names names; /* by index as the fields */
    const struct pg_field *fields;
    const struct pg_node *extra; /* values of the map behind the fields; NULL: there is no map */
    size_t absent_bytes;         /* of all fields' absent */
};

struct pg_sink {
    const struct pg_node *node;
    uint32_t slot;
};
struct pg_entry {
    uint32_t slot_lo, slot_hi; /* all slots at and below this location */
    uint32_t sinks_n;
    const struct pg_sink *sinks;
    const struct pg_walk *below; /* NULL: nothing below is selected */
    bool leaf;                   /* one sink, nothing below */
    /* With one sink that is a record, whose fields hold all names of below: index + 1 of the entry
     * below, by field; 0: none. The values are then found while the record is made. NULL: no such
     * luck, and the object is walked once more. */
    const uint8_t *taps;
};
struct pg_walk {
    struct pg_names names;
    const struct pg_entry *entries;
};

struct pg_output {
    const struct pg_node *node;
    uint32_t slot;
    struct span avro_name;
    struct span absent;  /* as in pg_field */
    struct span pointer; /* for errors */
};

/* One way through a document: for key and value, or for the key alone. */
struct pg_program {
    struct pg_entry root; /* sinks of the pointer "" and what is below */
    uint32_t slots_n;
    uint32_t deleted; /* slot */
    size_t key_n, value_n;
    const struct pg_output *key, *value;
};

struct sc_avro {
    struct arena arena;
    uint64_t serial; /* of this process: guesses of another program are worth nothing */
    uint32_t guesses_n;
    struct pg_program both, key_only;
    enum sc_deletions deletions;
    struct span key_schema, value_schema;
    uint32_t key_id, value_id;
    struct sc_avro_note *notes;
    size_t notes_n;
};

static inline uint32_t pg_hash(struct span s)
{
    uint64_t h = s.n * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = 0;

    for (; s.n - i >= 8; i += 8) {
        uint64_t v;

        memcpy(&v, s.p + i, 8);
        h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    for (; i < s.n; i++)
        h = (h ^ s.p[i]) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(h ^ h >> 32);
}

/* Encodes one value alone, for defaults: node without its union. Appends the bytes to out. */
MUST_USE int pg_encode(const struct pg_node *node, struct span json, struct writer *out);
