/* Command lines: options, arguments, hints. Help goes to stdout, faults to stderr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "app/cli.h"

static struct cli_values file, key, json;
static const struct cli_opt opts[] = {
    {"file", "FILE", false, "A file", &file},
    {"key", "POINTER", true, "A key", &key},
    {"json", NULL, false, "JSON", &json},
};
static const struct cli_command cmd = {"test", "ARG", "Tests", NULL, NULL};
static struct cli_args args;

static int parse(const char *const *words)
{
    char *argv[16], name[] = "test";
    static char copies[16][64];
    int n = 1;

    file.n = key.n = json.n = 0;
    argv[0] = name;
    for (; words[n - 1] != NULL; n++) {
        (void)snprintf(copies[n], sizeof copies[n], "%s", words[n - 1]);
        argv[n] = copies[n];
    }
    return cli_parse(&cmd, opts, 3, n, argv, &args);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void options_and_arguments_mix(void **state)
{
    (void)state;
    assert_int_equal(PARSE("a", "--file", "x", "--key=/id", "b", "--key", "/x=1", "--json"), 0);
    assert_int_equal(args.n, 2);
    assert_string_equal(args.v[1], "b");
    assert_string_equal(cli_value(&file, NULL), "x");
    assert_int_equal(key.n, 2);
    assert_string_equal(key.v[1], "/x=1");
    assert_true(cli_switch(&json));
}

static void two_dashes_end_options_and_one_is_an_argument(void **state)
{
    (void)state;
    assert_int_equal(PARSE("-", "--", "--file", "-x"), 0);
    assert_int_equal(args.n, 3);
    assert_string_equal(args.v[0], "-");
    assert_string_equal(args.v[1], "--file");
}

static void switches_take_true_or_false_only(void **state)
{
    (void)state;
    assert_int_equal(PARSE("--json=false"), 0);
    assert_false(cli_switch(&json));
    assert_int_equal(PARSE("--json=yes"), E_INVALID);
    assert_int_equal(PARSE("--json", "false"), 0); /* the word is an argument */
    assert_int_equal(args.n, 1);
}

static void faults_are_refused(void **state)
{
    (void)state;
    assert_int_equal(PARSE("--flie", "x"), E_INVALID);
    assert_int_equal(PARSE("--file"), E_INVALID);
    assert_int_equal(PARSE("--file", "a", "--file", "b"), E_INVALID);
    assert_int_equal(PARSE("-f", "a"), E_INVALID);
    assert_int_equal(PARSE("--", "1", "2", "3", "4", "5", "6", "7", "8", "9"), E_INVALID);
}

static void help_ends_the_command(void **state)
{
    (void)state;
    assert_int_equal(PARSE("--file", "a", "--help"), 1);
    assert_int_equal(PARSE("-h"), 1);
    assert_int_equal(PARSE("--", "-h"), 0);
}

static void a_typing_error_gets_a_hint(void **state)
{
    static const char *const names[] = {"partitions", "data-dir", "help"};

    (void)state;
    assert_string_equal(cli_nearest("partitons", names, 3), "partitions");
    assert_string_equal(cli_nearest("datadir", names, 3), "data-dir");
    assert_string_equal(cli_nearest("hepl", names, 3), "help");
    assert_null(cli_nearest("unrelated", names, 3));
}

static void unknown_commands_exit_with_usage(void **state)
{
    char prog[] = "sluice", bad[] = "serv", opt[] = "--port", help[] = "help", what[] = "publish";
    char *a1[] = {prog, bad, NULL}, *a2[] = {prog, opt, NULL}, *a3[] = {prog, NULL},
         *a4[] = {prog, help, what, NULL};

    (void)state;
    assert_int_equal(cli_main(2, a1), EXIT_USAGE);
    assert_int_equal(cli_main(2, a2), EXIT_USAGE);
    assert_int_equal(cli_main(1, a3), EXIT_USAGE);
    assert_int_equal(cli_main(3, a4), EXIT_OK);
}

static void every_command_has_help(void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_commands_n; i++) {
        char prog[] = "sluice", name[32] = "", help[] = "--help";
        char *argv[] = {prog, name, help, NULL};

        (void)snprintf(name, sizeof name, "%s", cli_commands[i].name);
        assert_int_equal(cli_main(3, argv), EXIT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_arguments_mix),
        cmocka_unit_test(two_dashes_end_options_and_one_is_an_argument),
        cmocka_unit_test(switches_take_true_or_false_only),
        cmocka_unit_test(faults_are_refused),
        cmocka_unit_test(help_ends_the_command),
        cmocka_unit_test(a_typing_error_gets_a_hint),
        cmocka_unit_test(unknown_commands_exit_with_usage),
        cmocka_unit_test(every_command_has_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
