/*
 * Heads of the distributed store when brokers know less than was told before (O5, O8, O11): over
 * restarts of this process, hand-offs, and the loss of all replicas.
 */
#include "base/reader.h"
#include "tests/contract/gazette_bench.h"

#define KEY "gazette/heads/" BENCH_JOURNAL

/* The same gateway once more: its data folder stays. */
static void restart(struct bench *b)
{
    bench_close(b);
    b->opened--;
    b->went_back = false;
    bench_open(b);
    for (int i = 0; i < 100 && b->j == NULL; i++) {
        b->j = lab_find(&b->lab, BENCH_JOURNAL);
        lab_settle(&b->lab, 20);
    }
    assert_non_null(b->j);
}

/* Until heads came that are sure, or that are not. */
static void wait_settled(struct bench *b, bool settled)
{
    while (b->heads.write_head == 0 || jc_heads_settling(&b->heads) == settled)
        assert_true(mailbox_wait(&b->lab.mb, LAB_WAIT_MS) > 0);
}

static int64_t end_of(const struct bench *b)
{
    return (int64_t)b->docs * BENCH_DOC;
}

/* --- kept before told --- */

struct keeper {
    struct bench *b;
    bool busy;
    int64_t told, kept;
    unsigned checked;
};

static void on_kept(void *arg, int err, struct span value)
{
    struct keeper *k = arg;
    struct reader r = reader_of(value);
    int64_t v[3];

    assert_int_equal(err, 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rd_i64(&r, &v[i]), 0);
    k->busy = false;
    k->kept = v[1];
    k->checked++;
    assert_true(k->kept >= k->told);
}

static void on_told(void *arg, const struct jc_heads *h)
{
    struct keeper *k = arg;
    struct jc_store *s = k->b->lab.s;

    if (k->busy || h->content_end == 0)
        return;
    k->busy = true;
    k->told = h->content_end;
    assert_int_equal(s->ops->kv_get(s, KEY, &k->b->lab.mb.ex, on_kept, k), 0);
}

static void no_head_is_told_before_it_is_kept(void **state)
{
    struct bench b = {0};
    struct keeper k = {.b = &b};
    const struct jc_follower f = {.on_heads = on_told, .arg = &k};
    struct jc_follower with = f;
    struct jc_op *op;

    (void)state;
    bench_start(&b);
    with.ex = &b.lab.mb.ex;
    assert_int_equal(b.lab.s->ops->follow(b.lab.s, b.j, &with, &op), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(bench_append(&b, 3), 0);
    while (k.kept < end_of(&b) || k.busy)
        assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
    assert_true(k.checked > 5);
    b.lab.s->ops->cancel(op);
    bench_end(&b);
}

static void heads_are_not_lower_behind_a_restart_while_no_broker_answers(void **state)
{
    const struct stand_in_fault silent = {
        .kind = STAND_IN_GRPC, .method = STAND_IN_ANY, .value = 14, .skip = 2, .times = -1};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    bench_expect_head(&b);
    assert_int_equal(stand_in_fault(b.si, &silent), 0);
    stand_in_end_calls(b.si, STAND_IN_ANY, STAND_IN_RESET_CONN, 0);
    restart(&b);
    bench_follow(&b);
    wait_settled(&b, false);
    assert_int_equal(b.heads.content_end, end_of(&b));
    stand_in_calm(b.si);
    wait_settled(&b, true);
    assert_int_equal(b.heads.content_end, end_of(&b));
    assert_false(b.went_back);
    bench_end(&b);
}

/* --- hand-off --- */

static void a_broker_that_knows_less_lowers_nothing_and_the_primary_settles_it(void **state)
{
    const struct stand_in_fault lower = {
        .kind = STAND_IN_LOWER_HEAD, .method = STAND_IN_READ, .value = 50 * BENCH_DOC, .times = -1};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    bench_expect_head(&b);
    assert_int_equal(stand_in_fault(b.si, &lower), 0);
    stand_in_end_calls(b.si, STAND_IN_READ, STAND_IN_END, 0);
    lab_settle(&b.lab, 800);
    assert_int_equal(b.heads.content_end, end_of(&b));
    assert_int_equal(b.heads.life, 0);
    stand_in_calm(b.si);
    assert_int_equal(bench_append(&b, 100), 0);
    bench_expect_head(&b);
    wait_settled(&b, true);
    bench_expect_stream(&b);
    bench_end(&b);
}

/* A gateway that never saw the journal knows no floor: what it is told at first is too little. */
static void a_head_is_settling_until_the_primary_was_heard(void **state)
{
    const struct stand_in_fault slow = {
        .kind = STAND_IN_SLOW, .method = STAND_IN_APPEND, .value = 1500, .times = -1};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    assert_int_equal(stand_in_fault(b.si, &slow), 0);
    bench_reopen(&b);
    bench_follow(&b);
    wait_settled(&b, false);
    wait_settled(&b, true);
    assert_int_equal(b.heads.content_end, end_of(&b));
    bench_end(&b);
}

/* --- nothing left --- */

/* Brokers that list no fragment tell of 0 as the head, though the primary knows where it ends. A
 * gateway that saw the content go knows it at once. */
static void a_restart_where_all_was_removed_settles_at_once(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///", .start_ms = 1000}};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    bench_expect_head(&b);
    /* Behind the content lies what is hidden. */
    assert_int_equal(lab_append(&b.lab, b.j, "A00000000000ffff:\n"), 0);
    int64_t head = stand_in_head(b.si, BENCH_JOURNAL);
    assert_true(head > end_of(&b));
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 1), 0);
    while (b.heads.log_start < end_of(&b))
        assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
    b.o.start_ms = INT64_C(3600) * 1000;
    uint64_t lists = stand_in_calls(b.si, STAND_IN_FRAGMENTS);
    restart(&b);
    bench_follow(&b);
    wait_settled(&b, true);
    /* No lists were waited for that agree. */
    assert_true(stand_in_calls(b.si, STAND_IN_FRAGMENTS) <= lists + 3);
    assert_int_equal(b.heads.log_start, end_of(&b));
    assert_int_equal(b.heads.content_end, end_of(&b));
    assert_int_equal(b.heads.write_head, head);
    assert_int_equal(b.heads.life, 0);
    assert_false(b.went_back);
    bench_end(&b);
}

/* One that never saw the journal believes lists that agree for a while; and the tail goes on. */
static void a_gateway_that_finds_nothing_left_settles_and_goes_on(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}};
    struct lab_read r = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 1), 0);
    bench_reopen(&b);
    bench_follow(&b);
    wait_settled(&b, true);
    assert_int_equal(b.heads.first, end_of(&b));
    assert_int_equal(b.heads.write_head, end_of(&b));
    int64_t from = end_of(&b);
    assert_int_equal(bench_append(&b, 5), 0);
    bench_expect_head(&b);
    const struct jc_read_opts o = {
        .journal = b.j, .offset = from, .end_offset = end_of(&b), .block = true};
    lab_read(&b.lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_int_equal(r.first_offset, from);
    assert_int_equal(r.n, 5 * BENCH_DOC);
    mem_free(r.text);
    bench_end(&b);
}

/* --- loss --- */

static void wait_life(struct bench *b, uint32_t life)
{
    while (b->heads.life != life || jc_heads_settling(&b->heads))
        assert_true(mailbox_wait(&b->lab.mb, LAB_WAIT_MS) > 0);
}

static void bytes_that_all_replicas_lost_begin_a_new_life(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    bench_expect_head(&b);
    assert_int_equal(stand_in_lose(b.si, BENCH_JOURNAL, 60 * BENCH_DOC), 0);
    b.docs = 60;
    stand_in_end_calls(b.si, STAND_IN_READ, STAND_IN_RESET_STREAM, 0);
    wait_life(&b, 1);
    assert_int_equal(b.heads.content_end, end_of(&b));
    b.went_back = false; /* with a new life it may, and only then */
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    bench_expect_stored(&b);
    bench_expect_stream(&b);
    bench_expect_blocks(&b);

    restart(&b); /* remembers it */
    bench_follow(&b);
    wait_life(&b, 1);
    bench_expect_head(&b);
    bench_end(&b);
}

static void a_loss_while_this_process_was_down_is_noticed(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 100), 0);
    (void)lab_heads(&b.lab, b.j);
    bench_close(&b);
    assert_int_equal(stand_in_lose(b.si, BENCH_JOURNAL, 99 * BENCH_DOC), 0);
    b.docs = 99;
    restart(&b);
    bench_follow(&b);
    wait_life(&b, 1);
    assert_int_equal(b.heads.content_end, end_of(&b));
    bench_expect_stream(&b);
    bench_end(&b);
}

static void a_blocked_read_behind_what_was_lost_ends_out_of_range(void **state)
{
    struct bench b = {0};
    struct lab_read r = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 10), 0);
    bench_expect_head(&b);
    const struct jc_read_opts o = {.journal = b.j, .offset = -1, .block = true};
    (void)lab_read_start(&b.lab, &r, &o);
    lab_settle(&b.lab, 50);
    assert_int_equal(stand_in_lose(b.si, BENCH_JOURNAL, BENCH_DOC), 0);
    stand_in_end_calls(b.si, STAND_IN_READ, STAND_IN_RESET_STREAM, 0);
    lab_wait(&b.lab, &r.done);
    assert_int_equal(r.err, E_RANGE);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_head_is_told_before_it_is_kept),
        cmocka_unit_test(heads_are_not_lower_behind_a_restart_while_no_broker_answers),
        cmocka_unit_test(a_broker_that_knows_less_lowers_nothing_and_the_primary_settles_it),
        cmocka_unit_test(a_head_is_settling_until_the_primary_was_heard),
        cmocka_unit_test(a_restart_where_all_was_removed_settles_at_once),
        cmocka_unit_test(a_gateway_that_finds_nothing_left_settles_and_goes_on),
        cmocka_unit_test(bytes_that_all_replicas_lost_begin_a_new_life),
        cmocka_unit_test(a_loss_while_this_process_was_down_is_noticed),
        cmocka_unit_test(a_blocked_read_behind_what_was_lost_ends_out_of_range),
    };

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
