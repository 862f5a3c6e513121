/*
 * Messages of the broker: packing, the one that is read by hand (ReadResponse, whose content is cut
 * out of the frame in place), and what status numbers mean.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

const char *gz_status_text(int status)
{
    static const char *const names[] = {
        "OK",
        "JOURNAL_NOT_FOUND",
        "NO_JOURNAL_PRIMARY_BROKER",
        "NOT_JOURNAL_PRIMARY_BROKER",
        "INSUFFICIENT_JOURNAL_BROKERS",
        "NOT_JOURNAL_BROKER",
        "OFFSET_NOT_YET_AVAILABLE",
        "WRONG_ROUTE",
        "PROPOSAL_MISMATCH",
        "ETCD_TRANSACTION_FAILED",
        "NOT_ALLOWED",
        "WRONG_APPEND_OFFSET",
        "INDEX_HAS_GREATER_OFFSET",
        "REGISTER_MISMATCH",
        "SUSPENDED",
        "FRAGMENT_STORE_UNHEALTHY",
    };

    return status >= 0 && (size_t)status < sizeof names / sizeof names[0] ? names[status]
                                                                          : "UNKNOWN";
}

bool gz_status_passing(int status)
{
    return status == GZ_JOURNAL_NOT_FOUND || status == GZ_NO_PRIMARY || status == GZ_NOT_PRIMARY ||
           status == GZ_INSUFFICIENT_BROKERS || status == GZ_NOT_BROKER ||
           status == GZ_WRONG_ROUTE || status == GZ_STORE_UNHEALTHY;
}

int64_t gz_backoff_ms(unsigned attempt)
{
    static const int64_t waits[] = {50, 50, 100, 100, 1000, 1000};

    return attempt < sizeof waits / sizeof waits[0] ? waits[attempt] : 5000;
}

/* --- protobuf by hand --- */

static int get_varint(struct reader *r, uint64_t *out)
{
    uint64_t v = 0;
    uint8_t b;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (rd_u8(r, &b) < 0)
            return E_SYNTAX;
        v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0) {
            *out = v;
            return 0;
        }
    }
    return E_SYNTAX;
}

/* One field: its number, and its value as a number or as bytes. */
static int get_field(struct reader *r, uint32_t *number, uint64_t *v, struct span *bytes)
{
    uint64_t tag, n;
    const uint8_t *p;

    if (get_varint(r, &tag) < 0)
        return E_SYNTAX;
    *number = (uint32_t)(tag >> 3);
    *bytes = span_of(NULL, 0);
    *v = 0;
    switch (tag & 7) {
    case 0:
        return get_varint(r, v);
    case 1:
        return rd_take(r, 8, &p) < 0 ? E_SYNTAX : 0;
    case 2:
        if (get_varint(r, &n) < 0 || rd_take(r, n, &p) < 0)
            return E_SYNTAX;
        *bytes = span_of(p, n);
        return 0;
    case 5:
        return rd_take(r, 4, &p) < 0 ? E_SYNTAX : 0;
    default:
        return E_SYNTAX;
    }
}

static int parse_fragment(struct span msg, struct gz_read_msg *out)
{
    struct reader r = reader_of(msg);

    while (rd_left(&r) > 0) {
        struct span bytes;
        uint32_t number;
        uint64_t v;
        if (get_field(&r, &number, &v, &bytes) < 0)
            return E_SYNTAX;
        if (number == 2)
            out->frag_begin = (int64_t)v;
        else if (number == 3)
            out->frag_end = (int64_t)v;
    }
    return 0;
}

int gz_read_parse(struct span msg, struct gz_read_msg *out)
{
    struct reader r = reader_of(msg);

    *out = (struct gz_read_msg){0};
    while (msg.n > 0 && rd_left(&r) > 0) {
        struct span bytes;
        uint32_t number;
        uint64_t v;
        if (get_field(&r, &number, &v, &bytes) < 0)
            return E_SYNTAX;
        switch (number) {
        case 1:
            out->status = (int)v;
            break;
        case 2:
            out->header = bytes;
            break;
        case 3:
            out->offset = (int64_t)v;
            break;
        case 4:
            out->write_head = (int64_t)v;
            break;
        case 5:
            out->meta = true;
            if (parse_fragment(bytes, out) < 0)
                return E_SYNTAX;
            break;
        case 7:
            out->content = bytes;
            break;
        default:
            break;
        }
    }
    /* Offsets are used in sums: nothing near the end of the number space. */
    if (out->offset < 0 || out->write_head < 0 || out->offset > INT64_MAX / 2 ||
        out->write_head > INT64_MAX / 2)
        return E_SYNTAX;
    return 0;
}

struct blob *gz_pack(const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    struct blob *b = blob_new(n);

    if (b != NULL)
        b->len = protobuf_c_message_pack(m, b->data);
    return b;
}

int gz_rpc(struct gz_store *s, const char *endpoint, const char *method, const ProtobufCMessage *m,
           int64_t timeout_ms, const struct gz_call_cb *cb, struct gz_call **out)
{
    struct blob *b = gz_pack(m);
    struct gz_call *call;
    int err;

    *out = NULL;
    if (b == NULL)
        return E_NOMEM;
    if ((err = gz_pool_call(s->pool, endpoint, method, timeout_ms, cb, &call)) == 0) {
        if ((err = gz_call_send(call, blob_span(b), span_of(NULL, 0))) < 0) {
            gz_call_cancel(call);
        } else {
            gz_call_finish(call);
            *out = call;
        }
    }
    blob_unref(b);
    return err;
}
