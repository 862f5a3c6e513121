/*
 * Keys that are published once (unless_kv) over brokers, however the first attempt under one ended;
 * and what an append takes for the head: the primary's word.
 */
#include "tests/contract/gazette_bench.h"

#define OTHER_JOURNAL "bench/orders/part-001"
#define PARTS         2

/* One transaction under the key: a document to each of n journals. */
struct attempt {
    struct jc_append_part parts[PARTS];
    struct jc_txn txn;
    struct jc_kv kv;
    char value[32];
    struct lab_done d;
    int64_t offsets[PARTS]; /* as they were prepared last */
};

static const char *tag = "";
static unsigned prepared; /* over all attempts: no two write the same bytes */

static int prepare(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    struct attempt *a = txn->arg;

    (void)clock;
    prepared++;
    for (size_t i = 0; i < txn->parts_n; i++) {
        char head[40];
        int n = snprintf(head, sizeof head, "C%016x:part %zu attempt %04u", prepared, i, prepared);
        memcpy(txn->parts[i].bytes->data, head, (size_t)n);
        a->offsets[i] = txn->parts[i].begin;
    }
    (void)snprintf(a->value, sizeof a->value, "answer %u", prepared);
    a->kv.value = span_str(a->value);
    return 0;
}

static void start(struct bench *b, struct attempt *a, size_t n)
{
    *a = (struct attempt){.kv = {.key = "idem/1"}};
    for (size_t i = 0; i < n; i++) {
        struct blob *text = blob_new(BENCH_DOC);
        assert_non_null(text);
        memset(text->data, '.', BENCH_DOC);
        text->data[BENCH_DOC - 1] = '\n';
        text->len = BENCH_DOC;
        const char *name = i == 0 ? BENCH_JOURNAL : OTHER_JOURNAL;
        a->parts[i] = (struct jc_append_part){.journal = lab_find(&b->lab, name), .bytes = text};
        assert_non_null(a->parts[i].journal);
    }
    a->txn = (struct jc_txn){.parts = a->parts,
                             .parts_n = n,
                             .kv = &a->kv,
                             .kv_n = 1,
                             .unless_kv = "idem/1",
                             .unless_tag = span_str(tag),
                             .prepare = prepare,
                             .arg = a};
    assert_int_equal(b->lab.s->ops->append(b->lab.s, &a->txn, &b->lab.mb.ex, lab_on_txn, &a->d), 0);
}

static int finish(struct bench *b, struct attempt *a)
{
    lab_wait(&b->lab, &a->d.done);
    for (size_t i = 0; i < a->txn.parts_n; i++) {
        blob_unref(a->parts[i].bytes);
        jc_journal_unref(a->parts[i].journal);
    }
    return a->d.err;
}

/* Three documents lie in the first journal, none in the other; a gateway that has just begun must
 * ask for their heads. */
static void start_over_three(struct bench *b)
{
    bench_start(b);
    jc_journal_unref(lab_create(&b->lab, OTHER_JOURNAL));
    assert_int_equal(bench_append(b, 3), 0);
    b->opened--; /* the same folder */
    bench_reopen(b);
}

/* Breaks all appends to a journal (NULL: any) but for the first `skip`, and nothing lands. */
static void break_appends(struct bench *b, const char *journal, unsigned skip)
{
    const struct stand_in_fault away = {.kind = STAND_IN_GRPC,
                                        .method = STAND_IN_APPEND,
                                        .journal = journal,
                                        .skip = skip,
                                        .value = 14,
                                        .times = -1};

    assert_int_equal(stand_in_fault(b->si, &away), 0);
}

/* The gateway is stopped in the middle, and another one begins on its folder. */
static void restart(struct bench *b, struct attempt *a)
{
    lab_settle(&b->lab, 300);
    assert_false(a->d.done);
    b->lab.s->ops->hurry(b->lab.s);
    assert_int_equal(finish(b, a), E_CLOSED);
    assert_true(a->txn.in_doubt);
    stand_in_calm(b->si);
    b->opened--;
    bench_reopen(b);
}

static void on_value(void *arg, int err, struct span value)
{
    struct lab_done *d = arg;

    *d = (struct lab_done){true, err, err < 0 ? 0 : (int64_t)value.n};
    if (err == 0)
        assert_memory_equal(value.p, "answer", 6);
}

static void expect_answer(struct bench *b)
{
    struct lab_done d = {0};

    assert_int_equal(b->lab.s->ops->kv_get(b->lab.s, "idem/1", &b->lab.mb.ex, on_value, &d), 0);
    lab_wait(&b->lab, &d.done);
    assert_int_equal(d.err, 0);
}

static int again(struct bench *b)
{
    struct attempt a;

    start(b, &a, 1);
    return finish(b, &a);
}

static void what_landed_unseen_is_not_published_again_under_its_key(void **state)
{
    const struct stand_in_fault lost = {
        .kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPEND, .skip = 1, .landed = true};
    struct bench b = {0};
    struct attempt a;

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 3), 0);
    b.opened--;
    bench_reopen(&b);
    assert_int_equal(stand_in_fault(b.si, &lost), 0);
    break_appends(&b, NULL, 1);
    start(&b, &a, 1);
    restart(&b, &a);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(again(&b), E_EXISTS);
    expect_answer(&b);
    assert_int_equal(again(&b), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    bench_end(&b);
}

static void what_did_not_land_is_published_when_it_is_asked_for_again(void **state)
{
    struct bench b = {0};
    struct attempt a;

    (void)state;
    start_over_three(&b);
    break_appends(&b, NULL, 1);
    start(&b, &a, 1);
    restart(&b, &a);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 3 * BENCH_DOC);
    assert_int_equal(again(&b), 0);
    assert_int_equal(again(&b), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    bench_end(&b);
}

/* Somebody else's bytes at the place are not the transaction's. */
static void what_another_writer_put_there_does_not_count(void **state)
{
    struct bench b = {0};
    struct attempt a;

    (void)state;
    start_over_three(&b);
    break_appends(&b, NULL, 1);
    start(&b, &a, 1);
    restart(&b, &a);
    assert_int_equal(bench_append(&b, 2), 0);
    assert_int_equal(again(&b), 0);
    assert_int_equal(again(&b), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 6 * BENCH_DOC);
    bench_end(&b);
}

/* Another gateway, beside the first. */
static void neighbour_start(struct bench *other, const struct bench *b)
{
    *other = (struct bench){.si = b->si, .docs = b->docs};
    assert_int_equal(temp_dir_make(other->dir, sizeof other->dir), 0);
    bench_open(other);
    for (int i = 0; i < 500 && other->j == NULL; i++) {
        other->j = lab_find(&other->lab, BENCH_JOURNAL);
        lab_settle(&other->lab, 20);
    }
    assert_non_null(other->j);
}

static void neighbour_end(struct bench *other)
{
    bench_close(other);
    temp_dir_remove(other->dir);
}

/* It was on its way still when it was looked for, and lands before anything is sent. */
static void what_lands_after_it_was_looked_for_is_not_published_again(void **state)
{
    const struct stand_in_fault slow = {
        .kind = STAND_IN_SLOW, .method = STAND_IN_APPEND, .skip = 1, .value = 1000};
    struct bench b = {0}, other;
    struct attempt a, retry;

    (void)state;
    start_over_three(&b);
    break_appends(&b, NULL, 1);
    start(&b, &a, 1);
    struct blob *late = blob_ref(a.parts[0].bytes);
    restart(&b, &a);
    neighbour_start(&other, &b);
    assert_int_equal(stand_in_fault(b.si, &slow), 0);
    uint64_t before = stand_in_calls(b.si, STAND_IN_APPEND);
    start(&b, &retry, 1);
    for (int i = 0; i < 1000 && stand_in_calls(b.si, STAND_IN_APPEND) < before + 2; i++)
        lab_settle(&b.lab, 10); /* looked for; the head is asked for, to place it */
    assert_int_equal(lab_append_span(&other.lab, other.j, blob_span(late), NULL), 0);
    blob_unref(late);
    assert_int_equal(finish(&b, &retry), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    neighbour_end(&other);
    bench_end(&b);
}

/* Refused for a while, and then behind another writer: the record and the answer follow it. */
static void a_part_that_is_sent_to_another_place_is_recorded_there(void **state)
{
    const struct stand_in_fault refused = {
        .kind = STAND_IN_STATUS, .method = STAND_IN_APPEND, .value = 2, .times = -1};
    const struct stand_in_fault lost = {
        .kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPEND, .landed = true};
    struct bench b = {0}, other;
    struct attempt a;

    (void)state;
    start_over_three(&b);
    neighbour_start(&other, &b);
    bench_follow(&b);
    bench_expect_head(&b);
    assert_int_equal(stand_in_fault(b.si, &refused), 0);
    start(&b, &a, 1);
    uint64_t hits = 0;
    int64_t since = 0,
            now = 0; /* until seconds pass between its attempts, and one has just passed */
    for (int i = 0; i < 6000 && (since == 0 || now - since > 10 || hits < 7); i++) {
        lab_settle(&b.lab, 5);
        now = clock_mono_ms(clock_system());
        if (stand_in_hits(b.si) > hits)
            since = now;
        hits = stand_in_hits(b.si);
    }
    stand_in_calm(b.si);
    assert_int_equal(a.offsets[0], 3 * BENCH_DOC);
    other.docs = b.docs;
    assert_int_equal(bench_append(&other, 1), 0);
    b.docs = other.docs;
    bench_expect_head(&b);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_fault(b.si, &lost), 0);
    break_appends(&b, NULL, 1);
    for (int i = 0; i < 3000 && stand_in_head(b.si, BENCH_JOURNAL) == 4 * BENCH_DOC; i++)
        lab_settle(&b.lab, 10);
    assert_int_equal(a.offsets[0], 4 * BENCH_DOC);
    restart(&b, &a);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 5 * BENCH_DOC);
    assert_int_equal(again(&b), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 5 * BENCH_DOC);
    neighbour_end(&other);
    bench_end(&b);
}

static void another_body_does_not_complete_a_torn_transaction(void **state)
{
    struct bench b = {0};
    struct attempt a;

    (void)state;
    start_over_three(&b);
    break_appends(&b, OTHER_JOURNAL, 1);
    tag = "one body";
    start(&b, &a, PARTS);
    restart(&b, &a);
    tag = "another";
    start(&b, &a, PARTS);
    assert_int_equal(finish(&b, &a), E_CONFLICT);
    tag = "one body";
    start(&b, &a, 1); /* nor do other parts */
    assert_int_equal(finish(&b, &a), E_CONFLICT);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_head(b.si, OTHER_JOURNAL), 0);
    start(&b, &a, PARTS);
    assert_int_equal(finish(&b, &a), 0);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_head(b.si, OTHER_JOURNAL), BENCH_DOC);
    tag = "";
    bench_end(&b);
}

static void of_a_torn_transaction_the_missing_part_alone_is_sent(void **state)
{
    struct bench b = {0};
    struct attempt a;

    (void)state;
    start_over_three(&b);
    break_appends(&b, OTHER_JOURNAL, 1);
    start(&b, &a, PARTS);
    restart(&b, &a);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_head(b.si, OTHER_JOURNAL), 0);
    start(&b, &a, PARTS);
    assert_int_equal(finish(&b, &a), 0);
    assert_int_equal(a.offsets[0], 3 * BENCH_DOC); /* what its answer tells */
    assert_int_equal(a.offsets[1], 0);
    start(&b, &a, PARTS);
    assert_int_equal(finish(&b, &a), E_EXISTS);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_head(b.si, OTHER_JOURNAL), BENCH_DOC);
    bench_end(&b);
}

/* A split between the attempts: nothing of the first one lies anywhere. */
static void what_did_not_land_is_published_by_the_partitions_of_now(void **state)
{
    struct bench b = {0};
    struct attempt a;

    (void)state;
    start_over_three(&b);
    break_appends(&b, NULL, 2);
    start(&b, &a, PARTS);
    restart(&b, &a);
    start(&b, &a, 1);
    assert_int_equal(finish(&b, &a), 0);
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 4 * BENCH_DOC);
    assert_int_equal(stand_in_head(b.si, OTHER_JOURNAL), 0);
    bench_end(&b);
}

/* With all fragments gone a Read says that the journal ends at 0, while its primary goes on, and
 * keeps the claim of the gateway that was there before. */
static void a_gateway_that_comes_after_all_was_removed_publishes_behind_it(void **state)
{
    const struct stand_in_fault lost = {
        .kind = STAND_IN_RESET_CONN, .method = STAND_IN_APPEND, .skip = 1, .landed = true};

    (void)state;
    for (int round = 0; round < 4; round++) {
        struct bench b = {.o = {.fragment_store = "file:///"}};
        bench_start(&b);
        assert_int_equal(bench_append(&b, 10), 0);
        assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
        assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 10), 0);
        if ((round & 1) == 0)
            b.opened--; /* the same gateway */
        bench_reopen(&b);
        if ((round & 2) != 0)
            assert_int_equal(stand_in_fault(b.si, &lost), 0);
        assert_int_equal(bench_append(&b, 1), 0);
        assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 11 * BENCH_DOC);
        bench_end(&b);
    }
}

/* The tail of a journal that sleeps is as old as its last question. */
static void an_append_to_a_journal_that_sleeps_asks_where_it_ends(void **state)
{
    struct bench b = {.o = {.idle_ms = 100}};

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 5), 0);
    bench_follow(&b);
    bench_expect_head(&b);
    b.lab.s->ops->cancel(b.follow);
    b.follow = NULL;
    struct bench other;
    neighbour_start(&other, &b);
    for (int i = 0; i < 5; i++) {
        lab_settle(&b.lab, 300); /* it falls asleep */
        assert_int_equal(bench_append(&other, 3), 0);
        b.docs = other.docs;
        uint64_t before = stand_in_calls(b.si, STAND_IN_APPEND);
        assert_int_equal(bench_append(&b, 2), 0);
        other.docs = b.docs;
        /* Refused, refused for the claim, asked, sent: no call more for each 50 ms that pass. */
        assert_true(stand_in_calls(b.si, STAND_IN_APPEND) - before <= 6);
    }
    bench_expect_stored(&b);
    neighbour_end(&other);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_landed_unseen_is_not_published_again_under_its_key),
        cmocka_unit_test(what_did_not_land_is_published_when_it_is_asked_for_again),
        cmocka_unit_test(what_another_writer_put_there_does_not_count),
        cmocka_unit_test(what_lands_after_it_was_looked_for_is_not_published_again),
        cmocka_unit_test(a_part_that_is_sent_to_another_place_is_recorded_there),
        cmocka_unit_test(of_a_torn_transaction_the_missing_part_alone_is_sent),
        cmocka_unit_test(another_body_does_not_complete_a_torn_transaction),
        cmocka_unit_test(what_did_not_land_is_published_by_the_partitions_of_now),
        cmocka_unit_test(a_gateway_that_comes_after_all_was_removed_publishes_behind_it),
        cmocka_unit_test(an_append_to_a_journal_that_sleeps_asks_where_it_ends),
    };
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests_name("keys and heads of appends", tests, NULL, NULL);
}
