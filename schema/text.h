/*
 * Texts with a format, read to the numbers that their Avro types hold. Strict: the whole text, no
 * white space, no locale. E_SYNTAX: not of the format; E_RANGE: beyond the type. Pure, any thread.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/* YYYY-MM-DD: days since 1970-01-01, proleptic Gregorian. */
MUST_USE int sc_text_date(struct span s, int64_t *days);
/* RFC 3339 with any offset and any number of digits of a second, T and Z in either case, a space
 * for the T: microseconds since 1970, rounded down. A second 60 is the first of the next minute. */
MUST_USE int sc_text_time(struct span s, int64_t *micros);
/* ISO 8601 PnYnMnWnDTnHnMnS, a fraction only of seconds: months, days, milliseconds. */
MUST_USE int sc_text_duration(struct span s, uint32_t out[3]);
/* A UUID with hyphens (kept as it is), or without them, in braces or behind urn:uuid: (then put
 * into that form). */
MUST_USE int sc_text_uuid(struct span s, char out[36]);
/* The time in a version 1 UUID of 36 characters, microseconds since 1970, rounded down. */
MUST_USE int sc_text_uuid_time(struct span s, int64_t *micros);
