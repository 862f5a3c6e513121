/*
 * The block index: for each 256 KiB line of the offset space, where reading for it starts and the
 * largest clock in it. 24 bytes a block (10 MB for 100 GiB), so that it is kept in memory once
 * loaded. A document belongs to the block of its last byte and may be longer than many blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/writer.h"
#include "journal_client/local/block.h"
#include "journal_client/local/index.h"
#include "journal_client/local/sha.h"

#define SIDECAR_MAGIC   0x534c4958u /* "SLIX" */
#define SIDECAR_VERSION 1u
#define SIDECAR_HEAD    32 /* magic, version, begin, end, count */
#define SIDECAR_ENTRY   20
#define SIDECAR_SEED    0x736c7578
#define SCAN_BYTES      (1u << 20)

static int64_t block_of(int64_t offset)
{
    return offset / JC_BLOCK_BYTES;
}

int jl_index_reserve(struct jl_blocks *b, int64_t end)
{
    if (end <= 0)
        return 0;
    size_t need = (size_t)(block_of(end - 1) - b->base + 1);
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap * 2 > need ? b->cap * 2 : need + 3;
    struct jl_block *v = mem_realloc(b->v, cap * sizeof *v);
    if (v == NULL)
        return E_NOMEM;
    b->v = v;
    b->cap = cap;
    return 0;
}

static void add_line(struct jl_blocks *b, struct jl_sum *sum, const struct jc_doc_info *info,
                     int64_t begin, int64_t end)
{
    size_t at = (size_t)(block_of(end - 1) - b->base);

    while (b->n <= at) {
        ASSERT(b->n < b->cap);
        b->v[b->n++] = (struct jl_block){.first = begin};
    }
    if (info->kind == JC_DOC_BLANK)
        return;
    if (info->clock > sum->any_clock)
        sum->any_clock = info->clock;
    jc_marks_take(&sum->marks, info, end);
    if (info->kind != JC_DOC_CONTENT)
        return;
    b->v[at].content = 1;
    if (info->clock > b->v[at].max_clock)
        b->v[at].max_clock = info->clock;
    sum->content_end = end;
    if (info->clock > sum->max_clock)
        sum->max_clock = info->clock;
}

void jl_index_add(struct jl_blocks *b, struct jl_sum *sum, const struct jl_probe *probe,
                  int64_t begin, struct span bytes)
{
    const uint8_t *p = bytes.p;
    const uint8_t *end = bytes.p + bytes.n;

    while (p < end) {
        const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));
        struct jc_doc_info info = {.kind = JC_DOC_CONTENT};

        ASSERT(nl != NULL);
        probe->fn(probe->arg, span_of(p, (size_t)(nl - p)), &info);
        add_line(b, sum, &info, begin, begin + (nl + 1 - p));
        begin += nl + 1 - p;
        p = nl + 1;
    }
}

void jl_index_fini(struct jl_blocks *b)
{
    mem_free(b->v);
    *b = (struct jl_blocks){.base = b->base};
}

void jl_index_range(const struct jl_blocks *b, int64_t block, int64_t end, int64_t *start,
                    int64_t *stop)
{
    if (block < b->base || block - b->base >= (int64_t)b->n) {
        *start = *stop = end;
        return;
    }
    size_t at = (size_t)(block - b->base);
    *start = b->v[at].first;
    *stop = at + 1 < b->n ? b->v[at + 1].first : end;
}

/* --- scan --- */

struct scan {
    uint8_t *buf;
    size_t cap, n; /* n: bytes held, an unfinished line at most when more is read */
};

/* Takes the whole lines out of the buffer. */
static int scan_lines(struct scan *sc, int64_t *at, const struct jl_probe *probe,
                      struct jl_blocks *b, struct jl_sum *sum)
{
    const uint8_t *last = memrchr(sc->buf, '\n', sc->n);
    int err;

    if (last == NULL)
        return 0;
    size_t whole = (size_t)(last + 1 - sc->buf);
    if ((err = jl_index_reserve(b, *at + (int64_t)whole)) < 0)
        return err;
    jl_index_add(b, sum, probe, *at, span_of(sc->buf, whole));
    *at += (int64_t)whole;
    sc->n -= whole;
    memmove(sc->buf, sc->buf + whole, sc->n);
    return 0;
}

static int scan_grow(struct scan *sc)
{
    if (sc->cap - sc->n >= SCAN_BYTES / 2)
        return 0;
    size_t cap = sc->cap == 0 ? SCAN_BYTES : sc->cap * 2;
    uint8_t *p = mem_realloc(sc->buf, cap);
    if (p == NULL)
        return E_NOMEM;
    sc->buf = p;
    sc->cap = cap;
    return 0;
}

int jl_index_scan(int fd, int64_t begin, int64_t end, const struct jl_probe *probe,
                  struct jl_blocks *b, struct jl_sum *sum, struct jl_sha *sha)
{
    struct scan sc = {0};
    int64_t at = begin;   /* of the first byte in the buffer */
    int64_t read = begin; /* of the next byte to read */
    int err = 0;

    *b = (struct jl_blocks){.base = block_of(begin)};
    *sum = (struct jl_sum){0};
    while (read < end && err == 0) {
        if ((err = scan_grow(&sc)) < 0)
            break;
        size_t want = sc.cap - sc.n;
        if ((int64_t)want > end - read)
            want = (size_t)(end - read);
        if ((err = jl_pread_full(fd, sc.buf + sc.n, want, read - begin)) < 0)
            break;
        if (sha != NULL && (err = jl_sha_add(sha, span_of(sc.buf + sc.n, want))) < 0)
            break;
        sc.n += want;
        read += (int64_t)want;
        err = scan_lines(&sc, &at, probe, b, sum);
    }
    if (err == 0 && sc.n > 0)
        err = E_CORRUPT;
    if (err < 0)
        jl_index_fini(b);
    mem_free(sc.buf);
    return err;
}

/* --- sidecar --- */

int jl_index_save(const char *path, int64_t begin, int64_t end, const struct jl_blocks *b)
{
    size_t bytes = SIDECAR_HEAD + b->n * SIDECAR_ENTRY + 8;
    uint8_t *buf = mem_alloc(bytes);
    uint8_t *p;
    int err = 0;

    if (buf == NULL)
        return E_NOMEM;
    be_store32(buf, SIDECAR_MAGIC);
    be_store32(buf + 4, SIDECAR_VERSION);
    be_store64(buf + 8, (uint64_t)begin);
    be_store64(buf + 16, (uint64_t)end);
    be_store64(buf + 24, b->n);
    p = buf + SIDECAR_HEAD;
    for (size_t i = 0; i < b->n; i++, p += SIDECAR_ENTRY) {
        be_store64(p, (uint64_t)b->v[i].first);
        be_store64(p + 8, b->v[i].max_clock);
        be_store32(p + 16, b->v[i].content);
    }
    be_store64(p, hash_bytes(span_of(buf, bytes - 8), SIDECAR_SEED));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        err = err_from_errno(errno);
    } else {
        /* Not synced: a torn one is told by its hash and made anew. */
        if (write(fd, buf, bytes) != (ssize_t)bytes)
            err = E_IO;
        if (close(fd) < 0)
            err = E_IO;
    }
    mem_free(buf);
    return err;
}

static int parse(const uint8_t *buf, size_t bytes, int64_t begin, int64_t end, struct jl_blocks *b)
{
    if (bytes < SIDECAR_HEAD + 8 || be_load32(buf) != SIDECAR_MAGIC ||
        be_load32(buf + 4) != SIDECAR_VERSION || be_load64(buf + 8) != (uint64_t)begin ||
        be_load64(buf + 16) != (uint64_t)end)
        return E_CORRUPT;
    uint64_t n = (uint64_t)(block_of(end - 1) - block_of(begin) + 1);
    if (be_load64(buf + 24) != n || bytes != SIDECAR_HEAD + n * SIDECAR_ENTRY + 8 ||
        be_load64(buf + bytes - 8) != hash_bytes(span_of(buf, bytes - 8), SIDECAR_SEED))
        return E_CORRUPT;
    *b = (struct jl_blocks){.base = block_of(begin)};
    b->v = mem_array((size_t)n, sizeof *b->v);
    if (b->v == NULL)
        return E_NOMEM;
    b->n = b->cap = (size_t)n;
    const uint8_t *p = buf + SIDECAR_HEAD;
    for (size_t i = 0; i < b->n; i++, p += SIDECAR_ENTRY) {
        b->v[i].first = (int64_t)be_load64(p);
        b->v[i].max_clock = be_load64(p + 8);
        b->v[i].content = be_load32(p + 16);
    }
    return 0;
}

int jl_index_load(const char *path, int64_t begin, int64_t end, struct jl_blocks *b)
{
    struct stat st;
    uint8_t *buf = NULL;
    int err;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_from_errno(errno);
    if (fstat(fd, &st) < 0 || st.st_size < SIDECAR_HEAD || st.st_size > INT64_C(1) << 31) {
        err = E_CORRUPT;
    } else if ((buf = mem_alloc((size_t)st.st_size)) == NULL) {
        err = E_NOMEM;
    } else if ((err = jl_pread_full(fd, buf, (size_t)st.st_size, 0)) == 0) {
        err = parse(buf, (size_t)st.st_size, begin, end, b);
    }
    mem_free(buf);
    close(fd);
    return err;
}
