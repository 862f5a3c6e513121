/*
 * Schemas and documents against arbitrary bytes. The input is split at its first zero byte: a JSON
 * schema, then documents, one a line. A schema that compiles must have schema texts that are JSON
 * with a canonical form; whatever the document, nothing is read out of bounds, and a document that
 * is served is JSON (but for UTF-8) and is served the same twice, also from a fresh scratch.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/writer.h"
#include "schema/json_reader.h"
#include "schema/transcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct span text)
{
    struct sc_json_error err;
    struct writer once, twice;

    ASSERT(sc_json_check(text, &err) == 0);
    wr_init(&once, (size_t)64 << 20);
    wr_init(&twice, (size_t)64 << 20);
    ASSERT(sc_avro_canonical(text, &once) == 0);
    ASSERT(sc_avro_canonical(blob_span(once.b), &twice) == 0);
    ASSERT(span_eq(blob_span(once.b), blob_span(twice.b)));
    wr_fini(&once);
    wr_fini(&twice);
}

static void check_doc(const struct sc_avro *a, struct sc_scratch *s, struct span doc)
{
    struct sc_avro_record one, two;
    struct sc_transcode_error err;
    struct sc_scratch *fresh;
    int r;

    if (sc_scratch_new(&fresh) < 0)
        return;
    r = sc_transcode(a, s, doc, &one, &err);
    ASSERT(r == sc_transcode(a, fresh, doc, &two, &err));
    if (r == 0) {
        ASSERT(one.deleted == two.deleted);
        ASSERT(span_eq(one.key, two.key) && span_eq(one.value, two.value));
        ASSERT(sc_transcode_key(a, fresh, doc, &two, &err) == 0);
        ASSERT(span_eq(one.key, two.key) && one.deleted == two.deleted);
    } else {
        ASSERT(err.reason != NULL && err.at <= doc.n);
        ASSERT(memchr(err.pointer, 0, sizeof err.pointer) != NULL);
    }
    sc_scratch_free(fresh);
}

static void run(struct span schema, struct span docs)
{
    const struct span key = span_str("/k"), all = span_str("flow_document");
    struct sc_selection sel = {
        .depth = (uint32_t)(docs.n % 3), .include = &all, .include_n = docs.n % 2};
    struct sc_avro_opts opts = {.key = &key, .key_n = 1, .select = &sel};
    struct sc_schema_error err;
    struct sc_schema *s;
    struct sc_avro *a = NULL;
    struct sc_scratch *scratch;

    opts.deletions = (enum sc_deletions)(docs.n % 3);
    if (sc_schema_new(schema, NULL, 0, &err, &s) < 0)
        return;
    if (sc_avro_new(s, &opts, &err, &a) == 0 && sc_scratch_new(&scratch) == 0) {
        check_text(sc_avro_key_schema(a));
        check_text(sc_avro_value_schema(a));
        while (docs.n > 0) {
            const uint8_t *nl = memchr(docs.p, '\n', docs.n);
            size_t n = nl == NULL ? docs.n : (size_t)(nl - docs.p);

            check_doc(a, scratch, span_of(docs.p, n));
            docs = span_of(docs.p + n, docs.n - n);
            if (docs.n > 0)
                docs = span_of(docs.p + 1, docs.n - 1);
        }
        sc_scratch_free(scratch);
    }
    sc_avro_free(a);
    sc_schema_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size == 0 ? NULL : memchr(data, 0, size);
    size_t n = zero == NULL ? size : (size_t)(zero - data), rest = zero == NULL ? 0 : size - n - 1;
    /* copies of the exact size, so that the sanitizer sees a read past the end */
    uint8_t *schema = mem_alloc(n), *docs = mem_alloc(rest);

    if (schema != NULL && docs != NULL) {
        if (n > 0)
            memcpy(schema, data, n);
        if (rest > 0)
            memcpy(docs, data + n + 1, rest);
        run(span_of(schema, n), span_of(docs, rest));
    }
    mem_free(schema);
    mem_free(docs);
    return 0;
}
