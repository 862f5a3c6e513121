/*
 * What an open journal costs, bounded over all of them. The rings of tails share a budget: whoever
 * used its own least recently loses it. A journal that nobody waits for or reads falls asleep: its
 * tail stream and its ring go, its heads and its index stay, and a short read every few seconds
 * brings them up to date. Whoever wants it wakes it, and is told of heads only when they are fresh.
 *
 * Home thread.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define RING_BYTES (512u << 10) /* of one journal */
#define POLL_MS    5000         /* of one that sleeps */

static _Atomic int64_t rings_total;
static _Atomic int64_t tails_open;

void jc_gazette_tail_stats(int64_t *ring_bytes, int64_t *open)
{
    *ring_bytes = atomic_load_explicit(&rings_total, memory_order_relaxed);
    *open = atomic_load_explicit(&tails_open, memory_order_relaxed);
}

void gz_count_tail(int n)
{
    atomic_fetch_add_explicit(&tails_open, n, memory_order_relaxed);
}

/* --- rings --- */

static void count(struct gz_journal *j, int64_t bytes)
{
    j->ring_bytes += bytes;
    j->store->ring_bytes += bytes;
    atomic_fetch_add_explicit(&rings_total, bytes, memory_order_relaxed);
}

static void drop_first(struct gz_journal *j)
{
    struct gz_tail_blob *b = STAILQ_FIRST(&j->ring);

    STAILQ_REMOVE_HEAD(&j->ring, link);
    count(j, -(int64_t)(b->bytes->cap + sizeof *b));
    blob_unref(b->bytes);
    mem_free(b);
}

void gz_ring_drop(struct gz_journal *j)
{
    if (STAILQ_EMPTY(&j->ring))
        return;
    while (!STAILQ_EMPTY(&j->ring))
        drop_first(j);
    TAILQ_REMOVE(&j->store->rings, j, ring_link);
}

void gz_ring_used(struct gz_journal *j)
{
    TAILQ_REMOVE(&j->store->rings, j, ring_link);
    TAILQ_INSERT_TAIL(&j->store->rings, j, ring_link);
}

void gz_ring_add(struct gz_journal *j, int64_t at, struct blob *bytes)
{
    struct gz_store *s = j->store;
    struct gz_tail_blob *b = mem_alloc(sizeof *b);

    if (b == NULL || j->asleep) { /* it is only a cache, but it must be without gaps */
        mem_free(b);
        blob_unref(bytes);
        gz_ring_drop(j);
        return;
    }
    *b = (struct gz_tail_blob){.at = at, .bytes = bytes};
    if (STAILQ_EMPTY(&j->ring))
        TAILQ_INSERT_TAIL(&s->rings, j, ring_link);
    else
        gz_ring_used(j);
    STAILQ_INSERT_TAIL(&j->ring, b, link);
    count(j, (int64_t)(bytes->cap + sizeof *b));
    while (s->ring_bytes > s->tail_bytes && TAILQ_FIRST(&s->rings) != j)
        gz_ring_drop(TAILQ_FIRST(&s->rings));
    while ((j->ring_bytes > (int64_t)RING_BYTES || s->ring_bytes > s->tail_bytes) &&
           STAILQ_NEXT(STAILQ_FIRST(&j->ring), link) != NULL)
        drop_first(j);
}

/* --- sleep --- */

static void set_stale(struct gz_journal *j, bool stale)
{
    pthread_mutex_lock(&j->store->hub.lock);
    bool was = j->hub.stale;
    j->hub.stale = stale;
    if (was && !stale)
        jc_notify_followers(&j->hub); /* some of them were told nothing yet */
    pthread_mutex_unlock(&j->store->hub.lock);
}

static bool in_use(struct gz_journal *j)
{
    bool used;

    pthread_mutex_lock(&j->store->hub.lock);
    used = !TAILQ_EMPTY(&j->hub.waiters) || jc_followed_closely(&j->hub);
    pthread_mutex_unlock(&j->store->hub.lock);
    return used;
}

static void fall_asleep(struct gz_journal *j)
{
    gz_tail_stop(j);
    gz_ring_drop(j);
    j->asleep = true;
    set_stale(j, true);
    /* Not all at once. */
    gz_arm(j->timer, POLL_MS / 2 + (int64_t)((uintptr_t)j / 64 % (POLL_MS / 2)));
}

void gz_wake_up(struct gz_journal *j)
{
    j->used_ms = gz_mono_ms(j->store);
    if (!j->asleep)
        return;
    j->asleep = false;
    if (j->call == NULL) {
        (void)event_del(j->timer);
        gz_tail_start(j);
    } /* else a short read is under way, which does */
}

bool gz_stale(const struct gz_journal *j)
{
    return j->hub.stale; /* written by this thread alone */
}

static void run_fresh(struct task *t)
{
    struct gz_journal *j =
        (struct gz_journal *)(void *)((char *)t - offsetof(struct gz_journal, fresh));

    j->fresh_waits = false;
    if (j->state == GZ_J_TAIL && !j->asleep) {
        set_stale(j, false);
        gz_ops_ready(&j->starting, 0);
        gz_fresh_next(j);
        if (j->call == NULL)
            gz_tail_start(j);
    }
    gz_journal_unref(j);
}

void gz_fresh(struct gz_journal *j)
{
    gz_fresh_came(j);
    if (j->asleep) {
        gz_arm(j->timer, POLL_MS);
    } else if (!j->fresh_waits) {
        /* What the short read brought is told first. */
        (void)gz_journal_ref(j);
        j->fresh_waits = true;
        j->fresh.run = run_fresh;
        gz_told_then(j->store, &j->fresh);
    }
}

void gz_idle_tick(struct gz_store *s)
{
    const struct jc_listing *l = s->hub.listing;
    int64_t now = gz_mono_ms(s);

    for (size_t i = 0; l != NULL && i < l->n; i++) {
        struct gz_journal *j = gz_of(l->items[i]);
        gz_fresh_tick(j);
        if (j->state == GZ_J_TAIL && !j->asleep && j->opened)
            gz_first_look(j, s->start_ms);
        if (j->state != GZ_J_TAIL || j->asleep || gz_stale(j) || !j->opened || j->searching ||
            j->scanning || !j->confirmed || now - j->used_ms < s->idle_ms)
            continue;
        if (in_use(j))
            j->used_ms = now;
        else
            fall_asleep(j);
    }
}
