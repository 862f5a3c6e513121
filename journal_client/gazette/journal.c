/*
 * A journal as this process knows it. It sleeps until somebody wants it; then: the floor kept from
 * earlier runs, the list of its fragments, the write head, a look back for the last content
 * (search.c), and from there its tail (tail.c). Fully suspended ones are served from their spec and
 * never asked, so that nothing here resumes them.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define REFRESH_MS 30000

static void on_timer(evutil_socket_t fd, short what, void *arg);
static void start(struct gz_journal *j);
static void ask_head(struct gz_journal *j);

int gz_journal_new(struct gz_store *s, const char *name, int64_t create_revision,
                   struct gz_journal **out)
{
    struct gz_journal *j = mem_zalloc(sizeof *j);

    *out = NULL;
    if (j == NULL)
        return E_NOMEM;
    j->create_revision = create_revision;
    j->append_head = -1;
    TAILQ_INIT(&j->starting);
    TAILQ_INIT(&j->scanners);
    STAILQ_INIT(&j->ring);
    for (size_t i = 0; i < GZ_HINTS; i++)
        j->hints[i].block = -1;
    if ((j->name = mem_strdup(name)) == NULL ||
        (j->timer = evtimer_new(s->evb, on_timer, j)) == NULL) {
        mem_free(j->name);
        mem_free(j);
        return E_NOMEM;
    }
    jc_hub_journal_init(&j->hub, &s->hub);
    j->store = s;
    *out = j;
    return 0;
}

struct gz_journal *gz_journal_ref(struct gz_journal *j)
{
    jc_hub_journal_ref(&j->hub);
    return j;
}

void gz_journal_unref(void *journal)
{
    jc_hub_journal_unref(journal);
}

/* Any thread: all that belongs to home was given back by gz_journal_gone. */
void gz_journal_free(struct jc_hub_journal *journal)
{
    struct gz_journal *j = (struct gz_journal *)journal;

    if (j->timer != NULL)
        event_free(j->timer);
    blob_unref(j->spec);
    gz_frags_fini(&j->frags);
    mem_free(j->endpoint);
    mem_free(j->primary);
    mem_free(j->name);
    mem_free(j);
}

/* --- heads --- */

static void raise(int64_t *to, int64_t v)
{
    if (v > *to)
        *to = v;
}

static void merge_sum(struct jc_heads *h, const struct gz_sum *sum)
{
    raise(&h->content_end, sum->content_end);
    if (sum->max_clock > h->max_clock)
        h->max_clock = sum->max_clock;
    (void)jc_marks_merge(&h->marks, &sum->marks);
}

/* What is known, as heads that never go back. */
static struct jc_heads compute(const struct gz_journal *j)
{
    struct jc_heads h = j->hub.heads;

    raise(&h.content_end, j->floor.content_end);
    raise(&h.write_head, j->floor.write_head);
    raise(&h.log_start, j->floor.log_start);
    if (j->floor.max_clock > h.max_clock)
        h.max_clock = j->floor.max_clock;
    (void)jc_marks_merge(&h.marks, &j->floor.marks);
    if (j->tail_set) {
        raise(&h.write_head, j->tail.run.end);
        merge_sum(&h, &j->tail.run.sum);
    }
    raise(&h.first, j->first);
    if (j->state == GZ_J_SUSPENDED) {
        /* No fragment is left. Without a memory of its content's end, its head stands for it. */
        raise(&h.write_head, j->suspend_offset);
        h.first = h.write_head;
        if (h.content_end == 0)
            h.content_end = j->suspend_offset;
    }
    if (h.first > h.write_head)
        h.first = h.write_head;
    if (h.content_end > h.write_head)
        h.content_end = h.write_head;
    raise(&h.log_start, h.first < h.content_end ? h.first : h.content_end);
    if (h.log_start > h.content_end)
        h.log_start = h.content_end;
    raise(&h.first, h.log_start);
    return h;
}

void gz_journal_publish(struct gz_journal *j)
{
    struct gz_store *s = j->store;
    struct jc_heads h = compute(j);
    bool was_ready = j->hub.ready;

    if (!was_ready && h.write_head < j->min_head)
        return; /* our own append is still to be seen */
    if (was_ready && memcmp(&h, &j->hub.heads, sizeof h) == 0)
        return;
    pthread_mutex_lock(&s->hub.lock);
    j->hub.heads = h;
    j->hub.ready = true;
    jc_notify_followers(&j->hub);
    jc_wake_waiters(&j->hub, 0);
    pthread_mutex_unlock(&s->hub.lock);
    gz_floor_save(j);
    jc_txn_clock_observe(&s->txn_clock, h.max_clock);
    if (!was_ready)
        gz_ops_ready(&j->starting, 0);
}

/* --- start --- */

static void again(struct gz_journal *j, const char *what, int err, int status)
{
    if (j->attempt == 3)
        log_event(LOG_WARN, "gazette.journal_waits", LF_STR("journal", j->name), LF_STR("at", what),
                  LF_STR("status", gz_status_text(status)), LF_ERR(err));
    gz_arm(j->timer, gz_backoff_ms(j->attempt));
    j->attempt++;
}

static void on_head_message(void *arg, struct span msg)
{
    struct gz_journal *j = arg;
    struct gz_read_msg m;

    if (gz_read_parse(msg, &m) < 0) {
        j->status = -1;
        return;
    }
    j->status = m.status;
    j->said_head = m.write_head;
    gz_route_take_header(j, m.header);
}

static void on_head_end(void *arg, const struct gz_end *end)
{
    struct gz_journal *j = arg;

    j->call = NULL;
    if (end->err < 0 || j->status != GZ_NOT_YET_AVAILABLE) {
        again(j, "head", end->err, j->status);
        return;
    }
    j->attempt = 0;
    if (j->said_head < j->floor.write_head)
        log_event(LOG_ERROR, "gazette.head_below", LF_STR("journal", j->name),
                  LF_INT("head", j->said_head), LF_INT("seen", j->floor.write_head));
    if (j->frags.n == 0)
        raise(&j->first, j->said_head);
    gz_search_start(j);
}

static void ask_head(struct gz_journal *j)
{
    const struct gz_call_cb cb = {.on_message = on_head_message, .on_end = on_head_end, .arg = j};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    rq.journal = j->name;
    rq.offset = -1;
    rq.min_etcd_revision = j->mod_revision;
    j->status = -1;
    if ((err = gz_rpc(j->store, j->endpoint, "Read", &rq.base, GZ_RPC_MS, &cb, &j->call)) < 0)
        again(j, "head", err, -1);
}

/* The list of fragments came. */
static void take_frags(struct gz_journal *j, struct gz_frags *list)
{
    gz_frags_fini(&j->frags);
    j->frags = *list;
    *list = (struct gz_frags){0};
    if (j->frags.n > 0)
        raise(&j->first, j->frags.v[0].begin);
}

static void on_start_frags(void *arg, int err, int status, struct gz_frags *list)
{
    struct gz_journal *j = arg;

    j->frags_call = NULL;
    if (err < 0 || status != GZ_OK) {
        again(j, "fragments", err, status);
        return;
    }
    take_frags(j, list);
    ask_head(j);
}

static void floor_key(const struct gz_journal *j, struct writer *w)
{
    wr_init(w, 1024);
    wr_str(w, "gazette/heads/");
    wr_str(w, j->name);
    wr_u8(w, 0);
}

static void floor_parse(struct gz_journal *j, struct span value)
{
    struct reader r = reader_of(value);
    struct jc_heads h = {0};
    int64_t v[10];

    for (size_t i = 0; i < 10; i++) {
        if (rd_i64(&r, &v[i]) < 0)
            return;
    }
    if (v[0] != j->create_revision)
        return;
    h.content_end = v[1];
    h.write_head = v[2];
    h.log_start = v[3];
    h.max_clock = (uint64_t)v[4];
    h.marks = (struct jc_marks){.begin = (uint64_t)v[5],
                                .begin_end = v[6],
                                .complete = (uint64_t)v[7],
                                .completed = (uint64_t)v[8],
                                .complete_end = v[9]};
    j->floor = h;
}

static void on_floor(void *arg, int err, struct span value)
{
    struct gz_journal *j = arg;

    if (err == 0)
        floor_parse(j, value);
    if (err == 0 || err == E_NOTFOUND)
        j->floor_known = true;
    if (j->state == GZ_J_STARTING) {
        if (j->floor_known)
            start(j);
        else
            again(j, "state", err, -1);
    }
    gz_journal_unref(j);
}

static void ask_floor(struct gz_journal *j)
{
    struct jc_store *kv = j->store->kv;
    struct writer w;
    int err;

    floor_key(j, &w);
    err = wr_err(&w);
    if (err == 0) {
        (void)gz_journal_ref(j);
        err = kv->ops->kv_get(kv, (const char *)w.b->data, &j->store->mb.ex, on_floor, j);
        if (err < 0)
            gz_journal_unref(j);
    }
    wr_fini(&w);
    if (err < 0)
        again(j, "state", err, -1);
}

static void start(struct gz_journal *j)
{
    int err;

    if (!j->floor_known) {
        ask_floor(j);
        return;
    }
    if (j->suspend_level == 2) {
        j->state = GZ_J_SUSPENDED;
        j->attempt = 0;
        gz_journal_publish(j);
        return;
    }
    if ((err = gz_frags_ask(j, on_start_frags, j, &j->frags_call)) < 0)
        again(j, "fragments", err, -1);
}

void gz_journal_wake(struct gz_journal *j)
{
    if (j->state != GZ_J_IDLE || j->hub.deleted)
        return;
    j->state = GZ_J_STARTING;
    j->attempt = 0;
    start(j);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gz_journal *j = arg;

    (void)fd;
    (void)what;
    if (j->state == GZ_J_STARTING)
        start(j);
    else if (j->state == GZ_J_TAIL && j->call == NULL)
        gz_tail_start(j);
}

/* --- fragments, later --- */

static void on_refresh(void *arg, int err, int status, struct gz_frags *list)
{
    struct gz_journal *j = arg;

    j->frags_call = NULL;
    if (err < 0 || status != GZ_OK)
        return;
    take_frags(j, list);
    gz_journal_publish(j);
}

void gz_journal_refresh(struct gz_journal *j, int64_t max_age_ms)
{
    int err;

    if (j->frags_call != NULL || j->state != GZ_J_TAIL ||
        gz_mono_ms(j->store) - j->frags.at_ms < max_age_ms)
        return;
    if ((err = gz_frags_ask(j, on_refresh, j, &j->frags_call)) < 0)
        log_peer(LOG_WARN, "gazette.fragments", LF_STR("journal", j->name), LF_ERR(err));
}

/* --- listing --- */

void gz_journal_listed(struct gz_journal *j, const Gz__ListedJournal *l, struct blob *spec)
{
    const Gz__Suspend *suspend = l->spec->suspend;
    int level = suspend == NULL ? 0 : suspend->level;

    blob_unref(j->spec);
    j->spec = spec;
    j->mod_revision = l->mod_revision;
    gz_route_take(j, l->route);
    j->suspend_offset = suspend == NULL ? 0 : suspend->offset;
    bool resumed = j->suspend_level == 2 && level != 2;
    bool suspended = j->suspend_level != 2 && level == 2;
    j->suspend_level = level;
    if (suspended && j->state != GZ_J_IDLE) {
        gz_search_stop(j);
        gz_tail_stop(j);
        if (j->frags_call != NULL)
            gz_frags_cancel(j->frags_call);
        j->frags_call = NULL;
        gz_frags_fini(&j->frags);
        event_del(j->timer);
        j->state = GZ_J_STARTING;
        start(j);
    } else if (resumed && j->state == GZ_J_SUSPENDED) {
        j->state = GZ_J_STARTING;
        start(j);
    }
}

void gz_journal_gone(struct gz_journal *j, int err)
{
    struct gz_store *s = j->store;
    struct gz_tail_blob *b;

    gz_search_stop(j);
    gz_tail_stop(j);
    if (j->frags_call != NULL)
        gz_frags_cancel(j->frags_call);
    j->frags_call = NULL;
    event_del(j->timer);
    j->state = GZ_J_DELETED;
    pthread_mutex_lock(&s->hub.lock);
    j->hub.deleted = true;
    jc_end_followers(&j->hub, err);
    jc_wake_waiters(&j->hub, err);
    pthread_mutex_unlock(&s->hub.lock);
    gz_ops_ready(&j->starting, err);
    gz_ops_ready(&j->scanners, err);
    while ((b = STAILQ_FIRST(&j->ring)) != NULL) {
        STAILQ_REMOVE_HEAD(&j->ring, link);
        blob_unref(b->bytes);
        mem_free(b);
    }
    if (j->tail_set)
        gz_feed_fini(&j->tail);
    j->tail_set = false;
    for (size_t i = 0; i < j->runs_n; i++)
        gz_run_fini(&j->runs[i]);
    mem_free(j->runs);
    j->runs = NULL;
    j->runs_n = j->runs_cap = 0;
    /* The event base goes before the last reference may. */
    if (j->timer != NULL)
        event_free(j->timer);
    j->timer = NULL;
}

/* --- floors --- */

void gz_floor_save(struct gz_journal *j)
{
    if (j->dirty)
        return;
    j->dirty = true;
    (void)gz_journal_ref(j);
    STAILQ_INSERT_TAIL(&j->store->dirty, j, dirty_link);
}

struct floor_write {
    struct gz_store *s;
    struct jc_kv kv;
    struct writer key, value;
};

static void on_written(void *arg, int err)
{
    struct floor_write *w = arg;

    if (err < 0)
        log_peer(LOG_ERROR, "gazette.state", LF_STR("key", w->kv.key), LF_ERR(err));
    w->s->kv_busy--;
    wr_fini(&w->key);
    wr_fini(&w->value);
    mem_free(w);
}

static void write_one(struct gz_store *s, const struct gz_journal *j)
{
    const struct jc_heads *h = &j->hub.heads;
    struct floor_write *w = mem_zalloc(sizeof *w);
    int err = E_NOMEM;

    if (w == NULL)
        return;
    w->s = s;
    floor_key(j, &w->key);
    wr_init(&w->value, 256);
    wr_i64(&w->value, j->create_revision);
    wr_i64(&w->value, h->content_end);
    wr_i64(&w->value, h->write_head);
    wr_i64(&w->value, h->log_start);
    wr_i64(&w->value, (int64_t)h->max_clock);
    wr_i64(&w->value, (int64_t)h->marks.begin);
    wr_i64(&w->value, h->marks.begin_end);
    wr_i64(&w->value, (int64_t)h->marks.complete);
    wr_i64(&w->value, (int64_t)h->marks.completed);
    wr_i64(&w->value, h->marks.complete_end);
    s->kv_busy++;
    if (wr_err(&w->key) == 0 && wr_err(&w->value) == 0) {
        w->kv = (struct jc_kv){.key = (const char *)w->key.b->data, .value = blob_span(w->value.b)};
        err = s->kv->ops->kv_set(s->kv, &w->kv, 1, &s->mb.ex, on_written, w);
    }
    if (err < 0)
        on_written(w, err);
}

void gz_floors_write(struct gz_store *s)
{
    struct gz_journal *j;

    while ((j = STAILQ_FIRST(&s->dirty)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->dirty, dirty_link);
        j->dirty = false;
        write_one(s, j);
        gz_journal_unref(j);
    }
}
