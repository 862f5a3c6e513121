/*
 * One group of one task, whatever protocol its members speak: name, generation, offsets, and the
 * operations of its kind. Two kinds stand behind `struct group_ops`: the classic protocol
 * (gateway/groups/classic.h) and KIP-848's (gateway/groups/consumer.h). A group without members has
 * no kind of its own yet: the first join decides, and changes it.
 *
 * Kinds are pure: they are given events and a time, they change the group and say in `struct
 * group_out` which waiting requests are answered. They know no socket, no clock, no store.
 * Owner: the groups thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/blob.h"
#include "base/span.h"
#include "gateway/groups/group_store.h"
#include "gateway/groups/offsets.h"
#include "gateway/kafka_errors.h"

struct group;
struct group_call;
struct groups;

#define GROUP_MAX_BYTES                                                                            \
    ((size_t)32 * 1024 * 1024) /* a leader's answer must fit the arena of a request */
#define GROUP_NEVER INT64_MAX  /* no deadline */

/* Limits that the kinds keep; from the settings, immutable. */
struct group_limits {
    int64_t min_session_ms;
    int64_t max_session_ms;
    int64_t max_rebalance_ms;
    int64_t consumer_session_ms;   /* KIP-848: a member that is silent for so long is gone */
    int64_t consumer_heartbeat_ms; /* ... and how often it is told to speak */
    int64_t initial_delay_ms;      /* an empty group waits this long for more members */
    size_t max_members;            /* of one group, those that have not joined yet included */
    size_t max_bytes;              /* protocols and assignments of one group's members */
};

/* A request that may wait for its group; lies in its call, which outlives it. The core fills in the
 * result and moves it to group_out.done. */
struct group_wait {
    STAILQ_ENTRY(group_wait) link;
    int16_t error; /* KE_*; the other results count only when it is 0 */
    /* by the service, groups thread: makes the answer from the results. What they point to in the
     * group is borrowed until the next event of the group. */
    void (*answer)(struct group_wait *w, struct group *g);
    union {
        struct classic_result {
            int32_t generation;
            struct classic_member *member; /* the one that is answered */
            const char *leader;            /* id */
            bool list_members;             /* the leader's answer lists all */
            bool skip_assignment;
        } classic;
    } out;
};
STAILQ_HEAD(group_waits, group_wait);

/* The actions of one event. */
struct group_out {
    struct group_waits done;
};

static inline void group_out_init(struct group_out *out)
{
    STAILQ_INIT(&out->done);
}

static inline void group_out_done(struct group_out *out, struct group_wait *w, int16_t error)
{
    w->error = error;
    STAILQ_INSERT_TAIL(&out->done, w, link);
}

/* Who speaks in a commit, fetch of offsets, heartbeat. */
struct group_speaker {
    struct span member_id;
    struct span instance_id; /* p NULL: none */
    int32_t generation;      /* or member epoch; -1: not a member */
};

/* A topic of the task whose epoch rose (or that went, came, or has more partitions). */
struct group_topic_change {
    const char *name;
    int32_t epoch;      /* the present one; 0: the topic is gone */
    int32_t partitions; /* now */
    bool raised;        /* the epoch is another than before: offsets mean something else now */
};

struct group_ops {
    const char *type; /* as ListGroups shows it: "Classic", "Consumer" */
    /* Kafka's name of the state: "Empty", "Stable", ... */
    const char *(*state)(const struct group *g);
    /* "consumer", "connect", ...; "" when unknown */
    const char *(*protocol_type)(const struct group *g);
    /* No members, and none on its way in: it may be deleted, and change its kind. */
    bool (*empty)(const struct group *g);
    /* KE_NONE: this one may commit now; counts as a sign of life. Not asked when the speaker is no
     * member (generation -1, no id) and the group is empty. */
    int16_t (*check_commit)(struct group *g, const struct group_speaker *who, int64_t now_ms);
    /* KE_NONE: this member's generation began with the topic's present epoch, so an offset without
     * an epoch is one of this epoch. Else what to answer: KE_ILLEGAL_GENERATION,
     * KE_STALE_MEMBER_EPOCH. Called after check_commit passed; generation -1 is not asked. */
    int16_t (*check_raised)(struct group *g, const struct group_speaker *who, struct span topic);
    /* KE_NONE: this one may read offsets. NULL: everybody may. */
    int16_t (*check_fetch)(struct group *g, const struct group_speaker *who, int64_t now_ms);
    /* LeaveGroup: a member goes, or is sent away by an operator. KE_*. Generation is not looked at;
     * an empty member id goes by the instance alone. NULL: not by this API. */
    int16_t (*leave)(struct group *g, const struct group_speaker *who, int64_t now_ms,
                     struct group_out *out);
    /* Some member reads the topic, or may (its subscription is not one that we understand). */
    bool (*subscribed)(const struct group *g, struct span topic);
    /* Topics of the task have changed. */
    void (*topics_changed)(struct group *g, const struct group_topic_change *list, size_t n,
                           int64_t now_ms, struct group_out *out);
    /* Does what is due; returns the next deadline, GROUP_NEVER: none. Calling it early is allowed
     * and cheap. */
    int64_t (*tick)(struct group *g, int64_t now_ms, struct group_out *out);
    /* Answers all who wait with the error, and forgets them; members stay. */
    void (*drain)(struct group *g, int16_t error, struct group_out *out);
    /* Frees the state; nobody waits any more. */
    void (*free)(struct group *g);
};

struct group {
    const struct group_ops *ops; /* never NULL: classic_ops until somebody joins by KIP-848 */
    const struct group_limits *limits;
    union {
        struct classic *classic;   /* NULL: nobody ever joined */
        struct consumer *consumer; /* KIP-848, gateway/groups/consumer.h */
    };
    /* Only ever rises, also over restarts. Generation (classic), group epoch (KIP-848). Kinds
     * count it up; the service makes it durable before anyone hears of it. */
    int32_t generation;
    struct group_offsets offsets;
    /* private to the service */
    int32_t generation_stored;      /* the highest that is durable */
    STAILQ_HEAD(, group_call) held; /* answers that wait for it */
    struct group_write row;         /* its row in the store, while row_writing */
    struct group_op row_op;
    struct groups *row_gs;
    int64_t row_retry_ms; /* it could not be stored: not again before this */
    bool row_writing;
    bool deleting;           /* a write that deletes it is on its way */
    unsigned writes;         /* in flight: not freed before they are done */
    int64_t empty_since_ms;  /* wall clock; 0: it has members */
    int64_t empty_stored_ms; /* as in the store; -1: it has no row */
    int64_t next_ms;         /* deadline in the service's heap */
    size_t heap_at;          /* SIZE_MAX: not there */
    char *task;              /* both in one allocation: the table's key is task, NUL, id */
    char *id;
};
