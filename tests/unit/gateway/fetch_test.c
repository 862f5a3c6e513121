/* The offset contract as one Fetch shows it (docs/protocol.md, rules O1-O11). */
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

static struct lab_batches got;

static void a_document_is_found_from_each_of_its_bytes(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 100), b = lab_doc(lab, t, 0, 5000), c = lab_doc(lab, t, 0, 80);

    lab_heads(lab);
    assert_int_equal(a, 99);
    assert_int_equal(b, 5099);
    for (int64_t at = 0; at <= c; at += at < 200 ? 1 : 97) {
        lab_fetch_one(lab, t, 0, at, 11, &got);
        assert_int_equal(lab_first_visible(&got, at), at <= a ? a : at <= b ? b : c);
    }
    const struct kp_fetch_resp_responses_partitions *p = lab_fetch_one(lab, t, 0, c, 11, &got);
    assert_int_equal(p->high_watermark, c + 1);
    assert_int_equal(p->last_stable_offset, c + 1);
    assert_int_equal(p->log_start_offset, 0);
    assert_int_equal(p->preferred_read_replica, -1);
}

static void hidden_documents_never_surface_and_never_move_the_high_watermark(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 200);

    lab_ack(lab, t, 0);
    fake_append(lab->fs, lab->journals[t][0], "  \n\n");
    lab_add(lab, t, 0, LAB_CLOCK(50), JC_FLAG_CONTROL, 90);
    int64_t b = lab_doc(lab, t, 0, 200);
    lab_ack(lab, t, 0);
    lab_heads(lab);

    const struct kp_fetch_resp_responses_partitions *p = lab_fetch_one(lab, t, 0, 0, 12, &got);
    assert_int_equal(p->high_watermark, b + 1);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.v[0].records, 2);
    assert_int_equal(got.v[0].base_offset, a);
    assert_int_equal(got.v[0].last_offset, b);
    /* behind the watermark, up to the write head: nothing, no error */
    for (int64_t at = b + 1; at <= lab->journals[t][0]->heads.write_head; at++) {
        p = lab_fetch_one(lab, t, 0, at, 12, &got);
        assert_int_equal(p->error_code, 0);
        assert_int_equal(got.n, 0);
        assert_int_equal(p->records.in.n, 0);
    }
    p = lab_fetch_one(lab, t, 0, lab->journals[t][0]->heads.write_head + 1, 12, &got);
    assert_int_equal(p->error_code, KE_OFFSET_OUT_OF_RANGE);
    assert_int_equal(p->high_watermark, b + 1);
    assert_int_equal(p->log_start_offset, 0);
}

static void an_offset_below_the_log_start_is_out_of_range(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 200), b = lab_doc(lab, t, 0, 200);

    fake_remove_below(lab->fs, lab->journals[t][0], a + 1, a + 1);
    lab_heads(lab);
    assert_int_equal(lab_fetch_one(lab, t, 0, a, 11, &got)->error_code, KE_OFFSET_OUT_OF_RANGE);
    assert_int_equal(lab_part(lab, t, 0)->log_start_offset, a + 1);
    assert_int_equal(lab_fetch_one(lab, t, 0, -1, 11, &got)->error_code, KE_OFFSET_OUT_OF_RANGE);
    lab_fetch_one(lab, t, 0, a + 1, 11, &got);
    assert_int_equal(lab_first_visible(&got, 0), b);
}

static void an_empty_journal_serves_its_only_offset_without_error(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    const struct kp_fetch_resp_responses_partitions *p = lab_fetch_one(lab, t, 0, 0, 13, &got);

    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->high_watermark, 0);
    assert_int_equal(p->log_start_offset, 0);
    assert_int_equal(lab_fetch_one(lab, t, 0, 1, 13, &got)->error_code, KE_OFFSET_OUT_OF_RANGE);
}

static void a_tail_below_the_bound_is_passed_by_one_control_batch(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t last = 0;

    for (int i = 0; i < 20; i++)
        last = lab_doc(lab, t, 0, 300);
    lab->topics[t].bound.min_clock = LAB_CLOCK(1000);
    lab_view(lab);
    for (int64_t at = 0; at <= last; at += 77) {
        const struct kp_fetch_resp_responses_partitions *p = lab_fetch_one(lab, t, 0, at, 11, &got);
        assert_int_equal(p->error_code, 0);
        assert_int_equal(p->log_start_offset, 0); /* a bound is no loss of data */
        assert_int_equal(got.n, 1);
        assert_true(got.v[0].control);
        assert_int_equal(got.v[0].base_offset, last);
        assert_int_equal(got.v[0].last_offset, last);
        assert_int_equal(got.v[0].records, 1);
        struct kp_record_iter it;
        struct kp_record rec;
        kp_record_iter_init(&it, &got.v[0], got.v[0].payload);
        assert_int_equal(kp_record_next(&it, &rec, NULL, 0), 0);
        assert_int_equal(rec.key.n, 4);
        assert_memory_equal(rec.key.p, "\0\0\377\377", 4);
        assert_null(rec.value.p);
    }
    lab_fetch_one(lab, t, 0, last + 1, 11, &got);
    assert_int_equal(got.n, 0);
}

static void a_hidden_tail_rides_beside_the_records_before_it(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t last = 0;

    lab->topics[t].bound.max_clock = LAB_CLOCK(10);
    for (int i = 0; i < 10; i++)
        last = lab_doc(lab, t, 0, 300);
    int64_t hidden = last;
    for (int i = 0; i < 3; i++)
        hidden = lab_doc(lab, t, 0, 300);
    lab_view(lab);
    lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.v[0].records, 10);
    assert_int_equal(got.v[0].last_offset, last);
    assert_true(got.v[1].control);
    assert_int_equal(got.v[1].base_offset, hidden);
}

static void the_stale_prefix_below_a_bound_is_not_read(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    for (int i = 0; i < 100; i++)
        lab_doc(lab, t, 0, 100000);
    lab->topics[t].bound.min_clock = LAB_CLOCK(lab->tick + 1);
    int64_t first = lab_doc(lab, t, 0, 100);
    lab_view(lab);
    lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_int_equal(lab_first_visible(&got, 0), first);
    assert_int_equal(got.v[0].base_offset, first);
    assert_int_equal(lab->fs->block_reads, 1);
    assert_int_equal(lab->fs->seeks, 1);
}

static void long_runs_of_acks_are_jumped_and_no_control_batch_is_sent_for_them(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 200);

    for (int i = 0; i < 40; i++)
        lab_add(lab, t, 0, LAB_CLOCK(10 + i), JC_FLAG_ACK, 60000);
    int64_t b = lab_doc(lab, t, 0, 200);
    lab_ack(lab, t, 0);
    lab_heads(lab);
    lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.v[0].last_offset, a);
    assert_int_equal(got.v[1].last_offset, b);
    lab_fetch_one(lab, t, 0, a + 1, 11, &got);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.v[0].base_offset, b);
    assert_true(lab->fs->block_reads <= 5);
}

static void a_caught_up_reader_gets_nothing_older_with_the_next_document(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t next = 0;

    for (int i = 0; i < 1200; i++) {
        int64_t offset = lab_doc(lab, t, 0, 150);
        lab_heads(lab);
        lab_fetch_one(lab, t, 0, next, 11, &got);
        assert_int_equal(got.n, 1);
        assert_int_equal(got.v[0].base_offset, offset);
        assert_int_equal(got.v[0].records, 1);
        next = offset + 1;
    }
    /* and whoever reads it all later does not get 1200 batches */
    lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_in_range(got.n, 2, 520);
}

/* Slower than the fastest reader, by less than 256 appends: rebuilding the block into larger
 * batches must not serve it what it has. */
static void a_reader_a_little_behind_gets_nothing_older_either(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t next = 0, begins[1000];

    for (int i = 0; i < 1000; i++) {
        begins[i] = next;
        next = lab_doc(lab, t, 0, 150) + 1;
        lab_heads(lab);
        lab_fetch_one(lab, t, 0, begins[i], 11, &got); /* the fast one */
        if (i < 40 || i % 7 != 0)
            continue;
        int slow = i < 250 ? i - 35 : i - 240;
        lab_fetch_one(lab, t, 0, begins[slow], 11, &got);
        assert_int_equal(got.v[0].base_offset, begins[slow] + 149);
    }
}

static void records_hold_the_document_as_it_is_and_its_time(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    char *line = lab_line(LAB_CLOCK(1234), 0, 90);
    struct kp_record_iter it;
    struct kp_record rec;

    fake_append(lab->fs, lab->journals[t][0], line);
    fake_append(lab->fs, lab->journals[t][0], "not json \\u12\r\n");
    lab_heads(lab);
    lab_fetch_one(lab, t, 0, 0, 4, &got);
    /* their times lie too far apart for one batch */
    assert_int_equal(got.n, 2);
    kp_record_iter_init(&it, &got.v[0], got.v[0].payload);
    assert_int_equal(kp_record_next(&it, &rec, NULL, 0), 0);
    assert_int_equal(rec.timestamp, jc_clock_unix_ms(LAB_CLOCK(1234)));
    assert_null(rec.key.p);
    assert_int_equal(rec.value.n, strlen(line) - 1);
    assert_memory_equal(rec.value.p, line, rec.value.n);
    kp_record_iter_init(&it, &got.v[1], got.v[1].payload);
    assert_int_equal(kp_record_next(&it, &rec, NULL, 0), 0);
    assert_int_equal(rec.timestamp, -1);
    assert_int_equal(rec.value.n, 14);
    assert_memory_equal(rec.value.p, "not json \\u12\r", 14);
    mem_free(line);
}

static void the_first_document_comes_however_large_and_others_obey_the_limits(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 3);

    for (int32_t i = 0; i < 3; i++) {
        lab_doc(lab, t, (size_t)i, 1000000);
        lab_doc(lab, t, (size_t)i, 1000);
    }
    lab_heads(lab);
    unsigned served[3] = {0};
    for (int round = 0; round < 60; round++) {
        struct lab_request *r = lab_fetch_new(lab, 11);
        size_t with = 0;

        r->body.fetch.max_bytes = 10000;
        for (int32_t i = 0; i < 3; i++)
            lab_want(lab, r, t, i, 0)->partition_max_bytes = 100;
        lab_send(r);
        lab_await(lab, r);
        lab_drop(r);
        for (int32_t i = 0; i < 3; i++) {
            lab_parse(lab_part(lab, t, i)->records.in, &got);
            assert_true(got.n <= 1);
            with += got.n;
            served[i] += (unsigned)got.n;
            assert_int_equal(lab_part(lab, t, i)->error_code, 0);
            assert_int_equal(lab_part(lab, t, i)->high_watermark, 1001000);
        }
        assert_int_equal(with, 1);
    }
    for (int i = 0; i < 3; i++) /* rotation: nobody starves */
        assert_true(served[i] >= 5);
}

static void limits_are_obeyed_to_the_byte_when_several_batches_fit(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 4);

    for (size_t i = 0; i < 4; i++) {
        for (int k = 0; k < 400; k++)
            lab_doc(lab, t, i, 1000);
    }
    lab_heads(lab);
    struct lab_request *r = lab_fetch_new(lab, 11);
    r->body.fetch.max_bytes = 500000;
    for (int32_t i = 0; i < 4; i++)
        lab_want(lab, r, t, i, 0)->partition_max_bytes = 200000;
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    size_t total = 0;
    for (int32_t i = 0; i < 4; i++) {
        size_t n = lab_part(lab, t, i)->records.in.n;
        assert_true(n <= 200000);
        total += n;
    }
    assert_true(total <= 500000 && total > 400000);
}

static void epochs_fence_old_readers_and_refuse_future_ones(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const struct {
        int32_t asked;
        int16_t error;
    } rows[] = {{-1, 0}, {5, 0}, {4, KE_FENCED_LEADER_EPOCH}, {6, KE_UNKNOWN_LEADER_EPOCH}};

    lab_doc(lab, t, 0, 100);
    lab->topics[t].epoch = 5;
    lab_view(lab);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int16_t v = 9; v <= 18; v++) {
            struct lab_request *r = lab_fetch_new(lab, v);
            lab_want(lab, r, t, 0, 0)->current_leader_epoch = rows[i].asked;
            lab_send(r);
            lab_await(lab, r);
            lab_drop(r);
            const struct kp_fetch_resp_responses_partitions *p = lab_part(lab, t, 0);
            assert_int_equal(p->error_code, rows[i].error);
            if (v >= 12)
                assert_int_equal(p->current_leader.leader_epoch, 5);
            bool endpoints = v >= 16 && rows[i].error == KE_FENCED_LEADER_EPOCH;
            assert_int_equal(lab_resp(lab)->node_endpoints_n, endpoints ? 1 : 0);
            if (rows[i].error == 0) {
                lab_parse(p->records.in, &got);
                assert_int_equal(got.v[0].leader_epoch, 5);
            }
        }
    }
}

static void unknown_names_ids_and_partitions_have_their_errors_beside_good_ones(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 3), gone = lab_topic(lab, "gone", 1);

    lab_doc(lab, t, 0, 100);
    lab->topics_n--; /* not in the view */
    lab_view(lab);
    lab->topics_n++;
    for (int16_t v = 4; v <= 18; v++) {
        struct lab_request *r = lab_fetch_new(lab, v);
        lab_want(lab, r, gone, 0, 0);
        lab_want(lab, r, t, 0, 0);
        lab_want(lab, r, t, 1, 0);
        lab_want(lab, r, t, 2, 99);
        lab_want(lab, r, t, 3, 0);
        lab_want(lab, r, t, -1, 0);
        r->body.fetch.isolation_level = (int8_t)(v % 2);
        lab_send(r);
        lab_await(lab, r);
        lab_drop(r);
        assert_int_equal(lab_part(lab, gone, 0)->error_code,
                         v >= 13 ? KE_UNKNOWN_TOPIC_ID : KE_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(lab_part(lab, t, 0)->error_code, 0);
        assert_int_equal(lab_part(lab, t, 0)->high_watermark, 100);
        lab_parse(lab_part(lab, t, 0)->records.in, &got);
        assert_int_equal(got.n, 1);
        assert_int_equal(lab_part(lab, t, 0)->aborted_transactions_n, v % 2 ? 0 : -1);
        assert_int_equal(lab_part(lab, t, 1)->error_code, 0);
        assert_int_equal(lab_part(lab, t, 1)->records.in.n, 0);
        assert_int_equal(lab_part(lab, t, 2)->error_code, KE_OFFSET_OUT_OF_RANGE);
        assert_int_equal(lab_part(lab, t, 3)->error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(lab_part(lab, t, -1)->error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    }
}

static void a_diverging_epoch_is_told_to_who_asks_for_it(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 100);
    lab->topics[t].epoch = 3;
    lab_view(lab);
    struct lab_request *r = lab_fetch_new(lab, 12);
    lab_want(lab, r, t, 0, 100)->last_fetched_epoch = 2;
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    assert_int_equal(lab_part(lab, t, 0)->error_code, 0);
    assert_int_equal(lab_part(lab, t, 0)->diverging_epoch.epoch, 2);
    assert_int_equal(lab_part(lab, t, 0)->diverging_epoch.end_offset, 0);
    assert_int_equal(lab_part(lab, t, 0)->records.in.n, 0);
}

static void zstd_is_not_sent_below_fetch_10(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab->encoder.codec = KP_CODEC_ZSTD;
    for (int i = 0; i < 50; i++)
        lab_doc(lab, t, 0, 500);
    lab_heads(lab);
    for (int16_t v = 4; v <= 18; v++) {
        lab_fetch_one(lab, t, 0, 0, v, &got);
        assert_int_equal(got.v[0].codec, v < 10 ? KP_CODEC_NONE : KP_CODEC_ZSTD);
        assert_int_equal(got.v[0].records, 50);
    }
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
    return E_IO;
}

static void a_store_that_fails_is_an_error_of_that_partition_alone(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);

    lab_doc(lab, t, 0, 100);
    lab_heads(lab);
    lab->ops.read_block = fail_read;
    struct lab_request *r = lab_fetch_new(lab, 11);
    lab_want(lab, r, t, 0, 0);
    lab_want(lab, r, t, 1, 0);
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    assert_int_equal(lab_part(lab, t, 0)->error_code, KE_KAFKA_STORAGE_ERROR);
    assert_int_equal(lab_part(lab, t, 0)->records.in.n, 0);
    assert_int_equal(lab_part(lab, t, 1)->error_code, 0);
}

static void what_is_served_lies_below_the_watermark_that_goes_with_it(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 100);
    lab_heads(lab);
    int64_t b = lab_doc(lab, t, 0, 100); /* durable, but no follower has told of it */
    const struct kp_fetch_resp_responses_partitions *p = lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_int_equal(got.v[got.n - 1].last_offset, b);
    assert_int_equal(p->high_watermark, b + 1);
}

/* The fake store does not survive a failed allocation: from here on there are none. */
static int safe_read(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                     jc_block_fn *done, void *arg, struct jc_op **out)
{
    mem_fail_after(-1, 0);
    return fake_read_block(s, r, ex, done, arg, out);
}

static int safe_follow(struct jc_store *s, const struct jc_journal *j, const struct jc_follower *f,
                       struct jc_op **out)
{
    mem_fail_after(-1, 0);
    return fake_follow(s, j, f, out);
}

static void running_out_of_memory_is_an_answer_or_a_closed_connection(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);
    unsigned aborted = 0, failed = 0, good = 0;

    for (int i = 0; i < 30; i++)
        lab_doc(lab, t, 0, 9000);
    lab_heads(lab);
    lab->ops.read_block = safe_read;
    lab->ops.follow = safe_follow;
    for (long n = 0; n < 40; n++) {
        struct lab_request *r = lab_fetch_new(lab, 11);

        lab_want(lab, r, t, 0, n % 2 == 0 ? 0 : 30 * 9000); /* reads, or waits */
        lab_want(lab, r, t, 1, 0);
        r->body.fetch.session_epoch = n % 3 == 0 ? 0 : -1;
        r->body.fetch.max_wait_ms = n % 2 == 0 ? 0 : 1000;
        lab->aborted = 0;
        mem_fail_after(n / 2, 0);
        int err = handle_fetch(&r->rq);
        mem_fail_after(-1, 0);
        if (err < 0) {
            assert_int_equal(err, E_NOMEM);
            assert_null(r->rq.cancel);
            failed++;
        } else if (n % 2 == 0) {
            lab_await(lab, r);
            aborted += lab->aborted != 0;
            good += lab->aborted == 0 && lab_part(lab, t, 0)->error_code == 0;
        }
        lab_drop(r);
        lab->encoder.id++; /* another key: the block is loaded anew */
        lab_view(lab);
    }
    assert_true(good > 0 && failed + aborted > 0);
}

/* Kafka's broker merges them too; each would cost twenty times its bytes on the wire. */
static void a_partition_listed_twice_is_answered_once_by_its_last_values(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 2);
    int64_t a = lab_doc(lab, t, 0, 200), b = lab_doc(lab, t, 0, 200);
    struct lab_request *r = lab_fetch_new(lab, 12);

    lab_heads(lab);
    for (int i = 0; i < 1000; i++) {
        lab_want(lab, r, t, 0, a);
        lab_want(lab, r, t, 1, 0);
    }
    lab_want(lab, r, t, 0, b);
    lab_send(r);
    lab_await(lab, r);
    assert_int_equal(lab_resp(lab)->responses_n, 1);
    assert_int_equal(lab_resp(lab)->responses[0].partitions_n, 2);
    assert_int_equal(lab_resp(lab)->responses[0].partitions[0].partition_index, 0);
    assert_int_equal(lab_resp(lab)->responses[0].partitions[1].partition_index, 1);
    lab_parse(lab_part(lab, t, 0)->records.in, &got);
    assert_int_equal(lab_first_visible(&got, b), b);
    lab_drop(r);
}

static void an_answer_is_no_larger_than_what_is_left_of_the_connections_output(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r = lab_fetch_new(lab, 12);
    size_t bytes = 0;

    for (int i = 0; i < 100; i++)
        (void)lab_doc(lab, t, 0, 10000);
    lab_heads(lab);
    lab->room = 200000;
    lab_want(lab, r, t, 0, 0);
    lab_send(r);
    lab_await(lab, r);
    bytes = lab_part(lab, t, 0)->records.in.n;
    assert_in_range(bytes, 100000, 200000);
    assert_int_equal(lab->held, 0); /* the connection counts the answer from here on */
    lab_drop(r);
}

static void without_room_nothing_is_collected_until_there_is_some(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r = lab_fetch_new(lab, 12);
    int64_t a = lab_doc(lab, t, 0, 10000);

    lab_heads(lab);
    lab->room = 0;
    r->body.fetch.max_wait_ms = 0;
    lab_want(lab, r, t, 0, 0);
    lab_send(r);
    assert_false(r->rq.done);
    assert_non_null(r->rq.fed);
    assert_int_equal(lab->held, 0);
    lab->room = 1; /* the first batch comes however large */
    r->rq.fed(&r->rq);
    lab_await(lab, r);
    lab_parse(lab_part(lab, t, 0)->records.in, &got);
    assert_int_equal(lab_first_visible(&got, 0), a);
    lab_drop(r);
}

/* All were admitted while there was room, and turn ready at once. */
static void a_block_that_arrives_when_the_room_is_gone_is_not_held(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r = lab_fetch_new(lab, 12);

    (void)lab_doc(lab, t, 0, 10000);
    lab_heads(lab);
    lab_want(lab, r, t, 0, 0);
    lab_send(r);
    assert_false(r->rq.done); /* its block is loading */
    lab->room = 0;
    while (r->rq.fed == NULL)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
    assert_int_equal(lab->held, 0);
    lab->room = SIZE_MAX;
    r->rq.fed(&r->rq);
    lab_await(lab, r);
    assert_true(lab_part(lab, t, 0)->records.in.n > 10000);
    lab_drop(r);
}

static void a_long_poll_does_not_wait_when_waiting_requests_hold_too_much_memory(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct lab_request *r = lab_fetch_new(lab, 12);

    lab_heads(lab);
    lab->no_memory = true;
    r->body.fetch.max_wait_ms = 100000;
    lab_want(lab, r, t, 0, 0);
    lab_send(r);
    assert_true(r->rq.done);
    assert_int_equal(lab_part(lab, t, 0)->error_code, 0);
    lab_drop(r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_document_is_found_from_each_of_its_bytes),
        T(hidden_documents_never_surface_and_never_move_the_high_watermark),
        T(an_offset_below_the_log_start_is_out_of_range),
        T(an_empty_journal_serves_its_only_offset_without_error),
        T(a_tail_below_the_bound_is_passed_by_one_control_batch),
        T(a_hidden_tail_rides_beside_the_records_before_it),
        T(the_stale_prefix_below_a_bound_is_not_read),
        T(long_runs_of_acks_are_jumped_and_no_control_batch_is_sent_for_them),
        T(a_caught_up_reader_gets_nothing_older_with_the_next_document),
        T(a_reader_a_little_behind_gets_nothing_older_either),
        T(records_hold_the_document_as_it_is_and_its_time),
        T(the_first_document_comes_however_large_and_others_obey_the_limits),
        T(limits_are_obeyed_to_the_byte_when_several_batches_fit),
        T(epochs_fence_old_readers_and_refuse_future_ones),
        T(unknown_names_ids_and_partitions_have_their_errors_beside_good_ones),
        T(a_diverging_epoch_is_told_to_who_asks_for_it),
        T(zstd_is_not_sent_below_fetch_10),
        T(a_store_that_fails_is_an_error_of_that_partition_alone),
        T(what_is_served_lies_below_the_watermark_that_goes_with_it),
        T(running_out_of_memory_is_an_answer_or_a_closed_connection),
        T(a_partition_listed_twice_is_answered_once_by_its_last_values),
        T(an_answer_is_no_larger_than_what_is_left_of_the_connections_output),
        T(without_room_nothing_is_collected_until_there_is_some),
        T(a_block_that_arrives_when_the_room_is_gone_is_not_held),
        T(a_long_poll_does_not_wait_when_waiting_requests_hold_too_much_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
