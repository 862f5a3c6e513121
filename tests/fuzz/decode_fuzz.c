/*
 * Input: API key (2 bytes; the top bit asks for the response), version (2 bytes), then
 * the message. What decodes must encode, and decode again to the very same message. The arena has a
 * budget as a request has, so an input that buys too much memory shows as a time-out or a crash.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "tests/unit/kafka_proto/kp_random.h"

#define BUDGET ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a message decodes; *out comes from the arena. */
static bool decode(const struct kp_desc *d, int16_t version, struct span in, struct arena *a,
                   void **out)
{
    struct reader r = reader_of(in);

    *out = arena_alloc(a, d->size);
    return *out != NULL && kp_decode(d, version, &r, a, *out) == 0;
}

static void round_trip(const struct kp_desc *d, int16_t version, struct span in)
{
    struct arena a, b;
    struct writer w, again;
    void *msg, *got;

    arena_init(&a, BUDGET);
    arena_init(&b, 2 * BUDGET);
    wr_init(&w, 4 * BUDGET);
    wr_init(&again, 4 * BUDGET);
    if (decode(d, version, in, &a, &msg)) {
        ASSERT(kp_encode(d, version, msg, &b, &w) == 0);
        struct span bytes = w.b == NULL ? span_of("", 0) : blob_span(w.b);
        ASSERT(bytes.n <= in.n); /* never more than came: unknown tags go, null records get empty */
        ASSERT(decode(d, version, bytes, &b, &got));
        ASSERT(kp_same_struct(d, msg, got));
        ASSERT(kp_encode(d, version, got, &b, &again) == 0);
        ASSERT(span_eq(bytes, again.b == NULL ? span_of("", 0) : blob_span(again.b)));
    }
    wr_fini(&again);
    wr_fini(&w);
    arena_fini(&b);
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = {data, data + size};
    struct kp_request_header h;
    uint16_t key, version;
    bool known;

    if (rd_u16(&r, &key) < 0 || rd_u16(&r, &version) < 0)
        return 0;
    const struct kp_api *api = kp_api_find((int16_t)(key & 0x7fff));
    if (api != NULL)
        round_trip(key >= 0x8000 ? api->response : api->request, (int16_t)version,
                   span_of(r.p, rd_left(&r)));

    struct reader header = {data, data + size};
    if (kp_request_header_decode(&header, &h, &known) == 0)
        ASSERT(header.p >= data + 8 && header.p <= header.end);
    return 0;
}
