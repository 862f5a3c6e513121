/*
 * `materializations:` of a catalog: each with an `endpoint: dekaf:` is a task, with settings and
 * bindings. A topic is a binding; names are unique within the task.
 */
#include <stdlib.h>

#include "gateway/catalog_int.h"

static int by_topic(const void *a, const void *b)
{
    const struct catalog_binding *x = a, *y = b;
    int c = span_cmp(span_str(x->topic), span_str(y->topic));

    if (c != 0)
        return c;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void read_bindings(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_task *t)
{
    size_t k = 0;

    if (!cat_is_list(r, n))
        return;
    struct catalog_binding *list = cat_array(r, n->n, sizeof *list);
    for (const struct cat_node *i = n->first; list != NULL && i != NULL; i = i->next) {
        if (cat_read_binding(r, i, t, &list[k]))
            k++;
    }
    if (k > 0)
        qsort(list, k, sizeof *list, by_topic);
    for (size_t i = 1; i < k; i++) {
        if (strcmp(list[i - 1].topic, list[i].topic) == 0)
            cat_fault(r, n, "lines %zu and %zu name the same topic \"%.100s\"", list[i - 1].line,
                      list[i].line, list[i].topic);
    }
    t->bindings = list;
    t->bindings_n = k;
}

static void read_dekaf(struct catalog_reader *r, const struct cat_node *n, struct catalog_task *t)
{
    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "variant"))
            (void)cat_text(r, m, &t->variant);
        else if (cat_is(m, "config"))
            cat_read_config(r, m, t);
        else
            cat_unknown(r, m);
    }
    if (cat_member(n, "config") == NULL)
        cat_fault(r, n, "config is missing");
}

static void read_endpoint(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_task *t)
{
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "dekaf"))
            read_dekaf(r, m, t);
        else
            cat_fault(r, m, "only dekaf belongs here");
    }
}

static void read_task(struct catalog_reader *r, const struct cat_node *n)
{
    static const char *const others[] = {
        "shards",  "delete",        "reset",    "expectPubId",
        "source",  "sourceCapture", "triggers", "onIncompatibleSchemaChange",
        "$comment"};
    const struct cat_node *bindings = cat_member(n, "bindings");
    struct catalog_task *t = cat_array(r, 1, sizeof *t);

    if (t == NULL || !cat_name(r, n, n->key))
        return;
    t->name = cat_copy(r, n->key);
    t->file = cat_copy(r, span_str(cat_file_name(r, n)));
    t->line = n->line;
    t->variant = "";
    if (t->name == NULL || t->file == NULL)
        return;
    cat_chain(r, &r->tasks, t); /* first of all, so that its tokens are wiped whatever comes */
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "endpoint"))
            read_endpoint(r, m, t);
        else if (!cat_is(m, "bindings") && !CAT_AMONG(m, others))
            cat_unknown(r, m);
    }
    if (bindings == NULL)
        cat_fault(r, n, "bindings are missing");
    else
        read_bindings(r, bindings, t); /* after the settings, which change names */
}

static bool is_disabled(const struct cat_node *n)
{
    const struct cat_node *d = cat_member(cat_member(n, "shards"), "disable");

    return d != NULL && d->kind == CAT_TRUE;
}

void cat_read_materializations(struct catalog_reader *r, const struct cat_node *n)
{
    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_member(cat_member(m, "endpoint"), "dekaf") == NULL) {
            r->others++;
            cat_warn(r, m, "no endpoint dekaf: not served");
        } else if (is_disabled(m)) {
            r->others++;
            cat_warn(r, m, "its shards are disabled: not served");
        } else {
            read_task(r, m);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct catalog_task *x = a, *y = b;
    int c = span_cmp(span_str(x->name), span_str(y->name));

    return c != 0 ? c : x->line < y->line ? -1 : x->line > y->line;
}

static void resolve(struct catalog_reader *r, const struct catalog_task *t)
{
    union {
        const struct catalog_binding *in;
        struct catalog_binding *out;
    } u = {.in = t->bindings};

    for (size_t i = 0; i < t->bindings_n; i++) {
        u.out[i].collection = catalog_collection(r->catalog, span_str(u.out[i].source));
        cat_check_binding(r, &u.out[i]);
    }
}

void cat_end_tasks(struct catalog_reader *r)
{
    size_t n = r->tasks.n, k = 0;
    struct catalog_task *list = cat_array(r, n, sizeof *list);

    if (list == NULL)
        return;
    for (const struct cat_chain *c = r->tasks.first; c != NULL; c = c->next)
        list[k++] = *(const struct catalog_task *)c->item;
    r->catalog->tasks = list;
    r->catalog->tasks_n = n;
    if (n > 0)
        qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(list[i - 1].name, list[i].name) == 0)
            cat_say(r, false, list[i].file, (uint32_t)list[i].line, NULL,
                    "this materialization is also defined in another file");
        resolve(r, &list[i]);
    }
    if (n == 0 && r->faults->faults == 0)
        cat_fault(r, r->sources_n > 0 ? r->sources[0].root : NULL,
                  "there is no materialization with an endpoint dekaf");
}
