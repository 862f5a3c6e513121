/* Journal objects: identity, heads and fragments of one create revision. */
#include "journal_client/local/journal.h"
#include "base/mem.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"

int jl_journal_new(struct jl_store *s, int64_t id, const char *name, int64_t create_revision,
                   struct jl_journal **out)
{
    struct jl_journal *j = mem_zalloc(sizeof *j);
    char *path = NULL;
    int err = E_NOMEM;

    *out = NULL;
    if (j == NULL)
        return E_NOMEM;
    jc_hub_journal_init(&j->hub, &s->hub);
    j->hub.ready = true;
    j->store = s;
    j->id = id;
    j->create_revision = create_revision;
    if ((j->name = mem_strdup(name)) == NULL)
        goto out;
    if ((err = jl_frag_new(s, 0, 0, &j->open)) < 0)
        goto out;
    err = E_NOMEM;
    if ((path = jl_path_open(s->dir, name, 0)) == NULL)
        goto out;
    j->open->open = true;
    jl_frag_set_path(j->open, path);
    j->sha = jl_sha_new(); /* NULL: computed from the file when it closes */
    *out = j;
    return 0;
out:
    jl_journal_unref(j);
    return err;
}

struct jl_journal *jl_journal_ref(struct jl_journal *j)
{
    jc_hub_journal_ref(&j->hub);
    return j;
}

void jl_journal_unref(void *journal)
{
    jc_hub_journal_unref(journal);
}

void jl_journal_free(struct jc_hub_journal *journal)
{
    struct jl_journal *j = (struct jl_journal *)journal;

    for (size_t i = 0; i < j->frags_n; i++)
        jl_frag_unref(j->frags[i]);
    mem_free(j->frags);
    jl_frag_unref(j->open);
    jl_sha_free(j->sha);
    jl_index_fini(&j->pend_blocks);
    mem_free(j->name);
    mem_free(j);
}

size_t jl_first_behind(const struct jl_journal *j, int64_t pos)
{
    size_t low = 0, high = j->frags_n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (j->frags[mid]->end <= pos)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void jl_journal_set_first(struct jl_journal *j)
{
    size_t i = 0;

    /* One that only went away while the store runs may come back. */
    while (i < j->frags_n &&
           (j->frags[i]->state == JL_FRAG_REMOVED || j->frags[i]->state == JL_FRAG_LOST))
        i++;
    j->hub.heads.first = i < j->frags_n ? j->frags[i]->begin : j->open->begin;
}
