/* Where a stored fragment lies, and the parts of reading it there (direct.c, source.c). */
#pragma once

#include "journal_client/gazette/gazette_int.h"

/* One of both is set. */
struct gz_source {
    char *path;
    char *url;
};

/* E_UNSUPPORTED: a file:// URL without a mounted root, or a scheme that is not http(s). E_INVALID:
 * a path that leaves the root. */
MUST_USE int gz_source_of(const struct gz_store *s, const char *url, struct gz_source *out);
void gz_source_fini(struct gz_source *src);

/* I/O pool. Gets bytes [from, to] of an object (to < 0: all of it), as they are stored. out returns
 * 0 or an error that ends the transfer. E_NOTFOUND, E_DENIED, E_IO, E_CLOSED. */
typedef int gz_http_fn(void *arg, struct span bytes);
MUST_USE int gz_http_get(struct gz_store *s, const char *url, Gz__Codec codec, int64_t from,
                         int64_t to, gz_http_fn *out, void *arg);
/* Drops idle handles. */
void gz_http_end(struct gz_store *s);

struct gz_sha;
MUST_USE int gz_sha_new(struct gz_sha **out);
MUST_USE int gz_sha_add(struct gz_sha *h, struct span bytes);
MUST_USE int gz_sha_hex(struct gz_sha *h, char out[41]);
void gz_sha_free(struct gz_sha *h);
