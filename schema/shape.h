/*
 * What a JSON schema says about the documents of a collection, reduced to types, members, items,
 * formats and defaults: a *shape*. A shape admits every document that its schema admits (and maybe
 * more): conditions that cannot be told by shape alone (`not`, `contains`, sizes of numbers) are
 * left out, `anyOf`, `oneOf` and `then`/`else` become unions, `allOf` and `$ref` intersections.
 * docs/avro.md lists the rules. Immutable once made, any thread; parsing is pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define SC_SCHEMA_MAX_BYTES ((size_t)16 << 20)

/* Types as a mask. Of numbers: those without a fraction (1, 1.0, 1e3) and the others. */
enum sc_type {
    SC_T_NULL = 1,
    SC_T_BOOL = 2,
    SC_T_INT = 4,
    SC_T_FRACTION = 8,
    SC_T_STRING = 16,
    SC_T_ARRAY = 32,
    SC_T_OBJECT = 64,
    SC_T_ANY = 127
};

/* Formats of strings that have an effect. */
enum sc_format {
    SC_F_NONE,
    SC_F_DATE,
    SC_F_DATE_TIME,
    SC_F_UUID,
    SC_F_DURATION,
    SC_F_INTEGER,
    SC_F_NUMBER
};

struct sc_property;

/* One location. NULL stands for "anything", wherever a pointer to a shape may be NULL. */
struct sc_shape {
    unsigned types; /* SC_T_*; 0: nothing can be here */
    enum sc_format format;
    bool has_default;
    struct span def; /* JSON text of the `default` annotation, without white space */
    /* objects */
    size_t properties_n;
    const struct sc_property *properties; /* by name, byte order */
    const struct sc_shape *extra;         /* any member that is not declared: patternProperties and
                                             additionalProperties together; types == 0: closed */
    /* arrays */
    size_t tuple_n;
    const struct sc_shape *const *tuple; /* by index */
    const struct sc_shape *items;        /* behind the tuple */
    uint64_t max_items;                  /* UINT64_MAX: no bound */
    /* locations below this one, itself included, with all $refs expanded; saturates */
    uint32_t weight;
};

struct sc_property {
    struct span name; /* unescaped */
    bool required;
    const struct sc_shape *shape;
};

/* A schema, with all shapes in it. */
struct sc_schema;

/* A document that `$ref` may name, e.g. "flow://write-schema". Of names with the scheme `flow:`
 * those that are not given admit anything. */
struct sc_schema_doc {
    struct span uri;
    struct span text;
};

struct sc_schema_error {
    char pointer[256]; /* where in the schema; "" is its root */
    char reason[256];
};

/* text: JSON. E_SYNTAX: not JSON; E_INVALID: not a schema, or a $ref leads nowhere; E_LIMIT: too
 * large (SC_SCHEMA_MAX_BYTES), or its parts multiply without end when merged; E_NOMEM. err says
 * where and why for all but E_NOMEM. */
MUST_USE int sc_schema_new(struct span text, const struct sc_schema_doc *docs, size_t docs_n,
                           struct sc_schema_error *err, struct sc_schema **out);
void sc_schema_free(struct sc_schema *s); /* NULL is allowed */
/* Borrow. */
const struct sc_shape *sc_schema_root(const struct sc_schema *s);

/* How surely a location exists in a document. */
enum sc_exists {
    SC_EXISTS_MUST,     /* required all the way */
    SC_EXISTS_MAY,      /* declared, optional somewhere on the way */
    SC_EXISTS_IMPLICIT, /* not declared: only an open object or array admits it */
    SC_EXISTS_NEVER
};
/* The shape at a JSON pointer: NULL for "anything". E_SYNTAX: no pointer. */
MUST_USE int sc_shape_at(const struct sc_shape *root, struct span pointer,
                         const struct sc_shape **out, enum sc_exists *exists);
