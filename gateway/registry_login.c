/* See registry_login.h. */
#include "gateway/registry_login.h"

#include <event2/event.h>
#include <openssl/evp.h>
#include <strings.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/auth_int.h"
#include "gateway/metrics.h"

/* Timers count by the coarse clock, a tick of the kernel (10 ms at most) behind, and times are cut
 * to whole milliseconds: without it a refusal would be answered before its delay. */
#define LATE_MS 11

#define BASIC_MAX 16384

struct registry_logins {
    struct registry_login_opts opts;
    TAILQ_HEAD(, attempt) list;
    size_t n;
    bool draining;
};

/* One request on its way. Owner: the control thread, while it is checked the pool. */
struct attempt {
    struct task task; /* first member */
    TAILQ_ENTRY(attempt) link;
    struct registry_logins *l;
    struct http_rq *rq;
    int64_t since_ms;
    enum { ATTEMPT_WAITING, ATTEMPT_CHECKING, ATTEMPT_DELAYED } where;
    struct event *timer;
    struct peer_key peer;
    struct writer basic; /* user and password borrow from it */
    struct span user, password;
    bool malformed;
    struct creds creds;
    int err;
};

int registry_basic(const char *header, struct writer *buf, struct span *user, struct span *password)
{
    size_t n;

    *user = *password = span_str("");
    if (strncasecmp(header, "Basic ", 6) != 0)
        return E_SYNTAX;
    header += 6 + strspn(header + 6, " ");
    n = strlen(header);
    if (n == 0 || n > BASIC_MAX || n % 4 != 0)
        return E_SYNTAX;
    size_t pad = header[n - 1] != '=' ? 0 : header[n - 2] != '=' ? 1 : 2;
    uint8_t *out = mem_alloc(n);
    if (out == NULL)
        return E_NOMEM;
    int got = EVP_DecodeBlock(out, (const unsigned char *)header, (int)n);
    if (got >= (int)pad)
        wr_bytes(buf, out, (size_t)got - pad);
    mem_wipe(out, n);
    mem_free(out);
    if (got < (int)pad || buf->b == NULL)
        return E_SYNTAX;
    if (wr_err(buf) < 0)
        return wr_err(buf);
    const struct span all = blob_span(buf->b);
    const uint8_t *colon = memchr(all.p, ':', all.n);
    if (colon == NULL)
        return E_SYNTAX;
    *user = span_of(all.p, (size_t)(colon - all.p));
    *password = span_of(colon + 1, all.n - user->n - 1);
    return 0;
}

static int64_t now_ms(const struct registry_logins *l)
{
    return clock_mono_ms(l->opts.clock);
}

static struct peer_limits *peers(const struct registry_logins *l)
{
    return gw_auth_peers(l->opts.auth);
}

static void attempt_free(struct attempt *a)
{
    TAILQ_REMOVE(&a->l->list, a, link);
    a->l->n--;
    if (a->timer != NULL)
        event_free(a->timer);
    if (a->basic.b != NULL)
        mem_wipe(a->basic.b->data, a->basic.b->len);
    wr_fini(&a->basic);
    creds_wipe(&a->creds);
    mem_free(a);
}

static void over(struct attempt *a, int err)
{
    struct registry_logins *l = a->l;
    struct http_rq *rq = a->rq;

    if (err == 0)
        l->opts.over(l->opts.arg, rq, 0, a->user);
    attempt_free(a);
    if (err < 0)
        l->opts.over(l->opts.arg, rq, err, span_of("", 0));
}

/* --- checking --- */

static void on_timer(evutil_socket_t fd, short what, void *arg);

static int set_timer(struct attempt *a, int64_t ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    /* The loop's time is that of its last wait: a timer by it would fire early. */
    (void)event_base_update_cache_time(a->l->opts.base);
    a->timer = evtimer_new(a->l->opts.base, on_timer, a);
    return a->timer == NULL || event_add(a->timer, &tv) < 0 ? E_NOMEM : 0;
}

/* Control thread. */
static void on_checked(struct task *t)
{
    struct attempt *a = (struct attempt *)t; /* first member */
    struct registry_logins *l = a->l;
    const struct gw_view *view = l->opts.view(l->opts.arg);

    if (a->err == 0 && (view == NULL || gw_view_task(view, a->user) == NULL))
        a->err = E_DENIED; /* it is gone meanwhile */
    if (a->err == 0) {
        over(a, 0);
        return;
    }
    peer_login_failed(peers(l), &a->peer, now_ms(l));
    metric_add(M_LOGINS_FAILED, 1);
    char peer[PEER_TEXT_BYTES];
    peer_key_text(&a->peer, peer);
    log_peer(LOG_WARN, "registry.login_failed", LF_STR("peer", peer),
             LF_STR("reason", a->malformed ? "malformed" : "unknown task or wrong token"));
    a->where = ATTEMPT_DELAYED;
    bool at_once = l->draining || l->opts.failure_ms <= 0;
    int64_t due = at_once ? 0 : l->opts.failure_ms - (now_ms(l) - a->since_ms) + LATE_MS;
    if (due <= 0 || set_timer(a, due) < 0)
        over(a, E_DENIED);
}

/* A thread of the pool. */
static void run_check(struct task *t)
{
    struct attempt *a = (struct attempt *)t; /* first member */

    a->err = E_DENIED;
    for (size_t i = 0; i < a->creds.n; i++) {
        if (secret_check(&a->creds.secrets[i], a->password) == 0 && a->creds.known && !a->malformed)
            a->err = 0;
    }
    a->task.run = on_checked;
    mailbox_post(a->l->opts.control, &a->task);
}

static void check(struct attempt *a)
{
    struct registry_logins *l = a->l;
    const struct gw_view *view = l->opts.view(l->opts.arg);
    int err = view == NULL ? E_DENIED : creds_take(l->opts.auth, view, a->user, &a->creds);

    if (err < 0) {
        over(a, err);
        return;
    }
    a->where = ATTEMPT_CHECKING;
    a->task.run = run_check;
    executor_post(jobpool_executor(l->opts.jobs), &a->task);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct attempt *a = arg;

    (void)fd;
    (void)what;
    event_free(a->timer);
    a->timer = NULL;
    if (a->where == ATTEMPT_WAITING) {
        peer_login_waited(peers(a->l), &a->peer);
        check(a);
    } else {
        over(a, E_DENIED);
    }
}

void registry_login(struct registry_logins *l, struct http_rq *rq, const char *header)
{
    struct attempt *a = mem_zalloc(sizeof *a);

    if (a == NULL) {
        l->opts.over(l->opts.arg, rq, E_NOMEM, span_of("", 0));
        return;
    }
    a->l = l;
    a->rq = rq;
    a->since_ms = now_ms(l);
    a->peer = *http_rq_peer(rq);
    wr_init(&a->basic, BASIC_MAX);
    TAILQ_INSERT_TAIL(&l->list, a, link);
    l->n++;
    int err = registry_basic(header, &a->basic, &a->user, &a->password);
    if (err == E_NOMEM) {
        over(a, err);
        return;
    }
    a->malformed = err < 0;
    int wait = peer_login_wait(peers(l), &a->peer, now_ms(l));
    if (wait != 0)
        metric_add(M_LOGINS_THROTTLED, 1);
    if (wait < 0) {
        char peer[PEER_TEXT_BYTES];
        peer_key_text(&a->peer, peer);
        log_peer(LOG_WARN, "registry.login_refused", LF_STR("peer", peer),
                 LF_STR("reason", "too many failures from this address"));
        over(a, wait);
    } else if (wait == 0) {
        check(a);
    } else if (l->draining) {
        peer_login_waited(peers(l), &a->peer);
        over(a, E_CLOSED);
    } else if (set_timer(a, wait) < 0) {
        peer_login_waited(peers(l), &a->peer);
        over(a, E_NOMEM);
    }
}

/* --- life --- */

int registry_logins_new(const struct registry_login_opts *opts, struct registry_logins **out)
{
    struct registry_logins *l = mem_zalloc(sizeof *l);

    *out = l;
    if (l == NULL)
        return E_NOMEM;
    l->opts = *opts;
    TAILQ_INIT(&l->list);
    return 0;
}

void registry_logins_drain(struct registry_logins *l)
{
    struct attempt *a, *next;

    if (l != NULL)
        l->draining = true;
    for (a = l == NULL ? NULL : TAILQ_FIRST(&l->list); a != NULL; a = next) {
        next = TAILQ_NEXT(a, link);
        if (a->where == ATTEMPT_CHECKING)
            continue;
        if (a->where == ATTEMPT_WAITING)
            peer_login_waited(peers(l), &a->peer);
        over(a, a->where == ATTEMPT_WAITING ? E_CLOSED : E_DENIED);
    }
}

size_t registry_logins_busy(const struct registry_logins *l)
{
    return l == NULL ? 0 : l->n;
}

static bool checking(const struct registry_logins *l)
{
    const struct attempt *a;

    TAILQ_FOREACH(a, &l->list, link)
    {
        if (a->where == ATTEMPT_CHECKING)
            return true;
    }
    return false;
}

void registry_logins_free(struct registry_logins *l)
{
    struct attempt *a;

    if (l == NULL)
        return;
    while (checking(l)) /* the pool always comes back */
        (void)mailbox_wait(l->opts.control, -1);
    while ((a = TAILQ_FIRST(&l->list)) != NULL) {
        if (a->where == ATTEMPT_WAITING)
            peer_login_waited(peers(l), &a->peer);
        http_drop(a->rq);
        attempt_free(a);
    }
    mem_free(l);
}
