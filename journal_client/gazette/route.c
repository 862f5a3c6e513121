/*
 * Which broker a journal's calls go to. Answers and listings name the brokers that hold it; the one
 * of our zone is read from (traffic between zones costs), else the primary; appends go to the
 * primary. All of it is a hint: every broker forwards what is not its own, and the pool passes over
 * brokers that cannot be reached. Home.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

static void set(char **hint, const char *endpoint)
{
    char *copy;

    if (endpoint == NULL || (*hint != NULL && strcmp(*hint, endpoint) == 0) ||
        (copy = mem_strdup(endpoint)) == NULL)
        return;
    mem_free(*hint);
    *hint = copy;
}

static bool same_zone(const char *zone, const Gz__ProcessId *id)
{
    return zone != NULL && id != NULL && id->zone != NULL && strcmp(zone, id->zone) == 0;
}

void gz_route_take(struct gz_journal *j, const Gz__Route *r)
{
    const char *primary = NULL, *near = NULL;

    if (r == NULL || r->n_endpoints == 0 || r->n_endpoints != r->n_members)
        return; /* none is assigned, or the broker does not say where */
    if (r->primary >= 0 && (size_t)r->primary < r->n_endpoints)
        primary = r->endpoints[r->primary];
    for (size_t i = 0; i < r->n_members && near == NULL; i++) {
        if (same_zone(j->store->zone, r->members[i]))
            near = r->endpoints[i];
    }
    /* A primary of our zone before another member of it. */
    if (primary != NULL && same_zone(j->store->zone, r->members[r->primary]))
        near = primary;
    set(&j->primary, primary);
    set(&j->endpoint, near != NULL ? near : primary != NULL ? primary : r->endpoints[0]);
}

void gz_route_take_header(struct gz_journal *j, struct span header)
{
    Gz__Header *h = header.n == 0 ? NULL : gz__header__unpack(NULL, header.n, header.p);

    if (h == NULL)
        return;
    gz_route_take(j, h->route);
    gz__header__free_unpacked(h, NULL);
}
