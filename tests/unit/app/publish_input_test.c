/* Input of `sluice publish` cut into batches: whole lines, runs of array elements, line numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "app/publish_input.h"
#include "base/mem.h"

static struct publish_input in;
static FILE *file;

static void open_text(const char *text, size_t n, size_t documents, size_t bytes)
{
    file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    rewind(file);
    publish_input_init(&in, file, documents, bytes);
}

static void close_text(void)
{
    publish_input_fini(&in);
    (void)fclose(file);
}

static void next_is(const char *body, size_t line, size_t documents)
{
    struct publish_batch b;

    assert_int_equal(publish_input_next(&in, &b), 0);
    assert_int_equal(b.body->len, strlen(body));
    assert_memory_equal(b.body->data, body, b.body->len);
    assert_int_equal(b.line, line);
    assert_int_equal(b.documents, documents);
    blob_unref(b.body);
}

static void ends(int err)
{
    struct publish_batch b;

    assert_int_equal(publish_input_next(&in, &b), err);
    assert_null(b.body);
}

static void lines_are_never_cut(void **state)
{
    static const char text[] = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}";

    (void)state;
    open_text(text, sizeof text - 1, 3, 1 << 20);
    next_is("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", 1, 3);
    next_is("{\"a\":4}", 4, 1);
    ends(E_NOTFOUND);
    ends(E_NOTFOUND);
    close_text();
    open_text(text, sizeof text - 1, 100, 17);
    next_is("{\"a\":1}\n{\"a\":2}\n", 1, 2);
    next_is("{\"a\":3}\n{\"a\":4}", 3, 2);
    ends(E_NOTFOUND);
    close_text();
    open_text(text, sizeof text - 1, 100, 1); /* a longer line still makes a batch */
    next_is("{\"a\":1}\n", 1, 1);
    next_is("{\"a\":2}\n", 2, 1);
    close_text();
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    open_text("", 0, 10, 10);
    ends(E_NOTFOUND);
    close_text();
    open_text("[]", 2, 10, 10);
    ends(E_NOTFOUND);
    close_text();
}

static void array_elements_keep_their_lines(void **state)
{
    static const char text[] = "\n[\n {\"a\":1},\n {\n\"a\":2},\n\n {\"a\":3}\n]\n";

    (void)state;
    open_text(text, sizeof text - 1, 2, 1 << 20);
    next_is("[{\"a\":1},\n {\n\"a\":2}]", 3, 2);
    next_is("[{\"a\":3}]", 7, 1);
    ends(E_NOTFOUND);
    close_text();
    open_text(text, sizeof text - 1, 100, 1);
    next_is("[{\"a\":1}]", 3, 1);
    next_is("[{\n\"a\":2}]", 4, 1);
    close_text();
}

static void a_broken_array_gives_what_is_whole_and_names_the_line(void **state)
{
    static const char text[] = "[{\"a\":1},\n{\"a\":}]";

    (void)state;
    open_text(text, sizeof text - 1, 100, 1 << 20);
    next_is("[{\"a\":1}]", 1, 1);
    ends(E_SYNTAX);
    assert_non_null(strstr(in.fault, "line 2: "));
    close_text();
}

static void long_input_is_read_in_pieces(void **state)
{
    const size_t lines = 60000;
    char *text = mem_alloc(lines * 32);
    size_t n = 0, seen = 0, line = 1;
    struct publish_batch b;
    int err;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < lines; i++)
        n += (size_t)snprintf(text + n, 32, "{\"id\":%zu}\n", i);
    open_text(text, n, 777, 1 << 20);
    while ((err = publish_input_next(&in, &b)) == 0) {
        assert_int_equal(b.line, line);
        assert_memory_equal(b.body->data, text + seen, b.body->len);
        seen += b.body->len;
        line += b.documents;
        blob_unref(b.body);
    }
    assert_int_equal(err, E_NOTFOUND);
    assert_int_equal(seen, n);
    assert_int_equal(line, lines + 1);
    close_text();
    mem_free(text);
}

static void a_line_longer_than_the_read_buffer_is_one_batch(void **state)
{
    const size_t n = 3 << 20;
    char *text = mem_alloc(n);
    struct publish_batch b;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', n);
    text[n - 3] = '\n';
    open_text(text, n, 10, 10);
    assert_int_equal(publish_input_next(&in, &b), 0);
    assert_int_equal(b.body->len, n - 2);
    blob_unref(b.body);
    next_is("xx", 2, 1);
    ends(E_NOTFOUND);
    close_text();
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_never_cut),
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(array_elements_keep_their_lines),
        cmocka_unit_test(a_broken_array_gives_what_is_whole_and_names_the_line),
        cmocka_unit_test(long_input_is_read_in_pieces),
        cmocka_unit_test(a_line_longer_than_the_read_buffer_is_one_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
