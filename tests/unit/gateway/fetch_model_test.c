/*
 * Random journals against an oracle: documents of 1 byte to 1 MB, runs of ACKs, blank lines, lines
 * that are no JSON, several producers, removed prefixes, bounds. The oracle is the list of what was
 * written; every answer must be what the list says, whatever the offset, the limits, the version
 * and the isolation level. The seed is printed by a failing assertion's row.
 */
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

struct written {
    int64_t begin, end;
    uint64_t clock;
    bool content;
};

static struct written docs[20000];
static size_t docs_n;
static uint64_t seed;
static struct lab_batches got;

static uint64_t rnd(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

static size_t random_size(void)
{
    switch (rnd(12)) {
    case 0:
        return 1 + rnd(200000);
    case 1:
        return rnd(60) == 0 ? 1000000 : 70000;
    case 2:
    case 3:
        return 1 + rnd(20000);
    default:
        return 1 + rnd(1500);
    }
}

static void note(struct lab *lab, int64_t begin, uint64_t clock, bool content)
{
    assert_true(docs_n < sizeof docs / sizeof docs[0]);
    docs[docs_n++] = (struct written){begin, lab->journals[0][0]->heads.write_head, clock, content};
}

static void write_some(struct lab *lab, size_t n)
{
    struct fake_journal *j = lab->journals[0][0];

    for (size_t i = 0; i < n; i++) {
        int64_t begin = j->heads.write_head;
        uint64_t clock = LAB_CLOCK(rnd(100000));

        switch (rnd(10)) {
        case 0: /* a run of hidden ones */
            for (uint64_t k = rnd(30) + 1; k > 0; k--) {
                begin = j->heads.write_head;
                lab_add(lab, 0, 0, clock, rnd(2) ? JC_FLAG_ACK : JC_FLAG_CONTROL, 70 + rnd(30));
                note(lab, begin, clock, false);
            }
            break;
        case 1:
            fake_append(lab->fs, j, rnd(2) ? "\n" : " \t \n");
            note(lab, begin, 0, false);
            break;
        case 2: /* a document of one byte, or no JSON at all */
            fake_append(lab->fs, j, rnd(2) ? "1\n" : "{]\r\n");
            note(lab, begin, 0, true);
            break;
        default:
            lab_add(lab, 0, 0, clock, rnd(3) ? JC_FLAG_OUTSIDE : JC_FLAG_CONTINUE, random_size());
            note(lab, begin, clock, true);
        }
    }
}

static bool visible(const struct lab *lab, const struct written *d)
{
    const struct gw_bound *b = &lab->topics[0].bound;

    return d->content && d->clock >= b->min_clock && d->clock <= b->max_clock;
}

/* Index of the first visible document whose last byte is at or behind the offset; docs_n if none.
 */
static size_t first_from(const struct lab *lab, int64_t offset)
{
    size_t i = 0;

    while (i < docs_n && (docs[i].end - 1 < offset || !visible(lab, &docs[i])))
        i++;
    return i;
}

static size_t next_visible(const struct lab *lab, size_t i)
{
    do
        i++;
    while (i < docs_n && !visible(lab, &docs[i]));
    return i;
}

/* Walks the records of one answer along the oracle. Returns the client's next position. */
static int64_t check_records(struct lab *lab, int64_t offset, int64_t hwm)
{
    const struct fake_journal *j = lab->journals[0][0];
    size_t want = first_from(lab, offset);
    int64_t position = offset;

    for (size_t i = 0; i < got.n; i++) {
        struct kp_record_iter it;
        struct kp_record rec;

        assert_true(got.v[i].last_offset >= offset);
        assert_true(got.v[i].last_offset < hwm);
        if (got.v[i].control) { /* only where nothing visible is left, and only once */
            assert_int_equal(i, got.n - 1);
            assert_int_equal(got.v[i].base_offset, hwm - 1);
            assert_int_equal(want, docs_n);
            assert_true(position < hwm);
            return hwm;
        }
        kp_record_iter_init(&it, &got.v[i], got.v[i].payload);
        while (kp_record_next(&it, &rec, NULL, 0) == 0) {
            if (rec.offset < offset) {
                assert_int_equal(i, 0); /* older ones only in front */
                continue;
            }
            assert_true(want < docs_n);
            assert_int_equal(rec.offset, docs[want].end - 1);
            assert_int_equal(rec.value.n, docs[want].end - 1 - docs[want].begin);
            assert_memory_equal(rec.value.p, j->bytes->data + docs[want].begin, rec.value.n);
            assert_int_equal(rec.timestamp, jc_clock_unix_ms(docs[want].clock));
            position = rec.offset + 1;
            want = next_visible(lab, want);
        }
    }
    return position;
}

/* One fetch, checked in full; returns the next position. */
static int64_t check_fetch(struct lab *lab, int64_t offset)
{
    const struct fake_journal *j = lab->journals[0][0];
    int64_t hwm = j->heads.content_end, log_start = j->heads.log_start;
    struct lab_request *r = lab_fetch_new(lab, (int16_t)(4 + rnd(15)));
    struct kp_fetch_req_topics_partitions *want = lab_want(lab, r, 0, 0, offset);
    int32_t part_max = (int32_t)(rnd(3) == 0 ? rnd(100) : rnd(2 << 20));

    want->partition_max_bytes = part_max;
    r->body.fetch.max_bytes = (int32_t)(rnd(3) == 0 ? rnd(1000) : rnd(4 << 20));
    r->body.fetch.isolation_level = (int8_t)rnd(2);
    int32_t max = r->body.fetch.max_bytes;
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    const struct kp_fetch_resp_responses_partitions *p = lab_part(lab, 0, 0);
    assert_non_null(p);
    lab_parse(p->records.in, &got);
    if (offset < log_start || offset > j->heads.write_head) {
        assert_int_equal(p->error_code, KE_OFFSET_OUT_OF_RANGE);
        assert_int_equal(got.n, 0);
        return offset;
    }
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->high_watermark, hwm);
    assert_int_equal(p->last_stable_offset, hwm);
    if (offset >= hwm) {
        assert_int_equal(got.n, 0);
        return offset;
    }
    assert_true(got.n > 0); /* below the watermark there is always something */
    if (got.n > 1)
        assert_true(p->records.in.n <= (size_t)(part_max < max ? part_max : max));
    int64_t position = check_records(lab, offset, hwm);
    assert_true(position > offset);
    return position;
}

static void random_journal(struct lab *lab, uint64_t s)
{
    seed = s * UINT64_C(0x9e3779b97f4a7c15) + 1;
    docs_n = 0;
    lab_topic(lab, "docs", 1);
    switch (s % 4) {
    case 1:
        lab->topics[0].bound.min_clock = LAB_CLOCK(rnd(100000));
        break;
    case 2:
        lab->topics[0].bound.max_clock = LAB_CLOCK(rnd(100000));
        break;
    case 3:
        lab->topics[0].bound = (struct gw_bound){LAB_CLOCK(40000), LAB_CLOCK(45000)};
        break;
    default:
        break;
    }
    lab_view(lab);
    write_some(lab, 40 + rnd(300));
    lab_heads(lab);
}

/* Removes a prefix at a document's border, as retention does. */
static void remove_some(struct lab *lab)
{
    size_t n = rnd(docs_n);
    int64_t log_start = 0;

    for (size_t i = 0; i < n; i++) {
        if (docs[i].content)
            log_start = docs[i].end;
    }
    fake_remove_below(lab->fs, lab->journals[0][0], docs[n].begin, log_start);
    lab_heads(lab);
}

static void every_offset_of_random_journals_is_answered_as_the_oracle_says(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= 24; s++) {
        struct lab *lab = lab_new();

        random_journal(lab, s);
        if (s % 3 == 0)
            remove_some(lab);
        int64_t head = lab->journals[0][0]->heads.write_head;
        for (int k = 0; k < 120; k++)
            (void)check_fetch(lab, (int64_t)rnd((uint64_t)head + 3));
        for (int k = 0; k < 60; k++) { /* and around the borders of documents */
            size_t i = rnd(docs_n);
            (void)check_fetch(lab, docs[i].begin + (int64_t)rnd(3) - 1);
            (void)check_fetch(lab, docs[i].end - 1);
        }
        lab_free(lab);
    }
    lab_current = *state;
}

static void a_reader_that_follows_gets_each_visible_document_once(void **state)
{
    (void)state;
    for (uint64_t s = 100; s < 112; s++) {
        struct lab *lab = lab_new();

        random_journal(lab, s);
        int64_t at = 0;
        unsigned fetches = 0;
        for (int round = 0; round < 30; round++) {
            int64_t hwm = lab->journals[0][0]->heads.content_end;
            while (at < hwm) {
                at = check_fetch(lab, at); /* checks order and completeness */
                assert_true(++fetches < 10000);
            }
            assert_true(at >= hwm);
            write_some(lab, 1 + rnd(8));
            lab_heads(lab);
        }
        lab_free(lab);
    }
    lab_current = *state;
}

static void byte_ranges_split_a_journal_without_loss_or_double(void **state)
{
    (void)state;
    for (uint64_t s = 200; s < 208; s++) {
        struct lab *lab = lab_new();
        size_t seen = 0, expected = 0;

        random_journal(lab, s);
        int64_t hwm = lab->journals[0][0]->heads.content_end;
        for (size_t i = 0; i < docs_n; i++)
            expected += visible(lab, &docs[i]);
        for (int64_t part = 0; part < 3; part++) {
            int64_t low = hwm * part / 3, high = hwm * (part + 1) / 3;
            for (int64_t at = low; at < high;) {
                int64_t next = check_fetch(lab, at);
                for (size_t i = first_from(lab, at);
                     i < docs_n && docs[i].end - 1 < next && docs[i].end - 1 < high;
                     i = next_visible(lab, i))
                    seen++;
                at = next;
            }
        }
        assert_int_equal(seen, expected);
        lab_free(lab);
    }
    lab_current = *state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            every_offset_of_random_journals_is_answered_as_the_oracle_says, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reader_that_follows_gets_each_visible_document_once,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(byte_ranges_split_a_journal_without_loss_or_double, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
