/* The classic protocol's core: joins, generations, static members, time, raises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/gateway/group_lab.h"

static const char *state(struct group_lab *lab)
{
    return lab->g.ops->state(&lab->g);
}

/* One member, alone and stable. */
static struct ask *found(struct group_lab *lab, const char *client)
{
    struct ask *a = ask_join(lab, "", client, 3);

    assert_true(a->done);
    assert_int_equal(a->error, KE_NONE);
    char assign[128];
    snprintf(assign, sizeof assign, "%s=all", a->member);
    assert_int_equal(ask_sync(lab, a->member, a->generation, assign)->error, KE_NONE);
    assert_string_equal(state(lab), "Stable");
    return a;
}

static void a_member_alone_leads_and_gets_what_it_assigns(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = ask_join(&lab, "", "a", 3);
    assert_true(a->done);
    assert_int_equal(a->generation, 1);
    assert_string_equal(a->leader, a->member);
    assert_string_equal(a->protocol, "range");
    assert_int_equal(a->listed, 1);
    assert_string_equal(state(&lab), "CompletingRebalance");
    struct ask *s = ask_sync(&lab, a->member, 1, "a-1=p0");
    assert_string_equal(s->assignment, "p0");
    assert_string_equal(state(&lab), "Stable");
    assert_int_equal(lab_heartbeat(&lab, a->member, 1), KE_NONE);
    group_lab_fini(&lab);
}

static void a_member_without_an_id_is_given_one_first(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = ask_join(&lab, "", "a", 4);
    assert_int_equal(a->error, KE_MEMBER_ID_REQUIRED);
    assert_int_equal(classic_members(&lab.g), 0);
    assert_false(lab.g.ops->empty(&lab.g));
    struct ask *b = ask_join(&lab, a->new_id, "a", 4);
    assert_int_equal(b->error, KE_NONE);
    assert_string_equal(b->member, a->new_id);
    group_lab_fini(&lab);
}

static void an_id_that_was_handed_out_and_never_used_is_forgotten(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    (void)ask_join(&lab, "", "a", 4);
    lab_tick(&lab, lab.session_ms);
    assert_true(lab.g.ops->empty(&lab.g));
    assert_int_equal(ask_join(&lab, "a-1", "a", 4)->error, KE_UNKNOWN_MEMBER_ID);
    group_lab_fini(&lab);
}

/* Case 27. */
static void a_newcomer_waits_until_the_others_have_rejoined(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    assert_false(b->done);
    assert_string_equal(state(&lab), "PreparingRebalance");
    assert_int_equal(lab_heartbeat(&lab, a->member, 1), KE_REBALANCE_IN_PROGRESS);
    struct ask *a2 = ask_join(&lab, a->member, "a", 3);
    assert_true(a2->done && b->done);
    assert_int_equal(a2->generation, 2);
    assert_int_equal(b->generation, 2);
    assert_string_equal(b->leader, a->member);
    assert_int_equal(a2->listed, 2);
    assert_int_equal(b->listed, 0);
    struct ask *sb = ask_sync(&lab, b->member, 2, "");
    assert_false(sb->done);
    struct ask *sa = ask_sync(&lab, a->member, 2, "a-1=p0,b-2=p1");
    assert_string_equal(sa->assignment, "p0");
    assert_true(sb->done);
    assert_string_equal(sb->assignment, "p1");
    group_lab_fini(&lab);
}

static void who_does_not_rejoin_in_time_is_out(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    lab_tick(&lab, lab.rebalance_ms - 1);
    assert_false(b->done);
    lab_tick(&lab, 1);
    assert_true(b->done);
    assert_string_equal(b->leader, b->member);
    assert_int_equal(b->listed, 1);
    assert_int_equal(lab_heartbeat(&lab, a->member, 1), KE_UNKNOWN_MEMBER_ID);
    group_lab_fini(&lab);
}

/* Case 25: version 0 and a timeout of -1 leave the members their session to come back. */
static void without_a_rebalance_timeout_the_session_is_it(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = ask_join(&lab, "", "a", 0);
    char assign[128];
    snprintf(assign, sizeof assign, "%s=x", a->member);
    (void)ask_sync(&lab, a->member, 1, assign);
    lab.rebalance_ms = -1;
    struct ask *b = ask_join(&lab, "", "b", 1);
    lab_tick(&lab, lab.session_ms / 2);
    assert_int_equal(lab_heartbeat(&lab, a->member, 1), KE_REBALANCE_IN_PROGRESS);
    assert_false(b->done);
    struct ask *a2 = ask_join(&lab, a->member, "a", 0);
    assert_true(a2->done && b->done);
    assert_int_equal(b->generation, 2);
    assert_int_equal(lab.g.generation, 2);
    group_lab_fini(&lab);
}

static void a_session_that_ends_makes_the_others_rebalance(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    struct ask *a2 = ask_join(&lab, a->member, "a", 3);
    (void)ask_sync(&lab, b->member, 2, "");
    (void)ask_sync(&lab, a->member, 2, "a-1=x,b-2=y");
    assert_true(a2->done);
    lab_tick(&lab, lab.session_ms - 1);
    assert_int_equal(lab_heartbeat(&lab, a->member, 2), KE_NONE);
    lab_tick(&lab, 1); /* b was not heard of */
    assert_int_equal(lab_heartbeat(&lab, b->member, 2), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab_heartbeat(&lab, a->member, 2), KE_REBALANCE_IN_PROGRESS);
    struct ask *a3 = ask_join(&lab, a->member, "a", 3);
    assert_int_equal(a3->generation, 3);
    assert_int_equal(a3->listed, 1);
    group_lab_fini(&lab);
}

static void a_deadline_is_told_and_comes(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    (void)found(&lab, "a");
    assert_int_equal(lab.next_ms, lab.now_ms + lab.session_ms);
    lab_tick(&lab, lab.session_ms);
    assert_string_equal(state(&lab), "Empty");
    assert_int_equal(lab.next_ms, GROUP_NEVER);
    group_lab_fini(&lab);
}

static void a_member_that_asks_again_changes_nothing(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, a->member, "a", 3);
    /* the answer was lost: the same question in CompletingRebalance, and in Stable */
    struct ask *b2 = ask_join(&lab, b->member, "b", 3);
    assert_int_equal(b2->generation, 2);
    struct ask *a2 = ask_join(&lab, a->member, "a", 3);
    assert_int_equal(a2->generation, 2);
    assert_int_equal(a2->listed, 2);
    (void)ask_sync(&lab, a->member, 2, "a-1=x,b-2=y");
    struct ask *b3 = ask_join(&lab, b->member, "b", 3);
    assert_int_equal(b3->generation, 2);
    assert_string_equal(state(&lab), "Stable");
    assert_string_equal(ask_sync(&lab, b->member, 2, "")->assignment, "y");
    group_lab_fini(&lab);
}

static void other_topics_or_a_leader_that_joins_again_mean_a_rebalance(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *a2 = ask_join(&lab, a->member, "a", 3);
    assert_int_equal(a2->generation, 2);
    (void)ask_sync(&lab, a->member, 2, "a-1=x");
    struct ask *b = ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, a->member, "a", 3);
    (void)ask_sync(&lab, a->member, 3, "");
    assert_int_equal(b->generation, 3);
    lab.metadata = "other";
    struct ask *b2 = ask_join(&lab, b->member, "b", 3);
    assert_false(b2->done);
    assert_string_equal(state(&lab), "PreparingRebalance");
    group_lab_fini(&lab);
}

static void a_second_join_of_a_waiting_member_takes_the_first_ones_place(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    struct ask *b2 = ask_join(&lab, b->new_id, "b", 3);
    assert_true(b->done);
    assert_int_equal(b->error, KE_REBALANCE_IN_PROGRESS);
    assert_false(b2->done);
    (void)ask_join(&lab, a->member, "a", 3);
    assert_int_equal(b2->error, KE_NONE);
    assert_int_equal(classic_members(&lab.g), 2);
    group_lab_fini(&lab);
}

static void a_rebalance_during_sync_sends_all_back_to_join(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, a->member, "a", 3);
    struct ask *sb = ask_sync(&lab, b->member, 2, "");
    assert_false(sb->done);
    struct ask *c = ask_join(&lab, "", "c", 3);
    assert_int_equal(sb->error, KE_REBALANCE_IN_PROGRESS);
    assert_int_equal(ask_sync(&lab, a->member, 2, "a-1=x")->error, KE_REBALANCE_IN_PROGRESS);
    (void)ask_join(&lab, a->member, "a", 3);
    (void)ask_join(&lab, b->member, "b", 3);
    assert_int_equal(c->generation, 3);
    /* nobody gets an assignment of the generation before */
    assert_int_equal(ask_sync(&lab, b->member, 2, "")->error, KE_ILLEGAL_GENERATION);
    group_lab_fini(&lab);
}

static void who_joins_and_never_syncs_is_out_after_the_rebalance_timeout(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, a->member, "a", 3);
    struct ask *sb = ask_sync(&lab, b->member, 2, "");
    lab_tick(&lab, lab.rebalance_ms); /* the leader is silent */
    assert_int_equal(sb->error, KE_REBALANCE_IN_PROGRESS);
    struct ask *b2 = ask_join(&lab, b->member, "b", 3);
    assert_string_equal(b2->leader, b->member);
    assert_int_equal(b2->listed, 1);
    group_lab_fini(&lab);
}

static void the_protocol_that_most_prefer_among_those_of_all_is_chosen(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.limits.initial_delay_ms = 100;
    lab.protocols[0] = "sticky";
    lab.protocols[1] = "range";
    lab.protocols[2] = "roundrobin";
    struct ask *a = ask_join(&lab, "", "a", 3);
    lab.protocols[0] = "roundrobin";
    lab.protocols[1] = "range";
    lab.protocols[2] = NULL;
    (void)ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, "", "c", 3);
    lab_tick(&lab, 100);
    lab_tick(&lab, 100);
    assert_string_equal(a->protocol, "roundrobin");
    lab.protocols[0] = "sticky";
    lab.protocols[1] = NULL;
    assert_int_equal(ask_join(&lab, "", "d", 3)->error, KE_INCONSISTENT_GROUP_PROTOCOL);
    lab.protocols[0] = "range";
    lab.type = "connect";
    assert_int_equal(ask_join(&lab, "", "e", 3)->error, KE_INCONSISTENT_GROUP_PROTOCOL);
    group_lab_fini(&lab);
}

static void joins_that_say_too_little_are_refused(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.session_ms = 999;
    assert_int_equal(ask_join(&lab, "", "a", 3)->error, KE_INVALID_SESSION_TIMEOUT);
    lab.session_ms = 60001;
    assert_int_equal(ask_join(&lab, "", "a", 3)->error, KE_INVALID_SESSION_TIMEOUT);
    lab.session_ms = 10000;
    lab.type = "";
    assert_int_equal(ask_join(&lab, "", "a", 3)->error, KE_INCONSISTENT_GROUP_PROTOCOL);
    lab.type = "consumer";
    lab.protocols[0] = NULL;
    assert_int_equal(ask_join(&lab, "", "a", 3)->error, KE_INCONSISTENT_GROUP_PROTOCOL);
    assert_true(lab.g.ops->empty(&lab.g));
    group_lab_fini(&lab);
}

static void an_empty_group_waits_for_more_members_and_each_begins_the_wait_anew(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.limits.initial_delay_ms = 1000;
    struct ask *a = ask_join(&lab, "", "a", 3);
    lab_tick(&lab, 900);
    struct ask *b = ask_join(&lab, "", "b", 3);
    lab_tick(&lab, 100);
    assert_false(a->done);
    lab_tick(&lab, 1000);
    assert_true(a->done && b->done);
    assert_int_equal(a->generation, 1);
    assert_int_equal(a->listed, 2);
    group_lab_fini(&lab);
}

static void the_first_wait_ends_at_the_rebalance_timeout(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.limits.initial_delay_ms = 1000;
    struct ask *a = ask_join(&lab, "", "a", 3);
    for (int i = 0; i < 9; i++) {
        lab_tick(&lab, 600);
        if (!a->done)
            (void)ask_join(&lab, "", "x", 3);
    }
    assert_true(a->done);
    assert_true(lab.now_ms <= 1000 + 5000 + 600);
    group_lab_fini(&lab);
}

static void members_leave_and_the_last_one_leaves_it_empty(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    (void)ask_join(&lab, a->member, "a", 3);
    (void)ask_sync(&lab, a->member, 2, "a-1=x,b-2=y");
    assert_int_equal(lab_leave(&lab, "nobody"), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab_leave(&lab, a->member), KE_NONE);
    assert_int_equal(lab_heartbeat(&lab, b->member, 2), KE_REBALANCE_IN_PROGRESS);
    struct ask *b2 = ask_join(&lab, b->member, "b", 3);
    assert_string_equal(b2->leader, b->member);
    assert_int_equal(lab_leave(&lab, b->member), KE_NONE);
    assert_string_equal(state(&lab), "Empty");
    assert_true(lab.g.ops->empty(&lab.g));
    struct ask *c = ask_join(&lab, "", "c", 3);
    assert_true(c->generation > b2->generation);
    group_lab_fini(&lab);
}

/* --- static members --- */

static void a_restarted_static_member_gets_its_place_back_without_a_rebalance(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    lab.instance = "i1";
    struct ask *b = ask_join(&lab, "", "b", 5);
    lab.instance = NULL;
    (void)ask_join(&lab, a->member, "a", 5);
    (void)ask_sync(&lab, a->member, 2, "a-1=x,b-2=y");
    lab.instance = "i1";
    struct ask *b2 = ask_join(&lab, "", "b", 5);
    assert_true(b2->done);
    assert_int_equal(b2->generation, 2);
    assert_string_not_equal(b2->member, b->member);
    assert_string_equal(state(&lab), "Stable");
    assert_string_equal(ask_sync(&lab, b2->member, 2, "")->assignment, "y");
    /* the one before it is fenced */
    assert_int_equal(lab_heartbeat(&lab, b->member, 2), KE_FENCED_INSTANCE_ID);
    assert_int_equal(lab_commit(&lab, b->member, 2), KE_FENCED_INSTANCE_ID);
    assert_int_equal(ask_join(&lab, b->member, "b", 5)->error, KE_FENCED_INSTANCE_ID);
    assert_int_equal(lab_commit(&lab, b2->member, 2), KE_NONE);
    group_lab_fini(&lab);
}

static void a_restarted_static_leader_is_told_to_skip_or_not_told_that_it_leads(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.instance = "i1";
    struct ask *a = ask_join(&lab, "", "a", 9);
    (void)ask_sync(&lab, a->member, 1, "a-1=x");
    struct ask *b = ask_join(&lab, "", "a", 9);
    assert_int_equal(b->generation, 1);
    assert_true(b->skip);
    assert_string_equal(b->leader, b->member);
    assert_int_equal(b->listed, 1);
    struct ask *c = ask_join(&lab, "", "a", 8);
    assert_false(c->skip);
    assert_string_not_equal(c->leader, c->member);
    assert_int_equal(c->listed, 0);
    group_lab_fini(&lab);
}

static void a_static_member_that_is_away_keeps_its_place_until_its_session_ends(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    lab.instance = "i1";
    lab.session_ms = 30000;
    struct ask *b = ask_join(&lab, "", "b", 5);
    lab.instance = NULL;
    lab.session_ms = 10000;
    (void)ask_join(&lab, a->member, "a", 5);
    (void)ask_sync(&lab, a->member, 2, "a-1=x,b-2=y");
    /* b is away, a rejoins: after the rebalance timeout both are in the next generation */
    struct ask *a2 = ask_join(&lab, a->member, "a", 5);
    assert_false(a2->done);
    lab_tick(&lab, lab.rebalance_ms);
    assert_true(a2->done);
    assert_int_equal(a2->listed, 2);
    (void)ask_sync(&lab, a->member, 3, "a-1=x,b-2=y");
    lab_tick(&lab, 9000);
    assert_int_equal(lab_heartbeat(&lab, a->member, 3), KE_NONE);
    lab_tick(&lab, 9000);
    assert_int_equal(lab_heartbeat(&lab, a->member, 3), KE_NONE);
    lab_tick(&lab, 9000);
    assert_int_equal(lab_heartbeat(&lab, a->member, 3), KE_REBALANCE_IN_PROGRESS);
    lab.instance = "i1";
    assert_int_equal(lab_heartbeat(&lab, b->member, 2), KE_UNKNOWN_MEMBER_ID);
    group_lab_fini(&lab);
}

static void an_operator_removes_a_static_member_by_its_instance(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.instance = "i1";
    struct ask *a = ask_join(&lab, "", "a", 5);
    lab.instance = "i2";
    assert_int_equal(lab_leave(&lab, ""), KE_UNKNOWN_MEMBER_ID);
    lab.instance = "i1";
    assert_int_equal(lab_leave(&lab, "someone"), KE_FENCED_INSTANCE_ID);
    assert_int_equal(lab_leave(&lab, ""), KE_NONE);
    assert_true(lab.g.ops->empty(&lab.g));
    (void)a;
    group_lab_fini(&lab);
}

/* --- commits and raises --- */

static void only_members_of_the_generation_may_commit(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    assert_int_equal(lab_commit(&lab, a->member, 1), KE_NONE);
    assert_int_equal(lab_commit(&lab, a->member, 0), KE_ILLEGAL_GENERATION);
    assert_int_equal(lab_commit(&lab, "nobody", 1), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab_commit(&lab, "", -1), KE_UNKNOWN_MEMBER_ID);
    struct ask *b = ask_join(&lab, "", "b", 3);
    assert_int_equal(lab_commit(&lab, a->member, 1), KE_NONE); /* before it rejoins */
    (void)ask_join(&lab, a->member, "a", 3);
    assert_int_equal(lab_commit(&lab, b->member, 2), KE_REBALANCE_IN_PROGRESS);
    group_lab_fini(&lab);
}

static void a_raised_epoch_makes_readers_of_the_topic_rebalance(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    struct ask *a = found(&lab, "a");
    lab_raise(&lab, "u");
    assert_string_equal(state(&lab), "Stable");
    assert_int_equal(lab_raised(&lab, a->member, 1, "t"), KE_NONE);
    lab_raise(&lab, "t");
    assert_string_equal(state(&lab), "PreparingRebalance");
    /* its generation began before the raise: offsets without an epoch are of the old one */
    assert_int_equal(lab_commit(&lab, a->member, 1), KE_NONE);
    assert_int_equal(lab_raised(&lab, a->member, 1, "t"), KE_ILLEGAL_GENERATION);
    struct ask *a2 = ask_join(&lab, a->member, "a", 3);
    assert_int_equal(a2->generation, 2);
    assert_int_equal(lab_raised(&lab, a->member, 2, "t"), KE_NONE);
    group_lab_fini(&lab);
}

static void a_subscription_that_is_not_understood_counts_as_one_of_every_topic(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.metadata = "?";
    (void)found(&lab, "a");
    assert_true(lab.g.ops->subscribed(&lab.g, span_str("anything")));
    lab_raise(&lab, "anything");
    assert_string_equal(state(&lab), "PreparingRebalance");
    group_lab_fini(&lab);
}

/* --- limits and memory --- */

static void a_full_group_refuses_one_more(void **arg)
{
    struct group_lab lab;

    (void)arg;
    group_lab_init(&lab);
    lab.limits.max_members = 1;
    struct ask *a = found(&lab, "a");
    assert_int_equal(ask_join(&lab, "", "b", 3)->error, KE_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(ask_join(&lab, "", "b", 4)->error, KE_GROUP_MAX_SIZE_REACHED);
    assert_int_equal(lab_heartbeat(&lab, a->member, 1), KE_NONE);
    lab.limits.max_members = 2;
    lab.limits.max_bytes = 60;
    assert_int_equal(ask_join(&lab, "", "b", 3)->error, KE_GROUP_MAX_SIZE_REACHED);
    assert_string_equal(state(&lab), "Stable");
    group_lab_fini(&lab);
}

static void out_of_memory_is_answered_and_changes_nothing(void **arg)
{
    (void)arg;
    for (long n = 0; n < 40; n++) {
        struct group_lab lab;
        group_lab_init(&lab);
        struct ask *a = found(&lab, "a");
        (void)ask_new(&lab);      /* room is made before */
        mem_fail_after(n + 1, 1); /* the ask itself */
        struct ask *b = ask_join(&lab, "", "b", 3);
        mem_fail_after(-1, 0);
        if (b->done) {
            assert_int_equal(b->error, KE_COORDINATOR_NOT_AVAILABLE);
            assert_string_equal(state(&lab), "Stable");
            assert_int_equal(classic_members(&lab.g), 1);
        } else {
            assert_int_equal(classic_members(&lab.g), 2);
        }
        mem_fail_after(1, 1);
        struct ask *s = ask_sync(&lab, a->member, 1, "");
        mem_fail_after(-1, 0);
        assert_true(s->done);
        group_lab_fini(&lab);
    }
}

static void those_who_wait_are_answered_at_the_end(void **arg)
{
    struct group_lab lab;
    struct group_out out;

    (void)arg;
    group_lab_init(&lab);
    (void)found(&lab, "a");
    struct ask *b = ask_join(&lab, "", "b", 3);
    group_out_init(&out);
    lab.g.ops->drain(&lab.g, KE_COORDINATOR_NOT_AVAILABLE, &out);
    lab_settle(&lab, &out);
    assert_true(b->done);
    assert_int_equal(b->error, KE_COORDINATOR_NOT_AVAILABLE);
    group_lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_alone_leads_and_gets_what_it_assigns),
        cmocka_unit_test(a_member_without_an_id_is_given_one_first),
        cmocka_unit_test(an_id_that_was_handed_out_and_never_used_is_forgotten),
        cmocka_unit_test(a_newcomer_waits_until_the_others_have_rejoined),
        cmocka_unit_test(who_does_not_rejoin_in_time_is_out),
        cmocka_unit_test(without_a_rebalance_timeout_the_session_is_it),
        cmocka_unit_test(a_session_that_ends_makes_the_others_rebalance),
        cmocka_unit_test(a_deadline_is_told_and_comes),
        cmocka_unit_test(a_member_that_asks_again_changes_nothing),
        cmocka_unit_test(other_topics_or_a_leader_that_joins_again_mean_a_rebalance),
        cmocka_unit_test(a_second_join_of_a_waiting_member_takes_the_first_ones_place),
        cmocka_unit_test(a_rebalance_during_sync_sends_all_back_to_join),
        cmocka_unit_test(who_joins_and_never_syncs_is_out_after_the_rebalance_timeout),
        cmocka_unit_test(the_protocol_that_most_prefer_among_those_of_all_is_chosen),
        cmocka_unit_test(joins_that_say_too_little_are_refused),
        cmocka_unit_test(an_empty_group_waits_for_more_members_and_each_begins_the_wait_anew),
        cmocka_unit_test(the_first_wait_ends_at_the_rebalance_timeout),
        cmocka_unit_test(members_leave_and_the_last_one_leaves_it_empty),
        cmocka_unit_test(a_restarted_static_member_gets_its_place_back_without_a_rebalance),
        cmocka_unit_test(a_restarted_static_leader_is_told_to_skip_or_not_told_that_it_leads),
        cmocka_unit_test(a_static_member_that_is_away_keeps_its_place_until_its_session_ends),
        cmocka_unit_test(an_operator_removes_a_static_member_by_its_instance),
        cmocka_unit_test(only_members_of_the_generation_may_commit),
        cmocka_unit_test(a_raised_epoch_makes_readers_of_the_topic_rebalance),
        cmocka_unit_test(a_subscription_that_is_not_understood_counts_as_one_of_every_topic),
        cmocka_unit_test(a_full_group_refuses_one_more),
        cmocka_unit_test(out_of_memory_is_answered_and_changes_nothing),
        cmocka_unit_test(those_who_wait_are_answered_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
