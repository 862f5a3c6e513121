/* base/sqlite.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/sqlite.h"

static void codes_of_success_are_no_error(void **state)
{
    (void)state;
    assert_int_equal(err_from_sqlite(SQLITE_OK), 0);
    assert_int_equal(err_from_sqlite(SQLITE_ROW), 0);
    assert_int_equal(err_from_sqlite(SQLITE_DONE), 0);
}

static void a_full_disk_and_a_damaged_file_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(err_from_sqlite(SQLITE_FULL), E_NOSPACE);
    assert_int_equal(err_from_sqlite(SQLITE_NOTADB), E_CORRUPT);
    assert_int_equal(err_from_sqlite(SQLITE_TOOBIG), E_LIMIT);
}

static void an_extended_code_means_what_it_extends(void **state)
{
    (void)state;
    assert_int_equal(err_from_sqlite(SQLITE_BUSY_SNAPSHOT), E_BUSY);
    assert_int_equal(err_from_sqlite(SQLITE_IOERR_FSYNC), E_IO);
    assert_int_equal(err_from_sqlite(SQLITE_CORRUPT_INDEX), E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_of_success_are_no_error),
        cmocka_unit_test(a_full_disk_and_a_damaged_file_are_told_apart),
        cmocka_unit_test(an_extended_code_means_what_it_extends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
