/*
 * Which fields a binding has. Keys always; then what the user requires or
 * includes; then, with a depth above 0, the catalog's projections, flow_published_at and /_meta/op,
 * and all locations down to that depth. A recommended location gives way to a field that was chosen
 * for it, or for one above it, by name. Pure.
 */
#include <stdlib.h>

#include "schema/avro_int.h"

#define DOCUMENT "flow_document"

static struct span canonical(struct span pointer)
{
    return pointer.n == 0 ? span_str(DOCUMENT) : span_of(pointer.p + 1, pointer.n - 1);
}

static const struct sc_projection *explicit_at(const struct av *av, struct span pointer)
{
    for (size_t i = 0; i < av->opts->projections_n; i++) {
        if (span_eq(av->opts->projections[i].pointer, pointer))
            return &av->opts->projections[i];
    }
    return NULL;
}

static const struct sc_projection *explicit_named(const struct av *av, struct span field)
{
    for (size_t i = 0; i < av->opts->projections_n; i++) {
        if (span_eq(av->opts->projections[i].field, field))
            return &av->opts->projections[i];
    }
    return NULL;
}

static bool chosen(const struct av *av, struct span field)
{
    for (size_t i = 0; i < av->fields_n; i++) {
        if (span_eq(av->fields[i].field, field))
            return true;
    }
    return false;
}

static bool is_excluded(const struct av *av, struct span field, struct span pointer)
{
    const struct sc_selection *sel = av->opts->select;

    for (size_t i = 0; sel != NULL && i < sel->exclude_n; i++) {
        struct span x = sel->exclude[i];

        if (span_eq(x, field) || (x.n > 0 && x.p[0] == '/' && span_eq(x, pointer)))
            return true;
    }
    return false;
}

/* A location that a field of this pointer lies at or below. */
static bool is_below(struct span pointer, struct span above)
{
    return above.n > 0 && span_has_prefix(pointer, above) &&
           (pointer.n == above.n || pointer.p[above.n] == '/');
}

static void add(struct av *av, struct span field, struct span pointer, bool is_key, bool published)
{
    struct av_field f = {.field = field, .pointer = pointer, .is_key = is_key};
    int err;

    if (av->err < 0 || chosen(av, field))
        return;
    f.published = published;
    if (av->fields_n == AVRO_MAX_FIELDS) {
        (void)av_fail(av, E_LIMIT, pointer, "too many fields", (struct span){NULL, 0});
        return;
    }
    if ((err = sc_shape_at(av->root, pointer, &f.shape, &f.exists)) < 0) {
        (void)av_fail(av, err == E_SYNTAX ? E_INVALID : err, pointer, "not a JSON pointer", field);
        return;
    }
    if (av->fields_n == av->fields_cap) {
        size_t cap = av->fields_cap == 0 ? 32 : av->fields_cap * 2;
        struct av_field *p = arena_array(&av->tmp, cap, sizeof *p);

        if (p == NULL) {
            av->err = E_NOMEM;
            return;
        }
        if (av->fields_n > 0)
            memcpy(p, av->fields, av->fields_n * sizeof *p);
        av->fields = p;
        av->fields_cap = cap;
    }
    f.field = av_copy(av, field);
    f.pointer = av_copy(av, pointer);
    av->fields[av->fields_n++] = f;
}

static void add_keys(struct av *av)
{
    for (size_t i = 0; i < av->opts->key_n && av->err == 0; i++) {
        struct span pointer = av->opts->key[i];
        const struct sc_projection *p = explicit_at(av, pointer);

        if (pointer.n == 0 || pointer.p[0] != '/')
            (void)av_fail(av, E_INVALID, pointer, "a key is a JSON pointer to a scalar", pointer);
        else
            add(av, p == NULL ? canonical(pointer) : p->field, pointer, true, false);
        if (av->err == 0 && av->fields_n != i + 1)
            (void)av_fail(av, E_INVALID, pointer, "a key given twice", pointer);
    }
}

/* sc_shape_at; false: that is no pointer, or av->err is set. */
static bool shape_at(struct av *av, struct span pointer, const struct sc_shape **shape,
                     enum sc_exists *exists)
{
    int err = av->err < 0 ? av->err : sc_shape_at(av->root, pointer, shape, exists);

    if (err == E_NOMEM)
        av->err = err;
    return err == 0;
}

/* A field by its name or pointer. false: there is none, or av->err is set. */
static bool find_field(struct av *av, struct span name, struct span *field, struct span *pointer)
{
    const struct sc_projection *p = explicit_named(av, name);
    const struct sc_shape *shape;
    enum sc_exists exists;
    bool by_pointer = name.n > 0 && name.p[0] == '/';

    if (p == NULL && by_pointer)
        p = explicit_at(av, name);
    if (p != NULL) {
        *field = p->field;
        *pointer = p->pointer;
        return true;
    }
    if (span_eq_str(name, DOCUMENT)) {
        *field = name;
        *pointer = span_str("");
        return true;
    }
    *pointer = by_pointer ? name : av_join(av, span_str("/"), "", name);
    *field = by_pointer ? canonical(name) : name;
    return shape_at(av, *pointer, &shape, &exists) &&
           exists < (by_pointer ? SC_EXISTS_NEVER : SC_EXISTS_IMPLICIT);
}

static void add_named(struct av *av, const struct span *names, size_t n, bool must)
{
    for (size_t i = 0; i < n && av->err == 0; i++) {
        struct span field, pointer;
        const struct sc_shape *shape = NULL;
        enum sc_exists exists = SC_EXISTS_NEVER;
        const char *fault = NULL;

        if (span_eq_str(names[i], SC_PUBLISHED_NAME) && explicit_named(av, names[i]) == NULL) {
            add(av, names[i], span_str("/_meta/uuid"), false, true);
            continue;
        }
        if (!find_field(av, names[i], &field, &pointer) ||
            !shape_at(av, pointer, &shape, &exists) || exists == SC_EXISTS_NEVER)
            fault = "no such field";
        else if (shape_types(shape) == SC_T_NULL)
            fault = "nothing but null can be in this field";
        else if (is_excluded(av, field, pointer) && must)
            fault = "a field that is both required and excluded";
        if (fault == NULL)
            add(av, field, pointer, false, false);
        else if (must)
            (void)av_fail(av, E_INVALID, span_str(""), fault, names[i]);
        else
            av_note(av, names[i], fault);
    }
}

/* A field that nobody asked for by name. */
static void add_recommended(struct av *av, struct span pointer, size_t named,
                            const struct sc_shape *shape)
{
    struct span field = canonical(pointer);
    const struct sc_selection *sel = av->opts->select;

    if (explicit_named(av, field) != NULL || is_excluded(av, field, pointer))
        return;
    for (size_t i = 0; sel != NULL && i < sel->exclude_n; i++) {
        struct span x = sel->exclude[i];

        if (x.n > 0 && (is_below(pointer, x) ||
                        (span_has_prefix(field, x) && field.n > x.n && field.p[x.n] == '/')))
            return; /* a location above it is excluded */
    }
    for (size_t i = 0; i < named; i++) {
        if (!av->fields[i].published && is_below(pointer, av->fields[i].pointer))
            return;
    }
    if (shape_types(shape) == SC_T_NULL)
        av_note(av, field, "left out: nothing but null can be in this field");
    else
        add(av, field, pointer, false, false);
}

static struct span child_pointer(struct av *av, struct span parent, struct span name)
{
    uint8_t *p = arena_alloc(&av->tmp, parent.n + 1 + 2 * name.n);
    size_t n = parent.n;

    if (p == NULL) {
        (void)av_fail(av, jt_no_room(&av->tmp, parent.n + 1 + 2 * name.n), parent,
                      "too many locations", (struct span){NULL, 0});
        return parent;
    }
    if (n > 0)
        memcpy(p, parent.p, n);
    p[n++] = '/';
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];

        if (c == '~' || c == '/') {
            p[n++] = '~';
            c = c == '~' ? '0' : '1';
        }
        p[n++] = c;
    }
    return span_of(p, n);
}

static void add_depth(struct av *av, const struct sc_shape *shape, struct span pointer,
                      uint32_t depth, uint32_t want, size_t named)
{
    for (size_t i = 0; shape != NULL && i < shape->properties_n && av->err == 0; i++) {
        const struct sc_property *p = &shape->properties[i];
        unsigned types = shape_types(p->shape) & ~(unsigned)SC_T_NULL;
        struct span at;

        if (shape_is_never(p->shape) || (depth == 0 && span_eq_str(p->name, "_meta")))
            continue;
        at = child_pointer(av, pointer, p->name);
        if (depth + 1 < want && types == SC_T_OBJECT && p->shape->properties_n > 0 &&
            depth + 1 < PG_MAX_DEPTH)
            add_depth(av, p->shape, at, depth + 1, want, named);
        else
            add_recommended(av, at, named, p->shape);
    }
}

static void add_all_recommended(struct av *av, uint32_t depth)
{
    const struct sc_shape *op;
    enum sc_exists exists;
    size_t named;

    for (size_t i = 0; i < av->opts->projections_n && av->err == 0; i++) {
        const struct sc_projection *p = &av->opts->projections[i];

        if (!is_excluded(av, p->field, p->pointer))
            add_named(av, &p->field, 1, false);
    }
    if (explicit_named(av, span_str(SC_PUBLISHED_NAME)) == NULL &&
        !is_excluded(av, span_str(SC_PUBLISHED_NAME), span_str("")))
        add(av, span_str(SC_PUBLISHED_NAME), span_str("/_meta/uuid"), false, true);
    if (shape_at(av, span_str("/_meta/op"), &op, &exists) && exists < SC_EXISTS_IMPLICIT)
        add_recommended(av, span_str("/_meta/op"), av->fields_n, op);
    named = av->fields_n;
    add_depth(av, av->root, span_str(""), 0, depth, named);
}

/* --- order --- */

static int by_place(const void *a, const void *b)
{
    const struct av_field *x = a, *y = b;

    if ((x->pointer.n == 0) != (y->pointer.n == 0))
        return x->pointer.n == 0 ? 1 : -1;
    return span_cmp(x->field, y->field);
}

void av_select(struct av *av)
{
    const struct sc_selection *sel = av->opts->select;
    uint32_t depth = sel == NULL ? 1 : sel->depth;

    add_keys(av);
    if (sel != NULL) {
        add_named(av, sel->require, sel->require_n, true);
        add_named(av, sel->include, sel->include_n, false);
    }
    if (depth > 0)
        add_all_recommended(av, depth);
    if (av->err < 0)
        return;
    qsort(av->fields + av->opts->key_n, av->fields_n - av->opts->key_n, sizeof *av->fields,
          by_place);
    av_name_fields(av);
}
