/*
 * A slot per key holds the finished entry, the load that runs for it, or both. All of a slot is
 * under its shard's lock; loads read and encode without any lock. A load never holds references to
 * those who wait, it lists them: cancelling is unlinking. Who asks for more than a running load
 * will have read stays in the list and is served by a second round, so that nobody is answered from
 * before the data that he knows to exist. Refuses to keep entries larger than the budget.
 */
#include "gateway/cache.h"

#include <pthread.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/block_build.h"
#include "gateway/metrics.h"

#define SHARDS        16
#define FIRST_BUCKETS 64
/* A growing block that came in many small appends is rebuilt into large batches once it has this
 * many: a reader of old data should not receive thousands of tiny ones. */
#define COMPACT_BATCHES 512
/* ... except for the latest: who is no further behind gets nothing twice (docs/protocol.md) */
#define KEEP_CUTS 256

/* lock: cache shard */
struct slot {
    LIST_ENTRY(slot) bucket;
    TAILQ_ENTRY(slot) clock; /* linked while entry is set */
    struct gw_cache_key key;
    uint64_t hash;
    struct gw_blockbatches *entry; /* owned reference; NULL while the first load runs */
    struct load *load;             /* running, or NULL */
    bool used;                     /* second chance */
};

LIST_HEAD(bucket, slot);
TAILQ_HEAD(wait_list, gw_cache_wait);

struct shard {
    pthread_mutex_t lock; /* leaf */
    struct bucket *buckets;
    size_t buckets_n; /* power of two */
    size_t slots_n;
    TAILQ_HEAD(, slot) clock;
};

/* lock: cache shard until it is delivered, then its executor's thread */
struct gw_cache_wait {
    struct task task; /* first member */
    TAILQ_ENTRY(gw_cache_wait) link;
    struct shard *shard;
    struct load *load; /* NULL once delivered */
    struct executor *ex;
    gw_cache_fn *done;
    void *arg;
    int64_t need_to;
    bool late; /* joined a load that had begun already */
    bool canceled;
    int err;
    struct gw_blockbatches *entry;
};

/* Owner: the running operation; the list of waits is under the shard's lock. */
struct load {
    struct gw_cache *cache;
    struct shard *shard;
    struct slot *slot;
    struct gw_part *part; /* owned reference */
    const struct gw_encoder *encoder;
    struct gw_blockbatches *old; /* to be extended; owned reference or NULL */
    struct gw_lead lead;         /* what the block's first visible record tells */
    int64_t misfits;             /* of this round */
    struct wait_list waits;
};

struct gw_cache {
    struct jc_store *store;
    struct jobpool *loads;
    size_t budget;
    _Atomic size_t bytes;
    atomic_uint hand; /* the shard that gives up an entry next */
    pthread_mutex_t idle_lock;
    pthread_cond_t idle;
    size_t running; /* idle_lock */
    struct shard shards[SHARDS];
};

static void start_load(struct load *l);

static uint64_t key_hash(const struct gw_cache_key *k)
{
    const uint64_t words[] = {k->part_id,
                              (uint64_t)k->block,
                              ((uint64_t)k->encoder_id << 8) | (uint64_t)k->codec,
                              k->bound.min_clock,
                              k->bound.max_clock,
                              k->signal.on,
                              k->signal.truncated_at,
                              k->signal.complete,
                              k->signal.marks.begin,
                              k->signal.marks.complete};

    return hash_bytes(span_of(words, sizeof words), 0);
}

static bool key_eq(const struct gw_cache_key *a, const struct gw_cache_key *b)
{
    return a->part_id == b->part_id && a->block == b->block && a->encoder_id == b->encoder_id &&
           a->codec == b->codec && a->bound.min_clock == b->bound.min_clock &&
           a->bound.max_clock == b->bound.max_clock && gw_signal_eq(&a->signal, &b->signal);
}

static struct gw_cache_key key_of(const struct gw_cache_ask *ask)
{
    return (struct gw_cache_key){.part_id = ask->part->id,
                                 .block = ask->block,
                                 .encoder_id = ask->encoder->id,
                                 .codec = ask->codec,
                                 .bound = ask->bound,
                                 .signal = ask->signal};
}

static struct shard *shard_of(struct gw_cache *c, uint64_t hash)
{
    return &c->shards[hash >> 60];
}

static bool enough(const struct gw_blockbatches *e, int64_t need_to)
{
    return e->sealed || e->read_to >= need_to;
}

/* --- slots: shard lock held --- */

static struct slot *slot_find(struct shard *s, const struct gw_cache_key *key, uint64_t hash)
{
    struct slot *slot;

    LIST_FOREACH(slot, &s->buckets[hash & (s->buckets_n - 1)], bucket)
    {
        if (slot->hash == hash && key_eq(&slot->key, key))
            return slot;
    }
    return NULL;
}

/* Chains stay short; when memory is out they grow longer instead. */
static void maybe_grow(struct shard *s)
{
    size_t n = s->buckets_n * 2;
    struct bucket *grown;

    if (s->slots_n < n || (grown = mem_array(n, sizeof *grown)) == NULL)
        return;
    for (size_t i = 0; i < s->buckets_n; i++) {
        struct slot *slot;
        while ((slot = LIST_FIRST(&s->buckets[i])) != NULL) {
            LIST_REMOVE(slot, bucket);
            LIST_INSERT_HEAD(&grown[slot->hash & (n - 1)], slot, bucket);
        }
    }
    mem_free(s->buckets);
    s->buckets = grown;
    s->buckets_n = n;
}

static struct slot *slot_new(struct shard *s, const struct gw_cache_key *key, uint64_t hash)
{
    struct slot *slot = mem_zalloc(sizeof *slot);

    if (slot == NULL)
        return NULL;
    maybe_grow(s);
    slot->key = *key;
    slot->hash = hash;
    LIST_INSERT_HEAD(&s->buckets[hash & (s->buckets_n - 1)], slot, bucket);
    s->slots_n++;
    return slot;
}

/* Frees the slot unless it is still good for something. */
static void slot_drop_if_empty(struct shard *s, struct slot *slot)
{
    if (slot->entry != NULL || slot->load != NULL)
        return;
    LIST_REMOVE(slot, bucket);
    s->slots_n--;
    mem_free(slot);
}

static size_t entry_cost(const struct gw_blockbatches *e)
{
    return e->bytes + sizeof(struct slot);
}

static void account(struct gw_cache *c, size_t plus, size_t minus)
{
    atomic_fetch_add_explicit(&c->bytes, plus - minus, memory_order_relaxed);
    metric_add(M_CACHE_BYTES, (int64_t)plus - (int64_t)minus);
}

/* Puts an entry (NULL: none) into the slot and returns the one that stood there; its reference
 * passes to the caller. */
static struct gw_blockbatches *slot_set(struct gw_cache *c, struct shard *s, struct slot *slot,
                                        struct gw_blockbatches *e)
{
    struct gw_blockbatches *before = slot->entry;

    if (before != NULL && e == NULL)
        TAILQ_REMOVE(&s->clock, slot, clock);
    if (before == NULL && e != NULL)
        TAILQ_INSERT_TAIL(&s->clock, slot, clock);
    slot->entry = e;
    slot->used = e != NULL;
    account(c, e == NULL ? 0 : entry_cost(e), before == NULL ? 0 : entry_cost(before));
    return before;
}

/* --- eviction --- */

/* One entry of the shard that nobody asked for since the hand last passed. */
static struct gw_blockbatches *evict_from(struct gw_cache *c, struct shard *s)
{
    struct gw_blockbatches *victim = NULL;
    struct slot *slot;

    pthread_mutex_lock(&s->lock);
    while ((slot = TAILQ_FIRST(&s->clock)) != NULL) {
        if (!slot->used) {
            victim = slot_set(c, s, slot, NULL);
            slot_drop_if_empty(s, slot);
            break;
        }
        slot->used = false;
        TAILQ_REMOVE(&s->clock, slot, clock);
        TAILQ_INSERT_TAIL(&s->clock, slot, clock);
    }
    pthread_mutex_unlock(&s->lock);
    return victim;
}

static void evict(struct gw_cache *c)
{
    unsigned empty = 0;

    while (gw_cache_bytes(c) > c->budget && empty < SHARDS) {
        unsigned i = atomic_fetch_add_explicit(&c->hand, 1, memory_order_relaxed) % SHARDS;
        struct gw_blockbatches *victim = evict_from(c, &c->shards[i]);

        empty = victim == NULL ? empty + 1 : 0;
        if (victim != NULL)
            metric_add(M_CACHE_EVICTIONS, 1);
        gw_blockbatches_unref(victim);
    }
}

/* --- loads --- */

static void wait_run(struct task *t)
{
    struct gw_cache_wait *w = (struct gw_cache_wait *)t; /* first member */

    if (w->canceled)
        gw_blockbatches_unref(w->entry);
    else
        w->done(w->arg, w->err, w->entry);
    mem_free(w);
}

static void running_add(struct gw_cache *c)
{
    pthread_mutex_lock(&c->idle_lock);
    c->running++;
    pthread_mutex_unlock(&c->idle_lock);
}

static void running_sub(struct gw_cache *c)
{
    pthread_mutex_lock(&c->idle_lock);
    if (--c->running == 0)
        pthread_cond_broadcast(&c->idle);
    pthread_mutex_unlock(&c->idle_lock);
}

static void load_free(struct load *l)
{
    struct gw_cache *c = l->cache;

    gw_blockbatches_unref(l->old);
    gw_part_unref(l->part);
    gw_encoder_unref(l->encoder);
    mem_free(l);
    running_sub(c);
}

/* Moves those whom this outcome serves from the load to `ready`. Shard lock held. */
static void serve(struct load *l, int err, struct gw_blockbatches *e, struct wait_list *ready)
{
    struct gw_cache_wait *w, *next;

    for (w = TAILQ_FIRST(&l->waits); w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (err == 0 && w->late && !enough(e, w->need_to)) {
            w->late = false; /* the next round begins after its question: it will do */
            continue;
        }
        TAILQ_REMOVE(&l->waits, w, link);
        w->load = NULL;
        w->err = err;
        w->entry = err == 0 ? gw_blockbatches_ref(e) : NULL;
        TAILQ_INSERT_TAIL(ready, w, link);
    }
}

/* Ends a round: serves, keeps the entry, and starts another round for those who need more. Takes
 * over the reference of e. */
static void load_done(struct load *l, int err, struct gw_blockbatches *e)
{
    struct wait_list ready = TAILQ_HEAD_INITIALIZER(ready);
    struct gw_cache *c = l->cache;
    struct shard *s = l->shard;
    struct gw_blockbatches *replaced = NULL;
    struct gw_cache_wait *w;
    /* what is damaged now may be readable the next time */
    bool keep = e != NULL && e->damaged_n == 0 && entry_cost(e) <= c->budget;

    pthread_mutex_lock(&s->lock);
    serve(l, err, e, &ready);
    if (keep)
        replaced = slot_set(c, s, l->slot, gw_blockbatches_ref(e));
    bool again = !TAILQ_EMPTY(&l->waits);
    if (!again) {
        l->slot->load = NULL;
        slot_drop_if_empty(s, l->slot);
    }
    pthread_mutex_unlock(&s->lock);

    while ((w = TAILQ_FIRST(&ready)) != NULL) {
        TAILQ_REMOVE(&ready, w, link);
        executor_post(w->ex, &w->task);
    }
    gw_blockbatches_unref(replaced);
    if (keep)
        evict(c);
    if (again) {
        gw_blockbatches_unref(l->old);
        l->old = NULL;
        if (e != NULL && e->damaged_n > 0)
            gw_blockbatches_unref(e); /* nothing to go on from */
        else
            l->old = e;
        start_load(l);
        return;
    }
    gw_blockbatches_unref(e);
    load_free(l);
}

/* The first one of a round is told of, all are counted. */
static void on_misfit(void *arg, int64_t offset, const struct sc_transcode_error *why)
{
    static const char *const effects[] = {"partition stops", "left out", "served as stored"};
    struct load *l = arg;

    if (l->misfits++ > 0)
        return;
    if (l->encoder->misfit == GW_MISFIT_STOP)
        gw_part_refuse(l->part, l->encoder->id, offset, why->pointer, why->reason);
    log_peer(LOG_ERROR, "schema.misfit", LF_STR("journal", l->part->journal->spec.name),
             LF_INT("offset", offset), LF_STR("pointer", why->pointer),
             LF_STR("reason", why->reason), LF_STR("effect", effects[l->encoder->misfit]));
}

/* Readers stand where an append ended that they were served: no batch of the rebuilt entry may
 * reach over the last of those, or they would be sent records twice. */
static size_t keep_cuts(const struct gw_blockbatches *old, int64_t cuts[KEEP_CUTS + 1])
{
    size_t first = old->n > KEEP_CUTS ? old->n - KEEP_CUTS : 0, n = 0;

    for (size_t i = first; i < old->n; i++)
        cuts[n++] = old->batches[i].last_offset + 1;
    if (n == 0 || old->read_to > cuts[n - 1])
        cuts[n++] = old->read_to;
    return n;
}

/* A thread of the load pool. */
static void block_arrived(void *arg, int err, struct jc_block *block)
{
    struct load *l = arg;
    struct gw_blockbatches *e = NULL;
    const struct gw_blockbatches *old = l->old;
    int64_t cuts[KEEP_CUTS + 1];
    struct gw_build how = {.bound = l->slot->key.bound,
                           .key = l->encoder->key,
                           .codec = l->slot->key.codec,
                           .signal = l->slot->key.signal.on,
                           .lead = l->lead,
                           .avro = l->encoder->avro == NULL ? NULL : l->encoder->avro->avro,
                           .avro_key = l->encoder->avro_key,
                           .avro_value = l->encoder->avro_value,
                           .bare_key = l->encoder->bare_key,
                           .misfit = l->encoder->misfit,
                           .on_misfit = on_misfit,
                           .arg = l};

    if (err == 0) {
        if (old != NULL && old->n >= COMPACT_BATCHES) {
            how.cuts = cuts;
            how.cuts_n = keep_cuts(old, cuts);
            old = NULL;
        } else if (old != NULL) {
            how.from = old->read_to;
        }
        l->misfits = 0;
        err = gw_block_build(&how, block, old, &e);
        metric_add(M_SCHEMA_MISFITS, l->misfits);
        jc_block_fini(block);
    }
    if (err == 0) {
        int64_t documents = 0, bytes = 0;
        for (size_t i = old == NULL ? 0 : old->n; i < e->n; i++) {
            documents += e->batches[i].records;
            bytes += e->batches[i].last_offset - e->batches[i].base_offset + 1;
        }
        metric_add(M_CONVERTED_DOCUMENTS, documents);
        metric_add(M_CONVERTED_BYTES, bytes);
        if (e->damaged_n > 0) {
            metric_add(M_STORE_ERRORS, 1);
            log_peer(LOG_WARN, "cache.block_damaged",
                     LF_STR("journal", l->part->journal->spec.name),
                     LF_INT("begin", e->damaged[0].begin), LF_INT("end", e->damaged[0].end));
        }
    } else if (err != E_NOTFOUND) {
        metric_add(M_STORE_ERRORS, 1);
        log_peer(LOG_WARN, "cache.load_failed", LF_STR("journal", l->part->journal->spec.name),
                 LF_INT("block", l->slot->key.block), LF_ERR(err));
    }
    load_done(l, err, e);
}

static void read_block(struct load *l)
{
    bool whole = l->old == NULL || l->old->n >= COMPACT_BATCHES;
    struct jc_block_req rq = {.journal = l->part->journal,
                              .block = l->slot->key.block,
                              .from = whole ? 0 : l->old->read_to,
                              .partial = true};
    struct jc_op *op = NULL;
    struct jc_store *store = l->cache->store;

    metric_add(M_CACHE_MISSES, 1);
    int err = store->ops->read_block(store, &rq, jobpool_executor(l->cache->loads), block_arrived,
                                     l, &op);
    if (err < 0)
        load_done(l, err, NULL);
}

static void lead_found(void *arg, int err, const struct gw_lead *lead)
{
    struct load *l = arg;

    l->lead = *lead;
    if (err < 0)
        load_done(l, err, NULL);
    else
        read_block(l);
}

/* No lock held. The outcome always comes through load_done. */
static void start_load(struct load *l)
{
    const struct gw_cache_key *key = &l->slot->key;

    if (!key->signal.on) {
        read_block(l);
        return;
    }
    int err = gw_lead_find(l->cache->store, l->part->journal, key->block, &key->bound, &key->signal,
                           jobpool_executor(l->cache->loads), lead_found, l);
    if (err < 0)
        load_done(l, err, NULL);
}

/* --- asking --- */

/* What an ask found. Shard lock held. *start: a new load that the caller must start. */
static int ask_locked(struct gw_cache *c, struct shard *s, const struct gw_cache_key *key,
                      uint64_t hash, const struct gw_cache_ask *ask, struct gw_cache_wait *w,
                      struct load **start, struct gw_blockbatches **out)
{
    struct slot *slot = slot_find(s, key, hash);

    if (slot != NULL && slot->entry != NULL && enough(slot->entry, ask->need_to)) {
        slot->used = true;
        *out = gw_blockbatches_ref(slot->entry);
        return 0;
    }
    if (slot == NULL || slot->load == NULL) {
        struct load *l = mem_zalloc(sizeof *l);

        if (l == NULL || (slot == NULL && (slot = slot_new(s, key, hash)) == NULL)) {
            mem_free(l);
            return E_NOMEM;
        }
        l->cache = c;
        l->shard = s;
        l->slot = slot;
        l->part = gw_part_ref(ask->part);
        l->encoder = gw_encoder_ref(ask->encoder);
        l->old = slot->entry == NULL ? NULL : gw_blockbatches_ref(slot->entry);
        TAILQ_INIT(&l->waits);
        slot->load = l;
        *start = l;
    }
    if (w != NULL) {
        w->load = slot->load;
        w->late = *start == NULL;
        TAILQ_INSERT_TAIL(&slot->load->waits, w, link);
    }
    return 0;
}

int gw_cache_get(struct gw_cache *c, const struct gw_cache_ask *ask, struct executor *ex,
                 gw_cache_fn *done, void *arg, struct gw_blockbatches **out,
                 struct gw_cache_wait **wait)
{
    struct gw_cache_key key = key_of(ask);
    uint64_t hash = key_hash(&key);
    struct shard *s = shard_of(c, hash);
    struct load *start = NULL;

    *wait = NULL;
    if ((*out = gw_cache_peek(c, ask)) != NULL) {
        metric_add(M_CACHE_HITS, 1);
        return 0;
    }
    struct gw_cache_wait *w = mem_zalloc(sizeof *w);
    if (w == NULL)
        return E_NOMEM;
    w->task.run = wait_run;
    w->shard = s;
    w->ex = ex;
    w->done = done;
    w->arg = arg;
    w->need_to = ask->need_to;

    pthread_mutex_lock(&s->lock);
    int err = ask_locked(c, s, &key, hash, ask, w, &start, out);
    pthread_mutex_unlock(&s->lock);
    if (start != NULL)
        running_add(c);
    if (err < 0 || *out != NULL) {
        mem_free(w);
        return err;
    }
    *wait = w;
    if (start != NULL)
        start_load(start);
    return 0;
}

void gw_cache_cancel(struct gw_cache_wait *w)
{
    pthread_mutex_lock(&w->shard->lock);
    bool listed = w->load != NULL;
    if (listed)
        TAILQ_REMOVE(&w->load->waits, w, link);
    pthread_mutex_unlock(&w->shard->lock);
    if (listed)
        mem_free(w);
    else
        w->canceled = true; /* its task is on the way to this thread and will free it */
}

struct gw_blockbatches *gw_cache_peek(struct gw_cache *c, const struct gw_cache_ask *ask)
{
    struct gw_cache_key key = key_of(ask);
    uint64_t hash = key_hash(&key);
    struct shard *s = shard_of(c, hash);
    struct gw_blockbatches *e = NULL;

    pthread_mutex_lock(&s->lock);
    struct slot *slot = slot_find(s, &key, hash);
    if (slot != NULL && slot->entry != NULL && enough(slot->entry, ask->need_to)) {
        slot->used = true;
        e = gw_blockbatches_ref(slot->entry);
    }
    pthread_mutex_unlock(&s->lock);
    return e;
}

void gw_cache_prefetch(struct gw_cache *c, const struct gw_cache_ask *ask)
{
    struct gw_cache_key key = key_of(ask);
    uint64_t hash = key_hash(&key);
    struct shard *s = shard_of(c, hash);
    struct gw_blockbatches *there = NULL;
    struct load *start = NULL;

    pthread_mutex_lock(&s->lock);
    int err = ask_locked(c, s, &key, hash, ask, NULL, &start, &there);
    pthread_mutex_unlock(&s->lock);
    if (start != NULL)
        running_add(c);
    gw_blockbatches_unref(there);
    if (err == 0 && start != NULL)
        start_load(start);
}

size_t gw_cache_bytes(const struct gw_cache *c)
{
    return atomic_load_explicit(&c->bytes, memory_order_relaxed);
}

/* --- life --- */

int gw_cache_new(size_t budget_bytes, struct jc_store *store, struct jobpool *loads,
                 struct gw_cache **out)
{
    struct gw_cache *c = mem_zalloc(sizeof *c);
    size_t i;

    *out = NULL;
    if (c == NULL)
        return E_NOMEM;
    c->store = store;
    c->loads = loads;
    c->budget = budget_bytes;
    for (i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        if ((s->buckets = mem_array(FIRST_BUCKETS, sizeof *s->buckets)) == NULL)
            break;
        s->buckets_n = FIRST_BUCKETS;
        TAILQ_INIT(&s->clock);
        pthread_mutex_init(&s->lock, NULL);
    }
    if (i < SHARDS) {
        while (i-- > 0) {
            pthread_mutex_destroy(&c->shards[i].lock);
            mem_free(c->shards[i].buckets);
        }
        mem_free(c);
        return E_NOMEM;
    }
    pthread_mutex_init(&c->idle_lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    *out = c;
    return 0;
}

void gw_cache_free(struct gw_cache *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->idle_lock);
    while (c->running > 0)
        pthread_cond_wait(&c->idle, &c->idle_lock);
    pthread_mutex_unlock(&c->idle_lock);

    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        struct slot *slot;

        while ((slot = TAILQ_FIRST(&s->clock)) != NULL) {
            gw_blockbatches_unref(slot_set(c, s, slot, NULL));
            slot_drop_if_empty(s, slot);
        }
        ASSERT(s->slots_n == 0);
        pthread_mutex_destroy(&s->lock);
        mem_free(s->buckets);
    }
    pthread_cond_destroy(&c->idle);
    pthread_mutex_destroy(&c->idle_lock);
    mem_free(c);
}
