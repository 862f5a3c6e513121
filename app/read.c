/*
 * `sluice read JOURNAL`: the raw lines of a journal, each with its offset, as
 * `<offset of its last byte> TAB <line>`: the offset that Kafka clients see. From a running server,
 * or from a data folder that nobody holds.
 */
#include <inttypes.h>
#include <string.h>

#include "app/cli.h"
#include "app/http.h"
#include "app/move.h"
#include "app/store_sync.h"
#include "base/num.h"
#include "gateway/gateway.h"
#include "journal_client/local.h"

struct read_run {
    const struct cli_command *cmd;
    const char *journal;
    int64_t offset; /* documents whose last byte is at or behind it */
    int64_t end;    /* ... and before it; INT64_MAX: no end */
    int64_t limit;
    bool follow;
};

/* --- from a server
 * ----------------------------------------------------------------------------------- */

static bool on_bytes(void *arg, struct span bytes)
{
    (void)arg;
    return fwrite(bytes.p, 1, bytes.n, stdout) == bytes.n && fflush(stdout) == 0;
}

static int read_http(const struct read_run *r, const char *admin)
{
    struct http_rq rq = {.base = admin, .on_bytes = on_bytes};
    struct http_answer a;
    struct writer path;
    char text[512];
    int err, rc = EXIT_OK;

    wr_init(&path, 65536);
    wr_str(&path, "/v1/journals/");
    http_path(&path, r->journal);
    wr_printf(&path, "/content?offset=%" PRId64, r->offset);
    if (r->end != INT64_MAX)
        wr_printf(&path, "&end=%" PRId64, r->end);
    if (r->limit != INT64_MAX)
        wr_printf(&path, "&limit=%" PRId64, r->limit);
    if (r->follow)
        wr_str(&path, "&follow=true");
    wr_u8(&path, 0);
    if (wr_err(&path) < 0) {
        cli_error(r->cmd, "the journal's name is too long");
        wr_fini(&path);
        return EXIT_FAILED;
    }
    rq.path = (const char *)path.b->data;
    err = http_send(&rq, &a);
    if ((err < 0 || a.status != 200) && !ferror(stdout)) {
        http_error_text(&a, text, sizeof text);
        cli_error(r->cmd, "%s", text);
        rc = EXIT_FAILED;
    }
    http_answer_fini(&a);
    wr_fini(&path);
    return rc;
}

/* --- from a folder
 * ----------------------------------------------------------------------------------- */

static void print_block(struct read_run *r, const struct jc_block *b)
{
    for (size_t i = 0; i < b->segments_n; i++) {
        const uint8_t *p = b->segments[i].bytes->data, *nl;
        const uint8_t *stop = p + b->segments[i].bytes->len;
        int64_t at = b->segments[i].offset;

        for (; (nl = memchr(p, '\n', (size_t)(stop - p))) != NULL; p = nl + 1) {
            int64_t last = at + (nl - p);

            at = last + 1;
            if (last < r->offset || last >= r->end || r->limit == 0 || ferror(stdout))
                continue;
            r->limit--;
            (void)printf("%" PRId64 "\t", last);
            (void)fwrite(p, 1, (size_t)(nl + 1 - p), stdout);
        }
    }
}

static int read_blocks(struct read_run *r, struct jc_store *store, struct mailbox *mb,
                       const struct jc_journal *j)
{
    struct jc_heads heads;
    int64_t pos;
    int err = store_sync_heads(store, mb, j, &heads);

    if (err < 0)
        return err;
    if (r->offset > heads.write_head)
        return E_RANGE;
    pos = r->offset > heads.first ? r->offset : heads.first;
    /* a lost line is told at the end of every command (cli_end) */
    while (pos < heads.write_head && pos < r->end && r->limit > 0 && !ferror(stdout)) {
        struct jc_block_req rq = {.journal = j, .block = pos / JC_BLOCK_BYTES, .from = pos};
        struct jc_block b;

        if ((err = store_sync_block(store, mb, &rq, &b)) < 0)
            return err;
        print_block(r, &b);
        pos = (rq.block + 1) * JC_BLOCK_BYTES;
        jc_block_fini(&b);
    }
    return 0;
}

static int read_folder(struct read_run *r, const char *dir)
{
    struct jc_local_opts o = {.dir = dir, .probe = gw_doc_probe, .read_only = true};
    const struct jc_listing *listing = NULL;
    const struct jc_journal *j;
    struct jc_store *store = NULL;
    struct mailbox mb;
    char why[512] = "";
    int err = mailbox_init(&mb);

    if (err < 0) {
        cli_error(r->cmd, "%s", err_text(err));
        return EXIT_FAILED;
    }
    if ((err = move_not_local(&o, why, sizeof why)) < 0 ||
        (err = jc_local_open(&o, &store, why, sizeof why)) < 0)
        cli_error(r->cmd, "cannot open the data folder %s: %s", dir,
                  why[0] != '\0' ? why : err_text(err));
    else if ((err = store_sync_list(store, &mb, &listing)) < 0)
        cli_error(r->cmd, "%s", err_text(err));
    else if ((j = jc_listing_find(listing, span_str(r->journal))) == NULL)
        cli_error(r->cmd, "no such journal");
    else if ((err = read_blocks(r, store, &mb, j)) < 0)
        cli_error(r->cmd, "%s",
                  err == E_RANGE ? "the offset lies behind the journal's end" : err_text(err));
    if (err == 0 && jc_listing_find(listing, span_str(r->journal)) == NULL)
        err = E_NOTFOUND;
    jc_listing_unref(listing);
    if (store != NULL)
        store->ops->close(store);
    mailbox_fini(&mb);
    return err == 0 ? EXIT_OK : EXIT_FAILED;
}

/* --- command line
 * ------------------------------------------------------------------------------------ */

static int number(const struct cli_command *cmd, const char *name, const struct cli_values *v,
                  int64_t fallback, int64_t *out)
{
    const char *text = cli_value(v, NULL);

    *out = fallback;
    if (text == NULL)
        return 0;
    if (num_parse_i64(span_str(text), out) == 0 && *out >= 0)
        return 0;
    cli_error(cmd, "--%s is a number, not \"%s\"", name, text);
    return E_INVALID;
}

int cmd_read(const struct cli_command *cmd, int argc, char **argv)
{
    struct cli_values admin = {.n = 0}, dir = {.n = 0}, offset = {.n = 0}, end = {.n = 0},
                      limit = {.n = 0}, follow = {.n = 0};
    const struct cli_opt opts[] = {
        {"admin", "URL", false, "Server to ask [http://127.0.0.1:9094]. Also SLUICE_ADMIN", &admin},
        {"data-dir", "DIR", false, "Read from a data folder that no server holds", &dir},
        {"offset", "N", false, "First offset: a document that ends before it is left out [0]",
         &offset},
        {"end", "N", false, "Only documents whose last byte lies before it", &end},
        {"limit", "N", false, "At most so many documents", &limit},
        {"follow", NULL, false, "Wait for more at the end", &follow},
    };
    struct read_run r = {.cmd = cmd};
    struct cli_args args;
    int err = cli_parse(cmd, opts, sizeof opts / sizeof opts[0], argc, argv, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n != 1) {
        cli_error(cmd, "expected: JOURNAL");
        return EXIT_USAGE;
    }
    r.journal = args.v[0];
    r.follow = cli_switch(&follow);
    if (number(cmd, "offset", &offset, 0, &r.offset) < 0 ||
        number(cmd, "end", &end, INT64_MAX, &r.end) < 0 ||
        number(cmd, "limit", &limit, INT64_MAX, &r.limit) < 0)
        return EXIT_USAGE;
    if (dir.n > 0 && (admin.n > 0 || r.follow)) {
        cli_error(cmd, "--data-dir excludes --admin and --follow");
        return EXIT_USAGE;
    }
    if (dir.n > 0)
        return read_folder(&r, cli_value(&dir, NULL));
    return read_http(&r, http_admin(cli_value(&admin, NULL)));
}
