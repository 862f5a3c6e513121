/* Parts of answers that several calls share: the header and the fragment, as a broker writes them.
 */
#include "base/mem.h"
#include "base/writer.h"
#include "tests/gazette_stand_in/stand_in_int.h"

void si_header_init(struct stand_in *si, const struct si_journal *j, struct si_header *h)
{
    gz__header__init(&h->h);
    gz__process_id__init(&h->id);
    gz__process_id__init(&h->member);
    gz__route__init(&h->route);
    gz__etcd__init(&h->etcd);
    h->id.zone = h->member.zone = si->zone;
    h->id.suffix = h->member.suffix = si->id;
    h->members[0] = &h->member;
    h->endpoints[0] = si->endpoint;
    if (j != NULL && j->assigned) {
        h->route.members = h->members;
        h->route.n_members = 1;
        h->route.endpoints = h->endpoints;
        h->route.n_endpoints = 1;
    } else {
        h->route.primary = -1;
    }
    h->etcd.cluster_id = si->o.cluster_id;
    h->etcd.member_id = si->o.member_id;
    h->etcd.raft_term = si->o.raft_term;
    h->etcd.revision = si->revision;
    h->h.process_id = &h->id;
    h->h.route = &h->route;
    h->h.etcd = &h->etcd;
}

void si_wire_sum(const uint8_t digest[20], Gz__Sha1 *out)
{
    gz__sha1__init(out);
    out->part1 = be_load64(digest);
    out->part2 = be_load64(digest + 8);
    out->part3 = be_load32(digest + 16);
}

void si_wire_frag_init(const struct si_journal *j, const struct si_fragment *f, int64_t end,
                       struct si_wire_frag *w)
{
    uint8_t digest[20];

    gz__fragment__init(&w->f);
    si_frag_sum(f, end, digest);
    si_wire_sum(digest, &w->sum);
    w->f.journal = j->name;
    w->f.begin = f->begin;
    w->f.end = end;
    w->f.sum = &w->sum;
    w->f.compression_codec = f->codec;
    if (f->listed) {
        w->f.backing_store = f->store;
        w->f.mod_time = f->mod_time_s;
    }
}
