/*
 * `sluice publish`: documents from a file or standard input into a collection, one transaction a
 * batch. Every batch has an Idempotency-Key, so that a lost answer can be asked for again without
 * publishing twice. Stops at the first batch that is refused and says what was published before.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "app/cli.h"
#include "app/publish_sink.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/publish.h"

#define BATCH_BYTES     ((size_t)4 << 20)
#define BATCH_BYTES_MAX ((size_t)32 << 20) /* below the server's default limit of a body */
#define BATCH_DOCUMENTS 10000
#define TRIES           6

/* What was published into one partition. */
struct published {
    bool used;
    char *journal;
    int64_t documents, first_offset, last_offset;
};

/* Owner: main thread. */
struct publish_run {
    const struct cli_command *cmd;
    struct publish_target target;
    struct publish_sink *sink;
    struct publish_input input;
    char key[PUBLISH_MAX_IDEM_KEY + 64]; /* stem of the batches' keys */
    bool json;
    int64_t documents, transactions, replayed;
    int64_t batches; /* sent: numbers the keys */
    bool in_doubt;   /* the last batch may have been published */
    struct published parts[PUBLISH_MAX_PARTITIONS];
};

/* --- answers
 * ----------------------------------------------------------------------------------------- */

static int64_t integer(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static int take_answer(struct publish_run *r, const struct http_answer *a)
{
    struct span body = blob_span(a->body.b);
    json_t *root = json_loadb((const char *)body.p, body.n, 0, NULL), *part;
    size_t i;

    if (!json_is_object(root)) {
        json_decref(root);
        return E_SYNTAX;
    }
    r->documents += integer(root, "documents");
    r->transactions += integer(root, "documents") > 0;
    r->replayed += a->replayed;
    json_array_foreach(json_object_get(root, "partitions"), i, part)
    {
        int64_t index = integer(part, "partition");
        struct published *p;

        if (index < 0 || index >= PUBLISH_MAX_PARTITIONS)
            continue;
        p = &r->parts[index];
        if (!p->used) {
            const char *journal = json_string_value(json_object_get(part, "journal"));

            p->used = true;
            p->first_offset = integer(part, "first_offset");
            p->journal = mem_strdup(journal == NULL ? "" : journal);
        }
        p->documents += integer(part, "documents");
        p->last_offset = integer(part, "last_offset");
    }
    json_decref(root);
    return 0;
}

static void print_bad_lines(struct publish_run *r, const struct publish_batch *b,
                            const struct http_answer *a)
{
    struct span body = a->body.b == NULL ? span_of("", 0) : blob_span(a->body.b);
    json_t *root = json_loadb((const char *)body.p, body.n, 0, NULL), *e;
    size_t i, n = json_array_size(json_object_get(root, "errors"));
    char text[512];

    http_error_text(a, text, sizeof text);
    if (n == 0)
        cli_error(r->cmd, "%s", text);
    json_array_foreach(json_object_get(root, "errors"), i, e)
    {
        const char *reason = json_string_value(json_object_get(e, "reason"));

        (void)fprintf(stderr, "line %" PRId64 ", byte %" PRId64 ": %s\n",
                      (int64_t)b->line - 1 + integer(e, "line"), integer(e, "at") + 1,
                      reason == NULL ? "" : reason);
    }
    if (n > 0 && integer(root, "total") > (int64_t)n)
        (void)fprintf(stderr, "and %" PRId64 " more\n", integer(root, "total") - (int64_t)n);
    json_decref(root);
}

static void print_published(const struct publish_run *r, FILE *out)
{
    (void)fprintf(out, "published %" PRId64 " document%s to %s in %" PRId64 " transaction%s%s\n",
                  r->documents, r->documents == 1 ? "" : "s", r->target.collection, r->transactions,
                  r->transactions == 1 ? "" : "s",
                  r->replayed == 0 ? ""
                  : r->replayed == r->transactions
                      ? " (before, under the same Idempotency-Key)"
                      : " (partly before, under the same Idempotency-Key)");
    for (size_t i = 0; i < PUBLISH_MAX_PARTITIONS; i++)
        if (r->parts[i].used)
            (void)fprintf(out,
                          "  partition %zu: %" PRId64 " document%s, offsets %" PRId64 " to %" PRId64
                          "\n",
                          i, r->parts[i].documents, r->parts[i].documents == 1 ? "" : "s",
                          r->parts[i].first_offset, r->parts[i].last_offset);
}

static void print_json(const struct publish_run *r, bool complete)
{
    json_t *list = json_array();
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:I, s:b, s:b, s:s, s:o}", "collection", r->target.collection,
                  "documents", (json_int_t)r->documents, "transactions",
                  (json_int_t)r->transactions, "replayed", (json_int_t)r->replayed, "complete",
                  complete, "in_doubt", r->in_doubt, "idempotency_key", r->key, "partitions", list);

    for (size_t i = 0; root != NULL && i < PUBLISH_MAX_PARTITIONS; i++)
        if (r->parts[i].used)
            (void)json_array_append_new(
                list, json_pack("{s:i, s:s, s:I, s:I, s:I}", "partition", (int)i, "journal",
                                r->parts[i].journal == NULL ? "" : r->parts[i].journal, "documents",
                                (json_int_t)r->parts[i].documents, "first_offset",
                                (json_int_t)r->parts[i].first_offset, "last_offset",
                                (json_int_t)r->parts[i].last_offset));
    (void)json_dumpf(root, stdout, JSON_COMPACT);
    (void)fputc('\n', stdout);
    json_decref(root);
}

/* --- sending
 * ----------------------------------------------------------------------------------------- */

static void pause_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    (void)nanosleep(&ts, NULL);
}

/* Sends one batch; again under the same key after a lost connection or a 503. A failure sets
 * in_doubt when the batch may have been published all the same. */
static int send_batch(struct publish_run *r, const struct publish_batch *b)
{
    char key[sizeof r->key + 32];
    int err = 0;

    (void)snprintf(key, sizeof key, "%s-%" PRId64, r->key, ++r->batches);
    for (int i = 0; i < TRIES; i++) {
        struct http_answer a;
        bool again, good;

        err = r->sink->send(r->sink, b, key, &a);
        again = (err < 0 && a.retry) || (err == 0 && a.status == 503);
        good = err == 0 && a.status == 200;
        if (http_in_doubt(err, &a))
            r->in_doubt = true;
        else if (err == 0 && !again) /* the key was looked at: no earlier try has published */
            r->in_doubt = false;
        if (again && i + 1 < TRIES) {
            http_answer_fini(&a);
            pause_ms(200L << i);
            continue;
        }
        if (good)
            err = take_answer(r, &a);
        else
            print_bad_lines(r, b, &a);
        http_answer_fini(&a);
        if (good && err < 0) {
            r->in_doubt = true;
            cli_error(r->cmd, "the server's answer is not understood");
        }
        return good ? err : again ? E_AGAIN : E_INVALID;
    }
    return err;
}

/* The rest is not sent: says what is there, what is not, and how to go on without doubles. */
static void print_stopped(const struct publish_run *r, const struct publish_batch *b)
{
    if (r->in_doubt)
        (void)fprintf(stderr,
                      "it is not known whether the batch that begins on line %zu was published; "
                      "nothing behind it was; before it: ",
                      b->line);
    else
        (void)fprintf(stderr,
                      "nothing of the lines from %zu on was published; before them: ", b->line);
    print_published(r, stderr);
    if (r->in_doubt || r->transactions > 0)
        (void)fprintf(stderr,
                      "run it again with the same input, the same --batch and "
                      "--idempotency-key %s: nothing is published twice\n",
                      r->key);
}

static int send_all(struct publish_run *r)
{
    struct publish_batch b;
    int err;

    while ((err = publish_input_next(&r->input, &b)) == 0) {
        err = send_batch(r, &b);
        if (err < 0)
            print_stopped(r, &b);
        blob_unref(b.body);
        if (err < 0)
            return err;
    }
    if (err != E_NOTFOUND) {
        cli_error(r->cmd, "%s", r->input.fault);
        if (r->transactions > 0)
            print_published(r, stderr);
        return err;
    }
    if (r->batches > 0)
        return 0;
    /* No document at all: the server still judges the name, and makes a new collection. */
    b = (struct publish_batch){.body = blob_copy(span_of("", 0)), .line = 1};
    if (b.body == NULL)
        return E_NOMEM;
    err = send_batch(r, &b);
    blob_unref(b.body);
    return err;
}

/* --- command line
 * ------------------------------------------------------------------------------------ */

struct publish_flags {
    struct cli_values admin, data_dir, key, partitions, batch, idem, json;
};

static int parse_batch(const char *text, size_t *documents, size_t *bytes)
{
    struct span s = span_str(text);
    uint64_t v;

    *documents = BATCH_DOCUMENTS;
    *bytes = BATCH_BYTES;
    if (text == NULL)
        return 0;
    if (num_parse_u64(s, &v) == 0 && v > 0 && v <= 10000000) {
        *documents = (size_t)v;
        *bytes = BATCH_BYTES_MAX;
        return 0;
    }
    if (num_parse_u64(s, &v) == 0 || num_parse_bytes(s, &v) < 0 || v == 0 || v > (uint64_t)1 << 30)
        return E_INVALID;
    *documents = SIZE_MAX;
    *bytes = (size_t)v;
    return 0;
}

static int make_key(struct publish_run *r, const char *given)
{
    uint8_t random[12];
    size_t n = 0;

    if (given != NULL) {
        for (const char *p = given; *p != '\0'; p++, n++)
            if (*p < 0x21 || *p > 0x7e)
                return E_INVALID;
        if (n == 0 || n > PUBLISH_MAX_IDEM_KEY - 32)
            return E_INVALID;
        (void)snprintf(r->key, sizeof r->key, "%s", given);
        return 0;
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return E_IO;
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(r->key + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static int check_flags(struct publish_run *r, const struct publish_flags *f, size_t *documents,
                       size_t *bytes)
{
    uint64_t partitions = 0;
    const char *text;

    if (f->admin.n > 0 && f->data_dir.n > 0) {
        cli_error(r->cmd, "--admin and --data-dir exclude each other");
        return E_INVALID;
    }
    if ((text = cli_value(&f->partitions, NULL)) != NULL &&
        (num_parse_u64(span_str(text), &partitions) < 0 || partitions == 0 ||
         partitions > PUBLISH_MAX_PARTITIONS)) {
        cli_error(r->cmd, "--partitions must be 1 to %d", PUBLISH_MAX_PARTITIONS);
        return E_INVALID;
    }
    r->target.partitions = (unsigned)partitions;
    if (f->key.n > PUBLISH_MAX_KEYS) {
        cli_error(r->cmd, "at most %d times --key", PUBLISH_MAX_KEYS);
        return E_INVALID;
    }
    for (size_t i = 0; i < f->key.n; i++) {
        if (f->key.v[i][0] != '/') {
            cli_error(r->cmd, "--key %s is no JSON pointer; did you mean /%s?", f->key.v[i],
                      f->key.v[i]);
            return E_INVALID;
        }
    }
    r->target.keys = f->key.v;
    r->target.keys_n = f->key.n;
    if (parse_batch(cli_value(&f->batch, NULL), documents, bytes) < 0) {
        cli_error(r->cmd, "--batch is a number of documents or a size such as 4MiB");
        return E_INVALID;
    }
    if (make_key(r, cli_value(&f->idem, NULL)) < 0) {
        cli_error(r->cmd, "--idempotency-key has 1 to %d visible ASCII characters",
                  PUBLISH_MAX_IDEM_KEY - 32);
        return E_INVALID;
    }
    return 0;
}

static int open_sink(struct publish_run *r, const struct publish_flags *f)
{
    char why[512] = "out of memory";
    const char *dir = cli_value(&f->data_dir, NULL);
    int err = dir != NULL
                  ? publish_sink_direct(dir, &r->target, &r->sink, why, sizeof why)
                  : publish_sink_http(http_admin(cli_value(&f->admin, NULL)), &r->target, &r->sink);

    if (err < 0)
        cli_error(r->cmd, "%s", why);
    if (err == E_BUSY)
        (void)fprintf(stderr, "publish through that server instead: --admin URL\n");
    return err;
}

static int run(struct publish_run *r, const struct publish_flags *f, const char *path)
{
    size_t documents, bytes;
    FILE *in = stdin;
    int err;

    if (check_flags(r, f, &documents, &bytes) < 0)
        return EXIT_USAGE;
    if (strcmp(path, "-") != 0 && (in = fopen(path, "rb")) == NULL) {
        char text[128];

        cli_error(r->cmd, "%s: %s", path, strerror_r(errno, text, sizeof text));
        return EXIT_FAILED;
    }
    publish_input_init(&r->input, in, documents, bytes);
    if ((err = open_sink(r, f)) == 0) {
        err = send_all(r);
        if (r->json)
            print_json(r, err == 0);
        else if (err == 0)
            print_published(r, stdout);
        r->sink->close(r->sink);
    }
    publish_input_fini(&r->input);
    if (in != stdin)
        (void)fclose(in);
    return err == 0 ? EXIT_OK : EXIT_FAILED;
}

int cmd_publish(const struct cli_command *cmd, int argc, char **argv)
{
    struct publish_flags *f = mem_zalloc(sizeof *f);
    struct publish_run *r = mem_zalloc(sizeof *r);
    struct cli_args args;
    int rc = EXIT_FAILED, err;

    if (f == NULL || r == NULL) {
        cli_error(cmd, "out of memory");
        goto out;
    }
    const struct cli_opt opts[] = {
        {"admin", "URL", false, "Server to publish to [http://127.0.0.1:9094]. Also SLUICE_ADMIN",
         &f->admin},
        {"data-dir", "DIR", false, "Publish into a data folder that no server holds", &f->data_dir},
        {"key", "POINTER", true,
         "JSON pointer of the key, e.g. /id, of a collection that this creates; without one, "
         "documents are spread by their text",
         &f->key},
        {"partitions", "N", false, "Partitions of a collection that this creates", &f->partitions},
        {"batch", "N|SIZE", false,
         "Documents, or bytes (4MiB), of one transaction [4MiB or 10000 documents]", &f->batch},
        {"idempotency-key", "KEY", false,
         "Stem of the batches' Idempotency-Keys: running the same command again with it publishes "
         "nothing twice. Default: random",
         &f->idem},
        {"json", NULL, false, "Print the result as JSON", &f->json},
    };

    r->cmd = cmd;
    err = cli_parse(cmd, opts, sizeof opts / sizeof opts[0], argc, argv, &args);
    if (err != 0) {
        rc = err == 1 ? EXIT_OK : EXIT_USAGE;
    } else if (args.n < 1 || args.n > 2) {
        cli_error(cmd, "expected: COLLECTION [FILE|-]");
        rc = EXIT_USAGE;
    } else {
        r->target.collection = args.v[0];
        r->json = cli_switch(&f->json);
        rc = run(r, f, args.n == 2 ? args.v[1] : "-");
    }
out:
    for (size_t i = 0; r != NULL && i < PUBLISH_MAX_PARTITIONS; i++)
        mem_free(r->parts[i].journal);
    mem_free(r);
    mem_free(f);
    return rc;
}
