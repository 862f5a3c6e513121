/*
 * The pool: which connection a call goes to. Endpoints that brokers name in their routes come and
 * go as they are used; without such a hint, configured ones are tried in turn. One that could not
 * be reached is passed over for a while, longer each time.
 *
 * A broker that hangs keeps its connections: TCP is the kernel's. So a connection with calls that
 * says nothing for a while is asked something small; a deadline that passes in silence ends it
 * (h2.c). HTTP/2's own PING is no way: servers of gRPC close connections that ping often.
 */
#include <event2/dns.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/grpc.h"

#define CONNECT_MS   5000
#define PROBE_S      10   /* silence of a connection before it is asked */
#define PROBE_MS     5000 /* ... and before it is given up */
#define AVOID_MS     5000 /* after the first failure; doubled with each that follows */
#define AVOID_MAX_MS 300000
#define MARKS        32
#define CONNS_MAX    8 /* to one endpoint */

struct entry {
    TAILQ_ENTRY(entry) link;
    struct gz_pool *pool;
    struct gz_endpoint at;
    struct gz_conn *conn;
    bool configured;
};

/* An endpoint that could not be reached. */
struct mark {
    struct gz_endpoint at;
    unsigned failures; /* 0: the place is free */
    int64_t until_ms;
};

struct gz_pool {
    struct event_base *base;
    struct event *probe;
    struct mark marks[MARKS];
    unsigned mark_next;
    struct evdns_base *evdns; /* NULL until a name has to be looked up */
    SSL_CTX *tls;
    const char *(*token)(void *arg);
    void (*token_refused)(void *arg);
    void *token_arg;
    int64_t connect_ms;
    char *hosts_file;
    struct gz_endpoint endpoints[GZ_ENDPOINTS_MAX];
    size_t endpoints_n, next;
    TAILQ_HEAD(, entry) entries;
};

/* A broker's URL in a route. Its scheme must be that of the configured ones: the operator decided
 * about TLS, not a route. */
static int parse_url(const struct gz_pool *p, const char *url, struct gz_endpoint *out)
{
    const char *scheme = p->tls != NULL ? "https://" : "http://";
    struct span s = span_str(url);

    if (!span_has_prefix(s, span_str(scheme)))
        return E_SYNTAX;
    s = span_of(s.p + strlen(scheme), s.n - strlen(scheme));
    while (s.n > 0 && s.p[s.n - 1] == '/')
        s.n--;
    return gz_endpoint_parse(s, out);
}

static void say(char *why, size_t why_bytes, const char *what, const char *name)
{
    if (why != NULL && why_bytes > 0)
        (void)snprintf(why, why_bytes, "%s %.200s", what, name == NULL ? "" : name);
}

static int make_tls(struct gz_pool *p, const struct gz_pool_opts *o, char *why, size_t why_bytes)
{
    static const unsigned char alpn[] = {2, 'h', '2'};

    if ((p->tls = SSL_CTX_new(TLS_client_method())) == NULL)
        return E_NOMEM;
    SSL_CTX_set_verify(p->tls, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(p->tls, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(p->tls, alpn, sizeof alpn) != 0)
        return E_NOMEM;
    if (o->ca_file == NULL ? SSL_CTX_set_default_verify_paths(p->tls) != 1
                           : SSL_CTX_load_verify_locations(p->tls, o->ca_file, NULL) != 1) {
        say(why, why_bytes, "cannot read the certificates of the authorities in", o->ca_file);
        ERR_clear_error();
        return E_INVALID;
    }
    if (o->cert_file != NULL &&
        (o->key_file == NULL || SSL_CTX_use_certificate_chain_file(p->tls, o->cert_file) != 1 ||
         SSL_CTX_use_PrivateKey_file(p->tls, o->key_file, SSL_FILETYPE_PEM) != 1 ||
         SSL_CTX_check_private_key(p->tls) != 1)) {
        say(why, why_bytes, "cannot use the client certificate in", o->cert_file);
        ERR_clear_error();
        return E_INVALID;
    }
    return 0;
}

/* --- endpoints that are avoided --- */

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_system());
}

static bool same(const struct gz_endpoint *a, const struct gz_endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static struct mark *mark_find(struct gz_pool *p, const struct gz_endpoint *at)
{
    for (size_t i = 0; i < MARKS; i++) {
        if (p->marks[i].failures > 0 && same(&p->marks[i].at, at))
            return &p->marks[i];
    }
    return NULL;
}

static bool avoided(struct gz_pool *p, const struct gz_endpoint *at)
{
    const struct mark *m = mark_find(p, at);

    return m != NULL && now_ms() < m->until_ms;
}

static void avoid(struct gz_pool *p, const struct gz_endpoint *at)
{
    struct mark *m = mark_find(p, at);
    int64_t wait;

    if (m == NULL) {
        m = &p->marks[p->mark_next++ % MARKS];
        *m = (struct mark){.at = *at};
    }
    wait = m->failures < 6 ? AVOID_MS << m->failures : AVOID_MAX_MS;
    m->failures++;
    m->until_ms = now_ms() + (wait < AVOID_MAX_MS ? wait : AVOID_MAX_MS);
}

/* --- probes --- */

/* ListRequest: a name that no journal has. */
static const uint8_t nothing[] = {0x0a, 0x0f, 0x0a, 0x0d, 0x0a, 0x0b, 0x0a, 0x04, 'n',
                                  'a',  'm',  'e',  0x12, 0x03, '/',  '/',  '/'};

static void on_probe_message(void *arg, struct span msg)
{
    (void)arg;
    (void)msg;
}

static void on_probe_end(void *arg, const struct gz_end *end)
{
    (void)arg;
    (void)end; /* whatever it says: it was not silent, or h2.c ended the connection */
}

static void on_probe(evutil_socket_t fd, short what, void *arg)
{
    static const struct gz_call_cb cb = {.on_message = on_probe_message, .on_end = on_probe_end};
    struct gz_pool *p = arg;
    struct entry *e;

    (void)fd;
    (void)what;
    TAILQ_FOREACH(e, &p->entries, link)
    {
        struct gz_call *call;
        if (!gz_conn_silent(e->conn) ||
            gz_conn_call(e->conn, "List", p->token == NULL ? NULL : p->token(p->token_arg),
                         PROBE_MS, &cb, &call) < 0)
            continue;
        if (gz_call_send(call, span_of(nothing, sizeof nothing), span_of(NULL, 0)) < 0)
            gz_call_cancel(call);
        else
            gz_call_finish(call);
    }
}

int gz_pool_new(struct event_base *base, const struct gz_pool_opts *o, struct gz_pool **out,
                char *why, size_t why_bytes)
{
    struct gz_pool *p = mem_zalloc(sizeof *p);
    int err;

    *out = NULL;
    if (p == NULL)
        return E_NOMEM;
    TAILQ_INIT(&p->entries);
    p->base = base;
    p->token = o->token;
    p->token_refused = o->token_refused;
    p->token_arg = o->token_arg;
    if (o->hosts_file != NULL && (p->hosts_file = mem_strdup(o->hosts_file)) == NULL) {
        mem_free(p);
        return E_NOMEM;
    }
    p->connect_ms = o->connect_ms > 0 ? o->connect_ms : CONNECT_MS;
    const struct timeval every = {PROBE_S, 0};
    if ((p->probe = event_new(base, -1, EV_PERSIST, on_probe, p)) == NULL ||
        event_add(p->probe, &every) < 0) {
        gz_pool_free(p);
        return E_NOMEM;
    }
    if ((err = gz_endpoints_parse(o->endpoints, p->endpoints, &p->endpoints_n, why, why_bytes)) <
            0 ||
        (o->tls && (err = make_tls(p, o, why, why_bytes)) < 0)) {
        gz_pool_free(p);
        return err;
    }
    *out = p;
    return 0;
}

void gz_pool_close(struct gz_pool *p)
{
    struct entry *e;

    while ((e = TAILQ_FIRST(&p->entries)) != NULL) {
        TAILQ_REMOVE(&p->entries, e, link);
        gz_conn_free(e->conn, E_CLOSED);
        mem_free(e);
    }
    if (p->probe != NULL)
        event_free(p->probe);
    p->probe = NULL;
}

void gz_pool_free(struct gz_pool *p)
{
    if (p == NULL)
        return;
    gz_pool_close(p);
    if (p->evdns != NULL) {
        (void)event_base_loop(p->base, EVLOOP_NONBLOCK);
        evdns_base_free(p->evdns, 0);
    }
    SSL_CTX_free(p->tls);
    mem_free(p->hosts_file);
    mem_free(p);
}

static void on_gone(void *arg, struct gz_conn *conn, bool ok)
{
    struct entry *e = arg;
    struct gz_pool *p = e->pool;

    (void)conn;
    TAILQ_REMOVE(&p->entries, e, link);
    struct mark *m = mark_find(p, &e->at);
    if (!ok)
        avoid(p, &e->at);
    else if (m != NULL)
        m->failures = 0;
    if (!ok && e->configured)
        p->next = (p->next + 1) % p->endpoints_n;
    mem_free(e);
}

static void on_denied(void *arg)
{
    const struct entry *e = arg;

    if (e->pool->token_refused != NULL)
        e->pool->token_refused(e->pool->token_arg);
}

/* Without /etc/resolv.conf evdns makes none that reads it; /etc/hosts is there all the same. */
static int names_new(struct gz_pool *p)
{
    if (p->evdns != NULL)
        return 0;
    if (p->hosts_file == NULL)
        p->evdns = evdns_base_new(p->base, EVDNS_BASE_INITIALIZE_NAMESERVERS |
                                               EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    if (p->evdns != NULL)
        return 0;
    if ((p->evdns = evdns_base_new(p->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE)) == NULL)
        return E_NOMEM;
    (void)evdns_base_load_hosts(p->evdns, p->hosts_file == NULL ? "/etc/hosts" : p->hosts_file);
    if (p->hosts_file == NULL) /* as the system does then */
        (void)evdns_base_nameserver_ip_add(p->evdns, "127.0.0.1");
    return 0;
}

static int connect_to(struct gz_pool *p, const struct gz_endpoint *at, bool configured,
                      struct entry **out)
{
    struct evutil_addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICHOST}, *found = NULL;
    struct gz_conn_opts o = {.base = p->base,
                             .tls = p->tls,
                             .host = at->host,
                             .port = at->port,
                             .connect_ms = p->connect_ms,
                             .on_gone = on_gone,
                             .on_denied = on_denied};
    struct entry *e;
    int err;

    if (evutil_getaddrinfo(at->host, NULL, &hints, &found) == 0)
        evutil_freeaddrinfo(found);
    else if ((err = names_new(p)) == 0)
        o.evdns = p->evdns;
    else
        return err;
    if ((e = mem_zalloc(sizeof *e)) == NULL)
        return E_NOMEM;
    e->pool = p;
    e->at = *at;
    e->configured = configured;
    o.arg = e;
    if ((err = gz_conn_new(&o, &e->conn)) < 0) {
        mem_free(e);
        avoid(p, at);
        return err;
    }
    TAILQ_INSERT_TAIL(&p->entries, e, link);
    *out = e;
    return 0;
}

/* The next configured one that is not avoided; when all are, the next one. */
static struct gz_endpoint choose(struct gz_pool *p)
{
    for (size_t i = 0; i < p->endpoints_n; i++) {
        size_t at = (p->next + i) % p->endpoints_n;
        if (!avoided(p, &p->endpoints[at])) {
            p->next = at;
            break;
        }
    }
    return p->endpoints[p->next];
}

/* One that takes a call at once; else one on which it waits for its turn. more: another one had
 * better be opened (proxies bound the calls of a connection, brokers do not). */
static struct entry *pick(struct gz_pool *p, const struct gz_endpoint *at, bool *more)
{
    struct entry *e, *full = NULL;
    size_t n = 0;

    *more = false;
    TAILQ_FOREACH(e, &p->entries, link)
    {
        if (!same(&e->at, at) || !gz_conn_usable(e->conn))
            continue;
        if (gz_conn_room(e->conn))
            return e;
        full = e;
        n++;
    }
    *more = n < CONNS_MAX;
    return full;
}

int gz_pool_call(struct gz_pool *p, const char *endpoint, const char *method, int64_t timeout_ms,
                 const struct gz_call_cb *cb, struct gz_call **out)
{
    struct gz_endpoint at;
    struct entry *e, *made;
    bool more, configured = endpoint == NULL || parse_url(p, endpoint, &at) < 0 || avoided(p, &at);
    int err = E_AGAIN;

    *out = NULL;
    if (configured)
        at = choose(p);
    e = pick(p, &at, &more);
    if (more && (err = connect_to(p, &at, configured, &made)) == 0)
        e = made;
    else if (e == NULL)
        return err;
    e->configured = e->configured || configured;
    return gz_conn_call(e->conn, method, p->token == NULL ? NULL : p->token(p->token_arg),
                        timeout_ms, cb, out);
}
