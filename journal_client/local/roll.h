/*
 * Closing and removing fragments, and seals. Committer, and recovery before it runs.
 */
#pragma once

#include "journal_client/local/journal.h"

/* Closes the open fragment if it is due (or force). */
MUST_USE int jl_roll(struct jl_store *s, struct jl_journal *j, const struct jc_spec *spec,
                     bool force);
/* An earlier close whose record failed is recorded now; before anything is appended. */
MUST_USE int jl_roll_finish(struct jl_store *s, struct jl_journal *j);
MUST_USE int jl_remove_prefix(struct jl_store *s, struct jl_journal *j, size_t n);
/* Makes a hole, or removes the prefix when all below was removed before. The file may be gone
 * already. E_NOTFOUND: it is such a hole. */
MUST_USE int jl_remove_one(struct jl_store *s, struct jl_journal *j, size_t at);
void jl_housekeeping(struct jl_store *s);
int64_t jl_now_ms(const struct jl_store *s);

/* seal.c: at a clean close the digest of each open fragment is kept, so that damage to it does not
 * go unseen. Returns 1 when the seal for just this end exists and differs, 0, or E_*. */
void jl_seal_all(struct jl_store *s);
MUST_USE int jl_seal_drop(struct jl_store *s, const struct jl_journal *j);
MUST_USE int jl_seal_compare(struct jl_store *s, const struct jl_journal *j, const char *sha1);
