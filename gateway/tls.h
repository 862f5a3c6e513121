/*
 * TLS for all listeners: one certificate and key, TLS 1.2 and 1.3 with forward secret AEAD ciphers,
 * no renegotiation, no compression, no session tickets (connections are long; a resumed session
 * would outlive what the client's certificate allows). Kafka listeners may ask for certificates of
 * clients; HTTP listeners do not.
 *
 * A server's certificate can be loaded anew while it runs: new connections take the new one. Any
 * thread may make connections; loading is the control thread's. One lock, a leaf.
 */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

struct bufferevent;
struct event_base;
struct tls_server;

enum tls_clients {
    TLS_CLIENTS_NONE,     /* no certificate is asked for */
    TLS_CLIENTS_OPTIONAL, /* one that is given must be good */
    TLS_CLIENTS_REQUIRED,
};

#define TLS_RULES_MAX 16

/* How a client's certificate names a task: the field, with the task in place of the pattern's '*'.
 */
struct tls_rule {
    enum tls_field { TLS_CN, TLS_DNS, TLS_URI, TLS_EMAIL } field;
    const char *pattern; /* with exactly one '*' */
};

/* Settings; immutable after start. */
struct gw_tls_opts {
    const char *cert;      /* PEM: certificate and chain; NULL: there is no TLS */
    const char *key;       /* PEM, without a passphrase */
    const char *client_ca; /* PEM: who may have signed certificates of clients; NULL: nobody */
    enum tls_clients clients;
    struct tls_rule rules[TLS_RULES_MAX]; /* the first that fits counts */
    size_t rules_n;
    int64_t handshake_ms; /* a handshake must be over by then */
};

/* "cn", "cn:PATTERN", "dns:PATTERN", "uri:PATTERN", "email:PATTERN"; without a pattern: "*". The
 * rule borrows text. E_SYNTAX. */
MUST_USE int tls_rule_parse(const char *text, struct tls_rule *out);
/* Appends the task to w. E_NOTFOUND: none fits. */
MUST_USE int tls_rule_apply(const struct tls_rule *rule, struct span value, struct writer *w);

/* opts is borrowed. why: one line. */
MUST_USE int tls_server_new(const struct gw_tls_opts *opts, struct tls_server **out, char *why,
                            size_t why_bytes);
void tls_server_free(struct tls_server *ts); /* NULL is allowed */
/* Control thread: loads the files again; what was loaded stays when that fails. */
MUST_USE int tls_server_reload(struct tls_server *ts, char *why, size_t why_bytes);
/* Control thread: whether a file is another one than when it was last looked at. */
bool tls_server_changed(struct tls_server *ts);
/* Seconds since 1970 at which the certificate ends. */
int64_t tls_server_expires_s(struct tls_server *ts);
const struct gw_tls_opts *tls_server_opts(const struct tls_server *ts);

/* The server's side of a new connection; the caller frees it. NULL: out of memory. */
SSL *tls_server_kafka(struct tls_server *ts);
/* A transport of gateway/http_server.h, with ts as its argument. */
struct bufferevent *tls_server_http(struct event_base *base, void *ts);
/* The same for a socket that was accepted, which it then owns; a transport of http_server.h. NULL:
 * out of memory, the socket is untouched. */
struct bufferevent *tls_server_accepted(void *ts, struct event_base *base, int fd);

/* The task that the client's certificate names, appended to w, and the seconds for which it is
 * still valid. E_NOTFOUND: no certificate. E_DENIED: no rule fits. */
MUST_USE int tls_principal(const SSL *ssl, const struct gw_tls_opts *opts, struct writer *w,
                           int64_t *left_s);
/* What went wrong last on this thread, in OpenSSL's words; clears its queue. Static text. */
const char *tls_fault(void);
