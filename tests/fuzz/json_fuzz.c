/*
 * The JSON scanner against arbitrary bytes. On anything: in bounds, and one answer for every hint.
 * On valid JSON: the UUID is what sc_json_find finds, a stamped object is valid and one line,
 * minified text is valid and stays what it is, elements of an array are valid, quoting is undone by
 * unquoting.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "schema/key.h"

#define OUT_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool valid(struct span text)
{
    struct sc_json_error err;
    int r = sc_json_check(text, &err);

    ASSERT(r == 0 || (err.reason != NULL && err.at <= text.n));
    return r == 0;
}

static struct span written(const struct writer *w)
{
    return w->b == NULL ? span_of("", 0) : blob_span(w->b);
}

static int find(struct span doc, const char *pointer, struct sc_json_value *v)
{
    struct sc_pointer *p;
    int err;

    ASSERT(sc_pointer_new(span_str(pointer), &p) == 0);
    err = sc_json_find(doc, p, v);
    ASSERT(err < 0 || (v->text.p >= doc.p && v->text.p + v->text.n <= doc.p + doc.n));
    sc_pointer_free(p);
    return err;
}

static void try_uuid(struct span doc, bool is_valid)
{
    struct sc_uuid_hint cold = {0}, hot = {3};
    struct span a, b;
    struct sc_json_value v = {0};
    int ra = sc_uuid_find(doc, &cold, &a), rb = sc_uuid_find(doc, &hot, &b);
    bool want;

    ASSERT(ra == rb && a.p == b.p && a.n == b.n);
    ASSERT(ra < 0 || (a.p >= doc.p && a.p + 36 <= doc.p + doc.n && a.n == 36));
    want = find(doc, "/_meta/uuid", &v) == 0 && v.kind == SC_JSON_STRING && v.text.n == 38;
    if (is_valid)
        ASSERT(want == (ra == 0) && (!want || a.p == v.text.p + 1));
}

static void try_stamp(struct span doc, bool is_valid)
{
    struct writer w;
    struct sc_json_error err;
    struct sc_uuid_hint hint = {0};
    struct span uuid;
    size_t at;
    int r;

    wr_init(&w, OUT_MAX);
    r = sc_json_stamp(doc, &w, &at, &err);
    if (r == 0)
        ASSERT(at + 36 <= wr_len(&w));
    if (is_valid && r == 0) {
        struct span out = written(&w);

        ASSERT(valid(out));
        ASSERT(memchr(out.p, '\n', out.n) == NULL && memchr(out.p, '\r', out.n) == NULL);
        ASSERT(sc_uuid_find(out, &hint, &uuid) == 0 && uuid.p == out.p + at);
    } else if (is_valid) {
        ASSERT(r == E_INVALID && err.reason != NULL);
    }
    wr_fini(&w);
}

static void try_minify(struct span text, bool is_valid)
{
    struct writer once, twice;

    wr_init(&once, OUT_MAX);
    wr_init(&twice, OUT_MAX);
    sc_json_minify(text, &once);
    sc_json_minify(written(&once), &twice);
    ASSERT(wr_len(&once) <= text.n);
    if (is_valid)
        ASSERT(valid(written(&once)) && span_eq(written(&once), written(&twice)));
    wr_fini(&once);
    wr_fini(&twice);
}

static void try_array(struct span text, bool is_valid)
{
    struct sc_json_value v;
    struct sc_json_error err;
    size_t pos = 0;
    int r;

    while ((r = sc_json_array_next(text, &pos, &v, &err)) == 0) {
        ASSERT(valid(v.text));
        ASSERT(v.text.p + v.text.n == text.p + pos);
    }
    /* an array nested to the limit is one level less for its elements, so only one direction holds
     */
    ASSERT(r != E_NOTFOUND || is_valid || pos > 0);
    if (is_valid)
        ASSERT(r == E_NOTFOUND || find(text, "", &v) < 0 || v.kind != SC_JSON_ARRAY);
}

static void try_quote(struct span raw)
{
    struct writer quoted, back, again;

    wr_init(&quoted, OUT_MAX);
    wr_init(&back, OUT_MAX);
    wr_init(&again, OUT_MAX);
    sc_json_quote(raw, &quoted);
    ASSERT(valid(written(&quoted)));
    ASSERT(sc_json_unquote(written(&quoted), &back) == 0);
    sc_json_quote(written(&back), &again);
    ASSERT(span_eq(written(&quoted), written(&again)));
    wr_fini(&quoted);
    wr_fini(&back);
    wr_fini(&again);
}

static void try_key(struct span doc, bool is_valid)
{
    const struct span parts[2] = {span_str("/a"), span_str("/b/0")};
    struct sc_key *k;
    struct span which;
    struct writer w;
    uint32_t h;
    int err;

    ASSERT(sc_key_new(parts, 1 + doc.n % 2, &k) == 0);
    wr_init(&w, OUT_MAX);
    err = sc_key_text(k, doc, &w, &which);
    /* on invalid text the hash may refuse a string first, which it must unescape */
    ASSERT(sc_key_hash(k, doc, &h, &which) == err || !is_valid);
    wr_fini(&w);
    sc_key_free(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sc_json_value v;
    struct writer w;
    uint8_t *copy;
    struct span text;
    bool is_valid;

    /* an exact copy, so that the sanitizer sees a read past the end */
    if ((copy = mem_alloc(size)) == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    text = span_of(copy, size);
    is_valid = valid(text);
    try_uuid(text, is_valid);
    try_stamp(text, is_valid);
    try_minify(text, is_valid);
    try_array(text, is_valid);
    try_quote(text);
    try_key(text, is_valid);
    (void)find(text, "/a/b/0", &v);
    (void)find(text, "/", &v);
    wr_init(&w, OUT_MAX);
    if (sc_json_unquote(text, &w) == 0)
        ASSERT(valid(text));
    wr_fini(&w);
    mem_free(copy);
    return 0;
}
