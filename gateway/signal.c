/*
 * Is a block's first visible record the first one of the journal, or the first one behind a marker?
 * Both are questions about the blocks between, which the store's index answers exactly as long as
 * they are whole; the rest of a marker's own block is looked at, and only if all between is hidden.
 */
#include "gateway/signal.h"

#include "base/mem.h"
#include "gateway/block_build.h"

void gw_lead_take(struct gw_lead *l, const struct jc_doc_info *info)
{
    if (info->mark == JC_MARK_BEGIN && info->clock > l->begin) {
        l->begin = info->clock;
        if (l->complete < l->begin)
            l->complete = 0; /* of an earlier backfill */
    }
    if (info->mark == JC_MARK_COMPLETE && info->clock > l->complete)
        l->complete = info->clock;
}

void gw_signal_of(const struct gw_topic *t, struct gw_part *part, int64_t block,
                  struct gw_signal *out)
{
    int64_t start = block * JC_BLOCK_BYTES;
    struct jc_heads heads;

    *out = (struct gw_signal){0};
    if (!t->signal)
        return;
    out->on = true;
    out->truncated_at = t->frontier.truncated_at;
    if (out->truncated_at != 0 && t->frontier.completed == out->truncated_at)
        out->complete = t->frontier.complete;
    (void)gw_part_heads(part, &heads);
    if (heads.marks.begin_end <= start) {
        out->marks.begin = heads.marks.begin;
        out->marks.begin_end = heads.marks.begin_end;
    }
    if (heads.marks.complete_end <= start) {
        out->marks.complete = heads.marks.complete;
        out->marks.complete_end = heads.marks.complete_end;
    }
}

bool gw_signal_eq(const struct gw_signal *a, const struct gw_signal *b)
{
    return a->on == b->on && a->truncated_at == b->truncated_at && a->complete == b->complete &&
           a->marks.begin == b->marks.begin && a->marks.begin_end == b->marks.begin_end &&
           a->marks.complete == b->marks.complete && a->marks.complete_end == b->marks.complete_end;
}

enum step { STEP_FIRST, STEP_BEGIN, STEP_COMPLETE, STEP_DONE };

/* Owner: the running question, one callback at a time. */
struct finder {
    struct jc_store *store;
    const struct jc_journal *journal; /* owned reference */
    struct gw_bound bound;
    struct gw_signal signal;
    int64_t start; /* of the block */
    struct executor *ex;
    gw_lead_fn *done;
    void *arg;
    enum step step;
    struct gw_lead lead;
    struct task task; /* the answer, when nothing had to be asked */
};

static void advance(struct finder *f);

static void finish(struct finder *f, int err)
{
    gw_lead_fn *done = f->done;
    void *arg = f->arg;
    struct gw_lead lead = f->lead;

    jc_journal_unref(f->journal);
    mem_free(f);
    done(arg, err, &lead);
}

/* Where the marker of the step ends; 0: none that counts. */
static int64_t mark_end(const struct finder *f)
{
    return f->step == STEP_BEGIN ? f->signal.marks.begin_end : f->signal.marks.complete_end;
}

/* Nothing visible lies between: the block's first visible record tells. */
static void tell(struct finder *f)
{
    switch (f->step) {
    case STEP_FIRST:
        f->lead.begin = f->signal.truncated_at;
        f->lead.complete = f->signal.complete;
        break;
    case STEP_BEGIN:
        if (f->signal.marks.begin > f->lead.begin)
            f->lead.begin = f->signal.marks.begin;
        break;
    case STEP_COMPLETE:
        if (f->signal.marks.complete > f->lead.complete)
            f->lead.complete = f->signal.marks.complete;
        break;
    case STEP_DONE:
        break;
    }
}

static void on_mark_block(void *arg, int err, struct jc_block *block)
{
    struct finder *f = arg;
    int64_t offset, timestamp;

    if (err < 0) {
        finish(f, err);
        return;
    }
    const struct gw_time_look look = {
        .bound = f->bound, .from = mark_end(f), .end = INT64_MAX, .min_ms = INT64_MIN};
    if (gw_block_look_time(&look, block, &offset, &timestamp) == E_NOTFOUND)
        tell(f);
    jc_block_fini(block);
    f->step++;
    advance(f);
}

/* E_NOTFOUND: no whole block between holds a visible document. */
static void judge(struct finder *f, int err)
{
    if (err < 0 && err != E_NOTFOUND) {
        finish(f, err);
        return;
    }
    if (err == E_NOTFOUND && f->step != STEP_FIRST && mark_end(f) % JC_BLOCK_BYTES != 0) {
        const struct jc_block_req rq = {.journal = f->journal,
                                        .block = (mark_end(f) - 1) / JC_BLOCK_BYTES,
                                        .from = mark_end(f)};
        struct jc_op *op = NULL;

        err = f->store->ops->read_block(f->store, &rq, f->ex, on_mark_block, f, &op);
        if (err < 0)
            finish(f, err);
        return;
    }
    if (err == E_NOTFOUND)
        tell(f);
    f->step++;
    advance(f);
}

static void on_seek(void *arg, int err, int64_t block)
{
    (void)block;
    judge(arg, err);
}

static bool asks(const struct finder *f)
{
    if (f->step == STEP_FIRST)
        return f->signal.truncated_at != 0;
    return mark_end(f) > 0;
}

static void advance(struct finder *f)
{
    while (f->step != STEP_DONE) {
        int64_t from = 0;
        struct jc_op *op = NULL;

        if (!asks(f)) {
            f->step++;
            continue;
        }
        if (f->step != STEP_FIRST) /* the block behind the marker's */
            from = (mark_end(f) + JC_BLOCK_BYTES - 1) / JC_BLOCK_BYTES * JC_BLOCK_BYTES;
        if (from >= f->start) {
            judge(f, E_NOTFOUND);
            return;
        }
        const struct jc_seek_req rq = {.journal = f->journal,
                                       .offset = from,
                                       .end_offset = f->start,
                                       .min_clock = f->bound.min_clock,
                                       .max_clock = f->bound.max_clock,
                                       .mode = JC_SEEK_FIRST};
        int err = f->store->ops->seek(f->store, &rq, f->ex, on_seek, f, &op);
        if (err < 0)
            finish(f, err);
        return;
    }
    finish(f, 0);
}

static void run_advance(struct task *t)
{
    advance((struct finder *)((char *)t - offsetof(struct finder, task)));
}

int gw_lead_find(struct jc_store *store, const struct jc_journal *j, int64_t block,
                 const struct gw_bound *bound, const struct gw_signal *signal, struct executor *ex,
                 gw_lead_fn *done, void *arg)
{
    struct finder *f = mem_zalloc(sizeof *f);

    if (f == NULL)
        return E_NOMEM;
    *f = (struct finder){.store = store,
                         .journal = jc_journal_ref(j),
                         .bound = *bound,
                         .signal = *signal,
                         .start = block * JC_BLOCK_BYTES,
                         .ex = ex,
                         .done = done,
                         .arg = arg,
                         .task.run = run_advance};
    executor_post(ex, &f->task);
    return 0;
}
