/* docs/config.md, written from the settings table. */
#include <string.h>

#include "app/config.h"

static void row(struct writer *w, const struct config_setting *s)
{
    char name[CONFIG_NAME_MAX], env[CONFIG_NAME_MAX];

    config_name(s, name);
    config_env_name(s, env);
    wr_printf(w, "| `--%s%s%s` | `%s` | ", name, s->value[0] != '\0' ? " " : "", s->value, env);
    if (s->fallback[0] == '\0')
        wr_str(w, "not set");
    else
        wr_printf(w, "`%s`", s->fallback);
    wr_printf(w, " | %s |\n", s->help);
}

void config_markdown(struct writer *w)
{
    wr_str(w,
           "# Settings of `sluice serve`\n\n"
           "<!-- Written by `sluice help config` from app/config.def; a test compares. -->\n\n"
           "Each setting is a flag, an environment variable and a key of the YAML file that\n"
           "`--config FILE` (or `SLUICE_CONFIG`) names; the key is the flag without its dashes:\n\n"
           "```yaml\n"
           "data-dir: /var/lib/sluice\n"
           "kafka-listen: [127.0.0.1:9092, 10.0.0.5:9092]\n"
           "kafka-advertise: kafka.example.org:9092\n"
           "allow-anonymous: true\n"
           "```\n\n"
           "A flag wins over the environment, the environment over the file, the file over the\n"
           "default. Lists are not merged: the strongest source gives the whole list (in the\n"
           "environment separated by commas). An unknown key or flag, a value out of range and a\n"
           "feature that this build does not have are refused at start; `sluice check` does the\n"
           "same without starting. Sizes are bytes or have a unit (`64KiB`, `10MB`), times are\n"
           "milliseconds or have a unit (`500ms`, `30s`, `7d`).\n");
    for (size_t i = 0; i < config_settings_n; i++) {
        const struct config_setting *s = &config_settings[i];

        if (s->group != NULL)
            wr_printf(w, "\n## %s\n\n| flag | environment | default | |\n|---|---|---|---|\n",
                      s->group);
        else
            row(w, s);
    }
}
