/* Shared by auth.c (requests and states) and auth_login.c (checking). */
#pragma once

#include "base/executor.h"
#include "base/jobpool.h"
#include "base/writer.h"
#include "gateway/auth.h"
#include "gateway/conn.h"
#include "gateway/scram.h"
#include "gateway/secret.h"

struct event;

#define CREDS_MAX 8 /* tokens of one task that are looked at */

/* The tokens of one task, copied out of a view: the task that was asked for, or, when there is no
 * such task, another one, so that the work is the same. Owner: the login; wiped at its end. */
struct creds {
    bool known;
    size_t n;
    struct secret secrets[CREDS_MAX];
    char *text; /* the tokens that secrets borrow from */
    size_t text_n;
};

/* E_NOMEM. name as the client gave it. */
MUST_USE int creds_take(const struct gw_auth *a, const struct gw_view *view, struct span name,
                        struct creds *out);
void creds_wipe(struct creds *c);

/* A SCRAM login between its two messages, and what the client was told in between. */
struct exchange {
    struct scram scram;
    uint8_t salt[SECRET_SALT_MAX];
    size_t salt_n;
    uint32_t iterations;
};

struct exchange *exchange_new(enum secret_hash h); /* NULL: out of memory */
void exchange_free(struct exchange *x);            /* NULL is allowed */

/* Salt and iterations that go with the tokens of that user. */
MUST_USE int creds_salt(struct gw_auth *a, const struct creds *c, struct exchange *x);
/* Drops what does not go with the salt that was told. */
void creds_fit(struct creds *c, const struct exchange *x);

struct gw_auth {
    const struct gw_auth_opts *opts;
    const struct clock *clock;
    struct peer_limits *peers;
    struct jobpool *pool;
    uint8_t key[32];       /* of salts that are made up; random per process */
    _Atomic unsigned turn; /* which of several verifiers the next SCRAM login is asked for */
    struct task follow;    /* of gw_auth_follow, on the pool while `following` */
    _Atomic bool following;
    _Atomic bool reread;
};

/* One SASL message on its way. Owner: the worker, and while it is checked the pool. */
struct login {
    struct task task;
    struct gw_auth *auth;
    struct worker *w;
    struct request *rq; /* NULL: cancelled, nobody waits for it */
    enum { LOGIN_WAITING, LOGIN_CHECKING, LOGIN_DELAYED } where;
    struct event *timer;
    bool waited; /* counts as waiting for its address */
    enum sasl_mechanism mechanism;
    struct blob *frame;  /* message and password borrow from it */
    struct span message; /* of the client */
    struct span user;
    struct span password;
    struct creds creds;
    struct exchange *exchange;
    bool malformed; /* the outcome is certain, the work is done nevertheless */
    /* outcome */
    int err;            /* 0: it is who it says */
    const char *reason; /* static text, for the log */
    char *principal;    /* OAUTHBEARER */
    int64_t expires_s;  /* OAUTHBEARER: wall clock, seconds; 0: never */
    struct writer answer;
};

/* By auth.c. A login that is over: answers, and frees it. Worker thread. */
void auth_login_over(struct login *l);

/* By auth_login.c. Takes l; the request parks. The outcome comes to auth_login_over. */
MUST_USE int login_start(struct login *l);
/* Answers as a failure when it is time. Takes l. */
void login_fail(struct login *l);
struct login *login_new(struct request *rq, struct gw_auth *a);
void login_free(struct login *l);       /* NULL is allowed */
void login_follow_keys(struct task *t); /* gw_auth.follow, on the pool */
