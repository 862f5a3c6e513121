/* See serve_options.h. */
#include "app/serve_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Owner: one call of serve_options. */
struct flags {
    size_t n; /* settings, then one more for --config */
    struct cli_opt *opts;
    struct cli_values *values;
    char (*names)[CONFIG_NAME_MAX];
    char (*helps)[512];
    const struct config_setting **settings;
};

static void flags_fini(struct flags *f)
{
    mem_free(f->opts);
    mem_free(f->values);
    mem_free(f->names);
    mem_free(f->helps);
    mem_free(f->settings);
}

static int flags_make(struct flags *f)
{
    size_t max = config_settings_n + 1;

    f->opts = mem_array(max, sizeof f->opts[0]);
    f->values = mem_array(max, sizeof f->values[0]);
    f->names = mem_array(max, sizeof f->names[0]);
    f->helps = mem_array(max, sizeof f->helps[0]);
    f->settings = mem_array(max, sizeof f->settings[0]);
    if (f->opts == NULL || f->values == NULL || f->names == NULL || f->helps == NULL ||
        f->settings == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < config_settings_n; i++) {
        const struct config_setting *s = &config_settings[i];
        size_t k = f->n;

        if (s->group != NULL)
            continue;
        config_name(s, f->names[k]);
        (void)snprintf(f->helps[k], sizeof f->helps[k], "%s%s%s%s", s->help,
                       s->fallback[0] != '\0' ? " [" : "", s->fallback,
                       s->fallback[0] != '\0' ? "]" : "");
        f->settings[k] = s;
        f->opts[k] = (struct cli_opt){.name = f->names[k],
                                      .value = s->kind == CONFIG_FLAG ? NULL : s->value,
                                      .repeat = s->kind == CONFIG_LIST,
                                      .help = f->helps[k],
                                      .out = &f->values[k]};
        f->n++;
    }
    f->opts[f->n] = (struct cli_opt){.name = "config",
                                     .value = "FILE",
                                     .help = "YAML file with settings; its keys are the flags "
                                             "above. Also SLUICE_CONFIG",
                                     .out = &f->values[f->n]};
    return 0;
}

static size_t collect(const struct flags *f, struct config_arg *args, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->values[i].n && n < max; k++)
            args[n++] = (struct config_arg){.name = f->names[i], .value = f->values[i].v[k]};
    return n;
}

static void print_faults(const struct cli_command *cmd, const struct config_faults *faults)
{
    for (size_t i = 0; i < faults->n && i < CONFIG_FAULTS_MAX; i++)
        cli_error(cmd, "%s", faults->text[i]);
    if (faults->n > CONFIG_FAULTS_MAX)
        cli_error(cmd, "and %zu more faults", faults->n - CONFIG_FAULTS_MAX);
}

static int load(const struct cli_command *cmd, const struct flags *f, struct config *settings,
                struct serve_config *config)
{
    struct config_arg args[256];
    struct config_faults *faults = mem_zalloc(sizeof *faults);
    /* nothing of this program changes the environment */
    const char *env = getenv("SLUICE_CONFIG"); /* NOLINT(concurrency-mt-unsafe) */
    const char *file = cli_value(&f->values[f->n], env);
    int err = 0;

    if (faults == NULL)
        return E_NOMEM;
    if (config_load(args, collect(f, args, sizeof args / sizeof args[0]), environ, file, settings,
                    faults) < 0)
        err = E_SYNTAX;
    if (serve_config_make(settings, config, faults) < 0)
        err = E_SYNTAX;
    if (err < 0) {
        serve_config_fini(config);
        config_fini(settings);
    }
    print_faults(cmd, faults);
    mem_free(faults);
    return err;
}

int serve_options(const struct cli_command *cmd, int argc, char **argv, struct config *settings,
                  struct serve_config *config, struct cli_args *args)
{
    struct flags f = {.n = 0};
    int err = flags_make(&f);

    if (err < 0)
        cli_error(cmd, "%s", err_text(err));
    else
        err = cli_parse(cmd, f.opts, f.n + 1, argc, argv, args);
    if (err == 0)
        err = load(cmd, &f, settings, config);
    flags_fini(&f);
    return err;
}
