/*
 * What there is to read: an immutable, counted snapshot of all tasks and their topics. Built on the
 * control thread from the store's listing and the catalog, posted to every worker, which swaps its
 * own reference between events.
 *
 * A task is a tenant: handlers look topics up in request_task(rq) only, never in the view. What the
 * view lists over all tasks is for the operator (metrics, admin).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "gateway/avro.h"
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

/* How often an encoder is held; end: it is no longer. Any thread. */
struct gw_encoder_life {
    atomic_uint refs;
    void (*end)(struct gw_encoder_life *life);
};

/* How documents become records. Equal contents <=> equal id, so that the id is a cache key; an id
 * is never given twice. Immutable, counted: views hold those of their topics, loads theirs. */
struct gw_encoder {
    uint32_t id;
    struct gw_encoder_life *life; /* NULL: static */
    struct sc_key *key;           /* NULL: null record keys */
    enum kp_codec codec;
    struct gw_avro *avro; /* owned reference; NULL: keys and values are JSON */
    bool avro_key;
    bool avro_value;
    bool bare_key; /* a key that is not Avro: sc_key_bare, not sc_key_text */
    enum gw_misfit misfit;
};

const struct gw_encoder *gw_encoder_ref(const struct gw_encoder *e); /* NULL is allowed */
void gw_encoder_unref(const struct gw_encoder *e);                   /* NULL is allowed */

struct catalog;
struct catalog_binding;
struct catalog_task;

/* Owner: immutable, part of a view. */
struct gw_topic {
    const char *task;                      /* name of the task that it belongs to */
    const char *name;                      /* as clients see it */
    const char *collection;                /* value of estuary.dev/collection */
    const struct catalog_binding *binding; /* of the view's catalog; NULL without one */
    struct kp_uuid id;                     /* O12 */
    int32_t epoch;                         /* O11: backfill counter + 1 + generation */
    struct gw_bound bound;
    struct gw_frontier frontier;
    bool signal; /* records carry the headers of a backfill's begin and end (docs/truncation.md) */
    const struct gw_encoder *encoder;
    const struct jc_journal *first; /* newest revision of partition 0's journal: what
                                       DescribeConfigs shows; NULL when there is no partition */
    size_t parts_n;                 /* index = rank by (create revision, name) (O13) */
    struct gw_part **parts;
};

/* What one principal sees. Owner: immutable, part of a view. */
struct gw_task {
    const char *name;          /* "" without a catalog; the scope of groups and schemas */
    const char *const *tokens; /* secrets, as the catalog gives them: plain, or hashes (secret.h) */
    size_t tokens_n;
    bool strict_names;         /* names are encoded (strict_name.h) */
    bool allow_empty;          /* a topic without journals is one empty partition */
    const char *redirect_host; /* the task is served elsewhere; NULL: here */
    uint16_t redirect_port;
    int32_t redirect_node;           /* the id that clients know the other place by */
    const struct catalog_task *spec; /* of the view's catalog; NULL without one */
    size_t topics_n;
    const struct gw_topic *topics; /* by name, byte order */
    const struct gw_topic **by_id; /* by id, byte order */
};

struct gw_view {
    atomic_uint refs;
    int64_t revision; /* rises with each view of this process */
    size_t tasks_n;
    const struct gw_task *tasks;     /* by name, byte order */
    const struct gw_task *anonymous; /* of connections without a principal; never NULL */
    const struct catalog *catalog;   /* what bindings, specs and tokens are borrowed from; a counted
                                        reference; NULL: none */
    size_t topics_n;
    const struct gw_topic *topics; /* of all tasks, task by task */
    struct gw_task none;           /* empty: stands in for a task that is not there */
    struct arena arena;            /* all of the above */
};

/* What gw_view_build makes a view of. */
struct gw_view_spec {
    int64_t revision;
    const struct gw_task *tasks; /* in any order; of each, topics in any order; by_id is not read */
    size_t tasks_n;
    const char *anonymous;         /* name of a task; NULL: connections without a principal get an
                                      empty one */
    const struct catalog *catalog; /* referenced; may be NULL */
};

/* Copies the tasks and topics with all they point to: names are copied, parts and journals
 * and encoders referenced; what comes from the catalog is borrowed (it is referenced).
 * E_NOMEM; E_EXISTS: two tasks of one name, or two topics in one task. */
MUST_USE int gw_view_build(const struct gw_view_spec *spec, const struct gw_view **out);
/* A view of one task, named "", which is everybody's. */
MUST_USE int gw_view_new(int64_t revision, const struct gw_topic *topics, size_t n,
                         const struct gw_view **out);
const struct gw_view *gw_view_ref(const struct gw_view *v);
void gw_view_unref(const struct gw_view *v); /* NULL is allowed */

/* All of these: borrowed, lives as long as the view. */
/* NULL when there is none of that name. */
const struct gw_task *gw_view_task(const struct gw_view *v, struct span name);
/* The task of a principal, "" being the one of anonymous connections. Never NULL: a task that is
 * gone is an empty one. */
const struct gw_task *gw_view_principal(const struct gw_view *v, const char *principal);
/* NULL when the task has none. Where names are strict, other ways to write one are understood
 * (strict_name.h): answer with the name that was asked for. */
const struct gw_topic *gw_task_topic(const struct gw_task *t, struct span name);
const struct gw_topic *gw_task_topic_by_id(const struct gw_task *t, const struct kp_uuid *id);
