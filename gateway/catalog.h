/*
 * The catalog: which collections there are, and which topics each task shows of them. Read from a
 * Flow catalog file (YAML or JSON) and the files that it names; docs/catalog.md lists what is
 * understood. Immutable once parsed, and counted: views borrow from it (view.h) on any thread.
 * Blocks on files; never on a worker.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "gateway/avro.h"
#include "gateway/view.h"
#include "schema/avro.h"

#define CATALOG_MAX_BYTES  ((size_t)64 << 20) /* all files together */
#define CATALOG_FILES_MAX  1000
#define CATALOG_FAULTS_MAX 100

struct catalog_collection {
    const char *name;
    const char *file;        /* where it is defined ... */
    size_t line;             /* ... 1-based */
    size_t keys_n;           /* >= 1 */
    const struct span *keys; /* JSON pointers */
    /* JSON texts. A `$ref` in them is local ("#/..."), or names one of catalog->docs by its URI
     * with an optional fragment, or "flow://write-schema", which stands for write_schema. */
    const char *read_schema;  /* readSchema, else schema, else writeSchema */
    const char *write_schema; /* writeSchema, else schema, else readSchema */
    size_t projections_n;
    const struct sc_projection *projections; /* by field */
    size_t partitions_n;
    const struct span *partitions; /* the fields among them that are partitions, by name */
    /* Its journals: those under this prefix, labelled with its name or with none. NULL: those that
     * are labelled with its name. Never ends in "/". */
    const char *prefix;
};

enum catalog_format {
    CATALOG_FORMAT_DEFAULT, /* not given: Avro; of keys: as the values */
    CATALOG_FORMAT_JSON,
    CATALOG_FORMAT_AVRO,
    CATALOG_FORMAT_SCALAR, /* of keys: what sc_key_bare writes */
};

/* What happens to a document that its schema does not admit. */
enum catalog_on_error {
    CATALOG_ON_ERROR_DEFAULT, /* stop */
    CATALOG_ON_ERROR_STOP,
    CATALOG_ON_ERROR_SKIP,
    CATALOG_ON_ERROR_RAW,
};

/* One value of a partition field. Values compare by kind and text. */
struct catalog_value {
    bool is_text;     /* else null, true, false or a number, as JSON writes it */
    struct span text; /* decoded */
};

/* Values of one field of a partition selector. */
struct catalog_field_values {
    const char *field;
    size_t values_n;
    const struct catalog_value *values;
};

/* Which journals of a collection: those that have one of the values of each included field, and
 * none of the excluded ones. */
struct catalog_selector {
    size_t include_n;
    const struct catalog_field_values *include;
    size_t exclude_n;
    const struct catalog_field_values *exclude;
};

struct catalog_binding {
    const char *topic;  /* as clients see it: encoded when the task's names are strict */
    const char *source; /* name of the collection */
    const struct catalog_collection *collection; /* NULL: the file does not define it */
    struct gw_bound bound;                       /* notBefore, notAfter */
    struct catalog_selector selector;            /* empty: all */
    bool has_select;                             /* `fields` is given */
    struct sc_selection select;
    int32_t backfill;
    struct gw_avro *avro; /* owned; NULL: keys and values are JSON */
    uint32_t json_id;     /* of the read schema, where values are JSON; 0: none */
    const char *file;
    size_t line;
};

/* One materialization = one task. */
struct catalog_task {
    const char *name;
    const char *variant;
    const char *const *tokens; /* the password, or a hash of it; several while it is rotated.
                                  Secret: wiped with the catalog */
    size_t tokens_n;
    bool strict_names;
    bool allow_empty; /* topics without journals are one empty partition */
    enum sc_deletions deletions;
    bool signal;    /* truncation_signal: headers */
    bool has_codec; /* compression is given */
    enum kp_codec codec;
    enum catalog_format value_format;
    enum catalog_format key_format;
    enum catalog_on_error on_error;
    const char *redirect_host; /* NULL: served here */
    uint16_t redirect_port;
    int32_t redirect_node; /* derived from the address; never the id of this gateway */
    const char *file;
    size_t line;
    size_t bindings_n;                      /* those that are not disabled */
    const struct catalog_binding *bindings; /* by topic, byte order */
};

struct catalog {
    atomic_uint refs;
    struct arena arena;
    const char *path;
    size_t collections_n;
    const struct catalog_collection *collections; /* by name */
    size_t docs_n;
    const struct sc_schema_doc *docs; /* files that schemas refer to: "file:///..." and JSON text */
    size_t tasks_n;
    const struct catalog_task *tasks; /* by name, byte order */
};

/* What is wrong with a catalog. Faults make it unusable; warnings do not. */
struct catalog_faults {
    size_t n;                /* entries in list */
    size_t faults, warnings; /* all, also those that found no room */
    struct catalog_fault {
        char file[256];
        size_t line; /* 1-based; 0: the file as a whole */
        bool warning;
        char pointer[200]; /* of the value in its file; "" for its root */
        char text[240];
    } list[CATALOG_FAULTS_MAX];
};
/* "FILE:LINE: warning: /pointer: text" */
void catalog_fault_text(const struct catalog_fault *f, char *out, size_t out_bytes);

/* The files that a catalog came from, or that an attempt looked at, as they were then. Owner:
 * whoever holds it; zeroed = none. */
struct catalog_files {
    size_t n;
    struct catalog_file *list;
};
void catalog_files_fini(struct catalog_files *f);
MUST_USE int catalog_files_copy(const struct catalog_files *from, struct catalog_files *out);
/* Blocks. Looks again at all of them; whether some file is another one than it was the last time,
 * is gone, or is there now. */
bool catalog_files_restamp(struct catalog_files *f);

/* text is the content of the file at `path`; files that it names are read. E_INVALID when there are
 * faults (all of them are collected); E_NOMEM. *out is a reference for the caller. */
MUST_USE int catalog_parse(struct span text, const char *path, struct catalog_faults *faults,
                           const struct catalog **out);
/* Reads the file first; one that cannot be read, or is too long, is a fault. files (may be NULL):
 * what was looked at, also when it fails; to be finished by the caller. */
MUST_USE int catalog_read(const char *path, struct catalog_faults *faults,
                          struct catalog_files *files, const struct catalog **out);
/* Any thread. */
const struct catalog *catalog_ref(const struct catalog *c);
void catalog_unref(const struct catalog *c); /* NULL is allowed */

struct gw_config;
/* The task of connections without a principal: the only one, or the one that `named` (NULL or "":
 * none) names. NULL: there is none. */
const struct catalog_task *catalog_anonymous(const struct catalog *c, const char *named);
/* Whether the listeners can serve it: a listener that asks nobody for a password needs a task to
 * serve, and config->allow_anonymous when that task has a token. Adds what stands against it;
 * E_INVALID. */
MUST_USE int catalog_admit(const struct catalog *c, const struct gw_config *config,
                           struct catalog_faults *faults);
/* Borrow; NULL when no file defines it. */
const struct catalog_collection *catalog_collection(const struct catalog *c, struct span name);
/* Whether the journal's name lies under the prefix. */
bool catalog_under(struct span journal, const char *prefix);
/* The collection whose prefix is the longest one that the journal's name lies under; NULL. */
const struct catalog_collection *catalog_by_prefix(const struct catalog *c, struct span journal);
struct jc_spec;
/* Whether the journal's labels estuary.dev/field/... fit. */
bool catalog_selects(const struct catalog_selector *s, const struct jc_spec *spec);

struct catalog_time {
    uint64_t at_least; /* the smallest clock that is not before the instant */
    uint64_t at_most;  /* the largest clock within the instant's tick of 100 ns */
};
/* RFC 3339 with up to nine digits of a second and any offset. E_SYNTAX; E_RANGE: no clock can hold
 * it (before 1582-10-15, after the year 5236). */
MUST_USE int catalog_time_parse(struct span text, struct catalog_time *out);
