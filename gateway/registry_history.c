/* See registry_history.h. How versions are kept is in registry_version.c. */
#include "gateway/registry_history.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/catalog.h"
#include "gateway/registry_int.h"
#include "gateway/view.h"

void registry_history_init(struct registry_history *h)
{
    *h = (struct registry_history){NULL, 0, 0};
}

static void text_free(struct span text)
{
    union {
        const uint8_t *in;
        uint8_t *out;
    } u = {.in = text.p};

    mem_free(u.out);
}

static void subject_free(struct registry_subject *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->versions_n; i++)
        text_free(s->versions[i].text);
    mem_free(s->versions);
    mem_free(s->task);
    mem_free(s->name);
    mem_free(s);
}

void registry_history_fini(struct registry_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        subject_free(h->subjects[i]);
    mem_free(h->subjects);
    registry_history_init(h);
}

/* --- subjects --- */

static int order(const struct registry_subject *s, const char *task, struct span name)
{
    int c = strcmp(s->task, task);

    return c != 0 ? c : span_cmp(span_str(s->name), name);
}

/* Where it is, or would be. */
static size_t place(const struct registry_history *h, const char *task, struct span name,
                    bool *found)
{
    size_t lo = 0, hi = h->n;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = order(h->subjects[mid], task, name);

        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct registry_subject *registry_history_find(const struct registry_history *h,
                                                     const char *task, struct span name)
{
    bool found;
    size_t at = place(h, task, name, &found);

    return found ? h->subjects[at] : NULL;
}

struct registry_subject *const *registry_history_of(const struct registry_history *h,
                                                    const char *task, size_t *n)
{
    bool found;
    size_t from = place(h, task, span_of("", 0), &found), to = from;

    while (to < h->n && strcmp(h->subjects[to]->task, task) == 0)
        to++;
    *n = to - from;
    return *n == 0 ? NULL : &h->subjects[from];
}

int registry_history_subject(struct registry_history *h, const char *task, struct span name,
                             struct registry_subject **out)
{
    bool found;
    size_t at = place(h, task, name, &found);

    *out = NULL;
    if (found) {
        *out = h->subjects[at];
        return 0;
    }
    if (h->n == h->cap) {
        size_t cap = h->cap == 0 ? 16 : h->cap * 2;
        struct registry_subject **grown =
            mem_realloc(h->subjects, cap * sizeof(struct registry_subject *));
        if (grown == NULL)
            return E_NOMEM;
        h->subjects = grown;
        h->cap = cap;
    }
    struct registry_subject *s = mem_zalloc(sizeof *s);
    if (s == NULL || (s->task = mem_strdup(task)) == NULL ||
        (s->name = mem_strndup((const char *)name.p, name.n)) == NULL) {
        subject_free(s);
        return E_NOMEM;
    }
    memmove(&h->subjects[at + 1], &h->subjects[at],
            (h->n - at) * sizeof(struct registry_subject *));
    h->subjects[at] = s;
    h->n++;
    *out = s;
    return 0;
}

static void subject_drop(struct registry_history *h, size_t at)
{
    subject_free(h->subjects[at]);
    h->n--;
    memmove(&h->subjects[at], &h->subjects[at + 1],
            (h->n - at) * sizeof(struct registry_subject *));
}

/* --- versions --- */

const struct registry_version *registry_subject_version(const struct registry_subject *s,
                                                        uint64_t number)
{
    for (size_t i = 0; i < s->versions_n; i++) {
        if (s->versions[i].number == number)
            return &s->versions[i];
    }
    return NULL;
}

const struct registry_version *registry_subject_latest(const struct registry_subject *s)
{
    if (s->served > 0)
        return &s->versions[s->served - 1];
    return s->versions_n == 0 ? NULL : &s->versions[s->versions_n - 1];
}

int registry_subject_add(struct registry_subject *s, const struct registry_version *v)
{
    size_t at = s->versions_n;

    while (at > 0 && s->versions[at - 1].number >= v->number)
        at--;
    if (at < s->versions_n && s->versions[at].number == v->number)
        return E_EXISTS;
    if (s->versions_n == s->versions_cap) {
        size_t cap = s->versions_cap == 0 ? 2 : s->versions_cap * 2;
        struct registry_version *grown = mem_realloc(s->versions, cap * sizeof *grown);
        if (grown == NULL)
            return E_NOMEM;
        s->versions = grown;
        s->versions_cap = cap;
    }
    char *text = mem_strndup((const char *)v->text.p, v->text.n);
    if (text == NULL)
        return E_NOMEM;
    memmove(&s->versions[at + 1], &s->versions[at], (s->versions_n - at) * sizeof s->versions[0]);
    s->versions[at] = *v;
    s->versions[at].text = span_of(text, v->text.n);
    s->versions_n++;
    if (s->served > at)
        s->served++;
    if (v->number > s->highest)
        s->highest = v->number;
    return 0;
}

static void version_drop(struct registry_subject *s, size_t at)
{
    ASSERT(s->served != at + 1);
    text_free(s->versions[at].text);
    s->versions_n--;
    memmove(&s->versions[at], &s->versions[at + 1], (s->versions_n - at) * sizeof s->versions[0]);
    if (s->served > at)
        s->served--;
}

/* --- what is served --- */

bool registry_served_of(const struct gw_topic *t, bool key, struct registry_served *out)
{
    const struct gw_encoder *e = t->encoder;

    *out = (struct registry_served){.json = false};
    if (e->avro != NULL && (key ? e->avro_key : e->avro_value)) {
        out->text = key ? sc_avro_key_schema(e->avro->avro) : sc_avro_value_schema(e->avro->avro);
        out->id = key ? sc_avro_key_id(e->avro->avro) : sc_avro_value_id(e->avro->avro);
        return true;
    }
    if (key || t->binding == NULL || t->binding->json_id == 0)
        return false;
    out->json = true;
    out->text = span_str(t->binding->collection->read_schema);
    out->id = t->binding->json_id;
    return true;
}

/* The index of that schema; versions_n: it is new. What is served is looked at first: it is nearly
 * always the same. */
static size_t find_text(const struct registry_subject *s, const struct registry_served *is)
{
    for (size_t i = 0; i <= s->versions_n; i++) {
        size_t at = i == 0 ? s->served : i;

        if (at > 0 && s->versions[at - 1].json == is->json &&
            span_eq(s->versions[at - 1].text, is->text))
            return at - 1;
    }
    return s->versions_n;
}

static int take_one(struct registry_history *h, const char *task, const char *topic, bool key,
                    const struct registry_served *is, int64_t now_ms)
{
    char name[REGISTRY_NAME_MAX];
    struct registry_subject *s;
    int err;

    int n = snprintf(name, sizeof name, "%s%s", topic, key ? "-key" : "-value");
    if (n < 0 || (size_t)n >= sizeof name)
        return 0; /* no path can name it either */
    if ((err = registry_history_subject(h, task, span_str(name), &s)) < 0)
        return err;
    s->seen = true;
    size_t at = find_text(s, is);
    if (at == s->versions_n) {
        const struct registry_version v = {.number = s->highest + 1,
                                           .id = is->id,
                                           .json = is->json,
                                           .since_ms = now_ms,
                                           .text = is->text};
        if (s->highest >= INT32_MAX)
            return 0;
        if ((err = registry_subject_add(s, &v)) < 0)
            return err;
    } else if (s->versions[at].id != is->id) {
        s->versions[at].id = is->id; /* two texts met in another catalog */
        s->versions[at].saved = false;
    }
    s->served = at + 1;
    return 0;
}

static int take_topic(struct registry_history *h, const char *task, const struct gw_topic *t,
                      int64_t now_ms)
{
    struct registry_served is;
    int err = 0;

    for (int key = 1; err == 0 && key >= 0; key--) {
        if (registry_served_of(t, key == 1, &is))
            err = take_one(h, task, t->name, key == 1, &is, now_ms);
    }
    return err;
}

int registry_history_take(struct registry_history *h, const struct gw_view *view, int64_t now_ms)
{
    int err = 0;

    for (size_t i = 0; i < h->n; i++)
        h->subjects[i]->seen = false;
    for (size_t i = 0; i < view->tasks_n; i++) {
        const struct gw_task *t = &view->tasks[i];

        for (size_t k = 0; err == 0 && k < t->topics_n; k++)
            err = take_topic(h, t->name, &t->topics[k], now_ms);
    }
    if (err < 0)
        return err;
    for (size_t i = 0; i < h->n; i++) {
        if (!h->subjects[i]->seen)
            h->subjects[i]->served = 0;
    }
    return 0;
}

/* --- limits --- */

/* Whether the version may go. The highest number stays, or it would be given again. */
static bool may_go(const struct registry_subject *s, size_t at)
{
    if (s->served == at + 1)
        return false;
    return at + 1 < s->versions_n || (s->served == 0 && s->versions_n == 1);
}

/* The first of the subject that may go; versions_n: none. */
static size_t first_to_go(const struct registry_subject *s)
{
    size_t at = 0;

    while (at < s->versions_n && !may_go(s, at))
        at++;
    return at;
}

/* The subject that has a version too much; h->n: none has. */
static size_t choose(const struct registry_history *h)
{
    size_t old_n = 0, old_bytes = 0, oldest = h->n;

    for (size_t i = 0; i < h->n; i++) {
        const struct registry_subject *s = h->subjects[i];
        size_t at = first_to_go(s);

        if (s->versions_n > REGISTRY_VERSIONS_MAX)
            return i;
        for (size_t k = 0; k < s->versions_n; k++) {
            if (s->served != k + 1) {
                old_n++;
                old_bytes += s->versions[k].text.n;
            }
        }
        if (at < s->versions_n &&
            (oldest == h->n ||
             s->versions[at].since_ms <
                 h->subjects[oldest]->versions[first_to_go(h->subjects[oldest])].since_ms))
            oldest = i;
    }
    return old_n > REGISTRY_OLD_MAX || old_bytes > REGISTRY_OLD_BYTES ? oldest : h->n;
}

bool registry_history_prune(struct registry_history *h, struct registry_gone *out)
{
    struct writer w;
    size_t i = choose(h);

    out->key = NULL;
    if (i == h->n)
        return false;
    struct registry_subject *s = h->subjects[i];
    size_t at = first_to_go(s);
    ASSERT(at < s->versions_n);
    wr_init(&w, REGISTRY_KEY_MAX);
    registry_version_key(s, &s->versions[at], &w);
    if (wr_err(&w) == 0)
        out->key = mem_strndup((const char *)w.b->data, w.b->len);
    wr_fini(&w);
    version_drop(s, at);
    if (s->versions_n == 0)
        subject_drop(h, i);
    return true;
}
