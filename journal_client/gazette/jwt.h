/*
 * Tokens that a Gazette broker asks for: JWT signed by HMAC-SHA-256 with a key that broker and
 * client share. They say what may be done (capabilities) and with which journals (a selector, here
 * always by a prefix of their names).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

enum {
    GZ_CAP_LIST = 1 << 1,
    GZ_CAP_APPLY = 1 << 2,
    GZ_CAP_READ = 1 << 3,
    GZ_CAP_APPEND = 1 << 4,
};

/* The first key of a list of base64 keys, by comma or space, as --broker.auth-keys takes it; "AA=="
 * (no token needed) is passed over. out: heap, wiped and freed by the caller. E_SYNTAX, E_NOTFOUND.
 */
MUST_USE int gz_jwt_key(const char *list, uint8_t **out, size_t *n);
#define GZ_JWT_PREFIX_MAX 512

struct gz_claims {
    unsigned cap;       /* GZ_CAP_* */
    const char *prefix; /* of journals' names; NULL: all journals */
    int64_t now_s;      /* Unix seconds */
    int64_t ttl_s;
};

/* Signs. The text belongs to the caller (mem_free). E_NOMEM, E_INVALID: a prefix that no journal's
 * name can have. */
MUST_USE int gz_jwt_sign(struct span key, const struct gz_claims *c, char **out);
