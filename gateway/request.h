/*
 * One request on its way through a worker: decoded, handed to its API's handler, answered in
 * arrival order. Owner: worker. A handler answers at once (request_reply) or parks: it sets
 * `cancel` and returns 0; whoever completes it calls request_reply later, on the worker's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "gateway/kafka_errors.h"
#include "gateway/worker.h"
#include "kafka_proto/kp.h"
#include "kafka_proto/kp_messages.h"

/* Memory that one request may use for its decoded body, its work and its answer's structs. */
#define REQUEST_ARENA_BYTES ((size_t)64 * 1024 * 1024)

struct evbuffer;

struct request {
    struct conn *conn; /* lives longer than the request */
    struct worker *w;
    struct arena arena; /* for everything that lives as long as the request */
    struct blob *frame; /* the bytes that decoded spans borrow from */
    struct kp_request_header header;
    const struct kp_api *api; /* NULL: a bare SASL token */
    void *body;               /* the decoded request struct of api */
    int64_t received_ms;
    /* Parked requests only: the connection closes. The handler's state must be let go of;
     * request_reply must not be called any more. Called on the worker's thread, at most once. */
    void (*cancel)(struct request *rq);
    void *park; /* the handler's */
    /* ApiVersions only: the client asked for a version that we do not speak; body is NULL and the
     * header's version was set to 0, the layout of the answer. */
    bool unknown_version;
    /* private to request.c and conn.c */
    TAILQ_ENTRY(request) link;
    size_t granted;       /* of the worker's input budget */
    size_t frame_bytes;   /* what the frame counts against the connection's input budget */
    struct evbuffer *out; /* the encoded answer, once done; NULL: none is sent */
    bool done;
    bool close_after;                /* the connection ends at this place in the order of answers */
    size_t charged;                  /* of the worker's request_bytes */
    void (*fed)(struct request *rq); /* request_starve; NULL: it does not wait for room */
};

/* 0: answered or parked. Negative: no answer is possible; the connection is closed and the error
 * counted. */
typedef int gw_handler(struct request *rq);

/* Encodes resp (the response struct of rq->api) and queues it; rq may be freed inside: do not touch
 * it afterwards. On failure the connection is closed (the answer would be malformed), which is
 * logged and counted. resp and what it points to are borrowed for the call; record pieces' blobs
 * are referenced by the output. */
void request_reply(struct request *rq, const void *resp);
/* A bare token of SaslHandshake v0: its length and its bytes. */
void request_reply_bytes(struct request *rq, struct span bytes);
/* The request is finished and its API wants no answer (Produce with acks 0). */
void request_no_reply(struct request *rq);
/* Same, without any answer: closes the connection after the answers before it were sent. */
void request_abort(struct request *rq, int err);
/* A zeroed and defaulted response struct of rq->api in the arena; NULL when out of memory. */
MUST_USE void *request_response(struct request *rq);
/* The principal of the connection: name of a task; "" when nobody had to log in. Lives as long as
 * the connection. */
const char *request_principal(const struct request *rq);
/* The task of the connection's principal in the worker's present view: all that this client may
 * see. Never NULL: an empty task stands in for one that is not there. Borrowed as the view is. */
const struct gw_task *request_task(const struct request *rq);
/* What is left of the connection's conn_output_bytes: an answer should be no larger, its first
 * batch aside. Small when many requests of one connection turn ready at once, or it reads slowly.
 */
size_t request_room(const struct request *rq);
/* Bytes that a parked request collected for its answer: they count against the room of its
 * connection until they are released, which is before request_reply. */
void request_hold(struct request *rq, size_t bytes);
void request_release(struct request *rq, size_t bytes);
/* False: others fill the connection's output, so that not even a first batch should be collected
 * now. True for at least one request of a connection whose peer reads. */
bool request_may_collect(const struct request *rq);
/* request_may_collect was false: fed is called once it is true, unless rq is answered or cancelled
 * before. */
void request_starve(struct request *rq, void (*fed)(struct request *rq));
/* False: the requests in flight hold so much of the worker's memory that this one should be
 * answered now rather than wait for something. Call it when about to wait: it counts what rq holds
 * by now. */
bool request_may_wait(struct request *rq);
/* No further request of this connection is read for so long. */
void request_mute(struct request *rq, int64_t ms);
/* Address that this client should be told to connect to. */
void request_advertised(const struct request *rq, const char **host, uint16_t *port);

/* --- for conn.c and dispatch.c --- */

/* Counts what rq holds, frame and arena, in the worker's request_bytes. */
void request_charge(struct request *rq);
/* Calls fed. rq may be gone afterwards. */
void request_feed(struct request *rq);
/* Takes one reference of frame. NULL: out of memory (frame is untouched). */
MUST_USE struct request *request_new(struct conn *c, struct blob *frame);
/* Drops it without an answer; a parked one is cancelled first. */
void request_free(struct request *rq);

/* Handlers, one file per API group. */
gw_handler handle_api_versions, handle_metadata, handle_find_coordinator, handle_describe_configs,
    handle_describe_cluster, handle_describe_topic_partitions, handle_describe_log_dirs,
    handle_list_config_resources, handle_produce, handle_refuse_admin;
gw_handler handle_sasl_handshake, handle_sasl_authenticate;
gw_handler handle_fetch, handle_list_offsets, handle_offset_for_leader_epoch;

/* fetch engine life cycle, per worker (called by worker.c on the worker's thread) */
MUST_USE int fetch_worker_start(struct worker *w);
void fetch_worker_stop(struct worker *w);
/* The worker's view was just swapped: parks on partitions that are gone or changed their epoch or
 * bound must be looked at again. */
void fetch_worker_view_changed(struct worker *w, const struct gw_view *old_view);
/* Draining: answer all long polls now. */
void fetch_worker_drain(struct worker *w);
