/*
 * Changes of specs by a gateway whose listing is old: what the brokers have since must not be lost,
 * a suspension with its offset least of all (the journal would begin at 0 again).
 */
#include "tests/contract/gazette_suspend.h"

#include <gazette_proto/broker.pb-c.h>

#include "base/writer.h"

static int label(struct lab *lab, const char *name, int64_t expect)
{
    const struct jc_label l = {name, "x"};
    const struct jc_spec spec = {.name = BENCH_JOURNAL, .labels = &l, .labels_n = 1};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = expect};

    return lab_apply(lab, &c, 1, NULL);
}

static void a_suspension_that_the_listing_lacks_is_kept(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///"}, .so = {.watch_delay_ms = 1000}};
    struct blob *rq = NULL;

    (void)state;
    bench_start(&b);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_append(&b, 20), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    assert_int_equal(stand_in_prune(b.si, BENCH_JOURNAL, 10), 0);
    lab_settle(&b.lab, 1200);
    bench_suspend(&b);
    assert_int_equal(label(&b.lab, "a.b/c", -1), 0);
    assert_int_equal(stand_in_last_request(b.si, STAND_IN_APPLY, &rq), 0);
    Gz__ApplyRequest *m = gz__apply_request__unpack(NULL, rq->len - 5, rq->data + 5);
    if (m == NULL || m->n_changes != 1 || m->changes[0]->upsert == NULL ||
        m->changes[0]->upsert->suspend == NULL)
        fail_msg("no suspension was sent");
    else
        assert_int_equal(m->changes[0]->upsert->suspend->offset, 60 * BENCH_DOC);
    if (m != NULL)
        gz__apply_request__free_unpacked(m, NULL);
    blob_unref(rq);
    assert_int_equal(bench_append(&b, 1), 0); /* it resumes where it was */
    assert_int_equal(stand_in_head(b.si, BENCH_JOURNAL), 61 * BENCH_DOC);
    bench_end(&b);
}

/* Who named a revision is told; who made a journal that another gateway has just made is not asked
 * to know. */
static void only_who_does_not_mind_goes_on_from_what_is_there(void **state)
{
    struct bench b = {.so = {.watch_delay_ms = 1000}}, other;
    const struct jc_spec spec = {.name = "bench/made/part-000", .fragment_bytes = 65536};
    const struct jc_change any = {.upsert = &spec, .expect_mod_revision = -1};

    (void)state;
    bench_start(&b);
    other = (struct bench){.si = b.si};
    assert_int_equal(temp_dir_make(other.dir, sizeof other.dir), 0);
    bench_open(&other);
    other.j = lab_find(&other.lab, BENCH_JOURNAL);
    assert_non_null(other.j);
    int64_t old = other.j->mod_revision;
    assert_int_equal(label(&b.lab, "a.b/first", -1), 0);
    assert_int_equal(label(&other.lab, "a.b/second", old), E_CONFLICT);
    assert_int_equal(label(&other.lab, "a.b/second", -1), 0);
    assert_int_equal(lab_apply(&b.lab, &any, 1, NULL), 0);
    assert_int_equal(lab_apply(&other.lab, &any, 1, NULL), 0);
    bench_close(&other);
    temp_dir_remove(other.dir);
    bench_end(&b);
}

/* Where more calls begin than a connection takes, before it could say so. */
static void a_change_that_was_not_taken_in_is_sent_again(void **state)
{
    const struct stand_in_fault refused = {
        .kind = STAND_IN_RESET_STREAM, .method = STAND_IN_APPLY, .value = 7, .times = 3};
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    assert_int_equal(stand_in_fault(b.si, &refused), 0);
    assert_int_equal(label(&b.lab, "a.b/third", b.j->mod_revision), 0);
    assert_int_equal(stand_in_hits(b.si), 3);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspension_that_the_listing_lacks_is_kept),
        cmocka_unit_test(only_who_does_not_mind_goes_on_from_what_is_there),
        cmocka_unit_test(a_change_that_was_not_taken_in_is_sent_again),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
