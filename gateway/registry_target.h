/*
 * The target of a registry's request: a path that is split at its slashes before each part is
 * percent-decoded (subjects may hold slashes), and the parameters behind it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define REGISTRY_PARTS_MAX  6
#define REGISTRY_PART_BYTES 1024

/* About 6 KiB. Borrows from the target. */
struct registry_target {
    struct span query; /* as it came */
    size_t n;
    struct span part[REGISTRY_PARTS_MAX]; /* decoded; never empty */
    uint8_t text[REGISTRY_PARTS_MAX][REGISTRY_PART_BYTES];
};

/* E_SYNTAX: a malformed escape, or a NUL. E_LIMIT: more parts, or longer ones, than any path has.
 * out must not be moved. */
MUST_USE int registry_target_parse(const char *target, struct registry_target *out);
bool registry_target_is(const struct registry_target *t, size_t i, const char *word);

/* The parameter's value, decoded ('+' is a space) into buf; of several the first counts. False: it
 * is not there, malformed, or longer than buf. */
bool registry_query(const struct registry_target *t, const char *name, uint8_t *buf,
                    size_t buf_bytes, struct span *out);
/* Whether it is "true", in any case of letters. */
bool registry_query_flag(const struct registry_target *t, const char *name);
/* E_SYNTAX: it is there and no number. Absent: `fallback`. */
MUST_USE int registry_query_int(const struct registry_target *t, const char *name, int64_t fallback,
                                int64_t *out);
