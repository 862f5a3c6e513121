/*
 * Bytes of a journal from where they are had best: the ring of its tail, a fragment that can be
 * read where it lies, a broker. One piece a time; who wants more asks again behind it.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define ABSENT_MAX 8 /* so often a broker may say that it has not what was seen already */
#define LOOKS_MAX  3 /* lists of fragments that one range asks for */
#define JUMPS_MAX                                                                                  \
    3 /* so often a broker passes over bytes that are listed before that is believed */

static void step(struct gz_range *r);
static void ask_broker(struct gz_range *r, const struct gz_frag *f);

static void run_done(struct task *t)
{
    struct gz_range *r = (struct gz_range *)(void *)((char *)t - offsetof(struct gz_range, task));
    struct gz_journal *j = r->j;

    r->busy = false;
    if (r->timer != NULL)
        event_free(r->timer);
    r->timer = NULL;
    wr_fini(&r->got);
    if (r->canceled) {
        blob_unref(r->bytes);
        r->bytes = NULL;
        r->err = E_CANCELED;
    }
    r->done(r, r->err);
    gz_journal_unref(j);
}

static void lie_down(struct gz_range *r, struct gz_range_list *list)
{
    TAILQ_INSERT_TAIL(list, r, wait_link);
    r->waits = list;
}

static void get_up(struct gz_range *r)
{
    if (r->waits != NULL)
        TAILQ_REMOVE(r->waits, r, wait_link);
    r->waits = NULL;
}

static void end(struct gz_range *r, int err)
{
    get_up(r);
    gz_ahead_end(r);
    r->err = err;
    gz_later(r->s, &r->task, run_done);
}

static void run_step(struct task *t)
{
    step((struct gz_range *)(void *)((char *)t - offsetof(struct gz_range, task)));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    get_up(arg);
    step(arg);
}

static void again(struct gz_range *r, int err)
{
    struct gz_store *s = r->s;

    gz_ahead_end(r);
    if (s->stopping) {
        end(r, E_CLOSED);
        return;
    }
    if (gz_mono_ms(s) - r->since_ms > GZ_GIVE_UP_MS) {
        log_peer(LOG_ERROR, "gazette.read_failed", LF_STR("journal", r->j->name),
                 LF_INT("offset", r->begin), LF_STR("status", gz_status_text(r->status)),
                 LF_ERR(err));
        end(r, E_IO);
        return;
    }
    if (r->timer == NULL && (r->timer = evtimer_new(s->evb, on_timer, r)) == NULL) {
        end(r, E_NOMEM);
        return;
    }
    lie_down(r, &s->waiting);
    gz_arm(r->timer, gz_backoff_ms(r->attempt++));
}

/* What was met says that the list of fragments is old: with a new one it goes on at once. */
static void look_anew(struct gz_range *r, int err)
{
    gz_ahead_end(r);
    if (r->s->stopping || r->looks >= LOOKS_MAX || !gz_journal_renew(r->j)) {
        again(r, err);
        return;
    }
    r->looks++;
    lie_down(r, &r->j->renewers);
}

void gz_ranges_go_on(struct gz_range_list *list, int err)
{
    struct gz_range_list now = TAILQ_HEAD_INITIALIZER(now);
    struct gz_range *r;

    TAILQ_CONCAT(&now, list, wait_link); /* who looks anew waits for another one */
    while ((r = TAILQ_FIRST(&now)) != NULL) {
        TAILQ_REMOVE(&now, r, wait_link);
        r->waits = NULL;
        if (err < 0)
            again(r, err);
        else
            step(r);
    }
}

void gz_ranges_end(struct gz_store *s)
{
    struct gz_range *r;

    while ((r = TAILQ_FIRST(&s->waiting)) != NULL)
        end(r, E_CLOSED);
}

void gz_range_start(struct gz_range *r)
{
    r->s = r->j->store;
    r->busy = true;
    r->since_ms = gz_mono_ms(r->s);
    (void)gz_journal_ref(r->j);
    gz_later(r->s, &r->task, run_step);
}

void gz_range_cancel(struct gz_range *r)
{
    if (!r->busy || r->canceled)
        return;
    r->canceled = true;
    if (r->call != NULL) {
        gz_call_cancel(r->call);
        r->call = NULL;
        end(r, E_CANCELED);
    } else if (r->job != NULL) {
        gz_direct_forget(r->job);
        r->job = NULL;
        end(r, E_CANCELED);
    } else if (r->waits != NULL) {
        if (r->timer != NULL)
            (void)event_del(r->timer);
        end(r, E_CANCELED);
    } /* else a task of it is on its way */
}

/* --- the ring --- */

static bool from_ring(struct gz_range *r)
{
    const struct gz_tail_blob *b;
    int64_t at = r->begin, stop = r->end;

    if (stop - at > (int64_t)r->max)
        stop = at + (int64_t)r->max;
    wr_fini(&r->got);
    wr_init(&r->got, r->max);
    STAILQ_FOREACH(b, &r->j->ring, link)
    {
        int64_t b_end = b->at + (int64_t)b->bytes->len;
        if (b_end <= at)
            continue;
        if (b->at > at || at >= stop)
            break;
        int64_t n = (b_end < stop ? b_end : stop) - at;
        wr_bytes(&r->got, b->bytes->data + (at - b->at), (size_t)n);
        at += n;
    }
    if (at > r->begin)
        gz_ring_used(r->j);
    return at > r->begin;
}

static void give(struct gz_range *r, int64_t at)
{
    r->at = at;
    r->bytes = wr_take(&r->got);
    end(r, r->bytes == NULL ? E_NOMEM : 0);
}

/* --- the broker --- */

/* No more than was asked for. */
static size_t part_of(const struct gz_range *r, int64_t at, size_t n)
{
    size_t room = r->end - at < (int64_t)r->max ? (size_t)(r->end - at) : r->max;

    return n < room ? n : room;
}

/* What the call brought: all of it, or its begin, and the rest is kept. */
static void give_read(struct gz_range *r)
{
    size_t n = part_of(r, r->got_at, wr_len(&r->got));
    struct blob *all;

    gz_count_read(false, wr_len(&r->got));
    if (n == wr_len(&r->got)) {
        give(r, r->got_at);
        return;
    }
    r->at = r->got_at;
    if ((all = wr_take(&r->got)) != NULL && (r->bytes = blob_copy(span_of(all->data, n))) != NULL)
        gz_ahead_keep(r, all);
    blob_unref(all);
    end(r, r->bytes == NULL ? E_NOMEM : 0);
}

static bool from_ahead(struct gz_range *r)
{
    struct span kept = gz_ahead_find(r->j, r->begin);

    if (kept.n == 0)
        return false;
    r->at = r->begin;
    r->bytes = blob_copy(span_of(kept.p, part_of(r, r->begin, kept.n)));
    end(r, r->bytes == NULL ? E_NOMEM : 0);
    return true;
}

static void on_message(void *arg, struct span msg)
{
    struct gz_range *r = arg;
    struct gz_read_msg m;
    size_t held = wr_len(&r->got);

    if (gz_read_parse(msg, &m) < 0) {
        r->status = -1;
        return;
    }
    gz_route_take_header(r->j, m.header);
    if (m.meta && held == 0 && m.offset > r->begin && r->jumps < JUMPS_MAX) {
        /* Nothing lies here any more, as this broker sees it: what does a list say? */
        r->jumps++;
        gz_call_cancel(r->call);
        r->call = NULL;
        look_anew(r, 0);
        return;
    }
    if (m.status != GZ_OK || m.content.n == 0) {
        r->status = m.status;
        return;
    }
    int64_t want = r->got_at + (int64_t)held;
    if (held == 0) {
        if (m.offset >= r->end)
            return;
        r->got_at = m.offset > r->begin ? m.offset : r->begin;
        want = r->got_at;
    }
    if (m.offset > want) { /* behind a hole: the next piece */
        r->status = GZ_OK;
        gz_call_cancel(r->call);
        r->call = NULL;
        give_read(r);
        return;
    }
    size_t skip = (size_t)(want - m.offset);
    if (skip >= m.content.n)
        return;
    struct span bytes = span_of(m.content.p + skip, m.content.n - skip);
    size_t room = r->until > want ? (size_t)(r->until - want) : 0;
    wr_bytes(&r->got, bytes.p, bytes.n < room ? bytes.n : room);
    if (bytes.n >= room) {
        gz_call_cancel(r->call);
        r->call = NULL;
        give_read(r);
    }
}

static void on_end(void *arg, const struct gz_end *e)
{
    struct gz_range *r = arg;

    r->call = NULL;
    if (wr_len(&r->got) > 0) {
        give_read(r);
        return;
    }
    if (e->err == 0 && r->status == GZ_OK && r->jumps >= JUMPS_MAX)
        end(r, 0); /* it was passed over to its end */
    else if (e->err == 0 && r->status == GZ_NOT_YET_AVAILABLE && r->attempt >= ABSENT_MAX)
        end(r, E_IO);
    else if (e->err == 0 && r->status == GZ_NOT_YET_AVAILABLE)
        look_anew(r, 0); /* a hole, too, when what lies behind it is not stored yet */
    else
        again(r, e->err);
}

/* f: the stored fragment that holds begin; NULL: none does, or it is not known. */
static void ask_broker(struct gz_range *r, const struct gz_frag *f)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = r};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    rq.journal = r->j->name;
    rq.offset = r->begin;
    r->until = r->end - r->begin > (int64_t)r->max ? r->begin + (int64_t)r->max : r->end;
    if (f != NULL)
        r->until = gz_ahead_begin(r, f, r->until);
    wr_fini(&r->got);
    wr_init(&r->got, (size_t)(r->until - r->begin));
    rq.end_offset = r->until;
    rq.min_etcd_revision = r->j->mod_revision;
    r->status = -1;
    if ((err = gz_rpc(r->s, r->j->endpoint, "Read", &rq.base, GZ_RPC_MS, &cb, &r->call)) < 0)
        again(r, err);
}

/* --- which one --- */

static void on_direct(void *arg, int err, struct blob *bytes)
{
    struct gz_range *r = arg;

    r->job = NULL;
    if (err == E_UNSUPPORTED) { /* the store failed meanwhile */
        r->no_direct = true;
        step(r);
        return;
    }
    if (err < 0) {
        log_peer(LOG_WARN, "gazette.direct", LF_STR("journal", r->j->name),
                 LF_INT("offset", r->begin), LF_ERR(err));
        r->no_direct = true;
        if (err == E_NOTFOUND) {
            look_anew(r, err);
        } else {
            gz_journal_refresh(r->j, 1000);
            step(r);
        }
        return;
    }
    gz_count_read(true, bytes->len);
    r->at = r->begin;
    r->bytes = bytes;
    end(r, 0);
}

static void step(struct gz_range *r)
{
    struct gz_journal *j = r->j;
    int64_t stop;

    if (r->canceled || j->hub.deleted || r->s->stopping) {
        end(r, r->canceled ? E_CANCELED : r->s->stopping ? E_CLOSED : E_NOTFOUND);
        return;
    }
    if (from_ring(r)) {
        give(r, r->begin);
        return;
    }
    if (r->begin < j->first)
        r->begin = j->first;
    if (j->state == GZ_J_SUSPENDED || r->begin >= r->end) {
        end(r, 0);
        return;
    }
    size_t k = gz_frags_behind(&j->frags, r->begin);
    if (k < j->frags.n && j->frags.v[k].begin > r->begin) { /* a hole */
        if (j->frags.v[k].begin >= r->end) {
            end(r, 0);
            return;
        }
        r->begin = j->frags.v[k].begin;
    }
    if (from_ahead(r))
        return;
    const struct gz_frag *f = k < j->frags.n ? &j->frags.v[k] : NULL;
    if (f == NULL || f->url == NULL || r->no_direct) {
        gz_journal_refresh(j, 30000);
        ask_broker(r, f);
        return;
    }
    stop = f->end < r->end ? f->end : r->end;
    if (stop - r->begin > (int64_t)r->max)
        stop = r->begin + (int64_t)r->max;
    int err = gz_direct_start(j, f, r->begin, (size_t)(stop - r->begin), on_direct, r, &r->job);
    if (err < 0)
        ask_broker(r, f);
}
