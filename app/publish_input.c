/* See publish_input.h. */
#include "app/publish_input.h"

#include <string.h>

#include "schema/json_reader.h"

#define READ_BYTES ((size_t)1 << 18)
#define INPUT_MAX  ((size_t)4 << 30) /* of one array, and of one line */

void publish_input_init(struct publish_input *in, FILE *file, size_t max_documents,
                        size_t max_bytes)
{
    memset(in, 0, sizeof *in);
    in->in = file;
    in->max_documents = max_documents;
    in->max_bytes = max_bytes;
    in->line = 1;
}

void publish_input_fini(struct publish_input *in)
{
    blob_unref(in->buf);
    in->buf = NULL;
}

static int out_of_memory(struct publish_input *in)
{
    (void)snprintf(in->fault, sizeof in->fault, "out of memory");
    return E_NOMEM;
}

/* Reads more behind what is there; drops what batches have taken. */
static int fill(struct publish_input *in)
{
    size_t have = in->buf == NULL ? 0 : in->buf->len - in->at, room, got;

    if (in->buf == NULL || in->buf->cap - have < READ_BYTES || in->at > 0) {
        size_t cap = have + READ_BYTES > 2 * have ? have + READ_BYTES : 2 * have;
        struct blob *grown;

        if (have > INPUT_MAX) {
            (void)snprintf(in->fault, sizeof in->fault, "a document or array is too long");
            return E_LIMIT;
        }
        if (in->buf != NULL && in->buf->cap - have >= READ_BYTES) {
            memmove(in->buf->data, in->buf->data + in->at, have);
        } else {
            if ((grown = blob_new(cap)) == NULL)
                return out_of_memory(in);
            if (have > 0)
                memcpy(grown->data, in->buf->data + in->at, have);
            blob_unref(in->buf);
            in->buf = grown;
        }
        in->buf->len = have;
        in->at = 0;
    }
    room = in->buf->cap - in->buf->len;
    got = fread(in->buf->data + in->buf->len, 1, room, in->in);
    in->buf->len += got;
    if (got < room) {
        if (ferror(in->in)) {
            (void)snprintf(in->fault, sizeof in->fault, "cannot read the input");
            return E_IO;
        }
        in->ended = true;
    }
    return 0;
}

static int begin(struct publish_input *in)
{
    size_t i = 0;
    int err;

    in->begun = true;
    do {
        if ((err = fill(in)) < 0)
            return err;
        if (in->buf->len >= 3 && memcmp(in->buf->data, "\xEF\xBB\xBF", 3) == 0)
            i = i < 3 ? 3 : i;
        while (i < in->buf->len && strchr(" \t\r\n", in->buf->data[i]) != NULL &&
               in->buf->data[i] != '\0')
            i++;
    } while (i == in->buf->len && !in->ended);
    if (i < in->buf->len && in->buf->data[i] == '[') {
        in->array = true;
        in->pos = 0;
        if (i >= 3 && memcmp(in->buf->data, "\xEF\xBB\xBF", 3) == 0)
            memset(in->buf->data, ' ', 3);
        while (!in->ended)
            if ((err = fill(in)) < 0)
                return err;
    }
    return 0;
}

static size_t count_lines(const uint8_t *p, const uint8_t *end)
{
    size_t n = 0;

    while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

static int next_lines(struct publish_input *in, struct publish_batch *out)
{
    size_t scan = in->at, end = in->at, docs = 0;
    int err;

    for (;;) {
        const uint8_t *nl = memchr(in->buf->data + scan, '\n', in->buf->len - scan);

        if (nl == NULL && !in->ended) {
            size_t scanned = in->buf->len - in->at, taken = end - in->at;

            if ((err = fill(in)) < 0)
                return err;
            scan = in->at + scanned;
            end = in->at + taken;
            continue;
        }
        size_t stop = nl == NULL ? in->buf->len : (size_t)(nl - in->buf->data) + 1;

        if (stop == end) /* the input ended with a newline */
            break;
        if (docs > 0 && stop - in->at > in->max_bytes)
            break;
        docs++;
        scan = end = stop;
        if (docs >= in->max_documents || end - in->at >= in->max_bytes)
            break;
        if (nl == NULL)
            break;
    }
    if (docs == 0)
        return E_NOTFOUND;
    if ((out->body = blob_copy(span_of(in->buf->data + in->at, end - in->at))) == NULL)
        return out_of_memory(in);
    out->line = in->line;
    out->documents = docs;
    out->json = false;
    in->line += count_lines(in->buf->data + in->at, in->buf->data + end);
    in->at = end;
    return 0;
}

/* A run of elements, with the bytes between them, so that lines inside still count. */
static int next_elements(struct publish_input *in, struct publish_batch *out)
{
    struct span all = blob_span(in->buf);
    size_t first = 0, end = 0, docs = 0;

    while (docs < in->max_documents) {
        struct sc_json_value v;
        struct sc_json_error jerr = {0, NULL};
        size_t pos = in->pos;
        int err = sc_json_array_next(all, &pos, &v, &jerr);

        if (err == E_NOTFOUND)
            break;
        if (err < 0) {
            if (docs > 0)
                break; /* first what is good; the fault comes again */
            (void)snprintf(in->fault, sizeof in->fault, "line %zu: %s",
                           1 + count_lines(all.p, all.p + (jerr.at < all.n ? jerr.at : all.n)),
                           jerr.reason == NULL ? err_text(err) : jerr.reason);
            return err;
        }
        size_t at = (size_t)(v.text.p - all.p);

        if (docs > 0 && at + v.text.n - first > in->max_bytes)
            break;
        if (docs++ == 0)
            first = at;
        end = at + v.text.n;
        in->pos = pos;
    }
    if (docs == 0)
        return E_NOTFOUND;
    if ((out->body = blob_new(end - first + 2)) == NULL)
        return out_of_memory(in);
    out->body->data[0] = '[';
    memcpy(out->body->data + 1, all.p + first, end - first);
    out->body->data[end - first + 1] = ']';
    out->body->len = end - first + 2;
    in->line += count_lines(all.p + in->at, all.p + first);
    out->line = in->line;
    in->line += count_lines(all.p + first, all.p + end);
    in->at = end;
    out->documents = docs;
    out->json = true;
    return 0;
}

int publish_input_next(struct publish_input *in, struct publish_batch *out)
{
    int err;

    out->body = NULL;
    if (!in->begun && (err = begin(in)) < 0)
        return err;
    return in->array ? next_elements(in, out) : next_lines(in, out);
}
