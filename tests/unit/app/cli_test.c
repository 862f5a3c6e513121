/* Command lines: options, arguments, hints. Help goes to stdout, faults to stderr. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

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

/* A stream that takes nothing, as on a full disk: its descriptor is only for reading. Not
 * /dev/full: in some containers that is a plain file. */
static FILE *broken(void)
{
    FILE *out = fopen("/dev/null", "w");
    int fd = open("/dev/null", O_RDONLY);

    assert_non_null(out);
    assert_true(fd >= 0);
    assert_true(dup2(fd, fileno(out)) >= 0);
    (void)close(fd);
    return out;
}

/* Writes n bytes, ends, and returns the exit code of a command that thought rc. */
static int end_after(FILE *out, size_t n, int rc)
{
    assert_non_null(out);
    while (n-- > 0)
        (void)fputc('x', out);
    rc = cli_end(out, rc);
    (void)fclose(out);
    return rc;
}

static void output_that_did_not_arrive_is_a_failure(void **state)
{
    (void)state;
    assert_int_equal(end_after(fopen("/dev/null", "w"), 100, EXIT_OK), EXIT_OK);
    assert_int_equal(end_after(broken(), 0, EXIT_OK), EXIT_OK);
    assert_int_equal(end_after(broken(), 1, EXIT_OK), EXIT_FAILED);
}

static void output_lost_while_the_command_ran_is_a_failure_at_its_end(void **state)
{
    FILE *out = broken();

    (void)state;
    (void)fputc('x', out);
    assert_int_equal(fflush(out), EOF);
    __fpurge(out); /* the last flush has nothing to write, and succeeds */
    assert_int_equal(end_after(out, 0, EXIT_OK), EXIT_FAILED);
}

static void a_fault_keeps_its_exit_code_when_the_output_is_lost_too(void **state)
{
    (void)state;
    assert_int_equal(end_after(broken(), 1, EXIT_USAGE), EXIT_USAGE);
}

static void a_reader_that_left_is_a_failure_too(void **state)
{
    (void)state;
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    for (size_t n = 1; n < 1 << 20; n *= 1000) {
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        (void)close(fds[0]);
        assert_int_equal(end_after(fdopen(fds[1], "w"), n, EXIT_OK), EXIT_FAILED);
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
        cmocka_unit_test(output_that_did_not_arrive_is_a_failure),
        cmocka_unit_test(output_lost_while_the_command_ran_is_a_failure_at_its_end),
        cmocka_unit_test(a_fault_keeps_its_exit_code_when_the_output_is_lost_too),
        cmocka_unit_test(a_reader_that_left_is_a_failure_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
