/* Incremental fetch sessions (KIP-227): what is left out, what is said, and how sessions end. */
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

static struct lab_request *request(struct lab *lab, int16_t version, int32_t id, int32_t epoch)
{
    struct lab_request *r = lab_fetch_new(lab, version);

    r->body.fetch.session_id = id;
    r->body.fetch.session_epoch = epoch;
    return r;
}

/* Sends, runs to the end, frees; the answer is in the lab. */
static int16_t finish(struct lab *lab, struct lab_request *r)
{
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    return lab_resp(lab)->error_code;
}

/* Opens a session over all partitions of a topic, at offset 0. */
static int32_t open_session(struct lab *lab, int16_t version, size_t t, int32_t parts)
{
    struct lab_request *r = request(lab, version, 0, 0);

    for (int32_t i = 0; i < parts; i++)
        lab_want(lab, r, t, i, 0);
    assert_int_equal(finish(lab, r), 0);
    int32_t n = 0;
    for (int32_t i = 0; i < lab_resp(lab)->responses_n; i++)
        n += lab_resp(lab)->responses[i].partitions_n;
    assert_int_equal(n, parts); /* the first answer lists all */
    assert_true(lab_resp(lab)->session_id > 0);
    return lab_resp(lab)->session_id;
}

static void unchanged_partitions_are_left_out(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 3);

    for (int16_t v = 7; v <= 18; v++) {
        int32_t id = open_session(lab, v, t, 3);

        assert_int_equal(finish(lab, request(lab, v, id, 1)), 0);
        if (v == 7) {
            assert_int_equal(lab_resp(lab)->session_id, id);
            assert_int_equal(lab_resp(lab)->responses_n, 0);
        }
        int64_t end = lab_doc(lab, t, 1, 100) + 1;
        lab_heads(lab);
        assert_int_equal(finish(lab, request(lab, v, id, 2)), 0);
        assert_non_null(lab_part(lab, t, 1));
        assert_true(lab_part(lab, t, 1)->records.in.n > 0);
        assert_int_equal(lab_part(lab, t, 1)->high_watermark, end);
        assert_null(lab_part(lab, t, 0));
        /* not taken: it comes again */
        assert_int_equal(finish(lab, request(lab, v, id, 3)), 0);
        assert_non_null(lab_part(lab, t, 1));
        /* taken: silence */
        struct lab_request *r = request(lab, v, id, 4);
        lab_want(lab, r, t, 1, end);
        assert_int_equal(finish(lab, r), 0);
        assert_int_equal(lab_resp(lab)->responses_n, 0);
    }
}

static void errors_are_told_each_time_and_recovery_once(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1), late = lab_topic(lab, "late", 1);

    lab->topics_n--;
    lab_view(lab);
    lab->topics_n++;
    struct lab_request *r = request(lab, 12, 0, 0);
    lab_want(lab, r, t, 0, 0);
    lab_want(lab, r, late, 0, 0);
    assert_int_equal(finish(lab, r), 0);
    int32_t id = lab_resp(lab)->session_id;
    for (int32_t e = 1; e < 4; e++) {
        assert_int_equal(finish(lab, request(lab, 12, id, e)), 0);
        assert_int_equal(lab_part(lab, late, 0)->error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
        assert_null(lab_part(lab, t, 0));
    }
    lab_view(lab); /* the topic appears */
    assert_int_equal(finish(lab, request(lab, 12, id, 4)), 0);
    assert_int_equal(lab_part(lab, late, 0)->error_code, 0);
    assert_int_equal(finish(lab, request(lab, 12, id, 5)), 0);
    assert_int_equal(lab_resp(lab)->responses_n, 0);
}

static void a_moved_log_start_is_told(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);
    int64_t a = lab_doc(lab, t, 0, 100), b = lab_doc(lab, t, 0, 100);

    lab_heads(lab);
    int32_t id = open_session(lab, 11, t, 2);
    struct lab_request *r = request(lab, 11, id, 1);
    lab_want(lab, r, t, 0, b + 1);
    assert_int_equal(finish(lab, r), 0);
    fake_remove_below(lab->fs, lab->journals[t][0], a + 1, a + 1);
    while (mailbox_drain(&lab->w.mb) > 0)
        ;
    assert_int_equal(finish(lab, request(lab, 11, id, 2)), 0);
    assert_int_equal(lab_part(lab, t, 0)->log_start_offset, a + 1);
    assert_int_equal(lab_part(lab, t, 0)->error_code, 0);
    assert_int_equal(finish(lab, request(lab, 11, id, 3)), 0);
    assert_int_equal(lab_resp(lab)->responses_n, 0);
}

static void forgotten_partitions_are_silent_until_added_anew(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);

    for (int16_t v = 11; v <= 13; v += 2) {
        struct kp_fetch_req_forgotten_topics_data forget;
        int32_t one = 1, id = open_session(lab, v, t, 2);
        struct lab_request *r = request(lab, v, id, 1);

        kp_defaults(&kp_fetch_req_forgotten_topics_data_desc, &forget);
        if (v < 13)
            forget.topic = span_str("docs");
        else
            forget.topic_id = lab->topics[t].id;
        forget.partitions = &one;
        forget.partitions_n = 1;
        r->body.fetch.forgotten_topics_data = &forget;
        r->body.fetch.forgotten_topics_data_n = 1;
        assert_int_equal(finish(lab, r), 0);
        int64_t end = lab_doc(lab, t, 1, 100) + 1;
        lab_heads(lab);
        assert_int_equal(finish(lab, request(lab, v, id, 2)), 0);
        assert_null(lab_part(lab, t, 1));
        r = request(lab, v, id, 3);
        lab_want(lab, r, t, 1, end - 100);
        assert_int_equal(finish(lab, r), 0);
        assert_true(lab_part(lab, t, 1)->records.in.n > 0);
    }
}

static void wrong_ids_epochs_principals_and_kinds_have_kafkas_errors(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t id = open_session(lab, 12, t, 1);

    assert_int_equal(finish(lab, request(lab, 12, id + 1, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    assert_int_equal(finish(lab, request(lab, 12, 0, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    assert_int_equal(lab_resp(lab)->session_id, 0);
    assert_int_equal(finish(lab, request(lab, 12, id, 2)), KE_INVALID_FETCH_SESSION_EPOCH);
    assert_int_equal(finish(lab, request(lab, 12, id, -2)), KE_INVALID_FETCH_SESSION_EPOCH);
    assert_int_equal(finish(lab, request(lab, 13, id, 1)), KE_FETCH_SESSION_TOPIC_ID_ERROR);
    lab_principal = "mallory";
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    lab_principal = "";
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), 0); /* unharmed by all that */
}

static void one_session_serves_one_request_at_a_time(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t id = open_session(lab, 12, t, 1);
    struct lab_request *r = request(lab, 12, id, 1);

    r->body.fetch.max_wait_ms = 10000;
    lab_send(r);
    lab_until_waiting(lab, r);
    assert_int_equal(finish(lab, request(lab, 12, id, 2)), KE_INVALID_FETCH_SESSION_EPOCH);
    lab_drop(r); /* the connection is lost, the session lives on */
    assert_int_equal(finish(lab, request(lab, 12, id, 2)), 0);
}

static void a_full_request_closes_the_session_that_it_names(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct fetch_sessions *ss = lab->w.fetch->sessions;
    int32_t id = open_session(lab, 12, t, 1);
    struct lab_request *r = request(lab, 12, id, 0);

    lab_want(lab, r, t, 0, 0);
    assert_int_equal(finish(lab, r), 0);
    int32_t second = lab_resp(lab)->session_id;
    assert_true(second != id && second > 0);
    assert_int_equal(fetch_sessions_count(ss), 1);
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    r = request(lab, 12, second, -1);
    lab_want(lab, r, t, 0, 0);
    assert_int_equal(finish(lab, r), 0);
    assert_int_equal(lab_resp(lab)->session_id, 0);
    assert_non_null(lab_part(lab, t, 0));
    assert_int_equal(fetch_sessions_count(ss), 0);
}

static void an_emptied_session_is_closed(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t id = open_session(lab, 12, t, 1), zero = 0;
    struct kp_fetch_req_forgotten_topics_data forget;
    struct lab_request *r = request(lab, 12, id, 1);

    kp_defaults(&kp_fetch_req_forgotten_topics_data_desc, &forget);
    forget.topic = span_str("docs");
    forget.partitions = &zero;
    forget.partitions_n = 1;
    r->body.fetch.forgotten_topics_data = &forget;
    r->body.fetch.forgotten_topics_data_n = 1;
    r->body.fetch.max_wait_ms = 10000;
    assert_int_equal(finish(lab, r), 0); /* with nothing to wait for */
    assert_int_equal(lab_resp(lab)->session_id, 0);
    assert_int_equal(fetch_sessions_count(lab->w.fetch->sessions), 0);
}

static void a_flood_of_sessions_evicts_the_idle_and_never_the_active(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t used = open_session(lab, 12, t, 1), epoch = 1, oldest = open_session(lab, 12, t, 1);
    struct lab_request *busy = request(lab, 12, 0, 0);

    busy->body.fetch.max_wait_ms = 100000;
    lab_want(lab, busy, t, 0, 0);
    lab_send(busy);
    lab_until_waiting(lab, busy);
    for (int i = 0; i < 1000; i++) {
        (void)open_session(lab, 12, t, 1);
        assert_true(fetch_sessions_count(lab->w.fetch->sessions) <= 4);
        assert_int_equal(finish(lab, request(lab, 12, used, epoch++)), 0);
    }
    assert_int_equal(finish(lab, request(lab, 12, oldest, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    lab->now_ms += 100000;
    fetch_waits_expire(lab->w.fetch->waits);
    assert_true(busy->rq.done);
    int32_t id = lab_resp(lab)->session_id;
    lab_drop(busy);
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), 0);
}

/* One request of doubled or unknown partitions must not throw everybody out. */
static void a_session_larger_than_its_share_is_not_opened_and_evicts_nobody(void **state)
{
    enum { LISTED = 25001 };
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t kept = open_session(lab, 12, t, 1);
    struct lab_request *r = request(lab, 12, 0, 0);
    struct kp_fetch_req_topics_partitions *many = mem_array(LISTED, sizeof *many);

    assert_non_null(many);
    lab_want(lab, r, t, 0, 0);
    for (int32_t i = 0; i < LISTED; i++) {
        many[i] = r->parts[0];
        many[i].partition = i;
    }
    r->topics[0].partitions = many;
    r->topics[0].partitions_n = LISTED;
    assert_int_equal(finish(lab, r), 0);
    assert_int_equal(lab_resp(lab)->session_id, 0);
    assert_int_equal(fetch_sessions_count(lab->w.fetch->sessions), 1);
    assert_int_equal(finish(lab, request(lab, 12, kept, 1)), 0);
    mem_free(many);
}

static void an_idle_session_lets_go_of_an_old_view(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t id = open_session(lab, 12, t, 1);
    const struct gw_view *old = gw_view_ref(lab->w.view);

    (void)lab_topic(lab, "more", 1); /* another view */
    assert_ptr_not_equal(lab->w.view, old);
    fetch_sessions_refresh(lab->w.fetch->sessions);
    assert_int_equal(atomic_load(&old->refs), 1);
    gw_view_unref(old);
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), 0);
}

static void without_room_a_client_is_served_without_a_session(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *busy[4], *r;

    for (int i = 0; i < 4; i++) {
        busy[i] = request(lab, 12, 0, 0);
        busy[i]->body.fetch.max_wait_ms = 1000;
        lab_want(lab, busy[i], t, 0, 0);
        lab_send(busy[i]);
        lab_until_waiting(lab, busy[i]);
    }
    r = request(lab, 12, 0, 0);
    lab_want(lab, r, t, 0, 0);
    assert_int_equal(finish(lab, r), 0);
    assert_int_equal(lab_resp(lab)->session_id, 0);
    assert_non_null(lab_part(lab, t, 0));
    for (int i = 0; i < 4; i++)
        lab_drop(busy[i]);
}

static void a_wake_up_looks_at_the_busy_partition_alone(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 64);
    int32_t id = open_session(lab, 12, t, 64);
    struct lab_request *r = request(lab, 12, id, 1);

    r->body.fetch.max_wait_ms = 10000;
    lab_send(r);
    lab_until_waiting(lab, r);
    lab_doc(lab, t, 17, 100);
    while (!r->rq.done && ((struct fetch *)r->rq.park)->state == FETCH_WAITING)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
    if (!r->rq.done) /* its block is being loaded */
        assert_int_equal(((struct fetch *)r->rq.park)->order_n, 1);
    lab_await(lab, r);
    lab_drop(r);
    assert_int_equal(lab_resp(lab)->responses_n, 1);
    assert_int_equal(lab_resp(lab)->responses[0].partitions_n, 1);
    assert_true(lab_part(lab, t, 17)->records.in.n > 0);
}

static void served_partitions_go_to_the_back_of_the_line(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 4);
    unsigned served[4] = {0};

    for (size_t i = 0; i < 4; i++)
        lab_doc(lab, t, i, 50000);
    lab_heads(lab);
    struct lab_request *r = request(lab, 12, 0, 0);
    r->body.fetch.max_bytes = 1000;
    for (int32_t i = 0; i < 4; i++)
        lab_want(lab, r, t, i, 0);
    assert_int_equal(finish(lab, r), 0);
    int32_t id = lab_resp(lab)->session_id;
    for (int32_t e = 1; e <= 8; e++) {
        r = request(lab, 12, id, e);
        r->body.fetch.max_bytes = 1000;
        assert_int_equal(finish(lab, r), 0);
        for (int32_t i = 0; i < 4; i++) {
            if (lab_part(lab, t, i) != NULL && lab_part(lab, t, i)->records.in.n > 0)
                served[i]++;
        }
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(served[i], 2);
}

static void a_raised_bound_reaches_open_sessions(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 100);
    lab_heads(lab);
    int32_t id = open_session(lab, 12, t, 1);
    lab->topics[t].bound.min_clock = LAB_CLOCK(500);
    lab_view(lab);
    assert_int_equal(finish(lab, request(lab, 12, id, 1)), 0);
    static struct lab_batches got;
    lab_parse(lab_part(lab, t, 0)->records.in, &got);
    assert_int_equal(got.n, 1);
    assert_true(got.v[0].control);
}

static void each_request_needs_the_next_epoch(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int32_t id = open_session(lab, 12, t, 1);

    for (int32_t e = 1; e < 100; e++)
        assert_int_equal(finish(lab, request(lab, 12, id, e)), 0);
    assert_int_equal(finish(lab, request(lab, 12, id, 99)), KE_INVALID_FETCH_SESSION_EPOCH);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(unchanged_partitions_are_left_out),
        T(errors_are_told_each_time_and_recovery_once),
        T(a_moved_log_start_is_told),
        T(forgotten_partitions_are_silent_until_added_anew),
        T(wrong_ids_epochs_principals_and_kinds_have_kafkas_errors),
        T(one_session_serves_one_request_at_a_time),
        T(a_full_request_closes_the_session_that_it_names),
        T(an_emptied_session_is_closed),
        T(a_flood_of_sessions_evicts_the_idle_and_never_the_active),
        T(a_session_larger_than_its_share_is_not_opened_and_evicts_nobody),
        T(an_idle_session_lets_go_of_an_old_view),
        T(without_room_a_client_is_served_without_a_session),
        T(a_wake_up_looks_at_the_busy_partition_alone),
        T(served_partitions_go_to_the_back_of_the_line),
        T(a_raised_bound_reaches_open_sessions),
        T(each_request_needs_the_next_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
