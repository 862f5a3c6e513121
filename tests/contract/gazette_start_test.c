/*
 * Where a journal begins, and where it ends, for who asks: brokers remove old fragments without
 * telling, and others write to journals that sleep here. What must hold: the log start rises within
 * the time that is set, at once where a read meets what is gone, and before an answer to who asks;
 * nothing that reads waits for what will never come; journals that sleep cost nothing for it.
 */
#include "tests/contract/gazette_bench.h"

#define DOCS    20 /* of one fragment */
#define FRAG    (DOCS * BENCH_DOC)
#define FAR_MS  (INT64_C(3600) * 1000)
#define SOON_MS 8000

/* --- questions for fresh heads --- */

struct fresh {
    bool done;
    int err;
    struct jc_heads h;
};

static void on_fresh(void *arg, int err, const struct jc_heads *h)
{
    struct fresh *f = arg;

    assert_false(f->done);
    f->done = true;
    f->err = err;
    if (h != NULL)
        f->h = *h;
}

static void ask(struct bench *b, struct fresh *f)
{
    struct jc_op *op;

    assert_int_equal(b->lab.s->ops->fresh(b->lab.s, b->j, &b->lab.mb.ex, on_fresh, f, &op), 0);
}

static struct jc_heads fresh(struct bench *b)
{
    struct fresh f = {0};

    ask(b, &f);
    lab_wait(&b->lab, &f.done);
    assert_int_equal(f.err, 0);
    return f.h;
}

/* --- journals of ten stored fragments --- */

static void start(struct bench *b)
{
    b->o.fragment_store = "file:///";
    b->o.fragment_bytes = FRAG / 2;
    bench_start(b);
    for (int i = 0; i < 10; i++)
        assert_int_equal(bench_append(b, DOCS), 0);
    assert_int_equal(stand_in_close_fragments(b->si, BENCH_JOURNAL), 0);
    b->o.file_root = b->root;
    bench_reopen(b);
}

static void lazy_follow(struct bench *b)
{
    const struct jc_follower f = {.ex = &b->lab.mb.ex,
                                  .on_heads = bench_on_heads,
                                  .on_end = bench_on_end,
                                  .arg = b,
                                  .lazy = true};

    assert_int_equal(b->lab.s->ops->follow(b->lab.s, b->j, &f, &b->follow), 0);
}

static void until_asleep(struct bench *b)
{
    int64_t rings, open = 1;

    for (int i = 0; i < 200 && open > 0; i++) {
        lab_settle(&b->lab, 50);
        jc_gazette_tail_stats(&rings, &open);
    }
    assert_int_equal(open, 0);
}

static void what_brokers_removed_is_told_within_the_set_time(void **state)
{
    struct bench b = {.o = {.start_ms = 1000}};

    (void)state;
    start(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    assert_int_equal(b.heads.log_start, 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 3), 0);
    int64_t t0 = clock_mono_ms(clock_system());
    while (b.heads.log_start < 3L * FRAG)
        assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
    assert_true(clock_mono_ms(clock_system()) - t0 < 1000 + SOON_MS);
    assert_int_equal(b.heads.log_start, 3L * FRAG);
    assert_int_equal(b.heads.first, 3L * FRAG);
    assert_false(b.went_back);
    bench_end(&b);
}

/* Nothing but the last, empty stretch is left: log start = high watermark (O4). */
static void where_all_was_removed_the_start_is_the_high_watermark(void **state)
{
    struct bench b = {.o = {.start_ms = 1000}};

    (void)state;
    start(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 10), 0);
    while (b.heads.log_start < 10L * FRAG)
        assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
    assert_int_equal(b.heads.log_start, b.heads.content_end);
    assert_int_equal(bench_append(&b, 1), 0); /* and it goes on */
    bench_expect_head(&b);
    assert_int_equal(b.heads.log_start, 10L * FRAG);
    bench_end(&b);
}

/* --- reads that meet what is gone --- */

static void a_block_that_was_removed_is_empty_and_raises_the_start(void **state)
{
    const bool no_direct[] = {false, true};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct bench b = {.o = {.start_ms = FAR_MS}};
        start(&b);
        b.o.no_direct = no_direct[i];
        bench_reopen(&b);
        bench_follow(&b);
        bench_expect_head(&b);
        assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 3), 0);
        int64_t t0 = clock_mono_ms(clock_system());
        struct lab_block x = lab_block(&b.lab, b.j, 0, 0);
        assert_true(clock_mono_ms(clock_system()) - t0 < SOON_MS);
        assert_int_equal(x.err, 0);
        assert_int_equal(x.b.segments_n, 1);
        assert_int_equal(x.b.segments[0].offset, 3L * FRAG);
        assert_int_equal(x.b.log_start, 3L * FRAG);
        assert_int_equal(lab_heads(&b.lab, b.j).log_start, 3L * FRAG);
        jc_block_fini(&x.b);
        bench_end(&b);
    }
}

/* Fragments that are read where they lie, and through the broker, whose Read jumps; and what the
 * stream met is told, though nobody asks where the journal begins. */
static void a_stream_passes_over_what_was_removed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench b = {.o = {.start_ms = FAR_MS, .no_direct = i == 1, .tail_bytes = 1}};
        struct lab_read r = {0};
        start(&b);
        bench_follow(&b);
        bench_expect_head(&b);
        assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 4), 0);
        const struct jc_read_opts o = {.journal = b.j, .end_offset = (int64_t)b.docs * BENCH_DOC};
        int64_t t0 = clock_mono_ms(clock_system());
        lab_read(&b.lab, &r, &o);
        assert_true(clock_mono_ms(clock_system()) - t0 < SOON_MS);
        assert_int_equal(r.err, 0);
        assert_int_equal(r.first_offset, 4L * FRAG);
        assert_int_equal(r.n, 6L * FRAG);
        mem_free(r.text);
        while (b.heads.log_start < 4L * FRAG)
            assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
        bench_end(&b);
    }
}

/* Clocks of documents are their numbers: all lie far before the time when they were stored. */
static void a_seek_into_what_was_removed_answers_by_what_is_left(void **state)
{
    struct bench b = {.o = {.start_ms = FAR_MS, .fragment_bytes = 2000}};

    (void)state;
    b.o.fragment_store = "file:///";
    bench_start(&b);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(bench_append(&b, 2000), 0); /* 400 KB: more than a block */
        assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    }
    b.o.file_root = b.root; /* read piece by piece: nothing is read ahead and kept */
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    struct jc_seek_req rq = {.journal = b.j,
                             .end_offset = (int64_t)b.docs * BENCH_DOC,
                             .min_clock = 1,
                             .max_clock = UINT64_MAX,
                             .mode = JC_SEEK_FIRST};
    assert_int_equal(lab_seek(&b.lab, &rq), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 3), 0);
    int64_t first = 3L * 2000 * BENCH_DOC, t0 = clock_mono_ms(clock_system());
    /* The index knows the old blocks still: whoever reads one finds out. */
    struct lab_block x = lab_block(&b.lab, b.j, 0, 0);
    assert_int_equal(x.b.segments_n, 0);
    assert_int_equal(x.b.log_start, first);
    jc_block_fini(&x.b);
    assert_int_equal(lab_seek(&b.lab, &rq), first / JC_BLOCK_BYTES);
    rq.mode = JC_SEEK_MAX;
    rq.end_offset = first;
    assert_int_equal(lab_seek(&b.lab, &rq), E_NOTFOUND);
    assert_true(clock_mono_ms(clock_system()) - t0 < SOON_MS);
    bench_end(&b);
}

/* A gateway that has read nothing of it yet: the scan itself meets what is gone. */
static void a_scan_that_meets_what_was_removed_goes_on_behind_it(void **state)
{
    struct bench b = {.o = {.start_ms = FAR_MS}};

    (void)state;
    b.o.fragment_store = "file:///";
    b.o.fragment_bytes = 2000;
    bench_start(&b);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(bench_append(&b, 2000), 0);
        assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    }
    bench_reopen(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 3), 0);
    const struct jc_seek_req rq = {.journal = b.j,
                                   .end_offset = (int64_t)b.docs * BENCH_DOC,
                                   .min_clock = 1,
                                   .max_clock = UINT64_MAX,
                                   .mode = JC_SEEK_FIRST};
    int64_t t0 = clock_mono_ms(clock_system());
    assert_int_equal(lab_seek(&b.lab, &rq), 3L * 2000 * BENCH_DOC / JC_BLOCK_BYTES);
    assert_true(clock_mono_ms(clock_system()) - t0 < SOON_MS);
    bench_end(&b);
}

/* --- who asks --- */

static void who_asks_is_told_what_was_removed_just_now(void **state)
{
    struct bench b = {.o = {.start_ms = FAR_MS}};

    (void)state;
    start(&b);
    bench_follow(&b);
    bench_expect_head(&b);
    lab_settle(&b.lab, 1100);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 2), 0);
    assert_int_equal(fresh(&b).log_start, 2L * FRAG);
    bench_end(&b);
}

/* Another gateway writes, and brokers remove: no stream is opened for a question. */
static void who_asks_about_a_journal_that_sleeps_is_told_what_is_there_now(void **state)
{
    struct bench b = {.o = {.start_ms = 1000, .idle_ms = 1000}}, other;
    int64_t rings, open;

    (void)state;
    start(&b);
    lazy_follow(&b);
    bench_expect_head(&b);
    other = (struct bench){.si = b.si, .o = {.fragment_store = "file:///"}};
    assert_int_equal(temp_dir_make(other.dir, sizeof other.dir), 0);
    bench_reopen(&other);
    other.docs = b.docs;
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(bench_append(&other, 1), 0);
        until_asleep(&b);
        lab_settle(&b.lab, 1100); /* what is known of its begin is older than a second */
        assert_int_equal(bench_append(&other, 1), 0);
        assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 1), 0);
        int64_t t0 = clock_mono_ms(clock_system());
        struct jc_heads h = fresh(&b);
        assert_true(clock_mono_ms(clock_system()) - t0 < SOON_MS);
        assert_int_equal(h.content_end, (int64_t)other.docs * BENCH_DOC);
        assert_int_equal(h.log_start, (int64_t)i * FRAG);
        jc_gazette_tail_stats(&rings, &open);
        assert_int_equal(rings, 0);
        b.docs = other.docs;
    }
    bench_close(&other);
    temp_dir_remove(other.dir);
    bench_end(&b);
}

static void many_questions_at_once_cost_few_calls(void **state)
{
    static struct fresh f[200];
    struct bench b = {.o = {.idle_ms = 1000}};

    (void)state;
    start(&b);
    lazy_follow(&b);
    bench_expect_head(&b);
    until_asleep(&b);
    uint64_t reads = stand_in_calls(b.si, STAND_IN_READ);
    uint64_t lists = stand_in_calls(b.si, STAND_IN_FRAGMENTS);
    memset(f, 0, sizeof f);
    for (size_t i = 0; i < 200; i++)
        ask(&b, &f[i]);
    for (size_t i = 0; i < 200; i++) {
        lab_wait(&b.lab, &f[i].done);
        assert_int_equal(f[i].err, 0);
        assert_int_equal(f[i].h.content_end, (int64_t)b.docs * BENCH_DOC);
    }
    assert_true(stand_in_calls(b.si, STAND_IN_READ) - reads <= 4);
    assert_true(stand_in_calls(b.si, STAND_IN_FRAGMENTS) - lists <= 2);
    bench_end(&b);
}

static void a_journal_that_sleeps_is_not_asked_where_it_begins(void **state)
{
    struct bench b = {.o = {.start_ms = 200, .idle_ms = 1000}};

    (void)state;
    start(&b);
    lazy_follow(&b);
    bench_expect_head(&b);
    until_asleep(&b);
    lab_settle(&b.lab, 100);
    uint64_t lists = stand_in_calls(b.si, STAND_IN_FRAGMENTS);
    lab_settle(&b.lab, 3000);
    assert_int_equal(stand_in_calls(b.si, STAND_IN_FRAGMENTS), lists);
    bench_end(&b);
}

/* Brokers that say nothing: what is known is the answer, soon. */
static void who_asks_is_answered_when_no_broker_does(void **state)
{
    const struct stand_in_fault mute = {.kind = STAND_IN_HANG, .method = STAND_IN_ANY, .times = -1};
    struct bench b = {.o = {.idle_ms = 1000}};
    struct fresh f = {0};

    (void)state;
    start(&b);
    lazy_follow(&b);
    bench_expect_head(&b);
    until_asleep(&b);
    assert_int_equal(stand_in_fault(b.si, &mute), 0);
    int64_t t0 = clock_mono_ms(clock_system());
    ask(&b, &f);
    lab_wait(&b.lab, &f.done);
    assert_true(clock_mono_ms(clock_system()) - t0 < 2000 + 1000 + SOON_MS);
    assert_int_equal(f.err, E_AGAIN);
    assert_int_equal(f.h.content_end, (int64_t)b.docs * BENCH_DOC);
    stand_in_calm(b.si);
    bench_end(&b);
}

/* What waits when the store closes is answered and given back (the leak check sees it). */
static void reads_and_questions_that_wait_end_with_the_store(void **state)
{
    const enum stand_in_fault_kind kinds[] = {STAND_IN_HANG, STAND_IN_STATUS,
                                              STAND_IN_RESET_STREAM};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct stand_in_fault away = {
            .kind = kinds[i], .method = STAND_IN_ANY, .value = 4, .times = -1};
        struct bench b = {.o = {.no_direct = true}};
        struct lab_block x = {0};
        struct fresh f = {0};
        struct jc_op *op;

        bench_start(&b);
        bench_follow(&b); /* a journal that is opened only now would wait for that instead */
        for (int k = 0; k < 4; k++) /* the ring has lost the first of it */
            assert_int_equal(bench_append(&b, 1000), 0);
        bench_expect_head(&b);
        struct jc_store *s = b.lab.s;
        assert_int_equal(stand_in_fault(b.si, &away), 0);
        const struct jc_block_req rq = {.journal = b.j, .block = 0};
        assert_int_equal(s->ops->read_block(s, &rq, &b.lab.mb.ex, lab_on_block, &x, &op), 0);
        for (int k = 0; k < 600 && stand_in_hits(b.si) == 0; k++)
            lab_settle(&b.lab, 50);
        assert_true(stand_in_hits(b.si) > 0); /* it was asked for, and did not come */
        ask(&b, &f);
        lab_settle(&b.lab, 100);
        assert_false(x.done);
        bench_close(&b);
        bench_end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_brokers_removed_is_told_within_the_set_time),
        cmocka_unit_test(where_all_was_removed_the_start_is_the_high_watermark),
        cmocka_unit_test(a_block_that_was_removed_is_empty_and_raises_the_start),
        cmocka_unit_test(a_stream_passes_over_what_was_removed),
        cmocka_unit_test(a_seek_into_what_was_removed_answers_by_what_is_left),
        cmocka_unit_test(a_scan_that_meets_what_was_removed_goes_on_behind_it),
        cmocka_unit_test(who_asks_is_told_what_was_removed_just_now),
        cmocka_unit_test(who_asks_about_a_journal_that_sleeps_is_told_what_is_there_now),
        cmocka_unit_test(many_questions_at_once_cost_few_calls),
        cmocka_unit_test(a_journal_that_sleeps_is_not_asked_where_it_begins),
        cmocka_unit_test(who_asks_is_answered_when_no_broker_does),
        cmocka_unit_test(reads_and_questions_that_wait_end_with_the_store),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
