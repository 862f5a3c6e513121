/*
 * The batch cache under several worker threads: asks, cancels, prefetches and evictions of the same
 * blocks while the journal grows. Every answer must be whole: read as far as was asked, batches
 * rising without a gap. For ThreadSanitizer; loops are bounded.
 */
#include "tests/unit/gateway/fake_store.h"

#include "base/jobpool.h"
#include "base/mailbox.h"
#include "gateway/cache.h"
#include "journal_client/uuid.h"

#define WORKERS 4
#define ROUNDS  400
#define LINE    700 /* bytes of each document */

static struct fake_store *store;
static struct fake_journal *journal;
static struct gw_cache *cache;
static struct gw_part *part;
static struct gw_encoder encoder = {.id = 1};
static atomic_uint wrong;

struct asker {
    struct mailbox mb;
    uint64_t seed;
    unsigned answers;
    unsigned asked;
    int64_t need_to[16];
};

struct question {
    struct asker *a;
    int64_t block;
    int64_t need_to;
    struct gw_cache_wait *wait;
};

static uint64_t rnd(struct asker *a, uint64_t below)
{
    a->seed ^= a->seed << 13;
    a->seed ^= a->seed >> 7;
    a->seed ^= a->seed << 17;
    return (a->seed >> 11) % below;
}

static void check(const struct question *q, struct gw_blockbatches *e)
{
    /* offset of the document before the block's first one */
    int64_t last = (q->block * JC_BLOCK_BYTES + LINE) / LINE * LINE - 1 - LINE;

    if (!e->sealed && e->read_to < q->need_to)
        atomic_fetch_add(&wrong, 1);
    for (size_t i = 0; i < e->n; i++) {
        if (e->batches[i].base_offset != last + LINE ||
            e->batches[i].last_offset < e->batches[i].base_offset)
            atomic_fetch_add(&wrong, 1);
        last = e->batches[i].last_offset;
    }
    if (last + 1 + LINE <= (e->read_to < q->need_to ? e->read_to : q->need_to))
        atomic_fetch_add(&wrong, 1); /* a document is missing */
    gw_blockbatches_unref(e);
}

static void on_entry(void *arg, int err, struct gw_blockbatches *entry)
{
    struct question *q = arg;

    q->wait = NULL;
    q->a->answers++;
    if (err < 0)
        atomic_fetch_add(&wrong, 1);
    else
        check(q, entry);
}

static void *worker_main(void *arg)
{
    struct asker *a = arg;
    struct question q[8];

    for (int round = 0; round < ROUNDS; round++) {
        struct jc_heads heads;
        size_t n = 0;

        (void)gw_part_heads(part, &heads);
        int64_t blocks = heads.write_head / JC_BLOCK_BYTES + 1;
        for (; n < 8; n++) {
            int64_t block = rnd(a, 2) ? blocks - 1 : (int64_t)rnd(a, (uint64_t)blocks);
            int64_t end = (block + 1) * JC_BLOCK_BYTES;
            struct gw_blockbatches *e = NULL;

            q[n] = (struct question){
                .a = a, .block = block, .need_to = end < heads.write_head ? end : heads.write_head};
            const struct gw_cache_ask ask = {.part = part,
                                             .encoder = &encoder,
                                             .bound = {0, UINT64_MAX},
                                             .block = block,
                                             .need_to = q[n].need_to};
            if (rnd(a, 8) == 0)
                gw_cache_prefetch(cache, &ask);
            if (gw_cache_get(cache, &ask, &a->mb.ex, on_entry, &q[n], &e, &q[n].wait) < 0)
                atomic_fetch_add(&wrong, 1);
            if (e != NULL)
                check(&q[n], e);
        }
        for (size_t i = 0; i < n; i++) {
            if (q[i].wait != NULL && rnd(a, 3) == 0) {
                gw_cache_cancel(q[i].wait);
                q[i].wait = NULL;
            }
        }
        for (size_t i = 0; i < n; i++) {
            while (q[i].wait != NULL)
                (void)mailbox_wait(&a->mb, 100);
        }
    }
    return NULL;
}

static void append(int i)
{
    const struct jc_uuid u = {.clock = (UINT64_C(0x1e5f00000000000) + (uint64_t)i) << 4};
    char text[JC_UUID_TEXT], line[LINE + 1];

    jc_uuid_format(&u, text);
    int n = snprintf(line, sizeof line, "{\"_meta\":{\"uuid\":\"%.36s\"},\"v\":\"", text);
    memset(line + n, 'x', (size_t)(LINE - n));
    memcpy(line + LINE - 3, "\"}\n", 4);
    fake_append(store, journal, line);
    struct jc_heads heads = {.content_end = (i + 1) * (int64_t)LINE,
                             .write_head = (i + 1) * (int64_t)LINE};
    gw_part_update(part, &heads);
}

static void answers_are_whole_while_the_journal_grows(void **state)
{
    (void)state;
    struct asker askers[WORKERS] = {0};
    pthread_t threads[WORKERS];
    struct jobpool *loads;

    store = fake_store_new();
    journal = fake_journal(store, "docs", "docs");
    assert_int_equal(gw_part_new(journal->j, &part), 0);
    assert_int_equal(jobpool_new(2, "loads", &loads), 0);
    assert_int_equal(gw_cache_new(600 << 10, &store->base, loads, &cache), 0);
    append(0);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(mailbox_init(&askers[i].mb), 0);
        askers[i].seed = 77 + (uint64_t)i;
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &askers[i]), 0);
    }
    for (int i = 1; i < 2500; i++)
        append(i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    gw_cache_free(cache);
    jobpool_free(loads);
    for (int i = 0; i < WORKERS; i++)
        mailbox_fini(&askers[i].mb);
    gw_part_unref(part);
    fake_store_free(store);
    assert_int_equal(atomic_load(&wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_whole_while_the_journal_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
