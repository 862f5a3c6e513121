/* Log lines, read back from a pipe: form, escaping, limits, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

static int pipe_fd[2];
static int64_t fake_ms;
static char got[65536];

static int64_t fake_wall_ns(void *arg)
{
    (void)arg;
    return INT64_C(1764665679123) * 1000000; /* 2025-12-02T08:54:39.123Z */
}

static int64_t fake_mono_ms(void *arg)
{
    (void)arg;
    return fake_ms;
}

static const struct clock fake_clock = {fake_wall_ns, fake_mono_ms, NULL};

static int capture(void **state)
{
    (void)state;
    if (pipe2(pipe_fd, O_NONBLOCK | O_CLOEXEC) != 0)
        return -1;
    fake_ms = 1000;
    log_set_fd(pipe_fd[1]);
    log_set_clock(&fake_clock);
    log_setup(LOG_INFO, LOG_FORMAT_TEXT);
    return 0;
}

static int release(void **state)
{
    (void)state;
    log_set_fd(STDERR_FILENO);
    log_set_clock(NULL);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    return 0;
}

/* All that was logged since the last call. */
static const char *logged(void)
{
    ssize_t n = read(pipe_fd[0], got, sizeof got - 1);

    got[n < 0 ? 0 : n] = '\0';
    return got;
}

static size_t count_lines(const char *s)
{
    size_t n = 0;

    for (; *s != '\0'; s++)
        n += *s == '\n';
    return n;
}

static void a_text_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    log_event(LOG_INFO, "store.opened", LF_STR("dir", "/x"), LF_INT("journals", -3),
              LF_UINT("bytes", UINT64_MAX));
    assert_string_equal(logged(), "2025-12-02T08:54:39.123Z INFO  store.opened dir=/x journals=-3 "
                                  "bytes=18446744073709551615\n");
    log_event(LOG_ERROR, "store.failed", LF_ERR(E_NOSPACE), LF_ERRNO(ENOENT));
    assert_string_equal(logged(),
                        "2025-12-02T08:54:39.123Z ERROR store.failed err=\"no space left\" "
                        "errno=\"No such file or directory\"\n");
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    assert_false(log_enabled(LOG_DEBUG));
    log_event(LOG_DEBUG, "a.b", LF_INT("n", 1));
    log_peer(LOG_DEBUG, "a.b", LF_INT("n", 1));
    const struct log_field f = LF_INT("n", 1);
    log_event_fields(LOG_DEBUG, "a.b", &f, 1);
    log_peer_fields(LOG_DEBUG, "a.b", &f, 1);
    assert_string_equal(logged(), "");
    log_setup(LOG_DEBUG, LOG_FORMAT_TEXT);
    log_event(LOG_DEBUG, "a.b", LF_INT("n", 1));
    assert_int_equal(count_lines(logged()), 1);
}

static void text_values_cannot_forge_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"plain/x-1.y", "v=plain/x-1.y\n"},
        {"", "v=\"\"\n"},
        {"two words", "v=\"two words\"\n"},
        {"a=b", "v=\"a=b\"\n"},
        {"q\"q", "v=\"q\\\"q\"\n"},
        {"b\\s", "v=\"b\\\\s\"\n"},
        {"x\n2025 ERROR fake", "v=\"x\\n2025 ERROR fake\"\n"},
        {"\r\t", "v=\"\\r\\t\"\n"},
        {"\x1b[31m", "v=\"\\x1b[31m\"\n"},
        {"\x7f", "v=\"\\x7f\"\n"},
        {"gr\xc3\xbc\xc3\x9f", "v=\"gr\xc3\xbc\xc3\x9f\"\n"},
        {"\xf0\x9f\x90\x84", "v=\"\xf0\x9f\x90\x84\"\n"},
        {"\xc2\x9b", "v=\"\\xc2\\x9b\"\n"},          /* C1 control */
        {"\xe2\x80\xa8", "v=\"\\xe2\\x80\\xa8\"\n"}, /* line separator */
        {"\xed\xa0\x80", "v=\"\\xed\\xa0\\x80\"\n"}, /* surrogate */
        {"\xc0\xaf", "v=\"\\xc0\\xaf\"\n"},          /* over-long */
        {"\xf4\x90\x80\x80", "v=\"\\xf4\\x90\\x80\\x80\"\n"},
        {"\xe2\x82", "v=\"\\xe2\\x82\"\n"}, /* cut */
        {"\xff", "v=\"\\xff\"\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_event(LOG_INFO, "e", LF_STR("v", rows[i].in));
        assert_string_equal(strstr(logged(), "v="), rows[i].out);
    }
    log_event(LOG_INFO, "e", LF_SPAN("v", span_of("a\0b", 3)), LF_STR("w", NULL));
    assert_string_equal(strstr(logged(), "v="), "v=\"a\\x00b\" w=(null)\n");
}

static void json_lines_parse_and_keep_the_value(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_FORMAT_JSON);
    log_event(LOG_WARN, "conn.bad", LF_STR("peer", "a\"b\\c\n\x01\x1f \xc3\xbc"), LF_INT("n", -5),
              LF_UINT("u", 7), LF_ERR(E_SHORT));
    json_t *o = json_loads(logged(), 0, NULL);
    assert_non_null(o);
    assert_int_equal(count_lines(got), 1);
    assert_string_equal(json_string_value(json_object_get(o, "ts")), "2025-12-02T08:54:39.123Z");
    assert_string_equal(json_string_value(json_object_get(o, "level")), "WARN");
    assert_string_equal(json_string_value(json_object_get(o, "event")), "conn.bad");
    assert_string_equal(json_string_value(json_object_get(o, "peer")),
                        "a\"b\\c\n\x01\x1f \xc3\xbc");
    assert_int_equal(json_integer_value(json_object_get(o, "n")), -5);
    assert_int_equal(json_integer_value(json_object_get(o, "u")), 7);
    assert_string_equal(json_string_value(json_object_get(o, "err")), "input ends inside a field");
    json_decref(o);
}

static void json_lines_stay_well_formed_for_every_byte(void **state)
{
    (void)state;
    uint8_t bytes[256];

    log_setup(LOG_INFO, LOG_FORMAT_JSON);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    log_event(LOG_INFO, "e", LF_SPAN("v", span_of(bytes, sizeof bytes)));
    json_t *o = json_loads(logged(), JSON_ALLOW_NUL, NULL);
    assert_non_null(o);
    assert_int_equal(count_lines(got), 1);
    json_decref(o);
}

static void long_values_are_cut_and_too_many_fields_left_out(void **state)
{
    (void)state;
    static char big[5000];
    struct log_field fields[20];

    memset(big, '\x01', sizeof big);
    for (size_t i = 0; i < 20; i++)
        fields[i] = LF_SPAN("field", span_of(big, sizeof big));
    log_event_fields(LOG_INFO, "e", fields, 20);
    assert_int_equal(count_lines(logged()), 1);
    assert_true(strlen(got) < 4096);
    assert_non_null(strstr(got, "...\""));
    assert_non_null(strstr(got, " truncated=true\n"));

    log_setup(LOG_INFO, LOG_FORMAT_JSON);
    log_event_fields(LOG_INFO, "e", fields, 20);
    json_t *o = json_loads(logged(), 0, NULL);
    assert_non_null(o);
    assert_true(json_is_true(json_object_get(o, "truncated")));
    json_decref(o);
}

static void events_of_peers_are_limited_and_the_losses_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        log_peer(LOG_WARN, "conn.bad_frame", LF_INT("i", i));
    assert_int_equal(count_lines(logged()), LOG_PEER_BURST);
    log_peer(LOG_WARN, "conn.other", LF_INT("i", 0)); /* has a bucket of its own */
    assert_int_equal(count_lines(logged()), 1);
    assert_null(strstr(got, "dropped"));

    fake_ms += 1000 / LOG_PEER_PER_SECOND - 1;
    log_peer(LOG_WARN, "conn.bad_frame", LF_INT("i", 100));
    assert_string_equal(logged(), "");
    fake_ms += 1;
    log_peer(LOG_WARN, "conn.bad_frame", LF_INT("i", 101));
    log_peer(LOG_WARN, "conn.bad_frame", LF_INT("i", 102));
    assert_int_equal(count_lines(logged()), 1);
    assert_non_null(strstr(got, "conn.bad_frame dropped=81 i=101\n"));

    fake_ms += 1000000000; /* a rest fills the bucket, not more */
    for (int i = 0; i < 100; i++)
        log_peer(LOG_WARN, "conn.bad_frame", LF_INT("i", i));
    assert_int_equal(count_lines(logged()), LOG_PEER_BURST);
    assert_non_null(strstr(got, "dropped=1 i=0\n"));

    for (int i = 0; i < 100; i++) /* no limit for our own events */
        log_event(LOG_INFO, "conn.bad_frame", LF_INT("i", i));
    assert_int_equal(count_lines(logged()), 100);
}

static void more_events_than_the_table_holds_share_a_bucket(void **state)
{
    (void)state;
    static char names[200][24];
    size_t lines = 0;

    for (int i = 0; i < 200; i++)
        snprintf(names[i], sizeof names[i], "event.%d", i);
    for (int i = 0; i < 200; i++) {
        log_peer(LOG_WARN, names[i], LF_INT("i", i));
        lines += count_lines(logged());
    }
    assert_int_equal(lines, 63 + LOG_PEER_BURST);
}

static void a_sink_that_cannot_take_a_line_stops_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) /* the pipe is full long before */
        log_event(LOG_INFO, "e", LF_STR("v", "0123456789abcdef"));
    errno = 77;
    log_event(LOG_INFO, "e", LF_INT("i", 1));
    assert_int_equal(errno, 77);
    log_set_fd(-1);
    log_event(LOG_INFO, "e", LF_INT("i", 1));
}

/* A journald that stopped, `| less`, ^S: nobody reads, and the descriptor blocks. */
static void a_sink_that_nobody_reads_blocks_nobody_and_the_loss_is_told(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int fd[2], lines = 0, seen = 0;
        char line[200], *at;

        if (kind == 0)
            assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
        else
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        log_set_fd(fd[1]);
        log_event(LOG_INFO, "start", LF_INT("n", 0)); /* and what others lost before */
        assert_true(read(fd[0], got, sizeof got) > 0);
        for (; lines < 20000; lines++)
            log_event(LOG_INFO, "flood", LF_INT("n", lines));
        assert_int_equal(fcntl(fd[1], F_GETFL) & O_NONBLOCK, 0); /* others share the open file */
        assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
        for (ssize_t n; (n = read(fd[0], got, sizeof got - 1)) > 0;)
            for (ssize_t i = 0; i < n; i++)
                seen += got[i] == '\n';
        assert_in_range(seen, 100, lines - 1);
        log_event(LOG_INFO, "again", LF_INT("n", 1));
        ssize_t n = read(fd[0], got, sizeof got - 1);
        assert_true(n > 0);
        got[n] = '\0';
        assert_non_null(strstr(got, " again n=1\n"));
        assert_non_null(at = strstr(got, " log.lost lines="));
        /* a line that went in part is finished first, and counts as sent */
        int left = got[0] == '2' && strncmp(got, "2025-12-02", 10) == 0 ? 0 : 1;
        snprintf(line, sizeof line, " log.lost lines=%d\n", lines - seen - left);
        assert_string_equal(at, line);
        log_set_fd(STDERR_FILENO);
        close(fd[0]);
        close(fd[1]);
    }
}

static void the_error_table_is_consistent(void **state)
{
    (void)state;
    assert_string_equal(err_text(0), "ok");
    assert_string_equal(err_name(0), "E_OK");
    assert_string_equal(err_text(E_SHORT), "input ends inside a field");
    assert_string_equal(err_name(E_SHORT), "E_SHORT");
    assert_string_equal(err_text(1), "unknown error");
    assert_string_equal(err_name(-9999), "E_?");
    assert_int_equal(err_class_of(E_SHORT), ERR_PEER);
    assert_int_equal(err_class_of(E_AGAIN), ERR_RETRY);
    assert_int_equal(err_class_of(E_NOMEM), ERR_LOCAL);
    assert_int_equal(err_class_of(E_CLOSED), ERR_FATAL);
    assert_int_equal(err_class_of(-9999), ERR_LOCAL);
#define X(name, value, class, text)                                                                \
    assert_true((name) < 0);                                                                       \
    assert_string_equal(err_name(name), #name);                                                    \
    assert_string_equal(err_text(name), text);                                                     \
    assert_int_equal(err_class_of(name), class);
    ERR_TABLE(X)
#undef X
}

static void errno_values_map_to_the_nearest_code(void **state)
{
    (void)state;
    assert_int_equal(err_from_errno(ENOSPC), E_NOSPACE);
    assert_int_equal(err_from_errno(EDQUOT), E_NOSPACE);
    assert_int_equal(err_from_errno(ENOMEM), E_NOMEM);
    assert_int_equal(err_from_errno(ENOENT), E_NOTFOUND);
    assert_int_equal(err_from_errno(EEXIST), E_EXISTS);
    assert_int_equal(err_from_errno(EBADF), E_IO);
}

static void the_system_clock_moves_forward(void **state)
{
    (void)state;
    const struct clock *c = clock_system();
    int64_t before = clock_mono_ms(c);

    assert_true(clock_wall_ns(c) > INT64_C(1700000000) * 1000000000);
    assert_true(clock_mono_ms(c) >= before);
}

int main(void)
{
#define CAPTURED(f) cmocka_unit_test_setup_teardown(f, capture, release)
    const struct CMUnitTest tests[] = {
        CAPTURED(a_text_line_has_time_level_event_and_fields),
        CAPTURED(lines_below_the_level_are_not_written),
        CAPTURED(text_values_cannot_forge_a_line),
        CAPTURED(json_lines_parse_and_keep_the_value),
        CAPTURED(json_lines_stay_well_formed_for_every_byte),
        CAPTURED(long_values_are_cut_and_too_many_fields_left_out),
        CAPTURED(events_of_peers_are_limited_and_the_losses_counted),
        CAPTURED(more_events_than_the_table_holds_share_a_bucket),
        CAPTURED(a_sink_that_cannot_take_a_line_stops_nobody),
        CAPTURED(a_sink_that_nobody_reads_blocks_nobody_and_the_loss_is_told),
        cmocka_unit_test(the_error_table_is_consistent),
        cmocka_unit_test(errno_values_map_to_the_nearest_code),
        cmocka_unit_test(the_system_clock_moves_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
