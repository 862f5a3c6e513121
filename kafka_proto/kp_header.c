/*
 * Headers around messages, both directions. Request header v1 or v2 (KIP-482) and response header
 * v0 or v1 go by the flexible version of the API; the two quirks are named here and nowhere else:
 * client_id never becomes compact, and the ApiVersions response keeps header v0.
 */
#include "kafka_proto/kp_int.h"
#include "kafka_proto/kp_messages.h"

/* No tagged field of a header means anything to us; they are held to the rules of KIP-482 all the
 * same. */
static int skip_tags(struct reader *r)
{
    uint32_t n;
    int64_t last = -1;
    int err = rd_uvarint32(r, &n);

    if (err < 0)
        return err;
    while (n-- > 0) {
        uint32_t tag, size;
        const uint8_t *p;

        if ((err = rd_uvarint32(r, &tag)) < 0 || (err = rd_uvarint32(r, &size)) < 0 ||
            (err = rd_take(r, size, &p)) < 0)
            return err;
        if ((int64_t)tag <= last)
            return E_SYNTAX;
        last = tag;
    }
    return 0;
}

/* Quirk: stays int16-prefixed in header v2, so that a broker can read it whatever the version. */
static int read_client_id(struct reader *r, struct span *out)
{
    int16_t n;
    const uint8_t *p;
    int err = rd_i16(r, &n);

    *out = (struct span){NULL, 0};
    if (err < 0)
        return err;
    if (n < -1)
        return E_SYNTAX;
    if (n == -1)
        return 0;
    if ((err = rd_take(r, (size_t)n, &p)) < 0)
        return err;
    *out = span_of(p, (size_t)n);
    return 0;
}

int kp_request_header_decode(struct reader *r, struct kp_request_header *out, bool *known)
{
    struct kp_request_header h = {.client_id = {NULL, 0}};
    int err;

    *out = h;
    *known = false;
    if ((err = rd_i16(r, &h.api_key)) < 0 || (err = rd_i16(r, &h.api_version)) < 0 ||
        (err = rd_i32(r, &h.correlation_id)) < 0)
        return err;

    const struct kp_api *api = kp_api_find(h.api_key);
    if (api != NULL && kp_api_speaks(api, h.api_version)) {
        if ((err = read_client_id(r, &h.client_id)) < 0)
            return err;
        if (h.api_version >= api->flexible && (err = skip_tags(r)) < 0)
            return err;
        *known = true;
    }
    *out = h;
    return 0;
}

bool kp_response_header_has_tags(const struct kp_api *api, int16_t version)
{
    /* Quirk (KIP-511): who asks ApiVersions does not know yet which header the answer will have */
    return api->key != KP_API_API_VERSIONS && version >= api->flexible;
}

int kp_response_header_decode(const struct kp_api *api, int16_t version, struct reader *r,
                              int32_t *correlation_id)
{
    int32_t id;
    int err = rd_i32(r, &id);

    if (err < 0)
        return err;
    if (kp_response_header_has_tags(api, version) && (err = skip_tags(r)) < 0)
        return err;
    *correlation_id = id;
    return 0;
}

int kp_request_encode(const struct kp_api *api, int16_t version, int32_t correlation_id,
                      struct span client_id, const void *req, struct arena *a, struct writer *w)
{
    size_t at = wr_len(w);
    int err;

    if (client_id.n > INT16_MAX)
        return E_LIMIT;
    wr_i32(w, 0);
    wr_i16(w, api->key);
    wr_i16(w, version);
    wr_i32(w, correlation_id);
    int32_t n = client_id.p == NULL ? -1 : (int32_t)client_id.n;
    wr_i16(w, (int16_t)n);
    wr_span(w, client_id);
    if (version >= api->flexible)
        wr_u8(w, 0);
    if ((err = kp_encode(api->request, version, req, a, w)) < 0)
        return err;

    size_t body = wr_len(w) - at - 4;
    if (body > INT32_MAX)
        return E_LIMIT;
    wr_poke_i32(w, at, (int32_t)body);
    return wr_err(w);
}
