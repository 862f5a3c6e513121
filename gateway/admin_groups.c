/*
 * /v1/groups: consumer groups over all tasks, their lag, reset and deletion; /metrics and the
 * status page, which show their lag. The groups thread writes the answer down; the control thread
 * sends it.
 */
#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"
#include "gateway/groups/groups_report.h"
#include "gateway/metrics.h"
#include "gateway/worker.h"

/* Owner: control thread, then the groups thread, then the control thread again. */
struct groups_http {
    struct admin_call call; /* first member */
    struct groups_ask ask;
    struct arena arena; /* names */
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

static void on_done(struct groups_ask *ask)
{
    struct groups_http *gh =
        (struct groups_http *)(void *)((char *)ask - offsetof(struct groups_http, ask));

    if (gh->call.req != NULL)
        send_answer(gh);
    admin_call_remove(&gh->call);
    wr_fini(&gh->ask.out);
    arena_fini(&gh->arena);
    mem_free(gh);
}

/* A parameter's text, NUL-terminated, or the null span. */
static struct span text_param(struct admin_rq *rq, struct arena *a, const char *name)
{
    struct span v;

    if (!admin_param(&rq->target, name, &v))
        return (struct span){NULL, 0};
    return span_of(arena_strndup(a, (const char *)v.p, v.n), v.n);
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
    arena_init(&gh->arena, 65536);
    gh->call.end = on_end;
    gh->ask.kind = kind;
    gh->ask.scope = text_param(rq, &gh->arena, "task");
    gh->ask.group =
        span_of(arena_strndup(&gh->arena, (const char *)rq->target.name.p, rq->target.name.n),
                rq->target.name.n);
    gh->ask.partition = -1;
    gh->ask.ex = &rq->a->host.control->ex;
    gh->ask.done = on_done;
    wr_init(&gh->ask.out, ADMIN_REPLY_MAX);
    return gh;
}

static void refuse(struct admin_rq *rq, struct groups_http *gh, const char *why)
{
    admin_reply_error(rq->a, rq->req, 400, "%s", why);
    wr_fini(&gh->ask.out);
    arena_fini(&gh->arena);
    mem_free(gh);
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

static const char *read_reset(struct admin_rq *rq, struct groups_ask *ask, struct arena *a)
{
    struct span v;
    int64_t n;

    ask->topic = text_param(rq, a, "topic");
    if (admin_param(&rq->target, "partition", &v)) {
        if (num_parse_i64(v, &n) < 0 || n < 0 || n > INT32_MAX || ask->topic.p == NULL)
            return "partition is a number, and goes with a topic";
        ask->partition = (int32_t)n;
    }
    if (!admin_param(&rq->target, "to", &v))
        return "to is missing: earliest, latest or an offset";
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
    ask->execute = admin_param(&rq->target, "execute", &v) && span_eq_str(v, "true");
    return NULL;
}

void admin_post_group_reset(struct admin_rq *rq)
{
    struct groups_http *gh = new_call(rq, GROUPS_ASK_RESET);
    const char *why;

    if (gh == NULL)
        return;
    if ((why = read_reset(rq, &gh->ask, &gh->arena)) != NULL) {
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
