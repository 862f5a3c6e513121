/*
 * The tokens that a login is checked against. A name that no task has borrows the tokens of another
 * task, chosen by the name, so that its login does the same work as that task's would; the outcome
 * is not asked. Worker thread.
 */
#include <stdatomic.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/auth_int.h"
#include "gateway/view.h"

/* Which task answers for a name that has none. NULL: there is no task at all. */
static const struct gw_task *stand_in(const struct gw_auth *a, const struct gw_view *view,
                                      struct span name)
{
    uint64_t seed;

    memcpy(&seed, a->key, sizeof seed);
    uint64_t h = hash_bytes(name, seed);
    for (size_t i = 0; i < view->tasks_n; i++) {
        const struct gw_task *t = &view->tasks[(h + i) % view->tasks_n];
        if (t->tokens_n > 0)
            return t;
    }
    return NULL;
}

/* A view's text may go while the login is checked. */
static int copy(struct creds *c, const char *const *tokens, size_t n)
{
    size_t bytes = 0;

    n = n < CREDS_MAX ? n : CREDS_MAX;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(tokens[i]);
    if ((c->text = mem_alloc(bytes + 1)) == NULL)
        return E_NOMEM;
    c->text_n = bytes;
    char *at = c->text;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(tokens[i]);
        memcpy(at, tokens[i], len);
        /* A broken verifier is refused with its catalog; here it just lets nobody in. */
        if (secret_parse(span_of(at, len), &c->secrets[c->n]) == 0 && len > 0)
            c->n++;
        at += len;
    }
    return 0;
}

int creds_take(const struct gw_auth *a, const struct gw_view *view, struct span name,
               struct creds *out)
{
    static const char *const nobody[] = {"no token is like this one"};

    *out = (struct creds){.known = true};
    const struct gw_task *t = name.n > 0 ? gw_view_task(view, name) : NULL;
    if (t == NULL || t->tokens_n == 0) {
        out->known = false;
        t = stand_in(a, view, name);
    }
    int err = t == NULL ? copy(out, nobody, 1) : copy(out, t->tokens, t->tokens_n);
    if (err == 0 && out->n == 0) {
        out->known = false;
        creds_wipe(out);
        err = copy(out, nobody, 1);
    }
    return err;
}

void creds_wipe(struct creds *c)
{
    if (c->text != NULL)
        mem_wipe(c->text, c->text_n);
    mem_free(c->text);
    mem_wipe(c->secrets, sizeof c->secrets);
    c->text = NULL;
    c->n = 0;
}

static bool same_salt(const struct secret *s, const struct secret *t)
{
    return s->iterations == t->iterations && s->salt_n == t->salt_n &&
           memcmp(s->salt, t->salt, s->salt_n) == 0;
}

/* The verifiers of this hash, each salt once; which: the one to take. NULL: there is none. */
static const struct secret *choose(const struct creds *c, enum secret_hash h, unsigned which)
{
    const struct secret *firsts[CREDS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct secret *s = &c->secrets[i];
        bool seen = !s->verifier || s->hash != h;
        for (size_t k = 0; k < n; k++)
            seen = seen || same_salt(firsts[k], s);
        if (!seen)
            firsts[n++] = s;
    }
    return n == 0 ? NULL : firsts[which % n];
}

int creds_salt(struct gw_auth *a, const struct creds *c, struct exchange *x)
{
    const struct secret *lead =
        choose(c, x->scram.hash, atomic_load_explicit(&a->turn, memory_order_relaxed));
    uint8_t made_up[SECRET_HASH_MAX];
    int err;

    x->iterations = lead != NULL ? lead->iterations : SECRET_ITERATIONS;
    x->salt_n = lead != NULL ? lead->salt_n : 16;
    if (lead != NULL && c->known) {
        memcpy(x->salt, lead->salt, lead->salt_n);
        return 0;
    }
    /* The same for the same name, as a stored one would be. */
    if ((err = secret_hmac(SECRET_SHA512, span_of(a->key, sizeof a->key), span_str(x->scram.user),
                           made_up)) < 0)
        return err;
    memcpy(x->salt, made_up, x->salt_n);
    return 0;
}

void creds_fit(struct creds *c, const struct exchange *x)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct secret *s = &c->secrets[i];
        bool fits = s->iterations == x->iterations && s->salt_n == x->salt_n;
        /* A made-up task takes part with another one's verifiers, whose salts differ. */
        if (c->known && fits)
            fits = memcmp(s->salt, x->salt, x->salt_n) == 0;
        if (!s->verifier || (fits && s->hash == x->scram.hash))
            c->secrets[n++] = *s;
    }
    c->n = n;
    if (n == 0) /* only verifiers of the other hash: nobody can log in this way */
        c->known = false;
}

struct exchange *exchange_new(enum secret_hash h)
{
    struct exchange *x = mem_zalloc(sizeof *x);

    if (x != NULL)
        scram_init(&x->scram, h);
    return x;
}

void exchange_free(struct exchange *x)
{
    if (x == NULL)
        return;
    scram_fini(&x->scram);
    mem_free(x);
}
