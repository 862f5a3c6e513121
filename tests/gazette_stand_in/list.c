/*
 * List. A snapshot is all journals that match, by name, at most 25 a message, header in the first.
 * A watch gets one at once (or, resumed, after the revision it has seen), and another when the
 * number of matches or their highest mod_revision changed; each is followed by an empty message.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define ROWS_MAX 25

struct row {
    Gz__ListedJournal m;
    struct si_header h; /* for its route */
};

struct page {
    struct row rows[ROWS_MAX];
    Gz__ListedJournal *list[ROWS_MAX];
    size_t n;
    bool first;
};

static void page_send(struct si_call *c, struct page *p)
{
    Gz__ListResponse m;
    struct si_header h, empty = {0};

    gz__list_response__init(&m);
    si_header_init(c->si, NULL, &h);
    if (!p->first) { /* a header of empty parts */
        gz__header__init(&empty.h);
        gz__process_id__init(&empty.id);
        gz__route__init(&empty.route);
        gz__etcd__init(&empty.etcd);
        empty.h.process_id = &empty.id;
        empty.h.route = &empty.route;
        empty.h.etcd = &empty.etcd;
    }
    m.header = p->first ? &h.h : &empty.h;
    m.journals = p->list;
    m.n_journals = p->n;
    si_call_send(c, &m.base);
    for (size_t i = 0; i < p->n; i++)
        gz__journal_spec__free_unpacked(p->rows[i].m.spec, NULL);
    p->n = 0;
    p->first = false;
}

static void page_add(struct si_call *c, struct page *p, const struct si_journal *j,
                     Gz__JournalSpec *spec)
{
    struct row *r = &p->rows[p->n];

    if (p->n == ROWS_MAX) {
        page_send(c, p);
        r = &p->rows[0];
    }
    gz__listed_journal__init(&r->m);
    si_header_init(c->si, j, &r->h);
    r->m.spec = spec;
    r->m.mod_revision = j->mod_revision;
    r->m.create_revision = j->create_revision;
    r->m.route = &r->h.route;
    p->list[p->n++] = &r->m;
}

static bool seen(const struct si_call *c, const struct si_journal *j, Gz__JournalSpec **spec)
{
    if ((*spec = si_spec(j)) == NULL)
        return false;
    if (si_matches(c->u.list.rq->selector, (*spec)->labels, j->name) &&
        si_matches(c->claims.sel, (*spec)->labels, j->name))
        return true;
    gz__journal_spec__free_unpacked(*spec, NULL);
    return false;
}

static bool changed(struct si_call *c)
{
    struct si_journal *j;
    Gz__JournalSpec *spec;
    int64_t n = 0, highest = -1;

    TAILQ_FOREACH(j, &c->si->journals, link)
    {
        if (!seen(c, j, &spec))
            continue;
        gz__journal_spec__free_unpacked(spec, NULL);
        n++;
        if (j->mod_revision > highest)
            highest = j->mod_revision;
    }
    if (n == c->u.list.seen_n && highest == c->u.list.seen_revision)
        return false;
    c->u.list.seen_n = n;
    c->u.list.seen_revision = highest;
    return true;
}

static void snapshot(struct si_call *c)
{
    struct page *p = mem_zalloc(sizeof *p);
    struct si_journal *j;
    Gz__JournalSpec *spec;

    if (p == NULL) {
        si_call_end(c, 13, "out of memory");
        return;
    }
    p->first = true;
    TAILQ_FOREACH(j, &c->si->journals, link)
    {
        if (seen(c, j, &spec))
            page_add(c, p, j, spec);
    }
    page_send(c, p);
    if (c->u.list.rq->watch)
        page_send(c, p); /* the mark: nothing in it */
    mem_free(p);
}

void si_list_pull(struct si_call *c)
{
    const Gz__ListRequest *rq = c->u.list.rq;

    if (rq == NULL || evbuffer_get_length(c->out) > 0 ||
        c->si->revision < c->u.list.after_revision ||
        (c->u.list.seen_n >= 0 && c->si->watch_at_ms > si_now_ms()) || !changed(c))
        return;
    snapshot(c);
    if (!rq->watch)
        si_call_end(c, 0, "%s", "");
}

static bool check_prefixes(const Gz__LabelSet *set, const char *field, char *why, size_t n)
{
    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        const Gz__Label *l = set->labels[i];
        size_t len = strlen(l->value);
        if (strcmp(l->name, "prefix") == 0 && (len == 0 || l->value[len - 1] != '/')) {
            (void)snprintf(why, n, "Selector.%s.Labels[\"prefix\"]: expected trailing '/' ([%s])",
                           field, l->value);
            return false;
        }
    }
    return true;
}

void si_list_message(struct si_call *c, struct span msg)
{
    char why[400];

    if (c->u.list.rq != NULL)
        return;
    c->u.list.rq = gz__list_request__unpack(NULL, msg.n, msg.p);
    if (c->u.list.rq == NULL) {
        si_call_end(c, 13, "grpc: failed to unmarshal the received message");
        return;
    }
    const Gz__LabelSelector *s = c->u.list.rq->selector;
    if (s != NULL && (!si_check_labels(s->include, true, "Selector.Include", why, sizeof why) ||
                      !si_check_labels(s->exclude, true, "Selector.Exclude", why, sizeof why) ||
                      !check_prefixes(s->include, "Include", why, sizeof why) ||
                      !check_prefixes(s->exclude, "Exclude", why, sizeof why))) {
        si_call_end(c, 2, "%s", why);
        return;
    }
    c->u.list.seen_n = c->u.list.seen_revision = -1;
    const Gz__Header *resume = c->u.list.rq->watch_resume;
    if (resume != NULL && resume->etcd != NULL)
        c->u.list.after_revision = resume->etcd->revision + 1;
    si_call_queue(c, &c->si->watchers);
}
