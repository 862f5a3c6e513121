/* The exchange of RFC 7677, one by SHA-512 against our own client, and messages that must not pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "gateway/scram.h"

static const char rfc_first[] = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
static const char rfc_random[] = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
static const char rfc_challenge[] =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
static const char rfc_final[] = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                                "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
static const char rfc_server_final[] = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

static uint8_t salt[16];
static size_t salt_n;

static int setup(void **state)
{
    (void)state;
    return secret_base64(span_str("W22ZaJ0SNY7soEsUEjb6gQ=="), salt, sizeof salt, &salt_n);
}

/* Up to server-first. */
static void begin(struct scram *s)
{
    struct span out;

    scram_init(s, SECRET_SHA256);
    assert_int_equal(scram_first(s, span_str(rfc_first)), 0);
    assert_string_equal(s->user, "user");
    assert_int_equal(scram_challenge(s, rfc_random, span_of(salt, salt_n), 4096, &out), 0);
    assert_true(span_eq_str(out, rfc_challenge));
}

static int finish(const char *final, const char *password, struct writer *w)
{
    struct secret_keys keys;
    struct scram s;

    begin(&s);
    int err = scram_final(&s, span_str(final));
    assert_int_equal(
        secret_derive(SECRET_SHA256, span_str(password), span_of(salt, salt_n), 4096, &keys), 0);
    if (err == 0)
        err = scram_proof(&s, &keys, w);
    scram_fini(&s);
    scram_fini(&s);
    return err;
}

static void the_exchange_of_rfc_7677_succeeds(void **state)
{
    struct writer w;

    (void)state;
    wr_init(&w, 1000);
    assert_int_equal(finish(rfc_final, "pencil", &w), 0);
    assert_true(span_eq_str(blob_span(w.b), rfc_server_final));
    wr_fini(&w);
}

static void another_password_or_any_changed_letter_fails(void **state)
{
    struct writer w;
    char bent[sizeof rfc_final];

    (void)state;
    wr_init(&w, 1000);
    assert_int_equal(finish(rfc_final, "pencil ", &w), E_DENIED);
    assert_int_equal(finish(rfc_final, "", &w), E_DENIED);
    for (size_t i = 0; i < sizeof rfc_final - 1; i++) {
        memcpy(bent, rfc_final, sizeof bent);
        bent[i] = bent[i] == 'A' ? 'B' : 'A';
        assert_true(finish(bent, "pencil", &w) < 0);
    }
    assert_int_equal(wr_len(&w), 0);
    wr_fini(&w);
}

static void a_stored_verifier_serves_the_exchange(void **state)
{
    struct secret stored;
    struct writer text;
    struct writer w;
    struct scram s;

    (void)state;
    wr_init(&text, 1000);
    wr_init(&w, 1000);
    assert_int_equal(
        secret_write(SECRET_SHA256, span_str("pencil"), span_of(salt, salt_n), 4096, &text), 0);
    /* StoredKey and ServerKey of RFC 7677, as others have computed them. */
    assert_true(span_eq_str(blob_span(text.b), "scram-sha-256$4096$W22ZaJ0SNY7soEsUEjb6gQ==$"
                                               "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=$"
                                               "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="));
    assert_int_equal(secret_parse(blob_span(text.b), &stored), 0);
    assert_true(stored.verifier);
    begin(&s);
    assert_int_equal(scram_final(&s, span_str(rfc_final)), 0);
    assert_int_equal(scram_proof(&s, &stored.keys, &w), 0);
    assert_true(span_eq_str(blob_span(w.b), rfc_server_final));
    scram_fini(&s);
    wr_fini(&w);
    wr_fini(&text);
}

/* What a client does, by SHA-512. */
static void a_client_and_we_agree_by_sha_512(void **state)
{
    const struct span password = span_str("p@ss/w\xc3\xb6rd%41");
    struct span lead = span_of("saltsalt", 8);
    uint8_t proof[SECRET_HASH_MAX], signature[SECRET_HASH_MAX];
    struct secret_keys keys;
    struct writer final, text, answer;
    struct span challenge;
    struct scram s;

    (void)state;
    scram_init(&s, SECRET_SHA512);
    assert_int_equal(
        scram_first(&s, span_str("y,a=acme/task-1,n=acme/task-1,r=abc,tokenauth=true")), 0);
    assert_int_equal(scram_challenge(&s, "DEF", lead, 5000, &challenge), 0);
    wr_init(&text, 4096);
    wr_str(&text, "n=acme/task-1,r=abc,tokenauth=true,");
    wr_span(&text, challenge);
    wr_str(&text, ",c=eSxhPWFjbWUvdGFzay0xLA==,r=abcDEF");
    assert_int_equal(secret_derive(SECRET_SHA512, password, lead, 5000, &keys), 0);
    /* The client's key is found backwards from a proof of zeros: proof = key xor signature. */
    assert_int_equal(
        secret_hmac(SECRET_SHA512, span_of(keys.stored, 64), blob_span(text.b), signature), 0);
    /* secret_derive keeps no ClientKey: derive it as the RFC says. */
    uint8_t salted[64], client[SECRET_HASH_MAX];
    assert_int_equal(PKCS5_PBKDF2_HMAC((const char *)password.p, (int)password.n, lead.p, 8, 5000,
                                       EVP_sha512(), 64, salted),
                     1);
    assert_int_equal(
        secret_hmac(SECRET_SHA512, span_of(salted, 64), span_str("Client Key"), client), 0);
    for (size_t i = 0; i < 64; i++)
        proof[i] = client[i] ^ signature[i];
    wr_init(&final, 4096);
    wr_str(&final, "c=eSxhPWFjbWUvdGFzay0xLA==,r=abcDEF,p=");
    secret_write_base64(&final, span_of(proof, 64));
    assert_int_equal(scram_final(&s, blob_span(final.b)), 0);
    wr_init(&answer, 4096);
    assert_int_equal(scram_proof(&s, &keys, &answer), 0);
    scram_fini(&s);
    wr_fini(&text);
    wr_fini(&final);
    wr_fini(&answer);
}

static void user_names_are_unescaped(void **state)
{
    struct scram s;

    (void)state;
    scram_init(&s, SECRET_SHA256);
    assert_int_equal(scram_first(&s, span_str("n,,n=a=2Cb=3Dc,r=x")), 0);
    assert_string_equal(s.user, "a,b=c");
    scram_fini(&s);
}

static void malformed_first_messages_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=",
        "n,,n=,r=x",
        "n,,n=user",
        "n,,n=user,r=",
        "n,,r=x,n=user",
        "n,,n=us=er,r=x",
        "n,,n=us=2c,r=x",
        "n,,n=user,r=a b",
        "x,,n=user,r=x",
        "n=,n=user,r=x",
        "p=tls-unique,,n=user,r=x",
        "n,,m=ext,n=user,r=x",
        "n,a=other,n=user,r=x",
        "n,a=,n=user,r=x",
        "n,a=user,",
    };
    static char big[SCRAM_MESSAGE_MAX + 2];
    struct scram s;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        scram_init(&s, SECRET_SHA256);
        assert_true(scram_first(&s, span_str(bad[i])) < 0);
        scram_fini(&s);
    }
    memset(big, 'a', sizeof big - 1);
    memcpy(big, "n,,n=", 5);
    scram_init(&s, SECRET_SHA256);
    assert_int_equal(scram_first(&s, span_str(big)), E_LIMIT);
    scram_fini(&s);
    scram_init(&s, SECRET_SHA256);
    assert_true(scram_first(&s, span_of("n,,n=a\0b,r=x", 12)) <
                0); /* no short cut to another name */
    scram_fini(&s);
}

static void malformed_final_messages_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "c=biws",
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=eSws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=AAAA",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,c=biws,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    };
    struct writer w;

    (void)state;
    wr_init(&w, 1000);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(finish(bad[i], "pencil", &w) < 0);
    wr_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exchange_of_rfc_7677_succeeds),
        cmocka_unit_test(another_password_or_any_changed_letter_fails),
        cmocka_unit_test(a_stored_verifier_serves_the_exchange),
        cmocka_unit_test(a_client_and_we_agree_by_sha_512),
        cmocka_unit_test(user_names_are_unescaped),
        cmocka_unit_test(malformed_first_messages_are_refused),
        cmocka_unit_test(malformed_final_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
