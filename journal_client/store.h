/*
 * What a journal store can do; the local store and the Gazette store stand behind it.
 *
 * Contract (tests/contract runs it against every store):
 *  - Every operation is asynchronous. Callbacks run on the executor that the caller names, never
 * from inside the call.
 *  - Exactly one terminal callback (`done`, or a read's `done`) per operation, unless it was
 * cancelled. watch and follow have none: they run until cancelled, or end with on_end when the
 * store closes.
 *  - jc_cancel(): after it returns, no callback of the operation starts. It must be called on the
 * thread of the executor when that is a mailbox; then none is running either. Each op is released
 * by exactly one of: its terminal callback, jc_cancel().
 *  - A failed start (negative return) runs no callback and sets *out to NULL.
 *  - Bytes returned in blobs carry their own reference, owned by the callback's receiver.
 *  - Requests and their pointers (names, journals, selectors) are borrowed for the call only,
 * except `jc_txn`, which the store borrows until its done callback.
 *
 * Visibility: bytes are readable only when durable, a transaction's bytes in all its journals at
 * once (local store).
 */
#pragma once

#include <stdint.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/executor.h"
#include "journal_client/spec.h"
#include "journal_client/txn_clock.h"

/* Blocks: fixed lines of the offset space. A document belongs to the block that holds its last byte
 * (its newline). */
#define JC_BLOCK_BYTES 262144

struct jc_store;
struct jc_op; /* one running operation */

/* What the store must know of one line, told by a probe that the caller supplies (JSON is not the
 * store's business). */
enum jc_doc_kind {
    JC_DOC_BLANK,   /* white space only: no document */
    JC_DOC_CONTENT, /* a document; also a line that is no valid document: the reader's policy
                       decides about it */
    JC_DOC_HIDDEN,  /* ACK or CONTROL */
};

/* Markers of a backfill are the body of hidden documents (design section 6). */
enum jc_mark {
    JC_MARK_NONE,
    JC_MARK_BEGIN,    /* its clock is the boundary */
    JC_MARK_COMPLETE, /* truncated_at names the begin that it completes */
};

struct jc_doc_info {
    enum jc_doc_kind kind;
    uint64_t clock; /* 0 when the line carries no UUID */
    uint16_t flags;
    uint8_t producer[6];
    enum jc_mark mark; /* other than NONE only when kind is HIDDEN */
    uint64_t truncated_at;
};

/* The highest markers of a run of documents, by clock; all 0 when there was none. */
struct jc_marks {
    uint64_t begin;       /* clock of the begin marker */
    int64_t begin_end;    /* offset behind its newline; of several with that clock, the first */
    uint64_t complete;    /* clock of the complete marker */
    uint64_t completed;   /* its truncatedAt */
    int64_t complete_end; /* offset behind its newline */
};

/* Takes in one document that ends (behind its newline) at end. */
static inline void jc_marks_take(struct jc_marks *m, const struct jc_doc_info *info, int64_t end)
{
    if (info->mark == JC_MARK_BEGIN && info->clock > m->begin) {
        m->begin = info->clock;
        m->begin_end = end;
    }
    if (info->mark == JC_MARK_COMPLETE && info->clock > m->complete) {
        m->complete = info->clock;
        m->completed = info->truncated_at;
        m->complete_end = end;
    }
}

/* True when m changed. */
static inline bool jc_marks_merge(struct jc_marks *m, const struct jc_marks *other)
{
    bool changed = false;

    if (other->begin > m->begin) {
        m->begin = other->begin;
        m->begin_end = other->begin_end;
        changed = true;
    }
    if (other->complete > m->complete) {
        m->complete = other->complete;
        m->completed = other->completed;
        m->complete_end = other->complete_end;
        changed = true;
    }
    return changed;
}

/* line excludes its newline. Pure; any thread. */
typedef void jc_probe_fn(void *arg, struct span line, struct jc_doc_info *out);

/* Where a journal stands. All are byte offsets, none goes back within a life of a create revision.
 * log_start <= content_end <= write_head, and log_start <= first <= write_head: bytes behind the
 * last removed content document may be gone too (they held none). */
struct jc_heads {
    int64_t first;       /* begin of the first byte still stored (write_head when none) */
    int64_t log_start;   /* end of the last content document that was removed; 0 when none was (O7);
                            content_end when no content is left */
    int64_t content_end; /* end of the last content document ever written, 0 when none: the high
                            watermark (O4) */
    int64_t write_head;  /* end of the last durable byte */
    uint64_t
        max_clock; /* highest clock of a content document, removed ones included; 0 when none */
    struct jc_marks marks; /* of all documents ever written, removed ones included */
    uint32_t life;   /* rises when bytes that were told of were lost (all replicas died): then all
                        other fields begin anew and may be lower (O11) */
    uint32_t settle; /* odd while the store is not sure that there is not more than it tells of
                        (restart, hand-off: O8); only rises */
};

static inline bool jc_heads_settling(const struct jc_heads *h)
{
    return (h->settle & 1) != 0;
}

/* --- listing
 * ------------------------------------------------------------------------------------------------------
 */
struct jc_watcher {
    struct executor *ex;
    /* Each call is a whole snapshot, borrowed for the call (take a reference to keep it); the first
     * one comes soon, later ones when journals came, went or changed their spec. Snapshots may be
     * coalesced: the last state always arrives. */
    void (*on_snapshot)(void *arg, const struct jc_listing *snapshot);
    void (*on_end)(void *arg, int err); /* E_CLOSED when the store closed; may be NULL */
    void *arg;
};

/* --- heads
 * --------------------------------------------------------------------------------------------------------
 */
struct jc_follower {
    struct executor *ex;
    /* First the present heads, then again after each change, coalesced. Never goes back for one
     * life of a create revision while the store is open (after a start log_start and first may be
     * lower: where fragments that were missing are back). On a mailbox the heads that a commit made
     * are told before the answer of that commit, when both go to it. */
    void (*on_heads)(void *arg, const struct jc_heads *heads);
    /* E_NOTFOUND: the journal was deleted. E_CLOSED: the store closed. May be NULL. */
    void (*on_end)(void *arg, int err);
    void *arg;
    bool lazy; /* news may come some seconds late when nobody else follows or reads the journal (a
                  store of many journals then keeps no stream open for it) */
};

/* err 0: heads are the journal's at some moment behind the call. E_AGAIN: what was known before,
 * since the store could not be asked (within some 3 s). E_NOTFOUND, E_CLOSED: heads is NULL. */
typedef void jc_fresh_fn(void *arg, int err, const struct jc_heads *heads);

/* --- stream read
 * --------------------------------------------------------------------------------------------------
 */
struct jc_read_opts {
    const struct jc_journal *journal;
    int64_t offset;      /* >= 0, or -1 for the write head */
    int64_t end_offset;  /* stops exactly there; 0 = no end */
    bool block;          /* at the write head: wait for more instead of ending */
    int64_t deadline_ms; /* on clock_mono_ms of the store's clock; ends a blocked read with
                            E_TIMEOUT; 0 = none */
    size_t chunk_bytes;  /* at most this many bytes per callback; 0 = 128 KiB */
};

struct jc_reader {
    struct executor *ex;
    /* Rising offsets; jumps forward over removed ranges. The receiver owns one reference of bytes.
     * Return 0 to go on, anything else to end the read (done then comes with E_CANCELED). The next
     * chunk is read only after the return. */
    int (*on_bytes)(void *arg, int64_t offset, struct blob *bytes);
    /* 0 at the end offset or, without block, at the head; E_NOTFOUND journal deleted; E_RANGE
     * offset beyond the head without block, or its position was lost with a life of the journal;
     * E_TIMEOUT; E_IO, E_CORRUPT. */
    void (*done)(void *arg, int err, const struct jc_heads *heads);
    void *arg;
};

/* --- block read
 * ---------------------------------------------------------------------------------------------------
 */
struct jc_block_req {
    const struct jc_journal *journal;
    int64_t block; /* number: offsets [block * JC_BLOCK_BYTES, (block + 1) * JC_BLOCK_BYTES) */
    int64_t from;  /* only documents whose last byte is >= from; 0 = all of the block */
    bool partial;  /* bytes that cannot be read are told as damaged; false: they fail the read */
};

/* Offsets [begin, end). */
struct jc_range {
    int64_t begin, end;
};

/* A run of whole lines. */
struct jc_segment {
    int64_t offset;
    struct blob *bytes; /* begins at a document's begin, ends with a newline */
};

struct jc_block {
    int64_t block;
    int64_t read_to;   /* the write head when it was read, or the block's end if that is lower:
                          nothing below is missing */
    bool sealed;       /* the write head lies at or behind the block's end: it will never grow */
    int64_t log_start; /* as it was when the block had been read: whoever asked below is late */
    size_t segments_n; /* more than one only where bytes between were removed or are damaged */
    struct jc_segment *segments; /* owned by the receiver: free with jc_block_fini */
    size_t damaged_n;            /* only with partial */
    struct jc_range *damaged;    /* by rising begin: what is stored there could not be read (now);
                                    documents whose last byte lies in it are missing above. Owned by
                                    the receiver as well */
};

typedef void jc_block_fn(void *arg, int err, struct jc_block *block);
/* Drops the references and the arrays. */
void jc_block_fini(struct jc_block *b);

/* --- seek by clock
 * ------------------------------------------------------------------------------------------------
 */
enum jc_seek_mode {
    JC_SEEK_FIRST, /* the lowest block that may hold such a document */
    JC_SEEK_MAX,   /* the lowest block among those whose largest such clock, in milliseconds, is the
                      greatest; a block whose largest clock lies above max_clock counts as
                      max_clock, for all that the index knows */
};

struct jc_seek_req {
    const struct jc_journal *journal;
    int64_t offset;     /* documents whose last byte is >= offset ... */
    int64_t end_offset; /* ... and < end_offset */
    uint64_t min_clock; /* content documents with a clock in [min_clock, max_clock]; clock-less ones
                           count as 0 */
    uint64_t max_clock;
    enum jc_seek_mode mode;
};

/* err 0: block is the answer. It may hold no such document after all (the index knows only each
 * block's largest clock and that it holds content): the caller looks and seeks on. E_NOTFOUND:
 * surely none. Cost: independent of the bytes skipped. */
typedef void jc_seek_fn(void *arg, int err, int64_t block);

/* --- append
 * -------------------------------------------------------------------------------------------------------
 */
struct jc_append_part {
    const struct jc_journal *journal;
    struct blob *bytes; /* whole lines; borrowed until done; prepare may still change them, not
                           their length */
    int64_t begin;      /* set by the store before prepare */
    int64_t end;
};

/* Durable values beside the journals, set in the same commit. */
struct jc_kv {
    const char *key;
    struct span value;
    int64_t expires_ms; /* Unix ms after which the store may forget it; 0 = never */
};

struct jc_txn {
    struct jc_append_part *parts;
    size_t parts_n;
    struct jc_kv *kv;
    size_t kv_n;
    /* Called once on the committer thread, after all waiting and before anything is written, in
     * commit order: stamps the bytes by the store's clock (take one jc_txn_clock_begin() at most)
     * and may fill kv values from the offsets. A negative return refuses the transaction: nothing
     * of it is written and done gets that code. Must not block. NULL: nothing to do. */
    int (*prepare)(struct jc_txn *txn, struct jc_txn_clock *clock);
    /* If set, the commit fails with E_EXISTS when this key exists already (not expired): nothing is
     * written. */
    const char *unless_kv;
    /* With unless_kv: what the key stands for, as a hash of the request. A store that finds what an
     * earlier attempt under the key left, and that it was of another tag or of other parts, refuses
     * with E_CONFLICT: to complete it would mix the two. Borrowed; empty: nothing is compared. */
    struct span unless_tag;
    /* Set by the store before done: with an error, whether all of it may turn up after all. */
    bool in_doubt;
    void *arg; /* the caller's */
};

/* err 0: durable as a whole and readable. Otherwise nothing of it is readable, nor ever will be,
 * with one exception, which txn->in_doubt names: the record of the commit failed, and neither its
 * failure nor its success could be made sure of. Then a crash (local store: of the process, before
 * its next commit succeeds) can make the transaction appear, as a whole. Over brokers parts are
 * written one by one: in_doubt says that some may be, or turn up. Whoever must not publish
 * twice sets a key of its own among kv and asks again with unless_kv.
 * E_NOTFOUND: a journal is gone. E_EXISTS: unless_kv. E_CONFLICT: unless_tag. E_NOSPACE, E_IO. */
typedef void jc_txn_fn(void *arg, int err, struct jc_txn *txn);

/* --- apply
 * --------------------------------------------------------------------------------------------------------
 */
struct jc_change {
    const struct jc_spec *upsert; /* exactly one of upsert and delete_name */
    const char *delete_name;
    int64_t expect_mod_revision; /* current revision = update; 0 = must not exist; -1 = do not
                                    compare */
};

/* All changes or none. err: 0, E_CONFLICT (a revision is another, or an update of a journal that
 * does not exist), E_INVALID (a bad spec, or one name twice), E_NOTFOUND (delete of what does not
 * exist). revision: the store's, after it. */
typedef void jc_apply_fn(void *arg, int err, int64_t revision);

/* --- fragments
 * ----------------------------------------------------------------------------------------------------
 */
struct jc_fragment {
    int64_t begin;
    int64_t end;
    bool open;           /* not closed yet: no SHA-1 */
    char sha1[41];       /* lower-case hex */
    int64_t mod_time_ms; /* at least the largest clock in it; 0 while open */
    uint64_t max_clock;  /* of content documents; 0 when none */
    int64_t content_end; /* end of its last content document; 0 when none */
};
/* list is borrowed for the call, by rising begin. */
typedef void jc_fragments_fn(void *arg, int err, const struct jc_fragment *list, size_t n);

/* --- key-value
 * ----------------------------------------------------------------------------------------------------
 */
typedef void jc_kv_fn(void *arg, int err,
                      struct span value); /* E_NOTFOUND; value borrowed for the call */
typedef void jc_kv_scan_fn(void *arg, int err, const struct jc_kv *list,
                           size_t n); /* borrowed, sorted by key */
typedef void jc_done_fn(void *arg, int err);

struct jc_store_ops {
    const char *name;
    /* What apply asks of journal names beyond jc_name_check, for whoever chose one that it refused
     * with E_INVALID. Static text; NULL: nothing. */
    const char *name_rule;
    int (*watch)(struct jc_store *s, const struct jc_selector *sel, const struct jc_watcher *w,
                 struct jc_op **out);
    int (*follow)(struct jc_store *s, const struct jc_journal *j, const struct jc_follower *f,
                  struct jc_op **out);
    /* The heads as they are now: what others wrote or removed is found out, at the cost of a small
     * call or two, and nothing is kept open for it. NULL: followers are told of each change when it
     * is made, there is nothing to ask. */
    int (*fresh)(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                 jc_fresh_fn *done, void *arg, struct jc_op **out);
    int (*read)(struct jc_store *s, const struct jc_read_opts *o, const struct jc_reader *r,
                struct jc_op **out);
    int (*read_block)(struct jc_store *s, const struct jc_block_req *r, struct executor *ex,
                      jc_block_fn *done, void *arg, struct jc_op **out);
    int (*seek)(struct jc_store *s, const struct jc_seek_req *r, struct executor *ex,
                jc_seek_fn *done, void *arg, struct jc_op **out);
    int (*append)(struct jc_store *s, struct jc_txn *txn, struct executor *ex, jc_txn_fn *done,
                  void *arg);
    int (*apply)(struct jc_store *s, const struct jc_change *c, size_t n, struct executor *ex,
                 jc_apply_fn *done, void *arg);
    int (*fragments)(struct jc_store *s, const struct jc_journal *j, struct executor *ex,
                     jc_fragments_fn *done, void *arg);
    int (*kv_get)(struct jc_store *s, const char *key, struct executor *ex, jc_kv_fn *done,
                  void *arg);
    int (*kv_scan)(struct jc_store *s, const char *prefix, struct executor *ex, jc_kv_scan_fn *done,
                   void *arg);
    int (*kv_set)(struct jc_store *s, const struct jc_kv *kv, size_t n, struct executor *ex,
                  jc_done_fn *done, void *arg);
    void (*cancel)(struct jc_op *op);
    /* A stop waits no longer: appends and applies that are under way or queued end soon with
     * E_CLOSED (in_doubt, where something was sent), and so do later ones. Any thread. NULL: none
     * of them waits for anybody else. */
    void (*hurry)(struct jc_store *s);
    /* Finishes queued commits, ends all operations, joins its threads. Executors must still accept
     * posts. */
    void (*close)(struct jc_store *s);
};

struct jc_store {
    const struct jc_store_ops *ops;
};

/* append, apply, fragments, kv_*: cannot be cancelled (they end by themselves soon). */
