/* From journals to topics: grouping, order, epochs over changes and restarts, bounds, waiting. */
#include "gateway/topic_state.h"
#include "tests/unit/gateway/harness.h"

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

/* The gateway stops and comes again on the same store. */
static void restart(struct harness *h)
{
    const struct view_build_opts opts = {
        .store = &h->fs->base, .mb = &h->control, .on_view = harness_on_view, .arg = h};

    view_build_stop(h->vb);
    harness_settle(h);
    struct view_build *old = h->vb;
    assert_int_equal(view_build_start(&opts, &h->vb), 0);
    harness_settle(h);
    view_build_free(old); /* the worker has the new view by now */
}

static const struct gw_topic *topic(struct harness *h, const char *name)
{
    harness_settle(h);
    return gw_task_topic(h->w.view->anonymous, span_str(name));
}

static void journals_of_one_collection_are_a_topic_ranked_by_creation(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "z/first", "c");
    fake_journal(h->fs, "a/second", "c");
    fake_journal_labels(h->fs, "no/label", NULL, 0);
    fake_journal(h->fs, "m/other", "b");
    const struct gw_topic *t = topic(h, "c");
    assert_int_equal(h->w.view->topics_n, 2);
    assert_int_equal(t->parts_n, 2);
    assert_string_equal(t->parts[0]->journal->spec.name, "z/first");
    assert_string_equal(t->parts[1]->journal->spec.name, "a/second");
    assert_int_equal(t->epoch, 1);
    assert_true(view_build_ready(h->vb));
    assert_ptr_equal(gw_task_topic_by_id(h->w.view->anonymous, &t->id), t);
    assert_int_equal(t->id.b[6] >> 4, 8);
    assert_int_equal(t->id.b[8] >> 6, 2);
}

static void many_changes_at_once_are_one_view(void **state)
{
    struct harness *h = *state;
    char name[32];

    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "j/%02d", i);
        fake_journal(h->fs, name, "c");
    }
    assert_int_equal(topic(h, "c")->parts_n, 50);
    assert_true(h->views <= 2);
}

static void an_appended_journal_keeps_epoch_id_and_the_other_partitions(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "j/b", "c");
    const struct gw_topic *t = topic(h, "c");
    struct kp_uuid id = t->id;
    uint64_t part = t->parts[0]->id;
    fake_journal(h->fs, "j/a", "c");
    t = topic(h, "c");
    assert_int_equal(t->parts_n, 2);
    assert_int_equal(t->epoch, 1);
    assert_memory_equal(&t->id, &id, sizeof id);
    assert_int_equal(t->parts[0]->id, part);
}

static void a_removed_or_recreated_journal_raises_the_epoch_for_ever(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");
    fake_journal(h->fs, "j/b", "c");

    struct kp_uuid id = topic(h, "c")->id;
    fake_delete(h->fs, a);
    const struct gw_topic *t = topic(h, "c");
    assert_int_equal(t->parts_n, 1);
    assert_int_equal(t->epoch, 2);
    assert_memory_not_equal(&t->id, &id, sizeof id); /* O12: partition 0 is another journal */
    id = t->id;
    fake_journal(h->fs, "j/a", "c"); /* the name again, but another journal: it is appended */
    t = topic(h, "c");
    assert_int_equal(t->epoch, 2);
    assert_string_equal(t->parts[1]->journal->spec.name, "j/a");
    restart(h);
    assert_int_equal(topic(h, "c")->epoch, 2);
    assert_memory_equal(&topic(h, "c")->id, &id, sizeof id);
}

static void a_topic_that_vanished_comes_back_under_a_higher_epoch(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");

    assert_non_null(topic(h, "c"));
    struct kp_uuid id = topic(h, "c")->id;
    fake_delete(h->fs, a);
    assert_null(topic(h, "c"));
    restart(h);
    fake_journal(h->fs, "j/a", "c");
    assert_int_equal(topic(h, "c")->epoch, 2);
    assert_memory_not_equal(&topic(h, "c")->id, &id, sizeof id); /* as a Kafka topic made again */
}

static void a_restart_changes_neither_epoch_nor_id(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "j/a", "c");
    fake_journal(h->fs, "j/b", "c");
    struct kp_uuid id = topic(h, "c")->id;
    restart(h);
    const struct gw_topic *t = topic(h, "c");
    assert_int_equal(t->epoch, 1);
    assert_memory_equal(&t->id, &id, sizeof id);
}

static void a_journal_changed_while_the_gateway_was_down_is_noticed(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");

    fake_journal(h->fs, "j/b", "c");
    assert_int_equal(topic(h, "c")->epoch, 1);
    view_build_stop(h->vb);
    harness_settle(h);
    fake_delete(h->fs, a);
    restart(h);
    assert_int_equal(topic(h, "c")->epoch, 2);
}

static void nothing_is_shown_before_its_heads_and_what_was_shown_stays(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "j/a", "c");
    assert_int_equal(topic(h, "c")->parts_n, 1);
    struct fake_journal *b = fake_journal(h->fs, "j/b", "c");
    b->silent = true;
    assert_int_equal(topic(h, "c")->parts_n, 1);
    fake_silent(h->fs, b, false);
    assert_int_equal(topic(h, "c")->parts_n, 2);
    assert_int_equal(topic(h, "c")->epoch, 1);
}

static void the_first_view_waits_for_all_topics_but_not_for_ever(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "j/a", "c");
    fake_journal(h->fs, "j/b", "mute")->silent = true;
    harness_settle(h);
    assert_int_equal(h->views, 0);
    for (int i = 0; i < 10; i++) {
        view_build_tick(h->vb);
        harness_settle(h);
    }
    assert_int_equal(h->views, 1);
    assert_non_null(topic(h, "c"));
    assert_null(topic(h, "mute"));
    assert_false(view_build_ready(h->vb));
}

struct whole_views {
    struct harness *h;
    bool failing; /* what allocates in the harness itself has to wait */
    size_t topics;
};

static void on_whole_view(void *arg, const struct gw_view *view)
{
    struct whole_views *w = arg;

    w->topics = 0;
    for (size_t i = 0; i < view->tasks_n; i++) {
        for (size_t k = 0; k < view->tasks[i].topics_n; k++, w->topics++) {
            const struct gw_topic *t = &view->tasks[i].topics[k];
            assert_string_equal(t->name, "c");
            assert_non_null(t->encoder);
            assert_non_null(t->first);
        }
    }
    if (!w->failing)
        assert_int_equal(worker_post_view(&w->h->w, view), 0);
}

/* REV's find: a topic was given out whose encoder could not be made. */
static void a_topic_is_shown_whole_however_an_allocation_fails(void **state)
{
    struct harness *h = *state;
    struct whole_views views = {.h = h};
    const struct view_build_opts opts = {
        .store = &h->fs->base, .mb = &h->control, .on_view = on_whole_view, .arg = &views};
    const struct jc_label labels[] = {{JC_LABEL_COLLECTION, "c"}, {GW_LABEL_KEY "0", "/id"}};
    struct fake_journal *f = fake_journal_labels(h->fs, "j/a", labels, 2);

    assert_non_null(topic(h, "c")); /* its generation is stored */
    for (long n = 0; n < 40; n++) {
        view_build_stop(h->vb);
        harness_settle(h);
        struct view_build *old = h->vb;
        f->silent = true;
        assert_int_equal(view_build_start(&opts, &h->vb), 0);
        harness_settle(h);
        fake_silent(h->fs, f, false);
        views = (struct whole_views){.h = h, .failing = true};
        mem_fail_after(n, 0);
        harness_settle(h);
        mem_fail_after(-1, 0);
        views.failing = false;
        for (int i = 0; i < 12; i++) {
            view_build_tick(h->vb);
            harness_settle(h);
        }
        fake_journal(h->fs, "j/b", "c"); /* and what comes later is shown as ever */
        harness_settle(h);
        assert_int_equal(views.topics, 1);
        assert_int_equal(topic(h, "c")->parts_n, 2);
        fake_delete(h->fs, fake_find(h->fs, "j/b"));
        harness_settle(h);
        view_build_free(old);
    }
}

static void a_view_is_not_given_out_before_its_generation_is_stored(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");

    fake_journal(h->fs, "j/b", "c");
    assert_int_equal(topic(h, "c")->epoch, 1);
    h->fs->kv_fail = 1;
    fake_delete(h->fs, a);
    const struct gw_topic *t = topic(h, "c");
    assert_int_equal(t->epoch, 1);
    assert_int_equal(t->parts_n, 2);
    view_build_tick(h->vb);
    t = topic(h, "c");
    assert_int_equal(t->epoch, 2);
    assert_int_equal(t->parts_n, 1);
}

static void lost_bytes_raise_the_epoch_and_the_heads_begin_anew(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");
    struct jc_heads heads;

    fake_append(h->fs, a, "{\"n\":1}\n{\"n\":2}\n");
    const struct gw_topic *t = topic(h, "c");
    assert_int_equal(t->epoch, 1);
    struct gw_part *before = gw_part_ref(t->parts[0]);
    fake_lose(h->fs, a, 8, false);
    t = topic(h, "c");
    assert_int_equal(t->epoch, 2);
    assert_true(gw_part_heads(t->parts[0], &heads));
    assert_int_equal(heads.content_end, 8);
    assert_false(gw_part_lost(t->parts[0]));
    assert_true(gw_part_lost(before));
    assert_true(gw_part_heads(before, &heads));
    assert_int_equal(heads.content_end, 16); /* within its life it never goes back */
    gw_part_unref(before);
    restart(h);
    assert_int_equal(topic(h, "c")->epoch, 2);
}

static void bytes_lost_while_the_gateway_was_down_raise_the_epoch(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");

    fake_append(h->fs, a, "{\"n\":1}\n{\"n\":2}\n");
    assert_int_equal(topic(h, "c")->epoch, 1);
    fake_silent(h->fs, a, true);
    fake_lose(h->fs, a, 8, false);
    a->silent = false;
    restart(h);
    assert_int_equal(topic(h, "c")->epoch, 2);
}

static void a_damaged_generation_hides_the_topic_and_no_other(void **state)
{
    struct harness *h = *state;

    fake_journal(h->fs, "j/a", "c");
    fake_journal(h->fs, "j/b", "d");
    assert_non_null(topic(h, "c"));
    for (size_t i = 0; i < h->fs->kv_n; i++) {
        if (strcmp(h->fs->kv[i].key, "topic/c/generation") == 0)
            h->fs->kv[i].value->data[0] = 'x';
    }
    restart(h);
    assert_null(topic(h, "c"));
    assert_non_null(topic(h, "d"));
}

static void relabel(struct harness *h, struct fake_journal *f, const char *truncated_at)
{
    const struct jc_label labels[] = {{JC_LABEL_COLLECTION, "c"},
                                      {JC_LABEL_TRUNCATED_AT, truncated_at}};
    fake_relabel(h->fs, f, labels, truncated_at == NULL ? 1 : 2);
}

static void the_bound_is_the_highest_label_and_never_falls(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");
    struct fake_journal *b = fake_journal(h->fs, "j/b", "c");

    assert_int_equal(topic(h, "c")->bound.min_clock, 0);
    assert_true(topic(h, "c")->bound.max_clock == UINT64_MAX);
    relabel(h, a, "0000000000000100");
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x100);
    relabel(h, b, "0000000000000200");
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x200);
    relabel(h, b, "0000000000000050");
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x200);
    relabel(h, b, NULL);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x200);
    fake_delete(h->fs, b);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x200);
}

static void a_malformed_bound_is_refused_counted_once_and_the_last_good_one_stays(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");
    const char *bad[] = {"200", "000000000000020G", "00000000000002000", "", "0000000000000ABC"};

    relabel(h, a, "0000000000000100");
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x100);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t before = metric_get(M_LABELS_REFUSED);
        relabel(h, a, bad[i]);
        assert_int_equal(topic(h, "c")->bound.min_clock, 0x100);
        fake_journal(h->fs, "j/more", "d");
        harness_settle(h);
        fake_delete(h->fs, fake_find(h->fs, "j/more"));
        harness_settle(h);
        assert_int_equal(metric_get(M_LABELS_REFUSED), before + 1);
    }
}

static void a_bound_takes_effect_while_a_longer_list_still_waits(void **state)
{
    struct harness *h = *state;
    struct fake_journal *a = fake_journal(h->fs, "j/a", "c");

    assert_non_null(topic(h, "c"));
    fake_journal(h->fs, "j/b", "c")->silent = true;
    relabel(h, a, "0000000000000100");
    assert_int_equal(topic(h, "c")->parts_n, 1);
    assert_int_equal(topic(h, "c")->bound.min_clock, 0x100);
}

static void equal_keys_and_codecs_share_an_encoder_and_bad_ones_mean_none(void **state)
{
    struct harness *h = *state;
    const struct jc_label k1[] = {{JC_LABEL_COLLECTION, "a"}, {"sluice.dev/key/0", "/id"}};
    const struct jc_label k2[] = {{JC_LABEL_COLLECTION, "b"}, {"sluice.dev/key/0", "/id"}};
    const struct jc_label k3[] = {{JC_LABEL_COLLECTION, "d"},
                                  {"sluice.dev/compression", "zstd"},
                                  {"sluice.dev/key/0", "/id"}};
    const struct jc_label k4[] = {{JC_LABEL_COLLECTION, "e"}, {"sluice.dev/key/0", "/a%2"}};
    const struct jc_label k5[] = {{JC_LABEL_COLLECTION, "f"}, {"sluice.dev/compression", "rar"}};

    fake_journal_labels(h->fs, "j/1", k1, 2);
    fake_journal_labels(h->fs, "j/2", k2, 2);
    fake_journal_labels(h->fs, "j/3", k3, 3);
    fake_journal_labels(h->fs, "j/4", k4, 2);
    fake_journal_labels(h->fs, "j/5", k5, 2);
    assert_non_null(topic(h, "a")->encoder->key);
    assert_ptr_equal(topic(h, "a")->encoder, topic(h, "b")->encoder);
    assert_int_equal(topic(h, "d")->encoder->codec, KP_CODEC_ZSTD);
    assert_true(topic(h, "d")->encoder->id != topic(h, "a")->encoder->id);
    assert_null(topic(h, "e")->encoder->key);
    assert_int_equal(topic(h, "f")->encoder->codec, KP_CODEC_NONE);
    assert_ptr_equal(topic(h, "e")->encoder, topic(h, "f")->encoder);
}

struct await_task {
    struct task task;
    bool ran;
};

static void on_await(struct task *t)
{
    ((struct await_task *)t)->ran = true;
}

static void who_waits_for_a_topic_is_told_after_the_workers_were(void **state)
{
    struct harness *h = *state;
    struct await_task one = {.task.run = on_await};
    struct await_task two = {.task.run = on_await};
    struct await_task never = {.task.run = on_await};

    assert_int_equal(view_build_await(h->vb, span_str("c"), 1, &one.task), 0);
    assert_int_equal(view_build_await(h->vb, span_str("never"), 1, &never.task), 0);
    harness_settle(h);
    assert_false(one.ran);
    fake_journal(h->fs, "j/a", "c");
    while (!one.ran)
        assert_true(mailbox_drain(&h->control) > 0);
    worker_drain_mailbox(&h->w);
    assert_non_null(gw_task_topic(h->w.view->anonymous, span_str("c")));
    assert_int_equal(view_build_await(h->vb, span_str("c"), 1, &two.task), 0);
    harness_settle(h);
    assert_true(two.ran);
    assert_false(never.ran);
    view_build_stop(h->vb);
    harness_settle(h);
    assert_true(never.ran);
}

static void heads_only_move_forward(void **state)
{
    (void)state;
    const struct jc_journal *j = fake_make("j/a", NULL, 0, 1, 1);
    const struct jc_heads high = {10, 20, 30, 40, 50, {0}, 0, 0};
    const struct jc_heads mixed = {11, 2, 3, 41, 5, {0}, 0, 0};
    struct jc_heads got;
    struct gw_part *p;

    assert_int_equal(gw_part_new(j, &p), 0);
    assert_false(gw_part_heads(p, &got));
    gw_part_update(p, &high);
    gw_part_update(p, &mixed);
    assert_true(gw_part_heads(p, &got));
    assert_int_equal(got.first, 11);
    assert_int_equal(got.log_start, 20);
    assert_int_equal(got.content_end, 30);
    assert_int_equal(got.write_head, 41);
    assert_int_equal(got.max_clock, 50);
    gw_part_unref(p);
    jc_journal_unref(j);
}

static void topic_ids_depend_on_each_of_their_parts_and_on_nothing_else(void **state)
{
    (void)state;
    struct kp_uuid a;
    struct kp_uuid b;

    view_topic_id("", "t", "j", 7, &a);
    view_topic_id("", "t", "j", 7, &b);
    assert_memory_equal(&a, &b, sizeof a);
    view_topic_id("x", "t", "j", 7, &b);
    assert_memory_not_equal(&a, &b, sizeof a);
    view_topic_id("", "tj", "", 7, &b);
    assert_memory_not_equal(&a, &b, sizeof a);
    view_topic_id("", "t", "j", 8, &b);
    assert_memory_not_equal(&a, &b, sizeof a);
    for (int64_t revision = 0; revision < 2000; revision++) {
        view_topic_id("", "t", "j", revision, &b);
        assert_int_not_equal(b.b[0] >> 2, 62); /* '-' in base64 */
    }
}

static void a_topic_state_survives_its_text(void **state)
{
    (void)state;
    const struct topic_pair list[] = {{"a/b", 5, 0}, {"quote\"d", INT64_MAX, 3}};
    struct topic_state empty = {0};
    struct topic_state s;
    struct topic_state back;
    struct writer w;
    bool changed;

    assert_int_equal(topic_state_next(&empty, list, 2, &s, &changed), 0);
    assert_true(changed);
    assert_int_equal(s.generation, 0);
    s.generation = 41;
    wr_init(&w, 4096);
    topic_state_write(&s, &w);
    struct blob *text = wr_take(&w);
    assert_int_equal(topic_state_parse(blob_span(text), &back), 0);
    assert_int_equal(back.generation, 41);
    assert_int_equal(back.pairs_n, 2);
    assert_string_equal(back.pairs[1].name, "quote\"d");
    assert_true(back.pairs[1].create_revision == INT64_MAX);
    assert_int_equal(back.pairs[0].life, 0);
    assert_int_equal(back.pairs[1].life, 3);
    assert_string_equal(back.first.name, "a/b");
    topic_state_fini(&back);
    topic_state_fini(&back);
    for (size_t n = 0; n < text->len; n++)
        assert_int_equal(topic_state_parse(span_of(text->data, n), &back), E_CORRUPT);
    blob_unref(text);
    topic_state_fini(&s);
}

static void what_an_id_is_made_of_stays_while_partition_0_is_the_same_journal(void **state)
{
    (void)state;
    static const char moved[] = "{\"generation\":3,\"backfill\":0,\"first\":[\"a\",5],"
                                "\"journals\":[[\"a\",70],[\"b\",71]]}";
    const struct topic_pair lists[][2] = {
        {{"a", 70, 1}, {"b", 71, 0}}, /* it lost bytes */
        {{"a", 70, 1}, {"c", 80, 0}}, /* another partition was replaced */
        {{"a", 90, 0}, {"c", 80, 0}}, /* partition 0 was made anew */
        {{"c", 80, 0}, {"a", 90, 0}}, /* and is another one again */
    };
    const struct topic_pair want[] = {{"a", 5, 0}, {"a", 5, 0}, {"a", 90, 0}, {"c", 80, 0}};
    struct topic_state s;

    assert_int_equal(topic_state_parse(span_str(moved), &s), 0);
    for (size_t i = 0; i < 4; i++) {
        struct topic_state next;
        struct writer w;
        bool changed;
        assert_int_equal(topic_state_next(&s, lists[i], 2, &next, &changed), 0);
        assert_true(changed);
        assert_int_equal(next.generation, s.generation + 1);
        topic_state_fini(&s);
        wr_init(&w, 4096);
        topic_state_write(&next, &w); /* a restart in between */
        topic_state_fini(&next);
        struct blob *text = wr_take(&w);
        assert_int_equal(topic_state_parse(blob_span(text), &s), 0);
        blob_unref(text);
        assert_string_equal(s.first.name, want[i].name);
        assert_int_equal(s.first.create_revision, want[i].create_revision);
    }
    topic_state_fini(&s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(journals_of_one_collection_are_a_topic_ranked_by_creation),
        T(many_changes_at_once_are_one_view),
        T(an_appended_journal_keeps_epoch_id_and_the_other_partitions),
        T(a_removed_or_recreated_journal_raises_the_epoch_for_ever),
        T(a_topic_that_vanished_comes_back_under_a_higher_epoch),
        T(a_restart_changes_neither_epoch_nor_id),
        T(a_journal_changed_while_the_gateway_was_down_is_noticed),
        T(nothing_is_shown_before_its_heads_and_what_was_shown_stays),
        T(a_topic_is_shown_whole_however_an_allocation_fails),
        T(the_first_view_waits_for_all_topics_but_not_for_ever),
        T(a_view_is_not_given_out_before_its_generation_is_stored),
        T(lost_bytes_raise_the_epoch_and_the_heads_begin_anew),
        T(bytes_lost_while_the_gateway_was_down_raise_the_epoch),
        T(a_damaged_generation_hides_the_topic_and_no_other),
        T(the_bound_is_the_highest_label_and_never_falls),
        T(a_malformed_bound_is_refused_counted_once_and_the_last_good_one_stays),
        T(a_bound_takes_effect_while_a_longer_list_still_waits),
        T(equal_keys_and_codecs_share_an_encoder_and_bad_ones_mean_none),
        T(who_waits_for_a_topic_is_told_after_the_workers_were),
        T(heads_only_move_forward),
        T(topic_ids_depend_on_each_of_their_parts_and_on_nothing_else),
        T(a_topic_state_survives_its_text),
        T(what_an_id_is_made_of_stays_while_partition_0_is_the_same_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
