/*
 * `sluice groups [describe|reset|delete GROUP]`: consumer groups, their lag, and what an operator
 * does to them, by the admin API of a running server.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "app/cli.h"
#include "app/http.h"
#include "app/plain.h"

struct groups_flags {
    struct cli_values admin, json, task, topic, partition, to, to_time, execute;
};

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s == NULL ? "" : s;
}

/* "-" where the server does not know it. One of a few buffers in turn. */
static const char *number_of(const json_t *o, const char *name)
{
    static char text[8][24];
    static unsigned turn;
    const json_t *v = json_object_get(o, name);

    if (!json_is_integer(v))
        return "-";
    char *out = text[turn++ % 8];
    (void)snprintf(out, sizeof text[0], "%" PRId64, (int64_t)json_integer_value(v));
    return out;
}

static int widest(const json_t *list, const char *name, int least)
{
    const json_t *o;
    size_t i;

    json_array_foreach(list, i, o)
    {
        int n = (int)strlen(text_of(o, name));
        least = n > least ? n : least;
    }
    return least;
}

static void print_list(const json_t *root)
{
    const json_t *list = json_object_get(root, "groups"), *g;
    int id = widest(list, "group", 5), task = widest(list, "task", 4);
    size_t i;

    (void)printf("%-*s  %-*s  %-8s  %-20s  %10s  %7s  %s\n", id, "GROUP", task, "TASK", "TYPE",
                 "STATE", "GENERATION", "MEMBERS", "LAG");
    json_array_foreach(list, i, g)
    {
        (void)printf("%-*s  %-*s  %-8s  %-20s  %10s  %7s  %s\n", id, text_of(g, "group"), task,
                     text_of(g, "task"), text_of(g, "type"), text_of(g, "state"),
                     number_of(g, "generation"), number_of(g, "members"), number_of(g, "lag"));
    }
}

static void print_one(const json_t *g)
{
    const json_t *list = json_object_get(g, "offsets"), *o;
    int topic = widest(list, "topic", 5);
    size_t i;

    (void)printf("group       %s\ntask        %s\ntype        %s\nstate       %s\n"
                 "generation  %s\nmembers     %s\nlag         %s\n",
                 text_of(g, "group"), text_of(g, "task"), text_of(g, "type"), text_of(g, "state"),
                 number_of(g, "generation"), number_of(g, "members"), number_of(g, "lag"));
    json_array_foreach(json_object_get(g, "member_list"), i, o)
    {
        (void)printf("member      %s %s %s%s%s\n", text_of(o, "member"), text_of(o, "client"),
                     text_of(o, "host"), text_of(o, "instance")[0] != '\0' ? " static " : "",
                     text_of(o, "instance"));
    }
    (void)printf("\n%-*s  %9s  %5s  %14s  %14s  %s\n", topic, "TOPIC", "PARTITION", "EPOCH",
                 "COMMITTED", "HIGH WATERMARK", "LAG");
    json_array_foreach(list, i, o)
    {
        bool present = json_is_true(json_object_get(o, "present"));

        (void)printf("%-*s  %9s  %5s  %14s  %14s  %s\n", topic, text_of(o, "topic"),
                     number_of(o, "partition"), number_of(o, "epoch"), number_of(o, "committed"),
                     number_of(o, "high_watermark"),
                     present ? number_of(o, "lag") : "(of an older epoch)");
    }
}

static void print_reset(const json_t *root)
{
    const json_t *list = json_object_get(root, "offsets"), *o;
    int topic = widest(list, "topic", 5);
    size_t i;

    (void)printf("%-*s  %9s  %14s  %14s\n", topic, "TOPIC", "PARTITION", "FROM", "TO");
    json_array_foreach(list, i, o)
    {
        (void)printf("%-*s  %9s  %14s  %14s\n", topic, text_of(o, "topic"),
                     number_of(o, "partition"), number_of(o, "from"), number_of(o, "to"));
    }
    if (!json_is_true(json_object_get(root, "executed")))
        (void)printf("nothing was changed: give --execute to do it\n");
}

static void print_deleted(const json_t *root)
{
    (void)root;
    (void)printf("deleted\n");
}

/* --- what is asked --- */

static const struct verb {
    const char *name; /* NULL: the list */
    const char *method;
    void (*print)(const json_t *root);
} verbs[] = {
    {"describe", NULL, print_one},
    {"reset", "POST", print_reset},
    {"delete", "DELETE", print_deleted},
};
static const struct verb list_verb = {NULL, NULL, print_list};

static void add_query(struct writer *w, const char *name, const char *value)
{
    if (value == NULL)
        return;
    const char *so_far = w->b == NULL ? "" : (const char *)w->b->data;
    wr_str(w, memchr(so_far, '?', wr_len(w)) == NULL ? "?" : "&");
    wr_printf(w, "%s=", name);
    http_query(w, value);
}

static void write_path(struct writer *w, const struct verb *v, const char *group,
                       const struct groups_flags *f)
{
    wr_str(w, "/v1/groups");
    if (group != NULL) {
        wr_str(w, "/");
        http_path(w, group);
    }
    if (v->print == print_reset)
        wr_str(w, "/reset");
    add_query(w, "task", cli_value(&f->task, NULL));
    if (v->print == print_reset) {
        add_query(w, "topic", cli_value(&f->topic, NULL));
        add_query(w, "partition", cli_value(&f->partition, NULL));
        add_query(w, "to", cli_value(&f->to, NULL));
        add_query(w, "time", cli_value(&f->to_time, NULL));
        if (cli_switch(&f->execute))
            add_query(w, "execute", "true");
    }
    wr_u8(w, 0);
}

static int show(const struct cli_command *cmd, const struct verb *v, bool json,
                const struct http_answer *a)
{
    struct span body = a->body.b == NULL ? span_of("", 0) : blob_span(a->body.b);
    json_t *root;

    if (json) {
        (void)fwrite(body.p, 1, body.n, stdout);
        return EXIT_OK;
    }
    if ((root = json_loadb((const char *)body.p, body.n, 0, NULL)) == NULL) {
        cli_error(cmd, "the server's answer is not understood");
        return EXIT_FAILED;
    }
    v->print(root);
    json_decref(root);
    return EXIT_OK;
}

static int ask(const struct cli_command *cmd, const struct verb *v, const char *group,
               const struct groups_flags *f)
{
    static const struct span nothing = {(const uint8_t *)"", 0};
    struct http_rq rq = {.base = http_admin(cli_value(&f->admin, NULL)), .method = v->method};
    struct http_answer a;
    struct writer path;
    char text[512];
    int rc = EXIT_FAILED;

    wr_init(&path, 65536);
    write_path(&path, v, group, f);
    if (wr_err(&path) < 0) {
        cli_error(cmd, "%s", err_text(wr_err(&path)));
        wr_fini(&path);
        return EXIT_FAILED;
    }
    rq.path = (const char *)path.b->data;
    if (v->print == print_reset)
        rq.body = &nothing;
    int err = http_send(&rq, &a);
    if (err == 0 && a.status == 200) {
        rc = show(cmd, v, cli_switch(&f->json), &a);
    } else {
        http_error_text(&a, text, sizeof text);
        bool hint = f->task.n == 0 && strstr(text, "no such group") != NULL;
        cli_error(cmd, "%s%s", text,
                  hint ? " (of a task: give --task; `sluice groups` lists them)" : "");
    }
    http_answer_fini(&a);
    wr_fini(&path);
    return rc;
}

int cmd_groups(const struct cli_command *cmd, int argc, char **argv)
{
    struct groups_flags f = {.admin = {.n = 0}};
    const struct cli_opt opts[] = {
        {"admin", "URL", false, "Server to ask [http://127.0.0.1:9094]. Also SLUICE_ADMIN",
         &f.admin},
        {"json", NULL, false, "Print the server's JSON", &f.json},
        {"task", "NAME", false, "Task that the group belongs to [without a catalog: none]",
         &f.task},
        {"topic", "NAME", false, "reset: this topic alone [all that it has offsets of]", &f.topic},
        {"partition", "N", false, "reset: this partition of --topic alone", &f.partition},
        {"to", "earliest|latest|OFFSET", false, "reset: where the group goes on", &f.to},
        {"to-time", "RFC3339|MS", false,
         "reset: at the first document of that time or later (MS: milliseconds since 1970)",
         &f.to_time},
        {"execute", NULL, false, "reset: do it", &f.execute},
    };
    struct cli_args args;
    int err = cli_parse(cmd, opts, sizeof opts / sizeof opts[0], argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n == 0)
        return ask(cmd, &list_verb, NULL, &f);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(args.v[0], verbs[i].name) != 0)
            continue;
        if (args.n != 2) {
            cli_error(cmd, "%s wants one group", args.v[0]);
            return EXIT_USAGE;
        }
        return ask(cmd, &verbs[i], args.v[1], &f);
    }
    cli_error(cmd, "\"%s\" is none of describe, reset, delete", args.v[0]);
    return EXIT_USAGE;
}
