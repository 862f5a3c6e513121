/*
 * `sluice move plan|close|run|undo`: hands the journals of a data folder over to a Gazette cluster
 * (docs/moving-to-gazette.md). The fragments stay as they are, byte by byte: they are laid out as a
 * cluster's store lays them out. What else a gateway remembers goes along: topics' generations,
 * idempotency keys, states of backfills; groups.db stays where it is.
 *
 * After `run` the folder is marked: the local store does not serve it any more, since what is
 * published to one of two copies is missing in the other.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/move.h"
#include "app/serve_options.h"

enum move_step { MOVE_PLAN, MOVE_CLOSE, MOVE_RUN, MOVE_UNDO };

static void on_done(void *arg, int err)
{
    int *out = arg;

    *out = err < 0 ? err : 1;
}

static int flush(struct move *m)
{
    int done = 0;
    int err = jc_local_flush(m->local, &m->mb.ex, on_done, &done);

    while (err == 0 && done == 0)
        (void)mailbox_wait(&m->mb, -1);
    return err < 0 ? err : done < 0 ? done : 0;
}

static bool has_open(const struct move_journal *j)
{
    int64_t end = j->fragments_n == 0 ? j->heads.first : j->fragments[j->fragments_n - 1].end;

    return end < j->heads.write_head ||
           (j->fragments_n > 0 && j->fragments[j->fragments_n - 1].open);
}

static void print_plan(const struct move *m)
{
    size_t open = 0;
    int64_t bytes = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct move_journal *j = &m->v[i];
        open += has_open(j);
        bytes += j->heads.write_head - j->heads.first;
        (void)printf("%s  %" PRId64 "-%" PRId64 "  %zu fragments%s\n", j->from->spec.name,
                     j->heads.first, j->heads.write_head, j->fragments_n,
                     has_open(j) ? ", the last one open" : "");
        if (j->from->spec.retention_bytes > 0)
            (void)printf("  its limit of %" PRId64 " bytes has no counterpart in a cluster\n",
                         j->from->spec.retention_bytes);
    }
    (void)printf("%zu journals, %" PRId64 " bytes, %zu open fragments\n", m->n, bytes, open);
}

static int mark(struct move *m, const char *url, bool set)
{
    struct jc_kv kv = {.key = MOVE_MARK, .value = span_str(url), .expires_ms = set ? 0 : 1};

    return store_sync_kv_put(m->local, &m->mb, &kv, 1);
}

static int run(const struct cli_command *cmd, struct move *m, const struct config *settings,
               const struct serve_config *config)
{
    int err = jc_gazette_open(&config->gazette, &m->cluster, m->why, sizeof m->why);

    if (err == 0 && (err = move_journals(m)) == 0 && (err = move_values(m)) == 0)
        err = mark(m, settings->store, true);
    if (err < 0 && m->cluster != NULL)
        move_unmake(m);
    if (m->cluster != NULL)
        m->cluster->ops->close(m->cluster);
    if (err < 0) {
        cli_error(cmd, "nothing was moved: %s", m->why[0] != '\0' ? m->why : err_text(err));
        return err;
    }
    /* Without the store, journals that come later would be kept by the brokers alone. */
    (void)printf("moved to %s\nserve it with: --data-dir %s --store %s --fragment-store %s",
                 settings->store, settings->data_dir, settings->store, settings->fragment_store);
    if (settings->fragment_root[0] != '\0')
        (void)printf(" --fragment-root %s", settings->fragment_root);
    (void)printf("\n");
    return 0;
}

/* A gateway that serves the folder through the cluster holds DIR/state, not DIR: taking the mark
 * away under it, or opening a local store, would let a second one begin beside it, over the same
 * groups. */
static int cluster_stopped(const struct jc_local_opts *local, char *why, size_t n)
{
    struct jc_local_opts o = *local;
    struct jc_store *state = NULL;
    struct stat st;
    char dir[PATH_MAX];

    if (snprintf(dir, sizeof dir, "%s/state", local->dir) >= (int)sizeof dir)
        return E_LIMIT;
    if (stat(dir, &st) < 0)
        return 0; /* no gateway of a cluster ever ran here */
    o.dir = dir;
    int err = jc_local_open(&o, &state, why, n);
    if (err == 0)
        state->ops->close(state);
    return err;
}

int move_not_local(const struct jc_local_opts *local, char *why, size_t why_bytes)
{
    char state[PATH_MAX], db[PATH_MAX];
    struct stat st;

    if (snprintf(state, sizeof state, "%s/state", local->dir) >= (int)sizeof state ||
        snprintf(db, sizeof db, "%s/sluice.db", local->dir) >= (int)sizeof db)
        return E_LIMIT;
    if (stat(state, &st) < 0 || stat(db, &st) == 0)
        return 0;
    (void)snprintf(why, why_bytes,
                   "it is the folder of a gateway over brokers (--store gazette://...): its "
                   "journals are there");
    return E_CONFLICT;
}

static int undo(const struct cli_command *cmd, struct move *m, const struct config *settings,
                const struct jc_local_opts *o)
{
    int err = cluster_stopped(o, m->why, sizeof m->why);

    if (err < 0)
        cli_error(cmd, "a gateway of the cluster has %s/state: %s", settings->data_dir,
                  m->why[0] != '\0' ? m->why : err_text(err));
    else if ((err = mark(m, "", false)) < 0)
        cli_error(cmd, "%s", err_text(err));
    return err;
}

static int do_step(const struct cli_command *cmd, enum move_step step, struct move *m,
                   const struct config *settings, const struct serve_config *config)
{
    struct jc_local_opts o = config->store;
    int err;

    o.read_only = step == MOVE_PLAN;
    if ((err = jc_local_open(&o, &m->local, m->why, sizeof m->why)) < 0) {
        cli_error(cmd, "cannot open the data folder %s: %s", settings->data_dir,
                  m->why[0] != '\0' ? m->why : err_text(err));
        return err;
    }
    if (step == MOVE_UNDO)
        return undo(cmd, m, settings, &o);
    if (step != MOVE_PLAN)
        err = flush(m);
    if (err == 0 && (err = move_look(m)) == 0)
        print_plan(m);
    if (err == 0 && step == MOVE_RUN)
        return run(cmd, m, settings, config);
    if (err < 0)
        cli_error(cmd, "%s", err_text(err));
    return err;
}

int move_refused(struct jc_store *s, const struct jc_local_opts *local, struct mailbox *mb,
                 char *why, size_t why_bytes)
{
    struct blob *url = NULL;
    int err = store_sync_kv_get(s, mb, MOVE_MARK, &url);

    (void)snprintf(why, why_bytes, "%s", err_text(err));
    if (err == 0) {
        (void)snprintf(why, why_bytes,
                       "its journals were handed over to %.*s, give that as --store; see `sluice "
                       "move --help`",
                       (int)url->len, (const char *)url->data);
        err = E_CONFLICT;
    }
    blob_unref(url);
    if (err != E_NOTFOUND)
        return err;
    if (cluster_stopped(local, why, why_bytes) != E_BUSY)
        return 0; /* what else is wrong with a state that nobody uses is not asked */
    (void)snprintf(why, why_bytes, "a gateway over brokers (--store gazette://...) serves it");
    return E_CONFLICT;
}

static int parse_step(const struct cli_command *cmd, const struct cli_args *args,
                      enum move_step *out)
{
    static const char *const names[] = {"plan", "close", "run", "undo"};

    for (size_t i = 0; args->n == 1 && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(args->v[0], names[i]) == 0) {
            *out = (enum move_step)i;
            return 0;
        }
    }
    cli_error(cmd, "one of plan, close, run and undo is needed; see `sluice move --help`");
    return E_INVALID;
}

static int check(const struct cli_command *cmd, enum move_step step,
                 const struct serve_config *config)
{
    if (step == MOVE_RUN && config->gazette.brokers == NULL)
        cli_error(cmd, "--store gazette://HOST:PORT says where to");
    else if (step == MOVE_RUN && config->gazette.fragment_store == NULL)
        cli_error(cmd, "--fragment-store URL names the store in which the brokers find the "
                       "fragments");
    else
        return 0;
    return E_INVALID;
}

int cmd_move(const struct cli_command *cmd, int argc, char **argv)
{
    struct config settings;
    struct serve_config config;
    struct cli_args args;
    enum move_step step = MOVE_PLAN;
    struct move m = {.n = 0};
    int rc = EXIT_USAGE, err = serve_options(cmd, argc, argv, &settings, &config, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (parse_step(cmd, &args, &step) == 0 && check(cmd, step, &config) == 0) {
        rc = EXIT_FAILED;
        if (mailbox_init(&m.mb) < 0) {
            cli_error(cmd, "%s", err_text(E_NOMEM));
        } else {
            rc = do_step(cmd, step, &m, &settings, &config) < 0 ? EXIT_FAILED : EXIT_OK;
            move_fini(&m);
            if (m.local != NULL)
                m.local->ops->close(m.local);
            mailbox_fini(&m.mb);
        }
    }
    serve_config_fini(&config);
    config_fini(&settings);
    return rc;
}
