/*
 * Looking back from the write head for the last content document, in growing windows, each read
 * forward once; what the last one read becomes the begin of the tail's index. Where even a large
 * one holds none, windows before it are looked at one by one, down to FAR_MAX. And scans of ranges
 * that seeks ask for. Both are one reader: a range at a time, fed into an index.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define WINDOW_FIRST (64 << 10)
#define WINDOW_GROWS 4
#define WINDOW_MAX   (INT64_C(64) << 20)
#define FAR_MAX      (INT64_C(512) << 20)
#define SEARCHES_MAX 16

static void window(struct gz_journal *j);
static void on_piece(struct gz_range *r, int err);

static void next_piece(struct gz_journal *j, void (*done)(struct gz_range *, int))
{
    j->range = (struct gz_range){
        .j = j, .begin = j->search.pos, .end = j->search_to, .max = GZ_PIECE, .done = done};
    gz_range_start(&j->range);
}

static struct gz_journal *journal_of(struct gz_range *r)
{
    return (struct gz_journal *)(void *)((char *)r - offsetof(struct gz_journal, range));
}

/* Takes what a range brought. Returns 1 when the end is reached, 0: go on, or an error. */
static int take(struct gz_journal *j, const struct gz_range *r, int err)
{
    if (err < 0)
        return err;
    if (r->bytes == NULL)
        return 1;
    err = gz_feed_add(&j->search, &j->store->probe, r->at, blob_span(r->bytes), NULL);
    if (err < 0)
        return err;
    return j->search.pos >= j->search_to ? 1 : 0;
}

/* --- the last content --- */

/* So many at a time: each holds a piece, and opening a thousand journals at once must not take a
 * thousand. */
static bool slot_take(struct gz_journal *j)
{
    struct gz_store *s = j->store;

    if (j->search_slot)
        return true;
    if (s->searches_n >= SEARCHES_MAX) {
        if (!j->search_queued)
            TAILQ_INSERT_TAIL(&s->searches, j, search_link);
        j->search_queued = true;
        return false;
    }
    s->searches_n++;
    j->search_slot = true;
    return true;
}

/* Those that wait have their turn. One whose range is busy comes back by itself. */
static void slots_fill(struct gz_store *s)
{
    struct gz_journal *next;

    while (!s->stopping && s->searches_n < SEARCHES_MAX &&
           (next = TAILQ_FIRST(&s->searches)) != NULL) {
        TAILQ_REMOVE(&s->searches, next, search_link);
        next->search_queued = false;
        gz_search_start(next); /* whose end comes later: it has something to read */
    }
}

static void slot_give(struct gz_journal *j)
{
    struct gz_store *s = j->store;

    if (j->search_queued)
        TAILQ_REMOVE(&s->searches, j, search_link);
    j->search_queued = false;
    if (!j->search_slot)
        return;
    j->search_slot = false;
    s->searches_n--;
    slots_fill(s);
}

static void finish(struct gz_journal *j)
{
    j->searching = false;
    if (j->tail_set)
        gz_feed_fini(&j->tail);
    j->tail = j->search;
    j->search = (struct gz_feed){0};
    /* The end of the window may be a hole; what follows begins with a document. */
    if (j->tail.pos < j->said_head || !j->tail.aligned) {
        struct gz_sum sum = j->tail.run.sum;
        gz_feed_fini(&j->tail);
        gz_feed_init(&j->tail, j->said_head, true);
        j->tail.run.sum = sum;
    }
    j->tail_set = true;
    gz_search_done(j);
    slot_give(j);
}

/* --- far back --- */

/* Takes over a reference of the search. */
static void far_window(struct gz_journal *j)
{
    int64_t to = j->search.run.begin;

    gz_feed_fini(&j->search);
    j->search_low = j->search_low - WINDOW_MAX > j->first ? j->search_low - WINDOW_MAX : j->first;
    gz_feed_init(&j->search, j->search_low, j->search_low == j->first);
    j->search_to = to;
    (void)gz_journal_ref(j);
    next_piece(j, on_piece);
}

/* The last large window held none. What it says is kept for the tail, and windows before it are
 * looked at one by one. */
static void go_far(struct gz_journal *j)
{
    j->search_far = true;
    j->search_near = j->search;
    j->search = (struct gz_feed){.run = {.begin = j->search_near.run.begin}};
    far_window(j);
}

/* One of them is read: enough, or the next one? */
static void judge_far(struct gz_journal *j)
{
    struct gz_run *run = &j->search.run;
    struct gz_sum *sum = &j->search_near.run.sum;
    int64_t looked = j->said_head - j->search_low;
    bool all = run->begin <= j->first || (j->search.aligned && j->kept.content_end >= run->begin);

    if (run->sum.max_clock > sum->max_clock)
        sum->max_clock = run->sum.max_clock;
    (void)jc_marks_merge(&sum->marks, &run->sum.marks);
    sum->content_end = run->sum.content_end;
    if (sum->content_end == 0 && !all && looked < FAR_MAX) {
        far_window(j);
        return;
    }
    if (sum->content_end == 0 && !all) {
        log_event(LOG_WARN, "gazette.no_content_near_head", LF_STR("journal", j->name),
                  LF_INT("looked_at", looked));
        /* The last content lies before: its end is not known better than this. */
        sum->content_end = run->begin;
    }
    gz_feed_fini(&j->search);
    j->search = j->search_near;
    j->search_near = (struct gz_feed){0};
    j->search_far = false;
    finish(j);
}

/* The window is read: enough, or a larger one? */
static void judge(struct gz_journal *j)
{
    const struct gz_run *run = &j->search.run;
    bool all = run->begin <= j->first || (j->search.aligned && j->kept.content_end >= run->begin);

    if (j->search_far) {
        judge_far(j);
    } else if (run->sum.content_end > 0 || all) {
        finish(j);
    } else if (j->search_bytes >= WINDOW_MAX) {
        go_far(j);
    } else {
        j->search_bytes *= WINDOW_GROWS;
        window(j);
    }
}

static void on_piece(struct gz_range *r, int err)
{
    struct gz_journal *j = journal_of(r);
    int rc = j->searching ? take(j, r, err) : E_CANCELED;

    blob_unref(r->bytes);
    if (!j->searching) {
        /* it was stopped meanwhile */
    } else if (rc < 0) {
        gz_search_stop(j);
        log_peer(LOG_WARN, "gazette.search", LF_STR("journal", j->name), LF_ERR(rc));
        gz_arm(j->timer, gz_backoff_ms(j->attempt++));
    } else if (rc > 0) {
        judge(j);
    } else {
        next_piece(j, on_piece);
        return;
    }
    gz_journal_unref(j);
}

/* Takes over a reference of the search. */
static void window(struct gz_journal *j)
{
    int64_t low = j->said_head - j->search_bytes;

    gz_feed_fini(&j->search);
    if (low <= j->first)
        low = j->first;
    gz_feed_init(&j->search, low, low == j->first);
    if (low >= j->said_head) {
        finish(j);
        return;
    }
    j->searching = true;
    j->search_low = low;
    j->search_to = j->said_head;
    (void)gz_journal_ref(j);
    next_piece(j, on_piece);
}

void gz_search_start(struct gz_journal *j)
{
    if (j->range.busy) { /* a stopped one is about to end */
        gz_arm(j->timer, 10);
        return;
    }
    if (j->said_head > j->first && !slot_take(j))
        return;
    j->search_bytes = WINDOW_FIRST;
    j->search_far = false;
    window(j);
}

void gz_search_stop(struct gz_journal *j)
{
    slot_give(j);
    if (!j->searching && !j->scanning)
        return;
    j->searching = j->scanning = false;
    gz_feed_fini(&j->search);
    gz_feed_fini(&j->search_near);
    j->search = j->search_near = (struct gz_feed){0};
    gz_range_cancel(&j->range);
    gz_ops_ready(&j->scanners, j->hub.deleted ? E_NOTFOUND : E_AGAIN);
}

/* --- scans --- */

int gz_run_keep(struct gz_journal *j, struct gz_run *run)
{
    size_t at = 0;

    if (j->runs_n == j->runs_cap) {
        size_t cap = j->runs_cap == 0 ? 8 : j->runs_cap * 2;
        struct gz_run *v = mem_realloc(j->runs, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        j->runs = v;
        j->runs_cap = cap;
    }
    while (at < j->runs_n && j->runs[at].begin < run->begin)
        at++;
    memmove(j->runs + at + 1, j->runs + at, (j->runs_n - at) * sizeof *run);
    j->runs[at] = *run;
    j->runs_n++;
    *run = (struct gz_run){0};
    return 0;
}

static void scan_over(struct gz_journal *j, int err)
{
    if (err == 0 && j->search.aligned) {
        /* Up to there it is known that there is nothing more. */
        if (j->search.run.end < j->search_to && wr_len(&j->search.part) == 0)
            j->search.run.end = j->search_to;
        if (j->search.run.end > j->search.run.begin)
            err = gz_run_keep(j, &j->search.run);
    } /* Else no document was found whole: the seek scans more. */
    gz_feed_fini(&j->search);
    j->search = (struct gz_feed){0};
    j->scanning = false;
    gz_ops_ready(&j->scanners, err);
}

static void on_scan_piece(struct gz_range *r, int err)
{
    struct gz_journal *j = journal_of(r);
    int rc = j->scanning ? take(j, r, err) : E_CANCELED;

    blob_unref(r->bytes);
    if (j->scanning && rc == 0) {
        next_piece(j, on_scan_piece);
        return;
    }
    if (j->scanning)
        scan_over(j, rc > 0 ? 0 : rc);
    gz_journal_unref(j);
}

void gz_scan_start(struct gz_journal *j, int64_t from, int64_t to, bool aligned)
{
    gz_feed_init(&j->search, from, aligned);
    j->search_to = to;
    j->scanning = true;
    (void)gz_journal_ref(j);
    next_piece(j, on_scan_piece);
}
