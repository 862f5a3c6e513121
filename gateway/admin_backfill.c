/*
 * POST /v1/collections/{name}/backfill/begin, .../complete and GET .../backfill. With ?wait=ms the
 * answer comes when every journal of the collection carries the label and Kafka clients are shown
 * the bound, or when the time is over; `settled` says which. Control thread.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"
#include "gateway/publish_int.h"
#include "journal_client/uuid.h"

#define WAIT_MAX_MS INT64_C(600000)
#define LOOK_US     5000
#define TICK_S      1

/* Owner: control thread. Lives until it is answered and nobody will call back any more. */
struct backfill_http {
    struct admin_call call; /* first member */
    char *collection;
    int64_t until_ms;
    struct event *timer; /* looks whether it is settled */
    uint64_t clock;
    uint64_t superseded;
    bool ignored;
};

static void finish(struct backfill_http *bh)
{
    admin_call_remove(&bh->call);
    if (bh->timer != NULL)
        event_free(bh->timer);
    mem_free(bh->collection);
    mem_free(bh);
}

/* --- what is there
 * ----------------------------------------------------------------------------------- */

/* Clients see what the view says, and each request of theirs sees the newest one that was posted.
 */
static bool shown(struct admin_http *a, const char *collection, uint64_t begin)
{
    const struct gw_view *view = a->host.view(a->host.arg);

    for (size_t i = 0; view != NULL && i < view->topics_n; i++)
        if (strcmp(view->topics[i].collection, collection) == 0 &&
            view->topics[i].bound.min_clock < begin)
            return false;
    return view != NULL;
}

static bool settled(struct admin_http *a, const char *collection, const struct backfill_status *st)
{
    return st->state.begin == 0 ||
           (st->labelled == st->journals && shown(a, collection, st->state.begin));
}

static void member_clock(struct writer *w, const char *name, uint64_t clock)
{
    char hex[17];

    num_hex16(clock, hex);
    if (clock == 0)
        wr_printf(w, ",\"%s\":null", name);
    else
        wr_printf(w, ",\"%s\":\"%s\"", name, hex);
}

static void write_status(struct writer *w, struct admin_http *a, const char *collection,
                         const struct backfill_status *st)
{
    static const char *const phases[] = {"none", "active", "complete"};

    wr_str(w, "{\"collection\":");
    sc_json_quote(span_str(collection), w);
    wr_printf(w, ",\"state\":\"%s\"", phases[st->state.phase]);
    member_clock(w, "begin", st->state.begin);
    member_clock(w, "complete", st->state.complete);
    member_clock(w, "completes", st->state.completes);
    member_clock(w, "truncated_at", st->truncated_at);
    wr_printf(w, ",\"partitions\":%zu,\"labelled\":%zu,\"settled\":%s", st->journals, st->labelled,
              settled(a, collection, st) ? "true" : "false");
}

/* --- answers
 * ----------------------------------------------------------------------------------------- */

static void reply(struct backfill_http *bh)
{
    struct http_rq *req = bh->call.req;
    struct admin_http *a = bh->call.a;
    struct backfill_status st;
    struct writer w;
    int err = backfills_status(a->backfills, span_str(bh->collection), &st);

    bh->call.req = NULL;
    if (req != NULL && err < 0) {
        admin_reply_error(a, req, err == E_NOTFOUND ? 404 : 503,
                          err == E_NOTFOUND ? "no such collection"
                                            : "the journals were not listed yet");
    } else if (req != NULL) {
        wr_init(&w, 65536);
        write_status(&w, a, bh->collection, &st);
        if (bh->clock != 0)
            member_clock(&w, "clock", bh->clock);
        if (bh->superseded != 0)
            member_clock(&w, "superseded", bh->superseded);
        if (bh->ignored)
            wr_str(&w, ",\"ignored\":true,\"warning\":\"no backfill is active: nothing was "
                       "written\"");
        wr_str(&w, "}\n");
        admin_reply_json(a, req, 200, &w);
    }
    finish(bh);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct backfill_http *bh = arg;
    struct admin_http *a = bh->call.a;
    struct timeval tv = {.tv_usec = LOOK_US};
    struct backfill_status st;
    int err = backfills_status(a->backfills, span_str(bh->collection), &st);

    (void)fd;
    (void)what;
    if (bh->call.req == NULL || a->draining || clock_mono_ms(a->host.clock) >= bh->until_ms ||
        (err < 0 && err != E_AGAIN) || (err == 0 && settled(a, bh->collection, &st)) ||
        evtimer_add(bh->timer, &tv) < 0)
        reply(bh);
}

static void start_looking(struct backfill_http *bh)
{
    if (bh->until_ms == 0 || (bh->timer = evtimer_new(bh->call.a->base, on_look, bh)) == NULL)
        reply(bh);
    else
        on_look(-1, 0, bh);
}

static void reply_refused(struct backfill_http *bh, const struct backfill_answer *answer)
{
    const struct backfill_foreign *f = &answer->foreign;
    struct http_rq *req = bh->call.req;
    struct writer w;

    bh->call.req = NULL;
    if (req != NULL && !f->found) {
        admin_reply_error(bh->call.a, req, answer->status, "%s", answer->error);
    } else if (req != NULL) {
        wr_init(&w, 65536);
        wr_str(&w, "{\"error\":");
        sc_json_quote(span_str(answer->error), &w);
        wr_str(&w, ",\"producer\":");
        if (f->no_uuid)
            wr_str(&w, "null");
        else
            wr_printf(&w, "\"%02x%02x%02x%02x%02x%02x\"", f->producer[0], f->producer[1],
                      f->producer[2], f->producer[3], f->producer[4], f->producer[5]);
        wr_str(&w, ",\"journal\":");
        sc_json_quote(span_str(f->journal), &w);
        wr_printf(&w, ",\"offset\":%lld}\n", (long long)f->offset);
        admin_reply_json(bh->call.a, req, answer->status, &w);
    }
    finish(bh);
}

static void on_answer(void *arg, const struct backfill_answer *answer)
{
    struct backfill_http *bh = arg;

    if (answer->status != 200) {
        reply_refused(bh, answer);
        return;
    }
    bh->clock = answer->clock;
    bh->superseded = answer->superseded;
    bh->ignored = answer->ignored;
    if (bh->call.req == NULL)
        finish(bh);
    else
        start_looking(bh);
}

/* A drain ends waits for labels; they are set after the restart. Commits end by themselves. */
static void on_end(struct admin_call *call, bool closing)
{
    struct backfill_http *bh = (struct backfill_http *)(void *)call;

    admin_call_let_go(call, closing);
    if (bh->timer == NULL)
        return;
    if (closing)
        finish(bh);
    else
        reply(bh);
}

/* --- requests
 * ---------------------------------------------------------------------------------------- */

struct params {
    bool force;
    int64_t wait_ms;
    uint64_t begin;
};

static bool is_true(struct span v)
{
    return v.n == 0 || span_eq_str(v, "true") || span_eq_str(v, "1");
}

/* NULL, or what is wrong with the parameters. */
static const char *params_of(const struct admin_rq *rq, struct params *out)
{
    *out = (struct params){0};
    for (size_t i = 0; i < rq->target.params_n; i++) {
        const struct admin_param *p = &rq->target.params[i];

        if (span_eq_str(p->name, "wait")) {
            if (num_parse_ms(p->value, &out->wait_ms) < 0 || out->wait_ms < 0 ||
                out->wait_ms > WAIT_MAX_MS)
                return "wait is a time of at most 10m, e.g. 30s or 500";
        } else if (span_eq_str(p->name, "force") && rq->target.route == ADMIN_BACKFILL_BEGIN) {
            out->force = is_true(p->value);
            if (!out->force && !span_eq_str(p->value, "false") && !span_eq_str(p->value, "0"))
                return "force is true or false";
        } else if (span_eq_str(p->name, "begin") && rq->target.route == ADMIN_BACKFILL_COMPLETE) {
            if (jc_clock_parse_hex(p->value, &out->begin) < 0)
                return "begin is a clock of 16 hex digits";
        } else {
            return "unknown parameter; known are wait, force (begin) and begin (complete)";
        }
    }
    return NULL;
}

/* Answers and returns NULL when it cannot start. */
static struct backfill_http *start(struct admin_rq *rq, struct params *params)
{
    const char *fault = params_of(rq, params);
    struct backfill_http *bh;

    if (fault != NULL) {
        admin_reply_error(rq->a, rq->req, 400, "%s", fault);
        return NULL;
    }
    if ((bh = mem_zalloc(sizeof *bh)) == NULL ||
        (bh->collection = mem_strndup((const char *)rq->target.name.p, rq->target.name.n)) ==
            NULL) {
        mem_free(bh);
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return NULL;
    }
    bh->call.end = on_end;
    if (params->wait_ms > 0)
        bh->until_ms = clock_mono_ms(rq->a->host.clock) + params->wait_ms;
    return bh;
}

void admin_get_backfill(struct admin_rq *rq)
{
    struct params params;
    struct backfill_http *bh = start(rq, &params);

    if (bh == NULL)
        return;
    admin_call_add(rq->a, &bh->call, rq->req);
    start_looking(bh);
}

void admin_post_backfill(struct admin_rq *rq)
{
    struct params params;
    struct backfill_http *bh = start(rq, &params);
    struct backfill_req br = {.collection = rq->target.name};

    if (bh == NULL)
        return;
    br.verb = rq->target.route == ADMIN_BACKFILL_BEGIN ? BACKFILL_BEGIN : BACKFILL_COMPLETE;
    br.force = params.force;
    br.expect = params.begin;
    if (backfills_post(rq->a->backfills, &br, on_answer, bh) < 0) {
        mem_free(bh->collection);
        mem_free(bh);
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    admin_call_add(rq->a, &bh->call, rq->req);
}

/* --- life
 * -------------------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct admin_http *a = arg;

    (void)fd;
    (void)what;
    backfills_tick(a->backfills);
}

int admin_backfill_start(struct admin_http *a)
{
    const struct backfill_opts opts = {.store = a->host.store,
                                       .home = a->host.control,
                                       .jobs = jobpool_executor(a->host.jobs),
                                       .publisher = a->publisher};
    struct timeval tick = {.tv_sec = TICK_S};
    int err;

    if ((err = backfills_new(&opts, &a->backfills)) < 0)
        return err;
    a->backfill_tick = event_new(a->base, -1, EV_PERSIST, on_tick, a);
    return a->backfill_tick == NULL || event_add(a->backfill_tick, &tick) < 0 ? E_NOMEM : 0;
}

void admin_backfill_stop(struct admin_http *a)
{
    if (a->backfill_tick != NULL)
        event_free(a->backfill_tick);
    a->backfill_tick = NULL;
    if (a->backfills == NULL)
        return;
    backfills_drain(a->backfills);
    while (backfills_busy(a->backfills) > 0)
        (void)mailbox_wait(a->host.control, 1000);
    backfills_free(a->backfills);
    a->backfills = NULL;
}
