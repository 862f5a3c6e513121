/*
 * What a store must know of a line (gateway.h, gw_doc_probe): the same look that the block builder
 * takes, so that a store's index and the records can never disagree. Pure, any thread.
 */
#include "gateway/block_build.h"
#include "gateway/gateway.h"

void gw_doc_probe(void *arg, struct span line, struct jc_doc_info *out)
{
    struct sc_uuid_hint hint = {0};

    (void)arg;
    gw_doc_look(line, &hint, out);
}
