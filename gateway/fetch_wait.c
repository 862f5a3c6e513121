/*
 * Long polls. A watch per partition that somebody waits for, or that a session holds, follows the
 * store's heads and looks only at the parts linked to it. Deadlines are a timer wheel behind one
 * libevent timer: a wait costs a few pointers, however many there are. An append of hidden
 * documents moves no reader's end, so it wakes nobody.
 */
#include <event2/event.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"

#define FIRST_BUCKETS 64
#define SWEEP_MS      10000
/* Deadlines within one tick are served by one wake-up, at its end: so much later than asked. */
#define TICK_MS 4
#define SLOTS   1024 /* of the wheel; power of two. Longer waits pass by several times */

/* Owner: worker. One partition as this worker follows it. */
struct fetch_watch {
    struct fetch_worker *fw;
    LIST_ENTRY(fetch_watch) bucket;
    TAILQ_ENTRY(fetch_watch) idle; /* linked while parts is empty */
    LIST_HEAD(, fetch_part) parts;
    struct gw_part *part; /* owned reference */
    struct jc_op *follow; /* NULL: the store refused or ended it */
    int64_t idle_ms;      /* since when nobody is linked */
};

LIST_HEAD(watch_bucket, fetch_watch);

struct fetch_waits {
    struct fetch_worker *fw;
    struct watch_bucket *buckets;
    size_t buckets_n; /* power of two */
    size_t watches_n;
    TAILQ_HEAD(, fetch_watch) idle; /* longest idle first */
    struct fetch_list slots[SLOTS]; /* by deadline */
    uint64_t used[SLOTS / 64];      /* bit per slot: not empty */
    size_t waiting;
    int64_t done_tick; /* all slots up to this tick were looked at */
    struct event *timer;
    int64_t timer_ms; /* when it fires; INT64_MAX = not armed */
    struct event *sweep;
};

static int64_t now_ms(const struct fetch_waits *ws)
{
    return clock_mono_ms(ws->fw->w->shared->clock);
}

/* --- deadlines --- */

static size_t slot_of(int64_t tick)
{
    return (size_t)tick & (SLOTS - 1);
}

static void wheel_add(struct fetch_waits *ws, struct fetch *f)
{
    int64_t tick = f->deadline_ms / TICK_MS;
    size_t slot = slot_of(tick);

    if (ws->waiting++ == 0)
        ws->done_tick = now_ms(ws) / TICK_MS - 1;
    LIST_INSERT_HEAD(&ws->slots[slot], f, wait_link);
    ws->used[slot / 64] |= UINT64_C(1) << slot % 64;
    f->timed = true;
}

static void wheel_remove(struct fetch_waits *ws, struct fetch *f)
{
    size_t slot = slot_of(f->deadline_ms / TICK_MS);

    LIST_REMOVE(f, wait_link);
    if (LIST_EMPTY(&ws->slots[slot]))
        ws->used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    ws->waiting--;
    f->timed = false;
}

/* The first tick behind done_tick whose slot is used; it may hold only waits of a later round. */
static int64_t next_tick(const struct fetch_waits *ws)
{
    int64_t tick = ws->done_tick + 1;

    for (int words = 0; words <= SLOTS / 64; words++) {
        size_t slot = slot_of(tick);
        uint64_t bits = ws->used[slot / 64] >> slot % 64;
        if (bits != 0)
            return tick + __builtin_ctzll(bits);
        tick += 64 - (int64_t)(slot % 64);
    }
    return tick;
}

static void arm(struct fetch_waits *ws)
{
    int64_t at;

    if (ws->waiting == 0 || (at = (next_tick(ws) + 1) * TICK_MS) >= ws->timer_ms)
        return;
    int64_t ms = at - now_ms(ws);
    if (ms < 1)
        ms = 1;
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    ws->timer_ms = at;
    if (event_add(ws->timer, &tv) < 0)
        ws->timer_ms = INT64_MAX; /* the next wait tries again */
}

void fetch_waits_expire(struct fetch_waits *ws)
{
    int64_t now = now_ms(ws), last = now / TICK_MS;
    int64_t tick = ws->done_tick + 1;

    if (tick < last - SLOTS + 1)
        tick = last - SLOTS + 1; /* once around sees them all */
    for (; tick <= last; tick++) {
        struct fetch *f = LIST_FIRST(&ws->slots[slot_of(tick)]);
        while (f != NULL) {
            struct fetch *next = LIST_NEXT(f, wait_link);
            if (f->deadline_ms <= now) {
                wheel_remove(ws, f);
                f->due = true;
                fetch_wake(f);
            }
            f = next;
        }
    }
    if (last - 1 > ws->done_tick)
        ws->done_tick = last - 1; /* deadlines within the present tick may still come */
    fetch_run_queue(ws->fw);
    arm(ws);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct fetch_waits *ws = arg;

    (void)fd;
    (void)what;
    ws->timer_ms = INT64_MAX;
    fetch_waits_expire(ws);
}

/* --- watches --- */

static struct watch_bucket *bucket_of(const struct fetch_waits *ws, uint64_t part_id)
{
    uint64_t h = part_id * UINT64_C(0x9e3779b97f4a7c15);

    return &ws->buckets[(h >> 32) & (ws->buckets_n - 1)];
}

static void maybe_grow(struct fetch_waits *ws)
{
    size_t old_n = ws->buckets_n;
    struct watch_bucket *old = ws->buckets, *grown;

    if (ws->watches_n < old_n * 2 || (grown = mem_array(old_n * 2, sizeof *grown)) == NULL)
        return;
    ws->buckets = grown;
    ws->buckets_n = old_n * 2;
    for (size_t i = 0; i < old_n; i++) {
        struct fetch_watch *wt;
        while ((wt = LIST_FIRST(&old[i])) != NULL) {
            LIST_REMOVE(wt, bucket);
            LIST_INSERT_HEAD(bucket_of(ws, wt->part->id), wt, bucket);
        }
    }
    mem_free(old);
}

static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct fetch_watch *wt = arg;
    struct fetch_worker *fw = wt->fw;
    struct fetch_part *p;

    gw_part_update(wt->part, heads);
    LIST_FOREACH(p, &wt->parts, watch_link)
    fetch_part_moved(fw, p);
    fetch_run_queue(fw);
}

/* The journal was deleted, or the store closes. A new view tells what that means. */
static void on_follow_end(void *arg, int err)
{
    struct fetch_watch *wt = arg;

    (void)err;
    wt->follow = NULL;
}

static void follow(struct fetch_watch *wt)
{
    struct worker *w = wt->fw->w;
    const struct jc_follower follower = {
        .ex = &w->mb.ex, .on_heads = on_heads, .on_end = on_follow_end, .arg = wt};
    int err =
        w->shared->store->ops->follow(w->shared->store, wt->part->journal, &follower, &wt->follow);

    if (err < 0) { /* those who wait are answered at their deadline, a little late */
        wt->follow = NULL;
        metric_add(M_STORE_ERRORS, 1);
        log_peer(LOG_WARN, "fetch.follow_failed", LF_STR("journal", wt->part->journal->spec.name),
                 LF_ERR(err));
    }
}

static void watch_free(struct fetch_waits *ws, struct fetch_watch *wt)
{
    struct jc_store *store = ws->fw->w->shared->store;

    ASSERT(LIST_EMPTY(&wt->parts));
    if (wt->follow != NULL)
        store->ops->cancel(wt->follow);
    LIST_REMOVE(wt, bucket);
    TAILQ_REMOVE(&ws->idle, wt, idle);
    ws->watches_n--;
    gw_part_unref(wt->part);
    mem_free(wt);
}

static struct fetch_watch *watch_get(struct fetch_waits *ws, struct gw_part *part)
{
    struct fetch_watch *wt;

    LIST_FOREACH(wt, bucket_of(ws, part->id), bucket)
    {
        if (wt->part == part)
            return wt;
    }
    if ((wt = mem_zalloc(sizeof *wt)) == NULL)
        return NULL;
    maybe_grow(ws);
    wt->fw = ws->fw;
    LIST_INIT(&wt->parts);
    wt->part = gw_part_ref(part);
    wt->idle_ms = now_ms(ws);
    TAILQ_INSERT_TAIL(&ws->idle, wt, idle);
    LIST_INSERT_HEAD(bucket_of(ws, part->id), wt, bucket);
    ws->watches_n++;
    return wt;
}

void fetch_watch_attach(struct fetch_worker *fw, struct fetch_part *p)
{
    ASSERT(p->watch == NULL && p->part != NULL);
    if (p->part->empty)
        return; /* its journal comes with another view */
    struct fetch_watch *wt = watch_get(fw->waits, p->part);
    if (wt == NULL)
        return;
    if (LIST_EMPTY(&wt->parts))
        TAILQ_REMOVE(&fw->waits->idle, wt, idle);
    LIST_INSERT_HEAD(&wt->parts, p, watch_link);
    p->watch = wt;
    if (wt->follow == NULL)
        follow(wt);
}

void fetch_watch_detach(struct fetch_worker *fw, struct fetch_part *p)
{
    struct fetch_watch *wt = p->watch;

    if (wt == NULL)
        return;
    LIST_REMOVE(p, watch_link);
    p->watch = NULL;
    if (LIST_EMPTY(&wt->parts)) {
        wt->idle_ms = now_ms(fw->waits);
        TAILQ_INSERT_TAIL(&fw->waits->idle, wt, idle);
    }
}

void fetch_waits_sweep(struct fetch_waits *ws)
{
    int64_t limit = now_ms(ws) - FETCH_WATCH_KEEP_MS;
    struct fetch_watch *wt;

    while ((wt = TAILQ_FIRST(&ws->idle)) != NULL && wt->idle_ms <= limit)
        watch_free(ws, wt);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct fetch_waits *ws = arg;

    fetch_waits_sweep(ws);
    fetch_sessions_refresh(ws->fw->sessions);
}

size_t fetch_waits_watches(const struct fetch_waits *ws)
{
    return ws->watches_n;
}

/* --- waiting --- */

void fetch_part_moved(struct fetch_worker *fw, struct fetch_part *p)
{
    struct fetch *f = *p->user;
    struct fetch_plan plan;
    struct fetch_ends ends;
    struct jc_heads heads;
    bool now = false;

    (void)fw;
    (void)gw_part_heads(p->part, &heads);
    fetch_ends_of(&heads, f == NULL ? READ_UNCOMMITTED : f->isolation, &ends);
    if (f == NULL || f->session != NULL) {
        if (!fetch_part_told(p, &ends))
            fetch_mark_ready(p);
        if (f == NULL)
            return;
    }
    fetch_plan(&p->want, p->t->epoch, &ends, &plan);
    int64_t from = p->seen_end > p->want.offset ? p->seen_end : p->want.offset;
    if (plan.verdict == FETCH_ERROR || plan.verdict == FETCH_DIVERGED)
        now = true;
    else if (plan.verdict == FETCH_NOTHING || ends.end <= from)
        return;
    fetch_mark_ready(p);
    f->changed = true;
    if (f->state != FETCH_WAITING)
        return; /* the pass that runs is followed by another one if need be */
    if (!now) {
        /* bytes of the journal stand for bytes of batches, as they do in Kafka */
        uint64_t grown = (uint64_t)(ends.end - from);
        uint64_t most = p->max_bytes > 0 ? (uint64_t)p->max_bytes : 0;
        f->counted += (size_t)(grown < most ? grown : most);
        p->seen_end = ends.end;
    }
    if (now || f->counted >= f->min_bytes)
        fetch_wake(f);
}

void fetch_wait_begin(struct fetch *f)
{
    struct fetch_worker *fw = f->fw;
    struct fetch_waits *ws = fw->waits;

    f->state = FETCH_WAITING;
    wheel_add(ws, f);
    arm(ws);
    if (!f->waited)
        metric_add(M_FETCH_WAITS, 1);
    f->waited = true;
    /* a session's parts are linked for as long as it holds them */
    for (size_t i = 0; i < f->parts_n; i++) {
        struct fetch_part *p = &f->parts[i];

        if (p->part == NULL || p->watch != NULL)
            continue;
        fetch_watch_attach(fw, p);
        fetch_part_moved(fw, p); /* between the pass and the link */
    }
}

void fetch_wait_end(struct fetch *f)
{
    if (f->timed)
        wheel_remove(f->fw->waits, f);
}

void fetch_wake(struct fetch *f)
{
    if (f->runnable)
        return;
    f->runnable = true;
    TAILQ_INSERT_TAIL(&f->fw->runnable, f, run_link);
}

void fetch_run_queue(struct fetch_worker *fw)
{
    struct fetch *f;

    if (fw->running)
        return;
    fw->running = true;
    while ((f = TAILQ_FIRST(&fw->runnable)) != NULL) {
        TAILQ_REMOVE(&fw->runnable, f, run_link);
        f->runnable = false;
        fetch_wait_end(f);
        if (f->due && !f->changed)
            fetch_answer(f); /* with what its last pass found */
        else
            fetch_gather(f);
    }
    fw->running = false;
}

/* --- life --- */

int fetch_waits_new(struct fetch_worker *fw, struct fetch_waits **out)
{
    static const struct timeval every = {.tv_sec = SWEEP_MS / 1000};
    struct fetch_waits *ws = mem_zalloc(sizeof *ws);

    *out = NULL;
    if (ws == NULL)
        return E_NOMEM;
    ws->fw = fw;
    ws->timer_ms = INT64_MAX;
    TAILQ_INIT(&ws->idle);
    ws->buckets = mem_array(FIRST_BUCKETS, sizeof *ws->buckets);
    ws->buckets_n = FIRST_BUCKETS;
    ws->timer = event_new(fw->w->base, -1, 0, on_timer, ws);
    ws->sweep = event_new(fw->w->base, -1, EV_PERSIST, on_sweep, ws);
    if (ws->buckets == NULL || ws->timer == NULL || ws->sweep == NULL ||
        event_add(ws->sweep, &every) < 0) {
        fetch_waits_free(ws);
        return E_NOMEM;
    }
    *out = ws;
    return 0;
}

void fetch_waits_free(struct fetch_waits *ws)
{
    struct fetch_watch *wt;

    if (ws == NULL)
        return;
    ASSERT(ws->waiting == 0);
    while ((wt = TAILQ_FIRST(&ws->idle)) != NULL)
        watch_free(ws, wt);
    ASSERT(ws->watches_n == 0);
    if (ws->timer != NULL)
        event_free(ws->timer);
    if (ws->sweep != NULL)
        event_free(ws->sweep);
    mem_free(ws->buckets);
    mem_free(ws);
}
