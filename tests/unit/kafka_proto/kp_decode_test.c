/*
 * What the decoder refuses, and what absent fields hold. Bytes are written by hand, from the
 * protocol, not by our encoder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka_proto/kp_messages.h"

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static int decode(const struct kp_desc *d, int16_t version, const void *bytes, size_t n, void *out)
{
    struct reader r = reader_of(span_of(bytes, n));

    return kp_decode(d, version, &r, &arena, out);
}

#define DECODE(desc, version, out, ...)                                                            \
    decode(&(desc), version, (const uint8_t[]){__VA_ARGS__},                                       \
           sizeof((const uint8_t[]){__VA_ARGS__}), out)

static void null_and_empty_lists_of_topics_differ(void **state)
{
    struct kp_metadata_req m;

    (void)state;
    assert_int_equal(DECODE(kp_metadata_req_desc, 1, &m, 0xff, 0xff, 0xff, 0xff), 0);
    assert_int_equal(m.topics_n, -1);
    assert_int_equal(DECODE(kp_metadata_req_desc, 1, &m, 0, 0, 0, 0), 0);
    assert_int_equal(m.topics_n, 0);
    /* version 0 has no null */
    assert_int_equal(DECODE(kp_metadata_req_desc, 0, &m, 0xff, 0xff, 0xff, 0xff), E_SYNTAX);
    /* and nothing has a length of -2 */
    assert_int_equal(DECODE(kp_metadata_req_desc, 1, &m, 0xff, 0xff, 0xff, 0xfe), E_SYNTAX);
}

static void fields_of_other_versions_hold_their_defaults(void **state)
{
    struct kp_metadata_req m;

    (void)state;
    memset(&m, 0xaa, sizeof m);
    assert_int_equal(DECODE(kp_metadata_req_desc, 0, &m, 0, 0, 0, 0), 0);
    assert_true(m.allow_auto_topic_creation);
    assert_false(m.include_topic_authorized_operations);

    struct kp_fetch_resp f;
    assert_int_equal(DECODE(kp_fetch_resp_desc, 4, &f, 0, 0, 0, 7, 0, 0, 0, 0), 0);
    assert_int_equal(f.throttle_time_ms, 7);
    assert_int_equal(f.session_id, 0);

    struct kp_find_coordinator_req c;
    assert_int_equal(DECODE(kp_find_coordinator_req_desc, 0, &c, 0, 1, 'g'), 0);
    assert_true(span_eq_str(c.key, "g"));
    assert_int_equal(c.key_type, 0);
    assert_int_equal(c.coordinator_keys_n, 0);

    struct kp_api_versions_req a;
    assert_int_equal(decode(&kp_api_versions_req_desc, 0, "", 0, &a), 0);
    assert_non_null(a.client_software_name.p); /* empty, not null */
    assert_int_equal(a.client_software_name.n, 0);

    struct kp_join_group_req j;
    assert_int_equal(
        DECODE(kp_join_group_req_desc, 0, &j, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0), 0);
    assert_int_equal(j.session_timeout_ms, 9);
    assert_int_equal(j.rebalance_timeout_ms, -1);
    assert_null(j.group_instance_id.p); /* its default is null */
}

static void a_null_string_is_refused_where_none_is_allowed(void **state)
{
    struct kp_find_coordinator_req c;

    (void)state;
    assert_int_equal(DECODE(kp_find_coordinator_req_desc, 0, &c, 0xff, 0xff), E_SYNTAX);
    assert_int_equal(DECODE(kp_find_coordinator_req_desc, 3, &c, 0, 0, 0), E_SYNTAX);
    assert_int_equal(DECODE(kp_find_coordinator_req_desc, 3, &c, 1, 0, 0), 0);
}

static void a_count_beyond_the_bytes_left_allocates_nothing(void **state)
{
    struct kp_metadata_req m;
    struct kp_fetch_req f;

    (void)state;
    assert_int_equal(DECODE(kp_metadata_req_desc, 0, &m, 0x7f, 0xff, 0xff, 0xff), E_SHORT);
    assert_int_equal(arena.used, 0);
    /* 2^32 - 2 elements by varint: more than an array can have */
    assert_int_equal(DECODE(kp_metadata_req_desc, 9, &m, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0),
                     E_SYNTAX);
    /* two names need four bytes at least */
    assert_int_equal(DECODE(kp_metadata_req_desc, 0, &m, 0, 0, 0, 2, 0, 1, 'a'), E_SHORT);
    assert_int_equal(arena.used, 0);
    /* nested: one topic with 2^31 - 1 partitions; the topic itself was read */
    assert_int_equal(DECODE(kp_fetch_req_desc, 4, &f, 0xff, 0xff, 0xff, 0xff, /* replica_id */
                            0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, /* limits, isolation */
                            0, 0, 0, 1, 0, 1, 't',                 /* one topic */
                            0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0),
                     E_SHORT);
    assert_true(arena.used <= sizeof(struct kp_fetch_req_topics) + 16);
}

static void memory_is_bounded_by_the_arenas_budget(void **state)
{
    /* 3000 empty names: 2 wire bytes each, far more in memory */
    static uint8_t bytes[4 + 2 * 3000] = {0, 0, 0x0b, 0xb8};
    struct kp_metadata_req m;
    struct reader r = {bytes, bytes + sizeof bytes};

    (void)state;
    arena_fini(&arena);
    arena_init(&arena, 16384);
    assert_int_equal(kp_decode(&kp_metadata_req_desc, 0, &r, &arena, &m), E_LIMIT);
    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    r.p = bytes;
    assert_int_equal(kp_decode(&kp_metadata_req_desc, 0, &r, &arena, &m), 0);
    assert_int_equal(m.topics_n, 3000);
}

static void unknown_tags_are_skipped(void **state)
{
    struct kp_api_versions_req a;

    (void)state;
    assert_int_equal(DECODE(kp_api_versions_req_desc, 3, &a, 2, 'n', 2, 'v', 2, /* two tags */
                            0, 3, 'x', 'y', 'z',                                /* 0: 3 bytes */
                            0xe8, 0x07, 0),                                     /* 1000: none */
                     0);
    assert_true(span_eq_str(a.client_software_version, "v"));
}

static void tags_that_repeat_or_fall_are_refused(void **state)
{
    struct kp_api_versions_req a;
    struct kp_api_versions_resp b;

    (void)state;
    assert_int_equal(DECODE(kp_api_versions_req_desc, 3, &a, 1, 1, 2, 5, 0, 5, 0), E_SYNTAX);
    assert_int_equal(DECODE(kp_api_versions_req_desc, 3, &a, 1, 1, 2, 5, 0, 4, 0), E_SYNTAX);
    /* a known one (1: finalized_features_epoch) twice */
    assert_int_equal(DECODE(kp_api_versions_resp_desc, 3, &b, 0, 0, 1, 0, 0, 0, 0, 2, /* */
                            1, 8, 0, 0, 0, 0, 0, 0, 0, 9, 1, 8, 0, 0, 0, 0, 0, 0, 0, 9),
                     E_SYNTAX);
}

static void a_known_tag_must_use_up_its_bytes(void **state)
{
    struct kp_api_versions_resp b;

    (void)state;
    assert_int_equal(DECODE(kp_api_versions_resp_desc, 3, &b, 0, 0, 1, 0, 0, 0, 0, 1, /* */
                            1, 8, 0, 0, 0, 0, 0, 0, 0, 9),
                     0);
    assert_int_equal(b.finalized_features_epoch, 9);
    assert_int_equal(DECODE(kp_api_versions_resp_desc, 3, &b, 0, 0, 1, 0, 0, 0, 0, 1, /* */
                            1, 9, 0, 0, 0, 0, 0, 0, 0, 9, 0),
                     E_SYNTAX);
    assert_int_equal(DECODE(kp_api_versions_resp_desc, 3, &b, 0, 0, 1, 0, 0, 0, 0, 1, /* */
                            1, 7, 0, 0, 0, 0, 0, 0, 0),
                     E_SYNTAX);
}

static void a_tag_of_a_later_version_is_unknown_in_an_earlier_one(void **state)
{
    struct kp_fetch_resp f;

    (void)state;
    /* node_endpoints (0) exists from 16 on; rubbish under that tag does no harm in 12 */
    assert_int_equal(
        DECODE(kp_fetch_resp_desc, 12, &f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0xff), 0);
    assert_int_equal(f.node_endpoints_n, 0);
    assert_int_equal(
        DECODE(kp_fetch_resp_desc, 16, &f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0xff),
        E_SYNTAX);
}

static void a_nullable_struct_is_null_or_present(void **state)
{
    struct kp_describe_topic_partitions_req m;

    (void)state;
    assert_int_equal(DECODE(kp_describe_topic_partitions_req_desc, 0, &m, 1, 0, 0, 0, 5, 0xff, 0),
                     0);
    assert_null(m.cursor);
    assert_int_equal(m.response_partition_limit, 5);
    assert_int_equal(DECODE(kp_describe_topic_partitions_req_desc, 0, &m, 1, 0, 0, 0, 5, /* */
                            1, 2, 't', 0, 0, 0, 3, 0, 0),
                     0);
    assert_non_null(m.cursor);
    assert_true(span_eq_str(m.cursor->topic_name, "t"));
    assert_int_equal(m.cursor->partition_index, 3);
}

static void a_compact_string_over_32767_bytes_is_refused(void **state)
{
    static uint8_t bytes[3 + 32768 + 2] = {0x81, 0x80, 0x02};
    struct kp_find_coordinator_req c;

    (void)state;
    assert_int_equal(decode(&kp_find_coordinator_req_desc, 3, bytes, sizeof bytes, &c), E_SYNTAX);
    bytes[0] = 0x80; /* one less: the bytes behind it are then one too many */
    assert_int_equal(decode(&kp_find_coordinator_req_desc, 3, bytes, sizeof bytes - 1, &c), 0);
    assert_int_equal(c.key.n, 32767);
}

static void null_and_empty_records_are_told_apart(void **state)
{
    struct kp_produce_req p;

    (void)state;
    assert_int_equal(DECODE(kp_produce_req_desc, 3, &p, 0xff, 0xff, 0, 1, 0, 0, 0, 9, /* */
                            0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 2,                        /* */
                            0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,                       /* null */
                            0, 0, 0, 1, 0, 0, 0, 0),                                  /* empty */
                     0);
    assert_null(p.topic_data[0].partition_data[0].records.in.p);
    assert_non_null(p.topic_data[0].partition_data[1].records.in.p);
    assert_int_equal(p.topic_data[0].partition_data[1].records.in.n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(null_and_empty_lists_of_topics_differ),
        TEST(fields_of_other_versions_hold_their_defaults),
        TEST(a_null_string_is_refused_where_none_is_allowed),
        TEST(a_count_beyond_the_bytes_left_allocates_nothing),
        TEST(memory_is_bounded_by_the_arenas_budget),
        TEST(unknown_tags_are_skipped),
        TEST(tags_that_repeat_or_fall_are_refused),
        TEST(a_known_tag_must_use_up_its_bytes),
        TEST(a_tag_of_a_later_version_is_unknown_in_an_earlier_one),
        TEST(a_nullable_struct_is_null_or_present),
        TEST(a_compact_string_over_32767_bytes_is_refused),
        TEST(null_and_empty_records_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
