/*
 * Labels of journals that the view and the publisher read alike: the key of a collection's
 * documents, and which partition a journal is. One home, so that both understand (and refuse) the
 * same.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "journal_client/store.h"

#define GW_LABEL_KEY         "sluice.dev/key/" /* followed by 0, 1, ...: a JSON pointer, encoded */
#define GW_LABEL_COMPRESSION "sluice.dev/compression"
#define GW_KEY_PARTS_MAX     32
#define GW_KEY_BYTES_MAX     ((size_t)4096) /* of all pointers of a key */

/* Percent-decodes a label's value: letters, digits and -_+/. stand for themselves, %XX for any
 * other byte but NUL. *out is in the arena and ends with a NUL. E_SYNTAX, E_NOMEM. */
MUST_USE int gw_label_decode(struct span value, struct arena *a, struct span *out);
/* The reverse. NULL: E_NOMEM. */
char *gw_label_encode(struct arena *a, const char *text);

/* The pointers of the key, decoded, in the arena; *n = 0: no key. Ends at the first index that is
 * missing. That they are pointers is not looked at. E_SYNTAX: a label twice, or not decodable;
 * E_LIMIT: too long; E_NOMEM. */
MUST_USE int gw_label_key(const struct jc_spec *spec, struct arena *a,
                          struct span pointers[GW_KEY_PARTS_MAX], size_t *n);

/* The order of a topic's partitions (O13): by create revision, then name. */
int gw_rank_cmp(const struct jc_journal *a, const struct jc_journal *b);
