/* See store_sync.h. Each function posts one operation and drains the mailbox until it has ended. */
#include "app/store_sync.h"

#include <string.h>
#include <sys/random.h>

struct wait {
    bool ended;
    int err;
    struct blob *value;
    const struct jc_listing *listing;
    struct jc_heads heads;
    struct jc_block block;
};

static int wait_for(struct mailbox *mb, struct wait *w)
{
    while (!w->ended)
        (void)mailbox_wait(mb, -1);
    return w->err;
}

static void on_value(void *arg, int err, struct span value)
{
    struct wait *w = arg;

    if (err == 0 && (w->value = blob_copy(value)) == NULL)
        err = E_NOMEM;
    w->err = err;
    w->ended = true;
}

int store_sync_kv_get(struct jc_store *s, struct mailbox *mb, const char *key, struct blob **out)
{
    struct wait w = {.ended = false};
    int err = s->ops->kv_get(s, key, &mb->ex, on_value, &w);

    *out = NULL;
    if (err == 0)
        err = wait_for(mb, &w);
    *out = w.value;
    return err;
}

static void on_done(void *arg, int err)
{
    struct wait *w = arg;

    w->err = err;
    w->ended = true;
}

int store_sync_kv_set(struct jc_store *s, struct mailbox *mb, const char *key, struct span value)
{
    struct jc_kv kv = {.key = key, .value = value};

    return store_sync_kv_put(s, mb, &kv, 1);
}

int store_sync_kv_put(struct jc_store *s, struct mailbox *mb, const struct jc_kv *kv, size_t n)
{
    struct wait w = {.ended = false};
    int err = s->ops->kv_set(s, kv, n, &mb->ex, on_done, &w);

    return err == 0 ? wait_for(mb, &w) : err;
}

static void on_snapshot(void *arg, const struct jc_listing *snapshot)
{
    struct wait *w = arg;

    if (w->ended)
        return;
    w->listing = jc_listing_ref(snapshot);
    w->ended = true;
}

int store_sync_list(struct jc_store *s, struct mailbox *mb, const struct jc_listing **out)
{
    return store_sync_list_within(s, mb, -1, out);
}

int store_sync_list_within(struct jc_store *s, struct mailbox *mb, int timeout_ms,
                           const struct jc_listing **out)
{
    struct wait w = {.ended = false};
    struct jc_selector all = {.matches = NULL, .n = 0};
    struct jc_watcher watcher = {
        .ex = &mb->ex, .on_snapshot = on_snapshot, .on_end = on_done, .arg = &w};
    struct jc_op *op = NULL;
    int err = s->ops->watch(s, &all, &watcher, &op);

    *out = NULL;
    if (err < 0)
        return err;
    while (!w.ended) {
        if (mailbox_wait(mb, timeout_ms) > 0)
            continue;
        s->ops->cancel(op);
        return E_TIMEOUT;
    }
    if (w.err < 0)
        return w.err;
    s->ops->cancel(op);
    *out = w.listing;
    return 0;
}

static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct wait *w = arg;

    w->heads = *heads;
    w->ended = true;
}

int store_sync_heads(struct jc_store *s, struct mailbox *mb, const struct jc_journal *j,
                     struct jc_heads *out)
{
    struct wait w = {.ended = false};
    struct jc_follower f = {.ex = &mb->ex, .on_heads = on_heads, .on_end = on_done, .arg = &w};
    struct jc_op *op = NULL;
    int err = s->ops->follow(s, j, &f, &op);

    if (err < 0 || (err = wait_for(mb, &w)) < 0)
        return err;
    s->ops->cancel(op);
    *out = w.heads;
    return 0;
}

static void on_block(void *arg, int err, struct jc_block *block)
{
    struct wait *w = arg;

    if (err == 0)
        w->block = *block; /* its references and array are ours now */
    w->err = err;
    w->ended = true;
}

int store_sync_block(struct jc_store *s, struct mailbox *mb, const struct jc_block_req *rq,
                     struct jc_block *out)
{
    struct wait w = {.ended = false};
    struct jc_op *op = NULL;
    int err = s->ops->read_block(s, rq, &mb->ex, on_block, &w, &op);

    if (err == 0)
        err = wait_for(mb, &w);
    *out = w.block;
    return err;
}

int store_sync_cluster_id(struct jc_store *s, struct mailbox *mb, char *out)
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char KEY[] = "cluster/id";
    struct blob *b = NULL;
    uint8_t random[22];
    char id[23];
    int err = store_sync_kv_get(s, mb, KEY, &b);

    if (err == E_NOTFOUND) {
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return E_IO;
        for (size_t i = 0; i < sizeof random; i++)
            id[i] = abc[random[i] & 63];
        id[0] = abc[random[0] % 62]; /* not a dash: tools take ids as arguments */
        if ((err = store_sync_kv_set(s, mb, KEY, span_of(id, 22))) == 0)
            err = store_sync_kv_get(s, mb, KEY, &b);
    }
    if (err == 0 && b->len != 22)
        err = E_CORRUPT;
    if (err == 0) {
        memcpy(out, b->data, 22);
        out[22] = '\0';
    }
    blob_unref(b);
    return err;
}
