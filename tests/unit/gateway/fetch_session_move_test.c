/* Sessions whose client comes back on another worker. */
#include "tests/unit/gateway/fetch_lab.h"

static struct worker pair[2];

static int setup(void **state)
{
    struct lab *lab = lab_new();

    (void)lab_topic(lab, "docs", 2);
    lab->shared.workers = pair;
    lab->shared.workers_n = 2;
    for (unsigned i = 0; i < 2; i++) {
        pair[i] = (struct worker){.id = i, .shared = &lab->shared, .base = event_base_new()};
        assert_int_equal(mailbox_init(&pair[i].mb), 0);
        assert_int_equal(fetch_worker_start(&pair[i]), 0);
        pair[i].view = gw_view_ref(lab->w.view);
    }
    *state = lab;
    return 0;
}

static int teardown(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        fetch_worker_stop(&pair[i]);
    for (unsigned i = 0; i < 2; i++) {
        mailbox_fini(&pair[i].mb);
        event_base_free(pair[i].base);
        gw_view_unref(pair[i].view);
    }
    lab_free(*state);
    return 0;
}

static void run_all(void)
{
    while (mailbox_drain(&pair[0].mb) + mailbox_drain(&pair[1].mb) > 0)
        ;
}

static struct lab_request *request(struct lab *lab, unsigned worker, int32_t id, int32_t epoch)
{
    struct lab_request *r = lab_fetch_new(lab, 12);

    r->rq.w = &pair[worker];
    r->body.fetch.session_id = id;
    r->body.fetch.session_epoch = epoch;
    return r;
}

static int16_t finish(struct lab *lab, struct lab_request *r)
{
    lab_send(r);
    while (!r->rq.done) {
        run_all();
        if (!r->rq.done)
            (void)mailbox_wait(&r->rq.w->mb, 10);
    }
    lab_drop(r);
    return lab_resp(lab)->error_code;
}

static int32_t open_session(struct lab *lab, unsigned worker)
{
    struct lab_request *r = request(lab, worker, 0, 0);

    lab_want(lab, r, 0, 0, 0);
    lab_want(lab, r, 0, 1, 0);
    assert_int_equal(finish(lab, r), 0);
    assert_int_equal((uint32_t)lab_resp(lab)->session_id % 2, worker);
    return lab_resp(lab)->session_id;
}

static size_t count(unsigned worker)
{
    return fetch_sessions_count(pair[worker].fetch->sessions);
}

static void a_session_follows_its_client(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);

    assert_int_equal(finish(lab, request(lab, 0, id, 1)), 0);
    assert_int_equal(lab_resp(lab)->session_id, id);
    assert_int_equal(lab_resp(lab)->responses_n, 0);
    assert_int_equal(count(0), 1);
    assert_int_equal(count(1), 0);
    lab_doc(lab, 0, 1, 100);
    lab_heads(lab);
    run_all();
    assert_int_equal(finish(lab, request(lab, 0, id, 2)), 0);
    assert_true(lab_part(lab, 0, 1)->records.in.n > 0);
    assert_null(lab_part(lab, 0, 0));
}

static void an_unknown_or_foreign_session_is_unknown_everywhere(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);

    assert_int_equal(finish(lab, request(lab, 0, id + 2, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    lab_principal = "mallory";
    assert_int_equal(finish(lab, request(lab, 0, id, 1)), KE_FETCH_SESSION_ID_NOT_FOUND);
    lab_principal = "";
    assert_int_equal(count(1), 1);
    assert_int_equal(finish(lab, request(lab, 1, id, 1)), 0);
}

static void a_session_in_use_stays_where_it_is(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);
    struct lab_request *r = request(lab, 1, id, 1);

    r->body.fetch.max_wait_ms = 10000;
    lab_send(r);
    run_all();
    assert_int_equal(finish(lab, request(lab, 0, id, 2)), KE_FETCH_SESSION_ID_NOT_FOUND);
    assert_int_equal(count(1), 1);
    lab_drop(r);
}

static void a_full_request_closes_it_from_afar(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);
    struct lab_request *r = request(lab, 0, id, 0);

    lab_want(lab, r, 0, 0, 0);
    assert_int_equal(finish(lab, r), 0);
    run_all();
    assert_int_equal(count(0), 1);
    assert_int_equal(count(1), 0);
}

static void a_client_that_leaves_meanwhile_loses_nothing_but_the_answer(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);
    struct lab_request *r = request(lab, 0, id, 1);

    lab_send(r);
    assert_false(r->rq.done);
    lab_drop(r);
    run_all();
    assert_int_equal(count(0) + count(1), 1);
    assert_int_equal(finish(lab, request(lab, 0, id, 1)), 0);
}

static void a_new_view_does_not_disturb_who_asks(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1);
    struct lab_request *r = request(lab, 0, id, 1);

    lab_send(r);
    lab->topics[0].epoch = 2;
    lab_view(lab);
    for (unsigned i = 0; i < 2; i++) {
        const struct gw_view *old = pair[i].view;
        pair[i].view = gw_view_ref(lab->w.view);
        fetch_worker_view_changed(&pair[i], old);
        gw_view_unref(old);
    }
    while (!r->rq.done)
        run_all();
    assert_int_equal(lab_resp(lab)->error_code, 0);
    lab_drop(r);
}

static void a_stop_in_the_middle_frees_everything(void **state)
{
    struct lab *lab = *state;
    int32_t id = open_session(lab, 1), other = open_session(lab, 0);
    struct lab_request *a = request(lab, 0, id, 1), *b = request(lab, 1, other, 1);

    lab_send(a);
    lab_send(b);
    lab_drop(a);
    mailbox_drain(&pair[1].mb); /* one is on its way back */
    lab_drop(b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_session_follows_its_client),
        T(an_unknown_or_foreign_session_is_unknown_everywhere),
        T(a_session_in_use_stays_where_it_is),
        T(a_full_request_closes_it_from_afar),
        T(a_client_that_leaves_meanwhile_loses_nothing_but_the_answer),
        T(a_new_view_does_not_disturb_who_asks),
        T(a_stop_in_the_middle_frees_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
