/* Tokens as the catalog writes them, PLAIN and OAUTHBEARER messages, and base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/sasl.h"
#include "gateway/secret.h"

static void a_plain_token_is_compared_as_it_is(void **state)
{
    static const char *const tokens[] = {"a:b:c", "p@ss/w\xc3\xb6rd%41", "ends in a space ", "x",
                                         "scram-sha-1$not a verifier"};
    struct secret s;

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        assert_int_equal(secret_parse(span_str(tokens[i]), &s), 0);
        assert_false(s.verifier);
        assert_int_equal(secret_check(&s, span_str(tokens[i])), 0);
        assert_int_equal(secret_check(&s, span_of(tokens[i], strlen(tokens[i]) - 1)), E_DENIED);
        assert_int_equal(secret_check(&s, span_str("")), E_DENIED);
    }
}

static void a_verifier_knows_its_password_and_is_none_itself(void **state)
{
    static const enum secret_hash hashes[] = {SECRET_SHA256, SECRET_SHA512};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct secret s;
        struct writer w;
        wr_init(&w, 1000);
        assert_int_equal(secret_write(hashes[i], span_str("token one"),
                                      span_str("0123456789abcdef"), SECRET_ITERATIONS, &w),
                         0);
        assert_int_equal(secret_parse(blob_span(w.b), &s), 0);
        assert_true(s.verifier);
        assert_int_equal(s.hash, hashes[i]);
        assert_int_equal(s.salt_n, 16);
        assert_int_equal(secret_check(&s, span_str("token one")), 0);
        assert_int_equal(secret_check(&s, span_str("token two")), E_DENIED);
        assert_int_equal(secret_check(&s, blob_span(w.b)), E_DENIED);
        /* No prefix of it is a verifier, and none passes for a plain token. */
        struct span prefix = span_str("scram-sha-256$");
        for (size_t n = prefix.n; n < w.b->len; n++)
            assert_int_equal(secret_parse(span_of(w.b->data, n), &s), E_SYNTAX);
        wr_fini(&w);
    }
}

static void broken_verifiers_are_refused(void **state)
{
#define SALT "W22ZaJ0SNY7soEsUEjb6gQ==$"
#define KEY  "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    static const char *const bad[] = {
        "scram-sha-256$4095$" SALT KEY "$" KEY,
        "scram-sha-256$1000001$" SALT KEY "$" KEY,
        "scram-sha-256$-1$" SALT KEY "$" KEY,
        "scram-sha-256$$" SALT KEY "$" KEY,
        "scram-sha-256$4096$" SALT KEY,
        "scram-sha-256$4096$" SALT KEY "$" KEY "$",
        "scram-sha-256$4096$AAAA$" KEY "$" KEY,
        "scram-sha-512$4096$" SALT KEY "$" KEY,
        "scram-sha-256$4096$" SALT KEY "$" KEY "\n",
    };
    struct secret s;

    (void)state;
    assert_int_equal(secret_parse(span_str("scram-sha-256$4096$" SALT KEY "$" KEY), &s), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(secret_parse(span_str(bad[i]), &s), E_SYNTAX);
}

static void base64_is_strict(void **state)
{
    static const char *const bad[] = {"A",    "AA",    "AAA",   "AB==",  "AAB=", "A===",     "====",
                                      "AA=A", "AAAA=", "AA AA", "AA\nA", "-_AA", "AAAA AAAA"};
    uint8_t out[16];
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(secret_base64(span_str(bad[i]), out, sizeof out, &n), E_SYNTAX);
    assert_int_equal(secret_base64(span_str("Zm9vYg=="), out, sizeof out, &n), 0);
    assert_int_equal(n, 4);
    assert_memory_equal(out, "foob", 4);
    assert_int_equal(secret_base64(span_str("Zm9vYmFy"), out, 5, &n), E_LIMIT);
    assert_int_equal(secret_base64url(span_str("-_-_"), out, sizeof out, &n), 0);
    assert_int_equal(secret_base64url(span_str("Zm9vYg"), out, sizeof out, &n), 0);
    assert_memory_equal(out, "foob", 4);
    assert_int_equal(secret_base64url(span_str("Zm9vYg=="), out, sizeof out, &n), E_SYNTAX);
    assert_int_equal(secret_base64(span_str(""), out, sizeof out, &n), 0);
    assert_int_equal(n, 0);
}

static int plain(const char *text, size_t n, struct span *user, struct span *password)
{
    return sasl_plain(span_of(text, n), user, password);
}

#define PLAIN(text) plain(text, sizeof(text) - 1, &user, &password)

static void plain_has_exactly_three_parts(void **state)
{
    struct span user;
    struct span password;

    (void)state;
    assert_int_equal(PLAIN("\0acme/task-1\0a:b:c"), 0);
    assert_true(span_eq_str(user, "acme/task-1"));
    assert_true(span_eq_str(password, "a:b:c"));
    assert_int_equal(PLAIN("u\0u\0p "), 0);
    assert_true(span_eq_str(password, "p "));
    assert_int_equal(PLAIN("other\0u\0p"), E_DENIED);
    assert_int_equal(PLAIN(""), E_SYNTAX);
    assert_int_equal(PLAIN("u"), E_SYNTAX);
    assert_int_equal(PLAIN("\0u"), E_SYNTAX);
    assert_int_equal(PLAIN("\0u\0"), E_SYNTAX);
    assert_int_equal(PLAIN("\0\0p"), E_SYNTAX);
    assert_int_equal(PLAIN("\0u\0p\0"), E_SYNTAX);
    assert_int_equal(PLAIN("\0u\0p\0x"), E_SYNTAX);
}

static int bearer(const char *text, struct span *who, struct span *token)
{
    return sasl_bearer(span_str(text), who, token);
}

static void a_bearer_message_holds_one_token(void **state)
{
    static const char *const bad[] = {
        "",
        "n,,",
        "n,,\1",
        "n,,\1\1",
        "n,,\1auth=Bearer t",
        "n,,\1auth=Bearer t\1",
        "n,,\1auth=Bearer t\1\1x",
        "n,,\1auth=Bearer \1\1",
        "n,,\1auth=Basic t\1\1",
        "n,,\1auth=Bearer t\1auth=Bearer u\1\1",
        "p=x,,\1auth=Bearer t\1\1",
        "n,x=y,\1auth=Bearer t\1\1",
        "n,,x\1auth=Bearer t\1\1",
        "n,a=,\1auth=Bearer t\1\1",
    };
    struct span who;
    struct span token;

    (void)state;
    assert_int_equal(bearer("n,,\1auth=Bearer t.o.k\1\1", &who, &token), 0);
    assert_null(who.p);
    assert_true(span_eq_str(token, "t.o.k"));
    assert_int_equal(bearer("n,a=me,\1host=h\1port=1\1auth=bearer t\1ext=1\1\1", &who, &token), 0);
    assert_true(span_eq_str(who, "me"));
    assert_true(span_eq_str(token, "t"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(bearer(bad[i], &who, &token), E_SYNTAX);
}

static void mechanisms_are_listed_by_their_exact_names(void **state)
{
    enum sasl_mechanism m;
    unsigned set;

    (void)state;
    assert_true(sasl_find(span_str("SCRAM-SHA-512"), &m));
    assert_int_equal(m, SASL_SCRAM_SHA_512);
    assert_false(sasl_find(span_str("plain"), &m));
    assert_false(sasl_find(span_str("PLAIN "), &m));
    assert_int_equal(sasl_parse_list("PLAIN,OAUTHBEARER", &set), 0);
    assert_int_equal(set, 1U << SASL_PLAIN | 1U << SASL_OAUTHBEARER);
    assert_int_equal(sasl_parse_list("", &set), E_SYNTAX);
    assert_int_equal(sasl_parse_list("PLAIN,", &set), E_SYNTAX);
    assert_int_equal(sasl_parse_list("PLAIN,GSSAPI", &set), E_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_token_is_compared_as_it_is),
        cmocka_unit_test(a_verifier_knows_its_password_and_is_none_itself),
        cmocka_unit_test(broken_verifiers_are_refused),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(plain_has_exactly_three_parts),
        cmocka_unit_test(a_bearer_message_holds_one_token),
        cmocka_unit_test(mechanisms_are_listed_by_their_exact_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
