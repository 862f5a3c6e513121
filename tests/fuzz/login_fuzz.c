/*
 * Whatever bytes come to a listener that asks for logins: frames, handshakes and bare tokens in any
 * order. The first byte of the input is the size of the pieces in which the rest arrives.
 * Checked: nothing crashes or leaks, and nobody is let in who did not send the token.
 */
#include <stdint.h>

#include "tests/unit/gateway/plain_asserts.h"

#include "base/log.h"
#include "gateway/auth_int.h"
#include "tests/unit/gateway/harness.h"

static const char token[] = "open sesame";
static struct harness h;
static const struct gw_auth_opts opts = {.mechanisms = 1U << SASL_PLAIN | 1U << SASL_SCRAM_SHA_256,
                                         .session_ms = 1000};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const tokens[] = {token};
    const struct gw_task task = {.name = "acme/a", .tokens = tokens, .tokens_n = 1};
    const struct gw_view_spec spec = {.revision = 1, .tasks = &task, .tasks_n = 1};
    const struct gw_view *view;

    (void)argc;
    (void)argv;
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    harness_init(&h);
    harness_settle(&h);
    ASSERT(gw_auth_new(&opts, &h.clock, &h.shared.auth) == 0);
    ASSERT(gw_view_build(&spec, &view) == 0);
    ASSERT(worker_post_view(&h.w, view) == 0);
    gw_view_unref(view);
    harness_settle(&h);
    return 0;
}

static void settle_login(struct mem_conn *mc)
{
    while (mc->conn.state != CONN_CLOSED && auth_checking(&mc->conn.auth))
        ASSERT(mailbox_wait(&h.w.mb, 10000) > 0);
    harness_turns(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool gone = false;

    if (size == 0)
        return 0;
    struct mem_conn *mc = mem_conn_new(&h);
    mc->gone = &gone;
    auth_conn_init(&mc->conn, true);
    size_t piece = (size_t)data[0] * 4 + 1;
    for (size_t at = 1; at < size && !gone && mc->conn.state == CONN_READING; at += piece) {
        mem_conn_feed(mc, data + at, size - at < piece ? size - at : piece);
        settle_login(mc);
    }
    if (!gone) {
        ASSERT(mc->conn.auth.principal == NULL ||
               memmem(data, size, token, sizeof token - 1) != NULL);
        evbuffer_drain(mc->conn.out, evbuffer_get_length(mc->conn.out));
        conn_gone(&mc->conn, "end of input");
        harness_turns(&h);
    }
    ASSERT(gone);
    harness_settle(&h);
    arena_reset(&h.arena);
    return 0;
}
