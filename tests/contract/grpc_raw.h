/*
 * A gRPC call as bytes, for tests that look at bytes: what is sent is a run of frames as recorded,
 * what comes back is the run of frames as they came, with all headers and trailers. Blocking, one
 * connection a call; nothing of the product's client is used.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/writer.h"

#define RAW_WAIT_MS 10000
#define RAW_MAX     (16u << 20)

struct raw_call {
    int fd;
    nghttp2_session *session;
    int32_t stream;
    struct span request;
    size_t sent;
    struct writer response; /* DATA payloads */
    struct writer headers;  /* "name: value\n" of headers and trailers */
    bool closed;
    uint32_t code; /* of RST_STREAM */
    bool goaway, broken;
};

/* Appends a message as a frame; what fails is seen in the writer. */
static inline void raw_put(struct writer *w, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = mem_alloc(n + 1);

    assert_non_null(p);
    (void)protobuf_c_message_pack(m, p);
    wr_u8(w, 0);
    wr_u32(w, (uint32_t)n);
    wr_bytes(w, p, n);
    mem_free(p);
}

static ssize_t raw_source(nghttp2_session *s, int32_t stream, uint8_t *buf, size_t n,
                          uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct raw_call *c = arg;
    size_t left = c->request.n - c->sent, part = left < n ? left : n;

    (void)s;
    (void)stream;
    (void)source;
    if (part > 0)
        memcpy(buf, c->request.p + c->sent, part);
    c->sent += part;
    if (c->sent == c->request.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

static int raw_on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
                         void *arg)
{
    struct raw_call *c = arg;

    (void)s;
    (void)frame;
    (void)flags;
    wr_bytes(&c->headers, name, name_n);
    wr_str(&c->headers, ": ");
    wr_bytes(&c->headers, value, value_n);
    wr_str(&c->headers, "\n");
    return 0;
}

static int raw_on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p,
                       size_t n, void *arg)
{
    struct raw_call *c = arg;

    (void)s;
    (void)flags;
    (void)stream;
    wr_bytes(&c->response, p, n);
    return 0;
}

static int raw_on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *arg)
{
    struct raw_call *c = arg;

    (void)s;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        c->goaway = true;
    return 0;
}

static int raw_on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *arg)
{
    struct raw_call *c = arg;

    (void)s;
    (void)stream;
    c->closed = true;
    c->code = code;
    return 0;
}

static inline void raw_flush(struct raw_call *c)
{
    const uint8_t *p;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(c->session, &p)) > 0) {
        for (ssize_t at = 0; at < n;) {
            ssize_t part = send(c->fd, p + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (part <= 0) {
                c->broken = true;
                return;
            }
            at += part;
        }
    }
}

/* authorization: NULL, or the header's text. 0 or -1. */
static inline int raw_start(struct raw_call *c, uint16_t port, const char *path,
                            struct span request, const char *authorization)
{
#define RAW_NV(k, v)                                                                               \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(k), (uint8_t *)(uintptr_t)(v), strlen(k), strlen(v),                \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }
    const nghttp2_nv nv[] = {
        RAW_NV(":method", "POST"),
        RAW_NV(":scheme", "http"),
        RAW_NV(":path", path),
        RAW_NV(":authority", "127.0.0.1"),
        RAW_NV("te", "trailers"),
        RAW_NV("content-type", "application/grpc"),
        RAW_NV("authorization", authorization == NULL ? "" : authorization),
    };
    const nghttp2_data_provider source = {.read_callback = raw_source};
    const struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    nghttp2_session_callbacks *cbs;

    *c = (struct raw_call){.fd = socket(AF_INET, SOCK_STREAM, 0), .request = request};
    wr_init(&c->response, RAW_MAX);
    wr_init(&c->headers, RAW_MAX);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&a, sizeof a) < 0 ||
        nghttp2_session_callbacks_new(&cbs) != 0)
        return -1;
    nghttp2_session_callbacks_set_on_header_callback(cbs, raw_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cbs, raw_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cbs, raw_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cbs, raw_on_close);
    int rv = nghttp2_session_client_new(&c->session, cbs, c);
    nghttp2_session_callbacks_del(cbs);
    if (rv != 0 || nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0) != 0)
        return -1;
    size_t n = sizeof nv / sizeof nv[0] - (authorization == NULL ? 1 : 0);
    c->stream = nghttp2_submit_request(c->session, NULL, nv, n, &source, NULL);
    if (c->stream < 0)
        return -1;
    raw_flush(c);
    return 0;
#undef RAW_NV
}

/* Until it ended, or brought so many bytes (0: no matter how many), or RAW_WAIT_MS passed without
 * anything. True: it ended or brought them. */
static inline bool raw_wait(struct raw_call *c, size_t bytes)
{
    uint8_t buf[65536];
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    while (!c->closed && !c->broken && (bytes == 0 || wr_len(&c->response) < bytes)) {
        if (poll(&p, 1, RAW_WAIT_MS) <= 0)
            return false;
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n <= 0 || nghttp2_session_mem_recv(c->session, buf, (size_t)n) < 0)
            c->broken = true;
        else
            raw_flush(c);
    }
    return true;
}

static inline struct span raw_response(const struct raw_call *c)
{
    return c->response.b == NULL ? span_of(NULL, 0) : blob_span(c->response.b);
}

static inline struct span raw_headers(const struct raw_call *c)
{
    return c->headers.b == NULL ? span_of(NULL, 0) : blob_span(c->headers.b);
}

static inline void raw_end(struct raw_call *c)
{
    if (c->session != NULL)
        nghttp2_session_del(c->session);
    if (c->fd >= 0)
        (void)close(c->fd);
    wr_fini(&c->response);
    wr_fini(&c->headers);
}
