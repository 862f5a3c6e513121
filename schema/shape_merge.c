/*
 * Intersection (allOf, $ref and its neighbours) and union (anyOf, oneOf, then/else) of shapes. Both
 * answers admit at least what the exact answer admits. Results are kept by their arguments, so that
 * schemas whose parts refer to each other many times stay polynomial. Pure, not thread-safe.
 */
#include "base/hash.h"
#include "base/num.h"
#include "schema/shape_int.h"

enum merge_op { OP_FREE, OP_INTERSECT, OP_UNION };

const struct sc_shape SC_NEVER = {.max_items = UINT64_MAX, .weight = 1};

void *mk_alloc(struct shape_maker *mk, size_t n, size_t bytes)
{
    void *p;

    if (mk->err < 0)
        return NULL;
    if ((p = arena_array(mk->a, n, bytes)) == NULL)
        mk->err = jt_no_room(mk->a, n * bytes);
    return p;
}

struct span mk_copy(struct shape_maker *mk, struct span s)
{
    uint8_t *p = mk_alloc(mk, s.n + 1, 1);

    if (p == NULL)
        return span_of("", 0);
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    return span_of(p, s.n);
}

const struct sc_property *shape_property(const struct sc_shape *s, struct span name)
{
    size_t lo = 0, hi = s == NULL ? 0 : s->properties_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(s->properties[mid].name, name);

        if (c == 0)
            return &s->properties[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static void weigh(uint32_t *sum, const struct sc_shape *s)
{
    uint32_t w = s == NULL ? 1 : s->weight;

    *sum = *sum > UINT32_MAX - w ? UINT32_MAX : *sum + w;
}

const struct sc_shape *mk_finish(struct shape_maker *mk, struct sc_shape *s)
{
    uint32_t weight = 1;

    if (mk->err < 0)
        return &SC_NEVER;
    for (size_t i = 0; i < s->properties_n; i++) {
        if (s->properties[i].required && shape_is_never(s->properties[i].shape))
            s->types &= ~(unsigned)SC_T_OBJECT; /* no object can have what it must have */
    }
    if ((s->types & SC_T_OBJECT) == 0) {
        s->properties_n = 0;
        s->extra = NULL;
    }
    if ((s->types & SC_T_ARRAY) == 0) {
        s->tuple_n = 0;
        s->items = NULL;
        s->max_items = UINT64_MAX;
    }
    if ((s->types & SC_T_STRING) == 0)
        s->format = SC_F_NONE;
    for (size_t i = 0; i < s->properties_n; i++)
        weigh(&weight, s->properties[i].shape);
    for (size_t i = 0; i < s->tuple_n; i++)
        weigh(&weight, s->tuple[i]);
    weigh(&weight, s->extra);
    weigh(&weight, s->items);
    s->weight = weight;
    if (s->types == SC_T_ANY && s->format == SC_F_NONE && !s->has_default && s->properties_n == 0 &&
        s->extra == NULL && s->tuple_n == 0 && s->items == NULL && s->max_items == UINT64_MAX)
        return NULL;
    return s;
}

const struct sc_shape *mk_types(struct shape_maker *mk, unsigned types)
{
    struct sc_shape *s = mk_alloc(mk, 1, sizeof *s);

    if (s == NULL)
        return &SC_NEVER;
    s->types = types;
    s->max_items = UINT64_MAX;
    return mk_finish(mk, s);
}

const struct sc_shape *mk_with_default(struct shape_maker *mk, const struct sc_shape *s,
                                       struct span def)
{
    struct sc_shape *c = mk_alloc(mk, 1, sizeof *c);

    if (c == NULL)
        return &SC_NEVER;
    if (s != NULL)
        *c = *s;
    else
        *c = (struct sc_shape){.types = SC_T_ANY, .max_items = UINT64_MAX};
    c->has_default = def.p != NULL;
    c->def = def;
    return mk_finish(mk, c);
}

/* --- what was merged already --- */

static size_t memo_slot(const struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                        const struct sc_shape *b)
{
    const void *key[2] = {a, b};
    size_t i = hash_bytes(span_of(key, sizeof key), op) & (mk->memo_cap - 1);

    while (mk->memo[i].op != OP_FREE &&
           (mk->memo[i].op != op || mk->memo[i].a != a || mk->memo[i].b != b))
        i = (i + 1) & (mk->memo_cap - 1);
    return i;
}

static void memo_put(struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                     const struct sc_shape *b, const struct sc_shape *result)
{
    if (mk->memo_n * 2 >= mk->memo_cap) {
        struct merge_entry *old = mk->memo;
        size_t old_cap = mk->memo_cap, cap = old_cap == 0 ? 64 : old_cap * 2;

        if ((mk->memo = mk_alloc(mk, cap, sizeof *mk->memo)) == NULL) {
            mk->memo = old;
            return;
        }
        mk->memo_cap = cap;
        for (size_t i = 0; i < old_cap; i++) {
            if (old[i].op != OP_FREE)
                mk->memo[memo_slot(mk, old[i].op, old[i].a, old[i].b)] = old[i];
        }
    }
    mk->memo[memo_slot(mk, op, a, b)] =
        (struct merge_entry){.a = a, .b = b, .result = result, .op = op};
    mk->memo_n++;
}

/* --- the parts --- */

static const struct sc_shape *merge(struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                                    const struct sc_shape *b)
{
    return op == OP_INTERSECT ? mk_intersect(mk, a, b) : mk_union(mk, a, b);
}

/* What a says of a member that it does not declare, and of item i. */
static const struct sc_shape *item_of(const struct sc_shape *s, size_t i)
{
    if (i >= s->max_items)
        return &SC_NEVER;
    return i < s->tuple_n ? s->tuple[i] : s->items;
}

static void merge_objects(struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                          const struct sc_shape *b, struct sc_shape *out)
{
    size_t i = 0, k = 0, n = 0;
    struct sc_property *props =
        mk_alloc(mk, a->properties_n + b->properties_n + 1, sizeof(struct sc_property));

    if (props == NULL)
        return;
    while (i < a->properties_n || k < b->properties_n) {
        const struct sc_property *pa = i < a->properties_n ? &a->properties[i] : NULL;
        const struct sc_property *pb = k < b->properties_n ? &b->properties[k] : NULL;
        int c = pa == NULL ? 1 : pb == NULL ? -1 : span_cmp(pa->name, pb->name);
        struct sc_property one = {.shape = a->extra}, two = {.shape = b->extra};

        if (pa != NULL && c <= 0)
            one = *pa;
        if (pb != NULL && c >= 0)
            two = *pb;
        props[n].name = c <= 0 ? one.name : two.name;
        props[n].required =
            op == OP_INTERSECT ? one.required || two.required : one.required && two.required;
        props[n].shape = merge(mk, op, one.shape, two.shape);
        n++;
        i += c <= 0;
        k += c >= 0;
    }
    out->properties = props;
    out->properties_n = n;
    out->extra = merge(mk, op, a->extra, b->extra);
}

static void merge_arrays(struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                         const struct sc_shape *b, struct sc_shape *out)
{
    size_t n = a->tuple_n > b->tuple_n ? a->tuple_n : b->tuple_n;
    const struct sc_shape **tuple = mk_alloc(mk, n + 1, sizeof(struct sc_shape *));

    if (tuple == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        tuple[i] = merge(mk, op, item_of(a, i), item_of(b, i));
    out->tuple = tuple;
    out->tuple_n = n;
    out->items = merge(mk, op, a->items, b->items);
    out->max_items =
        (a->max_items < b->max_items) == (op == OP_INTERSECT) ? a->max_items : b->max_items;
}

static void copy_object(const struct sc_shape *from, struct sc_shape *to)
{
    to->properties_n = from->properties_n;
    to->properties = from->properties;
    to->extra = from->extra;
}

static void copy_array(const struct sc_shape *from, struct sc_shape *to)
{
    to->tuple_n = from->tuple_n;
    to->tuple = from->tuple;
    to->items = from->items;
    to->max_items = from->max_items;
}

/* false: the answer is *quick. */
static bool begin(struct shape_maker *mk, unsigned op, const struct sc_shape *a,
                  const struct sc_shape *b, const struct sc_shape **quick)
{
    *quick = &SC_NEVER;
    if (mk->err < 0)
        return false;
    if (a == b) {
        *quick = a;
        return false;
    }
    if (mk->memo_cap > 0) {
        size_t slot = memo_slot(mk, op, a, b);

        if (mk->memo[slot].op != OP_FREE) {
            *quick = mk->memo[slot].result;
            return false;
        }
    }
    if (++mk->merges > SHAPE_MAX_MERGES)
        mk->err = E_LIMIT;
    return mk->err == 0;
}

const struct sc_shape *mk_intersect(struct shape_maker *mk, const struct sc_shape *a,
                                    const struct sc_shape *b)
{
    const struct sc_shape *quick, *done;
    struct sc_shape *s;

    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (!begin(mk, OP_INTERSECT, a, b, &quick) || (s = mk_alloc(mk, 1, sizeof *s)) == NULL)
        return quick;
    s->types = a->types & b->types;
    s->format = a->format != SC_F_NONE ? a->format : b->format;
    s->has_default = a->has_default || b->has_default;
    s->def = a->has_default ? a->def : b->def;
    s->max_items = UINT64_MAX;
    if ((s->types & SC_T_OBJECT) != 0)
        merge_objects(mk, OP_INTERSECT, a, b, s);
    if ((s->types & SC_T_ARRAY) != 0)
        merge_arrays(mk, OP_INTERSECT, a, b, s);
    done = mk_finish(mk, s);
    memo_put(mk, OP_INTERSECT, a, b, done);
    return done;
}

static enum sc_format union_format(const struct sc_shape *a, const struct sc_shape *b)
{
    if ((a->types & SC_T_STRING) == 0)
        return b->format;
    if ((b->types & SC_T_STRING) == 0 || a->format == b->format)
        return a->format;
    if ((a->format == SC_F_INTEGER || a->format == SC_F_NUMBER) &&
        (b->format == SC_F_INTEGER || b->format == SC_F_NUMBER))
        return SC_F_NUMBER;
    return SC_F_NONE;
}

const struct sc_shape *mk_union(struct shape_maker *mk, const struct sc_shape *a,
                                const struct sc_shape *b)
{
    const struct sc_shape *quick, *done;
    struct sc_shape *s;

    if (a == NULL || b == NULL)
        return NULL;
    if (a->types == 0 || b->types == 0)
        return a->types == 0 ? b : a;
    if (!begin(mk, OP_UNION, a, b, &quick) || (s = mk_alloc(mk, 1, sizeof *s)) == NULL)
        return quick;
    s->types = a->types | b->types;
    s->format = union_format(a, b);
    if (a->has_default && b->has_default && span_eq(a->def, b->def)) {
        s->has_default = true;
        s->def = a->def;
    }
    s->max_items = UINT64_MAX;
    if ((a->types & b->types & SC_T_OBJECT) != 0)
        merge_objects(mk, OP_UNION, a, b, s);
    else
        copy_object((a->types & SC_T_OBJECT) != 0 ? a : b, s);
    if ((a->types & b->types & SC_T_ARRAY) != 0)
        merge_arrays(mk, OP_UNION, a, b, s);
    else
        copy_array((a->types & SC_T_ARRAY) != 0 ? a : b, s);
    done = mk_finish(mk, s);
    memo_put(mk, OP_UNION, a, b, done);
    return done;
}
