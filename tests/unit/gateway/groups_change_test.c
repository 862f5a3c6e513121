/*
 * Resets and deletions of groups: what a plan names, what is set of it, what a change in between
 * does, and the same by the handlers of the admin listener.
 */
#include "tests/unit/gateway/groups_lab.h"

#include <event2/bufferevent.h>

#include "gateway/admin_int.h"
#include "gateway/groups/groups_report.h"
#include "gateway/http_int.h"
#include "kafka_proto/kp_messages.h"

#define LOG_START 100
#define LOG_END   900

struct asked {
    struct groups_ask ask; /* first member */
    bool answered;
};

static void on_answer(struct groups_ask *ask)
{
    ((struct asked *)ask)->answered = true;
}

static void asked_init(struct asked *a, struct groups_lab *lab, enum groups_ask_kind kind)
{
    groups_ask_init(&a->ask, kind, &lab->h.w.mb.ex, on_answer);
    a->ask.scope = span_str("acme/task");
    a->ask.group = span_str("g");
}

static int ask_now(struct asked *a, struct groups_lab *lab)
{
    a->answered = false;
    groups_ask(lab->gs, &a->ask);
    lab_run(lab);
    assert_true(a->answered);
    return a->ask.status;
}

static void asked_fini(struct asked *a)
{
    groups_ask_fini(&a->ask);
}

static void lab_with_commits(struct groups_lab *lab)
{
    const struct jc_heads heads = {
        .first = LOG_START, .log_start = LOG_START, .content_end = LOG_END, .write_head = LOG_END};

    groups_lab_init(lab);
    gw_part_update(lab->part, &heads);
    assert_int_equal(lab_commit_at(lab, "g", NOBODY, "t", 0, 200, -1, ""), 0);
    assert_int_equal(lab_commit_at(lab, "g", NOBODY, "u", 1, 300, -1, ""), 0);
}

static void a_plan_names_all_partitions_and_changes_nothing(void **arg)
{
    struct groups_lab lab;
    struct asked a;

    (void)arg;
    lab_with_commits(&lab);
    asked_init(&a, &lab, GROUPS_ASK_PLAN);
    assert_int_equal(ask_now(&a, &lab), 200);
    assert_int_equal(a.ask.each_n, 2 * LAB_PARTS);
    assert_string_equal(a.ask.each[0].topic, "t");
    assert_string_equal(a.ask.each[LAB_PARTS].topic, "u");
    assert_int_equal(a.ask.each[1].partition, 1);
    assert_int_equal(a.ask.each[1].epoch, 1);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 200);
    a.ask.topic = span_str("u");
    a.ask.partition = 1;
    assert_int_equal(ask_now(&a, &lab), 200);
    assert_int_equal(a.ask.each_n, 1);
    a.ask.partition = LAB_PARTS; /* "nothing to do" would hide a slip of the finger */
    assert_int_equal(ask_now(&a, &lab), 404);
    a.ask.topic = span_str("no");
    a.ask.partition = -1;
    assert_int_equal(ask_now(&a, &lab), 404);
    asked_fini(&a);
    groups_lab_fini(&lab);
}

static void a_reset_to_each_sets_what_it_is_told_within_the_log(void **arg)
{
    struct groups_lab lab;
    struct asked a;

    (void)arg;
    lab_with_commits(&lab);
    asked_init(&a, &lab, GROUPS_ASK_PLAN);
    assert_int_equal(ask_now(&a, &lab), 200);
    a.ask.kind = GROUPS_ASK_RESET;
    a.ask.to = GROUPS_TO_EACH;
    a.ask.each[0].offset = 5;
    a.ask.each[1].offset = 444;
    a.ask.each[2].offset = 5000;
    a.ask.each_n = 3;
    assert_int_equal(ask_now(&a, &lab), 200); /* dry */
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 200);
    a.ask.execute = true;
    assert_int_equal(ask_now(&a, &lab), 200);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, LOG_START);
        assert_int_equal(lab_read_at(&lab, "g", "t", 1).offset, 444);
        assert_int_equal(lab_read_at(&lab, "g", "u", 0).offset, LOG_END);
        assert_int_equal(lab_read_at(&lab, "g", "u", 1).offset, 300); /* was not told */
        lab_reopen(&lab);
    }
    asked_fini(&a);
    groups_lab_fini(&lab);
}

static void offsets_that_were_found_in_an_older_epoch_are_not_set(void **arg)
{
    struct groups_lab lab;
    struct asked a;

    (void)arg;
    lab_with_commits(&lab);
    asked_init(&a, &lab, GROUPS_ASK_PLAN);
    assert_int_equal(ask_now(&a, &lab), 200);
    for (size_t i = 0; i < a.ask.each_n; i++)
        a.ask.each[i].offset = 500;
    lab.epochs[0] = 2;
    lab_view(&lab);
    a.ask.kind = GROUPS_ASK_RESET;
    a.ask.to = GROUPS_TO_EACH;
    a.ask.execute = true;
    assert_int_equal(ask_now(&a, &lab), 200);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_read_at(&lab, "g", "u", 1).offset, 500);
    asked_fini(&a);
    groups_lab_fini(&lab);
}

static void a_group_that_got_a_member_meanwhile_is_not_reset(void **arg)
{
    struct groups_lab lab;
    struct asked a;

    (void)arg;
    lab_with_commits(&lab);
    asked_init(&a, &lab, GROUPS_ASK_PLAN);
    assert_int_equal(ask_now(&a, &lab), 200);
    (void)lab_member(&lab, "g");
    a.ask.kind = GROUPS_ASK_RESET;
    a.ask.to = GROUPS_TO_EACH;
    a.ask.execute = true;
    assert_int_equal(ask_now(&a, &lab), 409);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 200);
    asked_fini(&a);
    groups_lab_fini(&lab);
}

/* What waits in front of it in the store takes the topic out of the group's memory. */
static void a_reset_of_all_topics_stands_behind_a_deletion_of_their_offsets(void **arg)
{
    struct groups_lab lab;
    struct asked a;

    (void)arg;
    lab_with_commits(&lab);
    asked_init(&a, &lab, GROUPS_ASK_RESET);
    a.ask.to = GROUPS_TO_LATEST;
    a.ask.execute = true;
    lab_delete_offset_send(&lab, "g", "t", 0, 9);
    a.answered = false;
    groups_ask(lab.gs, &a.ask);
    lab_run(&lab);
    const struct kp_offset_delete_resp *gone = harness_decode(lab.mc, KP_API_OFFSET_DELETE, 0, 9);
    assert_int_equal(gone->error_code, 0);
    assert_true(a.answered);
    assert_int_equal(a.ask.status, 200);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, LOG_END);
        assert_int_equal(lab_read_at(&lab, "g", "u", 1).offset, LOG_END);
        lab_reopen(&lab);
    }
    asked_fini(&a);
    groups_lab_fini(&lab);
}

static void a_static_join(struct groups_lab *lab, int32_t correlation)
{
    struct kp_join_group_req *req = lab_join_body(lab, "g", "");

    req->group_instance_id = span_str("i");
    harness_send(lab->mc, KP_API_JOIN_GROUP, 5, correlation, req);
}

static void a_static_leave(struct groups_lab *lab, int32_t correlation)
{
    struct kp_leave_group_req *req = harness_body(&lab->h, KP_API_LEAVE_GROUP);

    req->group_id = span_str("g");
    req->members = kp_array(&kp_leave_group_req_members_desc, &lab->h.arena, 1);
    req->members_n = 1;
    req->members->group_instance_id = span_str("i");
    harness_send(lab->mc, KP_API_LEAVE_GROUP, 3, correlation, req);
}

/* The answer of the join waits for the group's row, which waits for the deletion. */
static void a_join_during_a_deletion_is_answered_whether_or_not_it_stays(void **arg)
{
    (void)arg;
    for (int stays = 0; stays < 2; stays++) {
        struct groups_lab lab;

        lab_with_commits(&lab);
        lab_delete_send(&lab, "g", 8);
        a_static_join(&lab, 9);
        if (!stays)
            a_static_leave(&lab, 10);
        lab_run(&lab);
        const struct kp_delete_groups_resp *gone =
            harness_decode(lab.mc, KP_API_DELETE_GROUPS, 1, 8);
        assert_int_equal(gone->results->error_code, 0);
        const struct kp_join_group_resp *joined = harness_decode(lab.mc, KP_API_JOIN_GROUP, 5, 9);
        assert_int_equal(joined->error_code, 0);
        assert_int_equal(joined->generation_id, 1);
        if (!stays)
            (void)harness_decode(lab.mc, KP_API_LEAVE_GROUP, 3, 10);
        assert_int_equal(lab_read_all(&lab, "g"), 0);
        lab_reopen(&lab);
        joined = lab_join(&lab, "g", "");
        assert_int_equal(joined->generation_id, stays ? 2 : 3); /* those before were stored */
        assert_int_equal(lab_read_all(&lab, "g"), 0);
        groups_lab_fini(&lab);
    }
}

/* --- by the admin listener --- */

/* The handler's answer to one request, without a socket: its status and body. */
static int admin_ask(struct groups_lab *lab, admin_handler *handle, const char *uri, char *body,
                     size_t bytes)
{
    struct http_server server = {.opts = {.base = lab->h.w.base, .clock = &lab->h.clock}};
    struct http_conn c = {.s = &server};
    struct admin_http a = {.host = {.control = &lab->h.control, .shared = &lab->h.shared}};
    struct admin_rq rq = {.a = &a};
    int status = 0;

    LIST_INIT(&a.calls);
    LIST_INIT(&server.conns);
    assert_non_null(c.bev = bufferevent_socket_new(lab->h.w.base, -1, 0));
    assert_non_null(c.rq = rq.req = http_rq_new(&c));
    rq.req->head.keep_alive = true;
    rq.req->handed = true;
    arena_init(&rq.arena, 65536);
    assert_int_equal(admin_target_parse(uri, &rq.arena, &rq.target), 0);
    handle(&rq);
    arena_fini(&rq.arena); /* as the listener does, while the call goes on */
    lab_run(lab);
    harness_settle(&lab->h);
    assert_int_equal(a.busy, 0);
    assert_int_equal(server.rqs_n, 0);
    struct evbuffer *out = bufferevent_get_output(c.bev);
    size_t n = evbuffer_get_length(out);
    assert_true(n > 12 && n < bytes);
    assert_int_equal(evbuffer_unfreeze(out, 1), 0);
    assert_int_equal(evbuffer_remove(out, body, n), (int)n);
    body[n] = '\0';
    status = (body[9] - '0') * 100 + (body[10] - '0') * 10 + body[11] - '0';
    bufferevent_free(c.bev);
    return status;
}

static void the_admin_listener_resets_all_topics_and_deletes(void **arg)
{
    static const char base[] = "/v1/groups/g/reset?task=acme/task&to=";
    struct groups_lab lab;
    char uri[128], body[4096];

    (void)arg;
    lab_with_commits(&lab);
    snprintf(uri, sizeof uri, "%slatest", base);
    assert_int_equal(admin_ask(&lab, admin_post_group_reset, uri, body, sizeof body), 200);
    assert_non_null(strstr(body, "{\"topic\":\"t\",\"partition\":0,\"from\":200,\"to\":900}"));
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 200);
    snprintf(uri, sizeof uri, "%slatest&execute=true", base);
    assert_int_equal(admin_ask(&lab, admin_post_group_reset, uri, body, sizeof body), 200);
    assert_non_null(strstr(body, "\"executed\":true"));
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, LOG_END);
    assert_int_equal(lab_read_at(&lab, "g", "u", 1).offset, LOG_END);
    snprintf(uri, sizeof uri, "%s150&topic=u&partition=0&execute=true", base);
    assert_int_equal(admin_ask(&lab, admin_post_group_reset, uri, body, sizeof body), 200);
    assert_int_equal(lab_read_at(&lab, "g", "u", 0).offset, 150);
    snprintf(uri, sizeof uri, "%s150&topic=no", base);
    assert_int_equal(admin_ask(&lab, admin_post_group_reset, uri, body, sizeof body), 404);
    const char *one = "/v1/groups/g?task=acme/task";
    assert_int_equal(admin_ask(&lab, admin_get_groups, one, body, sizeof body), 200);
    assert_int_equal(admin_ask(&lab, admin_get_groups, "/v1/groups", body, sizeof body), 200);
    assert_int_equal(admin_ask(&lab, admin_delete_group, one, body, sizeof body), 200);
    assert_int_equal(admin_ask(&lab, admin_get_groups, one, body, sizeof body), 404);
    groups_lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_names_all_partitions_and_changes_nothing),
        cmocka_unit_test(a_reset_to_each_sets_what_it_is_told_within_the_log),
        cmocka_unit_test(offsets_that_were_found_in_an_older_epoch_are_not_set),
        cmocka_unit_test(a_group_that_got_a_member_meanwhile_is_not_reset),
        cmocka_unit_test(a_reset_of_all_topics_stands_behind_a_deletion_of_their_offsets),
        cmocka_unit_test(a_join_during_a_deletion_is_answered_whether_or_not_it_stays),
        cmocka_unit_test(the_admin_listener_resets_all_topics_and_deletes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
