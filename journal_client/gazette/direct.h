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

/* I/O pool. Gets bytes of an object as they are stored; out sees none but those that were asked
 * for, and returns 0 or an error that ends the transfer. E_NOTFOUND, E_DENIED, E_TIMEOUT (the store
 * is slow), E_IO (it fails, or answers with something else), E_CLOSED; E_UNSUPPORTED: not asked,
 * since the store failed or was slow a moment ago. */
typedef int gz_http_fn(void *arg, struct span bytes);
MUST_USE int gz_http_get(struct gz_store *s, const char *url, const struct gz_object_ask *ask,
                         gz_http_fn *out, void *arg);
/* Any thread. True: gz_http_get would not ask now. */
bool gz_http_paused(struct gz_store *s, const char *url);
/* Drops idle handles. */
void gz_http_end(struct gz_store *s);

struct gz_sha;
MUST_USE int gz_sha_new(struct gz_sha **out);
MUST_USE int gz_sha_add(struct gz_sha *h, struct span bytes);
MUST_USE int gz_sha_hex(struct gz_sha *h, char out[41]);
void gz_sha_free(struct gz_sha *h);
