/* Private to compress*.c: where unpacked bytes go, and the codec that has a file of its own. */
#pragma once

#include "kafka_proto/compress.h"

/* Owner: one kp_decompress call. b is NULL until the first kp_sink_room. */
struct kp_sink {
    struct blob *b;
    size_t max; /* bytes that may come out; well below SIZE_MAX */
};
/* Makes at least one byte of room behind b->len, about `want` at the first call, doubling later,
 * and never more than max + 1 bytes in all. E_LIMIT once more than max bytes are in; E_NOMEM. */
MUST_USE int kp_sink_room(struct kp_sink *s, size_t want);

/* len = head_room zero bytes, and n bytes of capacity behind them; NULL when out of memory. */
MUST_USE struct blob *kp_blob_with_room(size_t head_room, size_t n);

MUST_USE int kp_snappy_compress(struct span in, size_t head_room, struct blob **out);
MUST_USE int kp_snappy_decompress(struct span in, struct kp_sink *sink);
