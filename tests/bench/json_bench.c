/*
 * How fast is JSON, in GB/s of document bytes: documents of about 1 KB, made here and the same on
 * each run, in one block that fits the second-level cache, as the gateway's blocks do. Not part of
 * the build; by hand:
 *   gcc -std=c17 -D_GNU_SOURCE -O2 -I. schema/[!.]*.c base/{blob,mem,writer,num,hash,assert,span}.c
 * \ tests/bench/json_bench.c -o json_bench With -DWITH_SIMDJSON and json_bench_simdjson.cc (g++ -O2
 * -c, link with g++ and -lsimdjson) the same work is also done by simdjson: decision 0002.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "schema/json_reader.h"
#include "tests/bench/json_bench.h"

#define DOCS    240
#define BLOCK   ((size_t)1 << 20)
#define SECONDS 0.3

static struct bench_block block;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t rnd(void)
{
    static uint32_t x = 12345;

    x = x * 1664525 + 1013904223;
    return x >> 8;
}

/* One order-like document with its newline; `scripts`: with text that is not ASCII. */
static size_t make_doc(char *to, size_t room, bool meta_nested, bool scripts)
{
    const char *name = scripts ? "J\xc3\xbcrgen \xe5\xb1\xb1\xe7\x94\xb0" : "Jurgen Yamada";
    size_t n = 0;

#define PUT(...) n += (size_t)snprintf(to + n, room - n, __VA_ARGS__)
    PUT("{\"_meta\":{\"uuid\":\"%08x-c6a3-11ea-8802-0807%08x\"},\"id\":%u,\"customer\":{\"name\":"
        "\"%s "
        "%u\",\"email\":\"user%u@example.com\",\"vip\":%s},\"items\":[",
        rnd(), rnd(), rnd(), name, rnd(), rnd(), rnd() % 2 == 0 ? "true" : "false");
    for (int i = 0; i < 5; i++) {
        PUT("%s{\"sku\":\"SKU-%06u\",\"qty\":%u,\"price\":%u.%02u,\"note\":null}", i > 0 ? "," : "",
            rnd() % 1000000, rnd() % 9 + 1, rnd() % 1000, rnd() % 100);
    }
    PUT("],\"created_at\":\"2026-12-02T08:54:39.%06uZ\",\"lat\":%u.%06u,\"lon\":-%u.%06u",
        rnd() % 1000000, rnd() % 90, rnd() % 1000000, rnd() % 180, rnd() % 1000000);
    if (meta_nested)
        PUT(",\"source\":{\"_meta\":{\"uuid\":\"00000000-0000-1000-8000-000000000000\"}}");
    PUT(",\"comment\":\"The parcel was left at the door \\\"as agreed\\\".\\nPlease call before "
        "you "
        "come back, %s; the bell does not work and the neighbours are away until %u. A second "
        "attempt may be made on any day of the week but "
        "Sunday.\",\"tags\":[\"red\",\"fast\",\"x%u\"],"
        "\"status\":\"done\"}\n",
        name, rnd() % 30, rnd());
#undef PUT
    return n;
}

static void fill(bool meta_nested, bool scripts)
{
    block.len = 0;
    for (size_t i = 0; i < DOCS; i++) {
        block.at[i] = block.len;
        block.len +=
            make_doc((char *)block.data + block.len, BLOCK - block.len, meta_nested, scripts);
    }
    block.at[DOCS] = block.len;
}

static size_t check_and_split(const struct bench_block *b)
{
    const uint8_t *p = b->data, *end = p + b->len;
    size_t docs = 0;

    while (p < end) {
        const uint8_t *line = memchr(p, '\n', (size_t)(end - p));
        struct sc_json_error err;

        docs += sc_json_check(span_of(p, (size_t)(line - p)), &err) == 0;
        p = line + 1;
    }
    return docs;
}

static size_t uuids(const struct bench_block *b)
{
    struct sc_uuid_hint hint = {0};
    struct span uuid;
    size_t docs = 0;

    for (size_t i = 0; i < DOCS; i++)
        docs +=
            sc_uuid_find(span_of(b->data + b->at[i], b->at[i + 1] - b->at[i]), &hint, &uuid) == 0;
    return docs;
}

static struct sc_pointer *status;

static size_t last_key(const struct bench_block *b)
{
    struct sc_json_value v;
    size_t docs = 0;

    for (size_t i = 0; i < DOCS; i++)
        docs += sc_json_find(span_of(b->data + b->at[i], b->at[i + 1] - b->at[i]), status, &v) == 0;
    return docs;
}

/* CPU time, the best of five runs: the machine may be shared. */
static void run(const char *what, size_t (*work)(const struct bench_block *))
{
    double best = 0;

    for (int i = 0; i < 5; i++) {
        double start = now(), took;
        size_t rounds = 0;

        do {
            if (work(&block) != DOCS) {
                (void)fprintf(stderr, "%s: wrong count\n", what);
                return;
            }
            rounds++;
        } while ((took = now() - start) < SECONDS);
        took = (double)rounds * (double)block.len / took / 1e9;
        best = took > best ? took : best;
    }
    (void)printf("  %-34s %6.2f GB/s %8.0f ns a document\n", what, best,
                 (double)block.len / DOCS / best);
}

static void all(const char *kind)
{
    (void)printf("%s: %zu documents of %zu bytes\n", kind, (size_t)DOCS, block.len / DOCS);
    run("check and split", check_and_split);
    run("uuid", uuids);
    run("a key at the end", last_key);
#ifdef WITH_SIMDJSON
    run("simdjson: parse and split (DOM)", simdjson_check_and_split);
    run("simdjson: uuid (on demand)", simdjson_uuids);
    run("simdjson: a key at the end", simdjson_last_key);
#endif
}

int main(void)
{
    block.data = mem_zalloc(BLOCK + 256); /* simdjson reads behind the end */
    block.at = mem_array(DOCS + 1, sizeof block.at[0]);
    block.docs = DOCS;
    if (block.data == NULL || block.at == NULL || sc_pointer_new(span_str("/status"), &status) < 0)
        return 1;
    fill(false, false);
    all("ASCII");
    fill(false, true);
    all("with other scripts");
    fill(true, false);
    all("with a nested _meta");
    sc_pointer_free(status);
    mem_free(block.at);
    mem_free(block.data);
    return 0;
}
