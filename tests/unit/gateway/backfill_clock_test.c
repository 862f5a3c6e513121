/*
 * One clock (C1 to C12 of ExtendDB's record, in their meaning here): UUIDs of documents,
 * acknowledgements and markers, labels, the store's state, its index and its times derive from the
 * one reading that a transaction takes, and nothing ever goes back. Readings are injected; each
 * test shows that the branch it is about has run.
 */
#include "tests/unit/gateway/backfill_lab.h"

/* Clocks of a journal's lines in order. */
struct clocks {
    size_t n;
    uint64_t v[4096];
    uint16_t flags[4096];
};

static void take(void *arg, struct span line, const struct jc_doc_info *info)
{
    struct clocks *c = arg;

    (void)line;
    assert_true(c->n < 4096);
    c->flags[c->n] = info->flags;
    c->v[c->n++] = info->clock;
}

static struct clocks *clocks_of(struct bl *bl, const char *journal)
{
    static struct clocks c;

    c.n = 0;
    bl_each(bl, journal, take, &c);
    return &c;
}

static void make_one(struct bl *bl)
{
    assert_int_equal(bl_put(bl, "acme/c", 0, JC_LABEL_COLLECTION, "c", NULL), 0);
    (void)bl_publish(bl, "c", "{\"id\":0}\n"); /* the producer id is there from now on */
}

static unsigned txn_reads(struct bl *bl)
{
    return (unsigned)jl_store_of(bl->l.lab.s)->txn_clock.reads;
}

/* C1 */
static void a_transaction_takes_one_reading_and_all_derives_from_it(void **state)
{
    struct bl *bl = *state;
    struct clocks *c;
    char hex[17];
    unsigned reads;
    uint64_t b;

    make_one(bl);
    bl->wall_ns += 1000000007;
    reads = txn_reads(bl);
    (void)bl_publish(bl, "c", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    assert_int_equal(txn_reads(bl), reads + 1);
    c = clocks_of(bl, "acme/c");
    assert_int_equal(c->n, 6);
    for (size_t i = 2; i < 6; i++)
        assert_true(c->v[i] == bl_clock_of(bl->wall_ns) + (i - 2));
    bl->wall_ns += 1000000007;
    reads = txn_reads(bl);
    b = bl_begin(bl, "c");
    assert_int_equal(txn_reads(bl), reads + 1);
    assert_true(b == bl_clock_of(bl->wall_ns));
    bl->wall_ns += 1000000007; /* the label is set later, by no reading of its own */
    (void)bl_settle(bl, "c");
    num_hex16(b, hex);
    assert_string_equal(bl_label(bl, "acme/c", JC_LABEL_TRUNCATED_AT), hex);
    assert_true(bl_status(bl, "c").state.begin == b);
    assert_true(clocks_of(bl, "acme/c")->v[6] == b);
    assert_true(jc_clock_unix_ms(b) == (bl->wall_ns - 1000000007) / 1000000);
}

/* C2: requests that wait are stamped when their turn comes, not when they were sent. */
static void the_reading_is_taken_after_the_waits(void **state)
{
    struct bl *bl = *state;
    struct bl_answer a[3];

    make_one(bl);
    for (size_t i = 0; i < 3; i++)
        bl_post(bl, (struct backfill_req){.verb = BACKFILL_BEGIN}, "c", &a[i]);
    bl->wall_ns += INT64_C(2100000000); /* they waited for 2.1 s */
    for (size_t i = 0; i < 3; i++)
        lab_wait(&bl->l.lab, &a[i].done);
    assert_true(a[0].a.clock >= bl_clock_of(bl->wall_ns));
    assert_true(a[2].a.clock > a[1].a.clock && a[1].a.clock > a[0].a.clock);
}

/* C3: retention and the clock in the UUIDs are one; the store's mod times come from them. */
static void a_fragments_time_is_not_below_the_clocks_in_it(void **state)
{
    const struct jc_journal *j;
    struct bl *bl = *state;
    struct lab_frags f = {.n = 0};
    uint64_t b;

    make_one(bl);
    bl->wall_ns += INT64_C(3600000000000);
    b = bl_begin(bl, "c");
    (void)bl_settle(bl, "c");
    bl->wall_ns -= INT64_C(7200000000000); /* closed by a wall that went back two hours */
    assert_int_equal(ll_flush(&bl->l), 0);
    j = lab_find(&bl->l.lab, "acme/c");
    lab_frags(&bl->l.lab, j, &f);
    assert_int_equal(f.n, 1);
    assert_true(f.v[0].mod_time_ms >= jc_clock_unix_ms(b));
    jc_journal_unref(j);
}

/* C4, C6, C9: the clamp keeps what was given out, and adds one. */
static void clocks_rise_over_backward_steps_and_the_clamp_has_run(void **state)
{
    struct bl *bl = *state;
    uint64_t ahead, last;

    make_one(bl);
    bl->wall_ns += INT64_C(5000000000); /* 5 s ahead ... */
    ahead = last = bl_begin(bl, "c");
    assert_true(ahead == bl_clock_of(bl->wall_ns)); /* the plain branch: the reading itself */
    bl->wall_ns -= INT64_C(5000000000);             /* ... and back */
    for (int i = 0; i < 1000; i++) {
        uint64_t c = i % 10 == 9 ? bl_begin(bl, "c") : bl_publish(bl, "c", "{\"id\":1}\n");

        bl->wall_ns -= 1000;
        assert_true(c > last);
        last = c;
    }
    /* a tick a stamp, none from a reading: 900 documents with their ACKs, and 100 markers */
    assert_true(last == ahead + 1900);
    assert_true(last >> 4 == (ahead + 1900) >> 4);
    bl->wall_ns = BL_EPOCH_NS + INT64_C(10000000000);
    assert_true(bl_begin(bl, "c") == bl_clock_of(bl->wall_ns)); /* the plain branch again */
}

/* C7, C8: the 4-bit counter runs over into the timestamp, without a second reading. */
static void the_counter_carries_into_the_timestamp_without_a_reading(void **state)
{
    struct bl *bl = *state;
    struct clocks *c;
    struct writer w;
    unsigned reads;

    make_one(bl);
    bl->wall_ns += 1000000000;
    wr_init(&w, 1 << 20);
    for (int i = 0; i < 100; i++)
        wr_printf(&w, "{\"id\":%d}\n", i);
    wr_u8(&w, 0);
    reads = txn_reads(bl);
    (void)bl_publish(bl, "c", (const char *)w.b->data);
    wr_fini(&w);
    assert_int_equal(txn_reads(bl), reads + 1);
    c = clocks_of(bl, "acme/c");
    assert_int_equal(c->n, 103);
    for (size_t i = 2; i < c->n; i++)
        assert_true(c->v[i] == bl_clock_of(bl->wall_ns) + (i - 2));
    assert_true(c->v[102] >> 4 == (c->v[2] >> 4) + 6); /* six carries in 101 stamps */
    /* the same reading again goes on behind the carry */
    assert_true(bl_begin(bl, "c") == c->v[102] + 1);
}

/* C5: what is reported is what is stored, not a later reading. */
static void the_answer_names_the_clock_that_was_stored(void **state)
{
    struct bl *bl = *state;
    uint64_t reported;

    make_one(bl);
    reported = bl_publish(bl, "c", "{\"id\":1}\n");
    assert_true(clocks_of(bl, "acme/c")->v[3] == reported);
    reported = bl_begin(bl, "c");
    assert_true(clocks_of(bl, "acme/c")->v[4] == reported);
}

/* C10, C12: a label has one shape, so its text sorts as its number does. */
static void labels_sort_as_text(void **state)
{
    struct bl *bl = *state;
    char last[17] = "";

    make_one(bl);
    for (int i = 0; i < 40; i++) {
        const char *now;

        bl->wall_ns += i % 7 == 3 ? -1000000 : INT64_C(1) << i;
        (void)bl_begin(bl, "c");
        (void)bl_settle(bl, "c");
        now = bl_label(bl, "acme/c", JC_LABEL_TRUNCATED_AT);
        assert_int_equal(strlen(now), 16);
        assert_true(strcmp(now, last) > 0);
        memcpy(last, now, sizeof last);
    }
}

/* C11: a reading that no clock can hold falls back to now (last + 1), never to 1970. */
static void a_reading_out_of_range_falls_back_to_now(void **state)
{
    struct jc_txn_clock c;
    struct bl *bl = *state;
    uint64_t last, got;

    make_one(bl);
    last = bl_begin(bl, "c");
    bl->wall_ns = INT64_MIN; /* 1677: in range of a clock, and behind everything */
    got = bl_begin(bl, "c");
    assert_true(got == last + 1);
    assert_true(jl_store_of(bl->l.lab.s)->txn_clock.reading < last); /* it was read */
    /* All of int64's nanoseconds fit a clock; the clock itself is asked at its ends. */
    jc_txn_clock_init(&c, &bl->clock, last);
    bl->wall_ns = INT64_MAX; /* 2262 */
    assert_true(jc_clock_unix_ms(jc_txn_clock_begin(&c)) == INT64_MAX / 1000000);
    assert_true(jc_clock_from_unix_ms(INT64_MAX) == UINT64_MAX); /* never 0, never 1970 */
}

static void a_restart_goes_on_where_the_clock_was(void **state)
{
    struct bl *bl = *state;
    uint64_t b;

    make_one(bl);
    b = bl_begin(bl, "c");
    bl->wall_ns -= INT64_C(86400000000000);
    bl_reopen(bl);
    assert_true(bl_begin(bl, "c") == b + 1);
}

/* --- clocks of other hands
 * ----------------------------------------------------------------------------------- */

static const uint8_t other[6] = {0x0b, 2, 3, 4, 5, 6};

static void set_label(struct bl *bl, uint64_t clock)
{
    char hex[17];

    num_hex16(clock, hex);
    assert_int_equal(
        bl_put(bl, "acme/c", -1, JC_LABEL_COLLECTION, "c", JC_LABEL_TRUNCATED_AT, hex, NULL), 0);
    while (publisher_listing(bl->p) == NULL || bl_status(bl, "c").truncated_at != clock ||
           publisher_listing(bl->p)->items[0]->mod_revision < 2)
        (void)mailbox_wait(&bl->l.lab.mb, 100);
    lab_settle(&bl->l.lab, 10);
}

/* A publisher whose clock is five minutes ahead made the label: what we publish is not lost. */
static void documents_are_stamped_above_a_label_from_a_faster_clock(void **state)
{
    struct bl *bl = *state;
    uint64_t label = bl_clock_of(BL_EPOCH_NS + INT64_C(300000000000));
    unsigned reads;
    struct bl_view v;

    make_one(bl);
    set_label(bl, label);
    reads = txn_reads(bl);
    assert_true(bl_publish(bl, "c", "{\"id\":1}\n{\"id\":2}\n") == label + 3);
    assert_int_equal(txn_reads(bl), reads + 1); /* passed without a reading */
    bl_see(bl, "c", &v);
    assert_true(v.visible == 2 && v.stale == 1 && v.lowest == label + 1);
    assert_true(bl_begin(bl, "c") == label + 4);
}

/* ... and behind: its label lies below, ours above, and nothing stale comes back. */
static void a_label_from_a_slower_clock_changes_nothing(void **state)
{
    struct bl *bl = *state;
    struct bl_view v;
    uint64_t b;

    make_one(bl);
    set_label(bl, bl_clock_of(BL_EPOCH_NS - INT64_C(300000000000)));
    bl_see(bl, "c", &v);
    assert_int_equal(v.visible, 1);
    bl->wall_ns += 100;
    b = bl_begin(bl, "c");
    assert_true(b == bl_clock_of(bl->wall_ns));
    (void)bl_settle(bl, "c");
    bl_see(bl, "c", &v);
    assert_int_equal(v.visible, 0);
}

/* Stale documents from a fast clock are hidden by a begin that passes them. */
static void a_begin_passes_documents_from_a_faster_clock(void **state)
{
    struct bl *bl = *state;
    uint64_t ahead = bl_clock_of(BL_EPOCH_NS + INT64_C(300000000000)) + 5;
    struct bl_answer a;
    struct bl_view v;

    make_one(bl);
    bl_raw_document(bl, "acme/c", ahead, other, "\"id\":9");
    a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN, .force = true}, "c");
    assert_int_equal(a.a.status, 200);
    assert_true(a.a.clock == ahead + 1);
    (void)bl_settle(bl, "c");
    (void)bl_publish(bl, "c", "{\"id\":1}\n");
    bl_see(bl, "c", &v);
    assert_true(v.visible == 1 && v.lowest > ahead);
}

/* One bad value must not take the clock, and with it every document, centuries ahead. */
static void nothing_follows_a_clock_that_is_far_ahead(void **state)
{
    struct bl *bl = *state;
    uint64_t far = bl_clock_of(BL_EPOCH_NS) + JC_CLOCK_AHEAD;
    struct bl_answer a;

    make_one(bl);
    bl_raw_document(bl, "acme/c", far + 100, other, "\"id\":9");
    a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN}, "c");
    assert_int_equal(a.a.status, 409); /* it is foreign */
    a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN, .force = true}, "c");
    assert_int_equal(a.a.status, 200);
    assert_true(a.a.clock < bl_clock_of(BL_EPOCH_NS) + 100);
    (void)bl_settle(bl, "c");
    set_label(bl, far + 1000);
    a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN, .force = true}, "c");
    assert_int_equal(a.a.status, 409);
    assert_true(bl_publish(bl, "c", "{\"id\":1}\n") < bl_clock_of(BL_EPOCH_NS) + 100);
    set_label(bl, UINT64_MAX);
    a = bl_ask(bl, (struct backfill_req){.verb = BACKFILL_BEGIN, .force = true}, "c");
    assert_int_equal(a.a.status, 409);
    assert_true(jl_store_of(bl->l.lab.s)->txn_clock.last < bl_clock_of(BL_EPOCH_NS) + 100);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bl_setup, bl_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_transaction_takes_one_reading_and_all_derives_from_it),
        T(the_reading_is_taken_after_the_waits),
        T(a_fragments_time_is_not_below_the_clocks_in_it),
        T(clocks_rise_over_backward_steps_and_the_clamp_has_run),
        T(the_counter_carries_into_the_timestamp_without_a_reading),
        T(the_answer_names_the_clock_that_was_stored),
        T(labels_sort_as_text),
        T(a_reading_out_of_range_falls_back_to_now),
        T(a_restart_goes_on_where_the_clock_was),
        T(documents_are_stamped_above_a_label_from_a_faster_clock),
        T(a_label_from_a_slower_clock_changes_nothing),
        T(a_begin_passes_documents_from_a_faster_clock),
        T(nothing_follows_a_clock_that_is_far_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
