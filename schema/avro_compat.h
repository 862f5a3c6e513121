/*
 * Whether data that was written with one Avro schema can be read with another: the rules of
 * "Schema Resolution" in the specification, with the verdicts, names and places of Java Avro's
 * SchemaCompatibility, which other registries use. Pure, any thread.
 */
#pragma once

#include "schema/avro_model.h"

enum sc_incompat_kind {
    SC_INCOMPAT_NAME, /* types of another name, and no alias leads there */
    SC_INCOMPAT_FIXED_SIZE,
    SC_INCOMPAT_SYMBOLS,    /* the writer's enum has symbols that the reader's has not */
    SC_INCOMPAT_NO_DEFAULT, /* a field of the reader's that the writer has not */
    SC_INCOMPAT_TYPE,       /* and no promotion */
    SC_INCOMPAT_BRANCH,     /* no branch of the reader's union takes it */
    SC_INCOMPAT_AMBIGUOUS   /* a field of the reader's is two of the writer's, by its aliases */
};

#define SC_INCOMPAT_MAX  100 /* that are listed */
#define SC_INCOMPAT_PATH 256
#define SC_INCOMPAT_TEXT 256

struct sc_incompat {
    enum sc_incompat_kind kind;
    char path[SC_INCOMPAT_PATH]; /* JSON pointer into the schema: "/fields/0/type" */
    char text[SC_INCOMPAT_TEXT]; /* what exactly */
};

/* About 50 KiB. */
struct sc_incompats {
    size_t n; /* entries in list; 0: compatible */
    struct sc_incompat list[SC_INCOMPAT_MAX];
};

/* "MISSING_UNION_BRANCH". Static text. */
const char *sc_incompat_name(enum sc_incompat_kind kind);

/* E_LIMIT: it would take too long to tell; E_NOMEM. */
MUST_USE int sc_avro_reads(const struct sc_avro_model *reader, const struct sc_avro_model *writer,
                           struct sc_incompats *out);
