/*
 * Headers: which version an API's version takes, what is read of requests that we do not know, and
 * the quirks of client_id and ApiVersions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka_proto/kp_messages.h"

static int decode(const void *bytes, size_t n, struct kp_request_header *h, bool *known,
                  size_t *left)
{
    struct reader r = reader_of(span_of(bytes, n));
    int err = kp_request_header_decode(&r, h, known);

    *left = rd_left(&r);
    return err;
}

static void header_1_has_no_tags(void **state)
{
    static const uint8_t bytes[] = {0, 3, 0, 8, 0, 0, 0, 7, 0, 2, 'm', 'e', 0x55};
    struct kp_request_header h;
    bool known;
    size_t left;

    (void)state;
    assert_int_equal(decode(bytes, sizeof bytes, &h, &known, &left), 0);
    assert_true(known);
    assert_int_equal(h.api_key, KP_API_METADATA);
    assert_int_equal(h.api_version, 8);
    assert_int_equal(h.correlation_id, 7);
    assert_true(span_eq_str(h.client_id, "me"));
    assert_int_equal(left, 1);
}

static void header_2_has_tags_and_a_plain_client_id(void **state)
{
    static const uint8_t bytes[] = {0,   3,   0, 9, 0, 0,   0,   7,   0,   2,
                                    'm', 'e', 1, 9, 3, 'x', 'y', 'z', 0x55};
    struct kp_request_header h;
    bool known;
    size_t left;

    (void)state;
    assert_int_equal(decode(bytes, sizeof bytes, &h, &known, &left), 0);
    assert_true(known);
    assert_true(span_eq_str(h.client_id, "me"));
    assert_int_equal(left, 1);
    for (size_t n = 0; n < sizeof bytes - 1; n++)
        assert_int_equal(decode(bytes, n, &h, &known, &left), E_SHORT);
}

static void a_null_client_id_is_legal_and_a_negative_one_is_not(void **state)
{
    static const uint8_t null[] = {0, 3, 0, 8, 0, 0, 0, 7, 0xff, 0xff};
    static const uint8_t bad[] = {0, 3, 0, 8, 0, 0, 0, 7, 0xff, 0xfe};
    struct kp_request_header h;
    bool known;
    size_t left;

    (void)state;
    assert_int_equal(decode(null, sizeof null, &h, &known, &left), 0);
    assert_true(known);
    assert_null(h.client_id.p);
    assert_int_equal(decode(bad, sizeof bad, &h, &known, &left), E_SYNTAX);
}

static void unknown_apis_and_versions_yield_the_fixed_fields_only(void **state)
{
    static const uint8_t key[] = {0x7f, 0, 0, 0, 0, 0, 0, 7, 0, 9};
    static const uint8_t version[] = {0, 18, 0, 99, 0, 0, 0, 8, 0xff};
    struct kp_request_header h;
    bool known;
    size_t left;

    (void)state;
    assert_int_equal(decode(key, sizeof key, &h, &known, &left), 0);
    assert_false(known);
    assert_int_equal(h.correlation_id, 7);
    assert_int_equal(decode(version, sizeof version, &h, &known, &left), 0);
    assert_false(known);
    assert_int_equal(h.api_key, KP_API_API_VERSIONS);
    assert_int_equal(h.api_version, 99);
    assert_int_equal(h.correlation_id, 8);
    assert_null(h.client_id.p);
}

static void tags_of_a_header_must_rise(void **state)
{
    static const uint8_t bytes[] = {0, 3, 0, 9, 0, 0, 0, 7, 0xff, 0xff, 2, 1, 0, 1, 0};
    struct kp_request_header h;
    bool known;
    size_t left;

    (void)state;
    assert_int_equal(decode(bytes, sizeof bytes, &h, &known, &left), E_SYNTAX);
}

/* Length of the response header that encoding an empty response leaves before the body. */
static void check_response_header(int16_t key, int16_t version, size_t header)
{
    const struct kp_api *api = kp_api_find(key);
    struct arena a;
    struct kp_encoded enc;
    int32_t id;

    arena_init(&a, 1 << 20);
    void *resp = arena_alloc(&a, api->response_bytes);
    assert_non_null(resp);
    kp_defaults(api->response, resp);
    struct writer body;
    wr_init(&body, 1 << 20);
    assert_int_equal(kp_encode(api->response, version, resp, &a, &body), 0);
    assert_int_equal(kp_encode_response(api, version, 0x01020304, resp, &a, &enc), 0);
    assert_int_equal(enc.head->len, 4 + header + wr_len(&body));
    assert_int_equal(enc.total, enc.head->len);

    struct reader r = reader_of(blob_span(enc.head));
    r.p += 4;
    assert_int_equal(kp_response_header_decode(api, version, &r, &id), 0);
    assert_int_equal(id, 0x01020304);
    assert_int_equal(rd_left(&r), wr_len(&body));
    for (size_t n = 0; n < header; n++) {
        struct reader cut = {enc.head->data + 4, enc.head->data + 4 + n};
        assert_int_equal(kp_response_header_decode(api, version, &cut, &id), E_SHORT);
    }
    blob_unref(enc.head);
    wr_fini(&body);
    arena_fini(&a);
}

static void response_headers_get_tags_from_the_flexible_version_on(void **state)
{
    (void)state;
    check_response_header(KP_API_METADATA, 8, 4);
    check_response_header(KP_API_METADATA, 9, 5);
    check_response_header(KP_API_SASL_HANDSHAKE, 1, 4);
    check_response_header(KP_API_DESCRIBE_CLUSTER, 0, 5);
}

static void the_response_header_of_api_versions_stays_plain(void **state)
{
    (void)state;
    for (int16_t v = 0; v <= 4; v++)
        check_response_header(KP_API_API_VERSIONS, v, 4);
}

static void a_request_frame_reads_back(void **state)
{
    struct arena a;
    struct writer w;
    struct kp_find_coordinator_req req, got;

    (void)state;
    arena_init(&a, 1 << 20);
    wr_init(&w, 1 << 20);
    wr_u8(&w, 0x55); /* appended to what is there */
    const struct kp_api *api = kp_api_find(KP_API_FIND_COORDINATOR);
    for (int16_t v = 2; v <= 3; v++) {
        size_t at = wr_len(&w);
        kp_defaults(&kp_find_coordinator_req_desc, &req);
        req.key = span_str("group");
        assert_int_equal(kp_request_encode(api, v, 5, span_str(v == 2 ? "c" : NULL), &req, &a, &w),
                         0);
        struct reader r = {w.b->data + at, w.b->data + wr_len(&w)};
        struct kp_request_header h;
        int32_t length;
        bool known;
        assert_int_equal(rd_i32(&r, &length), 0);
        assert_int_equal(length, rd_left(&r));
        assert_int_equal(kp_request_header_decode(&r, &h, &known), 0);
        assert_true(known);
        assert_int_equal(h.correlation_id, 5);
        assert_int_equal(h.client_id.p == NULL, v == 3);
        assert_int_equal(kp_decode(api->request, v, &r, &a, &got), 0);
        assert_true(span_eq_str(got.key, "group"));
    }
    struct span huge = {w.b->data, (size_t)INT16_MAX + 1};
    assert_int_equal(kp_request_encode(api, 3, 5, huge, &req, &a, &w), E_LIMIT);
    wr_fini(&w);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_1_has_no_tags),
        cmocka_unit_test(header_2_has_tags_and_a_plain_client_id),
        cmocka_unit_test(a_null_client_id_is_legal_and_a_negative_one_is_not),
        cmocka_unit_test(unknown_apis_and_versions_yield_the_fixed_fields_only),
        cmocka_unit_test(tags_of_a_header_must_rise),
        cmocka_unit_test(response_headers_get_tags_from_the_flexible_version_on),
        cmocka_unit_test(the_response_header_of_api_versions_stays_plain),
        cmocka_unit_test(a_request_frame_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
