/*
 * Labels by compare-and-set over the real store: what is skipped and what is replaced, lost races,
 * faults, many journals, and four writers at once.
 */
#include "tests/unit/gateway/backfill_lab.h"

#include <pthread.h>
#include <time.h>

#define J "acme/c/one"

static uint64_t parse(const char *hex)
{
    uint64_t c = 0;

    return jc_clock_parse_hex(span_str(hex), &c) < 0 ? 0 : c;
}

static void make(struct bl *bl, size_t n)
{
    char name[64];

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "acme/c/%03zu", i);
        assert_int_equal(bl_put(bl, name, 0, JC_LABEL_COLLECTION, "c", NULL), 0);
    }
}

/* Absent and older are advanced; equal and newer stay. */
static void labels_only_go_forward_and_others_stay(void **state)
{
    struct bl *bl = *state;
    char hex[17];
    uint64_t b;
    unsigned applies;

    assert_int_equal(bl_put(bl, J, 0, "a/b", "first", JC_LABEL_COLLECTION, "c",
                            JC_LABEL_TRUNCATED_AT, "0000000000000010", "zz", "last", NULL),
                     0);
    assert_int_equal(bl_put(bl, "acme/c/two", 0, JC_LABEL_COLLECTION, "c", NULL), 0);
    b = bl_begin(bl, "c");
    (void)bl_settle(bl, "c");
    num_hex16(b, hex);
    assert_string_equal(bl_label(bl, J, JC_LABEL_TRUNCATED_AT), hex);
    assert_string_equal(bl_label(bl, J, "a/b"), "first");
    assert_string_equal(bl_label(bl, J, "zz"), "last");
    assert_string_equal(bl_label(bl, "acme/c/two", JC_LABEL_TRUNCATED_AT), hex);
    /* somebody is ahead on one of them: it stays there, the next begin lies above */
    num_hex16(b + 1000, hex);
    applies = bl->applies;
    assert_int_equal(bl_put(bl, J, -1, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT, hex, NULL),
                     0);
    lab_settle(&bl->l.lab, 20);
    assert_string_equal(bl_label(bl, J, JC_LABEL_TRUNCATED_AT), hex);
    assert_int_equal(bl->applies, applies);
    assert_true(bl_begin(bl, "c") == b + 1001);
    (void)bl_settle(bl, "c");
    /* somebody takes it back: it is put there again */
    assert_int_equal(bl_put(bl, J, -1, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT,
                            "0000000000000010", NULL),
                     0);
    while (bl_status(bl, "c").labelled == 2)
        (void)mailbox_wait(&bl->l.lab.mb, 100);
    (void)bl_settle(bl, "c");
    assert_true(parse(bl_label(bl, J, JC_LABEL_TRUNCATED_AT)) == b + 1001);
}

static void malformed_and_doubled_labels_are_mended_but_never_lowered(void **state)
{
    static const char *const bad[] = {
        "", "xyz", "1F1865219AA68871", "1f1865219aa6887", "1f1865219aa688711", "0x1f1865219aa688"};
    struct bl *bl = *state;
    char name[32], hex[17];
    uint64_t b;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(name, sizeof name, "acme/c/%zu", i);
        assert_int_equal(
            bl_put(bl, name, 0, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT, bad[i], NULL), 0);
    }
    assert_int_equal(bl_put(bl, "acme/c/twice", 0, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT,
                            "0000000000000010", JC_LABEL_TRUNCATED_AT, "0000000000000020", NULL),
                     0);
    b = bl_begin(bl, "c");
    assert_int_equal(bl_settle(bl, "c").labelled, 7);
    num_hex16(b + 5, hex);
    assert_int_equal(bl_put(bl, "acme/c/twice", -1, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT,
                            hex, JC_LABEL_TRUNCATED_AT, "x", NULL),
                     0);
    while (bl_status(bl, "c").truncated_at != b + 5)
        (void)mailbox_wait(&bl->l.lab.mb, 100);
    (void)bl_settle(bl, "c");
    assert_string_equal(bl_label(bl, "acme/c/twice", JC_LABEL_TRUNCATED_AT), hex);
}

/* Inside of an apply of home's: with a mailbox of its own. */
static void relabel_behind_our_back(struct bl *bl)
{
    const struct jc_label labels[] = {{JC_LABEL_COLLECTION, "c"}, {"new", "label"}};
    const struct jc_spec spec = {.name = J, .labels = labels, .labels_n = 2};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = -1};
    struct lab lab;

    lab_init(&lab, bl->l.lab.s);
    assert_int_equal(lab_apply(&lab, &c, 1, NULL), 0);
    lab.s = NULL;
    lab_fini(&lab);
}

static void a_lost_race_is_settled_by_the_next_snapshot(void **state)
{
    struct bl *bl = *state;
    uint64_t b;

    assert_int_equal(bl_put(bl, J, 0, JC_LABEL_COLLECTION, "c", NULL), 0);
    bl->before_apply = relabel_behind_our_back;
    b = bl_begin(bl, "c");
    (void)bl_settle(bl, "c");
    assert_true(bl->applies >= 2);
    assert_string_equal(bl_label(bl, J, "new"), "label");
    assert_true(parse(bl_label(bl, J, JC_LABEL_TRUNCATED_AT)) == b);
}

static void many_lost_races_are_no_reason_to_stop(void **state)
{
    struct bl *bl = *state;

    make(bl, 5);
    assert_int_equal(bl_put(bl, J, 0, JC_LABEL_COLLECTION, "c", NULL), 0);
    for (int i = 0; i < 30; i++) {
        unsigned applies = bl->applies;

        bl->before_apply = relabel_behind_our_back;
        (void)bl_begin(bl, "c");
        if (i % 3 == 0) /* else the next begin comes before the labels */
            assert_int_equal(bl_settle(bl, "c").labelled, 6);
        assert_true(i % 3 != 0 || bl->applies > applies + 1);
    }
    assert_int_equal(bl_settle(bl, "c").labelled, 6);
}

static void a_fault_is_tried_again_at_the_next_tick(void **state)
{
    struct bl *bl = *state;

    make(bl, 3);
    bl->apply_err = E_IO;
    bl->apply_errs = 40;
    (void)bl_begin(bl, "c");
    lab_settle(&bl->l.lab, 20);
    assert_int_equal(bl_status(bl, "c").labelled, 0);
    while (bl->apply_errs > 0) {
        backfills_tick(bl->bf);
        lab_settle(&bl->l.lab, 5);
    }
    backfills_tick(bl->bf);
    assert_int_equal(bl_settle(bl, "c").labelled, 3);
}

/* A journal that refuses (here: its apply fails) does not keep the others from theirs. */
static void one_journal_that_fails_does_not_hide_the_rest(void **state)
{
    struct bl *bl = *state;

    make(bl, 9);
    bl->apply_err = E_INVALID;
    bl->apply_errs = 7; /* 64, 32, ... 1: the first journal has its turn alone */
    (void)bl_begin(bl, "c");
    while (bl_status(bl, "c").labelled < 8)
        assert_true(mailbox_wait(&bl->l.lab.mb, LAB_WAIT_MS) > 0);
    lab_settle(&bl->l.lab, 20);
    assert_int_equal(bl_status(bl, "c").labelled, 8);
    backfills_tick(bl->bf);
    assert_int_equal(bl_settle(bl, "c").labelled, 9);
}

static void many_journals_get_their_labels_in_bounded_batches(void **state)
{
    struct bl *bl = *state;
    unsigned applies;

    make(bl, 200);
    applies = bl->applies;
    (void)bl_begin(bl, "c");
    assert_int_equal(bl_settle(bl, "c").labelled, 200);
    assert_int_equal(bl->applies - applies, 4); /* of 64 each */
}

/* --- four writers
 * ------------------------------------------------------------------------------------ */

#define WRITERS 4
#define ROUNDS  60

/* Its own mailbox; each round raises the label to its target by compare-and-set, or counts. */
struct writer_thread {
    pthread_t thread;
    struct lab lab;
    unsigned n;
    uint64_t base;   /* targets lie above */
    uint64_t top;    /* the highest it set */
    unsigned counts; /* increments of its own label that succeeded */
};

/* Replaces or adds one label. */
static int set_label(struct lab *lab, const struct jc_journal *j, const char *name,
                     const char *value)
{
    struct jc_label labels[32];
    struct jc_spec spec = j->spec;
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = j->mod_revision};
    size_t n = 0;
    bool put = false;

    for (size_t i = 0; i <= j->spec.labels_n; i++) {
        int d = i < j->spec.labels_n ? strcmp(j->spec.labels[i].name, name) : 1;

        if (d >= 0 && !put) {
            labels[n++] = (struct jc_label){name, value};
            put = true;
        }
        if (d != 0 && i < j->spec.labels_n)
            labels[n++] = j->spec.labels[i];
    }
    spec.labels = labels;
    spec.labels_n = n;
    return lab_apply(lab, &c, 1, NULL);
}

/* Half of its rounds raise truncated-at, half count up a label of its own: no update may be lost.
 */
static void *write_labels(void *arg)
{
    struct writer_thread *w = arg;
    char own[16], value[32];

    (void)snprintf(own, sizeof own, "w/%u", w->n);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (;;) {
            const struct jc_journal *j = lab_find(&w->lab, J);
            const char *text = "0";
            uint64_t now = 0, target = w->base + (uint64_t)(i + 1) * 100000 + w->n;
            int err;

            if (jc_spec_label(&j->spec, JC_LABEL_TRUNCATED_AT, &text) == 0)
                now = parse(text);
            if (i % 2 == 0) {
                num_hex16(target, value);
                err = now >= target ? 0 : set_label(&w->lab, j, JC_LABEL_TRUNCATED_AT, value);
                if (err == 0 && target > w->top)
                    w->top = target;
            } else {
                int64_t count = 0;

                text = "0";
                if (jc_spec_label(&j->spec, own, &text) < 0)
                    text = "0";
                assert_int_equal(num_parse_i64(span_str(text), &count), 0);
                (void)snprintf(value, sizeof value, "%d", (int)count + 1);
                if ((err = set_label(&w->lab, j, own, value)) == 0)
                    w->counts++;
            }
            jc_journal_unref(j);
            assert_true(err == 0 || err == E_CONFLICT);
            if (err == 0)
                break;
        }
    }
    return NULL;
}

static void four_writers_end_at_the_maximum_and_lose_nothing(void **state)
{
    struct writer_thread w[WRITERS];
    struct bl *bl = *state;
    uint64_t begun = 0;
    char name[16], want[16], hex[17];

    assert_int_equal(bl_put(bl, J, 0, JC_LABEL_COLLECTION, "c", "keep", "me", NULL), 0);
    memset(w, 0, sizeof w);
    for (unsigned i = 0; i < WRITERS; i++) {
        w[i].n = i;
        w[i].base = bl_clock_of(BL_EPOCH_NS);
        lab_init(&w[i].lab, bl->l.lab.s);
        assert_int_equal(pthread_create(&w[i].thread, NULL, write_labels, &w[i]), 0);
    }
    for (int i = 0; i < 40; i++) { /* the fifth: begins of ours, each above what it lists */
        begun = bl_begin(bl, "c");
        (void)mailbox_wait(&bl->l.lab.mb, 1);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
    begun = bl_begin(bl, "c");
    assert_true(bl_settle(bl, "c").truncated_at == begun);
    num_hex16(begun, hex);
    assert_string_equal(bl_label(bl, J, JC_LABEL_TRUNCATED_AT), hex);
    assert_string_equal(bl_label(bl, J, "keep"), "me");
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_true(begun > w[i].top);
        (void)snprintf(name, sizeof name, "w/%u", i);
        (void)snprintf(want, sizeof want, "%u", w[i].counts);
        assert_int_equal(w[i].counts, ROUNDS / 2);
        assert_string_equal(bl_label(bl, J, name), want);
        w[i].lab.s = NULL; /* it is bl's to close */
        lab_fini(&w[i].lab);
    }
}

/* Four processes' worth of backfills on one store: each applies its own state only. */
static void writers_that_are_behind_never_take_a_label_back(void **state)
{
    struct bl *bl = *state;
    char hex[17];
    uint64_t top = 0;

    make(bl, 4);
    for (unsigned i = 0; i < 200; i++) {
        char name[32];
        uint64_t v = bl_begin(bl, "c");

        if (v > top)
            top = v;
        (void)snprintf(name, sizeof name, "acme/c/%03u", i % 4);
        num_hex16(v + 3, hex);
        if (i % 3 == 0) {
            const struct jc_journal *j = lab_find(&bl->l.lab, name);

            if (set_label(&bl->l.lab, j, JC_LABEL_TRUNCATED_AT, hex) == 0)
                top = v + 3;
            jc_journal_unref(j);
        }
        assert_true(bl_status(bl, "c").truncated_at <= top);
    }
    assert_true(bl_settle(bl, "c").truncated_at == top);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bl_setup, bl_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(labels_only_go_forward_and_others_stay),
        T(malformed_and_doubled_labels_are_mended_but_never_lowered),
        T(a_lost_race_is_settled_by_the_next_snapshot),
        T(many_lost_races_are_no_reason_to_stop),
        T(a_fault_is_tried_again_at_the_next_tick),
        T(one_journal_that_fails_does_not_hide_the_rest),
        T(many_journals_get_their_labels_in_bounded_batches),
        T(four_writers_end_at_the_maximum_and_lose_nothing),
        T(writers_that_are_behind_never_take_a_label_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
