/* Settings of the Gazette store as operators write them: brokers and stores of fragments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "journal_client/gazette/gazette_int.h"

static void a_broker_is_a_host_and_a_port(void **state)
{
    static const struct {
        const char *text, *host; /* NULL: refused */
        unsigned port;
    } rows[] = {
        {"127.0.0.1:8080", "127.0.0.1", 8080},
        {"broker-1.example:1", "broker-1.example", 1},
        {"[::1]:65535", "::1", 65535},
        {"localhost", NULL, 0},
        {"localhost:", NULL, 0},
        {"localhost:0", NULL, 0},
        {"localhost:65536", NULL, 0},
        {"localhost:80x", NULL, 0},
        {":8080", NULL, 0},
        {"[]:8080", NULL, 0},
        {"::1:8080", NULL, 0}, /* which colon? */
        {"http://localhost:8080", NULL, 0},
        {"localhost/x:8080", NULL, 0},
        {"user@localhost:8080", NULL, 0},
        {"a b:8080", NULL, 0},
        {"[::1:8080", NULL, 0},
        {"", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gz_endpoint e = {.port = 0};
        int err = gz_endpoint_parse(span_str(rows[i].text), &e);
        if (err != (rows[i].host == NULL ? E_SYNTAX : 0))
            fail_msg("%s: %d", rows[i].text, err);
        if (err == 0) {
            assert_string_equal(e.host, rows[i].host);
            assert_int_equal(e.port, rows[i].port);
        }
    }
}

static void several_brokers_stand_by_comma(void **state)
{
    struct gz_endpoint v[GZ_ENDPOINTS_MAX];
    char why[300];
    size_t n;

    (void)state;
    assert_int_equal(gz_endpoints_parse("a:1,[::2]:2", v, &n, why, sizeof why), 0);
    assert_int_equal(n, 2);
    assert_string_equal(v[1].host, "::2");
    assert_int_equal(gz_endpoints_parse("a:1,,b:2", v, &n, why, sizeof why), E_SYNTAX);
    assert_string_equal(why, "a broker is HOST:PORT or [ADDRESS]:PORT, not \"a:1,,b:2\"");
    assert_int_equal(gz_endpoints_parse("", v, &n, NULL, 0), E_SYNTAX);
    assert_int_equal(gz_endpoints_parse("a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9,a:10,a:11,a:12,a:13,"
                                        "a:14,a:15,a:16,a:17",
                                        v, &n, why, sizeof why),
                     E_LIMIT);
    assert_int_equal(jc_gazette_brokers_check("a:1", NULL, 0), 0);
}

static void a_store_of_fragments_is_what_brokers_take(void **state)
{
    static const char *const good[] = {
        "file:///",
        "file:///a/b/",
        "s3://bucket/",
        "s3://bucket/prefix/?profile=x&endpoint=http%3A%2F%2Fhost%3A9000",
        "gs://bucket/a/",
        "azure://account-and-container/",
        "azure-ad://tenant/account/container/prefix/",
    };
    static const struct {
        const char *url, *says;
    } bad[] = {
        {"", "is no URL of"},
        {"/tmp/x/", "is no URL of"},
        {"http://host/", "is no URL of"},
        {"s3:/bucket/", "is no URL of"},
        {"S://b/", "is no URL of"},
        {"file://host/x/", "names a host"},
        {"s3:///prefix/", "names no bucket"},
        {"s3://bucket", "does not end with /"},
        {"s3://bucket/prefix?x=/", "does not end with /"},
        {"file:///a", "does not end with /"},
        {"file://", "does not end with /"},
    };
    char why[300];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (jc_gazette_fragment_store_check(good[i], why, sizeof why) != 0)
            fail_msg("%s: %s", good[i], why);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (jc_gazette_fragment_store_check(bad[i].url, why, sizeof why) != E_SYNTAX ||
            strstr(why, bad[i].says) == NULL)
            fail_msg("%s: %s", bad[i].url, why);
    }
}

static void a_codec_is_one_of_four(void **state)
{
    Gz__Codec codec;
    char why[300];

    (void)state;
    assert_int_equal(gz_codec_parse("snappy", &codec), 0);
    assert_int_equal(codec, GZ__CODEC__CODEC_SNAPPY);
    assert_int_equal(gz_codec_parse("Gzip", &codec), E_SYNTAX);
    assert_int_equal(jc_gazette_codec_check("none", why, sizeof why), 0);
    assert_int_equal(jc_gazette_codec_check("lz4", why, sizeof why), E_SYNTAX);
    assert_string_equal(why, "\"lz4\" is neither none, gzip, zstd nor snappy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broker_is_a_host_and_a_port),
        cmocka_unit_test(several_brokers_stand_by_comma),
        cmocka_unit_test(a_store_of_fragments_is_what_brokers_take),
        cmocka_unit_test(a_codec_is_one_of_four),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
