/*
 * The embedded store: one folder, one process.
 *
 *   DIR/LOCK                                     flock()ed by the owner, holds its pid
 *   DIR/sluice.db                                SQLite (WAL, synchronous=FULL): specs, revisions,
 *                                                commit ends, fragments, key-values
 *   DIR/fragments/<journal>/<begin>-<end>-<sha1>.raw
 *                                                closed fragments, laid out as a Gazette file://
 *                                                store does
 *   DIR/open/<journal>/<begin>.open              the growing fragment; bytes behind the committed
 *                                                end are cut at recovery
 *   DIR/index/<journal>/<begin>-<end>.idx        block index of a closed fragment; rebuilt when
 *                                                missing or damaged
 *   DIR/lost+found/<revision>/...                files that lay where a new journal was made
 *
 * Commit of a group: write all parts, fsync each touched open file, one SQLite transaction (the
 * commit record); then bytes become readable and answers go out. Single node; that is its honest
 * limit. Why it is so: docs/decisions/0001-local-store.md.
 */
#pragma once

#include "journal_client/store.h"

struct jc_local_opts {
    const char *dir;           /* created when missing */
    const struct clock *clock; /* NULL = the system's */
    jc_probe_fn *probe;        /* required; gives kind and clock of each line */
    void *probe_arg;
    unsigned io_threads;     /* 0 = 2 */
    bool read_only;          /* nothing is changed, writes answer E_DENIED; refused while an owner
                                runs */
    bool accept_lost;        /* opens although many recorded fragments are not there, and records
                                them as lost: later starts go on without them */
    int64_t fragment_bytes;  /* default for specs that say 0; 0 = 64 MiB */
    int64_t housekeeping_ms; /* period of closing by age, retention and expiry; 0 = 1000 */
};

/* E_BUSY: another process owns the folder (why names its pid). E_CORRUPT (also: no database but
 * journals' files, or a journal of whose recorded fragments all, or more than one and a twentieth,
 * are missing or damaged), E_IO, E_VERSION (folder of a newer program). why: caller's buffer for
 * one line of explanation, may be NULL. Blocks while it recovers. */
MUST_USE int jc_local_open(const struct jc_local_opts *o, struct jc_store **out, char *why,
                           size_t why_bytes);

/* Reads of fragment and index files since the process began, all stores together. Any thread. */
void jc_local_read_stats(uint64_t *reads, uint64_t *bytes);

/* Closes the open fragment of every journal, for hand-over and tests. done: the first error. */
MUST_USE int jc_local_flush(struct jc_store *s, struct executor *ex, jc_done_fn *done, void *arg);

/* Removes the closed fragments whose end is <= end, with the bookkeeping of retention: log_start
 * rises to the end of the last content document that went (O7). */
MUST_USE int jc_local_remove_fragments(struct jc_store *s, const struct jc_journal *j, int64_t end,
                                       struct executor *ex, jc_done_fn *done, void *arg);

/* Removes the one closed fragment that begins at begin, for good, whether its file is there or not:
 * reads jump over it; log_start rises only when nothing is left below. E_NOTFOUND: there is none,
 * or it was removed before. */
MUST_USE int jc_local_punch(struct jc_store *s, const struct jc_journal *j, int64_t begin,
                            struct executor *ex, jc_done_fn *done, void *arg);

/* Verifies a folder that nobody owns: every fragment's SHA-1 and name, contiguity, whole lines,
 * commit ends, index, files that are missing (accepted or not) or that no record names. report is
 * called for each fault (text borrowed). Returns the number of faults, or a negative E_* after one
 * report of why the folder cannot be looked at. */
MUST_USE int jc_local_check(const char *dir, jc_probe_fn *probe, void *probe_arg,
                            void (*report)(void *arg, const char *text), void *arg);
