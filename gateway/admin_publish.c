/*
 * POST /v1/collections/{name}/documents: an HTTP request becomes a publish request, and its answer
 * goes back. Control thread.
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/admin_int.h"
#include "gateway/publish_int.h"

#define VIEW_WAIT_S 5

/* Owner: control thread. Lives until it is answered and nobody will call back any more. */
struct publish_http {
    struct admin_call call; /* first member */
    struct task in_view;    /* posted when the collection can be seen as a topic */
    struct event *timer;
    bool awaiting; /* in_view is on its way */
    int status;
    bool replayed;
    struct blob *json; /* the answer, while it waits for the view */
};

static struct publish_http *of_call(struct admin_call *call)
{
    return (struct publish_http *)(void *)call;
}

static void maybe_free(struct publish_http *ph)
{
    if (ph->call.req != NULL || ph->awaiting)
        return;
    admin_call_remove(&ph->call);
    if (ph->timer != NULL)
        event_free(ph->timer);
    blob_unref(ph->json);
    mem_free(ph);
}

static void reply(struct publish_http *ph, struct span json)
{
    struct http_rq *req = ph->call.req;

    ph->call.req = NULL;
    if (req == NULL)
        return;
    if (ph->replayed)
        admin_add_header(req, "Idempotent-Replayed", "true");
    admin_reply(ph->call.a, req, ph->status, ADMIN_JSON, json);
}

static void reply_kept(struct publish_http *ph)
{
    if (ph->timer != NULL)
        (void)event_del(ph->timer);
    reply(ph, blob_span(ph->json));
    maybe_free(ph);
}

static void on_in_view(struct task *t)
{
    struct publish_http *ph =
        (struct publish_http *)(void *)((char *)t - offsetof(struct publish_http, in_view));

    ph->awaiting = false;
    reply_kept(ph);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    reply_kept(arg); /* committed it is; the topic is late, that is all */
}

/* Whoever published may consume at once: the answer waits until clients see the new topic. */
static bool wait_for_view(struct publish_http *ph, const struct publish_answer *answer)
{
    const struct admin_host *host = &ph->call.a->host;
    const struct gw_view *view = host->view(host->arg);
    struct timeval tv = {.tv_sec = VIEW_WAIT_S};

    if (host->await_topic == NULL || answer->collection == NULL || ph->call.req == NULL)
        return false;
    for (size_t i = 0; view != NULL && i < view->topics_n; i++)
        if (strcmp(view->topics[i].collection, answer->collection) == 0 &&
            view->topics[i].parts_n >= answer->partitions)
            return false;
    if ((ph->json = blob_copy(answer->json)) == NULL)
        return false;
    if ((ph->timer = evtimer_new(ph->call.a->base, on_timer, ph)) == NULL ||
        evtimer_add(ph->timer, &tv) < 0)
        return false;
    ph->in_view.run = on_in_view;
    ph->awaiting = true;
    host->await_topic(host->arg, answer->collection, answer->partitions, &ph->in_view);
    return true;
}

static void on_published(void *arg, const struct publish_answer *answer)
{
    struct publish_http *ph = arg;

    ph->status = answer->status;
    ph->replayed = answer->replayed;
    if (answer->status == 200 && wait_for_view(ph, answer))
        return;
    if (ph->timer != NULL)
        (void)event_del(ph->timer);
    if (ph->call.req != NULL && answer->retry_after > 0) {
        char seconds[16];

        (void)snprintf(seconds, sizeof seconds, "%u", answer->retry_after);
        admin_add_header(ph->call.req, "Retry-After", seconds);
    }
    reply(ph, answer->json);
    maybe_free(ph);
}

/* A drain waits for commits; closing takes the request away, the commit goes on by itself. */
static void on_end(struct admin_call *call, bool closing)
{
    struct publish_http *ph = of_call(call);

    if (!closing)
        return;
    if (call->req != NULL)
        http_drop(call->req);
    call->req = NULL;
    if (ph->timer != NULL)
        (void)event_del(ph->timer);
    if (ph->json != NULL)
        maybe_free(ph); /* unless the task is still to come */
}

/* The media type decides; what curl and browsers say by themselves means "look at it". */
static bool form_of(struct http_rq *req, enum publish_form *out)
{
    static const struct {
        const char *type;
        enum publish_form form;
    } types[] = {
        {"application/x-ndjson", PUBLISH_NDJSON},
        {"application/ndjson", PUBLISH_NDJSON},
        {"application/jsonl", PUBLISH_NDJSON},
        {"application/json", PUBLISH_JSON},
        {"application/x-www-form-urlencoded", PUBLISH_AUTO},
        {"application/octet-stream", PUBLISH_AUTO},
        {"text/plain", PUBLISH_AUTO},
    };
    const char *type = admin_header(req, "Content-Type");
    size_t n;

    *out = PUBLISH_AUTO;
    if (type == NULL)
        return true;
    n = strcspn(type, "; \t");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strlen(types[i].type) == n && strncasecmp(types[i].type, type, n) == 0) {
            *out = types[i].form;
            return true;
        }
    }
    return n == 0;
}

/* Reads the parameters; answers and returns false when they are not acceptable. */
static bool params_of(struct admin_rq *rq, struct publish_req *pr, struct span *keys)
{
    for (size_t i = 0; i < rq->target.params_n; i++) {
        const struct admin_param *p = &rq->target.params[i];
        uint64_t v;

        if (span_eq_str(p->name, "key")) {
            if (pr->keys_n == PUBLISH_MAX_KEYS) {
                admin_reply_error(rq->a, rq->req, 400, "at most %d keys", PUBLISH_MAX_KEYS);
                return false;
            }
            keys[pr->keys_n++] = p->value;
        } else if (span_eq_str(p->name, "partitions")) {
            if (num_parse_u64(p->value, &v) < 0 || v == 0 || v > PUBLISH_MAX_PARTITIONS) {
                admin_reply_error(rq->a, rq->req, 400, "partitions must be 1 to %d",
                                  PUBLISH_MAX_PARTITIONS);
                return false;
            }
            if (pr->partitions != 0) {
                admin_reply_error(rq->a, rq->req, 400, "partitions is given twice");
                return false;
            }
            pr->partitions = (unsigned)v;
        } else {
            admin_reply_error(rq->a, rq->req, 400, "unknown parameter \"%.*s\"",
                              p->name.n > 100 ? 100 : (int)p->name.n, (const char *)p->name.p);
            return false;
        }
    }
    return true;
}

void admin_post_documents(struct admin_rq *rq)
{
    struct span keys[PUBLISH_MAX_KEYS];
    struct publish_req pr = {.collection = rq->target.name, .keys = keys};
    const char *idem = admin_header(rq->req, "Idempotency-Key");
    const char *coding = admin_header(rq->req, "Content-Encoding");
    struct publish_http *ph;

    if (!params_of(rq, &pr, keys))
        return;
    if (http_head_count(http_rq_head(rq->req), "Idempotency-Key") > 1) {
        admin_reply_error(rq->a, rq->req, 400, "one Idempotency-Key, please");
        return;
    }
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        admin_reply_error(rq->a, rq->req, 415, "Content-Encoding is not supported");
        return;
    }
    if (!form_of(rq->req, &pr.form)) {
        admin_reply_error(rq->a, rq->req, 415,
                          "Content-Type must be application/x-ndjson or application/json");
        return;
    }
    if (idem != NULL) {
        pr.idempotency_key = span_str(idem);
        if (pr.idempotency_key.n == 0 || pr.idempotency_key.n > PUBLISH_MAX_IDEM_KEY) {
            admin_reply_error(rq->a, rq->req, 400,
                              "an Idempotency-Key has 1 to %d visible ASCII characters",
                              PUBLISH_MAX_IDEM_KEY);
            return;
        }
    }
    if ((ph = mem_zalloc(sizeof *ph)) == NULL || (pr.body = http_take_body(rq->req)) == NULL) {
        mem_free(ph);
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    ph->call.end = on_end;
    if (publisher_post(rq->a->publisher, &pr, on_published, ph) < 0) {
        mem_free(ph);
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    admin_call_add(rq->a, &ph->call, rq->req);
}
