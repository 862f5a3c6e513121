/*
 * The operator's routes on raw journals, for `serve --journal-admin` only: append bytes as they
 * stand, make, change and delete journals by compare-and-set, close and remove fragments. Nothing
 * is stamped and nothing is checked but the store's own rules, so this is for repairs and for
 * tests, which make with it what publishing never does. Each is logged with its outcome. Control
 * thread.
 */
#include <event2/buffer.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"

#define SPEC_BODY_MAX 262144
#define LISTING_TRIES 1000 /* looks for a change in the listing, until it is answered anyway */
#define LISTING_US    5000

/* Owner: control thread. Lives until the store answered, and the listing for changes of specs. */
struct operation {
    struct admin_call call; /* first member */
    const char *what;
    char *name;                       /* of the journal */
    const struct jc_journal *journal; /* NULL: it is to be made */
    struct blob *body;
    struct jc_append_part part;
    struct jc_txn txn;
    int err;
    int64_t revision;
    struct event *timer; /* looks for the revision in the listing */
    unsigned tries;
};

static void operation_free(struct operation *op)
{
    if (op == NULL)
        return;
    if (op->timer != NULL)
        event_free(op->timer);
    jc_journal_unref(op->journal);
    blob_unref(op->body);
    mem_free(op->name);
    mem_free(op);
}

static void operation_end(struct operation *op)
{
    admin_call_remove(&op->call);
    operation_free(op);
}

/* The store answers soon by itself; the timer's loop may turn no more. */
static void operation_let_go(struct admin_call *call, bool closing)
{
    struct operation *op = (struct operation *)(void *)call;

    admin_call_let_go(call, closing);
    if (closing && op->timer != NULL)
        operation_end(op);
}

/* NULL when the client's request is gone; it must be answered otherwise. */
static struct http_rq *take_request(struct operation *op)
{
    struct http_rq *req = op->call.req;

    op->call.req = NULL;
    return req;
}

static void log_outcome(const struct operation *op, int err)
{
    if (err < 0)
        log_event(LOG_WARN, "journal.admin", LF_STR("action", op->what),
                  LF_STR("journal", op->name), LF_ERR(err));
    else
        log_event(LOG_INFO, "journal.admin", LF_STR("action", op->what),
                  LF_STR("journal", op->name));
}

static int status_of(int err)
{
    switch (err) {
    case E_NOTFOUND:
        return 404;
    case E_CONFLICT:
        return 409;
    case E_INVALID:
        return 400;
    case E_DENIED:
        return 403;
    case E_NOSPACE:
        return 507;
    default:
        return 503;
    }
}

static void reply_err(struct operation *op, int err)
{
    struct http_rq *req = take_request(op);
    bool made = op->journal == NULL; /* its name was new to the store */
    const char *rule = err == E_INVALID && made ? op->call.a->host.store->ops->name_rule : NULL;

    log_outcome(op, err);
    if (req != NULL)
        admin_reply_error(op->call.a, req, status_of(err), "%s%s%s", err_text(err),
                          rule == NULL ? "" : ": ", rule == NULL ? "" : rule);
    operation_end(op);
}

static void reply_done(struct operation *op, struct writer *w)
{
    struct http_rq *req = take_request(op);

    log_outcome(op, 0);
    if (req != NULL)
        admin_reply_json(op->call.a, req, 200, w);
    else
        wr_fini(w);
    operation_end(op);
}

static const struct jc_journal *find(const struct admin_http *a, const char *name)
{
    const struct jc_listing *l = publisher_listing(a->publisher);

    return l == NULL ? NULL : jc_listing_find(l, span_str(name));
}

/* Starts an operation; NULL: answered already. there: only on a journal that exists. */
static struct operation *operation_new(struct admin_rq *rq, const char *what, bool there)
{
    const char *name = (const char *)rq->target.name.p;
    const struct jc_journal *j = find(rq->a, name);
    struct operation *op;

    if (publisher_listing(rq->a->publisher) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "the journals were not listed yet");
        return NULL;
    }
    if (there && j == NULL) {
        admin_reply_error(rq->a, rq->req, 404, "no such journal");
        return NULL;
    }
    if ((op = mem_zalloc(sizeof *op)) == NULL || (op->name = mem_strdup(name)) == NULL) {
        operation_free(op);
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return NULL;
    }
    op->call.end = operation_let_go;
    op->what = what;
    if (j != NULL)
        op->journal = jc_journal_ref(j);
    return op;
}

/* The store has it now, or refused the start. */
static void operation_started(struct admin_rq *rq, struct operation *op, int err)
{
    if (err < 0) {
        log_outcome(op, err);
        admin_reply_error(rq->a, rq->req, status_of(err), "%s", err_text(err));
        operation_free(op);
        return;
    }
    admin_call_add(rq->a, &op->call, rq->req);
}

/* A misspelt condition would otherwise do more than was asked for. Answers and returns false. */
static bool params_known(struct admin_rq *rq, const char *a, const char *b)
{
    for (size_t i = 0; i < rq->target.params_n; i++) {
        struct span name = rq->target.params[i].name;

        if ((a != NULL && span_eq_str(name, a)) || (b != NULL && span_eq_str(name, b)))
            continue;
        admin_reply_error(rq->a, rq->req, 400, "unknown parameter \"%.*s\"",
                          name.n > 100 ? 100 : (int)name.n, (const char *)name.p);
        return false;
    }
    return true;
}

/* A whole number among the parameters; answers and returns false when it is none. */
static bool int_param(struct admin_rq *rq, const char *name, int64_t absent, int64_t *out)
{
    struct span text;

    *out = absent;
    if (!admin_param(&rq->target, name, &text) || (num_parse_i64(text, out) == 0 && *out >= 0))
        return true;
    admin_reply_error(rq->a, rq->req, 400, "\"%s\" must be a whole number, not negative", name);
    return false;
}

static bool plain_body(struct admin_rq *rq)
{
    const char *coding = admin_header(rq->req, "Content-Encoding");

    if (coding == NULL || strcasecmp(coding, "identity") == 0)
        return true;
    admin_reply_error(rq->a, rq->req, 415, "Content-Encoding is not supported");
    return false;
}

/* Takes the body; answers, ends op and returns false when it is longer than max. */
static bool take_body(struct admin_rq *rq, struct operation *op, size_t max)
{
    if (http_body_bytes(rq->req) > max) {
        admin_reply_error(rq->a, rq->req, 413, "at most %zu bytes in one request", max);
        operation_free(op);
        return false;
    }
    if ((op->body = http_take_body(rq->req)) == NULL) {
        operation_started(rq, op, E_NOMEM);
        return false;
    }
    return true;
}

/* --- content
 * ----------------------------------------------------------------------------------------- */

static void on_appended(void *arg, int err, struct jc_txn *txn)
{
    struct operation *op = arg;
    struct writer w;

    (void)txn;
    if (err < 0) {
        reply_err(op, err);
        return;
    }
    wr_init(&w, 4096);
    wr_printf(&w, "{\"begin\":%" PRId64 ",\"end\":%" PRId64 "}\n", op->part.begin, op->part.end);
    reply_done(op, &w);
}

void admin_post_content(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct operation *op;

    if (!params_known(rq, NULL, NULL) || !plain_body(rq) ||
        (op = operation_new(rq, "append", true)) == NULL ||
        !take_body(rq, op, rq->a->host.config->max_ingest_bytes))
        return;
    if (op->body->len == 0 || op->body->data[op->body->len - 1] != '\n') {
        admin_reply_error(rq->a, rq->req, 400,
                          "whole lines are expected: the last byte must be a "
                          "newline");
        operation_free(op);
        return;
    }
    op->part = (struct jc_append_part){.journal = op->journal, .bytes = op->body};
    op->txn = (struct jc_txn){.parts = &op->part, .parts_n = 1};
    operation_started(rq, op,
                      s->ops->append(s, &op->txn, &rq->a->host.control->ex, on_appended, op));
}

/* --- specs
 * ------------------------------------------------------------------------------------------- */

static void reply_applied(struct operation *op)
{
    const struct jc_journal *j = find(op->call.a, op->name);
    struct http_rq *req;
    struct writer w;

    wr_init(&w, 4096);
    if (op->err == 0) {
        wr_printf(&w, "{\"revision\":%" PRId64 "}\n", op->revision);
        reply_done(op, &w);
        return;
    }
    log_outcome(op, op->err);
    wr_printf(&w,
              "{\"error\":\"the journal is at another revision\",\"mod_revision\":%" PRId64 "}\n",
              j == NULL ? 0 : j->mod_revision);
    if ((req = take_request(op)) != NULL)
        admin_reply_json(op->call.a, req, 409, &w);
    else
        wr_fini(&w);
    operation_end(op);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct operation *op = arg;
    const struct jc_listing *l = publisher_listing(op->call.a->publisher);
    struct timeval tv = {.tv_usec = LISTING_US};

    (void)fd;
    (void)what;
    if ((l != NULL && l->revision >= op->revision) || op->call.req == NULL ||
        ++op->tries >= LISTING_TRIES || evtimer_add(op->timer, &tv) < 0)
        reply_applied(op);
}

/* Whoever changed a journal finds it changed, and whoever lost finds the winner: the answer waits
 * until the listing is as new as the store's answer. */
static void on_applied(void *arg, int err, int64_t revision)
{
    struct operation *op = arg;

    op->err = err;
    op->revision = revision;
    if (err < 0 && err != E_CONFLICT)
        reply_err(op, err);
    else if ((op->timer = evtimer_new(op->call.a->base, on_look, op)) == NULL)
        reply_applied(op);
    else
        on_look(-1, 0, op);
}

void admin_put_journal(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct jc_change change = {.upsert = NULL};
    struct admin_spec spec;
    const char *why = NULL;
    struct operation *op;
    int err;

    if (!params_known(rq, NULL, NULL) || !plain_body(rq) ||
        (op = operation_new(rq, "put", false)) == NULL || !take_body(rq, op, SPEC_BODY_MAX))
        return;
    err = admin_spec_parse(blob_span(op->body), op->name, op->journal, &rq->arena, &spec, &why);
    if (err == E_INVALID) {
        admin_reply_error(rq->a, rq->req, 400, "%s", why);
        operation_free(op);
        return;
    }
    change.upsert = &spec.spec;
    change.expect_mod_revision = spec.expect_mod_revision;
    if (err == 0)
        err = s->ops->apply(s, &change, 1, &rq->a->host.control->ex, on_applied, op);
    operation_started(rq, op, err);
}

void admin_delete_journal(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct jc_change change = {.upsert = NULL};
    struct operation *op;

    if (!params_known(rq, "expect_mod_revision", NULL) ||
        !int_param(rq, "expect_mod_revision", -1, &change.expect_mod_revision) ||
        (op = operation_new(rq, "delete", true)) == NULL)
        return;
    change.delete_name = op->name;
    operation_started(rq, op,
                      s->ops->apply(s, &change, 1, &rq->a->host.control->ex, on_applied, op));
}

/* --- fragments
 * --------------------------------------------------------------------------------------- */

static void on_fragments(void *arg, int err, const struct jc_fragment *list, size_t n)
{
    struct operation *op = arg;
    struct writer w;

    if (err < 0) {
        reply_err(op, err);
        return;
    }
    wr_init(&w, ADMIN_REPLY_MAX);
    wr_str(&w, "{\"fragments\":");
    admin_json_fragments(&w, list, n);
    wr_str(&w, "}\n");
    reply_done(op, &w);
}

/* Closed, removed or punched: the answer is what is left. */
static void on_done(void *arg, int err)
{
    struct operation *op = arg;
    struct jc_store *s = op->call.a->host.store;

    if (err == 0)
        err = s->ops->fragments(s, op->journal, &op->call.a->host.control->ex, on_fragments, op);
    if (err < 0)
        reply_err(op, err);
}

static const struct gw_repair *need_repair(struct admin_rq *rq)
{
    const struct gw_repair *repair = rq->a->host.config->repair;

    if (repair == NULL)
        admin_reply_error(rq->a, rq->req, 501, "this store cannot do that");
    return repair;
}

void admin_post_close(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    const struct gw_repair *repair = need_repair(rq);
    struct operation *op;

    if (repair == NULL || !params_known(rq, NULL, NULL) ||
        (op = operation_new(rq, "close", true)) == NULL)
        return;
    operation_started(rq, op, repair->flush(s, &rq->a->host.control->ex, on_done, op));
}

void admin_delete_fragments(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct executor *ex = &rq->a->host.control->ex;
    const struct gw_repair *repair = need_repair(rq);
    struct operation *op;
    int64_t begin, end;

    if (repair == NULL || !params_known(rq, "begin", "end") ||
        !int_param(rq, "begin", -1, &begin) || !int_param(rq, "end", -1, &end))
        return;
    if ((begin < 0) == (end < 0)) {
        admin_reply_error(rq->a, rq->req, 400,
                          "either end=N (all that end at or below it) or begin=N (that one)");
        return;
    }
    if ((op = operation_new(rq, end >= 0 ? "remove" : "punch", true)) == NULL)
        return;
    operation_started(rq, op,
                      end >= 0 ? repair->remove_fragments(s, op->journal, end, ex, on_done, op)
                               : repair->punch(s, op->journal, begin, ex, on_done, op));
}
