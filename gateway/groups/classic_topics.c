/*
 * What a consumer's member metadata says of topics: the head of ConsumerProtocolSubscription, equal
 * in all its versions: int16 version, array of strings. Pure.
 */
#include "base/reader.h"
#include "gateway/groups/classic_int.h"

/* 1: it is there, 0: it is not; negative: these bytes are no subscription. */
static int find_topic(struct span metadata, struct span topic)
{
    struct reader r = reader_of(metadata);
    int16_t version;
    int32_t n;
    int err;

    if ((err = rd_i16(&r, &version)) < 0 || (err = rd_i32(&r, &n)) < 0)
        return err;
    if (version < 0 || n < -1)
        return E_SYNTAX;
    int found = 0;
    for (int32_t i = 0; i < n; i++) {
        int16_t bytes;
        const uint8_t *p;
        if ((err = rd_i16(&r, &bytes)) < 0)
            return err;
        if (bytes < 0)
            return E_SYNTAX;
        if ((err = rd_take(&r, (size_t)bytes, &p)) < 0)
            return err;
        if (span_eq(span_of(p, (size_t)bytes), topic))
            found = 1;
    }
    return found;
}

bool classic_subscription_has(struct span metadata, struct span topic)
{
    return find_topic(metadata, topic) != 0;
}
