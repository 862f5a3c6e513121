/*
 * What an object store's answer to a GET must be before its bytes are taken for a fragment's, and
 * which stores are left alone for a while because they failed or were slow. Pure; no thread of its
 * own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

/* What was asked for: bytes [from, to] of an object of `size` bytes; to < 0: all of it; size < 0:
 * not known. */
struct gz_object_ask {
    int64_t from, to, size;
    bool encoded; /* it may say that it is gzip: so it is stored */
};

/* What the last answer's head said. */
struct gz_object_answer {
    int status;
    bool ranged;            /* it had a Content-Range, */
    bool sound;             /* one of the form "bytes FROM-TO/SIZE" */
    int64_t from, to, size; /* size -1: "*" */
    bool encoded;           /* a Content-Encoding other than identity */
};

/* One header line, with its end; a status line begins a new answer. */
void gz_object_header(struct gz_object_answer *a, struct span line);
/* 0: its body is what was asked for. E_NOTFOUND, E_DENIED by its status, else E_IO: a redirect
 * (what signed the URL knew where the object is), another range, another size, a page of a proxy.
 */
MUST_USE int gz_object_judge(const struct gz_object_answer *a, const struct gz_object_ask *ask);

/* --- stores that fail --- */

#define GZ_ORIGINS 8

/* scheme://host:port of a store that failed last time. */
struct gz_origin {
    char name[128]; /* empty: this place is free */
    unsigned failures;
    int64_t until_ms; /* nothing is asked of it before */
    bool tried;       /* then by one transfer alone, which is under way */
};
struct gz_origins {
    struct gz_origin v[GZ_ORIGINS];
};

struct span gz_origin_of(struct span url);
/* True: a transfer may begin, and says how it ended (gz_origin_ended). */
bool gz_origin_begin(struct gz_origins *o, struct span url, int64_t now_ms);
/* True: none may begin now. */
bool gz_origin_paused(const struct gz_origins *o, struct span url, int64_t now_ms);
/* err: 0 and E_NOTFOUND tell of a store that works; E_IO, E_DENIED and E_TIMEOUT (slow) of one
 * that is left alone for 1 s (10 s when slow), twice as long each time, up to 5 minutes; others say
 * nothing of it. */
void gz_origin_ended(struct gz_origins *o, struct span url, int err, int64_t now_ms);
