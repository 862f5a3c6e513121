/*
 * Changes of specs. An upsert replaces a whole spec at the broker, so it starts from the bytes that
 * the listing brought, unknown fields and suspension included, and changes only what the caller's
 * spec says otherwise. It is sent for just the revision that it starts from: when the listing was
 * old, and the caller does not mind which revision is there, it starts anew from the one that is.
 * Answered when our own listing shows it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define RENEWALS     8
#define LIST_WAIT_MS 3000 /* a listing that is still behind is asked anew */
#define FRAGMENT     (INT64_C(64) << 20)
#define MINUTE_MS    60000

struct change {
    const struct jc_journal *upsert; /* a deep copy of the caller's spec */
    char *delete_name;
    int64_t expect;
};

struct gz_apply {
    struct task task; /* toward home, then back */
    TAILQ_ENTRY(gz_apply) link;
    struct gz_store *s;
    struct executor *ex;
    jc_apply_fn *done;
    void *arg;
    struct change *v;
    size_t n;
    struct gz_call *call;
    struct event *timer;
    int err, status;
    int64_t revision;
    bool sent, denied;
    bool any;   /* the caller did not mind a revision: ours may be old */
    bool renew; /* it was: sent again when the listing is at `revision` */
    unsigned renewals;
};

static void apply_free(struct gz_apply *a)
{
    for (size_t i = 0; i < a->n; i++) {
        jc_journal_unref(a->v[i].upsert);
        mem_free(a->v[i].delete_name);
    }
    mem_free(a->v);
    gz_store_unref(a->s);
    mem_free(a);
}

static void run_done(struct task *t)
{
    struct gz_apply *a = (struct gz_apply *)t;

    a->done(a->arg, a->err, a->revision);
    apply_free(a);
}

static void finish(struct gz_apply *a, int err)
{
    TAILQ_REMOVE(&a->s->applies, a, link);
    if (a->timer != NULL)
        event_free(a->timer);
    a->timer = NULL;
    a->err = err;
    a->task.run = run_done;
    executor_post(a->ex, &a->task);
}

/* --- specs --- */

static int set_labels(Gz__JournalSpec *to, const struct jc_spec *spec)
{
    Gz__LabelSet set;
    gz__label_set__init(&set);
    Gz__Label *rows = mem_array(spec->labels_n + 1, sizeof *rows);
    Gz__Label **list = mem_array(spec->labels_n + 1, sizeof *list);
    Gz__LabelSet *made = NULL;
    struct blob *b = NULL;

    for (size_t i = 0; rows != NULL && list != NULL && i < spec->labels_n; i++) {
        gz__label__init(&rows[i]);
        rows[i].name = (char *)(uintptr_t)spec->labels[i].name;
        rows[i].value = (char *)(uintptr_t)spec->labels[i].value;
        list[i] = &rows[i];
    }
    set.labels = list;
    set.n_labels = spec->labels_n;
    /* Through its bytes: the spec is freed by the allocator that unpacks. */
    if (rows != NULL && list != NULL && (b = gz_pack(&set.base)) != NULL)
        made = gz__label_set__unpack(NULL, b->len, b->data);
    blob_unref(b);
    mem_free(rows);
    mem_free(list);
    if (made == NULL)
        return E_NOMEM;
    if (to->labels != NULL)
        gz__label_set__free_unpacked(to->labels, NULL);
    to->labels = made;
    return 0;
}

static int set_duration(Gz__Duration **to, int64_t ms)
{
    Gz__Duration d;
    gz__duration__init(&d);
    struct blob *b;

    d.seconds = ms / 1000;
    d.nanos = (int32_t)(ms % 1000) * 1000000;
    if ((b = gz_pack(&d.base)) == NULL)
        return E_NOMEM;
    if (*to != NULL)
        gz__duration__free_unpacked(*to, NULL);
    *to = gz__duration__unpack(NULL, b->len, b->data);
    blob_unref(b);
    return *to == NULL ? E_NOMEM : 0;
}

/* What a journal made here starts from. */
static Gz__JournalSpec *new_spec(const struct gz_store *s, const char *name)
{
    Gz__JournalSpec spec;
    gz__journal_spec__init(&spec);
    Gz__FragmentSpec fragment;
    gz__fragment_spec__init(&fragment);
    Gz__Duration refresh;
    gz__duration__init(&refresh);
    Gz__JournalSpec *made = NULL;
    struct blob *b;

    refresh.seconds = 60;
    fragment.length = s->fragment_bytes;
    fragment.compression_codec = s->codec;
    fragment.refresh_interval = &refresh;
    char *store = s->fragment_store;
    if (store != NULL) {
        fragment.stores = &store;
        fragment.n_stores = 1;
    }
    spec.name = (char *)(uintptr_t)name;
    spec.replication = (int32_t)s->replication;
    spec.fragment = &fragment;
    if ((b = gz_pack(&spec.base)) != NULL)
        made = gz__journal_spec__unpack(NULL, b->len, b->data);
    blob_unref(b);
    return made;
}

/* The spec to send: freed with gz__journal_spec__free_unpacked. */
static int merge(const struct gz_store *s, const struct jc_spec *want, Gz__JournalSpec **out)
{
    const struct jc_journal *old = jc_listing_find(s->hub.listing, span_str(want->name));
    struct jc_spec none = {0};
    const struct jc_spec *was = old == NULL ? &none : &old->spec;
    Gz__JournalSpec *spec =
        old == NULL ? new_spec(s, want->name)
                    : gz__journal_spec__unpack(NULL, gz_of(old)->spec->len, gz_of(old)->spec->data);
    int64_t age = want->fragment_age_ms;
    int err = 0;

    *out = NULL;
    if (spec == NULL)
        return E_NOMEM;
    if (spec->fragment == NULL) {
        gz__journal_spec__free_unpacked(spec, NULL);
        return E_INVALID;
    }
    if (want->fragment_bytes != was->fragment_bytes && want->fragment_bytes > 0)
        spec->fragment->length = want->fragment_bytes;
    if (old == NULL && s->fragment_store == NULL)
        log_event(LOG_WARN, "gazette.no_fragment_store", LF_STR("journal", want->name));
    if (age > 0 && age < MINUTE_MS) /* the least that a broker takes */
        age = MINUTE_MS;
    if (age != was->fragment_age_ms)
        err = set_duration(&spec->fragment->flush_interval, age);
    if (err == 0 && want->retention_ms != was->retention_ms)
        err = set_duration(&spec->fragment->retention, want->retention_ms);
    if (err == 0)
        err = set_labels(spec, want);
    if (err < 0)
        gz__journal_spec__free_unpacked(spec, NULL);
    else
        *out = spec;
    return err;
}

/* --- the call --- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gz_apply *a = arg;

    (void)fd;
    (void)what;
    gz_list_again(a->s->list);
    gz_arm(a->timer, LIST_WAIT_MS);
}

static void on_message(void *arg, struct span msg)
{
    struct gz_apply *a = arg;
    Gz__ApplyResponse *m = gz__apply_response__unpack(NULL, msg.n, msg.p);

    if (m == NULL)
        return;
    a->status = m->status;
    if (m->header != NULL && m->header->etcd != NULL)
        a->revision = m->header->etcd->revision;
    gz__apply_response__free_unpacked(m, NULL);
}

static void send_it(struct gz_apply *a);

/* Until the listing is there; then gz_apply_listed() goes on. */
static void wait_listing(struct gz_apply *a)
{
    if (a->timer == NULL && (a->timer = evtimer_new(a->s->evb, on_timer, a)) == NULL)
        finish(a, E_NOMEM);
    else
        gz_arm(a->timer, LIST_WAIT_MS);
}

/* What it started from is not what the brokers have. */
static void start_anew(struct gz_apply *a)
{
    if (a->s->hub.listing->revision >= a->revision) {
        send_it(a);
        return;
    }
    a->renew = true;
    gz_list_again(a->s->list);
    wait_listing(a);
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_apply *a = arg;

    a->call = NULL;
    if (end->err == E_DENIED && a->s->auth_key != NULL && !a->denied) {
        a->denied = true; /* once more, with a new token */
        send_it(a);
    } else if (end->err == E_AGAIN && end->refused && a->renewals++ < RENEWALS) {
        send_it(a); /* a connection that has told its bound meanwhile */
    } else if (end->err < 0) {
        log_peer(LOG_WARN, "gazette.apply", LF_STR("message", end->message), LF_ERR(end->err));
        finish(a, end->err == E_SYNTAX ? E_INVALID : end->err);
    } else if (a->status == GZ_TXN_FAILED && a->any && a->renewals++ < RENEWALS) {
        start_anew(a);
    } else if (a->status == GZ_TXN_FAILED) {
        finish(a, E_CONFLICT);
    } else if (a->status != GZ_OK) {
        finish(a, a->status == GZ_JOURNAL_NOT_FOUND ? E_NOTFOUND : E_IO);
    } else if (a->s->hub.listing->revision >= a->revision) {
        finish(a, 0);
    } else {
        wait_listing(a);
    }
}

/* The revision that a merged spec starts from; 0: it is not listed. */
static int64_t base_of(const struct gz_apply *a, const char *name)
{
    const struct jc_journal *old = jc_listing_find(a->s->hub.listing, span_str(name));

    return old == NULL ? 0 : gz_of(old)->mod_revision;
}

static int fill(struct gz_apply *a, Gz__Change *rows, Gz__Change **list)
{
    a->any = false;
    for (size_t i = 0; i < a->n; i++) {
        const struct change *c = &a->v[i];
        int err;
        gz__change__init(&rows[i]);
        list[i] = &rows[i];
        rows[i].expect_mod_revision = c->expect;
        if (c->upsert != NULL && (err = merge(a->s, &c->upsert->spec, &rows[i].upsert)) < 0)
            return err;
        if (c->upsert != NULL) {
            a->any = a->any || c->expect < 0;
            if (c->expect < 0)
                rows[i].expect_mod_revision = base_of(a, c->upsert->spec.name);
            continue;
        }
        if (jc_listing_find(a->s->hub.listing, span_str(c->delete_name)) == NULL)
            return E_NOTFOUND;
        rows[i].delete_ = c->delete_name;
    }
    return 0;
}

static void send_it(struct gz_apply *a)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = a};
    Gz__ApplyRequest rq;
    gz__apply_request__init(&rq);
    Gz__Change *rows = mem_array(a->n, sizeof *rows);
    Gz__Change **list = mem_array(a->n, sizeof *list);
    int err = rows == NULL || list == NULL ? E_NOMEM : fill(a, rows, list);

    a->sent = true;
    a->renew = false;
    a->status = -1;
    a->revision = 0;
    if (a->timer != NULL)
        (void)event_del(a->timer);
    rq.changes = list;
    rq.n_changes = a->n;
    if (err == 0)
        err = gz_rpc(a->s, NULL, "Apply", &rq.base, GZ_RPC_MS, &cb, &a->call);
    for (size_t i = 0; rows != NULL && i < a->n; i++) {
        if (rows[i].upsert != NULL)
            gz__journal_spec__free_unpacked(rows[i].upsert, NULL);
    }
    mem_free(rows);
    mem_free(list);
    if (err < 0)
        finish(a, err);
}

static void run_home(struct task *t)
{
    struct gz_apply *a = (struct gz_apply *)t;

    TAILQ_INSERT_TAIL(&a->s->applies, a, link);
    if (a->s->stopping || a->s->hurried)
        finish(a, E_CLOSED);
    else if (a->err < 0)
        finish(a, a->err);
    else if (a->s->hub.listing != NULL)
        send_it(a);
}

void gz_apply_listed(struct gz_store *s, int64_t revision)
{
    struct gz_apply *a, *next;

    for (a = TAILQ_FIRST(&s->applies); a != NULL; a = next) {
        next = TAILQ_NEXT(a, link);
        if (!a->sent || (a->renew && a->revision <= revision))
            send_it(a);
        else if (!a->renew && a->call == NULL && a->revision <= revision)
            finish(a, 0);
    }
}

void gz_apply_end(struct gz_store *s, int err)
{
    struct gz_apply *a;

    while ((a = TAILQ_FIRST(&s->applies)) != NULL) {
        if (a->call != NULL)
            gz_call_cancel(a->call);
        a->call = NULL;
        finish(a, err);
    }
}

/* --- the request --- */

static const char *name_of(const struct jc_change *c)
{
    return c->upsert != NULL ? c->upsert->name : c->delete_name;
}

static int check(const struct jc_change *c, size_t n)
{
    const char *why;

    for (size_t i = 0; i < n; i++) {
        if ((c[i].upsert == NULL) == (c[i].delete_name == NULL))
            return E_INVALID;
        if (c[i].upsert != NULL ? jc_spec_check(c[i].upsert, &why) < 0
                                : jc_name_check(span_str(c[i].delete_name), &why) < 0)
            return E_INVALID;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(name_of(&c[i]), name_of(&c[k])) == 0)
                return E_INVALID;
        }
    }
    return 0;
}

static int copy(struct gz_apply *a, const struct jc_change *c, size_t n)
{
    int err;

    if ((a->v = mem_array(n + 1, sizeof a->v[0])) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct change *to = &a->v[a->n++];
        to->expect = c[i].expect_mod_revision;
        if (c[i].upsert != NULL) {
            if ((err = jc_journal_new(c[i].upsert, 0, 0, &to->upsert)) < 0)
                return err;
        } else if ((to->delete_name = mem_strdup(c[i].delete_name)) == NULL) {
            return E_NOMEM;
        }
    }
    return 0;
}

int gz_apply(struct jc_store *store, const struct jc_change *c, size_t n, struct executor *ex,
             jc_apply_fn *done, void *arg)
{
    struct gz_store *s = gz_store_of(store);
    struct gz_apply *a = mem_zalloc(sizeof *a);
    int err;

    if (a == NULL)
        return E_NOMEM;
    a->s = gz_store_ref(s);
    a->ex = ex;
    a->done = done;
    a->arg = arg;
    a->err = check(c, n);
    if (a->err == 0 && (err = copy(a, c, n)) < 0)
        goto out;
    a->task.run = run_home;
    pthread_mutex_lock(&s->hub.lock);
    err = s->hub.closing ? E_CLOSED : 0;
    if (err == 0)
        mailbox_post(&s->mb, &a->task);
    pthread_mutex_unlock(&s->hub.lock);
    if (err == 0)
        return 0;
out:
    apply_free(a);
    return err;
}
