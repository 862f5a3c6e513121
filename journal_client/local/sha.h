/*
 * SHA-1 of a fragment as it grows. Owner: whoever made it; one thread at a time.
 */
#pragma once

#include "base/err.h"
#include "base/span.h"

struct jl_sha;

MUST_USE struct jl_sha *jl_sha_new(void);
void jl_sha_free(struct jl_sha *h);
MUST_USE int jl_sha_reset(struct jl_sha *h);
MUST_USE int jl_sha_add(struct jl_sha *h, struct span bytes);
/* Ends the computation: only reset and free may follow. */
MUST_USE int jl_sha_hex(struct jl_sha *h, char out[41]);
/* The digest so far; more bytes may follow. */
MUST_USE int jl_sha_peek(const struct jl_sha *h, char out[41]);
