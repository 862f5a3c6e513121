/*
 * What the disk holds of a journal's closed fragments, and what to think of what it does not hold.
 *
 * Absence is no removal: a volume that is not mounted yet, a restore that is half done and a file
 * that somebody deleted look alike. So nothing is recorded or unlinked because it was not found;
 * a few missing files are holes for as long as they are missing, and more than a few stop the
 * start, or the read.
 */
#pragma once

#include "journal_client/local/journal.h"

/* A file in a journal's folder that has a closed fragment's name. */
struct jl_found {
    int64_t begin, end;
    char sha1[41];
    bool sound; /* a readable file of the right size */
};

/* Those of one journal by rising begin. Owner: the caller; zero-initialise. */
struct jl_folder {
    struct jl_found *v;
    size_t n, cap;
};

/* A folder that is not there is an empty one. E_IO, E_NOMEM. */
MUST_USE int jl_folder_list(const struct jl_store *s, const struct jl_journal *j,
                            struct jl_folder *out);
void jl_folder_fini(struct jl_folder *fo);
/* sha1 NULL: any. */
const struct jl_found *jl_folder_find(const struct jl_folder *fo, int64_t begin, int64_t end,
                                      const char *sha1);

/* Recovery: compares the loaded fragments with the folder; sets their states and j->loss. Changes
 * nothing on disk. */
void jl_loss_judge(struct jl_journal *j, const struct jl_folder *fo);
/* True: too much is not there for going on without a person's word. */
bool jl_loss_refused(const struct jl_loss *loss);
/* One line for people: which journal, how many of how many, where, and what to do. */
void jl_loss_text(const struct jl_journal *j, char *text, size_t bytes);
/* What was not found at the start and lies at the front, now or since the prefix before it went, is
 * jumped over: raises heads.log_start, in memory alone. Under the lock, or at recovery. */
void jl_loss_front(struct jl_journal *j);
/* Recovery, once it goes on: what only was not found raises log_start in memory alone. Records
 * what came back, and with accept_lost also what did not. */
MUST_USE int jl_loss_settle(struct jl_store *s, struct jl_journal *j);
/* Recovery: finishes removals that the database names, and tells of files that it does not. */
void jl_loss_orphans(struct jl_store *s, struct jl_journal *j, const struct jl_folder *fo);

/* The database names the file, whatever it says of it, or a close is about to. */
bool jl_loss_known(struct jl_store *s, const struct jl_journal *j, const struct jl_found *f);

/* A reader did not find the file of f. E_AGAIN: look again, it is a hole now, or the list has
 * changed. E_IO: too much is away to jump over it. E_CORRUPT: it was the growing one. */
MUST_USE int jl_frag_vanished(struct jl_journal *j, struct jl_frag *f);
/* Committer, at each tick: files that are back are served again. */
void jl_loss_tick(struct jl_store *s, struct jl_journal *j);

/* Before the database is opened: E_CORRUPT with a text when its file is missing or empty and the
 * folder holds journals' bytes; E_NOTFOUND: a reader finds no store. */
MUST_USE int jl_loss_database(const struct jl_store *s, char *why, size_t why_bytes);
/* The second half of it: for a database that has no tables. */
MUST_USE int jl_loss_content(const struct jl_store *s, char *why, size_t why_bytes);
/* Moves whatever lies in the folders of a journal that is about to be made to DIR/lost+found. */
MUST_USE int jl_set_aside(struct jl_store *s, const char *name);
/* Calls fn for each file below folder that has one of our names (.raw, .open), with the journal's
 * name (the path below folder). fn returns non-zero to end the walk; that is returned, or E_*. A
 * folder that is not there is empty. */
typedef int jl_walk_fn(void *arg, const char *journal, const char *file);
MUST_USE int jl_walk(const char *folder, jl_walk_fn *fn, void *arg);
