/*
 * The embedded store under many threads: writers, readers that block and are cancelled, followers,
 * block reads, seeks, closes and removals of fragments, journals that come and go. Bounded; meant
 * for ThreadSanitizer, checked for content as well: numbers of a writer rise by one in the journal.
 */
#include "tests/contract/store_lab.h"

#include <pthread.h>

#include "base/jobpool.h"
#include "base/log.h"
#include "journal_client/local.h"
#include "tests/contract/temp_dir.h"

#define WRITERS 3
#define READERS 3
#define APPENDS 150

struct run {
    struct jc_store *s;
    const struct jc_journal *j[2];
    atomic_int writers_left;
    struct jobpool *pool;
    atomic_long pool_calls;
};

struct actor {
    struct run *run;
    unsigned id;
    struct lab lab;
};

static void actor_begin(struct actor *a)
{
    a->lab.s = a->run->s;
    assert_int_equal(mailbox_init(&a->lab.mb), 0);
}

static void actor_end(struct actor *a)
{
    mailbox_fini(&a->lab.mb); /* the store goes on without this executor */
}

static void *writer(void *arg)
{
    struct actor *a = arg;
    char text[128];

    actor_begin(a);
    for (unsigned n = 0; n < APPENDS; n++) {
        struct jc_append_part parts[2];
        int len =
            snprintf(text, sizeof text, "C%04x:w%u n%05u %.*s\n", n + 1, a->id, n, (int)(n % 60),
                     "------------------------------------------------------------");
        for (size_t i = 0; i < 2; i++)
            parts[i] = (struct jc_append_part){.journal = a->run->j[i],
                                               .bytes = blob_copy(span_of(text, (size_t)len))};
        struct jc_txn txn = {.parts = parts, .parts_n = 2};
        assert_int_equal(lab_txn(&a->lab, &txn), 0);
        blob_unref(parts[0].bytes);
        blob_unref(parts[1].bytes);
        if (n % 37 == 5)
            assert_int_equal(lab_kv_set(&a->lab, "k", "v", 0), 0);
    }
    atomic_fetch_sub(&a->run->writers_left, 1);
    actor_end(a);
    return NULL;
}

/* Reads everything, with restarts by cancel in the middle; the numbers of each writer rise. */
static void *reader(void *arg)
{
    struct actor *a = arg;
    int64_t at = 0;
    char *all = NULL;
    size_t n = 0;
    bool over = false;

    actor_begin(a);
    while (!over) {
        struct lab_read r = {.stop_after = 1 + a->id % 3};
        const struct jc_read_opts o = {.journal = a->run->j[0],
                                       .offset = at,
                                       .block = true,
                                       .chunk_bytes = 100 + a->id * 50,
                                       .deadline_ms = clock_mono_ms(clock_system()) + 30};
        struct jc_op *op = lab_read_start(&a->lab, &r, &o);
        over = atomic_load(&a->run->writers_left) == 0;
        if (n % 7 == 3) {
            (void)mailbox_wait(&a->lab.mb, 1);
            if (!r.done)
                a->lab.s->ops->cancel(op);
            lab_settle(&a->lab, 0);
        } else {
            lab_wait(&a->lab, &r.done);
            assert_true(r.err == E_CANCELED || r.err == E_TIMEOUT);
        }
        over = over && r.n == 0;
        if (r.n > 0) {
            assert_int_equal(r.first_offset, at);
            all = mem_realloc(all, n + r.n + 1);
            assert_non_null(all);
            memcpy(all + n, r.text, r.n);
            n += r.n;
            all[n] = '\0';
            at += (int64_t)r.n;
        }
        mem_free(r.text);
    }
    unsigned next[WRITERS] = {0};
    for (char *p = all; p != NULL && *p != '\0'; p = strchr(p, '\n') + 1) {
        char *w = strchr(p, 'w');
        unsigned id = (unsigned)(w[1] - '0'), num = 0;
        for (size_t i = 0; i < 5; i++)
            num = num * 10 + (unsigned)(w[4 + i] - '0');
        assert_true(id < WRITERS && num == next[id]);
        next[id]++;
    }
    mem_free(all);
    actor_end(a);
    return NULL;
}

static void on_pool_block(void *arg, int err, struct jc_block *b)
{
    struct run *run = arg;

    if (err == 0)
        jc_block_fini(b);
    atomic_fetch_add(&run->pool_calls, 1);
}

static void on_pool_seek(void *arg, int err, int64_t block)
{
    struct run *run = arg;

    assert_true(err == E_NOTFOUND || (err == 0 && block == 0));
    atomic_fetch_add(&run->pool_calls, 1);
}

/* Follows on its mailbox, and asks for blocks on a job pool. */
static void *asker(void *arg)
{
    struct actor *a = arg;
    struct run *run = a->run;
    long asked = 0;

    actor_begin(a);
    while (atomic_load(&run->writers_left) > 0) {
        struct lab_heads x = {0};
        const struct jc_follower f = {.ex = &a->lab.mb.ex, .on_heads = lab_on_heads, .arg = &x};
        struct jc_op *follow, *op;
        assert_int_equal(a->lab.s->ops->follow(a->lab.s, run->j[1], &f, &follow), 0);
        lab_wait(&a->lab, &x.done);
        assert_true(x.h.log_start <= x.h.first && x.h.content_end <= x.h.write_head);
        const struct jc_block_req rq = {.journal = run->j[1], .from = x.h.write_head / 2};
        assert_int_equal(a->lab.s->ops->read_block(a->lab.s, &rq, jobpool_executor(run->pool),
                                                   on_pool_block, run, &op),
                         0);
        const struct jc_seek_req sq = {.journal = run->j[1],
                                       .end_offset = x.h.write_head + 1,
                                       .min_clock = 5,
                                       .max_clock = UINT64_MAX};
        assert_int_equal(
            a->lab.s->ops->seek(a->lab.s, &sq, jobpool_executor(run->pool), on_pool_seek, run, &op),
            0);
        asked += 2;
        struct lab_block blk = lab_block(&a->lab, run->j[0], 0, 0);
        assert_int_equal(blk.err, 0);
        jc_block_fini(&blk.b);
        a->lab.s->ops->cancel(follow);
        while (atomic_load(&run->pool_calls) + 50 < asked)
            lab_settle(&a->lab, 1);
    }
    actor_end(a);
    return NULL;
}

/* Closes and removes fragments of the second journal; makes and deletes journals. */
static void *keeper(void *arg)
{
    struct actor *a = arg;
    struct jc_store *s = a->run->s;
    int round = 0;

    actor_begin(a);
    while (atomic_load(&a->run->writers_left) > 0) {
        struct lab_done d = {0};
        char name[32];
        (void)snprintf(name, sizeof name, "acme/tmp%d", round++ % 3);
        const struct jc_journal *j = lab_create(&a->lab, name);
        struct lab_read r = {0};
        const struct jc_read_opts o = {.journal = j, .block = true};
        assert_int_equal(lab_append(&a->lab, j, "x\n"), 0);
        (void)lab_read_start(&a->lab, &r, &o);
        assert_int_equal(jc_local_flush(s, &a->lab.mb.ex, lab_on_done, &d), 0);
        lab_wait(&a->lab, &d.done);
        assert_int_equal(d.err, 0);
        int64_t half = lab_heads(&a->lab, a->run->j[1]).write_head / 2;
        d = (struct lab_done){0};
        assert_int_equal(
            jc_local_remove_fragments(s, a->run->j[1], half, &a->lab.mb.ex, lab_on_done, &d), 0);
        lab_wait(&a->lab, &d.done);
        assert_int_equal(lab_delete(&a->lab, name), 0);
        lab_wait(&a->lab, &r.done);
        assert_int_equal(r.err, E_NOTFOUND);
        mem_free(r.text);
        jc_journal_unref(j);
    }
    actor_end(a);
    return NULL;
}

static void all_at_once_stays_whole(void **state)
{
    char dir[256], why[256];
    struct run run = {.writers_left = WRITERS};
    struct actor actors[WRITERS + READERS + 2];
    pthread_t threads[WRITERS + READERS + 2];
    size_t n = 0;
    struct lab lab;

    (void)state;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    const struct jc_local_opts o = {
        .dir = dir, .probe = lab_probe, .io_threads = 3, .housekeeping_ms = 5};
    assert_int_equal(jc_local_open(&o, &run.s, why, sizeof why), 0);
    assert_int_equal(jobpool_new(2, "askers", &run.pool), 0);
    lab_init(&lab, run.s);
    const struct jc_spec specs[] = {{.name = "acme/first", .fragment_bytes = 3000},
                                    {.name = "acme/second", .fragment_bytes = 1000}};
    run.j[0] = lab_create_spec(&lab, &specs[0]);
    run.j[1] = lab_create_spec(&lab, &specs[1]);
    for (unsigned i = 0; i < WRITERS + READERS + 2; i++)
        actors[i] = (struct actor){.run = &run, .id = i < WRITERS ? i : i - WRITERS};
    for (; n < WRITERS; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, writer, &actors[n]), 0);
    for (; n < WRITERS + READERS; n++)
        assert_int_equal(pthread_create(&threads[n], NULL, reader, &actors[n]), 0);
    assert_int_equal(pthread_create(&threads[n], NULL, asker, &actors[n]), 0);
    n++;
    assert_int_equal(pthread_create(&threads[n], NULL, keeper, &actors[n]), 0);
    n++;
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    jc_journal_unref(run.j[0]);
    jc_journal_unref(run.j[1]);
    lab_fini(&lab);
    jobpool_free(run.pool);
    assert_int_equal(jc_local_check(dir, lab_probe, NULL, NULL, NULL), 0);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once_stays_whole)};

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
