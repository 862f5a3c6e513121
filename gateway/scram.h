/*
 * The server's side of SCRAM (RFC 5802, RFC 7677) as messages in and out, without I/O, clock or
 * look-ups. Channel binding is not offered: "p=" is refused, "y" is taken as the client's honest
 * belief. Extensions that are not mandatory are ignored. A password is taken as the bytes that the
 * client hashed: no SASLprep, as Kafka's clients do none.
 *
 *   scram_first()      parses client-first, and says whose login it is
 *   scram_challenge()  makes server-first from the salt and iterations that belong to that user
 *   scram_final()      parses client-final and checks nonce and binding
 *   scram_proof()      checks the proof against one pair of keys, and makes server-final
 *
 * Owner: who holds struct scram; any one thread at a time.
 */
#pragma once

#include "gateway/secret.h"

#define SCRAM_USER_MAX    1024
#define SCRAM_MESSAGE_MAX 8192

struct scram {
    enum secret_hash hash;
    struct writer text; /* client-first-bare "," server-first "," client-final-without-proof */
    char *user;         /* unescaped; not empty */
    struct span gs2;    /* own copy, as the client sent it: part of what is bound */
    uint8_t *gs2_bytes;
    char *nonce; /* of the client, then of both */
    uint8_t proof[SECRET_HASH_MAX];
};

void scram_init(struct scram *s, enum secret_hash h);
/* Wipes and frees. Twice does no harm. */
void scram_fini(struct scram *s);
/* E_SYNTAX, E_LIMIT, E_UNSUPPORTED (channel binding, a mandatory extension), E_DENIED (acts for
 * somebody else), E_NOMEM. */
MUST_USE int scram_first(struct scram *s, struct span message);
/* random: printable, without commas. *out borrows from s, until the next call. */
MUST_USE int scram_challenge(struct scram *s, const char *random, struct span salt,
                             uint32_t iterations, struct span *out);
/* E_SYNTAX, E_DENIED (the nonce or the binding is not that of the first message), E_NOMEM. */
MUST_USE int scram_final(struct scram *s, struct span message);
/* May be tried with several keys. E_DENIED: not these. On success server-final is appended to w. */
MUST_USE int scram_proof(const struct scram *s, const struct secret_keys *keys, struct writer *w);
