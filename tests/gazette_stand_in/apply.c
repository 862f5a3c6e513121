/* Apply: all changes of a request or none, when each journal's mod_revision is the expected one. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

static bool check_change(const Gz__Change *ch, size_t i, char *why, size_t n)
{
    char inner[400];
    long long expect = (long long)ch->expect_mod_revision;

    if (ch->upsert != NULL && ch->delete_[0] != '\0')
        (void)snprintf(why, n,
                       "Changes[%zu]: both Upsert and Delete are set (expected exactly one)", i);
    else if (ch->upsert == NULL && ch->delete_[0] == '\0')
        (void)snprintf(why, n,
                       "Changes[%zu]: neither Upsert nor Delete are set (expected exactly one)", i);
    else if (ch->upsert != NULL && !si_check_spec(ch->upsert, inner, sizeof inner))
        (void)snprintf(why, n, "Changes[%zu].Upsert%s", i, inner);
    else if (ch->upsert != NULL && expect < -1)
        (void)snprintf(why, n,
                       "Changes[%zu]: invalid ExpectModRevision (%lld; expected >= 0 or -1)", i,
                       expect);
    else if (ch->upsert == NULL && !si_check_name(ch->delete_, "Delete", inner, sizeof inner))
        (void)snprintf(why, n, "Changes[%zu].%s", i, inner);
    else if (ch->upsert == NULL && expect <= 0 && expect != -1)
        (void)snprintf(why, n, "Changes[%zu]: invalid ExpectModRevision (%lld; expected > 0 or -1)",
                       i, expect);
    else
        return true;
    return false;
}

static const char *name_of(const Gz__Change *ch)
{
    return ch->upsert != NULL ? ch->upsert->name : ch->delete_;
}

/* Upserts are judged by their new labels, deletions by the name alone. */
static bool allowed(const struct si_call *c, const Gz__Change *ch)
{
    return si_matches(c->claims.sel, ch->upsert != NULL ? ch->upsert->labels : NULL, name_of(ch));
}

static bool as_expected(struct stand_in *si, const Gz__Change *ch)
{
    const struct si_journal *j = si_find(si, name_of(ch));

    return ch->expect_mod_revision == -1 ||
           ch->expect_mod_revision == (j == NULL ? 0 : j->mod_revision);
}

static int change(struct stand_in *si, const Gz__Change *ch)
{
    struct si_journal *j = si_find(si, name_of(ch));

    if (ch->upsert == NULL) {
        if (j != NULL)
            si_journal_delete(si, j);
        return 0;
    }
    return j != NULL ? si_set_spec(si, j, ch->upsert) : si_journal_new(si, ch->upsert, &j);
}

void si_apply_message(struct si_call *c, struct span msg)
{
    Gz__ApplyRequest *rq = gz__apply_request__unpack(NULL, msg.n, msg.p);
    struct stand_in *si = c->si;
    Gz__ApplyResponse m;
    struct si_header h;
    char why[500];
    int err = 0;

    gz__apply_response__init(&m);
    if (rq == NULL) {
        si_call_end(c, 13, "grpc: failed to unmarshal the received message");
        return;
    }
    for (size_t i = 0; i < rq->n_changes; i++) {
        if (!check_change(rq->changes[i], i, why, sizeof why)) {
            si_call_end(c, 2, "%s", why);
            goto out;
        }
        if (!allowed(c, rq->changes[i])) {
            si_call_end(c, 16, "not authorized to %s", name_of(rq->changes[i]));
            goto out;
        }
        if (!as_expected(si, rq->changes[i]))
            m.status = SI_TXN_FAILED;
    }
    if (m.status == SI_OK && rq->n_changes > 0) {
        si->revision++;
        for (size_t i = 0; i < rq->n_changes && err == 0; i++)
            err = change(si, rq->changes[i]);
    }
    if (c->faulty && c->fault.landed) {
        si_fault_do(c);
        goto out;
    }
    if (err < 0) {
        si_call_end(c, 13, "%s", err_text(err));
        goto out;
    }
    si_header_init(si, NULL, &h);
    m.header = &h.h;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
out:
    gz__apply_request__free_unpacked(rq, NULL);
}
