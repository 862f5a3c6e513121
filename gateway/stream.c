/*
 * Plain TCP under a connection, on raw events. A profile of long polls showed the bufferevent: six
 * system calls a request (FIONREAD, and arming and disarming a write event each time) where two
 * do. Here input is read into a buffer of the worker's stack and copied, output is written at once,
 * and a write event exists only while the socket is full. Freed only in the worker's graveyard,
 * because events that are queued already still run in this turn. Worker thread.
 */
#include "gateway/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/stream_int.h"
#include "gateway/tls.h"

size_t stream_room(const struct stream *s)
{
    size_t have = evbuffer_get_length(s->conn.in);

    return s->conn.state != CONN_CLOSED && s->reading && have < s->limit ? s->limit - have : 0;
}

void stream_watch(struct stream *s)
{
    bool want = s->handshaking || (s->reading && evbuffer_get_length(s->conn.in) < s->limit);
    bool have = event_pending(s->readable, EV_READ, NULL) != 0;

    if (want && !have)
        event_add(s->readable, NULL); /* memory for it was taken by the first add */
    else if (!want && have)
        event_del(s->readable);
    if (want && s->ssl != NULL && SSL_pending(s->ssl) > 0)
        event_active(s->readable, EV_READ, 0); /* the socket does not tell of what TLS holds */
}

void stream_reading(struct conn *c, bool on)
{
    struct stream *s = (struct stream *)c;

    s->reading = on;
    stream_watch(s);
}

void stream_limit(struct conn *c, size_t bytes)
{
    struct stream *s = (struct stream *)c;

    s->limit = bytes;
    stream_watch(s);
}

static int send_output(struct conn *c)
{
    struct stream *s = (struct stream *)c;
    size_t sent = 0;

    while (evbuffer_get_length(c->out) > 0 && sent < WRITE_AT_ONCE) {
        int n = evbuffer_write_atmost(c->out, s->fd, (ev_ssize_t)(WRITE_AT_ONCE - sent));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return err_from_errno(errno);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    if (evbuffer_get_length(c->out) == 0) {
        if (event_pending(s->writable, EV_WRITE, NULL) != 0)
            event_del(s->writable);
        return 0;
    }
    return event_add(s->writable, NULL) < 0 ? E_NOMEM : 0;
}

static void shut(struct conn *c)
{
    struct stream *s = (struct stream *)c;

    event_del(s->readable);
    event_del(s->writable);
}

static void release(struct stream *s)
{
    if (s->readable != NULL)
        event_free(s->readable);
    if (s->writable != NULL)
        event_free(s->writable);
    SSL_free(s->ssl);
    if (s->conn.in != NULL)
        evbuffer_free(s->conn.in);
    if (s->conn.out != NULL)
        evbuffer_free(s->conn.out);
    close(s->fd);
    mem_free(s);
}

void stream_free(struct conn *c)
{
    conn_fini(c);
    release((struct stream *)c);
}

bool stream_take(struct stream *s, uint8_t *buf, size_t n)
{
    int err = evbuffer_add(s->conn.in, buf, n);

    if (s->conn.auth.state != AUTH_OPEN) /* it may have been a token */
        mem_wipe(buf, n);
    if (err < 0)
        conn_close(&s->conn, E_NOMEM, "input not taken");
    else
        conn_input(&s->conn);
    return s->conn.state != CONN_CLOSED;
}

static void plain_readable(struct stream *s)
{
    uint8_t buf[READ_AT_ONCE];
    size_t room = stream_room(s);

    if (room == 0)
        return;
    ssize_t n = recv(s->fd, buf, room < sizeof buf ? room : sizeof buf, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n < 0)
        conn_gone(&s->conn, "connection lost");
    else if (n == 0)
        conn_gone(&s->conn, "closed by the client");
    else if (stream_take(s, buf, (size_t)n))
        stream_watch(s);
}

static void plain_writable(struct stream *s)
{
    conn_output(&s->conn);
}

const struct stream_kind stream_plain = {
    .io = {.reading = stream_reading,
           .limit = stream_limit,
           .send = send_output,
           .shut = shut,
           .free = stream_free},
    .readable = plain_readable,
    .writable = plain_writable,
};

static const struct stream_kind *kind_of(const struct stream *s)
{
    return s->ssl != NULL ? &stream_tls : &stream_plain;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    (void)what;
    if (s->conn.state != CONN_CLOSED)
        kind_of(s)->readable(s);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    (void)what;
    if (s->conn.state != CONN_CLOSED)
        kind_of(s)->writable(s);
}

static uint16_t address_text(const struct sockaddr *sa, char out[INET6_ADDRSTRLEN])
{
    out[0] = '\0';
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, out, INET6_ADDRSTRLEN);
        return ntohs(in.sin_port);
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) /* a dual-stack listener: say it as IPv4 */
            inet_ntop(AF_INET, &in.sin6_addr.s6_addr[12], out, INET6_ADDRSTRLEN);
        else
            inet_ntop(AF_INET6, &in.sin6_addr, out, INET6_ADDRSTRLEN);
        return ntohs(in.sin6_port);
    }
    return 0;
}

/* Who is it, and by which of our addresses did it come? */
static int name_ends(struct conn *c, const struct gw_config *config, int fd,
                     const struct gw_listen *listen, const struct sockaddr *peer)
{
    struct sockaddr_storage local = {0};
    socklen_t bytes = sizeof local;
    char text[INET6_ADDRSTRLEN];

    uint16_t port = address_text(peer, text);
    snprintf(c->peer, sizeof c->peer, "%s:%u", text, port);
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) < 0)
        return err_from_errno(errno);
    port = address_text((const struct sockaddr *)&local, c->local_host);
    c->advertise_host = listen->advertise_host != NULL   ? listen->advertise_host
                        : config->advertise_host != NULL ? config->advertise_host
                                                         : c->local_host;
    c->advertise_port = listen->advertise_port != 0   ? listen->advertise_port
                        : config->advertise_port != 0 ? config->advertise_port
                                                      : port;
    return 0;
}

/* How many has its address? */
static int admit_peer(struct conn *c, struct gw_auth *auth, const struct sockaddr *peer)
{
    char text[INET6_ADDRSTRLEN];

    peer_key_of(peer, &c->auth.peer);
    int err = peer_conn_add(gw_auth_peers(auth), &c->auth.peer);
    c->auth.counted = err == 0;
    if (err == E_LIMIT) {
        address_text(peer, text);
        log_peer(LOG_WARN, "listener.address_full", LF_STR("address", text));
    }
    return err;
}

static void set_options(int fd)
{
    int on = 1;

    /* Best effort: a connection works without them. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int stream_open(struct worker *w, int fd, const struct gw_listen *listen,
                const struct sockaddr *peer)
{
    const struct gw_config *config = w->shared->config;
    struct stream *s = mem_zalloc(sizeof *s);
    int err = E_NOMEM;

    if (s == NULL) {
        close(fd);
        return E_NOMEM;
    }
    s->fd = fd;
    s->reading = true;
    s->limit = CONN_INPUT_FREE;
    if ((err = admit_peer(&s->conn, w->shared->auth, peer)) < 0 ||
        (err = name_ends(&s->conn, config, fd, listen, peer)) < 0)
        goto out; /* its address has enough, or it has gone already */
    set_options(fd);
    err = E_NOMEM;
    if (listen->tls && (s->ssl = tls_server_kafka(w->shared->tls)) == NULL)
        goto out;
    s->conn.io = &kind_of(s)->io;
    s->readable = event_new(w->base, fd, EV_READ | EV_PERSIST, on_readable, s);
    s->writable = event_new(w->base, fd, EV_WRITE | EV_PERSIST, on_writable, s);
    s->conn.in = evbuffer_new();
    s->conn.out = evbuffer_new();
    err = E_NOMEM;
    if (s->readable == NULL || s->writable == NULL || s->conn.in == NULL || s->conn.out == NULL)
        goto out;
    /* The most memory that watching takes is taken here, so that later adds do not fail. */
    if (event_add(s->writable, NULL) < 0 || event_add(s->readable, NULL) < 0)
        goto out;
    event_del(s->writable);
    if (s->ssl != NULL && (err = stream_tls_begin(s, w)) < 0)
        goto out;
    if ((err = conn_init(&s->conn, w, listen->sasl)) < 0)
        goto out;
    return 0;
out:
    if (s->conn.auth.counted)
        peer_conn_drop(gw_auth_peers(w->shared->auth), &s->conn.auth.peer);
    release(s);
    return err;
}
