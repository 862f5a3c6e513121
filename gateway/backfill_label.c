/*
 * The label truncated-at on the journals of one collection: by the listing, a compare-and-set for
 * each journal that lacks it. A lost race (E_CONFLICT) is settled by the next snapshot, without
 * limit: whoever won moved on, so each round some writer is done, and two writers end at the
 * maximum. A label that is newer is never touched; a malformed or doubled one counts as none, but
 * for its highest valid value. Home thread.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/num.h"
#include "gateway/backfill_int.h"
#include "gateway/metrics.h"

#define BATCH_MAX 64

static bool lacks(const struct jc_spec *spec, uint64_t target, uint64_t *value)
{
    struct backfill_label l;

    backfill_label_of(spec, &l);
    *value = l.clock > target ? l.clock : target;
    return !l.plain || l.clock < target;
}

/* The listed spec with the one label replaced. NULL: out of memory. */
static struct jc_spec *relabelled(struct arena *a, const struct jc_spec *old, uint64_t value)
{
    struct jc_spec *spec = arena_alloc(a, sizeof *spec);
    struct jc_label *labels = arena_array(a, old->labels_n + 1, sizeof labels[0]);
    char *text = arena_alloc(a, 17);
    bool put = false;
    size_t n = 0;

    if (spec == NULL || labels == NULL || text == NULL)
        return NULL;
    num_hex16(value, text);
    for (size_t i = 0; i <= old->labels_n; i++) {
        int c = i < old->labels_n ? strcmp(old->labels[i].name, JC_LABEL_TRUNCATED_AT) : 1;

        if (c >= 0 && !put) { /* labels are sorted by name */
            labels[n++] = (struct jc_label){JC_LABEL_TRUNCATED_AT, text};
            put = true;
        }
        if (c != 0 && i < old->labels_n)
            labels[n++] = old->labels[i];
    }
    *spec = *old;
    spec->labels = labels;
    spec->labels_n = n;
    return spec;
}

static void on_applied(void *arg, int err, int64_t revision)
{
    struct bf_collection *col = arg;
    struct backfills *bf = col->bf;

    col->applying = false;
    bf->busy--;
    if (err == 0) {
        bf_point(bf, "label.applied");
        col->need_revision = revision; /* what is listed till then is known to be old */
        col->batch = col->batch < BATCH_MAX ? 2 * col->batch : BATCH_MAX;
    } else if (err == E_CONFLICT) {
        metric_add(M_LABEL_CONFLICTS, 1);
        col->need_revision = col->used_revision + 1;
        col->batch = col->batch > 1 ? col->batch / 2 : 1;
    } else {
        log_peer(LOG_WARN, "backfill.label", LF_STR("collection", col->name), LF_ERR(err));
        if (col->batch > 1)
            col->batch /= 2;
        else
            col->skip++; /* it must not keep the others from theirs */
    }
    bf_labels_apply(col);
}

void bf_labels_apply(struct bf_collection *col)
{
    struct backfills *bf = col->bf;
    struct jc_store *s = bf->opts.store;
    struct jc_change changes[BATCH_MAX];
    const struct pub_index_row *rows;
    size_t rows_n = 0, n = 0, pending = 0;
    struct arena a;
    int err = 0;

    if (col->applying || bf->draining || bf->listing == NULL || col->state.begin == 0 ||
        !col->dirty || bf->listing->revision < col->need_revision)
        return;
    arena_init(&a, (size_t)64 << 20);
    rows = pub_index_find(bf->index, span_str(col->name), &rows_n);
    for (size_t i = 0; err == 0 && i < rows_n && n < col->batch; i++) {
        const struct jc_journal *j = rows[i].journal;
        struct jc_change *c = &changes[n];
        uint64_t value;

        if (!lacks(&j->spec, col->state.begin, &value) || pending++ < col->skip)
            continue;
        *c = (struct jc_change){.upsert = relabelled(&a, &j->spec, value),
                                .expect_mod_revision = j->mod_revision};
        err = c->upsert == NULL ? E_NOMEM : 0;
        n++;
    }
    if (pending == 0) {
        col->dirty = false;
        bf_point(bf, "label.settled");
    } else if (n > 0 && err == 0) {
        bf_point(bf, "label.apply");
        col->used_revision = bf->listing->revision;
        err = s->ops->apply(s, changes, n, &bf->opts.home->ex, on_applied, col);
        col->applying = err == 0;
        bf->busy += err == 0;
    }
    arena_fini(&a);
    if (err < 0) /* the next tick tries again */
        log_peer(LOG_WARN, "backfill.label", LF_STR("collection", col->name), LF_ERR(err));
}
