/* Long polls: when a fetch that found too little is answered, and what it costs meanwhile. */
#include "tests/unit/gateway/fetch_lab.h"

static int setup(void **state)
{
    *state = lab_new();
    return 0;
}

static int teardown(void **state)
{
    lab_free(*state);
    return 0;
}

static struct lab_batches got;

static void pass_time(struct lab *lab, int64_t ms)
{
    lab->now_ms += ms;
    fetch_waits_expire(lab->w.fetch->waits);
}

static struct lab_request *poll_at(struct lab *lab, size_t t, int64_t offset, int32_t wait_ms,
                                   int32_t min_bytes)
{
    struct lab_request *r = lab_fetch_new(lab, 11);

    r->body.fetch.max_wait_ms = wait_ms;
    r->body.fetch.min_bytes = min_bytes;
    lab_want(lab, r, t, 0, offset);
    lab_send(r);
    lab_until_waiting(lab, r);
    return r;
}

static void an_idle_poll_is_answered_when_its_time_is_up_and_not_before(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, t, 0, 100) + 1;

    lab_heads(lab);
    struct lab_request *r = poll_at(lab, t, end, 500, 1);
    pass_time(lab, 499);
    assert_false(r->rq.done);
    pass_time(lab, 1);
    assert_true(r->rq.done);
    assert_int_equal(lab_part(lab, t, 0)->error_code, 0);
    assert_int_equal(lab_part(lab, t, 0)->records.in.n, 0);
    lab_drop(r);
}

static void a_poll_without_time_is_answered_at_once(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const int32_t waits[] = {0, -1, INT32_MIN};

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct lab_request *r = poll_at(lab, t, 0, waits[i], 1);
        assert_true(r->rq.done);
        lab_drop(r);
    }
    struct lab_request *r = poll_at(lab, t, 0, INT32_MAX, 1); /* and no longer than the cap */
    pass_time(lab, FETCH_WAIT_MAX_MS);
    assert_true(r->rq.done);
    lab_drop(r);
}

static void a_new_document_wakes_its_readers_and_no_others(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1), u = lab_topic(lab, "other", 1);
    struct lab_request *a = poll_at(lab, t, 0, 10000, 1), *b = poll_at(lab, u, 0, 10000, 1);

    int64_t offset = lab_doc(lab, t, 0, 100);
    lab_await(lab, a);
    lab_parse(lab_part(lab, t, 0)->records.in, &got);
    assert_int_equal(got.v[0].base_offset, offset);
    assert_int_equal(lab_part(lab, t, 0)->high_watermark, offset + 1);
    assert_false(b->rq.done);
    lab_drop(a);
    lab_drop(b); /* the connection closes while it waits */
}

static void hidden_documents_wake_nobody(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r = poll_at(lab, t, 0, 10000, 1);

    for (int i = 0; i < 50; i++) {
        lab_ack(lab, t, 0);
        fake_append(lab->fs, lab->journals[t][0], "\n");
        while (mailbox_drain(&lab->w.mb) > 0)
            ;
        assert_false(r->rq.done);
    }
    assert_int_equal(lab->fs->block_reads, 0);
    lab_drop(r);
}

static void too_few_bytes_are_waited_upon_and_then_answered(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 1000);
    lab_heads(lab);
    struct lab_request *r = poll_at(lab, t, 0, 500, 100000);
    assert_false(r->rq.done);
    lab_doc(lab, t, 0, 1000);
    lab_until_waiting(lab, r);
    assert_false(r->rq.done);
    pass_time(lab, 500);
    lab_await(lab, r);
    lab_parse(lab_part(lab, t, 0)->records.in, &got);
    int32_t records = 0;
    for (size_t i = 0; i < got.n; i++)
        records += got.v[i].records;
    assert_int_equal(records, 2);
    lab_drop(r);
}

static void the_least_bytes_count_over_all_partitions(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 3);
    struct lab_request *r = lab_fetch_new(lab, 11);

    r->body.fetch.max_wait_ms = 10000;
    r->body.fetch.min_bytes = 2500;
    for (int32_t i = 0; i < 3; i++)
        lab_want(lab, r, t, i, 0);
    lab_send(r);
    lab_until_waiting(lab, r);
    for (size_t i = 0; i < 2; i++) {
        lab_doc(lab, t, i, 1000);
        lab_until_waiting(lab, r);
        assert_false(r->rq.done);
    }
    lab_doc(lab, t, 2, 1000);
    lab_await(lab, r);
    for (int32_t i = 0; i < 3; i++)
        assert_true(lab_part(lab, t, i)->records.in.n > 1000);
    lab_drop(r);
}

static void more_than_an_answer_can_hold_is_not_waited_for(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    for (int i = 0; i < 10; i++)
        lab_doc(lab, t, 0, 60000);
    lab_heads(lab);
    struct lab_request *r = lab_fetch_new(lab, 11);
    r->body.fetch.max_wait_ms = 10000;
    r->body.fetch.min_bytes = INT32_MAX;
    r->body.fetch.max_bytes = 200000;
    lab_want(lab, r, t, 0, 0);
    lab_send(r);
    lab_await(lab, r); /* full */
    lab_drop(r);
}

static void an_error_does_not_wait(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);
    struct lab_request *r = lab_fetch_new(lab, 11);

    r->body.fetch.max_wait_ms = 10000;
    lab_want(lab, r, t, 0, 0);
    lab_want(lab, r, t, 1, 5);
    lab_send(r);
    assert_true(r->rq.done);
    lab_drop(r);
}

static void losing_its_place_wakes_a_reader(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 100);

    lab_heads(lab);
    struct lab_request *r = poll_at(lab, t, 0, 10000, 100000);
    assert_false(r->rq.done);
    fake_remove_below(lab->fs, lab->journals[t][0], a + 1, a + 1);
    lab_await(lab, r);
    assert_int_equal(lab_part(lab, t, 0)->error_code, KE_OFFSET_OUT_OF_RANGE);
    lab_drop(r);
}

static void a_raised_bound_moves_who_waits(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 1000);
    lab_heads(lab);
    struct lab_request *r = poll_at(lab, t, 0, 10000, 100000);
    assert_false(r->rq.done);
    lab->topics[t].bound.min_clock = LAB_CLOCK(500);
    lab_view(lab);
    lab_until_waiting(lab, r);
    pass_time(lab, 10000);
    lab_await(lab, r);
    lab_parse(lab_part(lab, t, 0)->records.in, &got); /* nothing of what it had collected */
    assert_int_equal(got.n, 1);
    assert_true(got.v[0].control);
    lab_drop(r);
}

static void a_removed_topic_or_a_new_epoch_ends_the_wait(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1), u = lab_topic(lab, "gone", 1);
    struct lab_request *a = lab_fetch_new(lab, 11);
    struct lab_request *b = poll_at(lab, u, 0, 10000, 1);

    a->body.fetch.max_wait_ms = 10000;
    lab_want(lab, a, t, 0, 0)->current_leader_epoch = 1;
    lab_send(a);
    lab_until_waiting(lab, a);
    lab->topics_n--;
    lab_view(lab);
    lab->topics_n++;
    assert_true(b->rq.done);
    assert_int_equal(lab_part(lab, u, 0)->error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_false(a->rq.done);
    lab->topics[t].epoch = 2;
    lab_view(lab);
    assert_true(a->rq.done);
    assert_int_equal(lab_part(lab, t, 0)->error_code, KE_FENCED_LEADER_EPOCH);
    lab_drop(a);
    lab_drop(b);
}

static void draining_answers_all_polls(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r[10];

    for (int i = 0; i < 10; i++)
        r[i] = poll_at(lab, t, 0, 10000, 1);
    fetch_worker_drain(&lab->w);
    for (int i = 0; i < 10; i++) {
        assert_true(r[i]->rq.done);
        lab_drop(r[i]);
    }
    struct lab_request *late = poll_at(lab, t, 0, 10000, 1);
    assert_true(late->rq.done);
    lab_drop(late);
}

static void deadlines_are_kept_in_any_order(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r[200];
    int64_t start = lab->now_ms;
    unsigned seed = 7;

    for (int i = 0; i < 200; i++) {
        seed = seed * 1103515245u + 12345u;
        r[i] = poll_at(lab, t, 0, (int32_t)(1 + seed / 65536 % 1000), 1);
    }
    for (int i = 0; i < 200; i += 3) { /* some go away */
        lab_drop(r[i]);
        r[i] = NULL;
    }
    for (int ms = 0; ms <= 1000; ms += 10) {
        for (int i = 0; i < 200; i++) {
            if (r[i] != NULL)
                assert_int_equal(r[i]->rq.done,
                                 r[i]->body.fetch.max_wait_ms <= lab->now_ms - start);
        }
        pass_time(lab, 10);
    }
    for (int i = 0; i < 200; i++) {
        if (r[i] != NULL)
            lab_drop(r[i]);
    }
}

static void waits_of_very_different_lengths_are_kept(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const int32_t lengths[] = {1,    2,    3,     4,     5,     100,    4095,
                                      4096, 4097, 50000, 65535, 65536, 299999, 300000};
    enum { N = sizeof lengths / sizeof lengths[0] };
    struct lab_request *r[N];
    int64_t start = lab->now_ms;

    for (int i = 0; i < N; i++)
        r[i] = poll_at(lab, t, 0, lengths[i], 1);
    while (lab->now_ms - start < 300100) {
        pass_time(lab, 1 + lab->now_ms % 900);
        for (int i = 0; i < N; i++)
            assert_int_equal(r[i]->rq.done, lengths[i] <= lab->now_ms - start);
    }
    for (int i = 0; i < N; i++)
        lab_drop(r[i]);
    lab->now_ms += 7654321; /* nobody waits for long */
    struct lab_request *late = poll_at(lab, t, 0, 500, 1);
    pass_time(lab, 499);
    assert_false(late->rq.done);
    pass_time(lab, 1);
    assert_true(late->rq.done);
    lab_drop(late);
}

static void a_follower_is_shared_and_closed_when_unused_for_long(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct fetch_waits *ws = lab->w.fetch->waits;
    struct lab_request *a = poll_at(lab, t, 0, 1000, 1), *b = poll_at(lab, t, 0, 1000, 1);

    assert_int_equal(fetch_waits_watches(ws), 1);
    lab_drop(a);
    lab->now_ms += FETCH_WATCH_KEEP_MS;
    fetch_waits_sweep(ws);
    assert_int_equal(fetch_waits_watches(ws), 1);
    lab_drop(b);
    fetch_waits_sweep(ws);
    assert_int_equal(fetch_waits_watches(ws), 1);
    lab->now_ms += FETCH_WATCH_KEEP_MS;
    fetch_waits_sweep(ws);
    assert_int_equal(fetch_waits_watches(ws), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_idle_poll_is_answered_when_its_time_is_up_and_not_before),
        T(a_poll_without_time_is_answered_at_once),
        T(a_new_document_wakes_its_readers_and_no_others),
        T(hidden_documents_wake_nobody),
        T(too_few_bytes_are_waited_upon_and_then_answered),
        T(the_least_bytes_count_over_all_partitions),
        T(more_than_an_answer_can_hold_is_not_waited_for),
        T(an_error_does_not_wait),
        T(losing_its_place_wakes_a_reader),
        T(a_raised_bound_moves_who_waits),
        T(a_removed_topic_or_a_new_epoch_ends_the_wait),
        T(draining_answers_all_polls),
        T(deadlines_are_kept_in_any_order),
        T(waits_of_very_different_lengths_are_kept),
        T(a_follower_is_shared_and_closed_when_unused_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
