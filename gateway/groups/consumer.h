/*
 * KIP-848's coordinator, pure: (state, heartbeat, now) -> (state, answer). Members send what they
 * subscribe to and what they own; the group epoch (g->generation) rises when that, or the topics,
 * change; a target is computed for each epoch; and each member is led to it, one heartbeat at a
 * time: first it gives up what it must, then its epoch rises, then it gets what others have given
 * up. A partition has one owner at any time. Follows Apache Kafka's coordinator.
 *
 * Topics are known by id: a topic whose epoch rose is another topic, so its partitions are revoked
 * and given out anew. Owner: the groups thread.
 *
 * E_NOMEM is answered as COORDINATOR_NOT_AVAILABLE, which clients retry; a group that could not
 * compute its target does so at the next heartbeat.
 */
#pragma once

#include "gateway/groups/group.h"
#include "kafka_proto/kp.h"

extern const struct group_ops consumer_ops;

/* The topics of the task, as they are now. */
struct consumer_topic_info {
    struct span name;
    struct kp_uuid id;
    int32_t epoch;      /* another one: what was given out is revoked and given out anew */
    int32_t partitions; /* 0: not readable yet, as if it were not there */
};
struct consumer_topics {
    size_t n;
    /* i < n, in the order of names */
    struct consumer_topic_info (*at)(const struct consumer_topics *t, size_t i);
    bool (*find)(const struct consumer_topics *t, struct span name,
                 struct consumer_topic_info *out);
};

#define CONSUMER_LEAVES        (-1) /* member epochs of a heartbeat */
#define CONSUMER_STATIC_LEAVES (-2) /* ... and comes back: its partitions wait for it */

struct consumer_heartbeat {
    struct span member_id;
    int32_t epoch;           /* 0: joins */
    struct span instance_id; /* p NULL: none */
    struct span rack_id;     /* p NULL: unchanged */
    int32_t rebalance_ms;    /* -1: unchanged */
    bool has_names;          /* names are given */
    const struct span *names;
    size_t names_n;
    struct span regex;    /* p NULL: unchanged; empty: none */
    struct span assignor; /* p NULL: unchanged */
    bool has_owned;       /* what it owns is given */
    const struct consumer_owned {
        struct kp_uuid id;
        const int32_t *partitions;
        size_t n;
    } * owned;
    size_t owned_n;
    const char *client_id;
    const char *client_host;
    const char *new_id; /* for a member without one */
    bool makes_own_id;  /* the client must have made an id (version 1 on) */
};

struct consumer_answer {
    const struct consumer_member *member; /* NULL: it left */
    int32_t epoch;
    bool assignment;   /* tell it what it owns */
    char message[160]; /* why, with an error; "" */
};

/* As Kafka's, where the limits leave them open. */
static inline int64_t consumer_session_ms(const struct group_limits *l)
{
    return l->consumer_session_ms > 0 ? l->consumer_session_ms : 45000;
}
static inline int64_t consumer_heartbeat_ms(const struct group_limits *l)
{
    return l->consumer_heartbeat_ms > 0 ? l->consumer_heartbeat_ms : 5000;
}

/* A group without members turns into one of this kind. E_NOMEM: it is what it was. */
MUST_USE int consumer_attach(struct group *g);

/* One heartbeat: KE_*. g is of this kind. */
int16_t consumer_on_heartbeat(struct group *g, const struct consumer_heartbeat *ev,
                              const struct consumer_topics *topics, int64_t now_ms,
                              struct consumer_answer *out);
