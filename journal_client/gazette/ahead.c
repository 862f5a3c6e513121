/*
 * Reading ahead of stored fragments through brokers. A broker opens the object and throws away what
 * lies before the asked offset: a read for each block would cost it the fragment again and again.
 * So a piece is read at once and kept, one a journal, of few journals.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define AHEAD_BYTES (INT64_C(4) << 20)
#define AHEADS_MAX  8 /* journals: 32 MiB in all */

int64_t gz_ahead_until(const struct gz_frag *f, int64_t begin, int64_t end)
{
    int64_t until = begin + AHEAD_BYTES;

    if (f->mod_time_s == 0) /* with the brokers alone: they seek in it */
        return end;
    if (until > f->end)
        until = f->end;
    return until > end ? until : end;
}

void gz_ahead_drop(struct gz_journal *j)
{
    if (j->ahead == NULL)
        return;
    TAILQ_REMOVE(&j->store->aheads, j, ahead_link);
    j->store->aheads_n--;
    blob_unref(j->ahead);
    j->ahead = NULL;
}

void gz_ahead_keep(struct gz_journal *j, int64_t at, struct blob *bytes)
{
    struct gz_store *s = j->store;

    if (j->hub.deleted)
        return;
    gz_ahead_drop(j);
    while (s->aheads_n >= AHEADS_MAX)
        gz_ahead_drop(TAILQ_LAST(&s->aheads, gz_ahead_list));
    j->ahead = blob_ref(bytes);
    j->ahead_at = at;
    TAILQ_INSERT_HEAD(&s->aheads, j, ahead_link);
    s->aheads_n++;
}

struct span gz_ahead_find(const struct gz_journal *j, int64_t begin)
{
    if (j->ahead == NULL || begin < j->ahead_at || begin >= j->ahead_at + (int64_t)j->ahead->len)
        return span_of(NULL, 0);
    size_t skip = (size_t)(begin - j->ahead_at);
    return span_of(j->ahead->data + skip, j->ahead->len - skip);
}
