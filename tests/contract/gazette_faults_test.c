/*
 * The distributed store under a broker that misbehaves: each fault under reads and tails, of a
 * store that runs and of one that starts. What must hold is in gazette_bench.h.
 */
#include "tests/contract/gazette_bench.h"

#define BATCH     100 /* documents, 20 kB */
#define BATCHES   32  /* 640 kB: three blocks */
#define CALLS_MAX 60  /* of one method in one of these tests */

struct row {
    const char *name;
    struct stand_in_fault f;
};

#define READ(k, v, a)                                                                              \
    {                                                                                              \
        .kind = STAND_IN_##k, .method = STAND_IN_READ, .value = (v), .after = (a), .times = 3      \
    }

static const struct row rows[] = {
    {"read: slow", READ(SLOW, 200, 0)},
    {"read: a trickle",
     {.kind = STAND_IN_TRICKLE, .method = STAND_IN_READ, .value = 2, .times = 2}},
    {"read: stream reset at once", READ(RESET_STREAM, 0, 0)},
    {"read: stream reset within", READ(RESET_STREAM, 0, 100001)},
    {"read: connection reset at once", READ(RESET_CONN, 0, 0)},
    {"read: connection reset within", READ(RESET_CONN, 0, 70000)},
    {"read: goaway", READ(GOAWAY, 0, 0)},
    {"read: goaway within", READ(GOAWAY, 0, 50000)},
    {"read: goaway and closed", READ(GOAWAY, 1, 0)},
    {"read: ends well at once", READ(END, 0, 0)},
    {"read: ends well within a document", READ(END, 0, 12345)},
    {"read: half a message, then trailers", READ(HALF, 0, 60000)},
    {"read: half a message, then reset", READ(HALF, 1, 60000)},
    {"read: half a message, then closed", READ(HALF, 2, 60000)},
    {"read: half of the first message", READ(HALF, 0, 0)},
    {"read: content without its metadata", READ(BARE, 0, 0)},
    {"read: content that was sent before", READ(OVERLAP, 777, 60000)},
    {"read: journal not found", READ(STATUS, 1, 0)},
    {"read: no primary", READ(STATUS, 2, 0)},
    {"read: insufficient brokers", READ(STATUS, 4, 0)},
    {"read: not a broker of it", READ(STATUS, 5, 0)},
    {"read: suspended, says the answer alone", READ(STATUS, 14, 0)},
    {"read: grpc unknown", READ(GRPC, 2, 0)},
    {"read: grpc unavailable within", READ(GRPC, 14, 90000)},
    {"read: grpc resource exhausted", READ(GRPC, 8, 0)},
    {"read: token refused", READ(GRPC, 16, 0)},
    {"read: a lower head", READ(LOWER_HEAD, 5000, 0)},
    {"list: ends well", {.kind = STAND_IN_END, .method = STAND_IN_LIST, .times = 3}},
    {"list: reset", {.kind = STAND_IN_RESET_STREAM, .method = STAND_IN_LIST, .times = 3}},
    {"list: half an answer", {.kind = STAND_IN_HALF, .method = STAND_IN_LIST, .times = 3}},
    {"list: token refused",
     {.kind = STAND_IN_GRPC, .method = STAND_IN_LIST, .value = 16, .times = 3}},
    {"list: goaway", {.kind = STAND_IN_GOAWAY, .method = STAND_IN_LIST, .times = 3}},
    {"fragments: reset", {.kind = STAND_IN_RESET_STREAM, .method = STAND_IN_FRAGMENTS, .times = 3}},
    {"fragments: half an answer",
     {.kind = STAND_IN_HALF, .method = STAND_IN_FRAGMENTS, .times = 3}},
    {"fragments: insufficient brokers",
     {.kind = STAND_IN_STATUS, .method = STAND_IN_FRAGMENTS, .value = 4, .times = 3}},
    {"fragments: grpc unknown",
     {.kind = STAND_IN_GRPC, .method = STAND_IN_FRAGMENTS, .value = 2, .times = 3}},
    {"fragments: a lower head",
     {.kind = STAND_IN_LOWER_HEAD, .method = STAND_IN_FRAGMENTS, .value = 5000, .times = 3}},
    {"any: connection reset", {.kind = STAND_IN_RESET_CONN, .method = STAND_IN_ANY, .times = 4}},
    {"any: grpc unavailable",
     {.kind = STAND_IN_GRPC, .method = STAND_IN_ANY, .value = 14, .times = 6}},
};

#define ROWS (sizeof rows / sizeof rows[0])

static void expect_all(struct bench *b)
{
    bench_expect_head(b);
    bench_expect_stream(b);
    bench_expect_blocks(b);
}

/* Streams that run are ended by what the fault is, where it can be done to them. */
static void strike_running(struct bench *b, const struct stand_in_fault *f)
{
    if (f->kind == STAND_IN_END || f->kind == STAND_IN_RESET_STREAM ||
        f->kind == STAND_IN_RESET_CONN || f->kind == STAND_IN_GOAWAY || f->kind == STAND_IN_GRPC)
        stand_in_end_calls(b->si, f->method, f->kind, f->value);
    else
        stand_in_end_calls(b->si, f->method, STAND_IN_END, 0);
}

static void nothing_is_lost_or_doubled(void **state)
{
    const struct row *row = *state;
    struct bench b = {.o = {.fragment_bytes = 100000}};

    bench_start(&b);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(bench_append(&b, BATCH), 0);

    /* a store that runs */
    bench_follow(&b);
    expect_all(&b);
    uint64_t calls = stand_in_calls(b.si, row->f.method % STAND_IN_METHODS);
    assert_int_equal(stand_in_fault(b.si, &row->f), 0);
    strike_running(&b, &row->f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bench_append(&b, BATCH), 0);
    expect_all(&b);
    assert_true(stand_in_calls(b.si, row->f.method % STAND_IN_METHODS) - calls < CALLS_MAX);

    /* one that starts */
    stand_in_calm(b.si);
    assert_int_equal(stand_in_fault(b.si, &row->f), 0);
    calls = stand_in_calls(b.si, row->f.method % STAND_IN_METHODS);
    uint64_t hits = stand_in_hits(b.si);
    bench_reopen(&b);
    bench_follow(&b);
    expect_all(&b);
    assert_true(stand_in_hits(b.si) > hits);
    assert_true(stand_in_calls(b.si, row->f.method % STAND_IN_METHODS) - calls < CALLS_MAX);
    assert_int_equal(bench_append(&b, 1), 0);
    expect_all(&b);
    bench_expect_stored(&b);
    bench_end(&b);
}

int main(void)
{
    struct CMUnitTest tests[ROWS];

    for (size_t i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = nothing_is_lost_or_doubled,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
