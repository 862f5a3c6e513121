/*
 * Which schemas a subject has had: its versions, numbered from 1 in the order in which they were
 * first served. A schema that comes back is found again under its old number; "latest" is what is
 * served now, which then is not the highest number. Decision 0007 says why and what it costs.
 *
 * Pure: texts in, versions out; registry_store.h keeps them. One thread (control).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

struct gw_task;
struct gw_topic;
struct gw_view;

#define REGISTRY_VERSIONS_MAX 100                /* of one subject */
#define REGISTRY_OLD_MAX      20000              /* versions that are not served now, of all */
#define REGISTRY_OLD_BYTES    ((size_t)64 << 20) /* of their texts */
#define REGISTRY_KEY_PREFIX   "registry/"
#define REGISTRY_NAME_MAX     1024 /* bytes of a subject */

/* Owner: its subject. */
struct registry_version {
    uint32_t number;
    uint32_t id; /* what records carry */
    bool json;   /* a JSON schema; else Avro */
    int64_t since_ms;
    struct span text; /* owned */
    bool saved;       /* the store has it, or a write of it is on its way */
};

/* Owner: the history. */
struct registry_subject {
    char *task;
    char *name;                        /* <topic>-key, <topic>-value */
    struct registry_version *versions; /* by number */
    size_t versions_n, versions_cap;
    size_t served;    /* 1 + index of what is served now; 0: no topic has this subject any more */
    uint32_t highest; /* number that was ever given */
    bool seen;        /* scratch */
};

struct registry_history {
    struct registry_subject **subjects; /* by task and name, byte order */
    size_t n, cap;
};

/* One schema that is served. */
struct registry_served {
    struct span text;
    uint32_t id;
    bool json;
};

/* A version that went. Owner: whoever holds it. */
struct registry_gone {
    char *key;
};

void registry_history_init(struct registry_history *h);
void registry_history_fini(struct registry_history *h);

/* What the topic's keys or values are served by; false: nothing that has a schema. */
bool registry_served_of(const struct gw_topic *t, bool key, struct registry_served *out);

/* Brings all subjects up to the view: what it does not show has no served version any more, a
 * schema that is new becomes a version that is not saved. E_NOMEM: try again. */
MUST_USE int registry_history_take(struct registry_history *h, const struct gw_view *view,
                                   int64_t now_ms);
/* Removes one version that is too much (the limits above) and says under which key it was kept;
 * false: none is. The served version and the highest number of a subject stay, but for a subject
 * that is not served any more and is the oldest. E_NOMEM is a NULL key. */
bool registry_history_prune(struct registry_history *h, struct registry_gone *out);

/* Borrow; NULL when the task has none. */
const struct registry_subject *registry_history_find(const struct registry_history *h,
                                                     const char *task, struct span name);
/* The task's subjects: *n of them, side by side. */
struct registry_subject *const *registry_history_of(const struct registry_history *h,
                                                    const char *task, size_t *n);
/* NULL: none is of that number. */
const struct registry_version *registry_subject_version(const struct registry_subject *s,
                                                        uint64_t number);
/* What is served now, else the one of the highest number; NULL: all of them were lost. */
const struct registry_version *registry_subject_latest(const struct registry_subject *s);

/* --- how a version is kept: key and value --- */

/* registry/TASK/SUBJECT/0000000001, "/" and "%" in names escaped. */
void registry_version_key(const struct registry_subject *s, const struct registry_version *v,
                          struct writer *out);
/* {"id":7,"type":"AVRO","since_ms":1,"fingerprint":"16 hex digits","schema":"..."} */
void registry_version_write(const struct registry_version *v, struct writer *out);
/* E_CORRUPT: the value is damaged; its number is not given again, if the key says it. E_NOMEM. */
MUST_USE int registry_history_load(struct registry_history *h, struct span key, struct span value);
