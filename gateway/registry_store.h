/*
 * Keeps the versions of registry_history.h in the store's key-values, and says when an answer may
 * name them: a number is durable before anybody sees it. When the store does not take it, answers
 * go on with what memory has, and the tick tries again. Control thread.
 *
 * What cannot be read is defined: a damaged version is logged and left out, its number is not given
 * again; while none can be read the schemas served now are shown alone, from number 1, and nothing
 * is written.
 */
#pragma once

#include "base/clock.h"
#include "base/mailbox.h"
#include "gateway/registry_compat.h"
#include "gateway/registry_history.h"
#include "journal_client/store.h"

struct registry_store;

struct registry_store_opts {
    struct jc_store *store;
    struct mailbox *control;
    const struct clock *clock;
    enum registry_level level; /* what new versions are held against, for the log */
    /* registry_store_settled has become true. From the mailbox. */
    void (*settled)(void *arg);
    void *arg;
};

/* Begins to read. */
MUST_USE int registry_store_start(const struct registry_store_opts *opts,
                                  struct registry_store **out);
/* A new view is out; borrowed for the call. */
void registry_store_view(struct registry_store *rs, const struct gw_view *view);
/* About every second. view: the newest one, or NULL. */
void registry_store_tick(struct registry_store *rs, const struct gw_view *view);
/* Whether the history is that of this view, and what it says is durable or cannot be made so. */
bool registry_store_settled(const struct registry_store *rs, const struct gw_view *view);
/* Borrow, until the next event. */
const struct registry_history *registry_store_history(const struct registry_store *rs);
/* Operations of the store that are on their way. NULL is allowed. */
size_t registry_store_busy(const struct registry_store *rs);
/* Not while one is. NULL is allowed. */
void registry_store_free(struct registry_store *rs);
