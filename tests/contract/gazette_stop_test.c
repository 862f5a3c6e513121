/*
 * A gateway that stops does not wait for brokers: what is under way is answered at once, and the
 * answer says whether something may have been stored.
 */
#include "tests/contract/gazette_bench.h"

#define SOON_MS 2000

struct append {
    struct jc_append_part part;
    struct jc_txn txn;
    bool done;
    int err;
};

static void on_done(void *arg, int err, struct jc_txn *txn)
{
    struct append *a = arg;

    assert_ptr_equal(txn, &a->txn);
    a->err = err;
    a->done = true;
}

static void start(struct bench *b, struct append *a, const char *line)
{
    *a = (struct append){.part = {.journal = b->j, .bytes = blob_copy(span_str(line))}};
    a->txn = (struct jc_txn){.parts = &a->part, .parts_n = 1};
    assert_int_equal(b->lab.s->ops->append(b->lab.s, &a->txn, &b->lab.mb.ex, on_done, a), 0);
}

static void expect_closed(struct bench *b, struct append *a, bool in_doubt)
{
    int64_t since = clock_mono_ms(clock_system());

    lab_wait(&b->lab, &a->done);
    assert_true(clock_mono_ms(clock_system()) - since < SOON_MS);
    assert_int_equal(a->err, E_CLOSED);
    assert_int_equal(a->txn.in_doubt, in_doubt);
    blob_unref(a->part.bytes);
}

static void an_append_that_is_not_answered_is_given_up_as_in_doubt(void **state)
{
    const struct stand_in_fault hang = {
        .kind = STAND_IN_HANG, .method = STAND_IN_APPEND, .times = 100};
    struct append running, queued, late;
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 1), 0);
    assert_int_equal(stand_in_fault(b.si, &hang), 0);
    start(&b, &running, "C1:under way\n");
    start(&b, &queued, "C2:waits for it\n");
    lab_settle(&b.lab, 200);
    assert_false(running.done);
    b.lab.s->ops->hurry(b.lab.s);
    b.lab.s->ops->hurry(b.lab.s); /* once is enough, twice does no harm */
    expect_closed(&b, &running, true);
    expect_closed(&b, &queued, false);
    start(&b, &late, "C3:too late\n");
    expect_closed(&b, &late, false);
    bench_end(&b);
}

static void gives_up(int status)
{
    const struct stand_in_fault away = {
        .kind = STAND_IN_STATUS, .method = STAND_IN_APPEND, .value = status, .times = -1};
    struct append waiting;
    struct bench b = {0};

    bench_start(&b);
    assert_int_equal(bench_append(&b, 1), 0);
    assert_int_equal(stand_in_fault(b.si, &away), 0);
    start(&b, &waiting, "C1:refused again and again\n");
    lab_settle(&b.lab, 1500);
    assert_false(waiting.done);
    b.lab.s->ops->hurry(b.lab.s);
    lab_wait(&b.lab, &waiting.done);
    assert_int_equal(waiting.err, E_CLOSED);
    blob_unref(waiting.part.bytes);
    bench_end(&b);
}

static void an_append_that_waits_for_its_next_attempt_is_given_up(void **state)
{
    (void)state;
    gives_up(4);  /* insufficient brokers */
    gives_up(11); /* wrong offset, whatever the head is said to be */
}

static void on_applied(void *arg, int err, int64_t revision)
{
    int *out = arg;

    (void)revision;
    *out = err;
}

static void an_apply_that_is_not_answered_is_given_up(void **state)
{
    const struct stand_in_fault hang = {
        .kind = STAND_IN_HANG, .method = STAND_IN_APPLY, .times = 100};
    const struct jc_spec spec = {.name = "bench/other/part-000"};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    int first = 1, late = 1;
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(stand_in_fault(b.si, &hang), 0);
    assert_int_equal(b.lab.s->ops->apply(b.lab.s, &c, 1, &b.lab.mb.ex, on_applied, &first), 0);
    lab_settle(&b.lab, 200);
    assert_int_equal(first, 1);
    b.lab.s->ops->hurry(b.lab.s);
    assert_int_equal(b.lab.s->ops->apply(b.lab.s, &c, 1, &b.lab.mb.ex, on_applied, &late), 0);
    while (first == 1 || late == 1)
        assert_true(mailbox_wait(&b.lab.mb, SOON_MS) > 0);
    assert_int_equal(first, E_CLOSED);
    assert_int_equal(late, E_CLOSED);
    bench_end(&b);
}

/* Reads are nobody's promise: they go on until the store closes. */
static void what_is_stored_is_still_read(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 20), 0);
    b.lab.s->ops->hurry(b.lab.s);
    lab_settle(&b.lab, 50);
    bench_expect_stream(&b);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_that_is_not_answered_is_given_up_as_in_doubt),
        cmocka_unit_test(an_append_that_waits_for_its_next_attempt_is_given_up),
        cmocka_unit_test(an_apply_that_is_not_answered_is_given_up),
        cmocka_unit_test(what_is_stored_is_still_read),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
