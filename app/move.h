/*
 * Handing the journals of a data folder over to a Gazette cluster: what `sluice move` does, and
 * what `sluice serve` asks about it. Main thread.
 */
#pragma once

#include "app/store_sync.h"
#include "journal_client/gazette.h"
#include "journal_client/local.h"

/* Key-value of a folder whose journals were handed over; its value is the store's URL. */
#define MOVE_MARK "moved/to"

/* One journal that goes. Owner: struct move. */
struct move_journal {
    const struct jc_journal *from;                      /* counted */
    const struct jc_journal *to;                        /* counted; NULL before it was made */
    enum { MOVE_NOT_MADE, MOVE_DOUBT, MOVE_MADE } made; /* in the cluster; DOUBT: no answer came */
    struct jc_heads heads;
    struct jc_fragment *fragments;
    size_t fragments_n;
};

struct move {
    struct jc_store *local, *cluster;
    struct mailbox mb;
    struct move_journal *v; /* by rank: create revision, then name (O13) */
    size_t n;
    size_t failed; /* index of the journal that a failure is about; n: none */
    char why[512]; /* of a failure, one line */
};

void move_fini(struct move *m);
/* Takes in what the open local store holds. */
MUST_USE int move_look(struct move *m);
/* Makes the journals in the cluster, in the order of their ranks, and takes them over: the brokers
 * must see all of their bytes, by name and SHA-1. Behind a failure, of this or a later step:
 * move_unmake. */
MUST_USE int move_journals(struct move *m);
/* Deletes what was made in the cluster; what is left there, or may be, is said on stderr. */
void move_unmake(struct move *m);
/* The key-values, with create revisions replaced in the memory of topics, so that generations, and
 * with them leader epochs and the places of groups, stay as they are. */
MUST_USE int move_values(struct move *m);
/* The value of a topic's memory with the revisions of the cluster. E_CORRUPT. */
MUST_USE int move_generation(const struct move *m, struct span value, struct blob **out);

/* Of a folder in which a local store is about to be opened: 0, or E_CONFLICT when it is the folder
 * of a gateway over brokers, where no local store ever was: what is written to a new one, nobody
 * serves. why: one line. */
MUST_USE int move_not_local(const struct jc_local_opts *local, char *why, size_t why_bytes);
/* Of that store, opened, that is about to be written: 0, or E_CONFLICT when its journals were
 * handed over (what is published to one of two copies is missing in the other), or a gateway over
 * brokers runs in the folder. why: one line. */
MUST_USE int move_refused(struct jc_store *s, const struct jc_local_opts *local, struct mailbox *mb,
                          char *why, size_t why_bytes);
