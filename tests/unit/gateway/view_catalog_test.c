/* From a catalog's bindings to topics: names, bounds, keys, epochs, empty ones; and the frontier.
 */
#include "gateway/catalog.h"
#include "tests/unit/gateway/harness.h"

static struct catalog_faults faults;

static const struct catalog *parse(const char *bindings, const char *config)
{
    char text[4096];
    const struct catalog *c;

    snprintf(text, sizeof text,
             "collections:\n  c:\n    schema: {}\n    key: [/k]\n"
             "materializations:\n  t:\n    endpoint: {dekaf: {variant: v, config: %s}}\n"
             "    bindings:\n%s",
             config, bindings);
    int err = catalog_parse(span_str(text), "c.yaml", &faults, &c);
    if (err < 0)
        print_error("%s\n", faults.list[0].text);
    assert_int_equal(err, 0);
    return c;
}

static int setup(void **state)
{
    struct harness *h = mem_zalloc(sizeof *h);

    harness_init(h);
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    harness_fini(*state);
    mem_free(*state);
    return 0;
}

/* The gateway comes again under another catalog. */
static void restart(struct harness *h, const struct catalog *catalog)
{
    const struct view_build_opts opts = {.store = &h->fs->base,
                                         .mb = &h->control,
                                         .on_view = harness_on_view,
                                         .arg = h,
                                         .catalog = catalog};

    view_build_stop(h->vb);
    harness_settle(h);
    struct view_build *old = h->vb;
    assert_int_equal(view_build_start(&opts, &h->vb), 0);
    harness_settle(h);
    view_build_free(old);
}

static const struct gw_topic *topic(struct harness *h, const char *name)
{
    harness_settle(h);
    return gw_task_topic(h->w.view->anonymous, span_str(name));
}

static void bindings_are_the_topics_and_empty_ones_are_listed(void **state)
{
    struct harness *h = *state;
    const struct catalog *c =
        parse("      - {source: c, resource: {topic_name: one}}\n"
              "      - {source: c, resource: {topic_name: two}, backfill: 4}\n"
              "      - {source: none}\n",
              "{sluice: {compression: lz4, truncation_signal: headers}}");

    fake_journal(h->fs, "c/0", "c");
    fake_journal(h->fs, "x/0", "x");
    restart(h, c);
    const struct gw_topic *one = topic(h, "one"), *two = topic(h, "two"), *none = topic(h, "none");
    assert_int_equal(h->w.view->topics_n, 3);
    assert_int_equal(one->parts_n, 1);
    assert_string_equal(one->collection, "c");
    assert_ptr_equal(one->parts[0], two->parts[0]);
    assert_ptr_equal(one->encoder, two->encoder);
    assert_int_equal(one->encoder->codec, KP_CODEC_LZ4);
    assert_non_null(one->encoder->key);
    assert_true(one->signal);
    assert_int_equal(one->epoch, 1);
    assert_int_equal(two->epoch, 5);
    assert_memory_not_equal(one->id.b, two->id.b, 16);
    assert_int_equal(none->parts_n, 0);
    assert_null(none->first);
    assert_true(view_build_ready(h->vb));
    /* its first journal comes */
    fake_journal(h->fs, "none/0", "none");
    none = topic(h, "none");
    assert_int_equal(none->parts_n, 1);
    assert_int_equal(none->epoch, 1);
    restart(h, NULL);
    catalog_unref(c);
}

static void a_backfill_counter_raises_the_epoch_and_never_lowers_it(void **state)
{
    struct harness *h = *state;
    const struct catalog *high = parse("      - {source: c, backfill: 3}\n", "{}");
    const struct catalog *low = parse("      - {source: c, backfill: 1}\n", "{}");

    fake_journal(h->fs, "c/0", "c");
    assert_int_equal(topic(h, "c")->epoch, 1);
    restart(h, high);
    assert_int_equal(topic(h, "c")->epoch, 4);
    restart(h, low);
    assert_int_equal(topic(h, "c")->epoch, 4);
    restart(h, NULL); /* the topic of no task is another one */
    assert_int_equal(topic(h, "c")->epoch, 1);
    catalog_unref(high);
    catalog_unref(low);
}

static void the_bound_is_the_higher_of_label_and_not_before(void **state)
{
    struct harness *h = *state;
    const struct catalog *c =
        parse("      - {source: {name: c, notBefore: '2026-07-23T04:51:00.1234567Z',"
              " notAfter: '2026-07-24T00:00:00Z'}}\n"
              "      - {source: c, resource: {topic_name: plain}}\n",
              "{}");
    static const struct jc_label low[] = {{JC_LABEL_COLLECTION, "c"},
                                          {JC_LABEL_TRUNCATED_AT, "1f1865219aa6886f"}};
    static const struct jc_label high[] = {{JC_LABEL_COLLECTION, "c"},
                                           {JC_LABEL_TRUNCATED_AT, "1f1865219aa68871"}};

    fake_journal_labels(h->fs, "c/0", low, 2);
    restart(h, c);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x1f1865219aa68870);
    assert_int_equal(topic(h, "c")->bound.max_clock & 15, 15);
    assert_int_equal(topic(h, "c")->frontier.truncated_at, 0x1f1865219aa6886f);
    assert_int_equal(topic(h, "plain")->bound.min_clock, 0x1f1865219aa6886f);
    assert_int_equal(topic(h, "plain")->bound.max_clock, UINT64_MAX);
    fake_journal_labels(h->fs, "c/1", high, 2); /* one journal is enough for all */
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x1f1865219aa68871);
    assert_int_equal(topic(h, "plain")->bound.min_clock, 0x1f1865219aa68871);
    restart(h, NULL);
    catalog_unref(c);
}

static void a_label_of_a_journal_that_holds_no_collection_says_nothing(void **state)
{
    struct harness *h = *state;
    static const struct jc_label disk[] = {{JC_LABEL_TRUNCATED_AT, "nonsense"}};
    int64_t refused = metric_get(M_LABELS_REFUSED);

    fake_journal(h->fs, "c/0", "c");
    fake_journal_labels(h->fs, "disk/0", disk, 1);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0);
    assert_int_equal(metric_get(M_LABELS_REFUSED), refused);
}

static void two_labels_of_one_name_are_malformed(void **state)
{
    struct harness *h = *state;
    static const struct jc_label two[] = {{JC_LABEL_COLLECTION, "c"},
                                          {JC_LABEL_TRUNCATED_AT, "1f1865219aa68870"},
                                          {JC_LABEL_TRUNCATED_AT, "1f1865219aa68871"}};
    int64_t refused = metric_get(M_LABELS_REFUSED);

    fake_journal_labels(h->fs, "c/0", two, 3);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0);
    assert_int_equal(metric_get(M_LABELS_REFUSED), refused + 1);
}

/* What cannot be told is shown neither by include nor by exclude. */
static void a_doubled_field_label_is_selected_by_nobody(void **state)
{
    struct catalog_value eu = {.is_text = true, .text = span_str("eu")};
    struct catalog_field_values region = {.field = "region", .values = &eu, .values_n = 1};
    const struct catalog_selector with = {.include = &region, .include_n = 1};
    const struct catalog_selector without = {.exclude = &region, .exclude_n = 1};
    const char *const field = "estuary.dev/field/region";
    struct jc_label two[] = {{field, "us"}, {field, "us"}}, eu_label[] = {{field, "eu"}};
    struct jc_spec spec = {.name = "j", .labels = two, .labels_n = 2};

    (void)state;
    assert_false(catalog_selects(&with, &spec));
    assert_false(catalog_selects(&without, &spec));
    spec.labels_n = 1; /* us */
    assert_false(catalog_selects(&with, &spec));
    assert_true(catalog_selects(&without, &spec));
    spec.labels = eu_label;
    assert_true(catalog_selects(&with, &spec));
    assert_false(catalog_selects(&without, &spec));
    spec.labels_n = 0;
    assert_false(catalog_selects(&with, &spec));
    assert_true(catalog_selects(&without, &spec));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doubled_field_label_is_selected_by_nobody),
        cmocka_unit_test_setup_teardown(bindings_are_the_topics_and_empty_ones_are_listed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_backfill_counter_raises_the_epoch_and_never_lowers_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_bound_is_the_higher_of_label_and_not_before, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_label_of_a_journal_that_holds_no_collection_says_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(two_labels_of_one_name_are_malformed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
