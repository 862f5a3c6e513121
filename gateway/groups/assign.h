/*
 * The server-side assignors of KIP-848, pure: members with subscriptions and topics with partitions
 * in, an owner for each partition out. Both are Kafka's: `uniform` spreads all partitions evenly
 * and moves as few as it can; `range` gives each member the same slice of every topic, so that
 * topics with as many partitions stay together. Every partition of a topic that somebody subscribes
 * to gets an owner, and only subscribers get any.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define ASSIGN_NOBODY (-1)

struct assign_topic {
    int32_t partitions;
    int32_t *owner; /* [partitions]: index of a member; in: of the last assignment; out: of this */
    /* set by the assignors: the subscribers, rising */
    size_t subscribers_n;
    const uint32_t *subscribers;
};

struct assign_member {
    struct span id;
    struct span instance;   /* p NULL: dynamic */
    const uint32_t *topics; /* subscribed: indices, rising, no index twice */
    size_t topics_n;
};

struct assign {
    struct assign_topic *topics;
    size_t topics_n;
    const struct assign_member *members;
    size_t members_n;
};

/* E_NOMEM: owners are as they were. */
typedef int assign_fn(struct assign *a);
MUST_USE assign_fn assign_uniform;
MUST_USE assign_fn assign_range;

/* By name; NULL: there is no such assignor. */
assign_fn *assign_find(struct span name);
/* The names for an error message, and the one used when nobody asks for another. */
#define ASSIGN_NAMES   "uniform, range"
#define ASSIGN_DEFAULT "uniform"

/* --- for the assignors --- */

/* Fills in subscribers of all topics, in one allocation that the caller frees. E_NOMEM. */
MUST_USE int assign_index(struct assign *a, uint32_t **memory);
