/*
 * The record of what was about to be sent under a key of unless_kv (append_begun.c): of each
 * attempt the parts, where they were to land, what they hold, and the key-values that go with it.
 * Encoding alone; pure.
 */
#pragma once

#include "journal_client/gazette/gazette_int.h"

#define GZ_SHA_BYTES    32
#define GZ_ATTEMPTS_MAX 16 /* of one record that may land yet */

enum gz_begun_state {
    GZ_B_OPEN,   /* it may land yet, or was not looked at */
    GZ_B_LANDED, /* it lies there */
    GZ_B_GONE,   /* it does not, and will not */
};

struct gz_begun_part {
    size_t attempt;
    struct span journal; /* borrowed of the record */
    int64_t create_revision;
    int64_t begin, end; /* 0 <= begin < end */
    uint8_t sha[GZ_SHA_BYTES];
    enum gz_begun_state state;
    size_t part;          /* of the transaction that reads it; SIZE_MAX: it has none like it */
    struct gz_journal *j; /* then: its journal, a reference; NULL: there is none */
};

/* Owner: the transaction. */
struct gz_begun {
    struct blob *record;
    struct gz_begun_part *v;
    size_t n, attempts;
    struct span tags[GZ_ATTEMPTS_MAX];
    bool others[GZ_ATTEMPTS_MAX];        /* of another tag than the transaction that reads it */
    struct span values[GZ_ATTEMPTS_MAX]; /* encoded key-values of each attempt */
};

/* *out NULL: the record is empty (its transaction was finished). E_CORRUPT, E_NOMEM. */
MUST_USE int gz_begun_read(struct span record, const struct jc_txn *txn, struct gz_begun **out);
/* What is open of `before` (may be NULL), then txn as it is prepared; a part that landed before is
 * recorded as it lies. E_LIMIT: too much is open. E_NOMEM. */
MUST_USE int gz_begun_write(const struct gz_begun *before, const struct jc_txn *txn,
                            struct blob **out);
/* The key-values of an attempt; keys and values are borrowed of g but for the list itself, which is
 * the caller's: keys follow it in one allocation. */
MUST_USE int gz_begun_values(const struct gz_begun *g, size_t attempt, struct jc_kv **list,
                             size_t *n);
void gz_begun_drop(struct gz_begun *g); /* NULL is fine */
