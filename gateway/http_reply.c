/* Requests and their answers: see http_server.h. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/http_int.h"
#include "schema/json_reader.h"

#define ANSWER_HEADERS_MAX ((size_t)16384)

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Status";
}

/* --- requests --- */

struct http_rq *http_rq_new(struct http_conn *c)
{
    struct http_rq *rq = mem_zalloc(sizeof *rq);

    if (rq == NULL)
        return NULL;
    rq->conn = c;
    rq->s = c->s;
    rq->peer = c->peer;
    rq->s->rqs_n++;
    arena_init(&rq->arena, (size_t)1 << 20);
    wr_init(&rq->body, c->s->opts.max_body_bytes);
    wr_init(&rq->headers, ANSWER_HEADERS_MAX);
    return rq;
}

void http_rq_free(struct http_rq *rq)
{
    struct http_server *s;

    if (rq == NULL)
        return;
    s = rq->s;
    if (rq->conn != NULL)
        rq->conn->rq = NULL;
    s->body_bytes -= rq->charged;
    s->rqs_n--;
    wr_fini(&rq->body);
    wr_fini(&rq->headers);
    arena_fini(&rq->arena);
    mem_free(rq);
    http_server_unref(s);
}

const struct peer_key *http_rq_peer(const struct http_rq *rq)
{
    return &rq->peer;
}

const struct http_head *http_rq_head(const struct http_rq *rq)
{
    return &rq->head;
}

const char *http_header(const struct http_rq *rq, const char *name)
{
    return http_head_find(&rq->head, name);
}

size_t http_body_bytes(const struct http_rq *rq)
{
    return wr_len(&rq->body);
}

struct blob *http_take_body(struct http_rq *rq)
{
    return wr_len(&rq->body) == 0 ? blob_new(0) : wr_take(&rq->body);
}

bool http_rq_lost(const struct http_rq *rq)
{
    return rq->conn == NULL;
}

bool http_rq_ended(const struct http_rq *rq)
{
    return rq->conn == NULL || rq->conn->ended;
}

void http_rq_on_lost(struct http_rq *rq, void (*lost)(void *arg), void *arg)
{
    rq->lost = lost;
    rq->lost_arg = arg;
}

/* --- answers --- */

void http_add_header(struct http_rq *rq, const char *name, const char *value)
{
    if (wr_len(&rq->headers) + strlen(name) + strlen(value) + 4 <= ANSWER_HEADERS_MAX)
        wr_printf(&rq->headers, "%s: %s\r\n", name, value);
}

static struct span headers_of(const struct http_rq *rq)
{
    return wr_err(&rq->headers) < 0 || rq->headers.b == NULL ? span_of("", 0)
                                                             : blob_span(rq->headers.b);
}

static int write_head(struct http_server *s, struct evbuffer *out, int status, struct span headers,
                      bool close)
{
    time_t now = (time_t)(clock_wall_ns(s->opts.clock) / 1000000000);
    char date[64];
    struct tm tm;

    if (gmtime_r(&now, &tm) == NULL ||
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        date[0] = '\0';
    if (evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason(status), date) <
            0 ||
        evbuffer_add(out, headers.p, headers.n) < 0)
        return E_NOMEM;
    return close && evbuffer_add_printf(out, "Connection: close\r\n") < 0 ? E_NOMEM : 0;
}

/* The whole of an answer that has its length. */
static int write_answer(struct http_server *s, struct evbuffer *out, int status,
                        struct span headers, bool close, struct span body, bool head_only)
{
    if (write_head(s, out, status, headers, close) < 0 ||
        evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", body.n) < 0)
        return E_NOMEM;
    return !head_only && body.n > 0 && evbuffer_add(out, body.p, body.n) < 0 ? E_NOMEM : 0;
}

static bool keeps(const struct http_conn *c, const struct http_rq *rq)
{
    return rq->head.keep_alive && !c->s->draining && !c->close;
}

/* HTTP/1.0 clients must be told that the connection stays. */
static void say_keep(struct http_rq *rq, bool keep)
{
    if (keep && rq->head.minor == 0)
        http_add_header(rq, "Connection", "keep-alive");
}

void http_reply(struct http_rq *rq, int status, struct span body)
{
    struct http_conn *c = rq->conn;
    bool keep;

    if (c == NULL) {
        http_rq_free(rq);
        return;
    }
    keep = keeps(c, rq);
    say_keep(rq, keep);
    if (!keep)
        c->close = true;
    int err = write_answer(c->s, bufferevent_get_output(c->bev), status, headers_of(rq), !keep,
                           body, rq->head.method == HTTP_HEAD);
    rq->lost = NULL;
    http_rq_free(rq);
    if (err < 0)
        http_conn_close(c);
    else
        http_conn_answered(c);
}

void http_drop(struct http_rq *rq)
{
    struct http_conn *c = rq->conn;

    rq->lost = NULL;
    http_rq_free(rq);
    if (c != NULL)
        http_conn_close(c);
}

void http_error_write(struct http_server *s, struct evbuffer *out, int status, const char *text,
                      struct span headers, bool head_only)
{
    struct writer w, h;

    wr_init(&w, 8192);
    wr_init(&h, 2 * ANSWER_HEADERS_MAX);
    if (s->opts.error_body != NULL) {
        s->opts.error_body(&w, status, text);
    } else {
        wr_str(&w, "{\"error\":");
        sc_json_quote(span_str(text), &w);
        wr_str(&w, "}\n");
    }
    wr_span(&h, headers);
    wr_printf(&h, "Content-Type: %s\r\nCache-Control: no-store\r\n",
              s->opts.error_type == NULL ? "application/json" : s->opts.error_type);
    if (status == 503)
        wr_str(&h, "Retry-After: 1\r\n");
    if (wr_err(&w) == 0 && wr_err(&h) == 0)
        (void)write_answer(s, out, status, blob_span(h.b), true, blob_span(w.b), head_only);
    wr_fini(&w);
    wr_fini(&h);
}

void http_refuse(struct http_rq *rq, int status, const char *text)
{
    struct http_conn *c = rq->conn;

    ASSERT(c != NULL && !rq->handed);
    http_error_write(c->s, bufferevent_get_output(c->bev), status, text, headers_of(rq),
                     rq->head.method == HTTP_HEAD);
    http_rq_free(rq);
    c->close = true;
    http_conn_enter(c, HTTP_LINGERING);
}

/* --- answers in pieces --- */

void http_reply_start(struct http_rq *rq, int status)
{
    struct http_conn *c = rq->conn;

    if (c == NULL)
        return;
    c->streaming = true;
    c->chunked = rq->head.minor > 0 && rq->head.method != HTTP_HEAD;
    if (!c->chunked || !keeps(c, rq))
        c->close = true;
    if (c->chunked)
        http_add_header(rq, "Transfer-Encoding", "chunked");
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (write_head(c->s, out, status, headers_of(rq), c->close) < 0 ||
        evbuffer_add(out, "\r\n", 2) < 0)
        c->dead = true; /* the next piece closes it */
    http_conn_enter(c, HTTP_HANDLING);
}

void http_reply_chunk(struct http_rq *rq, struct evbuffer *bytes, void (*flushed)(void *arg),
                      void *arg)
{
    struct http_conn *c = rq->conn;
    size_t n = evbuffer_get_length(bytes);

    if (c == NULL || n == 0)
        return;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    bool good = !c->dead && (!c->chunked || evbuffer_add_printf(out, "%zx\r\n", n) > 0) &&
                evbuffer_add_buffer(out, bytes) == 0 &&
                (!c->chunked || evbuffer_add(out, "\r\n", 2) == 0);
    if (!good) {
        http_conn_close(c); /* rq is told that it is lost */
        return;
    }
    c->flushed = flushed;
    c->flushed_arg = arg;
    http_conn_enter(c, HTTP_HANDLING);
}

void http_reply_end(struct http_rq *rq)
{
    struct http_conn *c = rq->conn;

    rq->lost = NULL;
    http_rq_free(rq);
    if (c == NULL)
        return;
    c->streaming = false;
    c->flushed = NULL;
    if (c->dead || (c->chunked && evbuffer_add(bufferevent_get_output(c->bev), "0\r\n\r\n", 5) < 0))
        http_conn_close(c);
    else
        http_conn_answered(c);
}
