/*
 * SaslHandshake (17), SaslAuthenticate (36), and what a connection may do in which state. The
 * states are Kafka's: a login is a handshake and then tokens; a second one on the same connection
 * renews the session and must be of the same task by the same mechanism. What has no place in the
 * sequence is error 34. Every refusal ends the connection. Worker thread.
 */
#include "gateway/auth.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/auth_int.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

/* One text for every reason. */
#define REFUSED "Authentication failed: invalid user name or token"

int gw_auth_new(const struct gw_auth_opts *opts, const struct clock *clock, struct gw_auth **out)
{
    int err;

    *out = NULL;
    struct gw_auth *a = mem_zalloc(sizeof *a);
    if (a == NULL)
        return E_NOMEM;
    a->opts = opts;
    a->clock = clock;
    a->follow.run = login_follow_keys;
    if ((err = secret_random(a->key, sizeof a->key)) < 0 ||
        (err = peer_limits_new(opts->address_conns, opts->failures, &a->peers)) < 0 ||
        (err = jobpool_new(1, "login", &a->pool)) < 0)
        goto out;
    *out = a;
    a = NULL;
out:
    gw_auth_free(a);
    return err;
}

void gw_auth_stop(struct gw_auth *a)
{
    if (a == NULL)
        return;
    jobpool_free(a->pool);
    a->pool = NULL;
}

void gw_auth_free(struct gw_auth *a)
{
    if (a == NULL)
        return;
    gw_auth_stop(a);
    peer_limits_free(a->peers);
    mem_wipe(a->key, sizeof a->key);
    mem_free(a);
}

struct peer_limits *gw_auth_peers(struct gw_auth *a)
{
    return a->peers;
}

static struct gw_auth *shared_auth(const struct conn *c)
{
    return c->w->shared->auth;
}

static int64_t now_ms(const struct conn *c)
{
    return clock_mono_ms(c->w->shared->clock);
}

void auth_conn_init(struct conn *c, bool login)
{
    struct conn_auth *a = &c->auth;

    a->state = login ? AUTH_START : AUTH_OPEN;
    if (login && shared_auth(c)->opts->login_ms > 0)
        a->deadline_ms = now_ms(c) + shared_auth(c)->opts->login_ms;
}

void auth_conn_fini(struct conn *c)
{
    struct conn_auth *a = &c->auth;

    exchange_free(a->exchange);
    a->exchange = NULL;
    mem_free(a->principal);
    a->principal = NULL;
    if (a->counted)
        peer_conn_drop(shared_auth(c)->peers, &a->peer);
    a->counted = false;
}

int auth_conn_certificate(struct conn *c, struct span task, int64_t left_s)
{
    if (gw_view_task(c->w->view, task) == NULL) {
        metric_add(M_LOGINS_FAILED, 1);
        return E_DENIED;
    }
    if ((c->auth.principal = mem_strndup((const char *)task.p, task.n)) == NULL)
        return E_NOMEM;
    c->auth.expires_ms = now_ms(c) + left_s * 1000;
    metric_add(M_LOGINS, 1);
    log_peer(LOG_INFO, "login.done", LF_STR("peer", c->peer), LF_STR("task", c->auth.principal),
             LF_STR("mechanism", "certificate"));
    return 0;
}

size_t auth_frame_max(const struct conn *c)
{
    size_t max = c->w->shared->config->max_request_bytes;
    size_t login;

    if (c->auth.state == AUTH_OPEN || c->auth.state == AUTH_DONE)
        return max;
    login = shared_auth(c)->opts->login_bytes;
    login = login > 0 ? login : AUTH_LOGIN_BYTES;
    return login < max ? login : max;
}

const char *auth_how(const struct conn_auth *a)
{
    if (a->principal == NULL)
        return "";
    return a->state == AUTH_OPEN ? "certificate" : sasl_name(a->mechanism);
}

bool auth_overdue(const struct conn *c, int64_t now)
{
    /* While a login is with us (a throttled one waits), the client has done its part. */
    return c->auth.deadline_ms != 0 && c->auth.state != AUTH_CHECKING && now >= c->auth.deadline_ms;
}

/* --- who may do what --- */

static bool is_sasl(int16_t key)
{
    return key == KP_API_SASL_HANDSHAKE || key == KP_API_SASL_AUTHENTICATE;
}

static bool task_gone(const struct conn *c)
{
    return c->auth.principal != NULL &&
           gw_view_task(c->w->view, span_str(c->auth.principal)) == NULL;
}

int auth_admit(struct request *rq)
{
    struct conn *c = rq->conn;
    struct conn_auth *a = &c->auth;
    int16_t key = rq->header.api_key;

    if (a->state != AUTH_OPEN && a->state != AUTH_DONE)
        return key == KP_API_API_VERSIONS || is_sasl(key) ? 0 : E_DENIED;
    if (task_gone(c))
        return E_DENIED;
    if (a->expires_ms != 0 && !is_sasl(key) && now_ms(c) >= a->expires_ms) {
        metric_add(M_SESSIONS_EXPIRED, 1);
        return E_TIMEOUT;
    }
    return 0;
}

void auth_view_changed(struct worker *w)
{
    struct conn *c = LIST_FIRST(&w->conns);

    while (c != NULL) {
        struct conn *next = LIST_NEXT(c, link);
        if (task_gone(c)) /* closing takes c off the list, and no other */
            conn_close(c, E_DENIED, "its task is gone");
        c = next;
    }
}

/* --- answers --- */

static void reply_handshake(struct request *rq, int16_t error, unsigned mechanisms)
{
    struct kp_sasl_handshake_resp *resp = request_response(rq);
    struct span *names = arena_array(&rq->arena, SASL_MECHANISMS, sizeof *names);
    int32_t n = 0;

    if (resp == NULL || names == NULL) {
        request_abort(rq, E_NOMEM);
        return;
    }
    for (int m = 0; m < SASL_MECHANISMS; m++) {
        if ((mechanisms & 1U << m) != 0)
            names[n++] = span_str(sasl_name((enum sasl_mechanism)m));
    }
    resp->error_code = error;
    resp->mechanisms = names;
    resp->mechanisms_n = n;
    if (error != KE_NONE)
        metric_kafka_error(error);
    request_reply(rq, resp);
}

static void reply_token(struct request *rq, struct span token, int64_t lifetime_ms)
{
    struct kp_sasl_authenticate_resp *resp;

    if (rq->api == NULL) {
        request_reply_bytes(rq, token);
        return;
    }
    if ((resp = request_response(rq)) == NULL) {
        request_abort(rq, E_NOMEM);
        return;
    }
    resp->error_message = (struct span){NULL, 0};
    resp->auth_bytes = token.n > 0 ? token : span_of("", 0);
    resp->session_lifetime_ms = lifetime_ms;
    request_reply(rq, resp);
}

/* Says no. A bare token has no place for an error: then the connection just ends. */
static void reply_error(struct request *rq, int16_t error, const char *text, bool close)
{
    struct kp_sasl_authenticate_resp *resp;

    if (rq->api == NULL) {
        request_abort(rq, E_DENIED);
        return;
    }
    if ((resp = request_response(rq)) == NULL) {
        request_abort(rq, E_NOMEM);
        return;
    }
    resp->error_code = error;
    resp->error_message = span_str(text);
    resp->auth_bytes = span_of("", 0);
    metric_kafka_error(error);
    rq->close_after = close;
    request_reply(rq, resp);
}

/* --- handshake --- */

static unsigned offered(const struct conn *c)
{
    const struct gw_auth_opts *o = shared_auth(c)->opts;

    return o->keys != NULL ? o->mechanisms : o->mechanisms & ~(1U << SASL_OAUTHBEARER);
}

int handle_sasl_handshake(struct request *rq)
{
    const struct kp_sasl_handshake_req *body = rq->body;
    struct conn_auth *a = &rq->conn->auth;
    enum sasl_mechanism m;

    if (a->state == AUTH_OPEN) {
        reply_handshake(rq, KE_ILLEGAL_SASL_STATE, 0);
        return 0;
    }
    unsigned mechanisms = offered(rq->conn);
    if (a->state != AUTH_START && a->state != AUTH_DONE) {
        rq->close_after = true;
        reply_handshake(rq, KE_ILLEGAL_SASL_STATE, mechanisms);
        return 0;
    }
    bool again = a->state == AUTH_DONE;
    if (again) /* KIP-368: by the same means */
        mechanisms = 1U << a->mechanism;
    if (!sasl_find(body->mechanism, &m) || (mechanisms & 1U << m) == 0) {
        metric_add(M_LOGINS_FAILED, 1);
        log_peer(LOG_INFO, "login.failed", LF_STR("peer", rq->conn->peer),
                 LF_STR("reason", "unsupported mechanism"));
        rq->close_after = true;
        reply_handshake(rq, KE_UNSUPPORTED_SASL_MECHANISM, mechanisms);
        return 0;
    }
    a->state = AUTH_HANDSHAKEN;
    a->mechanism = m;
    a->again = again;
    a->raw = rq->header.api_version == 0;
    reply_handshake(rq, KE_NONE, mechanisms);
    return 0;
}

/* --- tokens --- */

static void succeed(struct login *l)
{
    struct request *rq = l->rq;
    struct conn *c = rq->conn;
    struct conn_auth *a = &c->auth;
    int64_t lifetime = l->auth->opts->session_ms;

    if (l->expires_s != 0) {
        /* As long as the token would be taken: its maker's clock may be behind ours. */
        int64_t end = l->expires_s * 1000 + l->auth->opts->leeway_ms;
        int64_t left = end - clock_wall_ns(l->auth->clock) / 1000000;
        left = left > 0 ? left : 1; /* it ended while it was checked */
        lifetime = lifetime == 0 || left < lifetime ? left : lifetime;
    }
    a->state = AUTH_DONE;
    a->raw = false;
    a->deadline_ms = 0;
    a->expires_ms = lifetime > 0 ? now_ms(c) + lifetime : 0;
    metric_add(a->again ? M_LOGINS_AGAIN : M_LOGINS, 1);
    log_peer(a->again ? LOG_DEBUG : LOG_INFO, "login.done", LF_STR("peer", c->peer),
             LF_STR("task", a->principal), LF_STR("mechanism", sasl_name(a->mechanism)));
    reply_token(rq, span_of(l->answer.b == NULL ? NULL : l->answer.b->data, wr_len(&l->answer)),
                lifetime);
}

static void refuse(struct login *l)
{
    struct request *rq = l->rq;
    struct conn *c = rq->conn;

    c->auth.state = AUTH_START; /* whatever it was: the connection ends */
    metric_add(M_LOGINS_FAILED, 1);
    peer_login_failed(l->auth->peers, &c->auth.peer, now_ms(c));
    /* The name only where it is one of ours: who mistypes may have typed a token. */
    log_peer(LOG_WARN, "login.failed", LF_STR("peer", c->peer),
             LF_STR("mechanism", sasl_name(l->mechanism)),
             LF_STR("reason", l->reason != NULL ? l->reason
                              : l->creds.known  ? "wrong token"
                                                : "no such task"));
    reply_error(rq, KE_SASL_AUTHENTICATION_FAILED, REFUSED, true);
}

/* The name that the login proved. E_DENIED: it is not the one of this session. */
static int take_principal(struct login *l)
{
    struct conn_auth *a = &l->rq->conn->auth;
    struct span name = l->principal != NULL ? span_str(l->principal) : l->user;

    if (l->mechanism == SASL_SCRAM_SHA_256 || l->mechanism == SASL_SCRAM_SHA_512)
        name = span_str(l->exchange->scram.user);
    if (gw_view_task(l->w->view, name) == NULL)
        return E_NOTFOUND; /* gone while the login was checked, or of a token of no task */
    if (a->principal != NULL)
        return span_eq_str(name, a->principal) ? 0 : E_CONFLICT;
    a->principal = mem_strndup((const char *)name.p, name.n);
    return a->principal != NULL ? 0 : E_NOMEM;
}

void auth_login_over(struct login *l)
{
    struct request *rq = l->rq;

    rq->cancel = NULL;
    if (l->where != LOGIN_DELAYED && l->err == 0) {
        l->err = take_principal(l);
        l->reason = l->err == E_CONFLICT   ? "another task than before"
                    : l->err == E_NOTFOUND ? "no such task"
                                           : "out of memory";
    }
    if (l->err != 0 && l->where != LOGIN_DELAYED) {
        if (l->mechanism == SASL_SCRAM_SHA_256 || l->mechanism == SASL_SCRAM_SHA_512)
            atomic_fetch_add_explicit(&l->auth->turn, 1, memory_order_relaxed);
        login_fail(l);
        return;
    }
    if (l->err == 0)
        succeed(l);
    else
        refuse(l);
    login_free(l);
}

static int fail_later(struct login *l, const char *reason)
{
    l->err = E_DENIED;
    l->reason = reason;
    login_fail(l);
    return 0;
}

static int begin_plain(struct login *l)
{
    int err = sasl_plain(l->message, &l->user, &l->password);

    if (err < 0) {
        l->malformed = true;
        l->reason = "malformed message";
    }
    if (creds_take(l->auth, l->w->view, l->user, &l->creds) < 0)
        return fail_later(l, "out of memory");
    return login_start(l);
}

static int begin_bearer(struct login *l)
{
    if (sasl_bearer(l->message, &l->user, &l->password) < 0) {
        l->malformed = true;
        l->reason = "malformed message";
    }
    l->creds.known = true; /* the token says who; whether there is such a task is seen later */
    return login_start(l);
}

static int random_text(char out[25])
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t bytes[24];

    if (secret_random(bytes, sizeof bytes) < 0)
        return E_IO;
    for (size_t i = 0; i < sizeof bytes; i++)
        out[i] = abc[bytes[i] & 63];
    out[sizeof bytes] = '\0';
    return 0;
}

static int begin_scram(struct login *l)
{
    struct conn_auth *a = &l->rq->conn->auth;
    struct exchange *x =
        exchange_new(a->mechanism == SASL_SCRAM_SHA_256 ? SECRET_SHA256 : SECRET_SHA512);
    struct span challenge;
    char random[25];

    if ((l->exchange = x) == NULL)
        return fail_later(l, "out of memory");
    if (scram_first(&x->scram, l->message) < 0)
        return fail_later(l, "malformed message");
    if (creds_take(l->auth, l->w->view, span_str(x->scram.user), &l->creds) < 0 ||
        creds_salt(l->auth, &l->creds, x) < 0 || random_text(random) < 0 ||
        scram_challenge(&x->scram, random, span_of(x->salt, x->salt_n), x->iterations, &challenge) <
            0)
        return fail_later(l, "out of memory");
    a->state = AUTH_EXCHANGE;
    a->exchange = x;
    l->exchange = NULL;
    reply_token(l->rq, challenge, 0);
    login_free(l);
    return 0;
}

static int end_scram(struct login *l)
{
    struct conn_auth *a = &l->rq->conn->auth;
    struct exchange *x = a->exchange;

    l->exchange = x;
    a->exchange = NULL;
    if (creds_take(l->auth, l->w->view, span_str(x->scram.user), &l->creds) < 0)
        return fail_later(l, "out of memory");
    creds_fit(&l->creds, x);
    return login_start(l);
}

static int take_token(struct request *rq, struct span message)
{
    struct conn_auth *a = &rq->conn->auth;

    if (a->state != AUTH_HANDSHAKEN && a->state != AUTH_EXCHANGE) {
        /* Behind a login it is an answer like any other; before one there is nothing to go on. */
        bool close = a->state == AUTH_START;
        reply_error(rq, KE_ILLEGAL_SASL_STATE, "SaslAuthenticate has no place here", close);
        return 0;
    }
    struct login *l = login_new(rq, shared_auth(rq->conn));
    if (l == NULL)
        return E_NOMEM;
    l->message = message;
    l->mechanism = a->mechanism;
    if (a->state == AUTH_EXCHANGE)
        return end_scram(l);
    switch (a->mechanism) {
    case SASL_PLAIN:
        return begin_plain(l);
    case SASL_SCRAM_SHA_256:
    case SASL_SCRAM_SHA_512:
        return begin_scram(l);
    case SASL_OAUTHBEARER:
        return begin_bearer(l);
    case SASL_MECHANISMS:
        break;
    }
    return fail_later(l, "unsupported mechanism");
}

int handle_sasl_authenticate(struct request *rq)
{
    const struct kp_sasl_authenticate_req *body = rq->body;

    return take_token(rq, body->auth_bytes);
}

int auth_raw(struct request *rq)
{
    rq->header.api_key = KP_API_SASL_AUTHENTICATE; /* for the log */
    return take_token(rq, blob_span(rq->frame));
}
