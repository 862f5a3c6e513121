/* The state of a KIP-848 group and what its files share. Private to gateway/groups/. */
#pragma once

#include "base/keymap.h"
#include "gateway/groups/assign.h"
#include "gateway/groups/consumer.h"
#include "gateway/groups/regex.h"

struct consumer_member;

/* Who has a partition, and who should. */
struct consumer_part {
    struct consumer_member *owner;  /* has been told that it may read it; NULL: nobody */
    struct consumer_member *target; /* of the present assignment; NULL: nobody */
    bool revoking;                  /* the owner has been told to give it up */
    bool again; /* the topic's epoch rose: the owner must give it up, though it may get it back */
};

/* A topic that somebody subscribes to, or still owns a partition of. Replaced as a whole when it
 * gets more partitions. */
struct consumer_topic {
    struct kp_uuid id;
    int32_t epoch;      /* that it is given out under */
    int32_t partitions; /* to give out; 0: gone, or nobody subscribes any more */
    int32_t parts_n;    /* of parts */
    size_t name_n;
    char *name; /* in the same allocation */
    struct consumer_part parts[];
};

#define CONSUMER_PATTERNS_MAX 32 /* different ones of a group */

/* A pattern, shared by all members that sent the same. */
struct consumer_regex {
    TAILQ_ENTRY(consumer_regex) link;
    size_t refs; /* members */
    struct group_regex *re;
    bool *seen_hits; /* of consumer.seen, by index */
    bool *new_seen;  /* while the task's topics are looked at */
    bool *hits;      /* of the live topics, by index; as of the last refresh */
    bool *new_hits;  /* while a refresh goes on */
    size_t text_n;
    char text[]; /* and a NUL */
};

enum consumer_member_state {
    CONSUMER_STABLE,     /* has what its epoch gives it */
    CONSUMER_UNREVOKED,  /* must give something up before its epoch rises */
    CONSUMER_UNRELEASED, /* waits for what others have not given up yet */
};

struct consumer_member {
    TAILQ_ENTRY(consumer_member) link;
    char *id;
    char *instance; /* NULL: dynamic */
    char *rack;     /* NULL: not told */
    char *client_id;
    char *client_host;
    struct span *names; /* subscribed, sorted, no name twice; one allocation with their bytes */
    size_t names_n;
    size_t names_bytes;
    struct consumer_regex *regex; /* counted; NULL: none */
    const char *assignor;         /* static; NULL: any */
    int32_t epoch;                /* 0: joining; CONSUMER_STATIC_LEAVES: away */
    int32_t previous_epoch;
    enum consumer_member_state state;
    int64_t rebalance_ms;
    int64_t deadline_ms; /* its session ends */
    int64_t revoke_ms;   /* it must have given up by then; GROUP_NEVER: nothing to give up */
    uint32_t index;      /* while a target is computed */
};

/* A topic's epoch rose: members of this epoch or an older one know only what it was before. */
struct consumer_raised {
    TAILQ_ENTRY(consumer_raised) link;
    int32_t epoch;
    char topic[];
};

struct consumer {
    TAILQ_HEAD(, consumer_member) members; /* by joining */
    size_t members_n;
    struct keymap by_id;
    struct keymap by_instance;
    TAILQ_HEAD(, consumer_regex) regexes;
    size_t regexes_n;
    struct span *seen; /* names of the task's topics that the patterns met, in order; one
                          allocation; NULL: none yet */
    size_t seen_n;
    struct consumer_topic **topics; /* live ones first, by name; then those only owned */
    size_t topics_n;
    size_t live_n;
    struct keymap topic_by_name; /* live ones */
    struct keymap topic_by_id;   /* all */
    const struct group *group;   /* for its limits */
    int32_t assignment_epoch;    /* that the targets are of */
    bool refresh;                /* topics or subscriptions are not what the table was made of */
    size_t bytes;                /* subscriptions of all members */
    int64_t next_ms;             /* no deadline is before this */
    TAILQ_HEAD(, consumer_raised) raised;
    int32_t all_raised; /* as if every topic had risen at this epoch: no memory to note which */
};

/* Calls for a new target; the group epoch rises unless one is called for already. */
void consumer_bump(struct group *g);

/* --- members (consumer_member.c) --- */

struct consumer_member *consumer_member_find(const struct consumer *c, struct span id);
/* A new member without subscriptions. E_NOMEM. */
MUST_USE int consumer_member_add(struct consumer *c, const struct consumer_heartbeat *ev,
                                 struct span id, struct consumer_member **out);
/* Another process took the instance over. E_NOMEM: nothing changed. */
MUST_USE int consumer_member_rename(struct consumer *c, struct consumer_member *m, struct span id);
/* Its partitions are nobody's. */
void consumer_member_release(struct consumer *c, struct consumer_member *m);
/* Takes it out, with all it owns and should own, and frees it. */
void consumer_member_drop(struct consumer *c, struct consumer_member *m);
/* What the heartbeat changes about it. 1: its subscription changed; 0: it did not; E_NOMEM,
 * E_LIMIT, E_SYNTAX (the pattern, with why): nothing changed. */
MUST_USE int consumer_member_update(struct group *g, struct consumer_member *m,
                                    const struct consumer_heartbeat *ev,
                                    const struct consumer_topics *topics, char *why,
                                    size_t why_bytes);

/* --- patterns (consumer_patterns.c) --- */

/* The group's pattern of that text, counted for one member more; try it on the topics. E_SYNTAX
 * with why; E_LIMIT: the group has too many others; E_NOMEM. */
MUST_USE int consumer_pattern_get(struct consumer *c, struct span text,
                                  const struct consumer_topics *topics, struct consumer_regex **out,
                                  char *why, size_t why_bytes);
void consumer_pattern_unref(struct consumer *c, struct consumer_regex *r); /* NULL is allowed */
/* All patterns meet the topics that are new. Afterwards seen_hits[i] is about topic i. E_NOMEM:
 * nothing changed. */
MUST_USE int consumer_patterns_look(struct consumer *c, const struct consumer_topics *topics);
/* Whether the patterns met a topic of that name, and where it stands. */
bool consumer_seen(const struct consumer *c, struct span topic, size_t *at);
/* False, too, for a topic that the patterns did not meet yet. */
bool consumer_pattern_hits(const struct consumer *c, const struct consumer_regex *r,
                           struct span topic);

/* --- topics (consumer_topics.c) --- */

/* Brings the table up to what members subscribe to and the task has. The group epoch rises if that
 * is not what it was. E_NOMEM: refresh stays set. */
MUST_USE int consumer_refresh(struct group *g, const struct consumer_topics *topics);
void consumer_topics_free(struct consumer *c);
/* By name, or by pattern as of the last refresh. */
bool consumer_member_subscribes(const struct consumer *c, const struct consumer_member *m,
                                struct span topic);
/* The live topics that it subscribes to, by name or pattern, in order; how many, and how many at
 * most. */
size_t consumer_member_reads(const struct consumer *c, const struct consumer_member *m,
                             uint32_t *out);
size_t consumer_member_reads_max(const struct consumer *c, const struct consumer_member *m);

/* --- assignment (consumer_assign.c) --- */

/* The targets of the present epoch. E_NOMEM: they stay those of the last. */
MUST_USE int consumer_target(struct group *g);
/* The assignor that most members ask for. */
const char *consumer_assignor(const struct consumer *c);
/* One step of the member towards its target. True: what it may read changed. */
bool consumer_reconcile(struct consumer *c, struct consumer_member *m,
                        const struct consumer_heartbeat *ev, int64_t now_ms);
/* What it was told to give up is nobody's. */
void consumer_release_revoked(struct consumer *c, const struct consumer_member *m);
/* It has all that the present targets give it. */
bool consumer_reconciled(const struct consumer *c, const struct consumer_member *m);
/* All that is reported lies in what the member may read. */
bool consumer_owned_fits(const struct consumer *c, const struct consumer_member *m,
                         const struct consumer_heartbeat *ev);
