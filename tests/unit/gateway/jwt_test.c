/* Tokens of RFC 7515 (appendices A.1 to A.3) and tokens of our own making, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/jwt.h"
#include "gateway/secret.h"

#define RFC_CLAIMS                                                                                 \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"         \
    "Ijp0cnVlfQ"
#define RFC_EXPIRES 1300819380

static const char rfc_hs256[] = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." RFC_CLAIMS
                                ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
static const char rfc_hs256_key[] =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CA"
    "ow";
static const char rfc_rs256[] =
    "eyJhbGciOiJSUzI1NiJ9." RFC_CLAIMS "."
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt"
    "_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArL"
    "IARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7no"
    "OPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
    "Ge77Rw";
static const char rfc_rs256_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJjNiuSfb4p4fAk\n"
    "d/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL+yRT+SFd2lZ\n"
    "S+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5re\n"
    "xMdbBYUsLA9e+KXBdQOS+UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT\n"
    "6/I5IhlJH7aGhyxXFvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW\n"
    "yuXpoQIDAQAB\n"
    "-----END PUBLIC KEY-----\n";
static const char rfc_es256[] =
    "eyJhbGciOiJFUzI1NiJ9." RFC_CLAIMS "."
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
static const char rfc_es256_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvR\n"
    "VEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"
    "-----END PUBLIC KEY-----\n";

static char why[128];
static const char *reason;

static struct jwt_keys *keys_of(const char *algorithm, const void *bytes, size_t n)
{
    struct jwt_keys *k;

    assert_int_equal(jwt_keys_new(&k), 0);
    assert_int_equal(jwt_keys_add_bytes(k, algorithm, span_of(bytes, n), why, sizeof why), 0);
    return k;
}

static int check(const struct jwt_keys *k, const char *token, int64_t now_s, char *subject,
                 size_t n)
{
    const struct jwt_rules rules = {
        .audience = "sluice", .issuer = "https://id.test", .leeway_s = 5};
    struct jwt_claims claims;
    int err = jwt_check(k, span_str(token), &rules, now_s, &claims, &reason);

    if (err == 0 && subject != NULL)
        snprintf(subject, n, "%s", claims.subject);
    assert_true((err == 0) == (reason == NULL));
    mem_free(claims.subject);
    return err;
}

/* Its claims lack a subject, so what shows is how far the check got. */
static void rfc_token(const char *algorithm, const void *key, size_t n, const char *token)
{
    struct jwt_keys *k = keys_of(algorithm, key, n);
    const struct jwt_rules any = {.leeway_s = 0};
    struct jwt_claims claims;
    char bent[1024];

    assert_int_equal(jwt_check(k, span_str(token), &any, RFC_EXPIRES - 1, &claims, &reason),
                     E_DENIED);
    assert_string_equal(reason, "token without a subject");
    assert_int_equal(jwt_check(k, span_str(token), &any, RFC_EXPIRES, &claims, &reason), E_DENIED);
    assert_string_equal(reason, "token has expired");
    for (size_t i = 0; i < strlen(token); i++) { /* any change of any letter */
        snprintf(bent, sizeof bent, "%s", token);
        bent[i] = bent[i] == 'A' ? 'B' : 'A';
        assert_int_equal(jwt_check(k, span_str(bent), &any, RFC_EXPIRES - 1, &claims, &reason),
                         E_DENIED);
        assert_true(strcmp(reason, "token without a subject") != 0);
    }
    jwt_keys_free(k);
}

static void the_tokens_of_rfc_7515_have_good_signatures(void **state)
{
    uint8_t key[64];
    size_t n;

    (void)state;
    assert_int_equal(secret_base64url(span_str(rfc_hs256_key), key, sizeof key, &n), 0);
    rfc_token("hs256", key, n, rfc_hs256);
    rfc_token("RS256", rfc_rs256_key, strlen(rfc_rs256_key), rfc_rs256);
    rfc_token("es256", rfc_es256_key, strlen(rfc_es256_key), rfc_es256);
}

/* --- tokens of our own, by HS256 --- */

static const char shared[] = "a shared secret of 32 bytes ....";

static void url64(struct writer *w, struct span s)
{
    struct writer b;

    wr_init(&b, 65536);
    secret_write_base64(&b, s);
    for (size_t i = 0; i < wr_len(&b); i++) {
        uint8_t c = b.b->data[i];
        if (c != '=')
            wr_u8(w, c == '+' ? '-' : c == '/' ? '_' : c);
    }
    wr_fini(&b);
}

static const char *token(const char *header, const char *claims, struct span key)
{
    static char text[32768];
    uint8_t mac[SECRET_HASH_MAX];
    struct writer w;

    wr_init(&w, sizeof text);
    url64(&w, span_str(header));
    wr_u8(&w, '.');
    url64(&w, span_str(claims));
    assert_int_equal(secret_hmac(SECRET_SHA256, key, blob_span(w.b), mac), 0);
    wr_u8(&w, '.');
    url64(&w, span_of(mac, 32));
    snprintf(text, sizeof text, "%.*s", (int)wr_len(&w), (const char *)w.b->data);
    wr_fini(&w);
    return text;
}

static int judge(const char *header, const char *claims)
{
    struct jwt_keys *k = keys_of("hs256", shared, strlen(shared));
    char subject[64] = "";
    int err = check(k, token(header, claims, span_str(shared)), 1000, subject, sizeof subject);

    jwt_keys_free(k);
    if (err == 0)
        assert_string_equal(subject, "acme/task");
    return err;
}

#define HEAD "{\"alg\":\"HS256\"}"
#define WHO  "\"sub\":\"acme/task\",\"iss\":\"https://id.test\""

static void a_good_token_names_its_subject(void **state)
{
    (void)state;
    assert_int_equal(judge(HEAD, "{" WHO ",\"aud\":\"sluice\",\"exp\":2000}"), 0);
    assert_int_equal(judge("{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"a\"}",
                           "{" WHO ",\"aud\":[\"x\",\"sluice\"],\"exp\":2000.5,\"nbf\":1004,"
                           "\"iat\":1005}"),
                     0);
    assert_int_equal(
        judge("{\"typ\":\"at+jwt\",\"alg\":\"HS256\"}", "{" WHO ",\"aud\":\"sluice\",\"exp\":996}"),
        0); /* within the leeway */
}

static void a_token_that_is_not_for_us_is_refused(void **state)
{
    static const char *const claims[] = {
        "{" WHO ",\"aud\":\"sluice\"}",                           /* never expires */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":995}",               /* expired */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":\"2000\"}",          /* a text */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":-1}",                /* no time */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":1e300}",             /* no time */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":2000,\"nbf\":1006}", /* not yet */
        "{" WHO ",\"aud\":\"sluice\",\"exp\":2000,\"iat\":1006}", /* of the future */
        "{" WHO ",\"aud\":\"other\",\"exp\":2000}",               /* audience */
        "{" WHO ",\"aud\":[],\"exp\":2000}",
        "{" WHO ",\"aud\":{\"sluice\":1},\"exp\":2000}",
        "{" WHO ",\"exp\":2000}",
        "{\"sub\":\"acme/task\",\"aud\":\"sluice\",\"exp\":2000}", /* issuer */
        "{\"sub\":\"acme/task\",\"iss\":\"x\",\"aud\":\"sluice\",\"exp\":2000}",
        "{\"iss\":\"https://id.test\",\"aud\":\"sluice\",\"exp\":2000}", /* subject */
        "{\"sub\":\"\",\"iss\":\"https://id.test\",\"aud\":\"sluice\",\"exp\":2000}",
        "{\"sub\":7,\"iss\":\"https://id.test\",\"aud\":\"sluice\",\"exp\":2000}",
        "{\"sub\":\"a\\u0000b\",\"iss\":\"https://id.test\",\"aud\":\"sluice\",\"exp\":2000}",
        "{" WHO ",\"sub\":\"other\",\"aud\":\"sluice\",\"exp\":2000}", /* twice */
        "[1]",
        "",
        "{",
    };

    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
        assert_int_equal(judge(HEAD, claims[i]), E_DENIED);
}

static void a_header_that_is_not_understood_is_refused(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":\"hs256\"}",
        "{\"alg\":\"HS512\"}",
        "{\"alg\":\"HS256\",\"alg\":\"HS256\"}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"HS256\",\"typ\":\"JWE\"}",
        "{\"alg\":\"HS256\",\"typ\":1}",
        "{}",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        assert_int_equal(judge(headers[i], "{" WHO ",\"aud\":\"sluice\",\"exp\":2000}"), E_DENIED);
}

static void a_public_key_is_never_a_shared_secret(void **state)
{
    const char *claims = "{" WHO ",\"aud\":\"sluice\",\"exp\":2000}";
    const struct {
        const char *alg, *key;
    } keys[] = {{"rs256", rfc_rs256_key}, {"es256", rfc_es256_key}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct jwt_keys *k = keys_of(keys[i].alg, keys[i].key, strlen(keys[i].key));
        assert_int_equal(check(k, token(HEAD, claims, span_str(keys[i].key)), 1000, NULL, 0),
                         E_DENIED);
        assert_int_equal(
            check(k, token("{\"alg\":\"RS256\"}", claims, span_str(keys[i].key)), 1000, NULL, 0),
            E_DENIED);
        jwt_keys_free(k);
    }
}

static void each_of_several_keys_is_tried(void **state)
{
    const char *claims = "{" WHO ",\"aud\":\"sluice\",\"exp\":2000}";
    struct jwt_keys *k = keys_of("rs256", rfc_rs256_key, strlen(rfc_rs256_key));
    const char *old = "another secret of 32 bytes .....";

    (void)state;
    assert_int_equal(jwt_keys_add_bytes(k, "hs256", span_str(old), why, sizeof why), 0);
    assert_int_equal(jwt_keys_add_bytes(k, "hs256", span_str(shared), why, sizeof why), 0);
    assert_int_equal(check(k, token(HEAD, claims, span_str(old)), 1000, NULL, 0), 0);
    assert_int_equal(check(k, token(HEAD, claims, span_str(shared)), 1000, NULL, 0), 0);
    assert_int_equal(check(k, token(HEAD, claims, span_str("third")), 1000, NULL, 0), E_DENIED);
    jwt_keys_free(k);
}

static void keys_that_do_not_fit_their_algorithm_are_refused(void **state)
{
    const struct {
        const char *alg, *key;
    } bad[] = {
        {"rs256", rfc_es256_key}, {"es256", rfc_rs256_key}, {"hs256", "too short"},
        {"rs256", "no key"},      {"none", shared},         {"hs512", shared},
    };
    struct jwt_keys *k;

    (void)state;
    assert_int_equal(jwt_keys_new(&k), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = '\0';
        assert_int_equal(jwt_keys_add_bytes(k, bad[i].alg, span_str(bad[i].key), why, sizeof why),
                         E_INVALID);
        assert_true(why[0] != '\0');
    }
    assert_int_equal(jwt_keys_n(k), 0);
    assert_int_equal(jwt_keys_add(k, "rs256:/no/such/file", why, sizeof why), E_NOTFOUND);
    assert_int_equal(jwt_keys_add(k, "rs256", why, sizeof why), E_INVALID);
    jwt_keys_free(k);
}

static void every_prefix_and_odd_shape_is_refused(void **state)
{
    struct jwt_keys *k = keys_of("hs256", shared, strlen(shared));
    const char *good = token(HEAD, "{" WHO ",\"aud\":\"sluice\",\"exp\":2000}", span_str(shared));
    char text[1024];
    static char big[JWT_MAX + 2];

    (void)state;
    assert_int_equal(check(k, good, 1000, NULL, 0), 0);
    for (size_t n = 0; n < strlen(good); n++) {
        snprintf(text, sizeof text, "%.*s", (int)n, good);
        assert_int_equal(check(k, text, 1000, NULL, 0), E_DENIED);
    }
    snprintf(text, sizeof text, "%s.", good);
    assert_int_equal(check(k, text, 1000, NULL, 0), E_DENIED);
    snprintf(text, sizeof text, "%s=", good);
    assert_int_equal(check(k, text, 1000, NULL, 0), E_DENIED);
    assert_int_equal(check(k, "..", 1000, NULL, 0), E_DENIED);
    memset(big, 'A', sizeof big - 1);
    assert_int_equal(check(k, big, 1000, NULL, 0), E_DENIED);
    assert_string_equal(reason, "token longer than 16 KiB");
    jwt_keys_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tokens_of_rfc_7515_have_good_signatures),
        cmocka_unit_test(a_good_token_names_its_subject),
        cmocka_unit_test(a_token_that_is_not_for_us_is_refused),
        cmocka_unit_test(a_header_that_is_not_understood_is_refused),
        cmocka_unit_test(a_public_key_is_never_a_shared_secret),
        cmocka_unit_test(each_of_several_keys_is_tried),
        cmocka_unit_test(keys_that_do_not_fit_their_algorithm_are_refused),
        cmocka_unit_test(every_prefix_and_odd_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
