/*
 * The committed offsets of one group. A commit is filed under the leader epoch of the topic's life
 * that it belongs to (O11, docs/groups.md): after a raise the older ones stay for an audit until
 * retention takes them, and are never read as current. Pure; owner: the groups thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/keymap.h"
#include "base/span.h"

#define OFFSET_METADATA_MAX 4096 /* bytes; Kafka's offset.metadata.max.bytes */

struct group_offset {
    int32_t partition;
    int32_t epoch;     /* of the topic, that it is filed under */
    int64_t offset;    /* >= 0, or what the client said */
    int64_t commit_ms; /* wall clock */
    char *metadata;    /* owned; NULL: none (null and empty alike) */
    size_t metadata_n;
};

struct offsets_topic {
    TAILQ_ENTRY(offsets_topic) link; /* by first commit */
    size_t n;
    size_t cap;
    struct group_offset *list; /* by partition, then epoch */
    char name[];
};

/* Zeroed and offsets_init: empty. */
struct group_offsets {
    TAILQ_HEAD(, offsets_topic) topics;
    struct keymap by_name;
    size_t n;     /* commits, of all epochs */
    size_t bytes; /* memory of all of it, for the bound of a group */
};

void offsets_init(struct group_offsets *o);
void offsets_fini(struct group_offsets *o);
/* Sets or replaces the commit of (topic, partition, epoch). metadata is copied. E_NOMEM: nothing
 * changed. */
MUST_USE int offsets_put(struct group_offsets *o, struct span topic, int32_t partition,
                         int32_t epoch, int64_t offset, struct span metadata, int64_t commit_ms);
/* Borrow until the next change; NULL when there is none of exactly that epoch. */
const struct group_offset *offsets_get(const struct group_offsets *o, struct span topic,
                                       int32_t partition, int32_t epoch);
/* The same, of the highest epoch that there is. */
const struct group_offset *offsets_newest(const struct group_offsets *o, struct span topic,
                                          int32_t partition);
const struct offsets_topic *offsets_topic(const struct group_offsets *o, struct span topic);
/* False when there was none. */
bool offsets_remove(struct group_offsets *o, struct span topic, int32_t partition, int32_t epoch);
