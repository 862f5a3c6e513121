/*
 * Topics that this process has seen or the store remembers, and the keys under which the store
 * keeps their generations:
 *
 *   topic/NAME/generation             without a catalog
 *   task/TASK/topic/NAME/generation   of a task; "/" and "%" in its name are %2F and %25
 *
 * Control thread.
 */
#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"
#include "gateway/view_build_int.h"

#define STATE_PREFIX "topic/"
#define TASK_PREFIX  "task/"
#define STATE_SUFFIX "/generation"
#define KEY_MAX      ((size_t)64 * 1024)

/* --- topics --- */

static int topic_order(const struct vb_topic *t, const char *task, const char *name)
{
    int c = strcmp(task, t->task);

    return c != 0 ? c : strcmp(name, t->name);
}

static size_t topic_place(const struct view_build *vb, const char *task, const char *name,
                          bool *found)
{
    size_t lo = 0;
    size_t hi = vb->topics_n;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = topic_order(vb->topics[mid], task, name);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int vb_topic_get(struct view_build *vb, const char *task, const char *name, struct vb_topic **out)
{
    bool found;
    size_t at = topic_place(vb, task, name, &found);

    *out = NULL;
    if (found) {
        *out = vb->topics[at];
        return 0;
    }
    if (vb->topics_n == vb->topics_cap) {
        size_t cap = vb->topics_cap == 0 ? 16 : vb->topics_cap * 2;
        struct vb_topic **grown = mem_realloc(vb->topics, cap * sizeof(struct vb_topic *));
        if (grown == NULL)
            return E_NOMEM;
        vb->topics = grown;
        vb->topics_cap = cap;
    }
    struct vb_topic *t = mem_zalloc(sizeof *t);
    if (t == NULL || (t->task = mem_strdup(task)) == NULL || (t->name = mem_strdup(name)) == NULL) {
        if (t != NULL)
            mem_free(t->task);
        mem_free(t);
        return E_NOMEM;
    }
    t->vb = vb;
    memmove(&vb->topics[at + 1], &vb->topics[at], (vb->topics_n - at) * sizeof(struct vb_topic *));
    vb->topics[at] = t;
    vb->topics_n++;
    *out = t;
    return 0;
}

/* --- what is remembered over restarts --- */

/* Appends text with "/" and "%" escaped, so that it is one segment of a key. */
static void put_segment(struct writer *w, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '/' || *text == '%')
            wr_printf(w, "%%%02X", (unsigned)(uint8_t)*text);
        else
            wr_span(w, span_of(text, 1));
    }
}

char *vb_state_key(const char *task, const char *name)
{
    struct writer w;
    char *key = NULL;

    wr_init(&w, KEY_MAX);
    if (task[0] != '\0') {
        wr_str(&w, TASK_PREFIX);
        put_segment(&w, task);
        wr_str(&w, "/");
    }
    wr_str(&w, STATE_PREFIX);
    wr_str(&w, name);
    wr_str(&w, STATE_SUFFIX);
    if (wr_err(&w) == 0 && w.b != NULL)
        key = mem_strndup((const char *)w.b->data, w.b->len);
    wr_fini(&w);
    return key;
}

/* Undoes put_segment in place; false: it never wrote that. */
static bool segment_decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        if (*text != '%') {
            *to++ = *text;
        } else if (strncmp(text, "%2F", 3) == 0) {
            *to++ = '/';
            text += 2;
        } else if (strncmp(text, "%25", 3) == 0) {
            *to++ = '%';
            text += 2;
        } else {
            return false;
        }
    }
    *to = '\0';
    return true;
}

/* Splits a copy of a key; false: it is no topic's. */
static bool key_split(char *key, const char **task, const char **name)
{
    size_t n = strlen(key);

    *task = "";
    if (n <= sizeof STATE_SUFFIX - 1 ||
        strcmp(key + n - (sizeof STATE_SUFFIX - 1), STATE_SUFFIX) != 0)
        return false;
    key[n - (sizeof STATE_SUFFIX - 1)] = '\0';
    if (strncmp(key, TASK_PREFIX, sizeof TASK_PREFIX - 1) == 0) {
        char *segment = key + sizeof TASK_PREFIX - 1;
        char *end = strchr(segment, '/');

        if (end == NULL)
            return false;
        *end = '\0';
        if (!segment_decode(segment))
            return false;
        *task = segment;
        key = end + 1;
    }
    if (strncmp(key, STATE_PREFIX, sizeof STATE_PREFIX - 1) != 0)
        return false;
    *name = key + sizeof STATE_PREFIX - 1;
    return **name != '\0';
}

static int load_one(struct view_build *vb, const struct jc_kv *kv)
{
    const char *task, *name;
    struct vb_topic *t;
    int err = 0;

    char *key = mem_strdup(kv->key);
    if (key == NULL)
        return E_NOMEM;
    if (!key_split(key, &task, &name)) {
        mem_free(key); /* somebody else's */
        return 0;
    }
    err = vb_topic_get(vb, task, name, &t);
    mem_free(key);
    if (err < 0)
        return err;
    topic_state_fini(&t->state);
    err = topic_state_parse(kv->value, &t->state);
    if (err == E_CORRUPT) {
        /* Going on as if the topic were new could let its epoch fall. */
        log_event(LOG_ERROR, "view.generation_damaged", LF_STR("task", t->task),
                  LF_STR("topic", t->name), LF_STR("effect", "the topic is not served"));
        t->damaged = true;
        err = 0;
    }
    return err;
}

static int scan(struct view_build *vb, const char *prefix);

static void on_loaded(void *arg, int err, const struct jc_kv *list, size_t n)
{
    struct view_build *vb = arg;

    vb->busy--;
    vb->loading = false;
    for (size_t i = 0; err == 0 && i < n; i++)
        err = load_one(vb, &list[i]);
    if (err == E_NOTFOUND)
        err = 0;
    if (err == 0 && !vb->second) {
        vb->second = true;
        if ((err = scan(vb, TASK_PREFIX)) == 0)
            return;
    }
    if (err < 0) {
        metric_add(M_STORE_ERRORS, 1);
        log_event(LOG_ERROR, "view.generations_not_read", LF_ERR(err));
        return; /* the tick tries again */
    }
    vb->loaded = true;
    vb_touch(vb);
}

static int scan(struct view_build *vb, const char *prefix)
{
    struct jc_store *store = vb->opts.store;
    int err = store->ops->kv_scan(store, prefix, &vb->opts.mb->ex, on_loaded, vb);

    if (err < 0)
        return err;
    vb->loading = true;
    vb->busy++;
    return 0;
}

int vb_load(struct view_build *vb)
{
    if (vb->loaded || vb->loading)
        return 0;
    vb->second = false;
    return scan(vb, STATE_PREFIX);
}
