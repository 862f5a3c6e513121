/* Mailbox, job pool and the broken invariant: what crosses threads and what ends the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/jobpool.h"
#include "base/mailbox.h"
#include "base/mem.h"

struct note {
    struct task task; /* first member */
    int value;
    struct mailbox *answer_to; /* NULL: no answer */
    struct seen *seen;
};

struct seen {
    int values[64];
    size_t n;
};

static void run_note(struct task *t)
{
    struct note *note = (struct note *)t;

    note->seen->values[note->seen->n++] = note->value;
    mem_free(note);
}

static struct note *note_new(int value, struct seen *seen)
{
    struct note *n = mem_zalloc(sizeof *n);

    assert_non_null(n);
    n->task.run = run_note;
    n->value = value;
    n->seen = seen;
    return n;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void a_mailbox_runs_tasks_in_order_and_only_when_drained(void **state)
{
    (void)state;
    struct mailbox mb;
    struct seen seen = {.n = 0};

    assert_int_equal(mailbox_init(&mb), 0);
    assert_false(readable(mailbox_fd(&mb)));
    for (int i = 0; i < 5; i++)
        executor_post(&mb.ex, &note_new(i, &seen)->task);
    assert_int_equal(seen.n, 0);
    assert_true(readable(mailbox_fd(&mb)));
    assert_int_equal(mailbox_drain(&mb), 5);
    assert_false(readable(mailbox_fd(&mb)));
    for (int i = 0; i < 5; i++)
        assert_int_equal(seen.values[i], i);
    assert_int_equal(mailbox_drain(&mb), 0);
    mailbox_fini(&mb);
}

static void run_and_post_again(struct task *t)
{
    struct note *note = (struct note *)t;

    if (note->value > 0)
        mailbox_post(note->answer_to, &note_new(note->value, note->seen)->task);
    mem_free(note);
}

static void tasks_posted_during_a_drain_wait_for_the_next(void **state)
{
    (void)state;
    struct mailbox mb;
    struct seen seen = {.n = 0};

    assert_int_equal(mailbox_init(&mb), 0);
    struct note *n = note_new(9, &seen);
    n->task.run = run_and_post_again;
    n->answer_to = &mb;
    mailbox_post(&mb, &n->task);
    assert_int_equal(mailbox_drain(&mb), 1);
    assert_int_equal(seen.n, 0);
    assert_true(readable(mailbox_fd(&mb)));
    assert_int_equal(mailbox_drain(&mb), 1);
    assert_int_equal(seen.values[0], 9);
    mailbox_fini(&mb);
}

static void ending_a_mailbox_runs_what_is_left(void **state)
{
    (void)state;
    struct mailbox mb;
    struct seen seen = {.n = 0};

    assert_int_equal(mailbox_init(&mb), 0);
    mailbox_post(&mb, &note_new(1, &seen)->task);
    struct note *n = note_new(2, &seen);
    n->task.run = run_and_post_again;
    n->answer_to = &mb;
    mailbox_post(&mb, &n->task);
    mailbox_fini(&mb);
    assert_int_equal(seen.n, 2);
}

static void waiting_without_messages_times_out(void **state)
{
    (void)state;
    struct mailbox mb;
    struct seen seen = {.n = 0};

    assert_int_equal(mailbox_init(&mb), 0);
    assert_int_equal(mailbox_wait(&mb, 0), 0);
    assert_int_equal(mailbox_wait(&mb, 5), 0);
    mailbox_post(&mb, &note_new(1, &seen)->task);
    assert_int_equal(mailbox_wait(&mb, 0), 1);
    mailbox_post(&mb, &note_new(1, &seen)->task);
    assert_int_equal(mailbox_wait(&mb, -1), 1);
    mailbox_fini(&mb);
}

static void run_on_pool(struct task *t)
{
    struct note *note = (struct note *)t;

    note->task.run = run_note;
    mailbox_post(note->answer_to, &note->task);
}

static void jobs_answer_through_a_mailbox(void **state)
{
    (void)state;
    struct mailbox mb;
    struct jobpool *pool;
    struct seen seen = {.n = 0};
    int sum = 0;

    assert_int_equal(mailbox_init(&mb), 0);
    assert_int_equal(jobpool_new(3, "a-long-thread-name", &pool), 0);
    for (int i = 0; i < 50; i++) {
        struct note *n = note_new(i, &seen);
        n->task.run = run_on_pool;
        n->answer_to = &mb;
        executor_post(jobpool_executor(pool), &n->task);
    }
    while (seen.n < 50)
        assert_true(mailbox_wait(&mb, 10000) > 0);
    for (size_t i = 0; i < seen.n; i++)
        sum += seen.values[i];
    assert_int_equal(sum, 49 * 50 / 2);
    jobpool_free(pool);
    mailbox_fini(&mb);
}

static void freeing_a_pool_finishes_its_queue(void **state)
{
    (void)state;
    struct mailbox mb;
    struct jobpool *pool;
    struct seen seen = {.n = 0};

    assert_int_equal(mailbox_init(&mb), 0);
    assert_int_equal(jobpool_new(1, "jobs", &pool), 0);
    for (int i = 0; i < 30; i++) {
        struct note *n = note_new(i, &seen);
        n->task.run = run_on_pool;
        n->answer_to = &mb;
        executor_post(jobpool_executor(pool), &n->task);
    }
    jobpool_free(pool);
    jobpool_free(NULL);
    assert_int_equal(mailbox_drain(&mb), 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(seen.values[i], i); /* one thread keeps the order */
    mailbox_fini(&mb);
}

struct mask_note {
    struct task task;
    sigset_t blocked;
};

static void run_read_mask(struct task *t)
{
    pthread_sigmask(SIG_SETMASK, NULL, &((struct mask_note *)t)->blocked);
}

static void pool_threads_take_no_signals(void **state)
{
    (void)state;
    struct jobpool *pool;
    struct mask_note n = {.task = {.run = run_read_mask}};
    sigset_t own;

    sigemptyset(&n.blocked);
    assert_int_equal(jobpool_new(1, "jobs", &pool), 0);
    executor_post(jobpool_executor(pool), &n.task);
    jobpool_free(pool);
    assert_true(sigismember(&n.blocked, SIGTERM));
    assert_true(sigismember(&n.blocked, SIGUSR1));
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    assert_false(sigismember(&own, SIGTERM)); /* ours is as it was */
}

static void a_pool_without_memory_is_an_error(void **state)
{
    (void)state;
    struct jobpool *pool = (struct jobpool *)state;

    mem_fail_after(0, 0);
    assert_int_equal(jobpool_new(1, "jobs", &pool), E_NOMEM);
    assert_null(pool);
    mem_fail_after(-1, 0);
}

static void a_broken_invariant_names_its_place_and_aborts(void **state)
{
    (void)state;
    int fds[2];
    char text[600] = "";
    int status;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        ASSERT(1 + 1 == 2);
        ASSERT(fds[0] == -1);
        _exit(0);
    }
    close(fds[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(fds[0], text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "threads_test.c:"));
    assert_non_null(strstr(text, "invariant broken: fds[0] == -1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mailbox_runs_tasks_in_order_and_only_when_drained),
        cmocka_unit_test(tasks_posted_during_a_drain_wait_for_the_next),
        cmocka_unit_test(ending_a_mailbox_runs_what_is_left),
        cmocka_unit_test(waiting_without_messages_times_out),
        cmocka_unit_test(jobs_answer_through_a_mailbox),
        cmocka_unit_test(freeing_a_pool_finishes_its_queue),
        cmocka_unit_test(pool_threads_take_no_signals),
        cmocka_unit_test(a_pool_without_memory_is_an_error),
        cmocka_unit_test(a_broken_invariant_names_its_place_and_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
