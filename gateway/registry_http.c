/*
 * The registry's HTTP: a request is refused by its head, or goes through its login
 * (registry_login.c), waits until what it would see is durable (registry_store.c), and is answered
 * (registry_answer.c), on the job pool where that takes long (registry_job.c).
 */
#include "gateway/registry_http.h"

#include <sys/queue.h>

#include "base/mem.h"
#include "gateway/http_server.h"
#include "gateway/registry_answer.h"
#include "gateway/registry_job.h"
#include "gateway/registry_login.h"
#include "gateway/registry_store.h"
#include "gateway/tls.h"

#define BODY_MAX   ((size_t)4 << 20)
#define BODIES_MAX ((size_t)64 << 20)
#define CONNS_MAX  256
#define ANSWER_MAX ((size_t)256 << 20)

/* A request that waits until the versions of its answer are durable. */
struct waiting {
    STAILQ_ENTRY(waiting) link;
    struct http_rq *rq;
    char *task; /* whose it is: the view may be another one by then */
};

struct registry_http {
    struct registry_host host;
    struct http_server *http;
    struct registry_store *versions;
    STAILQ_HEAD(, waiting) waits;
    size_t waits_n;
    struct registry_logins *logins;
    struct registry_jobs *jobs;
};

static void error_body(struct writer *w, int status, const char *text)
{
    registry_error(w, status, text);
}

static void reply(struct http_rq *rq, int status, struct writer *w)
{
    const char *type = registry_accepts(http_header(rq, "Accept"));

    http_add_header(rq, "Content-Type", type == NULL ? REGISTRY_JSON : type);
    http_add_header(rq, "Vary", "Accept");
    http_add_header(rq, "Cache-Control", "no-store");
    http_add_header(rq, "X-Content-Type-Options", "nosniff");
    if (wr_err(w) == 0 && w->b != NULL)
        http_reply(rq, status, blob_span(w->b));
    else
        http_reply(rq, 503, span_str("{\"error_code\":50301,\"message\":\"out of memory\"}"));
    wr_fini(w);
}

static void refuse(struct http_rq *rq, int status, int code, const char *text)
{
    struct writer w;

    wr_init(&w, 4096);
    registry_error(&w, code, text);
    reply(rq, status, &w);
}

static void refuse_user(struct http_rq *rq)
{
    http_add_header(rq, "WWW-Authenticate", "Basic realm=\"sluice\", charset=\"UTF-8\"");
    refuse(rq, 401, 40101, "Unauthorized");
}

static void on_answered(void *arg, struct http_rq *rq, int status, struct writer *w)
{
    (void)arg;
    if (status == 405)
        http_add_header(rq, "Allow", "GET, HEAD, POST");
    reply(rq, status, w);
}

static void answer_now(struct registry_http *r, struct http_rq *rq, const struct gw_task *task)
{
    const struct http_head *head = http_rq_head(rq);
    struct registry_ask ask = {.method = head->method,
                               .target = head->target,
                               .accept = http_header(rq, "Accept"),
                               .content_type = http_header(rq, "Content-Type"),
                               .task = task,
                               .history = registry_store_history(r->versions),
                               .level = r->host.config->registry_level,
                               .cluster_id = r->host.cluster_id};
    struct blob *body = NULL;
    struct writer w;

    if (registry_job_take(r->jobs, rq, &ask, r->host.view(r->host.arg)))
        return;
    wr_init(&w, ANSWER_MAX);
    if (http_body_bytes(rq) > 0 && (body = http_take_body(rq)) == NULL)
        w.err = E_NOMEM;
    ask.body = body == NULL ? span_str("") : blob_span(body);
    int status = w.err < 0 ? 503 : registry_answer(&ask, &w);
    blob_unref(body);
    on_answered(r, rq, status, &w);
}

static void wait_end(struct waiting *wait)
{
    mem_free(wait->task);
    mem_free(wait);
}

/* Answers, or lets it wait: see registry_store.h. Connections bound how many there are. */
static void answer(struct registry_http *r, struct http_rq *rq, const struct gw_task *task)
{
    if (registry_store_settled(r->versions, r->host.view(r->host.arg))) {
        answer_now(r, rq, task);
        return;
    }
    struct waiting *wait = mem_zalloc(sizeof *wait);
    if (wait == NULL || (wait->task = mem_strdup(task->name)) == NULL) {
        mem_free(wait);
        refuse(rq, 503, 50301, "out of memory");
        return;
    }
    wait->rq = rq;
    STAILQ_INSERT_TAIL(&r->waits, wait, link);
    r->waits_n++;
}

/* It waited for something, and its task may be gone meanwhile. */
static void answer_again(void *arg, struct http_rq *rq, struct span name)
{
    struct registry_http *r = arg;
    const struct gw_view *view = r->host.view(r->host.arg);
    const struct gw_task *task = view == NULL ? NULL : gw_view_task(view, name);

    if (task == NULL)
        refuse_user(rq);
    else
        answer(r, rq, task);
}

static void on_settled(void *arg)
{
    struct registry_http *r = arg;
    struct waiting *wait;
    const struct gw_view *view = r->host.view(r->host.arg);

    if (view != NULL)
        registry_store_view(r->versions, view);
    while (registry_store_settled(r->versions, view) && (wait = STAILQ_FIRST(&r->waits)) != NULL) {
        STAILQ_REMOVE_HEAD(&r->waits, link);
        r->waits_n--;
        answer_again(r, wait->rq, span_str(wait->task));
        wait_end(wait);
    }
}

void registry_http_view(struct registry_http *r, const struct gw_view *view)
{
    if (r == NULL)
        return;
    registry_store_view(r->versions, view);
    if (registry_store_settled(r->versions, view))
        on_settled(r);
}

void registry_http_tick(struct registry_http *r)
{
    if (r != NULL)
        registry_store_tick(r->versions, r->host.view(r->host.arg));
}

static const struct gw_view *view_of(void *arg)
{
    struct registry_http *r = arg;

    return r->host.view(r->host.arg);
}

/* A login is over. */
static void on_login(void *arg, struct http_rq *rq, int err, struct span user)
{
    struct registry_http *r = arg;
    const struct gw_view *view = r->host.view(r->host.arg);

    if (err == 0) {
        answer(r, rq, gw_view_task(view, user));
    } else if (err == E_NOMEM) {
        refuse(rq, 503, 50301, "out of memory");
    } else if (err == E_CLOSED) {
        refuse(rq, 503, 50301, "the server stops");
    } else if (err == E_LIMIT) {
        http_add_header(rq, "Retry-After", "10");
        refuse(rq, 429, 42901, "Too many failed logins from this address");
    } else {
        refuse_user(rq);
    }
}

/* --- requests --- */

/* The task of those who give no password; NULL: there is none for them. */
static const struct gw_task *anonymous(const struct registry_http *r, const struct gw_view *view)
{
    const struct gw_config *config = r->host.config;

    if (config->registry.sasl || (view->catalog != NULL && view->anonymous == &view->none))
        return NULL;
    return view->anonymous->tokens_n == 0 || config->allow_anonymous ? view->anonymous : NULL;
}

static void on_request(void *arg, struct http_rq *rq)
{
    struct registry_http *r = arg;
    const struct gw_view *view = r->host.view(r->host.arg);
    const char *header = http_header(rq, "Authorization");

    if (view == NULL) {
        http_add_header(rq, "Retry-After", "1");
        refuse(rq, 503, 50301, "the topics are not known yet");
        return;
    }
    /* without a catalog nobody has a password: whatever is given is nobody's */
    if (header != NULL && view->catalog != NULL) {
        registry_login(r->logins, rq, header);
        return;
    }
    const struct gw_task *task = anonymous(r, view);
    if (task == NULL)
        refuse_user(rq);
    else
        answer(r, rq, task);
}

/* --- life --- */

int registry_http_start(const struct registry_host *host, struct event_base *base,
                        struct registry_http **out, char *why, size_t why_bytes)
{
    struct registry_http *r = mem_zalloc(sizeof *r);

    *out = NULL;
    if (r == NULL)
        return E_NOMEM;
    r->host = *host;
    STAILQ_INIT(&r->waits);
    const struct registry_store_opts versions = {.store = host->store,
                                                 .control = host->control,
                                                 .clock = host->clock,
                                                 .level = host->config->registry_level,
                                                 .settled = on_settled,
                                                 .arg = r};
    const struct registry_login_opts logins = {.base = base,
                                               .clock = host->clock,
                                               .control = host->control,
                                               .jobs = host->jobs,
                                               .auth = host->auth,
                                               .failure_ms = host->config->auth.failure_ms,
                                               .view = view_of,
                                               .over = on_login,
                                               .arg = r};
    const struct registry_job_opts jobs = {.control = host->control,
                                           .jobs = host->jobs,
                                           .answered = on_answered,
                                           .again = answer_again,
                                           .arg = r};
    int err = registry_logins_new(&logins, &r->logins);
    if (err == 0)
        err = registry_jobs_new(&jobs, &r->jobs);
    if (err == 0)
        err = registry_store_start(&versions, &r->versions);
    if (err < 0) {
        registry_http_free(r);
        return err;
    }
    struct http_opts opts = {
        .base = base,
        .clock = host->clock,
        .where = &host->config->registry,
        .max_body_bytes = BODY_MAX,
        .body_budget_bytes = BODIES_MAX,
        .max_conns = CONNS_MAX,
        .handle = on_request,
        .error_body = error_body,
        .error_type = REGISTRY_JSON,
        .arg = r,
    };
    if (host->config->registry.tls) {
        opts.transport = tls_server_http;
        opts.transport_arg = host->tls;
        opts.handshake_ms = tls_server_opts(host->tls)->handshake_ms;
    }
    err = http_server_start(&opts, &r->http, why, why_bytes);
    if (err < 0) {
        registry_http_free(r);
        return err;
    }
    *out = r;
    return 0;
}

uint16_t registry_http_port(const struct registry_http *r)
{
    return r == NULL ? 0 : http_server_port(r->http);
}

void registry_http_drain(struct registry_http *r)
{
    if (r == NULL)
        return;
    http_server_drain(r->http);
    registry_logins_drain(r->logins);
}

size_t registry_http_busy(const struct registry_http *r)
{
    return r == NULL ? 0
                     : registry_logins_busy(r->logins) + registry_jobs_busy(r->jobs) + r->waits_n +
                           http_server_unsent(r->http);
}

void registry_http_free(struct registry_http *r)
{
    struct waiting *wait;

    if (r == NULL)
        return;
    registry_logins_free(r->logins);
    r->logins = NULL;
    while (registry_store_busy(r->versions) > 0) /* they always come back */
        (void)mailbox_wait(r->host.control, -1);
    while ((wait = STAILQ_FIRST(&r->waits)) != NULL) {
        STAILQ_REMOVE_HEAD(&r->waits, link);
        http_drop(wait->rq);
        wait_end(wait);
    }
    registry_jobs_free(r->jobs); /* after what may begin some */
    http_server_free(r->http);
    registry_store_free(r->versions);
    mem_free(r);
}
