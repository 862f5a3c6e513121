/*
 * One topic between its journals and the view: decides when a new list of journals may be shown,
 * under which epoch, and stores that before it is shown. Control thread.
 */
#include "gateway/view_build_int.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"

#define STATE_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* Each field with its length in front, so that no two lists of fields are the same bytes. */
static void hash_field(EVP_MD_CTX *ctx, struct span s)
{
    uint8_t head[8];

    be_store64(head, (uint64_t)s.n);
    EVP_DigestUpdate(ctx, head, sizeof head);
    EVP_DigestUpdate(ctx, s.p, s.n);
}

void view_topic_id(const char *task, const char *topic, const char *journal,
                   int64_t create_revision, struct kp_uuid *out)
{
    uint8_t digest[EVP_MAX_MD_SIZE] = {0};
    uint8_t number[8];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    for (uint8_t salt = 0; salt < UINT8_MAX && ctx != NULL; salt++) {
        EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
        hash_field(ctx, span_str(task));
        hash_field(ctx, span_str(topic));
        hash_field(ctx, span_str(journal));
        be_store64(number, (uint64_t)create_revision);
        hash_field(ctx, span_of(number, sizeof number));
        hash_field(ctx, span_of(&salt, sizeof salt));
        EVP_DigestFinal_ex(ctx, digest, NULL);
        /* Kafka writes ids in base64: 62 in the first six bits is '-', which tools take for an
         * option. */
        if (digest[0] >> 2 != 62)
            break;
    }
    EVP_MD_CTX_free(ctx);
    memcpy(out->b, digest, sizeof out->b);
    /* Version 8 and variant 10 (RFC 9562): also keeps clear of the low ids that Kafka reserves. */
    out->b[6] = (uint8_t)((out->b[6] & 0x0f) | 0x80);
    out->b[8] = (uint8_t)((out->b[8] & 0x3f) | 0x80);
}

static void drop_parts(struct gw_topic *g)
{
    for (size_t i = 0; i < g->parts_n; i++)
        gw_part_unref(g->parts[i]);
    mem_free(g->parts);
    g->parts = NULL;
    g->parts_n = 0;
}

void vb_topic_hide(struct vb_topic *t, bool *changed)
{
    if (!t->shown)
        return;
    drop_parts(&t->served);
    jc_journal_unref(t->served.first);
    gw_encoder_unref(t->served.encoder);
    t->served = (struct gw_topic){0};
    t->shown_n = 0;
    t->shown = false;
    *changed = true;
}

void vb_topic_free(struct vb_topic *t)
{
    bool changed;

    vb_topic_hide(t, &changed);
    topic_state_fini(&t->state);
    topic_state_fini(&t->pending);
    mem_free(t->task);
    mem_free(t->name);
    mem_free(t);
}

static void on_stored(void *arg, int err)
{
    struct vb_topic *t = arg;

    t->vb->busy--;
    t->writing = false;
    t->failed = err < 0;
    if (err < 0) {
        metric_add(M_STORE_ERRORS, 1);
        log_event(LOG_ERROR, "view.generation_not_stored", LF_STR("topic", t->name), LF_ERR(err));
        topic_state_fini(&t->pending);
        return;
    }
    topic_state_fini(&t->state);
    t->state = t->pending;
    t->pending = (struct topic_state){0};
    vb_touch(t->vb);
}

/* Stores `next`, which is taken over in any case. */
static int store_state(struct vb_topic *t, struct topic_state *next)
{
    struct jc_store *store = t->vb->opts.store;
    struct writer text;
    struct blob *value = NULL;
    char *key = NULL;
    int err = E_NOMEM;

    wr_init(&text, STATE_MAX_BYTES);
    topic_state_write(next, &text);
    key = vb_state_key(t->task, t->name);
    if (key == NULL || (value = wr_take(&text)) == NULL)
        goto out;
    struct jc_kv kv = {.key = key, .value = blob_span(value)};
    if ((err = store->ops->kv_set(store, &kv, 1, &t->vb->opts.mb->ex, on_stored, t)) < 0)
        goto out;
    t->vb->busy++;
    t->writing = true;
    t->pending = *next;
    *next = (struct topic_state){0};
out:
    t->failed = err < 0;
    topic_state_fini(next);
    mem_free(key);
    blob_unref(value);
    wr_fini(&text);
    return err;
}

/* Both rise only, so the sum does; it stops short of what a client takes for "no epoch". */
static int32_t epoch_of(const struct topic_state *s)
{
    int64_t epoch = (int64_t)s->backfill + 1 + s->generation;
    return epoch > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)epoch;
}

/* What is shown instead of no journal at all. */
static int parts_of_none(const struct vb_topic *t, struct gw_part **parts, size_t *n)
{
    *n = 0;
    if (t->spec == NULL || !t->spec->allow_empty)
        return 0;
    int err = gw_part_new_empty(&parts[0]);
    if (err == 0)
        *n = 1;
    return err;
}

static bool shows(const struct vb_topic *t, struct vb_slot *const *slots, size_t n, int32_t epoch)
{
    bool empty = t->spec != NULL && t->spec->allow_empty;

    if (!t->shown || t->shown_n != n || t->served.epoch != epoch)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (t->served.parts[i] != slots[i]->part)
            return false;
    }
    return n > 0 || t->served.parts_n == (empty ? 1 : 0);
}

/* The list is stored: shows it. */
static int show(struct vb_topic *t, struct vb_slot *const *slots, size_t n, bool *changed)
{
    int32_t epoch = epoch_of(&t->state);
    size_t parts_n = n;

    if (shows(t, slots, n, epoch))
        return 0;
    struct gw_part **parts = mem_array(n == 0 ? 1 : n, sizeof(struct gw_part *));
    if (parts == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        parts[i] = gw_part_ref(slots[i]->part);
    int err = n == 0 ? parts_of_none(t, parts, &parts_n) : 0;
    if (err < 0) {
        mem_free(parts);
        return err;
    }
    drop_parts(&t->served);
    if (t->shown && t->served.epoch != epoch)
        log_event(LOG_WARN, "view.generation_raised", LF_STR("task", t->task),
                  LF_STR("topic", t->name), LF_INT("epoch", epoch));
    t->served.parts = parts;
    t->served.parts_n = parts_n;
    t->served.epoch = epoch;
    t->shown_n = n;
    view_topic_id(t->task, t->name, t->state.first.name == NULL ? "" : t->state.first.name,
                  t->state.first.create_revision, &t->served.id);
    t->shown = true;
    *changed = true;
    return 0;
}

/* 1: the binding's counter is stored or nothing is to be done; 0: it is on its way. */
static int judge_backfill(struct vb_topic *t)
{
    int32_t want = t->binding == NULL ? 0 : t->binding->backfill;
    struct topic_state next;

    if (want < t->state.backfill && t->binding != NULL && !t->backfill_warned) {
        t->backfill_warned = true;
        log_event(LOG_WARN, "view.backfill_lowered", LF_STR("topic", t->name),
                  LF_INT("catalog", want), LF_INT("kept", t->state.backfill));
    }
    if (want <= t->state.backfill)
        return 1;
    if (t->writing)
        return 0;
    int err = topic_state_with_backfill(&t->state, want, &next);
    if (err == 0)
        err = store_state(t, &next);
    return err;
}

static int judge_list(struct vb_topic *t, struct vb_slot *const *slots, size_t n, bool *changed)
{
    struct topic_state next;
    bool differs;
    int err = E_NOMEM;

    struct topic_pair *pairs = mem_array(n, sizeof *pairs);
    if (pairs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        pairs[i].name = slots[i]->journal->spec.name;
        pairs[i].create_revision = slots[i]->journal->create_revision;
        pairs[i].life = slots[i]->life;
    }
    if ((err = topic_state_next(&t->state, pairs, n, &next, &differs)) < 0)
        goto out;
    if (!differs) {
        topic_state_fini(&next);
        err = show(t, slots, n, changed);
    } else if (t->writing) {
        topic_state_fini(&next); /* looked at again when the write is answered */
    } else {
        err = store_state(t, &next);
    }
out:
    mem_free(pairs);
    return err;
}

static bool frontier_same(const struct gw_frontier *a, const struct gw_frontier *b)
{
    return a->truncated_at == b->truncated_at && a->begin == b->begin &&
           a->complete == b->complete && a->completed == b->completed;
}

/* Takes in one journal's label and markers. */
static void frontier_take(struct gw_frontier *f, const struct vb_slot *s)
{
    if (s->bound > f->truncated_at)
        f->truncated_at = s->bound;
    if (s->bound > f->begin)
        f->begin = s->bound;
    if (s->marks.begin > f->begin)
        f->begin = s->marks.begin;
    if (s->marks.complete > f->complete) {
        f->complete = s->marks.complete;
        f->completed = s->marks.completed;
    }
}

/* What may change while the list of journals stays: bound, labels, settings. */
static void refresh(struct vb_topic *t, const struct jc_journal *journal,
                    const struct gw_encoder *encoder, bool *changed)
{
    const struct gw_bound bound = {t->own_clock > t->label_clock ? t->own_clock : t->label_clock,
                                   t->binding == NULL ? UINT64_MAX : t->binding->bound.max_clock};
    bool signal = t->spec != NULL && t->spec->signal;

    struct gw_topic *g = &t->served;
    bool same = g->name != NULL && g->first == journal && g->encoder == encoder &&
                g->signal == signal && g->bound.min_clock == bound.min_clock &&
                g->bound.max_clock == bound.max_clock && frontier_same(&g->frontier, &t->frontier);
    if (same)
        return;
    const struct jc_journal *old = g->first;
    const struct gw_encoder *old_encoder = g->encoder;
    g->task = t->task;
    g->name = t->name;
    g->first = journal == NULL ? NULL : jc_journal_ref(journal);
    g->encoder = gw_encoder_ref(encoder);
    g->bound = bound;
    g->frontier = t->frontier;
    g->signal = signal;
    jc_journal_unref(old);
    gw_encoder_unref(old_encoder);
    *changed = true;
}

/* notBefore hides what was shown before, and a later one of the same life never shows it again:
 * clients that read past it would have to go back. A raised backfill is a new life. */
static void take_own_clock(struct vb_topic *t)
{
    uint64_t clock = t->binding == NULL ? 0 : t->binding->bound.min_clock;
    int32_t life = t->binding == NULL ? 0 : t->binding->backfill;

    if (clock > t->own_clock || life > t->state.backfill)
        t->own_clock = clock;
}

int vb_topic_apply(struct vb_topic *t, struct vb_slot *const *slots, size_t n, bool *changed)
{
    bool known = true;
    int err = 0;

    t->failed = false;
    if (t->damaged)
        return 0;
    t->journals_n = n;
    take_own_clock(t);
    for (size_t i = 0; i < n; i++) {
        if (slots[i]->bound > t->label_clock)
            t->label_clock = slots[i]->bound;
        known = known && slots[i]->known;
        frontier_take(&t->frontier, slots[i]);
    }
    /* What a shown topic must have, before anything of it is shown. */
    const struct jc_journal *first = n == 0 ? NULL : slots[0]->journal;
    const struct gw_encoder *encoder = vb_encoder_for(t, n == 0 ? NULL : &first->spec);
    if (encoder == NULL)
        return E_NOMEM;
    if ((err = judge_backfill(t)) < 0)
        return err;
    if (err == 1 && n == 0) /* what is stored of an earlier list stays, so the epoch does */
        err = show(t, slots, 0, changed);
    else if (err == 1)
        err = known ? judge_list(t, slots, n, changed) : 0;
    if (err < 0)
        return err;
    /* A bound takes effect at once, also while a longer list waits for its heads. */
    if (t->shown)
        refresh(t, first, encoder, changed);
    return 0;
}
