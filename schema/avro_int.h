/*
 * Private to schema/avro*.c: the compiler from shapes to Avro. avro_select.c: which fields;
 * avro_name.c: their names; avro_node.c: what each value becomes; avro_walk.c: the tree of
 * locations; avro_text.c: the schema texts; avro.c puts them together.
 */
#pragma once

#include "schema/program.h"
#include "schema/shape_int.h"

#define AVRO_ARENA_BYTES ((size_t)256 << 20)
#define AVRO_MAX_WEIGHT  10000  /* locations below one that is still spelled out */
#define AVRO_MAX_NODES   200000 /* of all */
#define AVRO_MAX_FIELDS  10000  /* selected */
#define AVRO_MAX_NOTES   64
#define AVRO_NAME_RULE   "^[A-Za-z_][A-Za-z0-9_]*$"

/* A field that was chosen. */
struct av_field {
    struct span field;   /* projection */
    struct span pointer; /* location */
    struct span name;    /* in Avro */
    const struct sc_shape *shape;
    enum sc_exists exists;
    bool is_key;
    bool published; /* flow_published_at */
};

struct av {
    struct sc_avro *out;
    struct arena *a;       /* of the program */
    struct arena tmp;      /* of the compiler */
    struct shape_maker mk; /* for unions; in tmp */
    const struct sc_shape *root;
    const struct sc_avro_opts *opts;
    struct sc_schema_error *e;
    int err; /* the first failure */
    uint32_t nodes_n;
    struct av_field *fields;
    size_t fields_n, fields_cap;
};

/* Memory of the program, zeroed; NULL with err set. */
void *av_alloc(struct av *av, size_t n, size_t bytes);
struct span av_copy(struct av *av, struct span s); /* with PG_SLACK behind it */
struct span av_join(struct av *av, struct span a, const char *sep, struct span b);
int av_fail(struct av *av, int err, struct span pointer, const char *reason, struct span detail);
void av_note(struct av *av, struct span field, const char *text);

/* true for AVRO_NAME_RULE. */
bool av_is_name(struct span s);
/* Fills av->fields: keys in their order, then by field name, the root document last. */
void av_select(struct av *av);
/* Gives each of av->fields its name. */
void av_name_fields(struct av *av);

void av_names(struct av *av, struct pg_names *names, const struct span *list, size_t n);
/* The node of a location: name is the full name that a named type there gets. */
struct pg_node *av_node(struct av *av, const struct sc_shape *shape, struct span name,
                        unsigned depth);
/* Nullability, default and what stands for an absent value. */
struct span av_finish(struct av *av, struct pg_node *node, const struct sc_shape *shape,
                      bool required, struct span label);

/* Builds the walk over the pointers of both lists (and /_meta/op) and fills in their slots. */
void av_walk(struct av *av, struct pg_program *pg, struct pg_output *key, size_t key_n,
             struct pg_output *value, size_t value_n);

void av_write_record(struct writer *w, struct span full_name, const struct pg_field *fields,
                     size_t n, const struct pg_node *extra);
