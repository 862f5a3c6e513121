/* HTTP heads and chunks: what is understood, and what two readers could understand differently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/http_parse.h"

static struct arena arena;
static struct http_head head;

static int parse(const char *text)
{
    struct span s = span_str(text);
    size_t end = http_head_end(s, 0);
    const char *why = NULL;

    arena_reset(&arena);
    assert_int_equal(end, s.n);
    int status = http_head_parse(s, &arena, &head, &why);
    assert_true(status == 0 || why != NULL);
    return status;
}

static void a_head_gives_method_target_and_headers(void **state)
{
    (void)state;
    assert_int_equal(parse("\r\nPOST /a?b=c HTTP/1.1\r\nHost: x\r\nX-One:\t v 1 \r\n"
                           "Content-Length: 12\r\n\r\n"),
                     0);
    assert_int_equal(head.method, HTTP_POST);
    assert_string_equal(head.target, "/a?b=c");
    assert_string_equal(http_head_find(&head, "x-one"), "v 1");
    assert_null(http_head_find(&head, "x-two"));
    assert_true(head.has_length && head.length == 12 && head.keep_alive && !head.chunked);
    assert_int_equal(parse("GET / HTTP/1.0\nConnection: x, Keep-Alive\n\n"), 0);
    assert_true(head.keep_alive && head.minor == 0);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 0);
    assert_false(head.keep_alive);
    assert_int_equal(parse("BREW / HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    assert_int_equal(head.method, HTTP_OTHER);
}

static void what_two_readers_could_read_differently_is_refused(void **state)
{
    static const struct {
        int status;
        const char *headers;
    } rows[] = {
        {400, "Content-Length : 8\r\n"},
        {400, "Content-Length: 8\r\nContent-Length: 8\r\n"},
        {400, "Content-Length: 8\r\nTransfer-Encoding: chunked\r\n"},
        {400, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"},
        {400, "Content-Length: +8\r\n"},
        {400, "Content-Length: 8, 8\r\n"},
        {400, "Content-Length:\r\n"},
        {400, "Content-Length: 99999999999999999999999\r\n"},
        {400, "Content-Length: 8\r\n folded: 1\r\n"},
        {400, "Content-Length: 8\r\nno colon\r\n"},
        {400, "Content-Length: 8\r\nHost: y\r\n"},
        {400, "Content-Length: 8\r\nX: a\rb\r\n"},
        {411, "X: y\r\n"},
        {417, "Content-Length: 8\r\nExpect: a miracle\r\n"},
        {501, "Transfer-Encoding: gzip, chunked\r\n"},
        {0, "Transfer-Encoding: Chunked\r\n"},
        {0, "Content-Length: 0\r\n"},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n", rows[i].headers);
        assert_int_equal(parse(text), rows[i].status);
    }
    assert_int_equal(parse("GET / HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
    assert_int_equal(parse("GET  / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    assert_int_equal(parse("GET / HTTP/1.1 \r\nHost: x\r\n\r\n"), 400);
    assert_int_equal(parse("GET /\r\n\r\n"), 400);
    assert_int_equal(parse("G(T / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
}

static void the_end_of_a_head_is_found_however_it_arrives(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nbody";
    size_t want = sizeof text - 1 - 4, from = 0;

    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        assert_int_equal(http_head_end(span_of(text, n), from), n >= want ? want : 0);
        from = n < want ? n : 0;
    }
}

/* Decodes text in pieces of `step` bytes into out. */
static enum http_chunk_step decode(const char *text, size_t step, char *out)
{
    struct http_chunks c = {0};
    size_t n = strlen(text), at = 0, k = 0;

    while (at < n) {
        size_t piece = n - at < step ? n - at : step, used;
        struct span data;
        enum http_chunk_step s = http_chunk_next(&c, span_of(text + at, piece), &used, &data);

        assert_true(used <= piece && (used > 0 || s != HTTP_CHUNK_MORE));
        if (s == HTTP_CHUNK_DATA) {
            memcpy(out + k, data.p, data.n);
            k += data.n;
        }
        at += used;
        out[k] = '\0';
        if (s == HTTP_CHUNK_DONE || s == HTTP_CHUNK_FAULT)
            return s;
    }
    return HTTP_CHUNK_MORE;
}

static void chunks_of_any_split_give_the_same_body(void **state)
{
    char out[256];

    (void)state;
    for (size_t step = 1; step < 60; step++) {
        assert_int_equal(decode("5\r\nhello\r\n6;a=\"b\"\r\n world\r\n00A \r\n0123456789\r\n0\r\n"
                                "Trailer: x\r\n\r\nnext",
                                step, out),
                         HTTP_CHUNK_DONE);
        assert_string_equal(out, "hello world0123456789");
    }
}

static void malformed_chunks_are_faults(void **state)
{
    static const char *const bad[] = {
        "\r\n",         "x\r\n",   "5\nhello", "5\r\nhelloX",           "5\r\nhello\n",
        "-1\r\n",       "0x5\r\n", " 5\r\n",   "1234567890abcdef0\r\n", "5\rhello",
        "0\r\na\r\r\n", "0\r\n\n",
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(decode(bad[i], 3, out), HTTP_CHUNK_FAULT);
    assert_int_equal(decode("5\r\nhel", 3, out), HTTP_CHUNK_MORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_gives_method_target_and_headers),
        cmocka_unit_test(what_two_readers_could_read_differently_is_refused),
        cmocka_unit_test(the_end_of_a_head_is_found_however_it_arrives),
        cmocka_unit_test(chunks_of_any_split_give_the_same_body),
        cmocka_unit_test(malformed_chunks_are_faults),
    };
    arena_init(&arena, 1 << 20);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_fini(&arena);
    return failed;
}
