/*
 * The whole server over real sockets and threads, made for ThreadSanitizer: connections come and go
 * while their fetches are parked and documents arrive; views change; the drain answers long polls.
 * Bounded loops, loopback only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/dispatch.h"
#include "tests/unit/gateway/fake_store.h"

struct server {
    struct fake_store *fs;
    struct gateway *gw;
    pthread_t thread;
    uint16_t port;
    int result;
};

static const struct gw_listen kafka = {.host = "127.0.0.1"};

static struct gw_config config(void)
{
    return (struct gw_config){
        .kafka = &kafka,
        .kafka_n = 1,
        .admin = {.host = "127.0.0.1"},
        .workers = 3,
        .load_threads = 2,
        .cache_bytes = 4 * 1024 * 1024,
        .partitions = 1,
        .max_connections = 6000,
        .max_request_bytes = 1024 * 1024,
        .max_ingest_bytes = 1024 * 1024,
        .conn_output_bytes = 1024 * 1024,
        .idle_ms = 60000,
        .stall_ms = 30000,
        .drain_ms = 5000,
        .max_fetch_sessions = 100,
        .cluster_id = "stress",
    };
}

static void *run(void *arg)
{
    struct server *s = arg;
    s->result = gateway_run(s->gw);
    return NULL;
}

static void start(struct server *s, const struct gw_config *c)
{
    char why[256];
    struct gw_ports ports;

    assert_int_equal(gateway_new(c, &s->fs->base, NULL, &s->gw, why, sizeof why), 0);
    gateway_ports(s->gw, &ports);
    s->port = ports.kafka;
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void stop(struct server *s)
{
    gateway_stop(s->gw);
    pthread_join(s->thread, NULL);
    gateway_free(s->gw);
}

static int dial(const struct server *s)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&in, sizeof in), 0);
    /* A test that waits for ever tells less than one that fails. */
    const struct timeval limit = {.tv_sec = 20};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

/* Fetch v11 of partition 0 of topic "a" at an offset. */
static size_t fetch_frame(uint8_t *out, int32_t correlation, int32_t max_wait_ms, int64_t offset)
{
    struct writer w;

    wr_init(&w, 4096);
    wr_i32(&w, 0);
    wr_i16(&w, KP_API_FETCH);
    wr_i16(&w, 11);
    wr_i32(&w, correlation);
    wr_i16(&w, -1);
    wr_i32(&w, -1); /* replica */
    wr_i32(&w, max_wait_ms);
    wr_i32(&w, 1);
    wr_i32(&w, 1 << 20);
    wr_i8(&w, 0);
    wr_i32(&w, 0); /* session */
    wr_i32(&w, -1);
    wr_i32(&w, 1); /* topics */
    wr_i16(&w, 1);
    wr_str(&w, "a");
    wr_i32(&w, 1); /* partitions */
    wr_i32(&w, 0);
    wr_i32(&w, -1);
    wr_i64(&w, offset);
    wr_i64(&w, -1);
    wr_i32(&w, 1 << 20);
    wr_i32(&w, 0); /* forgotten */
    wr_i16(&w, 0); /* rack */
    wr_poke_i32(&w, 0, (int32_t)wr_len(&w) - 4);
    struct blob *b = wr_take(&w);
    assert_non_null(b);
    memcpy(out, b->data, b->len);
    size_t n = b->len;
    blob_unref(b);
    return n;
}

static void send_all(int fd, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        assert_true(k > 0);
        p += k;
        n -= (size_t)k;
    }
}

/* One frame; 0 when the server closed. */
static size_t recv_frame(int fd, uint8_t *out, size_t cap)
{
    size_t have = 0;
    size_t want = 4;

    while (have < want) {
        ssize_t k = recv(fd, out + have, want - have, 0);
        assert_true(k >= 0 || errno == ECONNRESET); /* else: silence */
        if (k <= 0)
            return 0;
        have += (size_t)k;
        if (have == 4)
            want = 4 + be_load32(out);
        assert_true(want <= cap);
    }
    return have;
}

/* --- clients that come and go --- */

struct client {
    const struct server *s;
    unsigned seed;
    unsigned answers;
};

static void *client(void *arg)
{
    struct client *c = arg;
    static _Thread_local uint8_t buf[2 << 20];
    uint8_t frame[256];

    for (int round = 0; round < 60; round++) {
        int fd = dial(c->s);
        unsigned parked = (unsigned)rand_r(&c->seed) % 5;
        for (unsigned i = 0; i < parked; i++) {
            size_t n = fetch_frame(frame, (int32_t)i, 20, rand_r(&c->seed) % 2 == 0 ? 0 : 1 << 30);
            send_all(fd, frame, n);
        }
        unsigned wait_for = parked == 0 ? 0 : (unsigned)rand_r(&c->seed) % parked;
        for (unsigned i = 0; i < wait_for; i++) {
            assert_true(recv_frame(fd, buf, sizeof buf) > 0);
            assert_int_equal(be_load32(buf + 4), i);
            c->answers++;
        }
        close(fd); /* with the rest still parked */
    }
    return NULL;
}

static void connections_may_close_at_any_moment(void **state)
{
    struct server s = {.fs = fake_store_new()};
    struct gw_config c = config();
    struct client clients[4];
    pthread_t threads[4];
    char name[32];

    (void)state;
    struct fake_journal *a = fake_journal(s.fs, "j/a", "a");
    fake_append(s.fs, a, "{\"n\":0}\n");
    start(&s, &c);
    for (unsigned i = 0; i < 4; i++) {
        clients[i] = (struct client){.s = &s, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, client, &clients[i]), 0);
    }
    for (int i = 0; i < 100; i++) {
        fake_append(s.fs, a, "{\"n\":1}\n");
        if (i % 10 == 0) {
            snprintf(name, sizeof name, "j/x%d", i);
            fake_journal(s.fs, name, "x");
        }
        poll(NULL, 0, 2);
    }
    unsigned answers = 0;
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        answers += clients[i].answers;
    }
    assert_true(answers > 0);
    stop(&s);
    assert_int_equal(s.result, 0);
    fake_store_free(s.fs);
}

static void a_stop_answers_long_polls_and_closes(void **state)
{
    struct server s = {.fs = fake_store_new()};
    struct gw_config c = config();
    uint8_t frame[256];
    static uint8_t buf[1 << 20];
    int fds[20];

    (void)state;
    fake_append(s.fs, fake_journal(s.fs, "j/a", "a"), "{\"n\":0}\n");
    start(&s, &c);
    for (int i = 0; i < 20; i++) {
        fds[i] = dial(&s);
        send_all(fds[i], frame, fetch_frame(frame, i, 0, 0)); /* served: it is there */
        assert_true(recv_frame(fds[i], buf, sizeof buf) > 0);
        send_all(fds[i], frame, fetch_frame(frame, 100 + i, 60000, 8)); /* at the head: waits */
    }
    poll(NULL, 0, 50);
    stop(&s);
    assert_int_equal(s.result, 0);
    for (int i = 0; i < 20; i++) {
        assert_true(recv_frame(fds[i], buf, sizeof buf) > 0);
        assert_int_equal(be_load32(buf + 4), 100 + i);
        assert_int_equal(recv_frame(fds[i], buf, sizeof buf), 0);
        close(fds[i]);
    }
    fake_store_free(s.fs);
}

static void more_connections_than_allowed_are_closed_and_the_others_live(void **state)
{
    struct server s = {.fs = fake_store_new()};
    struct gw_config c = config();
    uint8_t frame[256];
    static uint8_t buf[1 << 20];
    int fds[12];

    (void)state;
    c.max_connections = 8;
    fake_append(s.fs, fake_journal(s.fs, "j/a", "a"), "{\"n\":0}\n");
    start(&s, &c);
    for (int i = 0; i < 12; i++)
        fds[i] = dial(&s);
    size_t n = fetch_frame(frame, 1, 0, 0);
    int served = 0;
    for (int i = 0; i < 12; i++) {
        if (send(fds[i], frame, n, MSG_NOSIGNAL) == (ssize_t)n &&
            recv_frame(fds[i], buf, sizeof buf) > 0)
            served++;
    }
    assert_int_equal(served, 8);
    for (int i = 0; i < 12; i++) /* not earlier: it would make room for those in the queue */
        close(fds[i]);
    stop(&s);
    assert_int_equal(s.result, 0);
    fake_store_free(s.fs);
}

/* The process runs out of descriptors: who cannot be served is closed at once, nothing spins, and
 * all is well when there are descriptors again. */
static void a_client_is_turned_away_when_descriptors_run_out(void **state)
{
    struct server s = {.fs = fake_store_new()};
    struct gw_config c = config();
    struct sockaddr_in in = {.sin_family = AF_INET};
    static uint8_t buf[1 << 20];
    static int fillers[4096];
    struct rlimit old;
    size_t filled = 0;
    uint8_t frame[256];
    int fds[6];

    (void)state;
    fake_append(s.fs, fake_journal(s.fs, "j/a", "a"), "{\"n\":0}\n");
    start(&s, &c);
    /* Stays open: a descriptor that the server freed late would serve one client too many. */
    int first = dial(&s);
    send_all(first, frame, fetch_frame(frame, 4, 0, 0));
    assert_true(recv_frame(first, buf, sizeof buf) > 0);
    in.sin_port = htons(s.port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 6; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    struct rlimit tight = {.rlim_cur = 512, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (filled < 4096 && (fillers[filled] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        filled++;
    const struct timeval limit = {.tv_sec = 20};
    for (int i = 0; i < 6; i++)
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(connect(fds[i], (const struct sockaddr *)&in, sizeof in), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(recv_frame(fds[i], buf, sizeof buf), 0); /* closed, and not left hanging */
    }
    for (int i = 0; i < 6; i++) /* not earlier: it would make room for the next one */
        close(fds[i]);
    while (filled > 0)
        close(fillers[--filled]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    int fd = dial(&s);
    send_all(fd, frame, fetch_frame(frame, 5, 0, 0));
    assert_true(recv_frame(fd, buf, sizeof buf) > 0);
    close(fd);
    close(first);
    stop(&s);
    assert_int_equal(s.result, 0);
    fake_store_free(s.fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_may_close_at_any_moment),
        cmocka_unit_test(a_stop_answers_long_polls_and_closes),
        cmocka_unit_test(more_connections_than_allowed_are_closed_and_the_others_live),
        cmocka_unit_test(a_client_is_turned_away_when_descriptors_run_out),
    };
    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
