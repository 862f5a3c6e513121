/*
 * Where a callback runs. A task is posted to an executor and runs there exactly once, later, never
 * from inside the post. Two kinds: a mailbox (one owning thread, in order) and a job pool (any of
 * its threads, no order). A store, for example, answers on the executor it was given, so the caller
 * decides the thread.
 */
#pragma once

#include <sys/queue.h>

struct task {
    STAILQ_ENTRY(task) link;
    void (*run)(struct task *t); /* may free t */
};

STAILQ_HEAD(task_queue, task);

struct executor {
    /* Any thread. Takes ownership of t until run. */
    void (*post)(struct executor *ex, struct task *t);
};

static inline void executor_post(struct executor *ex, struct task *t)
{
    ex->post(ex, t);
}
