/*
 * Private to fetch*.c, list_offsets.c and epoch.c: one Fetch request on its way.
 *
 *   fetch.c          decodes what is asked, composes the answer
 *   fetch_plan.c     pure: error, wait or read, by the offset rules
 *   fetch_gather.c   collects the batches of the partitions that have something: seeks, cache
 *   fetch_wait.c     long polls: who waits for which partition, deadlines
 *   fetch_session.c  incremental sessions (KIP-227)
 *   fetch_session_move.c  sessions whose client comes back on another worker
 *
 * A fetch is a list of fetch_parts. Only those that may have something to say are on a `ready` list
 * and looked at; the others are linked to their partition's watch, which puts them there when the
 * partition's heads move. So a wake-up costs what changed, not what is listed. Everything belongs
 * to the worker and runs on its thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gateway/cache.h"
#include "gateway/fresh_heads.h"
#include "gateway/request.h"
#include "gateway/topics.h"

/* Follower of a partition that nobody waits for: closed after this long. */
#define FETCH_WATCH_KEEP_MS 30000
/* A longer max_wait_ms is cut to this. */
#define FETCH_WAIT_MAX_MS 300000

/* --- fetch_plan.c: pure ----------------------------------------------------------------------- */

/* Isolation levels of the protocol. Both see the same until transactions are followed (O6). */
enum { READ_UNCOMMITTED = 0, READ_COMMITTED = 1 };

/* A partition as a reader of one isolation level sees it. */
struct fetch_ends {
    int64_t log_start;
    int64_t hwm;
    int64_t lso;
    int64_t end; /* the reader's end E: nothing at or behind it is served */
    int64_t write_head;
    bool settling; /* there may be more than that (O8) */
};

void fetch_ends_of(const struct jc_heads *heads, int8_t isolation, struct fetch_ends *out);
/* KE_NONE, KE_FENCED_LEADER_EPOCH or KE_UNKNOWN_LEADER_EPOCH for the current_leader_epoch of a
 * request; negative: unchecked. */
int16_t fetch_epoch_check(int32_t asked, int32_t current);
/* O11: the end offset of an epoch, for OffsetForLeaderEpoch and the divergence check. */
void fetch_epoch_end(int32_t asked, int32_t current, const struct fetch_ends *ends, int32_t *epoch,
                     int64_t *end_offset);

struct fetch_want {
    int64_t offset;
    int32_t current_epoch;      /* -1: unchecked */
    int32_t last_fetched_epoch; /* -1: no divergence check */
};

enum fetch_verdict {
    FETCH_ERROR,    /* error is set */
    FETCH_DIVERGED, /* epoch and end offset are set */
    FETCH_NOTHING,  /* at the reader's end, or between it and the write head: wait */
    FETCH_READ,     /* something lies between the offset and the reader's end */
};

struct fetch_plan {
    enum fetch_verdict verdict;
    int16_t error;
    int32_t diverging_epoch;
    int64_t diverging_end;
};

void fetch_plan(const struct fetch_want *want, int32_t epoch, const struct fetch_ends *ends,
                struct fetch_plan *out);

/* --- one partition of a fetch or of a session --------------------------------------------------
 */

struct fetch;
struct fetch_session;
struct fetch_watch;

TAILQ_HEAD(fetch_part_list, fetch_part);

/* Owner: the request's arena, or its session. */
struct fetch_part {
    /* what was asked; the name is borrowed from the frame or from the session's topic */
    struct span topic;
    struct kp_uuid topic_id;
    int32_t index;
    int32_t max_bytes;
    struct fetch_want want;
    /* resolved in the view of the fetch or session; NULL when unknown */
    const struct gw_topic *t;
    struct gw_part *part;
    bool elsewhere; /* the topic is there, but its task is served by another place */
    /* who must know */
    struct fetch *const *user; /* points to the running request; to NULL in an idle session */
    struct fetch_part_list *ready_list;
    TAILQ_ENTRY(fetch_part) ready_link;
    bool ready;
    struct fetch_watch *watch;
    LIST_ENTRY(fetch_part) watch_link;
    int64_t seen_end; /* the reader's end that was last counted in the fetch's bytes */
    /* outcome of the last pass */
    struct fetch_plan plan;
    struct fetch_ends ends;
    size_t batch_at; /* its run in the fetch's batches */
    size_t batch_n;
    /* sessions only: what the client knows; -1: tell again */
    struct fetch_session_topic *session_topic;
    int64_t told_hwm;
    int64_t told_lso;
    int64_t told_log_start;
    LIST_ENTRY(fetch_part) bucket;
    TAILQ_ENTRY(fetch_part) session_link;
};

enum fetch_state {
    FETCH_ASKING, /* its session comes from another worker; no parts yet */
    FETCH_GATHERING,
    FETCH_WAITING,
    FETCH_STARVED, /* its connection's output is full of others: nothing is collected */
};

/* Owner: the request's arena. */
struct fetch {
    struct request *rq;
    struct fetch *self; /* what the parts of a sessionless fetch have as their user */
    struct fetch_worker *fw;
    LIST_ENTRY(fetch) link; /* of the worker's fetches in flight */
    TAILQ_ENTRY(fetch) run_link;
    bool runnable; /* on the worker's run queue */
    enum fetch_state state;
    const struct gw_view *view;    /* owned reference */
    struct fetch_session *session; /* NULL: sessionless */
    bool full;                     /* every partition is answered */
    int8_t isolation;
    int16_t version;
    int64_t deadline_ms;
    size_t min_bytes;
    size_t max_bytes;
    struct fetch_part *parts; /* sessionless: in the order of the request */
    size_t parts_n;
    struct fetch_part_list ready; /* sessionless */
    uint64_t rotation;
    bool waited;
    /* a pass over the ready partitions (fetch_gather.c) */
    struct fetch_part **order;
    size_t order_n, order_cap;
    size_t order_at;
    struct kp_batch *batches; /* each with its own reference */
    size_t batches_n, batches_cap;
    size_t bytes;    /* of batches; held of the connection's room (request_hold) */
    size_t counted;  /* bytes towards min_bytes: also what a limit left behind, and growth since */
    bool answer_now; /* an error, a divergence, or the answer is full */
    bool changed;    /* something became ready since the pass began */
    struct {
        bool begun;
        bool seek;      /* the next step is a seek */
        bool part_full; /* the partition's limit stopped it */
        int err;        /* of the step that ran */
        int64_t at;     /* next offset wanted */
        int64_t seek_end;
        size_t bytes;
        struct gw_blockbatches *entry; /* owned; arrived for `block` */
        int64_t block;
        int64_t need_to;
    } cur;
    struct session_move *move;        /* FETCH_ASKING only */
    struct gw_cache_wait *cache_wait; /* at most one of these two, or of `asking` */
    struct jc_op *seek_op;
    struct fetch_part *asked; /* of this pass: the store was asked for its heads; NULL: of none */
    struct fresh_heads fresh;
    struct fresh_slot fresh_slot;
    bool asking;                 /* its answer is awaited */
    bool asks;                   /* inside the start of that */
    LIST_ENTRY(fetch) wait_link; /* among the deadlines, while timed */
    bool timed;
    bool due; /* its time is up */
};

LIST_HEAD(fetch_list, fetch);
TAILQ_HEAD(fetch_queue, fetch);

/* Owner: worker */
struct fetch_worker {
    struct worker *w;
    struct fetch_list active;
    struct fetch_queue runnable;
    bool running; /* inside fetch_run_queue */
    bool draining;
    uint64_t random; /* state of the rotation and of session ids */
    struct fetch_waits *waits;
    struct fetch_sessions *sessions;
};

/* fetch.c */
/* Sends what was gathered; f and its request are gone afterwards. */
void fetch_answer(struct fetch *f);
/* No answer is possible: closes the connection. f and its request are gone afterwards. */
void fetch_refuse(struct fetch *f, int err);
/* The topic and partition of a part in the task of who asks; unknown ones get NULL. */
void fetch_resolve(struct fetch_worker *fw, struct fetch_part *p, const struct gw_task *task,
                   int16_t version);
/* Puts the part where the next pass looks. */
void fetch_mark_ready(struct fetch_part *p);
void fetch_unmark_ready(struct fetch_part *p);
struct fetch_part_list *fetch_ready_list(struct fetch *f);
/* What the client that shares the session knows is what is. */
bool fetch_part_told(const struct fetch_part *p, const struct fetch_ends *ends);

/* The session is here, or is known not to be: goes on with the request. */
void fetch_enter(struct fetch *f);

/* fetch_gather.c */
/* Begins a pass; ends in fetch_answer or fetch_wait_begin, at once or later. */
void fetch_gather(struct fetch *f);
/* Stops a pass, drops what it collected. */
void fetch_gather_reset(struct fetch *f);

/* fetch_wait.c */
MUST_USE int fetch_waits_new(struct fetch_worker *fw, struct fetch_waits **out);
void fetch_waits_free(struct fetch_waits *ws);
/* Parks f until enough is there or its deadline comes. */
void fetch_wait_begin(struct fetch *f);
void fetch_wait_end(struct fetch *f);
/* Links a part to the heads of its partition; failure only costs promptness. */
void fetch_watch_attach(struct fetch_worker *fw, struct fetch_part *p);
void fetch_watch_detach(struct fetch_worker *fw, struct fetch_part *p);
/* A part's partition may have moved: counts, and wakes the fetch when it has enough. */
void fetch_part_moved(struct fetch_worker *fw, struct fetch_part *p);
/* Runs the fetches that were woken. */
void fetch_run_queue(struct fetch_worker *fw);
void fetch_wake(struct fetch *f);
/* Answers what is due by the worker's clock; called by the timer and by tests. */
void fetch_waits_expire(struct fetch_waits *ws);
/* Closes followers that nobody has used for FETCH_WATCH_KEEP_MS. */
void fetch_waits_sweep(struct fetch_waits *ws);
size_t fetch_waits_watches(const struct fetch_waits *ws);

/* fetch_session.c */
MUST_USE int fetch_sessions_new(struct fetch_worker *fw, size_t max, struct fetch_sessions **out);
void fetch_sessions_free(struct fetch_sessions *ss);
size_t fetch_sessions_count(const struct fetch_sessions *ss);
/* Finds, opens, updates or closes the session that the request names. With f->session set, the
 * session is f's until fetch_session_leave, and f->full says whether all of it is answered. Returns
 * the Kafka error that is the whole answer, or KE_NONE. */
int16_t fetch_session_enter(struct fetch *f, const struct kp_fetch_req *req);
bool fetch_session_known(const struct fetch_sessions *ss, int32_t id);
/* The request that used the session is over. */
void fetch_session_leave(struct fetch *f);
int32_t fetch_session_id(const struct fetch_session *s);
/* All parts, by age. */
struct fetch_part_list *fetch_session_parts(struct fetch_session *s);
size_t fetch_session_parts_n(const struct fetch_session *s);
struct fetch_part_list *fetch_session_ready(struct fetch_session *s);
/* Brings idle sessions to the worker's present view, a bounded number of parts a call: they would
 * keep an old view, with all its journals, for as long as they idle. */
void fetch_sessions_refresh(struct fetch_sessions *ss);
/* Resolves all parts in this view and makes them ready, unless it is the one seen last. */
void fetch_session_see(struct fetch_session *s, const struct gw_view *view);
/* The client was told of p: remembers what it knows; partitions with records go to the back. */
void fetch_session_told(struct fetch_session *s, struct fetch_part *p);
/* For fetch_session_move.c. take: an idle session leaves its worker and belongs to the caller; else
 * a Kafka error. adopt: the session belongs to this worker from here on, or is gone when there is
 * no room. destroy: of one that was taken; NULL is allowed. */
int16_t fetch_session_take(struct fetch_sessions *ss, int32_t id, const char *principal,
                           struct fetch_session **out);
void fetch_session_adopt(struct fetch_sessions *ss, struct fetch_session *s);
void fetch_session_destroy(struct fetch_session *s);

/* fetch_session_move.c */
/* True: another worker is being asked for the session; fetch_enter will be called. */
bool fetch_session_ask_elsewhere(struct fetch *f, int32_t id);
/* The worker that opened the session closes it, if it is this principal's. */
void fetch_session_close_elsewhere(const struct fetch *f, int32_t id);
/* The request was cancelled while it asked. */
void fetch_session_move_forget(struct fetch *f);
