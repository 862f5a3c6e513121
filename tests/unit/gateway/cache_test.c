/* The batch cache: single flight, growth, budget, failures, cancelled askers. */
#include "tests/unit/gateway/fetch_lab.h"

static int setup(void **state)
{
    *state = lab_new();
    return 0;
}

static int teardown(void **state)
{
    lab_free(*state);
    return 0;
}

struct asker {
    unsigned answers;
    int err;
    struct gw_blockbatches *entry;
};

static void on_entry(void *arg, int err, struct gw_blockbatches *entry)
{
    struct asker *a = arg;

    a->answers++;
    a->err = err;
    a->entry = entry;
}

static struct gw_cache_ask ask(struct lab *lab, int64_t block, int64_t need_to)
{
    return (struct gw_cache_ask){.part = lab->topics[0].parts[0],
                                 .encoder = &lab->encoder,
                                 .bound = {0, UINT64_MAX},
                                 .block = block,
                                 .need_to = need_to};
}

static struct gw_cache_wait *get(struct lab *lab, int64_t block, int64_t need_to, struct asker *a)
{
    struct gw_cache_ask q = ask(lab, block, need_to);
    struct gw_cache_wait *w;

    assert_int_equal(gw_cache_get(lab->shared.cache, &q, &lab->w.mb.ex, on_entry, a, &a->entry, &w),
                     0);
    if (w == NULL) {
        assert_non_null(a->entry);
        a->answers++;
    }
    return w;
}

static void await(struct lab *lab, const struct asker *a)
{
    while (a->answers == 0)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
}

static void drop(struct asker *a)
{
    gw_blockbatches_unref(a->entry);
    *a = (struct asker){0};
}

static void many_askers_cost_one_load(void **state)
{
    struct lab *lab = *state;
    struct asker a[50] = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    for (int i = 0; i < 50; i++)
        (void)get(lab, 0, end, &a[i]);
    for (int i = 0; i < 50; i++) {
        await(lab, &a[i]);
        assert_int_equal(a[i].err, 0);
        assert_int_equal(a[i].entry->n, 1);
        drop(&a[i]);
    }
    assert_int_equal(lab->fs->block_reads, 1);
    assert_null(get(lab, 0, end, &a[0])); /* there at once */
    drop(&a[0]);
    assert_int_equal(lab->fs->block_reads, 1);
}

static void who_knows_of_more_is_not_served_less(void **state)
{
    struct lab *lab = *state;
    struct asker a = {0}, b = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    (void)get(lab, 0, end, &a); /* the fake reads at the call */
    int64_t later = lab_doc(lab, 0, 0, 1000) + 1;
    (void)get(lab, 0, later, &b);
    await(lab, &a);
    await(lab, &b);
    assert_true(b.entry->read_to >= later);
    assert_int_equal(b.entry->n, 2);
    assert_ptr_equal(b.entry->batches[0].bytes, a.entry->batches[0].bytes);
    drop(&a);
    drop(&b);
}

static void a_cancelled_asker_hears_nothing_and_the_others_do(void **state)
{
    struct lab *lab = *state;
    struct asker a[3] = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    struct gw_cache_wait *first = get(lab, 0, end, &a[0]);
    (void)get(lab, 0, end, &a[1]);
    struct gw_cache_wait *third = get(lab, 0, end, &a[2]);
    gw_cache_cancel(first);
    await(lab, &a[1]);
    if (a[2].answers == 0)
        gw_cache_cancel(third); /* its answer may be on the way already */
    while (mailbox_drain(&lab->w.mb) > 0)
        ;
    assert_int_equal(a[0].answers, 0);
    drop(&a[1]);
    drop(&a[2]);
}

static int fail_read(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                     jc_block_fn *done, void *arg, struct jc_op **out)
{
    (void)s;
    (void)r;
    (void)ex;
    (void)done;
    (void)arg;
    *out = NULL;
    return E_CORRUPT;
}

static void a_failure_goes_to_all_who_wait_and_is_not_kept(void **state)
{
    struct lab *lab = *state;
    struct asker a = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    lab->ops.read_block = fail_read;
    (void)get(lab, 0, end, &a);
    assert_int_equal(a.answers, 0); /* never from inside the call */
    await(lab, &a);
    assert_int_equal(a.err, E_CORRUPT);
    assert_null(a.entry);
    lab->ops.read_block = fake_read_block;
    a = (struct asker){0};
    (void)get(lab, 0, end, &a);
    await(lab, &a);
    assert_int_equal(a.err, 0);
    drop(&a);
}

static void the_budget_is_kept_and_what_is_asked_for_often_stays(void **state)
{
    struct lab *lab = *state;
    struct asker a = {0};

    lab_topic(lab, "docs", 1);
    gw_cache_free(lab->shared.cache);
    assert_int_equal(gw_cache_new(3 << 20, &lab->fs->base, lab->shared.loads, &lab->shared.cache),
                     0);
    for (int i = 0; i < 300; i++)
        lab_doc(lab, 0, 0, 50000);
    unsigned hits = 0;
    for (int64_t b = 0; b < 55; b++) {
        (void)get(lab, b, (b + 1) * JC_BLOCK_BYTES, &a);
        await(lab, &a);
        drop(&a);
        hits += get(lab, 0, JC_BLOCK_BYTES, &a) == NULL; /* the hot one */
        await(lab, &a);
        drop(&a);
        assert_true(gw_cache_bytes(lab->shared.cache) <= (3 << 20) + (512 << 10));
    }
    assert_true(hits >= 50);
    assert_true(metric_get(M_CACHE_EVICTIONS) > 0);
}

static void what_is_larger_than_the_budget_is_served_but_not_kept(void **state)
{
    struct lab *lab = *state;
    struct asker a = {0};

    lab_topic(lab, "docs", 1);
    gw_cache_free(lab->shared.cache);
    assert_int_equal(gw_cache_new(1000, &lab->fs->base, lab->shared.loads, &lab->shared.cache), 0);
    int64_t end = lab_doc(lab, 0, 0, 200000) + 1;
    for (int i = 0; i < 3; i++) {
        assert_non_null(get(lab, 0, end, &a));
        await(lab, &a);
        assert_int_equal(a.entry->n, 1);
        drop(&a);
        assert_int_equal(gw_cache_bytes(lab->shared.cache), 0);
    }
}

static void bounds_encoders_and_codecs_have_entries_of_their_own(void **state)
{
    /* Outlives the askers: a load lets go of its encoder after it has answered them. */
    static const struct gw_encoder other = {.id = 2};
    struct lab *lab = *state;
    struct asker a = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    for (int i = 0; i < 4; i++) {
        struct gw_cache_ask q = ask(lab, 0, end);
        struct gw_cache_wait *w;

        if (i == 1)
            q.bound.min_clock = LAB_CLOCK(1000);
        if (i == 2)
            q.codec = KP_CODEC_LZ4;
        if (i == 3)
            q.encoder = &other;
        assert_int_equal(
            gw_cache_get(lab->shared.cache, &q, &lab->w.mb.ex, on_entry, &a, &a.entry, &w), 0);
        assert_non_null(w);
        await(lab, &a);
        assert_int_equal(a.entry->n, i == 1 ? 0 : 1);
        drop(&a);
    }
    assert_int_equal(lab->fs->block_reads, 4);
}

static void a_prefetched_block_is_there_for_the_next_asker(void **state)
{
    struct lab *lab = *state;
    struct asker a = {0};

    lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, 0, 0, 1000) + 1;
    struct gw_cache_ask q = ask(lab, 0, end);
    gw_cache_prefetch(lab->shared.cache, &q);
    gw_cache_prefetch(lab->shared.cache, &q);
    (void)get(lab, 0, end, &a);
    await(lab, &a);
    drop(&a);
    assert_int_equal(lab->fs->block_reads, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(many_askers_cost_one_load),
        T(who_knows_of_more_is_not_served_less),
        T(a_cancelled_asker_hears_nothing_and_the_others_do),
        T(a_failure_goes_to_all_who_wait_and_is_not_kept),
        T(the_budget_is_kept_and_what_is_asked_for_often_stays),
        T(what_is_larger_than_the_budget_is_served_but_not_kept),
        T(bounds_encoders_and_codecs_have_entries_of_their_own),
        T(a_prefetched_block_is_there_for_the_next_asker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
