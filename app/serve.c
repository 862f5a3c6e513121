/*
 * `sluice serve`: settings -> store -> gateway -> run until a signal. The control loop runs on the
 * main thread; signals are taken by a thread of their own, so that no code runs in a signal
 * handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/move.h"
#include "app/serve_catalog.h"
#include "app/serve_config.h"
#include "app/serve_options.h"
#include "app/store_sync.h"
#include "base/log.h"
#include "gateway/gateway.h"

/* Owner: main thread. */
struct server {
    struct config settings;
    struct serve_config config;
    const struct catalog *catalog; /* NULL: none is given */
    struct catalog_files catalog_files;
    struct jc_store *store;
    struct mailbox mb; /* for the few questions before the gateway runs */
    bool mb_ready;
    struct gateway *gw;
    char cluster_id[23];
    pthread_t signal_thread;
    bool signal_thread_runs;
};

/* --- signals
 * ----------------------------------------------------------------------------------------- */

static void signal_set(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGUSR2); /* from ourselves: end */
}

static void *signal_main(void *arg)
{
    struct server *sv = arg;
    sigset_t set;
    bool stopping = false;

    signal_set(&set);
    for (;;) {
        int sig = sigwaitinfo(&set, NULL);

        if (sig == SIGUSR2)
            return NULL;
        if (sig == SIGHUP) {
            log_event(LOG_INFO, "signal.reload", LF_STR("signal", "SIGHUP"));
            gateway_reload(sv->gw);
        } else if (sig == SIGTERM || sig == SIGINT) {
            log_event(LOG_INFO, stopping ? "signal.again" : "signal.stop",
                      LF_STR("signal", sig == SIGINT ? "SIGINT" : "SIGTERM"));
            stopping = true;
            gateway_stop(sv->gw); /* a second call cuts the drain short */
        }
    }
}

/* Before any thread starts, so that all of them inherit the mask. */
static void signals_block(void)
{
    sigset_t set;
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    signal_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

static void signals_end(struct server *sv)
{
    if (!sv->signal_thread_runs)
        return;
    (void)pthread_kill(sv->signal_thread, SIGUSR2);
    (void)pthread_join(sv->signal_thread, NULL);
    sv->signal_thread_runs = false;
}

/* --- start
 * ------------------------------------------------------------------------------------------- */

static void raise_file_limit(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
            log_event(LOG_WARN, "limit.files", LF_ERRNO(errno));
    }
}

static void setup_log(const struct config *c)
{
    enum log_level level = strcmp(c->log_level, "debug") == 0   ? LOG_DEBUG
                           : strcmp(c->log_level, "warn") == 0  ? LOG_WARN
                           : strcmp(c->log_level, "error") == 0 ? LOG_ERROR
                                                                : LOG_INFO;

    log_setup(level, strcmp(c->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
}

static void unknown_env(const char *name)
{
    log_event(LOG_WARN, "config.unknown", LF_STR("variable", name));
}

static void on_catalog(void *arg, bool warning, const char *text)
{
    const struct cli_command *cmd = arg;

    if (warning)
        log_event(LOG_WARN, "catalog.warning", LF_STR("text", text));
    else
        cli_error(cmd, "%s", text);
}

static int open_catalog(const struct cli_command *cmd, struct server *sv)
{
    union {
        const struct cli_command *in;
        void *out;
    } arg = {.in = cmd};
    int err = serve_catalog(&sv->settings, &sv->config.gw, on_catalog, arg.out, &sv->catalog_files,
                            &sv->catalog, NULL);

    if (err < 0 || sv->catalog == NULL)
        return err;
    sv->config.gw.catalog = sv->catalog;
    sv->config.gw.catalog_path = sv->settings.catalog;
    sv->config.gw.catalog_files = &sv->catalog_files;
    for (size_t i = 0; i < sv->catalog->tasks_n; i++) {
        const struct catalog_task *t = &sv->catalog->tasks[i];

        log_event(LOG_INFO, "catalog.task", LF_STR("task", t->name),
                  LF_STR("values", t->value_format == CATALOG_FORMAT_JSON ? "json" : "avro"),
                  LF_UINT("topics", t->bindings_n));
    }
    return 0;
}

static int open_store(const struct cli_command *cmd, struct server *sv)
{
    char why[512] = "";
    int err = mailbox_init(&sv->mb);

    if (err < 0) {
        cli_error(cmd, "%s", err_text(err));
        return err;
    }
    sv->mb_ready = true;
    if (sv->config.gazette.brokers != NULL)
        err = jc_gazette_open(&sv->config.gazette, &sv->store, why, sizeof why);
    else if ((err = move_not_local(&sv->config.store, why, sizeof why)) == 0)
        err = jc_local_open(&sv->config.store, &sv->store, why, sizeof why);
    if (err < 0) {
        cli_error(cmd, "cannot open the %s %s: %s",
                  sv->config.gazette.brokers != NULL ? "store" : "data folder",
                  sv->config.gazette.brokers != NULL ? sv->settings.store : sv->settings.data_dir,
                  why[0] != '\0' ? why : err_text(err));
        return err;
    }
    if (sv->config.gazette.brokers == NULL &&
        (err = move_refused(sv->store, &sv->config.store, &sv->mb, why, sizeof why)) < 0) {
        cli_error(cmd, "%s: %s", sv->settings.data_dir, why);
        return err;
    }
    if (sv->config.gw.cluster_id == NULL) {
        if ((err = store_sync_cluster_id(sv->store, &sv->mb, sv->cluster_id)) < 0) {
            cli_error(cmd, "cannot read the cluster id: %s", err_text(err));
            return err;
        }
        sv->config.gw.cluster_id = sv->cluster_id;
    }
    return 0;
}

/* Whole or not at all: a reader never sees half a file. */
static int write_ports(const char *path, const struct gw_ports *ports)
{
    char tmp[4096], text[128];
    char registry[16] = "null";
    if (ports->registry != 0)
        (void)snprintf(registry, sizeof registry, "%u", (unsigned)ports->registry);
    int n = snprintf(text, sizeof text, "{\"kafka\": %u, \"registry\": %s, \"admin\": %u}\n",
                     (unsigned)ports->kafka, registry, (unsigned)ports->admin);
    int fd, err = 0;

    if (snprintf(tmp, sizeof tmp, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof tmp)
        return E_LIMIT;
    if ((fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        return err_from_errno(errno);
    if (write(fd, text, (size_t)n) != n)
        err = E_IO;
    if (close(fd) < 0)
        err = E_IO;
    if (err == 0 && rename(tmp, path) < 0)
        err = err_from_errno(errno);
    if (err < 0)
        (void)unlink(tmp);
    return err;
}

/* One line a listener on stdout; with a JSON log, one object, so that both streams can be read as
 * one. Hosts were parsed by serve_parse_listen: nothing in them needs an escape. */
static void print_listener(const struct server *sv, const char *what, const char *scheme,
                           const struct gw_listen *l, uint16_t port)
{
    bool v6 = strchr(l->host, ':') != NULL, json = strcmp(sv->settings.log_format, "json") == 0;

    (void)printf(json ? "{\"listener\":\"%s\",\"address\":\"%s%s%s%s:%u\"}\n"
                      : "%s on %s%s%s%s:%u\n",
                 what, scheme, v6 ? "[" : "", l->host, v6 ? "]" : "", (unsigned)port);
}

static const char *scheme_of(const struct gw_listen *l)
{
    if (l->tls)
        return l->sasl ? "sasl-tls://" : "tls://";
    return l->sasl ? "sasl://" : "";
}

static void announce(const struct server *sv, const struct gw_ports *ports)
{
    const struct gw_config *gw = &sv->config.gw;

    for (size_t i = 0; i < gw->kafka_n; i++)
        print_listener(sv, "Kafka", scheme_of(&gw->kafka[i]), &gw->kafka[i],
                       gateway_kafka_port(sv->gw, i));
    if (gw->registry.host != NULL)
        print_listener(sv, "registry", gw->registry.tls ? "https://" : "http://", &gw->registry,
                       ports->registry);
    print_listener(sv, "admin", gw->admin.tls ? "https://" : "http://", &gw->admin, ports->admin);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        /* A server serves without its banner too; ports-file and the log say the same. */
        log_event(LOG_WARN, "serve.banner_lost", LF_ERR(E_IO));
        clearerr(stdout);
    }
}

static int run(const struct cli_command *cmd, struct server *sv)
{
    struct gw_ports ports;
    char why[512] = "";
    int err;

    if ((err = gateway_new(&sv->config.gw, sv->store, NULL, &sv->gw, why, sizeof why)) < 0) {
        cli_error(cmd, "%s", why[0] != '\0' ? why : err_text(err));
        return err;
    }
    if (pthread_create(&sv->signal_thread, NULL, signal_main, sv) != 0) {
        cli_error(cmd, "cannot start a thread for signals");
        return E_NOMEM;
    }
    sv->signal_thread_runs = true;
    gateway_ports(sv->gw, &ports);
    announce(sv, &ports);
    if (sv->settings.ports_file[0] != '\0' &&
        (err = write_ports(sv->settings.ports_file, &ports)) < 0) {
        cli_error(cmd, "cannot write %s: %s", sv->settings.ports_file, err_text(err));
        return err;
    }
    err = gateway_run(sv->gw);
    if (err < 0)
        log_event(LOG_WARN, "serve.drain", LF_ERR(err));
    return err;
}

static void server_fini(struct server *sv)
{
    signals_end(sv);
    gateway_free(sv->gw);
    if (sv->store != NULL)
        sv->store->ops->close(sv->store);
    if (sv->mb_ready)
        mailbox_fini(&sv->mb);
    catalog_unref(sv->catalog);
    catalog_files_fini(&sv->catalog_files);
    serve_config_fini(&sv->config);
    config_fini(&sv->settings);
}

int cmd_serve(const struct cli_command *cmd, int argc, char **argv)
{
    struct server sv = {.store = NULL};
    struct cli_args args;
    int err = serve_options(cmd, argc, argv, &sv.settings, &sv.config, &args);

    if (err != 0)
        return err == 1 ? EXIT_OK : EXIT_USAGE;
    if (args.n > 0) {
        cli_error(cmd, "unexpected argument \"%s\"", args.v[0]);
        serve_config_fini(&sv.config);
        config_fini(&sv.settings);
        return EXIT_USAGE;
    }
    setup_log(&sv.settings);
    config_unknown_env(environ, unknown_env);
    raise_file_limit();
    signals_block();
    if ((err = open_catalog(cmd, &sv)) < 0) {
        server_fini(&sv);
        return err == E_INVALID ? EXIT_USAGE : EXIT_FAILED;
    }
    err = open_store(cmd, &sv);
    if (err == 0)
        err = run(cmd, &sv);
    server_fini(&sv);
    return err == 0 ? EXIT_OK : EXIT_FAILED;
}
