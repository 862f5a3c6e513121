/* `bindings:` of a task: source, topic, fields and counters of each. */
#include <stdio.h>

#include "gateway/catalog_int.h"
#include "gateway/strict_name.h"

/* --- source --- */

static void read_instant(struct catalog_reader *r, const struct cat_node *n,
                         struct catalog_time *out)
{
    const char *text;

    *out = (struct catalog_time){0, UINT64_MAX};
    if (!cat_text(r, n, &text))
        return;
    int err = catalog_time_parse(span_str(text), out);
    if (err == E_SYNTAX)
        cat_fault(r, n, "\"%.60s\" is no time such as 2026-12-02T10:30:00.5Z", text);
    else if (err < 0)
        cat_fault(r, n, "\"%.60s\" is before 1582-10-15 or after 5236", text);
}

static bool read_values(struct catalog_reader *r, const struct cat_node *n,
                        struct catalog_field_values *out)
{
    size_t k = 0;

    if (!cat_is_list(r, n))
        return false;
    struct catalog_value *list = cat_array(r, n->n, sizeof *list);
    for (const struct cat_node *v = n->first; list != NULL && v != NULL; v = v->next) {
        static const char *const words[] = {
            [CAT_NULL] = "null", [CAT_FALSE] = "false", [CAT_TRUE] = "true"};

        if (v->kind == CAT_LIST || v->kind == CAT_MAP) {
            cat_fault(r, v, "a text, number, boolean or null belongs here, not %s",
                      cat_kind_text(v));
            return false;
        }
        struct span text =
            v->kind == CAT_TEXT || v->kind == CAT_NUMBER ? v->text : span_str(words[v->kind]);
        const char *copy = cat_copy(r, text);
        if (copy == NULL)
            return false;
        list[k++] = (struct catalog_value){v->kind == CAT_TEXT, span_of(copy, text.n)};
    }
    out->field = cat_copy(r, n->key);
    out->values = list;
    out->values_n = k;
    return list != NULL && out->field != NULL;
}

static void read_fields_of(struct catalog_reader *r, const struct cat_node *n,
                           const struct catalog_field_values **out, size_t *out_n)
{
    size_t k = 0;

    if (!cat_is_map(r, n))
        return;
    struct catalog_field_values *list = cat_array(r, n->n, sizeof *list);
    for (const struct cat_node *m = n->first; list != NULL && m != NULL; m = m->next) {
        if (read_values(r, m, &list[k]))
            k++;
    }
    *out = list;
    *out_n = k;
}

static void read_selector(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_selector *s)
{
    if (n->kind == CAT_NULL || !cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "include"))
            read_fields_of(r, m, &s->include, &s->include_n);
        else if (cat_is(m, "exclude"))
            read_fields_of(r, m, &s->exclude, &s->exclude_n);
        else
            cat_unknown(r, m);
    }
}

static void read_source_name(struct catalog_reader *r, const struct cat_node *n,
                             struct catalog_binding *b)
{
    const char *text;

    if (cat_text(r, n, &text) && cat_name(r, n, n->text))
        b->source = text;
}

static void read_source(struct catalog_reader *r, const struct cat_node *n,
                        struct catalog_binding *b)
{
    struct catalog_time when;

    if (n->kind == CAT_TEXT) {
        read_source_name(r, n, b);
        return;
    }
    if (!cat_is_map(r, n))
        return;
    if (cat_member(n, "name") == NULL)
        cat_fault(r, n, "the name is missing");
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "name")) {
            read_source_name(r, m, b);
        } else if (cat_is(m, "notBefore")) {
            read_instant(r, m, &when);
            b->bound.min_clock = when.at_least;
        } else if (cat_is(m, "notAfter")) {
            read_instant(r, m, &when);
            b->bound.max_clock = when.at_most;
        } else if (cat_is(m, "partitions")) {
            read_selector(r, m, &b->selector);
        } else {
            cat_unknown(r, m);
        }
    }
    if (b->bound.min_clock > b->bound.max_clock)
        cat_fault(r, n, "notBefore lies after notAfter: nothing would ever be shown");
}

/* --- fields --- */

static void read_names(struct catalog_reader *r, const struct cat_node *n, const struct span **out,
                       size_t *out_n)
{
    const struct span *before = *out;
    size_t k = *out_n;
    const char *text;

    if (n->kind != CAT_MAP && !cat_is_list(r, n))
        return;
    struct span *list = cat_array(r, k + n->n, sizeof *list);
    if (list == NULL)
        return;
    if (k > 0)
        memcpy(list, before, k * sizeof *list);
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (n->kind == CAT_MAP)
            text = cat_copy(r, m->key);
        else if (!cat_text(r, m, &text))
            continue;
        list[k++] = span_str(text);
    }
    *out = list;
    *out_n = k;
}

static void read_fields(struct catalog_reader *r, const struct cat_node *n,
                        struct catalog_binding *b)
{
    struct sc_selection *s = &b->select;
    int64_t depth;

    if (!cat_is_map(r, n))
        return;
    b->has_select = true;
    s->depth = 1;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "recommended")) {
            if (m->kind == CAT_TRUE)
                s->depth = SC_DEPTH_ALL;
            else if (m->kind == CAT_FALSE)
                s->depth = 0;
            else if (cat_count(r, m, 1000, &depth))
                s->depth = (uint32_t)depth;
        } else if (cat_is(m, "require")) {
            read_names(r, m, &s->require, &s->require_n);
        } else if (cat_is(m, "include")) {
            read_names(r, m, &s->include, &s->include_n);
        } else if (cat_is(m, "exclude")) {
            if (cat_is_list(r, m))
                read_names(r, m, &s->exclude, &s->exclude_n);
        } else if (!cat_is(m, "groupBy")) {
            cat_unknown(r, m);
        }
    }
}

/* --- topics --- */

static bool legal_topic(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > 249)
        return false;
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)name[i] < ' ' || name[i] == 0x7f)
            return false;
    }
    return true;
}

static void read_resource(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_binding *b)
{
    const char *text;

    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (!cat_is(m, "topic_name")) {
            if (!cat_is(m, "_meta"))
                cat_unknown(r, m);
        } else if (cat_text(r, m, &text)) {
            if (legal_topic(text))
                b->topic = text;
            else
                cat_fault(r, m, "1 to 249 bytes without control characters belong here");
        }
    }
}

/* Each byte that is neither letter nor digit becomes a point and two hex digits. */
static const char *strict(struct catalog_reader *r, const char *name)
{
    size_t n = strlen(name);
    char *out = cat_array(r, n * 3 + 1, 1);

    if (out != NULL)
        gw_strict_name(span_str(name), out);
    return out;
}

bool cat_read_binding(struct catalog_reader *r, const struct cat_node *n,
                      const struct catalog_task *t, struct catalog_binding *b)
{
    static const char *const others[] = {"priority", "onIncompatibleSchemaChange"};
    size_t before = r->faults->faults;
    bool disabled = false;
    int64_t count = 0;

    *b = (struct catalog_binding){.bound = {0, UINT64_MAX},
                                  .file = cat_copy(r, span_str(cat_file_name(r, n))),
                                  .line = n->line};
    if (!cat_is_map(r, n))
        return false;
    if (cat_member(n, "source") == NULL)
        cat_fault(r, n, "the source is missing");
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "source"))
            read_source(r, m, b);
        else if (cat_is(m, "resource"))
            read_resource(r, m, b);
        else if (cat_is(m, "fields"))
            read_fields(r, m, b);
        else if (cat_is(m, "backfill"))
            (void)cat_count(r, m, INT32_MAX / 2, &count);
        else if (cat_is(m, "disable"))
            (void)cat_bool(r, m, &disabled);
        else if (!CAT_AMONG(m, others))
            cat_unknown(r, m);
    }
    b->backfill = (int32_t)count;
    if (disabled || b->source == NULL || r->faults->faults != before)
        return false;
    if (b->topic == NULL)
        b->topic = b->source;
    if (t->strict_names)
        b->topic = strict(r, b->topic);
    if (t->signal && b->bound.max_clock != UINT64_MAX)
        cat_fault(r, n, "truncation_signal: headers cannot be had together with notAfter");
    return b->topic != NULL;
}

static bool is_partition(const struct catalog_collection *c, const char *field)
{
    for (size_t i = 0; i < c->partitions_n; i++) {
        if (span_eq_str(c->partitions[i], field))
            return true;
    }
    return false;
}

static void check_fields(struct catalog_reader *r, const struct catalog_binding *b,
                         const struct catalog_field_values *list, size_t n)
{
    char text[240];

    for (size_t i = 0; i < n; i++) {
        if (is_partition(b->collection, list[i].field))
            continue;
        (void)snprintf(text, sizeof text,
                       "partitions: \"%.80s\" is no projection of %.100s with partition: true",
                       list[i].field, b->source);
        cat_say(r, false, b->file, (uint32_t)b->line, NULL, text);
    }
}

void cat_check_binding(struct catalog_reader *r, const struct catalog_binding *b)
{
    if (b->collection == NULL)
        return;
    check_fields(r, b, b->selector.include, b->selector.include_n);
    check_fields(r, b, b->selector.exclude, b->selector.exclude_n);
}
