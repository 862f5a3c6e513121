/*
 * A journal as this process knows it. It sleeps until somebody wants it; then: the floor kept from
 * earlier runs, the list of its fragments, the write head, a look back for the last content
 * (search.c), and from there its tail (tail.c). Fully suspended ones are served from their spec and
 * never asked, so that nothing here resumes them.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

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
    TAILQ_INIT(&j->renewers);
    TAILQ_INIT(&j->asks);
    TAILQ_INIT(&j->asking);
    TAILQ_INIT(&j->asked);
    TAILQ_INIT(&j->asked_next);
    STAILQ_INIT(&j->ring);
    for (size_t i = 0; i < GZ_HINTS; i++)
        j->hints[i].block = -1;
    if ((j->name = mem_strdup(name)) == NULL ||
        (j->timer = evtimer_new(s->evb, on_timer, j)) == NULL ||
        (j->settle_timer = evtimer_new(s->evb, gz_settle_on_timer, j)) == NULL) {
        if (j->timer != NULL)
            event_free(j->timer);
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
    if (j->settle_timer != NULL)
        event_free(j->settle_timer);
    blob_unref(j->spec);
    gz_frags_fini(&j->frags);
    mem_free(j->endpoint);
    mem_free(j->primary);
    mem_free(j->name);
    mem_free(j);
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
    /* An append may have come between the list and the head: only a list from behind a head says
     * that nothing is stored below it. */
    if (j->frags.n == 0 && j->said_head > j->first) {
        j->empty_head = j->said_head;
        start(j);
        return;
    }
    gz_settle_start(j, false);
    if (j->state == GZ_J_STARTING && !j->searching)
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
    (void)gz_first_take(j, &j->frags);
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
    if (j->frags.n == 0 && j->empty_head > j->first)
        j->first = j->empty_head;
    j->empty_head = 0;
    /* All content had been removed by then, and so has been what lay behind it: brokers that know
     * no fragment tell of 0 as their head. */
    if (j->frags.n == 0 && j->kept_sound && j->kept.log_start >= j->kept.content_end &&
        j->kept.write_head > j->first)
        j->first = j->kept.write_head;
    ask_head(j);
}

void gz_journal_floor(struct gz_journal *j, int err)
{
    if (j->state != GZ_J_STARTING)
        return;
    if (err == 0)
        start(j);
    else
        again(j, "state", err, -1);
}

static void start(struct gz_journal *j)
{
    int err;

    if (!j->floor_known) {
        if ((err = gz_floor_ask(j)) < 0)
            again(j, "state", err, -1);
        return;
    }
    gz_settle_first(j);
    if (j->suspend_level == 2) {
        j->state = GZ_J_SUSPENDED;
        j->attempt = 0;
        gz_journal_publish(j);
        return;
    }
    if (j->frags_call != NULL) { /* of a look back that failed */
        gz_frags_cancel(j->frags_call);
        gz_ranges_go_on(&j->renewers, E_AGAIN);
    }
    if ((err = gz_frags_ask(j, on_start_frags, j, &j->frags_call)) < 0)
        again(j, "fragments", err, -1);
}

void gz_journal_wake(struct gz_journal *j)
{
    gz_wake_up(j);
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
    if (err == 0 && status != GZ_OK)
        err = E_AGAIN;
    if (err == 0) {
        take_frags(j, list);
        gz_journal_publish(j);
    }
    gz_ranges_go_on(&j->renewers, err);
    gz_fresh_next(j);
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

bool gz_journal_renew(struct gz_journal *j)
{
    /* While it starts its list is new, unless it is looking back already. */
    if (j->state != GZ_J_TAIL && !(j->state == GZ_J_STARTING && j->searching))
        return false;
    return j->frags_call != NULL || gz_frags_ask(j, on_refresh, j, &j->frags_call) == 0;
}

/* --- ends --- */

static void stop_all(struct gz_journal *j, int err)
{
    gz_search_stop(j);
    gz_tail_stop(j);
    gz_settle_stop(j);
    if (j->frags_call != NULL)
        gz_frags_cancel(j->frags_call);
    j->frags_call = NULL;
    gz_ranges_go_on(&j->renewers, E_AGAIN);
    gz_first_stop(j);
    gz_fresh_end(j, err);
    if (j->timer != NULL)
        (void)event_del(j->timer);
    /* Whatever follows begins awake, and lets those run who wait. */
    j->asleep = j->opened = false;
    pthread_mutex_lock(&j->store->hub.lock);
    j->hub.stale = false;
    pthread_mutex_unlock(&j->store->hub.lock);
}

/* All that was read of it. */
static void forget(struct gz_journal *j)
{
    gz_ring_drop(j);
    gz_ahead_drop(j);
    if (j->tail_set)
        gz_feed_fini(&j->tail);
    j->tail_set = false;
    for (size_t i = 0; i < j->runs_n; i++)
        gz_run_fini(&j->runs[i]);
    mem_free(j->runs);
    j->runs = NULL;
    j->runs_n = j->runs_cap = 0;
    for (size_t i = 0; i < GZ_HINTS; i++)
        j->hints[i].block = -1;
}

void gz_journal_reborn(struct gz_journal *j)
{
    struct gz_store *s = j->store;

    stop_all(j, E_AGAIN);
    forget(j);
    gz_frags_fini(&j->frags);
    j->first = j->min_head = j->maybe_first = 0;
    j->append_head = -1;
    j->claim = (struct gz_claim_of){.seen = j->claim.epoch}; /* registers die with the replicas */
    gz_heads_new_life(j);
    pthread_mutex_lock(&s->hub.lock);
    jc_wake_waiters(&j->hub, E_RANGE);
    pthread_mutex_unlock(&s->hub.lock);
    j->state = GZ_J_STARTING;
    j->attempt = 0;
    start(j);
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
    j->suspend_offset = suspend == NULL || suspend->offset < 0 ? 0 : suspend->offset;
    if (j->suspend_offset > INT64_MAX / 2) /* as a head it would be taken for one */
        j->suspend_offset = 0;
    bool resumed = j->suspend_level == 2 && level != 2;
    bool suspended = j->suspend_level != 2 && level == 2;
    j->suspend_level = level;
    if (suspended && j->state != GZ_J_IDLE) {
        stop_all(j, E_AGAIN);
        gz_frags_fini(&j->frags);
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

    stop_all(j, err);
    j->state = GZ_J_DELETED;
    pthread_mutex_lock(&s->hub.lock);
    j->hub.deleted = true;
    jc_end_followers(&j->hub, err);
    jc_wake_waiters(&j->hub, err);
    pthread_mutex_unlock(&s->hub.lock);
    gz_ops_ready(&j->starting, err);
    gz_ops_ready(&j->scanners, err);
    forget(j);
    /* The event base goes before the last reference may. */
    if (j->timer != NULL)
        event_free(j->timer);
    if (j->settle_timer != NULL)
        event_free(j->settle_timer);
    j->timer = j->settle_timer = NULL;
}
