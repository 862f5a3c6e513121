/* Journals of a folder on their way to a cluster. See move.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/move.h"
#include "base/mem.h"

#define LIST_MS 15000

/* --- one call, one answer --- */

struct wait {
    bool ended;
    int err;
    struct move_journal *into;
};

static int wait_for(struct move *m, struct wait *w)
{
    while (!w->ended)
        (void)mailbox_wait(&m->mb, -1);
    return w->err;
}

static void on_done(void *arg, int err)
{
    struct wait *w = arg;

    w->err = err;
    w->ended = true;
}

static void on_applied(void *arg, int err, int64_t revision)
{
    (void)revision;
    on_done(arg, err);
}

static void on_fragments(void *arg, int err, const struct jc_fragment *list, size_t n)
{
    struct wait *w = arg;

    if (err == 0 && w->into != NULL) {
        w->into->fragments = mem_array(n + 1, sizeof list[0]);
        if (w->into->fragments == NULL)
            err = E_NOMEM;
        else if (n > 0)
            memcpy(w->into->fragments, list, n * sizeof list[0]);
        w->into->fragments_n = err < 0 ? 0 : n;
    }
    on_done(w, err);
}

static int ask_fragments(struct move *m, struct jc_store *s, const struct jc_journal *j,
                         struct move_journal *into)
{
    struct wait w = {.into = into};
    int err = s->ops->fragments(s, j, &m->mb.ex, on_fragments, &w);

    return err < 0 ? err : wait_for(m, &w);
}

static int apply(struct move *m, const struct jc_change *c, size_t n)
{
    struct wait w = {.ended = false};
    int err = m->cluster->ops->apply(m->cluster, c, n, &m->mb.ex, on_applied, &w);

    return err < 0 ? err : wait_for(m, &w);
}

static int say(struct move *m, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int say(struct move *m, int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(m->why, sizeof m->why, fmt, ap);
    va_end(ap);
    return err;
}

/* --- what there is --- */

static int by_rank(const void *a, const void *b)
{
    const struct jc_journal *x = ((const struct move_journal *)a)->from;
    const struct jc_journal *y = ((const struct move_journal *)b)->from;

    if (x->create_revision != y->create_revision)
        return x->create_revision < y->create_revision ? -1 : 1;
    return strcmp(x->spec.name, y->spec.name);
}

int move_look(struct move *m)
{
    const struct jc_listing *l;
    int err = store_sync_list(m->local, &m->mb, &l);

    if (err < 0)
        return err;
    if ((m->v = mem_array(l->n + 1, sizeof *m->v)) == NULL) {
        jc_listing_unref(l);
        return E_NOMEM;
    }
    for (size_t i = 0; err == 0 && i < l->n; i++) {
        struct move_journal *j = &m->v[m->n++];
        *j = (struct move_journal){.from = jc_journal_ref(l->items[i])};
        if ((err = store_sync_heads(m->local, &m->mb, j->from, &j->heads)) == 0)
            err = ask_fragments(m, m->local, j->from, j);
    }
    jc_listing_unref(l);
    qsort(m->v, m->n, sizeof *m->v, by_rank);
    return err;
}

void move_fini(struct move *m)
{
    for (size_t i = 0; i < m->n; i++) {
        jc_journal_unref(m->v[i].from);
        jc_journal_unref(m->v[i].to);
        mem_free(m->v[i].fragments);
    }
    mem_free(m->v);
    m->v = NULL;
    m->n = 0;
}

/* --- in the cluster --- */

/* By the cluster: nothing was made. Behind any other error it may have been. */
static bool refused(int err)
{
    return err == E_CONFLICT || err == E_EXISTS || err == E_INVALID || err == E_DENIED ||
           err == E_UNSUPPORTED;
}

/* Those of one create revision are made in one change, and rank by name again. */
static int make_group(struct move *m, size_t at, size_t *end)
{
    struct jc_change *c;
    size_t n = 0;

    while (at + n < m->n && m->v[at + n].from->create_revision == m->v[at].from->create_revision)
        n++;
    *end = at + n;
    if ((c = mem_array(n, sizeof *c)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        c[i] = (struct jc_change){.upsert = &m->v[at + i].from->spec, .expect_mod_revision = 0};
    int err = apply(m, c, n);
    for (size_t i = 0; i < n; i++)
        m->v[at + i].made = err == 0 ? MOVE_MADE : refused(err) ? MOVE_NOT_MADE : MOVE_DOUBT;
    mem_free(c);
    if (err < 0)
        return say(m, err, "cannot make %s and its neighbours: %s", m->v[at].from->spec.name,
                   err_text(err));
    return 0;
}

/* The journals as the cluster made them. */
static int find_made(struct move *m, size_t at, size_t end)
{
    const struct jc_listing *l;
    int err = store_sync_list_within(m->cluster, &m->mb, LIST_MS, &l);

    if (err < 0)
        return err;
    for (size_t i = at; i < end && err == 0; i++) {
        const struct jc_journal *j = jc_listing_find(l, span_str(m->v[i].from->spec.name));
        if (j == NULL)
            err = say(m, E_NOTFOUND, "%s is gone again", m->v[i].from->spec.name);
        else
            m->v[i].to = jc_journal_ref(j);
    }
    jc_listing_unref(l);
    return err;
}

static bool listed(const struct jc_fragment *f, const struct move_journal *in)
{
    for (size_t i = 0; i < in->fragments_n; i++) {
        const struct jc_fragment *g = &in->fragments[i];
        if (f->begin == g->begin && f->end == g->end && strcmp(f->sha1, g->sha1) == 0)
            return true;
    }
    return false;
}

static int take_over(struct move *m, const struct move_journal *j)
{
    struct move_journal there = {0};
    struct wait w = {.ended = false};
    const char *name = j->from->spec.name;
    int err = jc_gazette_adopt(m->cluster, j->to, &j->heads, &m->mb.ex, on_done, &w);

    if (err == 0)
        err = wait_for(m, &w);
    if (err == E_CONFLICT)
        return say(m, err,
                   "%s: the brokers do not see it end at %" PRId64
                   " as this folder does: are its fragments in the store?",
                   name, j->heads.write_head);
    if (err < 0)
        return say(m, err, "%s: %s", name, err_text(err));
    err = ask_fragments(m, m->cluster, j->to, &there);
    for (size_t i = 0; err == 0 && i < j->fragments_n; i++) {
        if (!listed(&j->fragments[i], &there))
            err = say(m, E_CONFLICT,
                      "%s: the brokers do not see the fragment that begins at %" PRId64, name,
                      j->fragments[i].begin);
    }
    mem_free(there.fragments);
    return err;
}

/* The last ones first, as a cluster's owner would. One that is in doubt may be somebody else's. */
void move_unmake(struct move *m)
{
    for (size_t i = m->n; i-- > 0;) {
        const char *name = m->v[i].from->spec.name;
        const struct jc_change c = {.delete_name = name, .expect_mod_revision = -1};

        int err = m->v[i].made == MOVE_MADE ? apply(m, &c, 1) : 0;
        if (err < 0 && err != E_NOTFOUND)
            (void)fprintf(stderr, "journal %s is left in the cluster\n", name);
        else if (m->v[i].made == MOVE_DOUBT)
            (void)fprintf(stderr, "journal %s may be left in the cluster\n", name);
        m->v[i].made = MOVE_NOT_MADE;
    }
}

static int refuse_known(struct move *m)
{
    const struct jc_listing *l;
    int err = store_sync_list_within(m->cluster, &m->mb, LIST_MS, &l);

    if (err < 0)
        return say(m, err, "no broker answers: %s", err_text(err));
    for (size_t i = 0; i < m->n && err == 0; i++) {
        if (jc_listing_find(l, span_str(m->v[i].from->spec.name)) != NULL)
            err = say(m, E_EXISTS, "the cluster has a journal %s already", m->v[i].from->spec.name);
    }
    jc_listing_unref(l);
    return err;
}

int move_journals(struct move *m)
{
    int err = refuse_known(m);

    if (err < 0)
        return err;
    for (size_t at = 0, end = 0; err == 0 && at < m->n; at = end) {
        if ((err = make_group(m, at, &end)) == 0)
            err = find_made(m, at, end);
    }
    for (size_t i = 0; err == 0 && i < m->n; i++)
        err = take_over(m, &m->v[i]);
    return err;
}
