/*
 * Where `sluice publish` sends its batches: a running server, or a data folder that this process
 * owns. Both give the same answers.
 */
#pragma once

#include "app/http.h"
#include "app/publish_input.h"

/* What the flags say; borrowed. */
struct publish_target {
    const char *collection;
    const char *const *keys;
    size_t keys_n;
    unsigned partitions; /* 0: not said */
};

struct publish_sink {
    /* One batch, one transaction. The answer is freed with http_answer_fini in any case. Returns 0
     * when there is an answer. */
    int (*send)(struct publish_sink *s, const struct publish_batch *b, const char *key,
                struct http_answer *out);
    void (*close)(struct publish_sink *s);
};

MUST_USE int publish_sink_http(const char *admin, const struct publish_target *t,
                               struct publish_sink **out);
/* why: one line when the folder cannot be opened, e.g. because a server holds it. */
MUST_USE int publish_sink_direct(const char *data_dir, const struct publish_target *t,
                                 struct publish_sink **out, char *why, size_t why_bytes);
