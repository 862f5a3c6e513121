/*
 * What a client may send before anybody knows who it is: PLAIN, SCRAM and OAUTHBEARER messages,
 * JSON Web Tokens, and verifiers of the catalog. The first byte of the input chooses which.
 * Checked: nothing crashes, runs over its input or leaks; nothing of another's making passes for a
 * good signature or proof.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/jwt.h"
#include "gateway/sasl.h"
#include "gateway/scram.h"
#include "gateway/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool within(struct span part, struct span whole)
{
    return part.p == NULL || part.n == 0 ||
           (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void try_messages(struct span in)
{
    struct span a;
    struct span b;

    if (sasl_plain(in, &a, &b) == 0)
        ASSERT(within(a, in) && within(b, in) && a.n > 0 && b.n > 0);
    if (sasl_bearer(in, &a, &b) == 0)
        ASSERT(within(a, in) && within(b, in) && b.n > 0);
}

/* Client-first, a byte 0, client-final. */
static void try_scram(struct span in)
{
    const uint8_t *cut = in.n == 0 ? NULL : memchr(in.p, 0, in.n);
    struct span first = cut == NULL ? in : span_of(in.p, (size_t)(cut - in.p));
    struct span last = cut == NULL ? (struct span){NULL, 0} : span_of(cut + 1, in.n - first.n - 1);
    const struct secret_keys keys = {.stored = {1}, .server = {2}};
    struct span challenge;
    struct writer w;
    struct scram s;

    scram_init(&s, SECRET_SHA256);
    wr_init(&w, 4096);
    if (scram_first(&s, first) == 0) {
        ASSERT(s.user[0] != '\0');
        if (scram_challenge(&s, "0123456789", span_of("saltsalt", 8), 4096, &challenge) == 0 &&
            scram_final(&s, last) == 0)
            ASSERT(scram_proof(&s, &keys, &w) < 0);
    }
    wr_fini(&w);
    scram_fini(&s);
}

static void try_token(struct span in)
{
    static struct jwt_keys *keys;
    const struct jwt_rules rules = {.audience = "a"};
    struct jwt_claims claims;
    const char *reason;
    char why[64];

    if (keys == NULL) {
        ASSERT(jwt_keys_new(&keys) == 0);
        ASSERT(jwt_keys_add_bytes(keys, "hs256", span_str("0123456789abcdef0123456789abcdef"), why,
                                  sizeof why) == 0);
    }
    /* The corpus holds tokens of this key: those may pass. */
    if (jwt_check(keys, in, &rules, 1000, &claims, &reason) == 0)
        ASSERT(claims.subject != NULL && claims.subject[0] != '\0' && claims.expires_s > 1000);
    else
        ASSERT(reason != NULL && claims.subject == NULL);
    mem_free(claims.subject);
}

static void try_verifier(struct span in)
{
    struct tls_rule rule;
    struct writer w;
    struct secret s;

    if (secret_parse(in, &s) == 0 && s.verifier)
        ASSERT(s.iterations >= SECRET_ITERATIONS && s.salt_n >= 8 && s.salt_n <= SECRET_SALT_MAX);
    char *text = mem_strndup((const char *)in.p, in.n);
    if (text == NULL)
        return;
    wr_init(&w, 4096);
    if (tls_rule_parse(text, &rule) == 0)
        (void)!tls_rule_apply(&rule, in, &w);
    wr_fini(&w);
    mem_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(struct span) = {try_messages, try_scram, try_token,
                                                   try_verifier};

    if (size == 0)
        return 0;
    /* A copy of its own size, so that a read beyond it is seen. */
    uint8_t *copy = mem_alloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    targets[data[0] % (sizeof targets / sizeof targets[0])](span_of(copy + 1, size - 1));
    mem_free(copy);
    return 0;
}
