/*
 * The command line: options by a table per command, help from the same table. `--name value`,
 * `--name=value`, `--` ends options. An unknown option is an error with a hint. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes of every command. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* it did not work: bad documents, faults found, no server, ... */
    EXIT_USAGE = 2,  /* the command line, the environment or the file is wrong */
};

#define CLI_VALUES_MAX 64

/* What was given for one option; borrows argv. */
struct cli_values {
    size_t n;
    const char *v[CLI_VALUES_MAX];
};

struct cli_opt {
    const char *name;  /* without dashes */
    const char *value; /* "FILE"; NULL: a switch, `--x`, `--x=true` or `--x=false` */
    bool repeat;
    const char *help;
    struct cli_values *out;
};

struct cli_command {
    const char *name;
    const char *args; /* "COLLECTION [FILE|-]" */
    const char *summary;
    const char *details; /* further lines for --help; may be NULL */
    int (*run)(const struct cli_command *cmd, int argc, char **argv);
};

extern const struct cli_command cli_commands[];
extern const size_t cli_commands_n;

#define CLI_ARGS_MAX 8
struct cli_args {
    size_t n;
    const char *v[CLI_ARGS_MAX];
};

/* argv[0] is the command's name. 0: go on; 1: help was printed, exit 0; E_INVALID: a fault was
 * printed to stderr, exit EXIT_USAGE. */
MUST_USE int cli_parse(const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n,
                       int argc, char **argv, struct cli_args *args);
void cli_help(FILE *out, const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n);
/* The nearest of names to a mistyped one; NULL when none is near. */
const char *cli_nearest(const char *typed, const char *const *names, size_t n);
/* "sluice COMMAND: text" on stderr. */
void cli_error(const struct cli_command *cmd, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The end of every command: what it printed must have arrived. Flushes out; when anything of it was
 * lost, says so on stderr (not when the reader of a pipe left: `sluice read ... | head`) and turns
 * EXIT_OK into EXIT_FAILED. Returns the exit code. */
int cli_end(FILE *out, int rc);
/* The last value of an option, or fallback. */
const char *cli_value(const struct cli_values *v, const char *fallback);
bool cli_switch(const struct cli_values *v);

/* The commands, one file each. */
int cmd_serve(const struct cli_command *cmd, int argc, char **argv);
int cmd_publish(const struct cli_command *cmd, int argc, char **argv);
int cmd_backfill(const struct cli_command *cmd, int argc, char **argv);
int cmd_collections(const struct cli_command *cmd, int argc, char **argv);
int cmd_journals(const struct cli_command *cmd, int argc, char **argv);
int cmd_topics(const struct cli_command *cmd, int argc, char **argv);
int cmd_groups(const struct cli_command *cmd, int argc, char **argv);
int cmd_connections(const struct cli_command *cmd, int argc, char **argv);
int cmd_read(const struct cli_command *cmd, int argc, char **argv);
int cmd_move(const struct cli_command *cmd, int argc, char **argv);
int cmd_check(const struct cli_command *cmd, int argc, char **argv);
int cmd_token(const struct cli_command *cmd, int argc, char **argv);
int cmd_version(const struct cli_command *cmd, int argc, char **argv);
int cmd_help(const struct cli_command *cmd, int argc, char **argv);

/* Runs the program; main() without the process. */
int cli_main(int argc, char **argv);
