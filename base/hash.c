/* FNV-1a for speed on short keys, then murmur3's finaliser: FNV alone leaves the high bits of short
 * inputs nearly constant. */
#include "base/hash.h"

uint64_t hash_bytes(struct span s, uint64_t seed)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seed;

    for (size_t i = 0; i < s.n; i++) {
        h ^= s.p[i];
        h *= UINT64_C(0x100000001b3);
    }
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    h ^= h >> 33;
    return h;
}
