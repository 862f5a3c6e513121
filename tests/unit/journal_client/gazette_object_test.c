/* What an object store's answer must be, and stores that are left alone. */
#include "tests/contract/store_lab.h"

#include "journal_client/gazette/object.h"

/* Head lines by '|'. */
static struct gz_object_answer answer_of(const char *head)
{
    struct gz_object_answer a = {.status = 99};
    char line[200];

    while (*head != '\0') {
        size_t n = strcspn(head, "|");
        (void)snprintf(line, sizeof line, "%.*s\r\n", (int)n, head);
        gz_object_header(&a, span_str(line));
        head += n + (head[n] == '|');
    }
    return a;
}

static const struct gz_object_ask part = {.from = 100, .to = 199, .size = 1000};
static const struct gz_object_ask whole = {.from = 0, .to = 999, .size = 1000};
static const struct gz_object_ask all = {.to = -1, .size = -1, .encoded = true};

static const struct {
    const char *head;
    int of_part, of_whole, of_all;
} rows[] = {
    {"HTTP/1.1 206 Partial Content|Content-Range: bytes 100-199/1000", 0, E_IO, E_IO},
    {"HTTP/2 206|content-range:bytes 100-199/1000 ", 0, E_IO, E_IO},
    {"HTTP/1.1 206 x|CONTENT-RANGE: Bytes 100-199/*", 0, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 0-999/1000", E_IO, 0, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 0-99/1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-198/1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199/2000", E_IO, E_IO, E_IO}, /* another object */
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199/150", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes */1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: 100-199/1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-99999999999999999999/1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199/1000|Content-Range: bytes 0-99/1000", E_IO, E_IO,
     E_IO},
    {"HTTP/1.1 206 x", E_IO, E_IO, E_IO}, /* multipart/byteranges has none */
    {"HTTP/1.1 200 OK", E_IO, 0, 0},
    {"HTTP/1.1 200 OK|Content-Encoding: identity", E_IO, 0, 0},
    {"HTTP/1.1 200 OK|Content-Encoding: gzip", E_IO, E_IO, 0},
    {"HTTP/1.1 200 OK|Content-Range: bytes 100-199/1000", E_IO, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199/1000|Content-Encoding: br", E_IO, E_IO, E_IO},
    {"HTTP/1.1 302 Found|Location: http://other/|Content-Range: bytes 100-199/1000", E_IO, E_IO,
     E_IO},
    {"HTTP/1.1 307 x|Location: /", E_IO, E_IO, E_IO},
    {"HTTP/1.1 203 x", E_IO, E_IO, E_IO},
    {"HTTP/1.1 204 x", E_IO, E_IO, E_IO},
    {"HTTP/1.1 304 x", E_IO, E_IO, E_IO},
    {"HTTP/1.1 401 x", E_DENIED, E_DENIED, E_DENIED},
    {"HTTP/1.1 403 x", E_DENIED, E_DENIED, E_DENIED},
    {"HTTP/1.1 404 x", E_NOTFOUND, E_NOTFOUND, E_NOTFOUND},
    {"HTTP/1.1 416 x|Content-Range: bytes */50", E_IO, E_IO, E_IO},
    {"HTTP/1.1 503 x", E_IO, E_IO, E_IO},
    {"HTTP/1.1", E_IO, E_IO, E_IO},
    {"HTTP/1.1 -206 x|Content-Range: bytes 100-199/1000", E_IO, E_IO, E_IO},
    {"", E_IO, E_IO, E_IO},
    /* What came before the last status line is forgotten. */
    {"HTTP/1.1 103 Early|Content-Range: bytes 0-1/2|HTTP/1.1 206 x|Content-Range: bytes "
     "100-199/1000",
     0, E_IO, E_IO},
    {"HTTP/1.1 206 x|Content-Range: bytes 100-199/1000|HTTP/1.1 206 x", E_IO, E_IO, E_IO},
};

static void only_the_answer_that_was_asked_for_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gz_object_answer a = answer_of(rows[i].head);
        if (gz_object_judge(&a, &part) != rows[i].of_part ||
            gz_object_judge(&a, &whole) != rows[i].of_whole ||
            gz_object_judge(&a, &all) != rows[i].of_all)
            fail_msg("%s: %d %d %d", rows[i].head, gz_object_judge(&a, &part),
                     gz_object_judge(&a, &whole), gz_object_judge(&a, &all));
    }
}

#define URL  span_str("https://store.example:9000/bucket/a/b?X-Signature=x")
#define SAME span_str("https://store.example:9000/other")
#define ELSE span_str("https://else.example/bucket")

static void a_store_is_told_by_scheme_host_and_port(void **state)
{
    (void)state;
    assert_true(span_eq_str(gz_origin_of(URL), "https://store.example:9000"));
    assert_true(span_eq(gz_origin_of(URL), gz_origin_of(SAME)));
    assert_true(span_eq_str(gz_origin_of(span_str("http://h")), "http://h"));
    assert_int_equal(gz_origin_of(span_str("")).n, 0);
}

static void a_store_that_fails_is_left_alone_ever_longer(void **state)
{
    struct gz_origins o = {0};
    int64_t now = 5000, pause = 1000;

    (void)state;
    assert_true(gz_origin_begin(&o, URL, now));
    for (int i = 0; i < 12; i++) {
        gz_origin_ended(&o, URL, E_IO, now);
        assert_true(gz_origin_paused(&o, SAME, now + pause - 1));
        assert_false(gz_origin_begin(&o, SAME, now + pause - 1));
        assert_false(gz_origin_paused(&o, ELSE, now));
        now += pause;
        assert_false(gz_origin_paused(&o, SAME, now));
        assert_true(gz_origin_begin(&o, SAME, now)); /* one tries it, */
        assert_true(gz_origin_paused(&o, URL, now)); /* the others wait for what that one says */
        assert_false(gz_origin_begin(&o, URL, now + 100));
        pause = pause * 2 < 300000 ? pause * 2 : 300000;
    }
    gz_origin_ended(&o, URL, E_CLOSED, now); /* says nothing of it */
    assert_true(gz_origin_begin(&o, URL, now));
    gz_origin_ended(&o, URL, 0, now);
    assert_true(gz_origin_begin(&o, URL, now) && gz_origin_begin(&o, URL, now));
    gz_origin_ended(&o, URL, E_NOTFOUND, now); /* an object that was removed */
    gz_origin_ended(&o, URL, E_CORRUPT, now);  /* one that is damaged */
    assert_false(gz_origin_paused(&o, URL, now));
}

static void a_slow_store_is_left_alone_for_longer(void **state)
{
    struct gz_origins o = {0};

    (void)state;
    gz_origin_ended(&o, URL, E_TIMEOUT, 0);
    assert_true(gz_origin_paused(&o, URL, 9999));
    /* Transfers that began beside it count once, and one of them that came through says nothing. */
    gz_origin_ended(&o, URL, E_TIMEOUT, 10);
    gz_origin_ended(&o, URL, 0, 20);
    assert_true(gz_origin_paused(&o, URL, 9999));
    assert_false(gz_origin_paused(&o, URL, 10000));
}

static void more_stores_than_places_take_that_of_the_first_to_be_asked(void **state)
{
    struct gz_origins o = {0};
    char url[64];

    (void)state;
    for (int i = 0; i < 3 * GZ_ORIGINS; i++) {
        (void)snprintf(url, sizeof url, "http://s%d/x", i);
        gz_origin_ended(&o, span_str(url), E_IO, i);
        assert_true(gz_origin_paused(&o, span_str(url), i));
    }
    for (int i = 0; i < 3 * GZ_ORIGINS; i++) {
        (void)snprintf(url, sizeof url, "http://s%d/x", i);
        assert_int_equal(gz_origin_paused(&o, span_str(url), 100), i >= 2 * GZ_ORIGINS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_answer_that_was_asked_for_is_taken),
        cmocka_unit_test(a_store_is_told_by_scheme_host_and_port),
        cmocka_unit_test(a_store_that_fails_is_left_alone_ever_longer),
        cmocka_unit_test(a_slow_store_is_left_alone_for_longer),
        cmocka_unit_test(more_stores_than_places_take_that_of_the_first_to_be_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
