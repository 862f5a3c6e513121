/*
 * The reads themselves. Each one works on a copy of the position and stores it back only after
 * success, which is what makes a failed read leave the reader where it was.
 */
#include "base/reader.h"

#include "base/writer.h"

int rd_u8(struct reader *r, uint8_t *out)
{
    const uint8_t *p;
    int err = rd_take(r, 1, &p);

    if (err == 0)
        *out = p[0];
    return err;
}

int rd_i8(struct reader *r, int8_t *out)
{
    uint8_t v;
    int err = rd_u8(r, &v);

    if (err == 0)
        *out = (int8_t)v;
    return err;
}

int rd_u16(struct reader *r, uint16_t *out)
{
    const uint8_t *p;
    int err = rd_take(r, 2, &p);

    if (err == 0)
        *out = be_load16(p);
    return err;
}

int rd_i16(struct reader *r, int16_t *out)
{
    uint16_t v;
    int err = rd_u16(r, &v);

    if (err == 0)
        *out = (int16_t)v;
    return err;
}

int rd_u32(struct reader *r, uint32_t *out)
{
    const uint8_t *p;
    int err = rd_take(r, 4, &p);

    if (err == 0)
        *out = be_load32(p);
    return err;
}

int rd_i32(struct reader *r, int32_t *out)
{
    uint32_t v;
    int err = rd_u32(r, &v);

    if (err == 0)
        *out = (int32_t)v;
    return err;
}

int rd_i64(struct reader *r, int64_t *out)
{
    const uint8_t *p;
    int err = rd_take(r, 8, &p);

    if (err == 0)
        *out = (int64_t)be_load64(p);
    return err;
}

int rd_f64(struct reader *r, double *out)
{
    const uint8_t *p;
    int err = rd_take(r, 8, &p);

    if (err == 0) {
        uint64_t bits = be_load64(p);
        memcpy(out, &bits, sizeof *out);
    }
    return err;
}

/* LEB128 of at most `bits` bits. The last byte that may come must neither continue nor carry bits
 * above the width. */
static int read_leb128(struct reader *r, unsigned bits, uint64_t *out)
{
    const uint8_t *p = r->p;
    uint64_t v = 0;

    for (unsigned shift = 0; shift < bits; shift += 7) {
        if (p == r->end)
            return E_SHORT;
        uint8_t byte = *p++;
        unsigned left = bits - shift;
        if (left < 7 && (byte >> left) != 0)
            return E_SYNTAX;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            r->p = p;
            *out = v;
            return 0;
        }
    }
    return E_SYNTAX;
}

int rd_uvarint32(struct reader *r, uint32_t *out)
{
    uint64_t v;
    int err = read_leb128(r, 32, &v);

    if (err == 0)
        *out = (uint32_t)v;
    return err;
}

int rd_varint32(struct reader *r, int32_t *out)
{
    uint32_t v;
    int err = rd_uvarint32(r, &v);

    if (err == 0)
        *out = (int32_t)((v >> 1) ^ (0U - (v & 1)));
    return err;
}

int rd_varint64(struct reader *r, int64_t *out)
{
    uint64_t v;
    int err = read_leb128(r, 64, &v);

    if (err == 0)
        *out = (int64_t)((v >> 1) ^ (0U - (v & 1)));
    return err;
}
