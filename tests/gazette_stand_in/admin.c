/* The functions of stand_in.h that change or ask what the stand-in holds: each runs on its thread.
 */
#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

/* --- on the thread --- */

/* Does fn to one journal, or to all. */
static int each(struct stand_in *si, const char *journal,
                int (*fn)(struct stand_in *si, struct si_journal *j, int64_t v), int64_t v)
{
    struct si_journal *j = journal == NULL ? NULL : si_find(si, journal);
    int err = 0;

    if (journal != NULL)
        return j == NULL ? E_NOTFOUND : fn(si, j, v);
    TAILQ_FOREACH(j, &si->journals, link)
    {
        if (err == 0)
            err = fn(si, j, v);
    }
    return err;
}

static int close_one(struct stand_in *si, struct si_journal *j, int64_t v)
{
    (void)v;
    int err = si_close(si, j, true);
    si_wake_readers(j);
    return err;
}

int si_do_close(struct stand_in *si, const char *journal)
{
    return each(si, journal, close_one, 0);
}

static int lose_one(struct stand_in *si, struct si_journal *j, int64_t offset)
{
    (void)si;
    si_drop_from(j, offset);
    if (j->spool_end > offset)
        j->spool_end = offset;
    return 0;
}

int si_do_lose(struct stand_in *si, const char *journal, int64_t offset)
{
    return each(si, journal, lose_one, offset);
}

static int down_one(struct stand_in *si, struct si_journal *j, int64_t v)
{
    (void)si;
    (void)v;
    while (j->n > 0 && j->frags[j->n - 1]->object == NULL) {
        si_frag_free(j->frags[j->n - 1]);
        j->n--;
    }
    for (size_t i = 0; i < j->n; i++)
        j->frags[i]->listed = true;
    j->spool_end = 0;
    if (j->registers != NULL)
        gz__label_set__free_unpacked(j->registers, NULL);
    j->registers = NULL;
    return 0;
}

int si_do_all_down(struct stand_in *si, const char *journal)
{
    si_do_end_calls(si, STAND_IN_ANY, STAND_IN_RESET_CONN, 0);
    return each(si, journal, down_one, 0);
}

static int hide_one(struct stand_in *si, struct si_journal *j, int64_t ms)
{
    j->hidden_until_ms = si_now_ms() + ms;
    si_clock_in(si, ms);
    return 0;
}

int si_do_hide(struct stand_in *si, const char *journal, int64_t ms)
{
    return each(si, journal, hide_one, ms);
}

void si_do_calm(struct stand_in *si)
{
    si_faults_drop(si);
    (void)each(si, NULL, hide_one, 0);
    si_conn_each(si, si_call_listed, NULL);
}

struct ending {
    enum stand_in_method m;
    struct stand_in_fault fault;
};

static void end_one(struct si_call *c, void *arg)
{
    const struct ending *e = arg;

    if (e->m != STAND_IN_ANY && c->method != (int)e->m)
        return;
    c->fault = e->fault;
    si_fault_do(c);
    if (e->fault.kind == STAND_IN_GOAWAY && !c->dead)
        c->fault_done = false; /* it goes on */
    si_call_flush(c);
}

void si_do_end_calls(struct stand_in *si, enum stand_in_method m, enum stand_in_fault_kind kind,
                     int64_t value)
{
    struct ending e = {.m = m, .fault = {.kind = kind, .value = value}};

    si_conn_each(si, end_one, &e);
}

/* --- from other threads --- */

struct ask {
    const char *journal;
    int64_t v;
    unsigned n;
    enum stand_in_method m;
    enum stand_in_fault_kind kind;
    const struct stand_in_fault *fault;
    struct blob *blob;
    int64_t number;
};

static int run_close(struct stand_in *si, void *arg)
{
    return si_do_close(si, ((struct ask *)arg)->journal);
}

int stand_in_close_fragments(struct stand_in *si, const char *journal)
{
    struct ask a = {.journal = journal};

    return si_sync(si, run_close, &a);
}

static int run_content(struct stand_in *si, void *arg)
{
    struct ask *a = arg;
    const struct si_journal *j = si_find(si, a->journal);
    size_t n = 0;

    if (j == NULL)
        return E_NOTFOUND;
    for (size_t i = 0; i < j->n; i++)
        n += (size_t)(j->frags[i]->end - j->frags[i]->begin);
    if ((a->blob = blob_new(n)) == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < j->n; i++) {
        size_t part = (size_t)(j->frags[i]->end - j->frags[i]->begin);
        if (part > 0)
            memcpy(a->blob->data + a->blob->len, j->frags[i]->data, part);
        a->blob->len += part;
    }
    return 0;
}

int stand_in_content(struct stand_in *si, const char *journal, struct blob **out)
{
    struct ask a = {.journal = journal};
    int err = si_sync(si, run_content, &a);

    *out = a.blob;
    return err;
}

static int run_head(struct stand_in *si, void *arg)
{
    struct ask *a = arg;
    const struct si_journal *j = si_find(si, a->journal);

    a->number = j == NULL ? -1 : j->spool_end;
    return 0;
}

int64_t stand_in_head(struct stand_in *si, const char *journal)
{
    struct ask a = {.journal = journal};

    (void)si_sync(si, run_head, &a);
    return a.number;
}

static int run_lose(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    return si_do_lose(si, a->journal, a->v);
}

int stand_in_lose(struct stand_in *si, const char *journal, int64_t offset)
{
    struct ask a = {.journal = journal, .v = offset};

    return si_sync(si, run_lose, &a);
}

static int run_all_down(struct stand_in *si, void *arg)
{
    return si_do_all_down(si, ((struct ask *)arg)->journal);
}

int stand_in_all_down(struct stand_in *si, const char *journal)
{
    struct ask a = {.journal = journal};

    return si_sync(si, run_all_down, &a);
}

static int run_hide(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    return si_do_hide(si, a->journal, a->v);
}

int stand_in_hide_stored(struct stand_in *si, const char *journal, int64_t ms)
{
    struct ask a = {.journal = journal, .v = ms};

    return si_sync(si, run_hide, &a);
}

static int run_prune(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    return si_do_prune(si, a->journal, a->n);
}

int stand_in_prune(struct stand_in *si, const char *journal, unsigned n)
{
    struct ask a = {.journal = journal, .n = n};

    return si_sync(si, run_prune, &a);
}

static int run_prune_aged(struct stand_in *si, void *arg)
{
    return si_do_prune_aged(si, ((struct ask *)arg)->journal);
}

int stand_in_prune_aged(struct stand_in *si, const char *journal)
{
    struct ask a = {.journal = journal};

    return si_sync(si, run_prune_aged, &a);
}

static int run_age(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    return si_do_age(si, a->journal, a->n, a->v);
}

int stand_in_age(struct stand_in *si, const char *journal, unsigned n, int64_t seconds)
{
    struct ask a = {.journal = journal, .n = n, .v = seconds};

    return si_sync(si, run_age, &a);
}

static int run_revision(struct stand_in *si, void *arg)
{
    si->revision = ((struct ask *)arg)->v;
    return 0;
}

void stand_in_set_revision(struct stand_in *si, int64_t revision)
{
    struct ask a = {.v = revision};

    (void)si_sync(si, run_revision, &a);
}

static int run_fault(struct stand_in *si, void *arg)
{
    return si_fault_add(si, ((struct ask *)arg)->fault);
}

int stand_in_fault(struct stand_in *si, const struct stand_in_fault *f)
{
    struct ask a = {.fault = f};

    return si_sync(si, run_fault, &a);
}

static int run_calm(struct stand_in *si, void *arg)
{
    (void)arg;
    si_do_calm(si);
    return 0;
}

void stand_in_calm(struct stand_in *si)
{
    (void)si_sync(si, run_calm, NULL);
}

static int run_end(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    si_do_end_calls(si, a->m, a->kind, a->v);
    return 0;
}

void stand_in_end_calls(struct stand_in *si, enum stand_in_method m, enum stand_in_fault_kind kind,
                        int64_t value)
{
    struct ask a = {.m = m, .kind = kind, .v = value};

    (void)si_sync(si, run_end, &a);
}

static int run_count(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    a->number = (int64_t)(a->n == 0 ? si->calls[a->m] : a->n == 1 ? si->running[a->m] : si->hits);
    return 0;
}

uint64_t stand_in_calls(struct stand_in *si, enum stand_in_method m)
{
    struct ask a = {.m = m, .n = 0};

    (void)si_sync(si, run_count, &a);
    return (uint64_t)a.number;
}

uint64_t stand_in_running(struct stand_in *si, enum stand_in_method m)
{
    struct ask a = {.m = m, .n = 1};

    (void)si_sync(si, run_count, &a);
    return (uint64_t)a.number;
}

uint64_t stand_in_hits(struct stand_in *si)
{
    struct ask a = {.n = 2};

    (void)si_sync(si, run_count, &a);
    return (uint64_t)a.number;
}

static int run_last(struct stand_in *si, void *arg)
{
    struct ask *a = arg;

    a->blob = si->last[a->m] == NULL ? NULL : blob_ref(si->last[a->m]);
    return a->blob == NULL ? E_NOTFOUND : 0;
}

int stand_in_last_request(struct stand_in *si, enum stand_in_method m, struct blob **out)
{
    struct ask a = {.m = m};
    int err = si_sync(si, run_last, &a);

    *out = a.blob;
    return err;
}
