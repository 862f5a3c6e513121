/*
 * Keywords to shapes. What cannot be told by shape is left out, so that a shape admits every
 * document that its schema admits; only what is no schema at all is refused. A $ref that closes a
 * circle admits anything at that place, as does what lies READ_DEPTH schemas deep, which bounds the
 * recursion. Pure.
 */
#include "schema/shape_int.h"

#include <stdlib.h>

#include "base/num.h"

#define READ_DEPTH 256

static const struct sc_shape *fail(struct shape_reader *rd, const struct jt_node *at, int err,
                                   const char *reason)
{
    if (rd->mk.err == 0)
        rd->mk.err = err;
    if (rd->bad == NULL) {
        rd->bad = at;
        rd->reason = reason;
    }
    return &SC_NEVER;
}

static bool is_string(const struct jt_node *n)
{
    return n != NULL && n->kind == SC_JSON_STRING;
}

static struct span minified(struct shape_reader *rd, const struct jt_node *node)
{
    struct writer w;
    struct span out = {NULL, 0};

    wr_init(&w, SC_SCHEMA_MAX_BYTES);
    sc_json_minify(node->text, &w);
    if (wr_err(&w) < 0)
        rd->mk.err = wr_err(&w);
    else
        out = mk_copy(&rd->mk, blob_span(w.b));
    wr_fini(&w);
    return out;
}

/* --- types --- */

static unsigned type_named(struct span name)
{
    static const struct {
        const char *name;
        unsigned types;
    } table[] = {
        {"null", SC_T_NULL},
        {"boolean", SC_T_BOOL},
        {"integer", SC_T_INT},
        {"string", SC_T_STRING},
        {"array", SC_T_ARRAY},
        {"object", SC_T_OBJECT},
        {"number", SC_T_INT | SC_T_FRACTION},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (span_eq_str(name, table[i].name))
            return table[i].types;
    }
    return 0;
}

static unsigned read_type(struct shape_reader *rd, const struct jt_node *node)
{
    unsigned types = 0, one;

    if (is_string(node)) {
        if ((types = type_named(node->str)) == 0)
            (void)fail(rd, node, E_INVALID, "an unknown type");
        return types;
    }
    if (node->kind != SC_JSON_ARRAY) {
        (void)fail(rd, node, E_INVALID, "type is a name or a list of names");
        return 0;
    }
    for (const struct jt_node *e = node->first; e != NULL; e = e->next) {
        if (!is_string(e) || (one = type_named(e->str)) == 0) {
            (void)fail(rd, e, E_INVALID, "an unknown type");
            return 0;
        }
        types |= one;
    }
    return types;
}

/* A number without a fraction: 1, 1.0, 10e-1. */
static bool is_integral(struct span text)
{
    const uint8_t *p = text.p, *end = text.p + text.n;
    int64_t places = 0, exponent = 0; /* digits behind the dot up to the last that is not 0 */
    int64_t trailing = 0;             /* zeros at the end of what stands before the dot */
    bool dotted = false, negative = false, nonzero = false;

    for (int64_t k = 0; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            dotted = true;
        } else if (*p != '-') {
            k += dotted;
            nonzero |= *p != '0';
            if (dotted && *p != '0')
                places = k;
            if (!dotted)
                trailing = *p == '0' ? trailing + 1 : 0;
        }
    }
    if (p < end) {
        p++;
        negative = p < end && *p == '-';
        for (; p < end; p++) {
            if (*p >= '0' && *p <= '9' && exponent < 1000000)
                exponent = exponent * 10 + (*p - '0');
        }
    }
    if (!nonzero)
        return true;
    exponent = negative ? -exponent : exponent;
    return places > 0 ? exponent >= places : exponent >= -trailing;
}

static unsigned type_of_value(const struct jt_node *v)
{
    switch (v->kind) {
    case SC_JSON_NULL:
        return SC_T_NULL;
    case SC_JSON_FALSE:
    case SC_JSON_TRUE:
        return SC_T_BOOL;
    case SC_JSON_NUMBER:
        return is_integral(v->text) ? SC_T_INT : SC_T_FRACTION;
    case SC_JSON_STRING:
        return SC_T_STRING;
    case SC_JSON_ARRAY:
        return SC_T_ARRAY;
    case SC_JSON_OBJECT:
    default:
        return SC_T_OBJECT;
    }
}

static enum sc_format format_named(struct span name)
{
    static const struct {
        const char *name;
        enum sc_format format;
    } table[] = {
        {"date", SC_F_DATE},         {"date-time", SC_F_DATE_TIME}, {"uuid", SC_F_UUID},
        {"duration", SC_F_DURATION}, {"integer", SC_F_INTEGER},     {"number", SC_F_NUMBER},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (span_eq_str(name, table[i].name))
            return table[i].format;
    }
    return SC_F_NONE;
}

/* --- objects and arrays --- */

static int by_name(const void *a, const void *b)
{
    const struct sc_property *x = a, *y = b;

    return span_cmp(x->name, y->name);
}

/* By name; of a name given twice the last one counts, as in documents (the sort is stable: glibc
 * merges). How many are left. */
static size_t sort_unique(struct sc_property *list, size_t n)
{
    size_t unique = 0;

    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        if (unique > 0 && span_eq(list[unique - 1].name, list[i].name))
            unique--;
        list[unique++] = list[i];
    }
    return unique;
}

/* patternProperties and additionalProperties as one: patterns are not evaluated. */
static const struct sc_shape *read_extra(struct shape_reader *rd, const struct jt_node *node,
                                         bool alone)
{
    const struct jt_node *extra = jt_get(node, "additionalProperties");
    const struct jt_node *patterns = jt_get(node, "patternProperties");
    const struct sc_shape *s;

    if (extra == NULL && alone)
        extra = jt_get(node, "unevaluatedProperties");
    s = extra == NULL ? NULL : read_schema(rd, extra);
    if (patterns != NULL && patterns->kind == SC_JSON_OBJECT) {
        for (const struct jt_node *p = patterns->first; p != NULL; p = p->next)
            s = mk_union(&rd->mk, s, read_schema(rd, p));
    }
    return s;
}

static void read_object(struct shape_reader *rd, const struct jt_node *node, bool alone,
                        struct sc_shape *s)
{
    const struct jt_node *props = jt_get(node, "properties"), *required = jt_get(node, "required");
    size_t room, n = 0;
    struct sc_property *list;

    if (props != NULL && props->kind != SC_JSON_OBJECT) {
        (void)fail(rd, props, E_INVALID, "properties is an object");
        return;
    }
    if (required != NULL && required->kind != SC_JSON_ARRAY)
        required = NULL; /* draft 3 had a boolean here */
    s->extra = read_extra(rd, node, alone);
    room = (props == NULL ? 0 : props->n) + (required == NULL ? 0 : required->n);
    if ((list = mk_alloc(&rd->mk, room + 1, sizeof *list)) == NULL)
        return;
    for (const struct jt_node *p = props == NULL ? NULL : props->first; p != NULL; p = p->next) {
        list[n].shape = read_schema(rd, p);
        list[n++].name = mk_copy(&rd->mk, p->key);
    }
    if (rd->mk.err < 0)
        return;
    s->properties = list;
    n = s->properties_n = sort_unique(list, n);
    for (const struct jt_node *r = required == NULL ? NULL : required->first; r != NULL;
         r = r->next) {
        const struct sc_property *known;

        if (!is_string(r)) {
            (void)fail(rd, r, E_INVALID, "required is a list of names");
            return;
        }
        if ((known = shape_property(s, r->str)) != NULL)
            list[known - list].required = true;
        else
            list[n++] = (struct sc_property){
                .name = mk_copy(&rd->mk, r->str), .required = true, .shape = s->extra};
    }
    if (rd->mk.err == 0)
        s->properties_n = sort_unique(list, n);
}

static void read_array(struct shape_reader *rd, const struct jt_node *node, bool alone,
                       struct sc_shape *s)
{
    const struct jt_node *tuple = jt_get(node, "prefixItems"), *items = jt_get(node, "items");
    const struct jt_node *max = jt_get(node, "maxItems");
    const struct sc_shape **list;
    size_t n = 0;
    uint64_t v;

    if (items != NULL && items->kind == SC_JSON_ARRAY) {
        tuple = items;
        items = jt_get(node, "additionalItems");
    }
    if (items == NULL && alone)
        items = jt_get(node, "unevaluatedItems");
    if (tuple != NULL && tuple->kind == SC_JSON_ARRAY && tuple->n > 0) {
        if ((list = mk_alloc(&rd->mk, tuple->n, sizeof(struct sc_shape *))) == NULL)
            return;
        for (const struct jt_node *t = tuple->first; t != NULL; t = t->next)
            list[n++] = read_schema(rd, t);
        s->tuple = list;
        s->tuple_n = n;
    }
    if (items != NULL)
        s->items = read_schema(rd, items);
    if (max != NULL && max->kind == SC_JSON_NUMBER && num_parse_u64(max->text, &v) == 0)
        s->max_items = v;
}

/* --- applicators --- */

static const struct sc_shape *read_list(struct shape_reader *rd, const struct jt_node *list,
                                        bool all, const struct sc_shape *s)
{
    const struct sc_shape *any = &SC_NEVER;

    if (list->kind != SC_JSON_ARRAY || list->n == 0)
        return fail(rd, list, E_INVALID, "a list of schemas is expected");
    for (const struct jt_node *e = list->first; e != NULL && rd->mk.err == 0; e = e->next) {
        const struct sc_shape *one = read_schema(rd, e);

        if (all)
            s = mk_intersect(&rd->mk, s, one);
        else /* each alternative with what stands beside it: impossible ones go */
            any = mk_union(&rd->mk, any, mk_intersect(&rd->mk, s, one));
    }
    return all ? s : any;
}

/* Documents are read as they are named. */
static const struct jt_node *find_in(struct shape_reader *rd, struct refs *refs,
                                     const struct jt_node *node, const struct jt_node *ref,
                                     bool *open)
{
    const struct jt_node *target;
    int more = 1;

    while ((target = refs_resolve(refs, node, ref->str, open)) == NULL && refs->err == 0 &&
           (more = rd->more(rd, refs_uri(refs, node, ref->str))) > 0)
        ;
    if (refs->err < 0 || more < 0)
        (void)fail(rd, ref, more < 0 ? more : refs->err,
                   more == E_SYNTAX ? "a $ref to what is no JSON" : "too large");
    return target;
}

/* NULL: there is none, or *open, or an error. *refs: whose nodes it is one of. */
static const struct jt_node *find_target(struct shape_reader *rd, const struct jt_node *node,
                                         const struct jt_node *ref, struct refs **refs, bool *open)
{
    const struct jt_node *target;
    int more;

    do {
        *refs = &rd->refs;
        if ((target = find_in(rd, *refs, node, ref, open)) != NULL || *open || rd->mk.err < 0)
            return target;
        *refs = &rd->refs_by_id;
        if ((target = find_in(rd, *refs, node, ref, open)) != NULL || *open || rd->mk.err < 0)
            return target;
        /* a document may say itself, by its $id, what it is called */
        if ((more = rd->more(rd, (struct span){NULL, 0})) < 0)
            (void)fail(rd, ref, more, "a $ref that leads nowhere, among documents with faults");
    } while (more > 0);
    return NULL;
}

/* dynamic: $dynamicRef, $recursiveRef. */
static const struct sc_shape *read_ref(struct shape_reader *rd, const struct jt_node *node,
                                       const struct jt_node *ref, bool dynamic)
{
    const struct sc_shape *any = &SC_NEVER;
    const struct jt_node *target, *one;
    struct refs *refs;
    size_t at = 0;
    bool open;
    int more;

    if (!is_string(ref))
        return fail(rd, ref, E_INVALID, "$ref is a string");
    target = find_target(rd, node, ref, &refs, &open);
    if (rd->mk.err < 0)
        return &SC_NEVER;
    if (target == NULL && open)
        return NULL;
    if (target == NULL)
        return fail(rd, ref, E_INVALID, "a $ref that leads nowhere");
    if (!dynamic)
        return read_schema(rd, target);
    do /* any document may lead here as well */
        more = rd->more(rd, (struct span){NULL, 0});
    while (more > 0);
    if (more < 0)
        return fail(rd, ref, more, "a $ref that depends on documents with faults");
    while ((one = refs_candidate(refs, target, ref->str, &at)) != NULL && rd->mk.err == 0)
        any = mk_union(&rd->mk, any, read_schema(rd, one));
    return any;
}

/* `not` takes types away when it is about nothing but types. */
static const struct sc_shape *read_not(struct shape_reader *rd, const struct jt_node *denied,
                                       const struct sc_shape *s)
{
    const struct jt_node *type = jt_get(denied, "type"), *value = jt_get(denied, "const");
    unsigned types = 0;

    if (denied->kind == SC_JSON_TRUE || (denied->kind == SC_JSON_OBJECT && denied->n == 0))
        return &SC_NEVER;
    if (denied->kind != SC_JSON_OBJECT || denied->n != 1)
        return s;
    if (type != NULL)
        types = read_type(rd, type);
    else if (value != NULL && value->kind == SC_JSON_NULL)
        types = SC_T_NULL;
    if (types == 0 || rd->mk.err < 0)
        return s;
    return mk_intersect(&rd->mk, s, mk_types(&rd->mk, SC_T_ANY & ~types));
}

static const struct sc_shape *read_if(struct shape_reader *rd, const struct jt_node *node,
                                      const struct sc_shape *s)
{
    const struct jt_node *cond = jt_get(node, "if"), *then = jt_get(node, "then");
    const struct jt_node *other = jt_get(node, "else");
    const struct sc_shape *yes, *no;

    if (cond == NULL || other == NULL) /* without else anything may be */
        return s;
    yes = mk_intersect(&rd->mk, s, read_schema(rd, cond));
    if (then != NULL)
        yes = mk_intersect(&rd->mk, yes, read_schema(rd, then));
    no = mk_intersect(&rd->mk, s, read_schema(rd, other));
    return mk_union(&rd->mk, yes, no);
}

/* What the keywords of this very schema say, without those that name other schemas in place. */
static const struct sc_shape *read_own(struct shape_reader *rd, const struct jt_node *node,
                                       bool alone)
{
    const struct jt_node *type = jt_get(node, "type"), *values = jt_get(node, "enum");
    const struct jt_node *one = jt_get(node, "const"), *format = jt_get(node, "format");
    const struct jt_node *def = jt_get(node, "default");
    struct sc_shape *s = mk_alloc(&rd->mk, 1, sizeof *s);
    unsigned types = SC_T_ANY;

    if (s == NULL)
        return &SC_NEVER;
    s->max_items = UINT64_MAX;
    if (type != NULL)
        types = read_type(rd, type);
    if (values != NULL && values->kind == SC_JSON_ARRAY) {
        unsigned these = 0;

        for (const struct jt_node *v = values->first; v != NULL; v = v->next)
            these |= type_of_value(v);
        types &= these;
    }
    if (one != NULL)
        types &= type_of_value(one);
    s->types = types;
    if (is_string(format))
        s->format = format_named(format->str);
    if ((types & SC_T_OBJECT) != 0)
        read_object(rd, node, alone, s);
    if ((types & SC_T_ARRAY) != 0)
        read_array(rd, node, alone, s);
    if (def != NULL) {
        s->has_default = true;
        s->def = minified(rd, def);
    }
    return mk_finish(&rd->mk, s);
}

static const struct sc_shape *read_fresh(struct shape_reader *rd, const struct jt_node *node)
{
    static const char *const refs[] = {"$ref", "$recursiveRef", "$dynamicRef"};
    const struct jt_node *m;
    const struct sc_shape *s;
    bool alone = jt_get(node, "allOf") == NULL && jt_get(node, "anyOf") == NULL &&
                 jt_get(node, "oneOf") == NULL && jt_get(node, "if") == NULL &&
                 jt_get(node, "dependentSchemas") == NULL;

    for (size_t i = 0; i < 3; i++)
        alone = alone && jt_get(node, refs[i]) == NULL;
    s = read_own(rd, node, alone);
    for (size_t i = 0; i < 3; i++) {
        if ((m = jt_get(node, refs[i])) != NULL)
            s = mk_intersect(&rd->mk, s, read_ref(rd, node, m, i > 0));
    }
    if ((m = jt_get(node, "allOf")) != NULL)
        s = read_list(rd, m, true, s);
    if ((m = jt_get(node, "anyOf")) != NULL)
        s = read_list(rd, m, false, s);
    if ((m = jt_get(node, "oneOf")) != NULL)
        s = read_list(rd, m, false, s);
    s = read_if(rd, node, s);
    if ((m = jt_get(node, "not")) != NULL)
        s = read_not(rd, m, s);
    return s;
}

const struct sc_shape *read_schema(struct shape_reader *rd, const struct jt_node *node)
{
    const struct sc_shape *s;

    if (rd->mk.err < 0)
        return &SC_NEVER;
    if (node->kind == SC_JSON_TRUE || node->kind == SC_JSON_FALSE)
        return node->kind == SC_JSON_TRUE ? NULL : &SC_NEVER;
    if (node->kind != SC_JSON_OBJECT)
        return fail(rd, node, E_INVALID, "a schema is an object or a boolean");
    if (rd->state[node->id] == 1)
        return NULL; /* closes a circle */
    if (rd->state[node->id] == 2)
        return rd->memo[node->id];
    if (rd->depth == READ_DEPTH)
        return NULL; /* types that refer to each other make long ways before they close circles */
    rd->depth++;
    rd->state[node->id] = 1;
    s = read_fresh(rd, node);
    rd->state[node->id] = 2;
    rd->memo[node->id] = s;
    rd->depth--;
    if (rd->mk.err < 0)
        (void)fail(rd, node, rd->mk.err, "its parts multiply when they are merged");
    return s;
}
