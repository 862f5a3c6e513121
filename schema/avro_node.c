/*
 * What the value at a location becomes in Avro, by the table of docs/avro.md. A location whose
 * expansion would be too large or too deep is served as JSON text, with a note. Pure.
 */
#include "schema/avro_int.h"

#include "schema/number.h"

static enum pg_op string_op(unsigned types, enum sc_format format)
{
    bool number = format == SC_F_INTEGER || format == SC_F_NUMBER;

    if (types == SC_T_STRING) {
        switch (format) {
        case SC_F_DATE:
            return PG_DATE;
        case SC_F_DATE_TIME:
            return PG_TIME;
        case SC_F_UUID:
            return PG_UUID;
        case SC_F_DURATION:
            return PG_DURATION;
        case SC_F_NONE:
        case SC_F_INTEGER:
        case SC_F_NUMBER:
        default:
            return PG_STRING;
        }
    }
    if (number && types == (SC_T_STRING | SC_T_INT))
        return PG_TEXT_NUMBER;
    if (number && (types & ~(unsigned)(SC_T_STRING | SC_T_INT | SC_T_FRACTION)) == 0)
        return PG_NUMBER_TEXT;
    return PG_RAW;
}

static size_t declared(const struct sc_shape *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->properties_n; i++)
        n += !shape_is_never(s->properties[i].shape);
    return n;
}

static enum pg_op op_of(const struct sc_shape *shape)
{
    unsigned types = shape_types(shape) & ~(unsigned)SC_T_NULL;

    if ((types & SC_T_STRING) != 0)
        return string_op(types, shape == NULL ? SC_F_NONE : shape->format);
    switch (types) {
    case 0:
        return PG_NULL;
    case SC_T_BOOL:
        return PG_BOOL;
    case SC_T_INT:
        return PG_LONG;
    case SC_T_FRACTION:
    case SC_T_INT | SC_T_FRACTION:
        return PG_DOUBLE;
    case SC_T_ARRAY:
        return PG_ARRAY;
    case SC_T_OBJECT:
        return declared(shape) == 0 && !shape_is_never(shape->extra) ? PG_MAP : PG_RECORD;
    default:
        return PG_RAW;
    }
}

/* What any element may be. */
static const struct sc_shape *elements(struct av *av, const struct sc_shape *s)
{
    const struct sc_shape *all = s->max_items > s->tuple_n ? s->items : &SC_NEVER;

    for (size_t i = 0; i < s->tuple_n && i < s->max_items; i++)
        all = mk_union(&av->mk, all, s->tuple[i]);
    return all;
}

static void fill_record(struct av *av, struct pg_node *node, const struct sc_shape *s,
                        unsigned depth)
{
    struct pg_record *r = av_alloc(av, 1, sizeof *r);
    struct pg_field *fields = av_alloc(av, s->properties_n + 1, sizeof *fields);
    struct span *names = arena_array(&av->tmp, s->properties_n + 1, sizeof *names);
    const struct sc_shape *extra = s->extra;
    size_t n = 0;

    if (r == NULL || fields == NULL || names == NULL) {
        av->err = av->err < 0 ? av->err : E_NOMEM;
        return;
    }
    for (size_t i = 0; i < s->properties_n && av->err == 0; i++) {
        const struct sc_property *p = &s->properties[i];
        struct span label;
        struct pg_node *child;

        if (shape_is_never(p->shape))
            continue;
        if (!av_is_name(p->name) || span_eq_str(p->name, "_flow_extra")) {
            extra = mk_union(&av->mk, extra, p->shape);
            continue;
        }
        label = av_join(av, node->name, ".", p->name);
        if ((child = av_node(av, p->shape, label, depth + 1)) == NULL)
            return;
        fields[n].absent = av_finish(av, child, p->shape, p->required, label);
        r->absent_bytes += fields[n].absent.n;
        fields[n].node = child;
        fields[n].avro_name = names[n] = av_copy(av, p->name);
        n++;
    }
    if (!shape_is_never(extra))
        r->extra =
            av_node(av, extra, av_join(av, node->name, ".", span_str("_flow_extra")), depth + 1);
    r->fields = fields;
    av_names(av, &r->names, names, n);
    node->record = r;
}

struct pg_node *av_node(struct av *av, const struct sc_shape *shape, struct span name,
                        unsigned depth)
{
    struct pg_node *node = av_alloc(av, 1, sizeof *node);

    if (node == NULL)
        return NULL;
    if (++av->nodes_n > AVRO_MAX_NODES) {
        (void)av_fail(av, E_LIMIT, name, "too many locations", (struct span){NULL, 0});
        return NULL;
    }
    node->op = op_of(shape);
    node->name = name;
    node->nullable = (shape_types(shape) & SC_T_NULL) != 0 && node->op != PG_NULL;
    node->value_branch = 1;
    if ((node->op == PG_ARRAY || node->op == PG_MAP || node->op == PG_RECORD) &&
        (depth >= PG_MAX_DEPTH || (depth > 0 && shape->weight > AVRO_MAX_WEIGHT))) {
        av_note(av, name, "served as JSON text: what its schema says is too large or too deep");
        node->op = PG_RAW;
    }
    if (node->op == PG_ARRAY)
        node->elem =
            av_node(av, elements(av, shape), av_join(av, name, ".", span_str("_items")), depth + 1);
    else if (node->op == PG_MAP)
        node->elem =
            av_node(av, shape->extra, av_join(av, name, ".", span_str("_values")), depth + 1);
    else if (node->op == PG_RECORD)
        fill_record(av, node, shape, depth);
    if (av->mk.err < 0 && av->err == 0)
        (void)av_fail(av, av->mk.err, name, "the schema is too large", (struct span){NULL, 0});
    return av->err < 0 ? NULL : node;
}

/* --- defaults --- */

/* The zigzag varint at the front of a default's bytes. */
static int64_t first_long(struct span bytes)
{
    uint64_t z = 0;

    for (size_t i = 0; i < bytes.n && i < 10; i++) {
        z |= (uint64_t)(bytes.p[i] & 0x7f) << 7 * i;
        if (bytes.p[i] < 0x80)
            break;
    }
    return (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
}

/* The default in a schema text. Only what every parser reads alike: no integer that a double cannot
 * hold, no infinity, no record. .p == NULL: the schema shows none, though absent values get it. */
static struct span default_text(struct av *av, const struct pg_node *node, struct span json,
                                struct span bytes)
{
    const int64_t safe = (INT64_C(1) << 53) - 1;
    struct span out = {NULL, 0};
    struct sc_num num;
    struct writer w;
    int64_t v;
    double d;

    wr_init(&w, SC_SCHEMA_MAX_BYTES);
    switch (node->op) {
    case PG_BOOL:
        wr_str(&w, bytes.p[0] != 0 ? "true" : "false");
        break;
    case PG_LONG:
    case PG_DATE:
    case PG_TIME:
        v = first_long(bytes);
        if (v <= safe && v >= -safe)
            wr_printf(&w, "%lld", (long long)v);
        break;
    case PG_DOUBLE:
    case PG_NUMBER_TEXT:
        if (json.p[0] == '"')
            json = span_of(json.p + 1, json.n - 2);
        if (sc_num_parse_text(json, &d) == 0 && d - d == 0 && json.n < 64 &&
            sc_num_scan(json.p, json.p + json.n, &num) == json.p + json.n)
            wr_span(&w, json);
        break;
    case PG_STRING:
    case PG_TEXT_NUMBER:
    case PG_UUID:
        v = first_long(bytes);
        sc_json_quote(span_of(bytes.p + bytes.n - (size_t)v, (size_t)v), &w);
        break;
    case PG_ARRAY:
    case PG_MAP:
        if (bytes.n == 1)
            wr_str(&w, node->op == PG_ARRAY ? "[]" : "{}");
        break;
    case PG_NULL:
    case PG_DURATION:
    case PG_RECORD:
    case PG_RAW:
    case PG_PUBLISHED:
    case PG_DELETED:
    default:
        break;
    }
    if (wr_err(&w) < 0)
        av->err = wr_err(&w);
    else if (wr_len(&w) > 0)
        out = av_copy(av, blob_span(w.b));
    wr_fini(&w);
    return out;
}

/* The bytes of a default that fits, without the union's branch; .p == NULL when it does not. */
static struct span encoded(struct av *av, const struct pg_node *node, struct span json)
{
    struct pg_node plain = *node;
    struct span out = {NULL, 0};
    struct writer w;
    int err;

    plain.nullable = false;
    wr_init(&w, SC_SCHEMA_MAX_BYTES);
    if ((err = pg_encode(&plain, json, &w)) == 0)
        out = av_copy(av, w.b == NULL ? span_of("", 0) : blob_span(w.b));
    else if (err == E_NOMEM)
        av->err = err;
    wr_fini(&w);
    return out;
}

struct span av_finish(struct av *av, struct pg_node *node, const struct sc_shape *shape,
                      bool required, struct span label)
{
    bool has = shape != NULL && shape->has_default, null = has && span_eq_str(shape->def, "null");
    struct span bytes = {NULL, 0}, absent;

    if (node->op == PG_NULL)
        return av_copy(av, span_of("", 0));
    if (has && !null)
        bytes = encoded(av, node, shape->def);
    if (has && (null ? required && !node->nullable : bytes.p == NULL))
        av_note(av, label, "its default does not fit its type and is left out");
    node->nullable = node->nullable || (!required && bytes.p == NULL);
    if (bytes.p != NULL) {
        node->def = default_text(av, node, shape->def, bytes);
        node->null_branch = 1;
        node->value_branch = 0;
        return node->nullable ? av_join(av, span_of("", 1), "", bytes) : bytes;
    }
    node->default_null = node->nullable && (!required || null);
    absent = node->nullable ? av_copy(av, span_of("", 1)) : (struct span){NULL, 0};
    return absent;
}
