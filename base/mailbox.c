/*
 * A locked queue and an eventfd. The eventfd is written when the queue turns non-empty, and still
 * under the lock: the drainer may destroy the mailbox as soon as it has run the last message, and
 * by then no poster touches the descriptor any more. The drainer clears the eventfd before it takes
 * the queue; a post in between only costs a spurious wake-up, never a lost one.
 */
#include "base/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

static void post(struct executor *ex, struct task *t)
{
    mailbox_post((struct mailbox *)ex, t); /* ex is the first member */
}

int mailbox_init(struct mailbox *mb)
{
    mb->ex.post = post;
    STAILQ_INIT(&mb->queue);
    mb->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (mb->fd < 0)
        return err_from_errno(errno);
    int rc = pthread_mutex_init(&mb->lock, NULL);
    if (rc != 0) {
        close(mb->fd);
        mb->fd = -1;
        return err_from_errno(rc);
    }
    return 0;
}

void mailbox_fini(struct mailbox *mb)
{
    while (mailbox_drain(mb) > 0)
        ;
    pthread_mutex_destroy(&mb->lock);
    close(mb->fd);
    mb->fd = -1;
}

void mailbox_post(struct mailbox *mb, struct task *t)
{
    pthread_mutex_lock(&mb->lock);
    bool was_empty = STAILQ_EMPTY(&mb->queue);
    STAILQ_INSERT_TAIL(&mb->queue, t, link);
    if (was_empty) {
        uint64_t one = 1;
        ssize_t n;
        do {
            n = write(mb->fd, &one, sizeof one);
        } while (n < 0 && errno == EINTR);
        /* EAGAIN would mean a full counter, that is: readable already. */
        ASSERT(n == (ssize_t)sizeof one || errno == EAGAIN);
    }
    pthread_mutex_unlock(&mb->lock);
}

size_t mailbox_drain(struct mailbox *mb)
{
    struct task_queue batch = STAILQ_HEAD_INITIALIZER(batch);
    uint64_t count;
    ssize_t got;
    size_t n = 0;

    do {
        got = read(mb->fd, &count, sizeof count);
    } while (got < 0 && errno == EINTR);

    pthread_mutex_lock(&mb->lock);
    STAILQ_CONCAT(&batch, &mb->queue);
    pthread_mutex_unlock(&mb->lock);

    while (!STAILQ_EMPTY(&batch)) {
        struct task *t = STAILQ_FIRST(&batch);
        STAILQ_REMOVE_HEAD(&batch, link);
        t->run(t);
        n++;
    }
    return n;
}

size_t mailbox_wait(struct mailbox *mb, int timeout_ms)
{
    const struct clock *clock = clock_system();
    int64_t deadline = clock_mono_ms(clock) + timeout_ms;

    for (;;) {
        size_t n = mailbox_drain(mb);
        if (n > 0)
            return n;
        int wait = -1;
        if (timeout_ms >= 0) {
            int64_t left = deadline - clock_mono_ms(clock);
            if (left <= 0)
                return 0;
            wait = (int)left;
        }
        /* EINTR and spurious wake-ups alike: look at the queue again. */
        struct pollfd p = {.fd = mb->fd, .events = POLLIN};
        (void)poll(&p, 1, wait);
    }
}
