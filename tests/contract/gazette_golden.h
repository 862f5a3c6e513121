/* The recorded calls of a real broker (tests/golden/gazette/README.md), and messages as text. */
#pragma once

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/writer.h"
#include <gazette_proto/broker.pb-c.h>

#define GOLDEN_FILE "tests/golden/gazette/calls.json"

struct golden {
    const char *name, *path;
    struct blob *request, *response; /* frames */
    struct blob *headers;            /* "name: value\n" */
    bool complete;                   /* false: the client cut it off */
};

static inline struct blob *golden_bytes(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n = strlen(s);
    struct blob *b = blob_new(n + 1);

    if (b == NULL)
        return NULL;
    int len = EVP_DecodeBlock(b->data, (const unsigned char *)s, (int)n);
    for (size_t i = n; i > 0 && s[i - 1] == '='; i--)
        len--;
    b->len = len < 0 ? 0 : (size_t)len;
    return b;
}

static inline struct blob *golden_headers(const json_t *list)
{
    struct writer w;
    const json_t *pair;
    size_t i;

    wr_init(&w, 65536);
    json_array_foreach(list, i, pair)
    {
        wr_printf(&w, "%s: %s\n", json_string_value(json_array_get(pair, 0)),
                  json_string_value(json_array_get(pair, 1)));
    }
    return wr_take(&w);
}

/* file stays the owner of the texts. False: no such call. */
static inline bool golden_find(const json_t *file, const char *name, struct golden *g)
{
    const json_t *c;
    size_t i;

    json_array_foreach(file, i, c)
    {
        if (strcmp(json_string_value(json_object_get(c, "name")), name) != 0)
            continue;
        g->name = name;
        g->path = json_string_value(json_object_get(c, "path"));
        g->request = golden_bytes(json_object_get(c, "request"));
        g->response = golden_bytes(json_object_get(c, "response"));
        g->headers = golden_headers(json_object_get(c, "headers_and_trailers"));
        g->complete = json_is_true(json_object_get(c, "complete"));
        return g->request != NULL && g->response != NULL && g->headers != NULL;
    }
    return false;
}

static inline void golden_fini(struct golden *g)
{
    blob_unref(g->request);
    blob_unref(g->response);
    blob_unref(g->headers);
}

/* Takes the next frame's message off. False: none, or half of one. */
static inline bool frame_next(struct span *frames, struct span *msg)
{
    if (frames->n < 5 || frames->n - 5 < be_load32(frames->p + 1))
        return false;
    *msg = span_of(frames->p + 5, be_load32(frames->p + 1));
    *frames = span_of(msg->p + msg->n, frames->n - 5 - msg->n);
    return true;
}

/* --- a message as lines "2.3[0].4=value", by its descriptor --- */

static inline bool golden_varint(struct span *s, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; s->n > 0 && shift < 64; shift += 7) {
        uint8_t b = *s->p;
        *s = span_of(s->p + 1, s->n - 1);
        *v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return true;
    }
    return false;
}

static inline void golden_value(struct writer *w, struct span v)
{
    for (size_t i = 0; i < v.n; i++)
        wr_printf(w, v.p[i] >= ' ' && v.p[i] < 0x7f ? "%c" : "\\%02x", v.p[i]);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the messages, which are ours
static inline void golden_text(struct writer *w, const ProtobufCMessageDescriptor *d, struct span s,
                               const char *prefix)
{
    unsigned counts[64] = {0};
    char path[128];
    uint64_t tag, v;

    while (s.n > 0 && golden_varint(&s, &tag)) {
        unsigned number = (unsigned)(tag >> 3);
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, number);
        size_t n = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
        if (f != NULL && f->label == PROTOBUF_C_LABEL_REPEATED)
            (void)snprintf(path, sizeof path, "%s%u[%u]", prefix, number, counts[number & 63]++);
        else
            (void)snprintf(path, sizeof path, "%s%u", prefix, number);
        if ((tag & 7) == 0) {
            if (!golden_varint(&s, &v))
                break;
            wr_printf(w, "%s=%lld\n", path, (long long)v);
            continue;
        }
        if ((tag & 7) == 2 && golden_varint(&s, &v))
            n = v;
        if (n > s.n)
            break;
        if (f != NULL && f->type == PROTOBUF_C_TYPE_MESSAGE) {
            wr_printf(w, "%s={\n", path);
            (void)snprintf(path + strlen(path), sizeof path - strlen(path), ".");
            golden_text(w, f->descriptor, span_of(s.p, n), path);
        } else {
            wr_printf(w, "%s=", path);
            golden_value(w, span_of(s.p, n));
            wr_str(w, "\n");
        }
        s = span_of(s.p + n, s.n - n);
    }
    if (s.n > 0)
        wr_printf(w, "%sbroken, %zu bytes left\n", prefix, s.n);
}

/* All frames, each behind a line "message". */
static inline struct blob *golden_lines(struct span frames, const ProtobufCMessageDescriptor *d)
{
    struct writer w;
    struct span msg;

    wr_init(&w, 16u << 20);
    while (frame_next(&frames, &msg)) {
        wr_str(&w, "message\n");
        golden_text(&w, d, msg, "");
    }
    if (frames.n > 0)
        wr_printf(&w, "%zu bytes of a frame\n", frames.n);
    return wr_take(&w);
}
