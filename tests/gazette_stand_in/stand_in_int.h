/*
 * Inside of the stand-in broker. All of it belongs to its thread; other threads come in by
 * si_sync.
 */
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <pthread.h>
#include <sys/queue.h>

#include "base/mailbox.h"
#include "base/span.h"
#include "tests/gazette_stand_in/stand_in.h"
#include <gazette_proto/broker.pb-c.h>

#define SI_MESSAGE_MAX (4u << 20)
#define SI_CHUNK       32736 /* of content in one ReadResponse */

enum si_status {
    SI_OK = 0,
    SI_JOURNAL_NOT_FOUND = 1,
    SI_NO_PRIMARY = 2,
    SI_INSUFFICIENT_BROKERS = 4,
    SI_NOT_YET_AVAILABLE = 6,
    SI_TXN_FAILED = 9,
    SI_NOT_ALLOWED = 10,
    SI_WRONG_OFFSET = 11,
    SI_INDEX_GREATER = 12,
    SI_REGISTER_MISMATCH = 13,
    SI_SUSPENDED = 14,
};

/* --- journals (journal.c) --- */

struct si_fragment {
    int64_t begin, end;
    uint8_t *data; /* not compressed */
    size_t cap;
    Gz__Codec codec;
    bool closed;
    bool listed;        /* the store's listing has it: it is read from there */
    int64_t closed_ms;  /* when, monotonic */
    int64_t mod_time_s; /* of the object; 0: not listed */
    int64_t first_s;    /* of its first append */
    void *sha;          /* EVP_MD_CTX of the content so far */
    int64_t gone_ms;    /* removed from the store, and known until then, monotonic; 0: there */
    char *object;       /* behind the store's URL; NULL: not stored */
    char *store;
};

TAILQ_HEAD(si_calls, si_call);

struct si_journal {
    TAILQ_ENTRY(si_journal) link; /* by name */
    char *name;
    struct blob *spec; /* JournalSpec as it came, unknown fields too */
    int64_t create_revision, mod_revision;
    bool assigned;
    int64_t assign_at_ms, unassign_at_ms; /* 0: not planned */
    struct si_fragment **frags;           /* by begin; the last may be open */
    size_t n, cap;
    int64_t spool_end; /* the head that the primary knows; below the index's: status 12 */
    int64_t hidden_until_ms;
    Gz__LabelSet *registers; /* NULL: none */
    struct si_calls readers; /* running Reads */
};

struct si_call;
struct si_conn;
struct si_fault;

/* What a token allows. */
struct si_claims {
    uint64_t cap;
    int64_t exp_s; /* 0: no end */
    Gz__LabelSelector *sel;
};

TAILQ_HEAD(si_journals, si_journal);
TAILQ_HEAD(si_conns, si_conn);
TAILQ_HEAD(si_faults, si_fault);

#define SI_KEYS 8

struct stand_in {
    struct stand_in_opts o; /* texts are owned */
    char *file_root, *zone, *id, *endpoint;
    pthread_t thread;
    struct event_base *evb;
    struct mailbox mb;
    struct event *mb_event;
    struct event *clock; /* lags: assignments, listings, watches */
    int64_t clock_at_ms; /* 0: not armed */
    struct evconnlistener *listener, *control;
    uint16_t port, control_port;
    struct blob *keys[SI_KEYS];
    size_t keys_n;
    bool token_optional;
    int64_t revision;
    int64_t watch_at_ms; /* when watches look again; 0: nothing changed */
    struct si_journals journals;
    struct si_journals deleted; /* their stored fragments are found again */
    struct si_conns conns;
    struct si_controls *controls; /* control.c */
    struct si_calls watchers;
    struct si_faults faults;
    uint64_t calls[STAND_IN_METHODS], running[STAND_IN_METHODS], hits;
    struct blob *last[STAND_IN_METHODS];
    bool stopping;
};

int64_t si_now_ms(void);
int64_t si_now_s(void);
/* Runs fn on the stand-in's thread, and waits. */
int si_sync(struct stand_in *si, int (*fn)(struct stand_in *si, void *arg), void *arg);
/* Looks at lags again, ms from now. */
void si_clock_in(struct stand_in *si, int64_t ms);
/* Something that lists show has changed. */
void si_changed(struct stand_in *si);

/* --- journal.c --- */
/* name;suffix is found by its name. NULL: none. */
struct si_journal *si_find(struct stand_in *si, const char *name);
/* The spec, unpacked; the caller frees it. NULL: out of memory. */
Gz__JournalSpec *si_spec(const struct si_journal *j);
/* Takes the spec as the journal's. E_NOMEM. */
int si_set_spec(struct stand_in *si, struct si_journal *j, const Gz__JournalSpec *spec);
int si_journal_new(struct stand_in *si, const Gz__JournalSpec *spec, struct si_journal **out);
/* It is gone from the listing; its stored fragments are kept for one of the same name. */
void si_journal_delete(struct stand_in *si, struct si_journal *j);
void si_journal_free(struct si_journal *j);
/* Of the index: the first byte, and the one behind the last. Hidden fragments do not count. */
int64_t si_index_begin(const struct si_journal *j);
int64_t si_index_end(const struct si_journal *j);
bool si_visible(const struct si_journal *j, const struct si_fragment *f);
/* The open fragment, or NULL. */
struct si_fragment *si_open(const struct si_journal *j);
/* Adds content at the head, into the open fragment (made if there is none). E_NOMEM. */
int si_extend(struct si_journal *j, Gz__Codec codec, struct evbuffer *content);
void si_drop_from(struct si_journal *j, int64_t offset);
void si_frag_free(struct si_fragment *f);
/* Readers look again. */
void si_wake_readers(struct si_journal *j);

/* --- store.c: closed fragments --- */
/* Closes the open fragment; it is stored if the spec has a store, and listed at once or after the
 * lag. E_IO, E_NOMEM. */
int si_close(struct stand_in *si, struct si_journal *j, bool list_now);
/* Lists what is due, and forgets what is gone. Returns ms until the next one, -1: none. */
int64_t si_list_due(struct stand_in *si, struct si_journal *j);
void si_frag_sum(const struct si_fragment *f, int64_t end, uint8_t out[20]);
/* A URL as the broker signs it; the caller frees it; NULL: it is not stored. */
char *si_url(const struct si_fragment *f);

/* --- compress.c --- */
/* The bytes of a stored object. E_NOMEM, E_UNSUPPORTED. */
int si_compress(Gz__Codec codec, struct span raw, struct blob **out);

/* --- messages (wire.c) --- */
struct si_header {
    Gz__Header h;
    Gz__ProcessId id, member, *members[1];
    Gz__Route route;
    char *endpoints[1];
    Gz__Etcd etcd;
};
/* As answers carry it; j NULL: without a route. It borrows from si. */
void si_header_init(struct stand_in *si, const struct si_journal *j, struct si_header *h);
struct si_wire_frag {
    Gz__Fragment f;
    Gz__Sha1 sum;
};
/* As far as `end`. It borrows. */
void si_wire_frag_init(const struct si_journal *j, const struct si_fragment *f, int64_t end,
                       struct si_wire_frag *w);
void si_wire_sum(const uint8_t digest[20], Gz__Sha1 *out);

/* --- labels and checks (check.c) --- */
/* True: ok. Else `why` says what a broker says. */
bool si_check_spec(const Gz__JournalSpec *s, char *why, size_t n);
bool si_check_name(const char *name, const char *field, char *why, size_t n);
bool si_check_labels(const Gz__LabelSet *set, bool selector, const char *field, char *why,
                     size_t n);
/* A label set against a selector; names of meta labels are passed beside it (NULL: none). */
bool si_matches(const Gz__LabelSelector *sel, const Gz__LabelSet *set, const char *journal);
/* a without what b has, with all of c, whose names replace those of a; NULL: empty or out of
 * memory. */
Gz__LabelSet *si_registers_next(const Gz__LabelSet *a, const Gz__LabelSet *subtract,
                                const Gz__LabelSet *unite);

/* --- tokens (auth.c) --- */
int si_auth_keys(struct stand_in *si, const char *text);
/* False: why, as the broker says it. */
bool si_auth(struct stand_in *si, const char *authorization, enum stand_in_method m,
             struct si_claims *out, char *why, size_t n);
void si_claims_fini(struct si_claims *c);

/* --- faults (fault.c) --- */
struct si_fault {
    TAILQ_ENTRY(si_fault) link;
    struct stand_in_fault f;
    char *journal;
};
int si_fault_add(struct stand_in *si, const struct stand_in_fault *f);
/* The fault that hits this call now, or false. */
bool si_fault_take(struct stand_in *si, enum stand_in_method m, const char *journal,
                   struct stand_in_fault *out);
void si_faults_drop(struct stand_in *si);
/* True: the call is over, or goes on later by itself. */
bool si_fault_begin(struct si_call *c);
/* Does it now. */
void si_fault_do(struct si_call *c);
const char *si_fault_name(enum stand_in_fault_kind k);
const char *si_method_name(enum stand_in_method m);

/* --- calls (call.c) --- */
struct si_call {
    TAILQ_ENTRY(si_call) link;  /* of the connection */
    TAILQ_ENTRY(si_call) queue; /* readers or watchers */
    struct si_calls *in_queue;
    struct stand_in *si;
    struct si_conn *conn;
    int32_t stream;
    int method; /* -1: unknown */
    char *authorization;
    char *content_type;
    struct evbuffer *in, *out;
    struct evbuffer *log; /* request as it came */
    bool in_end;          /* half-closed by the client */
    bool headers_sent, submitted_end;
    bool out_end; /* trailers follow what is queued */
    bool dead;    /* its stream is closed, or will be; nothing more is said */
    bool begun, admitted;
    int grpc_status;
    char message[512];
    struct si_claims claims;
    struct event *timer;  /* slow, trickle */
    struct event *expiry; /* of the token */
    bool waits;           /* for the timer */
    bool ready;           /* the timer has struck */
    bool unlisted;        /* it waits for the first listing of its journal's store */
    bool faulty, fault_done;
    bool cut; /* what is queued ends within a message */
    struct stand_in_fault fault;
    int64_t content; /* bytes of content so far: of the answer (Read), of the request (Append) */
    union {
        struct {
            Gz__ListRequest *rq;
            int64_t seen_n, seen_revision, after_revision;
        } list;
        struct {
            Gz__ReadRequest *rq;
            struct si_journal *j; /* NULL: not bound */
            int64_t pos;
            bool header_sent;
            int64_t frag_begin, frag_end; /* of the last metadata message */
            bool in_frag;
        } read;
        struct {
            Gz__AppendRequest *rq;
            struct evbuffer *content;
            int64_t chunks;
            bool commit;
        } append;
    } u;
};

/* HTTP/2 (h2.c) calls these. */
void si_call_headers(struct si_call *c, const char *path);
void si_call_data(struct si_call *c);
/* More output is wanted: false when there is none for now. */
void si_call_pull(struct si_call *c);
void si_call_fini(struct si_call *c);
/* For handlers. */
void si_call_send(struct si_call *c, const ProtobufCMessage *m);
/* The call ends when all that is queued is sent. */
void si_call_end(struct si_call *c, int grpc_status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Begins (again) to serve: after SLOW, or when something changed. */
void si_call_run(struct si_call *c);
/* Nothing is done with it for ms, then it is run (fault.c). */
void si_call_wait(struct si_call *c, int64_t ms);
/* A call that waits for the first listing of its store goes on if that is done. */
void si_call_listed(struct si_call *c, void *unused);
void si_call_queue(struct si_call *c, struct si_calls *q);
void si_call_unqueue(struct si_call *c);
/* The status of a journal for a call, with what the token sees. */
int si_resolve(struct si_call *c, const char *name, bool primary, struct si_journal **out);

/* h2.c */
void si_conn_accept(struct stand_in *si, evutil_socket_t fd);
void si_conn_free(struct si_conn *c);
void si_conn_goaway(struct si_conn *c);
void si_conn_reset(struct si_conn *c);
/* Sends what it has, headers first. */
void si_call_flush(struct si_call *c);
void si_call_reset(struct si_call *c, uint32_t code); /* 0: INTERNAL_ERROR */
void si_conns_free(struct stand_in *si);
void si_conn_each(struct stand_in *si, void (*fn)(struct si_call *c, void *arg), void *arg);

/* Handlers: a message came (NULL span: half-close), and more output is wanted. */
void si_list_message(struct si_call *c, struct span msg);
void si_list_pull(struct si_call *c);
void si_apply_message(struct si_call *c, struct span msg);
void si_read_message(struct si_call *c, struct span msg);
void si_read_pull(struct si_call *c);
void si_append_message(struct si_call *c, struct span msg);
void si_append_half_close(struct si_call *c);
void si_fragments_message(struct si_call *c, struct span msg);

/* --- control.c --- */
void si_control_accept(struct stand_in *si, evutil_socket_t fd);
void si_controls_free(struct stand_in *si);
/* What the functions of stand_in.h do, on the thread (admin.c). */
int si_do_close(struct stand_in *si, const char *journal);
int si_do_lose(struct stand_in *si, const char *journal, int64_t offset);
int si_do_all_down(struct stand_in *si, const char *journal);
int si_do_hide(struct stand_in *si, const char *journal, int64_t ms);
int si_do_prune(struct stand_in *si, const char *journal, unsigned n);
int si_do_prune_aged(struct stand_in *si, const char *journal);
int si_do_age(struct stand_in *si, const char *journal, unsigned n, int64_t seconds);
void si_do_forget(struct stand_in *si, const char *journal);
void si_do_calm(struct stand_in *si);
void si_do_end_calls(struct stand_in *si, enum stand_in_method m, enum stand_in_fault_kind kind,
                     int64_t value);
