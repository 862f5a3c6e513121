/*
 * JSON to Avro, in GB/s of JSON on one core: the transcoder against jansson and avro-c's generic
 * values, on the same documents, in the same run; the bytes of both must be equal. Not part of the
 * build: tests/bench/avro_bench.sh makes the documents and runs it.
 */
#include <avro.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "schema/transcode.h"

#define ROUNDS     5
#define BASE_BYTES ((size_t)4 << 20) /* of the documents, for the slow side */

static const char SCHEMA[] =
    "{\"type\":\"object\",\"required\":[\"id\",\"customer\",\"amount\",\"status\",\"items\","
    "\"flag\"],"
    "\"properties\":{\"_meta\":{\"type\":\"object\",\"required\":[\"uuid\",\"op\"],\"properties\":{"
    "\"uuid\":{\"type\":\"string\"},\"op\":{\"type\":\"string\"},\"source\":{\"type\":\"object\","
    "\"properties\":{\"ts_ms\":{\"type\":\"integer\"},\"schema\":{\"type\":\"string\"},\"table\":{"
    "\"type\":\"string\"},\"loc\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
    "\"additionalProperties\":false}},\"additionalProperties\":false},\"id\":{\"type\":\"integer\"}"
    ","
    "\"customer\":{\"type\":\"string\"},\"amount\":{\"type\":\"number\"},\"status\":{\"type\":"
    "\"string\"},\"note\":{\"type\":\"string\"},\"items\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"object\",\"required\":[\"sku\",\"qty\",\"price\"],\"properties\":{\"sku\":{\"type\":"
    "\"string\"},"
    "\"qty\":{\"type\":\"integer\"},\"price\":{\"type\":\"number\"}},\"additionalProperties\":"
    "false}},"
    "\"flag\":{\"type\":\"boolean\"},\"nul\":{\"type\":[\"string\",\"null\"]}}}";

static struct span docs; /* lines */
static volatile size_t sink;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sc_avro *compile(void)
{
    const struct span key = span_str("/id"), meta = span_str("_meta");
    const struct span not = span_str("flow_published_at");
    struct sc_selection sel = {
        .depth = 1, .include = &meta, .include_n = 1, .exclude = &not, .exclude_n = 1};
    struct sc_avro_opts opts = {
        .key = &key, .key_n = 1, .select = &sel, .deletions = SC_DELETE_HEADER};
    struct sc_schema_error err;
    struct sc_schema *s;
    struct sc_avro *a;

    if (sc_schema_new(span_str(SCHEMA), NULL, 0, &err, &s) < 0 ||
        sc_avro_new(s, &opts, &err, &a) < 0) {
        (void)fprintf(stderr, "schema: %s: %s\n", err.pointer, err.reason);
        exit(1);
    }
    sc_schema_free(s);
    return a;
}

static bool next_line(const uint8_t **p, struct span *line)
{
    const uint8_t *end = docs.p + docs.n, *nl;

    if (*p >= end || (nl = memchr(*p, '\n', (size_t)(end - *p))) == NULL)
        return false;
    *line = span_of(*p, (size_t)(nl - *p));
    *p = nl + 1;
    return true;
}

static double ours(const struct sc_avro *a)
{
    struct sc_scratch *s;
    double best = 1e9;

    if (sc_scratch_new(&s) < 0)
        exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        const uint8_t *p = docs.p;
        struct sc_avro_record rec;
        struct sc_transcode_error err;
        struct span line;
        double start = now();

        while (next_line(&p, &line)) {
            if (sc_transcode(a, s, line, &rec, &err) < 0) {
                (void)fprintf(stderr, "%s: %s\n", err.pointer, err.reason);
                exit(1);
            }
            sink += rec.value.n;
        }
        start = now() - start;
        best = start < best ? start : best;
    }
    sc_scratch_free(s);
    return (double)docs.n / best / 1e9;
}

/* --- the usual way: a tree, then generic values --- */

static void set(avro_value_t *v, json_t *j)
{
    avro_value_t part;
    size_t n;

    switch (avro_value_get_type(v)) {
    case AVRO_UNION:
        if (json_is_null(j) || j == NULL) {
            avro_value_set_branch(v, 0, &part);
            avro_value_set_null(&part);
        } else {
            avro_value_set_branch(v, 1, &part);
            set(&part, j);
        }
        break;
    case AVRO_RECORD:
        avro_value_get_size(v, &n);
        for (size_t i = 0; i < n; i++) {
            const char *name;

            avro_value_get_by_index(v, i, &part, &name);
            set(&part, json_object_get(j, name));
        }
        break;
    case AVRO_ARRAY:
        for (size_t i = 0; i < json_array_size(j); i++) {
            avro_value_append(v, &part, NULL);
            set(&part, json_array_get(j, i));
        }
        break;
    case AVRO_STRING:
        avro_value_set_string_len(v, json_string_value(j), json_string_length(j) + 1);
        break;
    case AVRO_INT64:
        avro_value_set_long(v, json_integer_value(j));
        break;
    case AVRO_DOUBLE:
        avro_value_set_double(v, json_number_value(j));
        break;
    case AVRO_BOOLEAN:
        avro_value_set_boolean(v, json_is_true(j));
        break;
    default:
        (void)fprintf(stderr, "a type that the bench does not have\n");
        exit(1);
    }
}

static double theirs(const struct sc_avro *a)
{
    struct span text = sc_avro_value_schema(a);
    static char out[1 << 20];
    struct sc_scratch *s;
    avro_schema_t schema;
    avro_value_iface_t *iface;
    avro_value_t v;
    avro_writer_t w = avro_writer_memory(out, sizeof out);
    const uint8_t *p = docs.p;
    struct span line;
    double took = 0;
    size_t bytes = 0;

    if (avro_schema_from_json_length((const char *)text.p, text.n, &schema) != 0) {
        (void)fprintf(stderr, "avro-c: %s\n", avro_strerror());
        exit(1);
    }
    iface = avro_generic_class_from_schema(schema);
    avro_generic_value_new(iface, &v);
    if (sc_scratch_new(&s) < 0)
        exit(1);
    while (next_line(&p, &line) && bytes < BASE_BYTES) {
        struct sc_avro_record rec;
        struct sc_transcode_error err;
        json_error_t je;
        double start = now();
        json_t *j = json_loadb((const char *)line.p, line.n, JSON_ALLOW_NUL, &je);

        avro_value_reset(&v);
        set(&v, j);
        avro_writer_reset(w);
        avro_value_write(w, &v);
        json_decref(j);
        took += now() - start;
        bytes += line.n + 1;
        if (sc_transcode(a, s, line, &rec, &err) < 0 ||
            rec.value.n - SC_FRAME_BYTES != (size_t)avro_writer_tell(w) ||
            memcmp(rec.value.p + SC_FRAME_BYTES, out, rec.value.n - SC_FRAME_BYTES) != 0) {
            (void)fprintf(stderr, "bytes differ: %.*s\n", SPAN_FMT(line));
            exit(1);
        }
    }
    sc_scratch_free(s);
    avro_writer_free(w);
    avro_value_decref(&v);
    avro_value_iface_decref(iface);
    avro_schema_decref(schema);
    return (double)bytes / took / 1e9;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        struct sc_avro *a = compile();
        uint8_t *buf;
        size_t n, lines = 0;
        double us, them;

        if (f == NULL || fseek(f, 0, SEEK_END) != 0)
            return 1;
        n = (size_t)ftell(f);
        rewind(f);
        if ((buf = mem_alloc(n + 1)) == NULL || fread(buf, 1, n, f) != n)
            return 1;
        (void)fclose(f);
        docs = span_of(buf, n);
        for (size_t k = 0; k < n; k++)
            lines += buf[k] == '\n';
        us = ours(a);
        them = theirs(a);
        (void)printf("%s: %zu documents of %zu bytes: %.2f GB/s, jansson + avro-c %.3f GB/s, ratio "
                     "%.1f\n",
                     argv[i], lines, n / lines, us, them, us / them);
        sc_avro_free(a);
        mem_free(buf);
    }
    return 0;
}
