/*
 * Reading ahead of stored fragments through brokers. A broker opens the object and throws away what
 * lies before the asked offset: a read for each block would cost it the fragment again and again.
 * So a piece is read at once and kept, one a journal, of few journals.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define AHEAD_BYTES (INT64_C(4) << 20)
#define AHEADS_MAX  8    /* kept, or on their way: 32 MiB in all */
#define UNUSED_MS   2000 /* whose piece was not read from for so long gives it up */

void gz_ahead_drop(struct gz_journal *j)
{
    if (j->ahead == NULL)
        return;
    TAILQ_REMOVE(&j->store->aheads, j, ahead_link);
    j->store->aheads_n--;
    blob_unref(j->ahead);
    j->ahead = NULL;
}

/* One of the places. Where more journals are read at once than there are, the others go without:
 * taking turns would throw away what was read for each. */
static bool take_place(struct gz_journal *j)
{
    struct gz_store *s = j->store;
    struct gz_journal *last = TAILQ_LAST(&s->aheads, gz_ahead_list);

    if (s->aheads_n + s->aheads_running >= AHEADS_MAX) {
        if (j->ahead != NULL)
            last = j;
        else if (last == NULL || gz_mono_ms(s) - last->ahead_ms < UNUSED_MS)
            return false;
        gz_ahead_drop(last);
    }
    s->aheads_running++;
    return true;
}

int64_t gz_ahead_begin(struct gz_range *r, const struct gz_frag *f, int64_t end)
{
    int64_t until = r->begin + AHEAD_BYTES;

    if (f->mod_time_s == 0) /* with the brokers alone: they seek in it */
        return end;
    if (until > f->end)
        until = f->end;
    if (until <= end || !take_place(r->j))
        return end;
    r->ahead = true;
    return until;
}

void gz_ahead_end(struct gz_range *r)
{
    if (r->ahead)
        r->s->aheads_running--;
    r->ahead = false;
}

void gz_ahead_keep(struct gz_range *r, struct blob *bytes)
{
    struct gz_journal *j = r->j;
    struct gz_store *s = j->store;

    gz_ahead_end(r);
    if (j->hub.deleted)
        return;
    gz_ahead_drop(j);
    while (s->aheads_n >= AHEADS_MAX)
        gz_ahead_drop(TAILQ_LAST(&s->aheads, gz_ahead_list));
    j->ahead = blob_ref(bytes);
    j->ahead_at = r->at;
    j->ahead_ms = gz_mono_ms(s);
    TAILQ_INSERT_HEAD(&s->aheads, j, ahead_link);
    s->aheads_n++;
}

struct span gz_ahead_find(struct gz_journal *j, int64_t begin)
{
    struct gz_store *s = j->store;

    if (j->ahead == NULL || begin < j->ahead_at || begin >= j->ahead_at + (int64_t)j->ahead->len)
        return span_of(NULL, 0);
    size_t skip = (size_t)(begin - j->ahead_at);
    j->ahead_ms = gz_mono_ms(s);
    TAILQ_REMOVE(&s->aheads, j, ahead_link);
    TAILQ_INSERT_HEAD(&s->aheads, j, ahead_link);
    return span_of(j->ahead->data + skip, j->ahead->len - skip);
}
