/*
 * Private parts of the admin listener. Everything is the control thread's.
 */
#pragma once

#include <sys/queue.h>

#include <event2/event.h>

#include "base/arena.h"
#include "base/writer.h"
#include "gateway/admin_http.h"
#include "gateway/backfill.h"
#include "gateway/http_server.h"

/* --- targets (admin_path.c, pure) --- */

enum admin_route {
    ADMIN_STATUS,            /* / */
    ADMIN_HEALTHZ,           /* /healthz */
    ADMIN_READYZ,            /* /readyz */
    ADMIN_METRICS,           /* /metrics */
    ADMIN_COLLECTIONS,       /* /v1/collections */
    ADMIN_COLLECTION,        /* /v1/collections/{name} */
    ADMIN_DOCUMENTS,         /* /v1/collections/{name}/documents */
    ADMIN_BACKFILL,          /* /v1/collections/{name}/backfill */
    ADMIN_BACKFILL_BEGIN,    /* /v1/collections/{name}/backfill/begin */
    ADMIN_BACKFILL_COMPLETE, /* /v1/collections/{name}/backfill/complete */
    ADMIN_JOURNALS,          /* /v1/journals */
    ADMIN_JOURNAL,           /* /v1/journals/{name} */
    ADMIN_CONTENT,           /* /v1/journals/{name}/content */
    ADMIN_CLOSE,             /* /v1/journals/{name}/close */
    ADMIN_FRAGMENTS,         /* /v1/journals/{name}/fragments */
    ADMIN_TOPICS,            /* /v1/topics */
    ADMIN_TOPIC,             /* /v1/topics/{name} */
    ADMIN_CONNECTIONS,       /* /v1/connections */
    ADMIN_GROUPS,            /* /v1/groups */
    ADMIN_GROUP,             /* /v1/groups/{name} */
    ADMIN_GROUP_RESET,       /* /v1/groups/{name}/reset */
};

struct admin_param {
    struct span name;
    struct span value;
};

#define ADMIN_PARAMS_MAX 64

/* A request's target, decoded into an arena. */
struct admin_target {
    enum admin_route route;
    struct span name; /* of the collection, journal or topic; NUL-terminated in the arena */
    size_t params_n;
    struct admin_param *params;
};

/* uri: as it came (origin or absolute form). The path is split before it is percent-decoded, so
 * that names may hold slashes raw or as %2F. E_NOTFOUND: no such route. E_SYNTAX: a malformed
 * escape, a NUL, too many parameters. E_NOMEM. */
MUST_USE int admin_target_parse(const char *uri, struct arena *a, struct admin_target *out);
/* The last parameter of that name; false when absent. */
bool admin_param(const struct admin_target *t, const char *name, struct span *out);

/* --- the listener (admin_http.c) --- */

struct admin_call;
LIST_HEAD(admin_calls, admin_call);

/* A request that is answered later. First member of what its handler keeps. */
struct admin_call {
    LIST_ENTRY(admin_call) link;
    struct admin_http *a;
    struct http_rq *req; /* NULL: answered, or taken away by admin_http_free */
    /* The server drains, or (closing) the connection is about to go: end soon. */
    void (*end)(struct admin_call *call, bool closing);
};

struct admin_http {
    struct admin_host host;
    struct event_base *base;
    struct http_server *http;
    bool loopback; /* only this machine reaches it */
    uint16_t port;
    struct publisher *publisher;
    struct backfills *backfills;
    struct event *backfill_tick;
    bool draining;
    struct admin_calls calls;
    size_t busy; /* calls */
};

/* One request while its handler runs. */
struct admin_rq {
    struct admin_http *a;
    struct http_rq *req;
    struct admin_target target;
    struct arena arena;
};

typedef void admin_handler(struct admin_rq *rq);
admin_handler admin_get_status, admin_get_healthz, admin_get_readyz, admin_get_metrics,
    admin_get_collections, admin_get_journals, admin_get_journal, admin_get_content,
    admin_get_topics, admin_get_connections, admin_post_documents, admin_get_backfill,
    admin_post_backfill, /* begin and complete */
    admin_get_groups, admin_delete_group, admin_post_group_reset;
/* admin_operator.c: raw journals, only with config->journal_admin */
admin_handler admin_post_content, admin_put_journal, admin_delete_journal, admin_post_close,
    admin_delete_fragments;

/* The status page; groups: its part about groups, HTML. */
void admin_reply_status(struct admin_http *a, struct http_rq *req, struct span groups);

void admin_call_add(struct admin_http *a, struct admin_call *call, struct http_rq *req);
void admin_call_remove(struct admin_call *call);
/* An admin_call's end() for calls that the store ends soon by itself: a drain waits, closing takes
 * the request away (call->req is NULL then). */
void admin_call_let_go(struct admin_call *call, bool closing);

/* admin_backfill.c. Stop waits for what the store was given, draining the control mailbox; before
 * the publisher ends. */
MUST_USE int admin_backfill_start(struct admin_http *a);
void admin_backfill_stop(struct admin_http *a);

/* "localhost" or a loopback address, with or without a port: a Host header of this machine. Pure.
 */
bool admin_host_is_local(const char *host);
/* Each answers and ends the request: do not touch req afterwards. */
void admin_reply(struct admin_http *a, struct http_rq *req, int status, const char *type,
                 struct span body);
/* JSON; a writer that failed is answered with 503. Frees the writer. */
void admin_reply_json(struct admin_http *a, struct http_rq *req, int status, struct writer *w);
void admin_reply_error(struct admin_http *a, struct http_rq *req, int status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *admin_header(struct http_rq *req, const char *name);
void admin_add_header(struct http_rq *req, const char *name, const char *value);

/* admin_spec.c, pure: what an operator sends for a journal. Everything in it is borrowed from name,
 * from now and from the arena. */
struct admin_spec {
    struct jc_spec spec;
    int64_t expect_mod_revision; /* -1: absent, nothing is compared */
};

/* now: the journal as it is, whose values absent members keep; NULL: it is to be made. E_INVALID
 * with the reason in *why (static text), E_NOMEM. */
MUST_USE int admin_spec_parse(struct span json, const char *name, const struct jc_journal *now,
                              struct arena *a, struct admin_spec *out, const char **why);

#define ADMIN_JSON      "application/json"
#define ADMIN_REPLY_MAX ((size_t)256 << 20)

/* --- texts --- */

/* metrics_text.c: the whole exposition; view NULL: without topics. Any thread. */
void metrics_render(const struct gw_view *view, struct writer *w);
/* admin_json.c: pieces of JSON, shared by listings. */
void admin_json_heads(struct writer *w, const struct jc_heads *h);
void admin_json_spec(struct writer *w, const struct jc_journal *j); /* members, without braces */
void admin_json_fragments(struct writer *w, const struct jc_fragment *list, size_t n); /* array */
void admin_json_topic(struct writer *w, const struct gw_topic *t);
/* Kafka's text form of an id: base64url, 22 characters and a NUL. */
void admin_id_text(const struct kp_uuid *id, char out[23]);
