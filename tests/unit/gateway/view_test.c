/* The snapshot itself: finding, counting, and what happens when memory runs out. */
#include "tests/unit/gateway/fake_store.h"

#include "gateway/view.h"

enum { TOPICS = 50 };

static struct gw_topic topics[TOPICS];
static char names[TOPICS][16];
static struct gw_part *part;
static const struct jc_journal *journal;
static const struct gw_encoder encoder;

static int setup(void **state)
{
    (void)state;
    journal = fake_make("j", NULL, 0, 1, 1);
    assert_int_equal(gw_part_new(journal, &part), 0);
    for (int i = 0; i < TOPICS; i++) {
        snprintf(names[i], sizeof names[i], "t%02d", i * 7 % TOPICS);
        topics[i] = (struct gw_topic){.name = names[i],
                                      .collection = names[i],
                                      .epoch = 1,
                                      .encoder = &encoder,
                                      .first = journal,
                                      .parts = &part,
                                      .parts_n = 1};
        topics[i].id.b[0] = (uint8_t)(i * 11 % 251);
        topics[i].id.b[15] = (uint8_t)i;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&part->refs), 1); /* every view gave its references back */
    gw_part_unref(part);
    jc_journal_unref(journal);
    return 0;
}

static void topics_are_found_by_name_and_by_id_whatever_order_they_came_in(void **state)
{
    (void)state;
    const struct gw_view *v;
    const struct kp_uuid none = {{0xff, 1}};

    assert_int_equal(gw_view_new(3, topics, TOPICS, &v), 0);
    for (int i = 0; i < TOPICS; i++) {
        const struct gw_topic *t = gw_task_topic(v->anonymous, span_str(names[i]));
        assert_non_null(t);
        assert_string_equal(t->name, names[i]);
        assert_ptr_equal(gw_task_topic_by_id(v->anonymous, &topics[i].id), t);
    }
    assert_null(gw_task_topic(v->anonymous, span_str("t")));
    assert_null(gw_task_topic(v->anonymous, span_str("t00x")));
    assert_null(gw_task_topic(v->anonymous, span_str("")));
    assert_null(gw_task_topic_by_id(v->anonymous, &none));
    gw_view_unref(gw_view_ref(v));
    gw_view_unref(v);
}

static void an_empty_view_holds_nothing(void **state)
{
    (void)state;
    const struct gw_view *v;

    assert_int_equal(gw_view_new(0, NULL, 0, &v), 0);
    assert_null(gw_task_topic(v->anonymous, span_str("t00")));
    assert_null(gw_task_topic_by_id(v->anonymous, &topics[0].id));
    gw_view_unref(v);
}

static void two_topics_of_one_name_are_refused(void **state)
{
    (void)state;
    const struct gw_topic twice[] = {topics[0], topics[1], topics[0]};
    const struct gw_view *v;

    assert_int_equal(gw_view_new(1, twice, 3, &v), E_EXISTS);
    assert_null(v);
}

static void out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    const struct gw_view *v;
    int err = E_NOMEM;

    for (long n = 0; err == E_NOMEM; n++) {
        mem_fail_after(n, 0);
        err = gw_view_new(1, topics, TOPICS, &v);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || v == NULL);
    }
    assert_int_equal(err, 0);
    gw_view_unref(v);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(topics_are_found_by_name_and_by_id_whatever_order_they_came_in),
        T(an_empty_view_holds_nothing),
        T(two_topics_of_one_name_are_refused),
        T(out_of_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
