/*
 * Listening sockets of the Kafka side: opened and accepted from on the control thread. Also decides
 * which listeners may not be opened at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "gateway/config.h"

struct event_base;
struct listener;

/* Refuses settings that cannot work or that nobody should want; why: one line for the operator.
 *  E_UNSUPPORTED  TLS without a certificate: never served as plain text instead
 *  E_INVALID      a listener that other machines reach, without an advertised address, with one
 *                 that names a wildcard or this machine only, or without authentication unless
 *                 allow_anonymous; a name that does not resolve
 * May block for name resolution. */
MUST_USE int listener_check(const struct gw_config *config, char *why, size_t why_bytes);

/* Takes the socket (non-blocking), which came in by that listener. */
typedef void listener_fn(void *arg, int fd, const struct gw_listen *where,
                         const struct sockaddr *peer, socklen_t peer_bytes);

/* Binds and listens, but does not accept yet. where is borrowed. E_BUSY: the address is in use. */
MUST_USE int listener_open(const struct gw_listen *where, struct event_base *base, listener_fn *fn,
                           void *arg, struct listener **out, char *why, size_t why_bytes);
uint16_t listener_port(const struct listener *l);
/* Starts to accept. Connections that came before wait in the kernel's queue. */
MUST_USE int listener_start(struct listener *l);
/* Stops accepting and closes the socket. NULL is allowed. */
void listener_free(struct listener *l);
