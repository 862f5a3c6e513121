/* Texts that others chose: well-formed UTF-8 (RFC 3629). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Bytes of the well-formed UTF-8 sequence at p (1 to 4; no overlong forms, no surrogates, at most
 * U+10FFFF), 0 when there is none. */
size_t utf8_len(const uint8_t *p, const uint8_t *end);
/* All of it is well-formed, and none of it is a NUL: it can be kept as a C string and be put into
 * metrics and JSON. The empty span is. */
bool utf8_is_text(struct span s);
