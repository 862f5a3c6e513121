/*
 * A login between its message and its outcome: it may have to wait for its address, is checked on
 * the pool, comes back by the worker's mailbox, and when it failed waits until its answer is due.
 * The request is parked all the time; when its connection closes, the pool's part runs out and is
 * dropped. Worker thread, but for check() and what follows the keys.
 */
#include <event2/event.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/auth_int.h"
#include "gateway/jwt_files.h"
#include "gateway/metrics.h"
#include "gateway/request.h"

/* Timers count by the coarse clock, a tick of the kernel (10 ms at most) behind, and times are cut
 * to whole milliseconds: without it a refusal would be answered before its delay. */
#define LATE_MS 11

struct login *login_new(struct request *rq, struct gw_auth *a)
{
    struct login *l = mem_zalloc(sizeof *l);

    if (l == NULL)
        return NULL;
    l->auth = a;
    l->w = rq->w;
    l->rq = rq;
    l->frame = blob_ref(rq->frame);
    wr_init(&l->answer, SCRAM_MESSAGE_MAX);
    return l;
}

static void end_waiting(struct login *l)
{
    if (l->waited)
        peer_login_waited(l->auth->peers, &l->rq->conn->auth.peer);
    l->waited = false;
}

void login_free(struct login *l)
{
    if (l == NULL)
        return;
    if (l->timer != NULL)
        event_free(l->timer);
    creds_wipe(&l->creds);
    exchange_free(l->exchange);
    if (l->message.n > 0) {
        /* The frame is ours alone by now, and what is borrowed from it may be wiped. */
        union {
            const uint8_t *in;
            uint8_t *out;
        } bytes = {.in = l->message.p};
        mem_wipe(bytes.out, l->message.n);
    }
    blob_unref(l->frame);
    mem_free(l->principal);
    wr_fini(&l->answer);
    mem_free(l);
}

/* --- checking, on the pool --- */

static int check_plain(struct login *l)
{
    int err = E_DENIED;

    for (size_t i = 0; i < l->creds.n; i++) {
        int one = secret_check(&l->creds.secrets[i], l->password);
        if (one != E_DENIED)
            err = one;
    }
    return err;
}

/* Each candidate is derived, right or wrong: the time says nothing. */
static int check_scram(struct login *l)
{
    struct exchange *x = l->exchange;
    struct span salt = span_of(x->salt, x->salt_n);
    int err = scram_final(&x->scram, l->message);
    int result = E_DENIED;

    for (size_t i = 0; i < l->creds.n; i++) {
        const struct secret *s = &l->creds.secrets[i];
        struct secret_keys keys = s->keys;
        int one = 0;
        if (!s->verifier)
            one = secret_derive(x->scram.hash, s->plain, salt, x->iterations, &keys);
        if (err == 0 && one == 0 && result != 0)
            one = scram_proof(&x->scram, &keys, &l->answer);
        mem_wipe(&keys, sizeof keys);
        if (err == 0 && one != E_DENIED && result != 0)
            result = one;
    }
    return err < 0 ? err : result;
}

static int check_bearer(struct login *l)
{
    const struct gw_auth_opts *o = l->auth->opts;
    const struct jwt_rules rules = {
        .audience = o->audience, .issuer = o->issuer, .leeway_s = o->leeway_ms / 1000};
    int64_t now_s = clock_wall_ns(l->auth->clock) / 1000000000;
    struct jwt_claims claims;

    if (l->malformed)
        return E_SYNTAX;
    int err = jwt_check(jwt_files_keys(o->keys), l->password, &rules, now_s, &claims, &l->reason);
    if (err < 0)
        return err;
    l->principal = claims.subject;
    l->expires_s = claims.expires_s;
    /* Whom the client says it acts for must be whom the token is of. */
    if (l->user.p != NULL && !span_eq_str(l->user, claims.subject)) {
        l->reason = "acts for another";
        return E_DENIED;
    }
    return 0;
}

static void on_checked(struct task *t);

static void check(struct task *t)
{
    struct login *l = (struct login *)t;

    switch (l->mechanism) {
    case SASL_PLAIN:
        l->err = check_plain(l);
        break;
    case SASL_SCRAM_SHA_256:
    case SASL_SCRAM_SHA_512:
        l->err = check_scram(l);
        break;
    case SASL_OAUTHBEARER:
        l->err = check_bearer(l);
        break;
    case SASL_MECHANISMS:
        l->err = E_UNSUPPORTED;
        break;
    }
    if (l->err == 0 && (l->malformed || !l->creds.known))
        l->err = E_DENIED;
    l->task.run = on_checked;
    mailbox_post(&l->w->mb, &l->task);
}

/* Keys belong to the pool's one thread: no login is checked meanwhile. */
void login_follow_keys(struct task *t)
{
    struct gw_auth *a = (struct gw_auth *)((char *)t - offsetof(struct gw_auth, follow));
    bool now = atomic_exchange(&a->reread, false);
    char why[400] = "out of memory";
    int err = jwt_files_follow(a->opts->keys, now, why, sizeof why);

    if (err < 0) {
        metric_add(M_KEYS_RELOADS_FAILED, 1);
        log_event(LOG_ERROR, "login.keys_not_reloaded", LF_STR("reason", why),
                  LF_STR("effect", "the keys in force stay"));
    } else if (err > 0) {
        metric_add(M_KEYS_RELOADS, 1);
        log_event(LOG_INFO, "login.keys_reloaded",
                  LF_UINT("keys", jwt_keys_n(jwt_files_keys(a->opts->keys))));
    }
    atomic_store(&a->following, false); /* from here on it may be posted again */
}

/* --- on the worker --- */

static void on_checked(struct task *t)
{
    struct login *l = (struct login *)t;

    if (l->rq == NULL) {
        login_free(l);
        return;
    }
    auth_login_over(l);
}

static void post(struct login *l)
{
    l->where = LOGIN_CHECKING;
    l->task.run = check;
    executor_post(jobpool_executor(l->auth->pool), &l->task);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct login *l = arg;

    (void)fd;
    (void)what;
    event_free(l->timer);
    l->timer = NULL;
    if (l->where == LOGIN_WAITING) {
        end_waiting(l);
        post(l);
    } else {
        auth_login_over(l);
    }
}

/* The connection closes. */
static void cancel(struct request *rq)
{
    struct login *l = rq->park;

    end_waiting(l);
    l->rq = NULL;
    if (l->where != LOGIN_CHECKING)
        login_free(l);
}

static int set_timer(struct login *l, int64_t ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    /* The loop's time is that of its last wait: a timer by it would fire early. */
    (void)event_base_update_cache_time(l->w->base);
    l->timer = evtimer_new(l->w->base, on_timer, l);
    return l->timer == NULL || event_add(l->timer, &tv) < 0 ? E_NOMEM : 0;
}

static void park(struct login *l)
{
    l->rq->park = l;
    l->rq->cancel = cancel;
    l->rq->conn->auth.state = AUTH_CHECKING;
}

int login_start(struct login *l)
{
    struct conn *c = l->rq->conn;
    int wait = peer_login_wait(l->auth->peers, &c->auth.peer, clock_mono_ms(l->auth->clock));
    int err;

    if (wait < 0) {
        metric_add(M_LOGINS_THROTTLED, 1);
        log_peer(LOG_WARN, "login.refused", LF_STR("peer", c->peer),
                 LF_STR("reason", "too many failures from this address"));
        login_free(l);
        return E_DENIED;
    }
    park(l);
    if (wait == 0) {
        post(l);
        return 0;
    }
    metric_add(M_LOGINS_THROTTLED, 1);
    l->where = LOGIN_WAITING;
    l->waited = true;
    if ((err = set_timer(l, wait)) < 0) {
        end_waiting(l);
        l->rq->cancel = NULL;
        login_free(l);
    }
    return err;
}

void login_fail(struct login *l)
{
    int64_t passed = clock_mono_ms(l->auth->clock) - l->rq->received_ms;
    int64_t due = l->auth->opts->failure_ms > 0 ? l->auth->opts->failure_ms - passed + LATE_MS : 0;

    park(l);
    l->where = LOGIN_DELAYED;
    if (due <= 0 || set_timer(l, due) < 0)
        auth_login_over(l);
}

/* --- on the control thread --- */

void gw_auth_follow(struct gw_auth *a, bool now)
{
    if (a->opts->keys == NULL || a->pool == NULL)
        return;
    if (now)
        atomic_store(&a->reread, true); /* where it runs already: with the next tick */
    if (!atomic_exchange(&a->following, true))
        executor_post(jobpool_executor(a->pool), &a->follow);
}
