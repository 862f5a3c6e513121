/* Settings of the gateway, filled by app/ from flags, environment and file. Owner: immutable after
 * start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/auth.h"
#include "gateway/registry_compat.h"
#include "gateway/tls.h"

struct catalog; /* gateway/catalog.h */

struct executor;   /* base/executor.h */
struct jc_journal; /* journal_client/spec.h */
struct jc_store;

/* What only some stores can do for an operator. Each is asynchronous: done is called once, on ex;
 * a negative return starts nothing. */
struct gw_repair {
    /* closes the open fragments of all journals */
    int (*flush)(struct jc_store *s, struct executor *ex, void (*done)(void *arg, int err),
                 void *arg);
    /* removes the closed fragments that end at or below end, as retention does */
    int (*remove_fragments)(struct jc_store *s, const struct jc_journal *j, int64_t end,
                            struct executor *ex, void (*done)(void *arg, int err), void *arg);
    /* removes the closed fragment that begins there, which leaves a hole; E_NOTFOUND */
    int (*punch)(struct jc_store *s, const struct jc_journal *j, int64_t begin, struct executor *ex,
                 void (*done)(void *arg, int err), void *arg);
};

struct gw_listen {
    const char *host; /* numeric address or name to bind */
    uint16_t port;    /* 0 = any free port */
    bool tls;
    bool sasl;                  /* clients must log in */
    const char *advertise_host; /* what clients of this listener are told; NULL: the gateway's */
    uint16_t advertise_port;    /* 0: the gateway's */
};

struct gw_config {
    const struct gw_listen *kafka; /* at least one */
    size_t kafka_n;
    const char *advertise_host; /* NULL: the address of the listener that the client came in by */
    uint16_t advertise_port;    /* 0: that listener's port */
    struct gw_listen admin;
    struct gw_listen registry; /* host NULL: none. sasl: a password (HTTP Basic) is asked for */
    enum registry_level registry_level; /* what the registry's compatibility check asks */
    struct gw_auth_opts auth;
    size_t task_fetch_rate; /* bytes of records a second; 0: no limit */
    struct gw_tls_opts tls;
    unsigned workers;          /* >= 1 */
    unsigned load_threads;     /* threads that load and encode blocks; >= 1 */
    size_t cache_bytes;        /* budget of the batch cache */
    unsigned partitions;       /* of a collection that a first publish creates */
    unsigned max_connections;  /* in all; one more is closed at accept */
    bool allow_anonymous;      /* a listener that others than this machine reach may serve without
                                  authentication; otherwise refused at start */
    size_t max_request_bytes;  /* a longer frame closes the connection. Default 4 MiB: a producer's
                                  request of 1 MB must still be refused politely */
    size_t max_ingest_bytes;   /* body of one publish request */
    size_t max_document_bytes; /* one published document; 0 = 64 MiB */
    size_t ingest_in_flight_bytes;  /* bodies of all running publish requests; 0 = 256 MiB */
    unsigned max_admin_connections; /* at once; 0 = 256 */
    const char *admin_hosts;  /* further names, by comma, that requests to an admin listener on
                                 loopback may come for; NULL: none */
    int64_t idempotency_ms;   /* how long an Idempotency-Key is remembered; 0 = 7 days */
    size_t conn_output_bytes; /* unsent bytes per connection above which no further request is read;
                                 also caps one fetch answer */
    int64_t idle_ms;          /* a connection without traffic is closed */
    int64_t
        stall_ms; /* a started frame, or an unread answer, without progress for so long closes */
    int64_t drain_ms; /* how long a stop waits for running requests */
    unsigned max_fetch_sessions;
    bool journal_admin; /* the admin listener may write raw journals and change their specs */
    const struct gw_repair *repair; /* of this store; NULL: it can do none of that */
    const struct catalog *catalog;  /* NULL: every collection is a topic. What the server starts
                                       with: later on it is the view's */
    const char *catalog_path;       /* read anew when it changes; NULL: never */
    const struct catalog_files *catalog_files; /* what `catalog` was read from */
    const char *anonymous_task; /* of clients that no listener asked who they are; NULL: the
                                   catalog's only one */
    bool read_only_catalog; /* a catalog is given: unknown collections are not created by publish */
    const char *groups_path;      /* database of the consumer groups; NULL: they are not kept */
    int64_t group_min_session_ms; /* all of groups: 0 = default of app/config.def */
    int64_t group_max_session_ms;
    int64_t group_initial_delay_ms;    /* < 0: default */
    int64_t group_consumer_session_ms; /* KIP-848 */
    int64_t group_consumer_heartbeat_ms;
    int64_t group_retention_ms;
    unsigned max_group_members;
    unsigned max_groups;    /* of one task */
    const char *cluster_id; /* Metadata, DescribeCluster; stable over restarts */
};

/* Whether clients of that listener must say who they are. */
static inline bool gw_listen_asks(const struct gw_config *config, const struct gw_listen *l)
{
    return l->sasl || (l->tls && config->tls.clients == TLS_CLIENTS_REQUIRED);
}
