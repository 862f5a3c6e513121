/*
 * Reads of blocks, seeks and listings of fragments (block.c, seek.c), and reading from a file.
 */
#pragma once

#include "journal_client/local/journal.h"

/* jc_hub_ops */
void jl_block(struct jc_block_ask *op);
/* Fragments that one operation could not look into. Owner: its step; each is counted. */
struct jl_opaque {
    struct jl_frag **v;
    size_t n;
};
MUST_USE int jl_opaque_add(struct jl_opaque *o, struct jl_frag *f);
bool jl_opaque_has(const struct jl_opaque *o, const struct jl_frag *f);
void jl_opaque_fini(struct jl_opaque *o);
/* seek.c; jc_hub_ops */
void jl_seek(struct jc_seek_ask *a);
void jl_fragments(struct jc_frags_ask *a);
/* read.c; jc_hub_ops */
void jl_read_fetch(struct jc_read *r, int64_t stop);
/* Whole range or an error; E_CORRUPT when the file ends early. */
MUST_USE int jl_pread_full(int fd, void *p, size_t n, int64_t at);
