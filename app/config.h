/*
 * Settings of `sluice serve` from flags, environment, file and defaults (in this order of
 * precedence), all by the one table config.def. Main thread, before anything else starts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/writer.h"

enum config_kind {
    CONFIG_TEXT,
    CONFIG_LIST,
    CONFIG_COUNT,
    CONFIG_BYTES,
    CONFIG_TIME,
    CONFIG_FLAG,
};

enum config_origin { CONFIG_UNSET, CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENV, CONFIG_CLI };

#define CONFIG_LIST_MAX 16

struct config_list {
    size_t n;
    char *v[CONFIG_LIST_MAX];
};

/* One row of config.def. */
struct config_setting {
    const char *group; /* a heading instead of a setting; everything else is then unset */
    const char *field; /* "data_dir" */
    enum config_kind kind;
    const char *fallback;
    int64_t min;
    int64_t max;
    bool reload;
    const char *value; /* "DIR" */
    const char *help;
    size_t at; /* offset of the field in struct config */
};

extern const struct config_setting config_settings[];
extern const size_t config_settings_n;

/* Owner: the main thread. Texts belong to it. "" = not set. */
struct config {
#define CONFIG_TYPE_TEXT  char *
#define CONFIG_TYPE_LIST  struct config_list
#define CONFIG_TYPE_COUNT int64_t
#define CONFIG_TYPE_BYTES int64_t
#define CONFIG_TYPE_TIME  int64_t
#define CONFIG_TYPE_FLAG  bool
#define GROUP(name)
#define X(kind, field, def, min, max, reload, value, help) CONFIG_TYPE_##kind field;
#include "app/config.def"
#undef X
#undef GROUP
};

/* Where each setting came from, by index into config_settings. */
struct config_origins {
    enum config_origin *of; /* config_settings_n entries */
};

/* All faults as the user sees them: "sluice.yaml:3: unknown setting ..." */
#define CONFIG_FAULTS_MAX 32
struct config_faults {
    size_t n; /* may pass the maximum: the rest is only counted */
    char text[CONFIG_FAULTS_MAX][400];
};
void config_fault(struct config_faults *f, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One value from the command line. */
struct config_arg {
    const char *name; /* without dashes */
    const char *value;
};

/* Reads everything. file: NULL or the path of --config. environment: NAME=VALUE, NULL-terminated.
 * E_INVALID when there are faults: all sources are read nevertheless, so that one run names them
 * all, and out holds what was good. Free it with config_fini in any case. */
MUST_USE int config_load(const struct config_arg *args, size_t args_n, char *const *environment,
                         const char *file, struct config *out, struct config_faults *faults);
void config_fini(struct config *c);
/* By the name in files and flags, "data-dir". NULL: no such setting. */
const struct config_setting *config_find(const char *name, size_t n);
#define CONFIG_NAME_MAX 64
void config_name(const struct config_setting *s, char out[CONFIG_NAME_MAX]); /* data-dir */
void config_env_name(const struct config_setting *s,
                     char out[CONFIG_NAME_MAX]); /* SLUICE_DATA_DIR */
/* SLUICE_* variables that name no setting, one call each. */
void config_unknown_env(char *const *environment, void (*report)(const char *name));

/* The page docs/config.md. */
void config_markdown(struct writer *w);

/* private to config*.c: sets one value. Lists grow while origin stays the same, and start anew at a
 * higher origin; a lower origin than the present one is ignored. Other kinds refuse a second value
 * of one origin. where: "sluice.yaml:3", "--workers", ... */
void config_set(struct config *c, struct config_origins *o, const struct config_setting *s,
                enum config_origin origin, const char *text, const char *where,
                struct config_faults *faults);
void config_read_file(struct config *c, struct config_origins *o, const char *path,
                      struct config_faults *faults);
