/*
 * How connections to brokers come and go: a name with several addresses, names that lead nowhere,
 * brokers that are about to leave, and proxies that bound the calls of a connection.
 */
#include "tests/contract/gazette_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include "journal_client/gazette/grpc.h"

#define WAIT_S 20

/* --- names --- */

/* A pool of its own, that looks names up in a file. */
struct names {
    char dir[256], hosts[300], log[300];
    struct stand_in *si;
    struct event_base *base;
    struct gz_pool *pool;
    struct gz_call *call;
    bool ended;
    int err;
};

static void on_message(void *arg, struct span msg)
{
    (void)arg;
    (void)msg;
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct names *n = arg;

    n->call = NULL;
    n->ended = true;
    n->err = end->err;
    (void)event_base_loopbreak(n->base);
}

static void names_start(struct names *n, const char *hosts, const char *broker)
{
    const struct stand_in_opts so = {0};
    char at[64], why[256];

    *n = (struct names){0};
    assert_int_equal(temp_dir_make(n->dir, sizeof n->dir), 0);
    (void)snprintf(n->hosts, sizeof n->hosts, "%s/hosts", n->dir);
    (void)snprintf(n->log, sizeof n->log, "%s/log", n->dir);
    FILE *f = fopen(n->hosts, "we");
    assert_non_null(f);
    assert_true(fputs(hosts, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(stand_in_start(&so, &n->si), 0);
    assert_non_null(n->base = event_base_new());
    (void)snprintf(at, sizeof at, "%s:%u", broker, stand_in_port(n->si));
    const struct gz_pool_opts o = {.endpoints = at, .hosts_file = n->hosts, .connect_ms = 3000};
    assert_int_equal(gz_pool_new(n->base, &o, &n->pool, why, sizeof why), 0);
}

static void names_end(struct names *n)
{
    gz_pool_free(n->pool);
    event_base_free(n->base);
    stand_in_stop(n->si);
    temp_dir_remove(n->dir);
}

/* One call; how it ended. */
static int names_call(struct names *n)
{
    static const struct timeval limit = {WAIT_S, 0};
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = n};

    n->ended = false;
    assert_int_equal(gz_pool_call(n->pool, NULL, "List", 10000, &cb, &n->call), 0);
    assert_int_equal(gz_call_send(n->call, span_of(NULL, 0), span_of(NULL, 0)), 0);
    gz_call_finish(n->call);
    assert_int_equal(event_base_loopexit(n->base, &limit), 0);
    while (!n->ended)
        assert_int_equal(event_base_dispatch(n->base), 0);
    return n->err;
}

static void each_address_of_a_name_is_tried(void **state)
{
    static const char *const hosts[] = {
        "127.0.0.1 broker.test\n", "127.0.0.9 broker.test\n127.0.0.1 broker.test\n",
        "127.0.0.9 broker.test\n127.0.0.10 broker.test\n127.0.0.1 broker.test\n",
        "::1 broker.test\n127.0.0.1 broker.test\n", /* it listens to the latter alone */
    };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct names n;
        names_start(&n, hosts[i], "broker.test");
        assert_int_equal(names_call(&n), 0);
        assert_int_equal(names_call(&n), 0);
        names_end(&n);
    }
}

/* What was logged meanwhile. */
static void expect_logged(struct names *n, int (*call)(struct names *n), const char *text)
{
    char log[4096] = "";
    int fd = open(n->log, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    log_set_fd(fd);
    int err = call(n);
    log_set_fd(STDERR_FILENO);
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    assert_int_equal(err, E_AGAIN);
    assert_true(pread(fd, log, sizeof log - 1, 0) >= 0);
    assert_int_equal(close(fd), 0);
    if (strstr(log, text) == NULL)
        fail_msg("no \"%s\" in: %s", text, log);
}

static void why_no_connection_came_about_is_told(void **state)
{
    struct names n;

    (void)state;
    names_start(&n, "127.0.0.1 other.test\n", "broker.test");
    expect_logged(&n, names_call, "looking up its name timed out");
    names_end(&n);
    names_start(&n, "127.0.0.9 broker.test\n127.0.0.10 broker.test\n", "broker.test");
    expect_logged(&n, names_call, "Connection refused");
    names_end(&n);
}

/* Its answer comes when the event base runs once more. */
static void a_store_may_close_while_a_name_is_looked_up(void **state)
{
    char dir[256], why[256];
    struct jc_store *s;

    (void)state;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    for (int i = 0; i < 3; i++) {
        const struct jc_gazette_opts o = {
            .brokers = "broker.example.invalid:8080", .data_dir = dir, .probe = lab_probe};
        struct lab lab;
        assert_int_equal(jc_gazette_open(&o, &s, why, sizeof why), 0);
        lab_init(&lab, s);
        lab_settle(&lab, i * 20);
        lab_fini(&lab);
    }
    temp_dir_remove(dir);
}

/* --- leaving --- */

/* A broker ends its own process behind the last call: watches and tails must not hold it up. */
static void a_broker_that_leaves_is_not_held_up_by_what_waits(void **state)
{
    struct bench b = {0};

    (void)state;
    bench_start(&b);
    bench_follow(&b);
    assert_int_equal(bench_append(&b, 3), 0);
    bench_expect_head(&b);
    while (stand_in_running(b.si, STAND_IN_READ) == 0)
        lab_settle(&b.lab, 20);
    uint64_t lists = stand_in_calls(b.si, STAND_IN_LIST);
    uint64_t reads = stand_in_calls(b.si, STAND_IN_READ);
    int64_t since = clock_mono_ms(clock_system());
    stand_in_end_calls(b.si, STAND_IN_ANY, STAND_IN_GOAWAY, 0);
    while (stand_in_calls(b.si, STAND_IN_LIST) == lists ||
           stand_in_calls(b.si, STAND_IN_READ) == reads) {
        lab_settle(&b.lab, 20);
        assert_true(clock_mono_ms(clock_system()) - since < 10000);
    }
    assert_int_equal(bench_append(&b, 3), 0);
    bench_expect_head(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

/* --- bounds --- */

static void calls_above_the_bound_of_a_connection_take_another(void **state)
{
    struct bench b = {.so = {.max_streams = 3}};
    const struct jc_journal *j[8];
    struct jc_op *follow[8];
    struct lab_heads heads[8] = {0};

    (void)state;
    bench_start(&b);
    for (size_t i = 0; i < 8; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "bench/other/part-%03zu", i);
        j[i] = lab_create(&b.lab, name);
        const struct jc_follower f = {
            .ex = &b.lab.mb.ex, .on_heads = lab_on_heads, .arg = &heads[i]};
        assert_int_equal(b.lab.s->ops->follow(b.lab.s, j[i], &f, &follow[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) /* each of them has a long read */
        lab_wait(&b.lab, &heads[i].done);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(lab_append(&b.lab, j[i], "C1:one\n"), 0);
    for (size_t i = 0; i < 8; i++) {
        while (heads[i].h.content_end < 7)
            assert_true(mailbox_wait(&b.lab.mb, LAB_WAIT_MS) > 0);
        b.lab.s->ops->cancel(follow[i]);
        jc_journal_unref(j[i]);
    }
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_of_a_name_is_tried),
        cmocka_unit_test(why_no_connection_came_about_is_told),
        cmocka_unit_test(a_store_may_close_while_a_name_is_looked_up),
        cmocka_unit_test(a_broker_that_leaves_is_not_held_up_by_what_waits),
        cmocka_unit_test(calls_above_the_bound_of_a_connection_take_another),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
