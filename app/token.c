/*
 * `sluice token hash`: the verifier of a task's token, for the catalog. The token is read from the
 * standard input, never from the command line, which other users of the machine can see.
 */
#include <string.h>
#include <unistd.h>

#include "app/cli.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/secret.h"

#define TOKEN_MAX  65536
#define SALT_BYTES 16

struct token_flags {
    struct cli_values hash, iterations, like;
};

/* How the verifier is made. */
struct recipe {
    enum secret_hash hash;
    uint32_t iterations;
    uint8_t salt[SECRET_SALT_MAX];
    size_t salt_n;
};

/* Up to the end of the input; a line end there is not part of the token. */
static int read_token(uint8_t *buf, size_t max, size_t *n)
{
    ssize_t got;

    *n = 0;
    while (*n < max && (got = read(STDIN_FILENO, buf + *n, max - *n)) > 0)
        *n += (size_t)got;
    if (*n == max)
        return E_LIMIT;
    if (*n > 0 && buf[*n - 1] == '\n')
        --*n;
    if (*n > 0 && buf[*n - 1] == '\r')
        --*n;
    return *n > 0 && memchr(buf, '\0', *n) == NULL ? 0 : E_INVALID;
}

static int like(const struct cli_command *cmd, const char *text, struct recipe *r)
{
    struct secret s;

    if (secret_parse(span_str(text), &s) < 0 || !s.verifier) {
        cli_error(cmd, "--like: that is no verifier of this command");
        return E_INVALID;
    }
    *r = (struct recipe){.hash = s.hash, .iterations = s.iterations, .salt_n = s.salt_n};
    memcpy(r->salt, s.salt, s.salt_n);
    secret_wipe(&s);
    return 0;
}

static int choose(const struct cli_command *cmd, const struct token_flags *f, struct recipe *r)
{
    const char *hash = cli_value(&f->hash, "sha-256");
    const char *iterations = cli_value(&f->iterations, NULL);
    uint64_t n = SECRET_ITERATIONS;

    if (f->like.n > 0)
        return like(cmd, cli_value(&f->like, ""), r);
    *r = (struct recipe){.hash = SECRET_SHA256, .salt_n = SALT_BYTES};
    if (strcmp(hash, "sha-512") == 0) {
        r->hash = SECRET_SHA512;
    } else if (strcmp(hash, "sha-256") != 0) {
        cli_error(cmd, "--hash: sha-256 or sha-512, not \"%.60s\"", hash);
        return E_INVALID;
    }
    if (iterations != NULL && (num_parse_u64(span_str(iterations), &n) < 0 ||
                               n < SECRET_ITERATIONS || n > SECRET_ITERATIONS_MAX)) {
        cli_error(cmd, "--iterations: a number from %d to %d", SECRET_ITERATIONS,
                  SECRET_ITERATIONS_MAX);
        return E_INVALID;
    }
    r->iterations = (uint32_t)n;
    if (secret_random(r->salt, r->salt_n) < 0) {
        cli_error(cmd, "there are no random bytes to be had");
        return E_IO;
    }
    return 0;
}

static int hash(const struct cli_command *cmd, const struct token_flags *f)
{
    struct recipe r = {.salt_n = 0};
    struct writer w;
    size_t n = 0;
    int err = choose(cmd, f, &r);

    if (err < 0)
        return EXIT_USAGE;
    uint8_t *token = mem_alloc(TOKEN_MAX);
    if (token == NULL) {
        cli_error(cmd, "%s", err_text(E_NOMEM));
        return EXIT_FAILED;
    }
    if (isatty(STDIN_FILENO))
        (void)fprintf(stderr, "token, then the end of the input (ctrl-D): ");
    wr_init(&w, 1024);
    if ((err = read_token(token, TOKEN_MAX, &n)) < 0)
        cli_error(cmd, err == E_LIMIT ? "the token is too long"
                                      : "no token on the standard input, or one with a NUL byte");
    else if ((err = secret_write(r.hash, span_of(token, n), span_of(r.salt, r.salt_n), r.iterations,
                                 &w)) < 0)
        cli_error(cmd, "%s", err_text(err));
    else
        (void)printf("%.*s\n", SPAN_FMT(blob_span(w.b)));
    wr_fini(&w);
    mem_wipe(token, TOKEN_MAX);
    mem_free(token);
    return err < 0 ? EXIT_FAILED : EXIT_OK;
}

int cmd_token(const struct cli_command *cmd, int argc, char **argv)
{
    struct token_flags f = {.hash = {.n = 0}};
    const struct cli_opt opts[] = {
        {"hash", "HASH", false, "sha-256 (default) or sha-512: which SCRAM it serves", &f.hash},
        {"iterations", "N", false, "Rounds of PBKDF2 [4096]", &f.iterations},
        {"like", "VERIFIER", false,
         "Same hash, salt and rounds as this one: so that both serve SCRAM during a rotation",
         &f.like},
    };
    struct cli_args args;
    int err = cli_parse(cmd, opts, sizeof opts / sizeof opts[0], argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n != 1 || strcmp(args.v[0], "hash") != 0) {
        cli_error(cmd, "usage: sluice token hash [--hash sha-512] < FILE-WITH-THE-TOKEN");
        return EXIT_USAGE;
    }
    return hash(cmd, &f);
}
