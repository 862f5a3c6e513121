/*
 * `materializations:` of a catalog: each with an `endpoint: dekaf:` is a task, with settings and
 * bindings. A topic is a binding; names are unique within the task.
 */
#include <stdlib.h>

#include "gateway/catalog_int.h"

static bool among(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(key, list[i]) == 0)
            return true;
    }
    return false;
}

#define AMONG(key, list) among(key, list, sizeof(list) / sizeof(list)[0])

static void unknown(struct catalog_reader *r, const struct cat_pairs *p)
{
    cat_warn(r, p->key_node, "unknown key \"%.100s\"", p->key);
}

/* --- settings --- */

static void read_sluice(struct catalog_reader *r, yaml_node_t *n, struct catalog_task *t)
{
    const char *text;
    struct cat_pairs p;

    if (!cat_mapping(r, n, "sluice", &p))
        return;
    while (cat_next(r, &p)) {
        if (!AMONG(p.key, ((const char *const[]){"truncation_signal", "compression", "value_format",
                                                 "key_format", "redirect"}))) {
            unknown(r, &p);
            continue;
        }
        if (!cat_string(r, p.value, p.key, &text))
            continue;
        if (strcmp(p.key, "truncation_signal") == 0) {
            t->signal = strcmp(text, "headers") == 0;
            if (!t->signal && strcmp(text, "none") != 0)
                cat_fault(r, p.value, "truncation_signal: none or headers, not \"%.60s\"", text);
        } else if (strcmp(p.key, "compression") == 0) {
            t->has_codec = kp_codec_parse(span_str(text), &t->codec) == 0;
            if (!t->has_codec)
                cat_fault(r, p.value, "compression: none, gzip, snappy, lz4 or zstd, not \"%.60s\"",
                          text);
        } else if (strcmp(p.key, "redirect") == 0) {
            cat_fault(r, p.value, "redirect: this build cannot send clients elsewhere");
        } else if (strcmp(text, "avro") == 0) {
            cat_fault(r, p.value, "%s: this build does not serve Avro yet; only json is there",
                      p.key);
        } else if (strcmp(text, "json") != 0) {
            cat_fault(r, p.value, "%s: json, not \"%.60s\"", p.key, text);
        } else if (strcmp(p.key, "value_format") == 0) {
            t->value_format = CATALOG_FORMAT_JSON;
        }
    }
}

static void read_token(struct catalog_reader *r, yaml_node_t *n, struct catalog_task *t)
{
    const char **list = cat_array(r, 1, sizeof(const char *));

    if (list == NULL || !cat_string(r, n, "token", &list[0]))
        return;
    t->tokens = list;
    t->tokens_n = 1;
}

static void read_config(struct catalog_reader *r, yaml_node_t *n, struct catalog_task *t)
{
    const char *text;
    struct cat_pairs p;

    if (n->type == YAML_SCALAR_NODE) {
        cat_fault(r, n,
                  "config: settings in other files are not read by this build; put them here");
        return;
    }
    if (!cat_mapping(r, n, "config", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "token") == 0) {
            read_token(r, p.value, t);
        } else if (strcmp(p.key, "strict_topic_names") == 0) {
            (void)cat_bool(r, p.value, p.key, &t->strict_names);
        } else if (strcmp(p.key, "allow_empty_topics") == 0) {
            (void)cat_bool(r, p.value, p.key, &t->allow_empty);
        } else if (strcmp(p.key, "deletions") == 0) {
            if (cat_string(r, p.value, "deletions", &text) && strcmp(text, "default") != 0)
                cat_warn(r, p.value, "deletions: \"%.60s\" has no effect in this build", text);
        } else if (strcmp(p.key, "sluice") == 0) {
            read_sluice(r, p.value, t);
        } else if (strcmp(p.key, "sops") == 0) {
            cat_fault(r, p.key_node, "encrypted settings cannot be read by this build");
        } else {
            unknown(r, &p);
        }
    }
}

static void read_dekaf(struct catalog_reader *r, const struct cat_pairs *at, struct catalog_task *t)
{
    bool config = false;
    struct cat_pairs p;

    t->variant = "";
    if (!cat_mapping(r, at->value, "dekaf", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "variant") == 0) {
            (void)cat_string(r, p.value, "variant", &t->variant);
        } else if (strcmp(p.key, "config") == 0) {
            config = true;
            read_config(r, p.value, t);
        } else {
            unknown(r, &p);
        }
    }
    if (!config)
        cat_fault(r, at->key_node, "dekaf: config is missing");
}

/* --- bindings --- */

static void read_instant(struct catalog_reader *r, const struct cat_pairs *p,
                         struct catalog_time *out)
{
    const char *text;
    int err;

    *out = (struct catalog_time){0, UINT64_MAX};
    if (!cat_string(r, p->value, p->key, &text))
        return;
    err = catalog_time_parse(span_str(text), out);
    if (err == E_SYNTAX)
        cat_fault(r, p->value, "%s: \"%.60s\" is no time such as 2026-12-02T10:30:00.5Z", p->key,
                  text);
    else if (err < 0)
        cat_fault(r, p->value, "%s: \"%.60s\" is before 1582-10-15 or after 5236", p->key, text);
}

static void read_source(struct catalog_reader *r, yaml_node_t *n, struct catalog_binding *b)
{
    struct catalog_time when;
    struct cat_pairs p;
    bool named = false;

    if (n->type == YAML_SCALAR_NODE) {
        (void)cat_string(r, n, "source", &b->source);
        return;
    }
    if (!cat_mapping(r, n, "source", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "name") == 0) {
            named = true;
            (void)cat_string(r, p.value, "name", &b->source);
        } else if (strcmp(p.key, "notBefore") == 0) {
            read_instant(r, &p, &when);
            b->bound.min_clock = when.at_least;
        } else if (strcmp(p.key, "notAfter") == 0) {
            read_instant(r, &p, &when);
            b->bound.max_clock = when.at_most;
        } else if (strcmp(p.key, "partitions") == 0) {
            cat_fault(r, p.key_node, "partitions: this build cannot choose partitions by selector");
        } else {
            unknown(r, &p);
        }
    }
    if (!named)
        cat_fault(r, n, "source: the name is missing");
    if (b->bound.min_clock > b->bound.max_clock)
        cat_fault(r, n, "notBefore lies after notAfter: nothing would ever be shown");
}

/* Each byte that is neither letter nor digit becomes a point and two hex digits. */
static const char *strict_name(struct catalog_reader *r, const char *name)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = strlen(name), k = 0;
    char *out = cat_array(r, n * 3 + 1, 1);

    for (size_t i = 0; out != NULL && i < n; i++) {
        uint8_t c = (uint8_t)name[i];

        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
            out[k++] = (char)c;
        } else {
            out[k++] = '.';
            out[k++] = hex[c >> 4];
            out[k++] = hex[c & 15];
        }
    }
    return out;
}

static void read_resource(struct catalog_reader *r, yaml_node_t *n, struct catalog_binding *b)
{
    struct cat_pairs p;

    if (!cat_mapping(r, n, "resource", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "topic_name") == 0) {
            if (cat_string(r, p.value, "topic_name", &b->topic) &&
                (b->topic[0] == '\0' || strlen(b->topic) > 249)) {
                cat_fault(r, p.value, "topic_name: 1 to 249 bytes belong here");
                b->topic = NULL;
            }
        } else {
            unknown(r, &p);
        }
    }
}

/* False: disabled, or of no use. */
static bool read_binding(struct catalog_reader *r, yaml_node_t *n, struct catalog_binding *b)
{
    static const char *const others[] = {"priority", "onIncompatibleSchemaChange"};
    bool disabled = false, source = false;
    struct cat_pairs p;
    int64_t count = 0;

    *b = (struct catalog_binding){.bound = {0, UINT64_MAX}, .line = cat_line(n)};
    if (!cat_mapping(r, n, "binding", &p))
        return false;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "source") == 0) {
            source = true;
            read_source(r, p.value, b);
        } else if (strcmp(p.key, "resource") == 0) {
            read_resource(r, p.value, b);
        } else if (strcmp(p.key, "backfill") == 0) {
            (void)cat_count(r, p.value, "backfill", INT32_MAX / 2, &count);
        } else if (strcmp(p.key, "disable") == 0) {
            (void)cat_bool(r, p.value, "disable", &disabled);
        } else if (strcmp(p.key, "fields") == 0) {
            cat_warn(r, p.key_node, "fields: documents are served whole by this build");
        } else if (!AMONG(p.key, others)) {
            unknown(r, &p);
        }
    }
    b->backfill = (int32_t)count;
    if (!source)
        cat_fault(r, n, "binding: the source is missing");
    return b->source != NULL && !disabled;
}

static int by_topic(const void *a, const void *b)
{
    const struct catalog_binding *x = a, *y = b;
    int c = span_cmp(span_str(x->topic), span_str(y->topic));

    if (c != 0)
        return c;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void check_topics(struct catalog_reader *r, const yaml_node_t *n, struct catalog_task *t,
                         struct catalog_binding *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct catalog_binding *b = &list[i];

        if (b->topic == NULL)
            b->topic = b->source;
        if (t->strict_names)
            b->topic = strict_name(r, b->topic);
        if (b->topic == NULL)
            return;
        if (t->signal && b->bound.max_clock != UINT64_MAX)
            cat_fault(r, n,
                      "%.100s: truncation_signal: headers cannot be had together with "
                      "notAfter",
                      b->topic);
    }
    qsort(list, count, sizeof *list, by_topic);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(list[i - 1].topic, list[i].topic) == 0)
            cat_fault(r, n, "bindings: lines %zu and %zu name the same topic \"%.100s\"",
                      list[i - 1].line, list[i].line, list[i].topic);
    }
    t->bindings = list;
    t->bindings_n = count;
}

static void read_bindings(struct catalog_reader *r, yaml_node_t *n, struct catalog_task *t)
{
    struct catalog_binding *list;
    size_t count = 0;

    if (n->type != YAML_SEQUENCE_NODE) {
        cat_fault(r, n, "bindings: a sequence belongs here");
        return;
    }
    list = cat_array(r, (size_t)(n->data.sequence.items.top - n->data.sequence.items.start),
                     sizeof *list);
    for (const yaml_node_item_t *it = n->data.sequence.items.start;
         list != NULL && it < n->data.sequence.items.top; it++) {
        if (read_binding(r, cat_node(r, *it), &list[count]))
            count++;
    }
    if (list != NULL)
        check_topics(r, n, t, list, count);
}

/* --- tasks --- */

/* The value of a key in a mapping; NULL. */
static yaml_node_t *member(struct catalog_reader *r, yaml_node_t *map, const char *key)
{
    struct cat_pairs p = {.map = map};

    if (map == NULL || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top;
         i++) {
        const yaml_node_t *k = cat_node(r, i->key);
        if (k != NULL && k->type == YAML_SCALAR_NODE &&
            strcmp((const char *)k->data.scalar.value, key) == 0) {
            p.value = cat_node(r, i->value);
            break;
        }
    }
    return p.value;
}

static void read_endpoint(struct catalog_reader *r, yaml_node_t *n, struct catalog_task *t)
{
    struct cat_pairs p;

    if (!cat_mapping(r, n, "endpoint", &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "dekaf") == 0)
            read_dekaf(r, &p, t);
        else
            cat_fault(r, p.key_node, "endpoint: dekaf stands beside \"%.60s\"", p.key);
    }
}

static void read_task(struct catalog_reader *r, const struct cat_pairs *at, struct catalog_task *t)
{
    static const char *const others[] = {"shards",
                                         "delete",
                                         "reset",
                                         "expectPubId",
                                         "source",
                                         "sourceCapture",
                                         "onIncompatibleSchemaChange",
                                         "triggers"};
    yaml_node_t *bindings = NULL;
    struct cat_pairs p;

    t->line = cat_line(at->key_node);
    t->name = arena_strndup(&r->catalog->arena, at->key, strlen(at->key));
    r->failed = r->failed || t->name == NULL;
    if (t->name == NULL || !cat_mapping(r, at->value, at->key, &p))
        return;
    while (cat_next(r, &p)) {
        if (strcmp(p.key, "endpoint") == 0)
            read_endpoint(r, p.value, t);
        else if (strcmp(p.key, "bindings") == 0)
            bindings = p.value;
        else if (!AMONG(p.key, others))
            unknown(r, &p);
    }
    if (bindings == NULL)
        cat_fault(r, at->key_node, "%.100s: bindings are missing", at->key);
    else
        read_bindings(r, bindings, t); /* after the settings, which change names */
}

static int by_task(const void *a, const void *b)
{
    const struct catalog_task *x = a, *y = b;

    return span_cmp(span_str(x->name), span_str(y->name));
}

void cat_read_materializations(struct catalog_reader *r, yaml_node_t *n)
{
    struct catalog_task *tasks;
    size_t found = 0;
    struct cat_pairs p;

    if (!cat_mapping(r, n, "materializations", &p) ||
        (tasks = cat_array(r, (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start),
                           sizeof *tasks)) == NULL)
        return;
    r->catalog->tasks = tasks;
    while (cat_next(r, &p)) {
        if (member(r, member(r, p.value, "endpoint"), "dekaf") == NULL) {
            cat_warn(r, p.key_node, "%.100s: no dekaf endpoint: not served", p.key);
        } else {
            read_task(r, &p, &tasks[found]);
            r->catalog->tasks_n = tasks[found].name == NULL ? found : ++found;
        }
    }
    if (found > 0)
        qsort(tasks, found, sizeof *tasks, by_task);
    if (found == 0 && r->faults->faults == 0)
        cat_fault(r, n, "materializations: none has an endpoint dekaf");
}
