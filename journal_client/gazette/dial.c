/*
 * How a connection comes about: a name is looked up (evdns: /etc/hosts, then name servers; nothing
 * here blocks), its addresses are tried in turn, then TLS. A connection that stood once is not
 * dialled again: the pool opens another.
 */
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/h2_int.h"

#define USER_TIMEOUT 30000 /* ms; a peer that acknowledges nothing so long is gone */
#define SHARE_MIN_MS 1000  /* of the time for a connection, for each address */

/* Of evdns, which may outlive its connection. */
struct gz_lookup {
    struct gz_conn *conn; /* NULL: it is gone */
    struct evdns_getaddrinfo_request *request;
};

static void set_socket(struct bufferevent *bev)
{
    evutil_socket_t fd = bufferevent_getfd(bev);
    int on = 1, ms = USER_TIMEOUT, idle = 20, every = 10;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static struct bufferevent *socket_new(struct gz_conn *c)
{
    SSL_CTX *ctx = c->o.tls;
    SSL *ssl;

    if (ctx == NULL)
        return bufferevent_socket_new(c->o.base, -1, BEV_OPT_CLOSE_ON_FREE);
    if ((ssl = SSL_new(ctx)) == NULL)
        return NULL;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    bool ok = X509_VERIFY_PARAM_set1_ip_asc(param, c->host) == 1;
    if (!ok) /* a name, not an address */
        ok = SSL_set1_host(ssl, c->host) == 1 && SSL_set_tlsext_host_name(ssl, c->host) == 1;
    if (!ok) {
        SSL_free(ssl);
        return NULL;
    }
    return bufferevent_openssl_socket_new(c->o.base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
                                          BEV_OPT_CLOSE_ON_FREE);
}

/* Why no connection came about: the certificate, what TLS says, or the socket. */
static void connect_fault(const struct gz_conn *c, char *out, size_t n)
{
    int code = EVUTIL_SOCKET_ERROR();
    const char *reason = code != 0 ? evutil_socket_error_to_string(code) : "closed by the peer";

    if (c->o.tls != NULL) {
        long verify = SSL_get_verify_result(bufferevent_openssl_get_ssl(c->bev));
        unsigned long tls = bufferevent_get_openssl_error(c->bev);
        const char *text = tls != 0 ? ERR_reason_error_string(tls) : NULL;
        if (verify != X509_V_OK) {
            (void)snprintf(out, n, "its certificate is refused: %s",
                           X509_verify_cert_error_string(verify));
            return;
        }
        if (text != NULL)
            reason = text;
    }
    (void)snprintf(out, n, "%s", reason);
}

/* --- addresses in turn --- */

static void arm(struct gz_conn *c, int64_t ms)
{
    const struct timeval tv = {ms / 1000, (ms % 1000) * 1000L};

    if (event_add(c->dial.timer, &tv) < 0)
        gz_conn_break(c, E_NOMEM);
}

static void failed(struct gz_conn *c)
{
    struct gz_dial *d = &c->dial;

    log_peer(LOG_WARN, "gazette.connect_failed", LF_STR("broker", c->authority),
             LF_STR("reason", d->why));
    (void)event_del(d->timer);
    if (d->next != NULL)
        event_active(d->step, EV_TIMEOUT, 0);
    else
        gz_conn_break(c, E_AGAIN);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct gz_conn *c = arg;

    if (c->dead)
        return;
    if ((what & BEV_EVENT_CONNECTED) != 0) {
        (void)event_del(c->dial.timer);
        set_socket(bev);
        gz_conn_up(c);
        return;
    }
    if (!c->heard)
        connect_fault(c, c->dial.why, sizeof c->dial.why);
    if (!c->up) {
        failed(c);
        return;
    }
    if (!c->heard)
        log_peer(LOG_WARN, "gazette.connect_failed", LF_STR("broker", c->authority),
                 LF_STR("reason", c->dial.why));
    gz_conn_break(c, E_AGAIN);
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
    struct gz_conn *c = arg;
    struct gz_dial *d = &c->dial;
    const struct evutil_addrinfo *at = d->next;

    (void)fd;
    (void)what;
    if (c->dead || c->up || at == NULL)
        return;
    d->next = at->ai_next;
    if (c->bev != NULL)
        bufferevent_free(c->bev);
    if ((c->bev = socket_new(c)) == NULL) {
        gz_conn_break(c, E_NOMEM);
        return;
    }
    bufferevent_setcb(c->bev, gz_conn_on_read, gz_conn_on_write, on_event, c);
    arm(c, d->limit_ms);
    /* Its failure comes by on_event, now or later. */
    if (bufferevent_enable(c->bev, EV_READ | EV_WRITE) < 0)
        gz_conn_break(c, E_NOMEM);
    else
        (void)bufferevent_socket_connect(c->bev, at->ai_addr, (int)at->ai_addrlen);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gz_conn *c = arg;

    (void)fd;
    (void)what;
    (void)snprintf(c->dial.why, sizeof c->dial.why, "%s",
                   c->dial.found == NULL ? "looking up its name timed out" : "timed out");
    failed(c);
}

static void take_addresses(struct gz_conn *c, struct evutil_addrinfo *found)
{
    struct gz_dial *d = &c->dial;
    int64_t n = 0;

    d->found = found;
    d->next = found;
    for (const struct evutil_addrinfo *a = found; a != NULL; a = a->ai_next)
        n++;
    d->limit_ms = n > 1 ? c->o.connect_ms / n : c->o.connect_ms;
    if (d->limit_ms < SHARE_MIN_MS && n > 1)
        d->limit_ms = SHARE_MIN_MS;
    event_active(d->step, EV_TIMEOUT, 0);
}

static void on_found(int result, struct evutil_addrinfo *found, void *arg)
{
    struct gz_lookup *l = arg;
    struct gz_conn *c = l->conn;

    mem_free(l);
    if (c == NULL) {
        if (found != NULL)
            evutil_freeaddrinfo(found);
        return;
    }
    c->dial.lookup = NULL;
    if (result == 0 && found != NULL) {
        take_addresses(c, found);
        return;
    }
    (void)snprintf(c->dial.why, sizeof c->dial.why, "%s",
                   result == 0 ? "its name has no address" : evutil_gai_strerror(result));
    failed(c);
}

static int look_up(struct gz_conn *c, const char *port)
{
    const struct evutil_addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    struct gz_lookup *l = mem_zalloc(sizeof *l);
    struct evdns_getaddrinfo_request *request;

    if (l == NULL)
        return E_NOMEM;
    l->conn = c;
    c->dial.lookup = l;
    arm(c, c->o.connect_ms);
    /* NULL: on_found was called already. */
    if ((request = evdns_getaddrinfo(c->o.evdns, c->host, port, &hints, on_found, l)) != NULL)
        l->request = request;
    return 0;
}

int gz_dial_start(struct gz_conn *c)
{
    struct evutil_addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICHOST | EVUTIL_AI_NUMERICSERV,
                                    .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_protocol = IPPROTO_TCP};
    struct evutil_addrinfo *found = NULL;
    char port[8];

    (void)snprintf(port, sizeof port, "%u", (unsigned)c->o.port);
    if ((c->dial.step = event_new(c->o.base, -1, 0, on_step, c)) == NULL ||
        (c->dial.timer = evtimer_new(c->o.base, on_timer, c)) == NULL)
        return E_NOMEM;
    if (c->o.evdns != NULL)
        return look_up(c, port);
    if (evutil_getaddrinfo(c->host, port, &hints, &found) != 0)
        return E_NOMEM; /* the pool has read it as an address before */
    take_addresses(c, found);
    return 0;
}

void gz_dial_fini(struct gz_conn *c)
{
    struct gz_dial *d = &c->dial;

    if (d->lookup != NULL) {
        d->lookup->conn = NULL;
        evdns_getaddrinfo_cancel(d->lookup->request); /* frees it, later */
    }
    d->lookup = NULL;
    if (d->found != NULL)
        evutil_freeaddrinfo(d->found);
    d->found = NULL;
    if (d->step != NULL)
        event_free(d->step);
    if (d->timer != NULL)
        event_free(d->timer);
    d->step = d->timer = NULL;
}
