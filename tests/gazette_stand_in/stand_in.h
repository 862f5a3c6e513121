/*
 * A stand-in for a Gazette broker, for tests: service protocol.Journal over HTTP/2 without TLS on
 * loopback, journals in memory, one thread of its own. What it answers is checked call by call
 * against recorded calls of a real broker (tests/contract/gazette_golden_test.c). It can be told
 * to misbehave.
 *
 * What it is not: a cluster. There is one broker, no etcd, no replication; revisions are counted
 * here. Left out: Replicate, FragmentStoreHealth, the HTTP and JSON gateways, append rate limits.
 *
 * All functions may be called from any thread but the stand-in's own; each waits until it is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/err.h"

struct stand_in;

enum stand_in_method {
    STAND_IN_LIST,
    STAND_IN_APPLY,
    STAND_IN_READ,
    STAND_IN_APPEND,
    STAND_IN_FRAGMENTS,
    STAND_IN_METHODS,
    STAND_IN_STORE = STAND_IN_METHODS, /* faults: a fragment that is written to its store */
    STAND_IN_ANY,
};

/* NULL or 0: the value named. Text is borrowed for the call. */
struct stand_in_opts {
    uint16_t port;         /* 0: any free one */
    uint16_t control_port; /* of the line protocol (control.c); 0: any free one */
    const char *file_root; /* below it the file:// stores lie; NULL: no file is written, fragments
                              of stores keep their content here */
    const char *auth_keys; /* base64, by comma or space, as --broker.auth-keys; NULL: no tokens */
    const char *zone, *id; /* "local", "lab0" */
    const char *endpoint;  /* advertised in routes; "http://127.0.0.1:PORT" */
    uint64_t cluster_id, member_id, raft_term; /* as etcd would say; 1, 2, 3 */
    int64_t listing_lag_ms;  /* from the closing of a fragment to its place in the store's listing;
                                < 0: only stand_in_close_fragments brings it there */
    int64_t gone_lag_ms;     /* from the removal of an object to the listing that lacks it; until
                                then the fragment is listed, and a Read of it fails; 0: none */
    int64_t watch_delay_ms;  /* from a change to the next snapshot of a watch; 0: none */
    int64_t assign_lag_ms;   /* from the making of a journal to its route; 0: none */
    int64_t unassign_lag_ms; /* from a full suspension to the loss of the route; < 0: when it is
                                resumed */
    uint32_t max_streams; /* calls of a connection at a time, as proxies bound them; 0: no bound */
};

/* E_IO: a port is taken. E_SYNTAX: auth_keys. */
MUST_USE int stand_in_start(const struct stand_in_opts *o, struct stand_in **out);
/* Closes all connections and forgets all. NULL is allowed. */
void stand_in_stop(struct stand_in *si);
uint16_t stand_in_port(const struct stand_in *si);
uint16_t stand_in_control_port(const struct stand_in *si);

/* --- journals --- */

/* Closes the open fragment, stores what is to be stored, and lists it. journal NULL: of all.
 * E_NOTFOUND, E_IO. */
MUST_USE int stand_in_close_fragments(struct stand_in *si, const char *journal);
/* The bytes of a journal from its first fragment on; holes are left out. E_NOTFOUND. */
MUST_USE int stand_in_content(struct stand_in *si, const char *journal, struct blob **out);
/* Where the next append goes; -1: no such journal. */
int64_t stand_in_head(struct stand_in *si, const char *journal);
/* All replicas were lost: what lies at offset and behind it is gone, and the offsets will be used
 * again. E_NOTFOUND. */
MUST_USE int stand_in_lose(struct stand_in *si, const char *journal, int64_t offset);
/* Every broker of the cluster was down: what is not stored is lost, appends are answered with
 * INDEX_HAS_GREATER_OFFSET until the head is reset. NULL: all journals. */
MUST_USE int stand_in_all_down(struct stand_in *si, const char *journal);
/* Stored fragments are not known for so long, as after a hand-off before the store was listed:
 * reads inside wait, heads are lower, ListFragments and Append wait until it is over. */
MUST_USE int stand_in_hide_stored(struct stand_in *si, const char *journal, int64_t ms);
/* The oldest n fragments are gone from the store, as by a bucket's policy. */
MUST_USE int stand_in_prune(struct stand_in *si, const char *journal, unsigned n);
/* What is stored for the retention of its spec or longer is gone, wherever it lies, as by `gazctl
 * journals prune`. NULL: of all journals. */
MUST_USE int stand_in_prune_aged(struct stand_in *si, const char *journal);
/* n fragments from the oldest on were stored so many seconds ago. E_NOTFOUND; E_RANGE: there are
 * not so many. */
MUST_USE int stand_in_age(struct stand_in *si, const char *journal, unsigned n, int64_t seconds);
/* The revision that the next change moves on from. */
void stand_in_set_revision(struct stand_in *si, int64_t revision);

/* --- misbehaviour --- */

enum stand_in_fault_kind {
    STAND_IN_STATUS,       /* answer with status `value`, nothing is done */
    STAND_IN_GRPC,         /* end with grpc-status `value` */
    STAND_IN_SLOW,         /* begin `value` ms late */
    STAND_IN_TRICKLE,      /* `value` ms before each message of content (Read) */
    STAND_IN_HANG,         /* never answer */
    STAND_IN_RESET_STREAM, /* RST_STREAM; value: its code, 0 = INTERNAL_ERROR */
    STAND_IN_RESET_CONN,   /* close the socket with RST */
    STAND_IN_GOAWAY,       /* GOAWAY, and go on with the calls that run; value 1: then close */
    STAND_IN_END,          /* end with grpc-status 0, as a token that expired does */
    STAND_IN_HALF,         /* half of a message, then: value 0 trailers, 1 reset, 2 closed socket */
    STAND_IN_BARE,         /* Read: content without the metadata message before it */
    STAND_IN_OVERLAP,      /* Read: a content message brings `value` bytes again */
    STAND_IN_LOWER_HEAD, /* Read, ListFragments: the head is lower by value, what lies behind it is
                            not there; a Read that waits has it after 200 ms */
    STAND_IN_FILE_SHORT, /* store: the file lacks its last bytes */
    STAND_IN_FILE_WRONG, /* store: one byte of the file is another */
    STAND_IN_FILE_GONE,  /* store: there is no file */
    STAND_IN_FAULT_KINDS,
};

struct stand_in_fault {
    enum stand_in_fault_kind kind;
    enum stand_in_method method; /* STAND_IN_ANY: all calls */
    const char *journal;         /* NULL: any */
    unsigned skip;               /* so many calls pass first */
    int times;                   /* so many calls are hit; 0 = 1, < 0 = all */
    int64_t value;
    int64_t after; /* bytes of content that pass before it: of the answer (Read), the request
                      (Append). 0: at once, before anything is answered */
    bool landed;   /* Append: the content is committed, then the fault takes the answer's place */
};

MUST_USE int stand_in_fault(struct stand_in *si, const struct stand_in_fault *f);
/* Forgets all faults, and shows what is hidden. */
void stand_in_calm(struct stand_in *si);
/* Does kind (END, RESET_STREAM, RESET_CONN, GOAWAY, GRPC) to all calls of a method that run now. */
void stand_in_end_calls(struct stand_in *si, enum stand_in_method m, enum stand_in_fault_kind kind,
                        int64_t value);

/* How often a method was called, and how many calls were hit by faults. */
uint64_t stand_in_calls(struct stand_in *si, enum stand_in_method m);
uint64_t stand_in_hits(struct stand_in *si);
/* Calls that run now. */
uint64_t stand_in_running(struct stand_in *si, enum stand_in_method m);
/* The request messages of the last finished call of a method, each behind its 5-byte frame head.
 * E_NOTFOUND. */
MUST_USE int stand_in_last_request(struct stand_in *si, enum stand_in_method m, struct blob **out);
