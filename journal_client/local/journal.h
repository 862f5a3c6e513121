/*
 * Journals: identity, heads and fragments of one create revision.
 */
#pragma once

#include "journal_client/hub.h"
#include "journal_client/local/frag.h"

struct jl_sha;

/* What is not there of a journal's recorded fragments (loss.c). */
struct jl_loss {
    size_t recorded; /* those that should be there: neither removed nor accepted as lost */
    size_t missing;
    size_t bad;    /* missing, unreadable or of another size */
    int64_t first; /* begin of the first bad one */
};

struct jl_journal {
    struct jc_hub_journal hub; /* first */
    struct jl_store *store;    /* the hub, with its type */
    int64_t id;
    int64_t create_revision;
    char *name;
    /* lock: store */
    struct jl_frag **frags; /* closed ones by rising begin, holes included */
    size_t frags_n, frags_cap;
    struct jl_frag *open; /* may be empty */
    /* committer */
    struct jl_sha *sha; /* over the open fragment; NULL: to be computed from the file */
    bool damaged;   /* recovery found its open fragment to differ from what the last close sealed */
    int broken;     /* E_*: takes no more appends until restart */
    bool file_made; /* the open file exists */
    bool renamed;   /* the open file has its closed name, but the database does not say so yet */
    int roll_err;   /* why the last try to record that failed */
    int64_t since_ms;    /* when its first byte was committed, Unix ms; 0: empty */
    int64_t log_start;   /* as recorded: heads.log_start without what only was not found */
    struct jl_loss loss; /* found by recovery */
    bool in_group;
    int64_t tail; /* where the next part of the group begins */
    struct jl_blocks pend_blocks;
    struct jl_sum pend_sum;
    STAILQ_ENTRY(jl_journal) group;
};
STAILQ_HEAD(jl_journal_list, jl_journal);

MUST_USE int jl_journal_new(struct jl_store *s, int64_t id, const char *name,
                            int64_t create_revision, struct jl_journal **out);
struct jl_journal *jl_journal_ref(struct jl_journal *j);
void jl_journal_unref(void *journal);                 /* impl_release of jc_journal */
void jl_journal_free(struct jc_hub_journal *journal); /* jc_hub_ops */
/* Under the store lock: what follows from the fragment list. */
void jl_journal_set_first(struct jl_journal *j);
/* Under the store lock: the index of the first closed fragment that ends behind pos. */
size_t jl_first_behind(const struct jl_journal *j, int64_t pos);
/* Fragment number at, the open one behind the closed ones. */
static inline struct jl_frag *jl_frag_at(const struct jl_journal *j, size_t at)
{
    return at < j->frags_n ? j->frags[at] : j->open;
}
/* Its block index is there, or not needed. */
static inline bool jl_frag_loaded(const struct jl_frag *f)
{
    return f->open || jl_frag_jumped(f) || f->blocks.v != NULL;
}
static inline struct jl_journal *jl_op_journal(const struct jc_op *op)
{
    return (struct jl_journal *)op->j;
}
static inline struct jl_journal *jl_of(const struct jc_journal *j)
{
    return j->impl;
}
