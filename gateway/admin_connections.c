/*
 * GET /v1/connections: who is connected. Each worker writes down its own connections, on its own
 * thread, and sends the text back to the control thread; the last one to arrive makes the answer.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "gateway/admin_int.h"
#include "gateway/conn.h"
#include "schema/json_reader.h"

struct connections_http;

/* Owner: control thread, then the worker, then the control thread again. */
struct worker_rows {
    struct task task;
    struct connections_http *ch;
    struct worker *w;
    struct writer rows;
};

/* Owner: control thread. */
struct connections_http {
    struct admin_call call; /* first member */
    size_t n;
    size_t missing; /* workers that did not answer yet */
    struct worker_rows workers[];
};

static void on_end(struct admin_call *call, bool closing)
{
    if (!closing)
        return; /* workers answer soon */
    if (call->req != NULL)
        http_drop(call->req);
    call->req = NULL;
}

static void answer(struct connections_http *ch)
{
    struct writer w;
    bool any = false;

    wr_init(&w, ADMIN_REPLY_MAX);
    wr_str(&w, "{\"connections\":[");
    for (size_t i = 0; i < ch->n; i++) {
        struct writer *rows = &ch->workers[i].rows;

        if (wr_err(rows) < 0)
            w.err = wr_err(rows);
        if (wr_len(rows) == 0)
            continue;
        wr_str(&w, any ? ",\n" : "");
        wr_span(&w, blob_span(rows->b));
        any = true;
    }
    wr_str(&w, "]}\n");
    if (ch->call.req != NULL)
        admin_reply_json(ch->call.a, ch->call.req, 200, &w);
    wr_fini(&w);
}

static void on_rows(struct task *t)
{
    struct worker_rows *wr = (struct worker_rows *)(void *)t;
    struct connections_http *ch = wr->ch;

    if (--ch->missing > 0)
        return;
    answer(ch);
    for (size_t i = 0; i < ch->n; i++)
        wr_fini(&ch->workers[i].rows);
    admin_call_remove(&ch->call);
    mem_free(ch);
}

/* Worker's thread. */
static void write_rows(struct task *t)
{
    static const char *const states[CONN_STATES] = {
        [CONN_READING] = "reading",
        [CONN_BLOCKED] = "blocked",
        [CONN_FLUSHING] = "flushing",
        [CONN_CLOSED] = "closed",
    };
    struct worker_rows *wr = (struct worker_rows *)(void *)t;
    int64_t now = clock_mono_ms(wr->w->shared->clock);
    const struct conn *c;

    LIST_FOREACH(c, &wr->w->conns, link)
    {
        wr_str(&wr->rows, wr_len(&wr->rows) > 0 ? ",\n{\"peer\":" : "{\"peer\":");
        sc_json_quote(span_str(c->peer), &wr->rows);
        wr_str(&wr->rows, ",\"client\":");
        sc_json_quote(span_str(c->software), &wr->rows);
        wr_str(&wr->rows, ",\"task\":");
        sc_json_quote(span_str(c->auth.principal != NULL ? c->auth.principal : ""), &wr->rows);
        wr_printf(&wr->rows, ",\"login\":\"%s\"", auth_how(&c->auth));
        wr_printf(&wr->rows,
                  ",\"worker\":%u,\"state\":\"%s\",\"requests\":%" PRIu64
                  ",\"received_bytes\":%" PRIu64 ",\"sent_bytes\":%" PRIu64
                  ",\"in_flight\":%u,\"idle_ms\":%" PRId64 "}",
                  wr->w->id, states[c->state], c->requests, c->bytes_in, c->bytes_out, c->queue_n,
                  c->active_ms > 0 && now > c->active_ms ? now - c->active_ms : 0);
    }
    wr->task.run = on_rows;
    mailbox_post(wr->ch->call.a->host.control, &wr->task);
}

void admin_get_connections(struct admin_rq *rq)
{
    const struct gw_shared *shared = rq->a->host.shared;
    size_t n = shared == NULL ? 0 : shared->workers_n;
    struct connections_http *ch;

    if (n == 0) {
        admin_reply_error(rq->a, rq->req, 503, "connections are not known here");
        return;
    }
    if ((ch = mem_zalloc(sizeof *ch + n * sizeof ch->workers[0])) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    ch->call.end = on_end;
    ch->n = ch->missing = n;
    admin_call_add(rq->a, &ch->call, rq->req);
    for (size_t i = 0; i < n; i++) {
        struct worker_rows *wr = &ch->workers[i];

        wr->ch = ch;
        wr->w = &shared->workers[i];
        wr->task.run = write_rows;
        wr_init(&wr->rows, ADMIN_REPLY_MAX);
        mailbox_post(&wr->w->mb, &wr->task);
    }
}
