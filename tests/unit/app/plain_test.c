/* What others named reaches a terminal without its control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/plain.h"

static void a_name_can_neither_steer_a_terminal_nor_forge_a_row(void **state)
{
    json_t *root = json_pack("{s:[{s:s},{s:i}],s:s}", "groups", "group", "\x1b[31mred\nFAKE\x7f",
                             "n", 3, "task",
                             "\xc2\x9b"
                             "1m \xc3\xa9\t");
    json_t *want = json_pack("{s:[{s:s},{s:i}],s:s}", "groups", "group", "?[31mred?FAKE?", "n", 3,
                             "task", "?1m \xc3\xa9?");

    (void)state;
    assert_non_null(root);
    assert_non_null(want);
    plain_texts(root);
    assert_true(json_equal(root, want));
    json_decref(root);
    json_decref(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_can_neither_steer_a_terminal_nor_forge_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
