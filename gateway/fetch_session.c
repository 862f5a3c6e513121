/*
 * Incremental fetch sessions (KIP-227). A session keeps the partitions that its client fetches and
 * what the client was last told of them. Its parts stay linked to their partitions' watches, so a
 * request costs what the client changed and what moved, not what the session holds.
 *
 * Sessions belong to the worker of the connection that opened them, and their ids name it; a client
 * that comes back on another worker's connection has its session handed over
 * (fetch_session_move.c). The number of sessions, of their partitions and of the partitions of one
 * is bounded; the least recently used one that no request uses makes room.
 */
#include <sys/random.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gateway/fetch_int.h"
#include "gateway/metrics.h"

#define TABLE_BUCKETS 1024
#define FIRST_BUCKETS 4
/* Partitions of all sessions of a worker: about 350 bytes each. */
#define SESSION_PARTS_MAX 200000
/* Of one session: more is fetched without one. So nobody's request evicts more than its share. */
#define SESSION_PARTS_EACH (SESSION_PARTS_MAX / 8)
#define REFRESH_PARTS      10000 /* brought to a new view in one go */

/* Owner: the parts that name it. */
struct fetch_session_topic {
    size_t refs;
    size_t name_n;
    char name[];
};

LIST_HEAD(part_bucket, fetch_part);

/* Owner: worker */
struct fetch_session {
    struct fetch_sessions *ss;
    LIST_ENTRY(fetch_session) bucket;
    TAILQ_ENTRY(fetch_session) lru; /* least recently used first */
    int32_t id;
    int32_t epoch; /* of the next request */
    bool by_id;    /* topics by id: Fetch 13 and later */
    char *principal;
    struct fetch *fetch;        /* the request that uses it; NULL = idle */
    const struct gw_view *view; /* owned reference; what the parts are resolved in */
    struct fetch_part_list parts;
    struct fetch_part_list ready;
    size_t parts_n;
    struct part_bucket *buckets;
    size_t buckets_n; /* power of two */
};

struct fetch_sessions {
    struct fetch_worker *fw;
    size_t max;
    size_t n;
    size_t parts_n; /* of all sessions */
    TAILQ_HEAD(, fetch_session) lru;
    LIST_HEAD(, fetch_session) table[TABLE_BUCKETS];
};

/* --- parts --- */

static uint64_t part_hash(const struct fetch_session *s, struct span topic,
                          const struct kp_uuid *id, int32_t index)
{
    return hash_bytes(s->by_id ? span_of(id->b, sizeof id->b) : topic, (uint64_t)(uint32_t)index);
}

static struct part_bucket *part_bucket(const struct fetch_session *s, uint64_t hash)
{
    return &s->buckets[hash & (s->buckets_n - 1)];
}

static struct fetch_part *part_find(const struct fetch_session *s, struct span topic,
                                    const struct kp_uuid *id, int32_t index)
{
    struct fetch_part *p;

    LIST_FOREACH(p, part_bucket(s, part_hash(s, topic, id, index)), bucket)
    {
        if (p->index == index &&
            (s->by_id ? memcmp(p->topic_id.b, id->b, sizeof id->b) == 0 : span_eq(p->topic, topic)))
            return p;
    }
    return NULL;
}

static void grow_buckets(struct fetch_session *s)
{
    size_t n = s->buckets_n * 2;
    struct part_bucket *grown;
    struct fetch_part *p;

    if (s->parts_n < n || (grown = mem_array(n, sizeof *grown)) == NULL)
        return; /* longer chains serve as well */
    mem_free(s->buckets);
    s->buckets = grown;
    s->buckets_n = n;
    TAILQ_FOREACH(p, &s->parts, session_link)
    {
        uint64_t h = part_hash(s, p->topic, &p->topic_id, p->index);
        LIST_INSERT_HEAD(part_bucket(s, h), p, bucket);
    }
}

static void resolve(struct fetch_session *s, struct fetch_part *p)
{
    fetch_resolve(s->ss->fw, p, gw_view_principal(s->view, s->principal), s->by_id ? 13 : 7);
    if (p->watch == NULL && p->part != NULL)
        fetch_watch_attach(s->ss->fw, p);
}

static void topic_unref(struct fetch_session_topic *t)
{
    if (t != NULL && --t->refs == 0)
        mem_free(t);
}

/* A part that the session did not hold. *topic: made on first use, shared by the parts of one topic
 * of a request. NULL: out of memory, or over the limit. */
static struct fetch_part *part_add(struct fetch_session *s, struct span name,
                                   const struct kp_uuid *id, int32_t index,
                                   struct fetch_session_topic **topic)
{
    if (s->parts_n >= SESSION_PARTS_EACH || s->ss->parts_n >= SESSION_PARTS_MAX)
        return NULL;
    if (*topic == NULL) {
        if ((*topic = mem_alloc(sizeof **topic + name.n + 1)) == NULL)
            return NULL;
        (*topic)->refs = 1; /* the caller's */
        (*topic)->name_n = name.n;
        if (name.n > 0)
            memcpy((*topic)->name, name.p, name.n);
    }
    struct fetch_part *p = mem_zalloc(sizeof *p);
    if (p == NULL)
        return NULL;
    (*topic)->refs++;
    p->session_topic = *topic;
    p->topic = span_of((*topic)->name, (*topic)->name_n);
    p->topic_id = *id;
    p->index = index;
    p->user = &s->fetch;
    p->ready_list = &s->ready;
    p->told_hwm = p->told_lso = p->told_log_start = -1;
    grow_buckets(s);
    LIST_INSERT_HEAD(part_bucket(s, part_hash(s, p->topic, id, index)), p, bucket);
    TAILQ_INSERT_TAIL(&s->parts, p, session_link);
    s->parts_n++;
    s->ss->parts_n++;
    resolve(s, p);
    return p;
}

static void part_remove(struct fetch_session *s, struct fetch_part *p)
{
    fetch_unmark_ready(p);
    fetch_watch_detach(s->ss->fw, p);
    LIST_REMOVE(p, bucket);
    TAILQ_REMOVE(&s->parts, p, session_link);
    s->parts_n--;
    s->ss->parts_n--;
    topic_unref(p->session_topic);
    mem_free(p);
}

/* Adds or changes the partitions that the request lists. E_NOMEM. */
static int update_parts(struct fetch_session *s, const struct kp_fetch_req *req)
{
    for (int32_t i = 0; i < req->topics_n; i++) {
        const struct kp_fetch_req_topics *t = &req->topics[i];
        struct fetch_session_topic *topic = NULL;

        for (int32_t j = 0; j < t->partitions_n; j++) {
            const struct kp_fetch_req_topics_partitions *rp = &t->partitions[j];
            struct fetch_part *p = part_find(s, t->topic, &t->topic_id, rp->partition);

            if (p == NULL &&
                (p = part_add(s, t->topic, &t->topic_id, rp->partition, &topic)) == NULL) {
                topic_unref(topic);
                return E_NOMEM;
            }
            p->want = (struct fetch_want){.offset = rp->fetch_offset,
                                          .current_epoch = rp->current_leader_epoch,
                                          .last_fetched_epoch = rp->last_fetched_epoch};
            p->max_bytes = rp->partition_max_bytes;
            p->seen_end = 0;
            fetch_mark_ready(p);
        }
        topic_unref(topic);
    }
    return 0;
}

static void forget_parts(struct fetch_session *s, const struct kp_fetch_req *req)
{
    for (int32_t i = 0; i < req->forgotten_topics_data_n; i++) {
        const struct kp_fetch_req_forgotten_topics_data *t = &req->forgotten_topics_data[i];

        for (int32_t j = 0; j < t->partitions_n; j++) {
            struct fetch_part *p = part_find(s, t->topic, &t->topic_id, t->partitions[j]);
            if (p != NULL)
                part_remove(s, p);
        }
    }
}

/* --- sessions --- */

static size_t table_slot(int32_t id)
{
    return (size_t)(uint32_t)id * 2654435761u >> 16 & (TABLE_BUCKETS - 1);
}

/* Sessions of other principals do not exist for this one. */
static struct fetch_session *session_find(const struct fetch_sessions *ss, int32_t id,
                                          const char *principal)
{
    struct fetch_session *s;

    LIST_FOREACH(s, &ss->table[table_slot(id)], bucket)
    {
        if (s->id == id && (principal == NULL || strcmp(s->principal, principal) == 0))
            return s;
    }
    return NULL;
}

/* Takes s out of its worker's hands: nobody finds it, nothing calls on it. */
static void session_detach(struct fetch_session *s)
{
    struct fetch_part *p;

    ASSERT(s->fetch == NULL);
    TAILQ_FOREACH(p, &s->parts, session_link)
    fetch_watch_detach(s->ss->fw, p);
    LIST_REMOVE(s, bucket);
    TAILQ_REMOVE(&s->ss->lru, s, lru);
    s->ss->n--;
    s->ss->parts_n -= s->parts_n;
    metric_add(M_FETCH_SESSIONS, -1);
    s->ss = NULL;
}

void fetch_session_destroy(struct fetch_session *s)
{
    struct fetch_part *p;

    if (s == NULL)
        return;
    ASSERT(s->ss == NULL);
    while ((p = TAILQ_FIRST(&s->parts)) != NULL) {
        TAILQ_REMOVE(&s->parts, p, session_link);
        topic_unref(p->session_topic);
        mem_free(p);
    }
    gw_view_unref(s->view);
    mem_free(s->principal);
    mem_free(s->buckets);
    mem_free(s);
}

static void session_free(struct fetch_session *s)
{
    session_detach(s);
    fetch_session_destroy(s);
}

/* Positive, free, not to be guessed, and naming the worker. 0: no luck. */
static int32_t new_id(struct fetch_sessions *ss)
{
    uint32_t workers = ss->fw->w->shared->workers_n;
    uint32_t r;

    for (int tries = 0; tries < 16; tries++) {
        if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
            return 0;
        r &= 0x3fffffff;
        if (workers > 0)
            r = r - r % workers + ss->fw->w->id % workers;
        if (r != 0 && session_find(ss, (int32_t)r, NULL) == NULL)
            return (int32_t)r;
    }
    return 0;
}

static bool evict_one(struct fetch_sessions *ss)
{
    struct fetch_session *s;

    TAILQ_FOREACH(s, &ss->lru, lru)
    {
        if (s->fetch == NULL) {
            session_free(s);
            metric_add(M_FETCH_SESSIONS_EVICTED, 1);
            return true;
        }
    }
    return false;
}

/* False: idle sessions could not make enough room. */
static bool make_room(struct fetch_sessions *ss, size_t parts_n)
{
    if (ss->max == 0 || parts_n > SESSION_PARTS_EACH)
        return false;
    while (ss->n >= ss->max || ss->parts_n + parts_n > SESSION_PARTS_MAX) {
        if (!evict_one(ss))
            return false;
    }
    return true;
}

static void session_insert(struct fetch_sessions *ss, struct fetch_session *s)
{
    s->ss = ss;
    LIST_INSERT_HEAD(&ss->table[table_slot(s->id)], s, bucket);
    TAILQ_INSERT_TAIL(&ss->lru, s, lru);
    ss->n++;
    ss->parts_n += s->parts_n;
    metric_add(M_FETCH_SESSIONS, 1);
}

/* NULL: no memory or no room; the fetch then goes without. */
static struct fetch_session *session_new(struct fetch_sessions *ss, const struct fetch *f,
                                         size_t parts_n)
{
    struct fetch_session *s;

    if (!make_room(ss, parts_n))
        return NULL;
    if ((s = mem_zalloc(sizeof *s)) == NULL)
        return NULL;
    s->principal = mem_strdup(request_principal(f->rq));
    s->buckets = mem_array(FIRST_BUCKETS, sizeof *s->buckets);
    s->id = new_id(ss);
    if (s->principal == NULL || s->buckets == NULL || s->id == 0) {
        mem_free(s->principal);
        mem_free(s->buckets);
        mem_free(s);
        return NULL;
    }
    s->epoch = 1;
    s->by_id = f->version >= 13;
    s->buckets_n = FIRST_BUCKETS;
    s->view = gw_view_ref(f->view);
    TAILQ_INIT(&s->parts);
    TAILQ_INIT(&s->ready);
    session_insert(ss, s);
    return s;
}

static size_t parts_in(const struct kp_fetch_req *req)
{
    size_t n = 0;

    for (int32_t i = 0; i < req->topics_n; i++)
        n += req->topics[i].partitions_n > 0 ? (size_t)req->topics[i].partitions_n : 0;
    return n;
}

/* A full request: closes the session that it names and, at epoch 0, opens another. */
static int16_t enter_full(struct fetch_sessions *ss, struct fetch *f,
                          const struct kp_fetch_req *req)
{
    size_t n = parts_in(req);
    struct fetch_session *s =
        req->session_id == 0 ? NULL : session_find(ss, req->session_id, request_principal(f->rq));

    if (s != NULL && s->fetch == NULL)
        session_free(s);
    else if (s == NULL && req->session_id != 0)
        fetch_session_close_elsewhere(f, req->session_id);
    if (req->session_epoch != 0 || n == 0)
        return KE_NONE;
    if ((s = session_new(ss, f, n)) == NULL)
        return KE_NONE;
    if (update_parts(s, req) < 0) {
        session_free(s);
        return KE_NONE;
    }
    s->fetch = f;
    f->session = s;
    f->full = true;
    return KE_NONE;
}

int16_t fetch_session_enter(struct fetch *f, const struct kp_fetch_req *req)
{
    struct fetch_sessions *ss = f->fw->sessions;
    struct fetch_session *s;

    if (f->version < 7)
        return KE_NONE;
    if (req->session_epoch == 0 || req->session_epoch == -1)
        return enter_full(ss, f, req);
    if ((s = session_find(ss, req->session_id, request_principal(f->rq))) == NULL)
        return KE_FETCH_SESSION_ID_NOT_FOUND;
    if (s->fetch != NULL || s->epoch != req->session_epoch)
        return KE_INVALID_FETCH_SESSION_EPOCH;
    if (s->by_id != (f->version >= 13))
        return KE_FETCH_SESSION_TOPIC_ID_ERROR;
    fetch_session_see(s, f->view);
    if (update_parts(s, req) < 0) {
        session_free(s); /* half updated, or too large: the client begins anew */
        return KE_FETCH_SESSION_ID_NOT_FOUND;
    }
    forget_parts(s, req);
    if (s->parts_n == 0) {
        session_free(s);
        return KE_NONE;
    }
    s->epoch = s->epoch == INT32_MAX ? 1 : s->epoch + 1;
    TAILQ_REMOVE(&ss->lru, s, lru);
    TAILQ_INSERT_TAIL(&ss->lru, s, lru);
    s->fetch = f;
    f->session = s;
    return KE_NONE;
}

void fetch_session_leave(struct fetch *f)
{
    if (f->session != NULL)
        f->session->fetch = NULL;
    f->session = NULL;
}

int32_t fetch_session_id(const struct fetch_session *s)
{
    return s->id;
}

struct fetch_part_list *fetch_session_parts(struct fetch_session *s)
{
    return &s->parts;
}

size_t fetch_session_parts_n(const struct fetch_session *s)
{
    return s->parts_n;
}

struct fetch_part_list *fetch_session_ready(struct fetch_session *s)
{
    return &s->ready;
}

void fetch_session_see(struct fetch_session *s, const struct gw_view *view)
{
    const struct gw_view *old = s->view;
    struct fetch_part *p;

    if (old == view)
        return;
    s->view = gw_view_ref(view);
    TAILQ_FOREACH(p, &s->parts, session_link)
    {
        resolve(s, p);
        fetch_mark_ready(p);
    }
    gw_view_unref(old);
}

void fetch_sessions_refresh(struct fetch_sessions *ss)
{
    const struct gw_view *view = ss->fw->w->view;
    struct fetch_session *s;
    size_t parts = 0;

    TAILQ_FOREACH(s, &ss->lru, lru)
    {
        if (s->fetch != NULL || s->view == view)
            continue;
        if ((parts += s->parts_n) > REFRESH_PARTS && parts > s->parts_n)
            return; /* the next sweep goes on */
        fetch_session_see(s, view);
    }
}

void fetch_session_told(struct fetch_session *s, struct fetch_part *p)
{
    bool error = p->plan.verdict == FETCH_ERROR || p->plan.verdict == FETCH_DIVERGED;

    /* after an error everything is told again */
    p->told_hwm = error ? -1 : p->ends.hwm;
    p->told_lso = error ? -1 : p->ends.lso;
    p->told_log_start = error ? -1 : p->ends.log_start;
    if (p->plan.verdict == FETCH_NOTHING) {
        fetch_unmark_ready(p); /* told all there is */
    } else if (p->batch_n > 0 && p->ready) {
        TAILQ_REMOVE(&s->ready, p, ready_link);
        TAILQ_INSERT_TAIL(&s->ready, p, ready_link);
    }
}

bool fetch_session_known(const struct fetch_sessions *ss, int32_t id)
{
    return session_find(ss, id, NULL) != NULL;
}

int16_t fetch_session_take(struct fetch_sessions *ss, int32_t id, const char *principal,
                           struct fetch_session **out)
{
    struct fetch_session *s = session_find(ss, id, principal);

    *out = NULL;
    if (s == NULL)
        return KE_FETCH_SESSION_ID_NOT_FOUND;
    if (s->fetch != NULL)
        return KE_INVALID_FETCH_SESSION_EPOCH;
    session_detach(s);
    *out = s;
    return KE_NONE;
}

void fetch_session_adopt(struct fetch_sessions *ss, struct fetch_session *s)
{
    struct fetch_part *p;

    if (session_find(ss, s->id, NULL) != NULL || !make_room(ss, s->parts_n)) {
        fetch_session_destroy(s);
        return;
    }
    session_insert(ss, s);
    TAILQ_FOREACH(p, &s->parts, session_link)
    {
        resolve(s, p);
        fetch_mark_ready(p); /* it may have moved while nobody looked */
    }
}

/* --- life --- */

int fetch_sessions_new(struct fetch_worker *fw, size_t max, struct fetch_sessions **out)
{
    struct fetch_sessions *ss = mem_zalloc(sizeof *ss);

    *out = NULL;
    if (ss == NULL)
        return E_NOMEM;
    ss->fw = fw;
    ss->max = max;
    TAILQ_INIT(&ss->lru);
    *out = ss;
    return 0;
}

void fetch_sessions_free(struct fetch_sessions *ss)
{
    struct fetch_session *s;

    if (ss == NULL)
        return;
    while ((s = TAILQ_FIRST(&ss->lru)) != NULL)
        session_free(s);
    mem_free(ss);
}

size_t fetch_sessions_count(const struct fetch_sessions *ss)
{
    return ss->n;
}
