/* Another catalog takes the place of the one in force: what stays, what goes, and who sees what. */
#include "gateway/catalog.h"
#include "gateway/view_build_int.h"
#include "tests/unit/gateway/harness.h"

static struct catalog_faults faults;

static const struct catalog *parse(const char *text)
{
    const struct catalog *c;
    int err = catalog_parse(span_str(text), "c.yaml", &faults, &c);

    if (err < 0)
        print_error("%s\n", faults.list[0].text);
    assert_int_equal(err, 0);
    return c;
}

#define TASK(name, config, bindings)                                                               \
    "  " name ": {endpoint: {dekaf: {config: " config "}}, bindings: [" bindings "]}\n"
#define HEAD                                                                                       \
    "collections:\n  p: {schema: {}, key: [/k], journals: {prefix: pre/fix}}\n"                    \
    "materializations:\n"

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

/* The reference of c passes to the view builder and its views. */
static void start(struct harness *h, const struct catalog *c)
{
    const struct view_build_opts opts = {.store = &h->fs->base,
                                         .mb = &h->control,
                                         .on_view = harness_on_view,
                                         .arg = h,
                                         .catalog = c,
                                         .anonymous_task = "t"};

    view_build_stop(h->vb);
    harness_settle(h);
    struct view_build *old = h->vb;
    assert_int_equal(view_build_start(&opts, &h->vb), 0);
    catalog_unref(c);
    harness_settle(h);
    view_build_free(old);
}

static void reload(struct harness *h, const struct catalog *c)
{
    view_build_set_catalog(h->vb, c);
    catalog_unref(c);
    harness_settle(h);
}

static const struct gw_topic *topic(struct harness *h, const char *task, const char *name)
{
    const struct gw_task *t = gw_view_task(h->w.view, span_str(task));
    return t == NULL ? NULL : gw_task_topic(t, span_str(name));
}

static void unchanged_topics_keep_ids_epochs_and_partitions(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "c/0", "c");
    start(h, parse(HEAD TASK("t", "{}", "{source: c}, {source: c, resource: {topic_name: d}}")));
    const struct gw_topic *c = topic(h, "t", "c");
    struct kp_uuid id = c->id;
    const struct gw_part *part = c->parts[0];
    const struct gw_view *old = gw_view_ref(h->w.view);

    reload(h, parse(HEAD TASK("t", "{}", "{source: c}, {source: x, resource: {topic_name: e}}")));
    assert_ptr_not_equal(h->w.view, old);
    c = topic(h, "t", "c");
    assert_memory_equal(c->id.b, id.b, sizeof id.b);
    assert_int_equal(c->epoch, 1);
    assert_ptr_equal(c->parts[0], part);
    assert_null(topic(h, "t", "d"));
    assert_int_equal(topic(h, "t", "e")->parts_n, 0);
    /* a view that somebody still reads lives with its catalog */
    assert_string_equal(gw_task_topic(old->anonymous, span_str("d"))->binding->topic, "d");
    gw_view_unref(old);
    /* a raised counter is another life, a lower one is not */
    reload(h, parse(HEAD TASK("t", "{}", "{source: c, backfill: 2}")));
    assert_int_equal(topic(h, "t", "c")->epoch, 3);
    assert_memory_equal(topic(h, "t", "c")->id.b, id.b,
                        sizeof id.b); /* O12: running clients go on */
    reload(h, parse(HEAD TASK("t", "{}", "{source: c}")));
    assert_int_equal(topic(h, "t", "c")->epoch, 3);
}

static void tasks_are_apart_and_a_gone_one_is_empty(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "c/0", "c");
    start(h, parse(HEAD TASK("t", "{token: a}", "{source: c}")
                       TASK("u", "{token: [b, d]}",
                            "{source: c, backfill: 4}, {source: c, resource: "
                            "{topic_name: own}}")));
    const struct gw_topic *one = topic(h, "t", "c"), *two = topic(h, "u", "c");
    assert_int_equal(one->epoch, 1);
    assert_int_equal(two->epoch, 5);
    assert_memory_not_equal(one->id.b, two->id.b, sizeof one->id.b);
    assert_null(topic(h, "t", "own"));
    assert_null(gw_task_topic_by_id(gw_view_task(h->w.view, span_str("t")), &two->id));
    assert_string_equal(h->w.view->anonymous->name, "t");
    assert_int_equal(gw_view_task(h->w.view, span_str("u"))->tokens_n, 2);
    assert_string_equal(gw_view_task(h->w.view, span_str("u"))->tokens[1], "d");

    reload(h, parse(HEAD TASK("t", "{token: e}", "{source: c}")));
    assert_null(gw_view_task(h->w.view, span_str("u")));
    assert_int_equal(gw_view_principal(h->w.view, "u")->topics_n, 0);
    assert_string_equal(gw_view_principal(h->w.view, "")->tokens[0], "e");
    /* what it had is remembered */
    reload(h, parse(HEAD TASK("t", "{}", "{source: c}") TASK("u", "{}", "{source: c}")));
    assert_int_equal(topic(h, "u", "c")->epoch, 5);
}

static void settings_of_a_task_come_with_its_view(void **state)
{
    struct harness *h = *state;

    start(h, parse(HEAD TASK("t", "{allow_empty_topics: true, strict_topic_names: true}",
                             "{source: a/b}")));
    const struct gw_topic *t = topic(h, "t", "a.2Fb");
    assert_ptr_equal(topic(h, "t", "a/b"), t);
    assert_int_equal(t->parts_n, 1);
    assert_true(t->parts[0]->empty);
    assert_null(t->first);
    reload(h, parse(HEAD TASK("t", "{sluice: {redirect: 'gw.test:9'}}", "{source: a/b}")));
    assert_null(topic(h, "t", "a.2Fb"));
    assert_int_equal(topic(h, "t", "a/b")->parts_n, 0);
    const struct gw_task *task = h->w.view->anonymous;
    assert_string_equal(task->redirect_host, "gw.test");
    assert_true(task->redirect_port == 9 && task->redirect_node >= 1000);
    /* the first journal takes the place of the empty partition, under the same epoch */
    reload(h, parse(HEAD TASK("t", "{allow_empty_topics: true}", "{source: a/b}")));
    int32_t epoch = topic(h, "t", "a/b")->epoch;
    fake_journal(h->fs, "a/b/0", "a/b");
    harness_settle(h);
    t = topic(h, "t", "a/b");
    assert_true(t->parts_n == 1 && !t->parts[0]->empty);
    assert_int_equal(t->epoch, epoch);
}

static void a_prefix_counts_where_there_is_no_label(void **state)
{
    struct harness *h = *state;

    fake_journal_labels(h->fs, "pre/fix/0", NULL, 0);
    fake_journal(h->fs, "pre/fix/1", "p");
    fake_journal(h->fs, "pre/other/0", "p");
    fake_journal(h->fs, "pre/fix/2", "q");
    start(h, parse(HEAD TASK("t", "{}", "{source: p}, {source: q}")));
    const struct gw_topic *p = topic(h, "t", "p");
    assert_int_equal(p->parts_n, 2);
    assert_string_equal(p->parts[0]->journal->spec.name, "pre/fix/0");
    assert_string_equal(p->parts[1]->journal->spec.name, "pre/fix/1");
    assert_int_equal(topic(h, "t", "q")->parts_n, 1);
    /* without the prefix the label is all that counts */
    reload(h, parse("materializations:\n" TASK("t", "{}", "{source: p}")));
    assert_int_equal(topic(h, "t", "p")->parts_n, 2);
    assert_string_equal(topic(h, "t", "p")->parts[1]->journal->spec.name, "pre/other/0");
    assert_int_equal(topic(h, "t", "p")->epoch, 2); /* another list */
}

static size_t encoders(const struct harness *h)
{
    const struct vb_encoder *e;
    size_t n = 0;

    STAILQ_FOREACH(e, &h->vb->encoders, link)
    n++;
    return n;
}

/* A thousand schemas later no more than the one in force and the one before it are there; what a
 * reader still holds outlives both. */
static void encoders_of_earlier_catalogs_are_forgotten(void **state)
{
    struct harness *h = *state;
    const struct gw_encoder *held = NULL;
    uint32_t last = 0;
    char text[600];

    fake_journal(h->fs, "c/0", "c");
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text,
                       "collections:\n  c: {schema: {type: object, properties: {k: {type: string}, "
                       "p%u: {type: integer}}, required: [k]}, key: [/k]}\nmaterializations:\n"
                       "  t: {endpoint: {dekaf: {config: {}}}, bindings: [{source: c}]}\n",
                       i);
        if (i == 0)
            start(h, parse(text));
        else
            reload(h, parse(text));
        const struct gw_encoder *e = topic(h, "t", "c")->encoder;

        assert_non_null(e->avro);
        assert_true(i == 0 || e->id > last);
        assert_true(encoders(h) <= 3);
        last = e->id;
        if (i == 10)
            held = gw_encoder_ref(e);
    }
    assert_non_null(memmem(sc_avro_value_schema(held->avro->avro).p,
                           sc_avro_value_schema(held->avro->avro).n, "\"p10\"", 5));
    gw_encoder_unref(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unchanged_topics_keep_ids_epochs_and_partitions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(tasks_are_apart_and_a_gone_one_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(settings_of_a_task_come_with_its_view, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prefix_counts_where_there_is_no_label, setup, teardown),
        cmocka_unit_test_setup_teardown(encoders_of_earlier_catalogs_are_forgotten, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
