/* The key-values of a folder on their way to the gateway's state beside a cluster. See move.h. */
#include <string.h>

#include "app/move.h"
#include "base/mem.h"
#include "gateway/topic_state.h"

#define GENERATION  "/generation" /* gateway/view_build_memory.c */
#define PRODUCER    "producer/id" /* a new one: no clock of the old one can be in its way */
#define VALUE_BYTES (64u << 20)
#define AT_ONCE     256

static int64_t revision_of(const struct move *m, const struct topic_pair *p)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct jc_journal *from = m->v[i].from;
        if (from->create_revision == p->create_revision && strcmp(from->spec.name, p->name) == 0)
            return m->v[i].to->create_revision;
    }
    /* Gone since it was served: of whatever revision, the list does not go on from it. */
    return p->create_revision;
}

int move_generation(const struct move *m, struct span value, struct blob **out)
{
    struct topic_state state;
    struct writer w;
    int err = topic_state_parse(value, &state);

    *out = NULL;
    if (err < 0)
        return err;
    for (size_t i = 0; i < state.pairs_n; i++)
        state.pairs[i].create_revision = revision_of(m, &state.pairs[i]);
    wr_init(&w, VALUE_BYTES);
    topic_state_write(&state, &w);
    if ((err = wr_err(&w)) == 0 && (*out = wr_take(&w)) == NULL)
        err = E_NOMEM;
    wr_fini(&w);
    topic_state_fini(&state);
    return err;
}

/* Everything that a scan brought, copied. */
struct scan {
    struct move *m;
    struct jc_kv *v;
    struct blob **values;
    size_t n;
    int err;
    bool ended;
};

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);

    return n >= k && strcmp(s + n - k, suffix) == 0;
}

static int copy_one(struct scan *s, const struct jc_kv *kv)
{
    struct blob *value = NULL;
    int err = 0;

    if (strcmp(kv->key, PRODUCER) == 0 || strcmp(kv->key, MOVE_MARK) == 0)
        return 0;
    if (has_suffix(kv->key, GENERATION))
        err = move_generation(s->m, kv->value, &value);
    else
        value = blob_copy(kv->value);
    if (err < 0)
        return err;
    char *key = mem_strdup(kv->key);
    if (key == NULL || value == NULL) {
        mem_free(key);
        blob_unref(value);
        return E_NOMEM;
    }
    s->values[s->n] = value;
    s->v[s->n++] =
        (struct jc_kv){.key = key, .value = blob_span(value), .expires_ms = kv->expires_ms};
    return 0;
}

static void on_scan(void *arg, int err, const struct jc_kv *list, size_t n)
{
    struct scan *s = arg;

    if (err == 0) {
        s->v = mem_array(n + 1, sizeof *s->v);
        s->values = mem_array(n + 1, sizeof(struct blob *));
        err = s->v == NULL || s->values == NULL ? E_NOMEM : 0;
    }
    for (size_t i = 0; err == 0 && i < n; i++)
        err = copy_one(s, &list[i]);
    s->err = err;
    s->ended = true;
}

static void scan_fini(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        union {
            const char *in;
            char *out;
        } u = {.in = s->v[i].key};
        mem_free(u.out);
        blob_unref(s->values[i]);
    }
    mem_free(s->v);
    mem_free(s->values);
}

int move_values(struct move *m)
{
    struct scan s = {.m = m};
    int err = m->local->ops->kv_scan(m->local, "", &m->mb.ex, on_scan, &s);

    while (err == 0 && !s.ended)
        (void)mailbox_wait(&m->mb, -1);
    if (err == 0)
        err = s.err;
    for (size_t at = 0; err == 0 && at < s.n; at += AT_ONCE)
        err = store_sync_kv_put(m->cluster, &m->mb, s.v + at,
                                s.n - at < AT_ONCE ? s.n - at : AT_ONCE);
    scan_fini(&s);
    return err;
}
