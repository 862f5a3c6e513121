/*
 * What all workers share about one journal: its heads, as the maximum of everything that was ever
 * seen. The lock is a leaf. Any thread.
 */
#include "gateway/part.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>

static _Atomic uint64_t next_id = 1;

int gw_part_new(const struct jc_journal *j, struct gw_part **out)
{
    *out = NULL;
    struct gw_part *p = mem_zalloc(sizeof *p);

    if (p == NULL)
        return E_NOMEM;
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        mem_free(p);
        return E_NOMEM;
    }
    atomic_init(&p->refs, 1);
    atomic_init(&p->lost, false);
    p->journal = jc_journal_ref(j);
    p->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    *out = p;
    return 0;
}

int gw_part_new_empty(struct gw_part **out)
{
    const struct jc_spec nameless = {.name = ""};
    const struct jc_journal *j;
    int err = jc_journal_new(&nameless, 0, 0, &j);

    *out = NULL;
    if (err < 0)
        return err;
    err = gw_part_new(j, out);
    jc_journal_unref(j);
    if (err < 0)
        return err;
    (*out)->empty = true;
    (*out)->known = true;
    return 0;
}

struct gw_part *gw_part_ref(struct gw_part *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void gw_part_unref(struct gw_part *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    jc_journal_unref(p->journal);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

static void raise64(int64_t *field, int64_t v)
{
    if (v > *field)
        *field = v;
}

void gw_part_update(struct gw_part *p, const struct jc_heads *heads)
{
    pthread_mutex_lock(&p->lock);
    if (p->known && heads->life != p->heads.life) {
        /* Older news that come late are no loss. */
        if (heads->life > p->heads.life)
            atomic_store_explicit(&p->lost, true, memory_order_relaxed);
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->heads.life = heads->life;
    if (heads->settle > p->heads.settle)
        p->heads.settle = heads->settle;
    raise64(&p->heads.first, heads->first);
    raise64(&p->heads.log_start, heads->log_start);
    raise64(&p->heads.content_end, heads->content_end);
    raise64(&p->heads.write_head, heads->write_head);
    if (heads->max_clock > p->heads.max_clock)
        p->heads.max_clock = heads->max_clock;
    (void)jc_marks_merge(&p->heads.marks, &heads->marks);
    p->known = true;
    pthread_mutex_unlock(&p->lock);
}

void gw_part_raise(struct gw_part *p, int64_t content_end, const struct jc_marks *marks,
                   int64_t log_start)
{
    pthread_mutex_lock(&p->lock);
    raise64(&p->heads.content_end, content_end);
    (void)jc_marks_merge(&p->heads.marks, marks);
    raise64(&p->heads.write_head, content_end);
    raise64(&p->heads.log_start, log_start);
    raise64(&p->heads.content_end, log_start);
    raise64(&p->heads.first, log_start);
    raise64(&p->heads.write_head, log_start);
    pthread_mutex_unlock(&p->lock);
}

bool gw_part_heads(struct gw_part *p, struct jc_heads *out)
{
    pthread_mutex_lock(&p->lock);
    bool known = p->known;
    *out = p->heads;
    pthread_mutex_unlock(&p->lock);
    return known;
}

void gw_part_refuse(struct gw_part *p, uint32_t encoder_id, int64_t offset, const char *pointer,
                    const char *reason)
{
    struct gw_refusal *r = &p->refusal;

    pthread_mutex_lock(&p->lock);
    if (r->reason == NULL || p->refused_by != encoder_id || offset < r->offset) {
        p->refused_by = encoder_id;
        r->offset = offset;
        r->reason = reason;
        (void)snprintf(r->pointer, sizeof r->pointer, "%s", pointer);
    }
    pthread_mutex_unlock(&p->lock);
}

bool gw_part_refusal(struct gw_part *p, uint32_t encoder_id, struct gw_refusal *out)
{
    pthread_mutex_lock(&p->lock);
    bool there = p->refusal.reason != NULL && p->refused_by == encoder_id &&
                 p->refusal.offset >= p->heads.first;
    *out = p->refusal;
    pthread_mutex_unlock(&p->lock);
    return there;
}
