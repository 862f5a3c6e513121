/*
 * Where a journal begins. Brokers remove its oldest fragments without telling anybody, so they are
 * asked: of journals that are in use every start_ms, of all when a read meets what is gone
 * (range.c), and when somebody wants to know (ask.c of the hub, by gz_fresh_heads). Only what a
 * list of fragments says raises the first byte; what a read meets is a reason to ask for one.
 *
 * A list whose first fragment lies in a store is taken at its word. One that begins with a fragment
 * that is with the brokers alone may come from a broker that has just taken the journal over and
 * has not seen what another one was about to store: then the first byte rises when lists say the
 * same for a while.
 *
 * Home thread.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define SURE_MS 5000 /* so long lists must agree on a first fragment that is not stored */

/* Fragments that lie before the first byte are gone. */
static void trim(struct gz_journal *j)
{
    size_t k = gz_frags_behind(&j->frags, j->first);

    for (size_t i = 0; i < k; i++)
        mem_free(j->frags.v[i].url);
    if (k > 0)
        memmove(j->frags.v, j->frags.v + k, (j->frags.n - k) * sizeof *j->frags.v);
    j->frags.n -= k;
}

static bool rise(struct gz_journal *j, int64_t first)
{
    j->first = first;
    j->maybe_first = 0;
    trim(j);
    if (j->frags.n == 0 || j->frags.v[0].begin >= first)
        gz_tail_skip(j, first);
    return true;
}

bool gz_first_take(struct gz_journal *j, const struct gz_frags *list)
{
    bool stored = list->n > 0 && list->v[0].mod_time_s > 0;
    int64_t begin = list->n > 0 ? list->v[0].begin : list->at_head, now = gz_mono_ms(j->store);

    j->first_ms = list->at_ms;
    /* Nothing at all is left below the head that was known when it was asked. While that head is
     * not sure, it may be that everything was lost (settle.c); one that the primary told is sure,
     * and where nothing is left the tail does not come there by itself. */
    if (list->n == 0 &&
        (list->more || j->state != GZ_J_TAIL ||
         (gz_settling(j) && !(gz_tail_behind(j) && list->at_head >= j->confirmed_head))))
        return false;
    if (begin <= j->first) {
        j->maybe_first = 0;
        return false;
    }
    if (stored || (list->n > 0 && !j->kept_sound && !j->hub.ready))
        return rise(j, begin);
    if (j->maybe_first == 0 || begin < j->maybe_first) {
        j->maybe_first = begin;
        j->maybe_ms = now;
    }
    return now - j->maybe_ms >= SURE_MS && rise(j, j->maybe_first);
}

/* --- asking --- */

static void on_first(void *arg, int err, int status, struct gz_frags *list)
{
    struct gz_journal *j = arg;

    j->first_call = NULL;
    if (err < 0 || status != GZ_OK)
        log_peer(LOG_WARN, "gazette.start_unknown", LF_STR("journal", j->name),
                 LF_STR("status", gz_status_text(status)), LF_ERR(err));
    else if (gz_first_take(j, list))
        gz_journal_publish(j);
    gz_fresh_next(j);
}

void gz_first_look(struct gz_journal *j, int64_t max_age_ms)
{
    int64_t now = gz_mono_ms(j->store);

    if (j->first_call != NULL || j->frags_call != NULL || j->state != GZ_J_TAIL ||
        now - j->first_ms < max_age_ms)
        return;
    j->first_ms = now; /* one that fails is not repeated at once */
    if (gz_frags_ask_first(j, on_first, j, &j->first_call) < 0)
        j->first_call = NULL;
}

void gz_first_stop(struct gz_journal *j)
{
    if (j->first_call != NULL)
        gz_frags_cancel(j->first_call);
    j->first_call = NULL;
}
