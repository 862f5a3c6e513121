/* What an answer of any store needs. */
#include "journal_client/store.h"
#include "base/mem.h"

void jc_block_fini(struct jc_block *b)
{
    for (size_t i = 0; i < b->segments_n; i++)
        blob_unref(b->segments[i].bytes);
    mem_free(b->segments);
    mem_free(b->damaged);
    b->segments = NULL;
    b->damaged = NULL;
    b->segments_n = b->damaged_n = 0;
}
