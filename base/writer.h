/*
 * A growing byte buffer with a maximum from birth. Failure is sticky: writes after a failure do
 * nothing, and the caller tests wr_err() once at the end. Big-endian, as Kafka's wire is. Not
 * thread-safe.
 */
#pragma once

#include <stdint.h>

#include "base/blob.h"
#include "base/err.h"
#include "base/span.h"

struct writer {
    struct blob *b; /* NULL until the first byte */
    size_t max;     /* hard maximum in bytes */
    int err;        /* first failure, 0 while good */
};

void wr_init(struct writer *w, size_t max);
/* Frees the buffer unless it was taken. */
void wr_fini(struct writer *w);
/* The caller becomes owner of the bytes; NULL (and *w unchanged) when a write had failed. An empty
 * writer yields an empty blob. The writer is empty afterwards. */
MUST_USE struct blob *wr_take(struct writer *w);
/* Makes room for n more bytes at once, so that following writes do not reallocate. */
void wr_reserve(struct writer *w, size_t n);
static inline int wr_err(const struct writer *w)
{
    return w->err;
}
static inline size_t wr_len(const struct writer *w)
{
    return w->b == NULL ? 0 : w->b->len;
}
void wr_bytes(struct writer *w, const void *p, size_t n);
void wr_span(struct writer *w, struct span s);
void wr_str(struct writer *w, const char *s);
void wr_printf(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wr_u8(struct writer *w, uint8_t v);
void wr_i8(struct writer *w, int8_t v);
void wr_i16(struct writer *w, int16_t v);
void wr_u16(struct writer *w, uint16_t v);
void wr_i32(struct writer *w, int32_t v);
void wr_u32(struct writer *w, uint32_t v);
void wr_i64(struct writer *w, int64_t v);
void wr_f64(struct writer *w, double v);
void wr_uvarint32(struct writer *w, uint32_t v);
void wr_varint32(struct writer *w, int32_t v);
void wr_varint64(struct writer *w, int64_t v);
/* Overwrites bytes already written: length back-patching. ASSERTs that [off, off+4) was written,
 * unless the writer has failed. */
void wr_poke_i32(struct writer *w, size_t off, int32_t v);

/* Sizes in bytes of the varint forms, for size passes. */
size_t uvarint32_size(uint32_t v);
size_t varint32_size(int32_t v);
size_t varint64_size(int64_t v);
/* Raw stores and loads, for patching heads that lie outside a writer. */
void be_store16(uint8_t *p, uint16_t v);
void be_store32(uint8_t *p, uint32_t v);
void be_store64(uint8_t *p, uint64_t v);
uint16_t be_load16(const uint8_t *p);
uint32_t be_load32(const uint8_t *p);
uint64_t be_load64(const uint8_t *p);
