/* The settings table, and how values get into it. See config.h. */
#include "app/config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

const struct config_setting config_settings[] = {
#define GROUP(name) {.group = (name)},
#define X(kind_, field_, def_, min_, max_, reload_, value_, help_)                                 \
    {.field = #field_,                                                                             \
     .kind = CONFIG_##kind_,                                                                       \
     .fallback = (def_),                                                                           \
     .min = (min_),                                                                                \
     .max = (max_),                                                                                \
     .reload = (reload_),                                                                          \
     .value = (value_),                                                                            \
     .help = (help_),                                                                              \
     .at = offsetof(struct config, field_)},
#include "app/config.def"
#undef X
#undef GROUP
};
const size_t config_settings_n = sizeof config_settings / sizeof config_settings[0];

void config_name(const struct config_setting *s, char out[CONFIG_NAME_MAX])
{
    size_t i;

    for (i = 0; s->field[i] != '\0' && i < CONFIG_NAME_MAX - 1; i++)
        out[i] = s->field[i] == '_' ? '-' : s->field[i];
    out[i] = '\0';
}

void config_env_name(const struct config_setting *s, char out[CONFIG_NAME_MAX])
{
    (void)snprintf(out, CONFIG_NAME_MAX, "SLUICE_%s", s->field);
    for (char *p = out; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
}

const struct config_setting *config_find(const char *name, size_t n)
{
    for (size_t i = 0; i < config_settings_n; i++) {
        char own[CONFIG_NAME_MAX];

        if (config_settings[i].group != NULL)
            continue;
        config_name(&config_settings[i], own);
        if (strlen(own) == n && memcmp(own, name, n) == 0)
            return &config_settings[i];
    }
    return NULL;
}

/* --- one value
 * --------------------------------------------------------------------------------------- */

void config_fault(struct config_faults *f, const char *where, const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    if (f->n++ >= CONFIG_FAULTS_MAX)
        return;
    text = f->text[f->n - 1];
    n = snprintf(text, sizeof f->text[0], "%s: ", where);
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < sizeof f->text[0])
        (void)vsnprintf(text + n, sizeof f->text[0] - (size_t)n, fmt, ap);
    va_end(ap);
}

static void *field_of(struct config *c, const struct config_setting *s)
{
    return (char *)c + s->at;
}

static int set_text(struct config *c, const struct config_setting *s, const char *text)
{
    char **field = field_of(c, s), *copy = mem_strdup(text);

    if (copy == NULL)
        return E_NOMEM;
    mem_free(*field);
    *field = copy;
    return 0;
}

static void list_clear(struct config_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->v[i]);
    l->n = 0;
}

static int list_add(struct config_list *l, const char *text)
{
    if (l->n == CONFIG_LIST_MAX)
        return E_LIMIT;
    if ((l->v[l->n] = mem_strdup(text)) == NULL)
        return E_NOMEM;
    l->n++;
    return 0;
}

static int parse_number(enum config_kind kind, struct span text, int64_t *out)
{
    uint64_t u;
    int err;

    if (kind == CONFIG_TIME)
        return num_parse_ms(text, out);
    err = kind == CONFIG_BYTES ? num_parse_bytes(text, &u) : num_parse_u64(text, &u);
    if (err < 0)
        return err;
    if (u > INT64_MAX)
        return E_RANGE;
    *out = (int64_t)u;
    return 0;
}

static void set_number(struct config *c, const struct config_setting *s, const char *text,
                       const char *where, struct config_faults *faults)
{
    static const char *const shape[] = {
        [CONFIG_COUNT] = "a number",
        [CONFIG_BYTES] = "a size such as 65536, 64KiB or 1GiB",
        [CONFIG_TIME] = "a duration such as 500ms, 30s or 7d",
    };
    int64_t v = 0;

    if (parse_number(s->kind, span_str(text), &v) < 0)
        config_fault(faults, where, "\"%.100s\" is not %s", text, shape[s->kind]);
    else if (v < s->min || v > s->max)
        config_fault(faults, where, "%.100s is out of range: %lld to %lld%s", text,
                     (long long)s->min, (long long)s->max,
                     s->kind == CONFIG_BYTES  ? " bytes"
                     : s->kind == CONFIG_TIME ? " ms"
                                              : "");
    else
        *(int64_t *)field_of(c, s) = v;
}

static void set_flag(struct config *c, const struct config_setting *s, const char *text,
                     const char *where, struct config_faults *faults)
{
    bool on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

    if (!on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        config_fault(faults, where, "\"%.100s\" is neither true nor false", text);
    else
        *(bool *)field_of(c, s) = on;
}

void config_set(struct config *c, struct config_origins *o, const struct config_setting *s,
                enum config_origin origin, const char *text, const char *where,
                struct config_faults *faults)
{
    enum config_origin *had = &o->of[s - config_settings];
    int err = 0;

    if (*had > origin)
        return;
    if (s->kind != CONFIG_LIST && *had == origin) {
        config_fault(faults, where, "given twice");
        return;
    }
    switch (s->kind) {
    case CONFIG_TEXT:
        err = set_text(c, s, text);
        break;
    case CONFIG_LIST:
        if (*had < origin)
            list_clear(field_of(c, s));
        err = list_add(field_of(c, s), text);
        break;
    case CONFIG_COUNT:
    case CONFIG_BYTES:
    case CONFIG_TIME:
        set_number(c, s, text, where, faults);
        break;
    case CONFIG_FLAG:
        set_flag(c, s, text, where, faults);
        break;
    }
    *had = origin;
    if (err == E_NOMEM)
        config_fault(faults, where, "out of memory");
    else if (err == E_LIMIT)
        config_fault(faults, where, "at most %d values", CONFIG_LIST_MAX);
}

/* --- sources
 * ----------------------------------------------------------------------------------------- */

static const char *env_get(char *const *environment, const char *name)
{
    size_t n = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return *environment + n + 1;
    return NULL;
}

/* A list in the environment: comma separated. */
static void set_env(struct config *c, struct config_origins *o, const struct config_setting *s,
                    const char *name, const char *value, struct config_faults *faults)
{
    char item[512];

    if (s->kind != CONFIG_LIST) {
        config_set(c, o, s, CONFIG_ENV, value, name, faults);
        return;
    }
    while (*value != '\0') {
        size_t n = strcspn(value, ",");

        if (n >= sizeof item) {
            config_fault(faults, name, "a value is too long");
            return;
        }
        memcpy(item, value, n);
        item[n] = '\0';
        config_set(c, o, s, CONFIG_ENV, item, name, faults);
        value += n + (value[n] == ',');
    }
}

static void load_env(struct config *c, struct config_origins *o, char *const *environment,
                     struct config_faults *faults)
{
    for (size_t i = 0; i < config_settings_n; i++) {
        const struct config_setting *s = &config_settings[i];
        char name[CONFIG_NAME_MAX];
        const char *value;

        if (s->group != NULL)
            continue;
        config_env_name(s, name);
        if ((value = env_get(environment, name)) != NULL)
            set_env(c, o, s, name, value, faults);
    }
}

static void load_args(struct config *c, struct config_origins *o, const struct config_arg *args,
                      size_t n, struct config_faults *faults)
{
    for (size_t i = 0; i < n; i++) {
        const struct config_setting *s = config_find(args[i].name, strlen(args[i].name));
        char where[CONFIG_NAME_MAX + 2];

        (void)snprintf(where, sizeof where, "--%.60s", args[i].name);
        if (s == NULL)
            config_fault(faults, where, "no such flag");
        else
            config_set(c, o, s, CONFIG_CLI, args[i].value, where, faults);
    }
}

static void load_defaults(struct config *c, struct config_origins *o, struct config_faults *faults)
{
    for (size_t i = 0; i < config_settings_n; i++) {
        const struct config_setting *s = &config_settings[i];

        if (s->group == NULL && (s->kind != CONFIG_LIST || s->fallback[0] != '\0'))
            config_set(c, o, s, CONFIG_DEFAULT, s->fallback, s->field, faults);
    }
}

int config_load(const struct config_arg *args, size_t args_n, char *const *environment,
                const char *file, struct config *out, struct config_faults *faults)
{
    struct config_origins o;

    memset(out, 0, sizeof *out);
    faults->n = 0;
    if ((o.of = mem_array(config_settings_n, sizeof o.of[0])) == NULL) {
        config_fault(faults, "settings", "out of memory");
        return E_INVALID;
    }
    load_defaults(out, &o, faults);
    if (file != NULL && file[0] != '\0')
        config_read_file(out, &o, file, faults);
    load_env(out, &o, environment, faults);
    load_args(out, &o, args, args_n, faults);
    mem_free(o.of);
    return faults->n == 0 ? 0 : E_INVALID;
}

void config_fini(struct config *c)
{
    for (size_t i = 0; i < config_settings_n; i++) {
        const struct config_setting *s = &config_settings[i];

        if (s->group != NULL)
            continue;
        if (s->kind == CONFIG_TEXT)
            mem_free(*(char **)field_of(c, s));
        else if (s->kind == CONFIG_LIST)
            list_clear(field_of(c, s));
    }
    memset(c, 0, sizeof *c);
}

void config_unknown_env(char *const *environment, void (*report)(const char *name))
{
    for (; environment != NULL && *environment != NULL; environment++) {
        size_t n = strcspn(*environment, "=");
        char name[128], own[CONFIG_NAME_MAX];
        bool known = false;

        if (strncmp(*environment, "SLUICE_", 7) != 0 || n >= sizeof name)
            continue;
        memcpy(name, *environment, n);
        name[n] = '\0';
        known = strcmp(name, "SLUICE_ADMIN") == 0 || strcmp(name, "SLUICE_ADMIN_CA") == 0 ||
                strcmp(name, "SLUICE_CONFIG") == 0;
        for (size_t i = 0; !known && i < config_settings_n; i++) {
            if (config_settings[i].group != NULL)
                continue;
            config_env_name(&config_settings[i], own);
            known = strcmp(own, name) == 0;
        }
        if (!known)
            report(name);
    }
}
