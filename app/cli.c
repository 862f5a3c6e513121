/* Options and help of all commands. See cli.h. */
#include "app/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void cli_error(const struct cli_command *cmd, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "sluice%s%s: ", cmd == NULL ? "" : " ", cmd == NULL ? "" : cmd->name);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
}

/* The errno of what was lost of out; 0: nothing. A write that failed while the command ran left
 * only the stream's error mark, so a pipe is asked whether its reader left. */
static int lost(FILE *out)
{
    struct pollfd p = {.fd = fileno(out), .events = POLLOUT};
    bool marked = ferror(out) != 0;
    int fd;

    if (fflush(out) != 0)
        return errno;
    if (marked)
        return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP)) != 0 ? EPIPE : EIO;
    /* A network file system tells of a full disk only at the close. */
    if ((fd = dup(p.fd)) >= 0 && close(fd) < 0)
        return errno;
    return 0;
}

int cli_end(FILE *out, int rc)
{
    int e = lost(out);

    if (e == 0)
        return rc;
    if (e == EIO)
        cli_error(NULL, "the output could not be written: it is cut");
    else if (e != EPIPE)
        cli_error(NULL, "the output could not be written: it is cut: %s",
                  err_text(err_from_errno(e)));
    return rc == EXIT_OK ? EXIT_FAILED : rc;
}

const char *cli_value(const struct cli_values *v, const char *fallback)
{
    return v->n == 0 ? fallback : v->v[v->n - 1];
}

bool cli_switch(const struct cli_values *v)
{
    const char *s = cli_value(v, "false");

    return strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
}

/* --- hints
 * ------------------------------------------------------------------------------------------- */

#define HINT_MAX 40

/* Edits between two short words (insert, delete, replace). */
static size_t distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), row[HINT_MAX + 1];

    if (na > HINT_MAX || nb > HINT_MAX)
        return SIZE_MAX;
    for (size_t k = 0; k <= nb; k++)
        row[k] = k;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t k = 1; k <= nb; k++) {
            size_t best = diagonal + (a[i - 1] != b[k - 1]);

            diagonal = row[k];
            if (row[k] + 1 < best)
                best = row[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            row[k] = best;
        }
    }
    return row[nb];
}

const char *cli_nearest(const char *typed, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(typed) / 3 + 2;

    for (size_t i = 0; i < n; i++) {
        size_t d = distance(typed, names[i]);

        if (d < best_distance) {
            best_distance = d;
            best = names[i];
        }
    }
    return best;
}

static void unknown_option(const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n,
                           const char *name)
{
    const char *names[CLI_VALUES_MAX], *near;
    size_t n = 0;

    for (size_t i = 0; i < opts_n && n < CLI_VALUES_MAX - 1; i++)
        names[n++] = opts[i].name;
    names[n++] = "help";
    if ((near = cli_nearest(name, names, n)) != NULL)
        cli_error(cmd, "unknown option --%s; did you mean --%s?", name, near);
    else
        cli_error(cmd, "unknown option --%s; see `sluice %s --help`", name, cmd->name);
}

/* --- parsing
 * ----------------------------------------------------------------------------------------- */

static const struct cli_opt *find_opt(const struct cli_opt *opts, size_t n, const char *name,
                                      size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(opts[i].name) == len && memcmp(opts[i].name, name, len) == 0)
            return &opts[i];
    return NULL;
}

static int take_value(const struct cli_command *cmd, const struct cli_opt *opt, const char *value)
{
    if (opt->value == NULL && strcmp(value, "true") != 0 && strcmp(value, "false") != 0 &&
        strcmp(value, "1") != 0 && strcmp(value, "0") != 0) {
        cli_error(cmd, "--%s takes true or false, not \"%s\"", opt->name, value);
        return E_INVALID;
    }
    if (opt->out->n > 0 && !opt->repeat) {
        cli_error(cmd, "--%s is given twice", opt->name);
        return E_INVALID;
    }
    if (opt->out->n == CLI_VALUES_MAX) {
        cli_error(cmd, "--%s is given too often", opt->name);
        return E_INVALID;
    }
    opt->out->v[opt->out->n++] = value;
    return 0;
}

/* One option; *i moves over its value. 1: help. */
static int parse_option(const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n,
                        int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *eq = strchr(name, '=');
    size_t len = eq == NULL ? strlen(name) : (size_t)(eq - name);
    const struct cli_opt *opt;

    if (len == 4 && memcmp(name, "help", 4) == 0)
        return 1;
    if ((opt = find_opt(opts, opts_n, name, len)) == NULL) {
        char typed[64];

        (void)snprintf(typed, sizeof typed, "%.*s", len > 60 ? 60 : (int)len, name);
        unknown_option(cmd, opts, opts_n, typed);
        return E_INVALID;
    }
    if (eq != NULL)
        return take_value(cmd, opt, eq + 1);
    if (opt->value == NULL)
        return take_value(cmd, opt, "true");
    if (*i + 1 >= argc) {
        cli_error(cmd, "--%s needs a value: %s", opt->name, opt->value);
        return E_INVALID;
    }
    return take_value(cmd, opt, argv[++*i]);
}

int cli_parse(const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n, int argc,
              char **argv, struct cli_args *args)
{
    bool only_args = false;

    args->n = 0;
    for (int i = 1; i < argc; i++) {
        int err = 0;

        if (!only_args && strcmp(argv[i], "--") == 0) {
            only_args = true;
            continue;
        }
        if (!only_args && strcmp(argv[i], "-h") == 0)
            err = 1;
        else if (!only_args && strncmp(argv[i], "--", 2) == 0)
            err = parse_option(cmd, opts, opts_n, argc, argv, &i);
        else if (!only_args && argv[i][0] == '-' && argv[i][1] != '\0') {
            cli_error(cmd, "unknown option %s; options begin with two dashes", argv[i]);
            err = E_INVALID;
        } else if (args->n == CLI_ARGS_MAX) {
            cli_error(cmd, "too many arguments");
            err = E_INVALID;
        } else {
            args->v[args->n++] = argv[i];
        }
        if (err == 1)
            cli_help(stdout, cmd, opts, opts_n);
        if (err != 0)
            return err;
    }
    return 0;
}

/* --- help
 * -------------------------------------------------------------------------------------------- */

/* Prints text from column 6 on, broken at spaces. */
static void wrapped(FILE *out, const char *text)
{
    const size_t width = 90;

    while (*text != '\0') {
        size_t n = strlen(text), cut;

        if (n > width) {
            for (cut = width; cut > 0 && text[cut] != ' '; cut--)
                ;
            n = cut > 0 ? cut : width;
        }
        (void)fprintf(out, "      %.*s\n", (int)n, text);
        text += n;
        text += *text == ' ';
    }
}

void cli_help(FILE *out, const struct cli_command *cmd, const struct cli_opt *opts, size_t opts_n)
{
    (void)fprintf(out, "usage: sluice %s%s%s%s\n\n%s\n", cmd->name, opts_n > 0 ? " [options]" : "",
                  cmd->args[0] != '\0' ? " " : "", cmd->args, cmd->summary);
    if (cmd->details != NULL)
        (void)fprintf(out, "\n%s\n", cmd->details);
    if (opts_n > 0)
        (void)fprintf(out, "\noptions:\n");
    for (size_t i = 0; i < opts_n; i++) {
        (void)fprintf(out, "  --%s%s%s%s\n", opts[i].name, opts[i].value != NULL ? " " : "",
                      opts[i].value != NULL ? opts[i].value : "",
                      opts[i].repeat ? "  (repeatable)" : "");
        wrapped(out, opts[i].help);
    }
    (void)fprintf(out, "  --help\n      Prints this\n\nexit codes: 0 done, 1 failed, 2 wrong usage "
                       "or configuration\n");
}
