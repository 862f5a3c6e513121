/*
 * Hashing, comparing and writing down of tokens; see secret.h. OpenSSL does the arithmetic. Buffers
 * that held a secret are wiped before they are left.
 */
#include "gateway/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/mem.h"
#include "base/num.h"

static const char *const prefixes[] = {
    [SECRET_SHA256] = "scram-sha-256$",
    [SECRET_SHA512] = "scram-sha-512$",
};

static const EVP_MD *md_of(enum secret_hash h)
{
    return h == SECRET_SHA256 ? EVP_sha256() : EVP_sha512();
}

size_t secret_hash_bytes(enum secret_hash h)
{
    return h == SECRET_SHA256 ? 32 : 64;
}

bool secret_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void secret_wipe(struct secret *s)
{
    mem_wipe(s, sizeof *s);
}

int secret_random(void *out, size_t n)
{
    return n <= INT32_MAX && RAND_bytes(out, (int)n) == 1 ? 0 : E_IO;
}

int secret_hmac(enum secret_hash h, struct span key, struct span data, uint8_t out[SECRET_HASH_MAX])
{
    unsigned n = 0;

    if (key.n > INT32_MAX)
        return E_LIMIT;
    return HMAC(md_of(h), key.p == NULL ? (const void *)"" : key.p, (int)key.n, data.p, data.n, out,
                &n) == NULL
               ? E_NOMEM
               : 0;
}

int secret_digest(enum secret_hash h, struct span data, uint8_t out[SECRET_HASH_MAX])
{
    return EVP_Digest(data.p, data.n, out, NULL, md_of(h), NULL) == 1 ? 0 : E_NOMEM;
}

/* --- base64 --- */

static int letter(uint8_t c, bool url)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == (url ? '-' : '+'))
        return 62;
    return c == (url ? '_' : '/') ? 63 : -1;
}

/* Letters alone; a rest of one letter, or bits that no byte takes, are refused. */
static int decode(struct span text, bool url, uint8_t *out, size_t max, size_t *n)
{
    uint32_t bits = 0;
    unsigned held = 0;

    *n = 0;
    if (text.n % 4 == 1)
        return E_SYNTAX;
    if (text.n / 4 * 3 + text.n % 4 * 3 / 4 > max)
        return E_LIMIT;
    for (size_t i = 0; i < text.n; i++) {
        int v = letter(text.p[i], url);
        if (v < 0)
            return E_SYNTAX;
        bits = bits << 6 | (uint32_t)v;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[(*n)++] = (uint8_t)(bits >> held);
            bits &= (1U << held) - 1;
        }
    }
    return bits == 0 ? 0 : E_SYNTAX;
}

int secret_base64(struct span text, uint8_t *out, size_t max, size_t *n)
{
    *n = 0;
    if (text.n % 4 != 0)
        return E_SYNTAX;
    for (int pads = 0; pads < 2 && text.n > 0 && text.p[text.n - 1] == '='; pads++)
        text.n--;
    return decode(text, false, out, max, n);
}

int secret_base64url(struct span text, uint8_t *out, size_t max, size_t *n)
{
    return decode(text, true, out, max, n);
}

void secret_write_base64(struct writer *w, struct span bytes)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t left = bytes.n - i;
        uint32_t v = (uint32_t)bytes.p[i] << 16;
        if (left > 1)
            v |= (uint32_t)bytes.p[i + 1] << 8;
        if (left > 2)
            v |= bytes.p[i + 2];
        const uint8_t four[4] = {
            (uint8_t)abc[v >> 18],
            (uint8_t)abc[v >> 12 & 63],
            (uint8_t)(left > 1 ? abc[v >> 6 & 63] : '='),
            (uint8_t)(left > 2 ? abc[v & 63] : '='),
        };
        wr_bytes(w, four, sizeof four);
    }
}

/* --- verifiers --- */

/* Cuts off what stands before the next '$', or all that is left. */
static struct span field(struct span *rest)
{
    const uint8_t *end = rest->n == 0 ? NULL : memchr(rest->p, '$', rest->n);
    struct span out = *rest;

    if (end != NULL) {
        out.n = (size_t)(end - rest->p);
        *rest = span_of(end + 1, rest->n - out.n - 1);
    } else {
        rest->p += rest->n;
        rest->n = 0;
    }
    return out;
}

static int parse_verifier(struct span rest, struct secret *s)
{
    size_t hash_n = secret_hash_bytes(s->hash);
    uint64_t iterations;
    size_t n;
    int err;

    s->verifier = true;
    if ((err = num_parse_u64(field(&rest), &iterations)) < 0)
        return err;
    if (iterations < SECRET_ITERATIONS || iterations > SECRET_ITERATIONS_MAX)
        return E_RANGE;
    s->iterations = (uint32_t)iterations;
    if ((err = secret_base64(field(&rest), s->salt, sizeof s->salt, &s->salt_n)) < 0)
        return err;
    if (s->salt_n < 8)
        return E_SYNTAX;
    if ((err = secret_base64(field(&rest), s->keys.stored, sizeof s->keys.stored, &n)) < 0)
        return err;
    if (n != hash_n)
        return E_SYNTAX;
    if ((err = secret_base64(rest, s->keys.server, sizeof s->keys.server, &n)) < 0)
        return err;
    return n == hash_n ? 0 : E_SYNTAX;
}

int secret_parse(struct span token, struct secret *out)
{
    *out = (struct secret){.plain = token};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct span prefix = span_str(prefixes[i]);
        if (!span_has_prefix(token, prefix))
            continue;
        out->hash = (enum secret_hash)i;
        out->plain = (struct span){NULL, 0};
        return parse_verifier(span_of(token.p + prefix.n, token.n - prefix.n), out) < 0 ? E_SYNTAX
                                                                                        : 0;
    }
    return 0;
}

int secret_derive(enum secret_hash h, struct span password, struct span salt, uint32_t iterations,
                  struct secret_keys *out)
{
    uint8_t salted[SECRET_HASH_MAX];
    uint8_t client[SECRET_HASH_MAX];
    size_t n = secret_hash_bytes(h);
    int err = E_NOMEM;

    *out = (struct secret_keys){{0}, {0}};
    if (password.n > INT32_MAX || salt.n > INT32_MAX)
        return E_LIMIT;
    if (PKCS5_PBKDF2_HMAC(password.p == NULL ? "" : (const char *)password.p, (int)password.n,
                          salt.p, (int)salt.n, (int)iterations, md_of(h), (int)n, salted) != 1)
        goto out;
    if ((err = secret_hmac(h, span_of(salted, n), span_str("Client Key"), client)) < 0 ||
        (err = secret_digest(h, span_of(client, n), out->stored)) < 0)
        goto out;
    err = secret_hmac(h, span_of(salted, n), span_str("Server Key"), out->server);
out:
    mem_wipe(salted, sizeof salted);
    mem_wipe(client, sizeof client);
    return err;
}

int secret_check(const struct secret *s, struct span password)
{
    uint8_t a[SECRET_HASH_MAX];
    uint8_t b[SECRET_HASH_MAX];
    struct secret_keys keys;
    bool same = false;
    int err;

    if (s->verifier) {
        err = secret_derive(s->hash, password, span_of(s->salt, s->salt_n), s->iterations, &keys);
        same = err == 0 && secret_equal(keys.stored, s->keys.stored, secret_hash_bytes(s->hash));
        mem_wipe(&keys, sizeof keys);
    } else {
        /* Digests have one length, so that the length of the token does not show. */
        if ((err = secret_digest(SECRET_SHA256, s->plain, a)) == 0 &&
            (err = secret_digest(SECRET_SHA256, password, b)) == 0)
            same = secret_equal(a, b, secret_hash_bytes(SECRET_SHA256));
        mem_wipe(a, sizeof a);
        mem_wipe(b, sizeof b);
    }
    return err < 0 ? err : same ? 0 : E_DENIED;
}

int secret_write(enum secret_hash h, struct span password, struct span salt, uint32_t iterations,
                 struct writer *w)
{
    size_t n = secret_hash_bytes(h);
    struct secret_keys keys;

    if (salt.n > SECRET_SALT_MAX)
        return E_LIMIT;
    int err = secret_derive(h, password, salt, iterations, &keys);
    if (err < 0)
        return err;
    wr_printf(w, "%s%u$", prefixes[h], iterations);
    secret_write_base64(w, salt);
    wr_u8(w, '$');
    secret_write_base64(w, span_of(keys.stored, n));
    wr_u8(w, '$');
    secret_write_base64(w, span_of(keys.server, n));
    mem_wipe(&keys, sizeof keys);
    return wr_err(w);
}
