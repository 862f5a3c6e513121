/*
 * Append: the first message says where and under which conditions, then comes content, then an
 * empty message that commits, then the client's half-close. Content is taken over at the commit and
 * not before, whole; conditions are looked at when the call begins, if no other append of the
 * journal runs (a broker lets them queue), and again at the commit.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define RESUME_MS 100 /* from a resumption to the journal's new route */

enum suspend { RESUME = 0, NO_RESUME = 1, IF_FLUSHED = 2, NOW = 3, KEEP = 4 };
enum level { LEVEL_NONE = 0, LEVEL_PARTIAL = 1, LEVEL_FULL = 2 };

static void say(struct si_call *c, const struct si_journal *j, int status)
{
    Gz__AppendResponse m;
    struct si_header h;
    Gz__LabelSet none;

    gz__append_response__init(&m);
    gz__label_set__init(&none);
    si_header_init(c->si, j, &h);
    m.status = status;
    m.header = &h.h;
    if (status == SI_REGISTER_MISMATCH)
        m.registers = j->registers != NULL ? j->registers : &none;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
}

static int set_suspend(struct stand_in *si, struct si_journal *j, Gz__JournalSpec *spec, int level,
                       int64_t offset)
{
    Gz__Suspend s, *old = spec->suspend;

    gz__suspend__init(&s);
    s.level = level;
    s.offset = offset;
    spec->suspend = &s;
    si->revision++;
    int err = si_set_spec(si, j, spec);
    spec->suspend = old;
    return err;
}

/* A fully suspended journal is given back to the brokers; the call that asked for it finds no
 * primary yet. */
static int resume_full(struct si_call *c, struct si_journal *j, Gz__JournalSpec *spec)
{
    struct stand_in *si = c->si;

    if (j->assigned)
        si->revision++;
    j->assigned = false;
    j->unassign_at_ms = 0;
    j->assign_at_ms = si_now_ms() + RESUME_MS;
    si_clock_in(si, RESUME_MS);
    return set_suspend(si, j, spec, LEVEL_NONE, spec->suspend->offset);
}

static int suspend(struct si_call *c, struct si_journal *j, Gz__JournalSpec *spec)
{
    struct stand_in *si = c->si;
    int level = spec->suspend == NULL ? LEVEL_NONE : spec->suspend->level;
    bool dirty = false;

    for (size_t i = 0; i < j->n; i++)
        dirty = dirty || !j->frags[i]->listed;
    if (si_index_begin(j) == si_index_end(j)) {
        if (set_suspend(si, j, spec, LEVEL_FULL, j->spool_end) < 0)
            return SI_OK;
        if (si->o.unassign_lag_ms >= 0) {
            j->unassign_at_ms = si_now_ms() + si->o.unassign_lag_ms;
            si_clock_in(si, si->o.unassign_lag_ms);
        }
        return SI_SUSPENDED;
    }
    if (level == LEVEL_NONE && (!dirty || c->u.append.rq->suspend == NOW)) {
        (void)set_suspend(si, j, spec, LEVEL_PARTIAL, j->spool_end);
        (void)si_close(si, j, false);
        return SI_SUSPENDED;
    }
    return level == LEVEL_PARTIAL ? SI_SUSPENDED : SI_OK;
}

/* What a broker looks at before it takes content. */
static int preconditions(struct si_call *c, struct si_journal *j, Gz__JournalSpec *spec, bool act)
{
    const Gz__AppendRequest *rq = c->u.append.rq;
    int64_t index = si_index_end(j), from = spec->suspend == NULL ? 0 : spec->suspend->offset;
    int level = spec->suspend == NULL ? LEVEL_NONE : spec->suspend->level;

    if (rq->check_registers != NULL && j->registers != NULL && j->registers->n_labels > 0 &&
        !si_matches(rq->check_registers, j->registers, NULL))
        return SI_REGISTER_MISMATCH;
    if (j->spool_end < from) {
        (void)si_close(c->si, j, false);
        j->spool_end = from;
    }
    int64_t head = j->spool_end > index ? j->spool_end : index;
    if (j->spool_end != head && rq->offset == 0 && spec->flags != 1)
        return SI_INDEX_GREATER;
    if (rq->offset != 0 && rq->offset != head)
        return SI_WRONG_OFFSET;
    if (rq->suspend == NO_RESUME && level != LEVEL_NONE)
        return SI_SUSPENDED;
    if (!act)
        return SI_OK;
    if (rq->offset != 0 && j->spool_end != head) {
        (void)si_close(c->si, j, false);
        j->spool_end = head;
    }
    if (rq->suspend == RESUME && level != LEVEL_NONE)
        (void)set_suspend(c->si, j, spec, LEVEL_NONE, j->spool_end);
    return SI_OK;
}

struct others {
    const struct si_call *c;
    bool any;
};

static void look(struct si_call *c, void *arg)
{
    struct others *o = arg;

    if (c != o->c && c->method == STAND_IN_APPEND && c->u.append.rq != NULL &&
        strcmp(c->u.append.rq->journal, o->c->u.append.rq->journal) == 0)
        o->any = true;
}

static void begin(struct si_call *c)
{
    const Gz__AppendRequest *rq = c->u.append.rq;
    struct others o = {.c = c};
    struct si_journal *j;
    Gz__JournalSpec *spec;
    int status = si_resolve(c, rq->journal, true, &j);

    if (j == NULL || (spec = si_spec(j)) == NULL) {
        say(c, j, status);
        return;
    }
    if (status == SI_SUSPENDED && rq->suspend == RESUME) {
        (void)resume_full(c, j, spec); /* without memory the next call asks for it again */
        status = SI_NO_PRIMARY;
    }
    si_conn_each(c->si, look, &o);
    if (status == SI_OK && !o.any)
        status = preconditions(c, j, spec, false);
    gz__journal_spec__free_unpacked(spec, NULL);
    if (status != SI_OK)
        say(c, j, status);
}

/* Closes the open fragment as the next append does: when it is long enough, when a flush interval
 * has passed, and always when it is the journal's first. */
static void roll(struct si_call *c, struct si_journal *j, const Gz__JournalSpec *spec)
{
    const struct si_fragment *f = si_open(j);
    int64_t flush = spec->fragment->flush_interval->seconds;

    if (f != NULL && (f->end - f->begin > spec->fragment->length || f->begin == si_index_begin(j) ||
                      (flush > 0 && f->first_s / flush != si_now_s() / flush)))
        (void)si_close(c->si, j, false);
}

static bool digest(struct evbuffer *b, uint8_t out[20])
{
    size_t n = evbuffer_get_length(b);
    unsigned len = 0;

    return EVP_Digest(evbuffer_pullup(b, -1) /* pullup-ok: input */, n, out, &len, EVP_sha1(),
                      NULL) == 1;
}

static void answer(struct si_call *c, struct si_journal *j, Gz__Fragment *commit)
{
    Gz__AppendResponse m;
    struct si_header h;
    Gz__LabelSet none;

    gz__append_response__init(&m);
    gz__label_set__init(&none);
    si_header_init(c->si, j, &h);
    m.header = &h.h;
    m.commit = commit;
    m.registers = j->registers != NULL ? j->registers : &none;
    m.total_chunks = c->u.append.chunks;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
}

static void take(struct si_call *c, struct si_journal *j, const Gz__JournalSpec *spec)
{
    const Gz__AppendRequest *rq = c->u.append.rq;
    struct evbuffer *content = c->u.append.content;
    size_t n = evbuffer_get_length(content);
    Gz__Fragment commit;
    Gz__Sha1 sum;
    uint8_t sha[20];

    if (n > 0 && (spec->flags == 1 || (rq->suspend >= IF_FLUSHED && rq->suspend <= KEEP))) {
        say(c, j, SI_NOT_ALLOWED);
        return;
    }
    if (n == 0 && (rq->union_registers != NULL || rq->subtract_registers != NULL)) {
        si_call_end(c, 2, "append stream: register modification requires non-empty Append");
        return;
    }
    roll(c, j, spec);
    gz__fragment__init(&commit);
    commit.journal = j->name;
    commit.begin = j->spool_end;
    commit.end = j->spool_end + (int64_t)n;
    commit.compression_codec =
        si_open(j) != NULL ? si_open(j)->codec : spec->fragment->compression_codec;
    commit.sum = &sum;
    if (!digest(content, sha) ||
        (n > 0 && si_extend(j, spec->fragment->compression_codec, content) < 0)) {
        si_call_end(c, 2, "append stream: out of memory");
        return;
    }
    si_wire_sum(sha, &sum);
    if (rq->union_registers != NULL || rq->subtract_registers != NULL) {
        Gz__LabelSet *next =
            si_registers_next(j->registers, rq->subtract_registers, rq->union_registers);
        if (j->registers != NULL)
            gz__label_set__free_unpacked(j->registers, NULL);
        j->registers = next;
    }
    if (c->faulty && c->fault.landed && !c->fault_done)
        si_fault_do(c);
    else
        answer(c, j, &commit);
    si_wake_readers(j);
}

void si_append_half_close(struct si_call *c)
{
    struct si_journal *j;
    Gz__JournalSpec *spec;

    if (c->u.append.rq == NULL || !c->u.append.commit) {
        si_call_end(c, 2, "append stream: unexpected EOF");
        return;
    }
    int status = si_resolve(c, c->u.append.rq->journal, true, &j);
    if (j == NULL || (spec = si_spec(j)) == NULL) {
        say(c, j, status);
        return;
    }
    if (status == SI_OK)
        status = preconditions(c, j, spec, true);
    if (status == SI_OK &&
        (c->u.append.rq->suspend == IF_FLUSHED || c->u.append.rq->suspend == NOW) &&
        evbuffer_get_length(c->u.append.content) == 0)
        status = suspend(c, j, spec);
    if (status != SI_OK)
        say(c, j, status);
    else
        take(c, j, spec);
    gz__journal_spec__free_unpacked(spec, NULL);
}

static bool check_first(const Gz__AppendRequest *rq, char *why, size_t n)
{
    if (!si_check_name(rq->journal, "Journal", why, n))
        return false;
    if (rq->offset < 0)
        (void)snprintf(why, n, "invalid Offset (%lld; expected >= 0)", (long long)rq->offset);
    else if (rq->content.len > 0)
        (void)snprintf(why, n, "unexpected Content");
    else if (rq->suspend < RESUME || rq->suspend > KEEP)
        (void)snprintf(why, n, "Suspend: invalid Suspend variant (%d)", rq->suspend);
    else
        return (rq->check_registers == NULL ||
                (si_check_labels(rq->check_registers->include, true, "CheckRegisters.Include", why,
                                 n) &&
                 si_check_labels(rq->check_registers->exclude, true, "CheckRegisters.Exclude", why,
                                 n))) &&
               si_check_labels(rq->union_registers, false, "UnionRegisters", why, n) &&
               si_check_labels(rq->subtract_registers, false, "SubtractRegisters", why, n);
    return false;
}

static void first(struct si_call *c, Gz__AppendRequest *rq)
{
    char why[700];

    c->u.append.rq = rq;
    c->u.append.content = evbuffer_new();
    if (c->u.append.content == NULL)
        si_call_end(c, 13, "out of memory");
    else if (!check_first(rq, why, sizeof why))
        si_call_end(c, 2, "%s", why);
    else
        begin(c);
}

void si_append_message(struct si_call *c, struct span msg)
{
    Gz__AppendRequest *rq = gz__append_request__unpack(NULL, msg.n, msg.p);

    if (rq == NULL) {
        si_call_end(c, 13, "grpc: failed to unmarshal the received message");
        return;
    }
    if (c->u.append.rq == NULL) {
        first(c, rq);
        return;
    }
    c->u.append.chunks++;
    if (rq->journal[0] != '\0')
        si_call_end(c, 2, "append stream: expected Content chunk");
    else if (c->u.append.commit)
        si_call_end(c, 2, "append stream: expected EOF after empty Content chunk");
    else if (rq->content.len == 0)
        c->u.append.commit = true;
    else
        (void)evbuffer_add(c->u.append.content, rq->content.data, rq->content.len);
    c->content += (int64_t)rq->content.len;
    gz__append_request__free_unpacked(rq, NULL);
    if (c->faulty && !c->fault_done && !c->fault.landed && c->fault.after > 0 &&
        c->content >= c->fault.after && !c->out_end)
        si_fault_do(c);
}
