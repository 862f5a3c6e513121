/*
 * Read. For each fragment one message of metadata, then its content in pieces; at the head the
 * stream waits or ends with status 6. Output is made as the stream's window takes it. All the
 * while the call stands in its journal's list of readers, and is woken when the journal changes.
 */
#include <stdio.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define OUT_HIGH   (128u << 10)
#define JUMP_AGE_S (6 * 3600)

/* Where the index ends for this call. */
static int64_t index_end(const struct si_call *c)
{
    int64_t end = si_index_end(c->u.read.j);

    if (c->faulty && c->fault.kind == STAND_IN_LOWER_HEAD)
        end = end > c->fault.value ? end - c->fault.value : 0;
    return end;
}

static int64_t frag_end(const struct si_call *c, const struct si_fragment *f)
{
    int64_t end = index_end(c);

    return f->end < end ? f->end : end;
}

/* The fragment that covers pos and reaches furthest; else *next is the first behind it. */
static const struct si_fragment *covering(const struct si_call *c, int64_t pos,
                                          const struct si_fragment **next, bool *next_is_first)
{
    const struct si_journal *j = c->u.read.j;
    const struct si_fragment *best = NULL;
    bool first = true;

    *next = NULL;
    for (size_t i = 0; i < j->n; i++) {
        const struct si_fragment *f = j->frags[i];
        if (!si_visible(j, f) || frag_end(c, f) <= f->begin)
            continue;
        if (f->begin <= pos && frag_end(c, f) > pos && (best == NULL || f->end > best->end))
            best = f;
        if (f->begin > pos && *next == NULL) {
            *next = f;
            *next_is_first = first;
        }
        first = false;
    }
    return best;
}

/* The fragment to read from, after the jumps that a broker makes; NULL: nothing there yet. */
static const struct si_fragment *query(struct si_call *c)
{
    const struct si_fragment *f, *next;
    bool first = false;

    for (;;) {
        f = covering(c, c->u.read.pos, &next, &first);
        if (f == NULL && next != NULL && next->listed &&
            (first || next->mod_time_s < si_now_s() - JUMP_AGE_S)) {
            c->u.read.pos = next->begin;
            f = next;
        }
        if (f == NULL || !f->listed || f->mod_time_s >= c->u.read.rq->begin_mod_time)
            return f;
        c->u.read.pos = f->end;
    }
}

static void say_not_yet(struct si_call *c)
{
    Gz__ReadResponse m;
    struct si_header h;

    gz__read_response__init(&m);
    if (!c->u.read.header_sent) {
        si_header_init(c->si, c->u.read.j, &h);
        m.header = &h.h;
    }
    m.status = SI_NOT_YET_AVAILABLE;
    m.offset = c->u.read.pos;
    m.write_head = index_end(c);
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
}

static void say_meta(struct si_call *c, const struct si_fragment *f)
{
    Gz__ReadResponse m;
    struct si_header h;
    struct si_wire_frag w;
    char *url = si_url(f);

    gz__read_response__init(&m);
    if (!c->u.read.header_sent) {
        si_header_init(c->si, c->u.read.j, &h);
        m.header = &h.h;
    }
    si_wire_frag_init(c->u.read.j, f, frag_end(c, f), &w);
    m.offset = c->u.read.pos;
    m.write_head = index_end(c);
    m.fragment = &w.f;
    if (url != NULL)
        m.fragment_url = url;
    si_call_send(c, &m.base);
    mem_free(url);
    c->u.read.header_sent = true;
    c->u.read.frag_begin = f->begin;
    c->u.read.frag_end = w.f.end;
}

/* False: nothing more for now. */
static bool next_fragment(struct si_call *c)
{
    const Gz__ReadRequest *rq = c->u.read.rq;
    const struct si_fragment *f = query(c);

    if (f == NULL) {
        if (rq->block && c->faulty && c->fault.kind == STAND_IN_LOWER_HEAD && !c->waits)
            si_fault_do(c); /* for a while */
        if (rq->block)
            return false;
        say_not_yet(c);
        return true;
    }
    if (c->faulty && c->fault.kind == STAND_IN_BARE && c->content >= c->fault.after) {
        c->fault_done = true;
        c->u.read.frag_begin = f->begin;
        c->u.read.frag_end = frag_end(c, f);
    } else {
        say_meta(c, f);
    }
    if (rq->metadata_only || (f->listed && rq->do_not_proxy) ||
        (rq->end_offset != 0 && c->u.read.pos >= rq->end_offset))
        si_call_end(c, 0, "%s", "");
    else if (f->gone_ms != 0)
        si_call_end(c, 2, "open %s: no such file or directory", f->object);
    c->u.read.in_frag = true;
    return true;
}

static const struct si_fragment *current(const struct si_call *c)
{
    const struct si_journal *j = c->u.read.j;

    for (size_t i = 0; i < j->n; i++) {
        if (j->frags[i]->begin == c->u.read.frag_begin)
            return j->frags[i];
    }
    return NULL;
}

/* True: the fault took the place of what would be said now. */
static bool struck(struct si_call *c)
{
    if (!c->faulty || c->fault_done || c->content < c->fault.after)
        return false;
    switch (c->fault.kind) {
    case STAND_IN_TRICKLE:
        if (c->ready) {
            c->ready = false;
            return false;
        }
        break;
    case STAND_IN_SLOW:
        if (c->ready)
            return false;
        break;
    case STAND_IN_STATUS:
    case STAND_IN_GRPC:
    case STAND_IN_HANG:
    case STAND_IN_RESET_STREAM:
    case STAND_IN_RESET_CONN:
    case STAND_IN_END:
        break;
    case STAND_IN_GOAWAY:
        si_fault_do(c);
        return c->dead;
    case STAND_IN_HALF:
    case STAND_IN_BARE:
    case STAND_IN_OVERLAP:
    case STAND_IN_LOWER_HEAD:
    case STAND_IN_FILE_SHORT:
    case STAND_IN_FILE_WRONG:
    case STAND_IN_FILE_GONE:
    case STAND_IN_FAULT_KINDS:
        return false;
    }
    si_fault_do(c);
    return true;
}

static bool say_content(struct si_call *c)
{
    const Gz__ReadRequest *rq = c->u.read.rq;
    const struct si_fragment *f = current(c);
    int64_t pos = c->u.read.pos, end = c->u.read.frag_end;
    Gz__ReadResponse m;

    if (f == NULL || f->end < end) { /* lost meanwhile */
        si_call_end(c, 2, "fragment is gone");
        return true;
    }
    if (struck(c))
        return !c->waits;
    if (rq->end_offset != 0 && rq->end_offset < end)
        end = rq->end_offset;
    int64_t n = end - pos < SI_CHUNK ? end - pos : SI_CHUNK;
    if (c->faulty && !c->fault_done && c->content < c->fault.after &&
        c->fault.after - c->content < n)
        n = c->fault.after - c->content;
    if (c->faulty && c->fault.kind == STAND_IN_OVERLAP && !c->fault_done &&
        c->content >= c->fault.after) {
        c->fault_done = true;
        pos = pos - c->fault.value > f->begin ? pos - c->fault.value : f->begin;
    }
    gz__read_response__init(&m);
    m.offset = pos;
    m.content = (ProtobufCBinaryData){(size_t)n, f->data + (pos - f->begin)};
    si_call_send(c, &m.base);
    c->content += n;
    c->u.read.pos = pos + n;
    if (c->u.read.pos == c->u.read.frag_end)
        c->u.read.in_frag = false;
    if (rq->end_offset != 0 && c->u.read.pos == rq->end_offset)
        si_call_end(c, 0, "%s", "");
    return true;
}

void si_read_pull(struct si_call *c)
{
    while (!c->dead && !c->out_end && !c->waits && c->u.read.j != NULL &&
           evbuffer_get_length(c->out) < OUT_HIGH) {
        if (!(c->u.read.in_frag ? say_content(c) : next_fragment(c)))
            return;
    }
}

static void say_status(struct si_call *c, const struct si_journal *j, int status)
{
    Gz__ReadResponse m;
    struct si_header h;

    gz__read_response__init(&m);
    si_header_init(c->si, j, &h);
    m.status = status;
    m.header = &h.h;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
}

void si_read_message(struct si_call *c, struct span msg)
{
    Gz__ReadRequest *rq;
    struct si_journal *j;
    char why[700];

    if (c->u.read.rq != NULL)
        return;
    if ((rq = c->u.read.rq = gz__read_request__unpack(NULL, msg.n, msg.p)) == NULL) {
        si_call_end(c, 13, "grpc: failed to unmarshal the received message");
        return;
    }
    if (!si_check_name(rq->journal, "Journal", why, sizeof why)) {
        si_call_end(c, 2, "%s", why);
        return;
    }
    if (rq->offset < -1) {
        si_call_end(c, 2, "invalid Offset (%lld; expected -1 <= Offset <= MaxInt64)",
                    (long long)rq->offset);
        return;
    }
    if (rq->end_offset < 0 || (rq->end_offset != 0 && rq->end_offset < rq->offset)) {
        si_call_end(c, 2, "invalid EndOffset (%lld; expected 0 or Offset <= EndOffset)",
                    (long long)rq->end_offset);
        return;
    }
    int status = si_resolve(c, rq->journal, false, &j);
    Gz__JournalSpec *spec = status == SI_OK ? si_spec(j) : NULL;
    if (spec != NULL && spec->flags == 2) /* O_WRONLY */
        status = SI_NOT_ALLOWED;
    if (spec != NULL)
        gz__journal_spec__free_unpacked(spec, NULL);
    if (status != SI_OK) {
        say_status(c, j, status);
        return;
    }
    c->u.read.j = j;
    c->u.read.pos = rq->offset;
    if (rq->offset == -1)
        c->u.read.pos = index_end(c);
    si_call_queue(c, &j->readers);
}
