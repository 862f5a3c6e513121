/* 64-bit hash for tables and partition routing. Its values are part of the stored layout (routing):
 * never change the function. */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* FNV-1a over the bytes, finished with a 64-bit avalanche (murmur3 fmix64). */
uint64_t hash_bytes(struct span s, uint64_t seed);
