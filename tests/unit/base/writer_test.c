/* The growing buffer: maximum, sticky failure, varint vectors, back-patching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/reader.h"
#include "base/writer.h"

static void values_are_written_in_network_order(void **state)
{
    (void)state;
    static const uint8_t want[] = {
        0x07, 0xff, 0x80, 0x00, 0xff, 0xfe, 0x01, 0x02, 0x03, 0x04, 0xff, 0xff,
        0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x04,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 'a',  'b',  'c',  '-',  '7',
    };
    struct writer w;

    wr_init(&w, 1000);
    wr_u8(&w, 7);
    wr_i8(&w, -1);
    wr_i16(&w, INT16_MIN);
    wr_u16(&w, 0xfffe);
    wr_u32(&w, 0x01020304);
    wr_i32(&w, -2);
    wr_i64(&w, INT64_MIN);
    wr_f64(&w, -2.5);
    wr_str(&w, "a");
    wr_span(&w, span_str("bc"));
    wr_bytes(&w, NULL, 0);
    wr_printf(&w, "-%d", 7);
    wr_printf(&w, "%s", "");
    assert_int_equal(wr_err(&w), 0);
    struct blob *b = wr_take(&w);
    assert_int_equal(b->len, sizeof want);
    assert_memory_equal(b->data, want, sizeof want);
    blob_unref(b);
    wr_fini(&w);
}

static const struct {
    uint32_t v;
    size_t n;
    uint8_t bytes[5];
} unsigned_vectors[] = {
    {0, 1, {0}},
    {1, 1, {1}},
    {127, 1, {127}},
    {128, 2, {0x80, 0x01}},
    {300, 2, {0xac, 0x02}},
    {16383, 2, {0xff, 0x7f}},
    {16384, 3, {0x80, 0x80, 0x01}},
    {2097152, 4, {0x80, 0x80, 0x80, 0x01}},
    {UINT32_MAX, 5, {0xff, 0xff, 0xff, 0xff, 0x0f}},
};

static void unsigned_varints_match_the_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unsigned_vectors / sizeof unsigned_vectors[0]; i++) {
        struct writer w;
        uint32_t back;

        wr_init(&w, 10);
        wr_uvarint32(&w, unsigned_vectors[i].v);
        struct blob *b = wr_take(&w);
        assert_int_equal(b->len, unsigned_vectors[i].n);
        assert_int_equal(uvarint32_size(unsigned_vectors[i].v), unsigned_vectors[i].n);
        assert_memory_equal(b->data, unsigned_vectors[i].bytes, b->len);
        struct reader r = reader_of(blob_span(b));
        assert_int_equal(rd_uvarint32(&r, &back), 0);
        assert_int_equal(back, unsigned_vectors[i].v);
        blob_unref(b);
    }
}

static const struct {
    int64_t v;
    size_t n;
    uint8_t bytes[10];
} zigzag_vectors[] = {
    {0, 1, {0}},
    {-1, 1, {1}},
    {1, 1, {2}},
    {-2, 1, {3}},
    {63, 1, {0x7e}},
    {-64, 1, {0x7f}},
    {64, 2, {0x80, 0x01}},
    {-65, 2, {0x81, 0x01}},
    {INT32_MAX, 5, {0xfe, 0xff, 0xff, 0xff, 0x0f}},
    {INT32_MIN, 5, {0xff, 0xff, 0xff, 0xff, 0x0f}},
    {(int64_t)INT32_MAX + 1, 5, {0x80, 0x80, 0x80, 0x80, 0x10}},
    {INT64_MAX, 10, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}},
    {INT64_MIN, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}},
};

static void zigzag_varints_match_the_vectors_up_to_the_extremes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof zigzag_vectors / sizeof zigzag_vectors[0]; i++) {
        int64_t v = zigzag_vectors[i].v;
        bool narrow = v >= INT32_MIN && v <= INT32_MAX;
        struct writer w;
        int64_t back64;
        int32_t back32;

        wr_init(&w, 32);
        wr_varint64(&w, v);
        if (narrow)
            wr_varint32(&w, (int32_t)v);
        struct blob *b = wr_take(&w);
        assert_int_equal(b->len, zigzag_vectors[i].n * (narrow ? 2 : 1));
        assert_int_equal(varint64_size(v), zigzag_vectors[i].n);
        assert_memory_equal(b->data, zigzag_vectors[i].bytes, zigzag_vectors[i].n);
        struct reader r = reader_of(blob_span(b));
        assert_int_equal(rd_varint64(&r, &back64), 0);
        assert_true(back64 == v);
        if (narrow) {
            assert_int_equal(varint32_size((int32_t)v), zigzag_vectors[i].n);
            assert_int_equal(rd_varint32(&r, &back32), 0);
            assert_int_equal(back32, v);
        }
        assert_int_equal(rd_left(&r), 0);
        blob_unref(b);
    }
}

static void the_maximum_can_be_reached_but_not_passed(void **state)
{
    (void)state;
    for (size_t max = 1; max < 2000; max += 333) {
        struct writer w;

        wr_init(&w, max);
        for (size_t i = 0; i < max; i++)
            wr_u8(&w, (uint8_t)i);
        assert_int_equal(wr_err(&w), 0);
        assert_int_equal(wr_len(&w), max);
        assert_true(w.b->cap <= max);
        wr_u8(&w, 0);
        assert_int_equal(wr_err(&w), E_LIMIT);
        assert_null(wr_take(&w));
        assert_int_equal(wr_len(&w), max);
        wr_fini(&w);
    }
}

static void a_failure_is_sticky_and_the_first_one_counts(void **state)
{
    (void)state;
    struct writer w;

    wr_init(&w, 4);
    wr_u8(&w, 1);
    wr_i64(&w, 2);
    assert_int_equal(wr_err(&w), E_LIMIT);
    mem_fail_after(0, 1);
    wr_u8(&w, 3); /* would fit */
    wr_reserve(&w, 1);
    wr_printf(&w, "x");
    wr_poke_i32(&w, 100, 1); /* harmless after a failure */
    mem_fail_after(-1, 0);
    assert_int_equal(wr_err(&w), E_LIMIT);
    assert_int_equal(wr_len(&w), 1);
    assert_null(wr_take(&w));
    wr_fini(&w);
}

static void out_of_memory_is_an_error_at_every_allocation(void **state)
{
    (void)state;
    static const char text[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    for (long n = 0; n < 4; n++) {
        struct writer w;

        wr_init(&w, 4096);
        mem_fail_after(n, 0);
        for (int i = 0; i < 30; i++)
            wr_str(&w, text);
        mem_fail_after(-1, 0);
        assert_int_equal(wr_err(&w), E_NOMEM);
        wr_fini(&w);
    }

    struct writer w;
    wr_init(&w, 4096);
    mem_fail_after(0, 0);
    assert_null(wr_take(&w)); /* the empty blob */
    assert_int_equal(wr_err(&w), E_NOMEM);
    wr_init(&w, 4096);
    mem_fail_after(0, 0);
    wr_printf(&w, "%300d", 1);
    assert_int_equal(wr_err(&w), E_NOMEM);
    wr_init(&w, 4096);
    mem_fail_after(0, 0);
    wr_reserve(&w, 10);
    assert_int_equal(wr_err(&w), E_NOMEM);
    mem_fail_after(-1, 0);
    wr_fini(&w);
}

static void taking_empties_the_writer_and_gives_the_bytes_away(void **state)
{
    (void)state;
    struct writer w;

    wr_init(&w, 100);
    struct blob *empty = wr_take(&w);
    assert_int_equal(empty->len, 0);
    wr_str(&w, "one");
    struct blob *one = wr_take(&w);
    assert_int_equal(wr_len(&w), 0);
    wr_str(&w, "two");
    struct blob *two = wr_take(&w);
    assert_true(span_eq_str(blob_span(one), "one"));
    assert_true(span_eq_str(blob_span(two), "two"));
    wr_fini(&w);
    blob_unref(empty);
    blob_unref(one);
    blob_unref(two);
}

static void a_reserve_makes_later_writes_free_of_allocations(void **state)
{
    (void)state;
    struct writer w;

    wr_init(&w, 10000);
    wr_reserve(&w, 0);
    assert_null(w.b);
    wr_u8(&w, 1);
    wr_reserve(&w, 5000);
    mem_fail_after(0, 1);
    for (int i = 0; i < 5000; i++)
        wr_u8(&w, 2);
    mem_fail_after(-1, 0);
    assert_int_equal(wr_err(&w), 0);
    wr_reserve(&w, 4999);
    assert_int_equal(wr_err(&w), 0);
    wr_reserve(&w, 5000);
    assert_int_equal(wr_err(&w), E_LIMIT);
    wr_fini(&w);
}

static void long_printed_text_is_complete(void **state)
{
    (void)state;
    struct writer w;

    wr_init(&w, 1000);
    wr_printf(&w, "%500d", 7);
    assert_int_equal(wr_len(&w), 500);
    assert_int_equal(w.b->data[499], '7');
    wr_printf(&w, "%500d", 8); /* exactly full: the NUL does not count */
    assert_int_equal(wr_err(&w), 0);
    wr_printf(&w, "%s", "x");
    assert_int_equal(wr_err(&w), E_LIMIT);
    wr_fini(&w);
    wr_init(&w, 300);
    wr_printf(&w, "%301d", 1);
    assert_int_equal(wr_err(&w), E_LIMIT);
    wr_fini(&w);
}

static void a_length_is_patched_in_place(void **state)
{
    (void)state;
    struct writer w;

    wr_init(&w, 100);
    wr_i32(&w, 0);
    wr_str(&w, "body");
    wr_poke_i32(&w, 0, 4);
    wr_poke_i32(&w, 4, -1);
    struct blob *b = wr_take(&w);
    assert_memory_equal(b->data, "\0\0\0\4\xff\xff\xff\xff", 8);
    blob_unref(b);
}

static void raw_stores_and_loads_are_inverse(void **state)
{
    (void)state;
    uint8_t p[8];

    be_store64(p, UINT64_C(0x0102030405060708));
    for (uint8_t i = 0; i < 8; i++)
        assert_int_equal(p[i], i + 1);
    assert_true(be_load64(p) == UINT64_C(0x0102030405060708));
    be_store32(p, 0xfffefdfc);
    assert_int_equal(be_load32(p), 0xfffefdfc);
    be_store16(p, 0xff80);
    assert_int_equal(be_load16(p), 0xff80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_in_network_order),
        cmocka_unit_test(unsigned_varints_match_the_vectors),
        cmocka_unit_test(zigzag_varints_match_the_vectors_up_to_the_extremes),
        cmocka_unit_test(the_maximum_can_be_reached_but_not_passed),
        cmocka_unit_test(a_failure_is_sticky_and_the_first_one_counts),
        cmocka_unit_test(out_of_memory_is_an_error_at_every_allocation),
        cmocka_unit_test(taking_empties_the_writer_and_gives_the_bytes_away),
        cmocka_unit_test(a_reserve_makes_later_writes_free_of_allocations),
        cmocka_unit_test(long_printed_text_is_complete),
        cmocka_unit_test(a_length_is_patched_in_place),
        cmocka_unit_test(raw_stores_and_loads_are_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
