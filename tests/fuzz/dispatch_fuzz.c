/*
 * Whatever bytes a client sends: frame reader, header, decoder, dispatch and every handler, over a
 * store with two topics and a coordinator of groups. The first byte of the input chooses:
 *   even  the rest is one frame; its length is put in front
 *   odd   the rest is the stream as it stands, in pieces of (byte / 2) + 1 bytes
 * Checked: nothing crashes or leaks, output is whole frames, and the answer to a single frame
 * decodes as the answer of its API and version.
 */
#include <stdint.h>

#include "tests/unit/gateway/plain_asserts.h"

#include "base/log.h"
#include "gateway/groups/groups_int.h"
#include "tests/unit/gateway/harness.h"

static struct harness h;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    harness_init(&h);
    struct fake_journal *a = fake_journal(h.fs, "j/a0", "a");
    struct fake_journal *b = fake_journal(h.fs, "j/b0", "b");
    fake_journal(h.fs, "j/a1", "a");
    for (int i = 0; i < 20; i++) {
        fake_append(h.fs, a,
                    "{\"_meta\":{\"uuid\":\"9f2952f3-c6a3-11ea-8802-080607050309\"},\"n\":1}\n");
        fake_append(h.fs, b, "{\"n\":2}\n\n");
    }
    harness_settle(&h);
    const struct groups_opts opts = {
        .clock = &h.clock,
        .limits = {.min_session_ms = 1,
                   .max_session_ms = INT32_MAX,
                   .max_rebalance_ms = INT32_MAX,
                   .max_members = 8,
                   .max_bytes = 100000},
        .retention_ms = 1000,
        .max_groups = 16,
    };
    char why[100] = "";
    ASSERT(groups_open(&opts, &h.shared.groups, why, sizeof why) == 0);
    ASSERT(groups_post_view(h.shared.groups, h.w.view) == 0);
    return 0;
}

/* Time passes, so that groups end, and what was parked is answered. */
static void run_groups(int64_t ms)
{
    h.now_ms += ms;
    h.wall_ns += ms * 1000000;
    do {
        (void)groups_turn(h.shared.groups);
    } while (mailbox_drain(&h.w.mb) > 0);
}

/* What a single frame asked for, as far as we would answer it. */
static bool asked(const uint8_t *frame, size_t n, int16_t *key, int16_t *version)
{
    if (n < 8)
        return false;
    *key = (int16_t)be_load16(frame);
    *version = (int16_t)be_load16(frame + 2);
    const struct api_row *row = api_row_find(*key);
    if (row == NULL)
        return false;
    if (*key == KP_API_API_VERSIONS && (*version < row->min || *version > row->max))
        *version = 0;
    return true;
}

static void check_output(struct mem_conn *mc, bool single, int16_t key, int16_t version)
{
    struct span frame;

    while (mc->conn.state != CONN_CLOSED && harness_take(mc, &frame)) {
        ASSERT(frame.n >= 4);
        if (!single)
            continue;
        const struct kp_api *api = kp_api_find(key);
        struct reader r = reader_of(frame);
        int32_t id;
        uint8_t tags = 0;
        ASSERT(rd_i32(&r, &id) == 0);
        if (version >= api->flexible && key != KP_API_API_VERSIONS)
            ASSERT(rd_u8(&r, &tags) == 0 && tags == 0);
        void *resp = arena_alloc(&h.arena, api->response_bytes);
        ASSERT(resp != NULL && kp_decode(api->response, version, &r, &h.arena, resp) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int16_t key = 0;
    int16_t version = 0;
    bool single = false;

    if (size == 0)
        return 0;
    bool gone = false;
    struct mem_conn *mc = mem_conn_new(&h);
    mc->gone = &gone;
    if ((data[0] & 1) == 0) {
        uint8_t prefix[4];
        be_store32(prefix, (uint32_t)(size - 1));
        evbuffer_add(mc->conn.in, prefix, sizeof prefix);
        single = asked(data + 1, size - 1, &key, &version);
        mem_conn_feed(mc, data + 1, size - 1);
    } else {
        size_t piece = (size_t)(data[0] / 2) + 1;
        for (size_t at = 1; at < size && mc->conn.state == CONN_READING; at += piece)
            mem_conn_feed(mc, data + at, size - at < piece ? size - at : piece);
    }
    run_groups(0);
    for (int i = 0; i < 3 && mc->conn.state != CONN_CLOSED && mc->conn.queue_n > 0; i++)
        mailbox_wait(&h.w.mb, 1); /* a block may be loading */
    check_output(mc, single, key, version);
    conn_gone(&mc->conn, "end of input");
    harness_turns(&h);
    ASSERT(gone);
    harness_settle(&h);
    run_groups((int64_t)(size % 50));
    arena_reset(&h.arena);
    return 0;
}
