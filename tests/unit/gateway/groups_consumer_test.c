/* The core of KIP-848 groups: joining, revoking before assigning, fencing, static members, topics
 * that change. */
#include "tests/unit/gateway/groups_consumer_lab.h"

#define ok(call) assert_int_equal((call), KE_NONE)

/* Everybody speaks until nothing changes. */
static void settle(struct lab *lab, struct lab_client *list, size_t n)
{
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < n; i++) {
            if (list[i].in)
                ok(client_beat(lab, &list[i], false));
        }
    }
    assert_string_equal(lab->g.ops->state(&lab->g), "Stable");
}

static void the_first_member_gets_everything_at_once(void **state)
{
    (void)state;
    struct lab *lab = lab_new(3);
    struct lab_client a;

    client_init(lab, &a, "a", "01");
    assert_string_equal(lab->g.ops->state(&lab->g), "Empty");
    ok(client_beat(lab, &a, true));
    assert_int_equal(a.epoch, 1);
    assert_int_equal(lab->g.generation, 1);
    assert_string_equal(client_owns(&a), "t0:0,1,2 t1:0,1,2");
    assert_string_equal(lab->g.ops->state(&lab->g), "Stable");
    ok(client_beat(lab, &a, false));
    assert_false(lab->answer.assignment);
    lab_free(lab);
}

/* Epoch 0 means "joins": a member that was told it would be refused at its next heartbeat. */
static void a_member_that_reads_nothing_has_an_epoch(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a;

    client_init(lab, &a, "a", "");
    ok(client_beat(lab, &a, true));
    assert_true(a.epoch > 0);
    ok(client_beat(lab, &a, false));
    assert_int_equal(client_count(&a), 0);
    lab_free(lab);
}

static void a_partition_is_revoked_before_another_member_gets_it(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4);
    struct lab_client a, b;

    client_init(lab, &a, "a", "0");
    client_init(lab, &b, "b", "0");
    ok(client_beat(lab, &a, true));
    ok(client_beat(lab, &b, true));
    assert_int_equal(b.epoch, 2);
    assert_string_equal(client_owns(&b), ""); /* nothing is free yet */
    struct lab_client old = a;
    ok(client_beat(lab, &a, false));
    assert_int_equal(a.epoch, 1); /* stays until it has given up */
    assert_string_equal(client_owns(&a), "t0:0,1");
    assert_string_equal(lab->g.ops->state(&lab->g), "Reconciling");
    /* It still reports all four: nothing moves. */
    struct lab_client slow = old;
    slow.epoch = a.epoch;
    ok(client_beat(lab, &slow, false));
    assert_false(lab->answer.assignment);
    ok(client_beat(lab, &b, false));
    assert_string_equal(client_owns(&b), "");
    ok(client_beat(lab, &a, false));
    assert_int_equal(a.epoch, 2);
    ok(client_beat(lab, &b, false));
    assert_string_equal(client_owns(&b), "t0:2,3");
    assert_string_equal(lab->g.ops->state(&lab->g), "Stable");
    lab_free(lab);
}

static void a_member_that_does_not_give_up_in_time_is_sent_away(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a, b;

    client_init(lab, &a, "a", "0");
    client_init(lab, &b, "b", "0");
    ok(client_beat(lab, &a, true));
    ok(client_beat(lab, &b, true));
    struct lab_client stuck = a;
    ok(client_beat(lab, &stuck, false));
    for (int i = 0; i < 3; i++) {
        stuck = a; /* reports everything, again and again */
        lab_tick(lab, 3000);
        ok(client_beat(lab, &stuck, false));
    }
    lab_tick(lab, 1000); /* 10 s rebalance timeout */
    assert_int_equal(client_beat(lab, &a, false), KE_UNKNOWN_MEMBER_ID);
    ok(client_beat(lab, &b, false));
    assert_string_equal(client_owns(&b), "t0:0,1");
    lab_free(lab);
}

static void a_silent_member_is_gone_after_its_session(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a, b;

    client_init(lab, &a, "a", "0");
    client_init(lab, &b, "b", "0");
    ok(client_beat(lab, &a, true));
    lab_tick(lab, 30000);
    ok(client_beat(lab, &b, true));
    lab_tick(lab, 14999);
    ok(client_beat(lab, &b, false));
    assert_string_equal(client_owns(&b), "");
    lab_tick(lab, 1);
    ok(client_beat(lab, &b, false));
    assert_string_equal(client_owns(&b), "t0:0,1");
    assert_int_equal(client_beat(lab, &a, false), KE_UNKNOWN_MEMBER_ID);
    lab_tick(lab, 45000);
    assert_string_equal(lab->g.ops->state(&lab->g), "Empty");
    assert_true(lab->g.ops->empty(&lab->g));
    lab_free(lab);
}

static void a_leaving_member_frees_its_partitions(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client c[2];

    client_init(lab, &c[0], "a", "0");
    client_init(lab, &c[1], "b", "0");
    ok(client_beat(lab, &c[0], true));
    ok(client_beat(lab, &c[1], true));
    settle(lab, c, 2);
    int32_t epoch = lab->g.generation;
    ok(client_leave(lab, &c[0], CONSUMER_LEAVES));
    assert_int_equal(lab->answer.epoch, -1);
    assert_int_equal(lab->g.generation, epoch + 1);
    ok(client_beat(lab, &c[1], false));
    assert_string_equal(client_owns(&c[1]), "t0:0,1");
    assert_int_equal(client_leave(lab, &c[0], CONSUMER_LEAVES), KE_UNKNOWN_MEMBER_ID);
    lab_free(lab);
}

static void epochs_other_than_the_members_are_fenced(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4);
    struct lab_client c[2], lost;

    client_init(lab, &c[0], "a", "0");
    client_init(lab, &c[1], "b", "0");
    ok(client_beat(lab, &c[0], true));
    ok(client_beat(lab, &c[1], true));
    ok(client_beat(lab, &c[0], false));
    lost = c[0]; /* the answer to the next one is lost */
    ok(client_beat(lab, &c[0], false));
    assert_int_equal(c[0].epoch, lost.epoch + 1);
    ok(client_beat(lab, &lost, false)); /* the epoch before, and nothing that it may not have */
    assert_int_equal(lost.epoch, c[0].epoch);
    lost = c[0];
    lost.epoch--;
    lost.owns[0][3] = true;
    lost.ids[0] = lab->topics[0].id;
    assert_int_equal(client_beat(lab, &lost, false), KE_FENCED_MEMBER_EPOCH);
    lost.epoch = c[0].epoch + 1;
    assert_int_equal(client_beat(lab, &lost, false), KE_FENCED_MEMBER_EPOCH);
    client_init(lab, &lost, "nobody", "0");
    lost.epoch = 1;
    assert_int_equal(client_beat(lab, &lost, false), KE_UNKNOWN_MEMBER_ID);
    lab_free(lab);
}

static void a_member_that_joins_again_begins_with_nothing(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4);
    struct lab_client c[2];

    client_init(lab, &c[0], "a", "0");
    client_init(lab, &c[1], "b", "0");
    ok(client_beat(lab, &c[0], true));
    ok(client_beat(lab, &c[1], true));
    c[0].epoch = 0; /* fenced, or its poll took too long: it dropped everything */
    memset(c[0].owns, 0, sizeof c[0].owns);
    ok(client_beat(lab, &c[0], true));
    assert_int_equal(c[0].epoch, 2);
    assert_string_equal(client_owns(&c[0]), "t0:0,1");
    ok(client_beat(lab, &c[1], false));
    assert_string_equal(client_owns(&c[1]), "t0:2,3");
    lab_free(lab);
}

static void a_static_member_finds_its_partitions_when_it_comes_back(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4);
    struct lab_client c[2], again;

    client_init(lab, &c[0], "a", "0");
    client_init(lab, &c[1], "b", "0");
    snprintf(c[0].instance, sizeof c[0].instance, "i");
    ok(client_beat(lab, &c[0], true));
    ok(client_beat(lab, &c[1], true));
    settle(lab, c, 2);
    int32_t epoch = lab->g.generation;
    again = c[0];
    snprintf(again.id, sizeof again.id, "a2");
    again.epoch = 0;
    assert_int_equal(client_beat(lab, &again, true), KE_UNRELEASED_INSTANCE_ID);
    ok(client_leave(lab, &c[0], CONSUMER_STATIC_LEAVES));
    assert_int_equal(lab->answer.epoch, -2);
    ok(client_beat(lab, &c[1], false));
    assert_string_equal(client_owns(&c[1]), "t0:2,3"); /* nothing moved */
    ok(client_beat(lab, &again, true));
    assert_string_equal(client_owns(&again), "t0:0,1");
    assert_int_equal(lab->g.generation, epoch);
    c[0].epoch = epoch; /* the process before is fenced */
    assert_int_equal(client_beat(lab, &c[0], false), KE_FENCED_INSTANCE_ID);
    /* Away for longer than its session: gone. */
    ok(client_leave(lab, &again, CONSUMER_STATIC_LEAVES));
    lab_tick(lab, 40000);
    ok(client_beat(lab, &c[1], false));
    lab_tick(lab, 5000);
    ok(client_beat(lab, &c[1], false));
    assert_string_equal(client_owns(&c[1]), "t0:0,1,2,3");
    lab_free(lab);
}

static void illegal_heartbeats_change_nothing(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a;

    client_init(lab, &a, "a", "0");
    a.hb.rebalance_ms = -1;
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    assert_true(lab->answer.message[0] != '\0');
    client_init(lab, &a, "a", "0");
    a.hb.has_names = false;
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    client_init(lab, &a, "a", "0");
    a.hb.rack_id = span_str("");
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    client_init(lab, &a, "a", "0");
    a.epoch = -3;
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    a.epoch = CONSUMER_STATIC_LEAVES;
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    client_init(lab, &a, "", "0");
    a.hb.makes_own_id = true;
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REQUEST);
    client_init(lab, &a, "a", "0");
    a.hb.assignor = span_str("sticky");
    assert_int_equal(client_beat(lab, &a, true), KE_UNSUPPORTED_ASSIGNOR);
    client_init(lab, &a, "a", "");
    a.hb.regex = span_str("t(");
    assert_int_equal(client_beat(lab, &a, true), KE_INVALID_REGULAR_EXPRESSION);
    assert_true(lab->answer.message[0] != '\0');
    lab->limits.max_members = 0;
    client_init(lab, &a, "a", "0");
    assert_int_equal(client_beat(lab, &a, true), KE_GROUP_MAX_SIZE_REACHED);
    assert_true(lab->g.ops->empty(&lab->g));
    lab_free(lab);
}

static void a_pattern_takes_in_topics_that_come_later(void **state)
{
    (void)state;
    struct lab *lab = lab_new(1);
    struct lab_client a;

    lab->source.n = 2;
    client_init(lab, &a, "a", "");
    a.hb.has_names = false;
    a.hb.regex = span_str("t[1-9]");
    ok(client_beat(lab, &a, true));
    assert_string_equal(client_owns(&a), "t1:0");
    lab->source.n = 3;
    lab_topic_changed(lab, 2, false);
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t1:0 t2:0");
    assert_true(lab->g.ops->subscribed(&lab->g, span_str("t2")));
    assert_false(lab->g.ops->subscribed(&lab->g, span_str("t0")));
    /* Names and a pattern together; then the pattern goes. */
    a.hb.has_names = true;
    a.hb.names_n = 1;
    a.names[0] = span_str("t0");
    ok(client_beat(lab, &a, true));
    assert_string_equal(client_owns(&a), "t0:0 t1:0 t2:0");
    a.hb.regex = span_str("");
    ok(client_beat(lab, &a, true));
    ok(client_beat(lab, &a, true));
    assert_string_equal(client_owns(&a), "t0:0");
    lab_free(lab);
}

/* One thread serves all groups: what was matched once is not matched again. */
static void a_pattern_meets_each_name_once(void **state)
{
    (void)state;
    struct lab *lab = lab_new(1);
    struct lab_client a, b;

    lab->source.n = 3;
    client_init(lab, &a, "a", "");
    a.hb.regex = span_str("t[1-4]");
    ok(client_beat(lab, &a, true));
    assert_string_equal(client_owns(&a), "t1:0 t2:0");
    /* A second match of t1 would find out. */
    TAILQ_FIRST(&lab->g.consumer->regexes)->seen_hits[1] = false;
    lab->source.n = 4;
    lab_topic_changed(lab, 3, false);
    ok(client_beat(lab, &a, false));
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t2:0 t3:0");
    client_init(lab, &b, "b", "");
    b.hb.regex = span_str("t[1-4]");
    ok(client_beat(lab, &b, true));
    b.hb.regex = span_str("t0");
    ok(client_beat(lab, &b, true));
    struct lab_client *list[] = {&a, &b};
    for (int i = 0; i < 6; i++)
        ok(client_beat(lab, list[i % 2], true));
    assert_string_equal(client_owns(&a), "t2:0 t3:0");
    assert_string_equal(client_owns(&b), "t0:0");
    lab_free(lab);
}

static void a_group_has_few_different_patterns(void **state)
{
    (void)state;
    struct lab *lab = lab_new(1);
    struct lab_client c[CONSUMER_PATTERNS_MAX + 1];
    char text[CONSUMER_PATTERNS_MAX + 1][32];

    for (int i = 0; i <= CONSUMER_PATTERNS_MAX; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%d", i);
        snprintf(text[i], sizeof text[i], "t%d|x%d", i % LAB_TOPICS, i);
        client_init(lab, &c[i], id, "");
        c[i].hb.regex = span_str(text[i]);
        assert_int_equal(client_beat(lab, &c[i], true),
                         i < CONSUMER_PATTERNS_MAX ? KE_NONE : KE_GROUP_MAX_SIZE_REACHED);
    }
    c[CONSUMER_PATTERNS_MAX].hb.regex = span_str(text[0]);
    ok(client_beat(lab, &c[CONSUMER_PATTERNS_MAX], true));
    c[1].hb.regex = span_str(""); /* one less */
    ok(client_beat(lab, &c[1], true));
    c[CONSUMER_PATTERNS_MAX].hb.regex = span_str("z");
    ok(client_beat(lab, &c[CONSUMER_PATTERNS_MAX], true));
    lab_free(lab);
}

static void a_topic_without_partitions_holds_up_nobody(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a;

    lab->topics[1].partitions = 0;
    client_init(lab, &a, "a", "01");
    ok(client_beat(lab, &a, true));
    assert_string_equal(client_owns(&a), "t0:0,1");
    lab->topics[1].partitions = 1;
    lab_topic_changed(lab, 1, false);
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t0:0,1 t1:0");
    lab->topics[1].partitions = 3;
    lab_topic_changed(lab, 1, false);
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t0:0,1 t1:0,1,2");
    lab_free(lab);
}

static void a_raised_epoch_revokes_and_assigns_anew(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client a;

    client_init(lab, &a, "a", "01");
    ok(client_beat(lab, &a, true));
    struct group_speaker before = client_speaks(&a);
    lab_topic_changed(lab, 1, true);
    /* Commits without an epoch belong to what the topic was before. */
    assert_int_equal(lab->g.ops->check_raised(&lab->g, &before, span_str("t1")),
                     KE_STALE_MEMBER_EPOCH);
    ok(lab->g.ops->check_raised(&lab->g, &before, span_str("t0")));
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t0:0,1");
    ok(client_beat(lab, &a, false));
    assert_string_equal(client_owns(&a), "t0:0,1 t1:0,1");
    struct group_speaker after = client_speaks(&a);
    ok(lab->g.ops->check_raised(&lab->g, &after, span_str("t1")));
    assert_int_equal(lab->g.ops->check_raised(&lab->g, &before, span_str("t1")),
                     KE_STALE_MEMBER_EPOCH);
    assert_int_equal(lab->g.ops->check_commit(&lab->g, &before, lab->now), KE_STALE_MEMBER_EPOCH);
    ok(lab->g.ops->check_commit(&lab->g, &after, lab->now));
    lab_free(lab);
}

static void commits_and_fetches_are_checked_by_member_and_epoch(void **state)
{
    (void)state;
    struct lab *lab = lab_new(1);
    struct lab_client a;

    client_init(lab, &a, "a", "0");
    ok(client_beat(lab, &a, true));
    struct group_speaker who = client_speaks(&a);
    const struct group_speaker nobody = {{NULL, 0}, {NULL, 0}, -1};
    const struct group_speaker other = {span_str("x"), {NULL, 0}, 1};
    ok(lab->g.ops->check_commit(&lab->g, &who, lab->now));
    ok(lab->g.ops->check_fetch(&lab->g, &who, lab->now));
    ok(lab->g.ops->check_fetch(&lab->g, &nobody, lab->now));
    assert_int_equal(lab->g.ops->check_commit(&lab->g, &nobody, 0), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab->g.ops->check_fetch(&lab->g, &other, 0), KE_UNKNOWN_MEMBER_ID);
    who.generation++;
    assert_int_equal(lab->g.ops->check_commit(&lab->g, &who, lab->now), KE_STALE_MEMBER_EPOCH);
    assert_int_equal(lab->g.ops->check_fetch(&lab->g, &who, lab->now), KE_STALE_MEMBER_EPOCH);
    lab_free(lab);
}

static void the_assignor_that_most_ask_for_is_taken(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2);
    struct lab_client c[3];

    for (int i = 0; i < 3; i++) {
        client_init(lab, &c[i], (const char *[]){"a", "b", "c"}[i], "0");
        if (i > 0)
            c[i].hb.assignor = span_str("range");
        ok(client_beat(lab, &c[i], true));
    }
    assert_string_equal(consumer_assignor(lab->g.consumer), "range");
    settle(lab, c, 3);
    ok(client_leave(lab, &c[2], CONSUMER_LEAVES));
    ok(client_leave(lab, &c[1], CONSUMER_LEAVES));
    assert_string_equal(consumer_assignor(lab->g.consumer), "uniform");
    lab_free(lab);
}

static void an_operator_sends_a_member_away(void **state)
{
    (void)state;
    struct lab *lab = lab_new(1);
    struct lab_client a;
    struct group_out out;

    client_init(lab, &a, "a", "0");
    snprintf(a.instance, sizeof a.instance, "i");
    ok(client_beat(lab, &a, true));
    const struct group_speaker who = {{NULL, 0}, span_str("i"), -1};
    ok(lab->g.ops->leave(&lab->g, &who, lab->now, &out));
    assert_true(lab->g.ops->empty(&lab->g));
    assert_int_equal(lab->g.ops->leave(&lab->g, &who, lab->now, &out), KE_UNKNOWN_MEMBER_ID);
    lab_free(lab);
}

/* However the n-th allocation fails, the client tries again and all is well. */
static void out_of_memory_is_answered_and_mended_by_the_next_try(void **state)
{
    (void)state;
    int failed = 0;

    for (long n = 0; n < 60; n++) {
        struct lab *lab = lab_new(3);
        struct lab_client c[2];
        client_init(lab, &c[0], "a", "01");
        client_init(lab, &c[1], "b", "12");
        c[1].hb.regex = span_str("t[34]");
        ok(client_beat(lab, &c[0], true));
        mem_fail_after(n, 0);
        int16_t error = client_beat(lab, &c[1], true);
        mem_fail_after(-1, 0);
        if (error != KE_NONE) {
            assert_int_equal(error, KE_COORDINATOR_NOT_AVAILABLE);
            failed++;
            ok(client_beat(lab, &c[1], true));
        }
        settle(lab, c, 2);
        assert_int_equal(client_count(&c[0]) + client_count(&c[1]), 15);
        lab_free(lab);
    }
    assert_in_range(failed, 20, 59);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_member_gets_everything_at_once),
        cmocka_unit_test(a_member_that_reads_nothing_has_an_epoch),
        cmocka_unit_test(a_partition_is_revoked_before_another_member_gets_it),
        cmocka_unit_test(a_member_that_does_not_give_up_in_time_is_sent_away),
        cmocka_unit_test(a_silent_member_is_gone_after_its_session),
        cmocka_unit_test(a_leaving_member_frees_its_partitions),
        cmocka_unit_test(epochs_other_than_the_members_are_fenced),
        cmocka_unit_test(a_member_that_joins_again_begins_with_nothing),
        cmocka_unit_test(a_static_member_finds_its_partitions_when_it_comes_back),
        cmocka_unit_test(illegal_heartbeats_change_nothing),
        cmocka_unit_test(a_pattern_takes_in_topics_that_come_later),
        cmocka_unit_test(a_pattern_meets_each_name_once),
        cmocka_unit_test(a_group_has_few_different_patterns),
        cmocka_unit_test(a_topic_without_partitions_holds_up_nobody),
        cmocka_unit_test(a_raised_epoch_revokes_and_assigns_anew),
        cmocka_unit_test(commits_and_fetches_are_checked_by_member_and_epoch),
        cmocka_unit_test(the_assignor_that_most_ask_for_is_taken),
        cmocka_unit_test(an_operator_sends_a_member_away),
        cmocka_unit_test(out_of_memory_is_answered_and_mended_by_the_next_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
