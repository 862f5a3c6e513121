/*
 * The file of --config: a YAML mapping of setting names to values, lists as sequences. Unknown and
 * repeated keys are faults, each with file and line: a typing error must not become a default.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "app/config.h"

#define DEPTH_MAX 8

struct file_reader {
    struct config *c;
    struct config_origins *o;
    const char *path;
    struct config_faults *faults;
    yaml_document_t doc;
};

__attribute__((format(printf, 3, 4))) static void fault(struct file_reader *f, size_t line,
                                                        const char *fmt, ...)
{
    char where[300], text[200];
    va_list ap;

    (void)snprintf(where, sizeof where, "%.250s:%zu", f->path, line + 1);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    config_fault(f->faults, where, "%s", text);
}

static void set_scalar(struct file_reader *f, const struct config_setting *s,
                       const yaml_node_t *value)
{
    char where[384], name[CONFIG_NAME_MAX];
    const char *text = (const char *)value->data.scalar.value;

    if (value->type != YAML_SCALAR_NODE) {
        config_name(s, name);
        fault(f, value->start_mark.line, "%s: a single value belongs here", name);
        return;
    }
    config_name(s, name);
    if (strlen(text) != value->data.scalar.length) {
        fault(f, value->start_mark.line, "%s: the value holds a NUL", name);
        return;
    }
    (void)snprintf(where, sizeof where, "%.250s:%zu: %s", f->path, value->start_mark.line + 1,
                   name);
    config_set(f->c, f->o, s, CONFIG_FILE, text, where, f->faults);
}

static void set_pair(struct file_reader *f, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(&f->doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(&f->doc, pair->value);
    const struct config_setting *s;
    const char *name;

    if (key == NULL || value == NULL || key->type != YAML_SCALAR_NODE) {
        fault(f, key == NULL ? 0 : key->start_mark.line, "a setting's name belongs here");
        return;
    }
    name = (const char *)key->data.scalar.value;
    if ((s = config_find(name, key->data.scalar.length)) == NULL) {
        fault(f, key->start_mark.line, "unknown setting \"%.100s\"", name);
        return;
    }
    if (s->kind != CONFIG_LIST) {
        set_scalar(f, s, value);
        return;
    }
    if (f->o->of[s - config_settings] == CONFIG_FILE) {
        fault(f, key->start_mark.line, "\"%.100s\" is given twice", name);
        return;
    }
    if (value->type != YAML_SEQUENCE_NODE) {
        set_scalar(f, s, value);
        return;
    }
    for (const yaml_node_item_t *it = value->data.sequence.items.start;
         it < value->data.sequence.items.top; it++)
        set_scalar(f, s, yaml_document_get_node(&f->doc, *it));
}

static void read_document(struct file_reader *f)
{
    const yaml_node_t *root = yaml_document_get_root_node(&f->doc);

    if (root == NULL || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
        return; /* an empty file sets nothing */
    if (root->type != YAML_MAPPING_NODE) {
        fault(f, root->start_mark.line, "the file must be a mapping of settings");
        return;
    }
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start;
         p < root->data.mapping.pairs.top; p++)
        set_pair(f, p);
}

/* libyaml takes time that grows with the square of the depth, and ignores a second document: both
 * are looked for by events, before the file is loaded. */
static bool shape_is_good(struct file_reader *f, FILE *in)
{
    size_t depth = 0, documents = 0;
    bool good = true, end = false;
    yaml_parser_t parser;

    if (!yaml_parser_initialize(&parser)) {
        config_fault(f->faults, f->path, "out of memory");
        return false;
    }
    yaml_parser_set_input_file(&parser, in);
    while (good && !end) {
        yaml_event_t e;

        if (!yaml_parser_parse(&parser, &e)) {
            fault(f, parser.problem_mark.line, "%s",
                  parser.problem == NULL ? "not YAML" : parser.problem);
            good = false;
            break;
        }
        if (e.type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
            fault(f, e.start_mark.line, "a second document: settings are one");
            good = false;
        }
        if ((e.type == YAML_MAPPING_START_EVENT || e.type == YAML_SEQUENCE_START_EVENT) &&
            ++depth > DEPTH_MAX) {
            fault(f, e.start_mark.line, "nested too deep for settings");
            good = false;
        }
        if (e.type == YAML_MAPPING_END_EVENT || e.type == YAML_SEQUENCE_END_EVENT)
            depth--;
        end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return good && fseek(in, 0, SEEK_SET) == 0;
}

void config_read_file(struct config *c, struct config_origins *o, const char *path,
                      struct config_faults *faults)
{
    struct file_reader f = {.c = c, .o = o, .path = path, .faults = faults};
    FILE *in = fopen(path, "rb");
    yaml_parser_t parser;
    char text[128];

    if (in == NULL) {
        config_fault(faults, path, "%s", strerror_r(errno, text, sizeof text));
        return;
    }
    if (!shape_is_good(&f, in)) {
        /* said */
    } else if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, in);
        if (yaml_parser_load(&parser, &f.doc)) {
            read_document(&f);
            yaml_document_delete(&f.doc);
        } else {
            fault(&f, parser.problem_mark.line, "%s",
                  parser.problem == NULL ? "not YAML" : parser.problem);
        }
        yaml_parser_delete(&parser);
    } else {
        config_fault(faults, path, "out of memory");
    }
    (void)fclose(in);
}
