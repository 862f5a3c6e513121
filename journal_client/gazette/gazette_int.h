/*
 * Inside of the Gazette store. Who owns what:
 *
 *   home thread    the event base, connections, calls, journals' tails, fragment lists, the queue
 * of appends; all that is marked "home" store lock     listing, heads, lists of operations. Order:
 * store lock -> executor's lock I/O pool       reads and inflates fragments; answers home kv store
 * an embedded store of its own for key-values; answers home
 *
 * Objects are counted: journal handles (jc_journal) outlive the store that made them.
 */
#pragma once

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>

#include "base/jobpool.h"
#include "base/mailbox.h"
#include "base/reader.h"
#include "base/writer.h"
#include "journal_client/gazette.h"
#include "journal_client/gazette/grpc.h"
#include "journal_client/gazette/object.h"
#include "journal_client/hub.h"
#include "journal_client/txn_clock.h"
#include <gazette_proto/broker.pb-c.h>

#define GZ_RPC_MS     15000 /* deadline of calls that do not wait by intent */
#define GZ_GIVE_UP_MS 30000 /* a read that found no broker for so long fails */
#define GZ_PIECE      (256u << 10)

/* Status of an answer, as on the wire. */
enum gz_status {
    GZ_OK = 0,
    GZ_JOURNAL_NOT_FOUND = 1,
    GZ_NO_PRIMARY = 2,
    GZ_NOT_PRIMARY = 3,
    GZ_INSUFFICIENT_BROKERS = 4,
    GZ_NOT_BROKER = 5,
    GZ_NOT_YET_AVAILABLE = 6,
    GZ_WRONG_ROUTE = 7,
    GZ_TXN_FAILED = 9,
    GZ_NOT_ALLOWED = 10,
    GZ_WRONG_OFFSET = 11,
    GZ_INDEX_GREATER = 12,
    GZ_REGISTER_MISMATCH = 13,
    GZ_SUSPENDED = 14,
    GZ_STORE_UNHEALTHY = 15,
};
const char *gz_status_text(int status);
/* True: the same call may do after a while. */
bool gz_status_passing(int status);
/* Milliseconds before attempt number `attempt` (0: the first repetition). */
int64_t gz_backoff_ms(unsigned attempt);

struct gz_store;
struct gz_journal;

/* --- index (index.c): what is known of the documents of a run of bytes --- */
struct gz_block {
    uint64_t max_clock; /* of content documents whose last byte lies in it */
    bool content;
};

struct gz_sum {
    int64_t content_end; /* 0: no content */
    uint64_t max_clock;  /* of content */
    struct jc_marks marks;
};

/* Documents whose last byte lies in [begin, end). */
struct gz_run {
    int64_t begin, end;
    struct gz_block *v;
    size_t n, cap;
    struct gz_sum sum;
};
void gz_run_fini(struct gz_run *r);

struct gz_probe {
    jc_probe_fn *fn;
    void *arg;
};

/* Cuts a stream of bytes into documents and takes them into a run. */
struct gz_feed {
    int64_t pos;        /* the next byte expected */
    bool aligned;       /* a document begins at run.end; else all up to a newline is passed over */
    struct writer part; /* bytes of the unfinished document, which begins at run.end */
    struct gz_run run;
};
void gz_feed_init(struct gz_feed *f, int64_t pos, bool aligned);
void gz_feed_fini(struct gz_feed *f);
/* Bytes below pos are known already; bytes above it: a hole lies between, and a document begins.
 * whole: when not NULL it receives the whole documents that were completed, NULL when none was
 * (their begin is run.end - len). E_NOMEM, E_LIMIT: a document of more than 256 MiB. */
MUST_USE int gz_feed_add(struct gz_feed *f, const struct gz_probe *probe, int64_t offset,
                         struct span bytes, struct blob **whole);

/* --- wire (wire.c) --- */
struct gz_read_msg {
    int status;
    bool meta; /* a metadata message: fragment fields are set */
    int64_t offset, write_head;
    int64_t frag_begin, frag_end;
    struct span header; /* of the first message of a stream, else empty */
    struct span content;
};
/* A ReadResponse; content borrows. E_SYNTAX. */
MUST_USE int gz_read_parse(struct span msg, struct gz_read_msg *out);
/* Packs a message into a blob; NULL: out of memory. */
MUST_USE struct blob *gz_pack(const ProtobufCMessage *m);
/* Starts a call with one message and half-closes it. */
MUST_USE int gz_rpc(struct gz_store *s, const char *endpoint, const char *method,
                    const ProtobufCMessage *m, int64_t timeout_ms, const struct gz_call_cb *cb,
                    struct gz_call **out);

/* --- fragments (frags.c) --- */
struct gz_frag {
    int64_t begin, end;
    int64_t mod_time_s; /* 0: with the brokers only */
    Gz__Codec codec;
    char sha1[41];
    char *url; /* signed; NULL: with the brokers only */
};

struct gz_frags {
    struct gz_frag *v; /* by rising begin; nothing covered by another */
    size_t n, cap;
    int64_t at_ms;   /* when it was asked for, monotonic; 0: never */
    int64_t at_head; /* the head that was known then, by the tail or the primary's word */
    bool more;       /* it was cut off behind the first ones */
};
void gz_frags_fini(struct gz_frags *f);
/* Index of the first one that ends behind pos; n when none. */
size_t gz_frags_behind(const struct gz_frags *f, int64_t pos);
/* Lists them all; done on home, with a status (GZ_OK: list is taken over by the receiver) or err.
 */
struct gz_frags_call;
typedef void gz_frags_fn(void *arg, int err, int status, struct gz_frags *list);
MUST_USE int gz_frags_ask(struct gz_journal *j, gz_frags_fn *done, void *arg,
                          struct gz_frags_call **out);
/* The first one alone, without its URL: what it costs does not depend on how many there are. */
MUST_USE int gz_frags_ask_first(struct gz_journal *j, gz_frags_fn *done, void *arg,
                                struct gz_frags_call **out);
void gz_frags_cancel(struct gz_frags_call *c);

TAILQ_HEAD(gz_range_list, gz_range);

/* --- ranges (range.c): bytes of a journal, from wherever they are had best; home --- */
struct gz_range {
    struct gz_journal *j;
    int64_t begin, end; /* asked; end > begin */
    size_t max;         /* at most so many bytes */
    /* err 0: bytes (receiver's reference) at offset at; NULL: nothing stored in [begin, end).
     * E_NOTFOUND deleted, E_CLOSED, E_IO gave up, E_NOMEM. Later, never from inside the start. */
    void (*done)(struct gz_range *r, int err);
    int64_t at;
    struct blob *bytes;
    /* private */
    struct task task;
    int err;
    bool busy, canceled, no_direct;
    unsigned attempt;
    unsigned jumps, looks; /* over what was asked; lists of fragments asked for because of it */
    TAILQ_ENTRY(gz_range) wait_link;
    struct gz_range_list *waits; /* it lies in: for a timer, or a list of fragments; NULL: none */
    int64_t since_ms;
    struct gz_call *call;
    int64_t until; /* where the running call ends: behind end when it reads ahead */
    bool ahead;    /* it does, and holds a place for that */
    struct writer got;
    int64_t got_at;
    int status;
    struct event *timer;
    struct gz_job *job;
    struct gz_store *s;
};
void gz_range_start(struct gz_range *r);
/* Home. done may still come, with E_CANCELED, for a range that is busy. */
void gz_range_cancel(struct gz_range *r);
/* Home: the list of fragments came that those of this list wait for, or did not. */
void gz_ranges_go_on(struct gz_range_list *list, int err);
/* Home, at the end: those that wait for their next attempt. */
void gz_ranges_end(struct gz_store *s);

/* --- reading ahead (ahead.c); home: a broker reads a stored fragment from its begin, whatever part
 * of it is asked for, so what is read through one comes in large pieces. --- */
/* Where a read that begins at r->begin and wants all up to `end` should end. What it brings beyond
 * takes a place until gz_ahead_end(), or gz_ahead_keep(). */
int64_t gz_ahead_begin(struct gz_range *r, const struct gz_frag *f, int64_t end);
void gz_ahead_end(struct gz_range *r);
/* Keeps bytes, which begin at r->at (a reference is taken). */
void gz_ahead_keep(struct gz_range *r, struct blob *bytes);
/* What is kept of the journal at begin; its span is borrowed until the next turn. */
struct span gz_ahead_find(struct gz_journal *j, int64_t begin);
void gz_ahead_drop(struct gz_journal *j);

/* --- direct reads (direct.c, codec.c); the I/O pool --- */
struct gz_spool; /* an inflated fragment in a scratch file, counted */
struct gz_job;
/* Reads [begin, begin + max) of fragment f, of journal j. done on home. E_UNSUPPORTED (nothing was
 * started): it cannot be read where it lies. */
typedef void gz_direct_fn(void *arg, int err, struct blob *bytes);
MUST_USE int gz_direct_start(struct gz_journal *j, const struct gz_frag *f, int64_t begin,
                             size_t max, gz_direct_fn *done, void *arg, struct gz_job **out);
void gz_direct_forget(struct gz_job *job);
/* After the pool was joined: drops scratch files and handles. */
void gz_direct_end(struct gz_store *s);

/* Inflates a stream piece by piece. */
struct gz_inflate;
typedef int gz_inflate_fn(void *arg, struct span out);
MUST_USE int gz_inflate_new(Gz__Codec codec, gz_inflate_fn *out, void *arg,
                            struct gz_inflate **inflate);
MUST_USE int gz_inflate_add(struct gz_inflate *z, struct span in);
/* E_CORRUPT: it ends in the middle. */
MUST_USE int gz_inflate_end(struct gz_inflate *z);
void gz_inflate_free(struct gz_inflate *z);

/* --- journals (journal.c, tail.c) --- */
struct gz_tail_blob {
    STAILQ_ENTRY(gz_tail_blob) link;
    int64_t at;
    struct blob *bytes; /* whole documents */
};

enum gz_journal_state {
    GZ_J_IDLE,      /* nobody asked */
    GZ_J_STARTING,  /* floor, fragments, head, search for the last content */
    GZ_J_SUSPENDED, /* fully: nothing to read, nothing to ask */
    GZ_J_TAIL,      /* ready, its tail is read */
    GZ_J_DELETED,
};

#define GZ_HINTS 8

struct gz_journal {
    struct jc_hub_journal hub; /* first */
    struct gz_store *store;    /* the hub, with its type */
    char *name;
    int64_t create_revision;
    /* home */
    struct blob *spec; /* JournalSpec as it came, nothing lost */
    int64_t mod_revision;
    int suspend_level;
    int64_t suspend_offset;
    int64_t append_head;    /* where our next append begins, as far as is known; -1: not known */
    int64_t append_refused; /* where one was refused last; a tail that is not beyond it is old */
    char *endpoint;         /* of the broker to be read from, a hint (route.c); NULL: any */
    char *primary;          /* of the one that appends, likewise */
    struct gz_claim_of {
        uint64_t epoch; /* of this gateway's claim; 0: none was made */
        bool stands;
        uint64_t seen; /* the newest epoch of others */
    } claim;           /* append.h */
    bool fenced;       /* another gateway claimed it; this one does not write it any more */
    uint64_t append_round;
    enum gz_journal_state state;
    bool opened;          /* operations may run; else they wait in `starting` */
    struct jc_heads next; /* what is known, */
    struct jc_heads kept; /* what is durable, of this run or an earlier one (heads.c) */
    bool floor_known;     /* it was asked for */
    bool kept_sound;      /* there is such a record */
    bool dirty;           /* next is to be kept */
    STAILQ_ENTRY(gz_journal) dirty_link;
    /* settle.c */
    bool settling, confirmed;
    int64_t confirmed_head; /* the primary's word */
    int64_t settle_known, settle_head, unsure_ms;
    int settle_status;
    unsigned settle_attempt, settle_lower;
    struct gz_call *settle_call;
    struct gz_frags_call *settle_frags;
    struct event *settle_timer;
    struct jc_op_list starting; /* by step_link: operations that wait until it is ready */
    struct gz_frags frags;
    struct gz_frags_call *frags_call;
    struct gz_range_list renewers; /* ranges that wait for that call */
    struct event *timer;           /* the next step of starting or of the tail */
    unsigned attempt;
    struct gz_call *call; /* head query or tail */
    int status;           /* what the call said */
    int64_t said_head;
    int64_t min_head; /* end of our own appends: heads below it are not told */
    int64_t first;    /* of the last fragment list */
    /* first.c */
    struct gz_frags_call *first_call;
    int64_t first_ms;              /* when it was asked for last */
    int64_t maybe_first, maybe_ms; /* a first byte that only brokers tell of, and since when */
    /* fresh.c, by step_link: who wants fresh heads; whom the running read answers; who is answered
     * when its outcome was told, and when that of the next one was */
    struct jc_op_list asks, asking, asked, asked_next;
    struct task answer;
    bool answer_waits;
    int64_t empty_head; /* a head above 0 that was told when no fragment was listed; else 0 */
    bool progress;      /* the tail call brought something, */
    int64_t call_ms;    /* and since when it runs */
    struct gz_feed tail;
    bool tail_set;
    STAILQ_HEAD(, gz_tail_blob) ring;
    int64_t ring_bytes;
    TAILQ_ENTRY(gz_journal) ring_link; /* while the ring holds something */
    bool asleep;                       /* no stream; short reads of the tail now and then */
    bool call_short;                   /* the running tail is one of those */
    struct task fresh;
    bool fresh_waits; /* until what a short read brought was told */
    int64_t used_ms;  /* when somebody wanted it last */
    bool search_queued, search_slot;
    TAILQ_ENTRY(gz_journal) search_link;
    struct blob *ahead;         /* of a stored fragment, read through a broker (ahead.c); NULL */
    int64_t ahead_at, ahead_ms; /* where it begins; when it was read from last */
    TAILQ_ENTRY(gz_journal) ahead_link; /* while ahead is set */
    struct gz_feed search;              /* back from the head for content, or a scan for a seek */
    struct gz_range range;
    struct gz_feed search_near; /* far back: what the last window before the head said */
    int64_t search_low, search_to, search_bytes;
    bool searching, scanning, search_far;
    struct gz_run *runs; /* scanned before the tail, by rising begin */
    size_t runs_n, runs_cap;
    struct jc_op_list scanners; /* by step_link: seeks that wait for a scan */
    struct {
        int64_t block, begin;
    } hints[GZ_HINTS]; /* where the first document of a block begins, as block reads found it */
    unsigned hint_next;
};

MUST_USE int gz_journal_new(struct gz_store *s, const char *name, int64_t create_revision,
                            struct gz_journal **out);
struct gz_journal *gz_journal_ref(struct gz_journal *j);
void gz_journal_unref(void *journal); /* impl_release of jc_journal */
static inline struct gz_journal *gz_of(const struct jc_journal *j)
{
    return j->impl;
}
/* Home: a listing told of its spec. */
void gz_journal_listed(struct gz_journal *j, const Gz__ListedJournal *l, struct blob *spec);
/* Home: it is not in the listing any more. */
void gz_journal_gone(struct gz_journal *j, int err);
/* Home: it is wanted. */
void gz_journal_wake(struct gz_journal *j);
/* Home: bytes of the journal that are surely stored: from the tail, or our own append. */
void gz_journal_take(struct gz_journal *j, int64_t offset, struct span bytes);
/* Home: a fragment list that is older than max_age_ms is asked for anew. */
void gz_journal_refresh(struct gz_journal *j, int64_t max_age_ms);
/* Home: it is asked for anew in any case; j->renewers go on when it came. False: not now. */
bool gz_journal_renew(struct gz_journal *j);
/* first.c; home: where the journal begins, as the brokers say */
/* A list, or the begin of one, came. True: the first byte is another one now. */
bool gz_first_take(struct gz_journal *j, const struct gz_frags *list);
/* Asks for it when what is known is older than max_age_ms. */
void gz_first_look(struct gz_journal *j, int64_t max_age_ms);
void gz_first_stop(struct gz_journal *j);
/* Home: the record of earlier runs was read, or not. */
void gz_journal_floor(struct gz_journal *j, int err);
/* Home: what was read of it does not hold any more: it starts anew, with a new life. */
void gz_journal_reborn(struct gz_journal *j);
/* Home: heads from the journal's state: they are kept, then followers are told and readers woken.
 */
void gz_journal_publish(struct gz_journal *j);
/* search.c: from where the tail is read, then tail.c goes on. */
void gz_search_start(struct gz_journal *j);
void gz_search_done(struct gz_journal *j);
void gz_search_stop(struct gz_journal *j);
/* Keeps a run that was scanned; it becomes empty. */
MUST_USE int gz_run_keep(struct gz_journal *j, struct gz_run *run);
/* Scans [from, to) for seeks, then answers j->scanners. */
void gz_scan_start(struct gz_journal *j, int64_t from, int64_t to, bool aligned);
void gz_tail_start(struct gz_journal *j);
void gz_tail_stop(struct gz_journal *j);
/* Nothing lies between the tail's place and `to` any more: it goes on there. */
void gz_tail_skip(struct gz_journal *j, int64_t to);
/* idle.c; home */
void gz_ring_add(struct gz_journal *j, int64_t at, struct blob *bytes);
void gz_ring_drop(struct gz_journal *j);
/* Of a ring that holds something. */
void gz_ring_used(struct gz_journal *j);
void gz_count_tail(int n);
void gz_wake_up(struct gz_journal *j);
/* It slept, and its heads are not up to date yet. */
bool gz_stale(const struct gz_journal *j);
/* A short read came to the head. */
void gz_fresh(struct gz_journal *j);
/* Those that nobody wanted for a while fall asleep; of the others it is asked where they begin. */
void gz_idle_tick(struct gz_store *s);
/* fresh.c; home: heads as of now, for who asks */
void gz_fresh_ask(struct jc_fresh_ask *a); /* jc_hub_ops */
/* Something that askers may wait for has ended. */
void gz_fresh_next(struct gz_journal *j);
/* A short read begins; it came to the head; it failed. */
void gz_fresh_begins(struct gz_journal *j);
void gz_fresh_came(struct gz_journal *j);
void gz_fresh_failed(struct gz_journal *j);
/* Those that wait for too long are answered with what is known. */
void gz_fresh_tick(struct gz_journal *j);
/* All are answered. */
void gz_fresh_end(struct gz_journal *j, int err);
/* heads.c; home */
MUST_USE int gz_floor_ask(struct gz_journal *j);
/* Begins to write what is to be kept, unless a write is under way. */
void gz_heads_write(struct gz_store *s);
/* Behind all writes: lets go of what was not kept. */
void gz_heads_end(struct gz_store *s);
/* Runs t (here, by its run) when all heads that were published so far have been told. */
void gz_told_then(struct gz_store *s, struct task *t);
/* Keeps heads that another store of ours knew, of a journal that nobody asked for yet. */
void gz_heads_adopt(struct gz_journal *j, const struct jc_heads *heads);
void gz_heads_new_life(struct gz_journal *j);
/* settle.c; home */
bool gz_settling(const struct gz_journal *j);
/* The primary said where it ends, and the tail has not come there. */
bool gz_tail_behind(const struct gz_journal *j);
/* grace: what was told is still as good as a moment ago. */
void gz_settle_start(struct gz_journal *j, bool grace);
void gz_settle_first(struct gz_journal *j);
void gz_settle_stop(struct gz_journal *j);
void gz_settle_on_timer(evutil_socket_t fd, short what, void *arg);
/* route.c: what a header or a listing says of its brokers, as a hint; NULL: nothing. */
void gz_route_take(struct gz_journal *j, const Gz__Route *r);
void gz_route_take_header(struct gz_journal *j, struct span header);

void gz_journal_free(struct jc_hub_journal *journal); /* jc_hub_ops */

/* --- operations --- */
static inline struct gz_journal *gz_op_journal(const struct jc_op *op)
{
    return (struct gz_journal *)op->j;
}
/* jc_hub_ops */
void gz_begin(struct jc_op *op);
/* Home: those of a list, which becomes empty, by their `ready`. */
void gz_ops_ready(struct jc_op_list *list, int err);
/* jc_hub_ops: read.c, op.c, block.c, seek.c, ops_frags.c */
void gz_read_fetch(struct jc_read *r, int64_t stop);
struct gz_piece {
    int64_t at;
    struct blob *bytes;
};

struct gz_block_op {
    struct jc_block_ask ask; /* first */
    struct gz_range range;
    struct gz_piece *v; /* by rising offset */
    size_t n, cap;
    int64_t low, high; /* what is asked */
    int64_t p0;        /* documents that end at or behind it */
    int64_t back;      /* so far back for the document's begin */
    bool exact;        /* low is a document's begin */
    size_t front;      /* pieces that the running backward read brought */
    int64_t until;     /* where the running read ends */
    int64_t first;     /* the journal's first byte when it began */
    struct task told;
    int err;
};

struct gz_read {
    struct jc_read read; /* first */
    struct gz_range range;
};
void gz_followed(struct jc_news *n);
void gz_block(struct jc_block_ask *a);
void gz_block_fini(struct jc_block_ask *a);
void gz_seek(struct jc_seek_ask *a);
void gz_fragments(struct jc_frags_ask *a);

/* --- listing (list.c); home --- */
struct gz_list;
MUST_USE int gz_list_new(struct gz_store *s, struct gz_list **out);
void gz_list_free(struct gz_list *l);
/* Asks anew, without resuming. */
void gz_list_again(struct gz_list *l);

/* --- writes --- */
struct gz_txn;
TAILQ_HEAD(gz_txn_queue, gz_txn);
int gz_append(struct jc_store *s, struct jc_txn *txn, struct executor *ex, jc_txn_fn *done,
              void *arg);
void gz_hurry(struct jc_store *s);
/* Home: the running and the queued transactions end with err. */
void gz_append_end(struct gz_store *s, int err);
/* Home: true when nothing is queued or under way. */
bool gz_append_idle(const struct gz_store *s);
/* Home: begins those that may run. */
void gz_append_next(struct gz_store *s);
struct gz_apply;
TAILQ_HEAD(gz_apply_list, gz_apply);
int gz_apply(struct jc_store *s, const struct jc_change *c, size_t n, struct executor *ex,
             jc_apply_fn *done, void *arg);
/* Home: a listing of this revision is in place. */
void gz_apply_listed(struct gz_store *s, int64_t revision);
void gz_apply_end(struct gz_store *s, int err);

/* --- settings (settings.c) --- */
/* E_SYNTAX: no such one. */
MUST_USE int gz_codec_parse(const char *name, Gz__Codec *out);

/* --- tokens (token.c) --- */
struct gz_token {
    char *text; /* NULL: none was made */
    int64_t holds_s;
    int64_t made_s, made_ms; /* wall clock, monotonic */
    bool refused;            /* a broker did not take it */
};
/* It must be made anew. Pure. */
bool gz_token_stale(const struct gz_token *t, int64_t wall_s, int64_t mono_ms);
/* Of struct gz_pool_opts; arg: the store. */
const char *gz_token(void *arg);
void gz_token_refused(void *arg);
void gz_token_fini(struct gz_token *t);

/* --- the store --- */
struct gz_store {
    struct jc_hub hub; /* first */
    struct gz_probe probe;
    char *data_dir, *file_root, *scratch_dir;
    char *fragment_store;
    Gz__Codec codec;
    int64_t replication, fragment_bytes, scratch_bytes;
    bool no_direct;
    struct jc_store *kv;
    struct jobpool *io;
    pthread_t thread;
    bool thread_runs;

    /* home */
    struct event_base *evb;
    struct mailbox mb;
    struct event *mb_event;
    struct event *tick;     /* floors, idle journals */
    struct event *deadline; /* of blocked reads */
    struct gz_pool *pool;
    struct gz_list *list;
    uint8_t *auth_key;
    size_t auth_key_n;
    struct gz_token token;
    char *journals;                               /* what tokens are limited to, NULL: all */
    char *zone;                                   /* NULL: none is preferred */
    TAILQ_HEAD(gz_ahead_list, gz_journal) aheads; /* newest first */
    size_t aheads_n, aheads_running;              /* kept; reads under way that may bring one */
    STAILQ_HEAD(, gz_journal) dirty;
    TAILQ_HEAD(, gz_journal) rings; /* least recently used first */
    int64_t ring_bytes, tail_bytes;
    int64_t idle_ms, start_ms;
    struct gz_range_list waiting;      /* ranges, for their next attempt */
    TAILQ_HEAD(, gz_journal) searches; /* that wait for their turn */
    unsigned searches_n;
    struct event *heads_timer;
    unsigned heads_busy; /* a write of heads is under way */
    struct task_queue told_now, told_next;
    struct gz_txn_queue txns, txns_running;
    size_t txns_running_n;
    uint64_t append_round;
    bool append_inside;
    uint64_t owner; /* of claims: this process */
    bool single_writer;
    struct gz_apply_list applies;
    struct jc_txn_clock txn_clock;
    uint64_t clock_saved;
    bool clock_ready;                           /* the clock of earlier runs is known */
    TAILQ_HEAD(gz_spool_list, gz_spool) spools; /* most recently used first */
    int64_t spool_bytes;
    size_t spools_n;
    size_t kv_busy; /* writes of floors under way */
    bool stopping;
    bool hurried; /* home: writes are refused */
    struct task hurry;
    bool hurry_asked; /* lock: store; not beside what home reads (compilers read both at once) */
    struct event *stop_timer;
    bool stop_asked;
    int64_t stop_since_ms;
    struct task stop;
    atomic_bool io_stop;       /* transfers under way give up */
    pthread_mutex_t curl_lock; /* a leaf */
    void *curls[8];            /* idle handles; lock: curl */
    struct gz_origins origins; /* object stores that failed; lock: curl */
};

static inline struct gz_store *gz_store_of(struct jc_store *s)
{
    return (struct gz_store *)s;
}
struct gz_store *gz_store_ref(struct gz_store *s);
void gz_store_unref(struct gz_store *s);
/* Home: runs t in a later turn. */
void gz_later(struct gz_store *s, struct task *t, void (*run)(struct task *t));
int64_t gz_mono_ms(const struct gz_store *s);
/* Arms a timer (an evtimer). */
void gz_arm(struct event *timer, int64_t ms);
/* Counts of jc_gazette_read_stats. */
void gz_count_read(bool direct, size_t bytes);
