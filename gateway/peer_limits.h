/*
 * What one address may do: how many connections it has, and how often its logins failed. An address
 * is an IPv4 address, or the first 64 bits of an IPv6 one (one network of one customer). Memory is
 * bounded: addresses without connections are forgotten, the longest quiet one first.
 *
 * Any thread; one lock, a leaf.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

#define PEER_QUIET_MAX   4096  /* addresses without connections that are remembered */
#define PEER_WAITING_MAX 16    /* logins of one address that wait for their turn */
#define PEER_WAIT_MS     100   /* the first wait of an address that failed too often; doubles */
#define PEER_WAIT_MAX_MS 10000 /* and ends here */

struct peer_key {
    uint8_t b[16];
};

/* All zero for what is neither IPv4 nor IPv6. */
void peer_key_of(const struct sockaddr *sa, struct peer_key *out);
#define PEER_TEXT_BYTES 64
/* For logs: an IPv4 address, or "2001:db8::/64". */
void peer_key_text(const struct peer_key *key, char out[PEER_TEXT_BYTES]);

struct peer_limits;

/* connections: of one address at once. failures: of logins that an address has free within a
 * minute. 0: no limit. */
MUST_USE int peer_limits_new(unsigned connections, unsigned failures, struct peer_limits **out);
void peer_limits_free(struct peer_limits *pl); /* NULL is allowed */
/* E_LIMIT: it has enough; E_NOMEM. After success peer_conn_drop is due, once. */
MUST_USE int peer_conn_add(struct peer_limits *pl, const struct peer_key *key);
void peer_conn_drop(struct peer_limits *pl, const struct peer_key *key);
/* How long a login of this address has to wait before it is looked at: 0 and more; when it is more,
 * peer_login_waited is due after it, once. E_LIMIT: too many wait already. */
MUST_USE int peer_login_wait(struct peer_limits *pl, const struct peer_key *key, int64_t now_ms);
void peer_login_waited(struct peer_limits *pl, const struct peer_key *key);
void peer_login_failed(struct peer_limits *pl, const struct peer_key *key, int64_t now_ms);
/* For tests and metrics: how many addresses are known. */
size_t peer_limits_known(struct peer_limits *pl);
