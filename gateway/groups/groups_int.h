/*
 * The inside of the groups service, for the files of gateway/groups/. All on the groups thread,
 * except where a comment says otherwise.
 */
#pragma once

#include "base/arena.h"
#include "base/keymap.h"
#include "base/mailbox.h"
#include "gateway/groups/group_store.h"
#include "gateway/groups/groups.h"
#include "gateway/view.h"
#include "kafka_proto/kp.h"
#include "kafka_proto/kp_messages.h"

struct worker;

#define GROUP_SWEEP_MS     60000 /* retention is looked at this often, or four times in its length */
#define GROUP_ROW_RETRY_MS 1000
#define GROUP_BARE_MS      600000 /* an empty group without offsets is kept for so long */

/* One request on its way through the groups thread. Born on the worker, freed there. */
struct group_call {
    struct task task; /* to the groups thread and back */
    struct groups *gs;
    struct worker *w;
    struct request *rq; /* worker's only; NULL: the client went away */
    groups_fn *run;
    /* From here on: the groups thread's while it has the call. */
    struct arena arena; /* body, answer, scratch */
    struct blob *frame; /* what the body borrows from */
    const struct kp_api *api;
    const void *body;
    void *resp; /* defaults are filled in */
    int16_t version;
    /* KE_*: run only answers with it, in the shape of its API, and touches no group: the task is
     * served elsewhere (16), or we are leaving (15). */
    int16_t refuse;
    bool failed;             /* no answer can be made (out of memory): the connection closes */
    const char *task_name;   /* scope; in the arena */
    const char *client_id;   /* "" when null; in the arena */
    const char *client_host; /* "/127.0.0.1", as Kafka shows it; in the arena */
    /* for those that wait */
    struct group *group;
    const char *new_id; /* JoinGroup: for a member without one; in the arena */
    struct group_wait wait;
    STAILQ_ENTRY(group_call) held;
    void *scratch;  /* run's */
    int16_t *error; /* where resp has its error, for an answer that waits for the store */
    struct group_write write;
};

#define call_of_wait(w)                                                                            \
    ((struct group_call *)(void *)((char *)(w)-offsetof(struct group_call, wait)))
#define call_of_write(w)                                                                           \
    ((struct group_call *)(void *)((char *)(w)-offsetof(struct group_call, write)))

/* The answer is complete in c->resp (or c->failed): it goes back to the worker. c is gone. */
void group_call_reply(struct group_call *c);
/* Same, but not before the present generation of g is durable; if that fails, *c->error is set
 * to COORDINATOR_NOT_AVAILABLE first (and nothing else may be believed: clients do not look). */
void group_call_reply_stored(struct group_call *c, struct group *g);
/* There is no memory for an answer. */
void group_call_fail(struct group_call *c);

struct groups {
    struct groups_opts opts;
    struct mailbox mb;
    pthread_t thread;
    bool started;
    struct group_store *store;  /* NULL: nothing is kept */
    const struct gw_view *view; /* never NULL */
    struct keymap table;        /* key: task, NUL, id */
    struct keymap epochs;       /* last seen, of each topic: struct groups_epoch */
    struct keymap counts;       /* groups of each task: struct groups_count */
    struct group **heap;        /* by next_ms */
    size_t heap_n;
    size_t heap_cap;
    int64_t sweep_ms; /* when retention is looked at next; monotonic */
    bool draining;
    bool stopping;
    struct task drain_task;
    struct task stop_task;
};

/* The parts that need no thread: for groups_start, and for tests, which play the thread. */
MUST_USE int groups_open(const struct groups_opts *opts, struct groups **out, char *why,
                         size_t why_bytes);
/* Runs what was posted and what is due. Returns when to come again, in milliseconds (>= 0, < 0:
 * only when something is posted). */
int64_t groups_turn(struct groups *gs);

int64_t groups_now_ms(const struct groups *gs);  /* monotonic */
int64_t groups_wall_ms(const struct groups *gs); /* since 1970 */
/* NULL: there is none. */
struct group *groups_find(struct groups *gs, const char *task, struct span id);
/* Finds or makes; E_LIMIT: the task has too many; E_NOMEM. */
MUST_USE int groups_make(struct groups *gs, const char *task, struct span id, struct group **out);
/* How many groups the task has. */
size_t groups_of(const struct groups *gs, const char *task);
/* After every event of g that may have changed more than a deadline to a later one: answers those
 * who are done, stores a risen generation and the moment it turned empty, sets the next deadline.
 * Frees g when nothing of it is worth keeping: do not touch it afterwards. */
void groups_settle(struct groups *gs, struct group *g, struct group_out *out);
/* Posts a write of g, whose ops and names live until done; g lives until then, too. done begins by
 * groups_written(gs, g), and ends by groups_settle with an empty out. */
void groups_write(struct groups *gs, struct group *g, struct group_write *w,
                  void (*done)(struct group_write *w));
void groups_written(struct groups *gs, struct group *g);
/* Deletes what retention no longer wants. */
void groups_sweep(struct groups *gs);
void groups_sweep_group(struct groups *gs, struct group *g);
/* DELETE_OFFSET operations of w are durable: the memory follows. */
void groups_forget(struct group *g, const struct group_write *w);
/* A DELETE_GROUP is durable, or failed; frees g unless somebody came meanwhile. */
void groups_deleted(struct groups *gs, struct group *g, int err);
/* The topic as the task sees it now; NULL: it has none of that name. */
const struct gw_topic *groups_topic(const struct groups *gs, const char *task, struct span name);
const struct gw_topic *groups_topic_by_id(const struct groups *gs, const char *task,
                                          const struct kp_uuid *id);
/* A view arrived: tells the groups of its tasks which topics changed. Takes the reference. */
void groups_take_view(struct groups *gs, const struct gw_view *view);
void groups_view_fini(struct groups *gs);
/* A fresh id for a member: PREFIX-xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx; in the arena, NULL: E_NOMEM
 */
MUST_USE const char *groups_member_id(struct arena *a, struct span prefix);
