/*
 * What there is to read: an immutable, counted snapshot of all topics. Built on the control thread
 * from the store's listing (and, later, the catalog), posted to every worker, which swaps its own
 * reference between events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "gateway/part.h"
#include "kafka_proto/compress.h"
#include "kafka_proto/kp.h"
#include "schema/key.h"

/* Which documents are visible: content with min_clock <= clock <= max_clock (both inclusive; O3,
 * design section 6). A document without a UUID has clock 0. */
struct gw_bound {
    uint64_t min_clock;
    uint64_t max_clock;
};

/* Latest markers of the topic's journals and their truncated-at labels, as maxima; 0: none. */
struct gw_frontier {
    uint64_t truncated_at; /* of the labels alone */
    uint64_t begin;        /* newest begin: of a marker, or of a label */
    uint64_t complete;     /* newest complete marker ... */
    uint64_t completed;    /* ... and the begin that it completes */
};

/* How documents become records. Equal contents <=> equal id, so that the id is a cache key.
 * Immutable, lives as long as the gateway. */
struct gw_encoder {
    uint32_t id;
    struct sc_key *key; /* NULL: null record keys */
    enum kp_codec codec;
};

/* Owner: immutable, part of a view. */
struct gw_topic {
    const char *name;       /* as clients see it */
    const char *collection; /* value of estuary.dev/collection */
    struct kp_uuid id;      /* O12 */
    int32_t epoch;          /* O11: backfill counter + 1 + generation */
    struct gw_bound bound;
    struct gw_frontier frontier;
    bool signal; /* records carry the headers of a backfill's begin and end (docs/truncation.md) */
    const struct gw_encoder *encoder;
    const struct jc_journal *first; /* newest revision of partition 0's journal: what
                                       DescribeConfigs shows; NULL when there is no partition */
    size_t parts_n;                 /* index = rank by (create revision, name) (O13) */
    struct gw_part **parts;
};

struct gw_view {
    atomic_uint refs;
    int64_t revision; /* rises with each view of this process */
    size_t topics_n;
    const struct gw_topic *topics; /* by name, byte order */
    const struct gw_topic **by_id; /* by id, byte order */
    struct arena arena;            /* all of the above */
};

/* Copies the topics, in any order, with all they point to: strings are copied, parts and journals
 * referenced, encoders borrowed. E_NOMEM; E_EXISTS: two topics of one name. */
MUST_USE int gw_view_new(int64_t revision, const struct gw_topic *topics, size_t n,
                         const struct gw_view **out);
const struct gw_view *gw_view_ref(const struct gw_view *v);
void gw_view_unref(const struct gw_view *v); /* NULL is allowed */
/* Borrow, lives as long as the view; NULL when there is none. */
const struct gw_topic *gw_view_topic(const struct gw_view *v, struct span name);
const struct gw_topic *gw_view_topic_by_id(const struct gw_view *v, const struct kp_uuid *id);
