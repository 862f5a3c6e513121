/*
 * Tokens that a Gazette broker asks for: JWT signed by HMAC-SHA-256 with a key that broker and
 * client share. No selector claim: all journals.
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
/* Signs. now_s, ttl_s: Unix seconds. The text belongs to the caller (mem_free). E_NOMEM. */
MUST_USE int gz_jwt_sign(struct span key, unsigned cap, int64_t now_s, int64_t ttl_s, char **out);
