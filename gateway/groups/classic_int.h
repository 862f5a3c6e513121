/* The state of a classic group and what its files share. Private to gateway/groups/. */
#pragma once

#include "gateway/groups/classic.h"

#define CLASSIC_PROTOCOLS_MAX ((size_t)64) /* of one member */

/* An id that was handed out with MEMBER_ID_REQUIRED and has not come back yet: a rebalance waits
 * for it as for a member. */
struct classic_pending {
    TAILQ_ENTRY(classic_pending) link;
    int64_t deadline_ms;
    char id[];
};

/* A topic whose epoch rose during the present generation. */
struct classic_raised {
    TAILQ_ENTRY(classic_raised) link;
    char topic[];
};

/* How many members speak a protocol. */
struct classic_name {
    size_t n;
    size_t bytes;
    char name[];
};

struct classic {
    enum classic_state state;
    char *protocol_type; /* NULL: nobody is in */
    char *protocol_name; /* the chosen one; "" none. Room for the longest name of any member */
    size_t name_cap;
    struct classic_member *leader;
    TAILQ_HEAD(, classic_member) members; /* by joining */
    size_t members_n;
    struct keymap by_id;
    struct keymap by_instance;
    TAILQ_HEAD(, classic_pending) pending;
    struct keymap pending_by_id;
    struct keymap names; /* of protocols: struct classic_name */
    int64_t due_ms;      /* no member's session ends before this */
    size_t joining;      /* members that wait in a join */
    size_t bytes;        /* of all members' protocols */
    /* PREPARING: the join phase ends then. COMPLETING: those who have not synced go then. */
    int64_t phase_ms;
    bool initial;  /* PREPARING an empty group: only phase_ms ends it */
    bool newcomer; /* somebody joined since the initial delay began: it begins again ... */
    int64_t initial_limit_ms; /* ... but not beyond this */
    TAILQ_HEAD(, classic_raised) raised;
    bool all_raised; /* no memory to note which */
};

/* Makes the state of a group in which nobody ever was; E_NOMEM. */
MUST_USE int classic_attach(struct group *g);

/* --- members (classic_member.c) --- */

struct classic_member *classic_member_find(const struct classic *c, struct span id);
struct classic_member *classic_member_static(const struct classic *c, struct span instance);
/* KE_NONE and the member, or 25, 82. An empty instance is no instance. */
int16_t classic_member_check(const struct classic *c, const struct group_speaker *who,
                             struct classic_member **out);
/* A new member with the event's protocols, at the end of the list. E_NOMEM, E_LIMIT; nothing
 * changed then. */
MUST_USE int classic_member_add(struct group *g, const struct classic_join *ev, struct span id,
                                struct classic_member **out);
/* Its protocols and times become the event's; the same errors. */
MUST_USE int classic_member_update(struct group *g, struct classic_member *m,
                                   const struct classic_join *ev);
/* Another process took the instance over: the id changes, the place stays. E_NOMEM. */
MUST_USE int classic_member_rename(struct classic *c, struct classic_member *m, struct span id);
/* Takes it out and frees it; it waits for nothing any more. */
void classic_member_drop(struct classic *c, struct classic_member *m);
/* It was heard of: its session begins anew. */
void classic_member_alive(struct classic *c, struct classic_member *m, int64_t now_ms);
/* The same protocols with the same metadata in the same order. */
bool classic_member_matches(const struct classic_member *m, const struct classic_join *ev);
/* There is a protocol that every member, and the event, speaks. except: not counted. */
bool classic_protocols_fit(const struct classic *c, const struct classic_join *ev,
                           const struct classic_member *except);
void classic_names_fini(struct classic *c);
/* By votes: the one that most members like best among those that all speak. NULL: no members. */
const struct classic_protocol *classic_vote(const struct classic *c);
struct classic_pending *classic_pending_find(const struct classic *c, struct span id);
MUST_USE int classic_pending_add(struct classic *c, const char *id, int64_t deadline_ms);
void classic_pending_drop(struct classic *c, struct classic_pending *p);

/* --- the state machine (classic.c) --- */

/* The only writer of the state; refuses what is not in the picture of classic.c. */
void classic_set_state(struct classic *c, enum classic_state to);
void classic_answer_join(struct group *g, struct classic_member *m, int16_t error,
                         struct group_out *out);
void classic_answer_sync(struct classic_member *m, int16_t error, struct group_out *out);
/* Fills w's results for m with the present generation. */
void classic_fill(const struct group *g, struct classic_member *m, struct group_wait *w);
void classic_park_join(struct group *g, struct classic_member *m, struct group_wait *w,
                       struct group_out *out);
/* A join phase begins, or goes on. */
void classic_rebalance(struct group *g, int64_t now_ms, struct group_out *out);
/* Ends the join phase if everybody is there. */
void classic_try_complete(struct group *g, int64_t now_ms, struct group_out *out);
/* Takes m out, its waits are answered with 25, and does what follows from it. */
void classic_remove(struct group *g, struct classic_member *m, int64_t now_ms,
                    struct group_out *out);
/* group_ops.tick */
int64_t classic_tick(struct group *g, int64_t now_ms, struct group_out *out);
/* A new generation: topics that rose before it are no matter. */
void classic_forget_raised(struct classic *c);
/* The topics of a member's subscription, by the consumer protocol (pure; classic_topics.c). True:
 * topic is one of them, or the bytes are not a subscription. */
bool classic_subscription_has(struct span metadata, struct span topic);
