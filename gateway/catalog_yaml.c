/*
 * YAML files as trees: libyaml's events, so that depth and size are limited while the text is read
 * (its own loader looks at both too late, and for anchors in quadratic time). Pure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/mem.h"
#include "gateway/catalog_tree.h"
#include "schema/json_reader.h"

#define ANCHORS_MAX 1000

struct anchor {
    char *name;
    const struct cat_node *node;
};

/* Owner: one call of cat_tree_yaml. */
struct yaml_reader {
    yaml_parser_t parser;
    struct cat_builder b;
    struct anchor *anchors; /* in the order of the text; the last one of a name counts */
    size_t anchors_n;
    size_t anchors_cap;
};

static uint32_t line_of(const yaml_mark_t *m)
{
    return (uint32_t)m->line + 1;
}

/* --- scalars --- */

static bool is_number(struct span s)
{
    struct sc_json_error err;

    return s.n > 0 && (s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9')) &&
           sc_json_check(s, &err) == 0;
}

static bool is_one_of(struct span s, const char *a, const char *b, const char *c)
{
    return span_eq_str(s, a) || span_eq_str(s, b) || span_eq_str(s, c);
}

static enum cat_kind kind_of(const yaml_event_t *e)
{
    struct span s = span_of(e->data.scalar.value, e->data.scalar.length);

    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || e->data.scalar.tag != NULL)
        return CAT_TEXT; /* of tags only !!str and ! get here */
    if (s.n == 0 || span_eq_str(s, "~") || is_one_of(s, "null", "Null", "NULL"))
        return CAT_NULL;
    if (is_one_of(s, "true", "True", "TRUE"))
        return CAT_TRUE;
    if (is_one_of(s, "false", "False", "FALSE"))
        return CAT_FALSE;
    return is_number(s) ? CAT_NUMBER : CAT_TEXT;
}

/* --- anchors --- */

static void remember(struct yaml_reader *y, const yaml_char_t *name, const struct cat_node *node,
                     uint32_t line)
{
    if (name == NULL || node == NULL)
        return;
    if (y->anchors_n == ANCHORS_MAX) {
        cat_stop(&y->b, line, "there are more than 1,000 anchors");
        return;
    }
    if (y->anchors_n == y->anchors_cap) {
        size_t cap = y->anchors_cap == 0 ? 16 : y->anchors_cap * 2;
        struct anchor *grown = mem_realloc(y->anchors, cap * sizeof *grown);
        if (grown == NULL) {
            y->b.tree->failed = y->b.stopped = true;
            return;
        }
        y->anchors = grown;
        y->anchors_cap = cap;
    }
    char *copy = mem_strdup((const char *)name);
    if (copy == NULL) {
        y->b.tree->failed = y->b.stopped = true;
        return;
    }
    y->anchors[y->anchors_n++] = (struct anchor){copy, node};
}

static bool is_open(const struct cat_builder *b, const struct cat_node *n)
{
    for (size_t i = 0; i < b->depth; i++) {
        if (b->stack[i].node == n)
            return true;
    }
    return false;
}

static void put_alias(struct yaml_reader *y, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    const struct cat_node *node = NULL;

    for (size_t i = y->anchors_n; i > 0 && node == NULL; i--) {
        if (strcmp(y->anchors[i - 1].name, name) == 0)
            node = y->anchors[i - 1].node;
    }
    /* Without the name: what looks like an alias may be a token that wants quotes. */
    if (node == NULL || is_open(&y->b, node)) {
        cat_stop(&y->b, line_of(&e->start_mark),
                 node == NULL ? "an alias (*...) has no anchor; text that begins so wants quotes"
                              : "an alias stands within its own anchor");
    } else if (cat_wants_key(&y->b)) {
        if (node->kind == CAT_LIST || node->kind == CAT_MAP)
            cat_stop(&y->b, line_of(&e->start_mark), "a key must be text");
        else
            cat_put_key(&y->b, node->text, line_of(&e->start_mark));
    } else {
        (void)cat_put_copy(&y->b, node);
    }
}

/* --- events --- */

/* Tags other than those of plain JSON types would change what a value means. */
static void check_tag(struct yaml_reader *y, const yaml_char_t *tag, const yaml_mark_t *at)
{
    static const char *const known[] = {"!", YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (tag == NULL || strcmp((const char *)tag, known[i]) == 0)
            return;
    }
    /* without the tag: it may be a token */
    cat_stop(&y->b, line_of(at),
             "this tag (!...) is not understood; text that begins so wants quotes");
}

static void put_scalar(struct yaml_reader *y, const yaml_event_t *e)
{
    struct span s = span_of(e->data.scalar.value, e->data.scalar.length);
    uint32_t line = line_of(&e->start_mark);

    check_tag(y, e->data.scalar.tag, &e->start_mark);
    if (cat_wants_key(&y->b))
        cat_put_key(&y->b, s, line);
    else
        remember(y, e->data.scalar.anchor, cat_put_scalar(&y->b, kind_of(e), s, line), line);
}

static void put_open(struct yaml_reader *y, const yaml_event_t *e, enum cat_kind kind,
                     const yaml_char_t *anchor, const yaml_char_t *tag)
{
    uint32_t line = line_of(&e->start_mark);

    check_tag(y, tag, &e->start_mark);
    if (cat_wants_key(&y->b))
        cat_stop(&y->b, line, "a key must be text");
    else
        remember(y, anchor, cat_open(&y->b, kind, line), line);
}

/* False at the end. */
static bool take(struct yaml_reader *y, const yaml_event_t *e, bool *document)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (*document)
            cat_stop(&y->b, line_of(&e->start_mark), "a second document begins here");
        *document = true;
        break;
    case YAML_ALIAS_EVENT:
        put_alias(y, e);
        break;
    case YAML_SCALAR_EVENT:
        put_scalar(y, e);
        break;
    case YAML_SEQUENCE_START_EVENT:
        put_open(y, e, CAT_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        break;
    case YAML_MAPPING_START_EVENT:
        put_open(y, e, CAT_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        cat_close(&y->b);
        break;
    case YAML_STREAM_END_EVENT:
        return false;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return !y->b.stopped;
}

/* libyaml's reader, which sees bytes that are no text, tells an offset and no mark. */
static uint32_t problem_line(const struct yaml_reader *y, struct span text)
{
    uint32_t line = 1;

    if (y->parser.error != YAML_READER_ERROR)
        return line_of(&y->parser.problem_mark);
    for (size_t i = 0; i < text.n && i < y->parser.problem_offset; i++)
        line += text.p[i] == '\n';
    return line;
}

static void say_problem(struct yaml_reader *y, struct span file_text)
{
    char text[200];

    if (y->parser.error == YAML_MEMORY_ERROR) {
        y->b.tree->failed = y->b.stopped = true;
        return;
    }
    (void)snprintf(text, sizeof text, "not YAML: %.150s",
                   y->parser.problem == NULL ? "no reason is known" : y->parser.problem);
    cat_stop(&y->b, problem_line(y, file_text), text);
}

const struct cat_node *cat_tree_yaml(struct cat_tree *t, uint32_t file, struct span text)
{
    struct yaml_reader *y = mem_zalloc(sizeof *y);
    bool more = true, document = false;
    yaml_event_t e;

    if (y == NULL || yaml_parser_initialize(&y->parser) == 0) {
        mem_free(y);
        t->failed = true;
        return NULL;
    }
    t->file = file;
    y->b.tree = t;
    yaml_parser_set_input_string(&y->parser, text.p, text.n);
    while (more) {
        if (yaml_parser_parse(&y->parser, &e) == 0) {
            say_problem(y, text);
            break;
        }
        more = take(y, &e, &document);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&y->parser);
    if (!y->b.stopped && y->b.root == NULL)
        cat_stop(&y->b, 1, "the file is empty");
    const struct cat_node *root = y->b.stopped ? NULL : y->b.root;
    for (size_t i = 0; i < y->anchors_n; i++)
        mem_free(y->anchors[i].name);
    mem_free(y->anchors);
    mem_free(y);
    return root;
}
