/*
 * Seals: what a clean close knew of each open fragment. A closed fragment carries its SHA-1 in its
 * name, a growing one cannot; the seal is two meta values a journal, good for just that end. After
 * a kill there is none for the new end, and nothing is compared.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/num.h"
#include "journal_client/local/db.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"

#define SEAL_DIGITS 15 /* of the SHA-1: what a signed 64-bit value holds */

static void key_of(const struct jl_journal *j, const char *name, char out[64])
{
    (void)snprintf(out, 64, "seal/%" PRId64 "/%s", j->id, name);
}

static int value_of(const char *sha1, int64_t *out)
{
    uint64_t v;
    int err = num_parse_hex(span_of(sha1, SEAL_DIGITS), &v);

    *out = (int64_t)v;
    return err;
}

static int seal(struct jl_store *s, const struct jl_journal *j)
{
    char sha1[41], key[64];
    int64_t value;
    int err;

    if ((err = jl_sha_peek(j->sha, sha1)) < 0 || (err = value_of(sha1, &value)) < 0)
        return err;
    key_of(j, "end", key);
    if ((err = jl_db_run(s->db, JL_SQL_META_SET, "si", key, j->open->end)) < 0)
        return err;
    key_of(j, "sha1", key);
    return jl_db_run(s->db, JL_SQL_META_SET, "si", key, value);
}

void jl_seal_all(struct jl_store *s)
{
    int err;

    if (s->read_only || (err = jl_db_begin(s)) < 0)
        return;
    for (size_t i = 0; i < s->hub.listing->n && err == 0; i++) {
        const struct jl_journal *j = jl_of(s->hub.listing->items[i]);
        /* One that is damaged keeps the seal that says so. */
        if (j->sha != NULL && !j->renamed && !j->damaged && j->open->begin < j->open->end)
            err = seal(s, j);
    }
    if (err == 0)
        err = jl_db_commit(s);
    if (err < 0) {
        jl_db_rollback(s);
        log_event(LOG_WARN, "store.seal", LF_ERR(err));
    }
}

int jl_seal_compare(struct jl_store *s, const struct jl_journal *j, const char *sha1)
{
    char key[64];
    int64_t end, sealed, value;
    int err;

    key_of(j, "end", key);
    if ((err = jl_db_meta(s->db, key, &end)) < 0 || end != j->open->end)
        return err;
    key_of(j, "sha1", key);
    if ((err = jl_db_meta(s->db, key, &sealed)) < 0 || (err = value_of(sha1, &value)) < 0)
        return err;
    return sealed != value;
}

int jl_seal_drop(struct jl_store *s, const struct jl_journal *j)
{
    char key[64];

    key_of(j, "*", key);
    return jl_db_run(s->db, JL_SQL_META_DROP, "s", key);
}
