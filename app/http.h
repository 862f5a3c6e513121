/*
 * One HTTP request to a running server, by libcurl. Blocking; main thread. No redirects, no proxies
 * from the environment: the admin address is meant literally.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "base/writer.h"

#define ADMIN_DEFAULT "http://127.0.0.1:9094"

struct http_rq {
    const char *base;            /* "http://127.0.0.1:9094" */
    const char *path;            /* "/v1/topics", encoded */
    const char *method;          /* NULL: GET, or POST with a body */
    const struct span *body;     /* NULL: none */
    const char *content_type;    /* of body */
    const char *idempotency_key; /* NULL: none */
    /* Streams: called with the bytes of a 2xx answer instead of collecting them; false stops. */
    bool (*on_bytes)(void *arg, struct span bytes);
    void *arg;
};

struct http_answer {
    long status;   /* 0: no answer */
    bool retry;    /* no answer, and another try may help */
    bool reached;  /* the request may have arrived: without an answer, what it did is not known */
    bool replayed; /* Idempotent-Replayed */
    struct writer body; /* http_answer_fini frees it */
    char fault[256];    /* why there is no answer */
};

/* 0: there is an answer, of any status. E_IO: there is none (see fault). E_NOMEM. */
MUST_USE int http_send(const struct http_rq *rq, struct http_answer *out);
/* err: of http_send. True when a request that changes something may have done so although its
 * answer is none, or a fault: only the server's own refusals mean "not done". A 500 may be a commit
 * whose end is not known, and what stands between (502, 504) knows nothing. */
bool http_in_doubt(int err, const struct http_answer *a);
void http_answer_fini(struct http_answer *a);
/* Appends a name as a path: everything but letters, digits and -_.~/ is percent-encoded. */
void http_path(struct writer *w, const char *name);
void http_query(struct writer *w, const char *value); /* the same, slashes encoded too */
/* --admin, else SLUICE_ADMIN, else the default. Without trailing slash semantics: a slash at the
 * end is cut by http_send. */
const char *http_admin(const char *flag);
/* The text of {"error": ...}, or a general one; into out. */
void http_error_text(const struct http_answer *a, char *out, size_t bytes);
