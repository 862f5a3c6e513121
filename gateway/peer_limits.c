/*
 * A hash of addresses. Failures leak away at the rate that is free, so an address that stops
 * failing is as new after a minute. See peer_limits.h.
 */
#include "gateway/peer_limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"

#define BUCKETS   4096
#define MINUTE_MS INT64_C(60000)

/* Owner: lock. Quiet ones (no connection, nobody waits) are in `quiet`, the oldest first. */
struct peer {
    LIST_ENTRY(peer) link;
    TAILQ_ENTRY(peer) quiet_link;
    struct peer_key key;
    unsigned conns;
    unsigned waiting;
    bool quiet;
    int64_t failed; /* in 1/MINUTE_MS of a failure, as of failed_ms */
    int64_t failed_ms;
};

struct peer_limits {
    pthread_mutex_t lock;
    unsigned conns_max;
    unsigned failures_max;
    size_t known;
    size_t quiet_n;
    LIST_HEAD(, peer) buckets[BUCKETS];
    TAILQ_HEAD(, peer) quiet;
};

void peer_key_of(const struct sockaddr *sa, struct peer_key *out)
{
    *out = (struct peer_key){{0}};
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        out->b[10] = out->b[11] = 0xff;
        memcpy(out->b + 12, &in.sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, sa, sizeof in);
        memcpy(out->b, &in.sin6_addr, IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) ? 16 : 8);
    }
}

void peer_key_text(const struct peer_key *key, char out[PEER_TEXT_BYTES])
{
    struct in6_addr in;

    memcpy(&in, key->b, sizeof in);
    if (IN6_IS_ADDR_V4MAPPED(&in))
        (void)inet_ntop(AF_INET, key->b + 12, out, PEER_TEXT_BYTES);
    else if (inet_ntop(AF_INET6, key->b, out, INET6_ADDRSTRLEN) != NULL)
        memcpy(out + strlen(out), "/64", sizeof "/64");
}

int peer_limits_new(unsigned connections, unsigned failures, struct peer_limits **out)
{
    *out = NULL;
    struct peer_limits *pl = mem_zalloc(sizeof *pl);
    if (pl == NULL)
        return E_NOMEM;
    pthread_mutex_init(&pl->lock, NULL);
    pl->conns_max = connections;
    pl->failures_max = failures;
    TAILQ_INIT(&pl->quiet);
    *out = pl;
    return 0;
}

static void forget(struct peer_limits *pl, struct peer *p)
{
    if (p->quiet) {
        TAILQ_REMOVE(&pl->quiet, p, quiet_link);
        pl->quiet_n--;
    }
    LIST_REMOVE(p, link);
    pl->known--;
    mem_free(p);
}

void peer_limits_free(struct peer_limits *pl)
{
    if (pl == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct peer *p;
        while ((p = LIST_FIRST(&pl->buckets[i])) != NULL)
            forget(pl, p);
    }
    pthread_mutex_destroy(&pl->lock);
    mem_free(pl);
}

static size_t bucket_of(const struct peer_key *key)
{
    return hash_bytes(span_of(key->b, sizeof key->b), 0) % BUCKETS;
}

static struct peer *find(struct peer_limits *pl, const struct peer_key *key)
{
    struct peer *p;

    LIST_FOREACH(p, &pl->buckets[bucket_of(key)], link)
    {
        if (memcmp(&p->key, key, sizeof *key) == 0)
            return p;
    }
    return NULL;
}

/* After a change of conns or waiting, and after a new failure. */
static void settle(struct peer_limits *pl, struct peer *p)
{
    bool quiet = p->conns == 0 && p->waiting == 0;

    if (p->quiet) {
        TAILQ_REMOVE(&pl->quiet, p, quiet_link);
        pl->quiet_n--;
        p->quiet = false;
    }
    if (!quiet)
        return;
    if (p->failed == 0) {
        forget(pl, p);
        return;
    }
    p->quiet = true;
    TAILQ_INSERT_TAIL(&pl->quiet, p, quiet_link);
    if (++pl->quiet_n > PEER_QUIET_MAX)
        forget(pl, TAILQ_FIRST(&pl->quiet));
}

static struct peer *find_or_add(struct peer_limits *pl, const struct peer_key *key)
{
    struct peer *p = find(pl, key);

    if (p != NULL || (p = mem_zalloc(sizeof *p)) == NULL)
        return p;
    p->key = *key;
    LIST_INSERT_HEAD(&pl->buckets[bucket_of(key)], p, link);
    pl->known++;
    return p;
}

int peer_conn_add(struct peer_limits *pl, const struct peer_key *key)
{
    int err = 0;

    pthread_mutex_lock(&pl->lock);
    struct peer *p = find_or_add(pl, key);
    if (p == NULL) {
        err = E_NOMEM;
    } else if (pl->conns_max > 0 && p->conns >= pl->conns_max) {
        err = E_LIMIT;
    } else {
        p->conns++;
        settle(pl, p);
    }
    pthread_mutex_unlock(&pl->lock);
    return err;
}

void peer_conn_drop(struct peer_limits *pl, const struct peer_key *key)
{
    pthread_mutex_lock(&pl->lock);
    struct peer *p = find(pl, key);
    ASSERT(p != NULL && p->conns > 0);
    p->conns--;
    settle(pl, p);
    pthread_mutex_unlock(&pl->lock);
}

/* What has leaked away since the last look goes. */
static void leak(const struct peer_limits *pl, struct peer *p, int64_t now_ms)
{
    int64_t gone = now_ms - p->failed_ms;

    p->failed_ms = now_ms;
    if (gone <= 0 || p->failed == 0)
        return;
    if (gone >= MINUTE_MS * 100)
        p->failed = 0;
    else
        p->failed -= gone * pl->failures_max;
    if (p->failed < 0)
        p->failed = 0;
}

static int wait_of(const struct peer_limits *pl, const struct peer *p)
{
    int64_t over = p->failed / MINUTE_MS - pl->failures_max;
    int ms = PEER_WAIT_MS;

    if (over < 0)
        return 0;
    while (over-- > 0 && ms < PEER_WAIT_MAX_MS)
        ms *= 2;
    return ms < PEER_WAIT_MAX_MS ? ms : PEER_WAIT_MAX_MS;
}

int peer_login_wait(struct peer_limits *pl, const struct peer_key *key, int64_t now_ms)
{
    int ms = 0;

    if (pl->failures_max == 0)
        return 0;
    pthread_mutex_lock(&pl->lock);
    struct peer *p = find(pl, key);
    if (p != NULL) {
        leak(pl, p, now_ms);
        ms = wait_of(pl, p);
        if (ms > 0 && p->waiting >= PEER_WAITING_MAX)
            ms = E_LIMIT;
        else if (ms > 0)
            p->waiting++;
        settle(pl, p);
    }
    pthread_mutex_unlock(&pl->lock);
    return ms;
}

void peer_login_waited(struct peer_limits *pl, const struct peer_key *key)
{
    pthread_mutex_lock(&pl->lock);
    struct peer *p = find(pl, key);
    ASSERT(p != NULL && p->waiting > 0);
    p->waiting--;
    settle(pl, p);
    pthread_mutex_unlock(&pl->lock);
}

void peer_login_failed(struct peer_limits *pl, const struct peer_key *key, int64_t now_ms)
{
    if (pl->failures_max == 0)
        return;
    pthread_mutex_lock(&pl->lock);
    struct peer *p = find_or_add(pl, key);
    if (p != NULL) { /* out of memory: this one is not counted */
        leak(pl, p, now_ms);
        /* No further than where the wait is longest, so that it ends within two minutes. */
        if (p->failed < (int64_t)MINUTE_MS * (2 * (int64_t)pl->failures_max + 8))
            p->failed += MINUTE_MS;
        settle(pl, p);
    }
    pthread_mutex_unlock(&pl->lock);
}

size_t peer_limits_known(struct peer_limits *pl)
{
    pthread_mutex_lock(&pl->lock);
    size_t n = pl->known;
    pthread_mutex_unlock(&pl->lock);
    return n;
}
