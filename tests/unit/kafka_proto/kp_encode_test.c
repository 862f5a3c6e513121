/*
 * What the encoder refuses, and where splices lie. Expected bytes are written by hand.
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

/* Error of encoding, bytes dropped. */
static int try_encode(const struct kp_desc *d, int16_t version, const void *msg)
{
    struct writer w;

    wr_init(&w, 1 << 20);
    int err = kp_encode(d, version, msg, &arena, &w);
    wr_fini(&w);
    return err;
}

static void assert_encodes(const struct kp_desc *d, int16_t version, const void *msg,
                           const void *bytes, size_t n)
{
    struct writer w;

    wr_init(&w, 1 << 20);
    assert_int_equal(kp_encode(d, version, msg, &arena, &w), 0);
    assert_int_equal(wr_len(&w), n);
    assert_memory_equal(w.b->data, bytes, n);
    wr_fini(&w);
}

static void a_value_that_the_version_cannot_carry_is_refused(void **state)
{
    struct kp_metadata_req m;

    (void)state;
    kp_defaults(&kp_metadata_req_desc, &m);
    assert_int_equal(try_encode(&kp_metadata_req_desc, 0, &m), 0);
    m.allow_auto_topic_creation = false; /* since 4 */
    assert_int_equal(try_encode(&kp_metadata_req_desc, 3, &m), E_INVALID);
    assert_int_equal(try_encode(&kp_metadata_req_desc, 4, &m), 0);
}

static void an_ignorable_value_is_dropped_where_the_version_lacks_it(void **state)
{
    struct kp_list_offsets_resp m;

    (void)state;
    kp_defaults(&kp_list_offsets_resp_desc, &m);
    m.throttle_time_ms = 7; /* since 2 */
    assert_encodes(&kp_list_offsets_resp_desc, 1, &m, "\0\0\0\0", 4);
    assert_encodes(&kp_list_offsets_resp_desc, 2, &m, "\0\0\0\7\0\0\0\0", 8);
}

static void null_is_refused_where_none_is_allowed(void **state)
{
    struct kp_metadata_req m;
    struct kp_find_coordinator_req c;

    (void)state;
    kp_defaults(&kp_metadata_req_desc, &m);
    m.topics_n = -1;
    assert_int_equal(try_encode(&kp_metadata_req_desc, 0, &m), E_INVALID);
    assert_encodes(&kp_metadata_req_desc, 1, &m, "\xff\xff\xff\xff", 4);
    kp_defaults(&kp_find_coordinator_req_desc, &c);
    c.key = (struct span){NULL, 0};
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 0, &c), E_INVALID);
    /* absent in 4, where it is as good as never set */
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 4, &c), 0);
    m.topics_n = 1; /* a count without elements */
    assert_int_equal(try_encode(&kp_metadata_req_desc, 1, &m), E_INVALID);
}

static void strings_over_32767_bytes_are_refused(void **state)
{
    static uint8_t text[32768];
    struct kp_find_coordinator_req c;

    (void)state;
    kp_defaults(&kp_find_coordinator_req_desc, &c);
    c.key = span_of(text, sizeof text);
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 0, &c), E_LIMIT);
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 3, &c), E_LIMIT);
    c.key.n--;
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 0, &c), 0);
    assert_int_equal(try_encode(&kp_find_coordinator_req_desc, 3, &c), 0);
}

static void tagged_fields_are_written_only_when_set(void **state)
{
    struct kp_api_versions_resp m;

    (void)state;
    kp_defaults(&kp_api_versions_resp_desc, &m);
    assert_encodes(&kp_api_versions_resp_desc, 3, &m, "\0\0\1\0\0\0\0\0", 8);
    m.finalized_features_epoch = 9;
    m.zk_migration_ready = true;
    assert_encodes(&kp_api_versions_resp_desc, 3, &m,
                   "\0\0\1\0\0\0\0\2" /* two tags: 1 of 8 bytes, 3 of 1 byte */
                   "\1\10\0\0\0\0\0\0\0\11\3\1\1",
                   21);
}

static void arrays_start_from_defaults(void **state)
{
    struct kp_fetch_resp_responses_partitions *p =
        kp_array(&kp_fetch_resp_responses_partitions_desc, &arena, 3);

    (void)state;
    assert_non_null(p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(p[i].last_stable_offset, -1);
        assert_int_equal(p[i].diverging_epoch.epoch, -1);
        assert_int_equal(p[i].preferred_read_replica, -1);
    }
    struct arena tight;
    arena_init(&tight, 64);
    assert_null(kp_array(&kp_fetch_resp_responses_partitions_desc, &tight, 3));
    arena_fini(&tight);
}

/* A Fetch response with the given records in each of two partitions. */
static void make_fetch(struct kp_fetch_resp *m, const struct kp_piece *pieces, size_t n)
{
    kp_defaults(&kp_fetch_resp_desc, m);
    m->responses = kp_array(&kp_fetch_resp_responses_desc, &arena, 1);
    assert_non_null(m->responses);
    m->responses_n = 1;
    m->responses[0].topic = span_str("t");
    m->responses[0].partitions = kp_array(&kp_fetch_resp_responses_partitions_desc, &arena, 2);
    assert_non_null(m->responses[0].partitions);
    m->responses[0].partitions_n = 2;
    for (int i = 0; i < 2; i++) {
        m->responses[0].partitions[i].partition_index = i;
        m->responses[0].partitions[i].records.pieces = pieces;
        m->responses[0].partitions[i].records.pieces_n = n;
    }
}

static void records_in_blobs_become_splices_in_order(void **state)
{
    struct blob *b = blob_copy(span_str("0123456789"));
    const struct kp_api *api = kp_api_find(KP_API_FETCH);
    struct kp_fetch_resp m;
    struct kp_encoded enc;

    (void)state;
    assert_non_null(b);
    const struct kp_piece pieces[] = {
        {.bytes = (const uint8_t *)"AB", .len = 2},
        {.blob = b, .off = 2, .len = 3},
        {.blob = b, .off = 0, .len = 0}, /* nothing: no splice */
        {.blob = b, .off = 9, .len = 1},
    };
    make_fetch(&m, pieces, 4);
    for (int16_t v = 4; v <= 12; v += 8) {
        assert_int_equal(kp_encode_response(api, v, 77, &m, &arena, &enc), 0);
        assert_int_equal(enc.splices_n, 4);
        assert_int_equal(enc.total, enc.head->len + 2 * 4);
        assert_int_equal(be_load32(enc.head->data), enc.total - 4);
        assert_int_equal(be_load32(enc.head->data + 4), 77);
        for (size_t i = 0; i < 4; i++) {
            const struct kp_splice *s = &enc.splices[i];
            assert_ptr_equal(s->blob, b);
            assert_int_equal(s->off, i % 2 == 0 ? 2 : 9);
            assert_int_equal(s->len, i % 2 == 0 ? 3 : 1);
            assert_true(s->at >= 2 && s->at <= enc.head->len);
            assert_memory_equal(enc.head->data + s->at - 2, "AB", 2);
            assert_true(i == 0 || s->at >= enc.splices[i - 1].at);
        }
        blob_unref(enc.head);
    }
    assert_int_equal(atomic_load(&b->refs), 1); /* splices borrow */

    struct writer w;
    struct kp_fetch_resp got;
    wr_init(&w, 1 << 20);
    assert_int_equal(kp_encode(&kp_fetch_resp_desc, 12, &m, &arena, &w), 0);
    struct reader r = reader_of(blob_span(w.b));
    assert_int_equal(kp_decode(&kp_fetch_resp_desc, 12, &r, &arena, &got), 0);
    assert_true(span_eq_str(got.responses[0].partitions[1].records.in, "AB2349"));
    wr_fini(&w);
    blob_unref(b);
}

static void a_piece_outside_of_its_blob_is_refused(void **state)
{
    struct blob *b = blob_copy(span_str("0123456789"));
    struct kp_fetch_resp m;

    (void)state;
    assert_non_null(b);
    const struct kp_piece bad[] = {{.blob = b, .off = 8, .len = 3}};
    const struct kp_piece worse[] = {{.blob = b, .off = SIZE_MAX, .len = 3}};
    make_fetch(&m, bad, 1);
    assert_int_equal(try_encode(&kp_fetch_resp_desc, 4, &m), E_INVALID);
    make_fetch(&m, worse, 1);
    assert_int_equal(try_encode(&kp_fetch_resp_desc, 4, &m), E_INVALID);
    blob_unref(b);
}

static void records_without_pieces_are_empty_never_null(void **state)
{
    struct kp_fetch_resp m, got;
    struct writer w;

    (void)state;
    make_fetch(&m, NULL, 0);
    wr_init(&w, 1 << 20);
    assert_int_equal(kp_encode(&kp_fetch_resp_desc, 12, &m, &arena, &w), 0);
    struct reader r = reader_of(blob_span(w.b));
    assert_int_equal(kp_decode(&kp_fetch_resp_desc, 12, &r, &arena, &got), 0);
    assert_non_null(got.responses[0].partitions[0].records.in.p);
    assert_int_equal(got.responses[0].partitions[0].records.in.n, 0);
    wr_fini(&w);
}

static void a_frame_beyond_its_int32_length_is_refused(void **state)
{
    /* one blob of 1 MiB, spliced 2048 times: no byte is copied, but the frame would be 2 GiB */
    size_t mib = (size_t)1 << 20;
    struct blob *b = blob_new(mib);
    struct kp_piece *pieces = arena_array(&arena, 1024, sizeof *pieces);
    struct kp_fetch_resp m;
    struct kp_encoded enc;

    (void)state;
    assert_non_null(b);
    assert_non_null(pieces);
    b->len = mib;
    for (size_t i = 0; i < 1024; i++)
        pieces[i] = (struct kp_piece){.blob = b, .len = mib};
    make_fetch(&m, pieces, 1024);
    const struct kp_api *api = kp_api_find(KP_API_FETCH);
    assert_int_equal(kp_encode_response(api, 12, 1, &m, &arena, &enc), E_LIMIT);
    assert_null(enc.head);
    blob_unref(b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_that_the_version_cannot_carry_is_refused),
        TEST(an_ignorable_value_is_dropped_where_the_version_lacks_it),
        TEST(null_is_refused_where_none_is_allowed),
        TEST(strings_over_32767_bytes_are_refused),
        TEST(tagged_fields_are_written_only_when_set),
        TEST(arrays_start_from_defaults),
        TEST(records_in_blobs_become_splices_in_order),
        TEST(a_piece_outside_of_its_blob_is_refused),
        TEST(records_without_pieces_are_empty_never_null),
        TEST(a_frame_beyond_its_int32_length_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
