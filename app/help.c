/* The list of commands, `sluice help`, `sluice version`, and which command runs. */
#include <string.h>

#include "app/cli.h"
#include "app/config.h"
#include "base/log.h"

const struct cli_command cli_commands[] = {
    {"serve", "", "Runs the gateway: Kafka clients read collections as topics",
     "Prints one line per listener. SIGTERM or SIGINT: stops accepting, finishes running requests\n"
     "and exits 0; a second one does not wait for them.",
     cmd_serve},
    {"publish", "COLLECTION [FILE|-]", "Publishes documents, one transaction a batch",
     "Reads NDJSON (one document a line) or one JSON array. All documents of a batch become\n"
     "readable at once, or none; a bad line refuses its batch, is named, and ends the command.",
     cmd_publish},
    {"backfill", "begin|complete|status COLLECTION", "Hides what a collection holds; see its state",
     "begin hides all documents published before it, in all partitions at once; complete says "
     "that\n"
     "the collection is whole again. A complete without an active backfill is ignored, with a\n"
     "warning and exit code 0.",
     cmd_backfill},
    {"collections", "", "Lists collections", NULL, cmd_collections},
    {"journals", "", "Lists journals", NULL, cmd_journals},
    {"topics", "", "Lists topics and their partitions", NULL, cmd_topics},
    {"groups", "[describe|reset|delete GROUP]", "Lists consumer groups; shows, resets, deletes one",
     "reset sets the offsets of a group without members, --to earliest, latest or an offset, or\n"
     "--to-time: the first document of that time or later, and the end where there is none.\n"
     "It only shows what it would do unless --execute is given.",
     cmd_groups},
    {"connections", "", "Lists Kafka connections", NULL, cmd_connections},
    {"read", "JOURNAL", "Prints the raw lines of a journal with their offsets",
     "Output: `OFFSET TAB LINE`. OFFSET is that of the line's last byte, which is also the\n"
     "document's Kafka offset. Acknowledgements and other hidden lines are printed too.",
     cmd_read},
    {"check", "", "Checks the settings, and the data folder when no server holds it",
     "Takes the options of `serve`. Prints each fault; exit 1 when there is one.", cmd_check},
    {"move", "plan|close|run|undo", "Hands a data folder's journals over to a Gazette cluster",
     "Takes the options of `serve`; no server may hold the folder. plan shows what there is; "
     "close\n"
     "closes the open fragments, so that all of DIR/fragments can be copied; run makes the "
     "journals\n"
     "at the brokers of --store, whose fragments lie in --fragment-store, and compares them; undo\n"
     "lets the local store serve the folder again (docs/moving-to-gazette.md).",
     cmd_move},
    {"token", "hash", "Makes the verifier of a task's token, for the catalog",
     "Reads the token from the standard input. The verifier serves PLAIN and the SCRAM mechanism\n"
     "of its hash; nobody can log in with the verifier itself.",
     cmd_token},
    {"version", "", "Prints the version", NULL, cmd_version},
    {"help", "[COMMAND|config]", "Prints help; `help config` prints docs/config.md", NULL,
     cmd_help},
};
const size_t cli_commands_n = sizeof cli_commands / sizeof cli_commands[0];

static void usage(FILE *out)
{
    (void)fprintf(out, "usage: sluice COMMAND [options]\n\n"
                       "Serves collections of JSON documents as Kafka topics.\n\ncommands:\n");
    for (size_t i = 0; i < cli_commands_n; i++)
        (void)fprintf(out, "  %-12s %s\n", cli_commands[i].name, cli_commands[i].summary);
    (void)fprintf(out, "\n`sluice COMMAND --help` explains one.\n"
                       "exit codes: 0 done, 1 failed, 2 wrong usage or configuration\n");
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < cli_commands_n; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[32], *near;
    size_t n = 0;

    for (size_t i = 0; i < cli_commands_n && n < 32; i++)
        names[n++] = cli_commands[i].name;
    if ((near = cli_nearest(name, names, n)) != NULL)
        cli_error(NULL, "unknown command \"%s\"; did you mean \"%s\"?", name, near);
    else
        cli_error(NULL, "unknown command \"%s\"; see `sluice help`", name);
    return EXIT_USAGE;
}

int cmd_version(const struct cli_command *cmd, int argc, char **argv)
{
    struct cli_args args;
    int err = cli_parse(cmd, NULL, 0, argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    (void)printf("sluice %s\n", SLUICE_VERSION);
    return EXIT_OK;
}

static int print_config_page(void)
{
    struct writer w;
    int rc = EXIT_FAILED;

    wr_init(&w, (size_t)1 << 20);
    config_markdown(&w);
    if (wr_err(&w) == 0 && fwrite(w.b->data, 1, w.b->len, stdout) == w.b->len)
        rc = EXIT_OK;
    wr_fini(&w);
    return rc;
}

int cmd_help(const struct cli_command *cmd, int argc, char **argv)
{
    struct cli_args args;
    int err = cli_parse(cmd, NULL, 0, argc, argv, &args);
    const struct cli_command *other;
    char help[] = "--help", *help_argv[] = {help, help, NULL};

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n == 0) {
        usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(args.v[0], "config") == 0)
        return print_config_page();
    if ((other = find(args.v[0])) == NULL)
        return unknown(args.v[0]);
    return other->run(other, 2, help_argv);
}

static int run(int argc, char **argv)
{
    const struct cli_command *cmd;

    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("sluice %s\n", SLUICE_VERSION);
        return EXIT_OK;
    }
    if (argv[1][0] == '-') {
        cli_error(NULL, "unknown option %s; see `sluice help`", argv[1]);
        return EXIT_USAGE;
    }
    if ((cmd = find(argv[1])) == NULL)
        return unknown(argv[1]);
    return cmd->run(cmd, argc - 1, argv + 1);
}

int cli_main(int argc, char **argv)
{
    /* Commands talk to a person; `serve` sets what its settings say. */
    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    return cli_end(stdout, run(argc, argv));
}
