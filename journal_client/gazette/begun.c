/*
 * The record of begun transactions. See begun.h. Big-endian:
 *
 *   u8 version 1, u8 attempts, then of each: u32 length of what follows, u32 length, tag, u32
 * parts, of each part: u32 length, name of the journal, i64 create revision, begin, end, 32 bytes
 * SHA-256 u32 key-values, of each: u32 length, key and a zero byte, u32 length, value, i64
 * expires_ms
 */
#include "journal_client/gazette/begun.h"

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/reader.h"
#include "base/writer.h"

#define VERSION    1
#define RECORD_MAX (64u << 20)
#define PARTS_MAX  65536

void gz_begun_drop(struct gz_begun *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].j != NULL)
            gz_journal_unref(g->v[i].j);
    }
    blob_unref(g->record);
    mem_free(g->v);
    mem_free(g);
}

/* --- reading --- */

static int take_span(struct reader *r, struct span *out)
{
    uint32_t n;
    int err = rd_u32(r, &n);

    *out = span_of(NULL, 0);
    if (err == 0 && (err = rd_take(r, n, &out->p)) == 0)
        out->n = n;
    return err;
}

static int take_part(struct reader *r, struct gz_begun_part *b)
{
    const uint8_t *sha;
    int err;

    if ((err = take_span(r, &b->journal)) < 0 || (err = rd_i64(r, &b->create_revision)) < 0 ||
        (err = rd_i64(r, &b->begin)) < 0 || (err = rd_i64(r, &b->end)) < 0 ||
        (err = rd_take(r, GZ_SHA_BYTES, &sha)) < 0)
        return err;
    memcpy(b->sha, sha, GZ_SHA_BYTES);
    return b->begin < 0 || b->end <= b->begin ? E_CORRUPT : 0;
}

/* The first part of the transaction that is of this journal and not taken in this attempt. */
static size_t match(const struct gz_begun *g, const struct gz_begun_part *b,
                    const struct jc_txn *txn)
{
    for (size_t i = 0; i < txn->parts_n; i++) {
        const struct gz_journal *j = gz_of(txn->parts[i].journal);
        if (j->create_revision != b->create_revision || !span_eq(b->journal, span_str(j->name)))
            continue;
        size_t k = 0;
        while (k < g->n && (g->v[k].attempt != b->attempt || g->v[k].part != i))
            k++;
        if (k == g->n)
            return i;
    }
    return SIZE_MAX;
}

static int take_attempt(struct gz_begun *g, struct span text, const struct jc_txn *txn)
{
    struct reader r = reader_of(text);
    struct span tag;
    uint32_t n;

    if (take_span(&r, &tag) < 0 || rd_u32(&r, &n) < 0 || n > PARTS_MAX)
        return E_CORRUPT;
    struct gz_begun_part *v = mem_realloc(g->v, (g->n + n + 1) * sizeof *v);
    if (v == NULL)
        return E_NOMEM;
    g->v = v;
    for (uint32_t i = 0; i < n; i++) {
        struct gz_begun_part b = {.attempt = g->attempts};
        if (take_part(&r, &b) < 0)
            return E_CORRUPT;
        b.part = match(g, &b, txn);
        g->v[g->n++] = b;
    }
    g->tags[g->attempts] = tag;
    g->others[g->attempts] = txn->unless_tag.n > 0 && !span_eq(tag, txn->unless_tag);
    g->values[g->attempts++] = span_of(r.p, rd_left(&r));
    return 0;
}

static int read_record(struct gz_begun *g, const struct jc_txn *txn)
{
    struct reader r = reader_of(blob_span(g->record));
    uint8_t version, attempts;
    struct span text;
    int err;

    if (rd_u8(&r, &version) < 0 || rd_u8(&r, &attempts) < 0 || version != VERSION ||
        attempts > GZ_ATTEMPTS_MAX)
        return E_CORRUPT;
    for (uint8_t i = 0; i < attempts; i++) {
        if (take_span(&r, &text) < 0)
            return E_CORRUPT;
        if ((err = take_attempt(g, text, txn)) < 0)
            return err;
    }
    return rd_left(&r) == 0 ? 0 : E_CORRUPT;
}

int gz_begun_read(struct span record, const struct jc_txn *txn, struct gz_begun **out)
{
    int err = E_NOMEM;

    *out = NULL;
    if (record.n <= 1)
        return 0;
    struct gz_begun *g = mem_zalloc(sizeof *g);
    if (g != NULL && (g->record = blob_copy(record)) != NULL)
        err = read_record(g, txn);
    if (err < 0)
        gz_begun_drop(g);
    else
        *out = g;
    return err;
}

static int take_value(struct reader *r, struct jc_kv *out)
{
    struct span key;
    int err;

    if ((err = take_span(r, &key)) < 0 || (err = take_span(r, &out->value)) < 0 ||
        (err = rd_i64(r, &out->expires_ms)) < 0)
        return err;
    if (key.n == 0 || key.p[key.n - 1] != '\0')
        return E_CORRUPT;
    out->key = (const char *)key.p;
    return 0;
}

int gz_begun_values(const struct gz_begun *g, size_t attempt, struct jc_kv **list, size_t *n)
{
    struct reader r = reader_of(g->values[attempt]);
    uint32_t count;

    *list = NULL;
    *n = 0;
    if (rd_u32(&r, &count) < 0 || count > PARTS_MAX)
        return E_CORRUPT;
    struct jc_kv *v = mem_array(count + 1, sizeof *v);
    if (v == NULL)
        return E_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (take_value(&r, &v[i]) < 0) {
            mem_free(v);
            return E_CORRUPT;
        }
    }
    *list = v;
    *n = count;
    return 0;
}

/* --- writing --- */

static void put_span(struct writer *w, struct span s)
{
    wr_u32(w, (uint32_t)s.n);
    wr_span(w, s);
}

static void put_part(struct writer *w, const struct gz_begun_part *b)
{
    put_span(w, b->journal);
    wr_i64(w, b->create_revision);
    wr_i64(w, b->begin);
    wr_i64(w, b->end);
    wr_bytes(w, b->sha, GZ_SHA_BYTES);
}

static const struct gz_begun_part *landed_before(const struct gz_begun *g, size_t part)
{
    for (size_t i = 0; g != NULL && i < g->n; i++) {
        if (g->v[i].part == part && g->v[i].state == GZ_B_LANDED)
            return &g->v[i];
    }
    return NULL;
}

static int put_txn(struct writer *w, const struct gz_begun *before, const struct jc_txn *txn)
{
    put_span(w, txn->unless_tag);
    wr_u32(w, (uint32_t)txn->parts_n);
    for (size_t i = 0; i < txn->parts_n; i++) {
        const struct jc_append_part *p = &txn->parts[i];
        const struct gz_journal *j = gz_of(p->journal);
        const struct gz_begun_part *old = landed_before(before, i);
        struct gz_begun_part b = {.journal = span_str(j->name),
                                  .create_revision = j->create_revision,
                                  .begin = p->begin,
                                  .end = p->end};
        unsigned n = GZ_SHA_BYTES;
        if (old == NULL &&
            EVP_Digest(p->bytes->data, p->bytes->len, b.sha, &n, EVP_sha256(), NULL) != 1)
            return E_NOMEM;
        put_part(w, old == NULL ? &b : old);
    }
    wr_u32(w, (uint32_t)txn->kv_n);
    for (size_t i = 0; i < txn->kv_n; i++) {
        put_span(w, span_of((const uint8_t *)txn->kv[i].key, strlen(txn->kv[i].key) + 1));
        put_span(w, txn->kv[i].value);
        wr_i64(w, txn->kv[i].expires_ms);
    }
    return wr_err(w);
}

static bool is_open(const struct gz_begun *g, size_t attempt)
{
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].attempt == attempt && g->v[i].state == GZ_B_OPEN)
            return true;
    }
    return false;
}

static void put_before(struct writer *w, const struct gz_begun *g, size_t attempt)
{
    uint32_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += g->v[i].attempt == attempt ? 1 : 0;
    put_span(w, g->tags[attempt]);
    wr_u32(w, n);
    for (size_t i = 0; i < g->n; i++) {
        if (g->v[i].attempt == attempt)
            put_part(w, &g->v[i]);
    }
    wr_span(w, g->values[attempt]);
}

/* Its length before it. */
static void close_attempt(struct writer *w, size_t at)
{
    if (wr_err(w) == 0)
        wr_poke_i32(w, at, (int32_t)(wr_len(w) - at - 4));
}

int gz_begun_write(const struct gz_begun *before, const struct jc_txn *txn, struct blob **out)
{
    struct writer w;
    size_t at;
    size_t attempts = 1;

    *out = NULL;
    for (size_t a = 0; before != NULL && a < before->attempts; a++)
        attempts += is_open(before, a) ? 1 : 0;
    if (attempts > GZ_ATTEMPTS_MAX)
        return E_LIMIT;
    wr_init(&w, RECORD_MAX);
    wr_u8(&w, VERSION);
    wr_u8(&w, (uint8_t)attempts);
    for (size_t a = 0; before != NULL && a < before->attempts; a++) {
        if (!is_open(before, a))
            continue;
        at = wr_len(&w);
        wr_u32(&w, 0);
        put_before(&w, before, a);
        close_attempt(&w, at);
    }
    at = wr_len(&w);
    wr_u32(&w, 0);
    int err = put_txn(&w, before, txn);
    close_attempt(&w, at);
    if (err < 0)
        wr_fini(&w);
    else if ((*out = wr_take(&w)) == NULL)
        err = E_NOMEM;
    return err;
}
