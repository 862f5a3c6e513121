/* The heap and its failure injection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/blob.h"
#include "base/mem.h"

static int injection_off(void **state)
{
    (void)state;
    mem_fail_after(-1, 0);
    return 0;
}

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    for (long n = 0; n < 5; n++) {
        mem_fail_after(n, 0);
        for (long i = 0; i < 8; i++) {
            void *p = mem_alloc(16);
            assert_int_equal(p == NULL, i == n);
            mem_free(p);
        }
    }
}

static void all_allocations_from_the_nth_on_fail_when_asked(void **state)
{
    (void)state;
    mem_fail_after(2, 1);
    for (int i = 0; i < 6; i++) {
        void *p = mem_zalloc(1);
        assert_int_equal(p == NULL, i >= 2);
        mem_free(p);
    }
    mem_fail_after(-1, 0);
    void *p = mem_alloc(1);
    assert_non_null(p);
    mem_free(p);
}

static void every_kind_of_allocation_can_fail(void **state)
{
    (void)state;
    char *p = mem_alloc(4);
    mem_fail_after(0, 1);
    assert_null(mem_alloc(1));
    assert_null(mem_zalloc(1));
    assert_null(mem_array(2, 2));
    assert_null(mem_realloc(p, 8));
    assert_null(mem_strdup("x"));
    assert_null(mem_strndup("x", 1));
    assert_null(blob_new(1));
    assert_null(blob_copy(span_str("x")));
    mem_fail_after(-1, 0);
    mem_free(p); /* a failed realloc leaves the old block alone */
}

static void zero_bytes_are_an_allocation_of_their_own(void **state)
{
    (void)state;
    void *a = mem_alloc(0);
    void *b = mem_zalloc(0);
    void *c = mem_array(0, 8);
    void *d = mem_realloc(mem_alloc(8), 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_non_null(d);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
    mem_free(NULL);
}

static void an_array_is_zeroed_and_refuses_overflow(void **state)
{
    (void)state;
    /* volatile: the compiler would see the overflow and warn */
    volatile size_t huge = SIZE_MAX / 2;
    assert_null(mem_array(huge, 3));
    assert_null(mem_strndup("x", SIZE_MAX));
    uint8_t *p = mem_array(3, 7);
    assert_non_null(p);
    for (int i = 0; i < 21; i++)
        assert_int_equal(p[i], 0);
    mem_free(p);
}

static void a_copied_string_ends_with_a_nul(void **state)
{
    (void)state;
    char *a = mem_strndup("abcdef", 3);
    char *b = mem_strdup("abc");
    char *c = mem_strndup(NULL, 0);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "abc");
    assert_string_equal(c, "");
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

static void wiping_overwrites_exactly_the_bytes(void **state)
{
    (void)state;
    char secret[] = "password";
    mem_wipe(secret, 4);
    assert_memory_equal(secret, "\0\0\0\0word", 8);
    mem_wipe(NULL, 0);
}

static void a_blob_lives_until_its_last_reference(void **state)
{
    (void)state;
    struct blob *b = blob_copy(span_str("hello"));
    assert_non_null(b);
    assert_ptr_equal(blob_ref(b), b);
    blob_unref(b);
    assert_true(span_eq_str(blob_span(b), "hello"));
    assert_int_equal(b->cap, 5);
    blob_unref(b);
    blob_unref(NULL);
}

static void a_blob_larger_than_memory_is_refused(void **state)
{
    (void)state;
    assert_null(blob_new(SIZE_MAX));
    struct blob *b = blob_new(0);
    assert_non_null(b);
    assert_int_equal(b->len, 0);
    blob_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_nth_allocation_fails_once, injection_off),
        cmocka_unit_test_teardown(all_allocations_from_the_nth_on_fail_when_asked, injection_off),
        cmocka_unit_test_teardown(every_kind_of_allocation_can_fail, injection_off),
        cmocka_unit_test(zero_bytes_are_an_allocation_of_their_own),
        cmocka_unit_test(an_array_is_zeroed_and_refuses_overflow),
        cmocka_unit_test(a_copied_string_ends_with_a_nul),
        cmocka_unit_test(wiping_overwrites_exactly_the_bytes),
        cmocka_unit_test(a_blob_lives_until_its_last_reference),
        cmocka_unit_test(a_blob_larger_than_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
