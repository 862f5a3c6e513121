/*
 * Puts the server together and takes it apart. The control thread is the caller of gateway_run: it
 * accepts connections, serves the admin listener and builds views; it never touches a connection.
 *
 * Stopping: gateway_stop writes to an eventfd (all that a signal handler may do). The loop then
 * closes the listeners, tells the workers to answer what is in flight, and leaves when all of them
 * and the admin listener are idle, or after drain_ms: then the store is told to wait for nobody any
 * more, what it gave up is answered, and a second later the loop ends in any case.
 */
#include "gateway/gateway.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/jobpool.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "gateway/admin_http.h"
#include "gateway/cache.h"
#include "gateway/catalog_reload.h"
#include "gateway/groups/groups.h"
#include "gateway/listener.h"
#include "gateway/metrics.h"
#include "gateway/quota.h"
#include "gateway/registry_http.h"
#include "gateway/tls.h"
#include "gateway/view_build.h"
#include "gateway/worker.h"

#define TICK_MS       1000
#define DRAIN_TICK_MS 20
#define HURRIED_MS    1000 /* for the answers of what the store gave up at the drain's end */

enum gateway_state {
    GW_STARTING, /* the first view is not there yet: connections wait in the kernel */
    GW_SERVING,
    GW_DRAINING,
};

struct drained_msg {
    struct task task;
    struct gateway *gw;
};

/* Owner: control thread, except stop_fd. */
struct gateway {
    const struct gw_config *config;
    struct gw_shared shared;
    enum gateway_state state;
    struct event_base *base;
    struct mailbox mb;
    bool mb_ready;
    int stop_fd;   /* any thread, signal handlers */
    int reload_fd; /* likewise */
    struct event *mb_event;
    struct event *stop_event;
    struct event *reload_event;
    struct event *tick_event;
    struct event *drain_event; /* often, while draining */
    int64_t drain_until_ms;
    struct listener **listeners;
    size_t listeners_n;
    struct worker *workers;
    size_t workers_n;       /* initialised */
    size_t workers_started; /* with a thread */
    struct drained_msg *drained;
    size_t drained_n;
    size_t next_worker; /* where the search for the least loaded one begins */
    struct jobpool *jobs;
    struct view_build *views;
    struct catalog_reload *reload; /* NULL: there is no file to follow */
    bool repost;                   /* some worker did not get the last view: out of memory */
    struct admin_http *admin;
    struct registry_http *registry; /* NULL: none */
    bool clean;                     /* the drain ended by itself */
    bool hurried;                   /* the store waits for nobody any more */
    size_t max_connections;         /* of Kafka clients, as far as descriptors allow */
};

#define DESCRIPTORS_KEPT 512

/* Kafka clients must not take the descriptors that the admin listener and the store need to go on.
 */
static size_t connections_allowed(const struct gw_config *config)
{
    struct rlimit limit;
    size_t most = config->max_connections, kept;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return most;
    kept = limit.rlim_cur / 4 < DESCRIPTORS_KEPT ? (size_t)limit.rlim_cur / 4 : DESCRIPTORS_KEPT;
    if (most <= limit.rlim_cur - kept)
        return most;
    most = (size_t)limit.rlim_cur - kept;
    log_event(LOG_WARN, "gateway.connections_limited", LF_UINT("max", most),
              LF_UINT("descriptors", limit.rlim_cur));
    return most;
}

/* --- accepting --- */

static void on_socket(void *arg, int fd, const struct gw_listen *where, const struct sockaddr *peer,
                      socklen_t peer_bytes)
{
    struct gateway *gw = arg;
    struct worker *best = NULL;
    size_t best_load = SIZE_MAX;
    size_t total = 0;

    ASSERT(gw->workers_n > 0);
    for (size_t i = 0; i < gw->workers_n; i++) {
        struct worker *w = &gw->workers[(gw->next_worker + i) % gw->workers_n];
        size_t load = atomic_load_explicit(&w->load, memory_order_relaxed);
        total += load;
        if (load < best_load) {
            best_load = load;
            best = w;
        }
    }
    gw->next_worker = (gw->next_worker + 1) % gw->workers_n;
    if (total >= gw->max_connections) {
        log_peer(LOG_WARN, "gateway.connections_full", LF_UINT("max", gw->max_connections));
    } else if (worker_post_socket(best, fd, where, peer, peer_bytes) == 0) {
        return;
    }
    metric_add(M_CONNECTIONS_REFUSED, 1);
    close(fd);
}

static void start_accepting(struct gateway *gw)
{
    if (gw->state != GW_STARTING)
        return;
    for (size_t i = 0; i < gw->listeners_n; i++) {
        if (listener_start(gw->listeners[i]) < 0) {
            log_event(LOG_ERROR, "gateway.not_accepting", LF_ERR(E_NOMEM));
            return; /* the next view tries again */
        }
    }
    gw->state = GW_SERVING;
    log_event(LOG_INFO, "gateway.serving", LF_UINT("port", listener_port(gw->listeners[0])),
              LF_UINT("workers", gw->workers_n));
}

/* --- what the parts ask of the server --- */

static void on_view(void *arg, const struct gw_view *view)
{
    struct gateway *gw = arg;

    gw->repost = false;
    /* First: no commit that a worker takes under a raised epoch may come before the raise. */
    if (groups_post_view(gw->shared.groups, view) < 0) {
        log_event(LOG_ERROR, "gateway.view_not_posted", LF_STR("to", "groups"), LF_ERR(E_NOMEM));
        gw->repost = true;
        return;
    }
    for (size_t i = 0; i < gw->workers_n; i++) {
        if (worker_post_view(&gw->workers[i], view) < 0) {
            log_event(LOG_ERROR, "gateway.view_not_posted", LF_UINT("worker", i), LF_ERR(E_NOMEM));
            gw->repost = true;
        }
    }
    registry_http_view(gw->registry, view);
    log_event(LOG_DEBUG, "gateway.view", LF_INT("revision", view->revision),
              LF_UINT("topics", view->topics_n));
    start_accepting(gw);
}

static const struct gw_view *admin_view(void *arg)
{
    const struct gateway *gw = arg;
    return view_build_current(gw->views);
}

static void admin_await_topic(void *arg, const char *collection, size_t parts_n, struct task *t)
{
    struct gateway *gw = arg;

    if (view_build_await(gw->views, span_str(collection), parts_n, t) < 0)
        mailbox_post(&gw->mb, t); /* out of memory: better early than never */
}

static const char *admin_unready(void *arg)
{
    const struct gateway *gw = arg;

    switch (gw->state) {
    case GW_STARTING:
        return "starting";
    case GW_DRAINING:
        return "draining";
    case GW_SERVING:
        break;
    }
    return view_build_ready(gw->views) ? NULL : "some topics are not known yet";
}

/* --- draining --- */

static void check_drained(struct gateway *gw)
{
    bool idle = gw->drained_n == gw->workers_started && admin_http_busy(gw->admin) == 0 &&
                registry_http_busy(gw->registry) == 0;

    int64_t now = clock_mono_ms(gw->shared.clock);

    if (!idle && now < gw->drain_until_ms)
        return;
    if (!idle && !gw->hurried && gw->shared.store->ops->hurry != NULL) {
        /* What waits for brokers is answered as it stands, and its answers may leave. */
        gw->hurried = true;
        gw->drain_until_ms = now + HURRIED_MS;
        log_event(LOG_WARN, "gateway.drain_hurried",
                  LF_UINT("admin_requests", admin_http_busy(gw->admin)));
        gw->shared.store->ops->hurry(gw->shared.store);
        admin_http_hurry(gw->admin);
        return;
    }
    gw->clean = idle;
    if (!idle)
        log_event(LOG_WARN, "gateway.drain_cut",
                  LF_UINT("workers", gw->workers_started - gw->drained_n),
                  LF_UINT("admin_requests", admin_http_busy(gw->admin)));
    event_base_loopbreak(gw->base);
}

static void run_drained(struct task *t)
{
    struct drained_msg *m = (struct drained_msg *)t;

    m->gw->drained_n++; /* the drain's tick looks at it */
}

static void begin_drain(struct gateway *gw)
{
    struct timeval tick = {.tv_usec = DRAIN_TICK_MS * 1000L};

    if (gw->state == GW_DRAINING) {
        gw->drain_until_ms = 0; /* asked twice: whoever asks does not want to wait */
        return;
    }
    gw->state = GW_DRAINING;
    gw->drain_until_ms = clock_mono_ms(gw->shared.clock) + gw->config->drain_ms;
    log_event(LOG_INFO, "gateway.draining", LF_INT("deadline_ms", gw->config->drain_ms));
    for (size_t i = 0; i < gw->listeners_n; i++)
        listener_free(gw->listeners[i]);
    gw->listeners_n = 0;
    admin_http_drain(gw->admin);
    registry_http_drain(gw->registry);
    groups_drain(gw->shared.groups);
    for (size_t i = 0; i < gw->workers_started; i++)
        worker_post_drain(&gw->workers[i]);
    if (event_add(gw->drain_event, &tick) < 0)
        event_base_loopbreak(gw->base);
}

/* --- events --- */

static void on_mailbox(evutil_socket_t fd, short what, void *arg)
{
    struct gateway *gw = arg;

    (void)fd;
    (void)what;
    mailbox_drain(&gw->mb);
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof count) != (ssize_t)sizeof count)
        return;
    begin_drain(arg);
    if (count > 1) /* asked twice before the loop looked */
        begin_drain(arg);
}

/* A new certificate is for new connections; a bad one changes nothing. */
static void reload_tls(struct gateway *gw)
{
    char why[256] = "";
    int err = tls_server_reload(gw->shared.tls, why, sizeof why);

    if (err < 0) {
        metric_add(M_TLS_RELOADS_FAILED, 1);
        log_event(LOG_ERROR, "tls.reload_failed", LF_STR("reason", why));
        return;
    }
    metric_add(M_TLS_RELOADS, 1);
    metric_set(M_TLS_EXPIRES, tls_server_expires_s(gw->shared.tls));
    log_event(LOG_INFO, "tls.reloaded", LF_INT("expires_s", tls_server_expires_s(gw->shared.tls)));
}

static void on_reload(evutil_socket_t fd, short what, void *arg)
{
    struct gateway *gw = arg;
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof count) != (ssize_t)sizeof count)
        return;
    if (gw->reload != NULL)
        catalog_reload_now(gw->reload);
    gw_auth_follow(gw->shared.auth, true);
    if (gw->shared.tls != NULL)
        reload_tls(gw);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct gateway *gw = arg;

    (void)fd;
    (void)what;
    if (gw->reload != NULL && gw->state != GW_DRAINING)
        catalog_reload_tick(gw->reload);
    gw_auth_follow(gw->shared.auth, false);
    if (gw->shared.tls != NULL && tls_server_changed(gw->shared.tls))
        reload_tls(gw);
    view_build_tick(gw->views);
    registry_http_tick(gw->registry);
    if (view_build_current(gw->views) == NULL)
        return;
    if (gw->repost)
        on_view(gw, view_build_current(gw->views));
    start_accepting(gw);
}

static void on_drain_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    check_drained(arg);
}

static int start_events(struct gateway *gw)
{
    struct timeval tick = {.tv_sec = TICK_MS / 1000, .tv_usec = (TICK_MS % 1000) * 1000L};
    int err;

    if ((gw->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0 ||
        (gw->reload_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        return err_from_errno(errno);
    if ((err = mailbox_init(&gw->mb)) < 0)
        return err;
    gw->mb_ready = true;
    if ((gw->base = event_base_new()) == NULL)
        return E_NOMEM;
    gw->mb_event = event_new(gw->base, mailbox_fd(&gw->mb), EV_READ | EV_PERSIST, on_mailbox, gw);
    gw->stop_event = event_new(gw->base, gw->stop_fd, EV_READ | EV_PERSIST, on_stop, gw);
    gw->reload_event = event_new(gw->base, gw->reload_fd, EV_READ | EV_PERSIST, on_reload, gw);
    gw->tick_event = event_new(gw->base, -1, EV_PERSIST, on_tick, gw);
    gw->drain_event = event_new(gw->base, -1, EV_PERSIST, on_drain_tick, gw);
    if (gw->mb_event == NULL || gw->stop_event == NULL || gw->reload_event == NULL ||
        gw->tick_event == NULL || gw->drain_event == NULL || event_add(gw->mb_event, NULL) < 0 ||
        event_add(gw->stop_event, NULL) < 0 || event_add(gw->reload_event, NULL) < 0 ||
        event_add(gw->tick_event, &tick) < 0)
        return E_NOMEM;
    return 0;
}

/* --- life --- */

static int open_listeners(struct gateway *gw, char *why, size_t why_bytes)
{
    const struct gw_config *config = gw->config;
    int err;

    gw->listeners = mem_array(config->kafka_n, sizeof(struct listener *));
    if (gw->listeners == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < config->kafka_n; i++) {
        err = listener_open(&config->kafka[i], gw->base, on_socket, gw, &gw->listeners[i], why,
                            why_bytes);
        if (err < 0)
            return err;
        gw->listeners_n = i + 1;
    }
    return 0;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value != 0 ? value : fallback;
}

static int start_groups(struct gateway *gw, char *why, size_t why_bytes)
{
    const struct gw_config *c = gw->config;
    const struct groups_opts opts = {
        .path = c->groups_path,
        .clock = gw->shared.clock,
        .limits =
            {
                .min_session_ms = or_default(c->group_min_session_ms, 6000),
                .max_session_ms = or_default(c->group_max_session_ms, 1800000),
                .max_rebalance_ms = or_default(c->group_max_session_ms, 1800000),
                .consumer_session_ms = c->group_consumer_session_ms, /* 0: Kafka's */
                .consumer_heartbeat_ms = c->group_consumer_heartbeat_ms,
                .initial_delay_ms = c->group_initial_delay_ms < 0 ? 200 : c->group_initial_delay_ms,
                .max_members = (size_t)or_default(c->max_group_members, 2000),
                .max_bytes = GROUP_MAX_BYTES,
            },
        .retention_ms = or_default(c->group_retention_ms, (int64_t)7 * 24 * 3600 * 1000),
        .max_groups = (size_t)or_default(c->max_groups, 10000),
    };
    return groups_start(&opts, &gw->shared.groups, why, why_bytes);
}

static int start_workers(struct gateway *gw)
{
    unsigned n = gw->config->workers;
    int err;

    gw->workers = mem_array(n, sizeof *gw->workers);
    gw->drained = mem_array(n, sizeof *gw->drained);
    if (gw->workers == NULL || gw->drained == NULL)
        return E_NOMEM;
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &gw->workers[i];
        if ((err = worker_init(w, i, &gw->shared)) < 0)
            return err;
        gw->drained[i] = (struct drained_msg){.task.run = run_drained, .gw = gw};
        w->control = &gw->mb.ex;
        w->drained = &gw->drained[i].task;
        gw->workers_n = i + 1;
    }
    gw->shared.workers = gw->workers;
    gw->shared.workers_n = n;
    for (unsigned i = 0; i < n; i++) {
        if ((err = worker_start(&gw->workers[i])) < 0)
            return err;
        gw->workers_started = i + 1;
    }
    return 0;
}

static int start_admin(struct gateway *gw, char *why, size_t why_bytes)
{
    const struct admin_host host = {
        .config = gw->config,
        .store = gw->shared.store,
        .clock = gw->shared.clock,
        .control = &gw->mb,
        .jobs = gw->jobs,
        .view = admin_view,
        .unready = admin_unready,
        .await_topic = admin_await_topic,
        .shared = &gw->shared,
        .arg = gw,
    };
    return admin_http_start(&host, gw->base, &gw->admin, why, why_bytes);
}

static int start_registry(struct gateway *gw, char *why, size_t why_bytes)
{
    const struct registry_host host = {.config = gw->config,
                                       .clock = gw->shared.clock,
                                       .control = &gw->mb,
                                       .jobs = gw->jobs,
                                       .store = gw->shared.store,
                                       .auth = gw->shared.auth,
                                       .tls = gw->shared.tls,
                                       .view = admin_view,
                                       .cluster_id = gw->shared.cluster_id,
                                       .arg = gw};

    return gw->config->registry.host == NULL
               ? 0
               : registry_http_start(&host, gw->base, &gw->registry, why, why_bytes);
}

static void on_catalog(void *arg, const struct catalog *c)
{
    struct gateway *gw = arg;

    admin_http_set_catalog(gw->admin, c); /* it borrows: before the old one goes */
    view_build_set_catalog(gw->views, c);
}

static int start_reload(struct gateway *gw)
{
    const struct catalog_reload_opts opts = {.config = gw->config,
                                             .files = gw->config->catalog_files,
                                             .home = &gw->mb.ex,
                                             .jobs = jobpool_executor(gw->jobs),
                                             .on_catalog = on_catalog,
                                             .arg = gw};

    if (gw->config->catalog_path == NULL || gw->config->catalog == NULL)
        return 0;
    return catalog_reload_start(&opts, &gw->reload);
}

static int start_tls(struct gateway *gw, char *why, size_t why_bytes)
{
    int64_t now_s = clock_wall_ns(gw->shared.clock) / 1000000000;
    int err;

    if (gw->config->tls.cert == NULL)
        return 0;
    if ((err = tls_server_new(&gw->config->tls, &gw->shared.tls, why, why_bytes)) < 0)
        return err;
    metric_set(M_TLS_EXPIRES, tls_server_expires_s(gw->shared.tls));
    if (tls_server_expires_s(gw->shared.tls) < now_s)
        log_event(LOG_WARN, "tls.certificate_expired", LF_STR("file", gw->config->tls.cert));
    return 0;
}

static int start(struct gateway *gw, char *why, size_t why_bytes)
{
    const struct gw_config *config = gw->config;
    int err;

    if ((err = listener_check(config, why, why_bytes)) < 0 ||
        (err = start_tls(gw, why, why_bytes)) < 0 || (err = start_events(gw)) < 0 ||
        (err = open_listeners(gw, why, why_bytes)) < 0)
        return err;
    gw->shared.config = config;
    gw->shared.cluster_id = config->cluster_id != NULL ? config->cluster_id : "sluice";
    gw->shared.advertise_host =
        config->advertise_host != NULL ? config->advertise_host : config->kafka[0].host;
    if ((err = jobpool_new(config->load_threads, "load", &gw->shared.loads)) < 0 ||
        (err = gw_cache_new(config->cache_bytes, gw->shared.store, gw->shared.loads,
                            &gw->shared.cache)) < 0 ||
        (err = jobpool_new(config->load_threads, "ingest", &gw->jobs)) < 0 ||
        (err = gw_auth_new(&config->auth, gw->shared.clock, &gw->shared.auth)) < 0 ||
        (config->task_fetch_rate > 0 &&
         (err = quotas_new(config->task_fetch_rate, &gw->shared.quotas)) < 0) ||
        (err = start_groups(gw, why, why_bytes)) < 0 || (err = start_workers(gw)) < 0)
        return err;
    const struct view_build_opts opts = {.store = gw->shared.store,
                                         .mb = &gw->mb,
                                         .on_view = on_view,
                                         .arg = gw,
                                         .catalog = config->catalog,
                                         .anonymous_task = config->anonymous_task};
    if ((err = view_build_start(&opts, &gw->views)) < 0)
        return err;
    if ((err = start_admin(gw, why, why_bytes)) < 0 ||
        (err = start_registry(gw, why, why_bytes)) < 0)
        return err;
    return start_reload(gw);
}

/* libevent's own words: what it says about sockets a peer can bring about. */
static void on_libevent_log(int severity, const char *text)
{
    log_peer(severity == EVENT_LOG_ERR    ? LOG_ERROR
             : severity == EVENT_LOG_WARN ? LOG_WARN
                                          : LOG_DEBUG,
             "libevent", LF_STR("text", text));
}

int gateway_new(const struct gw_config *config, struct jc_store *store, const struct clock *clock,
                struct gateway **out, char *why, size_t why_bytes)
{
    *out = NULL;
    if (why_bytes > 0)
        why[0] = '\0';
    struct gateway *gw = mem_zalloc(sizeof *gw);
    if (gw == NULL)
        return E_NOMEM;
    ASSERT(config->workers >= 1 && config->load_threads >= 1);
    event_set_log_callback(on_libevent_log);
    (void)signal(SIGPIPE, SIG_IGN); /* a client that went away is an error of write(), no more */
    gw->config = config;
    gw->max_connections = connections_allowed(config);
    gw->stop_fd = gw->reload_fd = -1;
    gw->shared.store = store;
    gw->shared.clock = clock != NULL ? clock : clock_system();
    int err = start(gw, why, why_bytes);
    if (err < 0) {
        if (why_bytes > 0 && why[0] == '\0')
            snprintf(why, why_bytes, "the server cannot start: %s", err_text(err));
        gateway_free(gw);
        return err;
    }
    *out = gw;
    return 0;
}

uint16_t gateway_kafka_port(const struct gateway *gw, size_t i)
{
    return i < gw->listeners_n ? listener_port(gw->listeners[i]) : 0;
}

void gateway_ports(const struct gateway *gw, struct gw_ports *out)
{
    *out = (struct gw_ports){
        .kafka = gateway_kafka_port(gw, 0),
        .admin = admin_http_port(gw->admin),
        .registry = registry_http_port(gw->registry),
    };
}

int gateway_run(struct gateway *gw)
{
    if (event_base_loop(gw->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
        return E_IO;
    log_event(LOG_INFO, "gateway.stopped", LF_STR("drain", gw->clean ? "clean" : "cut"));
    return gw->clean ? 0 : E_TIMEOUT;
}

/* Only fails when the counter is full, that is: what is asked for is pending. */
static void ask(int fd)
{
    int saved = errno;
    uint64_t one = 1;

    ssize_t n = write(fd, &one, sizeof one);
    (void)n;
    errno = saved;
}

void gateway_stop(struct gateway *gw)
{
    ask(gw->stop_fd);
}

void gateway_reload(struct gateway *gw)
{
    ask(gw->reload_fd);
}

static void free_events(struct gateway *gw)
{
    struct event *events[] = {gw->mb_event, gw->stop_event, gw->reload_event, gw->tick_event,
                              gw->drain_event};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i] != NULL)
            event_free(events[i]);
    }
    if (gw->base != NULL)
        event_base_free(gw->base);
    if (gw->stop_fd >= 0)
        close(gw->stop_fd);
    if (gw->reload_fd >= 0)
        close(gw->reload_fd);
}

/* In this order: who still works may call on what comes later. */
void gateway_free(struct gateway *gw)
{
    if (gw == NULL)
        return;
    for (size_t i = 0; i < gw->listeners_n; i++)
        listener_free(gw->listeners[i]);
    mem_free(gw->listeners);
    if (gw->reload != NULL)
        catalog_reload_stop(gw->reload);
    if (gw->views != NULL)
        view_build_stop(gw->views); /* ends all waits for a topic, on which requests may hang */
    admin_http_free(gw->admin);
    registry_http_free(gw->registry);
    for (size_t i = 0; i < gw->workers_n; i++) {
        if (i < gw->workers_started)
            worker_stop(&gw->workers[i]);
        else
            worker_close(&gw->workers[i]); /* it never had a thread: we are it */
    }
    while (gw->views != NULL && view_build_busy(gw->views) > 0)
        mailbox_wait(&gw->mb, -1);
    if (gw->shared.groups != NULL)
        groups_stop(gw->shared.groups); /* every parked request goes back to its worker's mailbox */
    gw_cache_free(gw->shared.cache);
    jobpool_free(gw->shared.loads);
    jobpool_free(gw->jobs);
    gw_auth_stop(gw->shared.auth);
    for (size_t i = 0; i < gw->workers_n; i++)
        worker_fini(&gw->workers[i]);
    mem_free(gw->workers);
    groups_free(gw->shared.groups);
    gw_auth_free(gw->shared.auth);
    tls_server_free(gw->shared.tls);
    quotas_free(gw->shared.quotas);
    if (gw->mb_ready)
        mailbox_fini(&gw->mb);
    mem_free(gw->drained);
    catalog_reload_free(gw->reload); /* its last job is joined, the outcome was drained */
    view_build_free(gw->views);
    free_events(gw);
    mem_free(gw);
}
