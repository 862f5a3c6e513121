/*
 * The admin listener: accepts, routes, answers, drains and ends. Handlers are in admin_*.c. Control
 * thread only. Refuses what could be understood in two ways (several Content-Length headers, a
 * Content-Length beside Transfer-Encoding) and closes such connections; refuses posts from other
 * web sites (Origin), because a browser would send them to a loopback address too.
 */
#include "gateway/admin_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
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

#define HEADER_BYTES 32768
#define IDLE_S       60
#define LAST_WAITS   100

/* --- answers
 * ----------------------------------------------------------------------------------------- */

const char *admin_header(struct evhttp_request *req, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

void admin_add_header(struct evhttp_request *req, const char *name, const char *value)
{
    /* fails only without memory: the answer then goes without this header */
    (void)evhttp_add_header(evhttp_request_get_output_headers(req), name, value);
}

static void on_sent(struct evhttp_request *req, void *arg)
{
    struct admin_http *a = arg;

    a->unsent--;
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
}

static void on_lost(struct evhttp_connection *evcon, void *arg)
{
    struct admin_http *a = arg;

    (void)evcon;
    a->unsent--;
}

void admin_sending(struct admin_http *a, struct evhttp_request *req)
{
    struct evhttp_connection *evcon = evhttp_request_get_connection(req);

    if (evcon == NULL) /* the client left: evhttp only frees the request */
        return;
    a->unsent++;
    evhttp_request_set_on_complete_cb(req, on_sent, a);
    evhttp_connection_set_closecb(evcon, on_lost, a);
}

void admin_reply(struct admin_http *a, struct evhttp_request *req, int status, const char *type,
                 struct span body)
{
    struct evbuffer *out = evhttp_request_get_output_buffer(req);
    char length[32];

    admin_add_header(req, "Content-Type", type);
    admin_add_header(req, "Cache-Control", "no-store");
    admin_add_header(req, "X-Content-Type-Options", "nosniff");
    if (a->draining)
        admin_add_header(req, "Connection", "close");
    (void)snprintf(length, sizeof length, "%zu", body.n);
    admin_add_header(req, "Content-Length", length);
    if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD &&
        evbuffer_add(out, body.p, body.n) < 0) {
        (void)evhttp_remove_header(evhttp_request_get_output_headers(req), "Content-Length");
        admin_add_header(req, "Content-Length", "0");
        status = 503;
    }
    admin_sending(a, req);
    evhttp_send_reply(req, status, NULL, NULL);
}

void admin_reply_json(struct admin_http *a, struct evhttp_request *req, int status,
                      struct writer *w)
{
    if (wr_err(w) < 0)
        admin_reply_error(a, req, 503, "%s", err_text(wr_err(w)));
    else
        admin_reply(a, req, status, ADMIN_JSON, w->b == NULL ? span_of("", 0) : blob_span(w->b));
    wr_fini(w);
}

void admin_reply_error(struct admin_http *a, struct evhttp_request *req, int status,
                       const char *fmt, ...)
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

void admin_call_add(struct admin_http *a, struct admin_call *call, struct evhttp_request *req)
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
    if (call->req != NULL && evhttp_request_get_connection(call->req) == NULL)
        evhttp_request_free(call->req);
    call->req = NULL;
}

struct blob *admin_take_body(struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t n = evbuffer_get_length(in);
    struct blob *b = blob_new(n);

    if (b != NULL && n > 0 && evbuffer_remove(in, b->data, n) != (int)n) {
        blob_unref(b);
        return NULL;
    }
    if (b != NULL)
        b->len = n;
    return b;
}

/* --- requests
 * ---------------------------------------------------------------------------------------- */

/* NULL: the framing is plain. Else what is wrong with it. */
static const char *framing_fault(struct evhttp_request *req)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    const struct evkeyval *h;
    unsigned lengths = 0, encodings = 0;

    TAILQ_FOREACH(h, headers, next)
    {
        if (strcasecmp(h->key, "Content-Length") == 0) {
            lengths++;
            if (h->value[0] == '\0' || h->value[strspn(h->value, "0123456789")] != '\0')
                return "malformed Content-Length";
        } else if (strcasecmp(h->key, "Transfer-Encoding") == 0) {
            encodings++;
            if (strcasecmp(h->value, "chunked") != 0)
                return "this Transfer-Encoding is not supported";
        }
    }
    if (lengths > 1 || encodings > 1 || (lengths > 0 && encodings > 0))
        return "ambiguous message length";
    return NULL;
}

/* A browser tells the site a request comes from; only our own pages may post. */
static bool foreign_origin(struct evhttp_request *req)
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
    enum evhttp_cmd_type method;
    bool raw; /* touches journals as they are: for operators who asked for it */
    admin_handler *handle;
} verbs[] = {
    {ADMIN_STATUS, EVHTTP_REQ_GET, false, admin_get_status},
    {ADMIN_HEALTHZ, EVHTTP_REQ_GET, false, admin_get_healthz},
    {ADMIN_READYZ, EVHTTP_REQ_GET, false, admin_get_readyz},
    {ADMIN_METRICS, EVHTTP_REQ_GET, false, admin_get_metrics},
    {ADMIN_COLLECTIONS, EVHTTP_REQ_GET, false, admin_get_collections},
    {ADMIN_COLLECTION, EVHTTP_REQ_GET, false, admin_get_collections},
    {ADMIN_DOCUMENTS, EVHTTP_REQ_POST, false, admin_post_documents},
    {ADMIN_BACKFILL, EVHTTP_REQ_GET, false, admin_get_backfill},
    {ADMIN_BACKFILL_BEGIN, EVHTTP_REQ_POST, false, admin_post_backfill},
    {ADMIN_BACKFILL_COMPLETE, EVHTTP_REQ_POST, false, admin_post_backfill},
    {ADMIN_JOURNALS, EVHTTP_REQ_GET, false, admin_get_journals},
    {ADMIN_JOURNAL, EVHTTP_REQ_GET, false, admin_get_journal},
    {ADMIN_JOURNAL, EVHTTP_REQ_PUT, true, admin_put_journal},
    {ADMIN_JOURNAL, EVHTTP_REQ_DELETE, true, admin_delete_journal},
    {ADMIN_CONTENT, EVHTTP_REQ_GET, false, admin_get_content},
    {ADMIN_CONTENT, EVHTTP_REQ_POST, true, admin_post_content},
    {ADMIN_CLOSE, EVHTTP_REQ_POST, true, admin_post_close},
    {ADMIN_FRAGMENTS, EVHTTP_REQ_DELETE, true, admin_delete_fragments},
    {ADMIN_TOPICS, EVHTTP_REQ_GET, false, admin_get_topics},
    {ADMIN_TOPIC, EVHTTP_REQ_GET, false, admin_get_topics},
    {ADMIN_CONNECTIONS, EVHTTP_REQ_GET, false, admin_get_connections},
    {ADMIN_GROUPS, EVHTTP_REQ_GET, false, admin_get_groups},
    {ADMIN_GROUP, EVHTTP_REQ_GET, false, admin_get_groups},
    {ADMIN_GROUP, EVHTTP_REQ_DELETE, false, admin_delete_group},
    {ADMIN_GROUP_RESET, EVHTTP_REQ_POST, false, admin_post_group_reset},
};

#define VERBS (sizeof verbs / sizeof verbs[0])

static const char *method_name(enum evhttp_cmd_type method)
{
    switch ((int)method) {
    case EVHTTP_REQ_GET:
        return "GET, HEAD";
    case EVHTTP_REQ_POST:
        return "POST";
    case EVHTTP_REQ_PUT:
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
    enum evhttp_cmd_type method = evhttp_request_get_command(rq->req);
    const struct verb *v = NULL;

    if (method == EVHTTP_REQ_HEAD)
        method = EVHTTP_REQ_GET;
    for (size_t i = 0; i < VERBS && v == NULL; i++)
        if (verbs[i].route == rq->target.route && verbs[i].method == method)
            v = &verbs[i];
    if (v == NULL)
        refuse_method(rq);
    else if (method != EVHTTP_REQ_GET && foreign_origin(rq->req))
        admin_reply_error(rq->a, rq->req, 403, "requests from other web sites are not accepted");
    else if (v->raw && !rq->a->host.config->journal_admin)
        admin_reply_error(rq->a, rq->req, 403,
                          "journals are changed only on a server started with --journal-admin");
    else if (method != EVHTTP_REQ_GET && rq->a->draining)
        admin_reply_error(rq->a, rq->req, 503, "the server is draining");
    else
        v->handle(rq);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct admin_rq rq = {.a = arg, .req = req};
    const char *fault = framing_fault(req);
    int err;

    if (fault != NULL) {
        admin_add_header(req, "Connection", "close");
        admin_reply_error(rq.a, req, 400, "%s", fault);
        return;
    }
    arena_init(&rq.arena, (size_t)1 << 20);
    err = admin_target_parse(evhttp_request_get_uri(req), &rq.arena, &rq.target);
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

/* --- life
 * -------------------------------------------------------------------------------------------- */

static int bind_socket(struct admin_http *a, char *why, size_t why_bytes)
{
    const struct gw_listen *l = &a->host.config->admin;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr;
    socklen_t n = sizeof addr;
    int fd;

    a->bound = evhttp_bind_socket_with_handle(a->http, l->host, l->port);
    if (a->bound == NULL) {
        int e = errno;
        char text[128];

        (void)snprintf(why, why_bytes, "cannot listen on %s:%u for admin: %s", l->host,
                       (unsigned)l->port, strerror_r(e, text, sizeof text));
        return e == EADDRINUSE ? E_BUSY : E_INVALID;
    }
    fd = evhttp_bound_socket_get_fd(a->bound);
    memset(&addr, 0, sizeof addr);
    if (getsockname(fd, &addr.any, &n) < 0)
        return E_IO;
    a->port = ntohs(addr.any.sa_family == AF_INET6 ? addr.v6.sin6_port : addr.v4.sin_port);
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
    if ((a->http = evhttp_new(base)) == NULL)
        goto out;
    evhttp_set_max_headers_size(a->http, HEADER_BYTES);
    /* Twice the limit, so that a slightly longer body gets our own answer with the limit in it. */
    evhttp_set_max_body_size(a->http, (ev_ssize_t)(2 * host->config->max_ingest_bytes + 4096));
    evhttp_set_timeout(a->http, IDLE_S);
    evhttp_set_default_content_type(a->http, NULL);
    evhttp_set_allowed_methods(a->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
                                            EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_PATCH |
                                            EVHTTP_REQ_OPTIONS);
    evhttp_set_gencb(a->http, on_request, a);
    if (host->config->admin.tls)
        evhttp_set_bevcb(a->http, tls_server_http, host->shared->tls);
    if ((err = bind_socket(a, why, why_bytes)) < 0)
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
    if (a->bound != NULL)
        evhttp_del_accept_socket(a->http, a->bound);
    a->bound = NULL;
    backfills_drain(a->backfills);
    end_calls(a, false);
}

size_t admin_http_busy(const struct admin_http *a)
{
    return a->busy + a->unsent;
}

void admin_http_free(struct admin_http *a)
{
    if (a == NULL)
        return;
    a->draining = true;
    end_calls(a, true);
    if (a->http != NULL)
        evhttp_free(a->http); /* closes the listener and all connections */
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
