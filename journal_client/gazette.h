/*
 * The distributed store: journals of a Gazette cluster, behind journal_client/store.h.
 *
 * Reads and writes go to the brokers over gRPC; stored fragments are read where they lie (a shared
 * folder of a file:// store, or by the URLs that brokers sign) when that can be done, so that a
 * backlog costs the brokers nothing. Key-values, and the heads last seen of each journal, are kept
 * in a folder of this process (DIR/state): they belong to this gateway, not to the cluster.
 *
 * What differs from the local store: a transaction over several journals is not atomic (each
 * journal's part is); the end of content and the clocks of what lay in journals before this process
 * looked at them are known as far as it read (docs/gazette.md).
 */
#pragma once

#include "journal_client/store.h"

/* All text is borrowed for the call of jc_gazette_open. NULL or 0: not set. */
struct jc_gazette_opts {
    const char *brokers; /* "host:port[,host:port]" */
    bool tls;
    const char *ca_file;   /* NULL: the system's authorities */
    const char *cert_file; /* client certificate and key, PEM */
    const char *key_file;
    const char *auth_keys; /* base64, as the broker's --broker.auth-keys; the first one signs */
    const char *journals;  /* prefix of names that tokens are limited to; NULL: all */
    int64_t token_s;       /* how long a token holds; 0 = 1 h */
    const char *zone;      /* of this gateway: brokers of the same one are asked first; NULL: any */
    bool single_writer;    /* a journal that another gateway claimed is not written any more */
    const char *data_dir;  /* required: state and scratch files */
    const char *file_root; /* where file:// fragment stores are mounted here; NULL: such fragments
                              are read through the broker */
    bool no_direct;        /* read everything through the broker */
    int64_t scratch_bytes; /* of inflated fragments kept; 0 = 1 GiB */
    /* Of journals that are made here. */
    const char *fragment_store; /* "file:///", "s3://bucket/prefix/"; NULL: content stays with the
                                   brokers */
    const char *codec;          /* none, gzip, zstd, snappy; NULL = none */
    int64_t replication;        /* 0 = 1 */
    int64_t fragment_bytes;     /* 0 = 64 MiB */
    int64_t tail_bytes;         /* of what tails brought, kept over all journals; 0 = 64 MiB */
    int64_t idle_ms;  /* a journal that nobody waits for or reads keeps its stream for so long;
                         0 = 60 s */
    int64_t start_ms; /* so often it is asked where journals that are in use begin; 0 = 10 s */
    const struct clock *clock; /* NULL = the system's */
    jc_probe_fn *probe;        /* required */
    void *probe_arg;
    unsigned io_threads; /* 0 = 2; they read and inflate fragments */
};

/* Does not wait for a broker: until one answers, watches are silent. E_INVALID, E_SYNTAX, E_BUSY
 * (another process owns the data folder), E_IO. why: one line of explanation, may be NULL. */
MUST_USE int jc_gazette_open(const struct jc_gazette_opts *o, struct jc_store **out, char *why,
                             size_t why_bytes);

/* True for "gazette://..." and "gazettes://..."; brokers is what stands behind it. */
bool jc_gazette_url(const char *url, const char **brokers, bool *tls);

/* Whether settings can be right, as far as that is seen without a broker. E_SYNTAX, E_LIMIT; why:
 * one line of explanation, may be NULL. */
MUST_USE int jc_gazette_brokers_check(const char *brokers, char *why, size_t why_bytes);
MUST_USE int jc_gazette_codec_check(const char *name, char *why, size_t why_bytes);
MUST_USE int jc_gazette_fragment_store_check(const char *url, char *why, size_t why_bytes);

/* Bytes of fragments read since the process began: where they lie, and through brokers. */
void jc_gazette_read_stats(uint64_t *direct, uint64_t *brokered);

/* Of all stores of this process: bytes that tails keep, and streams of tails that are open. */
void jc_gazette_tail_stats(int64_t *ring_bytes, int64_t *open);

/* Takes over a journal whose bytes another store of ours wrote to the place that its fragments are
 * read from: waits until the broker's head is heads->write_head, sets it there, and keeps heads as
 * the floor of this gateway (durable once a later kv_set was answered, or the store closed). Before
 * anything else asks for the journal, else E_BUSY. E_CONFLICT: the broker sees another end (within
 * 30 s, when it is a lower one). Do not close the store before done. */
MUST_USE int jc_gazette_adopt(struct jc_store *s, const struct jc_journal *j,
                              const struct jc_heads *heads, struct executor *ex, jc_done_fn *done,
                              void *arg);
