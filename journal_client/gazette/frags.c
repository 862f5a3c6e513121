/*
 * Fragments of a journal, as a broker lists them: those in its stores with a signed URL, and those
 * that brokers still hold alone.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

#define URL_SECONDS  7200 /* how long signed URLs are asked to hold */
#define LIST_MS      60000
#define MOD_TIME_MAX (INT64_C(1) << 40)
#define FIRST_MS     15000

struct gz_frags_call {
    struct gz_journal *j;
    struct gz_call *call;
    struct gz_frags list;
    int64_t next;
    bool first_only;
    int err, status;
    gz_frags_fn *done;
    void *arg;
};

void gz_frags_fini(struct gz_frags *f)
{
    for (size_t i = 0; i < f->n; i++)
        mem_free(f->v[i].url);
    mem_free(f->v);
    *f = (struct gz_frags){0};
}

size_t gz_frags_behind(const struct gz_frags *f, int64_t pos)
{
    size_t low = 0, high = f->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->v[mid].end <= pos)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int add(struct gz_frags *f, const Gz__ListedFragment *l)
{
    const Gz__Fragment *s = l->spec;
    struct gz_frag *to;

    if (s == NULL || s->begin < 0 || s->end <= s->begin || s->end > INT64_MAX / 2)
        return 0; /* an empty one, or none of ours */
    if (f->n > 0 && s->end <= f->v[f->n - 1].end)
        return 0; /* covered */
    if (f->n > 0 && s->begin <= f->v[f->n - 1].begin)
        mem_free(f->v[--f->n].url); /* it covers the last one */
    if (f->n == f->cap) {
        size_t cap = f->cap == 0 ? 16 : f->cap * 2;
        struct gz_frag *v = mem_realloc(f->v, cap * sizeof *v);
        if (v == NULL)
            return E_NOMEM;
        f->v = v;
        f->cap = cap;
    }
    to = &f->v[f->n];
    *to = (struct gz_frag){
        .begin = s->begin, .end = s->end, .mod_time_s = s->mod_time, .codec = s->compression_codec};
    if (to->mod_time_s < 0 || to->mod_time_s > MOD_TIME_MAX)
        to->mod_time_s = s->mod_time < 0 ? 0 : MOD_TIME_MAX;
    if (s->sum != NULL)
        (void)snprintf(to->sha1, sizeof to->sha1, "%016llx%016llx%08lx",
                       (unsigned long long)s->sum->part1, (unsigned long long)s->sum->part2,
                       (unsigned long)s->sum->part3);
    if (l->signed_url != NULL && l->signed_url[0] != '\0' &&
        (to->url = mem_strdup(l->signed_url)) == NULL)
        return E_NOMEM;
    f->n++;
    return 0;
}

static void on_message(void *arg, struct span msg)
{
    struct gz_frags_call *c = arg;
    Gz__FragmentsResponse *m = gz__fragments_response__unpack(NULL, msg.n, msg.p);

    if (m == NULL) {
        c->err = E_SYNTAX;
        return;
    }
    c->status = m->status;
    if (m->next_page_token != 0 && m->next_page_token <= c->next)
        c->err = E_SYNTAX; /* pages that lead back would be asked for without end */
    c->next = m->next_page_token;
    for (size_t i = 0; i < m->n_fragments && c->err == 0; i++)
        c->err = add(&c->list, m->fragments[i]);
    gz__fragments_response__free_unpacked(m, NULL);
}

static int ask(struct gz_frags_call *c);

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_frags_call *c = arg;

    c->call = NULL;
    if (end->err < 0)
        c->err = end->err;
    if (c->err == 0 && c->status < 0)
        c->err = E_AGAIN; /* no answer came */
    c->list.more = c->first_only && c->next > 0;
    if (c->err == 0 && c->status == GZ_OK && c->next > 0 && !c->first_only) {
        c->status = -1;
        if ((c->err = ask(c)) == 0)
            return;
    }
    c->done(c->arg, c->err, c->status, &c->list);
    gz_frags_cancel(c);
}

static int ask(struct gz_frags_call *c)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = c};
    Gz__FragmentsRequest rq;
    gz__fragments_request__init(&rq);
    Gz__Duration ttl;
    gz__duration__init(&ttl);

    ttl.seconds = URL_SECONDS;
    rq.journal = c->j->name;
    rq.next_page_token = c->next;
    rq.page_limit = c->first_only ? 1 : 1000;
    if (!c->first_only)
        rq.signature_ttl = &ttl;
    return gz_rpc(c->j->store, c->j->endpoint, "ListFragments", &rq.base,
                  c->first_only ? FIRST_MS : LIST_MS, &cb, &c->call);
}

static int start(struct gz_journal *j, bool first_only, gz_frags_fn *done, void *arg,
                 struct gz_frags_call **out)
{
    struct gz_frags_call *c = mem_zalloc(sizeof *c);
    int err;

    *out = NULL;
    if (c == NULL)
        return E_NOMEM;
    c->j = gz_journal_ref(j);
    c->done = done;
    c->arg = arg;
    c->status = -1;
    c->first_only = first_only;
    c->list.at_ms = gz_mono_ms(j->store);
    c->list.at_head = j->next.write_head;
    if (j->confirmed && j->confirmed_head > c->list.at_head)
        c->list.at_head = j->confirmed_head;
    if ((err = ask(c)) < 0) {
        gz_frags_cancel(c);
        return err;
    }
    *out = c;
    return 0;
}

int gz_frags_ask(struct gz_journal *j, gz_frags_fn *done, void *arg, struct gz_frags_call **out)
{
    return start(j, false, done, arg, out);
}

int gz_frags_ask_first(struct gz_journal *j, gz_frags_fn *done, void *arg,
                       struct gz_frags_call **out)
{
    return start(j, true, done, arg, out);
}

void gz_frags_cancel(struct gz_frags_call *c)
{
    if (c->call != NULL)
        gz_call_cancel(c->call);
    gz_frags_fini(&c->list);
    gz_journal_unref(c->j);
    mem_free(c);
}
