/*
 * The store for programs without a loop: one call, one answer, on the calling thread. Used before
 * the server starts and by commands that open a data folder themselves.
 */
#pragma once

#include "base/mailbox.h"
#include "journal_client/store.h"

/* The folder's value of a key, as an owned blob. E_NOTFOUND, ... */
MUST_USE int store_sync_kv_get(struct jc_store *s, struct mailbox *mb, const char *key,
                               struct blob **out);
MUST_USE int store_sync_kv_set(struct jc_store *s, struct mailbox *mb, const char *key,
                               struct span value);
MUST_USE int store_sync_kv_put(struct jc_store *s, struct mailbox *mb, const struct jc_kv *kv,
                               size_t n);
/* All journals; the caller owns a reference. */
MUST_USE int store_sync_list(struct jc_store *s, struct mailbox *mb, const struct jc_listing **out);
/* E_TIMEOUT: a store of brokers says nothing before one of them answered. */
MUST_USE int store_sync_list_within(struct jc_store *s, struct mailbox *mb, int timeout_ms,
                                    const struct jc_listing **out);
MUST_USE int store_sync_heads(struct jc_store *s, struct mailbox *mb, const struct jc_journal *j,
                              struct jc_heads *out);
/* Free with jc_block_fini. */
MUST_USE int store_sync_block(struct jc_store *s, struct mailbox *mb, const struct jc_block_req *rq,
                              struct jc_block *out);

/* Kafka's id of this data folder: made once, kept in the store. out: 23 bytes. */
MUST_USE int store_sync_cluster_id(struct jc_store *s, struct mailbox *mb, char *out);
