/*
 * CRC-32C (Castagnoli) as record batches carry it. ISA-L picks the instructions at run time (SSE4.2
 * and carry-less multiplication). Its function neither inverts the start value nor the result, and
 * takes an int as length: both are put right here.
 */
#include "kafka_proto/batch.h"

#include <isa-l/crc.h>

#define CRC_STRIDE ((size_t)1 << 30) /* fits the library's int */

uint32_t kp_crc32c(uint32_t crc, struct span s)
{
    uint32_t state = ~crc;

    while (s.n > 0) {
        size_t n = s.n < CRC_STRIDE ? s.n : CRC_STRIDE;
        /* the library only reads; its prototype lacks the const */
        unsigned char *p = (unsigned char *)(uintptr_t)s.p;

        state = crc32_iscsi(p, (int)n, state);
        s.p += n;
        s.n -= n;
    }
    return ~state;
}
