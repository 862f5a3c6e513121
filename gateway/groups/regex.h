/*
 * Patterns of topic names, as KIP-848 members send them: RE2's language (no look-around, no back
 * references, no possessive quantifiers), matched against the whole name. PCRE2 does the work under
 * limits, so that no pattern can hold up the groups thread: what RE2 would match in linear time but
 * needs too many steps here counts as invalid.
 *
 * Owner: whoever compiled it; not thread-safe.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/span.h"

#define GROUP_REGEX_MAX ((size_t)1024) /* bytes of a pattern */

struct group_regex;

/* E_SYNTAX: not a pattern of the language; why says in one line what is wrong and where. E_LIMIT:
 * too long. E_NOMEM. */
MUST_USE int group_regex_new(struct span pattern, struct group_regex **out, char *why,
                             size_t why_bytes);
/* 1: the whole name matches; 0: it does not; E_LIMIT: too many steps; E_NOMEM. costly: of how many
 * names more this may take more than a few steps; one less when it did, and none: E_LIMIT. */
MUST_USE int group_regex_match(const struct group_regex *re, struct span name, unsigned *costly);
void group_regex_free(struct group_regex *re); /* NULL is allowed */
