/*
 * Mailbox, job pool and blobs under load, for ThreadSanitizer: several posters, answers between
 * mailboxes, a blob shared by all, and the owner that destroys its mailbox right after the last
 * message. Bounded: the counts are fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/blob.h"
#include "base/jobpool.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/mem.h"

#define POSTERS  4
#define MESSAGES 5000
#define ROUNDS   300

struct message {
    struct task task;
    struct blob *blob;
    uint64_t *sum; /* owned by the draining thread */
    unsigned poster;
    unsigned number;
    unsigned *next; /* the number expected from each poster */
};

static void receive(struct task *t)
{
    struct message *m = (struct message *)t;

    assert_int_equal(m->number, m->next[m->poster]);
    m->next[m->poster]++;
    *m->sum += m->blob->data[m->number % m->blob->len];
    blob_unref(m->blob);
    mem_free(m);
}

struct poster {
    pthread_t thread;
    struct mailbox *to;
    struct blob *blob;
    uint64_t *sum;
    unsigned *next;
    unsigned index;
};

static void *post_many(void *arg)
{
    struct poster *p = arg;

    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message *m = mem_zalloc(sizeof *m);
        if (m == NULL)
            break;
        m->task.run = receive;
        m->blob = blob_ref(p->blob);
        m->sum = p->sum;
        m->next = p->next;
        m->poster = p->index;
        m->number = i;
        mailbox_post(p->to, &m->task);
    }
    return NULL;
}

static void many_posters_lose_and_reorder_nothing(void **state)
{
    (void)state;
    struct mailbox mb;
    struct poster posters[POSTERS];
    unsigned next[POSTERS] = {0};
    uint64_t sum = 0;
    size_t ran = 0;

    assert_int_equal(mailbox_init(&mb), 0);
    struct blob *blob = blob_copy(span_str("\1\2\3\4\5"));
    for (unsigned i = 0; i < POSTERS; i++) {
        posters[i] =
            (struct poster){.to = &mb, .blob = blob, .sum = &sum, .next = next, .index = i};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    while (ran < (size_t)POSTERS * MESSAGES) {
        size_t n = mailbox_wait(&mb, 30000);
        assert_true(n > 0);
        ran += n;
    }
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
    assert_int_equal(sum, (uint64_t)POSTERS * MESSAGES * 3);
    assert_int_equal(mailbox_drain(&mb), 0);
    mailbox_fini(&mb);
    blob_unref(blob);
}

struct last_word {
    struct task task;
    struct mailbox *to;
    bool arrived;
};

static void hear(struct task *t)
{
    ((struct last_word *)t)->arrived = true;
}

static void *post_last(void *arg)
{
    struct last_word *w = arg;

    mailbox_post(w->to, &w->task);
    return NULL;
}

static void a_mailbox_may_go_right_after_its_last_message(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct mailbox *mb = mem_zalloc(sizeof *mb);
        struct last_word w = {.task = {.run = hear}, .to = mb};
        pthread_t thread;

        assert_int_equal(mailbox_init(mb), 0);
        assert_int_equal(pthread_create(&thread, NULL, post_last, &w), 0);
        while (!w.arrived)
            (void)mailbox_wait(mb, 1000);
        mailbox_fini(mb);
        mem_free(mb);
        pthread_join(thread, NULL);
    }
}

struct relay {
    struct task task;
    struct executor *pool;
    struct mailbox *home;
    unsigned hops;
    unsigned *done; /* home thread */
};

static void hop_home(struct task *t);

static void hop_pool(struct task *t)
{
    struct relay *r = (struct relay *)t;

    log_peer(LOG_ERROR, "stress.hop", LF_UINT("hops", r->hops));
    r->task.run = hop_home;
    mailbox_post(r->home, &r->task);
}

static void hop_home(struct task *t)
{
    struct relay *r = (struct relay *)t;

    if (r->hops-- == 0) {
        ++*r->done;
        mem_free(r);
        return;
    }
    r->task.run = hop_pool;
    executor_post(r->pool, &r->task);
}

static void tasks_travel_between_pool_and_mailbox(void **state)
{
    (void)state;
    struct mailbox home;
    struct jobpool *pool;
    unsigned done = 0;

    assert_int_equal(mailbox_init(&home), 0);
    assert_int_equal(jobpool_new(4, "relay", &pool), 0);
    for (int i = 0; i < 20; i++) {
        struct relay *r = mem_zalloc(sizeof *r);
        assert_non_null(r);
        *r = (struct relay){{.run = hop_home}, jobpool_executor(pool), &home, 100, &done};
        mailbox_post(&home, &r->task);
    }
    while (done < 20)
        assert_true(mailbox_wait(&home, 30000) > 0);
    jobpool_free(pool);
    mailbox_fini(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_posters_lose_and_reorder_nothing),
        cmocka_unit_test(a_mailbox_may_go_right_after_its_last_message),
        cmocka_unit_test(tasks_travel_between_pool_and_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
