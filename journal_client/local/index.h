/*
 * The block index: for each 256 KiB line of the offset space, where reading for it starts and the
 * largest clock in it. Entry i stands for block base + i. Built only from whole lines in order.
 */
#pragma once

#include "journal_client/store.h"

struct jl_sha;

struct jl_block {
    int64_t first; /* begin of the first document whose last byte lies in this block or later */
    uint64_t max_clock; /* of content documents whose last byte lies in it */
    uint32_t content;   /* 1: there is one */
};

struct jl_blocks {
    struct jl_block *v;
    size_t n, cap;
    int64_t base;
};

/* What is known of a run of bytes as a whole. */
struct jl_sum {
    int64_t content_end;   /* 0: no content */
    uint64_t max_clock;    /* of content */
    uint64_t any_clock;    /* of any document, for the file's time */
    struct jc_marks marks; /* known of the open fragment only */
};

struct jl_probe {
    jc_probe_fn *fn;
    void *arg;
};

/* Makes room so that the next jl_index_add up to offset end cannot fail. */
MUST_USE int jl_index_reserve(struct jl_blocks *b, int64_t end);
/* bytes are whole lines that begin at offset begin; room was reserved. */
void jl_index_add(struct jl_blocks *b, struct jl_sum *sum, const struct jl_probe *probe,
                  int64_t begin, struct span bytes);
void jl_index_fini(struct jl_blocks *b);
/* [start, stop) of the documents whose last byte lies in the block; end is where the run ends.
 * Empty (start == stop) when there are none. */
void jl_index_range(const struct jl_blocks *b, int64_t block, int64_t end, int64_t *start,
                    int64_t *stop);
/* Reads a fragment's file, builds index and summary, and feeds the digest (NULL: none).
 * E_CORRUPT: shorter than it should be, or the last line has no end. */
MUST_USE int jl_index_scan(int fd, int64_t begin, int64_t end, const struct jl_probe *probe,
                           struct jl_blocks *b, struct jl_sum *sum, struct jl_sha *sha);
/* Sidecar file. Load: E_NOTFOUND, E_CORRUPT (both: scan instead). */
MUST_USE int jl_index_save(const char *path, int64_t begin, int64_t end, const struct jl_blocks *b);
MUST_USE int jl_index_load(const char *path, int64_t begin, int64_t end, struct jl_blocks *b);
