/*
 * Heads of a journal in three steps: what is known (next), what is kept in DIR/state (kept), what
 * is told to callers. Nothing is told that a restart could forget: each step waits for the one
 * before it. All journals whose heads moved are kept by one write, and one write is under way at
 * most, so that a busy store costs a bounded number of them however many answers it gives.
 *
 * Home thread.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define WRITE_EVERY_MS 10   /* between the end of one write and the next */
#define RETRY_MS       1000 /* behind one that failed */

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

static void clamp(struct jc_heads *h)
{
    if (h->first > h->write_head)
        h->first = h->write_head;
    if (h->content_end > h->write_head)
        h->content_end = h->write_head;
    raise(&h->log_start, h->first < h->content_end ? h->first : h->content_end);
    if (h->log_start > h->content_end)
        h->log_start = h->content_end;
    raise(&h->first, h->log_start);
}

/* What is known, as heads that never go back within a life. */
static struct jc_heads compute(const struct gz_journal *j)
{
    struct jc_heads h = j->next;

    raise(&h.content_end, j->kept.content_end);
    raise(&h.write_head, j->kept.write_head);
    raise(&h.log_start, j->kept.log_start);
    if (j->kept.max_clock > h.max_clock)
        h.max_clock = j->kept.max_clock;
    (void)jc_marks_merge(&h.marks, &j->kept.marks);
    h.life = j->kept.life;
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
    clamp(&h);
    if (jc_heads_settling(&h) != gz_settling(j))
        h.settle++;
    return h;
}

static bool same_record(const struct jc_heads *a, const struct jc_heads *b)
{
    return a->life == b->life && a->content_end == b->content_end &&
           a->write_head == b->write_head && a->log_start == b->log_start &&
           a->max_clock == b->max_clock && memcmp(&a->marks, &b->marks, sizeof a->marks) == 0;
}

/* --- telling --- */

static void tell(struct gz_journal *j)
{
    struct gz_store *s = j->store;
    struct jc_heads h = j->kept;

    if (j->state == GZ_J_IDLE || j->state == GZ_J_DELETED)
        return;
    h.first = j->next.first;
    h.settle = j->next.settle;
    clamp(&h);
    pthread_mutex_lock(&s->hub.lock);
    j->hub.heads = h;
    j->hub.ready = true;
    jc_notify_followers(&j->hub);
    jc_wake_waiters(&j->hub, 0);
    pthread_mutex_unlock(&s->hub.lock);
    jc_txn_clock_observe(&s->txn_clock, h.max_clock);
    if (!j->opened && j->state != GZ_J_STARTING) {
        j->opened = true;
        gz_ops_ready(&j->starting, 0);
    }
    gz_fresh_next(j);
}

static void run_tasks(struct task_queue *q)
{
    struct task_queue now = STAILQ_HEAD_INITIALIZER(now);
    struct task *t;

    STAILQ_CONCAT(&now, q);
    while ((t = STAILQ_FIRST(&now)) != NULL) {
        STAILQ_REMOVE_HEAD(&now, link);
        t->run(t);
    }
}

void gz_told_then(struct gz_store *s, struct task *t)
{
    if (s->heads_busy == 0 && STAILQ_EMPTY(&s->dirty))
        t->run(t);
    else
        STAILQ_INSERT_TAIL(STAILQ_EMPTY(&s->dirty) ? &s->told_now : &s->told_next, t, link);
}

/* --- keeping --- */

static void mark_dirty(struct gz_journal *j)
{
    if (j->dirty)
        return;
    j->dirty = true;
    (void)gz_journal_ref(j);
    STAILQ_INSERT_TAIL(&j->store->dirty, j, dirty_link);
}

static void floor_key(const struct gz_journal *j, struct writer *w)
{
    wr_init(w, 1024);
    wr_str(w, "gazette/heads/");
    wr_str(w, j->name);
    wr_u8(w, 0);
}

/* One journal of a write. */
struct record {
    struct gz_journal *j; /* counted */
    struct jc_heads heads;
    struct writer key, value;
};

struct heads_write {
    struct gz_store *s;
    size_t n;
    struct jc_kv *kv;
    struct record *v;
};

static void write_free(struct heads_write *w)
{
    for (size_t i = 0; w->v != NULL && i < w->n; i++) {
        wr_fini(&w->v[i].key);
        wr_fini(&w->v[i].value);
        gz_journal_unref(w->v[i].j);
    }
    mem_free(w->v);
    mem_free(w->kv);
    mem_free(w);
}

static void on_written(void *arg, int err)
{
    struct heads_write *w = arg;
    struct gz_store *s = w->s;

    if (err < 0)
        log_peer(LOG_ERROR, "gazette.state", LF_STR("key", "heads"), LF_ERR(err));
    s->kv_busy--;
    s->heads_busy = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct gz_journal *j = w->v[i].j;
        if (err < 0) {
            mark_dirty(j);
        } else if (w->v[i].heads.life >= j->kept.life) {
            j->kept = w->v[i].heads;
            j->kept_sound = true;
            tell(j);
        }
    }
    write_free(w);
    run_tasks(&s->told_now);
    if (s->stopping && err == 0)
        gz_heads_write(s);
    else if (!STAILQ_EMPTY(&s->dirty) && !s->stopping)
        gz_arm(s->heads_timer, err < 0 ? RETRY_MS : WRITE_EVERY_MS);
}

static int put_record(struct heads_write *w, struct gz_journal *j)
{
    struct record *r = &w->v[w->n];
    const struct jc_heads *h = &j->next;

    *r = (struct record){.j = gz_journal_ref(j), .heads = *h};
    floor_key(j, &r->key);
    wr_init(&r->value, 256);
    wr_i64(&r->value, j->create_revision);
    wr_i64(&r->value, h->content_end);
    wr_i64(&r->value, h->write_head);
    wr_i64(&r->value, h->log_start);
    wr_i64(&r->value, (int64_t)h->max_clock);
    wr_i64(&r->value, (int64_t)h->marks.begin);
    wr_i64(&r->value, h->marks.begin_end);
    wr_i64(&r->value, (int64_t)h->marks.complete);
    wr_i64(&r->value, (int64_t)h->marks.completed);
    wr_i64(&r->value, h->marks.complete_end);
    wr_i64(&r->value, (int64_t)h->life);
    w->n++;
    if (wr_err(&r->key) < 0 || wr_err(&r->value) < 0)
        return E_NOMEM;
    w->kv[w->n - 1] =
        (struct jc_kv){.key = (const char *)r->key.b->data, .value = blob_span(r->value.b)};
    return 0;
}

static int write_all(struct gz_store *s)
{
    struct heads_write *w = mem_zalloc(sizeof *w);
    struct gz_journal *j;
    size_t n = 0;
    int err = E_NOMEM;

    STAILQ_FOREACH(j, &s->dirty, dirty_link)
    {
        n++;
    }
    if (w == NULL)
        return E_NOMEM;
    w->s = s;
    w->v = mem_array(n, sizeof *w->v);
    w->kv = mem_array(n, sizeof *w->kv);
    if (w->v == NULL || w->kv == NULL)
        goto out;
    err = 0;
    STAILQ_FOREACH(j, &s->dirty, dirty_link)
    {
        if (err == 0)
            err = put_record(w, j);
    }
    if (err < 0 || (err = s->kv->ops->kv_set(s->kv, w->kv, w->n, &s->mb.ex, on_written, w)) < 0)
        goto out;
    s->kv_busy++;
    s->heads_busy = 1;
    return 0;
out:
    write_free(w);
    return err;
}

void gz_heads_write(struct gz_store *s)
{
    struct gz_journal *j;

    if (s->heads_busy > 0 || STAILQ_EMPTY(&s->dirty))
        return;
    int err = write_all(s);
    if (err < 0) {
        log_peer(LOG_ERROR, "gazette.state", LF_STR("key", "heads"), LF_ERR(err));
        gz_arm(s->heads_timer, RETRY_MS);
        return;
    }
    STAILQ_CONCAT(&s->told_now, &s->told_next);
    while ((j = STAILQ_FIRST(&s->dirty)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->dirty, dirty_link);
        j->dirty = false;
        gz_journal_unref(j);
    }
}

void gz_heads_end(struct gz_store *s)
{
    struct gz_journal *j;

    while ((j = STAILQ_FIRST(&s->dirty)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->dirty, dirty_link);
        j->dirty = false;
        gz_journal_unref(j);
    }
    run_tasks(&s->told_now);
    run_tasks(&s->told_next);
}

static void keep(struct gz_journal *j)
{
    struct gz_store *s = j->store;

    mark_dirty(j);
    if (s->heads_busy == 0 && !evtimer_pending(s->heads_timer, NULL))
        gz_heads_write(s);
}

void gz_journal_publish(struct gz_journal *j)
{
    if (j->state == GZ_J_IDLE || j->state == GZ_J_DELETED)
        return;
    struct jc_heads h = compute(j);
    if (!j->opened && j->state != GZ_J_STARTING && h.write_head < j->min_head)
        return; /* our own append is still to be seen */
    if (j->opened && memcmp(&h, &j->next, sizeof h) == 0)
        return;
    j->next = h;
    if (j->kept_sound && same_record(&h, &j->kept))
        tell(j);
    else if (j->state != GZ_J_STARTING)
        keep(j);
}

void gz_heads_adopt(struct gz_journal *j, const struct jc_heads *heads)
{
    j->next = *heads;
    j->floor_known = true;
    keep(j);
}

void gz_heads_new_life(struct gz_journal *j)
{
    j->next = (struct jc_heads){.life = j->kept.life + 1, .settle = j->next.settle};
    j->kept = j->next;
    j->kept_sound = false; /* told only when it is kept that there is a new life */
}

/* --- the record of earlier runs --- */

static void floor_parse(struct gz_journal *j, struct span value)
{
    struct reader r = reader_of(value);
    int64_t v[11] = {0};

    for (size_t i = 0; i < 11; i++) {
        if (rd_i64(&r, &v[i]) < 0 && i < 10) /* the last one came later */
            return;
    }
    if (v[0] != j->create_revision)
        return;
    j->kept = (struct jc_heads){.content_end = v[1],
                                .write_head = v[2],
                                .log_start = v[3],
                                .max_clock = (uint64_t)v[4],
                                .marks = {.begin = (uint64_t)v[5],
                                          .begin_end = v[6],
                                          .complete = (uint64_t)v[7],
                                          .completed = (uint64_t)v[8],
                                          .complete_end = v[9]},
                                .life = (uint32_t)v[10]};
    j->kept_sound = true;
}

static void on_floor(void *arg, int err, struct span value)
{
    struct gz_journal *j = arg;

    if (err == 0 && !j->floor_known)
        floor_parse(j, value);
    if (err == 0 || err == E_NOTFOUND)
        j->floor_known = true;
    gz_journal_floor(j, j->floor_known ? 0 : err);
    gz_journal_unref(j);
}

int gz_floor_ask(struct gz_journal *j)
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
    return err;
}
