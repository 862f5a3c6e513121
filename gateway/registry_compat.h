/*
 * Compatibility levels, as Confluent's registry has them, and what each of them asks of a schema
 * and the versions before it. Avro by schema/avro_compat.h. Of JSON schemas only those that are
 * equal are known to be compatible: others are E_UNSUPPORTED, never a guess. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/writer.h"
#include "gateway/registry_history.h"

enum registry_level {
    REGISTRY_NONE,
    REGISTRY_BACKWARD, /* the new one reads what the one before wrote */
    REGISTRY_BACKWARD_TRANSITIVE,
    REGISTRY_FORWARD, /* the one before reads what the new one writes */
    REGISTRY_FORWARD_TRANSITIVE,
    REGISTRY_FULL,           /* both */
    REGISTRY_FULL_TRANSITIVE /* each of them with all versions before */
};

const char *registry_level_name(enum registry_level level); /* static text: "BACKWARD" */
/* In any case of letters. E_INVALID. */
MUST_USE int registry_level_parse(const char *text, enum registry_level *out);

struct sc_avro_model;

/* A schema that is held against versions. Borrowed. */
struct registry_new {
    struct span text;
    const struct sc_avro_model *avro; /* NULL: a JSON schema */
};

/* Against one version. *good; when it is not, messages (JSON strings, with commas between them) are
 * appended. E_UNSUPPORTED: see above; E_LIMIT, E_NOMEM. */
MUST_USE int registry_compat_version(enum registry_level level, const struct registry_new *is,
                                     const struct registry_version *old, struct writer *messages,
                                     bool *good);
/* Against what is served now, and with a transitive level all others, the newest first, up to the
 * first that it is not compatible with. */
MUST_USE int registry_compat_subject(enum registry_level level, const struct registry_new *is,
                                     const struct registry_subject *s, struct writer *messages,
                                     bool *good);
