/*
 * Accepts connections and hands them on. When the process runs out of descriptors the waiting
 * connection is taken with a descriptor kept in reserve and closed, so that its client learns at
 * once and the loop does not spin; when even that fails, accepting pauses for a moment. Control
 * thread.
 */
#include "gateway/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"

#define BACKLOG        1024
#define ACCEPT_AT_ONCE 64
#define PAUSE_MS       100

struct listener {
    const struct gw_listen *where;
    int fd;
    int reserve; /* given up for a moment when descriptors run out; -1: not to be had now */
    uint16_t port;
    listener_fn *fn;
    void *arg;
    struct event *event;
    struct event *resume;
};

static int resolve(const struct gw_listen *where, struct addrinfo **out, char *why,
                   size_t why_bytes)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    const char *host = where->host != NULL && where->host[0] != '\0' ? where->host : NULL;
    char port[8];

    *out = NULL;
    snprintf(port, sizeof port, "%u", where->port);
    int rc = getaddrinfo(host, port, &hints, out);
    if (rc == 0)
        return 0;
    snprintf(why, why_bytes, "cannot resolve the listen address %s: %s", host == NULL ? "" : host,
             gai_strerror(rc));
    return E_INVALID;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && in.sin6_addr.s6_addr[12] == 127);
    }
    return false;
}

static bool is_wildcard(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        return in.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        return IN6_IS_ADDR_UNSPECIFIED(&in.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && in.sin6_addr.s6_addr32[3] == 0);
    }
    return false;
}

/* A name that is no numeric address is believed, except "localhost": what it means is the client's
 * business. */
static void judge_advertised(const char *host, bool *wildcard, bool *loopback)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;

    *wildcard = host[0] == '\0' || strcmp(host, "*") == 0;
    *loopback = strcmp(host, "localhost") == 0;
    if (*wildcard || *loopback || getaddrinfo(host, NULL, &hints, &list) != 0)
        return;
    *wildcard = is_wildcard(list->ai_addr);
    *loopback = is_loopback(list->ai_addr);
    freeaddrinfo(list);
}

static int check_one(const struct gw_config *config, const struct gw_listen *where, char *why,
                     size_t why_bytes)
{
    struct addrinfo *list = NULL;
    bool wildcard = false;
    bool loopback = false;
    const char *advertised =
        where->advertise_host != NULL ? where->advertise_host : config->advertise_host;

    if (where->tls && config->tls.cert == NULL) {
        snprintf(why, why_bytes,
                 "the Kafka listener %s:%u asks for TLS: give --tls-cert and --tls-key; it is not "
                 "opened as plain text instead",
                 where->host, where->port);
        return E_UNSUPPORTED;
    }
    int err = resolve(where, &list, why, why_bytes);
    if (err < 0)
        return err;
    bool local = is_loopback(list->ai_addr);
    freeaddrinfo(list);
    if (advertised != NULL)
        judge_advertised(advertised, &wildcard, &loopback);
    if (wildcard) {
        snprintf(why, why_bytes,
                 "the advertised address \"%s\" is a wildcard: clients cannot connect to it",
                 advertised);
        return E_INVALID;
    }
    if (local)
        return 0;
    if (advertised == NULL) {
        snprintf(why, why_bytes,
                 "the Kafka listener %s:%u is reachable from other machines: set the address that "
                 "clients should connect to (--kafka-advertise HOST:PORT)",
                 where->host, where->port);
        return E_INVALID;
    }
    if (loopback) {
        snprintf(why, why_bytes,
                 "the advertised address %s leads every client to its own machine, but the Kafka "
                 "listener %s:%u is reachable from others",
                 advertised, where->host, where->port);
        return E_INVALID;
    }
    if (!gw_listen_asks(config, where) && !config->allow_anonymous) {
        snprintf(why, why_bytes,
                 "the Kafka listener %s:%u is reachable from other machines and has no "
                 "authentication: give --allow-anonymous if that is what you want",
                 where->host, where->port);
        return E_INVALID;
    }
    return 0;
}

int listener_check(const struct gw_config *config, char *why, size_t why_bytes)
{
    int err;

    if (config->kafka_n == 0) {
        snprintf(why, why_bytes, "there is no Kafka listener");
        return E_INVALID;
    }
    for (size_t i = 0; i < config->kafka_n; i++) {
        if ((err = check_one(config, &config->kafka[i], why, why_bytes)) < 0)
            return err;
    }
    return 0;
}

/* Takes the connection that cannot be served and closes it. E_NOTFOUND: nobody is there (without a
 * descriptor to spare the kernel does not even look). E_LIMIT: not even that was possible. */
static int turn_away(struct listener *l)
{
    int err = 0;

    if (l->reserve < 0)
        return E_LIMIT;
    close(l->reserve);
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        metric_add(M_CONNECTIONS_REFUSED, 1);
    } else {
        err = errno == EAGAIN || errno == EWOULDBLOCK ? E_NOTFOUND : E_LIMIT;
    }
    l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return l->reserve < 0 ? E_LIMIT : err;
}

static void pause_accept(struct listener *l)
{
    struct timeval tv = {.tv_usec = PAUSE_MS * 1000L};

    event_del(l->event);
    event_add(l->resume, &tv);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    struct listener *l = arg;

    (void)fd;
    (void)what;
    if (l->reserve < 0)
        l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    event_add(l->event, NULL);
}

static void on_accept(evutil_socket_t ignored, short what, void *arg)
{
    struct listener *l = arg;

    (void)ignored;
    (void)what;
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t bytes = sizeof peer;
        int fd = accept4(l->fd, (struct sockaddr *)&peer, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            l->fn(l->arg, fd, l->where, (struct sockaddr *)&peer, bytes);
            continue;
        }
        int errnum = errno;
        if (errnum == EINTR || errnum == ECONNABORTED)
            continue;
        if (errnum == EAGAIN || errnum == EWOULDBLOCK)
            return;
        int err = errnum == EMFILE || errnum == ENFILE ? turn_away(l) : E_LIMIT;
        if (err == E_NOTFOUND)
            return;
        log_peer(LOG_WARN, "listener.accept_failed", LF_ERRNO(errnum), LF_UINT("port", l->port));
        if (err == 0)
            continue;
        pause_accept(l);
        return;
    }
}

static int bind_socket(const struct addrinfo *ai, int *out)
{
    int on = 1;
    int off = 0;
    int err = 0;

    *out = -1;
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_from_errno(errno);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (ai->ai_family == AF_INET6) /* [::] serves IPv4 as well */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        err = errno == EADDRINUSE ? E_BUSY : errno == EACCES ? E_DENIED : err_from_errno(errno);
        close(fd);
        return err;
    }
    *out = fd;
    return 0;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t bytes = sizeof sa;
    struct sockaddr_in6 in6;
    struct sockaddr_in in;

    if (getsockname(fd, (struct sockaddr *)&sa, &bytes) < 0)
        return 0;
    if (sa.ss_family == AF_INET6) {
        memcpy(&in6, &sa, sizeof in6);
        return ntohs(in6.sin6_port);
    }
    memcpy(&in, &sa, sizeof in);
    return ntohs(in.sin_port);
}

int listener_open(const struct gw_listen *where, struct event_base *base, listener_fn *fn,
                  void *arg, struct listener **out, char *why, size_t why_bytes)
{
    struct addrinfo *list = NULL;
    int err;

    *out = NULL;
    struct listener *l = mem_zalloc(sizeof *l);
    if (l == NULL)
        return E_NOMEM;
    l->fd = -1;
    l->where = where;
    l->fn = fn;
    l->arg = arg;
    l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if ((err = resolve(where, &list, why, why_bytes)) < 0)
        goto out;
    if ((err = bind_socket(list, &l->fd)) < 0) {
        snprintf(why, why_bytes, "cannot listen on %s:%u: %s", where->host, where->port,
                 err == E_BUSY     ? "the address is in use"
                 : err == E_DENIED ? "no permission"
                                   : err_text(err));
        goto out;
    }
    l->port = bound_port(l->fd);
    if (where->sasl && !where->tls && !is_loopback(list->ai_addr))
        log_event(
            LOG_WARN, "listener.readable_logins", LF_STR("host", where->host),
            LF_UINT("port", l->port),
            LF_STR("reason",
                   "PLAIN and OAUTHBEARER are readable on the way: sasl-tls:// is meant for this"));
    l->event = event_new(base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
    l->resume = event_new(base, -1, 0, on_resume, l);
    if (l->event == NULL || l->resume == NULL) {
        err = E_NOMEM;
        goto out;
    }
    *out = l;
    l = NULL;
out:
    if (list != NULL)
        freeaddrinfo(list);
    listener_free(l);
    return err;
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

int listener_start(struct listener *l)
{
    return event_add(l->event, NULL) < 0 ? E_NOMEM : 0;
}

void listener_free(struct listener *l)
{
    if (l == NULL)
        return;
    if (l->event != NULL)
        event_free(l->event);
    if (l->resume != NULL)
        event_free(l->resume);
    if (l->fd >= 0)
        close(l->fd);
    if (l->reserve >= 0)
        close(l->reserve);
    mem_free(l);
}
