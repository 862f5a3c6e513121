/* Key files that change while the server runs: which keys are in force after each look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/jwt_files.h"

#define OLD "an old shared secret of 32 bytes"
#define NEW "a new shared secret of 33 bytes.."

struct lab {
    char dir[64], path[96], next[96], spec[128], why[300];
    struct jwt_files *f;
};

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0, 1);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    struct lab *l = mem_zalloc(sizeof *l);

    assert_non_null(l);
    (void)snprintf(l->dir, sizeof l->dir, "/tmp/jwt_files_test.XXXXXX");
    assert_non_null(mkdtemp(l->dir));
    (void)snprintf(l->path, sizeof l->path, "%s/key", l->dir);
    (void)snprintf(l->next, sizeof l->next, "%s/next", l->dir);
    (void)snprintf(l->spec, sizeof l->spec, "hs256:%s", l->path);
    put(l->path, OLD);
    assert_int_equal(jwt_files_new(&l->f), 0);
    assert_int_equal(jwt_files_add(l->f, l->spec, l->why, sizeof l->why), 0);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    struct lab *l = *state;

    jwt_files_free(l->f);
    (void)unlink(l->path);
    (void)unlink(l->next);
    assert_int_equal(rmdir(l->dir), 0);
    mem_free(l);
    return 0;
}

static int look(struct lab *l, bool now)
{
    l->why[0] = '\0';
    return jwt_files_follow(l->f, now, l->why, sizeof l->why);
}

static void a_change_is_read_when_it_stood_still_for_a_look(void **state)
{
    struct lab *l = *state;
    const struct jwt_keys *first = jwt_files_keys(l->f);

    assert_int_equal(look(l, false), 0);
    assert_int_equal(look(l, false), 0);
    put(l->path, NEW);
    assert_int_equal(look(l, false), 0);
    put(l->path, NEW ".");
    assert_int_equal(look(l, false), 0);
    assert_ptr_equal(jwt_files_keys(l->f), first);
    assert_int_equal(look(l, false), 1);
    assert_ptr_not_equal(jwt_files_keys(l->f), first);
    assert_int_equal(jwt_keys_n(jwt_files_keys(l->f)), 1);
    assert_int_equal(look(l, false), 0);
}

static void another_file_in_its_place_is_a_change(void **state)
{
    struct lab *l = *state;

    put(l->next, OLD);
    assert_int_equal(rename(l->next, l->path), 0);
    assert_int_equal(look(l, false), 0);
    assert_int_equal(look(l, false), 1);
}

static void now_reads_whether_it_changed_or_not(void **state)
{
    struct lab *l = *state;

    assert_int_equal(look(l, true), 1);
    put(l->path, NEW);
    assert_int_equal(look(l, true), 1);
    assert_int_equal(look(l, false), 0); /* the change was read */
}

static void a_file_that_is_no_key_leaves_the_old_ones_in_force(void **state)
{
    struct lab *l = *state;
    const struct jwt_keys *first = jwt_files_keys(l->f);

    put(l->path, "short");
    assert_int_equal(look(l, false), 0);
    assert_int_equal(look(l, false), E_INVALID);
    assert_non_null(strstr(l->why, "/key: a shared secret needs 32 bytes or more"));
    assert_int_equal(look(l, false), 0); /* told once */
    assert_int_equal(unlink(l->path), 0);
    assert_int_equal(look(l, false), 0);
    assert_int_equal(look(l, false), E_NOTFOUND);
    assert_ptr_equal(jwt_files_keys(l->f), first);
    assert_int_equal(jwt_keys_n(first), 1);
    put(l->path, NEW);
    assert_int_equal(look(l, false), 0);
    assert_int_equal(look(l, false), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_change_is_read_when_it_stood_still_for_a_look, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(another_file_in_its_place_is_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(now_reads_whether_it_changed_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_key_leaves_the_old_ones_in_force, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
