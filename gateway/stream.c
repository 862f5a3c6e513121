/*
 * Plain TCP under a connection: a bufferevent whose buffers the connection reads and writes. Knows
 * libevent's habits (Debian's 2.1.12): its 16 KiB limit a callback is raised, and it is freed only
 * in the worker's graveyard, because events that are queued already still run in this turn.
 * Worker thread.
 */
#include "gateway/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define READ_AT_ONCE  CONN_INPUT_FREE
#define WRITE_AT_ONCE ((size_t)512 * 1024)

struct stream {
    struct conn conn; /* first member */
    struct bufferevent *bev;
};

static void set_reading(struct conn *c, bool on)
{
    struct stream *s = (struct stream *)c;

    if (on)
        bufferevent_enable(s->bev, EV_READ);
    else
        bufferevent_disable(s->bev, EV_READ);
}

static void set_limit(struct conn *c, size_t bytes)
{
    struct stream *s = (struct stream *)c;

    bufferevent_setwatermark(s->bev, EV_READ, 0, bytes);
}

static void shut(struct conn *c)
{
    struct stream *s = (struct stream *)c;

    bufferevent_setcb(s->bev, NULL, NULL, NULL, NULL);
    bufferevent_disable(s->bev, EV_READ | EV_WRITE);
}

static void free_stream(struct conn *c)
{
    struct stream *s = (struct stream *)c;

    conn_fini(c);
    bufferevent_free(s->bev);
    mem_free(s);
}

static const struct conn_io stream_io = {set_reading, set_limit, shut, free_stream};

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_input(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    (void)bev;
    conn_output(arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if ((what & BEV_EVENT_EOF) != 0)
        conn_gone(arg, "closed by the client");
    else if ((what & BEV_EVENT_ERROR) != 0)
        conn_gone(arg, "connection lost");
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
                     const struct sockaddr *peer)
{
    struct sockaddr_storage local = {0};
    socklen_t bytes = sizeof local;
    char text[INET6_ADDRSTRLEN];

    uint16_t port = address_text(peer, text);
    snprintf(c->peer, sizeof c->peer, "%s:%u", text, port);
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) < 0)
        return err_from_errno(errno);
    port = address_text((const struct sockaddr *)&local, c->local_host);
    c->advertise_host = config->advertise_host != NULL ? config->advertise_host : c->local_host;
    c->advertise_port = config->advertise_port != 0 ? config->advertise_port : port;
    return 0;
}

static void set_options(int fd)
{
    int on = 1;

    /* Best effort: a connection works without them. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int stream_open(struct worker *w, int fd, const struct sockaddr *peer, socklen_t peer_bytes)
{
    const struct gw_config *config = w->shared->config;
    struct stream *s = mem_zalloc(sizeof *s);
    int err = E_NOMEM;

    (void)peer_bytes;
    if (s == NULL) {
        close(fd);
        return E_NOMEM;
    }
    if ((err = name_ends(&s->conn, config, fd, peer)) < 0) {
        close(fd); /* the client has gone already */
        goto out;
    }
    set_options(fd);
    s->bev = bufferevent_socket_new(w->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (s->bev == NULL) {
        close(fd);
        err = E_NOMEM;
        goto out;
    }
    s->conn.io = &stream_io;
    s->conn.in = bufferevent_get_input(s->bev);
    s->conn.out = bufferevent_get_output(s->bev);
    bufferevent_setcb(s->bev, on_read, on_write, on_event, &s->conn);
    if (bufferevent_set_max_single_read(s->bev, READ_AT_ONCE) < 0 ||
        bufferevent_set_max_single_write(s->bev, WRITE_AT_ONCE) < 0 ||
        (err = conn_init(&s->conn, w)) < 0) {
        bufferevent_free(s->bev);
        goto out;
    }
    bufferevent_setwatermark(s->bev, EV_READ, 0, CONN_INPUT_FREE);
    /* Woken when half of the output budget is free again; at 0 for a connection that finishes. */
    bufferevent_setwatermark(s->bev, EV_WRITE, config->conn_output_bytes / 2, 0);
    if (bufferevent_enable(s->bev, EV_READ | EV_WRITE) < 0) {
        conn_close(&s->conn, E_NOMEM, "not watched");
        return 0;
    }
    return 0;
out:
    mem_free(s);
    return err;
}
