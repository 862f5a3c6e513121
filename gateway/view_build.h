/*
 * Builds the view (view.h) from the store: watches the journals, follows each one's heads, groups
 * them into topics by the label estuary.dev/collection, and keeps what must outlive a restart: the
 * generation of each topic (O11, O13), in the store's key-values under topic/NAME/generation.
 *
 * Labels that it reads of a journal:
 *   estuary.dev/collection    the topic's name; a journal without it is no topic's, unless a
 *                             catalog's collection has a prefix that it lies under
 *   estuary.dev/truncated-at  raises the topic's bound; a malformed one is ignored, counted and
 *                             logged, and that journal's last good one stays in force
 *   sluice.dev/key/0, /1 ...  JSON pointers of the key, percent-encoded (first partition's count)
 *   sluice.dev/compression    codec of the topic's batches (first partition's counts)
 *
 * With a catalog the topics are its bindings: a binding chooses collection, name, key, codec and
 * a bound of its own, and one whose collection has no journal yet is shown without partitions (or
 * with an empty one, as the task's settings say).
 *
 * Promises: a topic's journals are shown together, once all their heads are known; until then what
 * was shown stays. A topic's epoch and bound never fall. The generation is durable before a view
 * shows it.
 *
 * Everything runs on the thread of the control mailbox; no libevent here, so tests drain the
 * mailbox themselves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/executor.h"
#include "base/mailbox.h"
#include "gateway/catalog.h"
#include "gateway/labels.h"
#include "gateway/view.h"
#include "journal_client/store.h"

struct view_build;

struct view_build_opts {
    struct jc_store *store;
    struct mailbox *mb; /* of the owning thread */
    /* A new view, borrowed for the call. Called from the mailbox, never from inside a function of
     * this header. */
    void (*on_view)(void *arg, const struct gw_view *view);
    void *arg;
    /* Topics are its bindings instead of the collections; referenced. NULL: one task "" that owns
     * every collection. */
    const struct catalog *catalog;
    /* With a catalog of several tasks: the one of connections without a principal; NULL: none. */
    const char *anonymous_task;
};

MUST_USE int view_build_start(const struct view_build_opts *opts, struct view_build **out);
/* Another catalog takes the place of the one in force, soon and as a whole. Only for an object that
 * was started with one. */
void view_build_set_catalog(struct view_build *vb, const struct catalog *catalog);
/* The view that was given out last; borrowed; NULL before the first. */
const struct gw_view *view_build_current(const struct view_build *vb);
/* True once a view showed every topic of the store's listing. The first view waits for that;
 * view_build_tick ends the wait. */
bool view_build_ready(const struct view_build *vb);
/* About once a second: tries again what failed (key-values), and shows what is there if the first
 * view has waited for too long. */
void view_build_tick(struct view_build *vb);
/* Posts t to the mailbox once a view was given out in which the collection has at least parts_n
 * partitions; at once if it has. t is also posted by view_build_stop. */
MUST_USE int view_build_await(struct view_build *vb, struct span collection, size_t parts_n,
                              struct task *t);
/* Ends watching; no view is given out any more. */
void view_build_stop(struct view_build *vb);
/* Key-value operations of this object that the store has not answered yet: it may be freed at 0. */
size_t view_build_busy(const struct view_build *vb);
/* After view_build_stop, with view_build_busy() == 0, when no view that it gave out is in use
 * (encoders live here). NULL is allowed. */
void view_build_free(struct view_build *vb);

/* --- for tests --- */

/* O12. Version 8 form; never one that Kafka reserves, never one whose text begins with '-'. */
void view_topic_id(const char *task, const char *topic, const char *journal,
                   int64_t create_revision, struct kp_uuid *out);
