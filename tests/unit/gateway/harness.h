/*
 * A worker without a thread and connections without sockets, for tests of the gateway: the test
 * plays all threads. Time stands still unless the test moves it.
 *
 *   struct harness h;  harness_init(&h);  fake_journal(h.fs, ...);  harness_settle(&h);
 *   struct mem_conn *mc = mem_conn_new(&h);
 *   harness_send(mc, KP_API_METADATA, 12, 7, &body);      one request
 *   n = harness_answer(mc, &answer);                      its frame, or 0
 */
#pragma once

#include <event2/buffer.h>

#include "gateway/cache.h"
#include "gateway/conn.h"
#include "gateway/dispatch.h"
#include "gateway/metrics.h"
#include "gateway/view_build.h"
#include "gateway/worker.h"
#include "tests/unit/gateway/fake_store.h"

struct harness {
    struct fake_store *fs;
    struct gw_config config;
    struct gw_shared shared;
    struct mailbox control;
    struct worker w;
    struct view_build *vb;
    struct clock clock;
    int64_t now_ms;
    int64_t wall_ns;
    unsigned views;     /* given out */
    struct arena arena; /* of decoded answers */
};

struct mem_conn {
    struct conn conn; /* first member */
    struct harness *h;
    bool reading;
    size_t limit; /* of conn.in; what a test feeds beyond is its own business */
    bool shut;
    bool *gone; /* set when freed; may be NULL */
};

static inline int64_t harness_wall(void *arg)
{
    return ((struct harness *)arg)->wall_ns;
}

static inline int64_t harness_mono(void *arg)
{
    return ((struct harness *)arg)->now_ms;
}

static inline void harness_on_view(void *arg, const struct gw_view *view)
{
    struct harness *h = arg;

    h->views++;
    assert_int_equal(worker_post_view(&h->w, view), 0);
}

static inline void harness_init(struct harness *h)
{
    *h = (struct harness){.now_ms = 1000000, .wall_ns = INT64_C(1700000000000000000)};
    h->fs = fake_store_new();
    h->clock = (struct clock){harness_wall, harness_mono, h};
    h->config = (struct gw_config){
        .workers = 1,
        .load_threads = 1,
        .cache_bytes = 64 * 1024 * 1024,
        .max_connections = 100,
        .max_request_bytes = 1024 * 1024,
        .conn_output_bytes = 1024 * 1024,
        .idle_ms = 600000,
        .stall_ms = 30000,
        .drain_ms = 1000,
        .max_fetch_sessions = 10,
        .cluster_id = "test-cluster",
    };
    h->shared = (struct gw_shared){
        .config = &h->config,
        .store = &h->fs->base,
        .clock = &h->clock,
        .cluster_id = "test-cluster",
        .advertise_host = "gw.test",
    };
    assert_int_equal(jobpool_new(1, "load", &h->shared.loads), 0);
    assert_int_equal(
        gw_cache_new(h->config.cache_bytes, &h->fs->base, h->shared.loads, &h->shared.cache), 0);
    assert_int_equal(mailbox_init(&h->control), 0);
    assert_int_equal(worker_init(&h->w, 0, &h->shared), 0);
    arena_init(&h->arena, 256 * 1024 * 1024);
    const struct view_build_opts opts = {
        .store = &h->fs->base, .mb = &h->control, .on_view = harness_on_view, .arg = h};
    assert_int_equal(view_build_start(&opts, &h->vb), 0);
}

/* Runs everything that was posted, until nothing is left to do. */
static inline void harness_settle(struct harness *h)
{
    while (mailbox_drain(&h->control) + mailbox_drain(&h->w.mb) > 0)
        ;
}

static inline void harness_fini(struct harness *h)
{
    worker_close(&h->w);
    view_build_stop(h->vb);
    harness_settle(h);
    assert_int_equal(view_build_busy(h->vb), 0);
    gw_cache_free(h->shared.cache);
    jobpool_free(h->shared.loads);
    worker_fini(&h->w);
    mailbox_fini(&h->control);
    view_build_free(h->vb);
    fake_store_free(h->fs);
    arena_fini(&h->arena);
}

/* --- a connection in memory --- */

static inline void mem_conn_reading(struct conn *c, bool on)
{
    ((struct mem_conn *)c)->reading = on;
}

static inline void mem_conn_limit(struct conn *c, size_t bytes)
{
    ((struct mem_conn *)c)->limit = bytes;
}

static inline int mem_conn_send(struct conn *c)
{
    (void)c;
    return 0; /* the test takes it when it likes */
}

static inline void mem_conn_shut(struct conn *c)
{
    ((struct mem_conn *)c)->shut = true;
}

static inline void mem_conn_free(struct conn *c)
{
    struct mem_conn *mc = (struct mem_conn *)c;

    if (mc->gone != NULL)
        *mc->gone = true;
    conn_fini(c);
    evbuffer_free(c->in);
    evbuffer_free(c->out);
    mem_free(mc);
}

static inline struct mem_conn *mem_conn_new(struct harness *h)
{
    static const struct conn_io io = {.reading = mem_conn_reading,
                                      .limit = mem_conn_limit,
                                      .send = mem_conn_send,
                                      .shut = mem_conn_shut,
                                      .free = mem_conn_free};
    struct mem_conn *mc = mem_zalloc(sizeof *mc);

    assert_non_null(mc);
    mc->h = h;
    mc->reading = true;
    mc->limit = CONN_INPUT_FREE;
    mc->conn.io = &io;
    mc->conn.in = evbuffer_new();
    mc->conn.out = evbuffer_new();
    mc->conn.advertise_host = "gw.test";
    mc->conn.advertise_port = 19092;
    snprintf(mc->conn.peer, sizeof mc->conn.peer, "test:1");
    assert_int_equal(conn_init(&mc->conn, &h->w, false), 0);
    atomic_fetch_add(&h->w.load, 1);
    return mc;
}

/* Raw bytes arrive. */
static inline void mem_conn_feed(struct mem_conn *mc, const void *bytes, size_t n)
{
    assert_int_equal(evbuffer_add(mc->conn.in, bytes, n), 0);
    if (mc->reading)
        conn_input(&mc->conn);
}

/* Everything that waits for its turn. */
static inline void harness_turns(struct harness *h)
{
    while (!STAILQ_EMPTY(&h->w.turn) || !STAILQ_EMPTY(&h->w.grave))
        worker_turn(&h->w);
}

/* The frame of a request with the length in front; the caller unrefs it. */
static inline struct blob *harness_frame(struct harness *h, int16_t key, int16_t version,
                                         int32_t correlation, const void *body)
{
    const struct kp_api *api = kp_api_find(key);
    struct writer wr;

    assert_non_null(api);
    wr_init(&wr, 64 * 1024 * 1024);
    wr_i32(&wr, 0);
    wr_i16(&wr, key);
    wr_i16(&wr, version);
    wr_i32(&wr, correlation);
    wr_i16(&wr, 4);
    wr_str(&wr, "test");
    if (version >= api->flexible)
        wr_u8(&wr, 0);
    assert_int_equal(kp_encode(api->request, version, body, &h->arena, &wr), 0);
    assert_int_equal(wr_err(&wr), 0);
    wr_poke_i32(&wr, 0, (int32_t)(wr_len(&wr) - 4));
    return wr_take(&wr);
}

static inline void harness_send(struct mem_conn *mc, int16_t key, int16_t version,
                                int32_t correlation, const void *body)
{
    struct blob *frame = harness_frame(mc->h, key, version, correlation, body);

    mem_conn_feed(mc, frame->data, frame->len);
    blob_unref(frame);
}

/* Takes the next frame of the output into the arena: the bytes behind the length. False: none. */
static inline bool harness_take(struct mem_conn *mc, struct span *out)
{
    uint8_t head[4];

    if (evbuffer_get_length(mc->conn.out) < 4)
        return false;
    evbuffer_copyout(mc->conn.out, head, 4);
    size_t n = be_load32(head);
    assert_true(evbuffer_get_length(mc->conn.out) >= 4 + n);
    uint8_t *bytes = arena_alloc(&mc->h->arena, n);
    assert_non_null(bytes);
    evbuffer_drain(mc->conn.out, 4);
    assert_int_equal(evbuffer_remove(mc->conn.out, bytes, n), (int)n);
    *out = span_of(bytes, n);
    conn_output(&mc->conn);
    return true;
}

/* The next answer, decoded as that of key and version; its struct lives as long as the harness. */
static inline void *harness_decode(struct mem_conn *mc, int16_t key, int16_t version,
                                   int32_t correlation)
{
    const struct kp_api *api = kp_api_find(key);
    struct span frame;
    int32_t id;
    uint8_t tags;

    assert_true(harness_take(mc, &frame));
    struct reader r = reader_of(frame);
    assert_int_equal(rd_i32(&r, &id), 0);
    assert_int_equal(id, correlation);
    if (version >= api->flexible && key != KP_API_API_VERSIONS) {
        assert_int_equal(rd_u8(&r, &tags), 0);
        assert_int_equal(tags, 0);
    }
    void *resp = arena_alloc(&mc->h->arena, api->response_bytes);
    assert_non_null(resp);
    assert_int_equal(kp_decode(api->response, version, &r, &mc->h->arena, resp), 0);
    return resp;
}

/* Request and answer in one. */
static inline void *harness_call(struct mem_conn *mc, int16_t key, int16_t version,
                                 const void *body)
{
    static int32_t correlation = 1;

    correlation++;
    harness_send(mc, key, version, correlation, body);
    return harness_decode(mc, key, version, correlation);
}

/* A request struct with its defaults, in the harness's arena. */
static inline void *harness_body(struct harness *h, int16_t key)
{
    const struct kp_api *api = kp_api_find(key);
    void *body = arena_alloc(&h->arena, api->request_bytes);

    assert_non_null(body);
    kp_defaults(api->request, body);
    return body;
}
