/* Tokens for brokers: their parts, their signature, and keys as an operator writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/gazette/jwt.h"

static const uint8_t key[] = "0123456789abcdef0123456789abcdef";
#define KEY span_of(key, sizeof key - 1)

/* Base64url without padding; NUL-terminated. Returns the length. */
static size_t decode(struct span in, uint8_t *out)
{
    char text[2048];
    size_t n = in.n;

    assert_true(n + 4 < sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = in.p[i] == '-' ? '+' : in.p[i] == '_' ? '/' : (char)in.p[i];
    size_t pad = (4 - n % 4) % 4;
    memset(text + n, '=', pad);
    int got = EVP_DecodeBlock(out, (const unsigned char *)text, (int)(n + pad));
    assert_true(got >= 0);
    out[(size_t)got - pad] = '\0';
    return (size_t)got - pad;
}

/* The three parts; the signature is checked. */
static void open_token(const char *token, char header[256], char claims[2048])
{
    const char *dot = strchr(token, '.'), *dot2 = strrchr(token, '.');
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_n = 0;
    uint8_t signature[256];

    assert_non_null(dot);
    assert_true(dot2 > dot);
    assert_null(strchr(token, '='));
    (void)decode(span_of(token, (size_t)(dot - token)), (uint8_t *)header);
    (void)decode(span_of(dot + 1, (size_t)(dot2 - dot - 1)), (uint8_t *)claims);
    size_t n = decode(span_str(dot2 + 1), signature);
    assert_non_null(HMAC(EVP_sha256(), key, sizeof key - 1, (const unsigned char *)token,
                         (size_t)(dot2 - token), mac, &mac_n));
    assert_int_equal(n, mac_n);
    assert_memory_equal(signature, mac, n);
}

static void a_token_says_what_may_be_done_until_when(void **state)
{
    const struct gz_claims c = {.cap = GZ_CAP_READ | GZ_CAP_LIST, .now_s = 1000, .ttl_s = 60};
    char header[256], claims[2048], *token;

    (void)state;
    assert_int_equal(gz_jwt_sign(KEY, &c, &token), 0);
    open_token(token, header, claims);
    assert_string_equal(header, "{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
    assert_string_equal(claims, "{\"cap\":10,\"exp\":1060,\"iat\":1000,\"iss\":\"sluice\"}");
    mem_free(token);
}

static void a_prefix_becomes_a_selector_of_names(void **state)
{
    char prefix[GZ_JWT_PREFIX_MAX + 2], header[256], claims[2048], *token;
    struct gz_claims c = {.cap = GZ_CAP_READ, .prefix = "acme/eu%20/", .now_s = 1, .ttl_s = 1};

    (void)state;
    assert_int_equal(gz_jwt_sign(KEY, &c, &token), 0);
    open_token(token, header, claims);
    assert_string_equal(claims,
                        "{\"cap\":8,\"exp\":2,\"iat\":1,\"iss\":\"sluice\",\"sel\":{\"include\":{"
                        "\"labels\":[{\"name\":\"name\",\"value\":\"acme/eu%20/\","
                        "\"prefix\":true}]}}}");
    mem_free(token);
    memset(prefix, 'a', sizeof prefix - 1);
    prefix[GZ_JWT_PREFIX_MAX] = '\0';
    c.prefix = prefix;
    assert_int_equal(gz_jwt_sign(KEY, &c, &token), 0);
    open_token(token, header, claims);
    assert_non_null(strstr(claims, prefix));
    mem_free(token);
}

static void a_prefix_that_no_name_has_is_refused(void **state)
{
    static const char *const bad[] = {"", "a\"b", "a b", "a\\", "\xc3\xa4"};
    char longer[GZ_JWT_PREFIX_MAX + 2], *token;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct gz_claims c = {.cap = GZ_CAP_READ, .prefix = bad[i], .now_s = 1, .ttl_s = 1};
        assert_int_equal(gz_jwt_sign(KEY, &c, &token), E_INVALID);
        assert_null(token);
    }
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const struct gz_claims c = {.cap = GZ_CAP_READ, .prefix = longer, .now_s = 1, .ttl_s = 1};
    assert_int_equal(gz_jwt_sign(KEY, &c, &token), E_INVALID);
}

static void the_first_key_of_a_list_signs(void **state)
{
    static const char *const lists[] = {"c2VjcmV0IQ==", " c2VjcmV0IQ==,b3RoZXIh",
                                        "AA==,c2VjcmV0IQ==", "AA== \n c2VjcmV0IQ== AA=="};
    uint8_t *got;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_int_equal(gz_jwt_key(lists[i], &got, &n), 0);
        assert_int_equal(n, 7);
        assert_memory_equal(got, "secret!", 7);
        mem_free(got);
    }
}

static void a_list_without_a_key_is_told_apart_from_a_broken_one(void **state)
{
    static const char *const none[] = {"", " , ", "AA==", "AA==,AA=="};
    static const char *const broken[] = {"abc", "a*b=", "====", "secret"};
    uint8_t *got;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(gz_jwt_key(none[i], &got, &n), E_NOTFOUND);
        assert_null(got);
    }
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_int_equal(gz_jwt_key(broken[i], &got, &n), E_SYNTAX);
        assert_null(got);
    }
}

static void a_token_is_made_anew_before_it_is_refused(void **state)
{
    static const struct {
        int64_t holds_s, wall_s, mono_s;
        bool want;
    } rows[] = {
        {3600, 0, 0, false},       {3600, 2999, 2999, false},
        {3600, 3000, 3000, true},                      /* ten minutes before its end */
        {20, 9, 9, false},         {20, 10, 10, true}, /* half of a short life */
        {3600, 7200, 1, true},                         /* the clock was set forward, */
        {3600, -1, 1, true},                           /* back: it is from the future, */
        {3600, 1500, 3300, true},  /* back by half its life: it is older than it seems, */
        {3600, 1500, 1500, false}, /* or not at all */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[] = "token";
        const struct gz_token t = {
            .text = text, .holds_s = rows[i].holds_s, .made_s = 1000000, .made_ms = 500};
        if (gz_token_stale(&t, 1000000 + rows[i].wall_s, 500 + rows[i].mono_s * 1000) !=
            rows[i].want)
            fail_msg("row %zu", i);
    }
    struct gz_token t = {.holds_s = 3600, .made_s = 1000000, .made_ms = 500};
    assert_true(gz_token_stale(&t, 1000000, 500)); /* none yet */
    char text[] = "token";
    t.text = text;
    t.refused = true;
    assert_false(gz_token_stale(&t, 1000000, 600)); /* a new one would be no other */
    assert_true(gz_token_stale(&t, 1000001, 1500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_what_may_be_done_until_when),
        cmocka_unit_test(a_prefix_becomes_a_selector_of_names),
        cmocka_unit_test(a_prefix_that_no_name_has_is_refused),
        cmocka_unit_test(the_first_key_of_a_list_signs),
        cmocka_unit_test(a_list_without_a_key_is_told_apart_from_a_broken_one),
        cmocka_unit_test(a_token_is_made_anew_before_it_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
