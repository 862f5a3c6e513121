/*
 * Opening and closing: the home thread with its event base, the I/O pool, the embedded store for
 * key-values.
 */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/direct.h"
#include "journal_client/gazette/jwt.h"
#include "journal_client/local.h"

#define FRAGMENT_BYTES (INT64_C(64) << 20)
#define SCRATCH_BYTES  (INT64_C(1) << 30)
#define TAIL_BYTES     (INT64_C(64) << 20)
#define IDLE_MS        60000
#define START_MS       10000
#define TOKEN_S        3600
#define TICK_MS        1000
#define STOP_MS        10000
#define CLOCK_KEY      "gazette/clock"

static _Atomic uint64_t read_direct, read_brokered;

void gz_count_read(bool direct, size_t bytes)
{
    atomic_fetch_add_explicit(direct ? &read_direct : &read_brokered, bytes, memory_order_relaxed);
}

void jc_gazette_read_stats(uint64_t *direct, uint64_t *brokered)
{
    *direct = atomic_load_explicit(&read_direct, memory_order_relaxed);
    *brokered = atomic_load_explicit(&read_brokered, memory_order_relaxed);
}

int64_t gz_mono_ms(const struct gz_store *s)
{
    return clock_mono_ms(s->hub.clock);
}

void gz_arm(struct event *timer, int64_t ms)
{
    const struct timeval tv = {ms / 1000, (ms % 1000) * 1000L};

    (void)event_add(timer, &tv);
}

void gz_later(struct gz_store *s, struct task *t, void (*run)(struct task *t))
{
    t->run = run;
    mailbox_post(&s->mb, t);
}

/* --- the object --- */

struct gz_store *gz_store_ref(struct gz_store *s)
{
    jc_hub_ref(&s->hub);
    return s;
}

void gz_store_unref(struct gz_store *s)
{
    jc_hub_unref(&s->hub);
}

static void gz_free(struct jc_hub *h)
{
    struct gz_store *s = (struct gz_store *)h;

    if (s->auth_key != NULL)
        mem_wipe(s->auth_key, s->auth_key_n);
    mem_free(s->auth_key);
    gz_token_fini(&s->token);
    mem_free(s->journals);
    mem_free(s->zone);
    mem_free(s->data_dir);
    mem_free(s->file_root);
    mem_free(s->scratch_dir);
    mem_free(s->fragment_store);
    mailbox_fini(&s->mb);
    pthread_mutex_destroy(&s->curl_lock);
    mem_free(s);
}

/* --- home --- */

static void on_mail(evutil_socket_t fd, short what, void *arg)
{
    struct gz_store *s = arg;

    (void)fd;
    (void)what;
    (void)mailbox_drain(&s->mb);
}

static void on_clock_written(void *arg, int err)
{
    struct gz_store *s = arg;

    if (err < 0) {
        log_peer(LOG_ERROR, "gazette.state", LF_STR("key", CLOCK_KEY), LF_ERR(err));
        s->clock_saved = 0; /* once more with the next tick */
    }
    s->kv_busy--;
}

static void clock_write(struct gz_store *s)
{
    uint8_t value[8];
    const struct jc_kv kv = {.key = CLOCK_KEY, .value = span_of(value, sizeof value)};

    if (!s->clock_ready || s->txn_clock.last == s->clock_saved)
        return;
    be_store64(value, s->txn_clock.last);
    s->kv_busy++;
    int err = s->kv->ops->kv_set(s->kv, &kv, 1, &s->mb.ex, on_clock_written, s);
    if (err < 0)
        on_clock_written(s, err);
    else
        s->clock_saved = s->txn_clock.last;
}

static void on_clock(void *arg, int err, struct span value)
{
    struct gz_store *s = arg;

    if (err == 0 && value.n == 8)
        jc_txn_clock_observe(&s->txn_clock, be_load64(value.p));
    s->kv_busy--;
    s->clock_ready = true;
    gz_append_next(s);
}

static void end_all(struct gz_store *s)
{
    const struct jc_listing *l = s->hub.listing;

    gz_list_free(s->list);
    s->list = NULL;
    gz_append_end(s, E_CLOSED);
    gz_apply_end(s, E_CLOSED);
    clock_write(s);
    for (size_t i = 0; l != NULL && i < l->n; i++)
        gz_journal_gone(gz_of(l->items[i]), E_CLOSED);
    gz_heads_write(s);
    pthread_mutex_lock(&s->hub.lock);
    jc_end_watchers(&s->hub, E_CLOSED);
    pthread_mutex_unlock(&s->hub.lock);
    gz_pool_close(s->pool);
    gz_ranges_end(s);
}

/* Queued transactions have their time; then everything ends. */
static void stop_step(struct gz_store *s, bool late)
{
    if (!s->stop_asked || s->stopping || (!late && !gz_append_idle(s)))
        return;
    s->stopping = true;
    end_all(s);
    (void)event_base_loopbreak(s->evb);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct gz_store *s = arg;

    (void)fd;
    (void)what;
    clock_write(s);
    gz_idle_tick(s);
    pthread_mutex_lock(&s->hub.lock);
    jc_retry_watchers(&s->hub);
    pthread_mutex_unlock(&s->hub.lock);
    gz_arm(s->tick, TICK_MS);
}

static void on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gz_store *s = arg;
    static const int64_t step_ms = 5;

    (void)fd;
    (void)what;
    stop_step(s, gz_mono_ms(s) - s->stop_since_ms >= STOP_MS);
    if (!s->stopping)
        gz_arm(s->stop_timer, step_ms);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct gz_store *s = arg;
    int64_t next = jc_read_deadlines(&s->hub);

    (void)fd;
    (void)what;
    if (next >= 0)
        gz_arm(s->deadline, next);
}

static void on_heads_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    gz_heads_write(arg);
}

static void run_stop(struct task *t)
{
    struct gz_store *s = (struct gz_store *)(void *)((char *)t - offsetof(struct gz_store, stop));

    s->stop_asked = true;
    s->stop_since_ms = gz_mono_ms(s);
    stop_step(s, false);
    if (!s->stopping)
        gz_arm(s->stop_timer, 1);
}

static void *home_main(void *arg)
{
    struct gz_store *s = arg;

    s->kv_busy++;
    int err = s->kv->ops->kv_get(s->kv, CLOCK_KEY, &s->mb.ex, on_clock, s);
    if (err < 0)
        on_clock(s, err, span_of(NULL, 0));
    (void)event_base_loop(s->evb, EVLOOP_NO_EXIT_ON_EMPTY);
    /* What is under way answers into the mailbox: jobs, the key-value store, then nobody. */
    while (s->kv_busy > 0 || !TAILQ_EMPTY(&s->txns_running))
        (void)mailbox_wait(&s->mb, 1000);
    gz_heads_end(s);
    atomic_store(&s->io_stop, true);
    jobpool_free(s->io);
    s->io = NULL;
    s->kv->ops->close(s->kv);
    s->kv = NULL;
    while (mailbox_drain(&s->mb) > 0) {
    }
    gz_direct_end(s);
    return NULL;
}

/* --- open and close --- */

static void events_free(struct gz_store *s)
{
    struct event **all[] = {&s->mb_event, &s->tick, &s->deadline, &s->stop_timer, &s->heads_timer};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i] != NULL)
            event_free(*all[i]);
        *all[i] = NULL;
    }
    gz_pool_free(s->pool);
    s->pool = NULL;
    if (s->evb != NULL)
        event_base_free(s->evb);
    s->evb = NULL;
}

static void gz_close(struct jc_store *store)
{
    struct gz_store *s = gz_store_of(store);

    pthread_mutex_lock(&s->hub.lock);
    s->hub.closing = true;
    if (s->thread_runs) {
        s->stop.run = run_stop;
        mailbox_post(&s->mb, &s->stop);
    }
    pthread_mutex_unlock(&s->hub.lock);
    if (s->thread_runs) {
        (void)pthread_join(s->thread, NULL);
    } else {
        gz_list_free(s->list);
        jobpool_free(s->io);
        if (s->kv != NULL)
            s->kv->ops->close(s->kv);
    }
    jc_hub_drop_listing(&s->hub);
    events_free(s);
    gz_store_unref(s);
}

static int gz_kv_get(struct jc_store *store, const char *key, struct executor *ex, jc_kv_fn *done,
                     void *arg)
{
    struct jc_store *kv = gz_store_of(store)->kv;

    return kv->ops->kv_get(kv, key, ex, done, arg);
}

static int gz_kv_scan(struct jc_store *store, const char *prefix, struct executor *ex,
                      jc_kv_scan_fn *done, void *arg)
{
    struct jc_store *kv = gz_store_of(store)->kv;

    return kv->ops->kv_scan(kv, prefix, ex, done, arg);
}

static int gz_kv_set(struct jc_store *store, const struct jc_kv *kvs, size_t n, struct executor *ex,
                     jc_done_fn *done, void *arg)
{
    struct jc_store *kv = gz_store_of(store)->kv;

    return kv->ops->kv_set(kv, kvs, n, ex, done, arg);
}

static const struct jc_store_ops gz_ops = {.name = "gazette",
                                           .watch = jc_hub_watch,
                                           .follow = jc_hub_follow,
                                           .read = jc_hub_read,
                                           .read_block = jc_hub_read_block,
                                           .seek = jc_hub_seek,
                                           .append = gz_append,
                                           .apply = gz_apply,
                                           .fragments = jc_hub_fragments,
                                           .fresh = jc_hub_fresh,
                                           .kv_get = gz_kv_get,
                                           .kv_scan = gz_kv_scan,
                                           .kv_set = gz_kv_set,
                                           .cancel = jc_op_cancel,
                                           .hurry = gz_hurry,
                                           .close = gz_close};

/* Under the lock, at home. */
static void gz_timed(struct jc_hub *h)
{
    gz_arm(((struct gz_store *)h)->deadline, 0);
}

static const struct jc_hub_ops gz_hub_ops = {.free = gz_free,
                                             .journal_free = gz_journal_free,
                                             .followed = gz_followed,
                                             .timed = gz_timed,
                                             .begin = gz_begin,
                                             .read_fetch = gz_read_fetch,
                                             .read_bytes = sizeof(struct gz_read),
                                             .block = gz_block,
                                             .block_fini = gz_block_fini,
                                             .block_bytes = sizeof(struct gz_block_op),
                                             .seek = gz_seek,
                                             .fragments = gz_fragments,
                                             .fresh = gz_fresh_ask};

static int copy_text(const char *from, char **to)
{
    *to = from == NULL || from[0] == '\0' ? NULL : mem_strdup(from);
    return from == NULL || from[0] == '\0' || *to != NULL ? 0 : E_NOMEM;
}

static int take_opts(struct gz_store *s, const struct jc_gazette_opts *o)
{
    int err;

    s->probe = (struct gz_probe){o->probe, o->probe_arg};
    s->no_direct = o->no_direct;
    s->scratch_bytes = o->scratch_bytes > 0 ? o->scratch_bytes : SCRATCH_BYTES;
    s->tail_bytes = o->tail_bytes > 0 ? o->tail_bytes : TAIL_BYTES;
    s->idle_ms = o->idle_ms > 0 ? o->idle_ms : IDLE_MS;
    s->start_ms = o->start_ms > 0 ? o->start_ms : START_MS;
    s->replication = o->replication > 0 ? o->replication : 1;
    s->fragment_bytes = o->fragment_bytes > 0 ? o->fragment_bytes : FRAGMENT_BYTES;
    jc_txn_clock_init(&s->txn_clock, s->hub.clock, 0);
    s->single_writer = o->single_writer;
    if (getrandom(&s->owner, sizeof s->owner, 0) != (ssize_t)sizeof s->owner)
        return E_IO;
    s->token.holds_s = o->token_s > 0 ? o->token_s : TOKEN_S;
    if ((err = copy_text(o->data_dir, &s->data_dir)) < 0 ||
        (err = copy_text(o->journals, &s->journals)) < 0 ||
        (err = copy_text(o->zone, &s->zone)) < 0 ||
        (err = copy_text(o->file_root, &s->file_root)) < 0 ||
        (err = copy_text(o->fragment_store, &s->fragment_store)) < 0)
        return err;
    return gz_codec_parse(o->codec == NULL || o->codec[0] == '\0' ? "none" : o->codec, &s->codec);
}

static int make_state(struct gz_store *s, const struct jc_gazette_opts *o, char *why,
                      size_t why_bytes)
{
    size_t n = strlen(s->data_dir) + 16;
    char *dir = mem_alloc(n);
    int err = E_NOMEM;

    if (dir == NULL || (s->scratch_dir = mem_alloc(n)) == NULL)
        goto out;
    (void)snprintf(dir, n, "%s/state", s->data_dir);
    (void)snprintf(s->scratch_dir, n, "%s/scratch", s->data_dir);
    const struct jc_local_opts lo = {.dir = dir,
                                     .clock = o->clock,
                                     .probe = o->probe,
                                     .probe_arg = o->probe_arg,
                                     .io_threads = 1};
    if ((err = jc_local_open(&lo, &s->kv, why, why_bytes)) < 0)
        goto out;
    if (mkdir(s->scratch_dir, 0755) < 0 && errno != EEXIST)
        err = err_from_errno(errno);
out:
    mem_free(dir);
    return err;
}

static int make_events(struct gz_store *s)
{
    struct event_config *config = event_config_new();

    if (config != NULL) {
        (void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        s->evb = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (s->evb == NULL)
        return E_NOMEM;
    s->mb_event = event_new(s->evb, mailbox_fd(&s->mb), EV_READ | EV_PERSIST, on_mail, s);
    s->tick = evtimer_new(s->evb, on_tick, s);
    s->deadline = evtimer_new(s->evb, on_deadline, s);
    s->stop_timer = evtimer_new(s->evb, on_stop_timer, s);
    s->heads_timer = evtimer_new(s->evb, on_heads_timer, s);
    if (s->mb_event == NULL || s->tick == NULL || s->deadline == NULL || s->stop_timer == NULL ||
        s->heads_timer == NULL || event_add(s->mb_event, NULL) < 0)
        return E_NOMEM;
    gz_arm(s->tick, TICK_MS);
    return 0;
}

static int start_thread(struct gz_store *s)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&s->thread, NULL, home_main, s);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return E_NOMEM;
    s->thread_runs = true;
    (void)pthread_setname_np(s->thread, "gazette");
    return 0;
}

static int make_all(struct gz_store *s, const struct jc_gazette_opts *o, char *why,
                    size_t why_bytes)
{
    struct gz_pool_opts po = {.endpoints = o->brokers,
                              .tls = o->tls,
                              .ca_file = o->ca_file,
                              .cert_file = o->cert_file,
                              .key_file = o->key_file};
    int err;

    if ((err = take_opts(s, o)) < 0)
        return err;
    if (o->auth_keys != NULL && o->auth_keys[0] != '\0') {
        if ((err = gz_jwt_key(o->auth_keys, &s->auth_key, &s->auth_key_n)) < 0) {
            if (why != NULL)
                (void)snprintf(why, why_bytes, "the key of the brokers is not base64");
            return err;
        }
        po.token = gz_token;
        po.token_refused = gz_token_refused;
        po.token_arg = s;
        if (gz_token(s) == NULL) {
            if (why != NULL)
                (void)snprintf(why, why_bytes, "no journal's name begins with \"%.200s\"",
                               o->journals == NULL ? "" : o->journals);
            return E_INVALID;
        }
    }
    if ((err = make_events(s)) < 0 ||
        (err = gz_pool_new(s->evb, &po, &s->pool, why, why_bytes)) < 0 ||
        (err = make_state(s, o, why, why_bytes)) < 0 ||
        (err = jobpool_new(o->io_threads > 0 ? o->io_threads : 2, "fragment", &s->io)) < 0 ||
        (err = gz_list_new(s, &s->list)) < 0)
        return err;
    return start_thread(s);
}

int jc_gazette_open(const struct jc_gazette_opts *o, struct jc_store **out, char *why,
                    size_t why_bytes)
{
    struct gz_store *s;
    int err;

    *out = NULL;
    if (why != NULL && why_bytes > 0)
        why[0] = '\0';
    if (o->brokers == NULL || o->data_dir == NULL || o->data_dir[0] == '\0' || o->probe == NULL)
        return E_INVALID;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (s = mem_zalloc(sizeof *s)) == NULL)
        return E_NOMEM;
    jc_hub_init(&s->hub, &gz_ops, &gz_hub_ops, o->clock == NULL ? clock_system() : o->clock);
    s->hub.steps = &s->mb.ex;
    STAILQ_INIT(&s->dirty);
    TAILQ_INIT(&s->rings);
    TAILQ_INIT(&s->searches);
    STAILQ_INIT(&s->told_now);
    STAILQ_INIT(&s->told_next);
    TAILQ_INIT(&s->txns);
    TAILQ_INIT(&s->aheads);
    TAILQ_INIT(&s->waiting);
    TAILQ_INIT(&s->txns_running);
    TAILQ_INIT(&s->applies);
    TAILQ_INIT(&s->spools);
    (void)pthread_mutex_init(&s->curl_lock, NULL);
    if ((err = mailbox_init(&s->mb)) < 0) {
        mem_free(s);
        return err;
    }
    if ((err = make_all(s, o, why, why_bytes)) < 0) {
        gz_close(&s->hub.base);
        return err;
    }
    log_event(LOG_INFO, "gazette.opened", LF_STR("brokers", o->brokers));
    if (s->fragment_store == NULL)
        log_event(LOG_WARN, "gazette.no_fragment_store",
                  LF_STR("reason", "journals that are made here are lost with their brokers"));
    *out = &s->hub.base;
    return 0;
}
