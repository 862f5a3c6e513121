/*
 * A binding's Avro program, counted: the catalog that compiled it, the encoders that run it and the
 * registry that shows its schemas share it. Immutable; any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "schema/avro.h"

struct gw_avro {
    atomic_uint refs;
    struct sc_avro *avro; /* owned */
    uint64_t mark[2];     /* equal for equal sources: schema, fields, options */
};

/* Takes over `avro`, not when it fails. E_NOMEM. */
MUST_USE int gw_avro_new(struct sc_avro *avro, const uint64_t mark[2], struct gw_avro **out);
struct gw_avro *gw_avro_ref(struct gw_avro *a);
void gw_avro_unref(struct gw_avro *a); /* NULL is allowed */

/* What happens to a document that its schema does not admit. */
enum gw_misfit {
    GW_MISFIT_STOP, /* the partition answers an error there */
    GW_MISFIT_SKIP, /* it is left out */
    GW_MISFIT_RAW,  /* it is served as it is stored, with a header that says why */
};

#define GW_HEADER_MISFIT "sluice-schema-error"
