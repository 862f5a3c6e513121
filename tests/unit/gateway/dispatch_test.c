/* Frames in, frames out: order of checks, order of answers, budgets, deadlines, ends. */
#include "tests/unit/gateway/harness.h"

static int setup(void **state)
{
    struct harness *h = mem_zalloc(sizeof *h);

    harness_init(h);
    fake_journal(h->fs, "acme/orders/p0", "orders");
    harness_settle(h);
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    harness_fini(*state);
    mem_free(*state);
    return 0;
}

static void api_versions_lists_exactly_the_rows_of_the_table(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 0; v <= 4; v++) {
        struct kp_api_versions_req *body = harness_body(h, KP_API_API_VERSIONS);
        if (v >= 3) {
            body->client_software_name = span_str("apache-kafka-java");
            body->client_software_version = span_str("4.3.1");
        }
        struct kp_api_versions_resp *resp = harness_call(mc, KP_API_API_VERSIONS, v, body);
        assert_int_equal(resp->error_code, 0);
        assert_int_equal(resp->api_keys_n, (int)api_rows_n);
        for (size_t i = 0; i < api_rows_n; i++) {
            assert_int_equal(resp->api_keys[i].api_key, api_rows[i].key);
            assert_int_equal(resp->api_keys[i].min_version, api_rows[i].min);
            assert_int_equal(resp->api_keys[i].max_version, api_rows[i].max);
        }
        assert_int_equal(resp->finalized_features_epoch, -1);
        assert_string_equal(mc->conn.software, v < 3 ? "" : "apache-kafka-java/4.3.1");
    }
}

static void every_row_is_within_what_the_tables_can_speak(void **state)
{
    (void)state;
    for (size_t i = 0; i < api_rows_n; i++) {
        const struct kp_api *api = kp_api_find(api_rows[i].key);
        assert_non_null(api);
        assert_true(kp_api_speaks(api, api_rows[i].min));
        assert_true(kp_api_speaks(api, api_rows[i].max));
        assert_true(i == 0 || api_rows[i - 1].key < api_rows[i].key);
    }
}

static void api_versions_of_an_unknown_version_is_answered_in_layout_v0(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    const int16_t versions[] = {5, 99, INT16_MAX, -1};

    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        /* Length, key 18, version, correlation id 7, null client id, then what nobody knows. */
        uint8_t frame[] = {0, 0, 0, 14,   0,    18,   0,    0,    0,
                           0, 0, 7, 0xff, 0xff, 0xde, 0xad, 0xbe, 0xef};
        struct span answer;
        be_store16(frame + 6, (uint16_t)versions[i]);
        mem_conn_feed(mc, frame, sizeof frame);
        assert_true(harness_take(mc, &answer));
        /* correlation id, error 35, then an int32 count: no tagged fields, no compact array */
        assert_int_equal(be_load32(answer.p), 7);
        assert_int_equal(be_load16(answer.p + 4), KE_UNSUPPORTED_VERSION);
        assert_int_equal(be_load32(answer.p + 6), api_rows_n);
        assert_int_equal(answer.n, 4 + 2 + 4 + 6 * api_rows_n);
        bool own = false;
        for (size_t k = 0; k < api_rows_n; k++) {
            const uint8_t *row = answer.p + 10 + 6 * k;
            own =
                own || (be_load16(row) == 18 && be_load16(row + 2) == 0 && be_load16(row + 4) == 4);
        }
        assert_true(own);
    }
    struct kp_api_versions_req *body = harness_body(h, KP_API_API_VERSIONS);
    struct kp_api_versions_resp *resp = harness_call(mc, KP_API_API_VERSIONS, 0, body);
    assert_int_equal(resp->error_code, 0);
}

static void a_client_name_that_is_no_name_is_an_invalid_request(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    const char *bad[] = {"", "-java", "java-", "ja va", "java\n", "."};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kp_api_versions_req *body = harness_body(h, KP_API_API_VERSIONS);
        body->client_software_name = span_str(bad[i]);
        body->client_software_version = span_str("1.0");
        struct kp_api_versions_resp *resp = harness_call(mc, KP_API_API_VERSIONS, 3, body);
        assert_int_equal(resp->error_code, KE_INVALID_REQUEST);
        assert_int_equal(resp->api_keys_n, 0);
    }
}

static void an_unknown_key_or_version_closes_after_the_answers_before_it(void **state)
{
    struct harness *h = *state;
    const int16_t keys[] = {KP_API_METADATA, 24 /* AddPartitionsToTxn */, 999, -1};
    const int16_t versions[] = {14, 5, 0, 0};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool gone = false;
        struct mem_conn *mc = mem_conn_new(h);
        mc->gone = &gone;
        struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
        body->topics_n = -1;
        harness_send(mc, KP_API_METADATA, 1, 1, body);
        uint8_t frame[] = {0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 2, 0xff, 0xff};
        be_store16(frame + 4, (uint16_t)keys[i]);
        be_store16(frame + 6, (uint16_t)versions[i]);
        mem_conn_feed(mc, frame, sizeof frame);
        assert_int_equal(mc->conn.state, CONN_FLUSHING);
        harness_decode(mc, KP_API_METADATA, 1, 1);
        harness_turns(h);
        assert_true(gone);
    }
}

static void frame_lengths_that_no_client_sends_close_at_once(void **state)
{
    struct harness *h = *state;
    const uint32_t lengths[] = {0x7fffffff,      0xffffffff,           0x80000000,
                                1024 * 1024 + 1, 0x16030100 /* TLS */, 0x47455420 /* GET */};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bool gone = false;
        struct mem_conn *mc = mem_conn_new(h);
        uint8_t prefix[4];
        mc->gone = &gone;
        be_store32(prefix, lengths[i]);
        mem_conn_feed(mc, prefix, sizeof prefix);
        harness_turns(h);
        assert_true(gone);
    }
}

static void short_and_torn_frames_close_and_never_crash(void **state)
{
    struct harness *h = *state;
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    body->topics_n = 0;
    struct blob *whole = harness_frame(h, KP_API_METADATA, 12, 1, body);

    for (uint32_t n = 0; n + 4 < whole->len; n++) {
        bool gone = false;
        struct mem_conn *mc = mem_conn_new(h);
        struct blob *cut = blob_copy(blob_span(whole));
        mc->gone = &gone;
        be_store32(cut->data, n);
        mem_conn_feed(mc, cut->data, 4 + n);
        harness_turns(h);
        assert_true(gone);
        blob_unref(cut);
    }
    blob_unref(whole);
}

static void a_request_may_come_byte_by_byte(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    body->topics_n = -1;
    struct blob *frame = harness_frame(h, KP_API_METADATA, 12, 5, body);

    for (size_t i = 0; i < frame->len; i++)
        mem_conn_feed(mc, frame->data + i, 1);
    struct kp_metadata_resp *resp = harness_decode(mc, KP_API_METADATA, 12, 5);
    assert_int_equal(resp->topics_n, 1);
    assert_int_equal(evbuffer_get_length(mc->conn.in), 0);
    blob_unref(frame);
}

static void an_unfinished_frame_is_closed_at_the_stall_limit_however_it_drips(void **state)
{
    struct harness *h = *state;
    bool gone = false;
    struct mem_conn *mc = mem_conn_new(h);
    const uint8_t prefix[] = {0, 0, 1, 0};
    const uint8_t drip = 0;

    mc->gone = &gone;
    mem_conn_feed(mc, prefix, sizeof prefix);
    for (int second = 0; second < 29; second++) {
        h->now_ms += 1000;
        mem_conn_feed(mc, &drip, 1);
        worker_tick(&h->w);
        assert_int_equal(mc->conn.state, CONN_READING);
    }
    h->now_ms += 1000;
    worker_tick(&h->w);
    harness_turns(h);
    assert_true(gone);
}

static void
an_idle_connection_is_closed_at_the_idle_limit_and_an_answer_not_read_at_the_stall_limit(
    void **state)
{
    struct harness *h = *state;
    bool idle_gone = false;
    bool stalled_gone = false;
    struct mem_conn *idle = mem_conn_new(h);
    struct mem_conn *stalled = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);

    idle->gone = &idle_gone;
    stalled->gone = &stalled_gone;
    body->topics_n = -1;
    harness_send(stalled, KP_API_METADATA, 1, 1, body);
    h->now_ms += h->config.stall_ms;
    worker_tick(&h->w);
    harness_turns(h);
    assert_true(stalled_gone);
    assert_false(idle_gone);
    h->now_ms += h->config.idle_ms;
    worker_tick(&h->w);
    harness_turns(h);
    assert_true(idle_gone);
    assert_int_equal(atomic_load(&h->w.load), 0);
}

static void unread_answers_stop_the_reading_of_requests(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    int sent = 0;
    int answers = 0;

    h->config.conn_output_bytes = 4096;
    body->topics_n = -1;
    struct blob *frame = harness_frame(h, KP_API_METADATA, 12, 1, body);
    for (; sent < 1000; sent++)
        evbuffer_add(mc->conn.in, frame->data, frame->len);
    conn_input(&mc->conn);
    harness_turns(h);
    assert_int_equal(mc->conn.state, CONN_BLOCKED);
    assert_false(mc->reading);
    assert_true(evbuffer_get_length(mc->conn.out) < 8192);
    struct span answer;
    while (harness_take(mc, &answer)) {
        answers++;
        harness_turns(h);
    }
    assert_int_equal(answers, sent);
    assert_int_equal(mc->conn.state, CONN_READING);
    assert_true(mc->reading);
    blob_unref(frame);
}

/* --- parked requests, through a handler that the test completes --- */

static struct request *parked[64];
static size_t parked_n;
static unsigned cancelled;

static void on_cancel(struct request *rq)
{
    (void)rq;
    cancelled++;
}

/* Parks as a handler does: by hand, since no row of the table is the test's. */
static void park(struct mem_conn *mc, int32_t correlation)
{
    struct blob *frame = blob_new(16);
    frame->len = 16;
    struct request *rq = request_new(&mc->conn, frame);

    blob_unref(frame);
    rq->api = kp_api_find(KP_API_METADATA);
    rq->header.api_key = KP_API_METADATA;
    rq->header.api_version = 1;
    rq->header.correlation_id = correlation;
    rq->cancel = on_cancel;
    conn_queue(&mc->conn, rq);
    parked[parked_n++] = rq;
}

static void reply(struct request *rq)
{
    struct kp_metadata_resp *resp = request_response(rq);

    assert_non_null(resp);
    request_reply(rq, resp);
}

static void answers_leave_in_the_order_of_the_requests(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span none;

    parked_n = 0;
    for (int32_t i = 0; i < 4; i++)
        park(mc, 100 + i);
    reply(parked[2]);
    reply(parked[3]);
    assert_false(harness_take(mc, &none));
    reply(parked[0]);
    harness_decode(mc, KP_API_METADATA, 1, 100);
    assert_false(harness_take(mc, &none));
    reply(parked[1]);
    harness_decode(mc, KP_API_METADATA, 1, 101);
    harness_decode(mc, KP_API_METADATA, 1, 102);
    harness_decode(mc, KP_API_METADATA, 1, 103);
}

static void closing_cancels_what_is_parked_once(void **state)
{
    struct harness *h = *state;
    bool gone = false;
    struct mem_conn *mc = mem_conn_new(h);

    mc->gone = &gone;
    parked_n = 0;
    cancelled = 0;
    for (int32_t i = 0; i < 3; i++)
        park(mc, i);
    reply(parked[1]);
    conn_gone(&mc->conn, "test");
    conn_gone(&mc->conn, "again");
    assert_int_equal(cancelled, 2);
    harness_turns(h);
    assert_true(gone);
}

static void an_aborted_request_lets_earlier_answers_out_and_drops_later_ones(void **state)
{
    struct harness *h = *state;
    bool gone = false;
    struct mem_conn *mc = mem_conn_new(h);

    mc->gone = &gone;
    parked_n = 0;
    cancelled = 0;
    for (int32_t i = 0; i < 3; i++)
        park(mc, i);
    request_abort(parked[1], E_INVALID);
    assert_int_equal(mc->conn.state, CONN_READING);
    reply(parked[0]);
    assert_int_equal(cancelled, 1);
    assert_int_equal(mc->conn.state, CONN_FLUSHING);
    harness_decode(mc, KP_API_METADATA, 1, 0);
    harness_turns(h);
    assert_true(gone);
}

static void answers_that_wait_for_an_earlier_one_count_as_unsent(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    struct span answer;

    h->config.conn_output_bytes = 300;
    body->topics_n = -1;
    parked_n = 0;
    park(mc, 0);
    for (int32_t i = 1; i < 20; i++) {
        struct blob *frame = harness_frame(h, KP_API_METADATA, 1, i, body);
        evbuffer_add(mc->conn.in, frame->data, frame->len);
        blob_unref(frame);
    }
    conn_input(&mc->conn);
    assert_int_equal(mc->conn.state, CONN_BLOCKED);
    assert_true(mc->conn.queue_n < 6);
    assert_int_equal(evbuffer_get_length(mc->conn.out), 0);
    assert_int_equal(request_room(parked[0]), 0);
    reply(parked[0]);
    for (int32_t i = 0; i < 20; i++) {
        harness_turns(h);
        assert_true(harness_take(mc, &answer));
    }
    assert_int_equal(mc->conn.held_bytes, 0);
}

static struct request *fed_last;

static void on_fed(struct request *rq)
{
    fed_last = rq;
}

static void what_requests_collect_counts_and_who_finds_no_room_is_called_when_there_is(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span answer;

    h->config.conn_output_bytes = 1000;
    parked_n = 0;
    for (int32_t i = 0; i < 3; i++)
        park(mc, i);
    request_hold(parked[1], 600);
    assert_int_equal(request_room(parked[2]), 400);
    request_hold(parked[1], 400);
    assert_false(request_may_collect(parked[2]));
    assert_true(request_may_collect(parked[0])); /* those behind it wait for it */
    fed_last = NULL;
    request_starve(parked[2], on_fed);
    harness_turns(h);
    assert_null(fed_last);
    request_release(parked[1], 1000);
    harness_turns(h);
    assert_ptr_equal(fed_last, parked[2]);
    fed_last = NULL;
    harness_turns(h);
    assert_null(fed_last);             /* once */
    request_starve(parked[2], on_fed); /* an answer takes it away */
    for (int32_t i = 2; i >= 0; i--)
        reply(parked[i]);
    harness_turns(h);
    assert_null(fed_last);
    assert_int_equal(mc->conn.starved_n, 0);
    assert_int_equal(mc->conn.gathered_bytes, 0);
    while (harness_take(mc, &answer))
        harness_turns(h);
    assert_int_equal(h->w.request_bytes, 0);
}

static void an_answer_that_drips_away_is_cut_at_the_stall_limit(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    bool gone = false;

    mc->gone = &gone;
    h->config.conn_output_bytes = 16000; /* so 1000 bytes a limit are asked for */
    parked_n = 0;
    park(mc, 0);
    (void)evbuffer_add(mc->conn.out, (char[8000]){0}, 8000);
    for (int i = 0; i < 14; i++) { /* fast enough */
        h->now_ms += h->config.stall_ms / 2;
        evbuffer_drain(mc->conn.out, 500);
        worker_tick(&h->w);
        harness_turns(h);
        assert_false(gone);
    }
    for (int i = 0; i < 4 && !gone; i++) {
        h->now_ms += h->config.stall_ms / 2;
        evbuffer_drain(mc->conn.out, 1);
        worker_tick(&h->w);
        harness_turns(h);
    }
    assert_true(gone);
}

static void behind_a_request_in_flight_none_is_read_while_requests_hold_too_much(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h), *other = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    struct span answer;

    body->topics_n = -1;
    parked_n = 0;
    park(mc, 0);
    assert_true(request_may_wait(parked[0]));
    h->w.request_bytes += WORKER_REQUEST_BYTES;
    assert_false(request_may_wait(parked[0]));
    harness_send(mc, KP_API_METADATA, 1, 1, body);
    harness_send(mc, KP_API_METADATA, 1, 2, body);
    assert_true(mc->conn.queue_n <= 2);
    assert_int_equal(mc->conn.state, CONN_BLOCKED);
    harness_send(other, KP_API_METADATA, 1, 3, body); /* who has none in flight is served */
    harness_decode(other, KP_API_METADATA, 1, 3);
    reply(parked[0]);
    harness_turns(h);
    for (int i = 0; i < 3; i++) {
        assert_true(harness_take(mc, &answer));
        harness_turns(h);
    }
    h->w.request_bytes -= WORKER_REQUEST_BYTES;
    assert_int_equal(h->w.request_bytes, 0);
}

static void pipelining_is_bounded(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    struct span answer;

    body->topics_n = -1;
    parked_n = 0;
    park(mc, 0); /* holds back all that follow */
    for (int32_t i = 1; i < 100; i++) {
        struct blob *frame = harness_frame(h, KP_API_METADATA, 1, i, body);
        evbuffer_add(mc->conn.in, frame->data, frame->len);
        blob_unref(frame);
    }
    conn_input(&mc->conn);
    harness_turns(h);
    assert_int_equal(mc->conn.state, CONN_BLOCKED);
    assert_int_equal(mc->conn.queue_n, CONN_PIPELINE);
    reply(parked[0]);
    for (int32_t i = 0; i < 100; i++) {
        harness_turns(h);
        assert_true(harness_take(mc, &answer));
        assert_int_equal(be_load32(answer.p), i);
    }
    assert_int_equal(mc->conn.queue_n, 0);
}

static void large_frames_share_one_budget_and_wait_for_it(void **state)
{
    struct harness *h = *state;
    struct mem_conn *conns[80];
    const size_t n = 1024 * 1024;
    uint8_t prefix[4];
    size_t granted = 0;

    be_store32(prefix, (uint32_t)n);
    for (size_t i = 0; i < 80; i++) {
        conns[i] = mem_conn_new(h);
        mem_conn_feed(conns[i], prefix, sizeof prefix);
        if (conns[i]->limit == n + 4)
            granted++;
        else
            assert_int_equal(conns[i]->limit, CONN_INPUT_FREE);
    }
    assert_true(granted >= 63 && granted <= 64);
    assert_true(h->w.input_granted <= WORKER_INPUT_BYTES);
    /* One that waits gets its share when another goes. */
    struct mem_conn *waiting = conns[79];
    uint8_t *zeroes = mem_zalloc(CONN_INPUT_FREE);
    mem_conn_feed(waiting, zeroes, CONN_INPUT_FREE - 4);
    mem_free(zeroes);
    conn_gone(&conns[0]->conn, "test");
    worker_tick(&h->w);
    harness_turns(h);
    assert_int_equal(waiting->limit, n + 4);
    for (size_t i = 1; i < 80; i++)
        conn_gone(&conns[i]->conn, "test");
    harness_turns(h);
    assert_int_equal(h->w.input_granted, 0);
}

static void a_frame_larger_than_the_budget_gets_through_alone(void **state)
{
    struct harness *h = *state;
    struct mem_conn *big = mem_conn_new(h);
    struct mem_conn *other = mem_conn_new(h);
    uint8_t prefix[4];

    h->config.max_request_bytes = (size_t)1 << 30;
    be_store32(prefix, 1 << 30);
    mem_conn_feed(big, prefix, sizeof prefix);
    assert_int_equal(big->limit, ((size_t)1 << 30) + 4);
    be_store32(prefix, 1 << 20);
    mem_conn_feed(other, prefix, sizeof prefix);
    assert_int_equal(other->limit, CONN_INPUT_FREE);
    conn_gone(&big->conn, "test");
    conn_gone(&other->conn, "test");
    harness_turns(h);
    assert_int_equal(h->w.input_granted, 0);
}

static void a_drain_answers_what_is_in_flight_and_closes(void **state)
{
    struct harness *h = *state;
    bool idle_gone = false;
    bool busy_gone = false;
    struct mem_conn *idle = mem_conn_new(h);
    struct mem_conn *busy = mem_conn_new(h);

    idle->gone = &idle_gone;
    busy->gone = &busy_gone;
    parked_n = 0;
    park(busy, 9);
    worker_post_drain(&h->w);
    worker_drain_mailbox(&h->w);
    harness_turns(h);
    assert_true(idle_gone);
    assert_false(busy_gone);
    reply(parked[0]);
    harness_decode(busy, KP_API_METADATA, 1, 9);
    harness_turns(h);
    assert_true(busy_gone);
}

static void what_was_posted_before_a_request_is_seen_by_it(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);

    fake_journal(h->fs, "acme/new/p0", "new");
    while (mailbox_drain(&h->control) > 0)
        ; /* the view is posted to the worker, which has not looked yet */
    body->topics_n = -1;
    struct kp_metadata_resp *resp = harness_call(mc, KP_API_METADATA, 12, body);
    assert_int_equal(resp->topics_n, 2);
}

static void running_out_of_memory_closes_and_never_crashes(void **state)
{
    struct harness *h = *state;
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    body->topics_n = -1;
    struct blob *frame = harness_frame(h, KP_API_METADATA, 12, 1, body);

    for (long n = 0; n < 40; n++) {
        struct mem_conn *mc = mem_conn_new(h);
        evbuffer_add(mc->conn.in, frame->data, frame->len);
        mem_fail_after(n, 0);
        conn_input(&mc->conn);
        mem_fail_after(-1, 0);
        assert_true(mc->conn.state != CONN_READING || evbuffer_get_length(mc->conn.out) > 0);
        conn_gone(&mc->conn, "test");
        harness_turns(h);
    }
    blob_unref(frame);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(api_versions_lists_exactly_the_rows_of_the_table),
        T(every_row_is_within_what_the_tables_can_speak),
        T(api_versions_of_an_unknown_version_is_answered_in_layout_v0),
        T(a_client_name_that_is_no_name_is_an_invalid_request),
        T(an_unknown_key_or_version_closes_after_the_answers_before_it),
        T(frame_lengths_that_no_client_sends_close_at_once),
        T(short_and_torn_frames_close_and_never_crash),
        T(a_request_may_come_byte_by_byte),
        T(an_unfinished_frame_is_closed_at_the_stall_limit_however_it_drips),
        T(an_idle_connection_is_closed_at_the_idle_limit_and_an_answer_not_read_at_the_stall_limit),
        T(unread_answers_stop_the_reading_of_requests),
        T(answers_leave_in_the_order_of_the_requests),
        T(closing_cancels_what_is_parked_once),
        T(an_aborted_request_lets_earlier_answers_out_and_drops_later_ones),
        T(answers_that_wait_for_an_earlier_one_count_as_unsent),
        T(what_requests_collect_counts_and_who_finds_no_room_is_called_when_there_is),
        T(an_answer_that_drips_away_is_cut_at_the_stall_limit),
        T(behind_a_request_in_flight_none_is_read_while_requests_hold_too_much),
        T(pipelining_is_bounded),
        T(large_frames_share_one_budget_and_wait_for_it),
        T(a_frame_larger_than_the_budget_gets_through_alone),
        T(a_drain_answers_what_is_in_flight_and_closes),
        T(what_was_posted_before_a_request_is_seen_by_it),
        T(running_out_of_memory_closes_and_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
