/*
 * HTTP/1.1 requests from bytes: the head, and the framing of chunked bodies (RFC 9112). Pure.
 * Strict where two readers of one message could disagree: no space before a colon, no folded lines,
 * one Content-Length or one chunked Transfer-Encoding, one Host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"

#define HTTP_HEAD_MAX    ((size_t)32768) /* bytes of a head, its empty line included */
#define HTTP_HEADERS_MAX 128
#define HTTP_LINE_MAX    ((size_t)4096) /* a chunk's size line with its extensions, a trailer */
#define HTTP_TRAILER_MAX ((size_t)8192)

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_PATCH,
    HTTP_OPTIONS,
    HTTP_OTHER, /* a token that nobody here knows */
};

struct http_header {
    const char *name;
    const char *value; /* without white space around it */
};

/* Strings are NUL-terminated and live in the arena given to http_head_parse. */
struct http_head {
    enum http_method method;
    const char *target; /* as it came */
    unsigned minor;     /* of HTTP/1.x */
    struct http_header *headers;
    size_t headers_n;
    bool chunked;
    bool has_length;
    uint64_t length; /* of the body; 0 without Content-Length */
    bool keep_alive; /* the client wants the connection to stay */
    bool expect_continue;
};

/* Bytes of the head at the begin of s, its empty line included; 0: it is not whole yet. Empty lines
 * before it belong to it. from: where an earlier call on a shorter s may have stopped. */
size_t http_head_end(struct span s, size_t from);
/* head: what http_head_end measured. 0, or the status to answer with and *why (static text). */
MUST_USE int http_head_parse(struct span head, struct arena *a, struct http_head *out,
                             const char **why);
/* The first header of that name; NULL when absent. */
const char *http_head_find(const struct http_head *h, const char *name);
size_t http_head_count(const struct http_head *h, const char *name);

/* Where a chunked body is; zeroed at its begin. */
struct http_chunks {
    enum { CHUNK_SIZE, CHUNK_EXT, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE } state;
    uint64_t left; /* of the chunk's data, or what was read of its size so far */
    unsigned digits;
    size_t line_n;    /* of the line that is being read */
    size_t trailer_n; /* of all trailers */
    bool cr;          /* the last byte was a carriage return */
};

enum http_chunk_step {
    HTTP_CHUNK_MORE,  /* all of s was used */
    HTTP_CHUNK_SIZE,  /* a chunk begins: c->left bytes of data are announced */
    HTTP_CHUNK_DATA,  /* *data lies in s */
    HTTP_CHUNK_DONE,  /* the body is over */
    HTTP_CHUNK_FAULT, /* malformed */
};

/* Takes from s up to the next thing to tell; *used says how far. */
enum http_chunk_step http_chunk_next(struct http_chunks *c, struct span s, size_t *used,
                                     struct span *data);
