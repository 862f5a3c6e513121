/*
 * What must be remembered of a topic between two listings and over restarts: the journal list last
 * served, its generation, and what its id was made of (O11-O13). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

struct topic_pair {
    const char *name;
    int64_t create_revision;
    int64_t life; /* jc_heads.life */
};

/* Owner: whoever holds it. Zeroed: a topic that was never served. */
struct topic_state {
    bool known; /* it was served before */
    int32_t generation;
    int32_t backfill;         /* the highest counter that a catalog's binding ever had */
    struct topic_pair *pairs; /* names are owned */
    size_t pairs_n;
    struct topic_pair first; /* what the topic's id is made of (O12): partition 0 when this journal
                                was first served as such, under its name and revision of then (a
                                move gives others); name owned; NULL: there was none yet */
};

void topic_state_fini(struct topic_state *s);
/* The state after serving the list: the generation rises unless the old list is a prefix of the new
 * one. *changed: it differs from s and must be stored. next is to be finished by the caller. */
MUST_USE int topic_state_next(const struct topic_state *s, const struct topic_pair *list, size_t n,
                              struct topic_state *next, bool *changed);
/* A copy whose backfill counter is another. */
MUST_USE int topic_state_with_backfill(const struct topic_state *s, int32_t backfill,
                                       struct topic_state *next);
/* {"generation":2,"backfill":1,"first":["a/pivot=00",3],"journals":[["a/pivot=00",7],...]}; without
 * backfill: 0; without first: that of the list. A third number of a journal is its life, when that
 * is not 0. */
MUST_USE int topic_state_parse(struct span json, struct topic_state *out);
void topic_state_write(const struct topic_state *s, struct writer *out);
