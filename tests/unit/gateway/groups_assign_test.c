/* The assignors of KIP-848: balance, stickiness, slices; and random histories that keep to both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/groups/assign.h"

#define TOPICS  6
#define MEMBERS 9
#define PARTS   12

struct lab {
    struct assign a;
    struct assign_topic topics[TOPICS];
    struct assign_member members[MEMBERS];
    uint32_t subs[MEMBERS][TOPICS];
    char ids[MEMBERS][8];
    int32_t owners[TOPICS][PARTS];
};

static struct lab *lab_new(size_t members, size_t topics, int32_t partitions)
{
    struct lab *lab = calloc(1, sizeof *lab); /* banned-ok: outlives injected failures */

    assert_non_null(lab);
    lab->a = (struct assign){lab->topics, topics, lab->members, members};
    for (size_t t = 0; t < TOPICS; t++) {
        lab->topics[t].partitions = partitions;
        lab->topics[t].owner = lab->owners[t];
        for (size_t p = 0; p < PARTS; p++)
            lab->owners[t][p] = ASSIGN_NOBODY;
    }
    for (size_t m = 0; m < MEMBERS; m++) {
        snprintf(lab->ids[m], sizeof lab->ids[m], "m%zu", m);
        lab->members[m].id = span_str(lab->ids[m]);
        lab->members[m].topics = lab->subs[m];
        lab->members[m].topics_n = topics;
        for (uint32_t t = 0; t < topics; t++)
            lab->subs[m][t] = t;
    }
    return lab;
}

static void owners_are(const struct lab *lab, size_t topic, const char *want)
{
    char got[PARTS + 1] = "";

    for (int32_t p = 0; p < lab->topics[topic].partitions; p++)
        got[p] = (char)(lab->owners[topic][p] < 0 ? '-' : '0' + lab->owners[topic][p]);
    assert_string_equal(got, want);
}

static bool subscribes(const struct lab *lab, size_t m, size_t t)
{
    for (size_t i = 0; i < lab->members[m].topics_n; i++) {
        if (lab->members[m].topics[i] == t)
            return true;
    }
    return false;
}

static void loads(const struct lab *lab, int *load)
{
    for (size_t m = 0; m < MEMBERS; m++)
        load[m] = 0;
    for (size_t t = 0; t < lab->a.topics_n; t++) {
        for (int32_t p = 0; p < lab->topics[t].partitions; p++) {
            if (lab->owners[t][p] >= 0)
                load[lab->owners[t][p]]++;
        }
    }
}

static void range_gives_slices_that_line_up_over_topics(void **state)
{
    (void)state;
    struct lab *lab = lab_new(3, 2, 8);

    assert_int_equal(assign_range(&lab->a), 0);
    owners_are(lab, 0, "00011122");
    owners_are(lab, 1, "00011122");
    free(lab); /* banned-ok: see lab_new */
}

static void range_puts_static_members_first_by_instance(void **state)
{
    (void)state;
    struct lab *lab = lab_new(3, 1, 3);

    lab->members[1].instance = span_str("z");
    lab->members[2].instance = span_str("a");
    assert_int_equal(assign_range(&lab->a), 0);
    owners_are(lab, 0, "210");
    free(lab); /* banned-ok: see lab_new */
}

static void range_leaves_members_out_when_there_are_too_few_partitions(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4, 2, 2);

    lab->members[0].topics_n = 1; /* topic 0 alone */
    assert_int_equal(assign_range(&lab->a), 0);
    owners_are(lab, 0, "01");
    owners_are(lab, 1, "12");
    free(lab); /* banned-ok: see lab_new */
}

static void uniform_spreads_over_all_topics(void **state)
{
    (void)state;
    struct lab *lab = lab_new(4, 5, 1);
    int load[MEMBERS];

    assert_int_equal(assign_uniform(&lab->a), 0);
    loads(lab, load);
    assert_int_equal(load[0] + load[1] + load[2] + load[3], 5);
    for (int m = 0; m < 4; m++)
        assert_true(load[m] == 1 || load[m] == 2);
    free(lab); /* banned-ok: see lab_new */
}

static void uniform_moves_only_what_a_newcomer_needs(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2, 1, 12);

    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 0, "010101010101");
    lab->a.members_n = 3;
    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 0, "010101012222");
    lab->a.members_n = 2; /* and it goes again: what stays does not move */
    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 0, "010101010101");
    free(lab); /* banned-ok: see lab_new */
}

static void uniform_does_not_move_for_a_difference_of_one(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2, 1, 3);

    lab->owners[0][0] = 0;
    lab->owners[0][1] = 1;
    lab->owners[0][2] = 1;
    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 0, "011");
    free(lab); /* banned-ok: see lab_new */
}

static void uniform_gives_a_topic_to_its_subscribers_only(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2, 2, 6);

    lab->members[1].topics_n = 1; /* topic 0 alone */
    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 0, "111111"); /* member 0 has enough with topic 1 */
    owners_are(lab, 1, "000000");
    free(lab); /* banned-ok: see lab_new */
}

static void a_topic_without_subscribers_has_no_owners(void **state)
{
    (void)state;
    struct lab *lab = lab_new(2, 2, 2);

    lab->members[0].topics_n = lab->members[1].topics_n = 1;
    lab->owners[1][0] = 1;
    assert_int_equal(assign_uniform(&lab->a), 0);
    owners_are(lab, 1, "--");
    lab->owners[1][0] = 1;
    assert_int_equal(assign_range(&lab->a), 0);
    owners_are(lab, 1, "--");
    lab->a.members_n = 0;
    assert_int_equal(assign_range(&lab->a), 0);
    owners_are(lab, 0, "--");
    free(lab); /* banned-ok: see lab_new */
}

static void assignors_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(assign_find(span_str("uniform")), assign_uniform);
    assert_ptr_equal(assign_find(span_str("range")), assign_range);
    assert_null(assign_find(span_str("sticky")));
    assert_null(assign_find(span_str("")));
}

static void out_of_memory_changes_nothing(void **state)
{
    (void)state;
    struct lab *lab = lab_new(3, 2, 4);

    for (long n = 0; n < 7; n++) {
        lab->owners[0][0] = 2;
        mem_fail_after(n, 0);
        int err = assign_uniform(&lab->a);
        mem_fail_after(-1, 0);
        assert_int_equal(err, E_NOMEM);
        owners_are(lab, 0, "2---");
    }
    for (long n = 0; n < 3; n++) {
        mem_fail_after(n, 0);
        int err = assign_range(&lab->a);
        mem_fail_after(-1, 0);
        assert_int_equal(err, E_NOMEM);
        owners_are(lab, 0, "2---");
    }
    free(lab); /* banned-ok: see lab_new */
}

/* --- random histories --- */

static uint32_t rnd(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*seed >> 33) % n;
}

static void check_owners(const struct lab *lab)
{
    for (size_t t = 0; t < lab->a.topics_n; t++) {
        size_t subscribers = 0;
        for (size_t m = 0; m < lab->a.members_n; m++)
            subscribers += subscribes(lab, m, t);
        for (int32_t p = 0; p < lab->topics[t].partitions; p++) {
            int32_t m = lab->owners[t][p];
            if (subscribers == 0)
                assert_int_equal(m, ASSIGN_NOBODY);
            else
                assert_true(m >= 0 && subscribes(lab, (size_t)m, t));
        }
    }
}

/* Nobody could take a partition from somebody who has two more. */
static void check_level(const struct lab *lab)
{
    int load[MEMBERS];

    loads(lab, load);
    for (size_t t = 0; t < lab->a.topics_n; t++) {
        for (int32_t p = 0; p < lab->topics[t].partitions; p++) {
            for (size_t m = 0; m < lab->a.members_n; m++) {
                if (subscribes(lab, m, t))
                    assert_true(load[lab->owners[t][p]] - load[m] < 2);
            }
        }
    }
}

static void random_groups_are_balanced_and_sticky(void **state)
{
    (void)state;
    uint64_t seed = 42;

    for (int round = 0; round < 3000; round++) {
        bool same = rnd(&seed, 2) == 0;
        struct lab *lab = lab_new(1 + rnd(&seed, MEMBERS), 1 + rnd(&seed, TOPICS), 0);

        for (size_t t = 0; t < TOPICS; t++) {
            lab->topics[t].partitions = (int32_t)rnd(&seed, PARTS + 1);
            for (size_t p = 0; p < PARTS; p++)
                lab->owners[t][p] = (int32_t)rnd(&seed, MEMBERS + 1) - 1;
        }
        for (size_t m = 0; !same && m < MEMBERS; m++) {
            lab->members[m].topics_n = 0;
            for (uint32_t t = 0; t < lab->a.topics_n; t++) {
                if (rnd(&seed, 2) == 0)
                    lab->subs[m][lab->members[m].topics_n++] = t;
            }
        }
        assert_int_equal(assign_uniform(&lab->a), 0);
        check_owners(lab);
        check_level(lab);
        /* Asked again, nothing moves. */
        int32_t before[TOPICS][PARTS];
        memcpy(before, lab->owners, sizeof before);
        assert_int_equal(assign_uniform(&lab->a), 0);
        assert_memory_equal(before, lab->owners, sizeof before);
        assert_int_equal(assign_range(&lab->a), 0);
        check_owners(lab);
        free(lab); /* banned-ok: see lab_new */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_gives_slices_that_line_up_over_topics),
        cmocka_unit_test(range_puts_static_members_first_by_instance),
        cmocka_unit_test(range_leaves_members_out_when_there_are_too_few_partitions),
        cmocka_unit_test(uniform_spreads_over_all_topics),
        cmocka_unit_test(uniform_moves_only_what_a_newcomer_needs),
        cmocka_unit_test(uniform_does_not_move_for_a_difference_of_one),
        cmocka_unit_test(uniform_gives_a_topic_to_its_subscribers_only),
        cmocka_unit_test(a_topic_without_subscribers_has_no_owners),
        cmocka_unit_test(assignors_are_found_by_name),
        cmocka_unit_test(out_of_memory_changes_nothing),
        cmocka_unit_test(random_groups_are_balanced_and_sticky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
