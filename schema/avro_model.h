/*
 * Any Avro schema as a graph: names resolved, checked as strictly as the specification asks (names,
 * duplicates, references, symbols, defaults). For the registry; served schemas are made elsewhere
 * (avro.h). Immutable once made, any thread. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "schema/shape.h"

struct jt_node;

enum sc_avro_kind {
    SC_AVRO_NULL,
    SC_AVRO_BOOLEAN,
    SC_AVRO_INT,
    SC_AVRO_LONG,
    SC_AVRO_FLOAT,
    SC_AVRO_DOUBLE,
    SC_AVRO_BYTES,
    SC_AVRO_STRING,
    SC_AVRO_ARRAY,
    SC_AVRO_MAP,
    SC_AVRO_UNION,
    SC_AVRO_FIXED,
    SC_AVRO_ENUM,
    SC_AVRO_RECORD
};

struct sc_avro_type;

struct sc_avro_member {
    struct span name;
    size_t aliases_n;
    const struct span *aliases;
    const struct sc_avro_type *type;
    const struct jt_node *fallback; /* its default; NULL: none */
    const struct jt_node *node;     /* of the field */
    size_t pos;
};

/* Owner: its model. */
struct sc_avro_type {
    enum sc_avro_kind kind;
    uint32_t id; /* 0, 1, ... of the model */
    const struct jt_node *node;
    struct span name, full; /* named ones: without and with namespace */
    size_t aliases_n;
    const struct span *aliases; /* full */
    size_t parts_n;             /* items or values: one; branches of a union */
    const struct sc_avro_type **parts;
    size_t members_n;
    const struct sc_avro_member *members;        /* in their order */
    const struct sc_avro_member *const *by_name; /* sorted */
    size_t symbols_n;
    const struct span *symbols; /* in their order */
    const struct span *sorted_symbols;
    struct span fallback; /* an enum's default; n == 0: none */
    uint64_t size;        /* fixed */
};

struct sc_avro_model;

/* The text is copied. E_SYNTAX: no JSON; E_INVALID: no Avro schema; E_LIMIT: too large; E_NOMEM.
 * err->pointer is a name, where there is one. */
MUST_USE int sc_avro_model_new(struct span text, struct sc_schema_error *err,
                               struct sc_avro_model **out);
void sc_avro_model_free(struct sc_avro_model *m); /* NULL is allowed */
const struct sc_avro_type *sc_avro_model_root(const struct sc_avro_model *m);
uint32_t sc_avro_model_types(const struct sc_avro_model *m); /* ids are below it */
/* Static text: "RECORD". */
const char *sc_avro_kind_name(enum sc_avro_kind kind);
/* NULL: the record has none of that name. */
const struct sc_avro_member *sc_avro_member_of(const struct sc_avro_type *record, struct span name);
bool sc_avro_has_symbol(const struct sc_avro_type *e, struct span symbol);

/* Whether both are the same schema: names, order, defaults, aliases and all further attributes
 * (logical types, documentation); not white space, the order of attributes, or the way names are
 * spelt. E_NOMEM. */
MUST_USE int sc_avro_model_same(const struct sc_avro_model *a, const struct sc_avro_model *b,
                                bool *same);
/* Whether two JSON texts are the same value: the order of members counts for nothing, numbers are
 * compared as they are written. E_SYNTAX: one of them is none; E_LIMIT; E_NOMEM. */
MUST_USE int sc_json_same(struct span a, struct span b, bool *same);
