/*
 * Input of `sluice publish`, cut into batches: whole lines of NDJSON, or runs of elements of one
 * JSON array. Each batch knows the line of the input that it begins on, so that a fault can be
 * named as the user's editor counts. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/blob.h"
#include "base/err.h"
#include "base/span.h"
#include "base/writer.h"

struct publish_input {
    FILE *in;
    size_t max_documents;
    size_t max_bytes; /* a single longer document still makes a batch */
    bool array;
    bool begun;
    bool ended;       /* nothing more to read */
    struct blob *buf; /* NDJSON: read ahead; array: the whole input */
    size_t at;        /* first byte that is not in a batch yet */
    size_t pos;       /* array: position of sc_json_array_next */
    size_t line;      /* of `at`, 1-based */
    char fault[256];  /* after E_IO, E_SYNTAX, E_LIMIT */
};

struct publish_batch {
    struct blob *body; /* owned by the receiver */
    size_t line;       /* first line of the body in the input */
    size_t documents;  /* lines or elements; blank lines count too */
    bool json;         /* one array, else NDJSON */
};

void publish_input_init(struct publish_input *in, FILE *file, size_t max_documents,
                        size_t max_bytes);
void publish_input_fini(struct publish_input *in);
/* 0 with a batch; E_NOTFOUND at the end; E_IO, E_SYNTAX (the array is malformed), E_NOMEM. */
MUST_USE int publish_input_next(struct publish_input *in, struct publish_batch *out);
