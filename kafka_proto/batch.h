/*
 * Record batch v2 (KIP-98), by hand: the hot path. Writer: records are appended to one growing
 * blob. Reader: for tests, tools and (later) produce. CRC32C by ISA-L. The first 16 bytes (base
 * offset, length, leader epoch) lie outside of the CRC, so the gateway patches the epoch per send
 * without touching the shared bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/err.h"
#include "base/span.h"
#include "kafka_proto/compress.h"

#define KP_BATCH_HEAD 61 /* bytes before the records */
#define KP_BATCH_PATCH                                                                             \
    16 /* leading bytes that are not covered by the CRC, less the 1 byte magic that follows */

struct kp_header {
    struct span key;   /* never null */
    struct span value; /* null allowed */
};

struct kp_record {
    int64_t offset;
    int64_t timestamp; /* ms */
    struct span key;   /* p == NULL: null */
    struct span value; /* p == NULL: null, not the same as empty */
    const struct kp_header *headers;
    size_t headers_n;
};

/* A finished batch: immutable bytes and what one must know to serve them. */
struct kp_batch {
    struct blob *bytes; /* owned */
    int64_t base_offset;
    int64_t last_offset;
    int64_t max_timestamp;
    int32_t records;
};

struct kp_batch_writer {
    struct blob *b;
    int64_t base_offset, last_offset;
    int64_t base_timestamp, min_timestamp, max_timestamp;
    int32_t records;
};

void kp_batch_writer_init(struct kp_batch_writer *w);
void kp_batch_writer_fini(struct kp_batch_writer *w);
/* A hint: the batch will grow to about this many bytes (records as they stand, uncompressed).
 * Spares the copies of growing step by step; a failure to allocate is ignored here. */
void kp_batch_writer_reserve(struct kp_batch_writer *w, size_t bytes);
/* Bytes the batch would have if finished now, uncompressed (0 while empty). */
size_t kp_batch_writer_bytes(const struct kp_batch_writer *w);
/* True when the record can join: offsets rise and the spans of offsets and of milliseconds stay
 * within 2^31 - 1 (O9). */
bool kp_batch_writer_fits(const struct kp_batch_writer *w, int64_t offset, int64_t timestamp);
/* Copies key, value and headers. ASSERTs kp_batch_writer_fits. E_NOMEM, E_LIMIT (2^31 - 1 bytes):
 * the record is not added. */
MUST_USE int kp_batch_writer_add(struct kp_batch_writer *w, const struct kp_record *rec);
/* Finishes a batch of at least one record with leader epoch -1 and lastOffsetDelta = the last
 * record's delta; compresses unless that would not make it smaller (its attributes then say none).
 * The writer is empty afterwards; on E_NOMEM it is as it was, so that another codec may be tried.
 * Bytes that growing left unused are given back. */
MUST_USE int kp_batch_writer_finish(struct kp_batch_writer *w, enum kp_codec codec,
                                    struct kp_batch *out);
void kp_batch_fini(struct kp_batch *b);

/* One control batch with one record at `offset`: key = int16 version 0, int16 type -1; null value
 * (O9). Moves a consumer's position to offset + 1. */
MUST_USE int kp_batch_control(int64_t offset, int64_t timestamp, struct kp_batch *out);

/* The head of a batch as it should be sent: base offset, length and the given leader epoch in 16
 * bytes. */
void kp_batch_patch(const struct kp_batch *b, int32_t leader_epoch, uint8_t out[KP_BATCH_PATCH]);

/* --- reader: for tests, tools and produce --- */

struct kp_batch_view {
    int64_t base_offset, last_offset, base_timestamp, max_timestamp;
    int32_t leader_epoch, records;
    int16_t attributes;
    enum kp_codec codec;
    bool control, transactional;
    size_t size;         /* bytes of the whole batch in the input */
    struct span payload; /* the records section, as it stands */
};
/* payload borrows from the input. Parses and verifies (magic 2, lengths, CRC) the batch at the
 * start of the input. E_SHORT: the input ends inside it (a partial trailing batch is legal in
 * Fetch). E_CORRUPT: CRC. E_SYNTAX. E_VERSION: other magic. */
MUST_USE int kp_batch_parse(struct span in, struct kp_batch_view *out);

/* Iterates the records of an uncompressed payload. Zero-initialise; at most `headers_max` headers
 * are stored per record (E_LIMIT beyond). */
struct kp_record_iter {
    const struct kp_batch_view *batch;
    struct span rest;
    int32_t left;
};
void kp_record_iter_init(struct kp_record_iter *it, const struct kp_batch_view *v,
                         struct span payload);
/* Key, value and headers borrow from the payload. E_NOTFOUND after the last; E_SYNTAX; E_LIMIT;
 * E_TRAILING when bytes are left behind the last. After an error the iterator may not be used. */
MUST_USE int kp_record_next(struct kp_record_iter *it, struct kp_record *out,
                            struct kp_header *headers, size_t headers_max);

/* CRC-32C (Castagnoli), ISA-L. crc of a run that continues `crc` (0 to start). */
uint32_t kp_crc32c(uint32_t crc, struct span s);
