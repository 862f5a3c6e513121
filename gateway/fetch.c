/*
 * Fetch 4-18: what is asked, and the answer. Between the two stand the plan (fetch_plan.c), the
 * collecting (fetch_gather.c) and the waiting (fetch_wait.c). A request costs what it lists; within
 * a session it costs what changed.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"
#include "gateway/quota.h"
#include "gateway/topics.h"

/* --- parts --- */

struct fetch_part_list *fetch_ready_list(struct fetch *f)
{
    return f->session != NULL ? fetch_session_ready(f->session) : &f->ready;
}

void fetch_mark_ready(struct fetch_part *p)
{
    if (p->ready)
        return;
    p->ready = true;
    TAILQ_INSERT_TAIL(p->ready_list, p, ready_link);
}

void fetch_unmark_ready(struct fetch_part *p)
{
    if (!p->ready)
        return;
    p->ready = false;
    TAILQ_REMOVE(p->ready_list, p, ready_link);
}

bool fetch_part_told(const struct fetch_part *p, const struct fetch_ends *ends)
{
    return p->told_hwm == ends->hwm && p->told_lso == ends->lso &&
           p->told_log_start == ends->log_start;
}

void fetch_resolve(struct fetch_worker *fw, struct fetch_part *p, const struct gw_task *task,
                   int16_t version)
{
    struct gw_part *before = p->part;

    p->t = version >= 13 ? gw_task_topic_by_id(task, &p->topic_id) : gw_task_topic(task, p->topic);
    p->elsewhere = p->t != NULL && task->redirect_host != NULL;
    p->part = p->t != NULL && !p->elsewhere && p->index >= 0 && (size_t)p->index < p->t->parts_n
                  ? p->t->parts[p->index]
                  : NULL;
    if (p->watch != NULL && p->part != before)
        fetch_watch_detach(fw, p);
}

/* --- the request --- */

static size_t clamp_bytes(int32_t asked, size_t most)
{
    if (asked < 0)
        return 0;
    return (size_t)asked < most ? (size_t)asked : most;
}

static int64_t clamp_wait(int32_t ms)
{
    if (ms < 0)
        return 0;
    return ms > FETCH_WAIT_MAX_MS ? FETCH_WAIT_MAX_MS : ms;
}

/* One partition that a request lists. */
struct asked {
    const struct kp_fetch_req_topics *t;
    const struct kp_fetch_req_topics_partitions *p;
    size_t at; /* its place in the request */
};

static int asked_key_cmp(const struct asked *a, const struct asked *b)
{
    int c = memcmp(&a->t->topic_id, &b->t->topic_id, sizeof a->t->topic_id);

    if (c == 0)
        c = span_cmp(a->t->topic, b->t->topic);
    if (c == 0 && a->p->partition != b->p->partition)
        c = a->p->partition < b->p->partition ? -1 : 1;
    return c;
}

static int asked_cmp(const void *va, const void *vb)
{
    const struct asked *a = va, *b = vb;
    int c = asked_key_cmp(a, b);

    return c != 0 ? c : a->at < b->at ? -1 : a->at > b->at;
}

static int asked_place_cmp(const void *va, const void *vb)
{
    const struct asked *a = va, *b = vb;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* What is listed twice keeps its first place and its last values, as in Kafka: a part costs twenty
 * times its bytes on the wire. By sorting, so that no choice of names makes it slow. Returns how
 * many are left. */
static size_t merge_doubles(struct asked *list, size_t n)
{
    size_t kept = 0;

    qsort(list, n, sizeof *list, asked_cmp);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && asked_key_cmp(&list[kept - 1], &list[i]) == 0)
            list[kept - 1].p = list[i].p;
        else
            list[kept++] = list[i];
    }
    qsort(list, kept, sizeof *list, asked_place_cmp);
    return kept;
}

static int list_asked(const struct kp_fetch_req *req, struct asked **out, size_t *out_n)
{
    struct asked *list;
    size_t n = 0, at = 0;

    for (int32_t i = 0; i < req->topics_n; i++)
        n += req->topics[i].partitions_n > 0 ? (size_t)req->topics[i].partitions_n : 0;
    if ((list = mem_array(n, sizeof *list)) == NULL)
        return E_NOMEM;
    for (int32_t i = 0; i < req->topics_n; i++)
        for (int32_t j = 0; j < req->topics[i].partitions_n; j++, at++)
            list[at] = (struct asked){&req->topics[i], &req->topics[i].partitions[j], at};
    *out = list;
    *out_n = n > 1 ? merge_doubles(list, n) : n;
    return 0;
}

/* The parts of a sessionless request, in its order. */
static int list_parts(struct fetch *f, const struct kp_fetch_req *req)
{
    const struct gw_task *task = request_task(f->rq);
    struct asked *list;
    size_t n;

    if (list_asked(req, &list, &n) < 0)
        return E_NOMEM;
    if ((f->parts = arena_array(&f->rq->arena, n, sizeof *f->parts)) == NULL) {
        mem_free(list);
        return E_NOMEM;
    }
    f->parts_n = n;
    for (size_t i = 0; i < n; i++) {
        const struct kp_fetch_req_topics_partitions *rp = list[i].p;
        struct fetch_part *p = &f->parts[i];

        p->topic = list[i].t->topic;
        p->topic_id = list[i].t->topic_id;
        p->index = rp->partition;
        p->max_bytes = rp->partition_max_bytes;
        p->want = (struct fetch_want){.offset = rp->fetch_offset,
                                      .current_epoch = rp->current_leader_epoch,
                                      .last_fetched_epoch = rp->last_fetched_epoch};
        p->user = &f->self;
        p->ready_list = &f->ready;
        fetch_resolve(f->fw, p, task, f->version);
        fetch_mark_ready(p);
    }
    mem_free(list);
    return 0;
}

static void cancel(struct request *rq);

/* Everything but the batches, which the answer may still need: they pass to the caller. */
static void detach(struct fetch *f, struct kp_batch **batches, size_t *n)
{
    struct fetch_worker *fw = f->fw;

    fetch_session_move_forget(f);
    fetch_wait_end(f);
    if (f->runnable)
        TAILQ_REMOVE(&fw->runnable, f, run_link);
    f->runnable = false;
    *batches = f->batches;
    *n = f->batches_n;
    f->batches = NULL;
    f->batches_n = f->batches_cap = 0;
    fetch_gather_reset(f);
    mem_free(f->order);
    f->order = NULL;
    f->order_cap = 0;
    for (size_t i = 0; i < f->parts_n; i++)
        fetch_watch_detach(fw, &f->parts[i]);
    fetch_session_leave(f);
    LIST_REMOVE(f, link);
    gw_view_unref(f->view);
    f->view = NULL;
    f->rq->cancel = NULL;
    f->rq->park = NULL;
}

static void drop_batches(struct kp_batch *batches, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kp_batch_fini(&batches[i]);
    mem_free(batches);
}

static void cancel(struct request *rq)
{
    struct kp_batch *batches;
    size_t n;

    detach(rq->park, &batches, &n);
    drop_batches(batches, n);
}

void fetch_refuse(struct fetch *f, int err)
{
    struct request *rq = f->rq;

    cancel(rq);
    request_abort(rq, err);
}

/* The answer that is one error. */
static void reply_error(struct request *rq, int16_t error)
{
    struct kp_fetch_resp *resp = request_response(rq);

    if (resp == NULL) {
        request_abort(rq, E_NOMEM);
        return;
    }
    metric_kafka_error(error);
    resp->error_code = error;
    request_reply(rq, resp);
}

void fetch_enter(struct fetch *f)
{
    const struct kp_fetch_req *req = f->rq->body;
    struct request *rq = f->rq;
    int16_t error;

    f->state = FETCH_GATHERING;
    if ((error = fetch_session_enter(f, req)) != KE_NONE) {
        cancel(rq);
        reply_error(rq, error);
        return;
    }
    if (f->session == NULL && list_parts(f, req) < 0) {
        fetch_refuse(f, E_NOMEM);
        return;
    }
    if (f->session == NULL && f->parts_n == 0)
        f->deadline_ms = 0; /* nothing to wait for */
    fetch_gather(f);
}

int handle_fetch(struct request *rq)
{
    const struct kp_fetch_req *req = rq->body;
    struct fetch_worker *fw = rq->w->fetch;
    struct fetch *f = arena_alloc(&rq->arena, sizeof *f);
    size_t most = rq->w->shared->config->conn_output_bytes;

    if (f == NULL)
        return E_NOMEM;
    f->rq = rq;
    f->self = f;
    f->fw = fw;
    f->version = rq->header.api_version;
    f->isolation = req->isolation_level == READ_COMMITTED ? READ_COMMITTED : READ_UNCOMMITTED;
    f->deadline_ms = rq->received_ms + clamp_wait(req->max_wait_ms);
    f->max_bytes = clamp_bytes(req->max_bytes, most);
    /* as in Kafka: nobody waits for more than an answer can hold */
    f->min_bytes = clamp_bytes(req->min_bytes, f->max_bytes);
    f->rotation = (fw->random += UINT64_C(0x9e3779b97f4a7c15)) >> 33;
    f->view = gw_view_ref(rq->w->view);
    TAILQ_INIT(&f->ready);
    LIST_INSERT_HEAD(&fw->active, f, link);
    rq->park = f;
    rq->cancel = cancel;
    if (f->version >= 7 && req->session_epoch != 0 && req->session_epoch != -1 &&
        !fetch_session_known(fw->sessions, req->session_id) &&
        fetch_session_ask_elsewhere(f, req->session_id))
        return 0;
    fetch_enter(f);
    fetch_run_queue(fw);
    return 0;
}

/* --- the answer --- */

/* Leader epochs lie outside of a batch's CRC: 16 bytes of its own, the rest by reference. */
static int fill_records(struct fetch *f, const struct fetch_part *p,
                        struct kp_fetch_resp_responses_partitions *out)
{
    struct kp_piece *pieces;
    uint8_t *heads;

    if (p->batch_n == 0)
        return 0;
    pieces = arena_array(&f->rq->arena, p->batch_n * 2, sizeof *pieces);
    heads = arena_array(&f->rq->arena, p->batch_n, KP_BATCH_PATCH);
    if (pieces == NULL || heads == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < p->batch_n; i++) {
        const struct kp_batch *b = &f->batches[p->batch_at + i];
        uint8_t *head = heads + i * KP_BATCH_PATCH;

        kp_batch_patch(b, p->t->epoch, head);
        pieces[2 * i] = (struct kp_piece){.bytes = head, .len = KP_BATCH_PATCH};
        pieces[2 * i + 1] = (struct kp_piece){
            .blob = b->bytes, .off = KP_BATCH_PATCH, .len = b->bytes->len - KP_BATCH_PATCH};
        metric_add(M_FETCH_RECORD_BYTES, (int64_t)b->bytes->len);
    }
    out->records.pieces = pieces;
    out->records.pieces_n = p->batch_n * 2;
    return 0;
}

static int fill_part(struct fetch *f, const struct fetch_part *p,
                     struct kp_fetch_resp_responses_partitions *out)
{
    const struct fetch_plan *plan = &p->plan;
    bool error = plan->verdict == FETCH_ERROR;

    out->partition_index = p->index;
    out->error_code = error ? plan->error : KE_NONE;
    out->high_watermark = -1;
    out->last_stable_offset = -1;
    out->log_start_offset = -1;
    if (!error || plan->error == KE_OFFSET_OUT_OF_RANGE) {
        out->high_watermark = p->ends.hwm;
        out->last_stable_offset = p->ends.lso;
        out->log_start_offset = p->ends.log_start;
    }
    /* as Kafka does: null when nobody asked for it, else a list */
    out->aborted_transactions_n = f->isolation == READ_COMMITTED ? 0 : -1;
    out->preferred_read_replica = -1;
    if (error)
        metric_kafka_error(plan->error);
    if (plan->verdict == FETCH_DIVERGED) {
        out->diverging_epoch.epoch = plan->diverging_epoch;
        out->diverging_epoch.end_offset = plan->diverging_end;
    }
    if (f->version >= 12 && p->part != NULL &&
        (!error || plan->error == KE_FENCED_LEADER_EPOCH ||
         plan->error == KE_UNKNOWN_LEADER_EPOCH)) {
        out->current_leader.leader_id = GW_NODE_ID;
        out->current_leader.leader_epoch = p->t->epoch;
    } else if (f->version >= 12 && p->elsewhere) {
        out->current_leader.leader_id = request_task(f->rq)->redirect_node;
    }
    return fill_records(f, p, out);
}

static bool same_topic(const struct fetch *f, const struct fetch_part *a,
                       const struct fetch_part *b)
{
    return f->version >= 13 ? memcmp(&a->topic_id, &b->topic_id, sizeof a->topic_id) == 0
                            : span_eq(a->topic, b->topic);
}

/* True when an incremental answer must speak of p. */
static bool must_tell(const struct fetch_part *p)
{
    return p->batch_n > 0 || p->plan.verdict == FETCH_ERROR || p->plan.verdict == FETCH_DIVERGED ||
           !fetch_part_told(p, &p->ends);
}

/* The parts that the answer lists, in order. */
static int choose_parts(struct fetch *f, struct fetch_part ***out, size_t *out_n)
{
    struct fetch_part **list, *p;
    size_t n = 0, at = 0;

    if (f->session == NULL)
        n = f->parts_n;
    else if (f->full)
        n = fetch_session_parts_n(f->session);
    else
        n = f->order_n;
    if ((list = arena_array(&f->rq->arena, n, sizeof(struct fetch_part *))) == NULL)
        return E_NOMEM;
    if (f->session == NULL) {
        for (; at < n; at++)
            list[at] = &f->parts[at];
    } else if (f->full) {
        TAILQ_FOREACH(p, fetch_session_parts(f->session), session_link)
        {
            list[at++] = p;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            if (must_tell(f->order[i]))
                list[at++] = f->order[i];
        }
    }
    *out = list;
    *out_n = at;
    return 0;
}

/* The advertised address goes with errors that tell a client to look for the leader elsewhere. */
static int fill_endpoints(struct fetch *f, struct kp_fetch_resp *resp)
{
    struct kp_fetch_resp_node_endpoints *e;
    struct topic_broker broker;

    if ((e = kp_array(&kp_fetch_resp_node_endpoints_desc, &f->rq->arena, 1)) == NULL)
        return E_NOMEM;
    topic_broker(f->rq, &broker);
    e->node_id = broker.node;
    e->host = span_str(broker.host);
    e->port = broker.port;
    resp->node_endpoints = e;
    resp->node_endpoints_n = 1;
    return 0;
}

/* One topic entry a run of parts of one topic. */
static int fill_topics(struct fetch *f, struct fetch_part **list, size_t n,
                       struct kp_fetch_resp *resp)
{
    struct kp_fetch_resp_responses *topics;
    struct kp_fetch_resp_responses_partitions *parts;
    size_t topics_n = 0;
    bool leader_error = false;
    int err;

    for (size_t i = 0; i < n; i++)
        topics_n += i == 0 || !same_topic(f, list[i - 1], list[i]);
    topics = kp_array(&kp_fetch_resp_responses_desc, &f->rq->arena, topics_n);
    parts = kp_array(&kp_fetch_resp_responses_partitions_desc, &f->rq->arena, n);
    if (topics == NULL || parts == NULL)
        return E_NOMEM;
    resp->responses = topics;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !same_topic(f, list[i - 1], list[i])) {
            struct kp_fetch_resp_responses *t = &topics[resp->responses_n++];
            if (f->version < 13)
                t->topic = list[i]->topic;
            t->topic_id = list[i]->topic_id;
            t->partitions = &parts[i];
        }
        topics[resp->responses_n - 1].partitions_n++;
        if ((err = fill_part(f, list[i], &parts[i])) < 0)
            return err;
        leader_error |= list[i]->elsewhere || (list[i]->plan.verdict == FETCH_ERROR &&
                                               list[i]->plan.error == KE_FENCED_LEADER_EPOCH);
    }
    return f->version >= 16 && leader_error ? fill_endpoints(f, resp) : 0;
}

void fetch_answer(struct fetch *f)
{
    struct request *rq = f->rq;
    struct kp_fetch_resp *resp = request_response(rq);
    struct fetch_part **list;
    struct kp_batch *batches;
    size_t n;

    if (resp == NULL || choose_parts(f, &list, &n) < 0 || fill_topics(f, list, n, resp) < 0) {
        fetch_refuse(f, E_NOMEM);
        return;
    }
    resp->throttle_time_ms = quota_fetch(rq, resp);
    if (f->session != NULL) {
        resp->session_id = fetch_session_id(f->session);
        for (size_t i = 0; i < n; i++)
            fetch_session_told(f->session, list[i]);
        /* spans of the answer point into the session, which may go once it is idle; so the session
         * is left only after the answer was encoded: request_reply comes before any other event */
    }
    detach(f, &batches, &n);
    request_reply(rq, resp);
    drop_batches(batches, n);
}

/* --- life of the engine --- */

int fetch_worker_start(struct worker *w)
{
    struct fetch_worker *fw = mem_zalloc(sizeof *fw);
    int err;

    w->fetch = NULL;
    if (fw == NULL)
        return E_NOMEM;
    fw->w = w;
    LIST_INIT(&fw->active);
    TAILQ_INIT(&fw->runnable);
    fw->random = ((uint64_t)w->id << 32) ^ (uint64_t)clock_mono_ms(w->shared->clock);
    unsigned workers = w->shared->config->workers == 0 ? 1 : w->shared->config->workers;
    size_t sessions = (w->shared->config->max_fetch_sessions + workers - 1) / workers;
    if ((err = fetch_waits_new(fw, &fw->waits)) < 0 ||
        (err = fetch_sessions_new(fw, sessions, &fw->sessions)) < 0) {
        fetch_waits_free(fw->waits);
        mem_free(fw);
        return err;
    }
    w->fetch = fw;
    return 0;
}

void fetch_worker_stop(struct worker *w)
{
    struct fetch_worker *fw = w->fetch;

    if (fw == NULL)
        return;
    ASSERT(LIST_EMPTY(&fw->active)); /* connections, and so their requests, went first */
    fetch_sessions_free(fw->sessions);
    fetch_waits_free(fw->waits);
    mem_free(fw);
    w->fetch = NULL;
}

void fetch_worker_view_changed(struct worker *w, const struct gw_view *old_view)
{
    struct fetch_worker *fw = w->fetch;
    struct fetch *f;

    (void)old_view;
    if (fw == NULL)
        return;
    /* What was collected under the old bounds and epochs is dropped. */
    LIST_FOREACH(f, &fw->active, link)
    {
        const struct gw_view *before = f->view;

        f->view = gw_view_ref(w->view);
        if (f->state == FETCH_ASKING) {
            gw_view_unref(before);
            continue;
        }
        fetch_gather_reset(f);
        if (f->session != NULL)
            fetch_session_see(f->session, f->view);
        for (size_t i = 0; i < f->parts_n; i++) {
            fetch_resolve(fw, &f->parts[i], request_task(f->rq), f->version);
            fetch_mark_ready(&f->parts[i]);
        }
        gw_view_unref(before);
        f->changed = true;
        fetch_wake(f);
    }
    fetch_run_queue(fw);
}

void fetch_worker_drain(struct worker *w)
{
    struct fetch_worker *fw = w->fetch;
    struct fetch *f;

    if (fw == NULL)
        return;
    fw->draining = true;
    /* those that collect answer at the end of their pass */
    LIST_FOREACH(f, &fw->active, link)
    {
        if (f->state == FETCH_WAITING)
            fetch_wake(f);
    }
    fetch_run_queue(fw);
}
