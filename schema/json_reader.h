/*
 * JSON on the hot path, without a DOM and without allocation. Hides the engine (decision 0002). All
 * functions are pure and locale-proof, any thread. Nesting is bounded by SC_JSON_MAX_DEPTH with an
 * explicit stack, never by recursion.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

#define SC_JSON_MAX_DEPTH 10000 /* levels of arrays and objects; deeper input is E_LIMIT */

enum sc_json_kind {
    SC_JSON_NULL,
    SC_JSON_FALSE,
    SC_JSON_TRUE,
    SC_JSON_NUMBER,
    SC_JSON_STRING,
    SC_JSON_ARRAY,
    SC_JSON_OBJECT
};

struct sc_json_value {
    enum sc_json_kind kind;
    struct span text; /* the value's own bytes; strings with their quotes */
};

struct sc_json_error {
    size_t at;          /* byte offset of the fault in the input */
    const char *reason; /* static text, e.g. "invalid UTF-8 in a string" */
};

/* Checks that the input is exactly one RFC 8259 value with optional white space around it: strict
 * grammar, UTF-8, escapes (a lone surrogate escape is accepted, as in ECMAScript), no raw control
 * characters in strings. Numbers of any size. */
MUST_USE int sc_json_check(struct span text, struct sc_json_error *err);

/* An iterator over the elements of a JSON array or over NDJSON lines is enough for ingest: each
 * call yields the next element of the top-level array, *pos starts at 0. 0 with out set; E_NOTFOUND
 * at the end of the array; E_SYNTAX. The input must be one array; white space around it is allowed.
 * Elements are validated as by sc_json_check. */
MUST_USE int sc_json_array_next(struct span text, size_t *pos, struct sc_json_value *out,
                                struct sc_json_error *err);

/* A compiled JSON pointer (RFC 6901): "" or "/a/b~1c/0". */
struct sc_pointer;
MUST_USE int sc_pointer_new(struct span text, struct sc_pointer **out); /* E_SYNTAX, E_NOMEM */
void sc_pointer_free(struct sc_pointer *p);
struct span sc_pointer_text(const struct sc_pointer *p);

/* The value at the pointer in *valid* JSON; of duplicate keys the last wins; keys compare after
 * unescaping. E_NOTFOUND. On invalid input the answer may be wrong (E_SYNTAX or E_NOTFOUND at
 * best), but it never reads out of bounds. */
MUST_USE int sc_json_find(struct span doc, const struct sc_pointer *p, struct sc_json_value *out);

/* What the last documents of this stream cost to look up: picks the cheaper way for the next one,
 * never another answer. Zero-initialise. One per stream. */
struct sc_uuid_hint {
    unsigned walks; /* documents left that are walked at once, without a search first */
};
/* The 36 characters of the string at /_meta/uuid; E_NOTFOUND when there is none of that length. The
 * result equals sc_json_find on every valid document (a `"uuid":"` inside a source row must never
 * be taken for it), and is the same for any hint on any bytes. The document may be followed by
 * white space. */
MUST_USE int sc_uuid_find(struct span doc, struct sc_uuid_hint *hint, struct span *out);

/* Copies a valid value without white space outside of strings. */
void sc_json_minify(struct span text, struct writer *out);
/* Appends a JSON string (quotes, escapes) made of raw bytes; bytes that are not UTF-8 become
 * U+FFFD. */
void sc_json_quote(struct span raw, struct writer *out);
/* Unescapes a string's text (with quotes) into out: UTF-8; a lone surrogate becomes U+FFFD.
 * E_SYNTAX. */
MUST_USE int sc_json_unquote(struct span text, struct writer *out);

/* Copies one valid object to out on one line, with room for a UUID at /_meta/uuid: an existing
 * value there is replaced in place, an existing _meta object gets it as first member, else
 * `"_meta":{"uuid":"…"}` becomes the first member. Of duplicate keys the last one counts. All other
 * bytes stay as they are, except that raw line breaks between tokens and white space around the
 * object are dropped. *uuid_at = offset in out of the first of 36 characters (filled with '0'
 * here). E_INVALID: not an object, or _meta is not an object (reason in err; nothing written).
 * E_NOMEM, E_LIMIT by the writer. */
MUST_USE int sc_json_stamp(struct span doc, struct writer *out, size_t *uuid_at,
                           struct sc_json_error *err);
