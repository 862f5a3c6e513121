/*
 * /v1/groups: consumer groups over all tasks, their lag, reset and deletion; /metrics and the
 * status page, which show their lag. The groups thread writes the answer down; the control thread
 * sends it, and looks times up for a reset by time.
 */
#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"
#include "gateway/catalog.h"
#include "gateway/groups/groups_report.h"
#include "gateway/metrics.h"
#include "gateway/time_look.h"
#include "gateway/worker.h"
#include "journal_client/uuid.h"

#define LOOKS_MAX 8 /* look-ups of one reset at a time */

/* Owner: the arena of its call. */
struct group_look {
    struct time_look look; /* first member */
    struct groups_http *gh;
    struct groups_reset_at *at;
};

/* Owner: control thread, then the groups thread, then the control thread again; twice for a reset
 * by time: the groups thread says of what, look-ups of the control thread find the offsets. */
struct groups_http {
    struct admin_call call; /* first member */
    struct groups_ask ask;
    /* reset by time; control thread */
    int64_t to_ms;
    const struct gw_view *view; /* owned reference while look-ups run */
    struct group_look *looks;
    size_t looks_n;
    size_t next; /* to be started */
    size_t running;
    bool pumping;
    int err;
};

static void on_end(struct admin_call *call, bool closing)
{
    admin_call_let_go(call, closing); /* the groups thread answers soon */
}

static void send_answer(struct groups_http *gh)
{
    struct admin_http *a = gh->call.a;
    struct writer *w = &gh->ask.out;

    if (gh->ask.status != 200) {
        admin_reply_error(a, gh->call.req, gh->ask.status, "%s", gh->ask.fault);
        return;
    }
    if (gh->ask.kind == GROUPS_ASK_HTML) {
        admin_reply_status(a, gh->call.req,
                           wr_err(w) < 0 || w->b == NULL ? span_of("", 0) : blob_span(w->b));
        return;
    }
    if (gh->ask.kind != GROUPS_ASK_LAG) {
        admin_reply_json(a, gh->call.req, 200, w);
        return;
    }
    metrics_render(a->host.view(a->host.arg), w);
    if (wr_err(w) < 0)
        admin_reply_error(a, gh->call.req, 503, "%s", err_text(wr_err(w)));
    else
        admin_reply(a, gh->call.req, 200, "text/plain; version=0.0.4; charset=utf-8",
                    blob_span(w->b));
}

static void groups_http_free(struct groups_http *gh)
{
    gw_view_unref(gh->view);
    groups_ask_fini(&gh->ask);
    mem_free(gh);
}

static void finish(struct groups_http *gh)
{
    if (gh->call.req != NULL)
        send_answer(gh);
    admin_call_remove(&gh->call);
    groups_http_free(gh);
}

static void fail(struct groups_http *gh, int status, const char *fault)
{
    gh->ask.status = status;
    gh->ask.fault = fault;
    finish(gh);
}

/* --- reset by time --- */

/* All look-ups ended, so nothing refers to the view any more. */
static void looks_end(struct groups_http *gh)
{
    gw_view_unref(gh->view);
    gh->view = NULL;
    if (gh->err < 0 || gh->call.req == NULL) {
        fail(gh, 503, gh->err < 0 ? err_text(gh->err) : "closed");
        return;
    }
    wr_fini(&gh->ask.out); /* the plan */
    wr_init(&gh->ask.out, GROUPS_OUT_BYTES);
    gh->ask.kind = GROUPS_ASK_RESET;
    gh->ask.to = GROUPS_TO_EACH;
    groups_ask(gh->call.a->host.shared->groups, &gh->ask);
}

static void pump(struct groups_http *gh)
{
    if (gh->pumping) /* a look-up that ended within its start */
        return;
    gh->pumping = true;
    while (gh->next < gh->looks_n && gh->running < LOOKS_MAX && gh->err == 0 &&
           gh->call.req != NULL) {
        gh->running++;
        time_look_start(&gh->looks[gh->next++].look);
    }
    gh->pumping = false;
    if (gh->running == 0)
        looks_end(gh);
}

/* As Kafka's tool: a partition without a document of that time or later is read from its end. */
static void on_look(struct time_look *look, int err, int64_t offset, int64_t timestamp)
{
    struct group_look *l = (struct group_look *)look; /* first member */
    struct groups_http *gh = l->gh;

    (void)timestamp;
    if (err == 0)
        l->at->offset = offset;
    else if (err == E_NOTFOUND)
        l->at->offset = look->end;
    else
        gh->err = err;
    gh->running--;
    pump(gh);
}

/* False: the topic is not what it was when the groups thread looked. */
static bool prepare_look(struct groups_http *gh, const struct gw_task *task,
                         struct groups_reset_at *at, struct group_look *l)
{
    const struct admin_host *host = &gh->call.a->host;
    const struct gw_topic *t = gw_task_topic(task, span_str(at->topic));
    struct fetch_ends ends;
    struct jc_heads heads;

    if (t == NULL || t->epoch != at->epoch || (size_t)at->partition >= t->parts_n ||
        !gw_part_heads(t->parts[at->partition], &heads))
        return false;
    fetch_ends_of(&heads, 0, &ends);
    l->gh = gh;
    l->at = at;
    time_look_init(&l->look, t, t->parts[at->partition], &ends, gh->to_ms);
    l->look.store = host->store;
    l->look.loads = jobpool_executor(host->shared->loads);
    l->look.ex = &host->control->ex;
    l->look.done = on_look;
    return true;
}

static void looks_begin(struct groups_http *gh)
{
    const struct admin_host *host = &gh->call.a->host;
    const struct gw_view *view = host->view(host->arg);
    const struct gw_task *task =
        view == NULL ? NULL
                     : gw_view_task(view, gh->ask.scope.p == NULL ? span_str("") : gh->ask.scope);

    gh->looks_n = gh->ask.each_n;
    gh->looks = arena_array(&gh->ask.arena, gh->looks_n + 1, sizeof *gh->looks);
    if (gh->looks == NULL) {
        fail(gh, 503, "out of memory");
        return;
    }
    for (size_t i = 0; i < gh->looks_n; i++) {
        if (task == NULL || !prepare_look(gh, task, &gh->ask.each[i], &gh->looks[i])) {
            fail(gh, 409, "the topics have just changed: try again");
            return;
        }
    }
    gh->view = view == NULL ? NULL : gw_view_ref(view);
    pump(gh);
}

static void on_done(struct groups_ask *ask)
{
    struct groups_http *gh =
        (struct groups_http *)(void *)((char *)ask - offsetof(struct groups_http, ask));

    if (ask->kind == GROUPS_ASK_PLAN && ask->status == 200 && gh->call.req != NULL)
        looks_begin(gh);
    else
        finish(gh);
}

/* --- requests --- */

/* A copy, NUL-terminated. False: out of memory; no span then, which would mean "all". */
static bool copy_text(struct arena *a, struct span text, struct span *out)
{
    char *copy = arena_strndup(a, (const char *)text.p, text.n);

    *out = (struct span){NULL, 0};
    if (copy == NULL)
        return false;
    *out = span_of(copy, text.n);
    return true;
}

/* A parameter's text; the null span when it is absent. */
static bool text_param(struct admin_rq *rq, struct arena *a, const char *name, struct span *out)
{
    struct span v;

    *out = (struct span){NULL, 0};
    return !admin_param(&rq->target, name, &v) || copy_text(a, v, out);
}

static struct groups_http *new_call(struct admin_rq *rq, enum groups_ask_kind kind)
{
    const struct gw_shared *shared = rq->a->host.shared;
    struct groups_http *gh;

    if (shared == NULL || shared->groups == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "there are no groups here");
        return NULL;
    }
    if ((gh = mem_zalloc(sizeof *gh)) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return NULL;
    }
    groups_ask_init(&gh->ask, kind, &rq->a->host.control->ex, on_done);
    gh->call.end = on_end;
    if (!text_param(rq, &gh->ask.arena, "task", &gh->ask.scope) ||
        !text_param(rq, &gh->ask.arena, "topic", &gh->ask.topic) ||
        !copy_text(&gh->ask.arena, rq->target.name, &gh->ask.group)) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        groups_http_free(gh);
        return NULL;
    }
    return gh;
}

static void refuse(struct admin_rq *rq, struct groups_http *gh, const char *why)
{
    admin_reply_error(rq->a, rq->req, 400, "%s", why);
    groups_http_free(gh);
}

static void start(struct admin_rq *rq, struct groups_http *gh)
{
    admin_call_add(rq->a, &gh->call, rq->req);
    groups_ask(rq->a->host.shared->groups, &gh->ask);
}

void admin_get_groups(struct admin_rq *rq)
{
    bool one = rq->target.route == ADMIN_GROUP;
    struct groups_http *gh = new_call(rq, one ? GROUPS_ASK_ONE : GROUPS_ASK_LIST);

    if (gh != NULL)
        start(rq, gh);
}

void admin_delete_group(struct admin_rq *rq)
{
    struct groups_http *gh = new_call(rq, GROUPS_ASK_DELETE);

    if (gh != NULL)
        start(rq, gh);
}

/* Milliseconds since 1970, or RFC 3339: finer instants count as the next millisecond. */
static bool read_time(struct span text, int64_t *ms)
{
    struct catalog_time at;

    if (num_parse_i64(text, ms) == 0)
        return *ms >= 0;
    if (catalog_time_parse(text, &at) < 0)
        return false;
    *ms = jc_clock_unix_ms(at.at_least);
    *ms += jc_clock_from_unix_ms(*ms) < at.at_least;
    return *ms >= 0;
}

static const char *read_reset(struct admin_rq *rq, struct groups_http *gh)
{
    struct groups_ask *ask = &gh->ask;
    struct span v;
    int64_t n;

    if (admin_param(&rq->target, "partition", &v)) {
        if (num_parse_i64(v, &n) < 0 || n < 0 || n > INT32_MAX || ask->topic.p == NULL)
            return "partition is a number, and goes with a topic";
        ask->partition = (int32_t)n;
    }
    ask->execute = admin_param(&rq->target, "execute", &v) && span_eq_str(v, "true");
    if (admin_param(&rq->target, "time", &v)) {
        if (admin_param(&rq->target, "to", &(struct span){NULL, 0}))
            return "to and time exclude each other";
        ask->kind = GROUPS_ASK_PLAN;
        return read_time(v, &gh->to_ms) ? NULL : "time is RFC 3339, or milliseconds since 1970";
    }
    if (!admin_param(&rq->target, "to", &v))
        return "to is missing: earliest, latest or an offset; or time";
    if (span_eq_str(v, "earliest")) {
        ask->to = GROUPS_TO_EARLIEST;
    } else if (span_eq_str(v, "latest")) {
        ask->to = GROUPS_TO_LATEST;
    } else if (num_parse_i64(v, &n) == 0 && n >= 0) {
        ask->to = GROUPS_TO_OFFSET;
        ask->offset = n;
    } else {
        return "to is earliest, latest or an offset";
    }
    return NULL;
}

void admin_post_group_reset(struct admin_rq *rq)
{
    struct groups_http *gh = new_call(rq, GROUPS_ASK_RESET);
    const char *why;

    if (gh == NULL)
        return;
    if ((why = read_reset(rq, gh)) != NULL) {
        refuse(rq, gh, why);
        return;
    }
    start(rq, gh);
}

static bool has_groups(const struct admin_rq *rq)
{
    const struct gw_shared *shared = rq->a->host.shared;
    return shared != NULL && shared->groups != NULL && !rq->a->draining;
}

void admin_get_status(struct admin_rq *rq)
{
    struct groups_http *gh;

    if (!has_groups(rq))
        admin_reply_status(rq->a, rq->req, span_of("", 0));
    else if ((gh = new_call(rq, GROUPS_ASK_HTML)) != NULL)
        start(rq, gh);
}

void admin_get_metrics(struct admin_rq *rq)
{
    struct groups_http *gh;
    struct writer w;

    if (has_groups(rq)) {
        if ((gh = new_call(rq, GROUPS_ASK_LAG)) != NULL)
            start(rq, gh);
        return;
    }
    wr_init(&w, ADMIN_REPLY_MAX);
    metrics_render(rq->a->host.view(rq->a->host.arg), &w);
    if (wr_err(&w) < 0)
        admin_reply_error(rq->a, rq->req, 503, "%s", err_text(wr_err(&w)));
    else
        admin_reply(rq->a, rq->req, 200, "text/plain; version=0.0.4; charset=utf-8",
                    blob_span(w.b));
    wr_fini(&w);
}
