/*
 * What an operator asks of groups: listings, lag, reset, deletion. Any thread asks; the groups
 * thread looks and writes the answer down; it comes back as a task. Over all tasks.
 */
#pragma once

#include "base/arena.h"
#include "base/executor.h"
#include "base/writer.h"
#include "gateway/groups/group_store.h"
#include "gateway/groups/groups.h"

#define GROUPS_LAG_SERIES ((size_t)1000)      /* of the lag metric; the rest is counted */
#define GROUPS_HTML_ROWS  ((size_t)200)       /* of the status page */
#define GROUPS_ASK_BYTES  ((size_t)64 << 20)  /* of the arena: some 300 bytes a partition */
#define GROUPS_OUT_BYTES  ((size_t)256 << 20) /* of an answer */

enum groups_ask_kind {
    GROUPS_ASK_LIST,   /* all groups, or those of a task */
    GROUPS_ASK_ONE,    /* with members and offsets */
    GROUPS_ASK_LAG,    /* Prometheus text */
    GROUPS_ASK_HTML,   /* a table for the status page; "" when there are none */
    GROUPS_ASK_PLAN,   /* what RESET is about, into `each`: who asks finds the offsets */
    GROUPS_ASK_RESET,  /* of an empty group */
    GROUPS_ASK_DELETE, /* an empty group */
};

enum groups_reset_to {
    GROUPS_TO_EARLIEST,
    GROUPS_TO_LATEST,
    GROUPS_TO_OFFSET,
    GROUPS_TO_EACH, /* what `each` says, and no other partition */
};

struct groups_reset_at {
    const char *topic;
    int32_t partition;
    int32_t epoch; /* of the topic when it was planned */
    int64_t offset;
};

/* Owner: who asks; the groups thread's from groups_ask until done. Begun by groups_ask_init, with
 * what follows filled in. */
struct groups_ask {
    struct task task;
    struct arena arena; /* of the names in it, of the plan, of what is written to the store */
    enum groups_ask_kind kind;
    struct span scope; /* name of a task; p NULL: all (LIST) */
    struct span group;
    /* RESET, PLAN */
    struct span topic; /* p NULL: all that the group has offsets of */
    int32_t partition; /* -1: all */
    enum groups_reset_to to;
    int64_t offset;
    bool execute;                 /* false: only tells what it would do */
    struct groups_reset_at *each; /* PLAN makes it; in the arena, as its names are */
    size_t each_n;
    /* by the groups thread */
    int status; /* as of HTTP */
    const char *fault;
    struct writer out; /* JSON, or the metric's text */
    struct executor *ex;
    void (*done)(struct groups_ask *ask); /* on ex */
    /* private */
    struct groups *gs;
    struct group *g;
    struct group_write write;
    size_t each_next; /* where in `each` the next partition is likely to be */
};

/* All partitions, dry. Who asks sets scope, group and the rest afterwards. */
void groups_ask_init(struct groups_ask *ask, enum groups_ask_kind kind, struct executor *ex,
                     void (*done)(struct groups_ask *ask));
void groups_ask_fini(struct groups_ask *ask);
/* Any thread, while the service runs. The same ask may be asked again when it was answered. */
void groups_ask(struct groups *gs, struct groups_ask *ask);
