/*
 * Who a connection is. A user is a task: its name is the SASL user name, one of its tokens the
 * password. What a client may do before its login, the SASL requests, sessions that end, and
 * logging in again (KIP-368). docs/security.md is the contract.
 *
 * A login is parsed on its worker and checked on a thread of its own pool (deriving a key takes
 * milliseconds); meanwhile the connection reads no further request. An unknown task, a wrong token
 * and a malformed message do the same work, wait equally long and are answered alike.
 *
 * conn_auth is owned by its connection (worker thread); gw_auth is shared by all threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "gateway/peer_limits.h"
#include "gateway/sasl.h"

struct blob;
struct clock;
struct conn;
struct exchange;
struct gw_view;
struct jwt_files;
struct request;
struct worker;

/* Settings; immutable after start, but for the keys. */
struct gw_auth_opts {
    unsigned mechanisms;    /* bits 1 << sasl_mechanism; OAUTHBEARER also needs keys */
    int64_t session_ms;     /* a login lasts so long; 0: as long as the connection */
    int64_t failure_ms;     /* a refused login is answered so long after it came */
    unsigned failures;      /* an address's free failures a minute; 0: any number */
    unsigned address_conns; /* connections of one address; 0: any number */
    size_t login_bytes;     /* a longer frame before the login closes the connection; 0 = 512 KiB */
    int64_t login_ms;       /* a connection must have logged in by then; 0: no limit */
    struct jwt_files *keys; /* OAUTHBEARER; NULL: none. Lent to the thread that checks logins */
    const char *audience;   /* what tokens must be made for */
    const char *issuer;     /* NULL: any */
    int64_t leeway_ms;      /* by how much the clocks of others may differ */
};

#define AUTH_LOGIN_BYTES ((size_t)512 * 1024)

/* Owner: gateway; shared by all threads, outlives them. */
struct gw_auth;

/* opts is borrowed. */
MUST_USE int gw_auth_new(const struct gw_auth_opts *opts, const struct clock *clock,
                         struct gw_auth **out);
/* Waits for running logins; their results are posted to workers that must still have mailboxes.
 * Logins that come later are refused. NULL is allowed. */
void gw_auth_stop(struct gw_auth *a);
void gw_auth_free(struct gw_auth *a); /* NULL is allowed */
/* About once a second: the files of OAUTHBEARER's keys are looked at, and read when they changed.
 * now: read, whether they changed or not. Of one thread. */
void gw_auth_follow(struct gw_auth *a, bool now);
struct peer_limits *gw_auth_peers(struct gw_auth *a);

enum auth_state {
    AUTH_OPEN,       /* no login is asked for: anonymous, or known by its certificate */
    AUTH_START,      /* ApiVersions and the SASL requests only */
    AUTH_HANDSHAKEN, /* a mechanism is chosen */
    AUTH_EXCHANGE,   /* SCRAM's second message is due */
    AUTH_CHECKING,   /* a login is being checked: no frame is taken */
    AUTH_DONE,
};

struct conn_auth {
    enum auth_state state;
    bool raw;     /* SaslHandshake v0: frames are bare tokens until the login is over */
    bool again;   /* a login over a login */
    bool counted; /* in the limits of its address */
    struct peer_key peer;
    enum sasl_mechanism mechanism; /* chosen, or used */
    char *principal;               /* name of the task; NULL: nobody. Never changes once set */
    int64_t expires_ms;            /* monotonic; 0: never */
    int64_t deadline_ms;           /* of the first login, monotonic; 0: none */
    struct exchange *exchange;     /* AUTH_EXCHANGE */
};

/* By conn_init and conn_fini. login: the listener asks for one. */
void auth_conn_init(struct conn *c, bool login);
void auth_conn_fini(struct conn *c);
/* The certificate of the peer names this task, for so many seconds. E_DENIED: there is none of that
 * name; E_NOMEM. */
MUST_USE int auth_conn_certificate(struct conn *c, struct span task, int64_t left_s);
/* The largest frame that may come now. */
size_t auth_frame_max(const struct conn *c);
/* Whether no further frame may be taken for now. */
static inline bool auth_checking(const struct conn_auth *a)
{
    return a->state == AUTH_CHECKING;
}
/* By what it is known: a mechanism, "certificate", or "" for nobody. Static text. */
const char *auth_how(const struct conn_auth *a);
/* Whether the connection had its time to log in, and did not. */
bool auth_overdue(const struct conn *c, int64_t now_ms);
/* By dispatch: may this request be served now? E_DENIED: no, the connection closes. */
MUST_USE int auth_admit(struct request *rq);
/* A frame of raw mode. */
int auth_raw(struct request *rq);
/* The worker has a new view: connections of tasks that are gone close. */
void auth_view_changed(struct worker *w);
