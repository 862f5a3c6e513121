/* See registry_store.h. */
#include "gateway/registry_store.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"
#include "gateway/registry_int.h"
#include "gateway/view.h"
#include "schema/avro_model.h"

#define BATCH_MAX 64 /* versions written at once */

/* What is in one write. */
struct batch {
    size_t n;
    struct jc_kv kv[BATCH_MAX];
    struct writer text[2 * BATCH_MAX]; /* keys, values */
};

struct registry_store {
    struct registry_store_opts opts;
    struct registry_history history;
    bool loading;
    bool loaded; /* false: nothing may be written, it could replace what is there */
    bool failed; /* the last read, or write, did; the tick tries again */
    size_t busy;
    int64_t revision; /* of the view that the history was brought up to; 0: none */
};

static void on_loaded(void *arg, int err, const struct jc_kv *list, size_t n);
static void write_next(struct registry_store *rs);

static int load(struct registry_store *rs)
{
    struct jc_store *store = rs->opts.store;
    int err = store->ops->kv_scan(store, REGISTRY_KEY_PREFIX, &rs->opts.control->ex, on_loaded, rs);

    if (err < 0)
        return err;
    rs->loading = true;
    rs->busy++;
    return 0;
}

static void tell(struct registry_store *rs)
{
    if (!rs->loading && rs->busy == 0)
        rs->opts.settled(rs->opts.arg);
}

static void damaged(const char *key)
{
    metric_add(M_STORE_ERRORS, 1);
    log_event(LOG_ERROR, "registry.version_damaged", LF_STR("key", key),
              LF_STR("effect", "this version is not shown; its number is not given again"));
}

static int take_list(struct registry_store *rs, const struct jc_kv *list, size_t n)
{
    struct registry_history fresh;
    int err = 0;

    registry_history_init(&fresh);
    for (size_t i = 0; err == 0 && i < n; i++) {
        err = registry_history_load(&fresh, span_str(list[i].key), list[i].value);
        if (err == E_CORRUPT) {
            damaged(list[i].key);
            err = 0;
        }
    }
    if (err < 0) {
        registry_history_fini(&fresh);
        return err;
    }
    registry_history_fini(&rs->history);
    rs->history = fresh;
    return 0;
}

static void on_loaded(void *arg, int err, const struct jc_kv *list, size_t n)
{
    struct registry_store *rs = arg;

    rs->busy--;
    rs->loading = false;
    if (err == E_NOTFOUND) {
        err = 0;
        n = 0;
    }
    if (err == 0)
        err = take_list(rs, list, n);
    rs->failed = err < 0;
    rs->loaded = err == 0;
    rs->revision = 0; /* the view comes again */
    if (err < 0 && err != E_CLOSED) {
        metric_add(M_STORE_ERRORS, 1);
        log_event(LOG_ERROR, "registry.history_not_read", LF_ERR(err),
                  LF_STR("effect", "only the schemas served now are shown"));
    }
    tell(rs);
}

/* --- writing --- */

static void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        wr_fini(&b->text[2 * i]);
        wr_fini(&b->text[2 * i + 1]);
    }
    mem_free(b);
}

/* Which versions the store has is not known: all are written again, which changes nothing. */
static void write_failed(struct registry_store *rs, int err)
{
    for (size_t i = 0; i < rs->history.n; i++) {
        struct registry_subject *s = rs->history.subjects[i];

        for (size_t k = 0; k < s->versions_n; k++)
            s->versions[k].saved = false;
    }
    rs->failed = true;
    metric_add(M_STORE_ERRORS, 1);
    if (err != E_CLOSED)
        log_event(LOG_ERROR, "registry.history_not_written", LF_ERR(err),
                  LF_STR("effect", "new versions are shown, but a restart may forget them"));
}

static void on_written(void *arg, int err)
{
    struct registry_store *rs = arg;

    rs->busy--;
    if (err < 0)
        write_failed(rs, err);
    else
        write_next(rs);
    tell(rs);
}

static bool batch_add(struct batch *b, const struct registry_subject *s,
                      const struct registry_version *v)
{
    struct writer *key = &b->text[2 * b->n], *value = key + 1;

    wr_init(key, REGISTRY_KEY_MAX);
    wr_init(value, 8 * SC_SCHEMA_MAX_BYTES);
    b->n++;
    registry_version_key(s, v, key);
    wr_u8(key, '\0');
    registry_version_write(v, value);
    if (wr_err(key) < 0 || wr_err(value) < 0)
        return false;
    b->kv[b->n - 1] =
        (struct jc_kv){.key = (const char *)key->b->data, .value = blob_span(value->b)};
    return true;
}

/* Fills it with what is not saved; versions in it count as saved. */
static int batch_fill(struct registry_store *rs, struct batch *b)
{
    for (size_t i = 0; i < rs->history.n; i++) {
        struct registry_subject *s = rs->history.subjects[i];

        for (size_t k = 0; k < s->versions_n; k++) {
            if (s->versions[k].saved)
                continue;
            if (b->n == BATCH_MAX)
                return 0;
            if (!batch_add(b, s, &s->versions[k]))
                return E_NOMEM;
            s->versions[k].saved = true;
        }
    }
    return 0;
}

static void write_next(struct registry_store *rs)
{
    struct jc_store *store = rs->opts.store;
    struct batch *b;
    int err = E_NOMEM;

    if (!rs->loaded || rs->busy > 0)
        return;
    if ((b = mem_zalloc(sizeof *b)) != NULL && (err = batch_fill(rs, b)) == 0 && b->n > 0) {
        err = store->ops->kv_set(store, b->kv, b->n, &rs->opts.control->ex, on_written, rs);
        rs->busy += err == 0;
    }
    if (b != NULL)
        batch_free(b);
    if (err < 0)
        write_failed(rs, err);
}

static void on_forgotten(void *arg, int err)
{
    struct registry_store *rs = arg;

    (void)err; /* it is there after the next start, and goes again */
    rs->busy--;
    if (!rs->failed) /* what came meanwhile had to wait for this */
        write_next(rs);
    tell(rs);
}

/* Too old ones go; the store forgets what has expired. */
static void prune(struct registry_store *rs)
{
    struct jc_store *store = rs->opts.store;
    struct registry_gone gone;

    while (registry_history_prune(&rs->history, &gone)) {
        const struct jc_kv kv = {.key = gone.key, .value = span_str("{}"), .expires_ms = 1};

        if (gone.key != NULL && rs->loaded) {
            log_event(LOG_INFO, "registry.version_forgotten", LF_STR("key", gone.key));
            rs->busy++;
            if (store->ops->kv_set(store, &kv, 1, &rs->opts.control->ex, on_forgotten, rs) < 0)
                rs->busy--;
        }
        mem_free(gone.key);
    }
}

/* --- views --- */

/* What a new version breaks: readers that hold the one before it. Nobody is kept from it: what is
 * served is the catalog's to say. */
static void say_breaks(const struct registry_store *rs, const struct registry_subject *s,
                       const struct registry_version *v)
{
    const struct registry_version *old = v == s->versions ? NULL : v - 1;
    struct sc_avro_model *model = NULL;
    struct sc_schema_error why;
    struct writer messages;
    bool good = true;

    if (old == NULL || (!v->json && sc_avro_model_new(v->text, &why, &model) < 0))
        return;
    const struct registry_new is = {.text = v->text, .avro = model};
    wr_init(&messages, (size_t)1 << 20);
    int err = registry_compat_version(rs->opts.level, &is, old, &messages, &good);
    if (err == 0 && !good && wr_err(&messages) == 0)
        log_event(LOG_WARN, "registry.incompatible_version", LF_STR("task", s->task),
                  LF_STR("subject", s->name), LF_UINT("version", v->number),
                  LF_UINT("before", old->number),
                  LF_STR("level", registry_level_name(rs->opts.level)),
                  LF_SPAN("reasons", span_of(messages.b->data,
                                             messages.b->len < 400 ? messages.b->len : 400)));
    wr_fini(&messages);
    sc_avro_model_free(model);
}

/* Says what is new. */
static void say_new(const struct registry_store *rs)
{
    for (size_t i = 0; i < rs->history.n; i++) {
        const struct registry_subject *s = rs->history.subjects[i];
        const struct registry_version *v = s->served == 0 ? NULL : &s->versions[s->served - 1];

        if (v == NULL || v->saved || v->number == 1)
            continue;
        log_event(LOG_INFO, "registry.new_version", LF_STR("task", s->task),
                  LF_STR("subject", s->name), LF_UINT("version", v->number), LF_UINT("id", v->id));
        say_breaks(rs, s, v);
    }
}

void registry_store_view(struct registry_store *rs, const struct gw_view *view)
{
    if (rs->loading || view->revision == rs->revision)
        return;
    int64_t now_ms = clock_wall_ns(rs->opts.clock) / 1000000;
    int err = registry_history_take(&rs->history, view, now_ms);
    if (err < 0) {
        log_event(LOG_ERROR, "registry.history_behind", LF_ERR(err));
        return;
    }
    rs->revision = view->revision;
    say_new(rs);
    write_next(rs);
    prune(rs);
}

void registry_store_tick(struct registry_store *rs, const struct gw_view *view)
{
    if (rs->loading || rs->busy > 0)
        return;
    if (!rs->loaded) {
        if (load(rs) < 0)
            rs->failed = true;
        return;
    }
    if (view != NULL && view->revision != rs->revision)
        registry_store_view(rs, view);
    if (rs->failed) {
        rs->failed = false;
        write_next(rs);
    }
    tell(rs);
}

bool registry_store_settled(const struct registry_store *rs, const struct gw_view *view)
{
    return !rs->loading && rs->busy == 0 && view != NULL && rs->revision == view->revision;
}

const struct registry_history *registry_store_history(const struct registry_store *rs)
{
    return &rs->history;
}

size_t registry_store_busy(const struct registry_store *rs)
{
    return rs == NULL ? 0 : rs->busy;
}

/* --- life --- */

int registry_store_start(const struct registry_store_opts *opts, struct registry_store **out)
{
    struct registry_store *rs = mem_zalloc(sizeof *rs);
    int err;

    *out = NULL;
    if (rs == NULL)
        return E_NOMEM;
    rs->opts = *opts;
    registry_history_init(&rs->history);
    if ((err = load(rs)) < 0) {
        mem_free(rs);
        return err;
    }
    *out = rs;
    return 0;
}

void registry_store_free(struct registry_store *rs)
{
    if (rs == NULL)
        return;
    ASSERT(rs->busy == 0);
    registry_history_fini(&rs->history);
    mem_free(rs);
}
