/*
 * Watch and follow: news in coalesced form. At most one posted task of an op has not begun; what it
 * tells is read when it begins, so that it is always the latest and never goes back. News that come
 * during the callback post the other of two tasks at once, and not when the callback is over: so
 * news of a commit reach a mailbox before the commit's answer does.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

static void run_first(struct task *t);
static void run_second(struct task *t);

void gz_notify(struct jc_op *op)
{
    if (op->canceled || op->pending)
        return;
    op->pending = true;
    op->second = !op->second; /* the other one may still be running */
    struct task *t = op->second ? &op->task2 : &op->task;
    t->run = op->second ? run_second : run_first;
    atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
    executor_post(op->ex, t);
}

void gz_notify_followers(struct gz_journal *j)
{
    struct jc_op *op;

    TAILQ_FOREACH(op, &j->followers, link)
    {
        gz_notify(op);
    }
}

/* The registry's reference travels with the end: the caller's handle is still counted, so the last
 * one is never dropped under the lock. */
static void end_list(struct gz_op_list *list, int err)
{
    struct jc_op *op;

    while ((op = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, op, link);
        op->linked = false;
        op->end_err = err;
        gz_notify(op);
        atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel);
    }
}

void gz_end_followers(struct gz_journal *j, int err)
{
    end_list(&j->followers, err);
}

void gz_end_watchers(struct gz_store *s, int err)
{
    end_list(&s->watchers, err);
}

void gz_retry_watchers(struct gz_store *s)
{
    struct jc_op *op;

    TAILQ_FOREACH(op, &s->watchers, link)
    {
        if (op->retry)
            gz_notify(op);
        op->retry = false;
    }
}

static bool same_items(const struct jc_listing *a, const struct jc_listing *b)
{
    return a->n == b->n && memcmp(a->items, b->items, a->n * sizeof a->items[0]) == 0;
}

/* The part of the listing that the watcher asked for; NULL: out of memory. */
static const struct jc_listing *select_items(const struct jc_listing *all,
                                             const struct jc_selector *sel)
{
    const struct jc_journal **items = mem_array(all->n, sizeof *items);
    const struct jc_listing *out = NULL;
    size_t n = 0;

    if (items == NULL)
        return NULL;
    for (size_t i = 0; i < all->n; i++) {
        if (jc_selector_matches(sel, &all->items[i]->spec))
            items[n++] = all->items[i];
    }
    int err = jc_listing_new(all->revision, items, n, &out);
    mem_free(items);
    return err < 0 ? NULL : out;
}

static void tell_snapshot(struct jc_op *op)
{
    struct gz_store *s = op->store;

    pthread_mutex_lock(&s->lock);
    const struct jc_listing *all = s->listing == NULL ? NULL : jc_listing_ref(s->listing);
    pthread_mutex_unlock(&s->lock);
    if (all == NULL) /* closed: its end follows */
        return;
    const struct jc_listing *now = select_items(all, op->u.watch.sel);
    jc_listing_unref(all);
    if (now == NULL) {
        /* The old state stays until the next change or housekeeping tick tries. */
        log_event(LOG_ERROR, "store.watch", LF_ERR(E_NOMEM));
        pthread_mutex_lock(&s->lock);
        op->retry = true;
        pthread_mutex_unlock(&s->lock);
        return;
    }
    if (op->u.watch.last != NULL && same_items(op->u.watch.last, now)) {
        jc_listing_unref(now);
        return;
    }
    jc_listing_unref(op->u.watch.last);
    op->u.watch.last = jc_listing_ref(now);
    op->u.watch.cb.on_snapshot(op->u.watch.cb.arg, now);
    jc_listing_unref(now);
}

static void tell_heads(struct jc_op *op)
{
    pthread_mutex_lock(&op->store->lock);
    struct jc_heads heads = op->j->heads;
    pthread_mutex_unlock(&op->store->lock);
    op->u.follow.on_heads(op->u.follow.arg, &heads);
}

/* Returns true when the caller's handle was released by its end callback. */
static bool tell_end(struct jc_op *op, int err)
{
    void (*on_end)(void *, int) =
        op->kind == GZ_OP_WATCH ? op->u.watch.cb.on_end : op->u.follow.on_end;
    void *arg = op->kind == GZ_OP_WATCH ? op->u.watch.cb.arg : op->u.follow.arg;

    if (on_end == NULL) /* the caller cannot know: it still has to cancel */
        return false;
    on_end(arg, err);
    return true;
}

/* Under the lock, at the begin of a step. False: it has nothing to tell. */
static bool step_begin(struct jc_op *op)
{
    op->pending = false;
    if (op->running) { /* a pool has two threads: the other one tells it, in order */
        op->dirty = true;
        return false;
    }
    op->running = !op->canceled;
    return op->running;
}

/* What is known now. Takes the task's reference. */
static void run(struct jc_op *op)
{
    struct gz_store *s = op->store;
    bool ended = false;

    pthread_mutex_lock(&s->lock);
    bool mine = step_begin(op);
    bool go = mine;
    while (go && !ended) {
        int end_err = op->end_err;
        op->dirty = false;
        pthread_mutex_unlock(&s->lock);
        if (end_err != 0) {
            if (tell_end(op, end_err))
                gz_op_unref(op);
        } else if (op->kind == GZ_OP_WATCH) {
            tell_snapshot(op);
        } else {
            tell_heads(op);
        }
        pthread_mutex_lock(&s->lock);
        ended = end_err != 0;
        go = op->dirty && !op->canceled;
    }
    if (mine && !ended) /* after its end nothing is told, whoever comes */
        op->running = false;
    pthread_mutex_unlock(&s->lock);
    gz_op_unref(op);
}

static void run_first(struct task *t)
{
    run(gz_op_of(t));
}

static void run_second(struct task *t)
{
    run((struct jc_op *)(void *)((char *)t - offsetof(struct jc_op, task2)));
}

/* Home: heads are wanted. */
static void wake(struct task *t)
{
    struct jc_op *op = (struct jc_op *)(void *)((char *)t - offsetof(struct jc_op, wake));

    if (!op->store->stopping)
        gz_journal_wake(op->j);
    gz_op_unref(op);
}

/* Links it with a reference of its own and posts the first news, once there are any. */
static int begin(struct gz_store *s, struct jc_op *op, struct gz_op_list *list)
{
    int err = 0;

    pthread_mutex_lock(&s->lock);
    if (s->closing) {
        err = E_CLOSED;
    } else if (op->j != NULL && op->j->deleted) {
        err = E_NOTFOUND;
    } else {
        TAILQ_INSERT_TAIL(list, op, link);
        op->linked = true;
        atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
        if (op->kind == GZ_OP_FOLLOW) {
            atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
            op->wake.run = wake;
            mailbox_post(&s->mb, &op->wake);
        }
        if (op->kind == GZ_OP_WATCH ? s->listing != NULL : op->j->ready)
            gz_notify(op);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

int gz_watch(struct jc_store *store, const struct jc_selector *sel, const struct jc_watcher *w,
             struct jc_op **out)
{
    struct gz_store *s = gz_store_of(store);
    struct jc_op *op;
    int err;

    *out = NULL;
    if ((err = gz_op_new(s, GZ_OP_WATCH, NULL, w->ex, &op)) < 0)
        return err;
    op->u.watch.cb = *w;
    if ((err = jc_selector_copy(sel, &op->u.watch.sel)) < 0)
        goto out;
    /* The caller's handle is set before the first callback can run elsewhere. */
    *out = op;
    if ((err = begin(s, op, &s->watchers)) < 0)
        goto out;
    return 0;
out:
    *out = NULL;
    gz_op_unref(op);
    return err;
}

int gz_follow(struct jc_store *store, const struct jc_journal *j, const struct jc_follower *f,
              struct jc_op **out)
{
    struct gz_store *s = gz_store_of(store);
    struct jc_op *op;
    int err;

    *out = NULL;
    if ((err = gz_op_new(s, GZ_OP_FOLLOW, j, f->ex, &op)) < 0)
        return err;
    op->u.follow = *f;
    *out = op;
    if ((err = begin(s, op, &op->j->followers)) < 0) {
        *out = NULL;
        gz_op_unref(op);
    }
    return err;
}
