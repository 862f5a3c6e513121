/* Keys and values of records. A document that is no JSON fits no Avro schema, and any JSON topic.
 */
#include "gateway/block_encode.h"

#include <stdio.h>

int block_encoder_init(struct block_encoder *e, const struct gw_build *how)
{
    *e = (struct block_encoder){.how = how};
    wr_init(&e->key, INT32_MAX);
    return how->avro == NULL ? 0 : sc_scratch_new(&e->scratch);
}

void block_encoder_fini(struct block_encoder *e)
{
    sc_scratch_free(e->scratch);
    wr_fini(&e->key);
}

/* The key of a document, not in Avro: null when it has none to give. E_NOMEM. */
static int text_key(struct block_encoder *e, struct span doc, struct span *out)
{
    struct span which;
    bool null = false;

    *out = (struct span){NULL, 0};
    if (e->how->key == NULL)
        return 0;
    if (e->key.b != NULL)
        e->key.b->len = 0;
    int err = e->how->bare_key ? sc_key_bare(e->how->key, doc, &e->key, &null, &which)
                               : sc_key_text(e->how->key, doc, &e->key, &which);
    if (err == E_NOMEM || wr_err(&e->key) == E_NOMEM)
        return E_NOMEM;
    if (err == 0 && wr_err(&e->key) == 0 && !null) /* an empty string is a key, of no bytes */
        *out = e->key.b == NULL ? span_of("", 0) : blob_span(e->key.b);
    return 0;
}

static void add_header(struct block_record *r, const char *key, struct span value)
{
    r->headers[r->headers_n++] = (struct kp_header){span_str(key), value};
}

static int misfit(struct block_encoder *e, struct span doc, int64_t offset,
                  const struct sc_transcode_error *why, struct block_record *out)
{
    const struct gw_build *how = e->how;

    if (how->on_misfit != NULL)
        how->on_misfit(how->arg, offset, why);
    if (how->misfit != GW_MISFIT_RAW)
        return E_INVALID;
    (void)snprintf(e->why, sizeof e->why, "%s: %s", why->pointer, why->reason);
    *out = (struct block_record){.value = doc};
    add_header(out, GW_HEADER_MISFIT, span_str(e->why));
    return text_key(e, doc, &out->key);
}

int block_encode(struct block_encoder *e, struct span doc, int64_t offset, struct block_record *out)
{
    const struct gw_build *how = e->how;
    struct sc_transcode_error why = {"", "", 0};
    struct sc_avro_record rec;
    int err;

    *out = (struct block_record){.value = doc};
    if (how->avro == NULL)
        return text_key(e, doc, &out->key);
    err = how->avro_value ? sc_transcode(how->avro, e->scratch, doc, &rec, &why)
                          : sc_transcode_key(how->avro, e->scratch, doc, &rec, &why);
    if (err == E_NOMEM)
        return err;
    if (err < 0)
        return misfit(e, doc, offset, &why, out);
    if (how->avro_value)
        out->value = rec.value;
    if (how->avro_value && sc_avro_deletions(how->avro) == SC_DELETE_HEADER)
        add_header(out, SC_DELETED_FIELD, span_str(rec.deleted ? "1" : "0"));
    out->key = rec.key;
    return how->avro_key ? 0 : text_key(e, doc, &out->key);
}
