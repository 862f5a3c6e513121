/* Journals in memory: specs as they came, fragments, the heads of index and primary. */
#include <openssl/evp.h>
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

/* --- specs --- */

struct si_journal *si_find(struct stand_in *si, const char *name)
{
    const char *end =
        strchrnul(name, ';'); /* a suffix is for clients, and names the same journal */
    struct span key = span_of(name, (size_t)(end - name));
    struct si_journal *j;

    TAILQ_FOREACH(j, &si->journals, link)
    {
        if (span_eq_str(key, j->name))
            return j;
    }
    return NULL;
}

Gz__JournalSpec *si_spec(const struct si_journal *j)
{
    return gz__journal_spec__unpack(NULL, j->spec->len, j->spec->data);
}

/* A broker writes all parts of a spec that cannot be absent, even when they are empty. */
static struct blob *pack_spec(const Gz__JournalSpec *spec)
{
    Gz__JournalSpec s = *spec;
    Gz__FragmentSpec f;
    Gz__LabelSet labels;
    Gz__Duration none;

    gz__fragment_spec__init(&f);
    gz__label_set__init(&labels);
    gz__duration__init(&none);
    if (s.fragment != NULL)
        f = *s.fragment;
    if (f.refresh_interval == NULL)
        f.refresh_interval = &none;
    if (f.retention == NULL)
        f.retention = &none;
    if (f.flush_interval == NULL)
        f.flush_interval = &none;
    s.fragment = &f;
    if (s.labels == NULL)
        s.labels = &labels;
    struct blob *b = blob_new(gz__journal_spec__get_packed_size(&s));
    if (b != NULL)
        b->len = gz__journal_spec__pack(&s, b->data);
    return b;
}

int si_set_spec(struct stand_in *si, struct si_journal *j, const Gz__JournalSpec *spec)
{
    struct blob *b = pack_spec(spec);

    if (b == NULL)
        return E_NOMEM;
    blob_unref(j->spec);
    j->spec = b;
    j->mod_revision = si->revision;
    si_changed(si);
    return 0;
}

static void insert_by_name(struct si_journals *list, struct si_journal *j)
{
    struct si_journal *x;

    TAILQ_FOREACH(x, list, link)
    {
        if (strcmp(x->name, j->name) > 0) {
            TAILQ_INSERT_BEFORE(x, j, link);
            return;
        }
    }
    TAILQ_INSERT_TAIL(list, j, link);
}

/* Fragments that an earlier journal of this name left in the store are found again. */
static void find_old(struct stand_in *si, struct si_journal *j)
{
    struct si_journal *x;

    TAILQ_FOREACH(x, &si->deleted, link)
    {
        if (strcmp(x->name, j->name) != 0)
            continue;
        TAILQ_REMOVE(&si->deleted, x, link);
        j->frags = x->frags;
        j->n = x->n;
        j->cap = x->cap;
        x->frags = NULL;
        x->n = 0;
        si_journal_free(x);
        return;
    }
}

int si_journal_new(struct stand_in *si, const Gz__JournalSpec *spec, struct si_journal **out)
{
    struct si_journal *j = mem_zalloc(sizeof *j);

    *out = NULL;
    if (j == NULL)
        return E_NOMEM;
    TAILQ_INIT(&j->readers);
    if ((j->name = mem_strdup(spec->name)) == NULL || si_set_spec(si, j, spec) < 0) {
        si_journal_free(j);
        return E_NOMEM;
    }
    j->create_revision = si->revision;
    if (si->o.assign_lag_ms > 0) {
        j->assign_at_ms = si_now_ms() + si->o.assign_lag_ms;
        si_clock_in(si, si->o.assign_lag_ms);
    } else {
        j->assigned = true;
    }
    if (spec->fragment != NULL && spec->fragment->n_stores > 0)
        find_old(si, j);
    insert_by_name(&si->journals, j);
    *out = j;
    return 0;
}

void si_journal_free(struct si_journal *j)
{
    for (size_t i = 0; i < j->n; i++)
        si_frag_free(j->frags[i]);
    mem_free(j->frags);
    if (j->registers != NULL)
        gz__label_set__free_unpacked(j->registers, NULL);
    blob_unref(j->spec);
    mem_free(j->name);
    mem_free(j);
}

void si_journal_delete(struct stand_in *si, struct si_journal *j)
{
    struct si_call *c;
    size_t n = 0;

    while ((c = TAILQ_FIRST(&j->readers)) != NULL) { /* their streams end well */
        c->u.read.j = NULL;
        si_call_unqueue(c);
        si_call_end(c, 0, "%s", "");
        si_call_flush(c);
    }
    TAILQ_REMOVE(&si->journals, j, link);
    for (size_t i = 0; i < j->n; i++) {
        if (j->frags[i]->object != NULL && j->frags[i]->closed) {
            j->frags[i]->listed = true;
            j->frags[n++] = j->frags[i];
        } else {
            si_frag_free(j->frags[i]);
        }
    }
    j->n = n;
    if (n > 0)
        TAILQ_INSERT_TAIL(&si->deleted, j, link);
    else
        si_journal_free(j);
    si_changed(si);
}

/* --- fragments --- */

void si_frag_free(struct si_fragment *f)
{
    EVP_MD_CTX_free(f->sha);
    mem_free(f->data);
    mem_free(f->object);
    mem_free(f->store);
    mem_free(f);
}

bool si_visible(const struct si_journal *j, const struct si_fragment *f)
{
    return f->end > f->begin && (!f->listed || si_now_ms() >= j->hidden_until_ms);
}

int64_t si_index_begin(const struct si_journal *j)
{
    for (size_t i = 0; i < j->n; i++) {
        if (si_visible(j, j->frags[i]))
            return j->frags[i]->begin;
    }
    return 0;
}

int64_t si_index_end(const struct si_journal *j)
{
    for (size_t i = j->n; i > 0; i--) {
        if (si_visible(j, j->frags[i - 1]))
            return j->frags[i - 1]->end;
    }
    return 0;
}

struct si_fragment *si_open(const struct si_journal *j)
{
    return j->n > 0 && !j->frags[j->n - 1]->closed ? j->frags[j->n - 1] : NULL;
}

static struct si_fragment *open_new(struct si_journal *j, Gz__Codec codec)
{
    struct si_fragment *f = mem_zalloc(sizeof *f);

    if (f == NULL)
        return NULL;
    f->begin = f->end = j->spool_end;
    f->codec = codec;
    f->first_s = si_now_s();
    f->sha = EVP_MD_CTX_new();
    if (j->n == j->cap) {
        size_t cap = j->cap == 0 ? 8 : j->cap * 2;
        struct si_fragment **v = mem_realloc(j->frags, cap * sizeof *v);
        if (v != NULL) {
            j->frags = v;
            j->cap = cap;
        }
    }
    if (f->sha == NULL || j->n == j->cap || EVP_DigestInit_ex(f->sha, EVP_sha1(), NULL) != 1) {
        si_frag_free(f);
        return NULL;
    }
    j->frags[j->n++] = f;
    return f;
}

int si_extend(struct si_journal *j, Gz__Codec codec, struct evbuffer *content)
{
    size_t n = evbuffer_get_length(content);
    struct si_fragment *f = si_open(j);

    if (f == NULL && (f = open_new(j, codec)) == NULL)
        return E_NOMEM;
    size_t have = (size_t)(f->end - f->begin);
    if (have + n > f->cap) {
        size_t cap = f->cap * 2 > have + n ? f->cap * 2 : have + n;
        uint8_t *p = mem_realloc(f->data, cap);
        if (p == NULL)
            return E_NOMEM;
        f->data = p;
        f->cap = cap;
    }
    (void)evbuffer_remove(content, f->data + have, n);
    if (EVP_DigestUpdate(f->sha, f->data + have, n) != 1)
        return E_NOMEM;
    f->end += (int64_t)n;
    j->spool_end = f->end;
    return 0;
}

void si_frag_sum(const struct si_fragment *f, int64_t end, uint8_t out[20])
{
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    unsigned n = 0;
    int ok = x != NULL;

    if (ok && end == f->end)
        ok = EVP_MD_CTX_copy_ex(x, f->sha) == 1;
    else if (ok)
        ok = EVP_DigestInit_ex(x, EVP_sha1(), NULL) == 1 &&
             EVP_DigestUpdate(x, f->data, (size_t)(end - f->begin)) == 1;
    memset(out, 0, 20);
    if (ok)
        (void)EVP_DigestFinal_ex(x, out, &n);
    EVP_MD_CTX_free(x);
}

void si_drop_from(struct si_journal *j, int64_t offset)
{
    while (j->n > 0) {
        struct si_fragment *f = j->frags[j->n - 1];
        if (f->end <= offset)
            break;
        if (f->begin < offset) { /* what is left of it is with the brokers alone */
            f->end = offset;
            f->closed = true;
            f->listed = false;
            mem_free(f->object);
            f->object = NULL;
            (void)EVP_DigestInit_ex(f->sha, EVP_sha1(), NULL);
            (void)EVP_DigestUpdate(f->sha, f->data, (size_t)(f->end - f->begin));
            break;
        }
        si_frag_free(f);
        j->n--;
    }
}

void si_wake_readers(struct si_journal *j)
{
    struct si_call *c, *next;

    for (c = TAILQ_FIRST(&j->readers); c != NULL; c = next) {
        next = TAILQ_NEXT(c, queue);
        si_call_flush(c);
    }
}
