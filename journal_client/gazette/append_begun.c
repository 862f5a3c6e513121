/*
 * Transactions under a key of unless_kv. The key itself is written behind the last append, to
 * DIR/state, and no append can carry it: an append whose answer never came, a stop, a kill or a
 * full disk in between would leave it out, and whoever comes again under the key would publish a
 * second time. So what is about to be sent is recorded first (begun.h), durably, and what a record
 * says is looked at before anything is sent under its key: the primary's head (append_head.c), then
 * the bytes at the place. See append.h.
 */
#include <openssl/evp.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/append.h"
#include "journal_client/gazette/begun.h"

static bool stopping(const struct gz_txn *t)
{
    return t->s->stopping || t->s->hurried;
}

void gz_begun_free(struct gz_txn *t)
{
    gz_begun_drop(t->earlier);
    EVP_MD_CTX_free(t->sha);
    mem_free(t->begun_key);
    t->earlier = NULL;
    t->sha = NULL;
    t->begun_key = NULL;
}

bool gz_begun_left(const struct gz_txn *t)
{
    for (size_t i = 0; t->earlier != NULL && i < t->earlier->n; i++) {
        if (t->earlier->v[i].state != GZ_B_GONE)
            return true;
    }
    return t->unread;
}

bool gz_begun_fits(struct gz_txn *t)
{
    bool fits = true;

    for (size_t i = 0; t->earlier != NULL && i < t->earlier->n; i++) {
        const struct gz_begun_part *b = &t->earlier->v[i];
        if (b->state != GZ_B_OPEN || b->part == SIZE_MAX || b->part < t->at ||
            gz_begun_kept(t, b->part) || t->txn->parts[b->part].begin == b->begin)
            continue;
        gz_of(t->txn->parts[b->part].journal)->append_head = -1;
        fits = false;
    }
    return fits;
}

bool gz_begun_kept(const struct gz_txn *t, size_t i)
{
    for (size_t k = 0; t->earlier != NULL && k < t->earlier->n; k++) {
        const struct gz_begun_part *b = &t->earlier->v[k];
        if (b->state == GZ_B_LANDED && b->part == i) {
            t->txn->parts[i].begin = b->begin;
            t->txn->parts[i].end = b->end;
            return true;
        }
    }
    return false;
}

void gz_begun_moved(struct gz_txn *t)
{
    t->recorded = t->looked = false;
    t->look = 0;
}

/* --- looking at what became of it --- */

static struct gz_journal *journal_of(const struct gz_txn *t, const struct gz_begun_part *b)
{
    return b->part == SIZE_MAX ? b->j : gz_of(t->txn->parts[b->part].journal);
}

static void on_restored(void *arg, int err)
{
    gz_txn_finish(arg, err < 0 ? err : E_EXISTS);
}

/* All of an earlier attempt is there: its key-values stand for it. */
static void restore(struct gz_txn *t, size_t attempt)
{
    struct jc_store *kv = t->s->kv;
    struct jc_kv *list;
    size_t n;
    int err = gz_begun_values(t->earlier, attempt, &list, &n);

    log_event(LOG_INFO, "gazette.append_landed_before", LF_UINT("parts", t->txn->parts_n));
    if (err == 0) {
        err = kv->ops->kv_set(kv, list, n, &t->s->mb.ex, on_restored, t);
        mem_free(list);
    }
    if (err < 0)
        gz_txn_finish(t, err);
}

/* What became of an attempt as a whole. */
struct whole {
    bool all, some, fits; /* of its parts landed; what landed is as the transaction has it */
};

static struct whole whole_of(const struct gz_txn *t, size_t attempt)
{
    const struct gz_begun *g = t->earlier;
    struct whole w = {.all = true, .fits = !g->others[attempt]};

    for (size_t i = 0; i < g->n; i++) {
        const struct gz_begun_part *b = &g->v[i];
        if (b->attempt != attempt)
            continue;
        bool landed = b->state == GZ_B_LANDED;
        w.all = w.all && landed;
        w.some = w.some || landed;
        if (b->part == SIZE_MAX)
            w.fits = w.fits && b->state == GZ_B_GONE;
        else if (landed)
            w.fits = w.fits && b->end - b->begin == (int64_t)t->txn->parts[b->part].bytes->len;
    }
    return w;
}

/* An attempt that landed whole stands for the key. One that was torn is completed, unless the
 * transaction has another tag or, since the partitions changed, other parts: that would mix the
 * two. Of one that did not land nothing is kept. */
static void looked(struct gz_txn *t)
{
    bool fits = true;

    t->at = t->look_from;
    t->looking = false;
    t->looked = true;
    for (size_t a = 0; a < t->earlier->attempts; a++) {
        struct whole w = whole_of(t, a);
        if (w.all && t->wrote == 0) {
            restore(t, a);
            return;
        }
        fits = fits && (!w.some || w.fits);
    }
    if (fits)
        gz_txn_step(t);
    else
        gz_txn_finish(t, E_CONFLICT);
}

static void look(struct gz_txn *t);

static void found(struct gz_txn *t, enum gz_begun_state state)
{
    t->earlier->v[t->look++].state = state;
    t->below_ms = 0;
    t->attempt = 0;
    t->since_ms = gz_mono_ms(t->s); /* each part has its time */
    look(t);
}

static void compare(struct gz_txn *t);

static void on_bytes(struct gz_range *r, int err)
{
    struct gz_txn *t = (struct gz_txn *)(void *)((char *)r - offsetof(struct gz_txn, range));
    struct gz_begun_part *b = &t->earlier->v[t->look];
    struct blob *bytes = err == 0 ? r->bytes : NULL;
    uint8_t sha[GZ_SHA_BYTES];
    unsigned n = sizeof sha;

    bool there = bytes != NULL && r->at == b->begin + (int64_t)t->compared;
    if (there && EVP_DigestUpdate(t->sha, bytes->data, bytes->len) != 1)
        err = E_NOMEM;
    if (there) {
        t->compared += bytes->len;
        t->since_ms = gz_mono_ms(t->s);
    }
    blob_unref(r->bytes);
    r->bytes = NULL;
    if (t->ended) {
        gz_txn_answer(t, t->err);
    } else if (err < 0) {
        gz_part_again(t, err);
    } else if (!there) { /* removed since: nobody can read it twice */
        found(t, GZ_B_GONE);
    } else if (b->begin + (int64_t)t->compared < b->end) {
        compare(t);
    } else if (EVP_DigestFinal_ex(t->sha, sha, &n) != 1) {
        gz_part_again(t, E_NOMEM);
    } else {
        found(t, memcmp(sha, b->sha, sizeof sha) == 0 ? GZ_B_LANDED : GZ_B_GONE);
    }
}

/* The next piece. */
static void compare(struct gz_txn *t)
{
    const struct gz_begun_part *b = &t->earlier->v[t->look];

    t->range = (struct gz_range){.j = journal_of(t, b),
                                 .begin = b->begin + (int64_t)t->compared,
                                 .end = b->end,
                                 .max = GZ_PIECE,
                                 .no_direct = true,
                                 .done = on_bytes};
    gz_range_start(&t->range);
}

static void on_head(struct gz_txn *t, int64_t head, enum gz_head_by by)
{
    const struct gz_begun_part *b = &t->earlier->v[t->look];

    if (by == GZ_HEAD_LISTED && b->part != SIZE_MAX) { /* nobody knows before that is set */
        t->reset = true;
        gz_txn_step(t);
    } else if (head >= b->end) {
        t->compared = 0;
        if ((t->sha == NULL && (t->sha = EVP_MD_CTX_new()) == NULL) ||
            EVP_DigestInit_ex(t->sha, EVP_sha256(), NULL) != 1)
            gz_part_again(t, E_NOMEM);
        else
            compare(t);
    } else if (head == b->begin) { /* it may land yet: gz_begun_fits() sends to the same place */
        found(t, GZ_B_OPEN);
    } else if (head > b->begin || gz_head_below(t, by)) {
        found(t, GZ_B_GONE);
    } else {
        gz_part_again(t, E_AGAIN);
    }
}

static void look(struct gz_txn *t)
{
    struct gz_begun *g = t->earlier;

    for (; t->look < g->n; t->look++) {
        const struct gz_begun_part *b = &g->v[t->look];
        if (b->state == GZ_B_OPEN) {
            t->at = b->part == SIZE_MAX ? t->look_from : b->part;
            gz_head_ask(t, journal_of(t, b), on_head);
            return;
        }
    }
    looked(t);
}

/* Parts of journals that the transaction has nothing for: the partitions changed. With the journal
 * they are gone. */
static void find_strangers(struct gz_txn *t)
{
    const struct jc_listing *l = t->s->hub.listing;

    for (size_t i = 0; t->earlier != NULL && i < t->earlier->n; i++) {
        struct gz_begun_part *b = &t->earlier->v[i];
        if (b->part != SIZE_MAX)
            continue;
        const struct jc_journal *j = l == NULL ? NULL : jc_listing_find(l, b->journal);
        if (j != NULL && j->create_revision == b->create_revision)
            b->j = gz_journal_ref(gz_of(j));
        else
            b->state = GZ_B_GONE;
    }
}

static void on_record(void *arg, int err, struct span value)
{
    struct gz_txn *t = arg;

    if (err == E_NOTFOUND)
        err = 0;
    else if (err == 0)
        err = gz_begun_read(value, t->txn, &t->earlier);
    if (err == 0)
        find_strangers(t);
    if (err == 0 && stopping(t))
        err = E_CLOSED;
    if (err < 0) {
        t->unread = value.n > 1 || err != E_CLOSED;
        gz_txn_finish(t, err);
        return;
    }
    t->asked_begun = true;
    gz_txn_step(t);
}

bool gz_begun_ready(struct gz_txn *t)
{
    static const char PREFIX[] = "begun/";
    const char *key = t->txn->unless_kv;
    struct jc_store *kv = t->s->kv;

    if (key == NULL || (t->asked_begun && (t->earlier == NULL || t->looked)))
        return true;
    if (t->asked_begun) {
        if (!t->looking)
            t->look_from = t->at;
        t->looking = true;
        look(t);
        return false;
    }
    size_t n = strlen(key);
    int err = E_NOMEM;
    if ((t->begun_key = mem_alloc(sizeof PREFIX + n)) != NULL) {
        memcpy(t->begun_key, PREFIX, sizeof PREFIX - 1);
        memcpy(t->begun_key + sizeof PREFIX - 1, key, n + 1);
        err = kv->ops->kv_get(kv, t->begun_key, &t->s->mb.ex, on_record, t);
    }
    if (err < 0)
        gz_txn_finish(t, err);
    return false;
}

/* --- recording an attempt --- */

static void on_recorded(void *arg, int err)
{
    struct gz_txn *t = arg;

    if (err == 0 && stopping(t))
        err = E_CLOSED;
    if (err < 0) {
        gz_txn_finish(t, err);
        return;
    }
    t->recorded = true;
    gz_txn_step(t);
}

bool gz_begun_record(struct gz_txn *t)
{
    struct jc_store *kv = t->s->kv;
    struct blob *b = NULL;

    if (t->txn->unless_kv == NULL || t->recorded)
        return true;
    int err = gz_begun_write(t->earlier, t->txn, &b);
    if (err == 0) {
        const struct jc_kv row = {.key = t->begun_key,
                                  .value = blob_span(b),
                                  .expires_ms = t->txn->kv_n == 0 ? 0 : t->txn->kv[0].expires_ms};
        err = kv->ops->kv_set(kv, &row, 1, &t->s->mb.ex, on_recorded, t);
    }
    blob_unref(b);
    if (err < 0)
        gz_txn_finish(t, err);
    return false;
}

size_t gz_begun_end(struct gz_txn *t, struct jc_kv *out)
{
    if (t->begun_key == NULL)
        return 0;
    /* There is no way to remove one: it is as if its time was over. */
    *out = (struct jc_kv){.key = t->begun_key, .value = span_str("-"), .expires_ms = 1};
    return 1;
}
