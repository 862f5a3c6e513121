/*
 * The groups service: one thread that owns every group of every task, and its store. Workers park a
 * request and post it (groups_call); its run function is called on the groups thread with the table
 * at hand; the answer comes back through the worker's mailbox. Nothing on the groups thread waits
 * for a disk: what must be durable is posted to the store (group_store.h), and answered when it is.
 *
 * Scope: a group is named by (task, group id); nobody sees another task's groups.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/executor.h"
#include "gateway/groups/group.h"

struct groups;
struct group_call;
struct gw_view;
struct request;

struct groups_opts {
    const char *path;          /* of the database; NULL: nothing is kept (tests) */
    const struct clock *clock; /* sessions by mono_ms, what is stored by wall_ns; borrowed */
    struct group_limits limits;
    int64_t retention_ms; /* offsets of a group that is empty for so long are forgotten */
    size_t max_groups;    /* of one task */
};

/* Opens the store, loads, starts the thread. why as group_store_open's. */
MUST_USE int groups_start(const struct groups_opts *opts, struct groups **out, char *why,
                          size_t why_bytes);
/* Any thread; before the workers get the same view: so no commit that a worker took under a raised
 * epoch comes before the raise. Takes a reference. E_NOMEM. */
MUST_USE int groups_post_view(struct groups *gs, const struct gw_view *view);
/* Any thread: all waiting requests are answered with COORDINATOR_NOT_AVAILABLE, and all later ones
 * at once. */
void groups_drain(struct groups *gs);
/* Control thread, when no worker posts any more: every call comes back to its worker's mailbox,
 * the store is closed, the thread joined. */
void groups_stop(struct groups *gs);
/* After the workers' mailboxes ran for the last time. NULL is allowed. */
void groups_free(struct groups *gs);

/* Runs tasks on the groups thread: for the admin listener and metrics, which look at groups there
 * with groups_int.h's functions and post their findings back. Tasks posted before groups_stop run
 * all. */
struct executor *groups_executor(struct groups *gs);

typedef void groups_fn(struct groups *gs, struct group_call *c);

/* Worker thread, from a handler: parks rq and has run called on the groups thread, with the decoded
 * body. The memory of the request (body, frame) moves into the call. run answers by
 * group_call_reply, then or later; groups_int.h tells what it may use. Returns what the handler
 * returns. */
MUST_USE int groups_call(struct request *rq, groups_fn *run);
