/*
 * Objects by HTTP, over a server that answers as each row says: what is taken, what is refused, and
 * that a store which is slow or fails is left alone. The server serves one connection at a time.
 */
#include "tests/contract/store_lab.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "journal_client/gazette/direct.h"

#define SIZE 5000

struct server {
    int fd;
    pthread_t thread;
    char url[64];
    const char *head; /* of each answer; NULL: 206 as asked */
    size_t body;      /* bytes of it, with a head */
    unsigned asked;
    char request[1000]; /* the last one */
};

static uint8_t object[SIZE];

static void say(int c, const void *p, size_t n)
{
    if (n > 0)
        (void)send(c, p, n, MSG_NOSIGNAL);
}

/* The number that p begins with, and what lies behind it and one character more. */
static int64_t number(const char **p)
{
    size_t n = strspn(*p, "0123456789");
    int64_t v = -1;

    assert_int_equal(num_parse_i64(span_of(*p, n), &v), 0);
    *p += n + 1;
    return v;
}

static void answer(struct server *v, int c)
{
    const char *range = strstr(v->request, "Range: bytes=");
    int64_t from = 0, to = SIZE - 1;
    size_t body = v->body;
    char line[100] = "HTTP/1.1 200 OK", head[300];
    int n;

    if (range != NULL) {
        range += strlen("Range: bytes=");
        from = number(&range);
        to = number(&range);
        (void)snprintf(line, sizeof line, "HTTP/1.1 206 x\r\nContent-Range: bytes %d-%d/%d",
                       (int)from, (int)to, SIZE);
    }
    if (v->head == NULL)
        body = (size_t)(to - from + 1);
    else
        from = 0;
    n = snprintf(head, sizeof head, "%s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                 v->head == NULL ? line : v->head, body);
    say(c, head, (size_t)n);
    say(c, object + from, body);
}

static void *serve(void *arg)
{
    struct server *v = arg;
    int c;

    while ((c = accept(v->fd, NULL, NULL)) >= 0) {
        size_t n = 0;
        ssize_t got;
        while (n < sizeof v->request - 1 &&
               (got = recv(c, v->request + n, sizeof v->request - 1 - n, 0)) > 0) {
            n += (size_t)got;
            v->request[n] = '\0';
            if (strstr(v->request, "\r\n\r\n") != NULL)
                break;
        }
        v->asked++;
        answer(v, c);
        (void)shutdown(c, SHUT_WR);
        (void)close(c);
    }
    return NULL;
}

struct bench {
    struct gz_store s;
    struct server v;
    struct writer got;
};

static int take(void *arg, struct span bytes)
{
    struct bench *b = arg;

    wr_bytes(&b->got, bytes.p, bytes.n);
    return 0;
}

static void start(struct bench *b)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;

    for (size_t i = 0; i < SIZE; i++)
        object[i] = (uint8_t)(i * 31 + i / 7);
    b->s.hub.clock = clock_system();
    assert_int_equal(pthread_mutex_init(&b->s.curl_lock, NULL), 0);
    assert_true((b->v.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
    assert_int_equal(bind(b->v.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(b->v.fd, 16), 0);
    assert_int_equal(getsockname(b->v.fd, (struct sockaddr *)&at, &n), 0);
    (void)snprintf(b->v.url, sizeof b->v.url, "http://127.0.0.1:%u/o", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&b->v.thread, NULL, serve, &b->v), 0);
    wr_init(&b->got, 1 << 20);
}

static void stop(struct bench *b)
{
    (void)shutdown(b->v.fd, SHUT_RDWR);
    (void)pthread_join(b->v.thread, NULL);
    (void)close(b->v.fd);
    gz_http_end(&b->s);
    (void)pthread_mutex_destroy(&b->s.curl_lock);
    wr_fini(&b->got);
}

static const struct gz_object_ask part = {.from = 100, .to = 1099, .size = SIZE};
static const struct gz_object_ask whole = {.from = 0, .to = SIZE - 1, .size = SIZE};
static const struct gz_object_ask all = {.to = -1, .size = -1};

static int get(struct bench *b, const struct gz_object_ask *ask)
{
    wr_fini(&b->got);
    wr_init(&b->got, 1 << 20);
    b->s.origins = (struct gz_origins){0};
    return gz_http_get(&b->s, b->v.url, ask, take, b);
}

static void what_was_asked_for_is_taken(void **state)
{
    struct bench b = {0};

    (void)state;
    start(&b);
    assert_int_equal(get(&b, &part), 0);
    assert_int_equal(wr_len(&b.got), 1000);
    assert_memory_equal(b.got.b->data, object + 100, 1000);
    assert_non_null(strstr(b.v.request, "Accept-Encoding: identity"));
    assert_int_equal(get(&b, &whole), 0);
    assert_memory_equal(b.got.b->data, object, SIZE);
    assert_int_equal(get(&b, &all), 0);
    assert_int_equal(wr_len(&b.got), SIZE);
    assert_null(strstr(b.v.request, "Range:"));
    b.v.head = "HTTP/1.1 200 OK"; /* a server that knows no ranges */
    b.v.body = SIZE;
    assert_int_equal(get(&b, &whole), 0);
    assert_memory_equal(b.got.b->data, object, SIZE);
    stop(&b);
}

static void something_else_is_not_taken_at_all(void **state)
{
    static const struct {
        const char *head;
        size_t body;
        int err;
    } rows[] = {
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 0-999/5000", 1000, E_IO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-1099/6000", 1000, E_IO},
        {"HTTP/1.1 206 x", 1000, E_IO},
        {"HTTP/1.1 200 OK", 1000, E_IO},
        {"HTTP/1.1 200 OK", SIZE, E_IO},
        {"HTTP/1.1 200 OK", 0, E_IO},
        {"HTTP/1.1 204 x", 0, E_IO},
        {"HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/", 1000, E_IO},
        {"HTTP/1.1 302 x\r\nLocation: /o", 0, E_IO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-1099/5000\r\nContent-Encoding: gzip", 1000,
         E_IO},
        {"HTTP/1.1 403 x", 10, E_DENIED},
        {"HTTP/1.1 404 x", 10, E_NOTFOUND},
        {"HTTP/1.1 416 x", 10, E_IO},
        {"HTTP/1.1 500 x", 10, E_IO},
        {"nonsense", 10, E_IO},
    };
    struct bench b = {0};

    (void)state;
    start(&b);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned before = b.v.asked;
        b.v.head = rows[i].head;
        b.v.body = rows[i].body;
        int err = get(&b, &part);
        if (err != rows[i].err || wr_len(&b.got) > 0 || b.v.asked != before + 1)
            fail_msg("%s: %s, %zu bytes, asked %u times", rows[i].head, err_name(err),
                     wr_len(&b.got), b.v.asked - before);
    }
    stop(&b);
}

/* It is asked nothing for a while; that is another answer than a failure, and tells of none. */
static void a_store_that_failed_is_not_asked_at_once(void **state)
{
    struct bench b = {0};

    (void)state;
    start(&b);
    b.v.head = "HTTP/1.1 503 x";
    assert_int_equal(get(&b, &part), E_IO);
    assert_true(gz_http_paused(&b.s, b.v.url));
    b.v.head = NULL;
    assert_int_equal(gz_http_get(&b.s, b.v.url, &part, take, &b), E_UNSUPPORTED);
    assert_int_equal(b.v.asked, 1);
    b.s.origins.v[0].until_ms = 0; /* the pause is over */
    assert_int_equal(gz_http_get(&b.s, b.v.url, &part, take, &b), 0);
    assert_false(gz_http_paused(&b.s, b.v.url));
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_asked_for_is_taken),
        cmocka_unit_test(something_else_is_not_taken_at_all),
        cmocka_unit_test(a_store_that_failed_is_not_asked_at_once),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
