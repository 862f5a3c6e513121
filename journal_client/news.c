/*
 * Watch and follow: news in coalesced form. At most one posted task of an op has not begun; what it
 * tells is read when it begins, so that it is always the latest and never goes back. News that come
 * during the callback post the other of two tasks at once, and not when the callback is over: so
 * news of a commit reach a mailbox before the commit's answer does.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/hub.h"

static void run_first(struct task *t);
static void run_second(struct task *t);

static struct jc_news *news_of(struct jc_op *op)
{
    return (struct jc_news *)op;
}

/* Under the lock. */
static void notify(struct jc_news *n)
{
    if (n->op.canceled || n->pending)
        return;
    n->pending = true;
    n->second = !n->second; /* the other one may still be running */
    struct task *t = n->second ? &n->task2 : &n->op.task;
    t->run = n->second ? run_second : run_first;
    jc_op_ref(&n->op);
    executor_post(n->op.ex, t);
}

static void notify_list(struct jc_op_list *list)
{
    struct jc_op *op;

    TAILQ_FOREACH(op, list, link)
    {
        notify(news_of(op));
    }
}

void jc_notify_watchers(struct jc_hub *h)
{
    notify_list(&h->watchers);
}

void jc_notify_followers(struct jc_hub_journal *j)
{
    notify_list(&j->followers);
}

bool jc_followed_closely(const struct jc_hub_journal *j)
{
    const struct jc_op *op;

    TAILQ_FOREACH(op, &j->followers, link)
    {
        if (!((const struct jc_news *)op)->follower.lazy)
            return true;
    }
    return false;
}

/* The list's reference travels with the end: the caller's handle is still counted, so the last one
 * is never dropped under the lock. */
static void end_list(struct jc_op_list *list, int err)
{
    struct jc_op *op;

    while ((op = TAILQ_FIRST(list)) != NULL) {
        jc_op_unlink(op);
        news_of(op)->end_err = err;
        notify(news_of(op));
        atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel);
    }
}

void jc_end_watchers(struct jc_hub *h, int err)
{
    end_list(&h->watchers, err);
}

void jc_end_followers(struct jc_hub_journal *j, int err)
{
    end_list(&j->followers, err);
}

void jc_retry_watchers(struct jc_hub *h)
{
    struct jc_op *op;

    TAILQ_FOREACH(op, &h->watchers, link)
    {
        if (news_of(op)->retry)
            notify(news_of(op));
        news_of(op)->retry = false;
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

static void tell_snapshot(struct jc_news *n)
{
    struct jc_hub *h = n->op.hub;

    pthread_mutex_lock(&h->lock);
    const struct jc_listing *all = h->listing == NULL ? NULL : jc_listing_ref(h->listing);
    pthread_mutex_unlock(&h->lock);
    if (all == NULL) /* closed: its end follows */
        return;
    const struct jc_listing *now = select_items(all, n->sel);
    jc_listing_unref(all);
    if (now == NULL) {
        /* The old state stays until the next change or housekeeping tick tries. */
        log_event(LOG_ERROR, "store.watch", LF_ERR(E_NOMEM));
        pthread_mutex_lock(&h->lock);
        n->retry = true;
        pthread_mutex_unlock(&h->lock);
        return;
    }
    if (n->last != NULL && same_items(n->last, now)) {
        jc_listing_unref(now);
        return;
    }
    jc_listing_unref(n->last);
    n->last = jc_listing_ref(now);
    n->watcher.on_snapshot(n->watcher.arg, now);
    jc_listing_unref(now);
}

static void tell_heads(struct jc_news *n)
{
    pthread_mutex_lock(&n->op.hub->lock);
    struct jc_heads heads = n->op.j->heads;
    pthread_mutex_unlock(&n->op.hub->lock);
    n->follower.on_heads(n->follower.arg, &heads);
}

/* Returns true when the caller's handle was released by its end callback. */
static bool tell_end(struct jc_news *n, int err)
{
    void (*on_end)(void *, int) = n->is_watch ? n->watcher.on_end : n->follower.on_end;
    void *arg = n->is_watch ? n->watcher.arg : n->follower.arg;

    if (on_end == NULL) /* the caller cannot know: it still has to cancel */
        return false;
    on_end(arg, err);
    return true;
}

/* Under the lock, at the begin of a task. False: it has nothing to tell. */
static bool begin_telling(struct jc_news *n)
{
    n->pending = false;
    if (n->running) { /* a pool has two threads: the other one tells it, in order */
        n->dirty = true;
        return false;
    }
    n->running = !n->op.canceled;
    return n->running;
}

/* What is known now. Takes the task's reference. */
static void run(struct jc_news *n)
{
    struct jc_hub *h = n->op.hub;
    bool ended = false;

    pthread_mutex_lock(&h->lock);
    bool mine = begin_telling(n);
    bool go = mine;
    while (go && !ended) {
        int end_err = n->end_err;
        n->dirty = false;
        pthread_mutex_unlock(&h->lock);
        if (end_err != 0) {
            if (tell_end(n, end_err))
                jc_op_unref(&n->op);
        } else if (n->is_watch) {
            tell_snapshot(n);
        } else {
            tell_heads(n);
        }
        pthread_mutex_lock(&h->lock);
        ended = end_err != 0;
        go = n->dirty && !n->op.canceled;
    }
    if (mine && !ended) /* after its end nothing is told, whoever comes */
        n->running = false;
    pthread_mutex_unlock(&h->lock);
    jc_op_unref(&n->op);
}

static void run_first(struct task *t)
{
    run(news_of(jc_op_of(t)));
}

static void run_second(struct task *t)
{
    run((struct jc_news *)(void *)((char *)t - offsetof(struct jc_news, task2)));
}

static void fini(struct jc_op *op)
{
    mem_free(news_of(op)->sel);
    jc_listing_unref(news_of(op)->last);
}

/* Links it and posts the first news, once there are any. The caller's handle is set before the
 * first callback can run elsewhere. An error frees it. */
static int begin(struct jc_news *n, struct jc_op_list *list, struct jc_op **out)
{
    struct jc_hub *h = n->op.hub;
    int err = 0;

    *out = &n->op;
    pthread_mutex_lock(&h->lock);
    if (h->closing) {
        err = E_CLOSED;
    } else if (n->op.j != NULL && n->op.j->deleted) {
        err = E_NOTFOUND;
    } else {
        jc_op_link(&n->op, list);
        if (!n->is_watch && h->ops->followed != NULL)
            h->ops->followed(n);
        if (n->is_watch ? h->listing != NULL
                        : n->op.j->ready && (!n->op.j->stale || n->follower.lazy))
            notify(n);
    }
    pthread_mutex_unlock(&h->lock);
    if (err < 0) {
        *out = NULL;
        jc_op_unref(&n->op);
    }
    return err;
}

int jc_hub_watch(struct jc_store *s, const struct jc_selector *sel, const struct jc_watcher *w,
                 struct jc_op **out)
{
    struct jc_hub *h = jc_hub_of(s);
    struct jc_op *op;
    int err;

    *out = NULL;
    if ((err = jc_op_new(h, sizeof(struct jc_news), NULL, w->ex, fini, &op)) < 0)
        return err;
    struct jc_news *n = news_of(op);
    n->is_watch = true;
    n->watcher = *w;
    if ((err = jc_selector_copy(sel, &n->sel)) < 0) {
        jc_op_unref(op);
        return err;
    }
    return begin(n, &h->watchers, out);
}

int jc_hub_follow(struct jc_store *s, const struct jc_journal *j, const struct jc_follower *f,
                  struct jc_op **out)
{
    struct jc_op *op;
    int err;

    *out = NULL;
    if ((err = jc_op_new(jc_hub_of(s), sizeof(struct jc_news), j, f->ex, fini, &op)) < 0)
        return err;
    news_of(op)->follower = *f;
    return begin(news_of(op), &op->j->followers, out);
}
