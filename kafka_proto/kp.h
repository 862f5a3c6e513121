/*
 * The Kafka wire protocol as tables. messages/NAME.kmsg -> gen/kpgen.py -> kp_messages.h/.c in the
 * build tree: one struct per message and descriptor tables; one decoder and one encoder interpret
 * them. No I/O; pure; any thread.
 *
 * Generated names (kafka_proto/kp_messages.h), for API `Fetch`: struct kp_fetch_req and struct
 * kp_fetch_resp; nested arrays and structs are named by their path of field names:
 * kp_fetch_req_topics, kp_fetch_req_topics_partitions, kp_fetch_resp_responses_partitions, ... Each
 * struct kp_X has a descriptor kp_X_desc. Keys: KP_API_FETCH = 1.
 *
 * Field names are Kafka's own in snake_case: a capital starts a word unless it follows a capital
 * and no lower-case letter follows it. Types:
 *   bool, int8 .. int64    C types           uuid           struct kp_uuid
 *   string, bytes          struct span       records        struct kp_records
 *   []T                    T *name; int32_t name_n;  (-1: null)
 *   nested struct          T name;           nullable nested struct   T *name;  (NULL: null)
 * A span with p == NULL is null and thus refused where the field is not nullable: start from
 * kp_defaults() or kp_array(), and give an empty string a non-NULL pointer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/blob.h"
#include "base/reader.h"
#include "base/span.h"
#include "base/writer.h"

struct kp_uuid {
    uint8_t b[16];
};

/* One piece of a records field. Either a reference into a blob (not copied by the encoder) or bytes
 * to be copied. */
struct kp_piece {
    struct blob *blob;    /* NULL: copy `bytes` */
    const uint8_t *bytes; /* used when blob is NULL */
    size_t off;           /* within blob */
    size_t len;
};

struct kp_records {
    /* decoding: the borrowed bytes (p == NULL: null) */
    struct span in;
    /* encoding: the pieces, borrowed until the encoded message was consumed. n == 0: `in` is
     * copied, or zero bytes are encoded when that is null; never null */
    const struct kp_piece *pieces;
    size_t pieces_n;
};

struct kp_desc; /* of a message or nested struct; opaque outside kafka_proto */

struct kp_api {
    int16_t key;
    const char *name; /* "Fetch" */
    int16_t min;      /* what we speak and advertise */
    int16_t max;
    int16_t flexible; /* first flexible version; INT16_MAX when none */
    const struct kp_desc *request;
    const struct kp_desc *response;
    size_t request_bytes; /* sizeof the request struct */
    size_t response_bytes;
};

extern const struct kp_api kp_apis[]; /* sorted by key */
extern const size_t kp_apis_n;
/* NULL when the key is unknown. */
const struct kp_api *kp_api_find(int16_t key);
static inline bool kp_api_speaks(const struct kp_api *api, int16_t version)
{
    return version >= api->min && version <= api->max;
}

/* --- headers
 * -------------------------------------------------------------------------------------------------------
 */
struct kp_request_header {
    int16_t api_key;
    int16_t api_version;
    int32_t correlation_id;
    struct span client_id; /* null allowed; borrowed from the frame */
};
/* Reads header v1, or v2 where the API's version is flexible (KIP-482). For an API or version that
 * we do not know only the fixed fields are read and *known is false (client_id null); the body then
 * cannot be decoded. E_SHORT, E_SYNTAX. */
MUST_USE int kp_request_header_decode(struct reader *r, struct kp_request_header *out, bool *known);

/* For clients (tests, tools): a whole request frame, from its length on, appended to w. When it
 * fails, w may hold a part of it. Errors as kp_encode(). */
MUST_USE int kp_request_encode(const struct kp_api *api, int16_t version, int32_t correlation_id,
                               struct span client_id, const void *req, struct arena *a,
                               struct writer *w);
/* For clients: reads the response header (behind the frame length) that belongs to the API and
 * version. E_SHORT, E_SYNTAX. */
MUST_USE int kp_response_header_decode(const struct kp_api *api, int16_t version, struct reader *r,
                                       int32_t *correlation_id);

/* --- messages
 * ------------------------------------------------------------------------------------------------------
 */
/* Decodes a whole message of that version into *out (sizeof per desc; zeroed and defaulted here).
 * Strings, bytes and records borrow from the frame; arrays come from the arena. E_SHORT (also a
 * count that the bytes left cannot hold), E_SYNTAX, E_TRAILING (bytes left), E_LIMIT (arena
 * budget), E_NOMEM, E_VERSION. After a failure *out is of no use, but safe to drop. */
MUST_USE int kp_decode(const struct kp_desc *d, int16_t version, struct reader *r, struct arena *a,
                       void *out);
/* Fills a struct with the defaults of its fields; do this before filling a response by hand. */
void kp_defaults(const struct kp_desc *d, void *out);
/* An array of n structs of that kind, each with its defaults, e.g.
 * kp_array(&kp_fetch_resp_responses_desc, a, n). NULL: out of memory or over the arena's budget. */
MUST_USE void *kp_array(const struct kp_desc *d, struct arena *a, size_t n);

/* A place in the encoded bytes where blob bytes belong. */
struct kp_splice {
    size_t at; /* position within head: the blob's bytes go before the byte at this position */
    struct blob *blob; /* borrowed from the piece */
    size_t off;
    size_t len;
};

struct kp_encoded {
    struct blob *head;         /* owned by the receiver: all bytes but the splices */
    struct kp_splice *splices; /* from the arena, by rising `at` */
    size_t splices_n;
    size_t total; /* bytes of head and splices together */
};

/* Encodes a message, prefixed by 4 bytes of frame length and the response header (v0, or v1 where
 * flexible; always v0 for ApiVersions). E_VERSION; E_INVALID when a field not present in this
 * version and not ignorable holds something other than its default, or a null stands where none is
 * allowed; E_NOMEM; E_LIMIT. */
MUST_USE int kp_encode_response(const struct kp_api *api, int16_t version, int32_t correlation_id,
                                const void *resp, struct arena *a, struct kp_encoded *out);
/* A bare message without header, appended to out: tests, golden bytes, requests. Records pieces are
 * copied in; the arena serves as scratch. Errors as kp_encode_response(). */
MUST_USE int kp_encode(const struct kp_desc *d, int16_t version, const void *msg, struct arena *a,
                       struct writer *out);
