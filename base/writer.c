/*
 * The growing buffer is a blob from the start, so that taking it costs no copy. It doubles, never
 * beyond the maximum. wr_room() is the only place that grows and the only one that fails.
 */
#include "base/writer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/num.h"

#define FIRST_CAP ((size_t)256)

void wr_init(struct writer *w, size_t max)
{
    *w = (struct writer){.max = max};
}

void wr_fini(struct writer *w)
{
    blob_unref(w->b);
    w->b = NULL;
}

static void fail(struct writer *w, int err)
{
    if (w->err == 0)
        w->err = err;
}

/* Makes the buffer hold `cap` bytes; the blob is ours alone, so it may move. */
static int regrow(struct writer *w, size_t cap)
{
    size_t bytes;

    if (!num_add_size(sizeof(struct blob), cap, &bytes))
        return E_LIMIT;
    if (w->b == NULL) {
        w->b = blob_new(cap);
        return w->b == NULL ? E_NOMEM : 0;
    }
    struct blob *b = mem_realloc(w->b, bytes);
    if (b == NULL)
        return E_NOMEM;
    b->cap = cap;
    w->b = b;
    return 0;
}

/* Room for n bytes behind the written ones, or NULL with the error set. n > 0. */
static uint8_t *wr_room(struct writer *w, size_t n)
{
    size_t len = wr_len(w);

    if (w->err != 0)
        return NULL;
    if (n > w->max || len > w->max - n) {
        fail(w, E_LIMIT);
        return NULL;
    }
    if (w->b == NULL || w->b->cap - len < n) {
        size_t cap = w->b == NULL ? FIRST_CAP : w->b->cap;
        if (cap > w->max / 2)
            cap = w->max;
        else if (w->b != NULL)
            cap *= 2;
        if (cap < len + n)
            cap = len + n;
        int err = regrow(w, cap);
        if (err != 0) {
            fail(w, err);
            return NULL;
        }
    }
    return w->b->data + len;
}

struct blob *wr_take(struct writer *w)
{
    if (w->err != 0)
        return NULL;
    struct blob *b = w->b;
    if (b == NULL) {
        b = blob_new(0);
        if (b == NULL)
            fail(w, E_NOMEM);
    }
    w->b = NULL;
    return b;
}

void wr_reserve(struct writer *w, size_t n)
{
    size_t len = wr_len(w);

    if (w->err != 0 || n == 0)
        return;
    if (n > w->max || len > w->max - n) {
        fail(w, E_LIMIT);
        return;
    }
    if (w->b == NULL || w->b->cap - len < n) {
        int err = regrow(w, len + n);
        if (err != 0)
            fail(w, err);
    }
}

void wr_bytes(struct writer *w, const void *p, size_t n)
{
    if (n == 0)
        return;
    uint8_t *to = wr_room(w, n);
    if (to == NULL)
        return;
    memcpy(to, p, n);
    w->b->len += n;
}

void wr_span(struct writer *w, struct span s)
{
    wr_bytes(w, s.p, s.n);
}

void wr_str(struct writer *w, const char *s)
{
    wr_bytes(w, s, strlen(s));
}

void wr_printf(struct writer *w, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        fail(w, E_INVALID);
        return;
    }
    if (n == 0)
        return;

    /* The NUL that vsnprintf wants must count against neither the length nor the maximum: print
     * short texts on the side, long ones into a buffer of their own. */
    char small[256];
    size_t bytes = (size_t)n + 1;
    char *text = small;
    if (w->err == 0 && bytes > sizeof small) {
        if (bytes - 1 > w->max) {
            fail(w, E_LIMIT);
            return;
        }
        text = mem_alloc(bytes);
        if (text == NULL) {
            fail(w, E_NOMEM);
            return;
        }
    }
    if (w->err == 0) {
        va_start(args, fmt);
        vsnprintf(text, bytes, fmt, args);
        va_end(args);
        wr_bytes(w, text, bytes - 1);
    }
    if (text != small)
        mem_free(text);
}

void wr_u8(struct writer *w, uint8_t v)
{
    wr_bytes(w, &v, 1);
}

void wr_i8(struct writer *w, int8_t v)
{
    wr_u8(w, (uint8_t)v);
}

void wr_u16(struct writer *w, uint16_t v)
{
    uint8_t raw[2];

    be_store16(raw, v);
    wr_bytes(w, raw, sizeof raw);
}

void wr_i16(struct writer *w, int16_t v)
{
    wr_u16(w, (uint16_t)v);
}

void wr_u32(struct writer *w, uint32_t v)
{
    uint8_t raw[4];

    be_store32(raw, v);
    wr_bytes(w, raw, sizeof raw);
}

void wr_i32(struct writer *w, int32_t v)
{
    wr_u32(w, (uint32_t)v);
}

void wr_i64(struct writer *w, int64_t v)
{
    uint8_t raw[8];

    be_store64(raw, (uint64_t)v);
    wr_bytes(w, raw, sizeof raw);
}

void wr_f64(struct writer *w, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    wr_i64(w, (int64_t)bits);
}

static void write_leb128(struct writer *w, uint64_t v)
{
    uint8_t raw[10];
    size_t n = 0;

    while (v >= 0x80) {
        raw[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    raw[n++] = (uint8_t)v;
    wr_bytes(w, raw, n);
}

static size_t leb128_size(uint64_t v)
{
    size_t n = 1;

    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static uint32_t zigzag32(int32_t v)
{
    return ((uint32_t)v << 1) ^ (v < 0 ? UINT32_MAX : 0);
}

static uint64_t zigzag64(int64_t v)
{
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

void wr_uvarint32(struct writer *w, uint32_t v)
{
    write_leb128(w, v);
}

void wr_varint32(struct writer *w, int32_t v)
{
    write_leb128(w, zigzag32(v));
}

void wr_varint64(struct writer *w, int64_t v)
{
    write_leb128(w, zigzag64(v));
}

void wr_poke_i32(struct writer *w, size_t off, int32_t v)
{
    if (w->err != 0)
        return;
    ASSERT(wr_len(w) >= 4 && off <= wr_len(w) - 4);
    be_store32(w->b->data + off, (uint32_t)v);
}

size_t uvarint32_size(uint32_t v)
{
    return leb128_size(v);
}

size_t varint32_size(int32_t v)
{
    return leb128_size(zigzag32(v));
}

size_t varint64_size(int64_t v)
{
    return leb128_size(zigzag64(v));
}

void be_store16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

void be_store32(uint8_t *p, uint32_t v)
{
    be_store16(p, (uint16_t)(v >> 16));
    be_store16(p + 2, (uint16_t)v);
}

void be_store64(uint8_t *p, uint64_t v)
{
    be_store32(p, (uint32_t)(v >> 32));
    be_store32(p + 4, (uint32_t)v);
}

uint16_t be_load16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

uint32_t be_load32(const uint8_t *p)
{
    return (uint32_t)be_load16(p) << 16 | be_load16(p + 2);
}

uint64_t be_load64(const uint8_t *p)
{
    return (uint64_t)be_load32(p) << 32 | be_load32(p + 4);
}
