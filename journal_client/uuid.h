/*
 * Document UUIDs (RFC 4122 v1 as Gazette lays it out) and Gazette clocks.
 * clock u64 = 60-bit count of 100 ns since 1582-10-15, shifted left by 4, plus a 4-bit counter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define JC_UUID_TEXT 36 /* characters of the text form */

enum {
    JC_FLAG_OUTSIDE = 0x0,
    JC_FLAG_CONTINUE = 0x1,
    JC_FLAG_ACK = 0x2,
    JC_FLAG_CONTROL = 0x4, /* never written, but understood: metadata, like an ACK */
};

struct jc_uuid {
    uint64_t clock;
    uint16_t flags; /* 10 bits */
    uint8_t producer[6];
};

/* 36 characters, hex of either case, version 1 and variant 10 required. E_SYNTAX. */
MUST_USE int jc_uuid_parse(struct span text, struct jc_uuid *out);
/* Writes exactly 36 characters, lower case, no NUL. */
void jc_uuid_format(const struct jc_uuid *u, char out[JC_UUID_TEXT]);

/* Content, as against ACK or CONTROL: decided by mask, so that unknown higher flag bits change
 * nothing. */
static inline bool jc_flags_content(uint16_t flags)
{
    return (flags & 0x3) != JC_FLAG_ACK && (flags & JC_FLAG_CONTROL) == 0;
}

/* Milliseconds since the Unix epoch, rounded down. Clocks before 1970 give negative values; clock 0
 * (no UUID) gives -1. */
int64_t jc_clock_unix_ms(uint64_t clock);
/* The smallest clock whose unix_ms is >= ms. Saturates at 0 and UINT64_MAX. */
uint64_t jc_clock_from_unix_ms(int64_t ms);
/* Rounded down to 100 ns, counter 0. A time outside of what a clock can hold: E_RANGE. */
MUST_USE int jc_clock_from_unix_ns(int64_t ns, uint64_t *out);
/* Exactly 16 lower-case hex digits (the form of the label estuary.dev/truncated-at). E_SYNTAX. */
MUST_USE int jc_clock_parse_hex(struct span s, uint64_t *out);
