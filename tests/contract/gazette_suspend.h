/*
 * An operator who suspends the bench's journal at once: an append of nothing, as `gazctl` sends it.
 */
#pragma once

#include "tests/contract/gazette_bench.h"
#include "tests/contract/grpc_raw.h"

#include <gazette_proto/broker.pb-c.h>

static inline void bench_suspend(struct bench *b)
{
    enum { SUSPEND_NOW = 3, SUSPENDED = 14, STATUS_AT = 6 }; /* the status' value in the answer */
    Gz__AppendRequest m;
    struct raw_call c;
    struct writer w;

    wr_init(&w, 1024);
    gz__append_request__init(&m);
    m.journal = (char *)(uintptr_t)BENCH_JOURNAL;
    m.suspend = SUSPEND_NOW;
    raw_put(&w, &m.base);
    wr_u8(&w, 0); /* the empty message that ends the content */
    wr_u32(&w, 0);
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(
        raw_start(&c, stand_in_port(b->si), "/protocol.Journal/Append", blob_span(w.b), NULL), 0);
    assert_true(raw_wait(&c, 0));
    struct span answer = raw_response(&c);
    if (answer.p == NULL || answer.n <= STATUS_AT)
        fail_msg("no answer");
    else
        assert_int_equal(answer.p[STATUS_AT], SUSPENDED);
    raw_end(&c);
    wr_fini(&w);
}
