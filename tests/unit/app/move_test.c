/* What a topic remembers of its journals, on its way to a cluster: names stay, revisions are the
 * cluster's, and the generation with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "app/move.h"
#include "base/mem.h"
#include "gateway/topic_state.h"

static struct move_journal journals[3];
static struct move move = {.v = journals, .n = 3};

static const struct jc_journal *journal(const char *name, int64_t create_revision)
{
    const struct jc_spec spec = {.name = name};
    const struct jc_journal *j;

    assert_int_equal(jc_journal_new(&spec, create_revision, create_revision, &j), 0);
    return j;
}

static int setup(void **state)
{
    static const char *const names[] = {"t/0", "t/1", "u/0"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        journals[i].from = journal(names[i], 7 + (int64_t)i);
        journals[i].to = journal(names[i], 100 + (int64_t)i);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        jc_journal_unref(journals[i].from);
        jc_journal_unref(journals[i].to);
    }
    return 0;
}

static void expect(const char *before, const char *after)
{
    struct blob *out;

    assert_int_equal(move_generation(&move, span_str(before), &out), 0);
    assert_int_equal(out->len, strlen(after));
    assert_memory_equal(out->data, after, out->len);
    blob_unref(out);
}

static void revisions_become_those_of_the_cluster(void **state)
{
    (void)state;
    expect("{\"generation\":3,\"backfill\":2,\"journals\":[[\"t/0\",7],[\"t/1\",8]]}",
           "{\"generation\":3,\"backfill\":2,\"first\":[\"t/0\",7],"
           "\"journals\":[[\"t/0\",100],[\"t/1\",101]]}");
    expect("{\"generation\":0,\"backfill\":0,\"journals\":[]}",
           "{\"generation\":0,\"backfill\":0,\"journals\":[]}");
}

static void the_list_goes_on_without_a_new_generation(void **state)
{
    static const char before[] = "{\"generation\":3,\"journals\":[[\"t/0\",7],[\"t/1\",8]]}";
    const struct topic_pair now[] = {{.name = "t/0", .create_revision = 100},
                                     {.name = "t/1", .create_revision = 101}};
    struct topic_state kept, next;
    struct blob *out;
    bool changed;

    (void)state;
    assert_int_equal(move_generation(&move, span_str(before), &out), 0);
    assert_int_equal(topic_state_parse(blob_span(out), &kept), 0);
    blob_unref(out);
    assert_int_equal(topic_state_next(&kept, now, 2, &next, &changed), 0);
    assert_false(changed);
    assert_int_equal(next.generation, 3);
    topic_state_fini(&next);
    topic_state_fini(&kept);
}

static void a_journal_that_is_gone_or_was_made_anew_keeps_its_old_revision(void **state)
{
    (void)state;
    expect(
        "{\"generation\":1,\"backfill\":0,\"journals\":[[\"t/0\",6],[\"t/9\",8],[\"u/0\",9]]}",
        "{\"generation\":1,\"backfill\":0,\"journals\":[[\"t/0\",6],[\"t/9\",8],[\"u/0\",102]]}");
}

static void a_damaged_memory_is_not_taken_for_a_new_topic(void **state)
{
    struct blob *out;

    (void)state;
    assert_int_equal(move_generation(&move, span_str("{\"generation\":"), &out), E_CORRUPT);
    assert_null(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revisions_become_those_of_the_cluster),
        cmocka_unit_test(the_list_goes_on_without_a_new_generation),
        cmocka_unit_test(a_journal_that_is_gone_or_was_made_anew_keeps_its_old_revision),
        cmocka_unit_test(a_damaged_memory_is_not_taken_for_a_new_topic),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
