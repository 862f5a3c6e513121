/*
 * The admin listener: accepts, routes, answers, drains and ends. Handlers are in admin_*.c. Control
 * thread only. HTTP itself is gateway/http_server.h's. Refuses what a browser would be made to send
 * by other web sites: a Host that is not this machine on a loopback address (DNS rebinding), a
 * foreign Origin with anything that changes something.
 */
#include "gateway/admin_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/admin_int.h"
#include "gateway/publish_int.h"
#include "gateway/tls.h"
#include "gateway/worker.h"

#define DEFAULT_BODIES ((size_t)256 << 20)
#define LAST_WAITS     100

/* --- answers --- */

const char *admin_header(struct http_rq *req, const char *name)
{
    return http_header(req, name);
}

void admin_add_header(struct http_rq *req, const char *name, const char *value)
{
    http_add_header(req, name, value);
}

void admin_reply(struct admin_http *a, struct http_rq *req, int status, const char *type,
                 struct span body)
{
    (void)a;
    http_add_header(req, "Content-Type", type);
    http_add_header(req, "Cache-Control", "no-store");
    http_add_header(req, "X-Content-Type-Options", "nosniff");
    http_reply(req, status, body);
}

void admin_reply_json(struct admin_http *a, struct http_rq *req, int status, struct writer *w)
{
    if (wr_err(w) < 0)
        admin_reply_error(a, req, 503, "%s", err_text(wr_err(w)));
    else
        admin_reply(a, req, status, ADMIN_JSON, w->b == NULL ? span_of("", 0) : blob_span(w->b));
    wr_fini(w);
}

void admin_reply_error(struct admin_http *a, struct http_rq *req, int status, const char *fmt, ...)
{
    char text[512];
    struct writer w;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (status == 503)
        admin_add_header(req, "Retry-After", "1");
    wr_init(&w, 8192);
    pub_answer_error(&w, "%s", text);
    if (wr_err(&w) < 0)
        admin_reply(a, req, 503, ADMIN_JSON, span_str("{\"error\":\"out of memory\"}\n"));
    else
        admin_reply(a, req, status, ADMIN_JSON, blob_span(w.b));
    wr_fini(&w);
}

void admin_call_add(struct admin_http *a, struct admin_call *call, struct http_rq *req)
{
    call->a = a;
    call->req = req;
    LIST_INSERT_HEAD(&a->calls, call, link);
    a->busy++;
}

void admin_call_remove(struct admin_call *call)
{
    LIST_REMOVE(call, link);
    call->a->busy--;
}

void admin_call_let_go(struct admin_call *call, bool closing)
{
    if (!closing)
        return; /* the store answers soon */
    if (call->req != NULL)
        http_drop(call->req);
    call->req = NULL;
}

/* --- requests --- */

/* Whoever can make a browser's name for this address point here (DNS rebinding) is same-origin with
 * itself: on loopback only names of this machine are answered. host: "name", "name:port",
 * "[address]:port". */
bool admin_host_is_local(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    const char *port = n <= strlen(host) ? host + n : "";
    struct in_addr v4;
    struct in6_addr v6;
    char name[64];

    if (port[0] != '\0' && (port[0] != ':' || port[1 + strspn(port + 1, "0123456789")] != '\0'))
        return false;
    if (n == 0 || n >= sizeof name)
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    if (name[0] == '[' && name[n - 1] == ']') {
        name[n - 1] = '\0';
        return inet_pton(AF_INET6, name + 1, &v6) == 1 &&
               (IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127));
    }
    if (inet_pton(AF_INET, name, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcasecmp(name, "localhost") == 0 || strcasecmp(name, "localhost.") == 0;
}

static bool host_allowed(const struct admin_http *a, const char *host)
{
    const char *names = a->host.config->admin_hosts;
    size_t n = strcspn(host, ":");

    if (!a->loopback || admin_host_is_local(host))
        return true;
    while (names != NULL && *names != '\0') {
        size_t k;

        names += strspn(names, ", ");
        k = strcspn(names, ", ");
        if (k > 0 && ((k == n && strncasecmp(names, host, n) == 0) ||
                      (k == strlen(host) && strncasecmp(names, host, k) == 0)))
            return true;
        names += k;
    }
    return false;
}

/* Before the body. */
static int on_head(void *arg, struct http_rq *req, const char **why)
{
    const char *host = http_header(req, "Host");

    if (host != NULL && !host_allowed(arg, host)) {
        *why = "this address is for this machine: the Host header names another one "
               "(--admin-hosts allows it)";
        return 421;
    }
    return 0;
}

/* A browser tells the site a request comes from; only our own pages may post. */
static bool foreign_origin(struct http_rq *req)
{
    const char *origin = admin_header(req, "Origin"), *host = admin_header(req, "Host"), *at;

    if (origin == NULL)
        return false;
    at = strstr(origin, "://");
    return at == NULL || host == NULL || strcasecmp(at + 3, host) != 0;
}

/* What may be asked of each route. HEAD is answered like GET. */
static const struct verb {
    enum admin_route route;
    enum http_method method;
    bool raw; /* touches journals as they are: for operators who asked for it */
    admin_handler *handle;
} verbs[] = {
    {ADMIN_STATUS, HTTP_GET, false, admin_get_status},
    {ADMIN_HEALTHZ, HTTP_GET, false, admin_get_healthz},
    {ADMIN_READYZ, HTTP_GET, false, admin_get_readyz},
    {ADMIN_METRICS, HTTP_GET, false, admin_get_metrics},
    {ADMIN_COLLECTIONS, HTTP_GET, false, admin_get_collections},
    {ADMIN_COLLECTION, HTTP_GET, false, admin_get_collections},
    {ADMIN_DOCUMENTS, HTTP_POST, false, admin_post_documents},
    {ADMIN_BACKFILL, HTTP_GET, false, admin_get_backfill},
    {ADMIN_BACKFILL_BEGIN, HTTP_POST, false, admin_post_backfill},
    {ADMIN_BACKFILL_COMPLETE, HTTP_POST, false, admin_post_backfill},
    {ADMIN_JOURNALS, HTTP_GET, false, admin_get_journals},
    {ADMIN_JOURNAL, HTTP_GET, false, admin_get_journal},
    {ADMIN_JOURNAL, HTTP_PUT, true, admin_put_journal},
    {ADMIN_JOURNAL, HTTP_DELETE, true, admin_delete_journal},
    {ADMIN_CONTENT, HTTP_GET, false, admin_get_content},
    {ADMIN_CONTENT, HTTP_POST, true, admin_post_content},
    {ADMIN_CLOSE, HTTP_POST, true, admin_post_close},
    {ADMIN_FRAGMENTS, HTTP_DELETE, true, admin_delete_fragments},
    {ADMIN_TOPICS, HTTP_GET, false, admin_get_topics},
    {ADMIN_TOPIC, HTTP_GET, false, admin_get_topics},
    {ADMIN_CONNECTIONS, HTTP_GET, false, admin_get_connections},
    {ADMIN_GROUPS, HTTP_GET, false, admin_get_groups},
    {ADMIN_GROUP, HTTP_GET, false, admin_get_groups},
    {ADMIN_GROUP, HTTP_DELETE, false, admin_delete_group},
    {ADMIN_GROUP_RESET, HTTP_POST, false, admin_post_group_reset},
};

#define VERBS (sizeof verbs / sizeof verbs[0])

static const char *method_name(enum http_method method)
{
    switch ((int)method) {
    case HTTP_GET:
        return "GET, HEAD";
    case HTTP_POST:
        return "POST";
    case HTTP_PUT:
        return "PUT";
    default:
        return "DELETE";
    }
}

static void refuse_method(struct admin_rq *rq)
{
    char allow[64] = "";
    size_t n = 0;

    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i].route == rq->target.route &&
            (!verbs[i].raw || rq->a->host.config->journal_admin) && n < sizeof allow)
            n += (size_t)snprintf(allow + n, sizeof allow - n, "%s%s", n > 0 ? ", " : "",
                                  method_name(verbs[i].method));
    admin_add_header(rq->req, "Allow", allow);
    admin_reply_error(rq->a, rq->req, 405, "method not allowed here");
}

static void route(struct admin_rq *rq)
{
    enum http_method method = http_rq_head(rq->req)->method;
    const struct verb *v = NULL;

    if (method == HTTP_HEAD)
        method = HTTP_GET;
    for (size_t i = 0; i < VERBS && v == NULL; i++)
        if (verbs[i].route == rq->target.route && verbs[i].method == method)
            v = &verbs[i];
    if (v == NULL)
        refuse_method(rq);
    else if (method != HTTP_GET && foreign_origin(rq->req))
        admin_reply_error(rq->a, rq->req, 403, "requests from other web sites are not accepted");
    else if (v->raw && !rq->a->host.config->journal_admin)
        admin_reply_error(rq->a, rq->req, 403,
                          "journals are changed only on a server started with --journal-admin");
    else if (method != HTTP_GET && rq->a->draining)
        admin_reply_error(rq->a, rq->req, 503, "the server is draining");
    else
        v->handle(rq);
}

static void on_request(void *arg, struct http_rq *req)
{
    struct admin_rq rq = {.a = arg, .req = req};
    int err;

    arena_init(&rq.arena, (size_t)1 << 20);
    err = admin_target_parse(http_rq_head(req)->target, &rq.arena, &rq.target);
    if (err == E_NOTFOUND)
        admin_reply_error(rq.a, req, 404, "no such page; see GET /");
    else if (err == E_NOMEM)
        admin_reply_error(rq.a, req, 503, "out of memory");
    else if (err < 0)
        admin_reply_error(rq.a, req, 400, "malformed target: %s", err_text(err));
    else
        route(&rq);
    arena_fini(&rq.arena);
}

/* --- life --- */

static int start_server(struct admin_http *a, char *why, size_t why_bytes)
{
    const struct gw_config *config = a->host.config;
    size_t budget = config->ingest_in_flight_bytes;
    struct http_opts opts = {
        .base = a->base,
        .clock = a->host.clock,
        .where = &config->admin,
        .max_body_bytes = config->max_ingest_bytes,
        .body_budget_bytes = budget == 0 ? DEFAULT_BODIES : budget,
        .max_conns = config->max_admin_connections == 0 ? 256 : config->max_admin_connections,
        .admit = on_head,
        .handle = on_request,
        .arg = a,
    };
    int err;

    if (opts.body_budget_bytes < opts.max_body_bytes)
        opts.body_budget_bytes = opts.max_body_bytes;
    if (config->admin.tls) {
        opts.transport = tls_server_http;
        opts.transport_arg = a->host.shared->tls;
        opts.handshake_ms = tls_server_opts(a->host.shared->tls)->handshake_ms;
    }
    if ((err = http_server_start(&opts, &a->http, why, why_bytes)) < 0)
        return err;
    a->port = http_server_port(a->http);
    a->loopback = admin_host_is_local(config->admin.host) || strcmp(config->admin.host, "::1") == 0;
    return 0;
}

static int start_publisher(struct admin_http *a)
{
    const struct gw_config *config = a->host.config;
    struct publisher_opts opts = {
        .store = a->host.store,
        .home = a->host.control,
        .jobs = jobpool_executor(a->host.jobs),
        .partitions = config->partitions,
        .read_only_catalog = config->read_only_catalog,
        .catalog = config->catalog,
        .max_body_bytes = config->max_ingest_bytes,
        .max_document_bytes = config->max_document_bytes,
        .max_in_flight_bytes = config->ingest_in_flight_bytes,
        .idempotency_ms = config->idempotency_ms,
    };

    return publisher_new(&opts, &a->publisher);
}

void admin_http_set_catalog(struct admin_http *a, const struct catalog *c)
{
    publisher_set_catalog(a->publisher, c);
}

int admin_http_start(const struct admin_host *host, struct event_base *base,
                     struct admin_http **out, char *why, size_t why_bytes)
{
    struct admin_http *a = mem_zalloc(sizeof *a);
    int err = E_NOMEM;

    *out = NULL;
    (void)snprintf(why, why_bytes, "the admin listener cannot start: out of memory");
    if (a == NULL)
        return E_NOMEM;
    a->host = *host;
    a->base = base;
    LIST_INIT(&a->calls);
    if ((err = start_server(a, why, why_bytes)) < 0)
        goto out;
    if ((err = start_publisher(a)) < 0 || (err = admin_backfill_start(a)) < 0) {
        (void)snprintf(why, why_bytes, "the publisher cannot start: %s", err_text(err));
        goto out;
    }
    *out = a;
    a = NULL;
out:
    admin_http_free(a);
    return err;
}

uint16_t admin_http_port(const struct admin_http *a)
{
    return a->port;
}

static void end_calls(struct admin_http *a, bool closing)
{
    struct admin_call *call, *next;

    for (call = LIST_FIRST(&a->calls); call != NULL; call = next) {
        next = LIST_NEXT(call, link);
        call->end(call, closing);
    }
}

void admin_http_drain(struct admin_http *a)
{
    if (a->draining)
        return;
    a->draining = true;
    http_server_drain(a->http);
    backfills_drain(a->backfills);
    end_calls(a, false);
}

size_t admin_http_busy(const struct admin_http *a)
{
    return a->busy + http_server_unsent(a->http);
}

void admin_http_hurry(struct admin_http *a)
{
    if (a->publisher != NULL)
        publisher_hurry(a->publisher);
}

void admin_http_free(struct admin_http *a)
{
    if (a == NULL)
        return;
    a->draining = true;
    end_calls(a, true);
    http_server_free(a->http); /* closes the listener and all connections */
    a->http = NULL;
    admin_http_hurry(a);
    while (a->publisher != NULL && publisher_busy(a->publisher) > 0)
        (void)mailbox_wait(a->host.control, 1000);
    admin_backfill_stop(a);
    for (int i = 0; a->busy > 0 && i < LAST_WAITS; i++) /* callbacks of the store and of the view */
        (void)mailbox_wait(a->host.control, 100);
    if (a->busy > 0) { /* somebody broke the promise to call back: rather a leak than a crash */
        log_event(LOG_ERROR, "admin.leak", LF_UINT("calls", a->busy));
        return;
    }
    publisher_free(a->publisher);
    mem_free(a);
}
