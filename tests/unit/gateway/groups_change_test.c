/* Resets of groups: what a plan names, what is set of it, and what a change in between does. */
#include "tests/unit/gateway/groups_lab.h"

#include "gateway/groups/groups_report.h"
#include "kafka_proto/kp_messages.h"

#define LOG_START 100
#define LOG_END   900

struct asked {
    struct groups_ask ask; /* first member */
    struct arena arena;
    bool answered;
};

static void on_answer(struct groups_ask *ask)
{
    ((struct asked *)ask)->answered = true;
}

static void asked_init(struct asked *a, struct groups_lab *lab, enum groups_ask_kind kind)
{
    *a = (struct asked){.ask = {.kind = kind,
                                .scope = span_str("acme/task"),
                                .group = span_str("g"),
                                .partition = -1,
                                .ex = &lab->h.w.mb.ex,
                                .done = on_answer}};
    arena_init(&a->arena, 65536);
    a->ask.arena = &a->arena;
    wr_init(&a->ask.out, 65536);
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
    wr_fini(&a->ask.out);
    arena_fini(&a->arena);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_names_all_partitions_and_changes_nothing),
        cmocka_unit_test(a_reset_to_each_sets_what_it_is_told_within_the_log),
        cmocka_unit_test(offsets_that_were_found_in_an_older_epoch_are_not_set),
        cmocka_unit_test(a_group_that_got_a_member_meanwhile_is_not_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
