/*
 * The catalog: which collections there are, and which topics a task shows of them. Read from one
 * Flow catalog file (YAML, or JSON as its subset); docs/catalog.md lists what is understood.
 * Immutable once parsed, and counted: views borrow from it (view.h) on any thread. Pure but for
 * catalog_read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "gateway/view.h"

#define CATALOG_MAX_BYTES  ((size_t)64 << 20)
#define CATALOG_FAULTS_MAX 100

struct catalog_collection {
    const char *name;
    size_t line;             /* 1-based, where it is defined */
    size_t keys_n;           /* >= 1 */
    const struct span *keys; /* JSON pointers */
    const char *schema;      /* JSON text of readSchema, else of schema */
};

enum catalog_format {
    CATALOG_FORMAT_DEFAULT, /* not given */
    CATALOG_FORMAT_JSON,
};

struct catalog_binding {
    const char *topic;  /* as clients see it: encoded when the task's names are strict */
    const char *source; /* name of the collection */
    const struct catalog_collection *collection; /* NULL: the file does not define it */
    struct gw_bound bound;                       /* notBefore, notAfter */
    int32_t backfill;
    size_t line;
};

/* One materialization = one task. */
struct catalog_task {
    const char *name;
    const char *variant;
    const char *const *tokens; /* the password, or a hash of it; two while it is rotated. Secret:
                                  wiped with the catalog */
    size_t tokens_n;
    bool strict_names;
    bool allow_empty; /* topics without journals are one empty partition */
    bool signal;      /* truncation_signal: headers */
    bool has_codec;   /* compression is given */
    enum kp_codec codec;
    enum catalog_format value_format;
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
    size_t tasks_n;
    const struct catalog_task *tasks; /* by name, byte order */
};

/* What is wrong with a file. Faults make it unusable; warnings do not. */
struct catalog_faults {
    size_t n;                /* entries in list */
    size_t faults, warnings; /* all, also those that found no room */
    struct catalog_fault {
        size_t line; /* 1-based; 0: the file as a whole */
        bool warning;
        char text[240];
    } list[CATALOG_FAULTS_MAX];
};

/* text is the file's content, path its name in messages. E_INVALID when there are faults (all of
 * them are collected); E_NOMEM. */
MUST_USE int catalog_parse(struct span text, const char *path, struct catalog_faults *faults,
                           const struct catalog **out);
/* Reads the file first; one that cannot be read, or is too long, is a fault. */
MUST_USE int catalog_read(const char *path, struct catalog_faults *faults,
                          const struct catalog **out);
/* Any thread. The caller of catalog_parse owns one reference. */
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
/* Borrow; NULL when the file does not define it. */
const struct catalog_collection *catalog_collection(const struct catalog *c, struct span name);

struct catalog_time {
    uint64_t at_least; /* the smallest clock that is not before the instant */
    uint64_t at_most;  /* the largest clock within the instant's tick of 100 ns */
};
/* RFC 3339 with up to nine digits of a second and any offset. E_SYNTAX; E_RANGE: no clock can hold
 * it (before 1582-10-15, after the year 5236). */
MUST_USE int catalog_time_parse(struct span text, struct catalog_time *out);
