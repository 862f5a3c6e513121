/*
 * The listing: one List watch of all journals. A snapshot comes in several messages and ends with
 * one whose header holds no revision; then it takes the place of the last one, whole. Journals keep
 * their objects as long as name and create revision stay. What is listed must make sense: a name
 * that no journal can have, or that is there already, is passed over.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define DURATION_MAX (INT64_C(1) << 40) /* seconds */
#define OLDER_MS     5000 /* so long a snapshot that is older than the last one is not believed */
#define ENDS_MAX     3 /* so often a resumed watch may end without news before all is asked anew */

struct gz_list {
    struct gz_store *s;
    struct gz_call *call;
    struct event *timer;
    Gz__ListResponse **parts; /* of the snapshot that is coming in */
    size_t parts_n, parts_cap;
    int64_t revision;
    struct blob *resume; /* Header of the last snapshot, packed */
    int64_t older_ms;    /* since when brokers tell of an older one; 0: they do not */
    unsigned attempt;
    bool fault;
};

static void ask(struct gz_list *l);

static void parts_drop(struct gz_list *l)
{
    for (size_t i = 0; i < l->parts_n; i++)
        gz__list_response__free_unpacked(l->parts[i], NULL);
    l->parts_n = 0;
    l->revision = 0;
}

/* --- specs --- */

static int64_t duration_ms(const Gz__Duration *d)
{
    if (d == NULL || d->seconds < -DURATION_MAX || d->seconds > DURATION_MAX)
        return 0; /* no such time can be meant */
    return d->seconds * 1000 + d->nanos / 1000000;
}

static int journal_of(const Gz__ListedJournal *l, struct gz_journal *j,
                      const struct jc_journal **out)
{
    const Gz__JournalSpec *s = l->spec;
    size_t n = s->labels == NULL ? 0 : s->labels->n_labels;
    struct jc_label *labels = mem_array(n + 1, sizeof *labels);
    struct jc_spec spec = {.name = s->name, .labels = labels, .labels_n = n};
    int err;

    if (labels == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        labels[i] = (struct jc_label){s->labels->labels[i]->name, s->labels->labels[i]->value};
    if (s->fragment != NULL) {
        spec.fragment_bytes = s->fragment->length;
        spec.fragment_age_ms = duration_ms(s->fragment->flush_interval);
        spec.retention_ms = duration_ms(s->fragment->retention);
    }
    err = jc_journal_new_impl(&spec, l->create_revision, l->mod_revision, gz_journal_ref(j),
                              gz_journal_unref, out);
    if (err < 0)
        gz_journal_unref(j);
    mem_free(labels);
    return err;
}

/* A reference to the journal of one row. */
static int row(struct gz_store *s, const Gz__ListedJournal *l, const struct jc_journal **out)
{
    const struct jc_journal *old =
        s->hub.listing == NULL ? NULL : jc_listing_find(s->hub.listing, span_str(l->spec->name));
    struct gz_journal *j = NULL;
    int err = 0;

    if (old != NULL && old->create_revision == l->create_revision) {
        if (old->mod_revision == l->mod_revision) {
            *out = jc_journal_ref(old);
            return 0;
        }
        j = gz_journal_ref(gz_of(old));
    } else if ((err = gz_journal_new(s, l->spec->name, l->create_revision, &j)) < 0) {
        return err;
    }
    struct blob *spec = gz_pack(&l->spec->base);
    if (spec == NULL)
        err = E_NOMEM;
    if (err == 0 && (err = journal_of(l, j, out)) == 0)
        gz_journal_listed(j, l, spec);
    else
        blob_unref(spec);
    gz_journal_unref(j);
    return err;
}

/* By name; of one name that which was made last is first. */
static int by_name(const void *a, const void *b)
{
    const Gz__ListedJournal *const *x = a, *const *y = b;
    int order = strcmp((*x)->spec->name, (*y)->spec->name);

    if (order == 0)
        order = ((*x)->create_revision < (*y)->create_revision) -
                ((*x)->create_revision > (*y)->create_revision);
    if (order == 0)
        order =
            ((*x)->mod_revision < (*y)->mod_revision) - ((*x)->mod_revision > (*y)->mod_revision);
    return order;
}

/* The rows of a snapshot in order, without what no broker that is sound lists: names that no
 * journal can have, and a name once more. */
static size_t pick(const struct gz_list *l, const Gz__ListedJournal **rows)
{
    size_t all = 0, n = 0;
    const char *why;

    for (size_t i = 0; i < l->parts_n; i++) {
        for (size_t k = 0; k < l->parts[i]->n_journals; k++) {
            const Gz__ListedJournal *row = l->parts[i]->journals[k];
            if (row->spec == NULL)
                continue;
            if (jc_name_check(span_str(row->spec->name), &why) == 0)
                rows[all++] = row;
            else
                log_peer(LOG_WARN, "gazette.name_refused", LF_STR("journal", row->spec->name),
                         LF_STR("reason", why));
        }
    }
    qsort(rows, all, sizeof *rows, by_name);
    for (size_t i = 0; i < all; i++) {
        if (n == 0 || strcmp(rows[n - 1]->spec->name, rows[i]->spec->name) != 0)
            rows[n++] = rows[i];
        else
            log_peer(LOG_WARN, "gazette.name_twice", LF_STR("journal", rows[i]->spec->name),
                     LF_INT("taken", rows[n - 1]->create_revision),
                     LF_INT("left", rows[i]->create_revision));
    }
    return n;
}

/* Journals that are not there any more, or are others of the same name. */
static void end_missing(const struct jc_listing *old, const struct jc_listing *now)
{
    for (size_t i = 0; old != NULL && i < old->n; i++) {
        const struct jc_journal *was = old->items[i];
        const struct jc_journal *is = jc_listing_find(now, span_str(was->spec.name));
        if (is == NULL || gz_of(is) != gz_of(was))
            gz_journal_gone(gz_of(was), E_NOTFOUND);
    }
}

static void replace(struct gz_list *l, const struct jc_listing *now)
{
    struct gz_store *s = l->s;
    const struct jc_listing *old = s->hub.listing;

    pthread_mutex_lock(&s->hub.lock);
    s->hub.listing = now;
    jc_notify_watchers(&s->hub);
    pthread_mutex_unlock(&s->hub.lock);
    end_missing(old, now);
    jc_listing_unref(old);
    gz_apply_listed(s, l->revision);
}

static int install(struct gz_list *l)
{
    const Gz__ListedJournal **rows = NULL;
    const struct jc_journal **items = NULL;
    const struct jc_listing *now = NULL;
    size_t all = 0, n = 0;
    int err = E_NOMEM;

    for (size_t i = 0; i < l->parts_n; i++)
        all += l->parts[i]->n_journals;
    if ((rows = mem_array(all + 1, sizeof *rows)) == NULL ||
        (items = mem_array(all + 1, sizeof *items)) == NULL)
        goto out;
    all = pick(l, rows);
    for (err = 0; n < all && (err = row(l->s, rows[n], &items[n])) == 0; n++) {
    }
    if (err == 0)
        err = jc_listing_new(l->revision, items, n, &now);
    if (err == 0)
        replace(l, now);
out:
    for (size_t i = 0; i < n; i++)
        jc_journal_unref(items[i]);
    mem_free(items);
    mem_free(rows);
    return err;
}

/* --- the call --- */

/* A broker that lags behind etcd may know less than what another one has told already: journals
 * would end, and epochs rise, for a moment. One that goes on saying so is right: etcd lost what it
 * had. */
static bool older(struct gz_list *l)
{
    const struct jc_listing *last = l->s->hub.listing;
    int64_t now = gz_mono_ms(l->s);

    if (last == NULL || l->revision >= last->revision) {
        l->older_ms = 0;
        return false;
    }
    if (l->older_ms == 0)
        l->older_ms = now;
    if (now - l->older_ms < OLDER_MS)
        return true;
    log_event(LOG_WARN, "gazette.list_older", LF_INT("revision", l->revision),
              LF_INT("last", last->revision));
    l->older_ms = 0;
    return false;
}

static int keep(struct gz_list *l, Gz__ListResponse *m)
{
    if (l->parts_n == l->parts_cap) {
        size_t cap = l->parts_cap == 0 ? 8 : l->parts_cap * 2;
        Gz__ListResponse **v = mem_realloc(l->parts, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        l->parts = v;
        l->parts_cap = cap;
    }
    l->parts[l->parts_n++] = m;
    return 0;
}

static void restart(struct gz_list *l, int err)
{
    if (l->attempt >= 2)
        log_peer(LOG_WARN, "gazette.list", LF_ERR(err));
    parts_drop(l);
    if (l->attempt >= ENDS_MAX || err == E_SYNTAX) {
        blob_unref(l->resume);
        l->resume = NULL;
    }
    gz_arm(l->timer, gz_backoff_ms(l->attempt++));
}

static void on_message(void *arg, struct span msg)
{
    struct gz_list *l = arg;
    Gz__ListResponse *m = gz__list_response__unpack(NULL, msg.n, msg.p);
    int64_t revision = 0;
    int err = m == NULL ? E_SYNTAX : 0;

    if (err == 0 && m->header != NULL && m->header->etcd != NULL)
        revision = m->header->etcd->revision;
    if (err == 0 && m->status != GZ_OK) {
        err = E_IO;
    } else if (err == 0 && (l->parts_n == 0 || m->n_journals > 0)) {
        if (l->parts_n == 0 && (l->revision = revision) <= 0)
            err = E_SYNTAX; /* of no time: it could end all journals */
        else if ((err = keep(l, m)) == 0)
            m = NULL;
    } else if (err == 0 && older(l)) {
        err = E_AGAIN;
    } else if (err == 0) { /* the mark behind a snapshot */
        l->attempt = 0;
        err = install(l);
        if (err == 0) {
            blob_unref(l->resume);
            l->resume = gz_pack(&l->parts[0]->header->base);
        }
        parts_drop(l);
    }
    if (m != NULL)
        gz__list_response__free_unpacked(m, NULL);
    if (err < 0) {
        gz_call_cancel(l->call);
        l->call = NULL;
        restart(l, err);
    }
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_list *l = arg;

    l->call = NULL;
    if (end->err < 0 && end->message[0] != '\0')
        log_peer(LOG_WARN, "gazette.list", LF_STR("message", end->message), LF_ERR(end->err));
    restart(l, end->err);
}

static void ask(struct gz_list *l)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = l};
    Gz__ListRequest rq;
    gz__list_request__init(&rq);
    int err;

    rq.watch = 1;
    if (l->resume != NULL)
        rq.watch_resume = gz__header__unpack(NULL, l->resume->len, l->resume->data);
    err = gz_rpc(l->s, NULL, "List", &rq.base, 0, &cb, &l->call);
    if (rq.watch_resume != NULL)
        gz__header__free_unpacked(rq.watch_resume, NULL);
    if (err < 0)
        restart(l, err);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ask(arg);
}

void gz_list_again(struct gz_list *l)
{
    if (l->call != NULL)
        gz_call_cancel(l->call);
    l->call = NULL;
    parts_drop(l);
    blob_unref(l->resume);
    l->resume = NULL;
    event_del(l->timer);
    ask(l);
}

int gz_list_new(struct gz_store *s, struct gz_list **out)
{
    struct gz_list *l = mem_zalloc(sizeof *l);

    *out = NULL;
    if (l == NULL)
        return E_NOMEM;
    l->s = s;
    if ((l->timer = evtimer_new(s->evb, on_timer, l)) == NULL) {
        mem_free(l);
        return E_NOMEM;
    }
    gz_arm(l->timer, 0);
    *out = l;
    return 0;
}

void gz_list_free(struct gz_list *l)
{
    if (l == NULL)
        return;
    if (l->call != NULL)
        gz_call_cancel(l->call);
    parts_drop(l);
    mem_free(l->parts);
    blob_unref(l->resume);
    event_free(l->timer);
    mem_free(l);
}
