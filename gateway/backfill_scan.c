/*
 * Who else writes into a collection? Before a begin hides what there is, the documents of the
 * current generation are read, and the first one that this store did not stamp is named.
 *
 * Cost: the index (jc_seek) leaps over every block whose largest clock lies below the bound, so a
 * stale prefix costs nothing, however long. What is read is the current generation, once, one block
 * (256 KiB) in memory at a time: blocks are read on the store's threads and scanned on the job
 * pool, the home thread only passes them on. Nothing can answer it with less: the index knows no
 * producers. --force leaves it out.
 *
 * Home thread, except scan_job.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "gateway/backfill_int.h"
#include "gateway/block_build.h"
#include "journal_client/uuid.h"

static void step(struct bf_scan *sc);

static struct bf_scan *of(struct task *t)
{
    return (struct bf_scan *)(void *)((char *)t - offsetof(struct bf_scan, task));
}

static void post(struct bf_scan *sc, struct executor *ex, void (*run)(struct task *t))
{
    sc->task.run = run;
    executor_post(ex, &sc->task);
}

static struct executor *home(struct bf_scan *sc)
{
    return &sc->bf->opts.home->ex;
}

static void run_done(struct task *t)
{
    struct bf_scan *sc = of(t);

    sc->done(sc->arg, sc->err);
}

static void end(struct bf_scan *sc, int err)
{
    sc->err = err;
    post(sc, home(sc), run_done);
}

/* --- heads
 * ------------------------------------------------------------------------------------------- */

static void heads_known(struct task *t)
{
    struct bf_scan *sc = of(t);

    if (sc->op != NULL)
        sc->bf->opts.store->ops->cancel(sc->op);
    sc->op = NULL;
    if (sc->err < 0) {
        end(sc, sc->err);
        return;
    }
    if (sc->heads[sc->at].max_clock > sc->max_clock)
        sc->max_clock = sc->heads[sc->at].max_clock;
    sc->at++;
    step(sc);
}

/* A follow says everything twice at most before it is cancelled; the first one counts. */
static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct bf_scan *sc = arg;

    if (sc->pos >= 0)
        return;
    sc->pos = 0;
    sc->heads[sc->at] = *heads;
    post(sc, home(sc), heads_known); /* not here: it cancels */
}

static void on_heads_end(void *arg, int err)
{
    struct bf_scan *sc = arg;

    sc->op = NULL;
    if (sc->pos >= 0)
        return;
    sc->pos = 0;
    sc->err = err < 0 ? err : E_CLOSED;
    post(sc, home(sc), heads_known);
}

static int ask_heads(struct bf_scan *sc)
{
    struct jc_store *s = sc->bf->opts.store;
    const struct jc_follower f = {
        .ex = home(sc), .on_heads = on_heads, .on_end = on_heads_end, .arg = sc};

    sc->pos = -1; /* not answered */
    return s->ops->follow(s, sc->rows[sc->at].journal, &f, &sc->op);
}

/* --- documents
 * --------------------------------------------------------------------------------------- */

static void scan_segment(struct bf_scan *sc, const struct jc_segment *seg,
                         struct sc_uuid_hint *hint)
{
    const uint8_t *p = seg->bytes->data, *stop = p + seg->bytes->len, *nl;

    for (; p < stop && !sc->foreign.found; p = nl + 1) {
        struct jc_doc_info info;

        if ((nl = memchr(p, '\n', (size_t)(stop - p))) == NULL)
            return;
        gw_doc_look(span_of(p, (size_t)(nl - p)), hint, &info);
        if (info.kind != JC_DOC_CONTENT || info.clock < sc->bound ||
            (info.clock != 0 && memcmp(info.producer, sc->own, sizeof sc->own) == 0))
            continue;
        sc->foreign = (struct backfill_foreign){
            .found = true,
            .no_uuid = info.clock == 0,
            .journal = sc->rows[sc->at].journal->spec.name,
            .offset = seg->offset + (nl - seg->bytes->data),
        };
        memcpy(sc->foreign.producer, info.producer, sizeof info.producer);
    }
}

static void block_scanned(struct task *t)
{
    struct bf_scan *sc = of(t);

    if (sc->foreign.found)
        end(sc, 0);
    else
        step(sc);
}

/* Job pool. */
static void scan_job(struct task *t)
{
    struct bf_scan *sc = of(t);
    struct sc_uuid_hint hint = {0};

    for (size_t i = 0; i < sc->block.segments_n; i++)
        scan_segment(sc, &sc->block.segments[i], &hint);
    jc_block_fini(&sc->block);
    sc->block = (struct jc_block){0};
    post(sc, home(sc), block_scanned);
}

static void on_block(void *arg, int err, struct jc_block *block)
{
    struct bf_scan *sc = arg;

    sc->op = NULL;
    if (err < 0) {
        end(sc, err);
        return;
    }
    sc->block = *block;
    sc->pos = (block->block + 1) * JC_BLOCK_BYTES;
    post(sc, sc->bf->opts.jobs, scan_job);
}

static void on_seek(void *arg, int err, int64_t block)
{
    struct bf_scan *sc = arg;
    struct jc_store *s = sc->bf->opts.store;
    struct jc_block_req rq = {.journal = sc->rows[sc->at].journal, .block = block, .from = sc->pos};

    sc->op = NULL;
    if (err == E_NOTFOUND) { /* this journal is through */
        sc->at++;
        sc->pos = 0;
        step(sc);
        return;
    }
    if (err == 0)
        err = s->ops->read_block(s, &rq, home(sc), on_block, sc, &sc->op);
    if (err < 0)
        end(sc, err);
}

/* The next thing to ask; at counts the heads of all journals first, then their documents. */
static void step(struct bf_scan *sc)
{
    struct jc_store *s = sc->bf->opts.store;
    int err;

    if (sc->bf->draining) {
        end(sc, E_CLOSED);
        return;
    }
    if (!sc->looking && sc->at < sc->rows_n) {
        err = ask_heads(sc);
        if (err < 0)
            end(sc, err);
        return;
    }
    if (!sc->looking) {
        sc->looking = true;
        sc->at = sc->look ? 0 : sc->rows_n;
        sc->pos = 0;
    }
    while (sc->at < sc->rows_n && sc->heads[sc->at].write_head <= sc->pos) {
        sc->at++;
        sc->pos = 0;
    }
    if (sc->at == sc->rows_n) {
        end(sc, 0);
        return;
    }
    const struct jc_seek_req rq = {.journal = sc->rows[sc->at].journal,
                                   .offset = sc->pos,
                                   .end_offset = sc->heads[sc->at].write_head,
                                   .min_clock = sc->bound,
                                   .max_clock = UINT64_MAX,
                                   .mode = JC_SEEK_FIRST};
    if ((err = s->ops->seek(s, &rq, home(sc), on_seek, sc, &sc->op)) < 0)
        end(sc, err);
}

static void run_step(struct task *t)
{
    step(of(t));
}

int bf_scan_start(struct bf_scan *sc)
{
    if ((sc->heads = mem_array(sc->rows_n, sizeof sc->heads[0])) == NULL)
        return E_NOMEM;
    sc->max_clock = 0;
    sc->foreign = (struct backfill_foreign){0};
    sc->at = 0;
    sc->err = 0;
    sc->looking = false;
    post(sc, home(sc), run_step);
    return 0;
}

void bf_scan_fini(struct bf_scan *sc)
{
    ASSERT(sc->op == NULL);
    mem_free(sc->heads);
    sc->heads = NULL;
}
