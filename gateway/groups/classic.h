/*
 * The classic group protocol's coordinator, pure: (state, event, now) -> (state, answers). Follows
 * Apache Kafka's group coordinator: static members (KIP-345), known member ids (KIP-394), skipped
 * assignments (KIP-814), protocol selection by votes; any protocol type. Owner: the groups thread.
 *
 * Memory is taken when an event arrives, before anything changes: completing a rebalance never
 * allocates. E_NOMEM is answered as COORDINATOR_NOT_AVAILABLE, which clients retry.
 */
#pragma once

#include "gateway/groups/group.h"

enum classic_state {
    CLASSIC_EMPTY,
    CLASSIC_PREPARING,  /* PreparingRebalance: members join */
    CLASSIC_COMPLETING, /* CompletingRebalance: the leader assigns */
    CLASSIC_STABLE,
};

struct classic_protocol {
    struct span name;
    struct span metadata;
};

/* A member that has joined. A TAILQ keeps the order of joining. */
struct classic_member {
    TAILQ_ENTRY(classic_member) link;
    char *id;
    char *instance; /* NULL: dynamic */
    char *client_id;
    char *client_host;
    int64_t session_ms;
    int64_t rebalance_ms;
    struct classic_protocol *protocols; /* one allocation with what they point to */
    size_t protocols_n;
    size_t protocols_bytes;
    struct blob *assignment; /* NULL: empty */
    struct group_wait *join; /* parked; at most one of both */
    struct group_wait *sync;
    bool synced;         /* asked for its assignment since the join phase ended */
    int64_t deadline_ms; /* its session ends; does not count while it waits in a join */
};

extern const struct group_ops classic_ops;

struct classic_join {
    struct span member_id;
    struct span instance_id; /* p NULL: none */
    struct span protocol_type;
    const struct classic_protocol *protocols;
    size_t protocols_n;
    int64_t session_ms;
    int64_t rebalance_ms; /* <= 0: as the session */
    const char *client_id;
    const char *client_host;
    const char *new_id;   /* for a member without one */
    bool known_member_id; /* MEMBER_ID_REQUIRED is understood (JoinGroup 4 on) */
    bool skip_assignment; /* understood (JoinGroup 9 on) */
};

/* Each either answers at once (w is in out->done) or keeps w. w->out.classic.member is set where
 * the answer needs it; MEMBER_ID_REQUIRED means new_id. */
void classic_on_join(struct group *g, const struct classic_join *ev, int64_t now_ms,
                     struct group_wait *w, struct group_out *out);

struct classic_sync {
    struct group_speaker who;
    struct span protocol_type; /* p NULL: not checked */
    struct span protocol_name;
    const struct classic_assignment {
        struct span member_id;
        struct span assignment;
    } * assignments;
    size_t assignments_n;
};
void classic_on_sync(struct group *g, const struct classic_sync *ev, int64_t now_ms,
                     struct group_wait *w, struct group_out *out);
/* KE_* */
int16_t classic_on_heartbeat(struct group *g, const struct group_speaker *who, int64_t now_ms);
/* who->generation is not looked at; an empty member id goes by the instance alone. */
int16_t classic_on_leave(struct group *g, const struct group_speaker *who, int64_t now_ms,
                         struct group_out *out);

/* For describe. */
enum classic_state classic_state_of(const struct group *g);
const char *classic_protocol_name(const struct group *g); /* chosen; NULL: none */
const struct classic_member *classic_first(const struct group *g);
const struct classic_member *classic_next(const struct classic_member *m);
/* Of the chosen protocol; empty when it has none. */
struct span classic_metadata(const struct group *g, const struct classic_member *m);
size_t classic_members(const struct group *g);
