/*
 * Batches of other writers: tests/golden/batch/java_<codec>.hex come from kafka-clients (see the
 * README there) and hold the same 40 records in each codec. Ours must read them, and must write the
 * very same bytes where no codec has a choice. With SLUICE_BATCH_DUMP=<dir> our own batches are
 * left in that folder for tests/golden/batch_check.py, which reads them with foreign code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "kafka_proto/batch.h"

#define RECORDS   40
#define MAX_BYTES 16384

struct made {
    char key[16], value[160];
    struct kp_header headers[2];
    struct kp_record rec;
};

/* Record i of the agreed content. */
static void make(int i, struct made *m)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog, the quick brown fox";

    *m = (struct made){0};
    m->rec.offset = 100 + 7 * i;
    m->rec.timestamp = INT64_C(1700000000000) + 10 * (i % 5) - i % 3;
    if (i % 4 != 0) {
        (void)snprintf(m->key, sizeof m->key, "key-%d", i);
        m->rec.key = span_str(m->key);
    }
    if (i % 10 == 4) {
        m->rec.value = span_str("");
    } else if (i % 10 != 3) {
        (void)snprintf(m->value, sizeof m->value, "{\"i\":%d,\"text\":\"%s\"}", i, text);
        m->rec.value = span_str(m->value);
    }
    m->headers[0] = (struct kp_header){span_str("\xc3\xbc"), {NULL, 0}};
    m->headers[1] = (struct kp_header){span_str("h1"), span_str(i % 2 == 0 ? "" : "x")};
    m->rec.headers = m->headers;
    m->rec.headers_n = (size_t)(i % 3);
}

static bool same_bytes(struct span a, struct span b)
{
    return (a.p == NULL) == (b.p == NULL) && span_eq(a, b);
}

static void check_records(const struct kp_batch_view *v)
{
    struct blob *plain = NULL;
    struct span payload = v->payload;
    struct kp_record_iter it;
    struct kp_record rec;
    struct kp_header h[2];
    struct made m;

    if (v->codec != KP_CODEC_NONE) {
        assert_int_equal(kp_decompress(v->codec, v->payload, MAX_BYTES, &plain), 0);
        payload = blob_span(plain);
    }
    kp_record_iter_init(&it, v, payload);
    for (int i = 0; i < RECORDS; i++) {
        make(i, &m);
        assert_int_equal(kp_record_next(&it, &rec, h, 2), 0);
        assert_int_equal(rec.offset, m.rec.offset);
        assert_int_equal(rec.timestamp, m.rec.timestamp);
        assert_true(same_bytes(rec.key, m.rec.key));
        assert_true(same_bytes(rec.value, m.rec.value));
        assert_int_equal(rec.headers_n, m.rec.headers_n);
        for (size_t k = 0; k < rec.headers_n; k++) {
            assert_true(same_bytes(rec.headers[k].key, m.headers[k].key));
            assert_true(same_bytes(rec.headers[k].value, m.headers[k].value));
        }
    }
    assert_int_equal(kp_record_next(&it, &rec, h, 2), E_NOTFOUND);
    blob_unref(plain);
}

static struct kp_batch written(enum kp_codec codec)
{
    struct kp_batch_writer w;
    struct kp_batch b;
    struct made m;

    kp_batch_writer_init(&w);
    for (int i = 0; i < RECORDS; i++) {
        make(i, &m);
        assert_int_equal(kp_batch_writer_add(&w, &m.rec), 0);
    }
    assert_int_equal(kp_batch_writer_finish(&w, codec, &b), 0);
    return b;
}

/* The bytes of a .hex file; lines may be of any length. */
static size_t read_hex(const char *codec, uint8_t out[MAX_BYTES])
{
    char path[128], two[2];
    size_t n = 0, k = 0;
    uint64_t v;
    FILE *f;
    int c;

    (void)snprintf(path, sizeof path, "tests/golden/batch/java_%s.hex", codec);
    f = fopen(path, "r");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF) {
        if (c == '\n')
            continue;
        two[k++] = (char)c;
        if (k == 2) {
            assert_int_equal(num_parse_hex(span_of(two, 2), &v), 0);
            assert_true(n < MAX_BYTES);
            out[n++] = (uint8_t)v;
            k = 0;
        }
    }
    assert_int_equal(k, 0);
    (void)fclose(f);
    return n;
}

static void javas_batches_are_read_in_every_codec(void **state)
{
    static uint8_t bytes[MAX_BYTES];
    (void)state;

    for (int c = KP_CODEC_NONE; c <= KP_CODEC_ZSTD; c++) {
        size_t n = read_hex(kp_codec_name((enum kp_codec)c), bytes);
        struct kp_batch_view v;

        assert_int_equal(kp_batch_parse(span_of(bytes, n), &v), 0);
        assert_int_equal(v.codec, c);
        assert_int_equal(v.size, n);
        assert_int_equal(v.records, RECORDS);
        assert_int_equal(v.base_offset, 100);
        assert_int_equal(v.last_offset, 100 + 7 * (RECORDS - 1));
        check_records(&v);
    }
}

static void uncompressed_batches_equal_javas_byte_by_byte(void **state)
{
    static uint8_t bytes[MAX_BYTES];
    size_t n = read_hex("none", bytes);
    struct kp_batch b = written(KP_CODEC_NONE);
    (void)state;

    assert_int_equal(b.bytes->len, n);
    assert_memory_equal(b.bytes->data, bytes, n);
    kp_batch_fini(&b);
}

static void dump(const char *name, const struct kp_batch *b)
{
    const char *dir = getenv("SLUICE_BATCH_DUMP");
    char path[512];
    FILE *f;

    if (dir == NULL)
        return;
    (void)snprintf(path, sizeof path, "%s/%s.batch", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(b->bytes->data, 1, b->bytes->len, f), b->bytes->len);
    assert_int_equal(fclose(f), 0);
}

static void our_batches_are_read_back_in_every_codec(void **state)
{
    (void)state;
    for (int c = KP_CODEC_NONE; c <= KP_CODEC_ZSTD; c++) {
        struct kp_batch b = written((enum kp_codec)c);
        struct kp_batch_view v;

        assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
        assert_int_equal(v.codec, c);
        check_records(&v);
        dump(kp_codec_name((enum kp_codec)c), &b);
        kp_batch_fini(&b);
    }
}

static void our_control_batch_is_one(void **state)
{
    struct kp_batch b;
    struct kp_batch_view v;
    (void)state;

    assert_int_equal(kp_batch_control(4711, INT64_C(1700000000000), &b), 0);
    assert_int_equal(kp_batch_parse(blob_span(b.bytes), &v), 0);
    assert_true(v.control);
    assert_false(v.transactional);
    dump("control", &b);
    kp_batch_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(javas_batches_are_read_in_every_codec),
        cmocka_unit_test(uncompressed_batches_equal_javas_byte_by_byte),
        cmocka_unit_test(our_batches_are_read_back_in_every_codec),
        cmocka_unit_test(our_control_batch_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
