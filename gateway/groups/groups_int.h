/*
 * The inside of the groups service, for the files of gateway/groups/. All on the groups thread,
 * except where a comment says otherwise.
 */
#pragma once

#include "base/arena.h"
#include "base/mailbox.h"
#include "gateway/groups/group_store.h"
#include "gateway/groups/groups.h"
#include "gateway/groups/keymap.h"
#include "gateway/view.h"
#include "kafka_proto/kp.h"
#include "kafka_proto/kp_messages.h"

struct worker;

/* One request on its way through the groups thread. Born on the worker, freed there. */
struct group_call {
    struct task task; /* to the groups thread and back */
    struct groups *gs;
    struct worker *w;
    struct request *rq; /* worker's only; NULL: the client went away */
    groups_fn *run;
    int (*reply)(struct group_call *c); /* what to do on the worker; set by group_call_reply */
    /* From here on: the groups thread's while it has the call. */
    struct arena arena; /* body, answer, scratch */
    struct blob *frame; /* what the body borrows from */
    const struct kp_api *api;
    const void *body;
    void *resp; /* defaults are filled in */
    int16_t version;
    bool failed;             /* no answer can be made (out of memory): the connection closes */
    const char *task_name;   /* scope; in the arena */
    struct span client_id;   /* "" when null */
    const char *client_host; /* "/127.0.0.1", as Kafka shows it */
    const char *advertise_host;
    uint16_t advertise_port;
    /* for those that wait */
    struct group *group;
    struct group_wait wait;
    STAILQ_ENTRY(group_call) held;
    int16_t *error; /* where resp has its error: set when the store fails a held answer */
    struct group_write write;
};

#define call_of_wait(w) ((struct group_call *)((char *)(w)-offsetof(struct group_call, wait)))

/* The answer is complete in c->resp (or c->failed): it goes back to the worker. c is gone. */
void group_call_reply(struct group_call *c);
/* Same, but not before the present generation of g is durable; if that fails, *c->error is set
 * to COORDINATOR_NOT_AVAILABLE first (and nothing else may be believed: clients do not look). */
void group_call_reply_stored(struct group_call *c, struct group *g);

struct groups {
    const struct groups_opts opts;
    struct mailbox mb;
    pthread_t thread;
    struct group_store *store;  /* NULL: nothing is kept */
    const struct gw_view *view; /* never NULL */
    struct keymap table;        /* key: task, NUL, id */
    struct group **heap;        /* by next_ms */
    size_t heap_n;
    size_t heap_cap;
    uint64_t next_id; /* for member ids where randomness is missing */
    bool draining;
    bool stopping;
    size_t calls; /* on this thread or parked */
};

int64_t groups_now_ms(const struct groups *gs);  /* monotonic */
int64_t groups_wall_ms(const struct groups *gs); /* since 1970 */
/* NULL: there is none. */
struct group *groups_find(struct groups *gs, struct span task, struct span id);
/* Finds or makes; E_LIMIT: the task has too many; E_NOMEM. */
MUST_USE int groups_make(struct groups *gs, struct span task, struct span id, struct group **out);
/* After every event of g: answers those who are done, stores a risen generation and the moment it
 * turned empty, sets the next deadline. Frees g when nothing of it is worth keeping: do not touch
 * it afterwards. */
void groups_settle(struct groups *gs, struct group *g, struct group_out *out);
/* The topic as the task sees it now; NULL: it has none of that name. */
const struct gw_topic *groups_topic(const struct groups *gs, const char *task, struct span name);
const struct gw_topic *groups_topic_by_id(const struct groups *gs, const char *task,
                                          const struct kp_uuid *id);
/* A fresh id for a member: PREFIX-xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx; in the arena, NULL: E_NOMEM
 */
MUST_USE const char *groups_member_id(struct groups *gs, struct arena *a, struct span prefix);
