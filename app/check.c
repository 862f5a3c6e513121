/*
 * `sluice check`: the settings as `serve` would read them, the catalog if one is given, and, when a
 * data folder is there and nobody holds it, the folder itself. Prints every fault; changes nothing.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "app/move.h"
#include "app/serve_catalog.h"
#include "app/serve_options.h"
#include "gateway/gateway.h"

static void on_fault(void *arg, const char *text)
{
    (void)arg;
    (void)printf("%s\n", text);
}

static void on_catalog(void *arg, bool warning, const char *text)
{
    (void)arg;
    (void)warning;
    (void)printf("%s\n", text);
}

static int check_catalog(const struct cli_command *cmd, const struct config *settings,
                         const struct gw_config *gw)
{
    const struct catalog *catalog;
    size_t faults;
    int err = serve_catalog(settings, gw, on_catalog, NULL, NULL, &catalog, &faults);

    if (err == E_NOMEM)
        cli_error(cmd, "%s", err_text(err));
    else if (settings->catalog[0] != '\0')
        (void)printf("catalog %s: %zu fault%s\n", settings->catalog, faults,
                     faults == 1 ? "" : "s");
    catalog_unref(catalog);
    return err == 0 ? EXIT_OK : EXIT_FAILED;
}

/* Beside a cluster the folder holds what the gateway remembers, in a store of its own. */
static int check_folder(const struct cli_command *cmd, const struct serve_config *config)
{
    struct jc_local_opts o = config->store;
    bool cluster = config->gazette.brokers != NULL;
    char dir[PATH_MAX], why[512] = "";
    int n = snprintf(dir, sizeof dir, "%s%s", o.dir, cluster ? "/state" : "");

    if (n >= (int)sizeof dir)
        n = E_LIMIT;
    else if (access(dir, F_OK) < 0) {
        (void)printf("data folder %s: not there yet\n", dir);
        return EXIT_OK;
    } else if (cluster || (n = move_not_local(&o, why, sizeof why)) == 0)
        n = jc_local_check(dir, gw_doc_probe, NULL, on_fault, NULL);
    if (n < 0) {
        cli_error(cmd, "cannot check the data folder %s: %s", dir,
                  why[0] != '\0' ? why : err_text(n));
        return EXIT_FAILED;
    }
    (void)printf("data folder %s: %d fault%s\n", dir, n, n == 1 ? "" : "s");
    return n == 0 ? EXIT_OK : EXIT_FAILED;
}

int cmd_check(const struct cli_command *cmd, int argc, char **argv)
{
    struct config settings;
    struct serve_config config;
    struct cli_args args;
    int err = serve_options(cmd, argc, argv, &settings, &config, &args), rc;

    if (err != 0)
        return err == 1 ? EXIT_OK : err == E_INVALID ? EXIT_USAGE : EXIT_FAILED;
    if (args.n > 0) {
        cli_error(cmd, "unexpected argument \"%s\"", args.v[0]);
        serve_config_fini(&config);
        config_fini(&settings);
        return EXIT_USAGE;
    }
    (void)printf("settings: 0 faults\n");
    rc = check_catalog(cmd, &settings, &config.gw);
    int folder = check_folder(cmd, &config);
    rc = rc != EXIT_OK ? rc : folder;
    serve_config_fini(&config);
    config_fini(&settings);
    return rc;
}
