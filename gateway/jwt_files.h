/*
 * The keys that bearer tokens are signed by, as files that are followed while the server runs. A
 * file that is no key changes nothing: all keys are read anew, or none.
 *
 * Of one thread at a time: of whoever makes them, then of the thread that checks tokens.
 */
#pragma once

#include <stdbool.h>

#include "gateway/jwt.h"

struct jwt_files;

/* Without a key. */
MUST_USE int jwt_files_new(struct jwt_files **out);
void jwt_files_free(struct jwt_files *f); /* NULL is allowed; wipes */
/* Reads another one; spec, why and errors as in jwt_keys_add. spec is borrowed for good. */
MUST_USE int jwt_files_add(struct jwt_files *f, const char *spec, char *why, size_t why_bytes);
/* Those in force: valid until the next jwt_files_follow. */
const struct jwt_keys *jwt_files_keys(const struct jwt_files *f);
/* Blocks. Reads all files anew when one has changed and then stood still since the last call
 * (whoever writes it may not be done yet), or at once with `now`. 1: other keys are in force; 0:
 * nothing was read; E_*: the keys in force stay, why names the file. */
MUST_USE int jwt_files_follow(struct jwt_files *f, bool now, char *why, size_t why_bytes);
