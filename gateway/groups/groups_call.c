/*
 * A request's way to the groups thread and back. What the request has decoded (its arena and its
 * frame) moves into the call, so nothing is copied and the client may go away meanwhile; the answer
 * is made there, and sent by the worker.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/conn.h"
#include "gateway/groups/groups_int.h"
#include "gateway/request.h"

static void free_call(struct group_call *c)
{
    arena_fini(&c->arena);
    blob_unref(c->frame);
    mem_free(c);
}

/* Worker: the client is gone. The call is on its way and will find nobody. */
static void cancel(struct request *rq)
{
    struct group_call *c = rq->park;
    c->rq = NULL;
}

static void run_reply(struct task *t)
{
    struct group_call *c = (struct group_call *)t;
    struct request *rq = c->rq;

    if (rq != NULL) {
        rq->cancel = NULL;
        rq->park = NULL;
        if (c->failed)
            request_abort(rq, E_NOMEM);
        else
            request_reply(rq, c->resp);
    }
    free_call(c);
}

void group_call_reply(struct group_call *c)
{
    c->task.run = run_reply;
    mailbox_post(&c->w->mb, &c->task);
}

void group_call_fail(struct group_call *c)
{
    c->failed = true;
    group_call_reply(c);
}

static void run_call(struct task *t)
{
    struct group_call *c = (struct group_call *)t;

    if (c->gs->draining && c->refuse == KE_NONE)
        c->refuse = KE_COORDINATOR_NOT_AVAILABLE;
    c->run(c->gs, c);
}

/* "10.0.0.1:5000" -> "/10.0.0.1", "[::1]:5000" -> "/::1" */
static const char *host_of(struct arena *a, const char *peer)
{
    const char *end = strrchr(peer, ':');
    size_t n = end == NULL ? strlen(peer) : (size_t)(end - peer);

    if (n >= 2 && peer[0] == '[' && peer[n - 1] == ']') {
        peer++;
        n -= 2;
    }
    return arena_printf(a, "/%.*s", (int)n, peer);
}

static int fill(struct group_call *c, const struct request *rq)
{
    const struct gw_task *task = request_task(rq);

    c->task_name = arena_strndup(&c->arena, task->name, strlen(task->name));
    c->client_id =
        arena_strndup(&c->arena, (const char *)rq->header.client_id.p, rq->header.client_id.n);
    c->client_host = host_of(&c->arena, rq->conn->peer);
    c->resp = arena_alloc(&c->arena, rq->api->response_bytes);
    if (c->task_name == NULL || c->client_id == NULL || c->client_host == NULL || c->resp == NULL)
        return E_NOMEM;
    kp_defaults(rq->api->response, c->resp);
    c->api = rq->api;
    c->version = rq->header.api_version;
    c->body = rq->body;
    if (task->redirect_host != NULL)
        c->refuse = KE_NOT_COORDINATOR;
    return 0;
}

int groups_call(struct request *rq, groups_fn *run)
{
    struct groups *gs = rq->w->shared->groups;
    struct group_call *c;

    if (gs == NULL)
        return E_UNSUPPORTED;
    if ((c = mem_zalloc(sizeof *c)) == NULL)
        return E_NOMEM;
    c->gs = gs;
    c->w = rq->w;
    c->rq = rq;
    c->run = run;
    c->arena = rq->arena; /* the body lies in it */
    arena_init(&rq->arena, REQUEST_ARENA_BYTES);
    c->frame = blob_ref(rq->frame);
    int err = fill(c, rq);
    rq->body = NULL;
    if (err < 0) {
        free_call(c);
        return err;
    }
    c->task.run = run_call;
    rq->cancel = cancel;
    rq->park = c;
    mailbox_post(&gs->mb, &c->task);
    return 0;
}

const char *groups_member_id(struct arena *a, struct span prefix)
{
    uint8_t b[16];

    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return NULL;
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    return arena_printf(a,
                        "%.*s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                        SPAN_FMT(prefix), b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
                        b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}
