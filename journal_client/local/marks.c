/*
 * The highest backfill markers of each journal among the database's meta values: rows exist only
 * for journals that ever saw a marker, and are written only by the transaction that brings one.
 */
#include <inttypes.h>
#include <stdio.h>

#include "journal_client/local/db.h"

#define FIELDS 5

struct field {
    const char *name;
    int64_t value;
};

static void key_of(int64_t journal, const char *name, char out[64])
{
    (void)snprintf(out, 64, "marks/%" PRId64 "/%s", journal, name);
}

static void to_fields(const struct jc_marks *m, struct field f[FIELDS])
{
    f[0] = (struct field){"begin", (int64_t)m->begin};
    f[1] = (struct field){"begin_end", m->begin_end};
    f[2] = (struct field){"complete", (int64_t)m->complete};
    f[3] = (struct field){"completed", (int64_t)m->completed};
    f[4] = (struct field){"complete_end", m->complete_end};
}

int jl_db_marks_set(struct jl_db *db, int64_t journal, const struct jc_marks *m)
{
    struct field f[FIELDS];
    char key[64];
    int err = 0;

    to_fields(m, f);
    for (size_t i = 0; err == 0 && i < FIELDS; i++) {
        key_of(journal, f[i].name, key);
        err = jl_db_run(db, JL_SQL_META_SET, "si", key, f[i].value);
    }
    return err;
}

int jl_db_marks_get(struct jl_db *db, int64_t journal, struct jc_marks *out)
{
    struct field f[FIELDS];
    char key[64];
    int err = 0;

    *out = (struct jc_marks){0};
    to_fields(out, f);
    for (size_t i = 0; err == 0 && i < FIELDS; i++) {
        key_of(journal, f[i].name, key);
        err = jl_db_meta(db, key, &f[i].value);
    }
    if (err < 0)
        return err;
    *out = (struct jc_marks){.begin = (uint64_t)f[0].value,
                             .begin_end = f[1].value,
                             .complete = (uint64_t)f[2].value,
                             .completed = (uint64_t)f[3].value,
                             .complete_end = f[4].value};
    return 0;
}

int jl_db_marks_drop(struct jl_db *db, int64_t journal)
{
    char key[64];

    key_of(journal, "*", key);
    return jl_db_run(db, JL_SQL_META_DROP, "s", key);
}
