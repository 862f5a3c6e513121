/*
 * Private parts of the publisher: the layout of a collection (publish_layout.c), what a job makes
 * of a body (publish_body.c) and the answers (publish_answer.c).
 */
#pragma once

#include "base/writer.h"
#include "gateway/catalog.h"
#include "gateway/labels.h"
#include "gateway/publish.h"
#include "journal_client/uuid.h"
#include "schema/key.h"

/* --- layout: the journals of one collection, and how documents find theirs --- */

struct pub_part {
    const struct jc_journal *journal; /* own reference; NULL while only planned */
    char *name;
    uint32_t begin; /* key hashes, both inclusive */
    uint32_t end;
    size_t index; /* the Kafka partition: rank by (create revision, name) */
};

/* Owner: one publish call; read by its job. */
struct pub_layout {
    char *collection;
    struct sc_key *key;                     /* NULL: documents are routed by a hash of their text */
    struct arena pointers_of;               /* their texts */
    struct span pointers[PUBLISH_MAX_KEYS]; /* of the key; each ends with a NUL */
    size_t pointers_n;
    bool planned;          /* the journals do not exist yet */
    uint64_t truncated_at; /* the highest label of that name: documents are stamped above it, and
                              planned journals are born with it; 0: none */
    size_t n;
    struct pub_part parts[]; /* by rising begin; only those with a legal range */
};

/* Owner: the publisher's home thread. The journals of a listing by (collection, create revision,
 * name); borrows from the listing. */
struct pub_index_row {
    const char *collection;
    const struct jc_journal *journal;
};
struct pub_index {
    size_t n;
    struct pub_index_row rows[];
};

MUST_USE int pub_index_new(const struct jc_listing *l, struct pub_index **out);
/* The first row of a collection and the number of its rows; NULL when there is none. */
const struct pub_index_row *pub_index_find(const struct pub_index *ix, struct span collection,
                                           size_t *n);

/* From the rows of one collection, n >= 1. E_INVALID: the journals contradict each other (*why:
 * static text). */
MUST_USE int pub_layout_of(const struct pub_index_row *rows, size_t n, struct pub_layout **out,
                           const char **why);
/* A collection to be created. E_INVALID with *why. */
MUST_USE int pub_layout_plan(struct span collection, size_t partitions, const struct span *keys,
                             size_t keys_n, struct pub_layout **out, const char **why);
void pub_layout_free(struct pub_layout *l); /* NULL is allowed */
/* NULL: no journal covers the hash. */
const struct pub_part *pub_layout_route(const struct pub_layout *l, uint32_t hash);
/* Same key and same ranges in the same order: what was parsed for one is right for the other. */
bool pub_layout_same(const struct pub_layout *a, const struct pub_layout *b);
bool pub_layout_has_key(const struct pub_layout *l, const struct span *keys, size_t keys_n);

/* The changes that create a planned layout. Freed with pub_specs_free. */
struct pub_specs {
    size_t n;
    struct jc_change *changes;
    struct jc_spec *specs;
    struct jc_label *labels; /* labels_each per spec */
    size_t labels_each;
    struct arena *strings;
};
MUST_USE int pub_specs_new(const struct pub_layout *l, struct pub_specs **out, const char **why);
void pub_specs_free(struct pub_specs *s); /* NULL is allowed */

/* --- body: documents of a request, checked, stamped and routed --- */

#define PUB_FAULTS_MAX 100

struct pub_fault {
    size_t line; /* 1-based, in the body */
    size_t at;   /* byte in that line, 0-based */
    char reason[160];
};

/* A document in body order: where its UUID goes. */
struct pub_doc {
    uint32_t part; /* into layout->parts */
    uint32_t at;   /* byte of that part's output */
};

/* What one journal gets. */
struct pub_out {
    struct writer w;
    struct blob *bytes; /* taken from w when all is parsed */
    size_t docs;
    size_t first_end; /* end of its first document, newline included */
    size_t last_end;
    size_t ack_at; /* where the ACK's UUID goes */
};

/* Owner: one publish call; filled by its job. */
struct pub_parsed {
    uint64_t above; /* all clocks are to be higher than this one, if they can */
    size_t docs_n;
    size_t docs_cap;
    struct pub_doc *docs;
    size_t outs_n; /* = layout->n */
    struct pub_out *outs;
    size_t seen; /* documents, good or bad */
    size_t faults_n;
    size_t faults_total;
    bool unroutable; /* a fault is a key hash that no journal covers */
    struct pub_fault faults[PUB_FAULTS_MAX];
};

struct pub_limits {
    size_t document_bytes;
    size_t output_bytes; /* of all stamped documents together; below 4 GiB */
};

/* Pure. Faults of documents are in out; a negative return is not the body's: E_NOMEM, E_LIMIT (more
 * output than allowed). Free with pub_parsed_fini in any case. */
MUST_USE int pub_parse(struct span body, enum publish_form form, const struct pub_layout *l,
                       const struct pub_limits *limits, struct pub_parsed *out);
void pub_parsed_fini(struct pub_parsed *p);
/* Writes the UUIDs of all documents and ACKs: one reading of the clock, taken above p->above, then
 * a tick a document, in body order, then one for the ACKs. Returns the ACKs' clock. Needs docs_n >
 * 0. */
uint64_t pub_stamp(struct pub_parsed *p, const uint8_t producer[6], struct jc_txn_clock *clock);

/* --- answers --- */

void pub_answer_error(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pub_answer_faults(struct writer *w, const struct pub_parsed *p);
/* parts: of the transaction, in the order of the outs that have documents. */
void pub_answer_ok(struct writer *w, const struct pub_layout *l, const struct pub_parsed *p,
                   const struct jc_append_part *parts, uint64_t ack_clock);
