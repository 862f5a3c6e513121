/* ListFragments: the index of a journal by pages, with signed URLs when they are asked for. */
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define PAGE_DEFAULT 1000
#define PAGE_MAX     10000

struct row {
    Gz__ListedFragment m;
    struct si_wire_frag w;
    char *url;
};

static bool wanted(const Gz__FragmentsRequest *rq, const struct si_fragment *f)
{
    if (f->listed && f->mod_time_s < rq->begin_mod_time)
        return false;
    return rq->end_mod_time == 0 || (f->listed && f->mod_time_s <= rq->end_mod_time);
}

static void answer(struct si_call *c, const Gz__FragmentsRequest *rq, const struct si_journal *j)
{
    size_t limit = rq->page_limit == 0 ? PAGE_DEFAULT : (size_t)rq->page_limit, n = 0, i;
    struct row *rows = mem_array(limit < j->n ? limit + 1 : j->n + 1, sizeof *rows);
    Gz__ListedFragment **list = mem_array(j->n + 1, sizeof *list);
    Gz__FragmentsResponse m;
    struct si_header h;
    int64_t end = si_index_end(j);

    gz__fragments_response__init(&m);
    si_header_init(c->si, j, &h);
    m.header = &h.h;
    if (c->faulty && c->fault.kind == STAND_IN_LOWER_HEAD)
        end -= c->fault.value;
    for (i = 0; rows != NULL && list != NULL && i < j->n; i++) {
        const struct si_fragment *f = j->frags[i];
        if (!si_visible(j, f) || f->begin < rq->next_page_token || f->end > end)
            continue;
        if (n == limit) {
            m.next_page_token = f->begin;
            break;
        }
        if (!wanted(rq, f))
            continue;
        gz__listed_fragment__init(&rows[n].m);
        si_wire_frag_init(j, f, f->end, &rows[n].w);
        rows[n].m.spec = &rows[n].w.f;
        if (rq->signature_ttl != NULL && (rows[n].url = si_url(f)) != NULL)
            rows[n].m.signed_url = rows[n].url;
        list[n] = &rows[n].m;
        n++;
    }
    m.fragments = list;
    m.n_fragments = n;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
    for (i = 0; i < n; i++)
        mem_free(rows[i].url);
    mem_free(rows);
    mem_free(list);
}

static void serve(struct si_call *c, const Gz__FragmentsRequest *rq)
{
    Gz__FragmentsResponse m;
    struct si_header h;
    struct si_journal *j;
    char why[700];

    if (!si_check_name(rq->journal, "Journal", why, sizeof why)) {
        si_call_end(c, 2, "%s", why);
        return;
    }
    if (rq->page_limit < 0 || rq->page_limit > PAGE_MAX || rq->next_page_token < 0) {
        si_call_end(c, 2, "invalid PageLimit (%d; must be >= 0 and <= 10000)", rq->page_limit);
        return;
    }
    int status = si_resolve(c, rq->journal, false, &j);
    if (status == SI_OK) {
        answer(c, rq, j);
        return;
    }
    gz__fragments_response__init(&m);
    si_header_init(c->si, j, &h);
    m.status = status;
    m.header = &h.h;
    si_call_send(c, &m.base);
    si_call_end(c, 0, "%s", "");
}

void si_fragments_message(struct si_call *c, struct span msg)
{
    Gz__FragmentsRequest *rq = gz__fragments_request__unpack(NULL, msg.n, msg.p);

    if (rq == NULL) {
        si_call_end(c, 13, "grpc: failed to unmarshal the received message");
        return;
    }
    serve(c, rq);
    gz__fragments_request__free_unpacked(rq, NULL);
}
