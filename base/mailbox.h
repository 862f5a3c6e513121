/*
 * Messages to one thread. Any thread posts; the owner drains. Waking costs one eventfd write, only
 * when the queue was empty. The lock is a leaf: nothing is called while it is held. No libevent
 * here: the owner watches mailbox_fd().
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/executor.h"

struct mailbox {
    struct executor ex; /* first member: a mailbox is an executor */
    pthread_mutex_t lock;
    struct task_queue queue;
    int fd; /* eventfd, non-blocking, readable while messages wait */
};

MUST_USE int mailbox_init(struct mailbox *mb);
/* Only when no thread can post any more. Tasks still queued are run first, so that their owners
 * free them. */
void mailbox_fini(struct mailbox *mb);
/* Any thread. Ownership of t passes to the mailbox; its run() is called once on the draining
 * thread. */
void mailbox_post(struct mailbox *mb, struct task *t);
/* Owner only: runs all tasks queued at the time of the call (those posted meanwhile run next time).
 * Returns how many ran. */
size_t mailbox_drain(struct mailbox *mb);
/* Owner only, for programs without an event loop (tests, commands): waits until a task was queued,
 * then drains. timeout_ms < 0: no limit. Returns how many ran (0 = timed out). */
size_t mailbox_wait(struct mailbox *mb, int timeout_ms);
static inline int mailbox_fd(const struct mailbox *mb)
{
    return mb->fd;
}
