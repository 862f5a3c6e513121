/* Counting of a binding's Avro program. */
#include "gateway/avro.h"

#include "base/mem.h"

int gw_avro_new(struct sc_avro *avro, const uint64_t mark[2], struct gw_avro **out)
{
    struct gw_avro *a = mem_zalloc(sizeof *a);

    *out = NULL;
    if (a == NULL)
        return E_NOMEM;
    atomic_init(&a->refs, 1);
    a->avro = avro;
    a->mark[0] = mark[0];
    a->mark[1] = mark[1];
    *out = a;
    return 0;
}

struct gw_avro *gw_avro_ref(struct gw_avro *a)
{
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void gw_avro_unref(struct gw_avro *a)
{
    if (a == NULL || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    sc_avro_free(a->avro);
    mem_free(a);
}
