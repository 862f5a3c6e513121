/*
 * Tokens of tasks: how the catalog may write them, and how they are compared. A token stands in the
 * catalog as it is, or as the verifier that `sluice token hash` prints:
 *
 *   scram-sha-256$ITERATIONS$SALT$STORED$SERVER      (sha-512 likewise; the last three in base64)
 *
 * with SALT, StoredKey and ServerKey of RFC 5802: from it a password can be checked (PLAIN, Basic)
 * and a SCRAM exchange served, but nobody can log in with the verifier itself. Pure; any thread.
 * Deriving costs milliseconds: never on a worker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

enum secret_hash { SECRET_SHA256, SECRET_SHA512 };

#define SECRET_HASH_MAX       64 /* bytes of the longest hash */
#define SECRET_SALT_MAX       64
#define SECRET_ITERATIONS     4096 /* RFC 7677's least; what clients of Kafka accept at least */
#define SECRET_ITERATIONS_MAX 1000000

/* RFC 5802: what a server keeps of a password. */
struct secret_keys {
    uint8_t stored[SECRET_HASH_MAX];
    uint8_t server[SECRET_HASH_MAX];
};

struct secret {
    bool verifier;     /* else the text itself */
    struct span plain; /* borrowed */
    enum secret_hash hash;
    uint32_t iterations;
    uint8_t salt[SECRET_SALT_MAX];
    size_t salt_n;
    struct secret_keys keys;
};

size_t secret_hash_bytes(enum secret_hash h);
/* Borrows token. E_SYNTAX: it begins as a verifier but is none. */
MUST_USE int secret_parse(struct span token, struct secret *out);
/* Wipes. */
void secret_wipe(struct secret *s);
/* The same bytes? Takes time by the length alone. */
bool secret_equal(const void *a, const void *b, size_t n);
/* PBKDF2 and the two keys. E_NOMEM when the library refuses. */
MUST_USE int secret_derive(enum secret_hash h, struct span password, struct span salt,
                           uint32_t iterations, struct secret_keys *out);
/* Does the password belong to it? Wrong ones take as long as right ones. E_DENIED: no. */
MUST_USE int secret_check(const struct secret *s, struct span password);
/* Appends the verifier of a password; a salt of at most SECRET_SALT_MAX bytes. */
MUST_USE int secret_write(enum secret_hash h, struct span password, struct span salt,
                          uint32_t iterations, struct writer *w);

/* Random bytes fit for keys. E_IO: there are none to be had. */
MUST_USE int secret_random(void *out, size_t n);
MUST_USE int secret_hmac(enum secret_hash h, struct span key, struct span data,
                         uint8_t out[SECRET_HASH_MAX]);
MUST_USE int secret_digest(enum secret_hash h, struct span data, uint8_t out[SECRET_HASH_MAX]);
/* Strict base64: padded, canonical, nothing else. Writes at most max bytes. E_SYNTAX, E_LIMIT. */
MUST_USE int secret_base64(struct span text, uint8_t *out, size_t max, size_t *n);
/* The URL alphabet without padding (RFC 7515). */
MUST_USE int secret_base64url(struct span text, uint8_t *out, size_t max, size_t *n);
void secret_write_base64(struct writer *w, struct span bytes);
