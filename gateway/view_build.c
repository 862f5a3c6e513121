/*
 * From the store's listing to the view (view_build.h): keeps one slot a journal and one record a
 * topic, and rebuilds the view when something changed, once for many changes. Control thread.
 */
#include "gateway/view_build.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"
#include "gateway/view_build_int.h"

/* Ticks after which the first view shows what is known, although some journal's heads are not. */
#define FIRST_VIEW_TICKS 5

/* --- journals --- */

/* Bytes that were shown are lost (O11): another partition, and another generation of its topics. */
static int new_life(struct vb_slot *s)
{
    struct gw_part *fresh;
    int err = gw_part_new(s->journal, &fresh);

    if (err < 0)
        return err;
    gw_part_unref(s->part);
    s->part = fresh;
    s->marks = (struct jc_marks){0};
    vb_touch(s->vb);
    return 0;
}

static void on_heads(void *arg, const struct jc_heads *heads)
{
    struct vb_slot *s = arg;

    if (s->known && heads->life != s->life) {
        gw_part_update(s->part, heads); /* which tells those who read it */
        log_event(LOG_ERROR, "view.bytes_lost", LF_STR("journal", s->journal->spec.name),
                  LF_INT("content_end", heads->content_end));
        if (new_life(s) < 0)
            return; /* out of memory; with the next news */
    }
    s->life = heads->life;
    gw_part_update(s->part, heads);
    bool marked = jc_marks_merge(&s->marks, &heads->marks);
    if (!s->known || marked) {
        s->known = true;
        vb_touch(s->vb);
    }
}

static void on_follow_end(void *arg, int err)
{
    struct vb_slot *s = arg;

    s->follow = NULL; /* the end released it */
    s->gone = err == E_NOTFOUND || err == E_CLOSED;
    if (!s->gone)
        metric_add(M_STORE_ERRORS, 1); /* the tick follows again */
}

static void follow(struct vb_slot *s)
{
    struct jc_store *store = s->vb->opts.store;
    const struct jc_follower f = {&s->vb->opts.mb->ex, on_heads, on_follow_end, s, .lazy = true};

    if (s->follow != NULL || s->gone || s->collection == NULL)
        return;
    int err = store->ops->follow(store, s->journal, &f, &s->follow);
    if (err < 0)
        log_event(LOG_WARN, "view.follow_failed", LF_STR("journal", s->journal->spec.name),
                  LF_ERR(err));
}

static void slot_free(struct vb_slot *s)
{
    if (s == NULL)
        return;
    if (s->follow != NULL)
        s->vb->opts.store->ops->cancel(s->follow);
    gw_part_unref(s->part);
    jc_journal_unref(s->journal);
    mem_free(s);
}

/* Which collection the journal belongs to. */
static void slot_place(struct vb_slot *s)
{
    const struct catalog *catalog = s->vb->catalog;
    const struct catalog_collection *c = NULL;

    if (s->label == NULL && catalog != NULL)
        c = catalog_by_prefix(catalog, span_str(s->journal->spec.name));
    s->collection = c != NULL ? c->name : s->label;
}

/* A revision of the journal that the slot has not seen yet. */
static void slot_set(struct vb_slot *s, const struct jc_journal *j)
{
    const struct jc_journal *old = s->journal;

    s->journal = jc_journal_ref(j);
    if (jc_spec_label(&j->spec, JC_LABEL_COLLECTION, &s->label) < 0)
        s->label = NULL;
    slot_place(s);
    /* The label means something else on journals that hold no collection. */
    if (s->collection != NULL && (old == NULL || old->mod_revision != j->mod_revision))
        vb_slot_read_bound(s);
    jc_journal_unref(old);
}

static int slot_new(struct view_build *vb, const struct jc_journal *j, struct vb_slot **out)
{
    *out = NULL;
    struct vb_slot *s = mem_zalloc(sizeof *s);
    if (s == NULL)
        return E_NOMEM;
    s->vb = vb;
    int err = gw_part_new(j, &s->part);
    if (err < 0) {
        mem_free(s);
        return err;
    }
    slot_set(s, j);
    *out = s;
    return 0;
}

/* The slots of a listing, by name like it: old ones where name and create revision stay, fresh ones
 * elsewhere. Nothing of vb changes. E_NOMEM: *out holds what was made. */
static int match_listing(struct view_build *vb, const struct jc_listing *l, struct vb_slot **out,
                         bool *fresh)
{
    size_t old = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct jc_journal *j = l->items[i];
        int c = 1;

        while (old < vb->slots_n &&
               (c = strcmp(vb->slots[old]->journal->spec.name, j->spec.name)) < 0)
            old++;
        struct vb_slot *s = old < vb->slots_n && c == 0 ? vb->slots[old++] : NULL;
        if (s != NULL && s->journal->create_revision == j->create_revision) {
            out[i] = s;
            continue;
        }
        int err = slot_new(vb, j, &out[i]);
        if (err < 0)
            return err;
        fresh[i] = true;
    }
    return 0;
}

/* All or nothing: a list with a journal missing would look like a change of the topic's partitions,
 * and raise its epoch for ever. */
static int merge_listing(struct view_build *vb, const struct jc_listing *l)
{
    size_t n = l->n, at = 0;
    struct vb_slot **slots = mem_array(n + 1, sizeof(struct vb_slot *));
    bool *fresh = mem_array(n + 1, sizeof *fresh);
    int err = slots == NULL || fresh == NULL ? E_NOMEM : match_listing(vb, l, slots, fresh);

    if (err < 0) {
        for (size_t i = 0; slots != NULL && fresh != NULL && i < n; i++)
            if (fresh[i])
                slot_free(slots[i]);
        mem_free(slots);
        mem_free(fresh);
        return err;
    }
    for (size_t old = 0; old < vb->slots_n; old++) {
        struct vb_slot *s = vb->slots[old];

        while (at < n && strcmp(l->items[at]->spec.name, s->journal->spec.name) < 0)
            at++;
        if (at == n || slots[at] != s)
            slot_free(s);
    }
    for (size_t i = 0; i < n; i++) {
        if (!fresh[i])
            slot_set(slots[i], l->items[i]);
        follow(slots[i]);
    }
    mem_free(fresh);
    mem_free(vb->slots);
    vb->slots = slots;
    vb->slots_n = n;
    return 0;
}

/* Without memory everything stays as it was; the next listing, or the tick, tries again. */
static void take_listing(struct view_build *vb)
{
    vb->listing_behind = merge_listing(vb, vb->listing) < 0;
    if (vb->listing_behind)
        log_event(LOG_ERROR, "view.listing_behind", LF_ERR(E_NOMEM));
    else
        vb_touch(vb);
}

static void on_snapshot(void *arg, const struct jc_listing *snapshot)
{
    struct view_build *vb = arg;
    const struct jc_listing *old = vb->listing;

    vb->listing = jc_listing_ref(snapshot);
    jc_listing_unref(old);
    take_listing(vb);
}

static void on_watch_end(void *arg, int err)
{
    struct view_build *vb = arg;

    vb->watch = NULL;
    if (err != E_CLOSED && err != E_CANCELED) {
        metric_add(M_STORE_ERRORS, 1);
        log_event(LOG_WARN, "view.watch_ended", LF_ERR(err));
    }
}

static int watch(struct view_build *vb)
{
    const struct jc_selector all = {NULL, 0};
    const struct jc_watcher w = {&vb->opts.mb->ex, on_snapshot, on_watch_end, vb};

    return vb->opts.store->ops->watch(vb->opts.store, &all, &w, &vb->watch);
}

/* --- the view --- */

static int rank_cmp(const void *a, const void *b)
{
    const struct vb_slot *x = *(struct vb_slot *const *)a;
    const struct vb_slot *y = *(struct vb_slot *const *)b;

    int c = strcmp(x->collection, y->collection);
    if (c != 0)
        return c;
    return gw_rank_cmp(x->journal, y->journal);
}

/* Where a topic comes from: both NULL without a catalog. */
struct origin {
    const struct catalog_task *spec;
    const struct catalog_binding *binding;
};

static int apply_topic(struct view_build *vb, const struct origin *from, const char *name,
                       struct vb_slot *const *slots, size_t n, bool *changed, bool *all)
{
    struct vb_topic *t;
    int err = vb_topic_get(vb, from->spec == NULL ? "" : from->spec->name, name, &t);

    if (err < 0)
        return err;
    t->spec = from->spec;
    t->binding = from->binding;
    /* never those of an older catalog */
    t->served.binding = from->binding;
    t->served.collection = from->binding == NULL ? t->name : from->binding->source;
    t->listed = true;
    /* One topic's trouble is not the others'. */
    if ((err = vb_topic_apply(t, slots, n, changed)) < 0) {
        log_event(LOG_ERROR, "view.topic_not_updated", LF_STR("task", t->task),
                  LF_STR("topic", t->name), LF_ERR(err));
        t->failed = true;
    }
    if (!t->damaged && (err < 0 || !t->shown || t->shown_n != n))
        *all = false;
    return 0;
}

/* The end of the run of slots that belong to the collection of ranked[i]. */
static size_t run_end(struct vb_slot *const *ranked, size_t n, size_t i)
{
    size_t end = i + 1;

    while (end < n && strcmp(ranked[end]->collection, ranked[i]->collection) == 0)
        end++;
    return end;
}

/* Of the collection's journals, those that the binding shows; *n in and out. */
static void choose(const struct catalog_binding *b, struct vb_slot **slots, size_t *n)
{
    const char *prefix = b->collection == NULL ? NULL : b->collection->prefix;
    size_t kept = 0;

    for (size_t i = 0; i < *n; i++) {
        const struct jc_spec *spec = &slots[i]->journal->spec;

        if ((prefix == NULL || catalog_under(span_str(spec->name), prefix)) &&
            catalog_selects(&b->selector, spec))
            slots[kept++] = slots[i];
    }
    *n = kept;
}

static int apply_binding(struct view_build *vb, const struct origin *from,
                         struct vb_slot *const *ranked, size_t n, bool *changed, bool *all)
{
    const char *source = from->binding->source;
    size_t lo = 0, hi = n;

    while (lo < hi) { /* the first slot of the collection */
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(ranked[mid]->collection, source) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t end =
        lo < n && strcmp(ranked[lo]->collection, source) == 0 ? run_end(ranked, n, lo) : lo;
    size_t chosen = end - lo;
    struct vb_slot **slots = mem_array(chosen == 0 ? 1 : chosen, sizeof(struct vb_slot *));
    if (slots == NULL)
        return E_NOMEM;
    if (chosen > 0)
        memcpy(slots, ranked + lo, chosen * sizeof(struct vb_slot *));
    choose(from->binding, slots, &chosen);
    int err = apply_topic(vb, from, from->binding->topic, slots, chosen, changed, all);
    mem_free(slots);
    return err;
}

static int apply_catalog(struct view_build *vb, struct vb_slot *const *ranked, size_t n,
                         bool *changed, bool *all)
{
    int err = 0;

    for (size_t i = 0; i < vb->catalog->tasks_n; i++) {
        struct origin from = {.spec = &vb->catalog->tasks[i]};

        for (size_t b = 0; err == 0 && b < from.spec->bindings_n; b++) {
            from.binding = &from.spec->bindings[b];
            err = apply_binding(vb, &from, ranked, n, changed, all);
        }
    }
    return err;
}

static int apply_collections(struct view_build *vb, struct vb_slot *const *ranked, size_t n,
                             bool *changed, bool *all)
{
    const struct origin nowhere = {NULL, NULL};
    int err = 0;

    for (size_t i = 0, end; err == 0 && i < n; i = end) {
        end = run_end(ranked, n, i);
        err = apply_topic(vb, &nowhere, ranked[i]->collection, ranked + i, end - i, changed, all);
    }
    return err;
}

/* Brings all topics up to the slots. *all: every listed topic is shown with all its journals. */
static int apply_topics(struct view_build *vb, bool *changed, bool *all)
{
    size_t n = 0;
    int err = 0;

    *all = true;
    struct vb_slot **ranked =
        mem_array(vb->slots_n == 0 ? 1 : vb->slots_n, sizeof(struct vb_slot *));
    if (ranked == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < vb->slots_n; i++) {
        if (vb->slots[i]->collection != NULL)
            ranked[n++] = vb->slots[i];
    }
    qsort(ranked, n, sizeof ranked[0], rank_cmp);
    for (size_t i = 0; i < vb->topics_n; i++)
        vb->topics[i]->listed = false;
    err = vb->catalog != NULL ? apply_catalog(vb, ranked, n, changed, all)
                              : apply_collections(vb, ranked, n, changed, all);
    if (err < 0)
        goto out;
    for (size_t i = 0; i < vb->topics_n; i++) {
        if (vb->topics[i]->listed)
            continue;
        vb_topic_hide(vb->topics[i], changed);
        vb->topics[i]->spec = NULL;
        vb->topics[i]->binding = NULL;
    }
out:
    mem_free(ranked);
    return err;
}

/* Whether the collection's journals are known, parts_n of them at least, and every topic of it
 * shows all of those that it is to show; true when it is no topic's. */
static bool satisfied(const struct view_build *vb, const char *collection, size_t parts_n)
{
    bool found = false;
    size_t journals = 0;

    if (vb->view == NULL)
        return false;
    for (size_t i = 0; i < vb->slots_n; i++)
        journals +=
            vb->slots[i]->collection != NULL && strcmp(vb->slots[i]->collection, collection) == 0;
    for (size_t i = 0; i < vb->topics_n; i++) {
        const struct vb_topic *t = vb->topics[i];
        const char *source = t->binding == NULL ? t->name : t->binding->source;

        if (!t->listed || strcmp(source, collection) != 0)
            continue;
        if (!t->shown || t->shown_n < t->journals_n)
            return false;
        found = true;
    }
    return found ? journals >= parts_n : vb->catalog != NULL;
}

static void wait_end(struct view_build *vb, struct vb_wait *w)
{
    STAILQ_REMOVE(&vb->waits, w, vb_wait, link);
    mailbox_post(vb->opts.mb, w->task);
    mem_free(w->collection);
    mem_free(w);
}

static void check_waits(struct view_build *vb, bool all)
{
    struct vb_wait *w = STAILQ_FIRST(&vb->waits);

    while (w != NULL) {
        struct vb_wait *next = STAILQ_NEXT(w, link);
        if (all || satisfied(vb, w->collection, w->parts_n))
            wait_end(vb, w);
        w = next;
    }
}

/* The tasks of the view, with room for their topics in list; each holds what is shown of it. */
static void list_tasks(const struct view_build *vb, struct gw_task *tasks, struct gw_topic *list)
{
    size_t at = 0;
    size_t n = vb->catalog == NULL ? 1 : vb->catalog->tasks_n;

    for (size_t i = 0; i < n; i++) {
        const struct catalog_task *spec = vb->catalog == NULL ? NULL : &vb->catalog->tasks[i];
        struct gw_task *t = &tasks[i];

        *t = (struct gw_task){.name = "", .topics = list};
        if (spec != NULL) {
            t->name = spec->name;
            t->tokens = spec->tokens;
            t->tokens_n = spec->tokens_n;
            t->strict_names = spec->strict_names;
            t->allow_empty = spec->allow_empty;
            t->redirect_host = spec->redirect_host;
            t->redirect_port = spec->redirect_port;
            t->redirect_node = spec->redirect_node;
            t->spec = spec;
        }
        /* both are by task: what lies between are topics of tasks that are gone */
        while (at < vb->topics_n && strcmp(vb->topics[at]->task, t->name) < 0)
            at++;
        for (; at < vb->topics_n && strcmp(vb->topics[at]->task, t->name) == 0; at++) {
            if (vb->topics[at]->shown)
                list[t->topics_n++] = vb->topics[at]->served;
        }
        list += t->topics_n;
    }
}

/* Whose task a connection without a principal reads; NULL: nobody's. */
static const char *anonymous(const struct view_build *vb)
{
    if (vb->catalog == NULL)
        return "";
    const struct catalog_task *t = catalog_anonymous(vb->catalog, vb->opts.anonymous_task);
    return t == NULL ? NULL : t->name;
}

static int give_out(struct view_build *vb)
{
    const struct gw_view *view;
    size_t tasks_n = vb->catalog == NULL ? 1 : vb->catalog->tasks_n;
    int err = E_NOMEM;

    struct gw_topic *list = mem_array(vb->topics_n == 0 ? 1 : vb->topics_n, sizeof *list);
    struct gw_task *tasks = mem_array(tasks_n == 0 ? 1 : tasks_n, sizeof *tasks);
    if (list == NULL || tasks == NULL)
        goto out;
    list_tasks(vb, tasks, list);
    const struct gw_view_spec spec = {.revision = vb->revision + 1,
                                      .tasks = tasks,
                                      .tasks_n = tasks_n,
                                      .anonymous = anonymous(vb),
                                      .catalog = vb->catalog};
    if ((err = gw_view_build(&spec, &view)) < 0)
        goto out;
    gw_view_unref(vb->view);
    vb->view = view;
    vb->revision++;
    vb->opts.on_view(vb->opts.arg, view);
    vb_encoders_sweep(vb, false);
    check_waits(vb, false);
out:
    mem_free(list);
    mem_free(tasks);
    return err;
}

static void run_rebuild(struct task *task)
{
    struct view_build *vb =
        (struct view_build *)((char *)task - offsetof(struct view_build, rebuild));
    bool changed = false;
    bool all;

    vb->dirty = false;
    vb->busy--;
    if (vb->stopped || !vb->loaded || vb->listing == NULL)
        return;
    int err = apply_topics(vb, &changed, &all);
    if (err == 0 && !all && vb->view == NULL && vb->ticks < FIRST_VIEW_TICKS)
        return; /* the first view had better be whole: clients would take a gap for a deletion */
    vb->ready = vb->ready || (err == 0 && all);
    if (err == 0 && (changed || vb->unseen || vb->view == NULL))
        err = give_out(vb);
    vb->unseen = err < 0; /* what changed must come out with the next rebuild */
    if (err < 0)
        log_event(LOG_ERROR, "view.not_rebuilt", LF_ERR(err));
}

void view_build_set_catalog(struct view_build *vb, const struct catalog *catalog)
{
    const struct catalog *old = vb->catalog;

    vb->catalog = catalog_ref(catalog);
    for (size_t i = 0; i < vb->slots_n; i++) {
        bool was = vb->slots[i]->collection != NULL;

        slot_place(vb->slots[i]);
        if (!was && vb->slots[i]->collection != NULL)
            vb_slot_read_bound(vb->slots[i]);
        follow(vb->slots[i]);
    }
    for (size_t i = 0; i < vb->topics_n; i++) {
        struct vb_topic *t = vb->topics[i];

        t->backfill_warned = false;
        t->spec = NULL; /* the rebuild sets what is still there */
        t->binding = NULL;
        t->served.binding = NULL;
        t->served.collection = t->name;
    }
    catalog_unref(old);
    vb->unseen = true; /* also when no topic changes: tokens and settings may have */
    vb_touch(vb);
}

void vb_touch(struct view_build *vb)
{
    if (vb->dirty || vb->stopped)
        return;
    vb->dirty = true;
    vb->busy++;
    vb->rebuild.run = run_rebuild;
    mailbox_post(vb->opts.mb, &vb->rebuild);
}

/* --- life --- */

int view_build_start(const struct view_build_opts *opts, struct view_build **out)
{
    int err;

    *out = NULL;
    struct view_build *vb = mem_zalloc(sizeof *vb);
    if (vb == NULL)
        return E_NOMEM;
    vb->opts = *opts;
    if (opts->catalog != NULL)
        vb->catalog = catalog_ref(opts->catalog);
    STAILQ_INIT(&vb->encoders);
    STAILQ_INIT(&vb->waits);
    if ((err = watch(vb)) < 0) {
        catalog_unref(vb->catalog);
        mem_free(vb);
        return err;
    }
    if (vb_load(vb) < 0)
        log_event(LOG_WARN, "view.generations_not_read", LF_ERR(E_AGAIN));
    *out = vb;
    return 0;
}

const struct gw_view *view_build_current(const struct view_build *vb)
{
    return vb->view;
}

bool view_build_ready(const struct view_build *vb)
{
    return vb->ready;
}

void view_build_tick(struct view_build *vb)
{
    int err = 0;

    if (vb->stopped)
        return;
    vb->ticks++;
    if (vb->watch == NULL)
        err = watch(vb);
    if (err == 0)
        err = vb_load(vb);
    if (err < 0)
        log_event(LOG_WARN, "view.retry_failed", LF_ERR(err));
    for (size_t i = 0; i < vb->slots_n; i++)
        follow(vb->slots[i]);
    if (vb->listing_behind)
        take_listing(vb);
    /* Rebuilding is cheap and finds what failed before; while all is well nothing is shown anew. */
    if (!vb->ready || vb->unseen)
        vb_touch(vb);
    for (size_t i = 0; i < vb->topics_n; i++) {
        if (vb->topics[i]->failed)
            vb_touch(vb);
    }
}

int view_build_await(struct view_build *vb, struct span collection, size_t parts_n,
                     struct task *task)
{
    struct vb_wait *w = mem_zalloc(sizeof *w);

    if (w == NULL ||
        (w->collection = mem_strndup((const char *)collection.p, collection.n)) == NULL) {
        mem_free(w);
        return E_NOMEM;
    }
    w->parts_n = parts_n;
    w->task = task;
    STAILQ_INSERT_TAIL(&vb->waits, w, link);
    if (vb->stopped || satisfied(vb, w->collection, parts_n))
        wait_end(vb, w);
    return 0;
}

void view_build_stop(struct view_build *vb)
{
    if (vb->stopped)
        return;
    vb->stopped = true;
    if (vb->watch != NULL)
        vb->opts.store->ops->cancel(vb->watch);
    vb->watch = NULL;
    for (size_t i = 0; i < vb->slots_n; i++)
        slot_free(vb->slots[i]);
    mem_free(vb->slots);
    vb->slots = NULL;
    vb->slots_n = 0;
    check_waits(vb, true);
}

size_t view_build_busy(const struct view_build *vb)
{
    return vb->busy;
}

void view_build_free(struct view_build *vb)
{
    if (vb == NULL)
        return;
    ASSERT(vb->stopped && vb->busy == 0);
    for (size_t i = 0; i < vb->topics_n; i++)
        vb_topic_free(vb->topics[i]);
    mem_free(vb->topics);
    gw_view_unref(vb->view);
    jc_listing_unref(vb->listing);
    vb_encoders_sweep(vb, true);
    catalog_unref(vb->catalog);
    mem_free(vb);
}
