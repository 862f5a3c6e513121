/*
 * Fragments and the bounded cache of their descriptors (frag.c).
 */
#pragma once

#include <stdatomic.h>
#include <sys/queue.h>

#include "journal_client/local/index.h"

struct jl_journal;
struct jl_store;

TAILQ_HEAD(jl_frag_list, jl_frag);

/* What became of a closed fragment's file. All but HERE are holes: reads jump over them. */
enum jl_frag_state {
    JL_FRAG_HERE,
    JL_FRAG_AWAY,    /* vanished while the store ran; looked for at each tick */
    JL_FRAG_LOST,    /* was not there at the start; looked for at the next one */
    JL_FRAG_REMOVED, /* by an operator's request: never comes back */
};

/* lock: store, except where said. Immutable once closed, but for state and blocks (set once). */
struct jl_frag {
    atomic_uint refs;
    struct jl_store *store; /* counted */
    int64_t begin;
    int64_t end;   /* of an open one: the committed end */
    bool open;     /* the growing one */
    bool accepted; /* the database says that it is lost */
    enum jl_frag_state state;
    char sha1[41];
    int64_t mod_time_ms;
    struct jl_sum sum;
    struct jl_blocks blocks; /* v == NULL: not loaded yet (closed ones only) */
    /* lock: fd cache */
    char *path;
    int fd; /* -1: not open */
    unsigned pins;
    TAILQ_ENTRY(jl_frag) lru; /* while fd >= 0 */
};

MUST_USE int jl_frag_new(struct jl_store *s, int64_t begin, int64_t end, struct jl_frag **out);
struct jl_frag *jl_frag_ref(struct jl_frag *f);
void jl_frag_unref(struct jl_frag *f);
/* Sets where the file lies (takes ownership of path). */
void jl_frag_set_path(struct jl_frag *f, char *path);
/* Renames the file on disk and in the object at once. */
MUST_USE int jl_frag_rename(struct jl_frag *f, char *to);
/* The descriptor stays open until unpinned. create: makes the file. E_NOTFOUND: removed meanwhile.
 */
MUST_USE int jl_frag_pin(struct jl_frag *f, bool create, int *fd);
void jl_frag_unpin(struct jl_frag *f);
/* Closes all descriptors that nobody uses. */
void jl_frag_close_all(struct jl_store *s);
/* Any thread of the store but the committer's fast path: loads or rebuilds the block index. */
MUST_USE int jl_frag_load(struct jl_journal *j, struct jl_frag *f);
/* For readers: E_NOTFOUND also when the journal was deleted, so that what was opened by its name is
 * none of a later journal. */
MUST_USE int jl_frag_pin_live(struct jl_journal *j, struct jl_frag *f, int *fd);
static inline bool jl_frag_jumped(const struct jl_frag *f)
{
    return f->state != JL_FRAG_HERE;
}
