/*
 * Checking of JSON Web Tokens; see jwt.h. First the signature, then the claims: nothing of an
 * unsigned token is believed, not even that it is JSON, but for its header. Strict: unknown
 * critical headers, members that come twice, wrong types and times that are no numbers are refused.
 */
#include "gateway/jwt.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "gateway/secret.h"

#define FILE_MAX      65536
#define HS256_MIN     32
#define RSA_BITS_MIN  2048
#define ES256_SIG     64
#define SIGNATURE_MAX 2048

enum jwt_alg { JWT_RS256, JWT_ES256, JWT_HS256, JWT_ALGS };

static const char *const alg_names[JWT_ALGS] = {"RS256", "ES256", "HS256"};

struct jwt_key {
    enum jwt_alg alg;
    EVP_PKEY *pkey; /* RS256, ES256 */
    uint8_t *secret;
    size_t secret_n;
};

struct jwt_keys {
    size_t n;
    struct jwt_key key[JWT_KEYS_MAX];
};

/* --- keys --- */

int jwt_keys_new(struct jwt_keys **out)
{
    *out = mem_zalloc(sizeof **out);
    return *out == NULL ? E_NOMEM : 0;
}

void jwt_keys_free(struct jwt_keys *k)
{
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->n; i++) {
        EVP_PKEY_free(k->key[i].pkey);
        if (k->key[i].secret != NULL)
            mem_wipe(k->key[i].secret, k->key[i].secret_n);
        mem_free(k->key[i].secret);
    }
    mem_free(k);
}

size_t jwt_keys_n(const struct jwt_keys *k)
{
    return k->n;
}

static int read_public(struct span pem, enum jwt_alg alg, EVP_PKEY **out, char *why,
                       size_t why_bytes)
{
    char group[32] = "";
    size_t n = 0;

    *out = NULL;
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    if (bio == NULL)
        return E_NOMEM;
    EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    BIO_free(bio);
    ERR_clear_error();
    bool fits = false;
    if (key == NULL)
        snprintf(why, why_bytes, "no public key in PEM form");
    else if (alg == JWT_RS256 &&
             !(fits = EVP_PKEY_is_a(key, "RSA") == 1 && EVP_PKEY_get_bits(key) >= RSA_BITS_MIN))
        snprintf(why, why_bytes, "no RSA key of %d bits or more", RSA_BITS_MIN);
    else if (alg == JWT_ES256 &&
             !(fits = EVP_PKEY_is_a(key, "EC") == 1 &&
                      EVP_PKEY_get_group_name(key, group, sizeof group, &n) == 1 &&
                      (strcmp(group, "prime256v1") == 0 || strcmp(group, "P-256") == 0)))
        snprintf(why, why_bytes, "no key on the curve P-256");
    if (!fits) {
        EVP_PKEY_free(key);
        return E_INVALID;
    }
    *out = key;
    return 0;
}

int jwt_keys_add_bytes(struct jwt_keys *k, const char *algorithm, struct span bytes, char *why,
                       size_t why_bytes)
{
    struct jwt_key *key = &k->key[k->n];
    int alg = 0;
    int err;

    while (alg < JWT_ALGS && strcasecmp(algorithm, alg_names[alg]) != 0)
        alg++;
    if (alg == JWT_ALGS) {
        snprintf(why, why_bytes, "the algorithm is rs256, es256 or hs256");
        return E_INVALID;
    }
    if (k->n == JWT_KEYS_MAX) {
        snprintf(why, why_bytes, "more than %d keys", JWT_KEYS_MAX);
        return E_LIMIT;
    }
    *key = (struct jwt_key){.alg = (enum jwt_alg)alg};
    if (alg == JWT_HS256) {
        if (bytes.n > 0 && bytes.p[bytes.n - 1] == '\n')
            bytes.n--;
        if (bytes.n < HS256_MIN) {
            snprintf(why, why_bytes, "a shared secret needs %d bytes or more", HS256_MIN);
            return E_INVALID;
        }
        if ((key->secret = mem_alloc(bytes.n)) == NULL)
            return E_NOMEM;
        memcpy(key->secret, bytes.p, bytes.n);
        key->secret_n = bytes.n;
    } else if ((err = read_public(bytes, key->alg, &key->pkey, why, why_bytes)) < 0) {
        return err;
    }
    k->n++;
    return 0;
}

int jwt_keys_add(struct jwt_keys *k, const char *spec, char *why, size_t why_bytes)
{
    const char *colon = strchr(spec, ':');
    uint8_t bytes[FILE_MAX];
    char algorithm[8];
    size_t n = 0;
    ssize_t got;

    if (colon == NULL || (size_t)(colon - spec) >= sizeof algorithm) {
        snprintf(why, why_bytes, "not ALGORITHM:FILE, with rs256, es256 or hs256");
        return E_INVALID;
    }
    memcpy(algorithm, spec, (size_t)(colon - spec));
    algorithm[colon - spec] = '\0';
    int fd = open(colon + 1, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, why_bytes, "cannot be read");
        return E_NOTFOUND;
    }
    while (n < sizeof bytes && (got = read(fd, bytes + n, sizeof bytes - n)) > 0)
        n += (size_t)got;
    close(fd);
    int err = n == sizeof bytes
                  ? E_LIMIT
                  : jwt_keys_add_bytes(k, algorithm, span_of(bytes, n), why, why_bytes);
    if (n == sizeof bytes)
        snprintf(why, why_bytes, "too long for a key");
    mem_wipe(bytes, sizeof bytes);
    return err;
}

/* --- signatures --- */

static bool verify_hmac(const struct jwt_key *key, struct span text, struct span sig)
{
    uint8_t mac[SECRET_HASH_MAX];

    bool good = sig.n == secret_hash_bytes(SECRET_SHA256) &&
                secret_hmac(SECRET_SHA256, span_of(key->secret, key->secret_n), text, mac) == 0 &&
                secret_equal(mac, sig.p, sig.n);
    mem_wipe(mac, sizeof mac); /* the signature that would be right */
    return good;
}

/* JWS has r and s side by side, OpenSSL wants them in DER. */
static int ecdsa_der(struct span sig, unsigned char **der)
{
    BIGNUM *r = NULL;
    BIGNUM *s = NULL;
    int n = -1;

    *der = NULL;
    if (sig.n != ES256_SIG)
        return -1;
    ECDSA_SIG *es = ECDSA_SIG_new();
    if (es == NULL)
        return -1;
    r = BN_bin2bn(sig.p, ES256_SIG / 2, NULL);
    s = BN_bin2bn(sig.p + ES256_SIG / 2, ES256_SIG / 2, NULL);
    if (r != NULL && s != NULL && ECDSA_SIG_set0(es, r, s) == 1) {
        r = s = NULL; /* es has them now */
        n = i2d_ECDSA_SIG(es, der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(es);
    return n;
}

static bool verify_public(const struct jwt_key *key, struct span text, struct span sig)
{
    unsigned char *der = NULL;
    int n = 0;
    bool good = false;

    if (key->alg == JWT_ES256) {
        if ((n = ecdsa_der(sig, &der)) <= 0)
            return false;
        sig = span_of(der, (size_t)n);
    }
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (md != NULL)
        good = EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
               EVP_DigestVerify(md, sig.p, sig.n, text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    OPENSSL_free(der);
    ERR_clear_error();
    return good;
}

static bool verify(const struct jwt_keys *k, enum jwt_alg alg, struct span text, struct span sig)
{
    bool good = false;

    for (size_t i = 0; i < k->n && !good; i++) {
        if (k->key[i].alg == alg)
            good = alg == JWT_HS256 ? verify_hmac(&k->key[i], text, sig)
                                    : verify_public(&k->key[i], text, sig);
    }
    return good;
}

/* --- the token --- */

static int decode_json(struct span text, json_t **out)
{
    size_t n;
    int err = E_NOMEM;

    *out = NULL;
    uint8_t *bytes = mem_alloc(text.n + 1);
    if (bytes != NULL && (err = secret_base64url(text, bytes, text.n, &n)) == 0) {
        *out = json_loadb((const char *)bytes, n, JSON_REJECT_DUPLICATES, NULL);
        err = json_is_object(*out) ? 0 : E_SYNTAX;
    }
    mem_free(bytes);
    if (err < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return err;
}

/* The algorithm that the header names; E_DENIED: none of ours, or a header that must be understood.
 */
static int read_header(struct span text, enum jwt_alg *alg)
{
    json_t *head = NULL;
    int err = decode_json(text, &head);

    if (err == 0) {
        const char *name = json_string_value(json_object_get(head, "alg"));
        const json_t *type = json_object_get(head, "typ");
        const char *typ = json_string_value(type);
        int i = 0;
        while (i < JWT_ALGS && (name == NULL || strcmp(name, alg_names[i]) != 0))
            i++;
        *alg = (enum jwt_alg)i;
        if (i == JWT_ALGS || json_object_get(head, "crit") != NULL ||
            (type != NULL &&
             (typ == NULL || (strcasecmp(typ, "JWT") != 0 && strcasecmp(typ, "at+jwt") != 0))))
            err = E_DENIED;
    }
    json_decref(head);
    return err;
}

/* NumericDate. Absent: *out stays. E_SYNTAX: it is there and no sane number. */
static int read_time(const json_t *claims, const char *name, int64_t *out)
{
    const json_t *v = json_object_get(claims, name);

    if (v == NULL)
        return 0;
    if (!json_is_number(v))
        return E_SYNTAX;
    double t = json_number_value(v);
    if (!(t >= 0 && t < 1e12))
        return E_SYNTAX;
    *out = (int64_t)t;
    return 0;
}

static const char *judge_times(const json_t *claims, const struct jwt_rules *rules, int64_t now_s,
                               int64_t *expires_s)
{
    int64_t from = INT64_MIN;
    int64_t made = INT64_MIN;

    *expires_s = -1;
    if (read_time(claims, "exp", expires_s) < 0 || read_time(claims, "nbf", &from) < 0 ||
        read_time(claims, "iat", &made) < 0 || *expires_s < 0)
        return "token without a proper time";
    if (now_s >= *expires_s + rules->leeway_s)
        return "token has expired";
    if (from != INT64_MIN && now_s < from - rules->leeway_s)
        return "token is not valid yet";
    if (made != INT64_MIN && now_s < made - rules->leeway_s)
        return "token is of the future";
    return NULL;
}

static bool has_audience(const json_t *aud, const char *wanted)
{
    const json_t *one;
    size_t i;

    if (json_is_string(aud))
        return strcmp(json_string_value(aud), wanted) == 0;
    json_array_foreach(aud, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), wanted) == 0)
            return true;
    }
    return false;
}

static const char *judge(const json_t *claims, const struct jwt_rules *rules, int64_t now_s,
                         struct jwt_claims *out)
{
    const json_t *sub = json_object_get(claims, "sub");
    const char *iss = json_string_value(json_object_get(claims, "iss"));
    const char *fault = judge_times(claims, rules, now_s, &out->expires_s);

    if (fault != NULL)
        return fault;
    if (rules->issuer != NULL && (iss == NULL || strcmp(iss, rules->issuer) != 0))
        return "token of another issuer";
    if (rules->audience != NULL && !has_audience(json_object_get(claims, "aud"), rules->audience))
        return "token for another audience";
    /* jansson refuses NUL in texts, so the length needs no look. */
    if (!json_is_string(sub) || json_string_length(sub) == 0)
        return "token without a subject";
    if ((out->subject = mem_strdup(json_string_value(sub))) == NULL)
        return "out of memory";
    return NULL;
}

/* header.claims.signature */
static int split(struct span token, struct span part[3])
{
    const uint8_t *at = token.p;
    size_t left = token.n;

    for (int i = 0; i < 2; i++) {
        const uint8_t *dot = left == 0 ? NULL : memchr(at, '.', left);
        if (dot == NULL)
            return E_SYNTAX;
        part[i] = span_of(at, (size_t)(dot - at));
        left -= part[i].n + 1;
        at = dot + 1;
    }
    part[2] = span_of(at, left);
    return 0;
}

int jwt_check(const struct jwt_keys *k, struct span token, const struct jwt_rules *rules,
              int64_t now_s, struct jwt_claims *out, const char **reason)
{
    uint8_t sig[SIGNATURE_MAX];
    struct span part[3];
    json_t *claims = NULL;
    enum jwt_alg alg;
    size_t n;

    *out = (struct jwt_claims){.subject = NULL};
    *reason = "token longer than 16 KiB";
    if (token.n > JWT_MAX)
        return E_DENIED;
    *reason = "malformed token";
    if (split(token, part) < 0 || secret_base64url(part[2], sig, sizeof sig, &n) < 0)
        return E_DENIED;
    *reason = "token of an algorithm without a key";
    if (read_header(part[0], &alg) < 0)
        return E_DENIED;
    *reason = "token with a wrong signature";
    if (!verify(k, alg, span_of(token.p, part[0].n + 1 + part[1].n), span_of(sig, n)))
        return E_DENIED;
    *reason = "malformed token";
    if (decode_json(part[1], &claims) == 0)
        *reason = judge(claims, rules, now_s, out);
    json_decref(claims);
    return *reason == NULL ? 0 : E_DENIED;
}
