/*
 * `sluice backfill begin|complete|status COLLECTION`: the truncation signals, by the admin API of a
 * running server. Begin, load, complete can be scripted: see docs/backfill.md.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "app/cli.h"
#include "app/http.h"

#define WAIT_TEXT "10m" /* the longest that the server takes */

struct backfill_flags {
    struct cli_values admin, wait, force, begin, json;
};

static const char *text_of(const json_t *o, const char *name, const char *absent)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s == NULL ? absent : s;
}

static int64_t number_of(const json_t *o, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(o, name));
}

static void print_status(const json_t *o)
{
    (void)printf("collection    %s\n"
                 "state         %s\n"
                 "begin         %s\n"
                 "complete      %s\n"
                 "truncated at  %s\n"
                 "labelled      %" PRId64 " of %" PRId64 " partitions\n"
                 "settled       %s\n",
                 text_of(o, "collection", ""), text_of(o, "state", ""), text_of(o, "begin", "-"),
                 text_of(o, "complete", "-"), text_of(o, "truncated_at", "-"),
                 number_of(o, "labelled"), number_of(o, "partitions"),
                 json_is_true(json_object_get(o, "settled")) ? "yes" : "no");
}

static void print_done(const json_t *o, const char *verb)
{
    if (json_is_true(json_object_get(o, "ignored")))
        return;
    (void)printf("%s %s at %s in %" PRId64 " partitions, %" PRId64 " labelled\n",
                 text_of(o, "collection", ""), strcmp(verb, "begin") == 0 ? "begun" : "completed",
                 text_of(o, "clock", "-"), number_of(o, "partitions"), number_of(o, "labelled"));
}

/* The answer is 200. */
static int show(const struct cli_command *cmd, const char *verb, const struct backfill_flags *f,
                struct span body)
{
    json_t *o = json_loadb((const char *)body.p, body.n, 0, NULL);
    const char *superseded = text_of(o, "superseded", NULL);
    int rc = EXIT_OK;

    if (o == NULL) {
        cli_error(cmd, "the server's answer is not understood");
        return EXIT_FAILED;
    }
    if (cli_switch(&f->json))
        (void)fwrite(body.p, 1, body.n, stdout);
    else if (strcmp(verb, "status") == 0)
        print_status(o);
    else
        print_done(o, verb);
    if (superseded != NULL)
        cli_error(cmd, "warning: the backfill begun at %s was not complete; it is superseded",
                  superseded);
    if (json_is_true(json_object_get(o, "ignored")))
        cli_error(cmd, "warning: %s", text_of(o, "warning", "ignored"));
    if (cli_switch(&f->wait) && !json_is_true(json_object_get(o, "settled"))) {
        cli_error(cmd, "not every partition carries the label yet; ask `sluice backfill status`");
        rc = EXIT_FAILED;
    }
    json_decref(o);
    return rc;
}

static bool collect(void *arg, struct span bytes)
{
    struct writer *w = arg;

    wr_span(w, bytes);
    return wr_err(w) == 0;
}

static void make_path(struct writer *w, const char *verb, const char *collection,
                      const struct backfill_flags *f)
{
    const char *sep = "?";

    wr_str(w, "/v1/collections/");
    http_path(w, collection);
    wr_str(w, "/backfill");
    if (strcmp(verb, "status") != 0)
        wr_printf(w, "/%s", verb);
    if (cli_switch(&f->wait)) {
        wr_str(w, "?wait=" WAIT_TEXT);
        sep = "&";
    }
    if (cli_switch(&f->force)) {
        wr_printf(w, "%sforce=true", sep);
        sep = "&";
    }
    if (f->begin.n > 0) {
        wr_printf(w, "%sbegin=", sep);
        http_query(w, cli_value(&f->begin, ""));
    }
    wr_u8(w, 0);
}

static int run(const struct cli_command *cmd, const char *verb, const char *collection,
               const struct backfill_flags *f)
{
    static const struct span nothing = {NULL, 0};
    struct writer path, body;
    struct http_rq rq = {.base = http_admin(cli_value(&f->admin, NULL)),
                         .on_bytes = collect, /* no limit of time: a begin may have much to read */
                         .arg = &body};
    struct http_answer a;
    char text[600];
    int rc = EXIT_FAILED, err;

    wr_init(&path, 65536);
    wr_init(&body, (size_t)1 << 20);
    make_path(&path, verb, collection, f);
    if (wr_err(&path) < 0) {
        cli_error(cmd, "%s", err_text(wr_err(&path)));
        wr_fini(&path);
        return EXIT_FAILED;
    }
    rq.path = (const char *)path.b->data;
    rq.body = strcmp(verb, "status") == 0 ? NULL : &nothing;
    err = http_send(&rq, &a);
    if (err == 0 && a.status == 200 && body.b != NULL) {
        rc = show(cmd, verb, f, blob_span(body.b));
    } else {
        http_error_text(&a, text, sizeof text);
        cli_error(cmd, "%s", text);
        if (rq.body != NULL && http_in_doubt(err, &a))
            cli_error(cmd, "it is not known whether that was done; ask `sluice backfill status %s`",
                      collection);
    }
    http_answer_fini(&a);
    wr_fini(&path);
    wr_fini(&body);
    return rc;
}

/* Options that this verb does not have. */
static bool fits(const struct cli_command *cmd, const char *verb, const struct backfill_flags *f)
{
    if (strcmp(verb, "begin") != 0 && strcmp(verb, "complete") != 0 &&
        strcmp(verb, "status") != 0) {
        cli_error(cmd, "expected begin, complete or status, not \"%s\"", verb);
        return false;
    }
    if (f->force.n > 0 && strcmp(verb, "begin") != 0) {
        cli_error(cmd, "--force belongs to begin");
        return false;
    }
    if (f->begin.n > 0 && strcmp(verb, "complete") != 0) {
        cli_error(cmd, "--begin belongs to complete");
        return false;
    }
    return true;
}

int cmd_backfill(const struct cli_command *cmd, int argc, char **argv)
{
    struct backfill_flags f = {.admin = {.n = 0}};
    const struct cli_opt opts[] = {
        {"admin", "URL", false, "Server to ask [http://127.0.0.1:9094]. Also SLUICE_ADMIN",
         &f.admin},
        {"wait", NULL, false,
         "Come back when every partition carries the label and clients are shown the boundary; "
         "exit 1 when that takes longer than 10 minutes",
         &f.wait},
        {"force", NULL, false,
         "begin: also when documents of other producers would be hidden (they are not looked for)",
         &f.force},
        {"begin", "CLOCK", false,
         "complete: only the backfill that was begun at this clock, so that a later one is left "
         "alone",
         &f.begin},
        {"json", NULL, false, "Print the server's JSON", &f.json},
    };
    struct cli_args args;
    int err = cli_parse(cmd, opts, sizeof opts / sizeof opts[0], argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n != 2) {
        cli_error(cmd, "expected: begin|complete|status COLLECTION");
        return EXIT_USAGE;
    }
    return fits(cmd, args.v[0], &f) ? run(cmd, args.v[0], args.v[1], &f) : EXIT_USAGE;
}
