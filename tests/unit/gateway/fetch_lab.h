/*
 * A worker without sockets for tests of the fetch engine: fake store, fake clock, one topic or
 * several, requests as structs; answers are encoded and decoded again, so that what tests see is
 * what a client would. Takes the place of gateway/request.c.
 */
#pragma once

#include "tests/unit/gateway/fake_store.h"

#include <event2/event.h>

#include "base/writer.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"
#include "journal_client/uuid.h"

#define LAB_TOPICS 8

struct lab {
    struct fake_store *fs;
    struct jc_store_ops ops; /* the fake's, which tests may change */
    struct gw_config config;
    struct gw_shared shared;
    struct worker w;
    struct clock clock;
    int64_t now_ms;
    struct gw_encoder encoder;
    struct gw_topic topics[LAB_TOPICS];
    size_t topics_n;
    struct fake_journal *journals[LAB_TOPICS][64];
    int64_t revision;
    uint64_t tick; /* of lab_doc's clocks */
    /* the last answer */
    struct arena arena;
    struct blob *bytes;
    void *resp;
    unsigned replies;
    int aborted; /* E_* of request_abort */
    /* the connection's room, as request.h has it */
    size_t room; /* [no limit] */
    size_t held;
    bool no_memory; /* request_may_wait */
};

static struct lab *lab_current;
static const char *lab_principal = "";

/* --- instead of request.c --- */

void request_reply(struct request *rq, const void *resp)
{
    struct lab *lab = lab_current;
    struct kp_encoded enc = {0};
    struct writer w;

    assert_int_equal(kp_encode_response(rq->api, rq->header.api_version, 7, resp, &rq->arena, &enc),
                     0);
    wr_init(&w, INT32_MAX);
    size_t at = 0;
    for (size_t i = 0; i < enc.splices_n; i++) {
        const struct kp_splice *s = &enc.splices[i];
        wr_bytes(&w, enc.head->data + at, s->at - at);
        wr_bytes(&w, s->blob->data + s->off, s->len);
        at = s->at;
    }
    wr_bytes(&w, enc.head->data + at, enc.head->len - at);
    blob_unref(enc.head);
    assert_int_equal(wr_err(&w), 0);
    blob_unref(lab->bytes);
    lab->bytes = wr_take(&w);
    size_t head = rq->header.api_version >= rq->api->flexible ? 9 : 8;
    struct reader r = reader_of(span_of(lab->bytes->data + head, lab->bytes->len - head));
    arena_reset(&lab->arena);
    lab->resp = arena_alloc(&lab->arena, rq->api->response_bytes);
    assert_int_equal(
        kp_decode(rq->api->response, rq->header.api_version, &r, &lab->arena, lab->resp), 0);
    lab->replies++;
    rq->done = true;
    arena_fini(&rq->arena); /* as the real one: the handler's state is gone */
}

void request_abort(struct request *rq, int err)
{
    lab_current->aborted = err;
    lab_current->replies++;
    rq->done = true;
    arena_fini(&rq->arena);
}

void *request_response(struct request *rq)
{
    void *resp = arena_alloc(&rq->arena, rq->api->response_bytes);

    if (resp != NULL)
        kp_defaults(rq->api->response, resp);
    return resp;
}

size_t request_room(const struct request *rq)
{
    (void)rq;
    return lab_current->room > lab_current->held ? lab_current->room - lab_current->held : 0;
}

void request_hold(struct request *rq, size_t bytes)
{
    (void)rq;
    lab_current->held += bytes;
}

void request_release(struct request *rq, size_t bytes)
{
    (void)rq;
    assert_true(bytes <= lab_current->held);
    lab_current->held -= bytes;
}

bool request_may_collect(const struct request *rq)
{
    return request_room(rq) > 0;
}

void request_starve(struct request *rq, void (*fed)(struct request *rq))
{
    rq->fed = fed;
}

bool request_may_wait(struct request *rq)
{
    (void)rq;
    return !lab_current->no_memory;
}

const char *request_principal(const struct request *rq)
{
    (void)rq;
    return lab_principal;
}

const struct gw_task *request_task(const struct request *rq)
{
    return gw_view_principal(rq->w->view, lab_principal);
}

void request_mute(struct request *rq, int64_t ms)
{
    (void)rq;
    (void)ms;
}

void request_advertised(const struct request *rq, const char **host, uint16_t *port)
{
    (void)rq;
    *host = "gw.test";
    *port = 19092;
}

/* --- the worker --- */

static inline int64_t lab_mono(void *arg)
{
    return ((struct lab *)arg)->now_ms;
}

static inline int64_t lab_wall(void *arg)
{
    return ((struct lab *)arg)->now_ms * 1000000;
}

static inline struct lab *lab_new(void)
{
    struct lab *lab = mem_zalloc(sizeof *lab);

    assert_non_null(lab);
    lab_current = lab;
    lab_principal = "";
    lab->fs = fake_store_new();
    lab->ops = *lab->fs->base.ops;
    lab->fs->base.ops = &lab->ops;
    lab->now_ms = 1000000;
    lab->clock = (struct clock){.wall_ns = lab_wall, .mono_ms = lab_mono, .arg = lab};
    lab->config =
        (struct gw_config){.workers = 1, .conn_output_bytes = 64 << 20, .max_fetch_sessions = 4};
    lab->shared =
        (struct gw_shared){.config = &lab->config, .store = &lab->fs->base, .clock = &lab->clock};
    assert_int_equal(jobpool_new(1, "loads", &lab->shared.loads), 0);
    assert_int_equal(gw_cache_new(64 << 20, &lab->fs->base, lab->shared.loads, &lab->shared.cache),
                     0);
    lab->room = SIZE_MAX;
    lab->encoder.id = 1;
    lab->w.shared = &lab->shared;
    lab->w.base = event_base_new();
    assert_int_equal(mailbox_init(&lab->w.mb), 0);
    assert_int_equal(fetch_worker_start(&lab->w), 0);
    arena_init(&lab->arena, (size_t)1 << 30);
    return lab;
}

static inline void lab_free(struct lab *lab)
{
    fetch_worker_stop(&lab->w);
    gw_cache_free(lab->shared.cache);
    jobpool_free(lab->shared.loads);
    mailbox_fini(&lab->w.mb);
    event_base_free(lab->w.base);
    gw_view_unref(lab->w.view);
    for (size_t i = 0; i < lab->topics_n; i++) {
        for (size_t j = 0; j < lab->topics[i].parts_n; j++)
            gw_part_unref(lab->topics[i].parts[j]);
        mem_free(lab->topics[i].parts);
    }
    fake_store_free(lab->fs);
    arena_fini(&lab->arena);
    blob_unref(lab->bytes);
    mem_free(lab);
}

/* Makes a view of lab->topics as they are and swaps it in, as the worker does. */
static inline void lab_view(struct lab *lab)
{
    const struct gw_view *old = lab->w.view, *v;

    for (size_t i = 0; i < lab->topics_n; i++) {
        for (size_t j = 0; j < lab->topics[i].parts_n; j++)
            gw_part_update(lab->topics[i].parts[j], &lab->journals[i][j]->heads);
    }
    assert_int_equal(gw_view_new(++lab->revision, lab->topics, lab->topics_n, &v), 0);
    lab->w.view = v;
    fetch_worker_view_changed(&lab->w, old);
    gw_view_unref(old);
}

/* A topic with parts_n journals, index = its number; epoch 1, no bound, no key. */
static inline size_t lab_topic(struct lab *lab, const char *name, size_t parts_n)
{
    size_t t = lab->topics_n++;
    struct gw_topic *topic = &lab->topics[t];

    assert_true(t < LAB_TOPICS && parts_n <= 64);
    *topic = (struct gw_topic){.name = name,
                               .collection = name,
                               .epoch = 1,
                               .bound = {0, UINT64_MAX},
                               .encoder = &lab->encoder,
                               .parts_n = parts_n,
                               .parts = mem_array(parts_n, sizeof *topic->parts)};
    memset(topic->id.b, (int)(0x10 + t), sizeof topic->id.b);
    for (size_t j = 0; j < parts_n; j++) {
        char journal[128];
        snprintf(journal, sizeof journal, "%s/p%zu", name, j);
        lab->journals[t][j] = fake_journal(lab->fs, journal, name);
        assert_int_equal(gw_part_new(lab->journals[t][j]->j, &topic->parts[j]), 0);
    }
    lab_view(lab);
    return t;
}

/* --- documents --- */

#define LAB_CLOCK0 (UINT64_C(0x1e5f00000000000) << 4)
/* A clock that many milliseconds after the first of these tests. */
#define LAB_CLOCK(ms) (LAB_CLOCK0 + ((uint64_t)(ms)*10000 << 4))

/* One line with newline, exactly `bytes` long if that is possible (at least 61). */
static inline char *lab_line(uint64_t clock, uint16_t flags, size_t bytes)
{
    const struct jc_uuid u = {.clock = clock, .flags = flags, .producer = {1, 2, 3, 4, 5, 6}};
    char text[JC_UUID_TEXT];
    size_t least = strlen("{\"_meta\":{\"uuid\":\"\"},\"v\":\"\"}\n") + JC_UUID_TEXT;
    size_t n = bytes < least ? least : bytes;
    char *line = mem_alloc(n + 1);

    assert_non_null(line);
    jc_uuid_format(&u, text);
    int at = snprintf(line, n + 1, "{\"_meta\":{\"uuid\":\"%.36s\"},\"v\":\"", text);
    memset(line + at, 'a' + (int)(clock >> 4) % 26, n - (size_t)at);
    memcpy(line + n - 3, "\"}\n", 3);
    line[n] = '\0';
    return line;
}

static inline void lab_add(struct lab *lab, size_t t, size_t part, uint64_t clock, uint16_t flags,
                           size_t bytes)
{
    char *line = lab_line(clock, flags, bytes);

    fake_append(lab->fs, lab->journals[t][part], line);
    mem_free(line);
}

/* A content document with the next clock; returns its offset. */
static inline int64_t lab_doc(struct lab *lab, size_t t, size_t part, size_t bytes)
{
    lab_add(lab, t, part, LAB_CLOCK(++lab->tick), JC_FLAG_OUTSIDE, bytes);
    return lab->journals[t][part]->heads.write_head - 1;
}

static inline void lab_ack(struct lab *lab, size_t t, size_t part)
{
    lab_add(lab, t, part, LAB_CLOCK(++lab->tick), JC_FLAG_ACK, 70);
}

/* Tells the parts what their journals' heads are, as the control thread does. */
static inline void lab_heads(struct lab *lab)
{
    for (size_t i = 0; i < lab->topics_n; i++) {
        for (size_t j = 0; j < lab->topics[i].parts_n; j++)
            gw_part_update(lab->topics[i].parts[j], &lab->journals[i][j]->heads);
    }
}

/* --- requests --- */

struct lab_request {
    struct request rq;
    union {
        struct kp_fetch_req fetch;
        struct kp_list_offsets_req list;
        struct kp_offset_for_leader_epoch_req epoch;
    } body;
    struct kp_fetch_req_topics topics[LAB_TOPICS];
    struct kp_fetch_req_topics_partitions parts[4096];
    size_t parts_n;
};

static inline struct lab_request *lab_fetch_new(struct lab *lab, int16_t version)
{
    struct lab_request *r = mem_zalloc(sizeof *r);

    assert_non_null(r);
    r->rq.w = &lab->w;
    arena_init(&r->rq.arena, (size_t)64 << 20);
    r->rq.api = kp_api_find(1);
    r->rq.header.api_key = 1;
    r->rq.header.api_version = version;
    r->rq.body = &r->body;
    r->rq.received_ms = lab->now_ms;
    kp_defaults(r->rq.api->request, &r->body.fetch);
    r->body.fetch.max_bytes = 50 << 20;
    r->body.fetch.min_bytes = 1;
    r->body.fetch.session_epoch = -1;
    r->body.fetch.topics = r->topics;
    return r;
}

/* Partitions of one topic must follow each other. */
static inline struct kp_fetch_req_topics_partitions *
lab_want(struct lab *lab, struct lab_request *r, size_t t, int32_t index, int64_t offset)
{
    struct kp_fetch_req *f = &r->body.fetch;
    struct kp_fetch_req_topics_partitions *p = &r->parts[r->parts_n++];
    struct kp_fetch_req_topics *topic = f->topics_n == 0 ? NULL : &r->topics[f->topics_n - 1];
    struct span name = span_str(lab->topics[t].name);

    if (topic == NULL || !span_eq(topic->topic, name)) {
        topic = &r->topics[f->topics_n++];
        kp_defaults(&kp_fetch_req_topics_desc, topic);
        topic->topic = name;
        topic->topic_id = lab->topics[t].id;
        topic->partitions = p;
    }
    topic->partitions_n++;
    kp_defaults(&kp_fetch_req_topics_partitions_desc, p);
    p->partition = index;
    p->fetch_offset = offset;
    p->partition_max_bytes = 1 << 20;
    return p;
}

static inline void lab_send(struct lab_request *r)
{
    while (mailbox_drain(&r->rq.w->mb) > 0) /* as the connection does before it dispatches */
        ;
    if (r->rq.header.api_version >= 13) {
        for (int32_t i = 0; i < r->body.fetch.topics_n; i++)
            r->topics[i].topic = span_of("", 0);
    }
    assert_int_equal(handle_fetch(&r->rq), 0);
}

/* Runs the worker until r is answered. */
static inline void lab_await(struct lab *lab, struct lab_request *r)
{
    while (!r->rq.done)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
}

/* Runs the worker until r waits for data (or is answered). */
static inline void lab_until_waiting(struct lab *lab, struct lab_request *r)
{
    while (!r->rq.done && ((struct fetch *)r->rq.park)->state != FETCH_WAITING)
        assert_true(mailbox_wait(&lab->w.mb, 20000) > 0);
    while (mailbox_drain(&lab->w.mb) > 0)
        ;
}

static inline void lab_drop(struct lab_request *r)
{
    if (r->rq.cancel != NULL)
        r->rq.cancel(&r->rq);
    arena_fini(&r->rq.arena);
    mem_free(r);
}

static inline const struct kp_fetch_resp *lab_resp(const struct lab *lab)
{
    return lab->resp;
}

/* The partition's entry in the last answer; NULL when it is not listed. */
static inline const struct kp_fetch_resp_responses_partitions *lab_part(const struct lab *lab,
                                                                        size_t t, int32_t index)
{
    const struct kp_fetch_resp *resp = lab->resp;

    for (int32_t i = 0; i < resp->responses_n; i++) {
        const struct kp_fetch_resp_responses *topic = &resp->responses[i];
        if (!span_eq_str(topic->topic, lab->topics[t].name) &&
            memcmp(&topic->topic_id, &lab->topics[t].id, sizeof topic->topic_id) != 0)
            continue;
        for (int32_t j = 0; j < topic->partitions_n; j++) {
            if (topic->partitions[j].partition_index == index)
                return &topic->partitions[j];
        }
    }
    return NULL;
}

/* --- records as a client sees them --- */

struct lab_batches {
    struct kp_batch_view v[8192];
    size_t n;
};

static inline void lab_parse(struct span records, struct lab_batches *out)
{
    out->n = 0;
    while (records.n > 0) {
        assert_true(out->n < 8192);
        assert_int_equal(kp_batch_parse(records, &out->v[out->n]), 0);
        assert_true(out->v[out->n].records > 0); /* never a batch without records */
        records.p += out->v[out->n].size;
        records.n -= out->v[out->n].size;
        out->n++;
    }
}

/* One fetch of one partition, run to its end; *out owns nothing: it borrows from the lab. */
static inline const struct kp_fetch_resp_responses_partitions *
lab_fetch_one(struct lab *lab, size_t t, int32_t index, int64_t offset, int16_t version,
              struct lab_batches *out)
{
    struct lab_request *r = lab_fetch_new(lab, version);

    (void)lab_want(lab, r, t, index, offset);
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    const struct kp_fetch_resp_responses_partitions *p = lab_part(lab, t, index);
    assert_non_null(p);
    assert_non_null(p->records.in.p);
    lab_parse(p->records.in, out);
    return p;
}

/* Offset of the first record that a client at `offset` is shown; -1 when there is none. */
static inline int64_t lab_first_visible(const struct lab_batches *b, int64_t offset)
{
    for (size_t i = 0; i < b->n; i++) {
        struct kp_record_iter it;
        struct kp_record rec;

        if (b->v[i].control)
            continue;
        kp_record_iter_init(&it, &b->v[i], b->v[i].payload);
        while (kp_record_next(&it, &rec, NULL, 0) == 0) {
            if (rec.offset >= offset)
                return rec.offset;
        }
    }
    return -1;
}
