/*
 * The operator's routes on raw journals, for `serve --journal-admin` only: append bytes as they
 * stand, make, change and delete journals by compare-and-set, close and remove fragments. Nothing
 * is stamped and nothing is checked but the store's own rules, so this is for repairs and for
 * tests, which make with it what publishing never does. Control thread.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"
#include "journal_client/local.h"

#define LABELS_MAX   1000
#define VIEW_TRIES   1000
#define VIEW_WAIT_US 5000

/* Owner: control thread. Lives until the store answered, and the listing for changes of specs. */
struct operation {
    struct admin_call call; /* first member */
    const struct jc_journal *journal;
    struct blob *body;
    struct jc_append_part part;
    struct jc_txn txn;
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
static struct evhttp_request *take_request(struct operation *op)
{
    struct evhttp_request *req = op->call.req;

    op->call.req = NULL;
    return req;
}

static void reply_err(struct operation *op, int err)
{
    struct evhttp_request *req = take_request(op);
    int status = err == E_NOTFOUND ? 404 : err == E_CONFLICT ? 409 : err == E_INVALID ? 400 : 503;

    if (req != NULL)
        admin_reply_error(op->call.a, req, status, "%s", err_text(err));
    operation_end(op);
}

/* Starts an operation; NULL: answered already. name: the journal must be there. */
static struct operation *operation_new(struct admin_rq *rq, bool name)
{
    const struct jc_listing *l = publisher_listing(rq->a->publisher);
    const struct jc_journal *j = l == NULL ? NULL : jc_listing_find(l, rq->target.name);
    struct operation *op;

    if (l == NULL || (name && j == NULL)) {
        admin_reply_error(rq->a, rq->req, l == NULL ? 503 : 404,
                          l == NULL ? "the journals were not listed yet" : "no such journal");
        return NULL;
    }
    if ((op = mem_zalloc(sizeof *op)) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return NULL;
    }
    op->call.end = operation_let_go;
    if (name)
        op->journal = jc_journal_ref(j);
    return op;
}

/* The store has it now, or refused the start. */
static void operation_started(struct admin_rq *rq, struct operation *op, int err)
{
    if (err < 0) {
        admin_reply_error(rq->a, rq->req, err == E_INVALID ? 400 : 503, "%s", err_text(err));
        operation_free(op);
        return;
    }
    admin_call_add(rq->a, &op->call, rq->req);
}

static bool need_local(struct admin_rq *rq)
{
    if (strcmp(rq->a->host.store->ops->name, "local") == 0)
        return true;
    admin_reply_error(rq->a, rq->req, 501, "only the local store can do this");
    return false;
}

/* A whole number among the parameters; answers and returns false when it is none. */
static bool int_param(struct admin_rq *rq, const char *name, int64_t absent, int64_t *out)
{
    struct span text;

    *out = absent;
    if (!admin_param(&rq->target, name, &text) || num_parse_i64(text, out) == 0)
        return true;
    admin_reply_error(rq->a, rq->req, 400, "parameter \"%s\" is not a whole number", name);
    return false;
}

/* --- content
 * ----------------------------------------------------------------------------------------- */

static void on_appended(void *arg, int err, struct jc_txn *txn)
{
    struct operation *op = arg;
    struct evhttp_request *req;
    struct writer w;

    (void)txn;
    if (err < 0) {
        reply_err(op, err);
        return;
    }
    if ((req = take_request(op)) != NULL) {
        wr_init(&w, 4096);
        wr_printf(&w, "{\"begin\":%" PRId64 ",\"end\":%" PRId64 "}\n", op->part.begin,
                  op->part.end);
        admin_reply_json(op->call.a, req, 200, &w);
    }
    operation_end(op);
}

void admin_post_content(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct operation *op = operation_new(rq, true);
    int err;

    if (op == NULL)
        return;
    if ((op->body = admin_take_body(rq->req)) == NULL) {
        operation_started(rq, op, E_NOMEM);
        return;
    }
    if (op->body->len == 0 || op->body->data[op->body->len - 1] != '\n' ||
        op->body->len > rq->a->host.config->max_ingest_bytes) {
        admin_reply_error(rq->a, rq->req, 400, "1 to %zu bytes of whole lines are expected",
                          rq->a->host.config->max_ingest_bytes);
        operation_free(op);
        return;
    }
    op->part = (struct jc_append_part){.journal = op->journal, .bytes = op->body};
    op->txn = (struct jc_txn){.parts = &op->part, .parts_n = 1};
    err = s->ops->append(s, &op->txn, &rq->a->host.control->ex, on_appended, op);
    operation_started(rq, op, err);
}

/* --- specs
 * ------------------------------------------------------------------------------------------- */

static void reply_revision(struct operation *op)
{
    struct evhttp_request *req = take_request(op);
    struct writer w;

    if (req != NULL) {
        wr_init(&w, 4096);
        wr_printf(&w, "{\"revision\":%" PRId64 "}\n", op->revision);
        admin_reply_json(op->call.a, req, 200, &w);
    }
    operation_end(op);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct operation *op = arg;
    const struct jc_listing *l = publisher_listing(op->call.a->publisher);
    struct timeval tv = {.tv_usec = VIEW_WAIT_US};

    (void)fd;
    (void)what;
    if ((l != NULL && l->revision >= op->revision) || op->call.req == NULL ||
        ++op->tries >= VIEW_TRIES || evtimer_add(op->timer, &tv) < 0)
        reply_revision(op);
}

/* Whoever changed a journal finds it changed: the answer waits for the listing. */
static void on_applied(void *arg, int err, int64_t revision)
{
    struct operation *op = arg;

    op->revision = revision;
    if (err < 0)
        reply_err(op, err);
    else if ((op->timer = evtimer_new(op->call.a->base, on_look, op)) == NULL)
        reply_revision(op);
    else
        on_look(-1, 0, op);
}

static int cmp_labels(const void *va, const void *vb)
{
    const struct jc_label *a = va, *b = vb;
    int c = strcmp(a->name, b->name);

    return c != 0 ? c : strcmp(a->value, b->value);
}

/* Strings are borrowed from the JSON. NULL: fine. Else what is wrong. */
static const char *labels_of(json_t *labels, struct jc_label *out, size_t *n)
{
    const char *name;
    json_t *value;

    *n = 0;
    if (labels != NULL && !json_is_object(labels))
        return "\"labels\" must be an object of names and values";
    json_object_foreach(labels, name, value)
    {
        bool many = json_is_array(value);
        size_t k = many ? json_array_size(value) : 1;

        for (size_t i = 0; i < k; i++) {
            const char *text = json_string_value(many ? json_array_get(value, i) : value);

            if (text == NULL || *n == LABELS_MAX)
                return "a label's value is a string or an array of strings, 1000 in all";
            out[(*n)++] = (struct jc_label){.name = name, .value = text};
        }
    }
    qsort(out, *n, sizeof out[0], cmp_labels);
    return NULL;
}

static const char *spec_of(json_t *root, struct jc_spec *spec, int64_t *expect,
                           struct jc_label *labels)
{
    const struct {
        const char *name;
        int64_t *out;
    } ints[] = {
        {"fragment_bytes", &spec->fragment_bytes}, {"fragment_age_ms", &spec->fragment_age_ms},
        {"retention_ms", &spec->retention_ms},     {"retention_bytes", &spec->retention_bytes},
        {"expect_mod_revision", expect},
    };
    const char *why = NULL, *name;
    json_t *value;

    if (!json_is_object(root))
        return "the body must be a JSON object";
    json_object_foreach(root, name, value)
    {
        size_t i = 0;

        while (i < sizeof ints / sizeof ints[0] && strcmp(name, ints[i].name) != 0)
            i++;
        if (i == sizeof ints / sizeof ints[0]) {
            if (strcmp(name, "labels") != 0)
                return "unknown member; known are labels, fragment_bytes, fragment_age_ms, "
                       "retention_ms, retention_bytes, expect_mod_revision";
        } else if (!json_is_integer(value)) {
            return "sizes, times and revisions are whole numbers";
        } else {
            *ints[i].out = json_integer_value(value);
        }
    }
    if ((why = labels_of(json_object_get(root, "labels"), labels, &spec->labels_n)) != NULL)
        return why;
    spec->labels = labels;
    return jc_spec_check(spec, &why) < 0 ? why : NULL;
}

void admin_put_journal(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct jc_label *labels = arena_array(&rq->arena, LABELS_MAX, sizeof labels[0]);
    struct jc_spec spec = {.name = (const char *)rq->target.name.p};
    struct jc_change change = {.upsert = &spec};
    struct operation *op = operation_new(rq, false);
    const char *why = "out of memory";
    json_t *root = NULL;

    if (op == NULL)
        return;
    if (labels != NULL && (op->body = admin_take_body(rq->req)) != NULL) {
        root =
            json_loadb((const char *)op->body->data, op->body->len, JSON_REJECT_DUPLICATES, NULL);
        why = root == NULL ? "the body is not JSON"
                           : spec_of(root, &spec, &change.expect_mod_revision, labels);
    }
    if (why != NULL) {
        admin_reply_error(rq->a, rq->req, 400, "%s", why);
        operation_free(op);
    } else {
        operation_started(rq, op,
                          s->ops->apply(s, &change, 1, &rq->a->host.control->ex, on_applied, op));
    }
    json_decref(root);
}

void admin_delete_journal(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct jc_change change = {.delete_name = (const char *)rq->target.name.p};
    struct operation *op;

    if (!int_param(rq, "expect_mod_revision", -1, &change.expect_mod_revision) ||
        (op = operation_new(rq, true)) == NULL)
        return;
    operation_started(rq, op,
                      s->ops->apply(s, &change, 1, &rq->a->host.control->ex, on_applied, op));
}

/* --- fragments
 * --------------------------------------------------------------------------------------- */

static void on_fragments(void *arg, int err, const struct jc_fragment *list, size_t n)
{
    struct operation *op = arg;
    struct evhttp_request *req;
    struct writer w;

    if (err < 0) {
        reply_err(op, err);
        return;
    }
    if ((req = take_request(op)) != NULL) {
        wr_init(&w, ADMIN_REPLY_MAX);
        wr_str(&w, "{\"fragments\":");
        admin_json_fragments(&w, list, n);
        wr_str(&w, "}\n");
        admin_reply_json(op->call.a, req, 200, &w);
    }
    operation_end(op);
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

void admin_post_close(struct admin_rq *rq)
{
    struct operation *op;

    if (!need_local(rq) || (op = operation_new(rq, true)) == NULL)
        return;
    operation_started(rq, op,
                      jc_local_flush(rq->a->host.store, &rq->a->host.control->ex, on_done, op));
}

void admin_delete_fragments(struct admin_rq *rq)
{
    struct jc_store *s = rq->a->host.store;
    struct executor *ex = &rq->a->host.control->ex;
    struct operation *op;
    int64_t begin, end;

    if (!need_local(rq) || !int_param(rq, "begin", -1, &begin) || !int_param(rq, "end", -1, &end))
        return;
    if ((begin < 0) == (end < 0)) {
        admin_reply_error(rq->a, rq->req, 400,
                          "either end=N (all that end at or below it) or begin=N (that one)");
        return;
    }
    if ((op = operation_new(rq, true)) == NULL)
        return;
    operation_started(rq, op,
                      end >= 0 ? jc_local_remove_fragments(s, op->journal, end, ex, on_done, op)
                               : jc_local_punch(s, op->journal, begin, ex, on_done, op));
}
