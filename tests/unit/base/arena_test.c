/* The request's memory: budget, alignment, reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

static void memory_is_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 16, 17, 100, 600, 1024, 5000, 70000, 2, 40000};
    struct arena a;
    uint8_t *got[sizeof sizes / sizeof sizes[0]];

    arena_init(&a, (size_t)1 << 20);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        got[i] = arena_alloc(&a, sizes[i]);
        assert_non_null(got[i]);
        assert_int_equal((uintptr_t)got[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(got[i][k], 0);
        memset(got[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(got[i][k], i + 1);
    }
    arena_fini(&a);
}

static void the_budget_bounds_the_sum_of_all_allocations(void **state)
{
    (void)state;
    struct arena a;
    size_t handed_out = 0;

    arena_init(&a, 1000);
    while (arena_alloc(&a, 10) != NULL)
        handed_out += 10;
    assert_true(handed_out > 500 && handed_out <= 1000);
    assert_true(a.used <= a.budget);
    assert_null(arena_alloc(&a, 500));
    assert_null(arena_alloc(&a, SIZE_MAX));

    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 900));
    assert_null(arena_alloc(&a, 900));
    arena_fini(&a);
}

static void a_budget_of_zero_gives_nothing(void **state)
{
    (void)state;
    struct arena a;

    arena_init(&a, 0);
    assert_null(arena_alloc(&a, 0));
    assert_null(arena_alloc(&a, 1));
    arena_fini(&a);
}

static void zero_bytes_give_unique_pointers(void **state)
{
    (void)state;
    struct arena a;

    arena_init(&a, 1000);
    void *p = arena_alloc(&a, 0);
    void *q = arena_alloc(&a, 0);
    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
    arena_fini(&a);
}

static void an_overflowing_array_is_refused(void **state)
{
    (void)state;
    struct arena a;

    arena_init(&a, SIZE_MAX);
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    assert_null(arena_alloc(&a, SIZE_MAX - 64)); /* plus the chunk head */
    assert_non_null(arena_array(&a, 3, 5));
    arena_fini(&a);
}

static void strings_are_copied_and_formatted(void **state)
{
    (void)state;
    struct arena a;

    arena_init(&a, 4096);
    assert_string_equal(arena_strndup(&a, "topic-1", 5), "topic");
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_string_equal(arena_printf(&a, "%s-%d", "p", 42), "p-42");
    assert_null(arena_printf(&a, "%5000d", 1));
    assert_null(arena_strndup(&a, "x", SIZE_MAX));
    arena_fini(&a);
}

static void out_of_memory_leaves_a_usable_arena(void **state)
{
    (void)state;
    struct arena a;

    arena_init(&a, (size_t)1 << 20);
    for (long n = 0; n < 4; n++) {
        mem_fail_after(n, 0);
        int failures = 0;
        for (int i = 0; i < 20; i++) {
            size_t used = a.used;
            if (arena_alloc(&a, 700) == NULL) {
                failures++;
                assert_int_equal(a.used, used);
            }
        }
        mem_fail_after(-1, 0);
        assert_int_equal(failures, 1);
        arena_reset(&a);
    }
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_disjoint),
        cmocka_unit_test(the_budget_bounds_the_sum_of_all_allocations),
        cmocka_unit_test(a_budget_of_zero_gives_nothing),
        cmocka_unit_test(zero_bytes_give_unique_pointers),
        cmocka_unit_test(an_overflowing_array_is_refused),
        cmocka_unit_test(strings_are_copied_and_formatted),
        cmocka_unit_test(out_of_memory_leaves_a_usable_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
