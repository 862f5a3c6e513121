/*
 * Tokens of OAUTHBEARER: JSON Web Tokens in the compact form of RFC 7515, signed by RS256, ES256 or
 * HS256, checked with keys of local files. Each key has one algorithm from its setting on and a
 * type that fits it; a token's "alg" only chooses among the keys of that algorithm, so a public key
 * can never be taken for a shared secret, and "none" finds no key.
 *
 * Immutable once built; jwt_check is pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define JWT_KEYS_MAX 16
#define JWT_MAX      16384 /* bytes of a token */

struct jwt_keys;

MUST_USE int jwt_keys_new(struct jwt_keys **out);
void jwt_keys_free(struct jwt_keys *k); /* NULL is allowed; wipes */
/* spec: "rs256:FILE" (PEM, RSA public key of 2048 bits or more), "es256:FILE" (PEM, P-256 public
 * key), "hs256:FILE" (the file's bytes, at least 32, a trailing newline aside). why: one line.
 * E_INVALID, E_LIMIT, E_NOMEM, or what reading the file gave. */
MUST_USE int jwt_keys_add(struct jwt_keys *k, const char *spec, char *why, size_t why_bytes);
/* The same from the file's content. */
MUST_USE int jwt_keys_add_bytes(struct jwt_keys *k, const char *algorithm, struct span bytes,
                                char *why, size_t why_bytes);
size_t jwt_keys_n(const struct jwt_keys *k);

struct jwt_rules {
    const char *audience; /* must be among "aud"; NULL: not asked */
    const char *issuer;   /* must be "iss"; NULL: not asked */
    int64_t leeway_s;     /* for exp, nbf and iat */
};

struct jwt_claims {
    char *subject; /* the caller frees it with mem_free */
    int64_t expires_s;
};

/* now_s: seconds since 1970. reason: static text for the log, set on failure. E_DENIED for anything
 * that is wrong with the token; E_NOMEM. */
MUST_USE int jwt_check(const struct jwt_keys *k, struct span token, const struct jwt_rules *rules,
                       int64_t now_s, struct jwt_claims *out, const char **reason);
