/* ListOffsets and OffsetForLeaderEpoch: the ends, look-ups by time, epochs (O7, O10, O11). */
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

struct asked {
    int64_t timestamp;
    int32_t index;
    int32_t epoch;
};

/* One request for partitions of one topic; the answers are in the lab. */
static const struct kp_list_offsets_resp_topics_partitions *
list(struct lab *lab, size_t t, int16_t version, const struct asked *asked, size_t n)
{
    struct lab_request *r = lab_fetch_new(lab, version);
    struct kp_list_offsets_req_topics topic;
    struct kp_list_offsets_req_topics_partitions *parts = mem_array(n, sizeof *parts);

    r->rq.api = kp_api_find(2);
    kp_defaults(r->rq.api->request, &r->body.list);
    kp_defaults(&kp_list_offsets_req_topics_desc, &topic);
    topic.name = span_str(lab->topics[t].name);
    topic.partitions = parts;
    topic.partitions_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        kp_defaults(&kp_list_offsets_req_topics_partitions_desc, &parts[i]);
        parts[i].partition_index = asked[i].index;
        parts[i].timestamp = asked[i].timestamp;
        parts[i].current_leader_epoch = asked[i].epoch;
    }
    r->body.list.replica_id = -1;
    r->body.list.isolation_level = (int8_t)(version % 2);
    r->body.list.topics = &topic;
    r->body.list.topics_n = 1;
    assert_int_equal(handle_list_offsets(&r->rq), 0);
    lab_await(lab, r);
    lab_drop(r);
    mem_free(parts);
    const struct kp_list_offsets_resp *resp = lab->resp;
    assert_int_equal(resp->topics_n, 1);
    assert_int_equal(resp->topics[0].partitions_n, (int32_t)n);
    return resp->topics[0].partitions;
}

static const struct kp_list_offsets_resp_topics_partitions *
list_one(struct lab *lab, size_t t, int16_t version, int64_t timestamp)
{
    const struct asked a = {timestamp, 0, -1};

    return list(lab, t, version, &a, 1);
}

static int64_t ms(int64_t after)
{
    return jc_clock_unix_ms(LAB_CLOCK(after));
}

static void the_ends_are_those_that_fetch_tells(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 100), b = lab_doc(lab, t, 0, 100);

    lab_ack(lab, t, 0);
    fake_remove_below(lab->fs, lab->journals[t][0], a + 1, a + 1);
    lab->topics[t].epoch = 3;
    lab_view(lab);
    for (int16_t v = 1; v <= 11; v++) {
        const struct kp_list_offsets_resp_topics_partitions *p = list_one(lab, t, v, -1);
        assert_int_equal(p->error_code, 0);
        assert_int_equal(p->offset, b + 1);
        assert_int_equal(p->timestamp, -1);
        assert_int_equal(p->leader_epoch, v >= 4 ? 3 : -1);
        p = list_one(lab, t, v, -2);
        assert_int_equal(p->offset, a + 1);
        assert_int_equal(p->timestamp, -1);
    }
    assert_int_equal(list_one(lab, t, 8, -4)->offset, a + 1);
    assert_int_equal(list_one(lab, t, 9, -5)->offset, -1);
    assert_int_equal(list_one(lab, t, 9, -5)->error_code, 0);
    assert_int_equal(list_one(lab, t, 11, -6)->offset, -1);
    assert_int_equal(list_one(lab, t, 11, -6)->error_code, 0);
}

static void a_bound_does_not_raise_the_earliest_offset(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab_doc(lab, t, 0, 100);
    lab->topics[t].bound.min_clock = LAB_CLOCK(1000);
    lab_view(lab);
    assert_int_equal(list_one(lab, t, 7, -2)->offset, 0);
    assert_int_equal(list_one(lab, t, 7, -1)->offset, 100);
    assert_int_equal(list_one(lab, t, 7, 0)->offset, -1); /* nothing visible */
    assert_int_equal(list_one(lab, t, 7, -3)->offset, -1);
}

static void with_everything_expired_earliest_is_latest(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t end = lab_doc(lab, t, 0, 4096) + 1;

    fake_remove_below(lab->fs, lab->journals[t][0], end, end);
    lab_heads(lab);
    assert_int_equal(list_one(lab, t, 7, -1)->offset, end);
    assert_int_equal(list_one(lab, t, 7, -2)->offset, end);
    static struct lab_batches got;
    assert_int_equal(lab_fetch_one(lab, t, 0, end, 11, &got)->error_code, 0);
    assert_int_equal(lab_fetch_one(lab, t, 0, end - 1, 11, &got)->error_code,
                     KE_OFFSET_OUT_OF_RANGE);
}

static void special_times_of_later_versions_are_refused_in_earlier_ones(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const struct {
        int64_t timestamp;
        int16_t since;
    } rows[] = {{-3, 7}, {-4, 8}, {-5, 9}, {-6, 11}, {-7, 12}, {INT64_MIN, 12}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int16_t v = 1; v <= 11; v++)
            assert_int_equal(list_one(lab, t, v, rows[i].timestamp)->error_code,
                             v < rows[i].since ? KE_UNSUPPORTED_VERSION : 0);
    }
}

static void a_time_finds_the_first_document_at_or_after_it(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    struct fake_journal *j = lab->journals[t][0];
    int64_t at[4];

    for (int i = 0; i < 3; i++) {
        lab_add(lab, t, 0, LAB_CLOCK(10000 * i), 0, 100);
        at[i] = j->heads.write_head - 1;
    }
    lab_add(lab, t, 0, LAB_CLOCK(60000), JC_FLAG_ACK, 70);
    lab_heads(lab);
    static const struct {
        int64_t after;
        int found;
    } rows[] = {{-3600000, 0}, {0, 0},      {1, 1},      {5000, 1},    {10000, 1},
                {20000, 2},    {20001, -1}, {60000, -1}, {3600000, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct kp_list_offsets_resp_topics_partitions *p =
            list_one(lab, t, 7, ms(rows[i].after));
        assert_int_equal(p->error_code, 0);
        assert_int_equal(p->offset, rows[i].found < 0 ? -1 : at[rows[i].found]);
        assert_int_equal(p->timestamp, rows[i].found < 0 ? -1 : ms(10000 * rows[i].found));
        assert_int_equal(p->leader_epoch, rows[i].found < 0 ? -1 : 1);
    }
    const struct kp_list_offsets_resp_topics_partitions *p = list_one(lab, t, 7, -3);
    assert_int_equal(p->offset, at[2]);
    assert_int_equal(p->timestamp, ms(20000));
}

static void times_need_not_rise_with_offsets(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const int64_t after[] = {500, 100, 900, 300, 900, 700};
    int64_t at[6];

    for (int i = 0; i < 6; i++) {
        lab_add(lab, t, 0, LAB_CLOCK(after[i]), 0, 200000); /* blocks of their own, nearly */
        at[i] = lab->journals[t][0]->heads.write_head - 1;
    }
    lab_heads(lab);
    assert_int_equal(list_one(lab, t, 7, ms(0))->offset, at[0]);
    assert_int_equal(list_one(lab, t, 7, ms(501))->offset, at[2]);
    assert_int_equal(list_one(lab, t, 7, ms(501))->timestamp, ms(900));
    assert_int_equal(list_one(lab, t, 7, ms(901))->offset, -1);
    assert_int_equal(list_one(lab, t, 7, -3)->offset, at[2]); /* the first of equals */
}

/* The index of a real store is coarse: it knows the largest clock of a block, also of documents
 * outside of the asked range. */
static int coarse_seek(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                       jc_seek_fn *done, void *arg, struct jc_op **out)
{
    struct jc_seek_req wide = *r;

    wide.offset = r->offset / JC_BLOCK_BYTES * JC_BLOCK_BYTES;
    wide.max_clock = UINT64_MAX;
    return fake_seek(s, &wide, ex, done, arg, out);
}

static void a_coarse_index_only_costs_a_look(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);

    lab->ops.seek = coarse_seek;
    lab->topics[t].bound.max_clock = LAB_CLOCK(1000);
    int64_t last = 0;
    for (int i = 0; i < 20; i++) { /* hidden by the bound */
        lab_add(lab, t, 0, LAB_CLOCK(5000), 0, 100000);
    }
    lab_add(lab, t, 0, LAB_CLOCK(900), 0, 100);
    last = lab->journals[t][0]->heads.write_head - 1;
    lab_view(lab);
    assert_int_equal(list_one(lab, t, 7, ms(800))->offset, last);
    assert_int_equal(list_one(lab, t, 7, ms(950))->offset, -1);
    static struct lab_batches got;
    lab_fetch_one(lab, t, 0, 0, 11, &got);
    assert_int_equal(lab_first_visible(&got, 0), last);
}

static void the_largest_time_below_a_bound_is_found_among_hidden_ones(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const int64_t after[] = {900, 5000, 950, 6000, 950, 7000, 100};
    int64_t at[7];

    lab->ops.seek = coarse_seek;
    lab->topics[t].bound.max_clock = LAB_CLOCK(1000);
    for (int i = 0; i < 7; i++) {
        lab_add(lab, t, 0, LAB_CLOCK(after[i]), 0, 300000);
        at[i] = lab->journals[t][0]->heads.write_head - 1;
    }
    lab_view(lab);
    assert_int_equal(list_one(lab, t, 7, -3)->offset, at[2]); /* the first of equals */
    assert_int_equal(list_one(lab, t, 7, -3)->timestamp, ms(950));
    lab->topics[t].bound.max_clock = LAB_CLOCK(50);
    lab_view(lab);
    assert_int_equal(list_one(lab, t, 7, -3)->offset, -1);
    assert_int_equal(list_one(lab, t, 7, -3)->error_code, 0);
}

/* A commit may be durable and in the index before this process was told of it. */
static void no_look_up_finds_what_lies_behind_the_watermark(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    static const int64_t known[] = {500, 900, 300, 900, 100};
    int64_t at[5];

    lab->ops.seek = coarse_seek;
    for (int i = 0; i < 5; i++) {
        lab_add(lab, t, 0, LAB_CLOCK(known[i]), 0, 100000);
        at[i] = lab->journals[t][0]->heads.write_head - 1;
    }
    lab_heads(lab);
    for (int i = 0; i < 4; i++) { /* the first lies in the block of the end */
        lab_add(lab, t, 0, LAB_CLOCK(5000 + 1000 * i), 0, 100000);
        assert_int_equal(list_one(lab, t, 7, -1)->offset, at[4] + 1);
        assert_int_equal(list_one(lab, t, 7, -3)->offset, at[1]);
        assert_int_equal(list_one(lab, t, 7, -3)->timestamp, ms(900));
        assert_int_equal(list_one(lab, t, 7, ms(901))->offset, -1);
        assert_int_equal(list_one(lab, t, 8, -3)->offset, at[1]);
    }
    lab_heads(lab);
    assert_int_equal(list_one(lab, t, 7, -3)->timestamp, ms(8000));
}

static void partitions_are_answered_one_by_one(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 40);
    struct asked asked[90];
    size_t n = 0;

    for (size_t i = 0; i < 40; i++) {
        for (size_t k = 0; k <= i % 3; k++)
            lab_add(lab, t, i, LAB_CLOCK(1000 * k), 0, 100);
        asked[n++] = (struct asked){ms(1000), (int32_t)i, -1};
        asked[n++] = (struct asked){-1, (int32_t)i, -1}; /* a partition may be asked twice */
    }
    asked[n++] = (struct asked){-1, 40, -1};
    asked[n++] = (struct asked){5, -1, -1};
    asked[n++] = (struct asked){5, 0, 2};
    asked[n++] = (struct asked){5, 0, 0};
    lab_heads(lab);
    const struct kp_list_offsets_resp_topics_partitions *p = list(lab, t, 7, asked, n);
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(p[2 * i].partition_index, (int32_t)i);
        assert_int_equal(p[2 * i].offset, i % 3 == 0 ? -1 : 199);
        assert_int_equal(p[2 * i + 1].offset, 100 * (int64_t)(i % 3 + 1));
    }
    assert_int_equal(p[80].error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(p[81].error_code, KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(p[82].error_code, KE_UNKNOWN_LEADER_EPOCH);
    assert_int_equal(p[83].error_code, KE_FENCED_LEADER_EPOCH);
    for (size_t i = 80; i < 84; i++) {
        assert_int_equal(p[i].offset, -1);
        assert_int_equal(p[i].timestamp, -1);
    }
}

static void a_closed_connection_ends_its_look_ups(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 20);
    struct kp_list_offsets_req_topics topic;
    struct kp_list_offsets_req_topics_partitions parts[20];

    for (size_t i = 0; i < 20; i++)
        lab_doc(lab, t, i, 100);
    lab_heads(lab);
    for (int turns = 0; turns < 6; turns++) {
        struct lab_request *r = lab_fetch_new(lab, 7);

        r->rq.api = kp_api_find(2);
        kp_defaults(r->rq.api->request, &r->body.list);
        kp_defaults(&kp_list_offsets_req_topics_desc, &topic);
        topic.name = span_str("docs");
        topic.partitions = parts;
        topic.partitions_n = 20;
        for (int32_t i = 0; i < 20; i++) {
            kp_defaults(&kp_list_offsets_req_topics_partitions_desc, &parts[i]);
            parts[i].partition_index = i;
            parts[i].timestamp = 5;
        }
        r->body.list.topics = &topic;
        r->body.list.topics_n = 1;
        assert_int_equal(handle_list_offsets(&r->rq), 0);
        for (int i = 0; i < turns; i++)
            mailbox_drain(&lab->w.mb);
        lab_drop(r);
    }
}

static const struct kp_offset_for_leader_epoch_resp_topics_partitions *
epoch_end(struct lab *lab, size_t t, int16_t version, int32_t index, int32_t current, int32_t asked)
{
    struct lab_request *r = lab_fetch_new(lab, version);
    struct kp_offset_for_leader_epoch_req_topics topic;
    struct kp_offset_for_leader_epoch_req_topics_partitions part;

    r->rq.api = kp_api_find(23);
    kp_defaults(r->rq.api->request, &r->body.epoch);
    kp_defaults(&kp_offset_for_leader_epoch_req_topics_desc, &topic);
    kp_defaults(&kp_offset_for_leader_epoch_req_topics_partitions_desc, &part);
    topic.topic = span_str(lab->topics[t].name);
    topic.partitions = &part;
    topic.partitions_n = 1;
    part.partition = index;
    part.current_leader_epoch = current;
    part.leader_epoch = asked;
    r->body.epoch.topics = &topic;
    r->body.epoch.topics_n = 1;
    assert_int_equal(handle_offset_for_leader_epoch(&r->rq), 0);
    assert_true(r->rq.done);
    lab_drop(r);
    return &((struct kp_offset_for_leader_epoch_resp *)lab->resp)->topics[0].partitions[0];
}

static void epochs_end_where_the_table_says(void **state)
{
    struct lab *lab = *state;
    size_t t = lab_topic(lab, "docs", 1);
    int64_t a = lab_doc(lab, t, 0, 100), b = lab_doc(lab, t, 0, 100);

    fake_remove_below(lab->fs, lab->journals[t][0], a + 1, a + 1);
    lab->topics[t].epoch = 5;
    lab_view(lab);
    static const struct {
        int32_t index, current, asked;
        int16_t error;
        int32_t epoch;
        int end; /* 0 none, 1 log start, 2 high watermark */
    } rows[] = {
        {0, -1, 5, 0, 5, 2},
        {0, 5, 5, 0, 5, 2},
        {0, -1, 4, 0, 4, 1},
        {0, 5, 0, 0, 0, 1},
        {0, -1, 6, 0, -1, 0},
        {0, -1, -1, 0, -1, 0},
        {0, 4, 4, KE_FENCED_LEADER_EPOCH, -1, 0},
        {0, 6, 4, KE_UNKNOWN_LEADER_EPOCH, -1, 0},
        {1, -1, 5, KE_UNKNOWN_TOPIC_OR_PARTITION, -1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int16_t v = 2; v <= 4; v++) {
            const struct kp_offset_for_leader_epoch_resp_topics_partitions *p =
                epoch_end(lab, t, v, rows[i].index, rows[i].current, rows[i].asked);
            assert_int_equal(p->partition, rows[i].index);
            assert_int_equal(p->error_code, rows[i].error);
            assert_int_equal(p->leader_epoch, rows[i].epoch);
            assert_int_equal(p->end_offset, rows[i].end == 0   ? -1
                                            : rows[i].end == 1 ? a + 1
                                                               : b + 1);
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_ends_are_those_that_fetch_tells),
        T(a_bound_does_not_raise_the_earliest_offset),
        T(with_everything_expired_earliest_is_latest),
        T(special_times_of_later_versions_are_refused_in_earlier_ones),
        T(a_time_finds_the_first_document_at_or_after_it),
        T(times_need_not_rise_with_offsets),
        T(a_coarse_index_only_costs_a_look),
        T(the_largest_time_below_a_bound_is_found_among_hidden_ones),
        T(no_look_up_finds_what_lies_behind_the_watermark),
        T(partitions_are_answered_one_by_one),
        T(a_closed_connection_ends_its_look_ups),
        T(epochs_end_where_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
