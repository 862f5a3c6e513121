/* Kafka's codecs over whole record sections. The numbers are those of the batch's attributes. */
#pragma once

#include "base/blob.h"
#include "base/err.h"
#include "base/span.h"

enum kp_codec {
    KP_CODEC_NONE = 0,
    KP_CODEC_GZIP = 1,
    KP_CODEC_SNAPPY = 2,
    KP_CODEC_LZ4 = 3,
    KP_CODEC_ZSTD = 4
};

/* "none", "gzip", "snappy", "lz4", "zstd"; E_INVALID. */
MUST_USE int kp_codec_parse(struct span name, enum kp_codec *out);
const char *kp_codec_name(enum kp_codec c);

/* The compressed form in a new blob, owned by the caller; head_room zero bytes stand in front of
 * it. snappy is written in the xerial framing that Java writes; lz4 as an LZ4 frame with
 * independent 64 KiB blocks. KP_CODEC_NONE: E_INVALID. E_NOMEM; E_LIMIT: more than 1 GiB of input.
 * Any thread. */
MUST_USE int kp_compress(enum kp_codec c, struct span in, size_t head_room, struct blob **out);
/* max: refuses to yield more bytes (E_LIMIT). Reads both raw and xerial snappy, and
 * several gzip members, lz4 or zstd frames in a row. Damaged or cut input, or nothing: E_SYNTAX. */
MUST_USE int kp_decompress(enum kp_codec c, struct span in, size_t max, struct blob **out);
