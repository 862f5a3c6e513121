/*
 * What a journal's labels say about its topic: key, codec, bound. Bad labels never take a topic
 * away: they are logged and the safe reading is used. Control thread.
 */
#include "gateway/view_build_int.h"

#include "base/log.h"
#include "base/mem.h"
#include "gateway/metrics.h"
#include "journal_client/uuid.h"

/* More than any key that labels or a catalog may have. */
#define SIGNATURE_MAX ((size_t)65536)

static enum kp_codec read_codec(const struct jc_spec *spec)
{
    const char *value;
    enum kp_codec codec;

    if (jc_spec_label(spec, GW_LABEL_COMPRESSION, &value) < 0 ||
        kp_codec_parse(span_str(value), &codec) < 0)
        return KP_CODEC_NONE;
    return codec;
}

static void encoder_end(struct gw_encoder_life *life)
{
    struct vb_encoder *e = (struct vb_encoder *)((char *)life - offsetof(struct vb_encoder, life));

    sc_key_free(e->encoder.key);
    gw_avro_unref(e->encoder.avro);
    blob_unref(e->signature);
    mem_free(e);
}

/* like: all but id, key and life; its avro is borrowed. */
static const struct gw_encoder *intern(struct view_build *vb, struct writer *signature,
                                       const struct gw_encoder *like, const struct span *pointers,
                                       size_t n)
{
    struct vb_encoder *e;
    struct blob *text = wr_take(signature);

    if (text == NULL)
        return NULL;
    STAILQ_FOREACH(e, &vb->encoders, link)
    {
        if (span_eq(blob_span(e->signature), blob_span(text))) {
            blob_unref(text);
            return &e->encoder;
        }
    }
    if ((e = mem_zalloc(sizeof *e)) == NULL) {
        blob_unref(text);
        return NULL;
    }
    e->encoder = *like;
    e->encoder.id = vb->encoders_n++;
    e->signature = text;
    e->life.end = encoder_end;
    atomic_init(&e->life.refs, 1);
    e->encoder.life = &e->life;
    int err = n == 0 ? 0 : sc_key_new(pointers, n, &e->encoder.key);
    if (err == E_NOMEM) {
        blob_unref(text);
        mem_free(e);
        return NULL;
    }
    if (err < 0)
        log_event(LOG_WARN, "view.key_refused", LF_SPAN("pointer", pointers[0]),
                  LF_STR("effect", "records have no key"));
    if (like->avro != NULL)
        e->encoder.avro = gw_avro_ref(like->avro);
    STAILQ_INSERT_TAIL(&vb->encoders, e, link);
    return &e->encoder;
}

/* What the catalog says counts; labels fill in the rest. */
static int choose_key(const struct catalog_binding *b, const struct jc_spec *spec, struct arena *a,
                      struct span *pointers, size_t *n)
{
    *n = 0;
    if (b != NULL && b->collection != NULL) {
        *n = b->collection->keys_n;
        for (size_t i = 0; i < *n; i++)
            pointers[i] = b->collection->keys[i];
        return 0;
    }
    return spec == NULL ? 0 : gw_label_key(spec, a, pointers, n);
}

/* The Avro part of an encoder. */
static void choose_avro(const struct vb_topic *t, struct gw_encoder *e)
{
    if (t->binding == NULL || t->binding->avro == NULL || t->spec == NULL)
        return;
    e->avro = t->binding->avro;
    e->avro_value = t->spec->value_format != CATALOG_FORMAT_JSON;
    e->avro_key = t->spec->key_format == CATALOG_FORMAT_DEFAULT
                      ? e->avro_value
                      : t->spec->key_format == CATALOG_FORMAT_AVRO;
    e->misfit = t->spec->on_error == CATALOG_ON_ERROR_SKIP  ? GW_MISFIT_SKIP
                : t->spec->on_error == CATALOG_ON_ERROR_RAW ? GW_MISFIT_RAW
                                                            : GW_MISFIT_STOP;
}

static void sign_avro(const struct gw_encoder *e, struct writer *signature)
{
    if (e->avro == NULL)
        return;
    wr_u8(signature, e->avro_key);
    wr_u8(signature, e->avro_value);
    wr_u8(signature, (uint8_t)e->misfit);
    wr_u32(signature, sc_avro_key_id(e->avro->avro));
    wr_u32(signature, sc_avro_value_id(e->avro->avro));
    wr_span(signature, span_of(e->avro->mark, sizeof e->avro->mark));
}

const struct gw_encoder *vb_encoder_for(const struct vb_topic *t, const struct jc_spec *spec)
{
    struct span pointers[GW_KEY_PARTS_MAX] = {{NULL, 0}};
    const struct gw_encoder *found = NULL;
    struct writer signature;
    struct arena a;
    size_t n;

    arena_init(&a, SIGNATURE_MAX);
    wr_init(&signature, SIGNATURE_MAX);
    struct gw_encoder like = {0};
    choose_avro(t, &like);
    like.bare_key = t->spec != NULL && t->spec->key_format == CATALOG_FORMAT_SCALAR;
    like.codec = t->spec != NULL && t->spec->has_codec ? t->spec->codec
                 : spec != NULL                        ? read_codec(spec)
                                                       : KP_CODEC_NONE;
    int err = choose_key(t->binding, spec, &a, pointers, &n);
    if (err == E_NOMEM)
        goto out;
    if (err < 0)
        n = 0; /* half a key would route nobody right: no key */
    wr_u8(&signature, (uint8_t)like.codec);
    wr_u8(&signature, like.avro != NULL);
    wr_u8(&signature, like.bare_key);
    for (size_t i = 0; i < n; i++) {
        wr_uvarint32(&signature, (uint32_t)pointers[i].n);
        wr_span(&signature, pointers[i]);
    }
    sign_avro(&like, &signature);
    if (wr_err(&signature) == 0)
        found = intern(t->vb, &signature, &like, pointers, n);
out:
    wr_fini(&signature);
    arena_fini(&a);
    return found;
}

void vb_encoders_sweep(struct view_build *vb, bool all)
{
    struct vb_encoder *e, *next;

    for (e = STAILQ_FIRST(&vb->encoders); e != NULL; e = next) {
        next = STAILQ_NEXT(e, link);
        /* with one reference left it is this list's, and only this thread could give out more */
        if (!all && atomic_load_explicit(&e->life.refs, memory_order_acquire) > 1)
            continue;
        STAILQ_REMOVE(&vb->encoders, e, vb_encoder, link);
        gw_encoder_unref(&e->encoder);
    }
}

void vb_slot_read_bound(struct vb_slot *s)
{
    const char *value = "";
    uint64_t clock = 0;

    int err = jc_spec_label(&s->journal->spec, JC_LABEL_TRUNCATED_AT, &value);
    if (err == E_NOTFOUND)
        return; /* a bound that was set once stays */
    if (err == 0)
        err = jc_clock_parse_hex(span_str(value), &clock);
    if (err < 0) {
        metric_add(M_LABELS_REFUSED, 1);
        log_event(LOG_WARN, "view.label_refused", LF_STR("journal", s->journal->spec.name),
                  LF_STR("label", JC_LABEL_TRUNCATED_AT),
                  LF_STR("value", value == NULL ? "several" : value), LF_ERR(err));
        return;
    }
    if (clock < s->bound) {
        metric_add(M_LABELS_REGRESSED, 1);
        log_event(LOG_WARN, "view.label_regressed", LF_STR("journal", s->journal->spec.name),
                  LF_STR("label", JC_LABEL_TRUNCATED_AT), LF_STR("value", value));
        return;
    }
    s->bound = clock;
}
