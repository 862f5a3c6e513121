/*
 * What a connection may do before, during and after a login, without sockets. The walk over the
 * dispatch table grows with the table.
 */
#include "tests/unit/gateway/harness.h"

#include "gateway/auth_int.h"

static const char *const tokens_a[] = {"old token", "new token"};
static const char *const tokens_b[] = {"secret b"};

struct lab {
    struct harness h; /* first member */
    struct gw_auth_opts opts;
};

static void show(struct harness *h, bool with_a, const char *const *a, size_t n)
{
    struct gw_task tasks[] = {
        {.name = "acme/b", .tokens = tokens_b, .tokens_n = 1},
        {.name = "acme/a", .tokens = a, .tokens_n = n},
    };
    const struct gw_view_spec spec = {.revision = 1, .tasks = tasks, .tasks_n = with_a ? 2 : 1};
    const struct gw_view *view;

    assert_int_equal(gw_view_build(&spec, &view), 0);
    assert_int_equal(worker_post_view(&h->w, view), 0);
    gw_view_unref(view);
    harness_settle(h);
}

static int setup(void **state)
{
    struct lab *lab = mem_zalloc(sizeof *lab);

    harness_init(&lab->h);
    harness_settle(&lab->h);
    lab->opts.mechanisms = 1U << SASL_PLAIN | 1U << SASL_SCRAM_SHA_256;
    lab->opts.session_ms = 60000;
    assert_int_equal(gw_auth_new(&lab->opts, &lab->h.clock, &lab->h.shared.auth), 0);
    show(&lab->h, true, tokens_a, 2);
    *state = lab;
    return 0;
}

static int teardown(void **state)
{
    struct lab *lab = *state;
    struct gw_auth *auth = lab->h.shared.auth;

    gw_auth_stop(auth);
    harness_fini(&lab->h);
    gw_auth_free(auth);
    mem_free(lab);
    return 0;
}

static struct mem_conn *new_conn(struct harness *h)
{
    struct mem_conn *mc = mem_conn_new(h);

    auth_conn_init(&mc->conn, true);
    return mc;
}

/* Lets the pool finish what it was given. */
static void wait_login(struct harness *h, struct mem_conn *mc)
{
    while (mc->conn.auth.state == AUTH_CHECKING)
        assert_true(mailbox_wait(&h->w.mb, 10000) > 0);
}

static struct kp_sasl_handshake_resp *shake(struct mem_conn *mc, int16_t version,
                                            const char *mechanism)
{
    struct kp_sasl_handshake_req *body = harness_body(mc->h, KP_API_SASL_HANDSHAKE);

    body->mechanism = span_str(mechanism);
    return harness_call(mc, KP_API_SASL_HANDSHAKE, version, body);
}

static struct kp_sasl_authenticate_resp *give(struct mem_conn *mc, const char *user,
                                              const char *password)
{
    struct kp_sasl_authenticate_req *body = harness_body(mc->h, KP_API_SASL_AUTHENTICATE);
    struct writer w;

    wr_init(&w, 4096);
    wr_u8(&w, 0);
    wr_str(&w, user);
    wr_u8(&w, 0);
    wr_str(&w, password);
    body->auth_bytes = blob_span(w.b);
    harness_send(mc, KP_API_SASL_AUTHENTICATE, 2, 77, body);
    wr_fini(&w);
    wait_login(mc->h, mc);
    return harness_decode(mc, KP_API_SASL_AUTHENTICATE, 2, 77);
}

static struct mem_conn *logged_in(struct harness *h, const char *user, const char *password)
{
    struct mem_conn *mc = new_conn(h);

    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    assert_int_equal(give(mc, user, password)->error_code, 0);
    return mc;
}

/* A frame whose body no decoder would take: before a login nobody looks at it. */
static void send_header(struct mem_conn *mc, int16_t key, int16_t version)
{
    const struct kp_api *api = kp_api_find(key);
    uint8_t frame[64] = {0};
    size_t n = version >= api->flexible ? 15 : 14;

    be_store16(frame + 4, (uint16_t)key);
    be_store16(frame + 6, (uint16_t)version);
    be_store32(frame + 8, 1);
    be_store16(frame + 12, UINT16_MAX); /* null client id */
    memset(frame + n, 0xee, 20);
    be_store32(frame, (uint32_t)(n + 20 - 4));
    mem_conn_feed(mc, frame, n + 20);
}

static bool needs_login(int16_t key)
{
    return key != KP_API_API_VERSIONS && key != KP_API_SASL_HANDSHAKE &&
           key != KP_API_SASL_AUTHENTICATE;
}

static void nothing_is_served_before_the_login(void **state)
{
    struct harness *h = *state;
    size_t seen = 0;

    for (size_t i = 0; i < api_rows_n; i++) {
        if (!needs_login(api_rows[i].key))
            continue;
        for (int16_t v = api_rows[i].min; v <= api_rows[i].max; v++) {
            for (int stage = 0; stage < 2; stage++) {
                struct mem_conn *mc = new_conn(h);
                if (stage == 1)
                    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
                send_header(mc, api_rows[i].key, v);
                assert_int_equal(mc->conn.state, CONN_CLOSED);
                assert_int_equal(evbuffer_get_length(mc->conn.out), 0);
                harness_turns(h);
                seen++;
            }
        }
    }
    assert_true(seen > 100);
}

static void the_three_that_open_the_door_are_served(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = new_conn(h);
    struct kp_api_versions_req *body = harness_body(h, KP_API_API_VERSIONS);

    for (int16_t v = 0; v <= 2; v++) {
        struct kp_api_versions_resp *resp = harness_call(mc, KP_API_API_VERSIONS, v, body);
        assert_int_equal(resp->api_keys_n, (int)api_rows_n);
    }
    struct kp_sasl_handshake_resp *hs = shake(mc, 1, "PLAIN");
    assert_int_equal(hs->mechanisms_n, 2);
    assert_int_equal(mc->conn.auth.state, AUTH_HANDSHAKEN);
    struct kp_sasl_authenticate_resp *resp = give(mc, "acme/a", "new token");
    assert_int_equal(resp->error_code, 0);
    assert_int_equal(resp->session_lifetime_ms, 60000);
    assert_string_equal(mc->conn.auth.principal, "acme/a");
}

static void both_tokens_of_a_rotation_are_good(void **state)
{
    struct harness *h = *state;

    logged_in(h, "acme/a", "old token");
    struct mem_conn *live = logged_in(h, "acme/a", "new token");
    show(h, true, tokens_a + 1, 1); /* the old one goes */
    assert_int_equal(live->conn.state, CONN_READING);
    struct mem_conn *mc = new_conn(h);
    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    assert_int_equal(give(mc, "acme/a", "old token")->error_code, KE_SASL_AUTHENTICATION_FAILED);
    assert_int_equal(mc->conn.state, CONN_CLOSED);
    logged_in(h, "acme/a", "new token");
}

static void a_task_that_goes_takes_its_connections_with_it(void **state)
{
    struct harness *h = *state;
    struct mem_conn *a = logged_in(h, "acme/a", "old token");
    struct mem_conn *b = logged_in(h, "acme/b", "secret b");

    show(h, false, NULL, 0);
    assert_int_equal(a->conn.state, CONN_CLOSED);
    assert_int_equal(b->conn.state, CONN_READING);
}

static void a_session_ends_with_its_lifetime(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = logged_in(h, "acme/b", "secret b");

    h->now_ms += 59999;
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
    harness_call(mc, KP_API_METADATA, 9, body);
    h->now_ms += 1;
    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0); /* a login may still come */
    assert_int_equal(give(mc, "acme/b", "secret b")->error_code, 0);
    harness_call(mc, KP_API_METADATA, 9, body);
    h->now_ms += 60000;
    harness_send(mc, KP_API_METADATA, 9, 5, body);
    assert_int_equal(mc->conn.state, CONN_CLOSED);
}

static void a_connection_that_closes_in_its_login_takes_nothing_along(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = new_conn(h);
    struct kp_sasl_authenticate_req *body = harness_body(h, KP_API_SASL_AUTHENTICATE);

    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    body->auth_bytes = span_of("\0acme/a\0old token", 17);
    harness_send(mc, KP_API_SASL_AUTHENTICATE, 2, 1, body);
    assert_int_equal(mc->conn.auth.state, AUTH_CHECKING);
    conn_gone(&mc->conn, "test");
    harness_turns(h);
    assert_true(mailbox_wait(&h->w.mb, 10000) > 0); /* the outcome finds nobody */
}

static void the_time_that_a_login_is_with_us_is_not_the_clients(void **state)
{
    struct harness *h = *state;
    struct lab *lab = *state;
    struct kp_sasl_authenticate_req *body = harness_body(h, KP_API_SASL_AUTHENTICATE);

    lab->opts.login_ms = 1000;
    struct mem_conn *slow = new_conn(h);
    struct mem_conn *mc = new_conn(h);
    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    body->auth_bytes = span_of("\0acme/a\0old token", 17);
    harness_send(mc, KP_API_SASL_AUTHENTICATE, 2, 1, body);
    assert_int_equal(mc->conn.auth.state, AUTH_CHECKING);
    h->now_ms += 1000; /* of a wait after failures of the address, say */
    conn_deadlines(&mc->conn, h->now_ms);
    conn_deadlines(&slow->conn, h->now_ms);
    assert_int_equal(slow->conn.state, CONN_CLOSED);
    wait_login(h, mc);
    struct kp_sasl_authenticate_resp *resp = harness_decode(mc, KP_API_SASL_AUTHENTICATE, 2, 1);
    assert_int_equal(resp->error_code, 0);
    conn_deadlines(&mc->conn, h->now_ms);
    assert_int_equal(mc->conn.state, CONN_READING);
}

static void no_frame_is_taken_while_a_login_is_checked(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = new_conn(h);
    struct kp_sasl_authenticate_req *body = harness_body(h, KP_API_SASL_AUTHENTICATE);
    struct kp_metadata_req *metadata = harness_body(h, KP_API_METADATA);

    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    body->auth_bytes = span_of("\0acme/a\0wrong", 13);
    struct blob *one = harness_frame(h, KP_API_SASL_AUTHENTICATE, 2, 1, body);
    struct blob *two = harness_frame(h, KP_API_METADATA, 9, 2, metadata);
    assert_int_equal(evbuffer_add(mc->conn.in, one->data, one->len), 0);
    mem_conn_feed(mc, two->data, two->len);
    assert_int_equal(mc->conn.queue_n, 1);
    assert_false(mc->reading);
    wait_login(h, mc);
    blob_unref(one);
    blob_unref(two);
    harness_turns(h);
    struct span frame;
    assert_true(harness_take(mc, &frame));
    assert_int_equal(mc->conn.state, CONN_CLOSED);
    assert_int_equal(evbuffer_get_length(mc->conn.out), 0); /* no answer to the second */
}

static void no_secret_stays_in_the_input_buffer(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = new_conn(h);
    struct kp_sasl_authenticate_req *body = harness_body(h, KP_API_SASL_AUTHENTICATE);
    struct evbuffer_iovec run;

    assert_int_equal(shake(mc, 1, "PLAIN")->error_code, 0);
    body->auth_bytes = span_of("\0acme/a\0old token", 17);
    struct blob *frame = harness_frame(h, KP_API_SASL_AUTHENTICATE, 2, 1, body);
    assert_int_equal(evbuffer_add(mc->conn.in, frame->data, frame->len), 0);
    assert_int_equal(evbuffer_add(mc->conn.in, "\0", 1), 0); /* keeps the chain alive */
    assert_int_equal(evbuffer_peek(mc->conn.in, -1, NULL, &run, 1), 1);
    const uint8_t *at = run.iov_base;
    conn_input(&mc->conn);
    for (size_t i = 4; i < frame->len; i++)
        assert_int_equal(at[i], 0);
    blob_unref(frame);
    wait_login(h, mc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_served_before_the_login, setup, teardown),
        cmocka_unit_test_setup_teardown(the_three_that_open_the_door_are_served, setup, teardown),
        cmocka_unit_test_setup_teardown(both_tokens_of_a_rotation_are_good, setup, teardown),
        cmocka_unit_test_setup_teardown(a_task_that_goes_takes_its_connections_with_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_session_ends_with_its_lifetime, setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_that_closes_in_its_login_takes_nothing_along,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_time_that_a_login_is_with_us_is_not_the_clients, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_frame_is_taken_while_a_login_is_checked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_secret_stays_in_the_input_buffer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
