/*
 * `sluice collections|journals|topics|connections`: what a running server has, as a table, or its
 * JSON as it is.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "app/cli.h"
#include "app/http.h"
#include "app/plain.h"
#include "base/arena.h"

#define COLUMNS_MAX 9

/* Rows of texts, printed with columns as wide as their widest cell. */
struct table {
    struct arena arena;
    size_t columns;
    size_t rows_n;
    size_t rows_cap;
    const char ***rows;
};

static void table_add(struct table *t, const char *const *cells)
{
    const char **row;

    if (t->rows_n == t->rows_cap) {
        size_t cap = t->rows_cap == 0 ? 64 : 2 * t->rows_cap;
        const char ***grown = arena_array(&t->arena, cap, sizeof grown[0]);

        if (grown == NULL)
            return;
        if (t->rows_n > 0)
            memcpy(grown, t->rows, t->rows_n * sizeof grown[0]);
        t->rows = grown;
        t->rows_cap = cap;
    }
    if ((row = arena_array(&t->arena, t->columns, sizeof row[0])) == NULL)
        return;
    for (size_t i = 0; i < t->columns; i++)
        row[i] = cells[i] == NULL ? "" : cells[i];
    t->rows[t->rows_n++] = row;
}

static void table_print(const struct table *t)
{
    size_t width[COLUMNS_MAX] = {0};

    for (size_t r = 0; r < t->rows_n; r++)
        for (size_t c = 0; c < t->columns; c++)
            if (strlen(t->rows[r][c]) > width[c])
                width[c] = strlen(t->rows[r][c]);
    for (size_t r = 0; r < t->rows_n; r++)
        for (size_t c = 0; c < t->columns; c++) {
            bool last = c + 1 == t->columns;

            (void)printf("%-*s%s", last ? 0 : (int)width[c], t->rows[r][c], last ? "\n" : "  ");
        }
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s == NULL ? "" : s;
}

static const char *number_of(struct table *t, const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);

    return json_is_integer(v) ? arena_printf(&t->arena, "%" PRId64, (int64_t)json_integer_value(v))
                              : "";
}

static void fill_collections(struct table *t, const json_t *root)
{
    json_t *c, *k;
    size_t i, n;

    t->columns = 3;
    table_add(t, (const char *const[]){"COLLECTION", "PARTITIONS", "KEY"});
    json_array_foreach(json_object_get(root, "collections"), i, c)
    {
        const char *key = "";

        json_array_foreach(json_object_get(c, "key"), n, k)
        {
            key = arena_printf(&t->arena, "%s%s%s", key, n > 0 ? " " : "",
                               json_string_value(k) == NULL ? "" : json_string_value(k));
            if (key == NULL)
                key = "";
        }
        if (json_object_get(c, "fault") != NULL)
            key = arena_printf(&t->arena, "(%s)", text_of(c, "fault"));
        table_add(t, (const char *const[]){text_of(c, "name"), number_of(t, c, "partitions"), key});
    }
}

static void fill_journals(struct table *t, const json_t *root)
{
    json_t *j;
    size_t i;

    t->columns = 5;
    table_add(
        t, (const char *const[]){"JOURNAL", "REVISION", "FIRST", "HIGH WATERMARK", "WRITE HEAD"});
    json_array_foreach(json_object_get(root, "journals"), i, j)
    {
        const json_t *h = json_object_get(j, "heads");

        table_add(t,
                  (const char *const[]){text_of(j, "name"), number_of(t, j, "mod_revision"),
                                        number_of(t, h, "first"), number_of(t, h, "high_watermark"),
                                        number_of(t, h, "write_head")});
    }
}

/* "-", or the clock and whether its backfill is complete. */
static const char *backfill_of(struct table *t, const json_t *topic)
{
    static const char none[] = "0000000000000000";
    const char *begin = text_of(topic, "backfill_begin");
    bool complete = strcmp(begin, text_of(topic, "backfill_completed")) == 0;

    if (begin[0] == '\0' || strcmp(begin, none) == 0)
        return "-";
    const char *text = arena_printf(&t->arena, "%s %s", begin, complete ? "complete" : "open");
    return text == NULL ? begin : text;
}

static void fill_topics(struct table *t, const json_t *root)
{
    json_t *topic, *p;
    size_t i, k;

    t->columns = 8;
    table_add(t, (const char *const[]){"TOPIC", "TASK", "PARTITION", "LOG START", "HIGH WATERMARK",
                                       "EPOCH", "JOURNAL", "BACKFILL"});
    json_array_foreach(json_object_get(root, "topics"), i, topic)
    {
        json_array_foreach(json_object_get(topic, "partitions"), k, p)
        {
            table_add(t, (const char *const[]){
                             text_of(topic, "name"), text_of(topic, "task"),
                             number_of(t, p, "partition"), number_of(t, p, "log_start"),
                             number_of(t, p, "high_watermark"), number_of(t, topic, "epoch"),
                             text_of(p, "journal"), backfill_of(t, topic)});
        }
    }
}

static void fill_connections(struct table *t, const json_t *root)
{
    json_t *c;
    size_t i;

    t->columns = 9;
    table_add(t, (const char *const[]){"PEER", "CLIENT", "TASK", "WORKER", "STATE", "REQUESTS",
                                       "RECEIVED", "SENT", "IDLE MS"});
    json_array_foreach(json_object_get(root, "connections"), i, c)
    {
        table_add(
            t, (const char *const[]){text_of(c, "peer"), text_of(c, "client"), text_of(c, "task"),
                                     number_of(t, c, "worker"), text_of(c, "state"),
                                     number_of(t, c, "requests"), number_of(t, c, "received_bytes"),
                                     number_of(t, c, "sent_bytes"), number_of(t, c, "idle_ms")});
    }
}

static int show(const struct cli_command *cmd, const struct http_answer *a, bool json,
                void (*fill)(struct table *t, const json_t *root))
{
    struct span body = a->body.b == NULL ? span_of("", 0) : blob_span(a->body.b);
    struct table t = {.columns = 0};
    json_t *root;

    if (json) {
        (void)fwrite(body.p, 1, body.n, stdout);
        return EXIT_OK;
    }
    if ((root = json_loadb((const char *)body.p, body.n, 0, NULL)) == NULL) {
        cli_error(cmd, "the server's answer is not understood");
        return EXIT_FAILED;
    }
    plain_texts(root);
    arena_init(&t.arena, (size_t)1 << 30);
    fill(&t, root);
    table_print(&t);
    arena_fini(&t.arena);
    json_decref(root);
    return EXIT_OK;
}

static int list(const struct cli_command *cmd, int argc, char **argv, const char *path,
                void (*fill)(struct table *t, const json_t *root))
{
    struct cli_values admin = {.n = 0}, json = {.n = 0};
    const struct cli_opt opts[] = {
        {"admin", "URL", false, "Server to ask [http://127.0.0.1:9094]. Also SLUICE_ADMIN", &admin},
        {"json", NULL, false, "Print the server's JSON", &json},
    };
    struct http_rq rq = {.path = path};
    struct http_answer a;
    struct cli_args args;
    char text[512];
    int rc = EXIT_FAILED, err = cli_parse(cmd, opts, 2, argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n > 0) {
        cli_error(cmd, "unexpected argument \"%s\"", args.v[0]);
        return EXIT_USAGE;
    }
    rq.base = http_admin(cli_value(&admin, NULL));
    err = http_send(&rq, &a);
    if (err == 0 && a.status == 200) {
        rc = show(cmd, &a, cli_switch(&json), fill);
    } else {
        http_error_text(&a, text, sizeof text);
        cli_error(cmd, "%s", text);
    }
    http_answer_fini(&a);
    return rc;
}

int cmd_collections(const struct cli_command *cmd, int argc, char **argv)
{
    return list(cmd, argc, argv, "/v1/collections", fill_collections);
}

int cmd_journals(const struct cli_command *cmd, int argc, char **argv)
{
    return list(cmd, argc, argv, "/v1/journals", fill_journals);
}

int cmd_topics(const struct cli_command *cmd, int argc, char **argv)
{
    return list(cmd, argc, argv, "/v1/topics", fill_topics);
}

int cmd_connections(const struct cli_command *cmd, int argc, char **argv)
{
    return list(cmd, argc, argv, "/v1/connections", fill_connections);
}
