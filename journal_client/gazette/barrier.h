/*
 * The question where a journal really ends: an empty append. It cannot be answered but by the
 * primary, behind all that was ever acknowledged, and its answer waits for the first listing of the
 * store after a hand-off; a Read at the head asks whichever broker has a replica, and that one may
 * know less. It changes nothing, and with NO_RESUME it leaves suspended journals alone.
 *
 * Home thread.
 */
#pragma once

#include "journal_client/gazette/gazette_int.h"

struct gz_barrier {
    int status;   /* -1: no answer came, or one whose numbers no journal has */
    int64_t head; /* with GZ_OK */
};

/* Sends it; endpoint as in gz_pool_call. cb's on_message gives what comes to gz_barrier_take. */
MUST_USE int gz_barrier_call(struct gz_journal *j, const char *endpoint,
                             const struct gz_call_cb *cb, struct gz_call **out);
/* Takes one message of the answer in. Zero *b with status -1 before the call. */
void gz_barrier_take(struct gz_barrier *b, struct span msg);
